"""How right and how fast verdicts are, on labelled pairs and hostile input, beside peers in the same run.

    python -m veriward.scripts.bench_verifier                            10,000 random strings through each contract
    python -m veriward.scripts.bench_verifier --shared FOLDER            and every case file and data file in there
    python -m veriward.scripts.bench_verifier --shared FOLDER --prm800k CHECKOUT    and PRM800K's grader as a peer

The peer is math-verify, where it is installed (`pip install 'veriward[peers]'`). Everything is warmed up before
it is timed. `--only PART` runs one part; `--contract NAME` looks at another contract than v3.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from veriward.rewards import CONTRACTS, Certainty, Outcome, Verdict, verify, verify_answer
from veriward.rewards.contracts.v3.comparison import Finding
from veriward.rewards.contracts.v3.reading.grammar import Refused, parse
from veriward.rewards.contracts.v3.rules import structure
from veriward.rewards.contracts.v3.tree import is_scalar
from veriward.scripts.answer_strings import Pair, grammar_pairs, hostile_pairs, noise_pairs
from veriward.scripts.respell import respelled

Row = Mapping[str, Any]
Decide = Callable[[str, str], str]

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, help="folder with cases/ and data/")
    parser.add_argument("--contract", default="v3", choices=list(CONTRACTS))
    parser.add_argument("--only", choices=list(PARTS), action="append", help="run this part alone; may be repeated")
    parser.add_argument("--strings", type=int, default=10_000, help="random strings a contract")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prm800k", type=Path, help="checkout of PRM800K, whose grader is then a peer")
    options = parser.parse_args()
    console = Console(width=150)
    for name, part in PARTS.items():
        if name in (options.only or PARTS):
            if name != "strings" and options.shared is None:
                continue
            console.rule(name)
            part(console, options)


# ---------------------------------------------------------------------------------------------- hostile input


def preflight(console: Console, options: argparse.Namespace) -> None:
    """Every dangerous expression: refused or bounded, never equal to what it is not, cheap, and no process death."""
    rows = read_rows(options.shared / "cases" / "preflight_cases.jsonl")
    verify_answer("x+1", "1+x", contract=options.contract)
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    table = columns("preflight cases", "", "count")
    read_in_spite, equal, timed = [], [], []
    for row in rows:
        text = "".join(part * count for part, count in row["parts"]) if row.get("parts") else row["expression"]
        for reference in (row.get("reference", "7"), text):
            started = time.process_time()
            verdict = verify_answer(text, reference, contract=options.contract)
            timed.append((time.process_time() - started, row["id"]))
            if reference is not text and verdict.correct:
                equal.append(row["id"])
            if reference is not text and row["expect"] == "reject" and verdict.outcome is not Outcome.UNSUPPORTED:
                read_in_spite.append(row["id"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rejects = sum(row["expect"] == "reject" for row in rows)
    table.add_row("to be rejected, refused with a reason", f"{rejects - len(read_in_spite)}/{rejects} {read_in_spite}")
    table.add_row("judged equal to what it is not", f"{len(equal)}/{len(rows)} {equal}")
    table.add_row("slowest, ms CPU", f"{max(timed)[0] * 1000:.1f} ({max(timed)[1]})")
    table.add_row("memory above idle, MiB", f"{(peak - idle) / MIB:.1f}")
    console.print(table)


def strings(console: Console, options: argparse.Namespace) -> None:
    """Random answers, noise and hostile pairs through every contract."""
    table = timing_table("random strings")
    verify_answer("x+x", "2*x", contract="v1")  # imports SymPy
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
    console.print(table)


# --------------------------------------------------------------------------------------------- labelled pairs


@dataclass(slots=True)
class Score:
    """Right and wrong verdicts on pairs whose truth is known."""

    true: int = 0
    false: int = 0
    wrong_accepts: list[str] = field(default_factory=list)
    wrong_rejects: list[str] = field(default_factory=list)
    refuted: list[str] = field(default_factory=list)
    """True pairs called wrong with certainty 'proved'."""
    undecided: int = 0
    unsupported: int = 0
    slowest: float = 0.0

    def add(self, name: str, truth: bool, verdict: Verdict, seconds: float) -> None:
        self.true += truth
        self.false += not truth
        self.slowest = max(self.slowest, seconds)
        if verdict.correct and not truth:
            self.wrong_accepts.append(name)
        if truth and not verdict.correct:
            self.wrong_rejects.append(name)
            if verdict.outcome is Outcome.WRONG and verdict.certainty is Certainty.PROVED:
                self.refuted.append(name)
        self.undecided += verdict.outcome is Outcome.UNDECIDED
        self.unsupported += verdict.outcome in (Outcome.UNSUPPORTED, Outcome.BAD_REFERENCE)


def labelled(console: Console, options: argparse.Namespace) -> None:
    """Wrong accepts and wrong rejects on every labelled file, the scalar pairs apart."""
    verify_answer("x+1", "1+x", contract=options.contract)  # the first verdict reads the rules for their fingerprint
    peer = math_verify()
    table = columns(
        "labelled pairs",
        "",
        "wrong accepts",
        "wrong rejects",
        "true, wrong & proved",
        "undecided",
        "unsupported",
        "max ms",
    )
    lists: list[tuple[str, Score]] = []
    peers = columns("the same pairs, math-verify", "", "wrong accepts", "wrong rejects")
    for name, rows in labelled_files(options.shared).items():
        both = {"all": Score(), "scalar": Score()}
        for row in rows:
            started = time.process_time()
            verdict = verdict_of(row, options.contract)
            seconds = time.process_time() - started
            both["all"].add(str(row["id"]), row["truth"], verdict, seconds)
            if both_scalar(row):
                both["scalar"].add(str(row["id"]), row["truth"], verdict, seconds)
        for kind, score in both.items():
            total = score.true + score.false
            table.add_row(
                f"{name}, {kind}",
                f"{len(score.wrong_accepts)}/{score.false}",
                f"{len(score.wrong_rejects)}/{score.true}",
                f"{len(score.refuted)}/{score.true}",
                f"{score.undecided}/{total}",
                f"{score.unsupported}/{total}",
                f"{score.slowest * 1000:.1f}",
            )
        lists.append((name, both["all"]))
        if peer is not None:
            accepts, rejects = peer_errors(rows, peer)
            true = sum(row["truth"] for row in rows)
            peers.add_row(name, f"{accepts}/{len(rows) - true}", f"{rejects}/{true}")
    console.print(table)
    if peer is not None:
        console.print(peers)
    for name, score in lists:
        for label, ids in (("wrong accepts", score.wrong_accepts), ("true, wrong & proved", score.refuted)):
            if ids:
                console.print(f"{name}, {label}: {' '.join(ids)}", highlight=False)


def peer_errors(rows: Sequence[Row], peer: Decide) -> tuple[int, int]:
    """Wrong accepts and wrong rejects; where a case file records the peer's verdict on a whole response, that one."""
    accepts = rejects = 0
    for row in rows:
        said = row.get("math_verify")
        accepted = said if isinstance(said, bool) else peer(row["prediction"], row["reference"]) == "correct"
        accepts += accepted and not row["truth"]
        rejects += row["truth"] and not accepted
    return accepts, rejects


