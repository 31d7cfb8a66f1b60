"""`veriward card`: the model card, the system card, and a check of either against its runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer
from rich.console import Console

from veriward.scripts.display import printable, runs_at
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line, need

if TYPE_CHECKING:
    from veriward.eval.cards import Card

card = typer.Typer(help="Cards, written from stored runs and checked against them.", no_args_is_help=True)

RunsArgument = Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN…")]


@card.command()
def model(
    runs: RunsArgument,
    decision: Annotated[
        Path | None, typer.Option(help="The decision.json of `veriward promote`.", metavar="FILE")
    ] = None,
    out: Annotated[Path, typer.Option(help="File of the card; `.eval_results` is written beside it.")] = Path(
        "model_card.md"
    ),
) -> None:
    """The weights alone: accuracy with interval and bounds, contract, selection, sets that were never asked."""
    check_extras()
    from veriward.eval.cards import model_card, read_decision

    promoted = None if decision is None else read_decision(decision)
    write(model_card(runs_at(runs), decision=promoted, at=out), out)


@card.command()
def system(
    runs: RunsArgument,
    drill: Annotated[
        Path | None, typer.Option(help="Folder of `veriward drill`: the injected faults.", metavar="FOLDER")
    ] = None,
    out: Annotated[Path, typer.Option(help="File of the card.")] = Path("system_card.md"),
) -> None:
    """The system around the weights: tools, limits, gate, correction, stages, faults."""
    check_extras()
    from veriward.eval.cards import system_card

    faults = None if drill is None else read_drill(drill)
    write(system_card(runs_at(runs), drill=faults, at=out), out)


@card.command()
def verify(
    card_file: Annotated[Path, typer.Argument(help="The card.", metavar="CARD")],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Where its runs are now: folders, or a file of `veriward bundle`, which may hold the card too.",
            metavar="RUN…",
            show_default="where they were",
        ),
    ] = None,
    decision: Annotated[
        Path | None, typer.Option(help="The decision.json that the card was written with.", metavar="FILE")
    ] = None,
    drill: Annotated[
        Path | None, typer.Option(help="The folder of the drill that the card was written with.", metavar="FOLDER")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a card again from its runs; exit code 1 where a line differs."""
    check_extras()
    from veriward.eval.bundle import is_bundle
    from veriward.eval.cards import read_decision

    evidence: Evidence = {
        "decision": None if decision is None else read_decision(decision),
        "drill": None if drill is None else read_drill(drill),
    }
    if runs and any(is_bundle(run) for run in runs):
        faults, left = verify_in_bundle(card_file, runs, evidence)
    else:
        faults, left = verify_runs(card_file, runs, evidence)
    if as_json:
        print(json.dumps({"card": str(card_file), "verified": not faults, "faults": faults, "unchecked": left}))
    else:
        for fault in faults:
            print(printable(fault), file=sys.stderr)
        said = f"{len(faults)} lines are not what the runs say" if faults else "every line is what the runs say"
        Console().print(printable(f"{card_file}: {said}"), soft_wrap=True)
        for name in left:
            line = f"{card_file}: the {name} is the card's own word, in no run; hold it against its own with --{name}"
            Console().print(printable(line), soft_wrap=True)
    raise typer.Exit(1 if faults else 0)


class Evidence(TypedDict):
    decision: Mapping[str, Any] | None
    drill: Sequence[Mapping[str, str]] | None


def read_drill(folder: Path) -> Sequence[Mapping[str, str]]:
    from veriward.eval.system_card import drill_rows

    return drill_rows(folder)


def verify_runs(card_file: Path, runs: list[Path] | None, evidence: Evidence) -> tuple[list[str], list[str]]:
    """The faults, and what was left unchecked."""
    from veriward.eval.cards import unchecked, verify_card

    faults = verify_card(card_file, None if not runs else runs_at(runs), **evidence)
    return faults, unchecked(card_file, [name for name, value in evidence.items() if value is not None])


def verify_in_bundle(card_file: Path, runs: list[Path], evidence: Evidence) -> tuple[list[str], list[str]]:
    """The runs of one bundle; the card is on this machine, or in it under this name."""
    from veriward.eval.bundle import open_bundle

    if len(runs) > 1:
        raise ConfigError("veriward card verify: wanted one bundle, or folders of runs; name the bundle alone")
    with open_bundle(runs[0]) as bundle:
        packed = {place.name: place for place in bundle.cards}
        place = card_file if card_file.is_file() else packed.get(card_file.name, card_file)
        return verify_runs(place, list(bundle.runs), evidence)


def check_extras() -> None:
    for module in ("jinja2", "scipy", "statsmodels", "huggingface_hub", "yaml"):
        need(module, extra="eval", purpose="veriward card")


def write(made: Card, out: Path) -> None:
    with disk_full_in_one_line(out):
        made.write(out)
    Console().print(printable(f"written to {out}"), soft_wrap=True)
