"""The drill: which way each problem takes, read off its stored state, and a run that is mended half way."""

import json

import pytest

from veriward.eval.drill import SCRIPT, drill_parts, path_of, planned_faults, run_drill
from veriward.eval.scripted import ScriptedGenerator
from veriward.rewards import VerdictPool
from veriward.tool_agent import ConfigError, toolbox
from veriward.tool_agent.agent import AgentSettings, solve, solve_many
from veriward.tool_agent.faults import NO_FAULTS, Action, Fault, FaultPlan, Interrupted
from veriward.tool_agent.state import Phase, read_state
from veriward.tool_agent.store import open_store, read_store


@pytest.fixture(scope="module")
def pool():
    with VerdictPool(workers=0) as pool:
        yield pool


@pytest.fixture(scope="module")
def drilled(pool, tmp_path_factory):
    """The drill, the states on the disk by their ids, and the points that were passed."""
    folder = tmp_path_factory.mktemp("drill") / "run"
    faults = FaultPlan(planned_faults())
    drill = run_drill(folder, pool=pool, faults=faults)
    with read_store(folder) as store:
        stored = {row["problem"]["id"]: read_state(row) for row in store.rows()}
    return drill, stored, faults.visited


# ---- the paths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "path"),
    [
        pytest.param(
            "calculator-01",
            "timeout -> executor again -> 761 -> complete/correct",
            id="a time-out is tried again",
        ),
        pytest.param(
            "search-01",
            "note-aurora -> interrupted -> stored result used, not run again -> complete/correct",
            id="a stored result is used after an interruption",
        ),
        pytest.param(
            "python-03",
            "refused: syntax -> same call again -> refused: syntax -> safe error -> wrong -> correction -> "
            "complete/wrong",
            id="a second refusal is a safe error, and the run goes on",
        ),
        pytest.param(
            "calculator-04",
            "12.0 -> no_answer, cut off -> correction -> complete/correct",
            id="an answer that was cut off at another number is rescued",
        ),
        pytest.param(
            "python-01",
            "no document -> no_answer, cut off -> correction -> complete/no_answer",
            id="an empty search is taken for no data",
        ),
        pytest.param(
            "python-04",
            "refused: disallowed_call -> same call again -> refused: disallowed_call -> safe error -> wrong -> "
            "correction -> complete/correct",
            id="an answer without a tool result is rescued",
        ),
    ],
)
def test_a_problem_takes_the_planned_way(drilled, problem, path):
    assert path_of(drilled[1][problem]) == path


def test_nothing_differs_from_the_plan(drilled):
    assert drilled[0].differing == []


def test_the_counts_are_those_of_the_described_run(drilled):
    assert drilled[0].counts == {
        "problems": 12,
        "complete": 12,
        "right_at_first": 7,
        "corrections": 5,
        "rescued": 2,
        "still_not_right": 3,
        "right_after": 9,
    }


def test_what_stays_wrong_are_three_problems_for_python(drilled):
    assert [state.problem for state in drilled[0].states if state.outcome != "correct"] == [
        "python-01",
        "python-02",
        "python-03",
    ]


def test_the_right_tool_is_called_in_eight_of_twelve(drilled):
    expected = {problem.id: problem.columns["expected_tool"] for problem in drill_parts().problems}
    called = {state.problem: state.calls[-1].call.tool for state in drilled[0].states}
    right = sorted(problem for problem in called if called[problem] == expected[problem])
    assert right == [f"{tool}-0{number}" for tool in ("calculator", "search") for number in range(1, 5)]


def test_the_interrupted_search_is_run_once(drilled):
    assert drilled[2].count(("executor.run", "search-01")) == 1


def test_the_refusal_that_once_stopped_a_run_does_not_stop_this_one(drilled):
    """Everything after the seventh problem was written after it."""
    visited = drilled[2]
    refused = visited.index(("agent.stored.complete", "python-03"))
    after = {problem for point, problem in visited[refused:] if point == "agent.stored.complete"}
    assert after == {"python-03", "python-04", "search-01", "search-02", "search-03", "search-04"}


def test_without_its_faults_the_drill_says_which_paths_differ(tmp_path, pool):
    drill = run_drill(tmp_path / "run", pool=pool, faults=FaultPlan())
    assert [line.split(": took")[0] for line in drill.differing] == ["calculator-01", "search-01"]


def test_the_row_is_json_and_says_that_no_model_is_measured(drilled):
    row = json.loads(json.dumps(drilled[0].to_row()))
    assert (row["measures_a_model"], row["as_planned"], len(row["problems"])) == (False, True, 12)


