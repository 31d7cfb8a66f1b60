"""The agent, killed, interrupted and short of disk: the end is that of an undisturbed run, and nothing is asked twice.

VERIWARD_KILLS=200 sets the number of random kills of each store; `python -m veriward.scripts.crash_agent` does them
with the verifier in a process of its own, on all of the twelve.
"""

import json
import multiprocessing
import os
import re
from pathlib import Path

import pytest

from veriward import tool_agent
from veriward.eval.drill import drill_parts, path_of
from veriward.eval.scripted import ScriptedGenerator
from veriward.rewards import VerdictPool
from veriward.scripts import crash_agent
from veriward.scripts.crash_agent import Count, Place, Run, comparable, final_rows, lines, run_settings, whole
from veriward.tool_agent import ConfigError, as_tool, toolbox
from veriward.tool_agent.agent import _Agent, solve_many
from veriward.tool_agent.faults import NO_FAULTS, Action, Fault, FaultPlan, Interrupted
from veriward.tool_agent.state import Phase, read_state
from veriward.tool_agent.store import open_store, read_store
from veriward.tool_agent.tools.calculator import calculator

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="sessions are forked")

KINDS = ("files", "sqlite")
KILLS = int(os.environ.get("VERIWARD_KILLS", "8"))
ROUTES = ("calculator-04", "python-03", "search-01")
"""An answer that is corrected, a call that is refused twice, and one that is right at once."""
OF_THE_AGENT = {
    "agent.asked",
    "agent.executed",
    "agent.verified",
    *(f"agent.stored.{phase}" for phase in Phase if phase is not Phase.NEW),
    "executor.run",
}
POINTS = {
    "files": {"store.temp", "store.write", "store.fsync", "store.rename", "store.fsync_folder"} | OF_THE_AGENT,
    "sqlite": {"store.begin", "store.commit", "store.committed"} | OF_THE_AGENT,
}
EACH_STORE_POINT = [(kind, point) for kind in KINDS for point in sorted(POINTS[kind] - OF_THE_AGENT)]


@pytest.fixture(scope="module")
def pool():
    with VerdictPool(workers=0) as pool:
        yield pool


@pytest.fixture(scope="module", params=KINDS)
def undisturbed(request, tmp_path_factory):
    """A place without a run, and what a run there comes to."""
    place = Place(folder=tmp_path_factory.mktemp("whole"), kind=request.param, problems=ROUTES, workers=0)
    return place, whole(place)


@pytest.fixture
def killed(undisturbed, tmp_path):
    """A fresh place, what a run there comes to, and a count of what is otherwise."""
    place, wanted = undisturbed
    return Place(folder=tmp_path, kind=place.kind, problems=ROUTES, workers=0), wanted, Count(store=place.kind)


def run(parts, folder, pool, *, kind="files", faults=NO_FAULTS, problems=ROUTES):
    """The final states of some of the twelve, in this process."""
    chosen = [problem for problem in parts.problems if problem.id in problems]
    with open_store(folder, run_settings(parts), kind=kind, faults=faults) as store:
        return list(
            solve_many(
                chosen,
                parts.generator,
                parts.toolbox,
                settings=parts.settings,
                store=store,
                pool=pool,
                faults=faults,
            )
        )


# ---- kills ----------------------------------------------------------------------------------------------------------


def test_the_points_that_are_named_in_the_sources_are_all_passed():
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(tool_agent.__file__).parent.glob("*.py"))
    named = {point.removesuffix("{phase.value}") for point in re.findall(r'faults\.at\(f?"([^"]+)"', sources)}
    passed = {re.sub(r"(?<=stored\.).*", "", point) for points in POINTS.values() for point in points}
    assert named == passed


def test_a_run_passes_every_point(undisturbed):
    place, wanted = undisturbed
    assert set(wanted.visited) == POINTS[place.kind]


def test_a_kill_at_any_point_changes_nothing_and_repeats_no_stored_call(killed):
    """And leaves a lock that is taken over; the proof looks for that too."""
    place, wanted, count = killed
    passed = {point for point, _ in crash_agent.kills_at_points(place, wanted, 1, count)}
    assert (count.wrong, passed) == ([], POINTS[place.kind])


def test_kills_at_random_moments_change_nothing_and_repeat_no_stored_call(killed):
    place, wanted, count = killed
    for _ in crash_agent.random_kills(place, wanted, KILLS, seed=6, count=count):
        pass
    assert (count.wrong, count.stored_repeated, count.kills) == ([], 0, KILLS)


