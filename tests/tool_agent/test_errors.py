"""Errors for the person at the keyboard."""

import os
from pathlib import Path

import pytest

from veriward.tool_agent.errors import ConfigError, MissingExtraError, disk_full_in_one_line, need


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line():
    with (
        pytest.raises(ConfigError, match="runs: the disk is full; what was written before") as error,
        disk_full_in_one_line(Path("runs")),
        open("/dev/full", "w") as file,
    ):
        file.write("x" * 100_000)
    assert "\n" not in str(error.value)


def test_a_library_that_wraps_the_error_in_its_own_is_understood():
    with pytest.raises(ConfigError, match="the disk is full"), disk_full_in_one_line(Path("runs")):
        raise RuntimeError(f"I/O error: {os.strerror(28)}")


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError(13, "Permission denied")])
def test_every_other_error_keeps_its_traceback(error):
    with pytest.raises(type(error)) as raised, disk_full_in_one_line(Path("runs")):
        raise error
    assert raised.value is error


def test_a_missing_extra_names_its_command():
    with pytest.raises(MissingExtraError, match=r"pip install 'veriward\[train\]'"):
        need("no_such_package", extra="train", purpose="this")