@pytest.mark.parametrize(
    ("lines", "faults", "path"),
    [
        pytest.param(
            ["17 * 24 + 9", SCRIPT["calculator-02"][0], r"\boxed{417}"],
            [],
            "refused: not_json -> corrected call -> 417 -> complete/correct",
            id="a call that could not be read",
        ),
        pytest.param(
            SCRIPT["calculator-02"],
            [Fault(point="executor.run", action=Action.TIMEOUT, times=3)],
            "timeout -> executor again -> timeout -> executor again -> timeout -> no tool result -> complete/correct",
            id="a tool that never answers",
        ),
        pytest.param(
            SCRIPT["calculator-02"],
            [Fault(point="agent.stored.call_written", action=Action.INTERRUPT)],
            "417 -> interrupted -> call run again -> complete/correct",
            id="interrupted before the call was run",
        ),
    ],
)
def test_a_path_says_what_happened(tmp_path, pool, lines, faults, path):
    parts = drill_parts()
    (problem,) = [problem for problem in parts.problems if problem.id == "calculator-02"]
    generator = ScriptedGenerator({problem.id: lines}, {problem.id: problem.question})
    plan = FaultPlan(faults)
    state = None
    while state is None:
        with open_store(tmp_path / "run", {}) as store:
            try:
                state = solve(problem, generator, toolbox(), store=store, pool=pool, faults=plan)
            except Interrupted:
                continue
    assert path_of(state) == path


def test_a_path_of_a_model_without_tools_is_its_answers(pool):
    parts = drill_parts()
    problem = parts.problems[0]
    generator = ScriptedGenerator({problem.id: ["I do not know.", r"\boxed{761}"]}, {problem.id: problem.question})
    state = solve(problem, generator, toolbox(), settings=AgentSettings(tools=False), pool=pool)
    assert path_of(state) == "no_answer -> correction -> complete/correct"


# ---- a run that is mended half way ----------------------------------------------------------------------------------


def go_on(folder, pool, *, code, faults=NO_FAULTS, log=None, continue_under=False):
    """The twelve one after the other, by this code or another."""
    parts = drill_parts(log)
    settings = {**parts.run_settings, "code": code}
    with open_store(folder, settings, faults=faults, continue_under=continue_under) as store:
        return list(
            solve_many(
                parts.problems,
                parts.generator,
                parts.toolbox,
                settings=parts.settings,
                store=store,
                pool=pool,
                faults=faults,
                width=1,
            )
        )


@pytest.fixture
def stopped(tmp_path, pool):
    """A run that stopped at the seventh problem, whose call was refused: six complete and one `tool_ready`."""
    faults = FaultPlan([Fault(point="agent.stored.tool_ready", action=Action.INTERRUPT, problem="python-03")])
    with pytest.raises(Interrupted):
        go_on(tmp_path / "run", pool, code="before", faults=faults)
    return tmp_path / "run"


@pytest.fixture
def mended(stopped, tmp_path, pool):
    """The same after the route was mended: rows by their ids, and the calls of the model since then."""
    states = go_on(stopped, pool, code="after", log=tmp_path / "log", continue_under=True)
    calls = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    with read_store(stopped) as store:
        return states, {row["problem"]["id"]: row for row in store.rows()}, calls


SIX = ("calculator-01", "calculator-02", "calculator-03", "calculator-04", "python-01", "python-02")


def test_a_run_that_stopped_has_six_complete_and_one_tool_ready(stopped):
    with read_store(stopped) as store:
        assert store.phases() == {**dict.fromkeys(SIX, "complete"), "python-03": "tool_ready"}


def test_other_code_is_refused_unless_asked_for(stopped, pool):
    with pytest.raises(ConfigError, match=r"holds a run of other code: code .* --continue-under"):
        go_on(stopped, pool, code="after")


def test_a_refused_continuation_changes_nothing(stopped, pool):
    before = {path: path.read_bytes() for path in stopped.rglob("*.json")}
    with pytest.raises(ConfigError):
        go_on(stopped, pool, code="after")
    assert {path: path.read_bytes() for path in stopped.rglob("*.json")} == before


def test_other_settings_are_refused_even_if_asked_for(stopped, pool):
    parts = drill_parts()
    other = {**parts.run_settings, "code": "after", "problems": {}}
    with pytest.raises(ConfigError, match="holds a run with other settings"):
        open_store(stopped, other, continue_under=True)


def test_a_mended_run_comes_to_its_end(mended, drilled):
    states, _, _ = mended
    assert [(state.problem, state.phase, state.outcome) for state in states] == [
        (state.problem, Phase.COMPLETE, state.outcome) for state in drilled[0].states
    ]


def test_a_mended_run_asks_the_complete_problems_nothing_again(mended):
    assert not {call["problem"] for call in mended[2]} & set(SIX)


def test_a_mended_run_goes_on_from_the_stored_refusal(mended):
    """The first text it asks for is the corrected call, and no call is asked for a third time."""
    assert [call["turn"] for call in mended[2] if call["problem"] == "python-03"] == [1, 2, 3]


def test_every_later_state_says_that_the_run_went_on_under_other_code(mended):
    _, rows, _ = mended
    assert {problem: len(row["continued_under"]) for problem, row in rows.items()} == {
        problem: 0 if problem in SIX else 1 for problem in SCRIPT
    }


def test_the_header_says_from_which_code_to_which(mended, stopped):
    _, rows, _ = mended
    header = json.loads((stopped / "run.json").read_text(encoding="utf-8"))
    (step,) = header["continued_under"]
    assert (step["from"], step["to"]) == (rows["calculator-01"]["fingerprint"], rows["search-04"]["fingerprint"])
