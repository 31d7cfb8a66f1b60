"""The relation, interval, list or measure around the last number, and the words that make it no answer."""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3.extraction.last_number import LONG_WORD, LONGEST_NUMBER
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span

OR_BEFORE = re.compile(
    r"(?:\bn?or|\bversus|\bvs\.?|或者?|还是|還是)\s*(?:maybe|perhaps|possibly|about|even)?\s*[$(\\*\[{]*\Z"
    r"|\b(?:could|might|may)\s+be\s*[$(\\*\[{]*\Z"
    r"|(?<![a-z0-9.,/^_])(?<!from )(?<!from \$)[0-9](?:[0-9.,/]{0,20}[0-9])?\$?[ \t]{0,2}"
    r"(?:\b(?:to|oder|ou|until)\b|[~～&;；|]{1,2}|\\text\{\s?or\s?\}|[ \t])[ \t]{0,2}\$?(?:[a-z][ \t]?=[ \t]?)?\Z"
)
"""Another number is offered next to it."""
ALTERNATIVE_BEFORE = re.compile(
    r"(?<![A-Za-z0-9.,])(?:[A-Za-z][ \t]?=[ \t]?)?[-−+]?[0-9]{1,20}(?:[./][0-9]{1,20})?[ \t]?,?[ \t]?"
    r"(?:\b(?i:or)\b|或者?)[ \t]?(?:[A-Za-z][ \t]?=[ \t]?)?\Z"
)
_NO_ANSWER_BEFORE = re.compile(
    r"(?:(?:\b(?:not|cannot|never)|n['’]t|≠|\\neq?(?![a-z])|!=)"
    r"(?:[\s$*]{1,3}(?:be|equal(?:\s+to)?|is|the|a|just)\b){0,2}"
    r"|\b(?:at\s+(?:least|most)|(?:more|less|greater|fewer|larger|smaller)\s+than|up\s+to|minus|negative|plus|divided\s+by"
    r"|multiplied\s+by|times|except|mod(?:ulo)?|base|(?:root|half|third|quarter|square|cube)\s+of|twice|double|triple|over"
    r"|steps?|question|problem|equation|figure|theorem|lemma|example|exercise)"
    r"|\b(?:wrong|incorrect|false|tempting)\s+(?:final\s+)?(?:answer|result|value|guess)\s+(?:is|was|of|would\s+be)"
    r"|不是|不等于|不为|至少|至多|最多|最少|大于|小于|超过)[\s$*(]{0,4}\Z"
)
"""What denies a number, bounds it, or makes it a part of something that is spelled in words."""
_NO_ANSWER_AFTER = re.compile(
    r"[$*]{0,3}[ \t]{0,2}(?:or[ \t]{1,2}(?:more|less|fewer|greater|higher|lower|above|below|so)"
    r"|squared|cubed|factorial|to\s+the\s+power|(?:plus|minus|times)(?=[ \t]{1,2}[$\\(0-9a-z](?![a-z])))\b"
    r"|[$*]{0,3}[ \t]?(?:以上|以下|或以上|或以下|左右)"
)
_RELATION = (
    r"(?:[<>]=|(?<![-=<>])[<>](?![<>])|[≤≥⩽⩾≦≧≠∈∉∪∩±]"
    r"|\\(?:pm|mp|le|ge|leq|geq|leqslant|geqslant|lt|gt|ne|neq|in|cup|cap)(?![a-z]))"
)
_OPERAND_END = (
    r"(?:[(\[][^()\[\]\n]{1,60}[)\]]|(?<![A-Za-z0-9<>/\\.,])"
    r"(?:\\[a-z]{2,12}(?:\{[^{}\n]{0,20}\})?|-?[0-9A-Za-z.^_{}*/|()√π∞−²³-]{1,40}))"
)
_RELATED_BEFORE = re.compile(rf"({_OPERAND_END})[ \t$]{{0,2}}{_RELATION}[ \t$]{{0,2}}\Z")
_LISTED_BEFORE = re.compile(
    r"(?<![0-9A-Za-z.])((?:[A-Za-z][ \t]?=[ \t]?)?[-−]?[0-9]{1,20}(?:[./][0-9]{1,20})?)"
    r"(?:[ \t]?、[ \t]?|[ \t]{1,2}:[ \t]{1,2})\Z"
)
_MORE_AFTER = re.compile(
    rf"[ \t]{{0,2}}(?:{_RELATION}|(?<=[ \t])[-+−](?=[ \t]))[ \t]{{0,2}}"
    r"([(\[][^()\[\]\n]{1,60}[)\]]|[A-Za-z](?![A-Za-z'’])(?!\s+[A-Za-z]{2})"
    r"|\\[a-z]{2,12}(?:\{[^{}\n]{0,20}\})?|-?[0-9.]{0,20}[0-9A-Za-z∞π](?![A-Za-z]))"
)
_SIGN = re.compile(r"(?:\\pm|\\mp|±|\+/-)[ \t]{0,2}\Z")
_PREFIX = re.compile(
    r"(?:√|\\sqrt|(?<![A-Za-z])\\?(?:sqrt|ln|log|lg|exp|sin|cos|tan|arcsin|arccos|arctan))[ \t]{0,2}\Z"
)
_DURATION_BEFORE = re.compile(
    r"(?<![0-9.,])[0-9][0-9.,]{0,12}[ \t](?:years?|months?|weeks?|days?|hours?|minutes?|feet|foot|yards?|miles?|pounds?"
    r"|meters?|metres?|kilometers?|dollars?|tons?|degrees?)(?:,?[ \t]and|,)?[ \t]\Z"
)
_UNIT_AFTER = re.compile(
    r"[ \t](?:months?|weeks?|days?|hours?|minutes?|seconds?|feet|inch(?:es)?|yards?|ounces?"
    r"|centimeters?|meters?|metres?|cents?)\b"
)
_LISTING_END = re.compile(r",[ \t]?([-+−]?[^()\[\]\n,]{1,20})([)\]])")
_ROOT_BEFORE = re.compile(r"\$([A-Za-z][^$=\n]{0,8})=[^$=\n]{1,60}\$,?[ \t]{0,2}(?:(?:and|or)\b|[或和])[ \t]{0,2}\Z")
_VALUE_BEFORE = re.compile(r"\$[^$=\n]{1,60}\$,?[ \t]{0,2}(?:(?:and|or)\b|[或和])[ \t]{0,2}\Z")


