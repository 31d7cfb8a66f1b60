"""The last number of a passage, with the mathematics that it is glued or joined to."""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3.extraction.clauses import CLOSING, OPENING, stripped, trimmed
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span

_DIGITS = "0123456789"
_OTHER_DIGITS = "０１２３４５６７８９½⅓⅔¼¾⅕⅛"
LONGEST_NUMBER = 300
"""Characters of a number with its mathematics; what is glued into more is a flood and no answer."""
_STOPS = frozenset('"“”；;。，、：！？（）「」『』【】|<>`')
_LEFT_EDGE = "*_.,:;!?'#~≈"
_RIGHT_EDGE = "*_.,:;?'#~\\"
_OPERATOR_BEFORE = re.compile(
    r"(\S{1,60})[ \t]{0,2}(?:\\(?:times|cdot|div)|[-+*/^×·÷−]|(?<=[ \t])x(?=[ \t])|,[ \t]|(?<=[ \t])and(?=[ \t]))"
    r"[ \t]{0,2}\Z"
)
"""What is combined with the number, or listed with it."""
_FACTOR_BEFORE = re.compile(r"(\S{0,59}[0-9０-９)}π])[ \t]{1,2}\Z")
_SIGN_BEFORE = re.compile(r"(?:[=(:,]|\b(?:is|are|be|equals))[ \t]{0,2}([-−])[ \t]{0,2}\Z")
_OPERAND = re.compile(r"(?:.*[0-9０-９)\]}π]|(?:.*[^A-Za-z])?[A-Za-z])\Z")
_SCALE_AFTER = re.compile(
    r"[ \t]{0,2}(?:\\?%|％|°|\\pi|π|pi\b|√\S{1,20}|million\b|billion\b|thousand\b|trillion\b|hundred\b|dozen\b"
    r"|percent\b|[百千万亿萬億]{1,3})"
)
_EQUALS = re.compile(r"[=＝≈→]|>>|\\approx|\\to(?![a-z])|\\implies|\\Rightarrow")
_ALIGNED = re.compile(r"\\begin\{(?:align|gather|split|eqn|equation|multline|flalign)")
_LIST_COMMA = re.compile(r"(?<!\\),(?![0-9]{3}(?![0-9]))")
_ITEM = re.compile(
    r"[ \t]{0,8}(?:[#*>-]{1,6}[ \t]{1,3})?[*_]{0,2}(?:[0-9]{1,2}[.)][*_]{0,2}[ \t]{1,4}(?=[^\s0-9])"
    r"|(?:[Ss]tep|[Pp]art|[Cc]ase|STEP)[ \t]{1,2}[0-9]{1,2}(?:[.:)*]|[ \t]{0,8}(?=\n|\Z))|第[0-9]{1,2}[步题題部][：:]?)"
)
"""The number of a step or list item, which is no answer."""
_MOST_ITEMS = 20


def last_number(text: Passage) -> Span | None:
    """The last number of the text: its formula after the last equals sign, or itself with what is glued to it."""
    shown = text.shown
    digits = _DIGITS if shown.isascii() else _DIGITS + _OTHER_DIGITS
    stop = text.stop
    for _ in range(_MOST_ITEMS):
        last = max(shown.rfind(digit, text.start, stop) for digit in digits)
        if last < 0:
            return None
        line = max(shown.rfind("\n", max(text.start, last - 40), last) + 1, text.start)
        item = _ITEM.match(shown, line, text.stop)
        if item is None or not line <= last < item.end():
            return _formula_around(text, last) or _plain_number(text, last)
        stop = line
    return None


