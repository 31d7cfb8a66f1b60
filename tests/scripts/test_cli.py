from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

EXTRAS = ("torch", "transformers", "peft", "trl", "datasets", "accelerate", "scipy", "matplotlib", "yaml", "numpy")
HIDE_EXTRAS = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}));"
"""A module that is None there cannot be imported: what a person without the extras sees."""

RUN = "from veriward.scripts.cli import app; app(prog_name='veriward')"


def veriward(*arguments, without_extras=False, stdin=""):
    code = (HIDE_EXTRAS if without_extras else "") + RUN
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env=environment,
        input=stdin,
    )


def veriward_here(*arguments):
    """The same in this process: importing torch for every test would take most of the time."""
    from typer.testing import CliRunner

    from veriward.scripts.cli import app

    done = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*map(str, arguments)], catch_exceptions=False)
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    pytest.importorskip("transformers")
    from veriward.train.tiny_model import write_model

    folder = tmp_path_factory.mktemp("cli") / "tiny"
    write_model(folder, seed=0)
    return folder


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({"question": f"{n}+1", "answer": str(n + 1)}) + "\n" for n in range(6)))
    return path


@pytest.mark.parametrize("arguments", [[], ["--help"], ["eval", "--help"], ["verify", "--help"], ["--version"]])
def test_help_and_version_work_without_the_extras(arguments):
    done = veriward(*arguments, without_extras=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "veriward" in done.stdout


def test_verify_works_without_the_extras():
    done = veriward("verify", r"So it is \boxed{1/2}.", r"\frac{2}{4}", "--json", without_extras=True)
    row = json.loads(done.stdout)
    assert (row["outcome"], row["format_valid"], row["contract"]) == ("correct", True, "v3")


@pytest.mark.parametrize(
    ("response", "reference", "outcome"),
    [(r"\boxed{-5}", "-5", "correct"), ("-5", "-5", "correct"), (r"\boxed{5}", "-5", "wrong"), ("", "4", "no_answer")],
)
def test_verify_prints_the_verdict_and_takes_negative_numbers(response, reference, outcome):
    done = veriward("verify", response, reference, "--json")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, outcome)


def test_verify_reads_a_long_response_from_standard_input():
    done = veriward("verify", "-", "7", "--json", stdin=r"Draft \boxed{5}; corrected \boxed{7}.")
    assert json.loads(done.stdout)["outcome"] == "correct"


def test_verify_takes_another_contract():
    done = veriward("verify", r"\boxed{4//2}", "2", "--contract", "v1", "--json")
    assert json.loads(done.stdout)["contract"] == "v1"


def test_what_a_model_wrote_cannot_act_on_the_terminal():
    done = veriward("verify", "\\boxed{[red]\x1b[2J}", "1")
    assert r"[red]\x1b[2J" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["verify", "4", "4", "--contract", "v0"], "unknown contract 'v0'; wanted one of v1", id="contract"
        ),
        pytest.param(["verify", "4"], "Missing argument 'reference'", id="missing argument"),
        pytest.param(["evla"], "No such command 'evla'. Did you mean 'eval'?", id="unknown command"),
        pytest.param(["eval", "--model", "x"], "Missing option '--problems'", id="missing option"),
        pytest.param(["eval", "--model", "x", "--problems", "no.jsonl"], "no.jsonl: no such file", id="missing file"),
        pytest.param(["eval", "--samples", "many"], "Invalid value for '--samples'", id="no number"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(arguments, message):
    done = veriward(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_extra_is_one_line_with_the_install_command(problems):
    done = veriward("eval", "--model", "x", "--problems", problems, without_extras=True)
    assert done.returncode == 2
    assert "pip install 'veriward[train]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_settings_that_cannot_work_are_refused_before_the_model_loads(problems):
    done = veriward_here("eval", "--model", "/no/such/model", "--problems", problems, "--samples", "4")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "4 samples at temperature 0" in done.stderr


def test_a_missing_model_is_one_line(problems):
    done = veriward_here("eval", "--model", "/no/such/model", "--problems", problems)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "/no/such/model: no such folder" in done.stderr


def test_a_bug_shows_its_traceback():
    code = f"import veriward.rewards as r; r.explain = lambda *a, **k: 1 / 0; {RUN}"
    done = subprocess.run([sys.executable, "-c", code, "verify", "4", "4"], capture_output=True, check=False, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_eval_ends_with_a_table_of_rates_with_their_denominators(model, problems, tmp_path):
    done = veriward_here(
        "eval", "--model", model, "--problems", problems, "--max-new-tokens", 8, "--out", tmp_path / "run"
    )
    assert done.returncode == 0, done.stderr
    for text in ("accuracy", "/6 = ", "95 % interval", "(Wilson)", "format valid", "cut off", "outcome"):
        assert text in done.stdout


def test_eval_prints_json_and_nothing_else_on_standard_output(model, problems, tmp_path):
    done = veriward_here(
        *("eval", "--model", model, "--problems", problems, "--max-new-tokens", 8, "--out", tmp_path / "run"),
        *("--samples", 2, "--temperature", 1, "--json"),
    )
    summary = json.loads(done.stdout)
    assert (summary["problems"], summary["samples"], set(summary["pass_at_k"])) == (6, 2, {"1", "2"})


def test_the_same_command_finds_its_own_folder_again(model, problems, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("eval", "--model", model, "--problems", problems, "--max-new-tokens", 8)
    first, second = (veriward_here(*command) for _ in range(2))
    assert "responses reused" not in first.stdout
    assert "6 responses reused" in second.stdout
    assert len(list((tmp_path / "runs/eval").iterdir())) == 1


def test_another_seed_in_the_same_folder_is_refused_with_the_difference(model, problems, tmp_path):
    command = ("eval", "--model", model, "--problems", problems, "--max-new-tokens", 8, "--out", tmp_path / "run")
    veriward_here(*command)
    done = veriward_here(*command, "--seed", 3)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "generation.seed 0 there, 3 now" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
def test_ctrl_c_says_how_to_go_on_and_leaves_what_was_stored(model, tmp_path):
    problems, out = tmp_path / "sums.jsonl", tmp_path / "run"
    problems.write_text("".join(json.dumps({"question": f"{n}+1", "answer": str(n + 1)}) + "\n" for n in range(200)))
    command = [
        "eval",
        "--model",
        model,
        "--problems",
        problems,
        "--max-new-tokens",
        40,
        "--batch-size",
        1,
        "--out",
        out,
    ]
    with subprocess.Popen(
        [sys.executable, "-c", RUN, *map(str, command)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 120
        while not list(out.glob("problems/*/*.json")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == f"stopped; the same command with --out {out} goes on from here"
    assert 0 < len(list(out.glob("problems/*/*.json"))) < 200
