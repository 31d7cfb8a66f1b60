"""What a worker must survive, asked for by name: run in child processes, never imported by a test."""

import ctypes
import os
import re
import sys
import time
from pathlib import Path

from veriward.rewards.wire import decide as honest


def act(item):
    """Do what the text says; anything else is returned."""
    name, _, argument = item.partition(" ") if isinstance(item, str) else ("", "", "")
    if name in ACTS:
        return ACTS[name](argument)
    return item


def loop(argument):
    while True:
        pass


def loop_in_c(argument):
    re.fullmatch(r"(a|a)*b", "a" * 64)


def hold_the_interpreter(argument):
    ctypes.PyDLL(None).sleep(600)


def sleep(argument):
    time.sleep(float(argument or 600))
    return "slept"


def die(argument):
    os.kill(os.getpid(), int(argument))


def leave(argument):
    os._exit(int(argument))


def take_memory(argument):
    return len(bytearray(int(argument) << 20))


def fail(argument):
    raise KeyError(f"no such thing: {argument}")


def leave_politely(argument):
    sys.exit(argument)


def shout(argument):
    print("not a frame")
    os.write(1, b"\x00\x00\x00\x02[]")
    sys.stdout.flush()
    return "shouted"


def read_terminal(argument):
    return sys.stdin.read()


def die_once(argument):
    """Die the first time: the file says whether it was that time."""
    marker = Path(argument)
    if not marker.exists():
        marker.touch()
        os._exit(1)
    return "survived"


def limits(argument):
    import resource

    return [resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in ("AS", "CORE", "CPU")]


def inside(argument):
    return {
        "environment": dict(os.environ),
        "modules": sorted({name.partition(".")[0] for name in sys.modules}),
        "session": os.getsid(0) == os.getpid(),
        "oom": Path("/proc/self/oom_score_adj").read_text().strip(),
        "pid": os.getpid(),
        "json": sys.modules["json"].__file__,
    }


def fork_and_leave(argument):
    """The copy holds the way to the caller open, as a caller's own copy may."""
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    os._exit(3)


def close_everything(argument):
    os.closerange(0, 200)
    time.sleep(600)


def waste_time(argument):
    end = time.process_time() + float(argument)
    while time.process_time() < end:
        pass
    return "done"


ACTS = {
    function.__name__: function
    for function in (
        *(loop, loop_in_c, hold_the_interpreter, sleep, die, leave, take_memory, fail, leave_politely, shout),
        *(read_terminal, die_once, limits, inside, waste_time, fork_and_leave, close_everything),
    )
}


def multiply(by):
    """A factory: the function of one item."""
    return lambda item: item * by


class Unprepared:
    """A function whose preparation goes wrong where a batch is longer than it can bear."""

    def __init__(self, how, longest):
        self.how, self.longest = how, longest

    def __call__(self, item):
        return item

    def before_batch(self, items):
        if len(items) > self.longest:
            act(self.how)


def no_json(item):
    return {item}


class _Decide:
    """The verdict's own function, but for candidates that name an act."""

    def __call__(self, item):
        if item[1].partition(" ")[0] in ACTS:
            act(item[1])
        return honest(item)

    def before_batch(self, items):
        honest.before_batch(items)


decide = _Decide()
