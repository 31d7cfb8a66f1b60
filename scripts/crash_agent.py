"""Kill the agent at every named point and at random moments, and see that nothing is lost and nothing is asked twice.

    python -m veriward.scripts.crash_agent --kills 200      both stores, in a temporary folder under --folder
    python -m veriward.scripts.crash_agent --kills 0        the named points alone

Each session is a process of its own that works at the frozen twelve with the texts of `veriward drill`, several at a
time, so that states of every phase lie side by side. It is ended by SIGKILL, and another one goes on from what it left.

points   All that an undisturbed run passes, the store's and the agent's, each at --visits of its visits from the first
         to the last; then one session to the end. With files also a torn write: half a file, then the kill.
random   Kills at moments spread evenly over the time of an undisturbed run, one session after the other until one
         comes to its end; then the next run, until --kills were done.

After each run its final states must be those of the undisturbed one in all but times and replays, nothing may have been
set aside, and no call of the model may have been repeated whose text a state already held. A call that was under way at
a kill is begun again: at most one a kill. Exit code 1 if anything is otherwise.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.table import Table

from veriward.eval.drill import Parts, drill_parts
from veriward.rewards.pool import VerdictPool
from veriward.tool_agent.agent import solve_many
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import SIGKILL, Action, Fault, FaultPlan
from veriward.tool_agent.files import TEMPORARY
from veriward.tool_agent.run_header import RUN, Kind
from veriward.tool_agent.sealed_rows import Row
from veriward.tool_agent.store import open_store, read_store

TOGETHER = 4
"""Problems that a session works at together."""
NOWHERE = "nowhere"
"""A point that nothing passes: a plan with a fault at it does nothing but write down the others."""
NOT_COMPARED = ("seconds", "tool_seconds", "microseconds", "replays")
SESSIONS = 100
"""Of one run, after which it is taken to have stopped moving."""
TORN_POINT = "store.write"
"""Where a store that can write half a state is asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A run on the disk, and what its sessions leave beside it."""

    folder: Path
    kind: Kind
    problems: tuple[str, ...] = ()
    """Ids of the twelve; none: all of them."""
    workers: int = 1
    """Processes that verify; 0: the session itself, which is quicker."""

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def calls(self) -> Path:
        """A line for each call of the model, written before it is answered."""
        return self.folder / "calls.jsonl"

    @property
    def sessions(self) -> Path:
        """What sessions say of themselves."""
        return self.folder / "sessions.jsonl"

    def inside(self, name: str) -> Place:
        """Another one of the same kind, in a folder of this one."""
        return replace(self, folder=self.folder / name)

    def say(self, **entry: object) -> None:
        with self.sessions.open("a", encoding="ascii") as file:
            file.write(json.dumps(entry) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A run that nothing disturbed: what every other one is compared with."""

    rows: dict[str, Row]
    visited: list[str]
    """Every point, in order."""
    seconds: float
    """From the opening of the store to its end."""


@dataclass(slots=True, kw_only=True)
class Count:
    """What was seen of one store, over all its runs."""

    store: str
    runs: int = 0
    sessions: int = 0
    kills: int = 0
    calls: int = 0
    """Of the model, that were begun."""
    begun_again: int = 0
    """Of these, such as had been under way at a kill: no state held their text."""
    stored_repeated: int = 0
    """Of these, such as a state already held the text of: none may be."""
    taken_over: int = 0
    """Sessions that found the lock of a dead one and went on."""
    stored_at_kills: list[int] = field(default_factory=list)
    """Texts of the model that the states held, at each kill."""
    wrong: list[str] = field(default_factory=list)
    """What is otherwise than it must be, a line each."""


# ---- one session ----------------------------------------------------------------------------------------------------


def session(place: Place, faults: FaultPlan, ready: Connection | None = None) -> None:
    """Work at the run until it is complete, or until a fault ends this process."""
    parts = drill_parts(place.calls)
    chosen = [problem for problem in parts.problems if not place.problems or problem.id in place.problems]
    # Each session says how many workers it has.
    with VerdictPool(workers=place.workers) as pool, redirect_stderr(io.StringIO()):
        pool.verify_many([{"response": r"\boxed{1}", "reference": "1"}], contract=parts.settings.contract)
        if ready is not None:
            ready.send(None)
        since = time.perf_counter()
        with open_store(place.run, run_settings(parts), kind=place.kind, faults=faults) as store:
            place.say(took_over=store.took_over is not None)
            states = solve_many(
                chosen,
                parts.generator,
                parts.toolbox,
                settings=parts.settings,
                store=store,
                pool=pool,
                faults=faults,
                width=TOGETHER,
            )
            complete = sum(1 for _ in states)
            set_aside = list(store.set_aside)
    visited = [point for point, _ in faults.visited]
    place.say(complete=complete, set_aside=set_aside, visited=visited, seconds=time.perf_counter() - since)


def run_settings(parts: Parts) -> dict[str, object]:
    """Sessions are forked, and so have the code of one process, whatever becomes of its files meanwhile."""
    return {**parts.run_settings, "code": "as loaded"}


