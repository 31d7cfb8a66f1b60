"""Equations of numbers in a response, found so that a right one is hardly ever taken for false.

A step is `A = B` with numbers and operators alone on both sides, as `17 * 24 = 408`; of a chain `A = B = C` the
neighbours. Whether the two sides are equal is for the verifier to say. Left out, since a person would not check it so:

- letters on either side, and a side that goes on beyond what was read: `x + 3 = 5`, `f(3) = 9`, `20% of 50 = 10`
- a side that is a bare number on both ends: `x = 5 = 7`
- what follows as words of number, or in a measure that may have been converted: `17 / 5 = 3 remainder 2`,
  `= 3 thousand`, `60 * 60 = 1 hour`, `8 + 5 = 15 in base 8`
- clocks, and decimals that go on: `10:30 + 45 = 11:15`, `2/3 = 0.66...`

Everything is one pass over the text; a response has at most MOST_STEPS steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

MOST_STEPS = 200
LONGEST_SIDE = 300

SIGNS = r"[0-9+\-*/^(){}\[\]×÷·−–%&$ \t]"
COMMANDS = r"\\(?:[dt]?frac|sqrt|times|cdot|div|left|right)(?![A-Za-z])|\\[,;!: %$()\[\]]"
RUN = re.compile(rf"(?:{SIGNS}|(?<=\d)[.,](?=\d)|(?<![\d.,])\.(?=\d)|{COMMANDS}|(?<![<>!:=])=(?!=))+")
"""A stretch of numbers, operators and signs of equality; a blank in front of the stop of a sentence ends it."""
MATHS_SIGNS = re.compile(r"\\[()\[\],;!: ]|\\?\$|&")
"""Delimiters and blanks of mathematics, which say nothing of the value; money too."""
OPERATOR = re.compile(r"[+*/^×÷·]|\d\s*[-−–]|\)\s*[-−–]|\\(?:[dt]?frac|sqrt|times|cdot|div)")
BEGINS_INSIDE = re.compile(r"\s*(?:[*/^×÷·+)\]}]|\\(?:times|cdot|div))")
ENDS_INSIDE = re.compile(r"(?:[-+*/^×÷·−–(\[{]|\\(?:times|cdot|div|frac|sqrt))\s*\Z")
DASH_FIRST = re.compile(r"\s*[-−–]\s")
LIST_MARK = re.compile(r"\s*(?:\d{1,3}[.)]|[-*+•])\s+")
LAST_WORD = re.compile(r"([A-Za-z\u00c0-\u024f]+)[ \t]*\Z")
NEXT_WORD = re.compile(r"[ \t]*([A-Za-z\u00c0-\u024f]+)")
STARTS_ANEW = frozenset(" \t\n:;,.([|>→⇒∴、，。：；")
"""What may stand right in front of a side."""
GOES_ON_BEFORE = {"of", "times", "plus", "minus", "by", "over", "per", "from", "than", "into", "root", "square", "cube"}
GOES_ON_BEFORE |= {"squared", "cubed", "log", "ln", "sin", "cos", "tan", "mod", "base", "to"}
GOES_ON_AFTER = {"remainder", "rem", "r", "mod", "thousand", "million", "billion", "hundred", "dozen", "percent", "or"}
GOES_ON_AFTER |= {"times", "plus", "minus", "over", "squared", "cubed", "of"}
"""Words beside a side that belong to its value."""
MEASURE = re.compile(
    r"[ \t]*(?:\\text[a-z]*\s*\{\s*)?(?:(?:sec(?:ond)?|min(?:ute)?|h(?:ou)?r|day|week|month|year|decade|cent|dollar"
    r"|nickel|dime|quarter|yard|mile|(?:kilo|centi|milli)?met(?:er|re)|(?:kilo|milli)?gram|ounce|pound|lb|ton"
    r"|(?:milli)?lit(?:er|re)|cup|pint|quart|gallon|degree|radian)s?|penn(?:y|ies)|inch(?:es)?|f(?:oo|ee)t"
    r"|[ckm]m|k?g|mg|oz|ml|[ap]m|in\s+(?:base|binary|octal|hex\w*|mod\w*))(?![A-Za-z])",
    re.IGNORECASE,
)
"""Behind a number it may say that the number was converted: 50 + 50 = 1 dollar."""
NUMBER_AND = re.compile(r"\d\s+and\s*\Z")
"""As in 1 and 1/2."""
PAIRS = {")": "(", "}": "{", "]": "["}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One equation; `text[start:end]` is all of it."""

    start: int
    end: int
    left: str
    """As the verifier reads it."""
    right: str


