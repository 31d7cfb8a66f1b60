"""`veriward agent` and `veriward stages`, as a person runs them; the model is a script."""

from __future__ import annotations

import json
import math

import pytest
import typer
from typer.testing import CliRunner

from veriward.eval.scripted import ScriptedGenerator
from veriward.eval.tool_problems import frozen_twelve
from veriward.scripts import agent_command
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("scipy")

app = typer.Typer()
app.command()(agent_command.agent)
app.command()(agent_command.stages)

CALL = json.dumps({"tool": "calculator", "arguments": {"expression": "18 * 43 - 96 / 6 + 3"}})
TOOL = '''
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number
'''


class Model(ScriptedGenerator):
    """Answers everything with 761, and calls the calculator for it."""

    def __init__(self, stop_after=None):
        problems = frozen_twelve().problems
        super().__init__({one.id: [CALL] * 4 for one in problems}, {one.id: one.question for one in problems})
        self.stop_after = stop_after

    def _line(self, problem, turn):
        if self.stop_after is not None and len(self.calls) > self.stop_after:
            raise KeyboardInterrupt
        line = super()._line(problem, turn)
        called = turn == 0 and "one tool" in str(self.calls[-1][0]["content"])
        return line if called else type(line)(text=r"\boxed{761}")


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doubling_tool.py").write_text(TOOL)
    made = Model()
    monkeypatch.setattr(agent_command, "made_generator", lambda *_: made)
    return made


def call(*arguments):
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, list(map(str, arguments)), catch_exceptions=False)


def agent(*arguments):
    return call("agent", "--model", "script", "--durability", "process", *arguments)


def test_both_arms_are_run_and_reported_by_stage():
    done = agent("--out", "run")
    assert done.exit_code == 0
    for said in (
        "plain: no tools, one answer; script, temperature 0, answers of at most 512 tokens; 12 problems of ",
        "tools: native calls, default profile, oracle-gated; script, temperature 0, answers of at most 512 tokens; ",
        "right answer, oracle-gated",
        "expected tool down, chosen tool across",
        "right in plain x right in tools, first answer",
        "answer corrections (oracle-gated): started 9, rescued 0, lost 0, still right 0, still not right 9",
    ):
        assert said in done.stdout


def test_no_rate_stands_without_its_denominator():
    table = agent("--out", "run", "--tools").stdout
    rows = [line for line in table.splitlines() if line.startswith("│ ") and "[" in line]
    assert len(rows) == 10
    assert all("/" in cell for line in rows for cell in line.split("│")[2:-1])


def test_for_a_machine_it_prints_one_json_object():
    row = json.loads(agent("--out", "run", "--json").stdout)
    assert list(row["runs"]) == ["plain", "tools"]
    assert row["runs"]["tools"]["stages"]["all"]["right_tool"]["successes"] == 4
    assert {one["neither"] for one in row["exchanges"].values()} == {11}


def test_the_same_command_finds_its_run_again_and_asks_nothing(model):
    agent()
    asked = len(model.calls)
    assert agent().exit_code == 0
    assert len(model.calls) == asked


def test_another_gate_stands_beside_the_first_and_the_baseline_is_not_asked_twice(model):
    agent("--no-tools")
    baseline = len(model.calls)
    agent()
    before = len(model.calls)
    done = agent("--gate", "always_once")
    assert "control: always_once" in done.stdout
    assert "oracle-gated" in done.stdout
    assert (baseline, len(model.calls) - before) == (12, 3 * 12)


def test_ctrl_c_says_that_the_same_command_goes_on(model):
    model.stop_after = 20
    done = agent("--out", "run")
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == "stopped; the same command goes on from here: run keeps what is done"
    model.stop_after = None
    assert agent("--out", "run").exit_code == 0
    assert len(model.calls) == 12 + 12 + 12 + 9 + 1  # the one that was stopped is the only one asked twice


def test_a_run_is_read_again_from_its_states(model):
    first = agent("--out", "run").stdout
    asked = len(model.calls)
    assert call("stages", "run").stdout == first
    assert json.loads(call("stages", "run/tools", "--json").stdout)["runs"].keys() == {"tools"}
    assert len(model.calls) == asked


def test_runs_that_cannot_be_set_side_by_side_are_still_shown():
    agent("--out", "run", "--no-tools")
    agent("--out", "run", "--tools", "--answer-tokens", "99")
    done = call("stages", "run")
    assert done.exit_code == 0
    assert "plain and tools are runs under different settings, and are not set side by side: " in done.stdout
    assert "answer_tokens 512 there, 99 now" in done.stdout


