"""`veriward audit tools` and `veriward run-cases`: a difference from what is written is named, and an exit code."""

import json
import math
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from veriward.eval import tool_audit
from veriward.eval.tool_cases import KINDS, run_cases, tool_case_fits
from veriward.scripts.tools_command import audit_tools
from veriward.scripts.tools_command import run_cases as command
from veriward.tool_agent import Category, Refused
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.executor import as_result

CASES = Path(__file__).parents[1] / "cases"

app = typer.Typer()
app.command()(command)


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


TOOL_CASE = {"id": "t1", "tool": "calculator", "level": "expression", "input": "1 + 1", "expect": "accept", "value": 2}


def test_the_audit_is_ten_of_ten_under_both_profiles(capsys):
    audit_tools(as_json=False)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[-2:] == ["profile default 10/10", "profile strict 10/10"]


def test_the_audit_can_be_read_by_a_machine(capsys):
    audit_tools(as_json=True)
    assert json.loads(capsys.readouterr().out)["strict"]["as_written"] == 10


def test_a_difference_in_the_audit_is_exit_code_1_and_named(monkeypatch, capsys):
    wrong = tool_audit._normal("sum", "calculator", "1 + 1", 3)
    monkeypatch.setattr(tool_audit, "AUDIT", (wrong,))
    with pytest.raises(typer.Exit) as ended:
        audit_tools(as_json=False)
    assert ended.value.exit_code == 1
    assert "sum under default: got 2; written 3" in capsys.readouterr().err


# ---- the comparison rule ---------------------------------------------------------------------------------------------


def accept(value, **more):
    return {"expect": "accept", "value": value, **more}


def reject(category, **more):
    return {"expect": "reject", "value": None, "reason_category": category, **more}


@pytest.mark.parametrize(
    ("case", "value", "fits"),
    [
        pytest.param(accept(2), 2, True, id="an integer"),
        pytest.param(accept(2), 2.0, True, id="a float equal to it"),
        pytest.param(accept(2), 2 + 1e-12, False, id="an integer is met exactly"),
        pytest.param(accept(10**30 + 1), 1e30, False, id="a double of a large integer is another number"),
        pytest.param(accept(0.1), 0.1 + 1e-12, True, id="a decimal within 1e-9"),
        pytest.param(accept(0.1), 0.1001, False, id="a decimal further away"),
        pytest.param(accept(1e20 + 0.5), 1e20 * (1 + 1e-10), True, id="relative"),
        pytest.param(accept(0.5, compare={"abs": 0.2}), 0.6, True, id="the distance that a case allows"),
        pytest.param(accept(0.5), 10**400, False, id="a number beyond doubles"),
        pytest.param(accept(1), "true", False, id="a truth is no number"),
        pytest.param(accept(0, compare={"text_not": "-0"}), -0.0, False, id="negative zero is shown"),
        pytest.param(accept(3, also_ok=[accept(4)]), 4, True, id="an alternative"),
        pytest.param(accept(3, also_ok=[reject("syntax")]), Refused(category=Category.SYNTAX), True, id="or a refusal"),
        pytest.param(reject("syntax"), Refused(category=Category.SYNTAX), True, id="a refusal"),
        pytest.param(reject("syntax"), Refused(category=Category.EMPTY), False, id="a refusal for another reason"),
        pytest.param(reject("syntax"), 3, False, id="a value in place of a refusal"),
        pytest.param(accept(3), Refused(category=Category.SYNTAX), False, id="a refusal in place of a value"),
        pytest.param(accept(["a"], compare={"top": 1}), [{"id": "a"}, {"id": "b"}], True, id="the first ids"),
        pytest.param(accept(["a"], compare={"exact": True}), [{"id": "a"}, {"id": "b"}], False, id="all ids"),
        pytest.param(accept([], compare={"exact": True}), [], True, id="nothing found"),
    ],
)
def test_a_result_meets_a_case_or_not(case, value, fits):
    assert tool_case_fits(case, as_result(value, "calculator")) is fits


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["executor_cases", "preflight_cases", "zh_think_cases", "bug_cases", "adjudicated_given"]
)
def test_shared_cases_of_tier_must_come_out_as_written(name, shared_folder):
    run = run_cases(shared_folder / "cases" / f"{name}.jsonl")
    differing = {result.id: result.got for result in run.differing if result.tier == "must"}
    undecided = {"h00588", "h00733", "h02711", "h05469"}
    assert {key: got for key, got in differing.items() if key not in undecided} == {}


@pytest.mark.parametrize("name", ["cost_bombs", "v3_extraction_cases", "zh_think_own"])
def test_own_cases_come_out_as_written(name):
    assert run_cases(CASES / f"{name}.jsonl").differing == []


def test_a_case_that_leaves_it_open_is_not_counted(tmp_path):
    rows = [{"prediction": "1", "reference": "1", "expected_correct": truth} for truth in (True, None)]
    row = run_cases(Path(write(tmp_path / "a.jsonl", *rows))).to_row()
    assert (row["cases"], row["counted"], row["as_written"]) == (2, 1, 1)


def test_generated_input_is_made_from_its_parts(tmp_path):
    made = {"prefix": "1", "repeat": "+1", "times": 9, "suffix": ""}
    path = write(tmp_path / "a.jsonl", {**TOOL_CASE, "input": None, "input_gen": made, "value": 10})
    assert run_cases(Path(path)).differing == []


def test_a_slow_case_differs(tmp_path):
    path = write(tmp_path / "a.jsonl", {**TOOL_CASE, "max_seconds": 0.0})
    (result,) = run_cases(Path(path)).differing
    assert "s of CPU; at most 0 s" in result.got


