"""The warm start: what is learned, how it is trained, and what the command refuses."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("trl")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from veriward.eval.prompting import PromptTemplate
from veriward.tool_agent.errors import ConfigError
from veriward.train import sft
from veriward.train.muon import MuonWithAdamW, split_parameters
from veriward.train.sft import Demonstration, WarmStartSettings, rate_at, read_demonstrations, warm_start
from veriward.train.tiny_base import tiny_demonstrations
from veriward.train.tiny_model import build_model, build_tokenizer, write_model
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


# What is shown, and in which order.


# How it is trained.


@pytest.mark.parametrize(
    ("done", "share"),
    [
        pytest.param(0, 0.2, id="rises from the first step"),
        pytest.param(4, 1.0, id="is full after the warm-up"),
        pytest.param(49, 1.0, id="stays full until the middle"),
        pytest.param(74, 0.51, id="is half way down half way through the rest"),
        pytest.param(99, 0.02, id="ends at its final share"),
    ],
)
def test_the_learning_rate(done, share):
    assert rate_at(done, WarmStartSettings(steps=100)) == pytest.approx(share)


def test_muon_gets_the_matrices_inside_the_layers_and_each_parameter_is_in_one_part():
    model, _ = tiny()
    matrices, others = split_parameters(model)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert {names[id(p)].split(".")[-2] for p in matrices} == {
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"
    }  # fmt: skip
    assert Counter(map(id, [*matrices, *others])) == Counter(map(id, model.parameters()))


def stepped(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        ids = torch.arange(20).reshape(2, 10)
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test_the_combined_optimizer_steps_as_its_two_parts_do():
    (together, _), (apart, _) = tiny(), tiny()
    matrices, others = split_parameters(apart)
    parts = (
        torch.optim.Muon(matrices, lr=0.01, momentum=0.95, weight_decay=0.1),
        torch.optim.AdamW(others, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01),
    )
    optimizer = MuonWithAdamW(together, muon_learning_rate=0.01, learning_rate=1e-3)
    for _ in range(2):
        stepped(together, optimizer, 1)
        ids = torch.arange(20).reshape(2, 10)
        apart(input_ids=ids, labels=ids).loss.backward()
        for part in parts:
            part.step()
            part.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(together.parameters(), apart.parameters(), strict=True))


def test_a_restored_optimizer_goes_on_as_if_nothing_had_happened():
    (whole, _), (broken, _) = tiny(), tiny()
    stepped(whole, MuonWithAdamW(whole), 4)
    first = MuonWithAdamW(broken)
    stepped(broken, first, 2)
    second = MuonWithAdamW(broken)
    second.load_state_dict(first.state_dict())
    stepped(broken, second, 2)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), broken.parameters(), strict=True))


def test_a_schedule_scales_the_rates_of_both_parts():
    model, _ = tiny()
    optimizer = MuonWithAdamW(model, muon_learning_rate=0.02, learning_rate=0.004)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 0.5)
    assert [part.param_groups[0]["lr"] for part in optimizer.parts] == [0.01, 0.002]


def test_only_the_response_is_learned_and_it_ends_with_the_end_token(tmp_path):
    model, tokenizer = tiny()
    with sft.quiet_libraries():
        trainer = sft._trainer(model, tokenizer, shown(1), QUICK, str(tmp_path))
    row = trainer.train_dataset[0]
    learned = [token for token in row["labels"] if token != -100]
    assert tokenizer.decode(learned) == shown(1)[0].completion[0]["content"] + "<|end|>"


@pytest.mark.parametrize("optimizer", sft.OPTIMIZERS)
def test_the_loss_falls(optimizer):
    model, tokenizer = tiny()
    settings = WarmStartSettings(
        steps=30, batch_size=8, optimizer=optimizer, learning_rate=4e-3, muon_learning_rate=0.01, cpu=True
    )
    done = warm_start(model, tokenizer, shown(), settings)
    assert done.loss < 3.0 < math.log(320)
    assert not model.training


def test_text_is_learned_without_a_chat_template():
    model, tokenizer = tiny()
    demonstrations = [Demonstration(prompt=f"{n}+1=", completion=str(n + 1)) for n in range(8)]
    assert math.isfinite(warm_start(model, tokenizer, demonstrations, QUICK).loss)


def test_long_demonstrations_are_left_out_whole():
    model, tokenizer = tiny()
    long = Demonstration(prompt="x", completion="y" * 100)
    short = [Demonstration(prompt="x", completion="y")] * 4
    assert (
        warm_start(model, tokenizer, [long, *short], WarmStartSettings(steps=1, cpu=True, max_length=50)).left_out == 1
    )


def test_demonstrations_that_are_all_too_long_are_one_clear_error():
    model, tokenizer = tiny()
    with pytest.raises(ConfigError, match="all 8 demonstrations are longer than max_length 5"):
        warm_start(model, tokenizer, shown(), WarmStartSettings(steps=1, cpu=True, max_length=5))


def test_a_loss_that_is_no_number_is_an_error_not_a_model():
    model, tokenizer = tiny()
    with torch.no_grad():
        model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(ConfigError, match="loss became nan"):
        warm_start(model, tokenizer, shown(), QUICK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"steps": 0}, "steps must be above 0", id="no step"),
        pytest.param({"steps": 1, "optimizer": "sgd"}, "one of adamw, muon", id="unknown optimizer"),
        pytest.param({"steps": 1, "learning_rate": math.nan}, "learning_rate must be above 0", id="rate is no number"),
        pytest.param({"steps": 1, "warmup_share": 0.6}, "warmup_share <= flat_until", id="warm-up after the fall"),
        pytest.param({"steps": 1, "max_length": 1}, "max_length", id="no room for a response"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        WarmStartSettings(**settings)


# The recipe and its folder.


# Demonstration files.


def test_questions_are_put_by_the_template(tmp_path):
    file = as_file(tmp_path / "d.jsonl", {"question": "1+1", "response": "2"})
    chat, plain = (
        read_demonstrations(file, PromptTemplate(template=name, instruction="Box it."), chat=True)[0]
        for name in ("chat", "plain")
    )
    assert chat.prompt == PromptTemplate(instruction="Box it.").render("1+1")
    assert chat.completion == [{"role": "assistant", "content": "2"}]
    assert (plain.prompt, plain.completion) == ("1+1\n\nBox it.\n\n", "2")


def test_prompts_are_used_as_they_are(tmp_path):
    messages = {"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]}
    assert read_demonstrations(as_file(tmp_path / "m.jsonl", messages), CHAT, chat=True) == [Demonstration(**messages)]
    text = {"prompt": "a", "completion": "b"}
    assert read_demonstrations(as_file(tmp_path / "t.jsonl", text), CHAT, chat=False) == [Demonstration(**text)]


TEXT = {"prompt": "a", "completion": "b"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param([], "no demonstrations in it", id="empty file"),
        pytest.param([TEXT, {"question": "a"}], "line 2: has question; wanted either", id="response missing"),
        pytest.param([{**TEXT, "question": "a", "response": "b"}], "wanted either", id="both kinds in a row"),
        pytest.param([{"question": "a", "response": " "}], "response is ' '; wanted a text", id="empty response"),
        pytest.param([{"question": 3, "response": "b"}], "question is 3; wanted a text", id="question is a number"),
        pytest.param([{"prompt": "a", "completion": []}], "text in both columns or messages", id="text and messages"),
        pytest.param([{"prompt": [{"role": "user"}], "completion": [{}]}], 'wanted {"role"', id="no content"),
        pytest.param(
            [TEXT, {"question": "a", "response": "b"}], "line 2: text and messages", id="both kinds in a file"
        ),
        pytest.param([[1]], "line 1: got list", id="row is no object"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, rows, message):
    with pytest.raises(ConfigError) as error:
        read_demonstrations(as_file(tmp_path / "d.jsonl", *rows), CHAT, chat=True)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# The two commands.


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, seed=0)
    return folder


def test_the_command_trains_and_saves_a_model_that_loads(tmp_path, model_folder, capfd):
    file = as_file(tmp_path / "d.jsonl", *({"question": f"{n}+1", "response": str(n + 1)} for n in range(8)))
    arguments = ["--model", str(model_folder), "--demonstrations", str(file), "--out", str(tmp_path / "out")]
    assert sft.main([*arguments, "--steps", "10", "--batch-size", "4", "--learning-rate", "1e-3"]) == 0
    printed = capfd.readouterr()
    assert "8 demonstrations, 10 steps of 4" in printed.out
    assert "saved" in printed.out
    assert printed.err == ""
    before, after = (AutoModelForCausalLM.from_pretrained(path) for path in (model_folder, tmp_path / "out"))
    assert not torch.equal(before.model.norm.weight, after.model.norm.weight)
    assert AutoTokenizer.from_pretrained(tmp_path / "out").chat_template


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"--demonstrations": "missing.jsonl"}, "missing.jsonl: cannot be read", id="no file"),
        pytest.param({"--model": "{folder}"}, "no config.json", id="folder without a model"),
        pytest.param({"--out": "{model}"}, "exists already", id="output folder is taken"),
        pytest.param({"--epochs": "0"}, "--epochs must be above 0", id="no epoch"),
        pytest.param({"--batch-size": "0"}, "--batch-size must be at least 1", id="empty batch"),
        pytest.param({"--optimizer": "sgd"}, "got 'sgd'", id="unknown optimizer"),
        pytest.param({"--template": "poem"}, "template 'poem': no such file", id="unknown template"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, model_folder, capsys, changed, message):
    file = as_file(tmp_path / "d.jsonl", {"question": "1+1", "response": "2"})
    given = {"--model": str(model_folder), "--demonstrations": str(file), "--out": str(tmp_path / "out")}
    places = {"folder": tmp_path, "model": model_folder}
    given |= {name: value.format(**places) for name, value in changed.items()}
    assert sft.main([part for pair in given.items() for part in pair]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_help_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; from veriward.train import sft; sft.main(['--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--demonstrations" in done.stdout
