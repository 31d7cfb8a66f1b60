"""The boxes of a passage."""

from __future__ import annotations

import re
from typing import NamedTuple

from veriward.rewards.contracts.v3.extraction.clauses import stripped, trimmed
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span
from veriward.rewards.contracts.v3.limits import LIMITS


class Box(NamedTuple):
    marker: int
    start: int
    stop: int
    braced: bool
    closed: bool


def may_go_on(text: Passage, box: Box) -> bool:
    """A box without braces at the very end."""
    return not box.braced and text.shown[box.stop - 1] not in ")]" and not text.shown[box.stop : text.stop].strip()


_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_BRACES = re.compile(r"\\[\\{}]|[{}]")
_DOUBLED_BRACES = re.compile(r"\\\\\\\\|\\\\[{}]|[{}]")
"""In text whose backslashes were doubled, as JSON does, `\\\\{` is an escaped brace."""
_MOST_BOXES = 100
"""Box commands looked at, from the end: `\\boxed{5}` half a million times."""
_GROUP = r"\{[^{}]{0,100}(?:\{[^{}]{0,100}\}[^{}]{0,100}){0,6}\}"
_BARE = re.compile(
    r"[-−]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?(?:/[0-9]+)?(?:\\?%)?"
    rf"|\\[dtc]?frac\s?(?:{_GROUP}|[0-9a-z])\s?(?:{_GROUP}|[0-9a-z])"
    rf"|\\sqrt\s?(?:\[[0-9]{{1,3}}\])?\s?(?:{_GROUP}|[0-9a-z])"
    rf"|\\(?:text|textbf|mathrm|mathbf|mbox)\s?{_GROUP}"
    r"|\\(?:pi|infty|emptyset|varnothing)(?![a-zA-Z])"
    r"|\([^()\n]{1,200}\)|\[[^\[\]\n]{1,200}\]"
    r"|[A-Za-z](?![A-Za-z])(?![ \t]{1,3}[A-Za-z])"  # `\boxed C`, not `the \boxed a box`
)
_BOX_BREAK = re.compile(r"\n|\$|\\[)\]]|[。；]|[.;]\s|,\s{1,3}[A-Za-z]{2,}")
_EMPTY = re.compile(
    r"(?:[\s~?_…$‐-―]|\\[ ,;:!_]|\.{2,}|\\(?:quad|qquad|[lcd]?dots|cdots|square|Box|displaystyle)(?![a-zA-Z])"
    r"|(?:\\(?:text|textbf|textit|mathrm|mathbf|mbox|underline))?\{\s{0,50}\}"
    r"|\\[hv]?phantom\{[^{}]{0,100}\}|\\hspace\*?\{[^{}]{0,20}\})*+"
)
_WRAP = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox)\s?\{([^{}]*)\}")
_PLACEHOLDERS = frozenset(
    {
        *(
            "answer",
            "your answer",
            "final answer",
            "your final answer",
            "the answer",
            "the final answer",
            "answer here",
        ),
        *("your answer here", "insert answer", "final result", "your result", "result", "value", "solution"),
        *("答案", "最终答案", "最終答案", "你的答案", "结果", "結果"),
    }
)
"""What instructions write into the box that they ask for."""


def boxes_of(text: Passage) -> list[Box]:
    """The outermost boxes that hold something, in order. Only the last can be one that never closes."""
    shown, stop = text.shown, text.stop
    first = _first_of_last(shown, text.start, stop)
    if first < 0:
        return []
    boxes: list[Box] = []
    closing: dict[bool, dict[int, int]] = {}
    unclosed: re.Match[str] | None = None
    covered = first
    for marker in _BOX.finditer(shown, first, stop):
        if marker.start() < covered:
            continue
        at = marker.end()
        if not shown.startswith("{", at) or at >= stop:
            bare = _BARE.match(shown, at, stop)
            if bare is not None and not is_empty(shown[at : bare.end()]):
                boxes.append(Box(marker.start(), at, bare.end(), braced=False, closed=True))
                unclosed, covered = None, bare.end()
            continue
        doubled = _backslashes(shown, marker.start()) % 2 == 1
        if doubled not in closing:
            wanted = frozenset(marker.end() for marker in _BOX.finditer(shown, first, stop))
            closing[doubled] = _closing_braces(shown, first, stop, wanted, doubled=doubled)
        close = closing[doubled].get(at)
        if close is None:
            unclosed = marker
            continue
        covered = close
        inner = trimmed(shown, at + 1, close)
        if not is_empty(shown[slice(*inner)]):
            boxes.append(Box(marker.start(), *inner, braced=True, closed=True))
            unclosed = None
    if unclosed is not None:
        span = _unclosed_content(text, unclosed.end() + 1)
        if not is_empty(shown[slice(*span)]):
            boxes.append(Box(unclosed.start(), *span, braced=True, closed=False))
    return boxes


def _first_of_last(text: str, start: int, stop: int) -> int:
    """Where the first of the last `_MOST_BOXES` box commands stands, or -1."""
    first = -1
    box, frame = text.rfind("\\boxed", start, stop), text.rfind("\\fbox", start, stop)
    for _ in range(_MOST_BOXES):
        if box < 0 and frame < 0:
            break
        first = max(box, frame)
        if box > frame:
            box = text.rfind("\\boxed", start, box)
        else:
            frame = text.rfind("\\fbox", start, frame)
    return first


def _backslashes(text: str, at: int) -> int:
    """How many backslashes, up to three, stand before this place."""
    count = 0
    while count < 3 and at - count - 1 >= 0 and text[at - count - 1] == "\\":
        count += 1
    return count


def _closing_braces(text: str, start: int, stop: int, wanted: frozenset[int], *, doubled: bool) -> dict[int, int]:
    """For each wanted opening brace that is closed, where."""
    closing: dict[int, int] = {}
    opened: list[tuple[int, int]] = []
    depth = 0
    for brace in (_DOUBLED_BRACES if doubled else _BRACES).finditer(text, start, stop):
        if brace[0] == "{":
            if brace.start() in wanted:
                opened.append((depth, brace.start()))
            depth += 1
        elif brace[0] == "}" and depth:
            depth -= 1
            if opened and opened[-1][0] == depth:
                closing[opened.pop()[1]] = brace.start()
                if len(closing) == len(wanted):
                    break
    return closing


def _unclosed_content(text: Passage, start: int) -> Span:
    """To the end of its sentence, line or formula."""
    limit = min(text.stop, start + LIMITS.max_answer_characters + 1)
    end = _BOX_BREAK.search(text.shown, start, limit)
    return stripped(text, start, limit if end is None else end.start())


def is_empty(content: str) -> bool:
    if content[:1].isdigit():
        return False
    if len(content) <= 40 and _WRAP.sub(r"\1", content).strip(" .[]<>$").lower() in _PLACEHOLDERS:
        return True
    return _EMPTY.fullmatch(content) is not None
