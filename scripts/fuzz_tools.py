"""Fuzzed expressions and calls through the tools' door: none may raise, none may cost over 200 ms of CPU.

    python -m veriward.scripts.fuzz_tools                                    1,000,000 inputs or ten minutes
    python -m veriward.scripts.fuzz_tools --cases FILE                       and mutations of the inputs in a case file
    python -m veriward.scripts.fuzz_tools --seed 3 --start 41007 --count 1   one input of an earlier run again

An input goes to one of the two numeric tools under one of the two profiles, or to one of the three readers of calls.
The exit code is 1 if one raised or gave a result that cannot be stored, which ends the run and is printed with its
number, or if one was slow. Ctrl-C prints what was done so far.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import heapq
import json
import math
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from veriward.scripts.answer_strings import NOISE
from veriward.scripts.display import SECONDS_BETWEEN_LINES, printable, shorten, two_columns
from veriward.scripts.fuzz_verify import peak_memory
from veriward.tool_agent import READERS, ToolResult, evaluate_expression, run_call
from veriward.tool_agent.errors import ConfigError

SLOW = 0.2
"""CPU-seconds that no input may take."""
SHOWN = 8
"""Slowest inputs that are printed."""
BETWEEN_LOOKS = 256
"""Inputs between two looks at the clock."""

TOOLS = tuple((tool, profile) for tool in ("calculator", "python_expr") for profile in ("default", "strict"))


@dataclass(frozen=True, slots=True)
class Case:
    """One input and where it goes."""

    kind: str
    door: tuple[str, ...]
    """A tool and a profile, or a reader."""
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs")
    parser.add_argument("--seconds", type=float, default=600, help="wall-clock limit of the whole run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first input")
    parser.add_argument("--cases", type=Path, help="case file with tool, level and input, mutated too")
    options = parser.parse_args()
    try:
        texts = read_texts(options.cases)
    except ConfigError as error:
        parser.error(str(error))
    faulthandler.enable()
    console = Console(highlight=False, soft_wrap=True, width=120)
    numbers = range(options.start, options.start + options.count)
    last = time.perf_counter()

    def print_now_and_then(result: Result) -> None:
        nonlocal last
        if time.perf_counter() - last >= SECONDS_BETWEEN_LINES:
            last = time.perf_counter()
            slowest = max(result.slowest)[0] * 1000 if result.slowest else 0
            rate = result.done / max(1e-9, result.wall)
            console.print(f"{result.done:,}/{len(numbers):,} · {rate:,.0f}/s · slowest {slowest:.1f} ms")

    result = run(numbers, options.seed, texts, seconds=options.seconds, on_progress=print_now_and_then)
    report(result, options.seed, console)
    sys.exit(1 if result.raised or result.too_slow else 0)


# -------------------------------------------------------------------------------------------------------- the run


@dataclass(slots=True)
class Result:
    """What came out so far. Times are seconds of CPU."""

    done: int = 0
    categories: dict[str, Counter[str]] = field(default_factory=dict)
    """By kind of input; 'value' where there is one."""
    computing: float = 0.0
    wall: float = 0.0
    slowest: list[tuple[float, int, Case]] = field(default_factory=list)
    """Seconds, number and input; a heap."""
    too_slow: list[tuple[float, int, Case]] = field(default_factory=list)
    raised: tuple[int, Case, BaseException] | None = None
    interrupted: bool = False

    def add(self, case: Case, category: str, number: int, computing: float) -> None:
        self.done += 1
        self.categories.setdefault(case.kind, Counter())[category] += 1
        self.computing += computing
        keep = heapq.heappush if len(self.slowest) < SHOWN else heapq.heappushpop
        keep(self.slowest, (computing, number, case))


def run(
    numbers: Sequence[int],
    seed: int,
    texts: Sequence[str],
    *,
    seconds: float,
    on_progress: Callable[[Result], None] = lambda _: None,
) -> Result:
    """Give the inputs with these numbers to the door, until one raises, the time is over or Ctrl-C comes."""
    result = Result()
    for tool, profile in TOOLS:  # what every process pays once
        evaluate_expression(tool, "1", profile)
    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    try:
        for number in numbers:
            if result.done % BETWEEN_LOOKS == 0:
                result.wall = time.perf_counter() - started
                if result.wall > seconds:
                    break
                on_progress(result)
            _one(number, drawn(seed, number, texts), result)
            if result.raised:
                break
    except KeyboardInterrupt:
        result.interrupted = True
    result.wall = time.perf_counter() - started
    return result


def _one(number: int, case: Case, result: Result) -> None:
    try:
        category, computing = decided_in(case)
        if computing > SLOW:  # once more: the machine may have been busy, the collector at work
            computing = min(computing, decided_in(case)[1])
    except Exception as error:  # noqa: BLE001  the finding of this run: reported with its input, exit code 1
        result.raised = (number, case, error)
        return
    result.add(case, category, number, computing)
    if computing > SLOW:
        result.too_slow.append((computing, number, case))


def decided_in(case: Case) -> tuple[str, float]:
    """The category of one input, or 'value', and the seconds of CPU it took."""
    started = time.process_time()
    if len(case.door) == 2:
        tool, profile = case.door
        result = evaluate_expression(tool, case.text, profile)
    else:
        result = run_call(case.text, case.door[0])
    computing = time.process_time() - started
    check_storable(result)
    return result.category or "value", computing


def check_storable(result: ToolResult) -> None:
    """What every result promises: a finite number without signed zero, and text that UTF-8 holds."""
    f"{result.text}{result.hint}".encode()
    if isinstance(result.value, str | list):
        return
    number = result.value
    if isinstance(number, bool) or not isinstance(number, int | float | None):
        raise TypeError(f"no number: {result}")
    if isinstance(number, float) and (not math.isfinite(number) or str(number) == "-0.0"):
        raise ValueError(f"no number that can be stored: {result}")


# ----------------------------------------------------------------------------------------------------- the inputs

OWN_CASES = (
    "(25 - 7) * 6 / 9|7! / (5! * 2!)|round(sqrt(2),6)|comb(12,3)|gcd(462, 1071)|1,234.5 * 2|80 * 15%|5² + 12²|2^3!|"
    "１２＋３０|-7 // 2|7 % (-3)|0.1+0.2-0.3|((9**64)**64)**64|comb(10**9, 10**9 - 2)|1e308*1e308|(-8)**(1/3)|"
    "__import__('os').system('id')|[x for x in (1, 2)]|math.sqrt(2)|factorial(10**6)|200 + 10%|2(3+4)|1 if 1 else 2"
)
SIGNS_AND_WORDS = (
    "+ - * / // % ** ^ ! ( ) , . _ e E = ' \" [ ] { } × ÷ − – ⋅ · ² ³ ¹⁰ （ ） ＋ ％ 0 1 2 3 7 10 12 100 0.5 .5 5. 1e3 "
    "1e308 1e-308 1e309 9**9 1,000 1_000 007 ０ ９ comb( factorial( gcd( round( sqrt( comb sqrt abs( x pi nan True "
    "lambda: 1if ½ ٣ \xa0 \u200b \ud800 \x00 \n"
)
REPEATED = "9** **9 ( ) - + ! !! 1+ 1, 1/3+ sqrt( factorial( comb(9, gcd(9, round( 2** (9**64)* 1e308* 7!* ² 50%* 0 9"
AROUND_CALLS = (
    '<think>|</think>|<tool_call>|</tool_call>|```json\n|```|{|}|[|]|,|"|\\|\\ud800|NaN|1e999|null|:|\n|// x|\ufeff'
)

CASES, AROUND = OWN_CASES.split("|"), AROUND_CALLS.split("|")
PIECES, BOMBS = SIGNS_AND_WORDS.split(" "), REPEATED.split()


def read_texts(cases: Path | None) -> list[str]:
    """Inputs to be mutated: a few of our own and, where given, those of a case file.

    raises   ConfigError if the file has none
    """
    if cases is None:
        return list(CASES)
    try:
        rows = [json.loads(line) for line in cases.read_text(encoding="utf-8").splitlines() if line]
        found = [row["input"] for row in rows if isinstance(row.get("input"), str)]
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"--cases {cases}: {error}; wanted a JSONL file whose rows have an input") from error
    if not found:
        raise ConfigError(f"--cases {cases}: no row has an input; wanted a JSONL file of cases for tools")
    return [*CASES, *found]


def drawn(seed: int, number: int, texts: Sequence[str]) -> Case:
    """The input of that number."""
    draw = Random((seed << 40) + number)
    kind = draw.choices(list(KINDS), cum_weights=_CUMULATED)[0]
    text = KINDS[kind][1](draw, texts)
    if draw.random() < 0.3:
        reader = draw.choice(READERS)
        return Case(kind, (reader,), _as_call(draw, text, reader))
    return Case(kind, draw.choice(TOOLS), text)


def _grammar(draw: Random, _texts: Sequence[str]) -> str:
    return _expression(draw, draw.randint(0, 5))


def _expression(draw: Random, depth: int) -> str:
    if depth == 0:
        return draw.choice(("0", "1", "2", "3", "10", "64", "1e2", "0.5", "1,000", "2.5", str(draw.randint(0, 10**9))))
    inner = _expression(draw, depth - 1)
    match draw.randrange(8):
        case 0:
            return f"({inner})"
        case 1:
            return f"-{inner}"
        case 2:
            return inner + draw.choice(("!", "%", "²", "**2", "^0.5", "**(1/3)", "**-1"))
        case 3:
            return f"{draw.choice(('sqrt', 'factorial', 'round'))}({inner})"
        case 4:
            return f"{draw.choice(('comb', 'gcd', 'round'))}({inner}, {_expression(draw, depth - 1)})"
    sign = draw.choice(("+", "-", "*", "/", "//", " % ", "**", "×", "÷", "−"))
    return f"({inner}){sign}({_expression(draw, depth - 1)})"


def _pieces(draw: Random, _texts: Sequence[str]) -> str:
    return "".join(draw.choices(PIECES, k=draw.randint(1, 24)))


def _noise(draw: Random, _texts: Sequence[str]) -> str:
    return "".join(draw.choices(NOISE, k=draw.randint(0, 60)))


def _bomb(draw: Random, _texts: Sequence[str]) -> str:
    parts = [draw.choice(BOMBS) * draw.choice((1, 2, 30, 100, 250)) for _ in range(draw.randint(1, 3))]
    text = "".join((*parts, draw.choice(("1", "9", "(1/3)", "2**4000", "")), ")" * draw.choice((0, 0, 1, 32))))
    return text[:512] if draw.random() < 0.9 else text * draw.choice((1, 10, 100))


def _mutated(draw: Random, texts: Sequence[str]) -> str:
    text = draw.choice(texts)
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(text))
        end = at + draw.choice((0, 0, 1, 1, 2, 8))
        piece = draw.choice((draw.choice(PIECES), draw.choice(AROUND), text[at:end] * 2, draw.choice(texts), ""))
        text = text[:at] + piece + text[end:]
    return text


KINDS: dict[str, tuple[int, Callable[[Random, Sequence[str]], str]]] = {
    "grammar": (30, _grammar),
    "pieces": (20, _pieces),
    "noise": (10, _noise),
    "bomb": (10, _bomb),
    "mutated": (30, _mutated),
}
"""Kinds of inputs: their share in percent, and what makes one."""

_CUMULATED = list(accumulate(share for share, _ in KINDS.values()))


def _as_call(draw: Random, text: str, reader: str) -> str:
    """The text as the argument of a call, in the reader's form, now and then broken."""
    tool = draw.choice(("calculator", "python_expr", "local_search"))
    arguments: dict[str, object] = {"query" if tool == "local_search" else "expression": text}
    escaped = draw.random() < 0.5
    if reader == "openai":
        function = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=escaped)}
        call = json.dumps([{"id": "1", "type": "function", "function": function}], ensure_ascii=escaped)
    else:
        call = json.dumps(
            {"name" if reader == "hermes" else "tool": tool, "arguments": arguments}, ensure_ascii=escaped
        )
    if reader == "hermes":
        call = f"<tool_call>{call}</tool_call>"
    chance = draw.random()
    if chance < 0.4:
        return call
    if chance < 0.5:
        return draw.choice(AROUND) * draw.choice((1, 100, 5_000)) + call
    for _ in range(draw.randint(1, 3)):
        at = draw.randint(0, len(call))
        call = call[:at] + draw.choice((*AROUND, call[: draw.randint(0, at)])) + call[at + draw.choice((0, 1)) :]
    return call


