"""JSON as the standard has it, read in one pass, with every trap as a category.

`json.loads` keeps the last of two equal keys, takes NaN, raises other errors for 5,000 digits and for deep nesting, and
lets half surrogates through. Here these are `duplicate_key`, `non_finite`, `too_deep`, and a number that may be any
size; half surrogates are for the caller to look for (`has_lone_surrogate`).

Covered: the whole grammar of RFC 8259, in time linear in the text. Not covered: numbers keep a double's precision, or
an int's up to 400 digits; beyond that they are infinite, which no argument may be.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from veriward.tool_agent.result import Category

MAX_DEPTH = 16
"""Of objects and arrays in one another."""
MAX_DIGITS = 400
"""Of an integer that is kept as one."""

BLANKS = " \t\r\n"

_BLANK = re.compile(r"[ \t\r\n]*+")
_CHARACTERS = r'[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+'
_STRING = re.compile(f'"({_CHARACTERS})"')
_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*+))(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_WORDS = {"true": True, "false": False, "null": None}
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_SURROGATE = re.compile("[\ud800-\udfff]")


class RefusedText(Exception):  # noqa: N818  no error: how a refusal leaves the steps, caught by whoever reads a call
    def __init__(self, category: Category, hint: str, position: int | None = None) -> None:
        super().__init__(category)
        self.category = category
        self.hint = hint if position is None else f"at character {position + 1} of the JSON: {hint}"
        self.position = position


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A value, and what is wrong with it although it can be read."""

    value: Any
    end: int
    fault: RefusedText | None
    """The first `duplicate_key` or `non_finite` in it, for the caller to raise."""


def read_value(text: str, start: int = 0) -> Reading:
    """The JSON value that begins at `start`, with blanks before it; raises RefusedText. Other text may follow."""
    reader = _Reader(text)
    value, end = reader.value(reader.blanks(start), 0)
    return Reading(value=value, end=end, fault=reader.fault)


def has_lone_surrogate(text: str) -> bool:
    return _SURROGATE.search(text) is not None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.fault: RefusedText | None = None

    # Every reading function takes the place of the value's first character and gives the value and the place behind it.

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        match self.text[at : at + 1]:
            case "{":
                return self.object(at, self.deeper(at, depth))
            case "[":
                return self.array(at, self.deeper(at, depth))
            case '"':
                return self.string(at)
        number = _NUMBER.match(self.text, at)
        if number:
            return _number(number), number.end()
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, at + len(word)
        for word in _NOT_FINITE:
            if self.text.startswith(word, at) and depth:
                self.note(RefusedText(Category.NON_FINITE, f"JSON has no {word}", at))
                return None, at + len(word)
        raise _not_json(at, "a value is missing" if at >= len(self.text) else "no JSON value")

    def object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self.blanks(at + 1)
        if self.text.startswith("}", at):
            return found, at + 1
        while True:
            if not self.text.startswith('"', at):
                raise _not_json(at, "a key in double quotes is missing")
            start = at
            key, at = self.string(at)
            at = self.blanks(at)
            if not self.text.startswith(":", at):
                raise _not_json(at, "a colon is missing")
            value, at = self.value(self.blanks(at + 1), depth)
            if key in found:
                self.note(RefusedText(Category.DUPLICATE_KEY, f"the key {quoted(key)} is there twice", start))
            found[key] = value
            at = self.blanks(at)
            if self.text.startswith("}", at):
                return found, at + 1
            if not self.text.startswith(",", at):
                raise _not_json(at, "a comma or } is missing")
            at = self.blanks(at + 1)

    def array(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self.blanks(at + 1)
        if self.text.startswith("]", at):
            return found, at + 1
        while True:
            value, at = self.value(at, depth)
            found.append(value)
            at = self.blanks(at)
            if self.text.startswith("]", at):
                return found, at + 1
            if not self.text.startswith(",", at):
                raise _not_json(at, "a comma or ] is missing")
            at = self.blanks(at + 1)

    def string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        if not found:
            raise _not_json(at, "this string is not closed, or holds a raw control character or an unknown escape")
        inside = found[1]
        return (_ESCAPE.sub(_unescaped, inside) if "\\" in inside else inside), found.end()

    def blanks(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def deeper(self, at: int, depth: int) -> int:
        if depth == MAX_DEPTH:
            raise RefusedText(Category.TOO_DEEP, f"at most {MAX_DEPTH} brackets in one another", at)
        return depth + 1

    def note(self, fault: RefusedText) -> None:
        self.fault = self.fault or fault


def _not_json(at: int, hint: str) -> RefusedText:
    return RefusedText(Category.NOT_JSON, hint, at)


def quoted(text: str) -> str:
    """A piece of a model's text for a hint: short, and without what a state file could not hold."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _unescaped(found: re.Match[str]) -> str:
    high, low, single, sign = found.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if single:
        return chr(int(single, 16))
    return _ESCAPED.get(sign, sign)


def _number(found: re.Match[str]) -> int | float:
    whole, decimals, exponent = found.groups()
    if decimals is None and exponent is None and len(whole) <= MAX_DIGITS:
        return int(whole)
    return float(found[0]) if len(found[0]) <= MAX_DIGITS else math.inf


def bracketed(text: str, start: int) -> tuple[int, int]:
    """Where the bracket that opens at `start` is closed, or the text's end, and how deep brackets stand in it.

    Strings apart; the text in it need not be JSON.
    """
    depth = deepest = 0
    for found in _BRACKET_OR_STRING.finditer(text, start):
        depth += (found[0] in "{[") - (found[0] in "}]")
        deepest = max(deepest, depth)
        if depth == 0:
            return found.end(), deepest
    return len(text), deepest


_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.DOTALL)
