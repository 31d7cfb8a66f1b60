"""Runs of the real trainer on a real, tiny model: what it does, writes and refuses."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("trl")

from veriward.rewards import VerdictPool, get_contract
from veriward.tool_agent.errors import ConfigError
from veriward.train.grpo import interrupted_in_words, main, refuse_own_inputs, train, weight_warnings
from veriward.train.processes import launcher_warnings
from veriward.train.rollouts import read_lines
from veriward.train.settings import read_settings
from veriward.train.trainer import MetricsCallback, cut_after_stop, without_stop

SCRIPT = str(Path(__file__).parents[2] / "train" / "grpo.py")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
STEPS, COMPLETIONS = 2, 16


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A folder with an untrained tiny model and 40 problems, two of them with an unreadable reference."""
    from veriward.train.tiny_model import write_model

    folder = tmp_path_factory.mktemp("start")
    write_model(folder / "model", seed=0)
    rows = [{"id": f"p{n}", "question": f"{n}+1", "answer": "4 5" if n < 2 else str(n + 1)} for n in range(40)]
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.fixture
def words(start, tmp_path):
    """The command line of a run of two steps in a fresh folder."""

    def make(**options: object) -> list[str]:
        given = {
            "problems": start / "problems.jsonl",
            "model_name_or_path": start / "model",
            "output_dir": tmp_path / "run",
            "device": "cpu",
            "per_device_train_batch_size": COMPLETIONS,
            "max_steps": STEPS,
            "max_completion_length": 12,
            "learning_rate": 1e-4,
            "save_steps": 1,
            "instruction": "",
        }
        config = tmp_path / "empty.yaml"
        lines = [
            f"{name}: {json.dumps(str(value) if isinstance(value, Path) else value)}" for name, value in given.items()
        ]
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        typed = [word for name, values in options.items() for word in (f"--{name}", *map(str, values))]
        return ["--config", str(config), *typed]

    return make


@pytest.fixture
def libraries_speak_again():
    """A run turns library loggers down for its process; put them back for the tests that follow."""
    names = ("py.warnings", "transformers", "trl", "accelerate", "datasets", "peft", "huggingface_hub", "torch")
    before = {name: (logging.getLogger(name).handlers[:], logging.getLogger(name).propagate) for name in names}
    yield
    logging.captureWarnings(False)
    for name, (handlers, propagate) in before.items():
        logging.getLogger(name).handlers, logging.getLogger(name).propagate = handlers, propagate


