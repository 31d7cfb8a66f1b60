"""How long a verdict takes: strings of contract v1's grammar, noise, and real answers, beside a peer in the same run.

    python -m veriward.scripts.bench_verifier                          10,000 strings through v1 and v2
    python -m veriward.scripts.bench_verifier --pairs PAIRS.jsonl      and real pairs: rows with prediction, reference

The peer is math-verify, where it is installed (`pip install math-verify[antlr4_13_2]`), on the real pairs.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from veriward.rewards import CONTRACTS, verify, verify_answer

Pair = tuple[str, str]

LETTERS = "abcxyz"
NOISE = "".join(map(chr, range(32, 127))) + "\\{}()^_$ \n\t\0\ud800０ｘ√π∞−½"


def grammar_pairs(count: int, *, seed: int, contract: str) -> Iterator[Pair]:
    """Answers of v1's grammar (nested powers, roots and fractions in up to six letters) and a reference for each.

    Six in ten references are the answer itself rewritten (`(E)^2/(E)`, `E+x-x`), so that a cheap refutation cannot
    hide the cost of showing equality. Under v2, whose preflight refuses them by design, no implicit products and no
    computed exponents are drawn.
    """
    draw = random.Random(seed)
    for _ in range(count):
        letters = LETTERS[: draw.randint(1, 6)]
        answer = _expression(draw, draw.randint(1, 4), letters, narrow=contract == "v2")
        other = _expression(draw, draw.randint(1, 3), letters, narrow=contract == "v2")
        yield answer, _rewritten(draw, answer, other) if draw.random() < 0.6 else other


def hostile_pairs(count: int, *, seed: int) -> Iterator[Pair]:
    """Answers that were slow or raised once: infinity, division by zero, large roots, exponents in disguise."""
    draw = random.Random(seed)
    for _ in range(count):
        inner = _expression(draw, draw.randint(0, 2), LETTERS[: draw.randint(1, 6)], narrow=True)
        large = f"1e308^{draw.randint(2, 15)}"
        exponent = draw.choice(["x-x+10^10", "sqrt(4)*10^9", "2^2^12", "(x+60)^50", "1/999983", "y"])
        answer = draw.choice(
            [
                f"({inner})+oo",
                f"({inner})/0",
                f"({inner})/(x-x)",
                f"({inner})^({exponent})",
                f"sqrt({large}+{inner})",
                f"({large}+{draw.randint(1, 9)})^{draw.choice(['.2', '0.5', '(1/7)'])}",
                "+".join(f"sqrt({large}+{k})" for k in range(draw.randint(1, 9))),
                f"{inner}//{draw.choice(['0', '2', 'x'])}",
                f"1{'/2' * draw.randint(1, 900)}",
                f"(({inner})^(1/{draw.randint(2, 9)}))^0.25",
            ]
        )
        yield answer, draw.choice(["oo", "1/0", "1", f"(({answer})^2-1)/(({answer})+1)+1", f"{answer}+0"])


def noise_pairs(count: int, *, seed: int) -> Iterator[Pair]:
    """Responses of random characters, boxes and brackets among them, and a reference for each."""
    draw = random.Random(seed)
    for _ in range(count):
        text = "".join(draw.choices(NOISE, k=draw.randint(0, 80)))
        yield (
            draw.choice([text, rf"\boxed{{{text}}}", rf"so \boxed{{{text}", f"{text} {draw.random()}"]),
            draw.choice(["4", "x+1", text]),
        )


def _expression(draw: random.Random, depth: int, letters: str, *, narrow: bool) -> str:
    if depth == 0 or draw.random() < 0.15:
        factor = str(draw.randint(2, 9)) + ("*" if narrow else "") + draw.choice(letters)
        return draw.choice([str(draw.randint(1, 12)), draw.choice(letters), draw.choice(letters), factor, r"\pi"])
    one, two = (_expression(draw, depth - 1, letters, narrow=narrow) for _ in range(2))
    exponents = [str(draw.randint(2, 9)), "-1", "20", "64"] + ([] if narrow else ["1/2", letters[-1]])
    return draw.choice(
        [
            rf"\frac{{{one}}}{{{two}}}",
            rf"\sqrt{{{one}}}",
            rf"({one})^{{{draw.choice(exponents)}}}",
            f"{one}+{two}",
            f"({one}-{two})",
            f"({one})*({two})",
        ]
    )


def _rewritten(draw: random.Random, answer: str, other: str) -> str:
    return draw.choice(
        [
            f"({answer})*2/2",
            f"{answer}+({other})-({other})",
            f"1/(1/({answer}))",
            f"({answer})^2/({answer})",
            f"(({answer})^2-1)/(({answer})+1)+1",
            f"(({answer})*({other})+({other}))/({other})-1",
            rf"(\sqrt{{{answer}}})^2",
        ]
    )


def measure(name: str, pairs: Iterable[Pair], decide: Callable[[str, str], str], table: Table) -> float:
    """Run the pairs and add a line to the table; returns decisions per CPU-second."""
    wall, cpu, outcomes = [], 0.0, Counter[str]()
    for candidate, reference in pairs:
        started, cpu_started = time.perf_counter(), time.process_time()
        outcomes[decide(candidate, reference)] += 1
        cpu += time.process_time() - cpu_started
        wall.append(time.perf_counter() - started)
    wall.sort()
    per_second = len(wall) / max(cpu, 1e-9)
    at = [wall[int(share * (len(wall) - 1))] * 1000 for share in (0.5, 0.99, 1.0)]
    shares = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
    table.add_row(name, str(len(wall)), *(f"{ms:.2f}" for ms in at), f"{per_second:,.0f}", shares)
    return per_second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strings", type=int, default=10_000, help="strings a contract, half grammar, half noise")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=Path, help="JSONL rows with prediction and reference")
    options = parser.parse_args()

    console = Console(width=160)
    table = Table(title="ms a verdict (wall clock)")
    for column in ("", "pairs", "p50", "p99", "max", "a CPU-second", "outcomes"):
        table.add_column(column, justify="left" if column in ("", "outcomes") else "right")
    verify_answer("x+x", "2*x")  # imports SymPy
    for contract in CONTRACTS:

        def answer(candidate: str, reference: str, contract: str = contract) -> str:
            return verify_answer(candidate, reference, contract=contract).outcome

        def response(text: str, reference: str, contract: str = contract) -> str:
            return verify(text, reference, contract=contract).outcome

        half = options.strings // 2
        with console.status(f"{contract}: {options.strings} strings"):
            measure(f"{contract} grammar", grammar_pairs(half, seed=options.seed, contract=contract), answer, table)
            measure(f"{contract} noise", noise_pairs(half, seed=options.seed), response, table)
            measure(f"{contract} hostile", hostile_pairs(half // 5, seed=options.seed), answer, table)
        if options.pairs:
            measure(f"{contract} real", read_pairs(options.pairs), answer, table)
    if options.pairs:
        with console.status("math-verify"):
            measure_peer(options.pairs, table, console)
    console.print(table)


def read_pairs(path: Path) -> list[Pair]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [(row["prediction"], row["reference"]) for row in rows]


def measure_peer(path: Path, table: Table, console: Console) -> None:
    """math-verify on the same pairs, both sides in a box, as an ordinary caller would."""
    try:
        from math_verify import parse  # type: ignore[import-not-found]
        from math_verify import verify as peer_verify
    except ImportError:
        console.print("math-verify is not installed: no peer in this run")
        return

    def decide(candidate: str, reference: str) -> str:
        gold, answer = parse(rf"\boxed{{{reference}}}"), parse(rf"\boxed{{{candidate}}}")
        return "correct" if peer_verify(gold, answer) else "wrong"

    decide("1", "2")
    measure("math-verify real", read_pairs(path), decide, table)


if __name__ == "__main__":
    main()
