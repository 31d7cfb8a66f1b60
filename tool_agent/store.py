"""The states of a run on disk: one row for each problem, replaced whole at every phase.

Two stores behind one protocol: files, one a problem, readable with `cat` (`file_store.py`); and SQLite for large sets
(`sqlite_store.py`). In both a kill leaves each row old or new and never torn, what cannot be read is set apart and
never deleted, and a second writer and another run's settings are refused before anything is written.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, get_args

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import NO_FAULTS, FaultPlan
from veriward.tool_agent.file_store import FileStore
from veriward.tool_agent.files import TEMPORARY, cannot_write, make_folder, refuse_foreign, remove, write_all
from veriward.tool_agent.run_header import (
    RUN,
    Kind,
    RunHeader,
    adopt,
    fingerprint,
    read_header,
    refuse_unreachable,
    to_header,
    write_header,
)
from veriward.tool_agent.run_lock import RunLock
from veriward.tool_agent.run_store import Durability, RunStore
from veriward.tool_agent.sealed_rows import Row, compact, opened, sealed
from veriward.tool_agent.sqlite_store import SqliteStore

__all__ = [
    "Durability",
    "Kind",
    "Row",
    "StateReader",
    "StateStore",
    "export",
    "fingerprint",
    "open_store",
    "read_store",
]

SQLITE_SUFFIXES = (".sqlite", ".db")
LINES_SUFFIX = ".jsonl"


class StateReader(Protocol):
    """The states of a run, to look at."""

    set_aside: list[str]
    """What was found unreadable since it was opened, a line each: the name, and why. Each counts as not there."""

    @property
    def path(self) -> Path: ...

    @property
    def fingerprint(self) -> str:
        """Of the run's settings: what every row that is written must carry."""

    @property
    def settings(self) -> Mapping[str, object]: ...

    @property
    def header(self) -> RunHeader: ...

    def read(self, identity: str) -> Row | None:
        """The row of a problem; None where there is none that can be read."""

    def phases(self) -> dict[str, str]:
        """The phase of every problem that has a whole row: what a restart begins with."""

    def rows(self) -> Iterator[Row]:
        """Every whole row, in no order that means anything."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class StateStore(StateReader, Protocol):
    """The states of a run, open for its one writer. Any thread of it may call any method."""

    @property
    def continued_under(self) -> Sequence[Mapping[str, str]]:
        """Fingerprints 'from' and 'to' and the 'time', for each time the run went on under other code."""

    @property
    def took_over(self) -> str | None:
        """A line about the lock of a dead writer, to be said; None where there was none."""

    def write(self, identity: str, row: Row) -> None:
        """Store the row of a problem in place of an earlier one; it is on the disk when this returns.

        raises   ConfigError where the disk is full or read-only: the earlier row is still there, and whole;
                 ValueError for a row that could not be read back the same: our own mistake
        """

    def put_aside(self, identity: str, why: str) -> None:
        """Set a row apart that was read and makes no sense to the caller; it then counts as not there."""


def open_store(
    path: str | Path,
    settings: Mapping[str, object],
    *,
    kind: Kind = "files",
    durability: Durability = "power",
    continue_under: bool = False,
    faults: FaultPlan = NO_FAULTS,
) -> StateStore:
    """Open a run's folder to write, new or half done. Use it as a context manager.

    settings         everything that decides the run, JSON-safe; the key 'code' may differ where `continue_under` says
                     so, and is then recorded
    durability       'power': a row survives a power failure once `write` returned; 'process': it survives a kill
    raises           ConfigError, in one line, for a folder that is not this run's, is being written, or cannot be
    """
    folder = Path(path)
    if durability not in get_args(Durability):
        raise ConfigError(f"unknown durability {durability!r}; wanted one of {', '.join(get_args(Durability))}")
    prepare_folder(folder)
    with contextlib.ExitStack() as undo:
        lock = undo.enter_context(contextlib.closing(RunLock(folder)))
        header = adopt(folder, settings, kind, continue_under=continue_under)
        for left in folder.glob(f"{TEMPORARY}*"):
            remove(left)
        store = STORES[kind](folder, header, lock, durability, faults)
        undo.pop_all()
    return store


def prepare_folder(folder: Path) -> None:
    """There, and empty or a run's."""
    try:
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder}: is a file; wanted a folder for the run")
        refuse_foreign(folder, RUN, "run")
        make_folder(folder)
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{folder}: no folder to write in: {reason}; choose another") from error


