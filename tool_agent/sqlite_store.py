"""States in one SQLite database with a write-ahead log: for sets of 100,000 problems and more.

    RUN/problems.sqlite    table `problems` with id, phase and row; table `set_aside` with what could not be read

Covered: a kill at any moment (durability 'process': a write is in the log, the log is flushed now and then), a power
failure (durability 'power': each write is flushed), a full disk, several threads.
Not covered: network drives, where such a log does not work; a process that forks while it is open. A write is one
transaction, so nothing of it is ever torn: a planned fault 'torn' is none here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import NO_FAULTS, FaultPlan
from veriward.tool_agent.files import cannot_write
from veriward.tool_agent.run_header import RunHeader
from veriward.tool_agent.run_lock import RunLock
from veriward.tool_agent.run_store import Durability, RunStore
from veriward.tool_agent.sealed_rows import Row, compact, opened, sealed

DATABASE = "problems.sqlite"
SYNCHRONOUS: dict[Durability, str] = {"power": "FULL", "process": "NORMAL"}
TABLES = (
    "CREATE TABLE IF NOT EXISTS problems (id TEXT PRIMARY KEY, phase TEXT NOT NULL, row TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS set_aside (id TEXT, phase TEXT, row TEXT, why TEXT, time TEXT)",
)
PUT = """
INSERT INTO problems VALUES (?, ?, CAST(? AS TEXT))
ON CONFLICT (id) DO UPDATE SET phase = excluded.phase, row = excluded.row
"""
"""As an update, which keeps a row's place: who writes while going through the rows meets each of them once."""
GET = "SELECT rowid, id, phase, CAST(row AS BLOB) FROM problems"
AT_A_TIME = 500
"""Rows fetched at a time, so that other threads can write in between."""

DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
OF_THE_SYSTEM = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM})


class SqliteStore(RunStore):
    """A StateStore of one database."""

    def __init__(
        self,
        path: Path,
        header: RunHeader,
        lock: RunLock | None,
        durability: Durability = "power",
        faults: FaultPlan = NO_FAULTS,
    ) -> None:
        super().__init__(path, header, lock, durability, faults)
        self._file = path / DATABASE
        self._turn = threading.Lock()
        begun = refuse_damaged(self._file)
        with contextlib.ExitStack() as undo:
            try:
                self._database = undo.enter_context(contextlib.closing(connect(self._file, lock is None, begun)))
                if lock is not None:
                    self._prepare(SYNCHRONOUS[durability])
            except sqlite3.DatabaseError as error:
                raise in_one_line(self._file, error) from error
            undo.pop_all()

    def write(self, identity: str, row: Row) -> None:
        """Store the row of a problem in place of an earlier one; it is on the disk when this returns.

        ConfigError where the disk is full or read-only: then the earlier row is still there, and whole. ValueError for
        a row that could not be read back.
        """
        self._check(identity, row)
        content = sealed(compact(row))
        with self._turn:
            try:
                self._faults.at("store.begin", identity)
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute(PUT, (identity, row["phase"], content))
                self._faults.at("store.commit", identity)
                self._database.execute("COMMIT")
                self._faults.at("store.committed", identity)
            except OSError as error:
                raise cannot_write(self._file, error) from error
            except sqlite3.DatabaseError as error:
                raise in_one_line(self._file, error) from error
            finally:
                self._roll_back()

    def read(self, identity: str) -> Row | None:
        """The row of a problem; None where there is none that can be read."""
        identity.encode()  # ValueError for a lone surrogate, as every store gives
        found = self._fetch(f"{GET} WHERE id = ?", (identity,))
        return self._whole(*found[0]) if found else None

    def phases(self) -> dict[str, str]:
        """The phase of every problem that has a whole state."""
        return {row["problem"]["id"]: row["phase"] for row in self.rows()}

    def rows(self) -> Iterator[Row]:
        """Every whole row, in the order in which the problems came."""
        last = 0
        while found := self._fetch(f"{GET} WHERE rowid > ? ORDER BY rowid LIMIT {AT_A_TIME}", (last,)):
            for one in found:
                row = self._whole(*one)
                if row is not None:
                    yield row
            last = found[-1][0]

    def put_aside(self, identity: str, why: str) -> None:
        """Set a state apart that was read and makes no sense to the caller."""
        for place, name, *_ in self._fetch(f"{GET} WHERE id = ?", (identity,)):
            self._put_aside(place, name, why)

    def close(self) -> None:
        """Write the log back into the database, and free the lock."""
        with self._turn:
            self._database.close()
        super().close()

    def _prepare(self, synchronous: str) -> None:
        (mode,) = self._database.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise ConfigError(f"{self._file}: no write-ahead log here; choose a local folder, or the store 'files'")
        self._database.execute(f"PRAGMA synchronous={synchronous}")
        for table in TABLES:
            self._database.execute(table)

    def _fetch(self, query: str, values: tuple[object, ...]) -> list[tuple[int, str, str, bytes]]:
        with self._turn:
            try:
                return self._database.execute(query, values).fetchall()
            except sqlite3.DatabaseError as error:
                raise in_one_line(self._file, error) from error

    def _whole(self, place: int, identity: str, phase: str, content: bytes) -> Row | None:
        row = opened(content)
        fault = self._fault(row, identity)
        if not fault and isinstance(row, dict):
            if row["phase"] == phase:
                return row
            fault = f"has the phase {row['phase']!r}, and {phase!r} beside it"
        self._put_aside(place, identity, fault)
        return None

    def _put_aside(self, place: int, identity: str, why: str) -> None:
        """Into a table of its own. A reader only names it."""
        self.set_aside.append(f"{identity!r}: {why}")
        if self._lock is None:
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        with self._turn:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute(
                    "INSERT INTO set_aside SELECT id, phase, row, ?, ? FROM problems WHERE rowid = ?", (why, now, place)
                )
                self._database.execute("DELETE FROM problems WHERE rowid = ?", (place,))
                self._database.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                raise in_one_line(self._file, error) from error
            finally:
                self._roll_back()

    def _roll_back(self) -> None:
        """What a fault left open. SQLite itself ends a transaction that found the disk full."""
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")