def test_a_file_as_written_is_exit_code_0_with_its_counts(tmp_path):
    result = CliRunner().invoke(app, [write(tmp_path / "a.jsonl", TOOL_CASE)])
    assert result.exit_code == 0
    assert "1 cases of kind tools, under default" in result.output
    assert "1/1" in result.output


def test_a_must_that_differs_is_exit_code_1_and_named(tmp_path):
    result = CliRunner().invoke(app, [write(tmp_path / "a.jsonl", {**TOOL_CASE, "value": 3, "group": "valid"})])
    assert result.exit_code == 1
    assert "t1 (must, valid): got 2; written 3" in result.output


def test_a_stretch_that_differs_is_named_and_exit_code_0(tmp_path):
    result = CliRunner().invoke(app, [write(tmp_path / "a.jsonl", {**TOOL_CASE, "value": 3, "tier": "stretch"})])
    assert (result.exit_code, "t1 (stretch, all): got 2" in result.output) == (0, True)


def test_the_run_can_be_read_by_a_machine(tmp_path):
    result = CliRunner().invoke(app, [write(tmp_path / "a.jsonl", TOOL_CASE), "--json"])
    assert json.loads(result.output)["as_written"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no case in it"),
        ("{", "line 1: no JSON"),
        ("[1]", r"line 1: got \[1\]; wanted an object"),
        ('{"id": "a", "text": "x"}', "of no known kind, its fields are id, text; wanted one of: tools"),
        (json.dumps(TOOL_CASE) + "\n{}", "line 2: no expect, input, level, tool"),
    ],
)
def test_a_file_of_no_known_kind_is_one_line(content, message, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message) as error:
        run_cases(path)
    assert "\n" not in str(error.value)


LABELLED = {"reference": "5", "expected_correct": True, "prediction": "5"}
COST = {"parts": [["1", 1]], "reference": "5", "v1": None}
MADE = {**TOOL_CASE, "input": None}
RECIPE = {"prefix": "", "repeat": "1", "times": 1, "suffix": ""}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**TOOL_CASE, "value": None}, "value is null; wanted a number, a text or ids"),
        ({**TOOL_CASE, "value": [1]}, "value is"),
        ({**TOOL_CASE, "value": math.nan}, "value is NaN"),
        ({**TOOL_CASE, "expect": "reject"}, "reason_category is nothing"),
        ({**TOOL_CASE, "expect": "reject", "reason_category": "bogus"}, "reason_category is"),
        ({**TOOL_CASE, "expect": "maybe"}, "expect is"),
        ({**TOOL_CASE, "level": "bogus"}, "level is"),
        ({**TOOL_CASE, "tool": 5}, "tool is 5"),
        ({**TOOL_CASE, "input": 5}, "input is 5"),
        ({**TOOL_CASE, "max_seconds": "x"}, "max_seconds is"),
        ({**TOOL_CASE, "tier": []}, "tier is"),
        ({**TOOL_CASE, "also_ok": 5}, "also_ok is 5"),
        ({**TOOL_CASE, "also_ok": [{}]}, "also_ok: expect is nothing"),
        ({**TOOL_CASE, "compare": "x"}, "compare is"),
        ({**TOOL_CASE, "compare": {"abs": "x"}}, "compare: abs is"),
        ({**TOOL_CASE, "compare": {"top": -1}}, "compare: top is"),
        (MADE, "input is null; wanted a text, or input_gen"),
        ({**MADE, "input_gen": {}}, "input_gen is"),
        ({**MADE, "input_gen": {**RECIPE, "times": 99_999_999_999}}, "at most 100,000,000 characters"),
        ({**LABELLED, "reference": 5}, "reference is 5"),
        ({**LABELLED, "expected_correct": []}, "expected_correct is"),
        ({**LABELLED, "expected_outcome": "bogus"}, "expected_outcome is"),
        ({**LABELLED, "prediction": None}, "prediction is null; wanted a text, or a response"),
        ({**LABELLED, "response": 7}, "response is 7"),
        ({"reference": "5", "prediction": "5", "truth": {}}, "truth is"),
        ({"expression": 5, "expect": "reject"}, "expression is 5"),
        ({"expression": "5", "expect": "reject", "parts": [["1"]]}, "parts is"),
        ({**COST, "parts": []}, "parts is"),
        ({**COST, "parts": [["1", 1_000_000_000]]}, "parts is"),
        ({**COST, "v2": 5}, "v2 is 5"),
        ({"response": None, "candidate": None, "how": "x"}, "response is null"),
        ({"response": "x", "candidate": None, "how": "x", "truncated": "no"}, "truncated is"),
    ],
)
def test_a_row_without_what_its_kind_needs_is_one_line(row, message, tmp_path):
    with pytest.raises(ConfigError) as error:
        run_cases(Path(write(tmp_path / "a.jsonl", row)))
    assert "a.jsonl, line 1" in str(error.value)
    assert message in str(error.value)


def test_a_line_is_counted_with_the_blank_ones(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(TOOL_CASE)}\n\n{json.dumps({**TOOL_CASE, 'tool': 5})}\n")
    with pytest.raises(ConfigError, match="line 3: tool is 5"):
        run_cases(path)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        run_cases(tmp_path / "a.jsonl")


def test_an_unknown_profile_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="unknown profile 'lax'"):
        run_cases(Path(write(tmp_path / "a.jsonl", TOOL_CASE)), profile="lax")


def test_kinds_are_told_apart_by_their_fields():
    assert [kind.name for kind in KINDS] == ["tools", "preflight", "cost", "extraction", "labelled", "adjudicated"]
