"""What a task row says about its answer: the reference, and optionally its type and options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, get_type_hints

ANSWER_TYPES: Mapping[str, str] = {
    "auto": "read off the reference, and recorded in the verdict",
    "number": "one number; letters in it are constants only",
    "expression": "one expression in letters",
    "tuple": "a point or another sequence: order counts, the kind of brackets does not",
    "list": "several values without order, how often each stands there counts",
    "set": "several values without order or repetition",
    "interval": "a set of real numbers: an interval, a union, an inequality in solved form",
    "equation": "an equation, or a value with its name in front",
    "inequality": "an inequality, solved or not",
    "matrix": "a matrix or vector, also as nested brackets",
    "choice": "the letter of an option",
    "text": "words, compared without case, articles and final full stop",
    "ratio": "a ratio `a:b`, or its value",
}
"""Every answer type a task may declare, and what it means. Packages add their own (`answer_types`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Conventions that a task may state; each has the default that holds without it."""

    percent: str = "either"
    """`either`: a percentage is its number and its share, as the policy page says; `share`: 50% is 0.5 and never 50;
    `number`: 50% is 50 and never 0.5."""
    units: str = "optional"
    """`optional`: a unit may be missing and must not contradict; `required`: it must stand there wherever the reference
    has one."""
    order: str = "auto"
    """Of lists and brackets: `auto` as the policy page says; `ordered`; `free`."""
    tolerance: str = ""
    """How far a number may be off: `0.01` absolute, `1%` relative to the reference; as text or number. Where it is
    stated it holds alone, and no reference counts as rounded."""
    rounding: str = "reference"
    """`reference`: a decimal reference of three digits and more may be a rounded one, and what rounds to it is equal;
    `exact`: decimals are exact on both sides."""
    base: str = "optional"
    """Whether the subscript of a numeral may be missing: `optional` or `required`."""
    require_simplified: bool = False
    """A sum, product, power or fraction that could still be worked out is wrong: `17 \\times 23`, `\\frac{15}{3}`."""
    decimal_comma: bool = False
    """`3,5` is three and a half, and `1.234,5` has a thousands separator."""
    thinking: str = ""
    """Further marks around thinking, opening and closing in turn with blanks between, as `<plan> </plan>`. The usual
    ones (`<think> </think>`, `[THINK] [/THINK]`, channels and others) are always known."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Options).items():
            value = getattr(self, name)
            if type(value) is not kind:
                wanted = "true or false" if kind is bool else "a text"
                raise ValueError(f"option {name} is {wanted}, got {value!r}")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"option {name} is one of {', '.join(known)}; got {getattr(self, name)!r}")
        if len(self.thinking.split()) % 2:
            raise ValueError(f"option thinking is opening and closing marks in turn, got {self.thinking!r}")
        if self.tolerance:
            number = self.tolerance.removesuffix("%")
            if not _is_positive(number):
                raise ValueError(f"option tolerance is a positive number as '0.01' or '1%', got {self.tolerance!r}")


CHOICES: Mapping[str, tuple[str, ...]] = {
    "percent": ("either", "share", "number"),
    "units": ("optional", "required"),
    "order": ("auto", "ordered", "free"),
    "rounding": ("reference", "exact"),
    "base": ("optional", "required"),
}
"""What an option of words may be."""

PLAIN_OPTIONS = Options()


def _is_positive(text: str) -> bool:
    """A plain decimal above zero."""
    digits = text.replace(".", "", 1)
    return digits.isascii() and digits.isdigit() and len(digits) <= 30 and any(digit != "0" for digit in digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The key of one problem."""

    reference: str
    answer_type: str = "auto"
    options: Options = PLAIN_OPTIONS

    def __hash__(self) -> int:
        """Without the options: tasks are keys of every batch, and few differ in their options alone."""
        return hash((self.reference, self.answer_type))

    @property
    def is_plain(self) -> bool:
        """Nothing but a reference: all that contracts v1 and v2 know."""
        return self.answer_type == "auto" and self.options == PLAIN_OPTIONS


def make_options(values: object) -> Options:
    """Options out of a row's mapping; TypeError and ValueError say what is wrong with it."""
    if values is None:
        return PLAIN_OPTIONS
    if isinstance(values, Options):
        return values
    if not isinstance(values, Mapping):
        raise TypeError(f"options are a mapping of names to values, got {type(values).__name__}: {values!r}")
    known = [option.name for option in fields(Options)]
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"unknown option {name!r}; known: {', '.join(known)}")
        if value is not None:  # a data set fills a missing key with null
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            given[name] = _plain(value) if name == "tolerance" and is_number else value
    return Options(**given)


def task_fields(columns: Mapping[str, object]) -> dict[str, Any]:
    """`answer_type` and `options` of a data row, for `verify`, where they mean what they mean here.

    A data set's own label (`answer_type: Numerical`) or column (`options`: the texts of a multiple choice) is not
    taken. Options may be a mapping or, as in a flat file, its JSON text; nulls are no options.
    """
    found: dict[str, Any] = {}
    declared = columns.get("answer_type")
    if isinstance(declared, str) and declared != "auto" and (declared in ANSWER_TYPES or declared in known_types()):
        found["answer_type"] = declared
    options = columns.get("options")
    if isinstance(options, str) and options.startswith("{"):
        try:
            options = json.loads(options)
        except ValueError:
            return found
    if isinstance(options, Mapping) and options:
        known = {option.name for option in fields(Options)}
        given = {name: value for name, value in options.items() if value is not None}
        if given and known.issuperset(given):
            found["options"] = given
    return found


def _plain(value: float) -> str:
    """A number without an exponent."""
    return format(Decimal(repr(value)), "f")


def known_types() -> tuple[str, ...]:
    """Ours and those that other packages registered."""
    from veriward.rewards.answer_types import registered

    return (*ANSWER_TYPES, *registered())


def make_task(reference: object, answer_type: str | None = None, options: object = None) -> Task:
    """A task out of a row's fields; TypeError and ValueError say what is wrong with them.

    A compiled reference (`reference.Reference`) brings its own type and options; those of the row come first.
    """
    if not isinstance(reference, str):
        raise TypeError(f"an answer and a reference are texts, got {type(reference).__name__}: {reference!r}")
    task = getattr(reference, "task", None)
    if isinstance(task, Task) and answer_type is None and options is None:
        return task
    if answer_type is not None and (
        not isinstance(answer_type, str) or (answer_type not in ANSWER_TYPES and answer_type not in known_types())
    ):
        raise ValueError(f"unknown answer_type {answer_type!r}; known: {', '.join(known_types())}")
    return Task(reference=str(reference), answer_type=answer_type or "auto", options=make_options(options))
