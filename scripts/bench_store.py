"""What storing a state costs, beside a bare loop of the same system calls; and how long a restart takes to look round.

    python -m veriward.scripts.bench_store                      both parts, in a temporary folder under --folder
    python -m veriward.scripts.bench_store --only writes        without the scan of 100,000 problems

writes  Rows of about 1.2 KB over --ids problems, each replaced again and again, with both stores at both durabilities.
        The bare loop does for the same bytes what the system is asked for: open, write, fsync, close, rename, fsync of
        the folder; or the same PRAGMAs and an INSERT OR REPLACE. The two take turns in short rounds, since a disk
        that others use is not the same from one second to the next; 'ratio' is the median of the rounds.
scan    The phases of --problems problems, every row read whole and checked, as a restart does it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.table import Table

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.file_store import FLAGS, PROBLEMS, place
from veriward.tool_agent.run_header import Kind, fingerprint
from veriward.tool_agent.sealed_rows import Row, compact, pretty, sealed
from veriward.tool_agent.sqlite_store import DATABASE, PUT, SYNCHRONOUS, TABLES
from veriward.tool_agent.store import Durability, open_store, read_store

SETTINGS = {"run": "bench"}
WRITES = {"power": 5, "process": 50}
"""Writes a round: enough to time, few enough to share the disk's mood."""
WARM_UP = 1_200
"""Writes before the first round: then every folder is there, every write replaces another row, and SQLite's log, which
begins anew after 1,000 pages, grows no more: to write over it costs a tenth of making it longer."""
WANTED_RATIO = 0.8