def steps_in(text: str) -> Iterator[Step]:
    """In the order of the text, at most MOST_STEPS."""
    count = 0
    for found in RUN.finditer(text):
        if "=" not in found[0]:
            continue
        for step in steps_of_run(text, found.start(), found.end()):
            yield step
            count += 1
            if count == MOST_STEPS:
                return


def steps_of_run(text: str, start: int, end: int) -> Iterator[Step]:
    sides = []
    place = start
    for side in text[start:end].split("="):
        sides.append((place, place + len(side)))
        place += len(side) + 1
    for number, (one, other) in enumerate(pairwise(sides)):
        left = side_of(text, *one, first=number == 0, last=False)
        right = side_of(text, *other, first=False, last=number == len(sides) - 2)
        if left is None or right is None or not (OPERATOR.search(left[1]) or OPERATOR.search(right[1])):
            continue
        yield Step(start=left[0], end=other[0] + len(text[other[0] : other[1]].rstrip()), left=left[1], right=right[1])


def side_of(text: str, start: int, end: int, *, first: bool, last: bool) -> tuple[int, str] | None:
    """Where a side begins, and what it says; None where it goes on outside, or is nothing that can be checked."""
    if end - start > LONGEST_SIDE:
        return None
    raw = text[start:end]
    if first:
        at_line = start == 0 or text[start - 1] == "\n"
        mark = LIST_MARK.match(raw) if at_line else None
        if mark:
            start, raw = start + mark.end(), raw[mark.end() :]
        if DASH_FIRST.match(raw) or (not mark and begins_outside(text, start)):
            return None
    if last and ends_outside(text, end):
        return None
    said = " ".join(MATHS_SIGNS.sub(" ", raw).split()).strip("* ")
    wrapped = len(raw) - len(raw.lstrip(" \t*$&"))
    if not any(sign.isdigit() for sign in said) or BEGINS_INSIDE.match(said) or ENDS_INSIDE.search(said):
        return None
    return (start + wrapped, said) if balanced(said) else None


def begins_outside(text: str, start: int) -> bool:
    """What stands in front belongs to the side."""
    before = text[max(0, start - 24) : start]
    if not before:
        return False
    if before[-1] == ":" and before[-2:-1].isdigit() and text[start].isdigit():
        return True  # the minutes of a clock
    word = LAST_WORD.search(before)
    if word is None:
        return before[-1] not in STARTS_ANEW and not before[-1].isspace()
    if word.end() == len(before) and not before[-1].isspace() and not text[start : start + 1].isspace():
        return True  # a letter right in front of the number
    return is_letter(word[1]) or word[1].casefold() in GOES_ON_BEFORE or NUMBER_AND.search(before) is not None


def ends_outside(text: str, end: int) -> bool:
    """What stands behind belongs to the side."""
    after = text[end : end + 24]
    if not after:
        return False
    if after[0].isalpha() and not text[end - 1].isspace():
        return True
    if after.startswith(("…", "..")) or (after[0] == ":" and after[1:2].isdigit()) or MEASURE.match(after):
        return True
    if after[0] in "_\\!|<>≤≥≠≈√∞π°'":
        return not after.startswith(("\\text", "\\]", "\\)", "\\n", "\\\\", "\\end", "\\boxed"))
    word = NEXT_WORD.match(after)
    return word is not None and (is_letter(word[1]) or word[1].casefold() in GOES_ON_AFTER)


def is_letter(word: str) -> bool:
    """As a variable is written; 'a' and 'I' are words."""
    return len(word) == 1 and word not in "aI"


def balanced(side: str) -> bool:
    opened: list[str] = []
    for sign in side:
        if sign in PAIRS.values():
            opened.append(sign)
        elif sign in PAIRS and (not opened or opened.pop() != PAIRS[sign]):
            return False
    return not opened