def connect(file: Path, reader: bool, begun: bool) -> sqlite3.Connection:
    """A reader changes nothing: where no log is left it makes none, and where nothing is stored yet, nothing at all."""
    name = file.absolute().as_uri()
    if reader:
        log = file.with_name(f"{file.name}-wal")
        name += "?mode=ro" if log.exists() and log.stat().st_size else "?mode=ro&immutable=1"
    if reader and not begun:
        name = ":memory:"
    database = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False, timeout=5)
    database.text_factory = readable
    if reader and not begun:
        for table in TABLES:
            database.execute(table)
    return database


def readable(text: bytes) -> str:
    """Of a damaged text too, which then fits no checksum."""
    return text.decode("utf-8", "backslashreplace")


def refuse_damaged(file: Path) -> bool:
    """Whether states may be in the database; ConfigError, before anything could write to it, if it is damaged."""
    try:
        if not file.exists() or not file.stat().st_size:
            return False
        with contextlib.closing(connect(file, reader=True, begun=True)) as database:
            found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        raise in_one_line(file, error) from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}; make it readable") from error
    if found != "ok":
        raise damaged(file, found)
    if tables and "problems" not in tables:
        raise ConfigError(f"{file}: is no database of states; choose another folder")
    return bool(tables)


def damaged(file: Path, why: object) -> ConfigError:
    return ConfigError(f"{file}: damaged: {why}; it is left as it is; restore it, or choose another folder")


def in_one_line(file: Path, error: sqlite3.DatabaseError) -> ConfigError:
    """What a person is told; a mistake in our own SQL is raised as it is."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return cannot_write(file, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    if code in DAMAGED:
        return damaged(file, error)
    if code in BUSY:
        return ConfigError(f"{file}: another program has it open and locked; close that, and start again")
    if code in OF_THE_SYSTEM:
        return ConfigError(
            f"{file}: {error}; what was stored before is still there; make the folder writable and start again, or "
            "choose another"
        )
    raise error
