"""Fuzzed responses through `verify`: none may raise, and none may cost more than a tenth of a CPU-second.

    python -m veriward.scripts.fuzz_verify                                     1,000,000 strings or ten minutes
    python -m veriward.scripts.fuzz_verify --shared FOLDER                     and mutations of the texts in there
    python -m veriward.scripts.fuzz_verify --seed 3 --start 41007 --count 1    one string of an earlier run again

The exit code is 1 if a string raised, which ends the run and is printed with its number, or if one was slow twice: in
the run and in a fresh process. Ctrl-C prints what was done so far.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import heapq
import json
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from rich.table import Table

from veriward.rewards import CONTRACTS, DEFAULT, verify
from veriward.scripts.display import SECONDS_BETWEEN_LINES, CountsBelow, printable, shorten, two_columns
from veriward.scripts.fuzzed_strings import Case, Texts, drawn, read_texts
from veriward.tool_agent.errors import ConfigError

SLOW = 0.1
"""CPU-seconds that no verdict may take."""
SHOWN = 8
"""Slowest strings that are printed."""
BETWEEN_LOOKS = 256
"""Strings between two looks at the clock."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000, help="strings")
    parser.add_argument("--seconds", type=float, default=600, help="wall-clock limit of the whole run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first string")
    parser.add_argument("--shared", type=Path, help="folder with cases/ and data/, whose texts are mutated too")
    parser.add_argument("--contract", default=DEFAULT, choices=list(CONTRACTS))
    options = parser.parse_args()
    try:
        texts = read_texts(options.shared)
    except ConfigError as error:
        parser.error(str(error))
    faulthandler.enable()
    console = Console(highlight=False, soft_wrap=True, width=120)
    numbers = range(options.start, options.start + options.count)
    with show_progress(console, options.count) as on_progress:
        result = run(numbers, options.seed, texts, options.contract, seconds=options.seconds, on_progress=on_progress)
    report(result, options, console)
    sys.exit(1 if result.raised or result.too_slow else 0)


# -------------------------------------------------------------------------------------------------------- the run


@dataclass(slots=True)
class Result:
    """What came out so far. Times are seconds of CPU."""

    done: int = 0
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    """By kind of string."""
    making: float = 0.0
    verifying: float = 0.0
    wall: float = 0.0
    slowest: list[tuple[float, int, Case]] = field(default_factory=list)
    """Seconds, number and string; a heap."""
    too_slow: list[tuple[float, float, int, Case]] = field(default_factory=list)
    """Over the limit in the run and in a process of its own: both times, number and string."""
    raised: tuple[int, Case, BaseException] | None = None
    memory: list[tuple[int, int]] = field(default_factory=list)
    """Strings done, and the most memory that the process ever held, in MiB."""
    interrupted: bool = False

    def add(self, case: Case, outcome: str, number: int, making: float, verifying: float) -> None:
        self.done += 1
        self.outcomes.setdefault(case.kind, Counter())[outcome] += 1
        self.making += making
        self.verifying += verifying
        keep = heapq.heappush if len(self.slowest) < SHOWN else heapq.heappushpop
        keep(self.slowest, (verifying, number, case))