def in_a_process(place: Place, faults: FaultPlan, delay: float | None = None) -> int:
    """The exit code of a session: 0, or -9 where it was killed; by us after `delay` seconds, if that is not None."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=session, args=(place, faults, sender))
    child.start()
    sender.close()
    try:
        if delay is not None:
            with suppress(EOFError):  # it ended before it was ready
                receiver.recv()
            time.sleep(delay)
            child.kill()
        child.join()
    finally:
        receiver.close()
    if child.exitcode not in (0, -SIGKILL):
        raise RuntimeError(f"a session at {place.folder} ended with exit code {child.exitcode}; see above")
    return child.exitcode


# ---- one run --------------------------------------------------------------------------------------------------------


def whole(place: Place) -> Whole:
    """Run without a fault, three times for the time it takes."""
    _ = drill_parts().run_settings  # costs a third of a second once, and nothing in processes forked after it
    seconds = []
    for number in range(3):
        one = place.inside(f"whole-{number}")
        one.folder.mkdir(parents=True)
        in_a_process(one, FaultPlan([Fault(point=NOWHERE, action=Action.KILL)]))
        said = lines(one.sessions)[-1]
        seconds.append(said["seconds"])
    return Whole(rows=final_rows(one), visited=said["visited"], seconds=min(seconds))


class Run:
    """One run that is killed and gone on with, and what is counted of it."""

    def __init__(self, place: Place, wanted: Whole, count: Count) -> None:
        place.folder.mkdir(parents=True)
        count.runs += 1
        self._place, self._wanted, self._count = place, wanted, count
        self._kills = 0
        self._stored: dict[str, int] = {}

    def go_on(self, faults: FaultPlan | None = None, delay: float | None = None) -> bool:
        """One session; whether it came to its end."""
        logged = len(lines(self._place.calls))
        killed = in_a_process(self._place, faults or FaultPlan(), delay) != 0
        self._count.sessions += 1
        for call in lines(self._place.calls)[logged:]:
            if call["turn"] < self._stored.get(call["problem"], 0):
                self._count.stored_repeated += 1
                self._wrong(f"asked again for turn {call['turn']} of {call['problem']}, which was stored")
        if killed:
            self._stored = turns(self._place)
            self._kills += 1
            self._count.kills += 1
            self._count.stored_at_kills.append(sum(self._stored.values()))
        return not killed

    def check(self) -> None:
        """After its end: compare with the undisturbed run."""
        calls = [(call["problem"], call["turn"]) for call in lines(self._place.calls)]
        again = len(calls) - len(set(calls))
        said = lines(self._place.sessions)
        self._count.calls += len(calls)
        self._count.begun_again += again
        self._count.taken_over += sum(entry.get("took_over", False) for entry in said)
        if again > self._kills:
            self._wrong(f"{again} calls begun again after {self._kills} kills")
        rows = final_rows(self._place)
        for problem in self._wanted.rows.keys() | rows.keys():
            if rows.get(problem) != self._wanted.rows.get(problem):
                self._wrong(f"another final state of {problem}")
        for line in found_set_aside(self._place):
            self._wrong(f"set aside: {line}")
        for path in self._place.run.rglob(f"{TEMPORARY}*"):
            self._wrong(f"left behind: {path.name}")

    def finish(self) -> None:
        """To the end, without a kill."""
        if not self.go_on():
            self._wrong("killed, by nobody here")
        self.check()

    def _wrong(self, what: str) -> None:
        self._count.wrong.append(f"{self._place.folder.name}: {what}")


def comparable(value: Any) -> Any:
    """A state without what differs from run to run: times, and how often a step was begun again."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in NOT_COMPARED}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def final_rows(place: Place) -> dict[str, Row]:
    with read_store(place.run) as store:
        return {row["problem"]["id"]: comparable(row) for row in store.rows()}


def turns(place: Place) -> dict[str, int]:
    """Texts of the model that each problem's state holds."""
    if not (place.run / RUN).exists():
        return {}
    with read_store(place.run) as store:
        return {row["problem"]["id"]: len(row["calls"]) + len(row["answers"]) for row in store.rows()}


def found_set_aside(place: Place) -> list[str]:
    """By any session, killed ones included, and by a reader now."""
    said = [line for entry in lines(place.sessions) for line in entry.get("set_aside", [])]
    folder = place.run / "set_aside"
    left = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    with read_store(place.run) as store:
        list(store.rows())
        return [*said, *left, *store.set_aside]


