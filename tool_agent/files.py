"""Files that survive a kill: written whole or not at all, locked for one writer, compared setting by setting.

Covered: a process killed at any moment, and, where a function says so, a power failure.
Not covered: drives that say 'written' too early (macOS, which needs more than fsync), and folders on Windows, which
cannot be flushed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from veriward.tool_agent.errors import ConfigError

LOCK = ".lock"
TEMPORARY = ".tmp-"
"""What every name begins with that a kill may leave behind."""

LOCKED_BYTE = 1 << 30
"""Windows locks bytes, and nobody can read those: one far behind the content."""

NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})

FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "no file may grow that large here (ulimit -f)",
}

MISSING: Final = object()


# ------------------------------------------------------------------------------------------------------ settings


def differences(stored: object, wanted: object, where: str = "") -> list[str]:
    """What differs between two JSON values, a line each: 'generation.seed 0 there, 1 now'."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        keys = [*stored, *(key for key in wanted if key not in stored)]
        inner = (
            differences(stored.get(key, MISSING), wanted.get(key, MISSING), f"{where}.{key}".lstrip("."))
            for key in keys
        )
        return [line for lines in inner for line in lines]
    one, other = shorten(stored), shorten(wanted)
    return [] if same(stored, wanted) else [f"{where} {one} there, {other} now"]


def same(stored: object, wanted: object) -> bool:
    """As JSON text, since in Python 1, 1.0 and true are equal."""
    if MISSING in (stored, wanted):
        return False
    return json.dumps(stored, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def shorten(value: object) -> str:
    text = "nothing" if value is MISSING else json.dumps(value)
    return text if len(text) <= 70 else f"{text[:67]}..."


# ------------------------------------------------------------------------------------------------------- writing


def to_json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, indent=2, allow_nan=False).encode("ascii") + b"\n"


def to_line(row: Mapping[str, Any]) -> bytes:
    """ASCII, so that no character of a model can break a line, whatever reads it."""
    return json.dumps(row, allow_nan=False).encode("ascii") + b"\n"


def write_whole(file: Path, content: bytes) -> None:
    """Replace a file at one stroke: after a kill it is the old one or the new one, and never half of either.

    After a power failure too.
    """
    temporary = file.with_name(f"{TEMPORARY}{os.getpid()}-{file.name}")
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)
    sync_folder(file.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """`os.write` may write less than it was given, and raises nothing: on a disk that fills up, it does."""
    written = os.write(descriptor, content)
    while written < len(content):
        written += os.write(descriptor, content[written:])


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder survive a power failure."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """With all above it, each flushed into the one that holds it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def cannot_write(path: str | Path, error: OSError) -> ConfigError:
    """What a person is told where a write failed."""
    full = FULL.get(error.errno or 0)
    if full is not None:
        return ConfigError(f"{path}: {full}; what was stored before is still there; free some space and start again")
    reason = error.strerror or error
    return ConfigError(
        f"{path}: cannot be written: {reason}; what was stored before is still there; "
        "make it writable and start again, or choose another folder"
    )


# --------------------------------------------------------------------------------------------------- one writer


def refuse_foreign(path: Path, marker: str, what: str) -> None:
    """A folder that holds something and no `marker` is someone's, and nothing is written into it."""
    if not path.is_dir() or (path / marker).exists():
        return
    found = sorted(
        entry.name for entry in path.iterdir() if entry.name != LOCK and not entry.name.startswith(TEMPORARY)
    )
    if found:
        raise ConfigError(f"{path}: holds {found[0]!r} and no {marker}, so it is no {what}; choose another")


def lock(folder: Path) -> IO[bytes]:
    """Held until the file is closed, by a kill too."""
    file = (folder / LOCK).open("ab")
    try:
        lock_file(file, folder)
    except ConfigError:
        file.close()
        raise
    return file


def lock_file(file: IO[bytes], path: Path) -> None:
    """One writer: ConfigError if another process holds the file."""
    if not try_lock(file.fileno(), path):
        raise ConfigError(f"{path}: another process is writing into it; wait, or choose another")


def try_lock(descriptor: int, path: Path) -> bool:
    """Lock an open file until it is closed, by a kill too; False if another has it.

    ConfigError where the file system knows no locks. Not covered: two machines, on a network drive whose locks are
    local to each.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            here = os.lseek(descriptor, 0, os.SEEK_CUR)
            os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, here, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise ConfigError(f"{path}: this file system has no locks for files; choose a folder on another") from error
    return True


def remove(path: str | Path) -> None:
    """If it is there and can be."""
    with contextlib.suppress(OSError):
        os.unlink(path)