def run(
    numbers: Sequence[int],
    seed: int,
    texts: Texts,
    contract: str,
    *,
    seconds: float,
    on_progress: Callable[[Result], None] = lambda _: None,
) -> Result:
    """Verify the strings with these numbers, until one raises, the time is over or Ctrl-C comes."""
    result = Result()
    decided_in(Case("", r"\boxed{x+x}", "2x"), contract)  # what every process pays once
    gc.collect()
    gc.freeze()
    looks_at_memory = {0, len(numbers) // 10, len(numbers) // 2}
    started = time.perf_counter()
    try:
        for number in numbers:
            if result.done % BETWEEN_LOOKS == 0:
                result.wall = time.perf_counter() - started
                if result.wall > seconds:
                    break
                on_progress(result)
            if result.done in looks_at_memory:
                result.memory.append((result.done, peak_memory()))
            _one(number, seed, texts, contract, result)
            if result.raised:
                break
    except KeyboardInterrupt:
        result.interrupted = True
    result.memory.append((result.done, peak_memory()))
    result.wall = time.perf_counter() - started
    return result


def _one(number: int, seed: int, texts: Texts, contract: str, result: Result) -> None:
    started = time.process_time()
    case = drawn(seed, number, texts, contract)
    making = time.process_time() - started
    try:
        outcome, verifying = decided_in(case, contract)
    except Exception as error:  # noqa: BLE001  the finding of this run: reported with its input, exit code 1
        result.raised = (number, case, error)
        return
    result.add(case, outcome, number, making, verifying)
    if verifying > SLOW:
        again = seconds_alone(case, contract)
        if again > SLOW:
            result.too_slow.append((verifying, again, number, case))


def decided_in(case: Case, contract: str) -> tuple[str, float]:
    """The outcome of one string and the seconds of CPU it took."""
    started = time.process_time()
    verdict = verify(
        case.response, case.reference, contract=contract, answer_type=case.answer_type, truncated=case.truncated
    )
    return verdict.outcome, time.process_time() - started


def seconds_alone(case: Case, contract: str) -> float:
    """The time in a fresh process, where nothing is remembered and no garbage of others is collected."""
    code = (
        "import json, sys; from veriward.scripts.fuzz_verify import Case, decided_in; "
        "fields, contract = json.load(sys.stdin); decided_in(Case('', '\\\\boxed{x+x}', '2x'), contract); "
        "print(decided_in(Case(*fields), contract)[1])"
    )
    fields = [case.kind, case.response, case.reference, case.answer_type, case.truncated]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        input=json.dumps([fields, contract]),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def peak_memory() -> int:
    """The most memory that this process ever held, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1 << 20 if sys.platform == "darwin" else 1 << 10)


# ------------------------------------------------------------------------------------------------- what is printed


@contextlib.contextmanager
def show_progress(console: Console, total: int) -> Iterator[Callable[[Result], None]]:
    """A bar on a terminal, now and then a line elsewhere."""
    last = time.perf_counter()

    def counts(result: Result) -> str:
        outcomes = sum(result.outcomes.values(), Counter[str]())
        slowest = max(result.slowest)[0] * 1000 if result.slowest else 0
        parts = [f"{name.replace('_', ' ')} {count:,}" for name, count in outcomes.most_common()]
        return " · ".join([*parts, f"{result.done / max(1e-9, result.wall):,.0f}/s", f"slowest {slowest:.0f} ms"])

    if not console.is_terminal:

        def print_now_and_then(result: Result) -> None:
            nonlocal last
            if time.perf_counter() - last >= SECONDS_BETWEEN_LINES:
                last = time.perf_counter()
                console.print(f"{result.done:,}/{total:,} · {counts(result)}")

        yield print_now_and_then
        return
    with CountsBelow(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda result: bar.update(task, completed=result.done, description=counts(result))


def report(result: Result, options: argparse.Namespace, console: Console) -> None:
    console.print(_outcome_table(result, options))
    console.print(_figures(result))
    for seconds, number, case in sorted(result.slowest, reverse=True):
        console.print(printable(f"{seconds * 1000:.1f} ms, string {number}, {case.kind}: {_in_short(case)}"))
    for seconds, again, number, case in result.too_slow:
        console.print(f"too slow: string {number}, {seconds * 1000:.0f} ms, alone {again * 1000:.0f} ms:")
        console.print(printable(repr(case)))
    if result.interrupted:
        console.print("interrupted: these are the strings done so far")
    if result.raised:
        number, case, error = result.raised
        console.print(f"raised: seed {options.seed}, string {number}, contract {options.contract}:")
        console.print(printable(repr(case)))
        console.print(printable(f"{type(error).__name__}: {error}"))
        for frame in traceback.extract_tb(error.__traceback__)[-6:]:
            console.print(printable(f"    {frame.filename}:{frame.lineno} in {frame.name}"))
    console.print(
        f"{result.done:,} strings, {1 if result.raised else 0} raised, {len(result.too_slow)} over {SLOW * 1000:.0f} ms"
    )


def _in_short(case: Case) -> str:
    return f"{shorten(case.response)}  for  {shorten(case.reference)}" + f" as {case.answer_type}" * bool(
        case.answer_type
    )


def _outcome_table(result: Result, options: argparse.Namespace) -> Table:
    names = sorted({name for counter in result.outcomes.values() for name in counter})
    title = f"{result.done:,} strings under contract {options.contract}, seed {options.seed}"
    table = Table(title=title, title_justify="left", highlight=False)
    table.add_column("")
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    rows = {**result.outcomes, "all": sum(result.outcomes.values(), Counter[str]())}
    for kind, counter in rows.items():
        table.add_row(kind, *(f"{counter[name]:,}" if counter[name] else "·" for name in names))
    return table


def _figures(result: Result) -> Table:
    done = max(1, result.done)
    table = two_columns(None)
    table.add_row("time", f"{result.wall:,.1f} s")
    table.add_row("verdicts a CPU-second", f"{result.done / max(1e-9, result.verifying):,.0f}")
    table.add_row("to make a string", f"{result.making / done * 1e6:.0f} µs")
    memory = ", ".join(f"{mib} MiB at {strings:,}" for strings, mib in result.memory)
    table.add_row("peak memory", memory)
    return table


if __name__ == "__main__":
    main()
