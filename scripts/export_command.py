"""`veriward export`: a checkpoint with the card of its runs, as a folder or on the Hub."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from veriward.scripts.display import printable, runs_at, two_columns
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line, need


def export(
    runs: Annotated[list[Path], typer.Argument(help="Runs of the checkpoint; all of them are on the card.")],
    merge_lora: Annotated[bool, typer.Option("--merge-lora", help="Merge an adapter into its base.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Do it; without this it only looks whether it could.")] = False,
    push: Annotated[
        str | None,
        typer.Option(help="Upload it to this private repository of the Hub; needs --write.", metavar="OWNER/NAME"),
    ] = None,
    decision: Annotated[
        Path | None, typer.Option(help="The decision.json of `veriward promote`.", metavar="FILE")
    ] = None,
    out: Annotated[Path, typer.Option(help="A folder that is not there yet.")] = Path("export"),
    as_json: JsonOption = False,
) -> None:
    """Write weights, tokenizer, chat template and card to a folder; a dry run unless --write is given."""
    for module in ("torch", "transformers", "peft"):
        need(module, extra="train", purpose="veriward export")
    for module in ("jinja2", "scipy", "statsmodels", "huggingface_hub", "yaml"):
        need(module, extra="eval", purpose="veriward export")
    if push is not None and not write:
        raise ConfigError("--push uploads what is written; add --write, or leave out --push for a dry run")
    from veriward.eval.cards import read_decision
    from veriward.eval.export import export as made
    from veriward.eval.export import push as upload

    with disk_full_in_one_line(out):
        promoted = None if decision is None else read_decision(decision)
        result = made(runs_at(runs), out, merge_lora=merge_lora, write=write, decision=promoted)
    address = None if push is None else upload(out, push)
    if as_json:
        print(json.dumps({**asdict(result), "folder": str(out), "address": address}))
        return
    console = Console()
    table = two_columns(f"{'written to' if write else 'would be written to'} {out}")
    for name, size in result.files.items():
        table.add_row(printable(name), f"{size:,} bytes")
    if result.largest_difference is not None:
        table.add_row("merged", f"logits of a probe differ by at most {result.largest_difference:.2g}")
    console.print(table)
    console.print(printable(address) if address else "" if write else "nothing was written; add --write to do it")
