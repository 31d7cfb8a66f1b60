"""Supervised children: an item that hangs or kills its process costs itself, and never the rest of its batch.

    with WorkerPool("package.module:function", workers=2, deadline_s=1.0) as pool:
        results = pool.run(items)          # Done or Lost, one an item, in order

Works where signals and `multiprocessing` do not: any thread, an event loop, a daemonic process, a forked child, a
script without a main guard, a Ray task. Children are started with `subprocess` (no fork of the caller, no second run of
its script) and end with it. Each child has a thread here that feeds it; one more thread looks at the deadlines.

Covered: endless loops in Python and in C, sleeping for ever, process death of any kind, exhausted memory, a child
killed from outside. Not covered: a child that starts children of its own; a hostile function (this is supervision of
our own code on hostile data, and no sandbox).
"""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from veriward.rewards.verdict import Outcome
from veriward.rewards.worker import encoded
from veriward.rewards.worker_process import (
    START_LIMIT_S,
    Blame,
    Died,
    Done,
    Orders,
    Raised,
    WorkerError,
    WorkerProcess,
    stamp_here,
)

__all__ = ["Batch", "Done", "Lost", "Result", "WorkerError", "WorkerPool"]

FAILED_STARTS = 3
"""Starts in a row after which it is no accident."""

LEAST_MEMORY_MB = 256
"""Address space that the interpreter and its libraries take by themselves."""

LARGEST_PIECE = 4 << 20
"""Bytes sent at a time, where it is more than one item."""

TURN, LONGEST_TURN = 3, 50
"""Chunks of one batch that a child takes in a row: while others wait, and at most. In between it may be replaced."""

MOST_AHEAD = 1 << 15
"""Bytes of items that a child is sent while it is busy: what it does not read must fit into its pipe."""

LARGEST_CHUNK = 64
"""Items sent at a time; a caller with few items waits for at most this many of another's."""

SMALLEST_CHUNK = 4
"""Where several children share a batch; each chunk costs a fifth of a millisecond."""

DEATHS = 2
"""Children that may die on an item before it is to blame. One death may be an accident, as memory that ran out
elsewhere; being killed from outside (SIGKILL) counts half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """An item without a value."""

    outcome: Outcome
    """TIMEOUT: not done at the deadline. CRASHED: children died on it, one after the other."""
    detail: str
    microseconds: int


Result = Done | Lost


def check_limits(deadline_s: float, memory_mb: int | None) -> None:
    """ValueError for numbers that no worker could live with."""
    if not isinstance(deadline_s, int | float) or not 0 < deadline_s <= 86_400:
        raise ValueError(f"deadline_s is a number of seconds above 0, got {deadline_s!r}")
    if memory_mb is not None and (not isinstance(memory_mb, int) or memory_mb < LEAST_MEMORY_MB):
        raise ValueError(f"memory_mb must be at least {LEAST_MEMORY_MB} MiB, got {memory_mb!r}")


class WorkerPool:
    """Child processes that run one function.

    function     'module:function': one JSON value in, one out; with a `setup` it is called once in each child, with
                 the setup's names, and returns that function
    workers      child processes at most, at least 1; started when they are needed
    deadline_s   seconds an item may take from the start of its work. Seconds by the clock on a machine with a processor
                 free; where a child waited for one, its own processor time counts, up to four deadlines by the clock
    memory_mb    address space of a child in MiB; None: no limit
    raises       ValueError for impossible numbers
    """

    def __init__(
        self,
        function: str,
        *,
        workers: int = 1,
        deadline_s: float = 1.0,
        memory_mb: int | None = 1024,
        setup: dict[str, Any] | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        check_limits(deadline_s, memory_mb)
        self._crew = _Crew(
            Orders(function=function, setup=setup, workers=workers, deadline_s=deadline_s, memory_mb=memory_mb)
        )
        self._end = weakref.finalize(self, self._crew.close)  # at garbage collection, or when the interpreter ends

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the children. Whoever waits for results gets a WorkerError."""
        self._end()

    def submit(self, items: Sequence[Any]) -> Batch:
        """Hand over items without waiting. TypeError and ValueError for what JSON cannot hold."""
        return self._crew.submit(items)

    def run(self, items: Sequence[Any]) -> list[Result]:
        """One result an item, in order. Raises WorkerError if the function raised."""
        batch = self.submit(items)
        try:
            return batch.results()
        finally:
            batch.abandon()

    @property
    def restarts(self) -> int:
        """Children that were replaced because they died or were killed."""
        return self._crew.restarts

    @property
    def unlimited(self) -> tuple[str, ...]:
        """What this system cannot limit, as 'memory'; known after the first start."""
        return self._crew.unlimited

    def pids(self) -> list[int]:
        """Process ids of the children that are there now."""
        return self._crew.pids()