def whole_of(text: Passage, span: Span) -> Span | None:
    """The relation, interval or measure that a number is a part of; None where it is denied or only bounds."""
    shown, (start, stop) = text.shown, span
    if _NO_ANSWER_BEFORE.search(text.lower, max(text.start, start - 40), start):
        return None
    if _NO_ANSWER_AFTER.match(text.lower, stop, text.stop):
        return None
    low = max(shown.rfind("\n", max(text.start, start - LONGEST_NUMBER), start) + 1, text.start, start - LONGEST_NUMBER)
    if "$" in shown[low:start] and shown.startswith("$", stop):
        return _with_other_roots(shown, span, low)
    end = _LISTING_END.match(shown, stop, text.stop)
    if end is not None and start > low and shown[start - 1] in "([" and not LONG_WORD.search(end[1]):
        start, stop = start - 1, end.end()
    prefix = _PREFIX.search(shown, low, start)
    if prefix is not None:
        start = prefix.start()
    for _ in range(6):
        before = _RELATED_BEFORE.search(shown, max(low, start - 80), start)
        before = before or _LISTED_BEFORE.search(shown, max(low, start - 60), start)
        if before is None or LONG_WORD.search(before[1]):
            break
        start = before.start(1)
    sign = _SIGN.search(shown, low, start)
    if sign is not None:
        start = sign.start()
    if "≠" in shown[start:stop] or "\\ne" in shown[start:stop]:
        return None
    for _ in range(4):
        after = _MORE_AFTER.match(shown, stop, text.stop)
        if after is None:
            break
        stop = after.end()
    duration = _DURATION_BEFORE.search(shown, max(low, start - 60), start)
    unit = _UNIT_AFTER.match(shown, stop, text.stop)
    if duration is not None and unit is not None:
        return duration.start(), unit.end()
    return start, stop


def _with_other_roots(shown: str, span: Span, low: int) -> Span:
    """`$x = 1$ and $x = -2$` from the first formula on, where all name one unknown."""
    first = opening = shown.rfind("$", low, span[0])
    name, sign, _ = shown[opening + 1 : span[1]].partition("=")
    if not sign:
        both = _VALUE_BEFORE.search(shown, max(low, first - 100), first)
        return span if both is None else (both.start(), span[1] + 1)
    while sign and (before := _ROOT_BEFORE.search(shown, max(low, first - 100), first)) is not None:
        if before[1].strip() != name.strip():
            break
        first = before.start()
    return span if first == opening else (first, span[1] + 1)