def test_a_run_that_has_no_report_is_named_beside_the_others(tmp_path):
    agent("--out", "run", "--no-tools")
    agent("--out", "run", "--tools")
    (tmp_path / "run" / "tools" / "run.json").write_text("torn")
    done = call("stages", "run")
    assert done.exit_code == 0
    assert "plain: no tools, one answer" in done.stdout
    assert "no report of run/tools/run.json: damaged" in done.stdout
    row = json.loads(call("stages", "run", "--json").stdout)
    assert (list(row["runs"]), len(row["not_reported"])) == (["plain"], 1)


def test_the_default_folder_is_the_same_for_every_path_of_the_problems(tmp_path):
    row = {"id": "a", "question": frozen_twelve().problems[0].question, "reference": "761"}
    (tmp_path / "p.jsonl").write_text(json.dumps(row))
    for path in ("p.jsonl", "./p.jsonl", tmp_path / "p.jsonl"):
        assert agent("--problems", path).exit_code == 0
    assert len(list((tmp_path / "runs" / "agent").iterdir())) == 1


@pytest.mark.parametrize("command", [("stages", "a" * 300), ("agent", "--model", "script", "--out", "a" * 300)])
def test_a_path_too_long_is_one_line(command):
    with pytest.raises(ConfigError, match=r"aaa.*: cannot be looked at: File name too long; choose another"):
        call(*command)


@pytest.mark.parametrize("name", ["doubling_tool:double", "veriward.tool_agent.tools.calculator:calculator"])
def test_a_tool_of_ones_own_is_named_by_its_module(name):
    assert agent_command.named_tool(name).name == name.split(":")[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--gate", "sometimes"], "unknown gate 'sometimes'; wanted one of oracle, reference_free"),
        (["--reader", "xml"], "unknown reader 'xml'; wanted one of native, hermes, openai"),
        (["--profile", "loose"], "unknown profile 'loose'; wanted one of default, strict"),
        (["--contract", "v9"], "unknown contract 'v9'; wanted one of v1, v2, v3"),
        (["--problems", "none.jsonl"], "none.jsonl: no such file"),
        (["--documents", "none.jsonl"], "none.jsonl"),
        (["--store", "tape"], "unknown kind of store 'tape'"),
        (["--durability", "always"], "unknown durability 'always'"),
        (["--answer-tokens", "0"], "at least 1, got 0"),
        (["--tool", "double"], "--tool 'double': wanted package.module:name"),
        (["--tool", "no_such_tool:double"], "no module no_such_tool is installed or in the working folder"),
        (["--tool", "doubling_tool:halve"], "doubling_tool has no tool and no function 'halve'"),
        (["--tool", "json:dumps"], "--tool json:dumps: tool dumps, parameter"),
    ],
)
def test_bad_input_is_one_line(arguments, complaint):
    with pytest.raises(ConfigError) as error:
        agent("--out", "run", *arguments)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("m", None, None, 0, None), "--batch-size must be at least 1, got 0"),
        (("m", "http://127.0.0.1:1/v1", "cpu", 1, None), "--device and --engine are for models that run here"),
        (("m", None, None, 1, 60.0), "--timeout is for a --server"),
        (("m", "http://127.0.0.1:1/v1", None, 1, 0.0), "--timeout must be above 0 and at most 86,400 seconds, got 0"),
        (("m", "http://127.0.0.1:1/v1", None, 1, math.nan), "--timeout must be above 0"),
        (("m", "http://127.0.0.1:1/v1", None, 1, math.inf), "--timeout must be above 0"),
    ],
)
def test_a_model_that_cannot_be_opened_is_one_line(monkeypatch, options, complaint):
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=complaint):
        agent_command.made_generator(*options)


@pytest.mark.parametrize(("timeout", "given"), [(None, 600.0), (30.0, 30.0)])
def test_the_timeout_reaches_the_server(monkeypatch, timeout, given):
    monkeypatch.undo()
    from veriward.eval import openai_server

    made = {}
    monkeypatch.setattr(openai_server, "OpenAIGenerator", lambda model, **options: made.update(options))
    agent_command.made_generator("m", "http://127.0.0.1:1/v1", None, 4, timeout)
    assert made == {"base_url": "http://127.0.0.1:1/v1", "concurrency": 4, "timeout_s": given}
