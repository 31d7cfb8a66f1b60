"""`veriward state`: what it prints of a run, and what a person is told who asks for something else."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from veriward.scripts.state_command import state, view
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.file_store import place
from veriward.tool_agent.store import fingerprint, open_store

SETTINGS = {"code": "a"}


def row_of(identity, phase="complete", **more):
    return {
        "fingerprint": fingerprint(SETTINGS),
        "problem": {"id": identity},
        "phase": phase,
        "outcome": "correct" if phase == "complete" else None,
        "executor_attempts": 1,
        "call_corrections": 0,
        "answer_retries": 2,
        "turns": [
            {
                "prompt": [{"role": "user", "content": "First line.\nWhat is 6 * 7?"}],
                "text": '{"tool": "calculator", "arguments": {"expression": "6 * 7"}}',
                "token_ids": list(range(40)),
            },
            {"prompt": [{"role": "user", "content": "The tool says 42."}], "text": "It is 42.", "token_ids": [1]},
        ],
        "verdict": {"outcome": "correct"},
        **more,
    }


@pytest.fixture(params=["files", "sqlite"])
def run(request, tmp_path):
    with open_store(tmp_path / "run", SETTINGS, kind=request.param) as store:
        store.write("calculator-01", row_of("calculator-01"))
        store.write("python-03", row_of("python-03", "answered", verdict=None))
    return tmp_path / "run"


def call(*arguments):
    result = CliRunner().invoke(state, list(map(str, arguments)), env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_list_has_a_line_for_each_problem_and_the_counts(run):
    shown = call("list", run).stdout
    lines = [line.replace("│", " ").split() for line in shown.splitlines()]
    assert ["calculator-01", "complete", "correct", "1", "0", "2"] in lines
    assert ["python-03", "answered", "1", "0", "2"] in lines
    assert "2 problems: answered 1, complete 1" in shown


def test_the_list_as_json(run):
    listed = json.loads(call("list", run, "--json").stdout)
    assert listed["phases"] == {"answered": 1, "complete": 1}
    assert [one["outcome"] for one in listed["problems"]] == ["correct", None]


def test_an_empty_run_has_no_problems_yet(tmp_path):
    open_store(tmp_path / "run", SETTINGS).close()
    assert "no problems yet" in call("list", tmp_path / "run").stdout


def test_one_problem_is_shown_in_order_and_as_it_was_written(run):
    shown = call("show", run, "calculator-01").stdout
    order = ["| First line.", "| What is 6 * 7?", '{"tool": "calculator"', "The tool says 42.", "It is 42.", "verdict"]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)


def test_of_many_token_ids_the_first_are_shown(run):
    assert "10, 11, …]  40 in all" in call("show", run, "calculator-01").stdout


def test_one_problem_as_json_is_the_row(run):
    assert json.loads(call("show", run, "calculator-01", "--json").stdout) == row_of("calculator-01")


def test_what_would_steer_the_terminal_is_shown_as_escapes(tmp_path):
    with open_store(tmp_path / "run", SETTINGS) as store:
        store.write("a", row_of("a", text="\x1b[31m[red]x[/red]\x9b"))
    shown = call("show", tmp_path / "run", "a").stdout
    assert r"\x1b[31m[red]x[/red]\x9b" in shown


@pytest.mark.parametrize("identity", ["calculator-1", "nothing alike", "\udc80", ""])
def test_an_unknown_id_gets_the_nearest_in_one_line(run, identity):
    with pytest.raises(ConfigError, match="calculator-01") as error:
        call("show", run, identity)
    assert "\n" not in str(error.value)


def test_what_is_no_run_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no run\.json"):
        call("list", tmp_path)


def test_what_cannot_be_read_is_named_and_left(tmp_path):
    with open_store(tmp_path / "run", SETTINGS) as store:
        store.write("good", row_of("good"))
        store.write("bad", row_of("bad"))
    file = (tmp_path / "run" / "problems").joinpath(*place("bad"))
    file.write_text("torn")
    result = call("list", tmp_path / "run")
    assert result.exit_code == 2
    assert "1 problems" in result.stdout
    assert "bad-" in result.stderr
    assert file.exists()
    with pytest.raises(ConfigError, match="1 could not be read"):
        call("show", tmp_path / "run", "bad")


@pytest.mark.parametrize("out", ["copy.jsonl", "copy.sqlite", "copy"])
def test_a_copy_can_be_listed_like_the_run(run, tmp_path, out):
    assert "2 problems copied" in call("export", run, tmp_path / out).stdout
    assert call("list", tmp_path / out).stdout == call("list", run).stdout


def test_a_copy_overwrites_nothing(run, tmp_path):
    with pytest.raises(ConfigError, match="is there already"):
        call("export", run, run)


def test_a_row_of_any_shape_has_a_view():
    row = {"a": [], "b": {}, "c": [[1, 2], [3]], "d": [{"e": None}] * 20, "f": True, "g": "x" * 200, "h": ["y" * 90]}
    assert [line.split()[0] for line in view(row) if not line.startswith(" ")] == list(row)


def test_the_benchmark_of_the_store_gives_every_figure(tmp_path):
    command = [sys.executable, "-m", "veriward.scripts.bench_store", "--rounds", "2", "--ids", "8", "--problems", "30"]
    options = ["--folder", tmp_path, "--json", tmp_path / "figures.json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert {(one["store"], one["durability"]) for one in figures["writes"]} == {
        (store, durability) for store in ("files", "sqlite") for durability in ("power", "process")
    }
    assert all(one["ratio"] > 0 for one in figures["writes"])
    assert [one["store"] for one in figures["scan"]] == ["files", "sqlite"]
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


@pytest.mark.parametrize("name", ["a" * 300, "a" * 300 + ".jsonl"])
def test_a_run_with_a_name_too_long_is_one_line(name):
    with pytest.raises(ConfigError, match="cannot be looked at: File name too long; choose another"):
        call("list", name)
