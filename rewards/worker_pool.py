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
import select
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Self

from veriward.rewards.verdict import Outcome
from veriward.rewards.worker import OUT_OF_MEMORY, Channel, frame, rules_stamp

START_LIMIT_S = 60.0
"""Seconds in which a child must have started."""

FAILED_STARTS = 3
"""Starts in a row after which it is no accident."""

LEAST_MEMORY_MB = 256
"""Address space that the interpreter and its libraries take by themselves."""

LARGEST_CHUNK = 64
"""Items sent at a time; a caller with few items waits for at most this many of another's."""

DEATHS = 2
"""Children that may die on an item before it is to blame. One death may be an accident, as memory that ran out
elsewhere; being killed from outside (SIGKILL) counts half."""

RECYCLE_AFTER = 50_000
"""Items after which a child makes room for a fresh one."""

OVERLOAD = 4
"""A child that got no processor may take this many deadlines by the clock, and never more than one of its own time."""

BOOT = "import sys; sys.path += sys.argv[1:]; from veriward.rewards.worker import main; sys.exit(main())"
"""What a child runs. The caller's import path comes behind its own: `-P` keeps the working folder off it, and put in
front, a file called json.py beside a user's script would be imported in place of the library's."""

CPU_LIMIT = -24
"""Exit status of a process that used up its processor time (SIGXCPU)."""

KILLED = -9

