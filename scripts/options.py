"""Options and checks that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veriward.tool_agent.errors import ConfigError

ContractOption = Annotated[
    str | None, typer.Option("--contract", help="Grading contract.", show_default="the current one", metavar="NAME")
]
AnswerOption = Annotated[bool, typer.Option("--answer", help="The first argument is a bare answer, no response.")]
TypeOption = Annotated[
    str | None, typer.Option("--answer-type", help="As 'list'.", show_default="read off the reference")
]
OptionsOption = Annotated[
    list[str] | None, typer.Option("--option", help="As tolerance=0.01; may be repeated.", metavar="NAME=VALUE")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(help="Processes that verdicts run in; 0: this one, without deadline.", show_default="one a core"),
]
DeadlineOption = Annotated[float, typer.Option(help="Seconds a comparison may take before its process is killed.")]
TruncatedOption = Annotated[bool, typer.Option("--truncated", help="The response was cut off.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def refuse_output(out: Path) -> None:
    """Before the work: a file that is there is not overwritten, and the folder must exist."""
    if out.exists():
        raise ConfigError(f"{out}: is there already; choose another --out")
    if not out.parent.is_dir():
        raise ConfigError(f"{out}: no folder {out.parent}; make it, or choose another --out")
    try:
        out.touch()
        out.unlink()
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}; choose another --out") from error


def known_contract(name: str) -> str:
    from veriward.rewards import CONTRACTS

    if name not in CONTRACTS:
        raise ConfigError(f"unknown contract {name!r}; wanted one of {', '.join(CONTRACTS)}")
    return name
