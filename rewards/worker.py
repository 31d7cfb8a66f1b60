"""A child process that calls one function, item by item, and may be killed at any moment.

`worker_pool` starts it and speaks to it over its standard input and output, in frames: four bytes of length, then JSON.
No pickle, since what comes in was written by a model.

    in   {"function": "module:function", "setup": …, "deadline_s": …, "memory_mb": …, "progress": descriptor or null,
          "life": descriptor or null}
    out  ["ready", what could not be limited, stamp of the rules]    or ["failed", traceback]
    in   [item, item, …]
    out  for the items in order, as they are there, ["values", [[value, microseconds], …], CPU seconds so far, resident
         MiB after the last one, else null] or ["raised", traceback]

Values of the same millisecond leave together, since waking the caller costs more than most verdicts. Which item is in
work stands in memory that both sides see (`progress`), so that it is known if this process dies. Without such memory
["begun"] leaves before the first item, and each value by itself.

Limits that it sets on itself: address space, CPU seconds of one item, no core file, small files. It is the first that
the kernel takes when memory runs out, and it leaves when its input ends or its parent is gone. For the latter it holds
one end of a pipe that nobody writes to (`life`): where the other end is closed, the kernel kills it. PDEATHSIG would
come when the *thread* that started the child ends, and a thread of its own that looks for the parent, as there is where
the kernel has no such service, makes each allocation of memory slower: 20 % of a verdict.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import mmap
import os
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

OUT_OF_MEMORY = 77
"""Exit code of a worker that had no memory left."""

PREPARE_CPU_S = 60
"""CPU seconds for reading a batch and for what a function does before it."""

GATHER_S = 0.001
"""Seconds in which values are gathered before they leave; less where the deadline is near that."""

LARGEST_GATHERED = 1 << 16
"""Bytes of gathered values."""

LARGEST_FILE = 64 << 20

MIB = 1 << 20

SIGKILL = 9

_LENGTH = struct.Struct(">I")
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class Channel:
    """Frames that come from a file descriptor and leave through a function.

    send   takes some of the bytes that it is given, and returns how many
    wait   called before each read: returns once there may be something, or raises EOFError
    """

    def __init__(self, source: int, send: Callable[[memoryview], int], wait: Callable[[], None] = lambda: None) -> None:
        self._source, self._send, self._wait = source, send, wait
        self._buffer = bytearray()

    def read(self) -> Any:
        """The next frame; EOFError where the other side is gone."""
        head = self._take(_LENGTH.size)
        return json.loads(self._take(_LENGTH.unpack(head)[0]).decode("utf-8", "surrogatepass"))

    def write(self, value: Any) -> None:
        self.write_bytes(frame(encoded(value)))

    def write_bytes(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._send(rest) :]

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._wait()
            piece = os.read(self._source, 1 << 16)
            if not piece:
                raise EOFError
            self._buffer += piece
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


def encoded(value: Any) -> bytes:
    """A value as JSON; TypeError and ValueError for what JSON cannot hold.

    Not in ASCII: the escapes of two half surrogates that stand side by side would come back as one character.
    """
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def frame(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def main() -> int:
    channel = take_standard_streams()
    try:
        start = channel.read()
    except EOFError:
        return 0
    unlimited = limit_memory_and_files(start["memory_mb"])
    if start["life"] is None:
        threading.Thread(target=leave_with_parent, args=(os.getppid(),), daemon=True).start()
    else:
        end_with(start["life"])
    try:
        function = load(start["function"], start["setup"])
    except MemoryError:
        return OUT_OF_MEMORY
    except (Exception, SystemExit) as failure:  # noqa: BLE001  for the person who named the function
        channel.write(["failed", in_words(failure)])
        return 1
    arm = cpu_limit()
    if arm is None:
        unlimited.append("CPU time")
    try:
        channel.write(["ready", unlimited, rules_stamp()])
        progress = None if start["progress"] is None else Progress(start["progress"])
        number = 0
        while True:
            number += 1
            serve(channel, function, arm, start["deadline_s"], progress, number)
    except (EOFError, OSError):
        return 0  # the parent is gone
    except MemoryError:
        return OUT_OF_MEMORY


class Progress:
    """Which item is in work, in memory that a process leaves behind when it dies."""

    _POSITION = struct.Struct("=q")
    SIZE = _POSITION.size
    _SHIFT = 32

    def __init__(self, descriptor: int) -> None:
        """On a file of at least SIZE bytes that both processes have open."""
        self._memory = mmap.mmap(descriptor, self.SIZE)

    def move(self, batch: int, place: int) -> None:
        """
        batch   how many batches this process has read, this one included
        place   of the item, counted from 0; -1 while it prepares for them
        """
        self._POSITION.pack_into(self._memory, 0, (batch << self._SHIFT) | (place + 1))  # one write: never half of it

    def position(self) -> tuple[int, int]:
        """The batch and the place as they were last said; (0, -1) before that."""
        found: int = self._POSITION.unpack_from(self._memory)[0]
        return found >> self._SHIFT, (found & ((1 << self._SHIFT) - 1)) - 1

    def close(self) -> None:
        self._memory.close()


def serve(
    channel: Channel,
    function: Callable[[Any], Any],
    arm: Callable[[float], None] | None,
    deadline_s: float,
    progress: Progress | None,
    number: int,
) -> None:
    """One batch: the values leave in order, and which item is in work is known if this process dies."""
    if arm is not None:
        arm(PREPARE_CPU_S)
    items = channel.read()
    if progress is not None:
        progress.move(number, -1)
    try:
        prepare = getattr(function, "before_batch", None)
        if prepare is not None:
            prepare(items)
    except MemoryError:
        raise
    except (Exception, SystemExit) as bug:  # noqa: BLE001  raised again in the parent
        channel.write(["raised", in_words(bug)])
        return
    if progress is None:
        channel.write(["begun"])
    patience = int(min(GATHER_S, deadline_s / 50) * 1e9)
    gathered: list[bytes] = []
    size, sent = 0, time.perf_counter_ns()
    last = len(items) - 1
    for place, item in enumerate(items):
        if progress is not None:
            progress.move(number, place)
        if arm is not None:
            arm(deadline_s)
        started = time.perf_counter_ns()
        try:
            value = function(item)
            ended = time.perf_counter_ns()
            gathered.append(encoded([value, (ended - started) // 1_000]))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except (Exception, SystemExit) as bug:  # noqa: BLE001  raised again in the parent, with the item
            report(channel, gathered, bug)
            return
        size += len(gathered[-1])
        if place == last or progress is None or ended - sent > patience or size > LARGEST_GATHERED:
            send(channel, gathered, resident_mib() if place == last else None)
            gathered, size, sent = [], 0, ended


def report(channel: Channel, gathered: Sequence[bytes], bug: BaseException) -> None:
    """The values that are there, and what was raised on the item behind them."""
    if gathered:
        send(channel, gathered, None)
    channel.write(["raised", in_words(bug)])


def send(channel: Channel, gathered: Sequence[bytes], resident: float | None) -> None:
    rest = encoded([time.process_time(), resident])
    channel.write_bytes(frame(b'["values",[%b],%b' % (b",".join(gathered), rest[1:])))


def in_words(failure: BaseException) -> str:
    return "".join(traceback.format_exception(failure))


def take_standard_streams() -> Channel:
    """The pipes for frames alone: whatever is printed goes where errors go, and nothing can be read from a terminal."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Channel(source, lambda data: os.write(target, data))