def launch(*command: str, timeout: int = 300) -> subprocess.CompletedProcess[str]:
    """Runs a launcher; past the time limit its ranks end with it."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def rows(path: Path) -> list[dict]:
    return list(read_lines(path))


# Without a model ----------------------------------------------------------------------------------


def test_weights_that_are_no_binary_fractions_are_warned_of():
    assert weight_warnings({"accuracy_reward": 1.0, "format_reward": 0.25}) == []
    assert "format_reward = 0.2" in weight_warnings({"accuracy_reward": 1.0, "format_reward": 0.2})[0]


def test_no_launcher_no_warning(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    assert launcher_warnings(1) == []


def test_a_launcher_set_up_for_several_processes_that_started_one_is_noticed(monkeypatch):
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert "several processes and one is running" in launcher_warnings(1)[0]


def decode(ids: list[int]) -> str:
    return "".join({1: "a", 2: "S", 3: "b", 0: "<pad>", 9: "<eos>"}[token] for token in ids)


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        pytest.param([1, 2, 0, 0], [1, 2], id="padding behind a stop string goes"),
        pytest.param([1, 2, 9], [1, 2], id="an end token behind it is padding, too"),
        pytest.param([1, 2], [1, 2], id="the longest row of a batch has no padding"),
        pytest.param([1, 3, 9], [1, 3, 9], id="a response ended by its own end token keeps it"),
        pytest.param([1, 1, 1], [1, 1, 1], id="a truncated response stays"),
        pytest.param([9], [9], id="an end token alone stays"),
    ],
)
def test_only_padding_behind_a_stop_string_is_cut(ids, kept):
    assert cut_after_stop(ids, ["S"], {0, 9}, decode) == kept


def test_a_stop_string_is_no_part_of_the_response():
    chat = [{"role": "assistant", "content": "4\n\nQ: 5"}]
    assert without_stop("4\n\nQ: 5", ["\n\nQ:"]) == "4"
    assert without_stop(chat, ["\n\nQ:"]) == [{"role": "assistant", "content": "4"}]


# Runs ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_leaves_everything_that_was_promised(words, tmp_path, libraries_speak_again):
    said: list[str] = []
    result = train(read_settings(words()), say=said.append)
    folder = tmp_path / "run"
    written = {path.name for path in folder.iterdir()}
    assert {
        "settings.yaml",
        "run.json",
        "metrics.jsonl",
        "rollouts-0.jsonl",
        "checkpoint-1",
        "final",
        "curves.png",
        "unreadable_references.jsonl",
    } <= written
    assert (result.steps, result.model) == (STEPS, folder / "final")
    assert any("2 prompts x 8 completions a step; 0 prompts dropped an epoch; 2 steps" in line for line in said)
    assert any("2/40 references unreadable (5.0%): left out" in line for line in said)

    rollouts = rows(folder / "rollouts-0.jsonl")
    assert len(rollouts) == STEPS * COMPLETIONS
    assert {row["step"] for row in rollouts} == {1, 2}
    metrics = rows(folder / "metrics.jsonl")
    assert [row["step"] for row in metrics] == [1, 2, 2]
    for step, row in enumerate(metrics[:STEPS], start=1):
        of_step = [rollout for rollout in rollouts if rollout["step"] == step]
        for name in ("accuracy_reward", "format_reward", "supported_reward"):
            mean = sum(rollout[name] for rollout in of_step) / len(of_step)
            assert row[f"rewards/{name}/mean"] == pytest.approx(mean)
            assert isinstance(row[f"rewards/{name}/std"], float)
        assert row["truncated"] == sum(rollout["truncated"] for rollout in of_step) / len(of_step)
        assert {"entropy", "completions/mean_length", "outcome/correct", "outcome/unsupported"} <= set(row)

    record = json.loads((folder / "run.json").read_text())
    assert record["contract"] == {"name": "v3", "fingerprint": get_contract("v3").fingerprint}
    assert record["data"]["problems_used"] == 38
    assert {"trl", "torch", "transformers", "veriward"} <= set(record["versions"])
    assert record["settings"]["grpo"]["reward_weights"] == [1.0, 0.25, 0.0]
    assert len(record["settings_sha256"]) == 64
    loads_as_model(folder / "final")


def loads_as_model(folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.config.vocab_size == len(tokenizer)


@pytest.mark.slow
def test_stop_strings_end_responses_and_no_padding_is_trained_on(words, tmp_path, libraries_speak_again):
    train(read_settings(words(stop_strings=["1", "7", "a"], max_completion_length=[24])), say=lambda line: None)
    rollouts = rows(tmp_path / "run" / "rollouts-0.jsonl")
    assert not any(stop in row["text"] for row in rollouts for stop in ("1", "7", "a"))
    stopped = [row for row in rollouts if row["completion_tokens"] < 24]
    assert stopped
    assert not any(row["truncated"] for row in stopped)
    assert not any("<|pad|>" in row["text"] for row in rollouts)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["stop_strings"] == ["1", "7", "a"]


@pytest.mark.slow
def test_lora_trains_an_adapter_only(words, tmp_path, libraries_speak_again):
    train(read_settings(words(use_peft=["true"], lora_r=[4], stop_strings=["="])), say=lambda line: None)
    written = {path.name for path in (tmp_path / "run" / "final").iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= written
    assert "model.safetensors" not in written


@pytest.mark.slow
def test_the_same_settings_give_the_same_weights(words, tmp_path, libraries_speak_again):
    def weights(name: str) -> bytes:
        train(read_settings(words(output_dir=[str(tmp_path / name)])), say=lambda line: None)
        return (tmp_path / name / "final" / "model.safetensors").read_bytes()

    assert weights("one") == weights("two")


@pytest.mark.slow
def test_an_unreadable_reference_that_is_kept_is_never_paid(words, start, tmp_path, libraries_speak_again):
    lines = (start / "problems.jsonl").read_text().splitlines(keepends=True)[:2]
    problems = tmp_path / "two.jsonl"
    problems.write_text("".join(lines[:1]) + json.dumps({"id": "good", "question": "1+1", "answer": "2"}) + "\n")
    settings = read_settings(words(problems=[str(problems)], unreadable_references=["keep"]))
    train(settings, say=lambda line: None)
    for row in rows(tmp_path / "run" / "rollouts-0.jsonl"):
        assert (row["accuracy_reward"] is None) == (row["problem_id"] == "p0")
        assert (row["format_reward"] is None) == (row["problem_id"] == "p0")


@pytest.mark.slow
def test_two_ranks_share_the_batch_and_write_their_own_rollouts(words, tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = launch(*torchrun, SCRIPT, *words(per_device_train_batch_size=[8]))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 prompts x 8 completions a step over 2 processes") == 1
    for rank in (0, 1):
        assert len(rows(tmp_path / "run" / f"rollouts-{rank}.jsonl")) == STEPS * 8
    assert [row["step"] for row in rows(tmp_path / "run" / "metrics.jsonl")] == [1, 2, 2]


@pytest.mark.slow
def test_accelerate_runs_the_command_and_fewer_processes_than_asked_are_warned_of(words):
    accelerate = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    done = launch(*accelerate, SCRIPT, *words(max_steps=[1]))
    assert done.returncode == 0, done.stderr
    assert "2 processes were asked for and 1 is running" in done.stdout
    assert "torchrun --nproc_per_node 2" in done.stdout


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_done_and_says_where(words, tmp_path):
    process = subprocess.Popen(
        [sys.executable, SCRIPT, *words(max_steps=[500])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    metrics = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (metrics.is_file() and len(rows(metrics)) >= 2):
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    assert out.strip().splitlines()[-1].startswith("stopped at step ")
    assert "of 500; the newest checkpoint is checkpoint-" in out
    assert "Traceback" not in err
    steps = {row["step"] for row in rows(tmp_path / "run" / "rollouts-0.jsonl")}
    assert steps >= {row["step"] for row in rows(metrics)}
    assert (tmp_path / "run" / "curves.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_device_train_batch_size": [400]}, "38 usable problems, fewer than the 50 prompts"),
        ({"problems": ["nowhere.jsonl"]}, "nowhere.jsonl: no such file"),
        ({"question_column": ["text"]}, "no column 'text'"),
        ({"lr_scheduler_type": ["zigzag"]}, "zigzag"),
    ],
)
def test_a_run_that_cannot_start_writes_nothing(words, tmp_path, options, message, libraries_speak_again):
    with pytest.raises(ConfigError, match=message) as refused:
        train(read_settings(words(**options)), say=lambda line: None)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_model_folder_without_a_tokenizer_is_refused_before_anything_is_written(
    words, tmp_path, libraries_speak_again
):
    (tmp_path / "no model").mkdir()
    with pytest.raises(ConfigError, match=r"model_name_or_path '.*no model'") as refused:
        train(read_settings(words(model_name_or_path=[str(tmp_path / "no model")])), say=lambda line: None)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_missing_problem_file_is_no_data_set_to_be_fetched(words, capsys):
    assert main([*words(problems=["missing.jsonl"]), "--check"]) == 2
    assert "missing.jsonl: no such file" in capsys.readouterr().err


def test_some_steps_without_one_right_answer_are_warned_of_once():
    said = []
    callback = MetricsCallback(metrics=None, pool=VerdictPool(workers=0), say=said.append)
    for _ in range(8):
        callback._warn_if_nothing_is_right({"outcome/correct": 0.0})
    assert [line.split(",")[0] for line in said] == ["WARNING: 5 steps and not one right answer"]


def test_one_right_answer_is_enough_to_say_nothing():
    said = []
    callback = MetricsCallback(metrics=None, pool=VerdictPool(workers=0), say=said.append)
    for share in (0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        callback._warn_if_nothing_is_right({"outcome/correct": share})
    assert said == []


@pytest.mark.slow
def test_a_damaged_model_is_one_line_and_the_next_start_finds_a_free_folder(words, start, tmp_path, capsys):
    broken = tmp_path / "broken"
    shutil.copytree(start / "model", broken)
    (broken / "model.safetensors").write_bytes(b"cut off")
    arguments = words(existing=["refuse"], output_dir=[str(tmp_path / "twice")])
    assert main([*arguments, "--model_name_or_path", str(broken)]) == 2
    assert "SafetensorError" in capsys.readouterr().err
    assert main(arguments) == 0


def test_a_run_folder_that_holds_its_own_model_is_refused(words, start):
    with pytest.raises(ConfigError, match="holds model_name_or_path"):
        refuse_own_inputs(read_settings(words(output_dir=[str(start)])))


def test_an_interruption_outside_the_training_says_what_is_there(words, tmp_path):
    settings = read_settings(words())
    assert interrupted_in_words(settings) == "stopped before the first step; nothing was trained"
    for name in ("checkpoint-20", "checkpoint-100"):
        (tmp_path / "run" / name).mkdir(parents=True)
    assert interrupted_in_words(settings).endswith("the newest checkpoint is checkpoint-100, there is no final model")
