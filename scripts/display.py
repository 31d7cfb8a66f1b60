"""What the commands print: tables, bars and lines, for a terminal or a file."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, TaskProgressColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from veriward.eval.attack.run import AttackRun, TargetReport
    from veriward.eval.contract_comparison import ContractComparison
    from veriward.eval.loop import EvalResult, Progress
    from veriward.eval.metrics import Summary
    from veriward.eval.pair_file import GradedFile
    from veriward.eval.pair_file import Progress as GradingProgress
    from veriward.eval.reference_check import ReferenceCheck
    from veriward.eval.runs import Run
    from veriward.rewards import Verdict

SECONDS_BETWEEN_LINES = 10

SHOWN_MECHANISMS = 12
"""With an example each; more fill a screen."""
"""Progress where there is no terminal: a line at most this often."""

COMPLAINTS_SHOWN = 20
"""Lines of a file of pairs that are named before the rest is only counted."""

FOR_MACHINES = frozenset(
    {"span", "verifier_called", "cost_bits", "cost_terms", "cost_work", "fingerprint", "truncated", "microseconds"}
)
"""Fields of a verdict that only --json shows."""


def show_references(result: ReferenceCheck, console: Console) -> None:
    total = result.references
    table = two_columns(f"{total:,} references under contract v3")
    for kind, count in result.kinds.items():
        table.add_row(f"kind {kind}", f"{count:,}/{total:,}")
    if result.solutions:
        table.add_row("key taken out of a solution", f"{result.solutions:,}/{total:,}")
    table.add_row("ambiguous without a type", f"{len({item.line for item in result.ambiguous}):,}/{total:,}")
    table.add_row("cannot be read", f"{len(result.unreadable):,}/{total:,}")
    console.print(table)
    for item in result.unreadable[:COMPLAINTS_SHOWN]:
        console.print(printable(f"line {item.line}: {item.reason}, character {item.position}: {item.detail}"))
        console.print(printable(f"    {shorten(item.reference)}"), soft_wrap=True)
    questions = Counter((item.question, item.suggestion) for item in result.ambiguous)
    for (question, suggestion), count in questions.most_common():
        example = next(item for item in result.ambiguous if item.question == question)
        said = f"{count:,} × {question}? Say it with {suggestion}. Line {example.line}: {shorten(example.reference)}"
        console.print(printable(said), soft_wrap=True)


def show_comparison(result: ContractComparison, shown: int, console: Console) -> None:
    columns = sorted({outcome for _, outcome in result.matrix})
    rows = sorted({outcome for outcome, _ in result.matrix})
    title = f"{result.pairs:,} pairs: {result.first} down, {result.second} across"
    table = Table(title=title, title_justify="left", highlight=False)
    table.add_column("")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for row in rows:
        counts = [result.matrix.get((row, column), 0) for column in columns]
        table.add_row(row.replace("_", " "), *(f"{count:,}" if count else "·" for count in counts))
    console.print(table)
    console.print(
        f"{len(result.disagreements):,} disagreements; {result.skipped:,} calls of v1 skipped for their cost",
        highlight=False,
    )
    for pair in result.disagreements[:shown]:
        one, other = (
            " ".join(filter(None, (outcome, reason and f"({reason})")))
            for outcome, reason in zip(pair["outcomes"], pair["reasons"], strict=True)
        )
        candidates = " | ".join(dict.fromkeys(shorten(str(text)) for text in pair["candidates"]))
        said = f"line {pair['line']}: {one} -> {other}: {candidates}  for  {shorten(pair['reference'])}"
        console.print(printable(said), soft_wrap=True)


def shorten(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}…{text[-19:]}"


class CountsBelow(Bar):
    """A bar with the running counts on a line of their own, since together they are wider than a terminal."""

    def get_renderables(self) -> Iterator[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield from (Text(task.description) for task in self.tasks)


@contextlib.contextmanager
def show_progress(console: Console, label: str = "") -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal, now and then a line elsewhere; the label stands in front of the counts."""
    if not console.is_terminal:
        with line_printer(console, label) as on_progress:
            yield on_progress
        return
    with CountsBelow(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=None)
        started = time.perf_counter()

        def on_progress(progress: Progress) -> None:
            rate = progress.tokens / (time.perf_counter() - started)
            text = f"{running_counts(progress)} · {rate:,.0f} tokens/s" if progress.finished else "first responses…"
            bar.update(task, total=progress.total, completed=progress.finished, description=label + text)

        yield on_progress