def lines(file: Path) -> list[dict[str, Any]]:
    """Rows of JSON; a last line without its end was being written at a kill, and does not count."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


# ---- many runs ------------------------------------------------------------------------------------------------------


def kills_at_points(place: Place, wanted: Whole, visits: int, count: Count) -> Iterator[tuple[str, int]]:
    """Kill at each point, and yield it with the visit's number, counted from 0, once its run was checked.

    place   its folder gets a folder for each run
    """
    plan = [
        (point, Action.KILL, skip) for point in dict.fromkeys(wanted.visited) for skip in spread(wanted, point, visits)
    ]
    plan += [(point, Action.TORN, skip) for point, _, skip in plan if point == TORN_POINT]
    for point, action, skip in plan:
        run = Run(place.inside(f"{point}-{action}-{skip}"), wanted, count)
        taken_over = count.taken_over
        if run.go_on(FaultPlan([Fault(point=point, action=action, skip=skip)])):
            count.wrong.append(f"{point}: was not passed {skip + 1} times")
        run.finish()
        if count.taken_over != taken_over + 1:
            count.wrong.append(f"{point}: the lock of the dead session was not found")
        yield point, skip


def texts(wanted: Whole) -> int:
    return sum(len(row["calls"]) + len(row["answers"]) for row in wanted.rows.values())


def spread(wanted: Whole, point: str, visits: int) -> list[int]:
    """So many visits of a point from the first to the last, by their numbers."""
    last = wanted.visited.count(point) - 1
    if visits == 1 or last == 0:
        return [last // 2]
    return sorted({round(last * step / (visits - 1)) for step in range(visits)})


def random_kills(place: Place, wanted: Whole, kills: int, seed: int, count: Count) -> Iterator[int]:
    """Kill at random moments, and yield the number of kills after each run."""
    draw = random.Random(seed)
    before = count.kills
    while (done := count.kills - before) < kills:
        run = Run(place.inside(f"random-{count.runs}"), wanted, count)
        for _ in range(SESSIONS):
            if count.kills - before == kills:
                run.finish()
                break
            if run.go_on(delay=draw.uniform(0, wanted.seconds)):
                run.check()
                break
        else:
            raise RuntimeError(f"{place.folder}: not complete after {SESSIONS} sessions")
        yield count.kills - before
    if done != kills:
        raise RuntimeError(f"{done} kills of {kills}")


# ---- the command ----------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="random kills of each store")
    parser.add_argument("--visits", type=int, default=3, help="visits of each named point that are killed; 0: none")
    parser.add_argument("--store", choices=get_args(Kind), help="this one alone")
    parser.add_argument("--workers", type=int, default=1, help="processes that verify; 0: the session itself")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    parser.add_argument("--folder", type=Path, help="on the disk to be tried; the system's temporary one if not set")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    options = parser.parse_args()
    try:
        for name in ("kills", "visits", "workers"):
            if getattr(options, name) < 0:
                raise ConfigError(f"--{name}: got {getattr(options, name)}, wanted 0 or more")
        if options.folder is not None and not options.folder.is_dir():
            raise ConfigError(f"--folder {options.folder}: no such folder; make it, or choose another")
        if not hasattr(os, "fork"):
            raise ConfigError("sessions are forked, which this system cannot do; run it on Linux or macOS")
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    console = Console(width=120)
    kinds = [options.store] if options.store else list(get_args(Kind))
    figures = [proof(kind, options, console) for kind in kinds]
    console.print(table(figures))
    for count in figures:
        for line in count.wrong:
            print(f"{count.store}, {line}", file=sys.stderr)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(count) for count in figures], indent=1) + "\n", encoding="utf-8")
    if any(count.wrong for count in figures):
        sys.exit(1)


def proof(kind: Kind, options: argparse.Namespace, console: Console) -> Count:
    """Every kill of one store."""
    count = Count(store=kind)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place = Place(folder=Path(folder), kind=kind, workers=options.workers)
        wanted = whole(place)
        points = len(set(wanted.visited))
        console.print(
            f"{kind}: an undisturbed run takes {wanted.seconds:.2f} s and passes {points} points "
            f"{len(wanted.visited)} times; the model writes {texts(wanted)} texts",
            highlight=False,
        )
        if options.visits:
            for _ in kills_at_points(place, wanted, options.visits, count):
                clear(place)
        console.print(f"{kind}: {count.kills} kills at named points", highlight=False)
        for _ in random_kills(place, wanted, options.kills, options.seed, count):
            clear(place)
    return count


def clear(place: Place) -> None:
    """Runs that were checked."""
    for folder in place.folder.iterdir():
        shutil.rmtree(folder)


def table(figures: Sequence[Count]) -> Table:
    shown = Table(title="The agent, killed and gone on with", title_justify="left")
    shown.add_column("")
    for count in figures:
        shown.add_column(count.store, justify="right")
    for name, words in (
        ("runs", "runs"),
        ("sessions", "sessions"),
        ("kills", "kills"),
        ("taken_over", "locks of the dead taken over"),
        ("calls", "calls of the model"),
        ("begun_again", "  under way at a kill and begun again"),
        ("stored_repeated", "  repeated although stored"),
    ):
        shown.add_row(words, *(f"{getattr(count, name):,}" for count in figures))
    spans = [(min(at), statistics.median(at), max(at)) if (at := count.stored_at_kills) else () for count in figures]
    shown.add_row("texts stored at a kill: least, median, most", *(", ".join(f"{n:g}" for n in span) for span in spans))
    shown.add_row("otherwise than it must be", *(f"{len(count.wrong):,}" for count in figures))
    return shown


if __name__ == "__main__":
    main()
