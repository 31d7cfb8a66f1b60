"""Every route of the agent, from question to final answer, with the real readers, tools and verifier."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from veriward.eval.scripted import Line, ScriptedGenerator
from veriward.rewards import Outcome, VerdictPool
from veriward.tool_agent import ConfigError, toolbox
from veriward.tool_agent.agent import AgentSettings, Gate, _by_outcome, describe_agent, solve, solve_many
from veriward.tool_agent.faults import Action, Fault, FaultPlan
from veriward.tool_agent.generator import Generation
from veriward.tool_agent.messages import CORRECTIONS, Correction
from veriward.tool_agent.state import Phase, ProblemState, read_state
from veriward.tool_agent.store import open_store


@dataclass(frozen=True)
class Problem:
    id: str = "p1"
    question: str = "What is 6 * 7?"
    reference: str = "42"
    columns: Mapping[str, object] = field(default_factory=dict)


def call(tool, text, key="expression"):
    return json.dumps({"tool": tool, "arguments": {key: text}})


GOOD = call("calculator", "6 * 7")
REFUSED = call("calculator", "6 ** 7 ** 8 ** 9")
NO_CALL = "I would use the calculator."
RIGHT, WRONG = r"It is \boxed{42}.", r"It is \boxed{41}."
NONE, UNREADABLE = "I do not know.", r"It is \boxed{42 @ 7 \foo}."
CUT = Line(text="6 * 7 is the same as 6 + 6 + 6 and 7", finish_reason="length")


def solved(lines, *, problem=None, box=None, store=None, pool=None, faults=None, **settings):
    """The final state of one problem, and the generator with every prompt it was asked."""
    problem = problem or Problem()
    generator = ScriptedGenerator({problem.id: lines}, {problem.id: problem.question})
    state = solve(
        problem,
        generator,
        box or toolbox(),
        settings=AgentSettings(**settings),
        store=store,
        pool=pool,
        faults=faults or FaultPlan(),
    )
    return state, generator


def told(generator, turn):
    """What the model was told before it wrote for the n-th time, counted from 0."""
    return generator.calls[turn][-1]["content"]


ROUTES = {
    "right at once": ([GOOD, RIGHT], 0, 0, ["correct"]),
    "a text that is no call is corrected": ([NO_CALL, GOOD, RIGHT], 1, 0, ["correct"]),
    "a call that stays invalid is answered without": ([NO_CALL, NO_CALL, RIGHT], 1, 0, ["correct"]),
    "a refusal of the executor is corrected": ([REFUSED, GOOD, RIGHT], 1, 0, ["correct"]),
    "a second refusal is a safe error": ([REFUSED, REFUSED, WRONG, RIGHT], 1, 1, ["wrong", "correct"]),
    "refused, then no call": ([REFUSED, NO_CALL, RIGHT], 1, 0, ["correct"]),
    "a wrong answer is corrected once": ([GOOD, WRONG, RIGHT], 0, 1, ["wrong", "correct"]),
    "a second wrong answer is the end": ([GOOD, WRONG, WRONG], 0, 1, ["wrong", "wrong"]),
    "no answer is corrected": ([GOOD, NONE, RIGHT], 0, 1, ["no_answer", "correct"]),
    "an answer that was cut off is corrected": ([GOOD, CUT, RIGHT], 0, 1, ["no_answer", "correct"]),
    "an unreadable answer is stated again": ([GOOD, UNREADABLE, RIGHT], 0, 1, ["unsupported", "correct"]),
    "both corrections": ([NO_CALL, GOOD, WRONG, RIGHT], 1, 1, ["wrong", "correct"]),
}


@pytest.mark.parametrize(("lines", "calls", "answers", "outcomes"), ROUTES.values(), ids=ROUTES)
def test_a_route_ends_where_it_should(lines, calls, answers, outcomes):
    state, generator = solved(lines)
    assert state.phase is Phase.COMPLETE
    assert (state.call_corrections, state.answer_retries) == (calls, answers)
    assert [answer.outcome for answer in state.answers] == outcomes
    assert len(generator.calls) == len(lines)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_what_says_something_about_the_answer_opens_a_correction(outcome):
    whole = Generation(text="", token_ids=(), finish_reason="stop", seed=None)
    opened = _by_outcome(outcome.value, whole)
    assert opened == {
        Outcome.WRONG: Correction.NOT_ACCEPTED,
        Outcome.NO_ANSWER: Correction.NOT_ACCEPTED,
        Outcome.UNSUPPORTED: Correction.UNREADABLE,
    }.get(outcome)


def test_undecided_is_not_wrong_and_asks_for_nothing():
    problem = Problem(question="Which solvent?", reference="acetonitrile", columns={"answer_type": "text"})
    state, _ = solved([GOOD, r"\boxed{ethanol}"], problem=problem)
    assert (state.outcome, state.answer_retries) == ("undecided", 0)


def test_a_bad_reference_says_nothing_about_the_model():
    state, _ = solved([GOOD, RIGHT], problem=Problem(reference="1/0"))
    assert (state.outcome, state.answer_retries, state.phase) == ("bad_reference", 0, Phase.COMPLETE)


# ---- what the model is told ------------------------------------------------------------------------------------------


def test_a_refusal_is_told_with_its_category_and_hint():
    _, generator = solved([call("calculator", "sqrt(4)"), GOOD, RIGHT])
    assert "disallowed_call" in told(generator, 1)
    assert "python_expr" in told(generator, 1)


def test_a_call_that_was_cut_off_is_told_so():
    _, generator = solved([Line(text='{"tool": "calc', finish_reason="length"), GOOD, RIGHT])
    assert "cut off" in told(generator, 1)


def test_the_result_is_told_as_exact_text():
    _, generator = solved([call("calculator", "2**64 + 1"), RIGHT])
    assert "Tool result:\n18446744073709551617\n" in told(generator, 1)


def test_after_a_second_refusal_the_model_is_told_that_there_is_no_result():
    _, generator = solved([REFUSED, REFUSED, RIGHT])
    assert "There is no tool result." in told(generator, 2)


def test_an_empty_search_is_told_in_words():
    _, generator = solved([call("local_search", "zebra", "query"), RIGHT])
    assert "no document matches; answer without it" in told(generator, 1)


@pytest.mark.parametrize(
    ("answer", "correction"),
    [(WRONG, Correction.NOT_ACCEPTED), (CUT, Correction.CUT_OFF), (UNREADABLE, Correction.UNREADABLE)],
)
def test_a_correction_says_no_more_than_its_kind(answer, correction):
    _, generator = solved([GOOD, answer, RIGHT])
    assert told(generator, 2).startswith(CORRECTIONS[correction])


def test_a_conversation_grows_by_what_was_said():
    _, generator = solved([NO_CALL, GOOD, WRONG, RIGHT])
    for earlier, later in zip(generator.calls, generator.calls[1:], strict=False):
        assert later[: len(earlier)] == earlier
        assert [message["role"] for message in later[len(earlier) :]] == ["assistant", "user"]


def test_a_model_without_tools_is_told_of_none():
    state, generator = solved([RIGHT], tools=False)
    assert (state.outcome, state.calls) == ("correct", [])
    assert "calculator" not in str(generator.calls)


@pytest.mark.parametrize("kind", ["files", "sqlite"])
@pytest.mark.parametrize("gate", list(Gate))
@pytest.mark.parametrize("lines", [lines for lines, *_ in ROUTES.values()], ids=ROUTES)
def test_the_reference_stands_in_no_prompt_and_in_no_state(tmp_path, lines, gate, kind):
    """The script never holds it, so that whatever shows it took it from the reference."""
    sentinel = str(random.Random(f"{lines}{gate}").randrange(10**17, 10**18))
    generator = ScriptedGenerator({"p1": [*lines, *[WRONG] * 3]}, {"p1": "What is 6 * 7?"})
    settings = AgentSettings(gate=gate)
    with open_store(tmp_path / "run", {"code": "x"}, kind=kind) as store:
        state = solve(Problem(reference=sentinel), generator, toolbox(), settings=settings, store=store)
        row = store.read("p1")
    assert state.outcome != "correct"
    assert sentinel not in json.dumps(generator.calls)
    assert sentinel not in json.dumps(row)
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert sentinel.encode() not in file.read_bytes()


# ---- gates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "lines", "corrected"),
    [
        pytest.param("reference_free", [GOOD, WRONG, RIGHT], "not_accepted", id="differs from the tool's number"),
        pytest.param("reference_free", [GOOD, RIGHT], None, id="is the tool's number"),
        pytest.param("reference_free", [GOOD, r"\boxed{84/2}"], None, id="is the tool's number in other words"),
        pytest.param(
            "reference_free", [call("python_expr", "sqrt(2)"), r"\boxed{1.414214}"], None, id="is it, rounded"
        ),
        pytest.param("reference_free", [GOOD, NONE, RIGHT], "not_accepted", id="missing"),
        pytest.param("reference_free", [GOOD, CUT, RIGHT], "cut_off", id="cut off"),
        pytest.param("reference_free", [GOOD, UNREADABLE, RIGHT], "unreadable", id="unreadable"),
        pytest.param("reference_free", [call("calculator", "6*6"), RIGHT, r"\boxed{36}"], "not_accepted", id="misled"),
        pytest.param("reference_free", [call("local_search", "port", "query"), WRONG], None, id="documents"),
        pytest.param("reference_free", [REFUSED, REFUSED, WRONG], None, id="no result to differ from"),
        pytest.param("always_once", [GOOD, RIGHT, WRONG], "look_again", id="once, right or wrong"),
        pytest.param("never", [GOOD, WRONG], None, id="never"),
    ],
)
def test_a_gate_opens_on_what_it_can_see(gate, lines, corrected):
    state, _ = solved(lines, gate=Gate(gate))
    assert state.answers[0].gate == corrected
    assert state.answer_retries == (corrected is not None)


# ---- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("action", [Action.TIMEOUT, Action.KILL_WORKER])
def test_a_fault_of_the_machinery_spends_no_correction(action, times):
    plan = FaultPlan([Fault(point="executor.run", action=action, times=times)])
    state, _ = solved([GOOD, RIGHT], faults=plan)
    assert (state.executor_attempts, state.call_corrections, state.outcome) == (times + 1, 0, "correct")


def test_a_tool_that_never_answers_leaves_the_model_to_answer_alone():
    plan = FaultPlan([Fault(point="executor.run", action=Action.TIMEOUT, times=9)])
    state, generator = solved([GOOD, RIGHT], faults=plan)
    assert (state.executor_attempts, state.call_corrections, state.outcome) == (3, 0, "correct")
    assert "There is no tool result." in told(generator, 1)


def test_a_verdict_that_was_lost_asks_for_nothing(monkeypatch):
    """The verifier's worker dies on every item; the answer is neither right nor wrong."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with VerdictPool(1, function="unruly_tools:decide_nothing") as pool:
        state, _ = solved([GOOD, WRONG], pool=pool)
    assert (state.outcome, state.answer_retries, state.phase) == ("crashed", 0, Phase.COMPLETE)


