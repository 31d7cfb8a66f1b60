"""The report by stage, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from veriward.scripts.display import printable

if TYPE_CHECKING:
    from veriward.eval.rates import Rate
    from veriward.eval.stage_report import StageReport
    from veriward.eval.stages import Exchange

STAGES = {
    "valid_call_first": "valid call, first",
    "valid_call": "valid call, in the end",
    "right_tool": "right tool",
    "executor_ok": "executor: a result",
    "executor_empty": "executor: nothing found",
    "result_used": "number used",
    "right_first": "right answer, first",
    "right_final": "right answer",
    "cut_off_first": "cut off, first",
    "cut_off_final": "cut off, last",
}
PLAIN_STAGES = {"right_final": "right answer", "cut_off_final": "cut off"}
"""Without tools there is one answer."""


def show_reports(reports: Sequence[StageReport], compared: Mapping[str, Exchange], console: Console) -> None:
    for report in reports:
        show_report(report, console)
    if compared and all(report.rows for report in reports):
        console.print(exchange_table(compared, "runs beside each other: first x second, in problems"))


def show_report(report: StageReport, console: Console) -> None:
    from veriward.eval import stages

    console.print(printable(report.heading), soft_wrap=True, style="bold")
    for note in report.notes:
        console.print(printable(note), soft_wrap=True)
    if not report.rows:
        return
    console.print(stage_table(report))
    if report.tools:
        console.print(selection_table(stages.selection(report.rows)))
    for name, text in details(report).items():
        console.print(printable(f"{name}: {text}"), soft_wrap=True)
    if report.tools:
        console.print(exchange_table(report.exchanges(), f"{report.name}: first x second, in problems"))


def stage_table(report: StageReport) -> Table:
    """Stages down, expected tools across; of all problems with Wilson's 95 % interval."""
    rates = report.rates()
    table = Table(highlight=False)
    table.add_column("expected tool", no_wrap=True)
    *groups, everything = rates
    for group in groups:
        table.add_column(printable(group), justify="right", overflow="fold")
    table.add_column(f"{everything} [95 %]", no_wrap=True)
    for stage, label in (STAGES if report.tools else PLAIN_STAGES).items():
        named = f"{label}, {report.gate}" if report.tools and stage == "right_final" else label
        cells = [counted_of(rates[group][stage]) for group in groups]
        table.add_row(named, *cells, with_interval(rates[everything][stage]))
    return table


def counted_of(rate: Rate) -> str:
    return f"{rate.successes}/{rate.total}"


def with_interval(rate: Rate) -> str:
    interval = rate.interval()
    return counted_of(rate) + ("" if interval is None else f" [{interval[0]:.0%}, {interval[1]:.0%}]")


def selection_table(counts: Mapping[str, Mapping[str, int]]) -> Table:
    chosen = list(dict.fromkeys([*counts, *(name for row in counts.values() for name in row)]))
    columns = [*(name for name in chosen if name not in ("none", "not named")), "none"]
    table = Table(title="expected tool down, chosen tool across", title_justify="left", highlight=False)
    table.add_column("")
    for name in columns:
        table.add_column(printable(name), justify="right")
    for expected, row in counts.items():
        table.add_row(printable(expected), *(str(row.get(name) or "·") for name in columns))
    return table


def exchange_table(found: Mapping[str, Exchange], title: str) -> Table:
    table = Table(title=title, title_justify="left", highlight=False)
    table.add_column("")
    for name in ("both", "only first", "only second", "neither", "exact McNemar"):
        table.add_column(name, justify="right")
    for label, one in found.items():
        p = f"p = {one.p:.3g}" if one.p < 1 else "p = 1.0"
        table.add_row(printable(label), *map(str, (one.both, one.first_only, one.second_only, one.neither)), p)
    return table


def details(report: StageReport) -> dict[str, str]:
    """The counts behind the table, by name."""
    from veriward.eval import stages

    rows = report.rows
    lines: dict[str, str] = {}
    if report.tools:
        lines["calls refused by the reader, first"] = counted(stages.call_refusals(rows, 0))
        lines["calls refused by the reader, corrected"] = counted(stages.call_refusals(rows, 1))
        lines["calls refused by the executor, first"] = counted(stages.executor_refusals(rows, 0))
        lines["calls refused by the executor, corrected"] = counted(stages.executor_refusals(rows, 1))
        lines["last valid calls"] = (
            "; ".join(f"{tool}: {counted(counts)}" for tool, counts in stages.executions(rows).items()) or "none"
        )
        lines["tools tried again after"] = counted(stages.lost_to_machinery(rows))
        lines["the last answer beside the tool's number"] = counted(stages.result_used(rows))
        lines["call corrections"] = counted(stages.call_corrections(rows), zeros=True)
        lines[f"answer corrections ({report.gate})"] = counted(stages.answer_corrections(rows), zeros=True)
        lines["outcomes of first answers"] = counted(stages.outcome_counts(rows, 0), zeros=True)
        lines["outcomes of last answers"] = counted(stages.outcome_counts(rows, -1), zeros=True)
    else:
        lines["outcomes"] = counted(stages.outcome_counts(rows, 0), zeros=True)
    return lines


def counted(counts: Mapping[str, int], *, zeros: bool = False) -> str:
    shown = [f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count or zeros]
    return ", ".join(shown) or "none"
