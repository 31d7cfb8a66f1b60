"""One child process of a pool, seen from its parent: start, questions, clock, death."""

from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from veriward.rewards.verdict import Outcome
from veriward.rewards.worker import OUT_OF_MEMORY, Channel, Progress, frame, rules_stamp

START_LIMIT_S = 60.0
"""Seconds in which a child must have started."""

RECYCLE_AFTER = 50_000
"""Items after which a child makes room for a fresh one."""

PATIENCE_S = 10.0
"""Seconds in which a system that is short of processes, memory or descriptors may have some again."""

SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

NEARLY_DONE = 8
"""Items before the end of its work at which a child is sent more: near a millisecond."""

OVERLOAD = 4
"""A child that got no processor may take this many deadlines by the clock, and never more than one of its own time."""

BOOT = "import sys; sys.path += sys.argv[1:]; from veriward.rewards.worker import main; sys.exit(main())"
"""What a child runs. The caller's import path comes behind its own: `-P` keeps the working folder off it, and put in
front, a file called json.py beside a user's script would be imported in place of the library's."""

CPU_LIMIT = -24
"""Exit status of a process that used up its processor time (SIGXCPU)."""

KILLED = -9

DEPTH_VARIABLE = "VERIWARD_WORKER_DEPTH"
DEEPEST = 2
"""Workers may have workers, as a reward function that is attacked; a module that makes a pool when it is imported would
have them without end."""

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
class Orders:
    """What a pool was made with."""

    function: str
    setup: dict[str, Any] | None
    workers: int
    deadline_s: float
    memory_mb: int | None


class Raised(Exception):  # noqa: N818  it carries a traceback from the child, and never leaves this module
    """The function raised."""


class Blame(StrEnum):
    """What a child may have died of."""

    ITEM = "item"
    """It was at work on one."""
    BATCH = "batch"
    """It had not begun any: it was reading them, or preparing for them."""
    NOBODY = "nobody"
    """Its answer came as it was killed for being late."""


class Died(Exception):  # noqa: N818  a message within the package
    """The child is gone."""

    def __init__(
        self, outcome: Outcome, detail: str, *, blame: Blame, ahead: int, by_itself: bool, microseconds: int
    ) -> None:
        super().__init__(detail)
        self.outcome, self.detail, self.blame = outcome, detail, blame
        self.ahead = ahead
        """Items without a result that were done before the one in work: their values had not left yet."""
        self.by_itself = by_itself
        """Nobody killed it from outside."""
        self.microseconds = microseconds