def labelled_files(shared: Path) -> dict[str, list[Row]]:
    """Rows of known truth: id, truth, and prediction or response with reference."""
    files = {
        "bug_cases": ("cases/bug_cases.jsonl", "expected_correct"),
        "adjudicated_given": ("cases/adjudicated_given.jsonl", "truth"),
        "zh_think_cases": ("cases/zh_think_cases.jsonl", "expected_correct"),
        "real_pairs_given, authors' labels": ("data/real_pairs_given.jsonl", "upstream_label"),
    }
    truths = {"true": True, "false": False, True: True, False: False}
    return {
        name: [{**row, "truth": truths[row[label]]} for row in read_rows(shared / path) if row.get(label) in truths]
        for name, (path, label) in files.items()
    }


def verdict_of(row: Row, contract: str) -> Verdict:
    """Of the whole response in the case files that have one, else of the answer."""
    if row.get("response") and "expected_correct" in row:
        return verify(row["response"], row["reference"], contract=contract, truncated=bool(row.get("truncated")))
    return verify_answer(row["prediction"], row["reference"], contract=contract)


def both_scalar(row: Row) -> bool:
    sides = [parse(row["prediction"] or ""), parse(row["reference"])]
    return all(not isinstance(side, Refused) and is_scalar(side) for side in sides)


