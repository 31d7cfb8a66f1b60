"""`veriward audit-sample`: a blind sheet for marking by hand, and what the marks say about the verifier."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from veriward.scripts.display import printable, two_columns
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line, need

SHARES = {
    "agreement": "verifier and marks agree",
    "false_accept": "marked wrong, called correct",
    "false_reject": "marked right, not called correct",
}


def audit_sample(
    run: Annotated[Path, typer.Argument(help="Folder of a run.", metavar="RUN")],
    count: Annotated[int, typer.Option("--n", help="Responses to mark.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the drawing.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The sheet to write.", show_default="RUN-audit.csv")] = None,
    read: Annotated[Path | None, typer.Option(help="A marked sheet, to be read back.", metavar="SHEET.csv")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw responses for marking without sight of the verdicts; or read the marks back, for the run's card."""
    need("scipy", extra="eval", purpose="veriward audit-sample")
    from veriward.eval.audit_sample import key_path, write_audit, write_sheet
    from veriward.eval.runs import read_run

    known = read_run(run)
    if read is None:
        sheet = out or run.with_name(f"{run.name}-audit.csv")
        with disk_full_in_one_line(sheet):
            rows = write_sheet(known, sheet, count=count, seed=seed)
        if as_json:
            print(json.dumps({"sheet": str(sheet), "key": str(key_path(sheet)), "rows": rows}))
            return
        said = f"{sheet}: {rows} responses; write right, wrong or cannot tell behind each, then --read it."
        Console().print(printable(f"{said} Keep {key_path(sheet)} beside it, and do not look"), soft_wrap=True)
        return
    if out is not None:
        raise ConfigError("veriward audit-sample: --out is for a new sheet; the marks go into the run's folder")
    with disk_full_in_one_line(run):
        audit, faults = write_audit(known, read)
    for fault in faults:
        print(printable(fault), file=sys.stderr)
    if audit is None:
        raise typer.Exit(2)
    if as_json:
        print(json.dumps(audit))
        return
    Console().print(table_of(audit))


def table_of(audit: Mapping[str, Any]) -> Any:
    table = two_columns(f"{audit['marked']} of {audit['responses']} responses marked, contract {audit['contract']}")
    for name, label in SHARES.items():
        share = audit[name]
        interval = "undefined" if share["low"] is None else f"{share['low']:.1%} to {share['high']:.1%}"
        value = "undefined" if share["value"] is None else f"{share['value']:.1%}"
        table.add_row(label, f"{value}, 95 % {interval}; in the sheet {share['successes']}/{share['total']}")
    table.add_row("cannot tell", str(audit["cannot_tell"]))
    table.add_row("Cohen's kappa", "undefined" if audit["kappa"] is None else f"{audit['kappa']:.2f}")
    return table
