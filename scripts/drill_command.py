"""`veriward drill`: the frozen twelve with scripted texts and planned faults, and the way that each problem took."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from veriward.scripts.display import printable
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError

if TYPE_CHECKING:
    from veriward.eval.drill import Drill

WHAT_IT_IS = (
    "A drill: every text is scripted, and three things go wrong on purpose. It shows which way the agent takes, and "
    "measures no model. The tools have the strict profile, which reads no `!`. Corrections are oracle-gated: the "
    "verifier knows the reference."
)


def drill(
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the states in this folder, new or empty.", metavar="FOLDER", show_default="not kept"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Drill the tool agent: a time-out, an interruption and a refused call, and the way each problem took.

    Exit code 1 if a problem took another way than the planned one.
    """
    from veriward.eval.drill import run_drill

    with folder_for(out) as folder:
        result = run_drill(folder)
    if as_json:
        print(json.dumps({**result.to_row(), "folder": None if out is None else str(out)}))
    else:
        show(result, Console())
        if out is not None:
            print(f"\nThe states are in {out}; look at one with: veriward state show {out} python-03")
    for line in result.differing:
        print(line, file=sys.stderr)
    if result.differing:
        raise typer.Exit(1)


@contextlib.contextmanager
def folder_for(out: Path | None) -> Iterator[Path]:
    """A drill begins anew, so nothing may be there yet."""
    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    try:
        holds_something = out.is_dir() and any(out.iterdir())
    except OSError as error:
        raise ConfigError(f"{out}: cannot be looked at: {error.strerror}; choose another --out") from error
    if holds_something:
        raise ConfigError(f"{out}: holds something already, and a drill begins anew; choose another --out, or empty it")
    yield out


def show(result: Drill, console: Console) -> None:
    from veriward.eval.drill import WITH_A_FAULT

    console.print(WHAT_IT_IS, highlight=False)
    console.print()
    for problem in WITH_A_FAULT:
        console.print(printable(f"{problem:<15}{result.paths[problem]}"), soft_wrap=True)
    console.print()
    console.print(outcome_table(result))
    n = result.counts
    console.print(
        f"{n['complete']}/{n['problems']} complete; {n['right_at_first']}/{n['problems']} right at the first answer; "
        f"{n['corrections']} corrections: {n['rescued']} rescued, {n['still_not_right']} still not right; "
        f"{n['right_after']}/{n['problems']} right after correction, under {result.contract}",
        highlight=False,
        soft_wrap=True,
    )


def outcome_table(result: Drill) -> Table:
    table = Table(highlight=False)
    for head in ("problem", "tool called", "executor", "first answer", "after correction"):
        table.add_column(head)
    for state in result.states:
        called = [attempt.call.tool for attempt in state.calls if attempt.call is not None]
        table.add_row(
            state.problem,
            called[-1] if called else "none",
            "ok" if state.result is not None else "refused" if state.calls[-1].refused else "failed",
            state.first_outcome,
            state.outcome if state.answer_retries else "·",
        )
    return table