class Batch:
    """Items on their way; made by `submit`."""

    def __init__(self, crew: _Crew, frames: Sequence[Any]) -> None:
        self._crew = crew
        self.items = frames
        self.found: list[Result | None] = [None] * len(frames)
        self.next = 0
        """The first item that no child has taken."""
        self.open = len(frames)
        """Items without a result."""
        self.failure: Exception | None = None
        self.finished = threading.Event()
        if not frames:
            self.finished.set()

    def results(self) -> list[Result]:
        """Wait for all of them. Raises WorkerError if the function raised."""
        while not self.finished.wait(1.0):  # a wait without end cannot be interrupted everywhere
            pass
        if self.failure is not None:
            raise self.failure
        return [result for result in self.found if result is not None]

    def abandon(self) -> None:
        """Nobody waits any more: what was not begun is not done."""
        self._crew.drop(self)

    def fail(self, failure: Exception) -> None:
        self.failure, self.next = failure, len(self.items)
        self.finished.set()


class _Crew:
    """What the threads of a pool share. It does not know its pool, so that a forgotten pool can be collected."""

    def __init__(self, orders: Orders) -> None:
        stamp_here()
        self.orders = orders
        self.restarts = 0
        self.unlimited: tuple[str, ...] = ()
        self._start_over()
        _CREWS.add(self)

    def _start_over(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Condition()
        self._batches: deque[Batch] = deque()
        self._members: list[_Member] = []
        self._resting = 0
        self._closed = self._watched = False
        self._at_work = threading.Event()

    def after_fork(self) -> None:
        """In a forked child: the children are the parent's, and so are the threads that fed them.

        Their pipes are closed here, or they would not see the parent's end while this process lives.
        """
        for member in self._members:
            member.let_go()
        self._start_over()

    def submit(self, items: Sequence[Any]) -> Batch:
        if os.getpid() != self._pid:  # forked by C code, which calls no hooks
            self.after_fork()
        batch = Batch(self, list(items))
        with self._lock:
            if self._closed:
                raise WorkerError("the pool is closed")
            if batch.items:
                self._hire(math.ceil(len(batch.items) / self.share(batch)))
                self._batches.append(batch)
                self._at_work.set()
                self._lock.notify_all()
        return batch

    def share(self, batch: Batch) -> int:
        """Items of a batch that a child takes next: fewer and fewer, so that all end at nearly the same time."""
        if self.orders.workers == 1:
            return LARGEST_CHUNK
        rest = len(batch.items) - batch.next
        return max(SMALLEST_CHUNK, min(LARGEST_CHUNK, math.ceil(rest / (1.2 * self.orders.workers))))

    def _hire(self, chunks: int) -> None:
        """Start threads for members, as many as there is work for. WorkerError where there is none and none starts."""
        try:
            if not self._watched:
                threading.Thread(target=self._watch, name="veriward-deadlines", daemon=True).start()
                self._watched = True
            while len(self._members) < self.orders.workers and self._resting < chunks:
                member = _Member(self)
                threading.Thread(target=member.serve, name="veriward-worker", daemon=True).start()
                self._members.append(member)
                self._resting += 1
        except RuntimeError as error:
            if not self._watched or not self._members:
                raise WorkerError(
                    f"no thread for a worker process can be started: {error}; or use workers=0"
                ) from error

    def take(self) -> tuple[Batch, range] | None:
        """The next items for a child; None when the pool is closed. Batches take turns."""
        with self._lock:
            while not self._closed:
                if self._batches:
                    batch = self._batches.popleft()
                    start, batch.next = batch.next, min(len(batch.items), batch.next + self.share(batch))
                    if batch.next < len(batch.items):
                        self._batches.append(batch)
                    self._resting -= 1
                    return batch, range(start, batch.next)
                if self._resting == len(self._members):
                    self._at_work.clear()
                self._lock.wait()
            return None

    def take_more(self, batch: Batch, taken: int) -> range:
        """The next few items of a batch for the child that is at work on it, unless it is the turn of others."""
        with self._lock:
            turn = TURN if len(self._batches) > 1 else LONGEST_TURN
            if self._closed or batch not in self._batches or taken >= turn:
                return range(0)
            start = batch.next
            end = min(len(batch.items), start + self.share(batch))
            batch.next = end
            if end == len(batch.items):
                self._batches.remove(batch)
            return range(start, end)

    def put(self, batch: Batch, count: int) -> None:
        """So many of its items have their results."""
        with self._lock:
            self._resting += 1
            batch.open -= count
            if not batch.open:
                batch.finished.set()

    def fail(self, batch: Batch, failure: Exception) -> None:
        with self._lock:
            self._resting += 1
            batch.fail(failure)
            if batch in self._batches:
                self._batches.remove(batch)

    def drop(self, batch: Batch) -> None:
        with self._lock:
            if not batch.finished.is_set():
                batch.fail(WorkerError("the batch was abandoned"))
            if batch in self._batches:
                self._batches.remove(batch)

    def _watch(self) -> None:
        tick = max(0.005, min(0.05, self.orders.deadline_s / 10))
        while not self._closed:
            self._at_work.wait()
            time.sleep(tick)
            for member in list(self._members):
                member.look_at_clock()

    def pids(self) -> list[int]:
        return [pid for member in self._members if (pid := member.pid) is not None]

    def close(self) -> None:
        if os.getpid() != self._pid:
            return  # the children are the parent's
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for batch in self._batches:
                batch.fail(WorkerError("the pool was closed"))
            self._batches.clear()
            self._at_work.set()
            self._lock.notify_all()
        for member in self._members:
            member.dismiss()

    @property
    def closed(self) -> bool:
        return self._closed


_CREWS: weakref.WeakSet[_Crew] = weakref.WeakSet()


def _forget_all() -> None:
    for crew in list(_CREWS):
        crew.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


class _Member:
    """One place in the crew: a thread that feeds a child, and starts the next when that one dies."""

    def __init__(self, crew: _Crew) -> None:
        self._crew = crew
        self._child: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None

    def serve(self) -> None:
        while (taken := self._crew.take()) is not None:
            batch, places = taken
            try:
                done = self._work(batch, places)
            except Exception as failure:  # noqa: BLE001  a thread has no one to raise to but its caller
                self._crew.fail(batch, failure)
                self._lose_child()  # it may be anywhere in what it was saying
            else:
                self._crew.put(batch, done)
            self._prepare_next()
        for child in (self._child, self._spare):
            if child is not None:
                child.end()

    def _work(self, batch: Batch, places: range) -> int:
        """Find results for these items, and return how many there were with those that were taken on the way."""
        rest = deque((place, encoded(batch.items[place])) for place in places)
        count, most, deaths = len(rest), len(rest), 0.0
        chunks, may_send_ahead = 1, True

        def more() -> list[bytes]:
            """The next items of this batch; none where it is the turn of another, or where they are long."""
            nonlocal count, chunks, may_send_ahead
            if not may_send_ahead:
                return []
            following = [(place, encoded(batch.items[place])) for place in self._crew.take_more(batch, chunks)]
            count += len(following)
            chunks += 1
            rest.extend(following)
            items = [item for _, item in following]
            may_send_ahead = sum(map(len, items)) <= MOST_AHEAD
            return items if may_send_ahead else []

        while rest and batch.failure is None:
            child = self._ready_child()
            piece = _piece(rest, most)
            may_send_ahead &= child.can_be_sent_ahead and len(piece) == len(rest)
            try:
                for result in child.ask(piece, more):
                    batch.found[rest.popleft()[0]] = result
                    deaths = 0.0
            except Raised as raised:
                item = _shortened(batch.items[rest[0][0]])
                raise WorkerError(f"{self._crew.orders.function} raised on {item}\n{raised}") from None
            except Died as died:
                self._child, may_send_ahead = None, False
                if self._crew.closed:
                    raise WorkerError("the pool was closed") from None
                self._crew.restarts += 1
                if died.blame is Blame.NOBODY or not rest:
                    continue
                suspect = rest[died.ahead]
                del rest[died.ahead]
                rest.appendleft(suspect)
                deaths += 1.0 if died.by_itself else 0.5
                if died.blame is Blame.BATCH and len(piece) > 1 and deaths >= DEATHS:
                    most, deaths = len(piece) // 2, 0.0  # together they are too much for it
                elif deaths >= DEATHS or (died.blame is Blame.ITEM and died.outcome is Outcome.TIMEOUT):
                    place, _ = rest.popleft()
                    batch.found[place] = Lost(outcome=died.outcome, detail=died.detail, microseconds=died.microseconds)
                    deaths = 0.0
        return count

    def _ready_child(self) -> WorkerProcess:
        """The child, or a fresh one in its place. Raises WorkerError where none starts."""
        if self._spare is not None and self._spare.has_spoken():
            worn, self._child, self._spare = self._child, self._spare, None
            if worn is not None:
                worn.end()
        failed, begun = 0, time.monotonic()
        while True:
            if self._child is not None and not self._child.is_alive():
                self._lose_child()
                self._crew.restarts += 1
            child = self._child = self._child or WorkerProcess(self._crew.orders)
            if self._crew.closed:
                raise WorkerError("the pool was closed")
            if child.is_ready:
                return child
            try:
                self._crew.unlimited = child.wait_until_ready()
            except Died as died:
                self._child = None
                failed += died.by_itself
                if failed >= FAILED_STARTS or time.monotonic() - begun > START_LIMIT_S:
                    raise WorkerError(f"no worker process starts: {died.detail}") from None

    def _lose_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def _prepare_next(self) -> None:
        """Start what will be needed: it does so while nobody waits for it."""
        if self._crew.closed:
            return
        with suppress(WorkerError):  # who needs it will be told
            if self._child is None:
                self._child = WorkerProcess(self._crew.orders)
            elif self._child.is_worn() and self._spare is None:
                self._spare = WorkerProcess(self._crew.orders)

    def look_at_clock(self) -> None:
        child = self._child
        if child is not None:
            child.look_at_clock()

    @property
    def pid(self) -> int | None:
        child = self._child
        return None if child is None else child.pid

    def dismiss(self) -> None:
        """Kill the children from another thread; the one that reads their pipes closes them."""
        for child in (self._child, self._spare):
            if child is not None:
                child.kill()

    def let_go(self) -> None:
        for child in (self._child, self._spare):
            if child is not None:
                child.let_go()


def _piece(rest: Iterable[tuple[int, bytes]], most: int) -> list[bytes]:
    """The first items that are sent together: not too many, and not too many bytes."""
    piece: list[bytes] = []
    room = LARGEST_PIECE
    for _, item in islice(rest, most):
        room -= len(item)
        if piece and room < 0:
            break
        piece.append(item)
    return piece


def _shortened(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 2_000 else f"{text[:1_500]}…{text[-400:]}"