def test_a_conversation_that_filled_the_context_is_cut_off_and_goes_on():
    full = [Line(text="", finish_reason="length")] * 2
    state, _ = solved([GOOD, *full])
    assert (state.outcome, state.answers[0].gate, state.phase) == ("no_answer", "cut_off", Phase.COMPLETE)


def test_a_generator_that_hands_nothing_over_is_named():
    class Silent(ScriptedGenerator):
        def generate(self, prompts, **settings):
            return []

    with pytest.raises(RuntimeError, match="quiet: nothing was handed over for problem p1"):
        solve(Problem(), Silent({}, {}, name="quiet"), toolbox())


def test_a_generator_may_hand_everything_over_at_the_end():
    class AtTheEnd(ScriptedGenerator):
        def generate(self, prompts, *, on_finished=None, **settings):
            return super().generate(prompts, **settings)

    generator = AtTheEnd({"p1": [GOOD, RIGHT]}, {"p1": "What is 6 * 7?"})
    assert solve(Problem(), generator, toolbox()).outcome == "correct"


def test_a_generator_that_hands_a_response_over_twice_is_named():
    class Twice(ScriptedGenerator):
        def generate(self, prompts, *, on_finished=None, **settings):
            def twice(finished):
                on_finished(finished)
                on_finished(finished)

            return super().generate(prompts, on_finished=twice, **settings)

    generator = Twice({"p1": [GOOD, RIGHT]}, {"p1": "What is 6 * 7?"}, name="stutter")
    with pytest.raises(RuntimeError, match="stutter: handed over prompt 0 twice"):
        solve(Problem(), generator, toolbox())


