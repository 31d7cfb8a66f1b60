"""The report by stage, over seven problems: one for each way through the agent."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.eval import stages
from veriward.eval.agent_run import arm_name, read_agent_run, run_agent
from veriward.eval.problems import Problem, ProblemSet, hash_problems
from veriward.eval.scripted import Line, ScriptedGenerator
from veriward.eval.stage_report import compare, compare_all
from veriward.eval.stages import Exchange, Used, exchange
from veriward.rewards import Outcome
from veriward.tool_agent import toolbox
from veriward.tool_agent.agent import AgentSettings, Gate
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import Action, Fault, FaultPlan

pytest.importorskip("scipy")


def call(tool, text):
    return json.dumps({"tool": tool, "arguments": {"query" if tool == "local_search" else "expression": text}})


PROBLEMS = [
    ("sum", "What is 2 + 3?", "5", "calculator"),
    ("ratio", "What is 18 * 6 / 9?", "12", "calculator"),
    ("divisor", "What is the gcd of 462 and 1071?", "21", "python_expr"),
    ("root", "What is the root of 2?", "1.414214", "python_expr"),
    ("port", "Which port has the telemetry?", "4317", "local_search"),
    ("moon", "How far is the moon?", "384400", "local_search"),
    ("free", "What is 1 + 1?", "2", None),
]

WITH_TOOLS = {
    "sum": [call("calculator", "2 + 3"), r"\boxed{5}", r"Oh, \boxed{6}"],
    "ratio": [
        *("Let me think.", call("calculator", "18 * 6 / 9")),
        *(Line(text="12.0\nso 25 - 7 = 18", finish_reason="length"), r"\boxed{12}"),
    ],
    "divisor": [*[call("calculator", "gcd(462, 1071)")] * 2, r"\boxed{20}", r"\boxed{21}"],
    "root": [call("python_expr", "sqrt(2)"), r"\boxed{1.414214}", r"\boxed{1.414214}"],
    "port": [call("local_search", "telemetry port"), r"\boxed{8080}", r"\boxed{80}"],
    "moon": [call("local_search", "lunar distance"), "I do not know.", "Still not."],
    "free": ["two", "{}", r"\boxed{2}", r"\boxed{2}"],
}
ALONE = {**{row[0]: [r"\boxed{0}"] for row in PROBLEMS}, "sum": [r"\boxed{5}"], "moon": [r"\boxed{384400}"]}

FIRST_TIMES_OUT = FaultPlan([Fault(point="executor.run", action=Action.TIMEOUT, problem="sum")])


@pytest.fixture(scope="module")
def problems():
    asked = tuple(
        Problem(id=name, question=question, reference=reference, columns={"expected_tool": tool} if tool else {})
        for name, question, reference, tool in PROBLEMS
    )
    return ProblemSet(
        problems=asked,
        sha256=hash_problems(asked),
        name="seven",
        question_column="question",
        reference_column="reference",
    )


@pytest.fixture(scope="module")
def run(problems, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")

    def make(settings, lines, **options):
        generator = ScriptedGenerator(lines, {one.id: one.question for one in problems.problems}, name="seven")
        box = toolbox()
        return run_agent(generator, problems, box, folder / arm_name(settings), settings=settings, **options).report

    return make


@pytest.fixture(scope="module")
def tools(run):
    return run(AgentSettings(), WITH_TOOLS, faults=FIRST_TIMES_OUT)


@pytest.fixture(scope="module")
def rows(tools):
    return {row.problem: row for row in tools.rows}


@pytest.mark.parametrize(
    ("problem", "read", "chosen", "executed"),
    [
        pytest.param("sum", ("valid",), "calculator", ("ok",), id="a call at the first attempt"),
        pytest.param("ratio", ("not_json", "valid"), "calculator", (None, "ok"), id="a call after correction"),
        pytest.param(
            *("divisor", ("valid",) * 2, "calculator", ("disallowed_call",) * 2), id="refused by the executor twice"
        ),
        pytest.param("port", ("valid",), "local_search", ("ok",), id="a document"),
        pytest.param("moon", ("valid",), "local_search", ("empty",), id="an empty search is no result"),
        pytest.param("free", ("not_json", "missing_key"), None, (None, None), id="no call at all"),
    ],
)
def test_call_and_executor_are_told_apart(rows, problem, read, chosen, executed):
    row = rows[problem]
    assert (row.read, row.chosen, row.executed) == (read, chosen, executed)


@pytest.mark.parametrize(
    ("problem", "used"),
    [
        pytest.param("sum", Used.USED, id="the same number"),
        pytest.param("root", Used.USED, id="the number rounded"),
        pytest.param("ratio", Used.USED, id="the last answer counts"),
        pytest.param("divisor", None, id="no result"),
        pytest.param("port", None, id="a document is no number"),
        pytest.param("moon", None, id="an empty search"),
        pytest.param("free", None, id="no call"),
    ],
)
def test_a_result_is_used_where_the_answer_is_its_number(rows, problem, used):
    assert rows[problem].used is used


@pytest.mark.parametrize(
    ("text", "cut", "used"),
    [
        pytest.param("12.0\nso 25 - 7 = 18", True, Used.NO_ANSWER, id="nothing is taken from a cut"),
        pytest.param("12.0\nso 25 - 7 = 18", False, Used.DIFFERS, id="another number"),
        pytest.param(r"\boxed{\frac{24}{2}}", False, Used.USED, id="spelt otherwise"),
        pytest.param(r"\boxed{\foo{12}}", False, Used.UNDECIDED, id="not readable"),
        pytest.param("No idea.", False, Used.NO_ANSWER, id="no answer"),
    ],
)
def test_how_an_answer_stands_to_the_number_12(run, problems, text, cut, used):
    from veriward.tool_agent.agent import solve

    lines = {"ratio": [call("calculator", "18 * 6 / 9"), Line(text=text, finish_reason="length" if cut else "stop")]}
    generator = ScriptedGenerator(lines, {one.id: one.question for one in problems.problems})
    state = solve(problems.problems[1], generator, toolbox(), settings=AgentSettings(gate=Gate.NEVER))
    verdict = state.answers[0].verdict
    (row,) = stages.problem_stages([state], {"ratio": None}, verdict["contract"], verdict["fingerprint"])
    assert row.used is used


def test_every_stage_has_its_own_denominator(tools):
    rates = {stage: (rate.successes, rate.total) for stage, rate in tools.rates()["all"].items()}
    assert rates == {
        "valid_call_first": (5, 7),
        "valid_call": (6, 7),
        "right_tool": (5, 6),
        "executor_ok": (4, 6),
        "executor_empty": (1, 6),
        "result_used": (3, 3),
        "right_first": (3, 7),
        "right_final": (5, 7),
        "cut_off_first": (1, 7),
        "cut_off_final": (0, 7),
    }


def test_the_groups_are_the_expected_tools_in_order_and_their_rates_add_up(tools):
    rates = tools.rates()
    assert list(rates) == ["calculator", "python_expr", "local_search", "not named", "all"]
    for stage, rate in rates.pop("all").items():
        parts = [group[stage] for group in rates.values()]
        assert (sum(one.successes for one in parts), sum(one.total for one in parts)) == (rate.successes, rate.total)


def test_the_choice_is_a_confusion_matrix_with_none(tools):
    assert stages.selection(tools.rows) == {
        "calculator": {"calculator": 2},
        "python_expr": {"calculator": 1, "python_expr": 1},
        "local_search": {"local_search": 2},
        "not named": {"none": 1},
    }


def test_refusals_are_counted_by_category_and_attempt(tools):
    assert stages.call_refusals(tools.rows, 0) == {"not_json": 2}
    assert stages.call_refusals(tools.rows, 1) == {"missing_key": 1}
    assert stages.executor_refusals(tools.rows, 0) == {"disallowed_call": 1}
    assert stages.executor_refusals(tools.rows, 1) == {"disallowed_call": 1}


def test_the_executor_is_counted_by_tool(tools):
    assert stages.executions(tools.rows) == {
        "calculator": {"ok": 2, "disallowed_call": 1},
        "local_search": {"ok": 1, "empty": 1},
        "python_expr": {"ok": 1},
    }


def test_a_fault_that_was_tried_again_is_no_refusal(tools):
    assert stages.lost_to_machinery(tools.rows) == {"crashed": 0, "timeout": 1}


def test_corrections_of_calls_say_what_they_led_to(tools):
    assert stages.call_corrections(tools.rows) == {"started": 3, "rescued": 1, "no_result": 2}


def test_the_oracle_gate_corrects_what_is_not_right_and_can_lose_nothing(tools):
    assert stages.answer_corrections(tools.rows) == {
        "started": 4,
        "rescued": 2,
        "lost": 0,
        "still_right": 0,
        "still_not_right": 2,
    }


def test_always_once_can_lose_a_right_answer(run):
    report = run(AgentSettings(gate=Gate.ALWAYS_ONCE), WITH_TOOLS)
    assert stages.answer_corrections(report.rows) == {
        "started": 7,
        "rescued": 2,
        "lost": 1,
        "still_right": 2,
        "still_not_right": 2,
    }


def test_every_outcome_is_named_before_and_after(tools):
    first, last = (stages.outcome_counts(tools.rows, place) for place in (0, -1))
    assert list(first) == [outcome.value for outcome in Outcome]
    assert {name: count for name, count in first.items() if count} == {"correct": 3, "wrong": 2, "no_answer": 2}
    assert {name: count for name, count in last.items() if count} == {"correct": 5, "wrong": 1, "no_answer": 1}


def test_right_tool_and_right_answer_are_crossed(tools):
    found = tools.exchanges()["right tool x right first answer"]
    assert found == Exchange(both=2, first_only=3, second_only=0, neither=1)


@pytest.fixture(scope="module")
def plain(run, tools):
    """Of the same model, as far as its settings tell."""
    report = run(AgentSettings(tools=False, gate=Gate.NEVER), ALONE)
    return replace(report, settings={**report.settings, "generator": tools.settings["generator"]})


def test_no_tools_and_tools_are_crossed_before_and_after_the_gate(plain, tools):
    first, after = compare(plain, tools).values()
    assert first == Exchange(both=1, first_only=1, second_only=2, neither=3)
    assert after == Exchange(both=1, first_only=1, second_only=4, neither=1)


@pytest.mark.parametrize("key", ["contract", "generator", "problems", "code"])
def test_runs_under_different_settings_are_not_set_side_by_side(plain, tools, key):
    other = replace(tools, settings={**tools.settings, key: {"name": "other"}})
    with pytest.raises(ConfigError, match=rf"are not set side by side: .*{key}"):
        compare(plain, other)
    assert compare_all([plain, other])[0] == {}


def test_a_verdict_under_another_fingerprint_is_refused(tools, problems):
    from veriward.tool_agent.agent import solve

    generator = ScriptedGenerator(WITH_TOOLS, {one.id: one.question for one in problems.problems})
    state = solve(problems.problems[0], generator, toolbox())
    with pytest.raises(ConfigError, match="problem sum: has a verdict of"):
        stages.problem_stages([state], {"sum": None}, "v3", "another")


@pytest.mark.parametrize(
    ("gate", "label"),
    [
        (Gate.ORACLE, "oracle-gated"),
        (Gate.REFERENCE_FREE, "control: reference_free"),
        (Gate.ALWAYS_ONCE, "control: always_once"),
        (Gate.NEVER, "answers never corrected"),
    ],
)
def test_the_heading_names_gate_and_contract(tools, gate, label):
    settings = {**tools.settings, "agent": {**tools.settings["agent"], "gate": gate.value}}
    heading = replace(tools, settings=settings).heading
    assert label in heading
    assert f"contract v3 ({tools.settings['contract']['fingerprint']})" in heading


def test_a_partial_run_says_so_first(tools):
    partial = replace(tools, rows=tools.rows[:5], missing=("moon", "free"))
    assert "5/7 problems" in partial.heading
    assert partial.notes[0] == "PARTIAL: 2 of 7 problems are not complete, and in no number"
    assert partial.to_row()["missing"] == ["moon", "free"]


def test_other_code_is_named(tools):
    step = {"from": "a", "to": "b", "time": "now"}
    assert replace(tools, continued_under=[step]).notes == ["went on under other code at now: a to b"]


def test_read_again_it_is_the_same_report(run, tools, problems, tmp_path):
    folder = tmp_path / "tools"
    generator = ScriptedGenerator(WITH_TOOLS, {one.id: one.question for one in problems.problems}, name="seven")
    report = run_agent(generator, problems, toolbox(), folder, settings=AgentSettings()).report
    assert read_agent_run(folder).to_row() == report.to_row()


@pytest.mark.parametrize(
    ("first_only", "second_only", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (3, 0, 0.25), (6, 0, 0.03125), (1, 8, 0.0390625), (4, 4, 1.0)],
)
def test_mcnemar_is_exact(first_only, second_only, p):
    assert Exchange(both=9, first_only=first_only, second_only=second_only, neither=9).p == pytest.approx(p)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_turning_an_exchange_round_changes_no_p(pairs):
    turned = exchange((second, first) for first, second in pairs)
    assert turned.p == pytest.approx(exchange(pairs).p)
    assert turned.both + turned.first_only + turned.second_only + turned.neither == len(pairs)
