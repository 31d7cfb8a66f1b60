"""`veriward attack`, as a person runs it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from veriward.scripts.cli import app

RUN = "from veriward.scripts.cli import app; app(prog_name='veriward')"

REWARDS = """
import time

def pays_everything(completions, **columns):
    return [1.0]

def slow(completions, **columns):
    time.sleep(0.2)
    return [1.0]

def unasked(solution_str, ground_truth):
    return 1.0

def hangs(completions, **columns):
    while True:
        pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "attacked_rewards.py").write_text(REWARDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def attack(*arguments):
    """In this process; the working folder holds the module of rewards."""
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, ["attack", *arguments], catch_exceptions=False)


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", RUN, "attack", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "120"},
    )


def attack_apart(*arguments):
    process = start(*arguments)
    said, complained = process.communicate(timeout=60)
    return process.returncode, said, complained


EVERYTHING = ("--function", "attacked_rewards:pays_everything", "--family", "unequal", "--per-family", "4")


def test_no_target_is_our_contract_and_it_pays_nothing_wrong():
    done = attack("--family", "unequal", "--per-family", "20", "--fail-on", "wrong-accepts,hangs,crashes,exceptions")
    assert done.exit_code == 0
    assert "contract v3, fingerprint" in done.stdout


def test_one_target_is_shown_in_full():
    done = attack(*EVERYTHING)
    assert done.exit_code == 0
    total = next(line for line in done.stdout.splitlines() if "│ all " in line)
    assert [text.strip() for text in total.split("│")[2:8]] == ["4", "4", "·", "·", "·", "·"]
    assert "4 wrong accepts" not in done.stdout.splitlines()[0]
    assert "attacked_rewards:pays_everything: " in done.stdout


def test_several_targets_stand_side_by_side():
    done = attack(*EVERYTHING, "--contract", "v3")
    total = next(line for line in done.stdout.splitlines() if "│ all " in line)
    assert "0 / 0 /" in total
    assert "4 / 0 / 0 / 0" in total


def test_for_a_machine_it_prints_one_json_object_with_every_finding():
    done = attack(*EVERYTHING, "--json")
    row = json.loads(done.stdout)
    assert row["targets"][0]["total"]["wrong_accepts"] == 4
    assert len(row["targets"][0]["findings"]) == 4
    assert row["command"] == "veriward attack " + " ".join(
        [*EVERYTHING[:2], "--per-family", "4", "--family", "unequal"]
    )


def test_the_file_and_the_page_are_written(folder):
    page = folder / "PAGE.md"
    page.write_text("<!-- attack table -->\n<!-- /attack table -->\n")
    done = attack(*EVERYTHING, "--out", "found.json", "--page", "PAGE.md")
    assert done.exit_code == 0
    assert json.loads((folder / "found.json").read_text())["targets"][0]["total"]["cases"] == 4
    assert "| 4 | 0 | 4 / 0 / 0 / 0 |" in page.read_text()


def test_findings_give_exit_code_1_where_asked():
    assert attack(*EVERYTHING, "--fail-on", "hangs,crashes").exit_code == 0
    assert attack(*EVERYTHING, "--fail-on", "hangs,wrong-accepts").exit_code == 1


def test_a_function_that_is_called_wrongly_is_said_in_one_line():
    done = attack("--function", "attacked_rewards:unasked", "--family", "unequal", "--per-family", "4")
    assert done.exit_code == 2
    assert "every call raised, the first TypeError: unasked() got an unexpected keyword argument" in done.stderr
    assert "let it take **kwargs" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--contract", "v9"], "veriward: unknown contract 'v9'; wanted one of v1, v2, v3"),
        (["--peer", "gpt"], "veriward: unknown peer 'gpt'; wanted one of math-verify, trl"),
        (["--function", "attacked_rewards:none"], "attacked_rewards has no 'none'"),
        (["--family", "none"], "unknown family 'none'; choose from"),
        (["--per-family", "0"], "per_family: got 0, wanted at least 1"),
        (["--deadline", "0"], "--deadline must be above 0 seconds, got 0.0"),
        (["--fail-on", "wrong"], "--fail-on: unknown finding 'wrong'; wanted some of wrong-accepts,"),
        (["--out", "attacked_rewards.py"], "attacked_rewards.py: is there already; choose another --out"),
        (["--page", "none.md"], "none.md: cannot be read: No such file or directory"),
        (["--page", "attacked_rewards.py"], "wanted a line <!-- attack summary --> and below it"),
        (["--server", "http://127.0.0.1:1/judge"], "no answer to the first request"),
    ],
)
def test_bad_input_is_one_line(arguments, complaint):
    code, said, complained = attack_apart(*arguments)
    assert (code, said) == (2, "")
    assert complaint in complained
    assert len(complained.splitlines()) == 1


def test_a_missing_peer_is_one_line():
    hide = "import sys; sys.modules['math_verify'] = None;"
    done = subprocess.run(
        [sys.executable, "-c", hide + RUN, "attack", "--peer", "math-verify"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'veriward[peers]'" in done.stderr


def test_ctrl_c_prints_and_writes_what_was_found(folder):
    process = start("--function", "attacked_rewards:slow", "--family", "unequal", "--out", "found.json")
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "slow, seed 0" in said
    assert complained.splitlines()[-1] == "stopped; the figures are of the calls until then"
    row = json.loads((folder / "found.json").read_text())
    assert row["stopped"]
    assert 0 < row["targets"][0]["total"]["cases"] < row["cases"]