def test_half_surrogates_of_a_model_are_stored_as_a_sign_that_a_file_can_hold(tmp_path):
    with open_store(tmp_path / "run", {}) as store:
        state, _ = solved(["\ud800", GOOD, "\udfff \\boxed{42}"], store=store)
        assert store.read("p1")["answers"][0]["text"] == "\ufffd \\boxed{42}"
    assert state.outcome == "correct"


# ---- readers ---------------------------------------------------------------------------------------------------------


def test_a_hermes_call_is_read_and_its_result_comes_in_the_role_of_a_tool():
    spoken = '<tool_call>\n{"name": "calculator", "arguments": {"expression": "6 * 7"}}\n</tool_call>'
    state, generator = solved([spoken, RIGHT], reader="hermes")
    assert state.result.value == 42
    assert [message["role"] for message in generator.calls[1]] == ["user", "assistant", "tool", "user"]
    assert generator.calls[1][2]["content"] == "Tool result:\n42"


def test_a_call_of_the_chat_api_is_paired_with_its_result():
    calls = [{"id": "c7", "type": "function", "function": {"name": "calculator", "arguments": '{"expression": "6*7"}'}}]
    state, generator = solved([Line(text="", tool_calls=json.dumps(calls)), RIGHT], reader="openai")
    assert state.result.value == 42
    assistant, result, _ = generator.calls[1][1:]
    assert assistant["tool_calls"] == calls
    assert (result["role"], result["tool_call_id"]) == ("tool", "c7")