@contextlib.contextmanager
def show_grading(console: Console, pairs: Path) -> Iterator[Callable[[GradingProgress], None]]:
    """A bar over the bytes of the file on a terminal; elsewhere a line now and then."""
    size = pairs.stat().st_size if pairs.is_file() else None
    started = last = time.perf_counter()

    def counts(progress: GradingProgress) -> str:
        done = progress.graded + progress.reused
        rate = progress.graded / max(1e-9, time.perf_counter() - started)
        outcomes = [f"{name.replace('_', ' ')} {count:,}" for name, count in progress.outcomes.most_common()]
        return " · ".join([f"{done:,} verdicts", *outcomes, f"{rate:,.0f}/s"])

    if not console.is_terminal:

        def print_now_and_then(progress: GradingProgress) -> None:
            nonlocal last
            if time.perf_counter() - last >= SECONDS_BETWEEN_LINES:
                last = time.perf_counter()
                console.print(counts(progress), highlight=False)

        yield print_now_and_then
        return
    with CountsBelow(BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=size)
        yield lambda progress: bar.update(task, completed=progress.bytes, description=counts(progress))


def first_lines(console: Console) -> Callable[[str], None]:
    """Prints the first complaints, and says where it stops."""
    printed = 0

    def complain_about(line: str) -> None:
        nonlocal printed
        printed += 1
        if printed <= COMPLAINTS_SHOWN:
            console.print(printable(line), soft_wrap=True)
        elif printed == COMPLAINTS_SHOWN + 1:
            console.print("...and more like these; the last line counts them", highlight=False)

    return complain_about


def grading_table(result: GradedFile) -> Table:
    """Outcomes, certainties and reasons, each with its denominator."""
    done = result.graded + result.reused
    table = two_columns(f"{done:,} verdicts under contract {result.contract}, fingerprint {result.fingerprint}")
    for outcome, count in sorted(result.outcomes.items(), key=lambda pair: -pair[1]):
        table.add_row(f"outcome {outcome.replace('_', ' ')}", f"{count:,}/{done:,}")
    for certainty, count in result.certainties.items():
        table.add_row(f"decided, {certainty}", f"{count:,}/{done:,}")
    for reason, count in list(result.reasons.items())[:12]:
        table.add_row(f"reason {reason.replace('_', ' ')}", f"{count:,}/{done:,}")
    for name, count in list(result.unknown_types.items())[:12]:
        table.add_row("unknown answer_type, read as auto", f"{count:,} {name}")
    if result.reused:
        table.add_row("of an earlier run", f"{result.reused:,}/{done:,}")
    return table


@contextlib.contextmanager
def line_printer(console: Console, label: str = "") -> Iterator[Callable[[Progress], None]]:
    """Now and then a line, and always the last one."""
    last, held = -float("inf"), ""

    def on_progress(progress: Progress) -> None:
        nonlocal last, held
        held = f"{label}{progress.finished}/{progress.total} responses · {running_counts(progress)}"
        now = time.perf_counter()
        if now - last >= SECONDS_BETWEEN_LINES:
            console.print(held, highlight=False)
            last, held = now, ""

    try:
        yield on_progress
    finally:
        if held:
            console.print(held, highlight=False)


