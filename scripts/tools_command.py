"""`veriward audit tools` and `veriward run-cases`: the tools and every other door against what is written of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from veriward.scripts.display import printable
from veriward.scripts.options import ContractOption, JsonOption, known_contract

if TYPE_CHECKING:
    from veriward.eval.tool_cases import CaseRun

SHOWN = 40
"""Differing cases that are printed; --json has all of them."""


def run_cases(
    file: Annotated[Path, typer.Argument(help="JSONL, one case a line.", metavar="CASES.jsonl")],
    contract: ContractOption = None,
    profile: Annotated[str, typer.Option(help="Of the tools: 'default' or 'strict'.")] = "default",
    as_json: JsonOption = False,
) -> None:
    """Run a case file through the real doors and print what differs; exit code 1 if a case of tier 'must' does.

    The kind of file is read off its fields: calls and expressions for tools, labelled responses and answers, dangerous
    answers, extractions.
    """
    from veriward.eval.tool_cases import run_cases as run
    from veriward.rewards import DEFAULT

    result = run(file, contract=known_contract(contract or DEFAULT), profile=profile)
    if as_json:
        print(json.dumps(result.to_row()))
    else:
        show_cases(result, Console())
    if result.must_differs:
        raise typer.Exit(1)


def show_cases(run: CaseRun, console: Console) -> None:
    counted = [result for result in run.results if result.fits is not None]
    title = f"{len(run.results)} cases of kind {run.kind}, under {run.under}"
    table = Table(title=title, title_justify="left", highlight=False)
    for head, justify in (("tier", "left"), ("group", "left"), ("as written", "right"), ("left open", "right")):
        table.add_column(head, justify=justify)  # type: ignore[arg-type]
    for (tier, group), (right, of, left) in run.counts().items():
        table.add_row(tier, printable(group), f"{right}/{of}", str(left or "·"))
    table.add_section()
    right, left = sum(result.fits is True for result in counted), len(run.results) - len(counted)
    table.add_row("all", "", f"{right}/{len(counted)}", str(left or "·"))
    console.print(table)
    slowest = max(run.results, key=lambda result: result.cpu_s)
    console.print(printable(f"slowest: {slowest.id}, {slowest.cpu_s * 1000:.1f} ms of CPU"), soft_wrap=True)
    for result in run.differing[:SHOWN]:
        line = f"{result.id} ({result.tier}, {result.group}): got {result.got}; written {result.expected}"
        console.print(printable(line), soft_wrap=True)
    if len(run.differing) > SHOWN:
        console.print(f"and {len(run.differing) - SHOWN} more; --json has all of them", highlight=False)


def audit_tools(as_json: bool) -> None:
    """The ten inputs of the executor audit under both profiles; exit code 1 if one comes out otherwise."""
    from veriward.eval.tool_audit import audit

    runs = audit()
    if as_json:
        print(json.dumps({profile: run.to_row() for profile, run in runs.items()}))
    else:
        Console().print(audit_table(runs))
        for profile, run in runs.items():
            print(f"profile {profile:<26}{len(run.results) - len(run.differing):>5}/{len(run.results)}")
    for profile, run in runs.items():
        for result in run.differing:
            print(f"{result.id} under {profile}: got {result.got}; written {result.expected}", file=sys.stderr)
    if any(run.differing for run in runs.values()):
        raise typer.Exit(1)


def audit_table(runs: Mapping[str, CaseRun]) -> Table:
    from veriward.eval.tool_audit import AUDIT

    table = Table(highlight=False)
    for head in ("", "tool", "input", *runs):
        table.add_column(head)
    for place, case in enumerate(AUDIT):
        outcomes = [run.results[place] for run in runs.values()]
        shown = [f"{result.got}{'' if result.fits else ' (!)'}" for result in outcomes]
        table.add_row(case["id"], case["tool"], *map(printable, (case["input"], *shown)))
    return table
