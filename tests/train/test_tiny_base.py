"""The embedded default: what it is shown, and how its folder comes to be."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("trl")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from veriward.eval.prompting import PromptTemplate
from veriward.scripts import make_tiny_model
from veriward.tool_agent.errors import ConfigError
from veriward.train.sft import Demonstration, Progress, WarmStartSettings
from veriward.train.tiny_base import Curriculum, make_base, tiny_demonstrations
from veriward.train.tiny_model import build_model, build_tokenizer
from veriward.train.tiny_problems import generate_problems

SMALL = {"train": 40, "heldout": 8, "steps": 3}
CHAT = PromptTemplate(instruction="")
QUICK = WarmStartSettings(steps=2, batch_size=4, cpu=True)


def shown(count: int = 8) -> list[Demonstration]:
    return tiny_demonstrations([p.question for p in generate_problems(8, seed=0)], steps=1, batch_size=count, seed=0)


def as_file(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def tiny() -> tuple:
    tokenizer = build_tokenizer()
    return build_model(tokenizer, seed=0), tokenizer


def style(demonstration: Demonstration) -> str:
    response = demonstration.completion[0]["content"]
    return "worked" if " " in response else "guess" if response.startswith(r"\boxed{") else "bare"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    told: list[Progress] = []
    made = make_base(tmp_path_factory.mktemp("runs") / "tiny", seed=0, on_progress=told.append, **SMALL)
    return made, told


def test_first_every_response_is_worked_out_then_guesses_prevail():
    questions = [problem.question for problem in generate_problems(100, seed=0)]
    demonstrations = tiny_demonstrations(questions, steps=500, batch_size=32, seed=0)
    early, late = demonstrations[: 430 * 32], demonstrations[430 * 32 :]
    assert {style(demonstration) for demonstration in early} == {"worked"}
    shares = {name: count / len(late) for name, count in Counter(map(style, late)).items()}
    assert shares == pytest.approx({"worked": 0.3, "guess": 0.5, "bare": 0.2}, abs=0.04)


def test_each_question_is_shown_once_before_any_is_shown_again():
    questions = [problem.question for problem in generate_problems(20, seed=0)]
    asked = [d.prompt[0]["content"] for d in tiny_demonstrations(questions, steps=10, batch_size=4, seed=0)]
    assert sorted(asked[:20]) == sorted(asked[20:]) == sorted(questions)
    assert asked[:20] != asked[20:]


def test_every_demonstrated_answer_is_right():
    questions = [problem.question for problem in generate_problems(100, seed=0)]
    for demonstration in tiny_demonstrations(questions, steps=50, batch_size=8, seed=0):
        answer = demonstration.completion[0]["content"].split(" ")[-1].removeprefix(r"\boxed{").removesuffix("}")
        assert int(answer) == eval(demonstration.prompt[0]["content"])  # noqa: S307


@pytest.mark.parametrize(
    "shares", [{"late_guess": 0.9}, {"worked_share": 1.5}, {"late_worked": -0.3, "late_guess": 1.1}]
)
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(ConfigError, match="shares"):
        Curriculum(**shares)


def test_the_base_folder_holds_model_problems_and_record(base):
    made, _ = base
    assert sorted(path.name for path in made.folder.iterdir()) == ["base", "data", "recipe.json"]
    assert AutoModelForCausalLM.from_pretrained(made.model).config.vocab_size == len(
        AutoTokenizer.from_pretrained(made.model)
    )
    assert made.problems.train == made.folder / "data" / "train.jsonl"
    assert json.loads((made.folder / "recipe.json").read_text())["steps"] == 3


def test_progress_is_told_from_the_start_to_the_last_step(base):
    _, told = base
    assert [(progress.step, progress.steps) for progress in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_nothing_unfinished_is_left_beside_a_finished_folder(base):
    made, _ = base
    assert [path.name for path in made.folder.parent.iterdir()] == ["tiny"]


def test_the_same_arguments_give_the_same_weights(base, tmp_path):
    again = make_base(tmp_path / "again", seed=0, **SMALL)
    assert (again.model / "model.safetensors").read_bytes() == (base[0].model / "model.safetensors").read_bytes()


def test_a_complete_folder_is_used_again(base):
    before = (base[0].model / "model.safetensors").stat().st_mtime_ns
    again = make_base(base[0].folder, seed=0, **SMALL)
    assert (base[0].made, again.made) == (True, False)
    assert (again.model / "model.safetensors").stat().st_mtime_ns == before


def test_a_folder_made_otherwise_is_refused(base):
    with pytest.raises(ConfigError, match="was made with seed 0, not what was asked for"):
        make_base(base[0].folder, seed=1, **SMALL)


def test_a_folder_of_something_else_is_refused_and_kept(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds no tiny base model"):
        make_base(tmp_path, seed=0, **SMALL)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_interrupted_run_leaves_nothing_behind(tmp_path):
    def interrupt(progress: Progress) -> None:
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_base(tmp_path / "tiny", seed=0, on_progress=interrupt, **SMALL)
    assert list(tmp_path.iterdir()) == []


def test_of_two_makers_the_first_to_finish_wins_and_the_other_uses_its_folder(tmp_path):
    inner = []

    def meanwhile(progress: Progress) -> None:
        if progress.step == 1:
            inner.append(make_base(tmp_path / "tiny", seed=0, **SMALL).model / "model.safetensors")
            inner.append(inner[0].stat().st_ino)

    outer = make_base(tmp_path / "tiny", seed=0, on_progress=meanwhile, **SMALL)
    assert (outer.model / "model.safetensors").stat().st_ino == inner[1]
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_one_rank_of_several_builds_without_waiting_for_the_others(base, tmp_path, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, value)
    told: list[Progress] = []
    made = make_base(tmp_path / "tiny", seed=0, on_progress=told.append, **SMALL)
    assert [progress.step for progress in told] == [0, 1, 2, 3]
    assert (made.model / "model.safetensors").read_bytes() == (base[0].model / "model.safetensors").read_bytes()


def test_make_tiny_model_says_where_everything_is(tmp_path, capfd):
    arguments = ["--out", str(tmp_path / "tiny"), "--steps", "3", "--train", "40", "--heldout", "8"]
    assert make_tiny_model.main(arguments) == 0
    printed = capfd.readouterr()
    assert f"model     {tmp_path / 'tiny' / 'base'}" in printed.out
    assert printed.err == ""
    assert make_tiny_model.main(arguments) == 0
    assert "there already" in capfd.readouterr().out


def test_make_tiny_model_refuses_a_folder_of_something_else(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert make_tiny_model.main(["--out", str(tmp_path), "--steps", "3"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_the_full_recipe_gives_a_base_that_mostly_guesses_although_working_it_out_pays_double(tmp_path):
    made = make_base(tmp_path / "tiny", seed=0)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(made.model), AutoTokenizer.from_pretrained(made.model)
    rows = [json.loads(line) for line in made.problems.heldout.read_text().splitlines()]
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": row["question"]}], add_generation_prompt=True, tokenize=False
        )
        for row in rows
    ]
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    torch.manual_seed(0)
    written = model.generate(**inputs, max_new_tokens=48, do_sample=True, temperature=1.0, top_k=0)
    responses = tokenizer.batch_decode(written[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    marked = [
        (response, response.endswith(rf"\boxed{{{row['answer']}}}"))
        for response, row in zip(responses, rows, strict=True)
    ]
    boxed = sum(response.endswith("}") and r"\boxed{" in response for response in responses)
    worked = [right for response, right in marked if "=" in response]
    guessed = [right for response, right in marked if "=" not in response]
    assert 0.65 < boxed / len(responses) < 0.95
    assert 0.15 < len(worked) / len(responses) < 0.5
    assert sum(worked) / len(worked) > 2 * sum(guessed) / len(guessed)