def load(name: str, setup: dict[str, Any] | None) -> Callable[[Any], Any]:
    """The function of 'module:function'; with a setup, what the function returns for it."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    made: Callable[[Any], Any] = found if setup is None else found(**setup)
    return made


def limit_memory_and_files(memory_mb: int | None) -> list[str]:
    """Set every limit that holds for the whole life; returns the names of those that this system refuses."""
    with suppress(OSError):  # only Linux has such a choice
        Path("/proc/self/oom_score_adj").write_text("1000")
    try:
        import resource
    except ImportError:
        return ["memory"]
    lower(resource.RLIMIT_CORE, 0)
    lower(resource.RLIMIT_FSIZE, LARGEST_FILE)
    if memory_mb is None or lower(resource.RLIMIT_AS, memory_mb * MIB):
        return []
    return ["memory"]


def lower(limit: int, value: int) -> bool:
    """Lower a soft limit, and say whether that was possible."""
    import resource

    _, hard = resource.getrlimit(limit)
    try:
        resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
    except (ValueError, OSError):
        return False
    return True


def cpu_limit() -> Callable[[float], None] | None:
    """A function that gives what comes next its CPU seconds, or None where there is no such limit.

    The limit counts the whole life of a process, in whole seconds, so it is moved on before each item.
    """
    try:
        import resource
    except ImportError:
        return None
    last = 0

    def arm(seconds: float) -> None:
        nonlocal last
        end = math.ceil(time.process_time() + seconds)
        if end != last:
            lower(resource.RLIMIT_CPU, end)
            last = end

    return arm if lower(resource.RLIMIT_CPU, math.ceil(time.process_time() + PREPARE_CPU_S)) else None


def end_with(life: int) -> None:
    """Have the kernel kill this process when the other end of a pipe is closed; such a signal cannot be blocked."""
    import fcntl

    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETSIG, SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    with suppress(BlockingIOError):  # closed before that was said
        if not os.read(life, 1):
            os._exit(0)


def leave_with_parent(parent: int) -> None:
    """End the process once its parent is another one: an item that sleeps uses no CPU time and reads no pipe."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


def resident_mib() -> float:
    """Memory in use now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def rules_stamp() -> str:
    """Of this package: a worker started later must decide by the rules its parent began with."""
    return sources_stamp(Path(__file__).parent)


def sources_stamp(*packages: Path) -> str:
    """Of every source file in these folders."""
    content = hashlib.sha256()
    for package in packages:
        for path in sorted(package.rglob("[!.]*.py")):  # an editor's lock is a name with a dot in front
            content.update(path.name.encode() + b"\0" + path.read_bytes())
    return content.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
