"""A last sentence that names its result without calling it the answer: `So the area is 12 (step 7).`, `Option B.`"""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3.extraction.clauses import clause_end, stripped, trimmed
from veriward.rewards.contracts.v3.extraction.values import ADVERB, DOUBTS, WORDS, says_nothing, without_remark
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span

GIVEN_UP = re.compile(
    r"\b(?:i|we)(?:\s{1,2}(?:could\s+not|cannot|can\s+not|am\s+unable\s+to|was\s+unable\s+to|am\s+not\s+able\s+to)"
    r"|\s{1,2}(?:couldn|can)['’]t)\s{1,2}(?:solve|determine|find|answer|compute|figure)\b"
)
_CHOICE_ALONE = re.compile(
    r"(?i:(?:so|thus|hence|therefore|then)\s{0,2},?\s{1,2})?(?i:(?:the\s{1,2})?(?:correct\s{1,2}|right\s{1,2}|best\s{1,2})?"
    r"(?:option|choice|answer)\s{1,2}(?:is\s{1,2})?)?[(\[（*$]{0,3}([A-H])[)\]）*$]{0,3}"
)
_CHOICE_CALLED = re.compile(
    r"(?i:\b(?:option|choice|statement|answer)\s{1,2})[(\[*$]{0,3}([A-H])[)\]*$]{0,3}\s{1,2}(?i:is|must\s+be)\s{1,2}"
    r"(?i:(?:the\s+)?(?:correct|right|best|answer|true))\b"
    r"|(?:\A|(?<=[\s,]))[(\[*$]{0,3}([A-H])[)\]*$]{0,3}\s{1,2}is\s{1,2}(?:the\s{1,2})?(?:correct|right|best)\b"
    r"|\bI(?:'d|\s+would|\s+will|\s+shall)?\s+(?:choose|pick|select|go\s+with)\s+(?:option\s+|choice\s+|answer\s+)?"
    r"[(\[*$]{0,3}([A-H])(?![A-Za-z])"
    r"|选项\s{0,2}[(（]?([A-H])[)）]?\s{0,2}(?:是|为)?(?:正确|对)"
)
_YES_OR_NO = re.compile(r"(?i:yes|no|true|false)|是|否|对|错|正确|错误")
_IS_THE_ANSWER = re.compile(
    r"(?i:(?:so|thus|hence|therefore|then|and)\s{0,2},?\s{1,2})?(\$[^$\n]{1,100}\$|\*\*[^*\n]{1,100}\*\*|[^\sA-Za-z*$][^A-Za-z\n]{0,60}?)"
    r"\s{1,2}(?i:is|are)\s{1,2}(?i:the|our|my)\s{1,2}(?i:final\s+|correct\s+|required\s+|desired\s+)?(?i:answer|result|solution)\b"
)
_RESULT = re.compile(
    r"\b(?:result|value|minimum|maximum|min|max|probability|sum|area|product|volume|perimeter|total|length|difference"
    r"|ratio|average|mean|median|distance|cost|price|remainder|limit|integral|derivative|determinant|angle|radius|number"
    r"|solution|root|height|width|speed|time|expected\s+value)\b(?P<subject>[^=\n.:;]{0,80}?)"
    rf"(?:\b(?:is|equals)\s+(?:{ADVERB}\s+)?|=\s*)(?=[-+−$\\(\[{{*0-9√π.])"
)
_GOES_ON_WITH = re.compile(r"\s(?:with|for|at|by|from|obtained|attained|achieved|reached|occurring|out\s+of)\b")
_SENTENCE_BREAK = re.compile(r"[.!?](?=\s)|[。！？]|\n")
_CLOSING_LENGTH = 400


def closing_statement(text: Passage, number: Span | None) -> Span | None:
    """What the last sentence names as the answer without that word, where its last number is another.

    number   the last number of the text
    """
    shown = text.shown
    start, stop = trimmed(shown, max(text.start, text.stop - _CLOSING_LENGTH), text.stop)
    low = start
    while stop > start and shown[stop - 1] in ".。!！*_ \t":
        stop -= 1
    for end in _SENTENCE_BREAK.finditer(shown, start, stop):
        start = end.end()
    if start == low and low > text.start:
        return None  # a sentence too long
    start, stop = trimmed(shown, start, stop)
    while start < stop and shown[start] in "*_#> \t":
        start += 1
    if stop - start < 12 and _YES_OR_NO.fullmatch(shown, start, stop):
        return start, stop
    choice = _CHOICE_ALONE.fullmatch(shown, start, stop) or _CHOICE_CALLED.search(shown, start, stop)
    if choice is not None and not _CONDITION.match(shown, start, stop):
        return choice.span(choice.lastindex or 1)
    if number is None:
        return None
    said = _IS_THE_ANSWER.match(shown, start, stop)
    if said is not None:
        span = stripped(text, *said.span(1))
        return None if span[0] <= number[0] and number[1] <= span[1] else span
    result = _RESULT.search(text.lower, start, stop)
    if result is None or DOUBTS.search(result["subject"]) or _CONDITION.match(shown, start, stop):
        return None
    if _DENIED_RESULT.search(text.lower, start, result.start()):
        return None
    return _result_value(text, result.end(), stop, number)


_CONDITION = re.compile(r"(?i:if|suppose|assuming|assume|let|when|unless|for\s+which)\b")
_DENIED_RESULT = re.compile(r"\b(?:wrong|incorrect|tempting|first|previous|intermediate|initial)\s+\Z")
_ANOTHER_VALUE = re.compile(r"[^,.;\n]{0,60}\b(?:and|or|but|while|whereas|not)\b[^.\n]{0,60}[0-9]")


def _result_value(text: Passage, start: int, stop: int, number: Span) -> Span | None:
    """The value of a result, unless the last number of the text stands in it or it has none."""
    end = min(clause_end(text, start)[0], stop)
    more = _GOES_ON_WITH.search(text.lower, start, end)
    if more is not None and text.lower.count("$", start, more.start()) % 2 == 0:
        end = more.start()
    if _ANOTHER_VALUE.match(text.lower, end, stop):
        return None
    span = without_remark(text, stripped(text, start, end))
    if span[0] >= span[1] or span[0] <= number[0] < span[1] or says_nothing(text, span):
        return None
    return span if len(WORDS.findall(text.lower, *span)) < 3 and "=" not in text.lower[slice(*span)] else None
