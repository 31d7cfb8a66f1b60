"""`veriward bundle`: runs packed for a stranger who wants to verify a card, and looked at."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from veriward.scripts.display import printable, two_columns
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line, need


def bundle(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs.", metavar="RUN…", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to pack them into, as runs.zip.", metavar="FILE.zip")
    ] = None,
    without_references: Annotated[
        bool, typer.Option("--without-references", help="Leave the references out; verdicts are then only counted.")
    ] = False,
    cards: Annotated[
        list[Path] | None, typer.Option("--card", help="Pack this card too; may be repeated.", metavar="CARD")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Look at a bundle instead of packing one.", metavar="FILE.zip")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Pack runs into one file; or check one: its files, its numbers and, with references, every verdict anew."""
    for module in ("scipy", "statsmodels"):
        need(module, extra="eval", purpose="veriward bundle")
    if check is not None:
        if runs or out is not None:
            raise ConfigError("veriward bundle: --check looks at one file; leave out the runs and --out")
        look_at(check, as_json)
        return
    from veriward.eval.bundle import is_bundle, make_bundle

    if not runs or out is None:
        raise ConfigError("veriward bundle: wanted RUN… and --out FILE.zip, or --check FILE.zip")
    if not is_bundle(out):
        raise ConfigError(f"--out {out}: wanted a name that ends in .zip")
    with disk_full_in_one_line(out):
        sha256 = make_bundle(runs, out, references=not without_references, cards=cards or ())
    if as_json:
        print(json.dumps({"file": str(out), "bytes": out.stat().st_size, "sha256": sha256}))
        return
    Console().print(printable(f"{out}: {out.stat().st_size:,} bytes, sha256 {sha256}"), soft_wrap=True)


def look_at(file: Path, as_json: bool) -> None:
    from veriward.eval.bundle_check import check_bundle

    found = check_bundle(file)
    if as_json:
        print(json.dumps({"file": str(file), **found.to_row()}))
    else:
        table = two_columns(str(file))
        for name, value in found.to_row().items():
            if name != "faults":
                table.add_row(name.replace("_", " "), printable("-" if value is None else str(value)))
        table.add_row("faults", str(len(found.faults)) if found.faults else "none")
        Console().print(table)
        for fault in found.faults:
            print(printable(fault), file=sys.stderr)
    raise typer.Exit(1 if found.faults else 0)
