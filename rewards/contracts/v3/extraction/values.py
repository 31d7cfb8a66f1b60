"""The value that a statement gives, without what it says besides."""

from __future__ import annotations

import re
from typing import Literal

from veriward.rewards.contracts.v3.extraction.boxes import is_empty
from veriward.rewards.contracts.v3.extraction.clauses import clause_end, stripped
from veriward.rewards.contracts.v3.extraction.last_number import last_number
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span

ADVERB = (
    r"(?:indeed|therefore|thus|then|simply|just|clearly|hence|also|still|now|probably|likely|approximately|about|roughly"
    r"|exactly|precisely|actually|definitely|given\s+by|equal\s+to|as\s+follows)"
)
_NO_VALUE = re.compile(
    r"(?:(?:in)?correct|wrong|reasonable|consistent|valid|verified|confirmed|plausible|obtained|found|below|above"
    r"|in\s+the\s+(?:form|format|box)|in\s+(?:simplest|lowest)|expected|supposed|the\s+same|what|right\Z|not\s+yet)\b"
    r"|正确的?\Z|正確的?\Z|对的\Z|错误的?\Z|合理的?\Z"
)
"""`The answer is correct` says nothing about which."""
_PROSE = re.compile(r"(?:let(?:'s)?|we|i|first|to|since|because|given|here|this|start|step|by|in\s+order|using)[\s,]")
"""`Answer: Let us count …` opens the working, as base models do."""
WORDS = re.compile(r"(?<![\\a-z])[a-z]{2,}")
_NUMBERS = re.compile(r"[0-9][0-9,.]*")
DOUBTS = re.compile(r"\b(?:or|either|not|no|between|least|most|less|more|than|if|except)\b")
_SENTENCE = re.compile(
    rf"(?P<subject>[^=$\\0-9\n]*)\b(?:is|are|equals)\s+(?:{ADVERB}\s+)?(?=[-+−$\\(\[{{*0-9√π.])"
    r"|[一-鿿]{1,20}?(?<![不非])(?:等于|等於|为|為|是)(?=[-+−$\\(\[{*0-9０-９√π.一二三四五六七八九十])"
)
_FEW_WORDS = 6
Stated = tuple[int, int, bool] | int | Literal[False] | None
"""Start and end of a value, and whether something ended it before the text did. None: the word opens no statement.
False: it does, and what follows is no value. A place: it gives no answer on purpose, and no number before the place
is one."""
_UNKNOWN_ANSWER = re.compile(
    r"(?:i|we)(?:\s+(?:really\s+)?(?:do\s+not|cannot|can\s*not|am\s+not|are\s+not|have\s+no)|\s+(?:don|can)['’]t|['’]m\s+not)\b"
    r"|(?:not\s+sure|no\s+idea|unsure)\b"
)
_BULLET = re.compile(r"(?:[-*•+]|[0-9]{1,2}[.)])[ \t]{1,4}(?=\S)")
_BULLETS = re.compile(r"(?:[^\n]{0,400}\n\s{0,4}(?:[-*•+]|[0-9]{1,2}[.)])[ \t]{1,4}(?=\S)){1,20}[^\n]{0,400}")
_REMARK = re.compile(
    r"(?:(?<=\*\*)|(?<=[^\s+*/=<>×·,^(\[{-]))[ \t]{1,3}[(（]"
    r"(?!\s*(?:mod|base)\b|[^()（）]{0,80}\b(?:or|maybe|perhaps|possibly|could|might)\b)"
    r"(?:[≈~=]?\s?[-+−]?\$?[0-9][0-9.,/]*\s?%?|[^()（）$\\]{0,100}?[A-Za-z]{3,}[^()（）]{0,200}|[^()（）]{0,40}[一-鿿][^()（）]{0,80})[)）]\Z"
)
"""Behind a finished value, a bracket with words or with one number is no part of it."""
_ROUNDED = re.compile(
    r"(?<=[0-9A-Za-z)}\]$*])[ \t]{0,2}(?:≈|≅|\\approx(?![a-z]))[ \t]{0,2}[-−]?[0-9.,]{1,30}[ \t$]{0,2}\Z"
)
"""`3/8 ≈ 0.38`: the exact value is the answer."""
_FUNCTION = re.compile(
    r"(?<![a-z])(?:sqrt|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|ln|exp|max|min|gcd|lcm|mod|[a-z])\Z"
)
_OPTION_FIRST = re.compile(r"[(\[]?[A-H][)\]]?(?=[ \t]{1,2}[-–—][ \t]|[,，.．][ \t]?[-$\\0-9])")
_SAID_OF_VALUE = re.compile(
    r"([-+−$\\0-9*][^\sA-Za-z]{0,40})[ \t](?:is|are|was)[ \t](?:the|our|my)\b(?!.{0,20}(?:wrong|tempting|guess))"
)


