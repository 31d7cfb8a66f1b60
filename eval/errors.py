"""Errors made for the person at the keyboard: one line, exit code 2 from every command.

A message says where, what was got, what was wanted, and what to do.
"""

from __future__ import annotations

import importlib


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
            f"{purpose} needs the package {module}, which is not installed; run: pip install 'veriward[{extra}]'"
        ) from None