def test_only_the_call_that_was_under_way_is_begun_again(killed):
    place, wanted, count = killed
    one = Run(place.inside("one"), wanted, count)
    one.go_on(FaultPlan([Fault(point="agent.asked", action=Action.KILL, problem="python-03", skip=1)]))
    one.finish()
    calls = [(call["problem"], call["turn"]) for call in lines(place.inside("one").calls)]
    assert [call for call in sorted(set(calls)) if calls.count(call) > 1] == [("python-03", 1)]


def test_a_repeated_step_is_counted_in_the_state(killed):
    place, wanted, count = killed
    one = Run(place.inside("one"), wanted, count)
    one.go_on(FaultPlan([Fault(point="agent.executed", action=Action.KILL, problem="search-01")]))
    one.finish()
    with read_store(place.inside("one").run) as store:
        assert store.read("search-01")["replays"] == {"execute": 1}


def test_a_run_whose_states_are_not_used_is_found_out(killed, monkeypatch):
    """The proof itself: an agent that begins everything anew."""
    place, wanted, count = killed
    monkeypatch.setattr(_Agent, "_stored", lambda self, problem: None)
    one = Run(place.inside("one"), wanted, count)
    one.go_on(FaultPlan([Fault(point="agent.stored.answered", action=Action.KILL)]))
    one.finish()
    assert count.stored_repeated > 0


def test_a_run_that_ends_otherwise_is_found_out(killed):
    """The proof itself: another set of problems."""
    place, wanted, count = killed
    fewer = Place(folder=place.folder / "one", kind=place.kind, problems=ROUTES[:2], workers=0)
    Run(fewer, wanted, count).finish()
    assert count.wrong == ["one: another final state of search-01"]


def test_times_and_replays_are_not_compared():
    row = {"seconds": 1, "replays": {"execute": 1}, "answers": [{"verdict": {"microseconds": 3, "outcome": "wrong"}}]}
    assert comparable(row) == {"answers": [{"verdict": {"outcome": "wrong"}}]}


# ---- interruptions, full disks, folders that cannot be written ------------------------------------------------------


@pytest.mark.parametrize("point", sorted(OF_THE_AGENT))
def test_an_interruption_leaves_a_run_that_can_be_entered_again(undisturbed, tmp_path, pool, point):
    place, wanted = undisturbed
    faults = FaultPlan([Fault(point=point, action=Action.INTERRUPT)])
    with pytest.raises(Interrupted):
        run(drill_parts(), tmp_path / "run", pool, kind=place.kind, faults=faults)
    run(drill_parts(), tmp_path / "run", pool, kind=place.kind, faults=faults)
    assert final_rows(Place(folder=tmp_path, kind=place.kind)) == wanted.rows


@pytest.mark.parametrize("action", [Action.DISK_FULL, Action.READ_ONLY])
@pytest.mark.parametrize(("kind", "point"), EACH_STORE_POINT)
def test_a_disk_that_takes_no_more_stops_with_one_line(tmp_path, pool, kind, point, action):
    faults = FaultPlan([Fault(point=point, action=action, skip=5)])
    with pytest.raises(ConfigError, match="what was stored before is still there") as error:
        run(drill_parts(), tmp_path / "run", pool, kind=kind, faults=faults)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("action", [Action.DISK_FULL, Action.READ_ONLY])
def test_a_disk_that_takes_no_more_loses_nothing(undisturbed, tmp_path, pool, action):
    """At every point of the store in turn, in one run."""
    place, wanted = undisturbed
    log = tmp_path / "calls.jsonl"
    for point in sorted(POINTS[place.kind] - OF_THE_AGENT):
        faults = FaultPlan([Fault(point=point, action=action, skip=2)])
        with pytest.raises(ConfigError):
            run(drill_parts(log), tmp_path / "run", pool, kind=place.kind, faults=faults)
        with read_store(tmp_path / "run") as store:
            assert all(read_state(row).phase is not Phase.NEW for row in store.rows())
            assert not store.set_aside
    run(drill_parts(log), tmp_path / "run", pool, kind=place.kind)
    assert final_rows(Place(folder=tmp_path, kind=place.kind)) == wanted.rows


# ---- the executor ---------------------------------------------------------------------------------------------------


def disturbed(folder, pool, action, times, problem="calculator-02"):
    faults = FaultPlan([Fault(point="executor.run", action=action, problem=problem, times=times)])
    (state,) = run(drill_parts(), folder / "run", pool, faults=faults, problems=(problem,))
    return state