# ------------------------------------------------------------------------------------------------- references


def references(console: Console, options: argparse.Namespace) -> None:
    """Every reference equals itself, and itself in other spellings with identity switched off; then all pairs."""
    table = columns("references", "", "count")
    texts = {name: read_references(options.shared, name) for name in ("math500", "gsm8k_test")}
    for name, all_texts in texts.items():
        same = sum(verify_answer(text, text, contract=options.contract).correct for text in all_texts)
        read = sum(not isinstance(parse(text), Refused) for text in all_texts)
        table.add_row(f"{name}: equal to themselves", f"{same}/{len(all_texts)}")
        table.add_row(f"{name}: read by the grammar", f"{read}/{len(all_texts)}")
    distinct = sorted({text for all_texts in texts.values() for text in all_texts})
    ways, failed = Counter[str](), []
    right = Counter[str]()
    for text in distinct:
        for way, other in respelled(text):
            ways[way] += 1
            found = compared(other, text)
            right[way] += found is Finding.EQUAL
            if found is not Finding.EQUAL:
                failed.append(f"{way}: {other}  for  {text}: {found}")
    for way, count in ways.items():
        table.add_row(f"re-spelled, {way}", f"{right[way]}/{count}")
    console.print(table)
    for line in failed:
        console.print(line, markup=False, highlight=False)
    pay_for_fragments(console, options, distinct)
    cross(console, distinct)


FRAGMENT = re.compile(r"-?\d+(?:\.\d+)?|\{[^{}]+\}|[^,;=+*/^_{}()\[\]<>|]+|\\\\?[a-z]+\{[^{}]*\}(?:\{[^{}]*\})?")


def pay_for_fragments(console: Console, options: argparse.Namespace, distinct: Sequence[str]) -> None:
    """Each number and part cut out of a reference, as an answer to it: paid only where a named convention says so."""
    tried, by_flag, unflagged = 0, Counter[str](), []
    for text in distinct:
        for fragment in sorted(set(fragments(text))):
            tried += 1
            verdict = verify_answer(fragment, text, contract=options.contract)
            if verdict.correct:
                by_flag[", ".join(verdict.flags) or f"none ({verdict.method})"] += 1
                if not verdict.flags:
                    unflagged.append(f"{fragment}  for  {text}")
    table = columns(f"{tried:,} fragments of references", "paid under the convention", "count")
    for flag, count in by_flag.most_common():
        table.add_row(flag, str(count))
    console.print(table)
    for line in unflagged:
        console.print("  " + line, markup=False, highlight=False)


def fragments(text: str) -> Iterator[str]:
    """Proper parts of a reference: numbers, what stands in brackets and between operators."""
    whole = "".join(text.split()).strip("$")
    for found in FRAGMENT.finditer(text):
        part = found[0].strip("{}$ ")
        if part and "".join(part.split()) != whole:
            yield part


def compared(candidate: str, reference: str) -> Finding | None:
    """What the engine finds without looking at the texts; None where one side is not read."""
    left, right = parse(candidate), parse(reference)
    if isinstance(left, Refused) or isinstance(right, Refused):
        return None
    return structure.compare(left, right).finding


def cross(console: Console, distinct: Sequence[str]) -> None:
    """Every accept between two references with different texts, to be looked at."""
    trees = [(text, tree) for text in distinct if not isinstance(tree := parse(text), Refused)]
    pairs = list(combinations(trees, 2))
    accepted = [
        f"{one}  =  {other}   ({found.method}, {found.certainty})"
        for (one, left), (other, right) in track(pairs, "all pairs of references", console=console, transient=True)
        if (found := structure.compare(left, right)).finding is Finding.EQUAL
    ]
    console.print(f"{len(pairs):,} pairs of distinct references, {len(accepted)} accepted:", highlight=False)
    for line in accepted:
        console.print("  " + line, markup=False, highlight=False)


