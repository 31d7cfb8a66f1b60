"""`veriward drill`: what it prints, what it keeps, and when it fails."""

import json

import pytest
import typer
from typer.testing import CliRunner

from veriward.eval import drill as drill_module
from veriward.scripts.drill_command import drill
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.store import read_store

app = typer.Typer()
app.command()(drill)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Verdicts without a worker, which takes a while to start."""
    from veriward.rewards import VerdictPool

    real = drill_module.run_drill
    monkeypatch.setattr(drill_module, "run_drill", lambda folder: real(folder, pool=VerdictPool(workers=0)))


def call(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "120"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_three_planned_paths_are_printed():
    lines = call().stdout.splitlines()
    assert [line for line in lines if " -> " in line] == [
        "calculator-01  timeout -> executor again -> 761 -> complete/correct",
        "search-01      note-aurora -> interrupted -> stored result used, not run again -> complete/correct",
        "python-03      refused: syntax -> same call again -> refused: syntax -> safe error -> wrong -> correction -> "
        "complete/wrong",
    ]


def test_the_outcomes_before_and_after_correction_stand_side_by_side():
    rows = [line.replace("│", " ").split() for line in call().stdout.splitlines()]
    assert ["calculator-04", "calculator", "ok", "no_answer", "correct"] in rows
    assert ["python-03", "calculator", "refused", "wrong", "wrong"] in rows


def test_the_counts_name_their_denominator_and_contract():
    assert call().stdout.splitlines()[-1] == (
        "12/12 complete; 7/12 right at the first answer; 5 corrections: 2 rescued, 3 still not right; "
        "9/12 right after correction, under v3"
    )


def test_it_says_that_no_model_is_measured():
    assert "measures no model" in " ".join(call().stdout.split())


def test_a_path_that_differs_is_named_with_exit_code_1(monkeypatch):
    monkeypatch.setattr(drill_module, "PLANNED", {**drill_module.PLANNED, "search-04": "another"})
    result = call()
    assert result.exit_code == 1
    assert "search-04: took note-telemetry -> complete/correct; planned was another" in result.stderr


def test_json_holds_every_path():
    row = json.loads(call("--json").stdout)
    assert row["as_planned"]
    assert all(problem["path"] == problem["planned"] for problem in row["problems"])


def test_the_states_are_kept_where_asked(tmp_path):
    call("--out", tmp_path / "run")
    with read_store(tmp_path / "run") as store:
        assert list(store.phases().values()) == ["complete"] * 12


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "note.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="holds something already"):
        call("--out", tmp_path)


def test_a_folder_with_a_name_too_long_is_one_line():
    with pytest.raises(ConfigError, match="cannot be looked at: File name too long; choose another --out"):
        call("--out", "a" * 300)
