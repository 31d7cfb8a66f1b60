"""`veriward contamination` and `veriward fresh`: has a model read the problems, and others it cannot have read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from veriward.scripts.display import printable, show_progress
from veriward.scripts.generator_options import (
    BatchOption,
    DeviceOption,
    EngineOption,
    EngineSettingsOption,
    ModelOption,
    ServerOption,
    TimeoutOption,
    check_extras,
    made_generator,
)
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line

if TYPE_CHECKING:
    from veriward.eval.contamination import Contamination


def contamination(
    model: ModelOption,
    problems: Annotated[str, typer.Option(help="The public set, as for `veriward eval`.")],
    server: ServerOption = None,
    engine: EngineOption = "transformers",
    split: Annotated[str | None, typer.Option(help="Split of a data set.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many problems.")] = None,
    fresh: Annotated[int, typer.Option(help="Problems made now, probed beside the set; 0 for none.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the problems made now.")] = 0,
    fraction: Annotated[float, typer.Option(help="How much of a problem the model sees.")] = 0.5,
    max_new_tokens: Annotated[int, typer.Option(help="Tokens a response at most.")] = 512,
    batch_size: BatchOption = None,
    engine_option: EngineSettingsOption = None,
    device: DeviceOption = None,
    timeout: TimeoutOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the two runs.", show_default="runs/contamination/MODEL")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a model half of each problem, and count how often it knows the rest or the answer."""
    check_extras("veriward contamination", server, engine)
    from veriward.eval.contamination import first_part, probe
    from veriward.eval.fresh_problems import fresh_problems
    from veriward.eval.runs import problem_set_named

    if fresh < 0:
        raise ConfigError(f"--fresh must be at least 0, got {fresh}")
    sets = {"set": problem_set_named(problems, split=split, limit=limit)}
    if fresh:
        sets["fresh"] = fresh_problems(fresh, seed=seed)
    short = [len(first_part(one, fraction)[1]) for one in sets.values()]
    console = Console(stderr=as_json)
    with console.status(f"loading {model}"):
        generator = made_generator(model, server, device, batch_size, timeout, engine, engine_option or ())
    folder = out or Path("runs", "contamination", Path(model).name)
    found = []
    for name, one in sets.items():
        with disk_full_in_one_line(folder), show_progress(console, f"{one.name}: ") as on_progress:
            found.append(
                probe(
                    generator,
                    one,
                    folder / name,
                    fraction=fraction,
                    max_new_tokens=max_new_tokens,
                    on_progress=on_progress,
                )
            )
    if as_json:
        probes = [{**one.to_row(), "too_short": count} for one, count in zip(found, short, strict=True)]
        print(json.dumps({"folder": str(folder), "probes": probes}))
        return
    console.print(probe_table(found, short))


def probe_table(found: list[Contamination], short: list[int]) -> Table:
    table = Table(title="from the first part of each problem, the model", title_justify="left", highlight=False)
    table.add_column("", overflow="fold")
    for one in found:
        table.add_column(printable(one.name), justify="right", overflow="fold")
    rows = {
        "writes the rest word for word": "exact",
        "comes near it (3 of 4 words)": "near",
        "ends with the right answer": "answered",
        "the same, without the rest": "answered_without_the_rest",
    }
    for label, name in rows.items():
        cells = []
        for one in found:
            rate = getattr(one, name)
            low, high = rate.interval() or (None, None)
            cells.append(str(rate) + ("" if low is None else f" [{low:.1%}, {high:.1%}]"))
        table.add_row(label, *cells)
    table.add_row(
        "mean share of the rest in order", *(f"{one.rouge_l:.1%}" if one.rouge_l is not None else "-" for one in found)
    )
    table.add_row("cut off before the rest could be whole", *(str(one.cut_short) for one in found))
    table.add_row("too short to be cut, and not asked", *map(str, short))
    return table


def fresh(
    count: Annotated[int, typer.Option("--n", help="How many problems.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed makes the same problems.")] = 0,
    difficulty: Annotated[str, typer.Option(help="'easy', 'standard', 'hard' or 'mixed'.")] = "mixed",
    out: Annotated[Path, typer.Option(help="JSONL file for `veriward eval --problems`.")] = Path("fresh.jsonl"),
) -> None:
    """Make problems that no model can have read, from a seed; column 'template' clusters them."""
    from veriward.eval.fresh_problems import write_fresh

    if out.exists():
        raise ConfigError(f"{out}: is there already; choose another --out")
    with disk_full_in_one_line(out):
        made = write_fresh(out, count, seed=seed, difficulty=difficulty)
    Console().print(printable(f"{out}: {len(made)} problems, sha256 {made.sha256}"), soft_wrap=True)
    print("templates are public: a model may know the kind, not the numbers", file=sys.stderr)