def test_what_no_request_can_hold_is_not_sent_back_to_a_server():
    function = {"name": "calculator", "arguments": '{"expression": "\ud800"}'}
    calls = json.dumps([{"id": "c\ud800", "function": function, "index": float("nan")}])
    state, generator = solved([Line(text="", tool_calls=calls), RIGHT, RIGHT], reader="openai")
    assert state.calls[0].result.category == "non_finite"
    assert json.dumps(generator.calls, ensure_ascii=False, allow_nan=False).encode()


def test_calls_that_no_server_would_take_back_are_repeated_as_text():
    calls = json.dumps([{"function": {"name": "calculator", "arguments": {"expression": "6*7"}}}])
    _, generator = solved([Line(text="", tool_calls=calls), GOOD, RIGHT], reader="openai")
    assert generator.calls[1][1] == {"role": "assistant", "content": calls}


@pytest.mark.parametrize(("reader", "offered"), [("native", [0, 0]), ("hermes", [3, 3]), ("openai", [3, 0])])
def test_tools_are_offered_where_the_reader_has_them(reader, offered):
    seen = []

    class Watched(ScriptedGenerator):
        def generate(self, prompts, *, chat_template_kwargs=None, **settings):
            seen.append(len((chat_template_kwargs or {}).get("tools", [])))
            return super().generate(prompts, chat_template_kwargs=chat_template_kwargs, **settings)

    lines = {
        "native": [GOOD, RIGHT],
        "hermes": ['<tool_call>{"name": "calculator", "arguments": {"expression": "42"}}</tool_call>', RIGHT],
        "openai": ['[{"function": {"name": "calculator", "arguments": "{\\"expression\\": \\"42\\"}"}}]', RIGHT],
    }[reader]
    generator = Watched({"p1": lines}, {"p1": "What is 6 * 7?"})
    solve(Problem(), generator, toolbox(), settings=AgentSettings(reader=reader))
    assert seen == offered


# ---- going on --------------------------------------------------------------------------------------------------------


def problems(count):
    return [Problem(id=f"p{n}", question=f"What is {n} * 7?", reference=str(7 * n)) for n in range(count)]


def scripted(asked):
    lines = list(ROUTES.values())
    return ScriptedGenerator(
        {problem.id: [*lines[n % len(lines)][0], RIGHT, RIGHT] for n, problem in enumerate(asked)},
        {problem.id: problem.question for problem in asked},
    )


def comparable(state):
    row = state.to_row()
    for attempt in (*row["calls"], *row["answers"]):
        attempt["seconds"] = attempt["tool_seconds"] = 0
        if attempt.get("verdict"):
            attempt["verdict"] = {**attempt["verdict"], "microseconds": 0}
    return row


