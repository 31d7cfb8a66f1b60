"""What rewards cost a training step: ours through the pool and in process, TRL's, and math-verify, in one run.

    python -m veriward.scripts.bench_rewards                       batches made from the packaged case table
    python -m veriward.scripts.bench_rewards --shared FOLDER       from MATH-500, GSM8K and answers of published models
    python -m veriward.scripts.bench_rewards --only steps --rater "ours, 1 worker" --rater "TRL accuracy_reward"

Four parts: GRPO-like `steps` through TRL's call; the same with 1 % cost `bombs`; each bomb of the first batch by itself
(`single`); and what the `pool` costs alone. Every rater runs in a process of its own, one after the other, on the same
batches, each of which is new to it; a small step goes before the timed ones. A step that is not done within
--peer-limit is killed and printed as over it.

Ours decides three components (accuracy, format, supported), a peer its one. `paid` is the number of completions that
accuracy paid, 'at 2,000 tok/s' the share of a step's time that the reward takes where the whole batch is generated at
that speed, MiB the most that was resident, and 'times TRL' how many times this rater's seconds TRL's are.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from veriward.scripts.grpo_batch import (
    BOMBS,
    Batch,
    draw_batch,
    packaged_pairs,
    packaged_problems,
    shared_bombs,
    shared_pairs,
    shared_problems,
)
from veriward.scripts.raters import PEERS, RATERS, Run, Step, ask, missing, one_by_one, run_rater, worker_pids
from veriward.tool_agent.errors import ConfigError

Pair = tuple[str, str]

SINGLE_LIMIT_S = 30.0
"""For one bomb: above the sum of the peers' own limits, 10 + 10 + 5 s."""
BOMB_SHARE = 100
"""One completion in so many ends in a bomb."""
SPEEDS = (2_000, 10_000, 50_000)
"""Tokens a second that the whole batch is generated at."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, help="folder with cases/ and data/")
    parser.add_argument("--only", choices=list(PARTS), action="append", help="run this part alone; may be repeated")
    parser.add_argument("--rater", choices=list(RATERS), action="append", help="this rater alone; may be repeated")
    parser.add_argument("--steps", type=int, default=3, help="timed steps of each rater")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--samples", type=int, default=16, help="completions a prompt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peer-limit", type=float, default=120.0, help="seconds a step of a peer may take")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    options = parser.parse_args()
    console = Console(width=160)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a rater that hangs is killed on the way out
    try:
        check(options)
        figures: dict[str, Any] = {
            "options": {name: str(value) for name, value in vars(options).items()},
            "cores": os.cpu_count(),
            "load_before": os.getloadavg()[0],
        }
        console.print(f"{figures['cores']} cores, load before the run {figures['load_before']:.1f}", highlight=False)
        for name, part in PARTS.items():
            if name in (options.only or PARTS):
                figures[name] = part(console, options)
        if options.json is not None:
            options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def check(options: argparse.Namespace) -> None:
    for name in ("steps", "prompts", "samples"):
        if getattr(options, name) < 1:
            raise ConfigError(f"--{name}: got {getattr(options, name)}, wanted at least 1")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise ConfigError(f"--json {options.json}: no folder {options.json.parent}; make it, or choose another file")


# ------------------------------------------------------------------------------------------------------- steps


def steps(console: Console, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Batches without a bomb."""
    return compare(console, options, bomb_share=0)


