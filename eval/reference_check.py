"""What a contract makes of a column of references: unreadable ones, ambiguous ones, and a table by kind."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.rewards import REFERENCE_COLUMNS, Reason, UnreadableReferenceError, compile_reference
from veriward.rewards.contracts.v3.contract import read
from veriward.rewards.contracts.v3.reading.grammar import Refused
from veriward.rewards.contracts.v3.rules.marks import DECIMAL, OPTION_LETTERS, SIGNIFICANT_DIGITS
from veriward.rewards.contracts.v3.tree import Apply, Bracketed, Node, Number, Percent, Symbol, walk
from veriward.rewards.task import make_task, task_fields
from veriward.tool_agent.errors import ConfigError

WHOLE_SOLUTION = re.compile(r"####|\\(?:boxed|fbox)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    line: int
    reference: str
    reason: Reason
    position: int
    """Character at which reading stopped."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    line: int
    reference: str
    question: str
    """What the text alone does not say."""
    suggestion: str
    """The answer type or option that says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCheck:
    """What was found in one column."""

    references: int
    kinds: Mapping[str, int]
    """Answer type to how many references are of it by themselves, or are declared to be."""
    unreadable: tuple[Unreadable, ...]
    ambiguous: tuple[Ambiguous, ...]
    solutions: int
    """References that were taken out of a whole solution."""

    def to_row(self) -> dict[str, Any]:
        return {
            "references": self.references,
            "kinds": dict(self.kinds),
            "solutions": self.solutions,
            "unreadable": [_as_row(item) for item in self.unreadable],
            "ambiguous": [_as_row(item) for item in self.ambiguous],
        }


def _as_row(item: Unreadable | Ambiguous) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__slots__}


def check_references(data: Path, column: str | None) -> ReferenceCheck:
    """Read every reference of a JSONL file under contract v3, with the row's `answer_type` and `options`.

    column   name of the column; None: the only one of REFERENCE_COLUMNS that is there
    raises   ConfigError for a file or column that is not there, and for a row that is no object
    """
    rows = list(_rows(data))
    if not rows:
        raise ConfigError(f"{data}: no rows; wanted a JSONL file with a column of references")
    name = _column(data, rows[0][1], column)
    kinds: Counter[str] = Counter()
    unreadable, ambiguous, solutions = [], [], 0
    for line, row in rows:
        if name not in row:
            raise ConfigError(f"{data}, line {line}: no column {name!r}; columns seen: {', '.join(row)}")
        text = _as_text(data, line, row[name])
        try:
            reference = compile_reference(text, **task_fields(row))
        except UnreadableReferenceError as error:
            found = (error.reason, error.position, error.detail)
            unreadable.append(
                Unreadable(line=line, reference=text, reason=found[0], position=found[1], detail=found[2])
            )
            continue
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{data}, line {line}: {error}") from error
        kinds[reference.answer_type] += 1
        solutions += bool(WHOLE_SOLUTION.search(text))
        task = make_task(reference)
        tree = read(text, task)
        if task.answer_type == "auto" and not isinstance(tree, Refused):
            for question, suggestion in ambiguities(tree):
                ambiguous.append(Ambiguous(line=line, reference=text, question=question, suggestion=suggestion))
    return ReferenceCheck(
        references=len(rows),
        kinds=dict(kinds.most_common()),
        unreadable=tuple(unreadable),
        ambiguous=tuple(ambiguous),
        solutions=solutions,
    )


def ambiguities(node: Node) -> Iterator[tuple[str, str]]:
    """(question, suggestion) for what a reference alone does not say."""
    match node:
        case Bracketed("(", (_, _), ")"):
            yield "a point or an open interval", "answer_type tuple or interval"
        case Bracketed("[", (_, _), "]"):
            yield "a list, a pair or a closed interval", "answer_type list, tuple or interval"
        case Symbol(name) if name in OPTION_LETTERS:
            yield "an option or a variable", "answer_type choice or expression"
        case Percent():
            yield "a percentage or its number", "option percent"
        case Number(_, text) if (
            DECIMAL.fullmatch(text) and len(text.replace(".", "").lstrip("0-")) >= SIGNIFICANT_DIGITS
        ):
            yield "a rounded number or an exact one", "option tolerance"
    if any(isinstance(part, Apply) and part.function == "log" and len(part.arguments) == 1 for part in walk(node)):
        yield "a logarithm to base 10 or e", "the base written out"


def _as_text(data: Path, line: int, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return str(value)
    raise ConfigError(f"{data}, line {line}: a reference is a text or a number, got {value!r}")


def _rows(data: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        content = data.read_bytes()
    except OSError as error:
        raise ConfigError(f"{data}: cannot be read: {error.strerror}; wanted a JSONL file") from error
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ConfigError(f"{data}, line {number}: no JSON: {error}") from error
            if not isinstance(row, dict):
                raise ConfigError(f"{data}, line {number}: a row is an object, got {type(row).__name__}")
            yield number, row


def _column(data: Path, row: Mapping[str, object], wanted: str | None) -> str:
    found: Sequence[str] = [name for name in REFERENCE_COLUMNS if name in row]
    if wanted is not None:
        return wanted
    if len(found) == 1:
        return found[0]
    said = f"several could be it: {', '.join(found)}" if found else "none looks like it"
    raise ConfigError(f"{data}: which column holds the references? {said}; columns: {', '.join(row)}; give --column")