@pytest.mark.parametrize(
    ("times", "path"),
    [
        (1, "timeout -> executor again -> 417 -> complete/correct"),
        (2, "timeout -> executor again -> timeout -> executor again -> 417 -> complete/correct"),
        (
            3,
            "timeout -> executor again -> timeout -> executor again -> timeout -> no tool result -> complete/correct",
        ),
    ],
)
def test_a_tool_that_times_out_is_run_at_most_three_times(tmp_path, pool, times, path):
    assert path_of(disturbed(tmp_path, pool, Action.TIMEOUT, times)) == path


@pytest.mark.parametrize("action", [Action.TIMEOUT, Action.KILL_WORKER])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_fault_of_the_machinery_costs_the_model_no_correction(tmp_path, pool, action, times):
    state = disturbed(tmp_path, pool, action, times)
    assert (state.call_corrections, state.answer_retries, len(state.answers)) == (0, 0, 1)


def test_without_a_tool_result_the_model_is_told_so_and_still_answers(tmp_path, pool):
    state = disturbed(tmp_path, pool, Action.TIMEOUT, 3)
    assert "There is no tool result." in state.answers[0].prompt[-1]["content"]


def test_a_tool_that_never_answered_is_not_tried_again_after_a_restart(tmp_path, pool):
    faults = FaultPlan(
        [
            Fault(point="executor.run", action=Action.TIMEOUT, times=3),
            Fault(point="agent.stored.tool_ready", action=Action.INTERRUPT),
        ]
    )
    with pytest.raises(Interrupted):
        run(drill_parts(), tmp_path / "run", pool, faults=faults, problems=("calculator-02",))
    run(drill_parts(), tmp_path / "run", pool, faults=faults, problems=("calculator-02",))
    assert faults.visited.count(("executor.run", "calculator-02")) == 3


def one_problem(lines, tools=()):
    """Parts of a run of calculator-02 with these lines."""
    parts = drill_parts()
    questions = {problem.id: problem.question for problem in parts.problems}
    generator = ScriptedGenerator({"calculator-02": lines}, questions)
    return type(parts)(
        problem_set=parts.problem_set,
        generator=generator,
        toolbox=toolbox(extra_tools=tools),
        settings=parts.settings,
    )


def test_a_tool_whose_child_is_killed_is_run_in_a_fresh_one(tmp_path, pool):
    tool = as_tool(calculator, name="apart", deadline_s=5)
    assert tool.run(expression="1 + 1") == 2
    (before,) = tool._pool.pids()
    call = json.dumps({"tool": "apart", "arguments": {"expression": "17 * 24 + 9"}})
    faults = FaultPlan([Fault(point="executor.run", action=Action.KILL_WORKER)])
    parts = one_problem([call, r"\boxed{417}"], [tool])
    (state,) = run(parts, tmp_path / "run", pool, faults=faults, problems=("calculator-02",))
    (after,) = tool._pool.pids()
    tool._pool.close()
    assert (path_of(state), after != before) == ("crashed -> executor again -> 417 -> complete/correct", True)


def test_a_refusal_of_the_executor_goes_to_the_correction_of_the_call(tmp_path, pool):
    call = json.dumps({"tool": "calculator", "arguments": {"expression": "17 * 24 + 9"}})
    faults = FaultPlan([Fault(point="executor.run", action=Action.REFUSE)])
    parts = one_problem([call, call, r"\boxed{417}"])
    (state,) = run(parts, tmp_path / "run", pool, faults=faults, problems=("calculator-02",))
    assert path_of(state) == "refused: resource_limit -> same call again -> 417 -> complete/correct"


# ---- two writers ----------------------------------------------------------------------------------------------------


def hold(place, conversation):
    """A session that waits after its first complete problem."""
    parts = drill_parts(place.calls)
    chosen = [problem for problem in parts.problems if problem.id in ROUTES]
    with (
        VerdictPool(workers=0) as pool,
        open_store(place.run, run_settings(parts), kind=place.kind) as store,
    ):
        for _ in solve_many(
            chosen, parts.generator, parts.toolbox, settings=parts.settings, store=store, pool=pool, width=1
        ):
            conversation.send(None)
            conversation.recv()


def test_of_two_sessions_at_once_one_is_refused_and_the_other_comes_to_its_end(killed, pool):
    place, wanted, _ = killed
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    other = context.Process(target=hold, args=(place, there))
    other.start()
    here.recv()
    with pytest.raises(ConfigError, match=f"another process is writing into it: process {other.pid} on "):
        run(drill_parts(place.calls), place.run, pool, kind=place.kind)
    for _ in range(len(ROUTES) - 1):
        here.send(None)
        here.recv()
    here.send(None)
    other.join()
    assert (other.exitcode, final_rows(place)) == (0, wanted.rows)
