"""Rows of a case file: read, and checked for what their kind needs before any of them is run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from veriward.rewards import Outcome
from veriward.tool_agent import Category
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import MISSING, shorten

Case: TypeAlias = Mapping[str, Any]

LONGEST_INPUT = 100_000_000
"""Characters of an input that is generated or made of parts."""

AT_MOST = f"at most {LONGEST_INPUT:,} characters"

Needed: TypeAlias = tuple[str, bool, str]
"""What a row needs: the field, whether it is right, and what was wanted."""


def read_case_file(path: Path) -> dict[str, Case]:
    """Rows of a JSONL file of cases by where they stand; ConfigError where it is none."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; wanted a JSONL file of cases") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}; wanted a JSONL file of cases") from error
    rows: dict[str, Case] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number}: no JSON: {error}; wanted one case a line") from error
        if not isinstance(row, dict):
            raise ConfigError(f"{path}, line {number}: got {shorten(row)}; wanted an object, one case a line")
        rows[f"{path}, line {number}"] = row
    if not rows:
        raise ConfigError(f"{path}: no case in it; wanted a JSONL file of cases")
    return rows


def check_common(row: Case, where: str) -> None:
    """Refuse what is wrong in a row of any kind."""
    limit = row.get("max_seconds", 0)
    common = [
        ("tier", isinstance(row.get("tier", ""), str), "a text"),
        ("max_seconds", _is_number(limit) and limit >= 0, "a number of seconds"),
    ]
    _refuse_wrong(common, row, where)


def _refuse_wrong(needed: Sequence[Needed], row: Case, where: str) -> None:
    for field, right, wanted in needed:
        if not right:
            raise ConfigError(f"{where}: {field} is {shorten(row.get(field, MISSING))}; wanted {wanted}")


def _is_number(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_pieces(pieces: object) -> bool:
    """[text, times] each, and short enough to be made."""
    if not isinstance(pieces, list) or not all(isinstance(piece, list) and len(piece) == 2 for piece in pieces):
        return False
    if not all(isinstance(text, str) and _is_count(times) for text, times in pieces):
        return False
    return bool(sum(len(text) * times for text, times in pieces) <= LONGEST_INPUT)


def check_tools(row: Case, where: str) -> None:
    made, alternatives = row.get("input_gen"), row.get("also_ok", [])
    compare = row.get("compare") or {}
    needed = [
        ("tool", isinstance(row["tool"], str), "the name of a tool"),
        ("level", row["level"] in ("call", "expression"), "call or expression"),
        (
            "input",
            isinstance(row["input"], str) or (row["input"] is None and "input_gen" in row),
            "a text, or input_gen",
        ),
        ("input_gen", row["input"] is not None or _is_recipe(made), f"prefix, repeat, times, suffix; {AT_MOST}"),
        (
            "also_ok",
            isinstance(alternatives, list) and all(isinstance(o, dict) for o in alternatives),
            "a list of outcomes",
        ),
        ("compare", isinstance(compare, dict), "an object"),
    ]
    _refuse_wrong(needed, row, where)
    limits = [
        ("text_not", isinstance(compare.get("text_not", ""), str), "a text"),
        ("abs", _is_number(compare.get("abs", 0)), "a number"),
        ("top", compare.get("top") is None or _is_count(compare["top"]), "a count"),
    ]
    _refuse_wrong(limits, compare, f"{where}, compare")
    _check_outcome(row, where)
    for outcome in alternatives:
        _check_outcome(outcome, f"{where}, also_ok")


def _is_recipe(made: object) -> bool:
    if not isinstance(made, dict):
        return False
    pieces = [[made.get("prefix"), 1], [made.get("repeat"), made.get("times")], [made.get("suffix"), 1]]
    return _are_pieces(pieces)


def _check_outcome(outcome: Case, where: str) -> None:
    expect, value = outcome.get("expect"), outcome.get("value")
    category = outcome.get("reason_category", MISSING)
    ids = isinstance(value, list) and all(isinstance(name, str) for name in value)
    needed = [
        ("expect", expect in ("accept", "reject"), "accept or reject"),
        ("value", expect != "accept" or isinstance(value, str) or _is_number(value) or ids, "a number, a text or ids"),
        (
            "reason_category",
            expect != "reject" or category is None or category in list(Category),
            "a category, or null",
        ),
    ]
    _refuse_wrong(needed, outcome, where)


def check_labelled(row: Case, where: str) -> None:
    truth = "expected_correct" if "expected_correct" in row else "truth"
    response = row.get("response")
    needed = [
        ("reference", isinstance(row["reference"], str), "a text"),
        ("response", isinstance(response, str | None), "a text, or null"),
        ("prediction", response is not None or isinstance(row.get("prediction"), str), "a text, or a response"),
        ("truncated", isinstance(row.get("truncated", False), bool), "true or false"),
        (truth, isinstance(row[truth], bool | str | None), "true, false, or null where it is left open"),
        ("expected_outcome", row.get("expected_outcome") in (None, *Outcome), f"one of {', '.join(Outcome)}"),
    ]
    _refuse_wrong(needed, row, where)


def check_preflight(row: Case, where: str) -> None:
    needed = [
        ("expression", isinstance(row["expression"], str), "a text"),
        ("expect", row["expect"] in ("reject", "bounded"), "reject or bounded"),
        ("reference", isinstance(row.get("reference", ""), str), "a text"),
        ("parts", row.get("parts") is None or _are_pieces(row["parts"]), f"[text, times] each; {AT_MOST}"),
    ]
    _refuse_wrong(needed, row, where)


def check_cost(row: Case, where: str) -> None:
    needed = [
        ("parts", _are_pieces(row["parts"]) and bool(row["parts"]), f"[text, times] each; {AT_MOST}"),
        ("reference", isinstance(row["reference"], str), "a text"),
        ("v1", isinstance(row["v1"], str | None), "a reason, or null"),
        ("v2", isinstance(row.get("v2"), str | None), "a reason, or null"),
    ]
    _refuse_wrong(needed, row, where)


def check_extraction(row: Case, where: str) -> None:
    needed = [("response", isinstance(row["response"], str), "a text")]
    needed += [(name, isinstance(row.get(name, False), bool), "true or false") for name in ("truncated", "joins")]
    _refuse_wrong(needed, row, where)