@contextlib.contextmanager
def show_attacking(console: Console, targets: int, cases: int) -> Iterator[Callable[[TargetReport], None]]:
    """A bar over all calls on a terminal, now and then a line elsewhere."""
    total, last = targets * cases, time.perf_counter()
    begun: list[TargetReport] = []

    def counts(report: TargetReport) -> tuple[int, str]:
        from veriward.eval.attack.report import kinds_in_words

        if not any(report is other for other in begun):
            begun.append(report)
        done = (len(begun) - 1) * cases + len(report.results)
        return done, f"{report.target.label}: {kinds_in_words(report.results) or 'nothing found yet'}"

    if not console.is_terminal:

        def print_now_and_then(report: TargetReport) -> None:
            nonlocal last
            done, text = counts(report)
            now = time.perf_counter()
            if report.results and now - last >= SECONDS_BETWEEN_LINES:
                last = now
                console.print(printable(f"{done}/{total} calls · {text}"), soft_wrap=True)

        yield print_now_and_then
        return
    with CountsBelow(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=total)

        def on_progress(report: TargetReport) -> None:
            done, text = counts(report)
            bar.update(task, completed=done, description=text)

        yield on_progress


def show_attack(run: AttackRun, console: Console) -> None:
    """One target in full, or several side by side; then every mechanism that worked, with its first example."""
    if not run.reports:
        return
    console.print(one_target_table(run) if len(run.reports) == 1 else side_by_side_table(run))
    for report in run.reports:
        show_mechanisms(report, console)


def one_target_table(run: AttackRun) -> Table:
    from veriward.eval.attack.run import Finding

    (report,) = run.reports
    print_of = f", fingerprint {report.target.fingerprint}" if report.target.fingerprint else ""
    table = Table(title=f"{report.target.label}{print_of}, seed {run.settings.seed}", title_justify="left")
    table.add_column("family", no_wrap=True)
    heads = ("cases", "wrong\naccepts", "wrong\nrejects", "right un-\ndecided", "hangs", "crashes", "raised", "sec.")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)

    def add(name: str, family: str | None) -> None:
        counts = report.counts(family)
        shown = (
            *(counts[Finding.WRONG_ACCEPT], counts[Finding.WRONG_REJECT], report.left_undecided(family)),
            *(counts[Finding.HANG], counts[Finding.CRASH], counts[Finding.EXCEPTION]),
        )
        faults = [f"{count:,}" if count else "·" for count in shown]
        table.add_row(name, f"{report.cases(family):,}", *faults, f"{report.seconds(family):,.1f}")

    for family in run.families:
        add(family, family)
    table.add_section()
    add("all", None)
    return table


def side_by_side_table(run: AttackRun) -> Table:
    from veriward.eval.attack.report import cell

    title = "wrong accepts / wrong rejects / right answers undecided / hangs, crashes and exceptions"
    table = Table(title=f"{title}; seed {run.settings.seed}", title_justify="left")
    for head in ("family", "cases", *(report.target.label for report in run.reports)):
        table.add_column(printable(head), justify="left" if head == "family" else "right")
    for family in run.families:
        cases = sum(1 for case in run.cases if case.family == family)
        table.add_row(family, f"{cases:,}", *(cell(report, family) for report in run.reports))
    table.add_section()
    table.add_row("all", f"{len(run.cases):,}", *(cell(report) for report in run.reports))
    table.add_row("seconds", "", *(f"{report.seconds():,.1f}" for report in run.reports))
    return table


def show_mechanisms(report: TargetReport, console: Console) -> None:
    from veriward.eval.attack.cases import MECHANISMS
    from veriward.eval.attack.report import kinds_in_words

    found = report.mechanisms()
    known = sum(1 for name in MECHANISMS if name in found)
    console.print(
        printable(f"{report.target.label}: {len(found)} mechanisms, {known} of the {len(MECHANISMS)} known ones"),
        soft_wrap=True,
    )
    for name, results in list(found.items())[:SHOWN_MECHANISMS]:
        first = results[0]
        console.print(printable(f"  {name}: {kinds_in_words(results)}"), soft_wrap=True)
        said = first.detail or f"paid {first.value:g}"
        example = f"{first.case.id}: {end_of(first.case.completion)}  for  {shorten(first.case.reference)}: {said}"
        console.print(printable(f"    {example}"), no_wrap=True, overflow="ellipsis", highlight=False)
    if len(found) > SHOWN_MECHANISMS:
        console.print(f"  and {len(found) - SHOWN_MECHANISMS} more; --out FILE.json has all of them, with every input")


