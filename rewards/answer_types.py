"""Answer types from other packages: a parser and an equality under a name, found through an entry point.

    [project.entry-points."veriward.answer_types"]
    smiles = "chem_rewards:SMILES"

where `SMILES` is an `AnswerType`. A task row with `answer_type: smiles` is then decided by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

GROUP = "veriward.answer_types"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerType:
    """How answers of one kind are read and compared."""

    name: str
    meaning: str
    """One line for the table of answer types."""
    parse: Callable[[str], Any]
    """Text to a value, or None where the text is no answer of this type. Total: it sees whatever a model writes."""
    equal: Callable[[Any, Any], bool | None]
    """(candidate, reference) -> equal, different, or None: not decided."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"the name of an answer type is an identifier, got {self.name!r}")


@cache
def registered() -> Mapping[str, AnswerType]:
    """Every type that an installed package registers; ValueError where two claim one name or an entry is none."""
    from importlib.metadata import entry_points  # takes longer to import than all the rest

    from veriward.rewards.task import ANSWER_TYPES

    found: dict[str, AnswerType] = {}
    for entry in entry_points(group=GROUP):
        kind = entry.load()
        if not isinstance(kind, AnswerType):
            raise ValueError(f"entry point {entry.value} of {GROUP} is no AnswerType but a {type(kind).__name__}")
        if kind.name in found or kind.name in ANSWER_TYPES:
            raise ValueError(f"answer type {kind.name!r} of {entry.value} is taken; rename it")
        found[kind.name] = kind
    return found