def stated_value(text: Passage, start: int, *, label: bool) -> Stated:
    """The value that a sentence or label gives, without what the clause says further."""
    if "\n" in text.lower[max(text.start, start - 6) : start] and (
        bullet := _BULLET.match(text.lower, start, text.stop)
    ):
        items = _BULLETS.match(text.lower, start, text.stop)
        if items is not None:  # several items are one answer, or none
            return (*stripped(text, start, items.end()), items.end() < text.stop)
        start = bullet.end()
    if label and _UNKNOWN_ANSWER.match(text.lower, start, text.stop):
        return text.stop
    if label and _PROSE.match(text.lower, start, text.stop):
        return False
    if text.lower.startswith(("wrong", "incorrect"), start):
        return clause_end(text, start)[0]
    if _NO_VALUE.match(text.lower, start, text.stop) or text.lower.startswith(("\\boxed", "\\fbox"), start):
        return False
    end, closed, asked = clause_end(text, start)
    span = stripped(text, start, end)
    if asked or says_nothing(text, span):
        return end if asked else False
    narrow = narrowed(text, span) if label else span
    if narrow is None:
        return False
    return (*without_remark(text, narrow), closed or _bold_ends(text, start, end))


def _bold_ends(text: Passage, start: int, end: int) -> bool:
    """`**5**`: the mark behind it says that the value is complete."""
    content = text.shown[start:end].rstrip()
    return content.endswith("**") and (content.startswith("**") or text.shown[:start].rstrip(" ").endswith("**"))


def without_remark(text: Passage, span: Span) -> Span:
    """Without what is said of a value behind it: `5 (see step 7)`, `C - 12`, `10 is the fifth term`."""
    start, stop = span
    option = _OPTION_FIRST.match(text.shown, start, stop)
    if option is not None:
        return start, option.end()
    said = _SAID_OF_VALUE.match(text.shown, start, stop)
    if said is not None:
        return stripped(text, start, said.end(1))
    rounded = _ROUNDED.search(text.shown, max(start, stop - 60), stop)
    if rounded is not None:
        return stripped(text, start, rounded.start())
    remark = _REMARK.search(text.shown, max(start, stop - 320), stop)
    if remark is None or _FUNCTION.search(text.lower, max(start, remark.start() - 8), remark.start()):
        return span
    return stripped(text, start, remark.start())


def says_nothing(text: Passage, span: Span) -> bool:
    content = text.lower[slice(*span)]
    return "\\boxed" in content or "\\fbox" in content or is_empty(content)


def narrowed(text: Passage, span: Span) -> Span | None:
    """The value of a sentence that stands behind a label: `Answer: The area is 12` gives 12; None if it gives none."""
    content = text.lower[slice(*span)]
    sentence = _SENTENCE.match(content)
    if sentence is not None and not DOUBTS.search(sentence["subject"] or ""):
        return stripped(text, span[0] + sentence.end(), span[1])
    words = len(WORDS.findall(content))
    if words < 3 or DOUBTS.search(content):
        return span if words < _FEW_WORDS else None
    if len(_NUMBERS.findall(content)) == 1:
        return last_number(text.part(*span)) or span
    return span if words < _FEW_WORDS else None