# ------------------------------------------------------------------------------------------------- what is printed


def report(result: Result, seed: int, console: Console) -> None:
    names = list(KINDS)
    table = Table(title=f"{result.done:,} inputs, seed {seed}", title_justify="left", highlight=False)
    table.add_column("")
    for name in (*names, "all"):
        table.add_column(name, justify="right")
    total = sum(result.categories.values(), Counter[str]())
    for category, count in total.most_common():
        counts = [result.categories.get(name, Counter())[category] for name in names]
        table.add_row(category.replace("_", " "), *(f"{one:,}" if one else "·" for one in (*counts, count)))
    console.print(table)
    figures = two_columns(None)
    figures.add_row("time", f"{result.wall:,.1f} s")
    figures.add_row("an input", f"{result.computing / max(1, result.done) * 1e6:,.0f} µs of CPU")
    figures.add_row("peak memory", f"{peak_memory()} MiB")
    console.print(figures)
    for seconds, number, case in sorted(result.slowest, reverse=True):
        console.print(
            printable(f"{seconds * 1000:.1f} ms, input {number}, {' '.join(case.door)}: {shorten(case.text)}")
        )
    for seconds, number, case in result.too_slow:
        console.print(printable(f"too slow: input {number}, {seconds * 1000:.0f} ms: {case!r}"))
    if result.interrupted:
        console.print("interrupted: these are the inputs done so far")
    if result.raised:
        number, case, error = result.raised
        console.print(printable(f"raised: --seed {seed} --start {number} --count 1: {case!r}"))
        console.print(printable(f"{type(error).__name__}: {error}"))
        for frame in traceback.extract_tb(error.__traceback__)[-6:]:
            console.print(printable(f"    {frame.filename}:{frame.lineno} in {frame.name}"))
    raised, slow = (1 if result.raised else 0), len(result.too_slow)
    console.print(f"{result.done:,} inputs, {raised} raised, {slow} over {SLOW * 1000:.0f} ms")


if __name__ == "__main__":
    main()