def bombs(console: Console, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One completion in a hundred ends in a bomb, and at least one."""
    return compare(console, options, bomb_share=BOMB_SHARE)


def compare(console: Console, options: argparse.Namespace, *, bomb_share: int) -> list[dict[str, Any]]:
    warm_up, batches = draw_batches(options, bomb_share)
    runs = []
    for rater in options.rater or RATERS:
        if missing(rater):
            console.print(f"{rater}: not installed, so not in this run", highlight=False)
            continue
        with console.status(rater):
            runs.append(run_rater(rater, warm_up, batches, options.peer_limit))
    console.print(step_table(runs, batches, options.peer_limit))
    return [asdict(run) for run in runs]


def draw_batches(options: argparse.Namespace, bomb_share: int) -> tuple[Batch, list[Batch]]:
    """The warm-up of two prompts, and a batch for each step."""
    problems = packaged_problems() if options.shared is None else shared_problems(options.shared)
    hostile = BOMBS if options.shared is None else shared_bombs(options.shared)
    draw = random.Random(options.seed)
    count = max(1, options.prompts * options.samples // bomb_share) if bomb_share else 0
    warm_up = draw_batch(problems, (), prompts=2, samples=options.samples, bomb_count=0, draw=draw)
    batches = [
        draw_batch(problems, hostile, prompts=options.prompts, samples=options.samples, bomb_count=count, draw=draw)
        for _ in range(options.steps)
    ]
    return warm_up, batches


def step_table(runs: Sequence[Run], batches: Sequence[Batch], limit_s: float) -> Table:
    completions, bombed = len(batches[0].completions), len(batches[0].bombs)
    tokens = round(statistics.mean(batch.tokens for batch in batches))
    title = f"A step of {completions:,} completions, {tokens:,} tokens, {bombed} bombs: median of {len(batches)}"
    names = ["seconds\na step", "a\nsecond", "a CPU-\nsecond", *(f"at {speed:,}\ntok/s" for speed in SPEEDS)]
    names += ["MiB,\ncaller", "MiB,\nworkers", "paid", "bombs\npaid", *(f"times\n{peer.split()[0]}" for peer in PEERS)]
    table = columns(title, "", *names)
    peers = {run.rater: run for run in runs if run.rater in PEERS}
    for run in runs:
        ratios = [ratio(run, peers.get(peer), len(batches), limit_s) for peer in PEERS]
        table.add_row(run.rater, *figures_of(run, batches), *ratios)
    return table


def figures_of(run: Run, batches: Sequence[Batch]) -> list[str]:
    if run.stopped is not None:
        done = f"{run.stopped} in step {len(run.steps) + 1}"
        return [done, *("-" for _ in range(4 + len(SPEEDS) + 2))]
    seconds = statistics.median(step.seconds for step in run.steps)
    tokens = statistics.mean(batch.tokens for batch in batches)
    rated = sum(step.completions for step in run.steps)
    cpu = sum(step.caller_cpu_s + step.workers_cpu_s for step in run.steps)
    return [
        f"{seconds:.3f}",
        f"{run.steps[0].completions / seconds:,.0f}",
        f"{rated / max(cpu, 1e-9):,.0f}",
        *(f"{seconds / (tokens / speed + seconds):.2%}" for speed in SPEEDS),
        f"{max(step.caller_mib for step in run.steps):.0f}",
        f"{max(step.workers_mib for step in run.steps):.0f}",
        f"{sum(step.paid for step in run.steps)}/{rated}",
        f"{sum(step.bombs_paid for step in run.steps)}/{sum(len(batch.bombs) for batch in batches)}",
    ]


def ratio(run: Run, peer: Run | None, steps: int, limit_s: float) -> str:
    """How many times this rater's seconds the peer's are; of a peer that was stopped, at least."""
    if peer is None or run.stopped is not None or run is peer:
        return "-"
    if peer.stopped == "died":
        return "died"
    at_least = [step.seconds for step in peer.steps] + [limit_s] * (steps - len(peer.steps))
    times = statistics.median(at_least) / statistics.median(step.seconds for step in run.steps)
    return f"{times:,.1f}" if peer.stopped is None else f"> {times:,.0f}"


# -------------------------------------------------------------------------------------------- one bomb at a time


def single(console: Console, options: argparse.Namespace) -> dict[str, list[Any]]:
    """The bombs of the first batch, each as a batch of one; a rater that hangs is killed and goes on with the next."""
    warm_up, batches = draw_batches(options, BOMB_SHARE)
    alone = [batches[0].only(place) for place in batches[0].bombs]
    chosen = [rater for rater in options.rater or ("ours, 1 worker", "ours, in process", *PEERS) if not missing(rater)]
    results = {}
    for rater in chosen:
        with console.status(rater):
            results[rater] = list(one_by_one(rater, warm_up, alone, SINGLE_LIMIT_S))
    table = columns("Bombs one at a time: seconds, and what accuracy paid", "the answer", *chosen)
    for place, batch in enumerate(alone):
        table.add_row(shorten(batch.answers[0]), *(said(results[rater][place]) for rater in chosen))
    console.print(table)
    return {
        rater: [asdict(result) if isinstance(result, Step) else result for result in found]
        for rater, found in results.items()
    }


def said(result: Step | str) -> str:
    return result if isinstance(result, str) else f"{result.seconds:.3f} s, {result.paid}"


def shorten(text: str, length: int = 44) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


# -------------------------------------------------------------------------------------------- the pool by itself


VARIATIONS = 4
"""Of each pair, once a pool has seen the pairs themselves."""


def pool(console: Console, options: argparse.Namespace) -> dict[str, Any]:
    """Start, round trip, replacement and throughput, each in fresh processes."""
    pairs = packaged_pairs() if options.shared is None else shared_pairs(options.shared)
    with console.status("pool: start"):
        starts = {loaded: [ask(time_start, loaded) for _ in range(5)] for loaded in (True, False)}
    with console.status("pool: round trip"):
        trips = {workers: ask(time_round_trips, workers) for workers in (1, 0)}
    with console.status("pool: killed worker"):
        back = ask(time_back_after_kill)
    rates: dict[tuple[int, int], list[list[float]]] = {(2, 2): [], (2, 1): [], (1, 1): [], (0, 1): []}
    with console.status("pool: batches of 64"):
        for _ in range(5):
            for (workers, callers), found in rates.items():
                found.append(ask(time_batches, workers, callers, pairs))
    table = columns("The pool", "", "measured", "wanted")
    table.add_row("pool to first verdict, median of 5", f"{at(starts[True], 0.5):.3f} s", "< 0.4 s")
    table.add_row("the same as the first verdict of its process", f"{at(starts[False], 0.5):.3f} s", "")
    table.add_row("round trip of one verdict, median of 2,000", f"{at(trips[1], 0.5) * 1e3:.3f} ms", "< 1 ms")
    table.add_row("round trip of one verdict, p99", f"{at(trips[1], 0.99) * 1e3:.3f} ms", "")
    table.add_row("the same verdict in process, median", f"{at(trips[0], 0.5) * 1e3:.3f} ms", "")
    table.add_row("verdict after kill -9 of the worker, median of 10", f"{at(back, 0.5):.3f} s", "< 0.5 s")
    table.add_row("verdict after kill -9 of the worker, slowest", f"{max(back):.3f} s", "< 0.5 s")
    for part, what in enumerate(("first", "later")):
        medians = {key: statistics.median(pair[part] for pair in found) for key, found in rates.items()}
        for (workers, callers), rate in medians.items():
            name = f"{workers} worker{'s' * (workers > 1)}" if workers else "in process"
            ahead = ", two callers" * (callers > 1)
            times = f"{rate:,.0f}/s, {rate / medians[0, 1]:.2f} times in process"
            label = f"batches of 64, {what} {len(pairs) * (1, VARIATIONS)[part]:,} pairs, {name}{ahead}"
            table.add_row(label, times, ">= 1.3 times" if workers == 2 else "")
    console.print(table)
    a_second = {f"{workers} workers, {callers} callers": found for (workers, callers), found in rates.items()}
    return {
        "starts_s": starts,
        "round_trips_s": trips[1],
        "in_process_s": trips[0],
        "back_s": back,
        "a_second": a_second,
    }


def at(seconds: Sequence[float], share: float) -> float:
    return sorted(seconds)[int(share * (len(seconds) - 1))]


def time_start(pipe: Connection, loaded: bool) -> None:
    """`loaded`: the caller has the contract at hand already, which it reads for the first verdict of any kind."""
    from veriward.rewards import verify_answer
    from veriward.rewards.pool import VerdictPool

    if loaded:
        verify_answer("7", "7.0")
    started = time.perf_counter()
    with VerdictPool(workers=1) as verdicts:
        verdicts.verify_many([row("7", "7.0")])
        pipe.send(time.perf_counter() - started)


def time_round_trips(pipe: Connection, workers: int) -> None:
    """Of 2,000 cheap verdicts, no two alike, asked for one at a time."""
    from veriward.rewards.pool import VerdictPool

    seconds = []
    with VerdictPool(workers=workers) as verdicts:
        for number in range(2_200):
            started = time.perf_counter()
            verdicts.verify_many([row(f"{number}/7", "12")])
            seconds.append(time.perf_counter() - started)
        pipe.send(seconds[200:])


def time_back_after_kill(pipe: Connection) -> None:
    """Seconds from the kill of an idle worker to the verdict that is asked for at once."""
    from veriward.rewards.pool import VerdictPool

    seconds = []
    with VerdictPool(workers=1) as verdicts:
        verdicts.verify_many([row("7", "7.0")])
        for number in range(10):
            for pid in worker_pids():
                os.kill(pid, signal.SIGKILL)
            started = time.perf_counter()
            (verdict,) = verdicts.verify_many([row(f"{number}/2", f"{number}/2+0")])
            if not verdict.correct:
                raise AssertionError(f"a verdict was lost with the worker: {verdict}")
            seconds.append(time.perf_counter() - started)
        pipe.send(seconds)


def time_batches(pipe: Connection, workers: int, callers: int, pairs: Sequence[Pair]) -> None:
    """Verdicts a second on pairs that the process has not seen: the first after its start, and variations of them.

    callers   batches that are asked for at the same time
    """
    from veriward.rewards.pool import VerdictPool

    rows = [row(*pair) for pair in dict.fromkeys(pairs)]
    packaged = packaged_pairs()
    with VerdictPool(workers=workers, warn_not_decided=1.0) as verdicts:
        for shift in range(1, 9):
            others = packaged[shift:] + packaged[:shift]
            verdicts.verify_many([row(answer, key) for (answer, _), (_, key) in zip(packaged, others, strict=True)])
        later = [
            row(f"{given['prediction']}+{number}", f"{given['reference']}+{number}")
            for number in range(1, VARIATIONS + 1)
            for given in rows
        ]
        found = []
        with ThreadPoolExecutor(callers) as threads:
            for part in (rows, later):
                batches = [part[place : place + 64] for place in range(0, len(part), 64)]
                started = time.perf_counter()
                for _ in threads.map(verdicts.verify_many, batches):
                    pass
                found.append(len(part) / (time.perf_counter() - started))
        pipe.send(found)


def row(answer: str, reference: str) -> dict[str, str]:
    return {"prediction": answer, "reference": reference}


def columns(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", highlight=False)
    for place, name in enumerate(names):
        table.add_column(name, justify="right" if place else "left", no_wrap=place == 0)
    return table


PARTS: dict[str, Callable[[Console, argparse.Namespace], Any]] = {
    "steps": steps,
    "bombs": bombs,
    "single": single,
    "pool": pool,
}


if __name__ == "__main__":
    main()
