"""What every store of a run has in common: whose run it is, who may write, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from veriward.tool_agent.faults import NO_FAULTS, FaultPlan
from veriward.tool_agent.run_header import RunHeader, Settings
from veriward.tool_agent.run_lock import RunLock
from veriward.tool_agent.sealed_rows import CHECKSUM, Row, fault_of_row

Durability = Literal["power", "process"]


class RunStore:
    """The part of a StateStore that does not depend on how rows are stored."""

    def __init__(
        self,
        path: Path,
        header: RunHeader,
        lock: RunLock | None,
        durability: Durability = "power",
        faults: FaultPlan = NO_FAULTS,
    ) -> None:
        self.path = path
        self.header = header
        self.set_aside: list[str] = []
        """What was found unreadable since this store was opened, a line each: the name, and why."""
        self._lock = lock
        """None for a reader, which changes nothing."""
        self._synced = durability == "power"
        self._faults = faults
        self._fingerprints = header.fingerprints

    @property
    def fingerprint(self) -> str:
        return self.header.fingerprint

    @property
    def settings(self) -> Settings:
        return self.header.settings

    @property
    def continued_under(self) -> Sequence[Mapping[str, str]]:
        return self.header.continued_under

    @property
    def took_over(self) -> str | None:
        """A line about the lock of a dead writer; None where there was none."""
        return None if self._lock is None else self._lock.took_over

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, identity: str, row: Row) -> None:
        """Nothing is stored that would be set aside when it is read."""
        if self._lock is None:
            raise ValueError(f"{self.path}: was opened to read")
        fault = fault_of_row(row, self._fingerprints)
        if not fault and row["problem"]["id"] != identity:
            fault = f"problem id {row['problem']['id']!r}"
        if not fault and CHECKSUM in row:
            fault = f"a key {CHECKSUM!r}, which the store adds"
        if fault:
            raise ValueError(f"{self.path}: {identity!r} is to be stored with {fault}")

    def _fault(self, row: Row | str, identity: str | None) -> str:
        """Why what was read is no state of `identity` (None: of any problem) in this run; empty if it is one."""
        if isinstance(row, str):
            return row
        fault = fault_of_row(row, self._fingerprints)
        if not fault and identity is not None and row["problem"]["id"] != identity:
            return f"is of the problem {row['problem']['id']!r}"
        return fault