# ------------------------------------------------------------------------------------------------------ speed


def speed(console: Console, options: argparse.Namespace) -> None:
    """Verdicts a CPU-second on real pairs, every contract and every peer in the same run."""
    pairs = [
        (row["prediction"], row["reference"]) for row in read_rows(options.shared / "data" / "real_pairs_given.jsonl")
    ]
    table = timing_table("real pairs, answer level")
    rates: dict[str, float] = {}

    def contract_decides(contract: str) -> Decide:
        return lambda candidate, reference: verify_answer(candidate, reference, contract=contract).outcome

    peers: dict[str, Decide | None] = {
        **{contract: contract_decides(contract) for contract in CONTRACTS},
        "math-verify": math_verify(),
        "PRM800K": None if options.prm800k is None else prm800k(options.prm800k),
    }
    for name, decide in peers.items():
        if decide is None:
            console.print(f"{name} is not here: no such peer in this run")
            continue
        with console.status(name):
            for pair in pairs[:20]:
                decide(*pair)
            rates[name] = measure(name, pairs, decide, table)
    console.print(table)
    for name in ("math-verify", "PRM800K"):
        if name in rates:
            console.print(
                f"{options.contract} / {name}: {rates[options.contract] / rates[name]:.1f} times the verdicts"
            )
    seconds = min(import_seconds() for _ in range(3))
    console.print(f"import veriward.rewards: {seconds:.3f} s")


def import_seconds() -> float:
    code = "import time; start = time.perf_counter(); import veriward.rewards; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout)


def math_verify() -> Decide | None:
    """Both sides in a box, as an ordinary caller would."""
    try:
        from math_verify import parse as peer_parse  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from math_verify import verify as peer_verify
    except ImportError:
        return None

    def decide(candidate: str, reference: str) -> str:
        gold, answer = peer_parse(rf"\boxed{{{reference}}}"), peer_parse(rf"\boxed{{{candidate}}}")
        return "correct" if peer_verify(gold, answer) else "wrong"

    return decide


def prm800k(checkout: Path) -> Decide:
    sys.path.insert(0, str(checkout / "prm800k"))
    grader = importlib.import_module("grading.grader")
    return lambda candidate, reference: "correct" if grader.grade_answer(candidate, reference) else "wrong"


# ----------------------------------------------------------------------------------------------------- common


def measure(name: str, pairs: Iterable[Pair], decide: Decide, table: Table) -> float:
    """Run the pairs and add a line to the table; returns decisions per CPU-second."""
    gc.collect()
    gc.freeze()  # what earlier parts left behind is not this one's to look through
    cpu: list[float] = []
    outcomes = Counter[str]()
    for candidate, reference in pairs:
        started = time.process_time()
        outcomes[decide(candidate, reference)] += 1
        cpu.append(time.process_time() - started)
    cpu.sort()
    per_second = len(cpu) / max(sum(cpu), 1e-9)
    at = [cpu[int(share * (len(cpu) - 1))] * 1000 for share in (0.5, 0.99, 1.0)]
    shares = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.most_common())
    table.add_row(name, str(len(cpu)), *(f"{ms:.2f}" for ms in at), f"{per_second:,.0f}", shares)
    return per_second


def timing_table(title: str) -> Table:
    return columns(f"{title}: ms CPU a verdict", "", "pairs", "p50", "p99", "max", "a CPU-second", "outcomes")


def columns(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", highlight=False)
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place in (0, 6) else "right")
    return table


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_references(shared: Path, name: str) -> list[str]:
    rows = read_rows(shared / "data" / f"{name}.jsonl")
    column = next(column for column in ("answer", "reference") if column in rows[0])
    return [str(row[column]) for row in rows]


PARTS: dict[str, Callable[[Console, argparse.Namespace], None]] = {
    "preflight": preflight,
    "labelled": labelled,
    "references": references,
    "speed": speed,
    "strings": strings,
}


if __name__ == "__main__":
    main()
