"""What came of a tool call: the record that the model, the state and every report are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Value: TypeAlias = int | float | str | Sequence[Mapping[str, object]]
"""A number is an int where it is whole, else a float. Documents are records with `id`, `text` and `overlap`."""


class Category(StrEnum):
    """Why there is no value. The first group is decided on the call, the second by the tool."""

    NOT_JSON = "not_json"
    EXTRA_TEXT = "extra_text"
    MULTIPLE_OBJECTS = "multiple_objects"
    DUPLICATE_KEY = "duplicate_key"
    EXTRA_KEY = "extra_key"
    MISSING_KEY = "missing_key"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_TOOL = "unknown_tool"
    NON_FINITE = "non_finite"
    INVALID_UNICODE = "invalid_unicode"

    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"

    EMPTY = "empty"
    SYNTAX = "syntax"
    NON_ASCII = "non_ascii"
    AMBIGUOUS_NOTATION = "ambiguous_notation"
    DISALLOWED_NAME = "disallowed_name"
    DISALLOWED_CALL = "disallowed_call"
    DISALLOWED_NODE = "disallowed_node"
    DISALLOWED_LITERAL = "disallowed_literal"
    DISALLOWED_OPERATOR = "disallowed_operator"
    RESOURCE_LIMIT = "resource_limit"
    DIVISION_BY_ZERO = "division_by_zero"
    DOMAIN_ERROR = "domain_error"
    COMPLEX_RESULT = "complex_result"
    OUT_OF_RANGE = "out_of_range"

    TIMEOUT = "timeout"
    CRASHED = "crashed"
    """These two are faults of the machinery, tried again without the model."""


TRANSIENT = frozenset({Category.TIMEOUT, Category.CRASHED})


class Envelope(StrEnum):
    """What stood around a call and was removed."""

    THINK = "think"
    FENCE = "fence"
    TOOL_CALL = "tool_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A value, or the category why not."""

    ok: bool
    value: Value | None
    """None only when not ok."""
    text: str
    """What the model is shown."""
    category: Category | None
    """None only when ok."""
    hint: str | None = None
    """What the model can do about a refusal; None where nothing better than the category can be said."""
    tool: str | None = None
    """None where the call names no tool that exists."""
    envelope: tuple[Envelope, ...] = ()
    """Of the call, from the outside in; empty where the call stood bare, and where there was no call."""

    def __post_init__(self) -> None:
        if self.ok != (self.category is None) or self.ok != (self.value is not None):
            raise ValueError(f"a result has a value, or a category why not: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What a tool returns in place of a value that it will not or cannot compute."""

    category: Category
    hint: str | None = None
    position: int | None = None
    """Index of the character that it is about, counted from 0."""
