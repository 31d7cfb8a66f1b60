"""Faults on purpose, at named points: what drills and crash tests are made of.

A plan is handed to the store, the executor and the agent. Each says where it is, and the plan does what it holds for
that place: kill the process, raise what a full disk raises, or say that this execution timed out. Without a plan
nothing happens.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

SIGKILL = 9
"""By number: the module of that name has no business near a model's text."""


class Action(StrEnum):
    KILL = "kill"
    """SIGKILL to this process."""
    INTERRUPT = "interrupt"
    """Raise Interrupted."""
    DISK_FULL = "disk_full"
    """Raise the OSError of a full disk."""
    READ_ONLY = "read_only"
    """Raise the OSError of a folder that may not be written."""
    TORN = "torn"
    """Whoever writes leaves half of what was to be written, then the process is killed."""
    TIMEOUT = "timeout"
    REFUSE = "refuse"
    KILL_WORKER = "kill_worker"
    """These three are for the executor to carry out."""


class Interrupted(Exception):  # noqa: N818  no error: a planned interruption, which a driver catches
    """A planned interruption of the process."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong."""

    point: str
    """Where, as 'store.rename'."""
    action: Action
    problem: str | None = None
    """None: any problem."""
    skip: int = 0
    """Visits of the point that pass before it happens."""
    times: int = 1
    """How often it happens then."""

    visits: int = field(default=0, init=False)

    def due(self, point: str, problem: str | None) -> bool:
        if point != self.point or (self.problem is not None and self.problem != problem):
            return False
        self.visits += 1
        return self.skip < self.visits <= self.skip + self.times


class FaultPlan:
    """Faults that are still to come."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.faults = tuple(faults)
        self.visited: list[tuple[str, str | None]] = []
        """Every point that was passed, in order, with its problem: what a crash test goes through. Kept only where
        there is a fault in the plan."""

    def at(self, point: str, problem: str | None = None) -> Action | None:
        """Carry out what is planned for here, or return what the caller itself has to carry out."""
        if not self.faults:
            return None
        self.visited.append((point, problem))
        for fault in self.faults:
            if fault.due(point, problem):
                return carry_out(fault.action, point)
        return None


NO_FAULTS = FaultPlan()


def carry_out(action: Action, point: str) -> Action | None:
    if action is Action.KILL:
        os.kill(os.getpid(), SIGKILL)
    if action is Action.INTERRUPT:
        raise Interrupted(f"planned at {point}")
    if action is Action.DISK_FULL:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), point)
    if action is Action.READ_ONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), point)
    return action
