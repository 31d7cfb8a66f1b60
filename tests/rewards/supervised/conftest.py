"""Pools over functions that hang, die and lie."""

from pathlib import Path

import pytest

from veriward.rewards.pool import VerdictPool
from veriward.rewards.worker_pool import WorkerPool


@pytest.fixture
def made(monkeypatch):
    """Makes pools over `misbehaving_functions`, whose folder is on the import path, and closes them."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    pools = []

    def make(function="act", **settings):
        pools.append(WorkerPool(f"misbehaving_functions:{function}", **settings))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


@pytest.fixture
def verdicts(monkeypatch):
    """Makes verdict pools whose workers misbehave where a candidate asks them to."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    pools = []

    def make(**settings):
        pools.append(VerdictPool(function="misbehaving_functions:decide", **settings))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
