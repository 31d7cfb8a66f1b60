"""`veriward compare`: runs on the same problems, paired."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from veriward.scripts.display import as_range, printable, runs_at, two_columns
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError, need

if TYPE_CHECKING:
    from veriward.eval.comparison import Change, Comparison, SeedComparison
    from veriward.eval.rates import Interval

SHOWN = 20
"""Changed problems on the screen."""

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="Column of problems that are alike.", show_default="'template' if there", metavar="COLUMN"
    ),
]


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two runs; further ones are compared with the first.")],
    cluster: ClusterOption = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="The runs after the first are one recipe trained from several seeds.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help=f"Show every changed problem, not only {SHOWN}.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare runs on the same problems, problem by problem, and say whether the difference could be chance."""
    from veriward.eval.comparison import compare_seeds, compare_with

    if len(runs) < 2:
        raise ConfigError("veriward compare: got 1 run, wanted at least 2; name the one to compare with first")
    for module in ("scipy", "statsmodels"):
        need(module, extra="eval", purpose="veriward compare")
    first, *others = runs_at(runs)
    found = compare_with(first, others, cluster=cluster, seed=seed)
    recipe = compare_seeds(first, others, cluster=cluster, seed=seed) if seeds else None
    if as_json:
        row = {"comparisons": [comparison.to_row() for comparison in found]}
        print(json.dumps(row if recipe is None else {**row, "seeds": recipe.to_row()}))
        return
    console = Console()
    for comparison in found:
        show(console, comparison, every)
    if recipe is not None:
        console.print(seeds_table(recipe))


def show(console: Console, comparison: Comparison, every: bool) -> None:
    console.print(numbers_table(comparison))
    for line in comparison.settings:
        console.print(printable(f"  differs: {line}"), soft_wrap=True)
    if comparison.changes:
        console.print(changes_table(comparison.changes, len(comparison.changes) if every else SHOWN))
    else:
        console.print("no problem has another outcome")


def numbers_table(comparison: Comparison) -> Table:
    first, second = comparison.first, comparison.second
    table = two_columns(f"{first.run} → {second.run}: {comparison.problems} problems, contract {first.contract}")
    for summary in (first, second):
        bounds = summary.bounds
        note = f"{summary.accuracy}, 95 % {as_range(summary.interval)}"
        if bounds.open:
            note += f"; {bounds.lowest.value:.1%} to {bounds.highest.value:.1%} whatever the open ones are worth"
        table.add_row(printable(summary.run), note)
    if comparison.difference is not None:
        table.add_row("difference", f"{100 * comparison.difference:+.1f} points, 95 % {as_points(comparison.interval)}")
    table.add_row("test", comparison.test if comparison.p_value is None else p_values(comparison))
    if (pairs := comparison.pairs) is not None:
        table.add_row("solved by both", str(pairs.both))
        table.add_row(printable(f"only by {first.run}"), str(pairs.only_first))
        table.add_row(printable(f"only by {second.run}"), str(pairs.only_second))
        table.add_row("by neither", str(pairs.neither))
    least = comparison.smallest_difference
    table.add_row(
        "would be found 4 times in 5",
        "no difference, with so few problems" if least is None else f"{100 * least:.1f} points",
    )
    table.add_row("compute", "equal" if comparison.compute_equal else "not equal")
    for line in comparison.compute:
        table.add_row("", line)
    return table


def seeds_table(recipe: SeedComparison) -> Table:
    table = two_columns(f"{recipe.base} → {len(recipe.seeds)} training seeds, {recipe.problems} problems")
    for name, difference in zip(recipe.seeds, recipe.differences, strict=True):
        table.add_row(printable(name), f"{100 * difference:+.1f} points")
    table.add_row("mean", f"{100 * recipe.mean:+.1f} points, standard deviation {100 * recipe.spread:.1f}")
    over_seeds = "undefined under 3 seeds" if recipe.over_seeds is None else as_points(recipe.over_seeds)
    table.add_row("95 % over seeds", over_seeds)
    table.add_row("95 % over problems", as_points(recipe.over_problems))
    return table


def p_values(comparison: Comparison) -> str:
    shown = f"{comparison.test}, p = {comparison.p_value:.2g}"
    adjusted = comparison.adjusted_p
    return shown if adjusted in (None, comparison.p_value) else f"{shown}; {adjusted:.2g} after Holm"


def changes_table(changes: tuple[Change, ...], shown: int) -> Table:
    more = len(changes) - shown
    table = Table(title="problems with another outcome", title_justify="left", highlight=False)
    table.add_column("problem", overflow="fold")
    table.add_column("first")
    table.add_column("second")
    for change in sorted(changes, key=lambda change: change.gain)[:shown]:
        table.add_row(printable(change.problem), outcomes(change.first), outcomes(change.second))
    if more > 0:
        table.caption = f"and {more} more; --all shows them"
    return table


def outcomes(samples: tuple[str, ...]) -> str:
    if len(samples) == 1:
        return samples[0].replace("_", " ")
    return f"{samples.count('correct')} of {len(samples)} correct"


def as_points(interval: Interval | None) -> str:
    return "undefined" if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}"