HANDED_ON = (
    *("PATH", "HOME", "USER", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"),
)
"""What a child sees of its caller's environment."""


class WorkerError(RuntimeError):
    """The function raised, or no child can be started: a fault of the program, never of an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What the function returned."""

    value: Any
    microseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """An item without a value."""

    outcome: Outcome
    """TIMEOUT: not done at the deadline. CRASHED: children died on it, one after the other."""
    detail: str
    microseconds: int


Result = Done | Lost


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
        if not 0 < deadline_s <= 86_400:
            raise ValueError(f"deadline_s is a number of seconds above 0, got {deadline_s}")
        if memory_mb is not None and memory_mb < LEAST_MEMORY_MB:
            raise ValueError(f"memory_mb must be at least {LEAST_MEMORY_MB} MiB, got {memory_mb}")
        self._crew = _Crew(
            _Orders(function=function, setup=setup, workers=workers, deadline_s=deadline_s, memory_mb=memory_mb)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Orders:
    """What a pool was made with."""

    function: str
    setup: dict[str, Any] | None
    workers: int
    deadline_s: float
    memory_mb: int | None


class _Crew:
    """What the threads of a pool share. It does not know its pool, so that a forgotten pool can be collected."""

    def __init__(self, orders: _Orders) -> None:
        _stamp_here()
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
        self._closed = False
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
                self._batches.append(batch)
                self._hire(math.ceil(len(batch.items) / self.share(batch)))
                self._at_work.set()
                self._lock.notify_all()
        return batch

    def share(self, batch: Batch) -> int:
        """Items of a batch that a child takes at a time."""
        return max(1, min(LARGEST_CHUNK, math.ceil(len(batch.items) / (2 * self.orders.workers))))

    def _hire(self, chunks: int) -> None:
        if not self._members:
            threading.Thread(target=self._watch, name="veriward-deadlines", daemon=True).start()
        while len(self._members) < self.orders.workers and self._resting < chunks:
            member = _Member(self)
            self._members.append(member)
            self._resting += 1
            threading.Thread(target=member.serve, name="veriward-worker", daemon=True).start()

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

    def put(self, batch: Batch, places: range) -> None:
        """These items have their results."""
        with self._lock:
            self._resting += 1
            batch.open -= len(places)
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
            batch.next = len(batch.items)
            if batch in self._batches:
                self._batches.remove(batch)

    def _watch(self) -> None:
        tick = min(0.05, self.orders.deadline_s / 10)
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

    def check_stamp(self, stamp: str) -> None:
        if stamp != _stamp_here():
            raise WorkerError(
                "the source files of veriward.rewards changed on disk since this process read them, so a new worker "
                "would decide by other rules; start the run again"
            )


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
        self._child: _Child | None = None
        self._spare: _Child | None = None
        self._started = False

    def serve(self) -> None:
        while (taken := self._crew.take()) is not None:
            batch, places = taken
            try:
                self._work(batch, places)
            except Exception as failure:  # noqa: BLE001  a thread has no one to raise to but its caller
                self._crew.fail(batch, failure)
            else:
                self._crew.put(batch, places)
            if self._child is None and not self._crew.closed:
                self._child = _Child(self._crew.orders)  # it starts while nobody waits for it
        for child in (self._child, self._spare):
            if child is not None:
                child.end()

    def _work(self, batch: Batch, places: range) -> None:
        rest = deque(places)
        deaths = 0.0
        while rest and batch.failure is None:
            child = self._ready_child()
            try:
                for result in child.ask([batch.items[place] for place in rest]):
                    batch.found[rest.popleft()] = result
                    deaths = 0.0
            except _Raised as raised:
                item = _shortened(batch.items[rest[0]])
                raise WorkerError(f"{self._crew.orders.function} raised on {item}\n{raised}") from None
            except _Died as died:
                self._child = None
                self._replaced()
                deaths += died.at_work * (1.0 if died.by_itself else 0.5)
                if died.at_work and rest and (died.outcome is Outcome.TIMEOUT or deaths >= DEATHS):
                    batch.found[rest.popleft()] = Lost(
                        outcome=died.outcome, detail=died.detail, microseconds=died.microseconds
                    )
                    deaths = 0.0
            else:
                if child.is_worn():
                    threading.Thread(target=self._prepare_spare, name="veriward-spare", daemon=True).start()

    def _replaced(self) -> None:
        if self._crew.closed:
            raise WorkerError("the pool was closed")
        self._crew.restarts += 1

    def _ready_child(self) -> _Child:
        """The child, or a fresh one in its place. Raises WorkerError where none starts."""
        if self._spare is not None:
            worn, self._child, self._spare = self._child, self._spare, None
            if worn is not None:
                worn.end()
        failed, begun = 0, time.monotonic()
        while True:
            if self._child is not None and not self._child.is_alive():
                self._child.end()
                self._child = None
            child = self._child = self._child or _Child(self._crew.orders)
            if self._crew.closed:
                raise WorkerError("the pool was closed")
            if child.is_ready:
                return child
            try:
                child.wait_until_ready(self._crew)
            except _Died as died:
                self._child = None
                failed += died.by_itself
                if failed >= FAILED_STARTS or time.monotonic() - begun > START_LIMIT_S:
                    raise WorkerError(f"no worker process starts: {died.detail}") from None

    def _prepare_spare(self) -> None:
        spare = _Child(self._crew.orders)
        try:
            spare.wait_until_ready(self._crew)
        except (_Died, WorkerError):
            return  # the worn one goes on; where none starts any more, its own end will say so
        self._spare = spare
        if self._crew.closed:
            spare.end()

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


class _Raised(Exception):  # noqa: N818  it carries a traceback from the child, and never leaves this module
    """The function raised."""


class _Died(Exception):  # noqa: N818  never leaves this module
    """The child is gone."""

    def __init__(self, outcome: Outcome, detail: str, *, at_work: bool, by_itself: bool, microseconds: int) -> None:
        super().__init__(detail)
        self.outcome, self.detail = outcome, detail
        self.at_work = at_work
        """It had begun the first item without a result."""
        self.by_itself = by_itself
        """Nobody killed it from outside."""
        self.microseconds = microseconds


class _Child:
    """One process, from its start to its end."""

    def __init__(self, orders: _Orders) -> None:
        self._orders = orders
        self._lock = threading.Lock()
        self._due: float | None = time.monotonic() + START_LIMIT_S
        self._since = 0.0
        self._cpu = 0.0
        self._begun = False
        self._answered = 0
        self._late: int | None = None
        """How many items were answered when the clock ran out."""
        self._total = 0
        self.is_ready = False
        self._resident = 0.0
        self._errors = _error_file()
        if not sys.executable:
            raise WorkerError("this Python names no interpreter to start workers with; use workers=0")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOT, *_import_path()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors or subprocess.DEVNULL,
                env=_environment(),
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"{sys.executable} cannot be started: {error.strerror}") from error
        self._pipes = [pipe for pipe in (self._process.stdin, self._process.stdout) if pipe is not None]
        self._channel = Channel(self._pipes[1].fileno(), self._pipes[0].fileno())

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self, crew: _Crew) -> None:
        """Raises _Died, or WorkerError where the function cannot be imported."""
        orders = self._orders
        try:
            self._channel.write(
                {
                    "function": orders.function,
                    "setup": orders.setup,
                    "deadline_s": orders.deadline_s,
                    "memory_mb": orders.memory_mb,
                }
            )
            word, *content = self._channel.read()
        except (EOFError, OSError):
            raise self._death() from None
        with self._lock:
            self._due = None
        if word == "failed":
            self.kill()
            raise WorkerError(f"{orders.function} cannot be loaded in a worker process\n{content[0]}")
        crew.unlimited = tuple(content[0])
        crew.check_stamp(content[1])
        self.is_ready = True

    def ask(self, items: Sequence[Any]) -> Iterator[Done]:
        """Yield one Done an item. Raises _Died, or _Raised where the function raised."""
        data = frame(items)
        self._begun, self._answered = False, 0
        self._set_clock(self._cpu, START_LIMIT_S)  # it is waiting for work; only a frozen machine takes longer
        try:
            self._channel.write_bytes(data)
            _, cpu = self._channel.read()
            self._begun = True
            self._set_clock(cpu)
            for _ in items:
                word, value, *rest = self._channel.read()
                if word == "raised":
                    self._stop_clock()
                    self.kill()
                    raise _Raised(value)
                self._answered += 1
                self._set_clock(rest[1])
                yield Done(value=value, microseconds=rest[0])
            _, self._resident = self._channel.read()
        except (EOFError, OSError):
            raise self._death() from None
        self._total += len(items)
        self._stop_clock()

    def _set_clock(self, cpu: float, seconds: float | None = None) -> None:
        with self._lock:
            self._since, self._cpu = time.monotonic(), cpu
            self._due = self._since + (self._orders.deadline_s if seconds is None else seconds)

    def _stop_clock(self) -> None:
        with self._lock:
            self._due = None

    def look_at_clock(self) -> None:
        """Kill it if its item is late; one that waited for a processor gets the processor time that is left.

        Where an answer lies in the pipe it is this process that is late, and has not read it.
        """
        with self._lock:
            now = time.monotonic()
            if self._due is None or now < self._due:
                return
            deadline = self._orders.deadline_s
            if _can_be_read(self._pipes[1]):
                self._due = now + deadline
                return
            if self._begun and now - self._since < OVERLOAD * deadline:
                used = _processor_time(self.pid)
                left = 0.0 if used is None else deadline - (used - self._cpu)
                if left > 0.1 * deadline:
                    self._due = now + left
                    return
            self._due, self._late = None, self._answered
        self._process.kill()

    def _death(self) -> _Died:
        """What became of a process whose pipe is closed."""
        self._stop_clock()
        try:
            code = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        late = self._late == self._answered or code == CPU_LIMIT
        at_work = self._begun and (late or self._late is None)
        cause = self._cause(code)
        if late:
            cause = f"no end within {self._orders.deadline_s if self._begun else START_LIMIT_S:g} s"
        self._close()
        return _Died(
            Outcome.TIMEOUT if late else Outcome.CRASHED,
            cause,
            at_work=at_work,
            by_itself=code != KILLED,
            microseconds=int((time.monotonic() - self._since) * 1e6) if at_work else 0,
        )

    def _cause(self, code: int) -> str:
        if code == OUT_OF_MEMORY:
            return f"out of memory ({self._orders.memory_mb} MiB)"
        return f"the process ended with {f'signal {-code}' if code < 0 else f'code {code}'}{self._last_words()}"

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        try:
            self._errors.seek(0)
            lines = self._errors.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
        except (OSError, ValueError):
            return ""
        return f": {lines[-1][:200]}" if lines else ""

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def is_worn(self) -> bool:
        memory = self._orders.memory_mb
        return self._total >= RECYCLE_AFTER or (memory is not None and self._resident > memory / 2)

    def kill(self) -> None:
        """Stop the process, whatever it does."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # the kernel holds it; to us it is dead
            self._process.wait(timeout=5.0)

    def end(self) -> None:
        """Stop the process and close its pipes; only where nobody reads them."""
        self.kill()
        self._close()

    def let_go(self) -> None:
        """In a forked process: close the pipes and leave the child to its parent."""
        self._process.returncode = 0  # not ours to wait for
        self._close()

    def _close(self) -> None:
        for file in (*self._pipes, self._errors):
            if file is not None:
                with suppress(OSError):
                    file.close()


def _error_file() -> IO[bytes] | None:
    """Where a child's last words go. None where there is no room for such a file: they are then lost.

    The caller's own error stream is not handed on: who waits for that to end would wait for the children too.
    """
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return None


def _environment() -> dict[str, str]:
    found = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
    return {**found, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


def _import_path() -> list[str]:
    """The caller's import path, for packages that were put there by hand or by a cluster's run time."""
    found = []
    for entry in sys.path:
        with suppress(OSError):  # a relative entry in a folder that is gone
            found.append(os.path.abspath(entry))
    return found


def _can_be_read(pipe: IO[bytes]) -> bool:
    """Something lies in the pipe, or it was closed at the other end. False where a system cannot tell."""
    if not hasattr(select, "poll"):
        return False
    with suppress(OSError, ValueError):  # the thread that reads it has closed it
        asked = select.poll()
        asked.register(pipe, select.POLLIN)
        return bool(asked.poll(0))
    return False


def _processor_time(pid: int) -> float | None:
    """Processor seconds that a process has used, if it is running or waits for a processor or disk; else None."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK") if state in "RD" else None


@cache
def _stamp_here() -> str:
    return rules_stamp()


def _shortened(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 2_000 else f"{text[:1_500]}…{text[-400:]}"
