"""Writers that are killed: every row that was reported as written is there and whole, and nothing is unread.

VERIWARD_KILLS=200 sets the number of random kills of each store at each durability.
"""

import contextlib
import json
import os
import random
import select
import time

import pytest

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import Action, Fault, FaultPlan, Interrupted
from veriward.tool_agent.store import fingerprint, open_store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked")

SETTINGS = {"code": "a"}
KINDS = ("files", "sqlite")
KILLS = int(os.environ.get("VERIWARD_KILLS", "10"))
POINTS = {
    "files": ["store.temp", "store.write", "store.fsync", "store.rename", "store.fsync_folder"],
    "sqlite": ["store.begin", "store.commit", "store.committed"],
}
PHASES = ("called", "executed", "answered", "scored", "complete")
FAULTS = [
    *((kind, point, Action.KILL) for kind, points in POINTS.items() for point in points),
    ("files", "store.write", Action.TORN),
]


def row_of(identity, version, size=1_000):
    """A row whose text is wrong where two versions are mixed."""
    return {
        "fingerprint": fingerprint(SETTINGS),
        "problem": {"id": identity},
        "phase": PHASES[version % len(PHASES)],
        "version": version,
        "text": chr(97 + version % 26) * size,
    }


def in_child(work):
    """Run `work(report)` in a forked process; its id, and where its reports can be read."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reader)
            work(lambda line: os.write(writer, f"{line}\n".encode()))
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    return pid, reader


def wait_for(pid, reader):
    """Everything that was reported, and the signal that ended the process (0: none)."""
    with os.fdopen(reader) as lines:
        reported = lines.read().splitlines()
    return reported, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def stored_versions(run, kind, reported):
    """Version of each problem: every row is one that was written, none is unread, none that was reported is lost."""
    with open_store(run, SETTINGS, kind=kind, durability="process") as store:
        rows = {row["problem"]["id"]: row for row in store.rows()}
        assert not store.set_aside
    for identity, row in rows.items():
        assert row == row_of(identity, row["version"], len(row["text"]))
    versions = {identity: row["version"] for identity, row in rows.items()}
    for identity, version in reported.items():
        assert versions[identity] in (version, version + 1)
    return versions


@pytest.mark.parametrize("skip", [0, 1, 7])
@pytest.mark.parametrize(("kind", "point", "action"), FAULTS)
def test_a_kill_at_any_point_of_a_write_leaves_the_old_row_or_the_new_one(tmp_path, kind, point, action, skip):
    def write(report):
        faults = FaultPlan([Fault(point=point, action=action, skip=skip)])
        with open_store(tmp_path / "run", SETTINGS, kind=kind, faults=faults) as store:
            for version in range(4):
                for identity in "abc":
                    store.write(identity, row_of(identity, version))
                    report(json.dumps([identity, version]))

    lines, code = wait_for(*in_child(write))
    assert (code, len(lines)) == (-9, skip)
    stored_versions(tmp_path / "run", kind, dict(map(json.loads, lines)))
    assert not [*tmp_path.rglob(".tmp-*")]


@pytest.mark.parametrize("kind", KINDS)
def test_every_point_of_a_write_is_a_named_one(tmp_path, kind):
    faults = FaultPlan([Fault(point="never", action=Action.KILL)])
    with open_store(tmp_path / "run", SETTINGS, kind=kind, faults=faults) as store:
        store.write("a", row_of("a", 0))
    assert faults.visited == [(point, "a") for point in POINTS[kind]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_goes_on_to_the_end_of_an_undisturbed_one(tmp_path, kind):
    """Killed at every point in turn, and each time started again where the phases say."""

    def go_on(run, faults):
        with open_store(run, SETTINGS, kind=kind, durability="process", faults=faults) as store:
            for identity in ("a", "b"):
                row = store.read(identity)
                for version in range(row["version"] + 1 if row else 0, len(PHASES)):
                    store.write(identity, row_of(identity, version))

    points = [point for point in POINTS[kind] if "fsync" not in point]
    kills = 0
    for number in range(100):
        point, skip = points[number % len(points)], number // len(points) % 2
        faults = FaultPlan([Fault(point=point, action=Action.KILL, skip=skip)])
        _, code = wait_for(*in_child(lambda _, faults=faults: go_on(tmp_path / "killed", faults)))
        kills += code == -9
        if code == 0:
            break
    go_on(tmp_path / "whole", FaultPlan())
    assert kills >= len(points)
    assert stored_versions(tmp_path / "killed", kind, {}) == stored_versions(tmp_path / "whole", kind, {})


@pytest.mark.parametrize("kind", KINDS)
def test_an_interruption_in_a_write_leaves_the_store_usable(tmp_path, kind):
    for point in POINTS[kind]:
        faults = FaultPlan([Fault(point=point, action=Action.INTERRUPT)])
        with open_store(tmp_path / "run", SETTINGS, kind=kind, faults=faults) as store:
            with pytest.raises(Interrupted):
                store.write("a", row_of("a", 1))
            store.write("a", row_of("a", 2))
            assert store.read("a") == row_of("a", 2)


def write_without_end(run, kind, durability):
    def write(report):
        with open_store(run, SETTINGS, kind=kind, durability=durability) as store:
            first = 1 + max((row["version"] for row in store.rows()), default=-1)
            for version in range(first, 10**9):
                for number in range(20):
                    store.write(f"p{number}", row_of(f"p{number}", version, size=1_000 + number % 3 * 4_000))
                    report(json.dumps([f"p{number}", version]))

    return write


@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_at_any_time_loses_no_row_that_was_reported(tmp_path, kind, durability):
    draw = random.Random(6)
    reported = {}
    for _ in range(KILLS):
        pid, reader = in_child(write_without_end(tmp_path / "run", kind, durability))
        assert select.select([reader], [], [], 60)[0]
        time.sleep(draw.uniform(0.0, 0.05))
        os.kill(pid, 9)
        lines, code = wait_for(pid, reader)
        assert code == -9
        for line in lines:
            with contextlib.suppress(ValueError):  # the last report may be torn; then the row counts as not reported
                identity, version = json.loads(line)
                reported[identity] = version
        versions = stored_versions(tmp_path / "run", kind, {})
        assert all(versions[identity] >= version for identity, version in reported.items())


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_writers_at_once_one_is_refused_and_nothing_is_damaged(tmp_path, kind):
    pid, reader = in_child(write_without_end(tmp_path / "run", kind, "process"))
    try:
        assert select.select([reader], [], [], 60)[0]
        for _ in range(20):
            with pytest.raises(ConfigError, match=f"process {pid} on "):
                open_store(tmp_path / "run", SETTINGS, kind=kind)
    finally:
        os.kill(pid, 9)
        wait_for(pid, reader)
    stored_versions(tmp_path / "run", kind, {})


@pytest.mark.parametrize("kind", KINDS)
def test_of_many_writers_that_start_at_once_exactly_one_gets_the_run(tmp_path, kind):
    start, go = os.pipe()

    def try_to_open(report):
        os.close(go)
        os.read(start, 1)
        try:
            with open_store(tmp_path / "run", SETTINGS, kind=kind, durability="process") as store:
                report("in")
                store.write("a", row_of("a", 1))
                time.sleep(0.5)
        except ConfigError:
            report("refused")

    children = [in_child(try_to_open) for _ in range(6)]
    os.close(start)
    os.close(go)
    said = [line for child in children for line in wait_for(*child)[0]]
    assert sorted(said) == ["in", *["refused"] * 5]


@pytest.mark.parametrize("kind", KINDS)
def test_the_lock_of_a_killed_writer_is_taken_over_and_said(tmp_path, kind):
    pid, reader = in_child(write_without_end(tmp_path / "run", kind, "process"))
    assert select.select([reader], [], [], 60)[0]
    os.kill(pid, 9)
    wait_for(pid, reader)
    with open_store(tmp_path / "run", SETTINGS, kind=kind) as store:
        assert f"process {pid} on " in store.took_over


def test_a_lock_that_a_child_of_a_dead_writer_still_holds_says_so(tmp_path):
    def leave_a_child(report):
        open_store(tmp_path / "run", SETTINGS)
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        report(child)

    pid, reader = in_child(leave_a_child)
    line = os.read(reader, 100)
    os.waitpid(pid, 0)
    try:
        with pytest.raises(ConfigError, match="it is gone, but a child of it still runs"):
            open_store(tmp_path / "run", SETTINGS)
    finally:
        os.close(reader)
        os.kill(int(line), 9)
