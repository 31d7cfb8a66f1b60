"""The reward functions that are compared, each in a process of its own that is measured and can be killed.

    run = run_rater("TRL accuracy_reward", warm_up, batches, limit_s=120.0)
    run.steps[0].seconds, run.stopped

Such a process may take 8 GiB of addresses, since a peer may ask for any amount. What its workers take is read from
/proc, and is 0 where there is none.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from veriward.scripts.grpo_batch import LONGEST, Batch

Rate = Callable[[Batch], list[float | None]]
"""From a step's batch to the accuracy of each completion."""

ADDRESSES = 8 << 30
"""Bytes of address space of a rater's process."""


def ours(workers: int) -> Rate:
    """All three components, as a trainer calls them; they share each batch's verdicts."""
    from veriward.rewards import make_components

    components = make_components(max_completion_length=LONGEST, workers=workers)

    def rate(batch: Batch) -> list[float | None]:
        accuracy, *_others = [component(**trl_call(batch)) for component in components]
        return accuracy

    return rate


def trl_accuracy_reward() -> Rate:
    from trl.rewards.accuracy_rewards import accuracy_reward

    return lambda batch: list(accuracy_reward(**trl_call(batch)))


def trl_in_a_thread() -> Rate:
    """As an asynchronous trainer calls it: math-verify's own time limits need the main thread, so TRL drops them."""
    rate = trl_accuracy_reward()
    thread = ThreadPoolExecutor(max_workers=1)
    return lambda batch: thread.submit(rate, batch).result()


def math_verify_by_row() -> Rate:
    from math_verify import parse, verify  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def rate(batch: Batch) -> list[float | None]:
        texts = [completion[-1]["content"] for completion in batch.completions]
        return [
            float(verify(parse(solution), parse(text))) for text, solution in zip(texts, batch.solutions, strict=True)
        ]

    return rate


def trl_call(batch: Batch) -> dict[str, Any]:
    """The arguments with which TRL's GRPOTrainer calls a reward function."""
    return {
        "prompts": batch.prompts,
        "completions": batch.completions,
        "completion_ids": batch.completion_ids,
        "solution": batch.solutions,
        "trainer_state": None,
        "log_extra": lambda name, values: None,
        "log_metric": lambda name, value: None,
    }


RATERS: dict[str, tuple[Callable[..., Rate], tuple[int, ...]]] = {
    "ours, 1 worker": (ours, (1,)),
    "ours, 2 workers": (ours, (2,)),
    "ours, in process": (ours, (0,)),
    "TRL accuracy_reward": (trl_accuracy_reward, ()),
    "TRL in a thread": (trl_in_a_thread, ()),
    "math-verify by row": (math_verify_by_row, ()),
}
PACKAGES = {
    "TRL accuracy_reward": ("trl", "math_verify"),
    "TRL in a thread": ("trl", "math_verify"),
    "math-verify by row": ("math_verify",),
}
"""What a peer needs installed."""
PEERS = ("TRL accuracy_reward", "math-verify by row")
"""Those that the others are set in relation to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of one rater."""

    seconds: float
    caller_cpu_s: float
    workers_cpu_s: float
    caller_mib: float
    """Most that was resident so far."""
    workers_mib: float
    """The same of the workers that are there now, together."""
    completions: int
    tokens: int
    paid: int
    bombs_paid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The timed steps of one rater."""

    rater: str
    steps: list[Step] = field(default_factory=list)
    stopped: str | None = None
    """Why there are no more steps: '> 120 s', or 'died'; None if all were done."""


def serve(pipe: Connection, rater: str) -> None:
    """Rate the batches that come through the pipe, until None comes."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it prints each text that took it too long
    make, arguments = RATERS[rater]
    rate = make(*arguments)
    pipe.send("ready")
    while (batch := pipe.recv()) is not None:
        caller, workers, started = time.process_time(), workers_cpu_s(), time.perf_counter()
        values = rate(batch)
        seconds = time.perf_counter() - started
        pipe.send(
            Step(
                seconds=seconds,
                caller_cpu_s=time.process_time() - caller,
                workers_cpu_s=workers_cpu_s() - workers,
                caller_mib=resident_mib(os.getpid()),
                workers_mib=sum(map(resident_mib, worker_pids())),
                completions=len(values),
                tokens=batch.tokens,
                paid=values.count(1.0),
                bombs_paid=sum(values[place] == 1.0 for place in batch.bombs),
            )
        )


def worker_pids() -> list[int]:
    """The processes that this one started and that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it ended meanwhile
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.append(int(stat.parent.name))
    return found


def workers_cpu_s() -> float:
    """Processor time of all workers so far, those that ended included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for pid in worker_pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """The most memory that a process ever had resident; 0.0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


@contextmanager
def child(target: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    """A fresh process that runs `target(pipe, *arguments)`; killed at the end, whatever it is at."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there, *arguments))
    process.start()
    there.close()
    try:
        yield here
    finally:
        process.kill()
        process.join()
        here.close()


def run_rater(rater: str, warm_up: Batch, batches: Sequence[Batch], limit_s: float) -> Run:
    """Rate a small batch and then each of the others; the first that is over the limit ends it."""
    run = Run(rater=rater)
    with child(serve, rater) as pipe:
        try:
            pipe.recv()
            for place, batch in enumerate([warm_up, *batches]):
                pipe.send(batch)
                if not pipe.poll(limit_s):
                    return Run(rater=rater, steps=run.steps, stopped=f"> {limit_s:g} s")
                step = pipe.recv()
                if place > 0:
                    run.steps.append(step)
        except (EOFError, ConnectionError):
            return Run(rater=rater, steps=run.steps, stopped="died")
    return run


def missing(rater: str) -> bool:
    """Whether its package is not installed."""
    return not all(find_spec(package) for package in PACKAGES.get(rater, ()))


def one_by_one(rater: str, warm_up: Batch, batches: Sequence[Batch], limit_s: float) -> Iterator[Step | str]:
    """A step for each batch, or why there is none; a rater that was killed starts again with the next batch."""
    rest = list(batches)
    while rest:
        run = run_rater(rater, warm_up, rest, limit_s)
        yield from run.steps
        rest = rest[len(run.steps) :]
        if run.stopped is not None:
            yield run.stopped
            rest = rest[1:]


def ask(target: Callable[..., None], *arguments: object) -> Any:
    """What `target` sends from a fresh process."""
    with child(target, *arguments) as pipe:
        return pipe.recv()