class WorkerProcess:
    """One process, from its start to its end."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._lock = threading.Lock()
        self._due: float | None = time.monotonic() + START_LIMIT_S
        self._since = 0.0
        self._cpu = 0.0
        self._batch = 0
        """Number of the first batch that is not wholly answered, counted from 1."""
        self._begun = False
        """The child is at work on an item of it."""
        self._answered = 0
        """Items of it."""
        self._late: tuple[int, int] | None = None
        """How many items were answered when the clock ran out."""
        self._total = 0
        self.is_ready = False
        self._resident = 0.0
        self._unresponsive = False
        """It closed its end of the pipe, and had to be killed."""
        self._errors = _error_file()
        self._progress, shared = _shared_progress()
        self._life, life = _life_line()
        handed = [descriptor for descriptor in (shared, life) if descriptor is not None]
        try:
            self._process, self._link = _started(self._errors, handed)
        finally:
            for descriptor in handed:
                os.close(descriptor)
        self._channel = Channel(self._link.source, self._link.send, self._wait)
        with suppress(OSError):  # it is gone already: whoever waits for it will see that
            self._channel.write(
                {
                    "function": orders.function,
                    "setup": orders.setup,
                    "deadline_s": orders.deadline_s,
                    "memory_mb": orders.memory_mb,
                    "progress": shared,
                    "life": life,
                }
            )

    @property
    def can_be_sent_ahead(self) -> bool:
        """It says which item it is at, so that items of several batches can be told apart."""
        return self._progress is not None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> tuple[str, ...]:
        """What this system cannot limit. Raises Died, or WorkerError where it can be no worker of this process."""
        try:
            word, *content = self._channel.read()
        except (EOFError, OSError):
            raise self._death() from None
        with self._lock:
            self._due = None
        if word == "failed":
            self.kill()
            raise WorkerError(f"{self._orders.function} cannot be loaded in a worker process\n{content[0]}")
        unlimited, stamp = content
        if stamp != stamp_here():
            raise WorkerError(
                "the source files of veriward.rewards changed on disk since this process read them, so a new worker "
                "would decide by other rules; start the run again"
            )
        self.is_ready = True
        return tuple(unlimited)

    def ask(self, items: Sequence[bytes], more: Callable[[], Sequence[bytes]]) -> Iterator[Done]:
        """Yield one Done an item, each of them JSON. Raises Died, or Raised where the function raised.

        more   further items, asked for shortly before these are done, so that the child need not wait for them
        """
        waiting = deque([len(items)])
        """Items of each batch that the child has been sent and not answered."""
        self._clock_for_next_batch()
        try:
            self._channel.write_bytes(_batch(items))
            while waiting:
                word, *content = self._channel.read()
                if word == "raised":
                    raise Raised(content[0])
                if word == "begun":
                    self._begun = True
                    self._set_clock(self._cpu)
                    continue
                values, cpu, resident = content
                self._answered += len(values)
                waiting[0] -= len(values)
                if waiting[0]:
                    self._begun = True
                    self._set_clock(cpu)
                else:
                    waiting.popleft()
                    self._resident, self._cpu = resident, cpu
                    if waiting:
                        self._clock_for_next_batch()
                    else:
                        self._stop_clock()
                self._total += len(values)
                for value, microseconds in values:
                    yield Done(value=value, microseconds=microseconds)
                if sum(waiting) <= NEARLY_DONE and len(waiting) < 2:
                    following = more()
                    if following:
                        if not waiting:
                            self._clock_for_next_batch()
                        waiting.append(len(following))
                        self._channel.write_bytes(_batch(following))
        except (EOFError, OSError):
            raise self._death() from None

    def _clock_for_next_batch(self) -> None:
        """It is waiting for work, or preparing for it: only a frozen machine takes longer than a start may."""
        self._batch += 1
        self._begun, self._answered = False, 0
        self._set_clock(self._cpu, START_LIMIT_S)

    def _wait(self) -> None:
        """Until there is something to read. A process that the caller forked may hold the child's end open."""
        while not _can_be_read(self._link.source, 200):
            if self._process.poll() is not None and not _can_be_read(self._link.source, 0):
                raise EOFError

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
            if self._due is None:
                return
            if not self._begun and self._place() is not None:
                self._begun = True
                self._since, self._due = now, now + self._orders.deadline_s
                self._cpu = _processor_time(self.pid) or self._cpu
            if now < self._due:
                return
            if not self.is_alive():
                self._due = None  # whoever reads its answers sees that
                return
            deadline = self._orders.deadline_s
            if _can_be_read(self._link.source, 0):
                self._due = now + deadline
                return
            if self._begun and now - self._since < OVERLOAD * deadline:
                used = _processor_time(self.pid)
                left = 0.0 if used is None else deadline - (used - self._cpu)
                if left > 0.1 * deadline:
                    self._due = now + left
                    return
            self._due, self._late = None, (self._batch, self._answered)
        self._process.kill()

    def _place(self) -> int | None:
        """Of the item in work, in the first batch that is not wholly answered; None where it is in none of them."""
        with suppress(ValueError):  # closed by the thread that saw it die
            if self._progress is not None:
                batch, place = self._progress.position()
                return place if batch == self._batch and place >= 0 else None
        return None

    def _death(self) -> Died:
        """What became of a process whose pipe is closed."""
        self._stop_clock()
        try:
            code = self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            self._unresponsive = True
            self._process.kill()
            code = self._process.wait()
        place = self._place()
        self._begun |= place is not None
        late = self._late == (self._batch, self._answered) or code == CPU_LIMIT
        blame = Blame.BATCH if not self._begun else Blame.ITEM if late or self._late is None else Blame.NOBODY
        cause = self._cause(code)
        if late:
            cause = f"no end within {self._orders.deadline_s if self._begun else START_LIMIT_S:g} s"
        self._close()
        return Died(
            Outcome.TIMEOUT if late else Outcome.CRASHED,
            cause,
            blame=blame,
            ahead=0 if place is None else max(0, place - self._answered),
            by_itself=late or self._unresponsive or code != KILLED,
            microseconds=int((time.monotonic() - self._since) * 1e6) if blame is Blame.ITEM else 0,
        )

    def _cause(self, code: int) -> str:
        if code == OUT_OF_MEMORY:
            return f"out of memory ({self._orders.memory_mb} MiB)"
        if self._unresponsive:
            return "it closed the pipe to its caller"
        return f"the process ended with {f'signal {-code}' if code < 0 else f'code {code}'}{self._last_words()}"

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        try:
            length = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, length - (1 << 16)))
            lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        except (OSError, ValueError):
            return ""
        return f": {lines[-1][:200]}" if lines else ""

    def has_spoken(self) -> bool:
        """It said that it is ready, or that it cannot be: waiting for it takes no time."""
        return self.is_ready or _can_be_read(self._link.source, 0)

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
        """Stop the process and close the pipe to it; only where nobody reads it."""
        self.kill()
        self._close()

    def let_go(self) -> None:
        """In a forked process: close the pipe and leave the child to its parent."""
        self._process.returncode = 0  # not ours to wait for
        self._close()

    def _close(self) -> None:
        for file in (self._link, self._errors, self._progress, self._life):
            if file is not None:
                with suppress(OSError):
                    file.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """The caller's end of the way to a child and back."""

    source: int
    """File descriptor of what the child writes."""
    send: Callable[[memoryview], int]
    close: Callable[[], None]


def _batch(items: Sequence[bytes]) -> bytes:
    return frame(b"[" + b",".join(items) + b"]")