def end_of(text: str) -> str:
    """The part of a response in which its answer mostly stands."""
    return text if len(text) <= 50 else f"…{text[-49:]}"


def running_counts(progress: Progress) -> str:
    counts = [f"{name.replace('_', ' ')} {count}" for name, count in sorted(progress.outcomes.items())]
    return " · ".join([*counts, f"cut off {progress.truncated}"])


def result_table(result: EvalResult, seconds: float) -> Table:
    """Every rate with its denominator; what is undefined says so."""
    summary = result.summary
    table = two_columns(f"{summary.problems} problems, {summary.samples} response(s) each, contract {summary.contract}")
    table.add_row("accuracy", str(summary.accuracy))
    table.add_row("95 % interval", interval_of(summary))
    bounds = summary.bounds
    if bounds.open:
        table.add_row(
            "whatever the open are worth",
            f"{as_range((bounds.lowest.value or 0.0, bounds.highest.value or 0.0))} ({counts(bounds.open)})",
        )
    for k, value in summary.pass_at_k.items():
        table.add_row(
            f"pass@{k}, pass^{k}, maj@{k}", f"{value:.1%}, {summary.pass_hat_k[k]:.1%}, {summary.maj_at_k[k]:.1%}"
        )
    table.add_row("format valid", str(summary.format_valid))
    table.add_row("cut off", str(summary.truncated))
    for outcome, count in summary.outcomes.items():
        if count:
            table.add_row(f"outcome {outcome.replace('_', ' ')}", f"{count}/{summary.accuracy.total}")
    if summary.unreadable_references:
        table.add_row("unreadable references", f"{len(summary.unreadable_references)}, left out: see summary.json")
    if summary.lengths:
        lengths = summary.lengths
        table.add_row("tokens a response", f"mean {lengths['mean']:,.1f}, longest {lengths['longest']:,.0f}")
    if summary.smallest_difference is not None:
        table.add_row("smallest difference", f"{100 * summary.smallest_difference:.1f} points, for a paired comparison")
    if summary.tokens and summary.cost.seconds:
        table.add_row("tokens a second", f"{summary.tokens / summary.cost.seconds:,.0f}")
    table.add_row("time", f"{seconds:,.1f} s" + (f", {result.reused} responses reused" if result.reused else ""))
    table.add_row("folder", printable(str(result.folder)))
    return table


def runs_at(paths: Sequence[Path]) -> list[Run]:
    """The runs in some folders; states that cannot be read are named, as they are missing in every number."""
    from veriward.eval.runs import read_runs

    runs = read_runs(paths)
    for run in runs:
        for line in run.set_aside:
            print(printable(f"{run.name}: counted as missing, a state that cannot be read: {line}"), file=sys.stderr)
    return runs


def interval_of(summary: Summary) -> str:
    """With its method, or why there is none."""
    if summary.interval is None:
        return summary.interval_method
    return f"{as_range(summary.interval)} ({summary.interval_method})"


def as_range(interval: tuple[float, float] | None) -> str:
    return "undefined" if interval is None else f"{interval[0]:.1%} to {interval[1]:.1%}"


def counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in found.items())


def verdict_table(verdict: Verdict) -> Table:
    table = two_columns(None)
    for name, value in verdict.to_row().items():
        if value not in (None, []) and name not in FOR_MACHINES:
            table.add_row(name, printable(value if isinstance(value, str) else json.dumps(value)))
    return table


def printable(text: str) -> Text:
    """What a model wrote, for a terminal: no markup of Rich, and control characters as their escapes."""
    shown = (character if character.isprintable() else ascii(character)[1:-1] for character in text)
    return Text("".join(shown))


def two_columns(title: str | None) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, highlight=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table
