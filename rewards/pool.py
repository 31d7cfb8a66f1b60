"""Batches of verdicts, decided in supervised worker processes: no answer can stop, slow down or end its caller.

    with VerdictPool(workers=2) as pool:
        verdicts = pool.verify_many(rows)

The answer is extracted in the caller and only candidates go to a worker. An item that hangs is `timeout`, one that
kills its worker `crashed`; every other verdict of the batch is what it would have been. Equal work is done once: a
group of completions with one answer is one comparison, and the last comparisons and batches are remembered.

Reward functions and commands use `shared_pool`. `workers=0` decides in the caller's process, for debugging: the same
records, no deadline.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import Any, NamedTuple, Self

from veriward.rewards.chain import Job, decision_of, extraction_of, job_of, verdict_of
from veriward.rewards.contracts import DEFAULT, get_contract
from veriward.rewards.response import Completion
from veriward.rewards.task import Task
from veriward.rewards.verdict import Decision, Extraction, Outcome, Reason, Verdict
from veriward.rewards.verdict_metrics import VerdictMetrics
from veriward.rewards.wire import decision, question
from veriward.rewards.worker_pool import Batch, Lost, WorkerPool

DEADLINE_S = 1.0
MEMORY_MB = 1024

WARN_NOT_DECIDED = 0.2
"""Share of verdicts that say nothing about the answer, above which a loud line is printed."""

WORKERS_VARIABLE = "VERIWARD_WORKERS"
"""Environment variable with the number of worker processes, where none is given."""

REMEMBERED_BATCHES = 4
REMEMBERED_DECISIONS = 16_384
LONGEST_REMEMBERED = 500
"""Characters of candidate and reference above which a decision is not remembered."""

PIECE = 64
"""Comparisons that are sent while the rest of a batch is still being extracted."""

DECIDE = "veriward.rewards.wire:decide"


class _Memory:
    """A bounded mapping that drops what was not asked for longest; safe between threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        """None where nothing is kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Hashable, value: object) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)


class _Question(NamedTuple):
    """One comparison: what `decide` is asked."""

    candidate: str
    task: Task
    flags: tuple[str, ...]

    @property
    def is_short(self) -> bool:
        return len(self.candidate) <= LONGEST_REMEMBERED and len(self.task.reference) <= LONGEST_REMEMBERED


class _Decided(NamedTuple):
    decision: Decision
    microseconds: int


class VerdictPool:
    """Verdicts from worker processes.

    workers      processes at most; None: the environment's VERIWARD_WORKERS, or else 1; capped at the cores of this
                 machine divided by the ranks on it; 0: decide in this process, without a deadline
    deadline_s   seconds a comparison may take from the start of its work (`WorkerPool`)
    memory_mb    address space of a worker in MiB
    function     what the workers run, as 'module:function'; for tests
    raises       ValueError for impossible numbers
    """

    def __init__(
        self,
        workers: int | None = None,
        deadline_s: float = DEADLINE_S,
        memory_mb: int = MEMORY_MB,
        *,
        warn_not_decided: float = WARN_NOT_DECIDED,
        function: str = DECIDE,
    ) -> None:
        self.workers = capped(workers_wanted() if workers is None else workers)
        self.deadline_s, self.memory_mb, self.warn_not_decided = deadline_s, memory_mb, warn_not_decided
        self._workers = (
            WorkerPool(function, workers=self.workers, deadline_s=deadline_s, memory_mb=memory_mb)
            if self.workers
            else None
        )
        self.metrics = VerdictMetrics()
        self._announced = False
        self._start_over()
        _POOLS.add(self)

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._decisions = _Memory(REMEMBERED_DECISIONS)
        self._batches = _Memory(REMEMBERED_BATCHES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes. They also end with the interpreter, or when the pool is forgotten."""
        if self._workers is not None:
            self._workers.close()

    @property
    def restarts(self) -> int:
        """Worker processes that were replaced because they died or were killed."""
        return 0 if self._workers is None else self._workers.restarts

    def pids(self) -> list[int]:
        """Process ids of the workers that are there now."""
        return [] if self._workers is None else self._workers.pids()

    def to_dict(self) -> dict[str, float]:
        """The metrics of all verdicts so far, for a logger; the same keys every time."""
        return self.metrics.to_dict(restarts=self.restarts)

    def line(self) -> str:
        """The metrics of all verdicts so far, for a person."""
        return self.metrics.line(restarts=self.restarts)

    def verify_many(self, rows: Iterable[Mapping[str, Any]], *, contract: str = DEFAULT) -> list[Verdict]:
        """One verdict per row, in order; `verify_many` below says what a row is.

        raises   TypeError and ValueError with the number of the row for wiring mistakes; WorkerError, with the item,
                 for a bug of ours
        """
        jobs = []
        for place, row in enumerate(rows):
            try:
                jobs.append(job_of(row, contract))
            except (TypeError, ValueError) as error:
                raise type(error)(f"row {place}: {error}") from error
        key = (tuple(jobs), contract)
        verdicts: tuple[Verdict, ...] | None = self._batches.get(key)
        if verdicts is None:
            verdicts = self._verify(jobs, contract)
            self._batches.put(key, verdicts)
            self._count(verdicts)
        return list(verdicts)

    def _verify(self, jobs: Sequence[Job], contract: str) -> tuple[Verdict, ...]:
        extracted: dict[Job, tuple[Extraction, int]] = {}
        asked = _Asked(self._workers, contract)
        decided: dict[_Question, _Decided] = {}
        try:
            for job in jobs:
                if job in extracted:
                    continue
                started = perf_counter_ns()
                extraction = extraction_of(job, contract)
                extracted[job] = extraction, (perf_counter_ns() - started) // 1_000
                asks = _question(job, extraction)
                if asks is not None and asks not in decided and asks not in asked:
                    known = self._decisions.get((contract, asks)) if asks.is_short else None
                    if known is None:
                        asked.add(asks)
                    else:
                        decided[asks] = known
            asked.send()
            # It takes as long, the first time, as a worker takes to start: the workers start meanwhile.
            _ = get_contract(contract).fingerprint
            for asks, found in asked.answers():
                decided[asks] = found
                if asks.is_short and not _is_lost(found.decision):
                    self._decisions.put((contract, asks), _Decided(found.decision, 0))
        finally:
            asked.abandon()
        made = {
            job: _verdict(job, extraction, decided, contract, microseconds)
            for job, (extraction, microseconds) in extracted.items()
        }
        return tuple(made[job] for job in jobs)

    def _count(self, verdicts: Sequence[Verdict]) -> None:
        lines = []
        with self._lock:
            self.metrics.add(verdicts)
            warning = self.metrics.warning(self.warn_not_decided)
            if not self._announced and self.pids():
                self._announced = True
                lines += self._announcement()
        for line in [*lines, *([warning] if warning else [])]:
            _say(line)

    def _announcement(self) -> list[str]:
        if os.environ.get("LOCAL_RANK", "0") != "0" or self._workers is None:
            return []
        each = f"verdicts run in {self.workers} worker process{'es' if self.workers > 1 else ''}"
        ranks = local_ranks()
        where = f" for each of the {ranks} processes on this machine" if ranks > 1 else ""
        lines = [f"{each}{where}, limited to {self.memory_mb} MiB{' each' if self.workers > 1 else ''}"]
        if self._workers.unlimited:
            missing = " and ".join(self._workers.unlimited)
            lines.append(f"this system cannot limit the {missing} of a process; the deadline holds all the same")
        return lines


