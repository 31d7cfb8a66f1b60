"""From a call to its result: faults are tried again, refusals are answers, bugs are raised."""

import math
from pathlib import Path

import pytest

from veriward.rewards import WorkerError
from veriward.tool_agent import Category, Envelope, FaultPlan, Refused, ToolCall, as_tool, execute, toolbox
from veriward.tool_agent.executor import EXECUTOR_ATTEMPTS, LONGEST_SHOWN
from veriward.tool_agent.faults import Action, Fault


def returns(value):
    def give() -> object:
        """Gives it."""
        return value

    return as_tool(give)


def run(tool, *, faults=None, problem=None, envelope=(), **arguments):
    call = ToolCall(tool=tool.name, arguments=arguments, envelope=envelope)
    plan = FaultPlan(faults or ())
    return execute(call, toolbox(extra_tools=[tool]), faults=plan, problem=problem)


@pytest.fixture
def unruly(monkeypatch):
    """The functions of `unruly_tools` as tools; a deadline runs them in a child."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import unruly_tools

    return lambda name, deadline_s=None: as_tool(getattr(unruly_tools, name), deadline_s=deadline_s)


@pytest.mark.parametrize(
    ("value", "kept", "text"),
    [
        pytest.param(12, 12, "12", id="a whole number"),
        pytest.param(0.5, 0.5, "0.5", id="a decimal"),
        pytest.param("three", "three", "three", id="a text"),
        pytest.param(True, "true", "true", id="a truth is no number"),
        pytest.param("a\ud800", "a\\ud800", "a\\ud800", id="half a surrogate pair"),
        pytest.param([], [], "no document matches; answer without it", id="nothing found"),
        pytest.param(
            [{"id": "a", "text": "b c", "overlap": 2}],
            [{"id": "a", "text": "b c", "overlap": 2}],
            "[a] b c (overlap 2)",
            id="a document",
        ),
        pytest.param([{"day": "周一"}], [{"day": "周一"}], '{"day": "周一"}', id="another record"),
    ],
)
def test_a_value_is_stored_and_shown(value, kept, text):
    result = run(returns(value)).result
    assert (result.ok, result.value, result.text, result.category) == (True, kept, text, None)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_no_result(value):
    assert run(returns(value)).result.category is Category.OUT_OF_RANGE


def test_a_number_with_too_many_digits_is_no_result():
    assert run(returns(10**5_000)).result.category is Category.RESOURCE_LIMIT


def test_a_long_text_is_cut_where_the_model_sees_it_and_says_so():
    result = run(returns("x" * 10_000)).result
    assert len(result.text) == LONGEST_SHOWN
    assert result.text.endswith("… (cut here; 10,000 characters in all)")
    assert len(result.value) == 10_000


@pytest.mark.parametrize("value", [None, {"a": 1}, b"x", [1, 2], 1j])
def test_what_is_no_value_is_a_bug_of_the_tool(value):
    with pytest.raises(TypeError, match="tool give returned"):
        run(returns(value))


def test_a_refusal_is_shown_with_its_category_and_hint(unruly):
    result = run(unruly("refuse"), text="x").result
    assert (result.ok, result.category, result.hint) == (False, "domain_error", "not this")
    assert result.text == "no result: domain_error\nnot this"


def test_a_refusal_is_not_tried_again(unruly):
    execution = run(unruly("refuse"), text="x")
    assert (execution.attempts, execution.transient) == (1, ())


def test_the_envelope_and_the_tool_are_in_the_result():
    result = run(returns(1), envelope=(Envelope.THINK, Envelope.FENCE)).result
    assert (result.tool, result.envelope) == ("give", (Envelope.THINK, Envelope.FENCE))


def test_an_unknown_tool_is_a_result_that_names_the_tools():
    result = execute(ToolCall(tool="oracle", arguments={}, envelope=()), toolbox()).result
    assert (result.category, result.hint) == ("unknown_tool", "the tools are calculator, python_expr, local_search")


def test_a_tool_that_raises_is_a_bug_with_its_arguments(unruly):
    with pytest.raises(RuntimeError, match="a bug") as raised:
        run(unruly("fail"), text="seven")
    assert raised.value.__notes__ == ["raised by tool fail on {'text': 'seven'}"]


# ---- in a child ------------------------------------------------------------------------------------------------------


def test_a_child_gives_values_and_refusals(unruly):
    assert run(unruly("double", 5.0), number=4).result.value == 8
    assert run(unruly("records", 5.0), count=2).result.value[1] == {"id": "1", "text": "word", "overlap": 1}
    assert run(unruly("refuse", 5.0), text="x").result.hint == "not this"


def test_a_tool_that_hangs_is_timeout_after_its_attempts(unruly):
    execution = run(unruly("hang", 0.2), seconds=60.0)
    assert (execution.result.category, execution.attempts) == (Category.TIMEOUT, EXECUTOR_ATTEMPTS)
    assert execution.transient == (Category.TIMEOUT,) * EXECUTOR_ATTEMPTS


def test_a_tool_that_hangs_once_is_tried_again(unruly, tmp_path):
    execution = run(unruly("hang_once", 0.5), mark=str(tmp_path / "mark"))
    assert (execution.result.value, execution.attempts) == ("awake", 2)


def test_a_tool_that_kills_its_process_is_crashed(unruly):
    assert run(unruly("die", 5.0), code=3).result.category is Category.CRASHED


def test_a_bug_in_a_child_is_raised_with_its_arguments(unruly):
    with pytest.raises(WorkerError, match=r"raised on \{'text': 'seven'\}"):
        run(unruly("fail", 5.0), text="seven")


# ---- planned faults --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "category"), [(Action.TIMEOUT, Category.TIMEOUT), (Action.KILL_WORKER, Category.CRASHED)]
)
def test_a_planned_fault_is_one_attempt(action, category):
    execution = run(returns(761), faults=[Fault(point="executor.run", action=action)])
    assert (execution.result.value, execution.attempts, execution.transient) == (761, 2, (category,))


def test_faults_in_a_row_end_as_their_category():
    execution = run(returns(1), faults=[Fault(point="executor.run", action=Action.TIMEOUT, times=9)])
    assert (execution.result.category, execution.attempts) == (Category.TIMEOUT, EXECUTOR_ATTEMPTS)


def test_a_planned_refusal_is_an_answer():
    execution = run(returns(1), faults=[Fault(point="executor.run", action=Action.REFUSE)])
    assert (execution.result.category, execution.attempts) == (Category.RESOURCE_LIMIT, 1)


def test_a_fault_of_another_problem_does_not_happen():
    fault = Fault(point="executor.run", action=Action.TIMEOUT, problem="a")
    assert run(returns(1), faults=[fault], problem="b").attempts == 1


def test_a_killed_child_is_replaced(unruly):
    tool = unruly("double", 5.0)
    run(tool, number=1)
    before = set(tool._pool.pids())
    execution = run(tool, number=2, faults=[Fault(point="executor.run", action=Action.KILL_WORKER)])
    assert (execution.result.value, execution.transient) == (4, (Category.CRASHED,))
    assert before.isdisjoint(tool._pool.pids())


def test_refused_is_not_mistaken_for_a_value():
    assert run(returns(Refused(category=Category.SYNTAX))).result.text == "no result: syntax"
