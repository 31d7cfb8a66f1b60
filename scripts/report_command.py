"""`veriward report`: runs as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from veriward.scripts.display import printable, runs_at
from veriward.tool_agent.errors import disk_full_in_one_line, need


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs; the first is what the others are compared with.")
    ],
    out: Annotated[Path, typer.Option(help="The HTML file; written anew if it is there.")] = Path("report.html"),
    training: Annotated[
        list[Path] | None, typer.Option(help="A training folder, for its curves; may be repeated.", metavar="FOLDER")
    ] = None,
) -> None:
    """Write runs as one HTML file that opens anywhere without a network: numbers, pictures, every response."""
    for module in ("jinja2", "matplotlib", "latex2mathml", "scipy", "statsmodels"):
        need(module, extra="eval", purpose="veriward report")
    from veriward.eval.report import write_report

    console = Console()
    with disk_full_in_one_line(out), console.status("reading, checking steps and drawing"):
        size = write_report(runs_at(runs), out, training=training or ())
    console.print(printable(f"{out}: {size / 1e6:,.1f} MB; open it in a browser"), soft_wrap=True)