def _say(line: str) -> None:
    """A line for the person who watches. Where nobody can read it, no verdict is lost over it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"veriward: {line}", file=sys.stderr, flush=True)


class _Asked:
    """The comparisons of one batch that somebody has to make: workers while the caller goes on, or the caller."""

    def __init__(self, workers: WorkerPool | None, contract: str) -> None:
        self._workers, self._contract = workers, contract
        self._known: set[_Question] = set()
        self._piece: list[_Question] = []
        self._sent: list[tuple[list[_Question], Batch]] = []

    def __contains__(self, asks: _Question) -> bool:
        return asks in self._known

    def add(self, asks: _Question) -> None:
        self._known.add(asks)
        self._piece.append(asks)
        if len(self._piece) >= PIECE:
            self.send()

    def send(self) -> None:
        if self._workers is not None and self._piece:
            items = [question(*asks, self._contract) for asks in self._piece]
            self._sent.append((self._piece, self._workers.submit(items)))
            self._piece = []

    def answers(self) -> Iterable[tuple[_Question, _Decided]]:
        for piece, batch in self._sent:
            for asks, result in zip(piece, batch.results(), strict=True):
                if isinstance(result, Lost):
                    yield asks, _Decided(_lost(result, asks.task), result.microseconds)
                else:
                    yield asks, _Decided(decision(result.value), result.microseconds)
        for asks in self._piece:
            started = perf_counter_ns()
            found = get_contract(self._contract).decide(*asks)
            yield asks, _Decided(found, (perf_counter_ns() - started) // 1_000)

    def abandon(self) -> None:
        for _, batch in self._sent:
            batch.abandon()


def _question(job: Job, extraction: Extraction) -> _Question | None:
    return None if extraction.candidate is None else _Question(extraction.candidate, job.task, extraction.flags)


def _verdict(
    job: Job, extraction: Extraction, decided: Mapping[_Question, _Decided], contract: str, microseconds: int
) -> Verdict:
    asks = _question(job, extraction)
    if asks is None:
        return verdict_of(job, extraction, decision_of(extraction, job.task, contract), contract, microseconds)
    found = decided[asks]
    return verdict_of(job, extraction, found.decision, contract, microseconds + found.microseconds)


def _lost(result: Lost, task: Task) -> Decision:
    late = result.outcome is Outcome.TIMEOUT
    return Decision(
        outcome=result.outcome,
        reason=Reason.TIME_LIMIT if late else Reason.WORKER_DIED,
        method=None,
        answer_type=task.answer_type,
        verifier_called=True,
    )


def _is_lost(found: Decision) -> bool:
    """It says something about this machine at this moment, and is asked again next time."""
    return found.outcome in (Outcome.TIMEOUT, Outcome.CRASHED)


_POOLS: weakref.WeakSet[VerdictPool] = weakref.WeakSet()


def _after_fork() -> None:
    """A lock that another thread held when the process was forked would never be given back."""
    for pool in list(_POOLS):
        pool._start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def verify_many(
    rows: Iterable[Mapping[str, Any]], *, contract: str = DEFAULT, pool: VerdictPool | None = None
) -> list[Verdict]:
    """One verdict per row, in order; equal work is done once, and the last batches are remembered.

    A trainer calls every reward function with the same batch, so the second and later calls cost a look-up.

    rows     mappings with `reference` and either `response` (text or chat messages) or, for a bare answer,
             `prediction`; optional `answer_type`, `options`, `truncated`; other keys are not looked at
    pool     where the comparisons are made; None: the shared pool of this process
    raises   TypeError and ValueError with the number of the row for wiring mistakes
    """
    return (shared_pool() if pool is None else pool).verify_many(rows, contract=contract)


def verify_batch(
    completions: Sequence[Completion],
    references: Sequence[str],
    *,
    contract: str = DEFAULT,
    truncated: Sequence[bool] | None = None,
    pool: VerdictPool | None = None,
) -> list[Verdict]:
    """`verify_many` in a trainer's shape: (B,) completions, (B,) references and, where known, (B,) cut-off marks.

    raises   ValueError if the lengths differ
    """
    cut = [False] * len(completions) if truncated is None else truncated
    if not len(completions) == len(references) == len(cut):
        raise ValueError(
            f"a batch has one reference per completion: got {len(completions)} completions, "
            f"{len(references)} references, {len(cut)} truncated marks"
        )
    rows = [
        {"response": completion, "reference": reference, "truncated": bool(mark)}
        for completion, reference, mark in zip(completions, references, cut, strict=True)
    ]
    return verify_many(rows, contract=contract, pool=pool)


def shared_pool(
    workers: int | None = None,
    deadline_s: float = DEADLINE_S,
    memory_mb: int = MEMORY_MB,
    warn_not_decided: float = WARN_NOT_DECIDED,
) -> VerdictPool:
    """The pool of this process with these settings: made once, shared by all who ask for it, ended with the process."""
    settings = (workers, deadline_s, memory_mb, warn_not_decided)
    found = _SHARED.get(settings)
    if found is None:  # of two threads that come first, one makes a pool that is never used and starts no process
        made = VerdictPool(workers, deadline_s, memory_mb, warn_not_decided=warn_not_decided)
        found = _SHARED.setdefault(settings, made)
    return found


_SHARED: dict[tuple[int | None, float, int, float], VerdictPool] = {}


def workers_wanted() -> int:
    """What the environment says, or one. ValueError where it says no number."""
    text = os.environ.get(WORKERS_VARIABLE) or "1"
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{WORKERS_VARIABLE} is a number of processes, 0 or more; got {text!r}")
    return int(text)


def capped(workers: int) -> int:
    """No more workers than there are cores for each process of a job on this machine, and at least one if any."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 0:
        raise ValueError(f"workers is a whole number, 0 (in this process) or more; got {workers!r}")
    return min(workers, max(1, cores() // local_ranks()))


def cores() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local_ranks() -> int:
    """Processes of a distributed job on this machine."""
    text = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return max(1, int(text)) if text.isascii() and text.isdigit() else 1
