"""States as files: one JSON file for each problem, readable with `cat`. The default.

    RUN/problems/3f/calculator-01-3f09….json     the id as far as it is plain, and a hash of it, which decides
    RUN/set_aside/…                              what could not be read; never deleted

Covered: a kill at any moment (durability 'process'), a power failure (durability 'power': the file, its name and the
folder are flushed before `write` returns), a full disk, ids of any text, several threads.
Not covered: several processes, which the lock keeps out; a disk that alters what it stored after the checksum was
read; more problems than the file system has room for names, for which there is SQLite.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import NO_FAULTS, Action, FaultPlan, carry_out
from veriward.tool_agent.files import TEMPORARY, cannot_write, remove, sync_folder, write_all
from veriward.tool_agent.run_header import RunHeader
from veriward.tool_agent.run_lock import RunLock
from veriward.tool_agent.run_store import Durability, RunStore
from veriward.tool_agent.sealed_rows import Row, opened, pretty, sealed

PROBLEMS, SET_ASIDE = "problems", "set_aside"
UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
SUB_FOLDER = re.compile(r"[0-9a-f]{2}")
READABLE = 60
"""Characters of the id in a file's name."""
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


class FileStore(RunStore):
    """A StateStore of one file a problem."""

    def __init__(
        self,
        path: Path,
        header: RunHeader,
        lock: RunLock | None,
        durability: Durability = "power",
        faults: FaultPlan = NO_FAULTS,
    ) -> None:
        super().__init__(path, header, lock, durability, faults)
        self._problems = os.fspath(path / PROBLEMS)
        self._sub_folders: set[str] = set()
        if lock is not None:
            try:
                self._prepare()
            except OSError as error:
                raise cannot_write(self._problems, error) from error

    def write(self, identity: str, row: Row) -> None:
        """Store the row of a problem in place of an earlier one; it is on the disk when this returns.

        ConfigError where the disk is full or read-only: then the earlier row is still there, and whole. ValueError for
        a row that could not be read back.
        """
        self._check(identity, row)
        content = sealed(pretty(row))
        sub_folder, name = place(identity)
        folder = f"{self._problems}/{sub_folder}"
        temporary = f"{folder}/{TEMPORARY}{os.getpid()}-{threading.get_ident()}"
        try:
            self._faults.at("store.temp", identity)
            if sub_folder not in self._sub_folders:
                self._make(sub_folder)
            self._fill(temporary, content, identity)
            self._faults.at("store.rename", identity)
            self._move(temporary, folder, name)
            if self._synced:
                self._faults.at("store.fsync_folder", identity)
                sync_folder(folder)
        except OSError as error:
            remove(temporary)
            raise cannot_write(f"{folder}/{name}", error) from error

    def read(self, identity: str) -> Row | None:
        """The row of a problem; None where there is none that can be read."""
        return self._read(*place(identity))

    def phases(self) -> dict[str, str]:
        """The phase of every problem that has a whole state."""
        return {row["problem"]["id"]: row["phase"] for row in self.rows()}

    def rows(self) -> Iterator[Row]:
        """Every whole row, in the order of the files."""
        for sub_folder in sorted(self._entries(self._problems)):
            folder = f"{self._problems}/{sub_folder}"
            if not SUB_FOLDER.fullmatch(sub_folder) or not os.path.isdir(folder):
                self._put_aside(folder, "no folder of states")
                continue
            for name in sorted(self._entries(folder)):
                row = self._read(sub_folder, name)
                if row is not None:
                    yield row

    def put_aside(self, identity: str, why: str) -> None:
        """Set a state apart that was read and makes no sense to the caller."""
        sub_folder, name = place(identity)
        self._put_aside(f"{self._problems}/{sub_folder}/{name}", why)

    def _prepare(self) -> None:
        """Remove what killed writers left half written: the lock is held, so none of them lives."""
        os.makedirs(self._problems, exist_ok=True)
        sync_folder(self.path)
        self._sub_folders = {name for name in os.listdir(self._problems) if SUB_FOLDER.fullmatch(name)}
        for name in sorted(self._sub_folders):
            folder = f"{self._problems}/{name}"
            if not os.path.isdir(folder):
                self._put_aside(folder, "no folder of states")
                self._sub_folders.remove(name)
                continue
            for left in os.listdir(folder):
                if left.startswith(TEMPORARY):
                    remove(f"{folder}/{left}")

    def _make(self, sub_folder: str) -> None:
        os.makedirs(f"{self._problems}/{sub_folder}", exist_ok=True)
        if self._synced:
            sync_folder(self._problems)
        self._sub_folders.add(sub_folder)

    def _fill(self, temporary: str, content: bytes, identity: str) -> None:
        descriptor = os.open(temporary, FLAGS, 0o666)
        try:
            if self._faults.at("store.write", identity) is Action.TORN:
                write_all(descriptor, content[: len(content) // 2])
                carry_out(Action.KILL, "store.write")
            write_all(descriptor, content)
            if self._synced:
                self._faults.at("store.fsync", identity)
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _move(self, temporary: str, folder: str, name: str) -> None:
        target = f"{folder}/{name}"
        try:
            os.replace(temporary, target)
        except OSError:
            if not os.path.isdir(target):
                raise
            self._put_aside(target, "a folder in the place of a state")
            os.replace(temporary, target)

    def _entries(self, folder: str) -> list[str]:
        """Names in a folder, without the hidden ones, which are not the store's or are half written."""
        try:
            return [name for name in os.listdir(folder) if not name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"{folder}: cannot be read: {error.strerror}; make it readable") from error

    def _read(self, sub_folder: str, name: str) -> Row | None:
        file = f"{self._problems}/{sub_folder}/{name}"
        try:
            with open(file, "rb", buffering=0) as stream:
                row = opened(stream.read())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if not os.path.isdir(file):
                raise ConfigError(f"{file}: cannot be read: {error.strerror}; make it readable") from error
            row = "a folder in the place of a state"
        fault = self._fault(row, None)
        if not fault and isinstance(row, dict):
            if place(row["problem"]["id"]) == (sub_folder, name):
                return row
            fault = f"is of the problem {row['problem']['id']!r}, which belongs elsewhere"
        self._put_aside(file, fault)
        return None

    def _put_aside(self, file: str, why: str) -> None:
        """Out of the way, under its name or one numbered after it. A reader only names it."""
        shown = os.path.relpath(file, self.path)
        self.set_aside.append(f"{shown}: {why}")
        if self._lock is None:
            return
        aside = self.path / SET_ASIDE
        try:
            aside.mkdir(exist_ok=True)
            os.rename(file, free_name(aside / os.path.basename(file)))
        except OSError as error:
            raise cannot_write(aside, error) from error


def place(identity: str) -> tuple[str, str]:
    """Sub-folder and name for a problem's id, of any text but a lone surrogate (ValueError)."""
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return digest[:2], f"{UNSAFE.sub('-', identity[:READABLE])}-{digest[:32]}.json"


def free_name(wanted: Path) -> Path:
    """The name itself, or the first numbered one that is not taken."""
    number, name = 1, wanted
    while os.path.lexists(name):
        number += 1
        name = wanted.with_name(f"{wanted.name}.{number}")
    return name
