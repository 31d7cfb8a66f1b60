"""What more than one test folder needs."""

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two test processes on two cores: more threads only get in the way
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

ROOT = Path(__file__).parents[1]
CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The labelled cases and real data that are too large for this repository; skips where they are not at hand."""
    folder = Path(os.environ.get("VERIWARD_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no shared cases at {folder}; set VERIWARD_SHARED to the folder that holds cases/ and data/")
    return folder


@pytest.fixture(scope="session")
def run_folders():
    """The module `tests/run_folders.py`: `write_run` stores a real run of given texts, `problem_set` makes a set."""
    spec = importlib.util.spec_from_file_location("run_folders", Path(__file__).parent / "run_folders.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def read_rows() -> Callable[[Path], list[dict]]:
    """Reads a JSONL file."""
    return lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def read_cases(read_rows) -> Callable[[str], list[dict]]:
    """Reads a case file of this repository."""
    return lambda name: read_rows(CASES / name)