def read_store(path: str | Path) -> StateReader:
    """Open a run to look at it, while it is being written too: its folder, or a file of `export`. Changes nothing."""
    place = Path(path)
    refuse_unreachable(place)
    if place.suffix == LINES_SUFFIX and place.is_file():
        return LineReader(place)
    header = read_header(place)
    if header.kind not in STORES:
        raise ConfigError(f"{place / RUN}: unknown kind of store {header.kind!r}; use the version that wrote it")
    return STORES[header.kind](place, header, None)


STORES: dict[str, type[FileStore] | type[SqliteStore]] = {"files": FileStore, "sqlite": SqliteStore}


# ------------------------------------------------------------------------------------------------------- export


class LineReader(RunStore):
    """A run as one JSONL file: its header in the first line, and a row in each other."""

    def __init__(self, path: Path) -> None:
        """ConfigError if the first line is no header."""
        try:
            with path.open("rb") as file:
                first = json.loads(file.readline())
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}; make it readable") from error
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}, line 1: damaged: {error}; choose another file") from error
        super().__init__(path, to_header(first, f"{path}, line 1"), None)

    def read(self, identity: str) -> Row | None:
        return next((row for row in self.rows() if row["problem"]["id"] == identity), None)

    def phases(self) -> dict[str, str]:
        return {row["problem"]["id"]: row["phase"] for row in self.rows()}

    def rows(self) -> Iterator[Row]:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    continue
                row = opened(line)
                fault = self._fault(row, None)
                if fault or isinstance(row, str):
                    self.set_aside.append(f"line {number}: {fault}")
                else:
                    yield row


def export(source: StateReader, out: str | Path) -> int:
    """Copy a run whole, and return the number of its rows. ConfigError if something is there already.

    out   NAME.jsonl becomes one file; NAME.sqlite and NAME.db a folder with a database; any other a folder of files.
          It appears at one stroke, so that half a copy cannot be taken for a run: till then its name is hidden.
    """
    place = Path(out)
    part = place.with_name(f"{TEMPORARY}{place.name}")
    for path in (place, part):
        if os.path.lexists(path):
            raise ConfigError(f"{path}: is there already; choose another, or remove it")
    try:
        copied = copy_lines(source, part) if place.suffix == LINES_SUFFIX else copy_folder(source, part, kind_of(place))
        if hasattr(os, "sync"):
            os.sync()
        part.rename(place)
    except OSError as error:
        raise cannot_write(place, error) from error
    return copied


def kind_of(out: Path) -> Kind:
    return "sqlite" if out.suffix in SQLITE_SUFFIXES else "files"


def copy_lines(source: StateReader, out: Path) -> int:
    copied = 0
    header = asdict(replace(source.header, kind="jsonl"))
    with out.open("xb", buffering=0) as file:
        write_all(file.fileno(), json.dumps(header, allow_nan=False).encode("ascii") + b"\n")
        for row in source.rows():
            write_all(file.fileno(), sealed(compact(row)) + b"\n")
            copied += 1
    return copied


def copy_folder(source: StateReader, out: Path, kind: Kind) -> int:
    copied = 0
    header = replace(source.header, kind=kind)
    make_folder(out)
    write_header(out, header)
    with STORES[kind](out, header, RunLock(out), "process") as store:
        for row in source.rows():
            store.write(row["problem"]["id"], row)
            copied += 1
    return copied
