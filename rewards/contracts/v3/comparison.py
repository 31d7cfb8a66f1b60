"""What contract v3 finds when it compares two trees: the record that the engine and the structure rules share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from veriward.rewards.verdict import Certainty, Cost, Method, Reason, Step

NO_COST = Cost(bits=0, terms=0, work=0)


class Finding(StrEnum):
    EQUAL = "equal"
    UNEQUAL = "unequal"
    UNDECIDED = "undecided"
    LEFT_UNDEFINED = "left_undefined"
    """The left side has no value, as `1/0`: equal to nothing. The right side was not looked at, or has one."""
    RIGHT_UNDEFINED = "right_undefined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One comparison of two trees."""

    finding: Finding
    method: Method | None
    """How it was found; None only for 'undecided'."""
    certainty: Certainty | None
    """None only for 'undecided'."""
    reason: Reason | None = None
    """None only for 'equal'."""
    flags: tuple[str, ...] = ()
    cost: Cost = NO_COST
    """The bound the preflight gave, largest bits and terms and summed work of all parts."""
    steps: tuple[Step, ...] = ()
    """What each tier found, in order: (tier, finding)."""

    def __post_init__(self) -> None:
        if (self.finding is Finding.UNDECIDED) != (self.method is None) or (self.method is None) != (
            self.certainty is None
        ):
            raise ValueError(f"method and certainty belong to a decision, and to every one: {self}")
        if (self.finding is Finding.EQUAL) != (self.reason is None):
            raise ValueError(f"a reason is missing or too much: {self}")