@pytest.mark.parametrize("width", [2, 5, 100])
def test_problems_that_are_worked_at_together_end_as_they_do_alone(width):
    asked = problems(24)
    alone = {state.problem: comparable(state) for state in solve_many(asked, scripted(asked), toolbox(), width=1)}
    together = {
        state.problem: comparable(state) for state in solve_many(asked, scripted(asked), toolbox(), width=width)
    }
    assert together == alone


def test_what_is_complete_is_not_asked_again(tmp_path):
    asked = problems(5)
    for calls in (10, 0):
        generator = scripted(asked)
        with open_store(tmp_path / "run", {}) as store:
            states = list(solve_many(asked, generator, toolbox(), store=store, settings=AgentSettings(gate=Gate.NEVER)))
        assert len(states) == 5
        assert (len(generator.calls) == 0) == (calls == 0)


def test_another_question_under_the_same_id_is_refused(tmp_path):
    with open_store(tmp_path / "run", {}) as store:
        solved([GOOD, RIGHT], store=store)
        with pytest.raises(ConfigError, match="holds another question under the id 'p1'"):
            solved([GOOD, RIGHT], problem=Problem(question="What is 6 * 8?"), store=store)


def test_two_problems_under_one_id_are_refused():
    asked = [Problem(), Problem(question="What is 6 * 8?")]
    generator = ScriptedGenerator({"p1": [GOOD, RIGHT]}, {"p1": "What is 6 * 7?"})
    with pytest.raises(ConfigError, match="two problems have the id 'p1'"):
        list(solve_many(asked, generator, toolbox()))


def test_a_store_of_other_settings_is_refused(tmp_path):
    generator = ScriptedGenerator({"p1": [GOOD, RIGHT]}, {"p1": "What is 6 * 7?"})
    described = describe_agent(generator, toolbox(), AgentSettings())
    with open_store(tmp_path / "run", described) as store:
        with pytest.raises(ConfigError, match=r"was opened for other settings: agent.gate \"oracle\" there"):
            solve(Problem(), generator, toolbox(), settings=AgentSettings(gate=Gate.NEVER), store=store)
        assert solve(Problem(), generator, toolbox(), store=store).outcome == "correct"


def test_a_row_that_is_no_state_is_set_apart_and_asked_again(tmp_path):
    with open_store(tmp_path / "run", {}) as store:
        row = {"problem": {"id": "p1"}, "phase": "tool_ready", "fingerprint": store.fingerprint}
        store.write("p1", row)
        state, generator = solved([GOOD, RIGHT], store=store)
        assert (state.outcome, len(generator.calls)) == ("correct", 2)
        assert len(store.set_aside) == 1


def test_a_step_that_is_begun_again_is_counted(tmp_path):
    plan = FaultPlan([Fault(point="agent.executed", action=Action.DISK_FULL)])
    with open_store(tmp_path / "run", {}) as store:
        with pytest.raises(OSError, match="No space left"):
            solved([GOOD, RIGHT], store=store, faults=plan)
        state, generator = solved([GOOD, RIGHT], store=store)
    assert state.replays == {"execute": 1}
    assert len(generator.calls) == 1


@pytest.mark.parametrize("lines", [lines for lines, *_ in ROUTES.values()], ids=ROUTES)
def test_a_state_comes_back_as_it_was_stored(tmp_path, lines):
    with open_store(tmp_path / "run", {}) as store:
        state, _ = solved(lines, store=store)
        again = read_state(store.read("p1"))
    assert isinstance(again, ProblemState)
    assert again == state


def test_a_phase_that_does_not_fit_its_content_is_no_state():
    state, _ = solved([GOOD, RIGHT])
    assert read_state({**state.to_row(), "phase": "call_written"}) == (
        "no state: phase call_written where the content says graded"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reader": "xml"}, "unknown reader 'xml'; wanted one of native, hermes, openai"),
        ({"gate": "often"}, "unknown gate 'often'; wanted one of oracle"),
        ({"call_tokens": 0}, "call_tokens must be a number of tokens, at least 1, got 0"),
        ({"answer_tokens": "5"}, "answer_tokens must be a number of tokens, at least 1, got '5'"),
        ({"temperature": float("nan")}, r"temperature must be 0 \(greedy\) or more, got nan"),
        ({"temperature": -1.0}, r"temperature must be 0 \(greedy\) or more, got -1.0"),
    ],
)
def test_an_impossible_setting_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        AgentSettings(**settings)
