"""One run by stage, and runs beside each other: every rate with its denominator, its contract and its gate.

A report is complete or says how many problems are missing; the rates of a partial one are of the complete problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.eval import stages
from veriward.eval.rates import Rate
from veriward.eval.stages import Exchange, ProblemStages, exchange
from veriward.tool_agent.agent import Gate
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import differences
from veriward.tool_agent.run_header import decisive

GATES = {
    Gate.ORACLE: "oracle-gated",
    Gate.REFERENCE_FREE: "control: reference_free",
    Gate.ALWAYS_ONCE: "control: always_once",
    Gate.NEVER: "answers never corrected",
}
"""How a gate is written beside every number after correction."""

OWN = ("tools", "reader", "gate", "call_tokens")
"""Agent settings in which a run with tools and one without may differ and still be set side by side."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReport:
    """One run, counted by stage."""

    name: str
    settings: Mapping[str, Any]
    """Of the run, as its run.json holds them."""
    fingerprint: str
    continued_under: Sequence[Mapping[str, str]]
    """Each time the run went on under other code."""
    rows: tuple[ProblemStages, ...]
    """Complete problems, in the order of the set."""
    missing: tuple[str, ...]
    """Ids of problems that are not complete yet."""
    unreadable: Mapping[str, str]
    """Problem id to the reason its reference cannot be read; never asked, and in no number."""
    set_aside: tuple[str, ...]
    """States that could not be read, a line each; a run asks their problems anew."""

    @property
    def tools(self) -> bool:
        return bool(self.settings["agent"]["tools"])

    @property
    def gate(self) -> str:
        return GATES[Gate(self.settings["agent"]["gate"])]

    @property
    def asked(self) -> int:
        return len(self.rows) + len(self.missing)

    @property
    def heading(self) -> str:
        """Everything without which the numbers mean nothing."""
        agent, contract, box = (self.settings[key] for key in ("agent", "contract", "toolbox"))
        with_tools = f"{agent['reader']} calls, {box['profile']} profile, {self.gate}" if box else ""
        done = f"{len(self.rows)}/{self.asked} problems" if self.missing else f"{self.asked} problems"
        model = Path(str(self.settings["generator"].get("model", "generator"))).name
        parts = [
            f"{self.name}: {with_tools or 'no tools, one answer'}",
            f"{model}, temperature {agent['temperature']:g}, answers of at most {agent['answer_tokens']} tokens",
            f"{done} of {self.settings['problems']['name']}",
            f"contract {contract['name']} ({contract['fingerprint']})",
        ]
        return "; ".join(parts)

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers has to know, a line each."""
        lines = []
        if self.missing:
            lines.append(f"PARTIAL: {len(self.missing)} of {self.asked} problems are not complete, and in no number")
        lines += [
            f"went on under other code at {step['time']}: {step['from']} to {step['to']}"
            for step in self.continued_under
        ]
        lines += [f"a state could not be read: {line}" for line in self.set_aside]
        if self.unreadable:
            lines.append(f"left out, the reference cannot be read: {', '.join(self.unreadable)}")
        return lines

    def rates(self) -> dict[str, dict[str, Rate]]:
        """Group (expected tool, and all) to stage to rate."""
        found = stages.groups(self.rows)
        return {name: stages.stage_rates(group, tools=self.tools) for name, group in found.items()}

    def exchanges(self) -> dict[str, Exchange]:
        return stages.exchanges(self.rows, self.gate) if self.tools else {}

    def to_row(self) -> Row:
        """JSON-safe, and made of the states and the problem set alone: the content of summary.json."""
        rows = self.rows
        row: Row = {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "continued_under": [dict(step) for step in self.continued_under],
            "problems": dict(self.settings["problems"]),
            "contract": dict(self.settings["contract"]),
            "agent": dict(self.settings["agent"]),
            "gate": self.gate if self.tools else None,
            "asked": self.asked,
            "complete": len(rows),
            "missing": list(self.missing),
            "unreadable_references": dict(self.unreadable),
            "stages": {
                group: {stage: with_interval(rate) for stage, rate in rates.items()}
                for group, rates in self.rates().items()
            },
            "outcomes": {"first": stages.outcome_counts(rows, 0), "final": stages.outcome_counts(rows, -1)},
        }
        if self.tools:
            row |= {
                "call_refusals": {"first": stages.call_refusals(rows, 0), "corrected": stages.call_refusals(rows, 1)},
                "executor_refusals": {
                    "first": stages.executor_refusals(rows, 0),
                    "corrected": stages.executor_refusals(rows, 1),
                },
                "selection": stages.selection(rows),
                "executor": stages.executions(rows),
                "machinery_faults": stages.lost_to_machinery(rows),
                "result_used": stages.result_used(rows),
                "call_corrections": stages.call_corrections(rows),
                "answer_corrections": stages.answer_corrections(rows),
                "exchanges": {name: one.to_row() for name, one in self.exchanges().items()},
            }
        return row


def with_interval(rate: Rate) -> Row:
    """With Wilson's 95 % interval; None where it is undefined."""
    interval = rate.interval()
    return {**rate.to_row(), "interval": None if interval is None else list(interval)}


def compare(plain: StageReport, other: StageReport) -> dict[str, Exchange]:
    """No tools x tools, of the problems that are complete in both, before and after correction.

    raises   ConfigError naming what differs, where the runs are of other problems, models, contracts or code
    """
    found = differences(shared_settings(plain), shared_settings(other))
    if found:
        raise ConfigError(
            f"{plain.name} and {other.name} are runs under different settings, and are not set side by side: "
            f"{'; '.join(found)}"
        )
    alone = {row.problem: row for row in plain.rows}
    pairs = [(alone[row.problem], row) for row in other.rows if row.problem in alone]
    return {
        f"right in {plain.name} x right in {other.name}, first answer": exchange(
            (one.right_first, two.right_first) for one, two in pairs
        ),
        f"right in {plain.name} x right in {other.name}, {other.gate}": exchange(
            (one.right, two.right) for one, two in pairs
        ),
    }


def shared_settings(report: StageReport) -> Row:
    """What two runs must have in common."""
    settings = {key: value for key, value in decisive(report.settings).items() if key != "toolbox"}
    return {**settings, "agent": {key: value for key, value in settings["agent"].items() if key not in OWN}}


def compare_all(reports: Sequence[StageReport]) -> tuple[dict[str, Exchange], list[str]]:
    """Every run with tools beside the one without, where there is one; and why some cannot be."""
    found: dict[str, Exchange] = {}
    refused: list[str] = []
    for plain in (report for report in reports if not report.tools):
        for report in (report for report in reports if report.tools):
            try:
                found |= compare(plain, report)
            except ConfigError as error:
                refused.append(str(error))
    return found, refused
