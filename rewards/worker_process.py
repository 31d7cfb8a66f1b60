"""One child process of a pool, seen from its parent: start, questions, clock, death."""

from __future__ import annotations

import errno
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from veriward.rewards.verdict import Outcome
from veriward.rewards.worker import OUT_OF_MEMORY, Channel, frame, rules_stamp

START_LIMIT_S = 60.0
"""Seconds in which a child must have started."""

RECYCLE_AFTER = 50_000
"""Items after which a child makes room for a fresh one."""

PATIENCE_S = 10.0
"""Seconds in which a system that is short of processes, memory or descriptors may have some again."""

SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

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
class Orders:
    """What a pool was made with."""

    function: str
    setup: dict[str, Any] | None
    workers: int
    deadline_s: float
    memory_mb: int | None


class Raised(Exception):  # noqa: N818  it carries a traceback from the child, and never leaves this module
    """The function raised."""


class Died(Exception):  # noqa: N818  a message within the package
    """The child is gone."""

    def __init__(self, outcome: Outcome, detail: str, *, at_work: bool, by_itself: bool, microseconds: int) -> None:
        super().__init__(detail)
        self.outcome, self.detail = outcome, detail
        self.at_work = at_work
        """It had begun the first item without a result."""
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
        self._begun = False
        self._answered = 0
        self._late: int | None = None
        """How many items were answered when the clock ran out."""
        self._total = 0
        self.is_ready = False
        self._resident = 0.0
        self._errors = _error_file()
        self._process = _started(self._errors)
        self._pipes = [pipe for pipe in (self._process.stdin, self._process.stdout) if pipe is not None]
        self._channel = Channel(self._pipes[1].fileno(), self._pipes[0].fileno())

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> tuple[str, ...]:
        """What this system cannot limit. Raises Died, or WorkerError where it can be no worker of this process."""
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
        unlimited, stamp = content
        if stamp != stamp_here():
            raise WorkerError(
                "the source files of veriward.rewards changed on disk since this process read them, so a new worker "
                "would decide by other rules; start the run again"
            )
        self.is_ready = True
        return tuple(unlimited)

    def ask(self, items: Sequence[Any]) -> Iterator[Done]:
        """Yield one Done an item. Raises Died, or Raised where the function raised."""
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
                    raise Raised(value)
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

    def _death(self) -> Died:
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
        return Died(
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


def _started(errors: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """A new process. WorkerError where none can be made, after some patience where the system is only short of them."""
    if not sys.executable:
        raise WorkerError("this Python names no interpreter to start workers with; use workers=0")
    patience = time.monotonic() + PATIENCE_S
    while True:
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", BOOT, *_import_path()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors or subprocess.DEVNULL,
                env=_environment(),
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            if error.errno not in SHORTAGES or time.monotonic() > patience:
                raise WorkerError(f"{sys.executable} cannot be started: {error.strerror}; or use workers=0") from error
            time.sleep(0.2)


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
def stamp_here() -> str:
    """Of the rules as they were when this process first started a worker."""
    return rules_stamp()