def _formula_around(text: Passage, at: int) -> Span | None:
    """What a formula that holds this place gives, if the formula is short and stands alone."""
    shown = text.shown
    low, high = max(text.start, at - LONGEST_NUMBER), min(text.stop, at + LONGEST_NUMBER)
    line = shown.rfind("\n", low, at) + 1 or low
    for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$")):
        begin = shown.rfind(opening, low, at)
        end = shown.find(closing, at, high)
        if begin < 0 or end < 0 or shown.find(closing, begin + len(opening), at) >= 0:
            continue
        if opening == "$" and (begin < line or "\n" in shown[at:end] or _dollars(shown, line, at) % 2 == 0):
            continue
        before = shown[begin - 1] if begin > text.start else " "
        if (before.isalnum() and before.isascii()) or (before == "(" and shown[begin - 2 : begin - 1].isalnum()):
            return None  # `arctan($\sqrt{3}$)`: the formula is a part of something
        span = stripped(text, begin + len(opening), end)
        if end - begin > LONGEST_NUMBER or _ALIGNED.search(shown, *span):
            return None
        return _right_side(text, span, at)
    return None


def _dollars(text: str, start: int, stop: int) -> int:
    return text.count("$", start, stop) - text.count("\\$", start, stop)


def _right_side(text: Passage, span: Span, at: int) -> Span:
    """Behind the last equals sign, unless the formula lists several things."""
    sign = _last_match(_EQUALS, text.shown, *span)
    if sign is None:
        return span
    content, left = text.shown[slice(*span)], text.shown[span[0] : sign.start()]
    if "\\begin" in content or _is_equation(content):
        return span
    if any(left.count(opening) != left.count(_PARTNER[opening]) for opening in "({"):
        return span
    right = stripped(text, sign.end(), span[1])
    return right if right[0] <= at < right[1] and not _LIST_COMMA.search(content) else span


_UNKNOWN = re.compile(r"(?<![A-Za-z\\])[xyz](?![A-Za-z])")


def _is_equation(content: str) -> bool:
    """`5x - 7y + 4 = 0` is the answer, and not 0; of `S = 3 + 4 = 7` the last part is."""
    left, sign, right = content.partition("=")
    return (
        bool(sign) and "=" not in right and bool(_UNKNOWN.search(left)) and bool(_SUM_OR_POWER.search(left.strip()[1:]))
    )


_SUM_OR_POWER = re.compile(r"[-+−^²³]")


def _plain_number(text: Passage, at: int) -> Span | None:
    shown = text.shown
    low, high = max(text.start, at - LONGEST_NUMBER), min(text.stop, at + LONGEST_NUMBER)
    start, stop = at, at + 1
    while start > low and _glued(shown, start - 1):
        start -= 1
    while stop < high and _glued(shown, stop):
        stop += 1
    if (start == low > text.start) or (stop == high < text.stop):
        return None
    start, stop = _without_edges(shown, _with_bracket(shown, start, stop, low), stop)
    span = _right_side(text, (start, stop), at)
    start, stop = _without_edges(shown, *span)
    if not start <= at < stop:
        return at, at + 1
    if start == span[0]:
        start = _with_equation(shown, _with_operands(shown, start, low), stop, low)
    scale = _SCALE_AFTER.match(shown, stop, text.stop)
    if scale is not None:
        stop = scale.end()
    return trimmed(shown, start, stop)


LONG_WORD = re.compile(r"(?<!\\)[A-Za-z]{3,}")


def _with_bracket(text: str, start: int, stop: int, low: int) -> int:
    """From the bracket that this token closes: `[1, 2]` is not 2. A remark in brackets stays apart."""
    while stop > start and text[stop - 1] in _RIGHT_EDGE:
        stop -= 1
    if text[stop - 1] not in CLOSING:
        return start
    for _ in range(4):
        token = text[start:stop]
        depth = sum(token.count(sign) for sign in CLOSING) - sum(token.count(sign) for sign in OPENING)
        if depth <= 0:
            break
        at = start
        while depth > 0 and at > low and text[at - 1] != "\n":
            at -= 1
            depth += (text[at] in CLOSING) - (text[at] in OPENING)
        if depth or LONG_WORD.search(text, at, start):
            break
        while at > low and _glued(text, at - 1):
            at -= 1
        start = at
    return start


