"""`veriward promote`: a rule, a base and candidates; promote, keep or undecided."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from veriward.scripts.display import printable, runs_at, show_progress
from veriward.scripts.generator_options import DeviceOption
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line, need

if TYPE_CHECKING:
    from veriward.eval.loop import OnProgress
    from veriward.eval.promotion_rule import Rule
    from veriward.eval.runs import Run
    from veriward.tool_agent.generator import Generator


def promote(
    rule: Annotated[Path, typer.Argument(help="The rule, as docs/examples/promotion_rule.yaml.", metavar="RULE.yaml")],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="The run of the base, then those of the candidates by step.", metavar="BASE CANDIDATE…"),
    ] = None,
    stamp: Annotated[bool, typer.Option("--stamp", help="Only put down that the rule stands now.")] = False,
    checkpoints: Annotated[
        Path | None,
        typer.Option(help="A training folder: ask each of its checkpoints as BASE was asked.", metavar="FOLDER"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="The run on the problems that the result is reported on.", metavar="RUN")
    ] = None,
    device: DeviceOption = None,
    out: Annotated[
        Path | None, typer.Option(help="File of the decision.", show_default="RULE.decision.json", metavar="FILE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide by a rule that was stamped before any candidate was evaluated whether one replaces the base."""
    for module in ("yaml", "scipy", "statsmodels"):
        need(module, extra="eval", purpose="veriward promote")
    from veriward.eval.promotion import by_step, decide_runs, record, refuse_unfit
    from veriward.eval.promotion_rule import read_rule, stamp_path, stamped
    from veriward.eval.runs import read_run
    from veriward.tool_agent.files import to_json, write_whole

    console = Console(stderr=as_json)
    known = read_rule(rule)
    mark, new = stamped(known)
    if new or stamp:
        console.print(printable(f"{rule}: sha256 {known.sha256[:12]}… stamped at {mark.time}"), soft_wrap=True)
    if mark.sha256 != known.sha256 and stamp:
        raise ConfigError(
            f"{rule}: is stamped with other content since {mark.time}; a new rule needs a new file, or remove "
            f"{stamp_path(known)} and every output that was made under it"
        )
    if stamp:
        return
    if not runs or (len(runs) < 2 and checkpoints is None):
        raise ConfigError("veriward promote: wanted the run of the base and those of candidates, or --checkpoints")
    base, *candidates = runs_at(runs)
    reported = None if report is None else read_run(report)
    out = out or rule.with_suffix(".decision.json")
    refuse_other_file(out)
    refuse_unfit(known, base)
    with disk_full_in_one_line(out):
        if checkpoints is not None:
            candidates += asked_checkpoints(known, base, len(candidates), checkpoints, device, console)
        candidates = by_step(candidates)
        decision = decide_runs(known, base, candidates)
        row = record(known, mark, decision, base, candidates, reported)
        write_whole(out, to_json(row))
    if as_json:
        print(json.dumps({**row, "file": str(out)}))
        return
    show(console, known, row)
    console.print(printable(f"written to {out}"), soft_wrap=True)


def refuse_other_file(out: Path) -> None:
    """Before the work: only an earlier decision is written over."""
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: no folder {out.parent}; make it, or choose another")
    if out.exists():
        from veriward.eval.cards import read_decision

        try:
            read_decision(out)
        except ConfigError as error:
            raise ConfigError(f"--out {out}: is there already, and is no decision; choose another") from error


def asked_checkpoints(
    rule: Rule, base: Run, others: int, training: Path, device: str | None, console: Console
) -> list[Run]:
    from veriward.eval.checkpoints import checkpoints_of, evaluate_checkpoints
    from veriward.eval.generators import TransformersGenerator
    from veriward.eval.promotion import refuse_count

    refuse_count(rule, others + len(checkpoints_of(training)))
    engine = base.settings["generator"].get("engine")
    if engine != "transformers":
        raise ConfigError(f"{base.path}: was asked with the engine {engine}; --checkpoints asks with transformers")
    asked = base.settings["generator"]

    def make(checkpoint: Path) -> Generator:
        return TransformersGenerator(
            checkpoint, device=device, dtype=asked["dtype"], batch_size=int(asked["batch_size"])
        )

    @contextmanager
    def watch(name: str) -> Iterator[OnProgress]:
        with show_progress(console, f"{name}: ") as on_progress:
            yield on_progress

    return evaluate_checkpoints(
        base, training, training.with_name(f"{training.name}-checkpoints"), make=make, watch=watch
    )


def show(console: Console, rule: Rule, row: dict[str, Any]) -> None:
    table = Table(
        title=f"{row['set']}: level {rule.level:.2g} each, gain at least {100 * rule.minimum_gain:.1f} points"
    )
    table.title_justify = "left"
    for column in ("candidate", "gain", "95 % interval", "p", "allowed"):
        table.add_column(column, justify="left" if column == "candidate" else "right")
    for judged in row["candidates"]:
        one = judged["candidate"]
        interval = (
            "-" if one["interval"] is None else f"{100 * one['interval'][0]:+.1f} to {100 * one['interval'][1]:+.1f}"
        )
        chance = "-" if one["p_value"] is None else f"{one['p_value']:.2g}"
        gain = f"{100 * one['gain']:+.1f}"
        table.add_row(printable(one["name"]), gain, interval, chance, "yes" if judged["allowed"] else "no")
    console.print(table)
    for reason in row["reasons"]:
        console.print(printable(f"  {reason}"), soft_wrap=True)
    for complaint in row["complaints"]:
        console.print(printable(f"  NOT CLEAN: {complaint}"), style="bold", soft_wrap=True)
    if row["report"] is None or row["report"]["set_sha256"] == row["set_sha256"]:
        console.print("  chosen on this set: report its number on another one (--report RUN)")
    said = {"promote": f"promote {row['candidate']}", "keep": "keep the base", "undecided": "undecided"}
    console.print(printable(said[row["decision"]]), style="bold")
