"""The boxes of a passage, and whether those at its end are one answer, several, or a choice left open."""

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


_LINK_LENGTH = 80
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]|\n[ \t]*\n")
_OR = (
    r"(?:\b(?:n?or|oder|ou|alternatively|otherwise|versus|vs)\b(?!\s+(?:rather|better|equivalently|simply))"
    r"|\\l?or(?![a-z])|\\vee(?![a-z])|或|还是|還是|要么|要麼)"
)
_PERHAPS = r"(?:\b(?:else|maybe|perhaps|possibly|if\s+not)\b|(?:也|又|还|還)(?:可能|许|許)|可能)"
_HEDGE = re.compile(_OR)
_HEDGE_AFTER_BOX = re.compile(
    rf"[\s$*,，.。;；:?？!—–)\]\\}}-]{{0,12}}{_OR}|[ \t$*,，;；—–)\]\\}}-]{{0,12}}{_PERHAPS}|[\s$*]*[/|][\s$*\\]*\Z"
)
_HEDGE_BEFORE_BOX = re.compile(rf"(?:{_OR}|{_PERHAPS})[\s$*:：,，是为(\[\\]{{0,12}}\Z")
_BOTH_AFTER = re.compile(r"[\s$*})]{0,6},?\s{0,2}or\s+(?:both|either|neither|all|none)\b")
_HEDGE_BEFORE_RUN = re.compile(
    r"(?:\b(?:not|neither|either(?!\s+way)|nor|or|one\s+of|any\s+of|some\s+of|perhaps|maybe|possibly|(?:could|might|may)\s+be)\b"
    r"|不是|不为|或|要么|之一(?:是|为)?)(?:\s+(?:the|a|an|of|all|both|be|these|following|values?|numbers?|answers?|options?))*"
    r"[\s$*:：,(\[\\{]{0,8}(?:[a-z]\s?=\s?)?[\s$\\]{0,3}\Z"
)
_DENIED_BEFORE_BOX = re.compile(
    r"(?:\b(?:not|never|neither|cannot\s+be)|n't(?:\s+be)?|\\neq?|≠|不是|不为|不等于)(?:\s+(?:equal\s+to|the|a|just|simply))?[\s$*:：\\(\[]{0,8}\Z"
)
_JOINT = re.compile(r"[,，、]|\band\b|[和与與及]")
_PLAIN_LINK = re.compile(
    r"(?:[\s$,，、*{}]|\\[()\[\],;: ]|\\q?quad(?![a-z])|\\text(?:rm)?\{\s{0,3}(?:and|,)?\s{0,3}\}|[和与與及]|and\b)*+"
)
"""Nothing but a comma or `and`: one value is asked, and these are several."""
_SIDE_BY_SIDE = re.compile(r"(?:[\s$}*;；|/&+]|\\[()\[\],; ]|\\q?quad(?![a-z])|\b(?:also|plus|xor)\b)*+")
"""Boxes with no sentence between them: none of them corrects the other."""
_CONDITION_AFTER = re.compile(r"[\s$})]{0,6},?\s{0,2}(?:if|when)\b")
_NAME_BEFORE = re.compile(r"([a-z](?:_\{?[a-z0-9]{1,3}\}?)?)\s?=\s?[\s$]*\\?\Z")
_LINK = re.compile(
    r"(?:[\s$,，、*]|\\[()\[\],;: ]|\\q?quad(?![a-z])|\\text(?:rm)?\{\s{0,3}(?:and|or|,)?\s{0,3}\}|[和与與及以或]"
    r"|(?:and|or|the|other|second|third|fourth|last|one|root|solution|value|is|are)\b"
    r"|[a-z](?:_\{?[a-z0-9]{1,3}\}?)?\s?(?:=|≈|为|是|\bis\b)|[{}])*+"
)
"""All that may stand between two boxes that are parts of one answer."""


class Run(NamedTuple):
    boxes: list[Box]
    """Those at the end that one sentence lists."""
    hedged: bool
    """They are offered as alternatives, or denied."""
    bare: bool
    """Two of them have nothing but a comma or `and` between them."""


def linked(text: Passage, boxes: list[Box]) -> Run:
    """The boxes at the end that belong together, and how."""
    run = [boxes[-1]]
    bare = False
    if _BOTH_AFTER.match(text.lower, boxes[-1].stop, text.stop):
        return Run(run, len(boxes) > 1, False)
    for box in reversed(boxes[:-1]):
        after = run[0]
        begin = box.stop + 1 if box.braced else box.stop
        same = text.shown[box.start : box.stop] == text.shown[after.start : after.stop]
        name = _NAME_BEFORE.search(text.lower, max(text.start, after.marker - 30), after.marker)
        roots = name is not None and _name_of(text, box) == name[1]  # `x = 1 or x = 2`
        between = text.lower[begin : min(after.marker, begin + _LINK_LENGTH + 1)]
        whole = len(between) <= _LINK_LENGTH
        if not same and not (roots and whole and _LINK.fullmatch(between.rstrip("\\"))):
            tail = max(begin, after.marker - 40)
            if _CONDITION_AFTER.match(between) and _CONDITION_AFTER.match(text.lower, boxes[-1].stop, text.stop):
                return Run(run, True, False)
            if _HEDGE_AFTER_BOX.match(between) or _HEDGE_BEFORE_BOX.search(text.lower, tail, after.marker):
                return Run(run, True, False)
        if not same and _SIDE_BY_SIDE.fullmatch(between.rstrip("\\")):
            return Run(run, True, False)
        if not whole or _SENTENCE_END.search(between):
            break
        if not roots and not same and _HEDGE.search(between):
            return Run(run, True, False)
        joint = roots or _JOINT.search(between)
        if not (joint and _LINK.fullmatch(between.rstrip("\\"))):
            break
        bare = bare or (not same and (roots or _PLAIN_LINK.fullmatch(between.rstrip("\\")) is not None))
        run = run if same else [box, *run]
    first = run[0].marker
    before = text.lower[max(text.start, first - 60) : first]
    pattern = _HEDGE_BEFORE_RUN if len(run) > 1 else _DENIED_BEFORE_BOX
    return Run(run, pattern.search(before) is not None, bare)


def _name_of(text: Passage, box: Box) -> str:
    name = _NAME_BEFORE.search(text.lower, max(text.start, box.marker - 30), box.marker)
    return "" if name is None else name[1]