def _glued(text: str, at: int) -> bool:
    character = text[at]
    if character.isspace() or character in _STOPS:
        return False
    if character.isascii():
        return True
    if "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff":  # Chinese and Japanese have no blanks
        return character in "分之" and "分之" in text[max(0, at - 1) : at + 2]
    return True


_PARTNER = {"(": ")", "[": "]", "{": "}", ")": "(", "]": "[", "}": "{"}


def _without_edges(text: str, start: int, stop: int) -> Span:
    """Without marks, final punctuation and brackets that nothing answers."""
    for _ in range(12):
        before = start, stop
        while start < stop and text[start] in _LEFT_EDGE and not _opens_decimal(text, start):
            start += 1
        while start < stop and text[stop - 1] in _RIGHT_EDGE:
            stop -= 1
        if stop - start <= LONGEST_NUMBER and _HALF_OPEN.fullmatch(text, start, stop):
            break
        if start < stop and _alone(text, text[start], start, stop) and text[start] in "([{)]}":
            start += 1
        if start < stop and _alone(text, text[stop - 1], start, stop) and text[stop - 1] in ")]}$!":
            stop -= 1
        if text.startswith("$", start, stop) and text.endswith("$", start, stop) and stop - start > 2:
            start, stop = start + 1, stop - 1
        if (start, stop) == before:
            break
    return start, stop


_HALF_OPEN = re.compile(r"\[[^()\[\],]+,[^()\[\],]+\)|\([^()\[\],]+,[^()\[\],]+\]")


def _opens_decimal(text: str, at: int) -> bool:
    return text[at] == "." and text[at + 1 : at + 2].isdigit()


def _alone(text: str, sign: str, start: int, stop: int) -> bool:
    """Whether this bracket, dollar sign or exclamation mark has no partner in the span."""
    if sign == "$":
        return text.count("$", start, stop) == 1
    if sign == "!":
        return stop - start > 1 and not text[stop - 2].isalnum()
    partner = _PARTNER.get(sign)
    return partner is not None and text.count(sign, start, stop) > text.count(partner, start, stop)


def _with_operands(text: str, start: int, low: int) -> int:
    """With what is added or multiplied in front: the number alone would be an operand."""
    for _ in range(12):
        line = max(text.rfind("\n", low, start) + 1 or low, start - 80)
        sign = _SIGN_BEFORE.search(text, line, start)
        if sign is not None:
            return sign.start(1)
        before = _OPERATOR_BEFORE.search(text, line, start)
        if before is None and (text[start].isalpha() or text[start] in "√\\"):
            before = _FACTOR_BEFORE.search(text, line, start)  # `5 sqrt(3)`, `12 cm^2`
        if before is None or not _OPERAND.match(before[1]):
            break
        equals = _last_match(_EQUALS, text, *before.span(1))
        if equals is not None:
            return equals.end()
        begin = _without_edges(text, *before.span(1))[0]
        if begin >= start:
            break
        start = begin
    return start


_EQUATION_PART = re.compile(r"=|(?:[0-9.*^()/+−²³-]|[a-z](?![a-z])){1,60}")


def _with_equation(text: str, start: int, stop: int, low: int) -> int:
    """With the left side of an equation in x, y or z that stands in plain text: `2*x - 5*y + 8 = 0`."""
    line = max(text.rfind("\n", low, start) + 1 or low, start - 100)
    before = text[line:start]
    if not before.rstrip().endswith("="):
        return start
    begin = start
    for word in reversed(list(re.finditer(r"\S+", before))):
        if not _EQUATION_PART.fullmatch(word[0]) or word[0] == "a":
            break
        begin = line + word.start()
    return begin if _is_equation(text[begin:stop]) else start


def _last_match(pattern: re.Pattern[str], text: str, start: int, stop: int) -> re.Match[str] | None:
    last = None
    for last in pattern.finditer(text, start, stop):  # noqa: B007
        pass
    return last
