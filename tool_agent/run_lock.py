"""The lock of a run: one writer, whose process and machine the next one is told.

The lock itself is the operating system's, so a kill frees it. The file's content says who holds it, and only that:
what a dead process left there is taken over, and said. Not covered: see `files.try_lock`.
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import LOCK, cannot_write, try_lock, write_all

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class RunLock:
    """Held from birth to `close`, or to the end of the process."""

    def __init__(self, folder: Path) -> None:
        """ConfigError if another writer has the folder, or if nobody can say whether one on another machine has."""
        self.took_over: str | None = None
        """Whose lock was left behind, for a person; None where the last writer ended in order."""
        try:
            self._descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise cannot_write(folder, error) from error
        held = False
        try:
            held = self._hold(folder)
        except OSError as error:
            raise cannot_write(folder, error) from error
        finally:
            if not held:
                os.close(self._descriptor)

    def _hold(self, folder: Path) -> bool:
        free = try_lock(self._descriptor, folder)
        before = read_holder(self._descriptor)
        if not free:
            raise ConfigError(
                f"{folder}: another process is writing into it: {named(before)}{heirs(before)}; "
                "wait until it ends, or choose another"
            )
        me = myself()
        if before is not None:
            if not on_this_machine(before, me):
                raise ConfigError(
                    f"{folder}: may still be written by {named(before)}, another machine than this one; if that "
                    f"process has ended, remove {folder / LOCK} and start again"
                )
            self.took_over = f"{folder}: the lock that {named(before)} left behind is taken over"
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        write_all(self._descriptor, json.dumps(me).encode("ascii"))
        return True

    def close(self) -> None:
        """Free it. The file stays: to remove one that another process is just opening would make two locks."""
        if self._descriptor < 0:
            return
        try:
            os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1


def myself() -> dict[str, Any]:
    boot = BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else ""
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    return {"pid": os.getpid(), "host": platform.node(), "boot": boot, "started": started}


def read_holder(descriptor: int) -> dict[str, Any] | None:
    """Who wrote the content; None if nobody did, or if a kill tore it."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        holder = json.loads(os.read(descriptor, 4096))
    except (ValueError, RecursionError):
        return None
    return holder if isinstance(holder, dict) else None


def on_this_machine(holder: dict[str, Any], me: dict[str, Any]) -> bool:
    """By the boot, since containers on one machine have names of their own; or by the name, started anew since."""
    return bool(me["boot"] and holder.get("boot") == me["boot"]) or holder.get("host") == me["host"]


def named(holder: dict[str, Any] | None) -> str:
    if holder is None:
        return "one that has not said its name yet"
    return f"process {holder.get('pid')} on {holder.get('host')}, since {holder.get('started')}"


def heirs(holder: dict[str, Any] | None) -> str:
    """A remark on a lock that outlives its process, which children born by a fork share."""
    if holder is None or os.name != "posix" or holder.get("host") != platform.node():
        return ""
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return " (it is gone, but a child of it still runs: end that)"
    except (KeyError, TypeError, ValueError, OverflowError, PermissionError):
        return ""
    return ""