Step = Callable[[str, bytes], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("writes", "scan"), help="run this part alone")
    parser.add_argument("--rounds", type=int, default=100, help="rounds of each store at each durability")
    parser.add_argument("--ids", type=int, default=100, help="problems that the rows are of")
    parser.add_argument("--problems", type=int, default=100_000, help="problems of the scan")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; the system's temporary one if not set")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    options = parser.parse_args()
    console = Console(width=120)
    try:
        for name in ("rounds", "ids", "problems"):
            if getattr(options, name) < 1:
                raise ConfigError(f"--{name}: got {getattr(options, name)}, wanted at least 1")
        if options.folder is not None and not options.folder.is_dir():
            raise ConfigError(f"--folder {options.folder}: no such folder; make it, or choose another")
        figures: dict[str, Any] = {"cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
        console.print(f"{figures['cores']} cores, load before the run {figures['load_before']:.1f}", highlight=False)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            if options.only != "scan":
                figures["writes"] = writes(Path(folder), options.rounds, options.ids)
                console.print(write_table(figures["writes"]))
            if options.only != "writes":
                figures["scan"] = [scan(Path(folder), kind, options.problems) for kind in get_args(Kind)]
                console.print(scan_table(figures["scan"]))
        if options.json is not None:
            options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def row_of(identity: str, microseconds: int = 123) -> Row:
    """A state as a short run leaves it, 1.2 KB as a file. Another time makes it another row."""
    call = {"tool": "calculator", "arguments": {"expression": "((25 - 7) * 6) / 9"}}
    return {
        "schema": 1,
        "fingerprint": fingerprint(SETTINGS),
        "problem": {"id": identity, "sha256": "0123456789abcdef" * 4},
        "phase": "complete",
        "turns": [
            {
                "prompt": [
                    {"role": "system", "content": "You may call one tool, with one JSON object. " * 5},
                    {"role": "user", "content": "What is ((25 - 7) * 6) / 9?"},
                ],
                "text": json.dumps(call),
                "token_ids": list(range(9000, 9024)),
                "finish_reason": "stop",
                "seed": None,
            }
        ],
        "call": call,
        "result": {"ok": True, "value": 12, "text": "12", "category": None},
        "verdict": {"outcome": "correct", "reason": None, "contract": "v3", "microseconds": microseconds},
        "timings": {"generate_s": 1.25, "tool_s": 0.001},
    }


# ------------------------------------------------------------------------------------------------------ writes


def writes(folder: Path, rounds: int, ids: int) -> list[dict[str, Any]]:
    """Every store at every durability, beside its bare loop."""
    return [
        compare(folder / f"{kind}-{durability}", kind, durability, rounds, ids)
        for durability in get_args(Durability)
        for kind in get_args(Kind)
    ]


def compare(folder: Path, kind: Kind, durability: Durability, rounds: int, ids: int) -> dict[str, Any]:
    printed = pretty if kind == "files" else compact
    seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(open_store(folder / "ours", SETTINGS, kind=kind, durability=durability))
        bare = bare_files if kind == "files" else bare_sqlite
        step = stack.enter_context(bare(folder / "bare", durability))

        def ours_s(number: int) -> float:
            name, row = numbered(number, ids)
            started = time.perf_counter()
            store.write(name, row)
            return time.perf_counter() - started

        def bare_s(number: int) -> float:
            name, row = numbered(number, ids)
            content = sealed(printed(row))
            started = time.perf_counter()
            step(name, content)
            return time.perf_counter() - started

        for number in range(WARM_UP):
            ours_s(number)
            bare_s(number)
        for turn in range(rounds):
            numbers = range(WARM_UP + turn * WRITES[durability], WARM_UP + (turn + 1) * WRITES[durability])
            turns = [("ours", ours_s), ("bare", bare_s)]
            for whose, write_s in turns if turn % 2 else turns[::-1]:
                seconds[whose].append(sum(map(write_s, numbers)))
    return {
        "store": kind,
        "durability": durability,
        "bytes": len(sealed(printed(numbered(0, ids)[1]))),
        "writes": rounds * WRITES[durability],
        "rows_per_s": WRITES[durability] / statistics.median(seconds["ours"]),
        "bare_rows_per_s": WRITES[durability] / statistics.median(seconds["bare"]),
        "ratio": statistics.median(bare / ours for ours, bare in zip(seconds["ours"], seconds["bare"], strict=True)),
    }


def numbered(number: int, ids: int) -> tuple[str, Row]:
    """Row and problem of a write: each problem in turn, and each time another row of it.

    Made just before it is stored, as a run does it: one that was made long ago is no longer in the processor's cache.
    """
    name = f"calculator-{number % ids:03}"
    return name, row_of(name, microseconds=123 + number // ids)


@contextlib.contextmanager
def bare_files(folder: Path, durability: Durability) -> Iterator[Step]:
    """The system calls of one write, and nothing else: the names are made beforehand."""
    paths: dict[str, tuple[str, str, str]] = {}

    def step(name: str, content: bytes) -> None:
        if name not in paths:
            sub_folder = folder / PROBLEMS / place(name)[0]
            sub_folder.mkdir(parents=True, exist_ok=True)
            paths[name] = (str(sub_folder), str(sub_folder / ".tmp"), str(sub_folder / place(name)[1]))
        sub, temporary, target = paths[name]
        descriptor = os.open(temporary, FLAGS, 0o666)
        os.write(descriptor, content)
        if durability == "power":
            os.fsync(descriptor)
        os.close(descriptor)
        os.replace(temporary, target)
        if durability == "power":
            descriptor = os.open(sub, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    yield step


@contextlib.contextmanager
def bare_sqlite(folder: Path, durability: Durability) -> Iterator[Step]:
    folder.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(f"PRAGMA synchronous={SYNCHRONOUS[durability]}")
        database.execute(TABLES[0])

        def step(name: str, content: bytes) -> None:
            database.execute("INSERT OR REPLACE INTO problems VALUES (?, ?, ?)", (name, "complete", content))

        yield step


def write_table(figures: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Writes of one row", title_justify="left")
    for column in ("store", "durability", "bytes", "writes", "rows/s", "bare rows/s", "ratio"):
        table.add_column(column, justify="left" if column in ("store", "durability") else "right")
    for one in figures:
        mark = "" if one["ratio"] >= WANTED_RATIO else f" (under {WANTED_RATIO})"
        table.add_row(
            one["store"],
            one["durability"],
            f"{one['bytes']:,}",
            f"{one['writes']:,}",
            f"{one['rows_per_s']:,.0f}",
            f"{one['bare_rows_per_s']:,.0f}",
            f"{one['ratio']:.2f}{mark}",
        )
    return table


# -------------------------------------------------------------------------------------------------------- scan


def scan(folder: Path, kind: Kind, problems: int) -> dict[str, Any]:
    """Time to open a run of many problems and to get the phase of each."""
    run = folder / f"scan-{kind}"
    open_store(run, SETTINGS, kind=kind, durability="process").close()
    fill = fill_files if kind == "files" else fill_sqlite
    fill(run, [(name, row_of(name)) for name in (f"problem-{number:06}" for number in range(problems))])
    started = time.perf_counter()
    with open_store(run, SETTINGS, kind=kind) as store:
        opened = time.perf_counter()
        found = len(store.phases())
        seconds = time.perf_counter() - started
    if found != problems:
        raise RuntimeError(f"{found} of {problems} problems were found")
    with read_store(run) as reader:
        read_started = time.perf_counter()
        reader.read(f"problem-{problems - 1:06}")
    return {
        "store": kind,
        "problems": problems,
        "seconds": seconds,
        "of_it_opening_s": opened - started,
        "one_read_s": time.perf_counter() - read_started,
    }


def fill_files(run: Path, rows: Sequence[tuple[str, Row]]) -> None:
    for name, row in rows:
        sub_folder, file = place(name)
        folder = run / PROBLEMS / sub_folder
        folder.mkdir(exist_ok=True)
        (folder / file).write_bytes(sealed(pretty(row)))


def fill_sqlite(run: Path, rows: Sequence[tuple[str, Row]]) -> None:
    with contextlib.closing(sqlite3.connect(run / DATABASE)) as database, database:
        database.executemany(PUT, ((name, row["phase"], sealed(compact(row))) for name, row in rows))


def scan_table(figures: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="A restart: the phase of every problem", title_justify="left")
    for column in ("store", "problems", "seconds", "of it opening", "one row read"):
        table.add_column(column, justify="left" if column == "store" else "right")
    for one in figures:
        table.add_row(
            one["store"],
            f"{one['problems']:,}",
            f"{one['seconds']:.2f}",
            f"{one['of_it_opening_s']:.2f}",
            f"{one['one_read_s'] * 1000:.1f} ms",
        )
    return table


if __name__ == "__main__":
    main()
