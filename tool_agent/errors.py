"""Errors made for the person at the keyboard: one line, exit code 2 from every command.

A message says where, what was got, what was wanted, and what to do.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
from collections.abc import Iterator
from pathlib import Path


class ConfigError(ValueError):
    """A setting, a file or a folder is not what the command needs."""


class MissingExtraError(ConfigError):
    """An optional package is not installed."""


def need(module: str, *, extra: str, purpose: str) -> None:
    """Refuse with the install command if `module`, which belongs to an extra of ours, cannot be found."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise MissingExtraError(
            f"{purpose} needs the package {module}, which is not installed; run: pip install 'veriward[{extra}]' "
            f"(in a checkout: pip install -e '.[{extra}]')"
        ) from None


@contextlib.contextmanager
def disk_full_in_one_line(folder: Path) -> Iterator[None]:
    """A full disk is for the person to mend. Whatever else goes wrong inside is raised as it is.

    Not only OSError: libraries that save weights wrap the system's error in one of their own.
    """
    try:
        yield
    except Exception as error:
        if getattr(error, "errno", None) != errno.ENOSPC and "No space left on device" not in str(error):
            raise
        raise ConfigError(
            f"{folder}: the disk is full; what was written before is still there; free some space and start again"
        ) from error
