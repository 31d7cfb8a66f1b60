"""`veriward state`: look at the states of a tool-agent run, while it goes on too, and copy them to another store."""

from __future__ import annotations

import contextlib
import difflib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from veriward.scripts.display import printable
from veriward.scripts.options import JsonOption
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.store import Row, StateReader, export, read_store

RunArgument = Annotated[Path, typer.Argument(help="Folder of a run, or a file of `state export`.", metavar="RUN")]

COLUMNS = ("outcome", "executor_attempts", "call_corrections", "answer_retries")
"""Of a state, beside its id and its phase; a state that lacks one has an empty field."""
WHOLE = ("id", "phase", "outcome")
SHOWN_WHOLE = 24
"""Characters of a field that is not broken over two lines."""
INLINE = 60
"""Characters of a list or a record that still stand on the line of its name."""
SHOWN_NUMBERS = 12

state = typer.Typer(help="Look at the stored states of a tool-agent run, and copy them.", no_args_is_help=True)


@state.command(name="list")
def list_states(run: RunArgument, as_json: JsonOption = False) -> None:
    """One line for each problem: phase, outcome, repeats; and how many problems are in each phase."""
    with read_store(run) as store:
        rows = sorted((summary(row) for row in store.rows()), key=lambda one: str(one["id"]))
        phases = Counter(str(one["phase"]) for one in rows)
        if as_json:
            print(json.dumps({"problems": rows, "phases": phases, "set_aside": store.set_aside}))
        else:
            console = Console()
            table = Table(title_justify="left", highlight=False)
            for name in ("id", "phase", *COLUMNS):
                shown_whole = all(len(str(one[name])) <= SHOWN_WHOLE for one in rows)
                table.add_column(name.replace("_", " "), overflow="fold", no_wrap=name in WHOLE and shown_whole)
            for one in rows:
                table.add_row(*(printable("" if value is None else plain(value)) for value in one.values()))
            console.print(table)
            counts = ", ".join(f"{phase} {count:,}" for phase, count in sorted(phases.items()))
            console.print(f"{len(rows):,} problems: {counts}" if rows else "no problems yet", highlight=False)
        say_unreadable(store)


@state.command()
def show(
    run: RunArgument,
    identity: Annotated[str, typer.Argument(help="Of the problem, as `state list` prints it.", metavar="ID")],
    as_json: JsonOption = False,
) -> None:
    """Everything stored about one problem, in order: prompts and outputs, call, result, verdict."""
    with read_store(run) as store:
        row = find(store, identity)
    if as_json:
        print(json.dumps(row))
    else:
        for line in view(row):
            Console().print(printable(line), soft_wrap=True)


@state.command(name="export")
def export_states(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Argument(help="NAME.jsonl: one file; NAME.sqlite: a database; else a folder of files.", metavar="OUT"),
    ],
) -> None:
    """Copy a run to another store. The copy can be gone on with, as the run itself."""
    with read_store(run) as store:
        copied = export(store, out)
        Console().print(f"{copied:,} problems copied to {out}", highlight=False, soft_wrap=True)
        say_unreadable(store)


def say_unreadable(store: StateReader) -> None:
    """Exit code 2 where something could not be read; it is left where it is."""
    for line in store.set_aside:
        print(printable(f"{store.path}: unreadable, and left out: {line}"), file=sys.stderr)
    if store.set_aside:
        raise typer.Exit(2)


def find(store: StateReader, identity: str) -> Row:
    """The row of a problem; ConfigError with the nearest ids where there is none."""
    with contextlib.suppress(UnicodeEncodeError):  # bytes of a terminal that are no UTF-8 name no problem
        if (row := store.read(identity)) is not None:
            return row
    store.set_aside.clear()
    phases = store.phases()
    near = difflib.get_close_matches(identity, phases, n=3, cutoff=0.3) or sorted(phases)[:3]
    known = f"nearest are {', '.join(map(repr, near))}" if near else "no problem is stored yet"
    unreadable = f"; {len(store.set_aside)} could not be read: {store.set_aside[0]}" if store.set_aside else ""
    raise ConfigError(f"{store.path}: no problem {identity!r}; {known}{unreadable}; see `veriward state list`")


def summary(row: Row) -> dict[str, Any]:
    return {"id": row["problem"]["id"], "phase": row["phase"], **{name: row.get(name) for name in COLUMNS}}


def view(value: Any, indent: str = "") -> Iterator[str]:
    """A row of any shape as lines: names, and below each what it holds; texts as they are, not as JSON."""
    items = value.items() if isinstance(value, dict) else ((f"{at}.", item) for at, item in enumerate(value, start=1))
    for name, item in items:
        if isinstance(item, dict | list) and not fits_a_line(item):
            yield f"{indent}{name}"
            yield from view(item, f"{indent}    ")
        elif isinstance(item, str) and "\n" in item:
            yield f"{indent}{name}"
            yield from (f"{indent}    | {line}" for line in item.split("\n"))
        else:
            yield f"{indent}{name}  {plain(item)}"


def fits_a_line(item: dict[str, Any] | list[Any]) -> bool:
    text = json.dumps(item)
    return numbers(item) or (len(text) <= INLINE and "\\n" not in text)


def numbers(item: Any) -> bool:
    return isinstance(item, list) and all(isinstance(one, int | float | None) for one in item)


def plain(item: Any) -> str:
    """On one line; of many token ids the first and their number."""
    if isinstance(item, str):
        return item
    if numbers(item) and len(item) > SHOWN_NUMBERS:
        return f"{json.dumps(item[:SHOWN_NUMBERS])[:-1]}, …]  {len(item):,} in all"
    return json.dumps(item, ensure_ascii=False)
