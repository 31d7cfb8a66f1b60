"""Formulas of a report: found in text, and turned into trees from which the page builds MathML.

A tree is `[name, child, …]` or `[name, {attribute: value}, child, …]`, and a child is a tree or a text. The page makes
elements of it one by one and never reads markup, so that nothing in a formula can become anything but a formula.

Covered: `$…$`, `$$…$$`, `\\(…\\)`, `\\[…\\]`, `\\boxed{…}` and `\\begin{align*}` and its like, within a line or two.
Not covered, and shown as it was written: what latex2mathml cannot read, macros, links, colours, and every element that
hides or moves what stands in it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from veriward.tool_agent.errors import need

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Tree: TypeAlias = list[Any]

LONGEST_FORMULA = 1_200
"""Characters; whatever is longer is shown as it was written."""
MOST_NODES = 600
"""Elements of one formula."""
BUDGET = 12_000_000
"""Characters of all trees in one report; formulas behind it are shown as they were written."""

DEFINES = re.compile(r"\\(?:def|newcommand|renewcommand|newenvironment|DeclareMathOperator)(?![a-zA-Z])")
"""A macro that doubles itself is short to write and endless to expand."""

ELEMENTS = frozenset(
    {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup"}
    | {"munder", "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "menclose"}
)
WORD = re.compile(r"(?:true|false|[012]|normal|bold|italic|prefix|infix|postfix|left|center|right|box|thin)")
LENGTH = re.compile(r"-?(?:[0-4]?\.\d{1,4}|[0-4])(?:em|ex|px|pt)?")
"""A wider space pushes the rest of a response out of the page."""
ATTRIBUTES = {
    "mathvariant": WORD,
    "stretchy": WORD,
    "fence": WORD,
    "accent": WORD,
    "form": WORD,
    "largeop": WORD,
    "movablelimits": WORD,
    "displaystyle": WORD,
    "scriptlevel": WORD,
    "columnalign": WORD,
    "notation": WORD,
    "linethickness": LENGTH,
    "width": LENGTH,
    "minsize": LENGTH,
    "maxsize": LENGTH,
}
CHARACTER = re.compile(r"&#x[0-9A-Fa-f]{2,6};")

OPENING = re.compile(
    r"\\\(|\\\[|\$\$?|\\f?boxed\s?\{|\\begin\{(?:align|aligned|equation|gather|cases|[pbvB]?matrix)\*?\}"
)
CLOSING = {"\\(": "\\)", "\\[": "\\]", "$$": "$$", "$": "$"}
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
LATEX = re.compile(r"[\\^_{}]")


class Formulas:
    """The formulas of one report, each once."""

    def __init__(self, budget: int = BUDGET) -> None:
        need("latex2mathml", extra="eval", purpose="a report with formulas")
        self.budget = budget
        self.trees: list[Tree] = []
        self.left_out = 0
        """Formulas that were found and are shown as they were written."""
        self._numbers: dict[str, int | None] = {}

    def number(self, latex: str) -> int | None:
        """Where the tree of a formula stands in `trees`; None where it is shown as it was written."""
        if latex not in self._numbers:
            tree = tree_of(latex) if self.budget > 0 else None
            if tree is not None:
                self.budget -= len(json.dumps(tree, ensure_ascii=False, separators=(",", ":")))
                self.trees.append(tree)
            self._numbers[latex] = None if tree is None else len(self.trees) - 1
        number = self._numbers[latex]
        self.left_out += number is None
        return number

    def in_text(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and number of every formula in a text, in order."""
        found = ((start, end, self.number(latex)) for start, end, latex in formulas_in(text))
        return [(start, end, number) for start, end, number in found if number is not None]

    def in_answer(self, text: str) -> list[tuple[int, int, int]]:
        """The same of a bare answer, which may be one formula without signs around it."""
        if inner := self.in_text(text):
            return inner
        if not LATEX.search(text) or (number := self.number(text)) is None:
            return []
        return [(0, len(text), number)]


def formulas_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and LaTeX of what is set as a formula; looks no further than LONGEST_FORMULA for an end."""
    place = 0
    while opening := OPENING.search(text, place):
        start, sign = opening.start(), opening.group()
        place = opening.end()
        if is_escaped(text, start):
            continue
        if sign in CLOSING:
            inner = plain_end(text, place, CLOSING[sign])
            if inner is not None:
                yield start, inner + len(CLOSING[sign]), text[place:inner]
                place = inner + len(CLOSING[sign])
        else:
            end = group_end(text, place) if sign.endswith("{") else environment_end(text, start, sign)
            if end is not None:
                yield start, end, text[start:end]
                place = end


def is_escaped(text: str, place: int) -> bool:
    """An odd number of backslashes stands before it."""
    before = place
    while before and place - before < LONGEST_FORMULA and text[before - 1] == "\\":
        before -= 1
    return (place - before) % 2 == 1


def plain_end(text: str, start: int, sign: str) -> int | None:
    """Where the closing sign stands. A `$` is one only if it hugs the formula and no digit follows: $5 is money."""
    place = start
    while (end := text.find(sign, place, start + LONGEST_FORMULA)) >= 0:
        if not is_escaped(text, end):
            break
        place = end + 1
    inner = text[start:end] if end >= 0 else ""
    if not inner.strip() or "\n\n" in inner:
        return None
    if sign == "$" and (inner[0].isspace() or inner[-1].isspace() or text[end + 1 : end + 2].isdigit()):
        return None
    return end


def group_end(text: str, start: int) -> int | None:
    """Behind the brace that closes the one before `start`."""
    depth = 1
    for match in BRACE.finditer(text, start, min(len(text), start + LONGEST_FORMULA)):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if not depth:
            return match.end()
    return None


def environment_end(text: str, start: int, sign: str) -> int | None:
    closing = sign.replace("begin", "end")
    end = text.find(closing, start, start + LONGEST_FORMULA)
    return None if end < 0 else end + len(closing)


@cache
def reading_errors() -> tuple[type[Exception], ...]:
    """What latex2mathml raises for LaTeX that it cannot read: its own errors, and those that escape from its walk."""
    from latex2mathml import exceptions

    own = [value for value in vars(exceptions).values() if isinstance(value, type) and issubclass(value, Exception)]
    return (*own, StopIteration, LookupError, ValueError, TypeError, AttributeError, RecursionError)


def tree_of(latex: str) -> Tree | None:
    """The tree of a formula; None where it must be shown as it was written."""
    if len(latex) > LONGEST_FORMULA or DEFINES.search(latex):
        return None
    from latex2mathml.converter import convert_to_element

    try:
        root = convert_to_element(latex.strip())
        return make_tree(root, [MOST_NODES])
    except reading_errors():
        return None


def make_tree(element: Element, left: list[int]) -> Tree:
    """ValueError for an element that is none of ELEMENTS, and for more of them than are left."""
    left[0] -= 1
    if element.tag not in ELEMENTS or not left[0]:
        raise ValueError(f"not shown: {element.tag}")
    children: list[Any] = [make_tree(child, left) for child in element]
    if element.text:
        children.insert(0, CHARACTER.sub(lambda match: html.unescape(match.group()), element.text))
    if element.tag == "mrow" and len(children) == 1 and isinstance(children[0], list):
        return children[0]
    attributes = {
        name: value for name, value in element.items() if name in ATTRIBUTES and ATTRIBUTES[name].fullmatch(value)
    }
    return [element.tag, *([attributes] if attributes else []), *children]