def _launched(
    command: Sequence[str], errors: IO[bytes] | int, handed: Sequence[int]
) -> tuple[subprocess.Popen[bytes], _Link]:
    """A process and the link to it. OSError and ValueError where it cannot be made.

    A socket, where there are such: writing to a pipe whose reader is gone sends SIGPIPE, which a caller may have left
    to end it.
    """
    options: dict[str, Any] = {"stderr": errors, "env": _environment(), "bufsize": 0, "start_new_session": True}
    if handed:
        options["pass_fds"] = tuple(handed)
    if not hasattr(socket, "MSG_NOSIGNAL"):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        stdin, stdout = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)

        def close() -> None:
            with suppress(OSError):
                stdin.close()
            stdout.close()

        return process, _Link(source=stdout.fileno(), send=lambda data: os.write(stdin.fileno(), data), close=close)
    ours, theirs = socket.socketpair()
    with theirs, ExitStack() as undone:
        end = undone.enter_context(_above_streams(ours))
        process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), **options)
        undone.pop_all()
    return process, _Link(source=end.fileno(), send=lambda data: end.send(data, socket.MSG_NOSIGNAL), close=end.close)


def _above_streams(end: socket.socket) -> socket.socket:
    """Under a number above 2: where a caller closed its own streams, what it prints would go to the child."""
    return end if end.fileno() > 2 else socket.socket(fileno=_number_above_streams(end.detach()))


def _number_above_streams(descriptor: int) -> int:
    if descriptor > 2:
        return descriptor
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


_STARTING = threading.Lock()
"""Held while a process is made, and while the caller is forked: a copy of the caller that is made in between holds the
new process's pipes open, and then nobody sees its end."""


def _fresh_lock() -> None:
    global _STARTING
    _STARTING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _STARTING.acquire(), after_in_parent=lambda: _STARTING.release(), after_in_child=_fresh_lock
    )


def _shared_progress() -> tuple[Progress | None, int | None]:
    """Memory for the child to say in which item it is at work, and its descriptor; None where there is no such."""
    if not hasattr(os, "memfd_create"):
        return None, None
    with suppress(OSError, ValueError):  # no descriptor or no memory left for it: each value leaves by itself
        descriptor = _number_above_streams(os.memfd_create("veriward-progress"))
        try:
            os.ftruncate(descriptor, Progress.SIZE)
            return Progress(descriptor), descriptor
        except (OSError, ValueError):
            os.close(descriptor)
    return None, None


def _life_line() -> tuple[IO[bytes] | None, int | None]:
    """A pipe that ends a child with this process: our end, and the child's. None where the kernel does not do that."""
    if sys.platform != "linux":
        return None, None
    try:
        theirs, ours = os.pipe()
    except OSError:
        return None, None
    return os.fdopen(_number_above_streams(ours), "wb", buffering=0), _number_above_streams(theirs)


def _started(errors: IO[bytes] | None, handed: Sequence[int]) -> tuple[subprocess.Popen[bytes], _Link]:
    """A new process. WorkerError where none can be made, after some patience where the system is only short of them."""
    if not sys.executable:
        raise WorkerError("this Python names no interpreter to start workers with; use workers=0")
    if _depth() >= DEEPEST:
        raise WorkerError("a worker of a worker starts no workers: is a pool made while a module is imported?")
    patience = time.monotonic() + PATIENCE_S
    while True:
        try:
            with _STARTING:
                command = [sys.executable, *_flags(), "-c", BOOT, *_import_path()]
                return _launched(command, errors or subprocess.DEVNULL, handed)
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) not in SHORTAGES or time.monotonic() > patience:
                raise WorkerError(f"{sys.executable} cannot be started: {error}; or use workers=0") from error
            time.sleep(0.2)


def _flags() -> list[str]:
    """The caller's own way of looking at its environment, and no working folder on the import path."""
    return ["-P", *(["-E"] if sys.flags.ignore_environment else []), *(["-s"] if sys.flags.no_user_site else [])]


def _depth() -> int:
    """How many workers stand above this process."""
    text = os.environ.get(DEPTH_VARIABLE, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


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
    return {**found, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", DEPTH_VARIABLE: str(_depth() + 1)}


def _import_path() -> list[str]:
    """The caller's import path, for packages that were put there by hand or by a cluster's run time."""
    found = []
    for entry in sys.path:
        with suppress(OSError):  # a relative entry in a folder that is gone
            if isinstance(entry, str):
                found.append(os.path.abspath(entry))
    return found


def _can_be_read(source: int, milliseconds: int) -> bool:
    """Something came, or comes within this time, or the other end is closed. True where a system cannot tell."""
    if not hasattr(select, "poll"):
        return milliseconds > 0
    with suppress(OSError, ValueError):  # the thread that reads it has closed it
        asked = select.poll()
        asked.register(source, select.POLLIN)
        return bool(asked.poll(milliseconds))
    return False


def _processor_time(pid: int) -> float | None:
    """Processor seconds that a process has used, if it is running or waits for a processor or disk; else None."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK") if state in "RD" else None


@cache
def stamp_here() -> str:
    """Of the rules as they were when this process first started a worker."""
    return rules_stamp()
