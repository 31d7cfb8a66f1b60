"""The last place where a passage says which its answer is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from veriward.rewards.contracts.v3.extraction.boxes import is_empty
from veriward.rewards.contracts.v3.extraction.clauses import LONGEST_CLAUSE, clause_end, stripped, trimmed
from veriward.rewards.contracts.v3.extraction.values import ADVERB, Stated, narrowed, says_nothing, stated_value
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span

_ANSWER = re.compile(
    r"answers?(?:\s{1,3}(?:choice|option))?(?:\s{1,3}(?:to|for|of)\s{1,3}[^\n.:：?!]{1,80}?)?[*_]{0,3}(?:"
    r"(?P<verb>\s{1,3}(?:is|are|was|were|equals|becomes|(?:would|will|must|should|has\s+to|ought\s+to)\s+be"
    r"|(?:comes|turns)\s+out\s+(?:to\s+be|as))(?![a-z])"
    rf"(?:\s{{1,3}}{ADVERB}\b){{0,2}}(?:[*_]{{0,3}}\s{{0,2}}[:：])?)"
    r"|(?P<label>[ \t]{0,2}[:：=]|[ \t][–—-]{1,2}[ \t](?=[*(]{0,3}(?:[a-h](?![a-z])|[0-9$\\])))"
    r"|(?P<heading>[ \t]{0,4}(?=\n)))"
)
_HEADING_BEFORE = re.compile(r"[\s#*>_-]*(?:(?:the|my|our|your)\s+)?(?:final\s+)?(?:correct\s+)?")
_NOT_STATED = re.compile(
    r"(?:\b(?:if|whether|unless|what|why|once|until|suppos[a-z]{0,4}|assum[a-z]{0,4})(?:\s+that)?"
    r"(?:\s+(?:the|our|my|your|this|an?|final|correct)){0,3}"
    r"|\b(?:wrong|incorrect|tempting|na[iï]ve|student'?s?'?|previous|earlier|initial|first|false|intermediate|his|her"
    r"|their|no|possible|other|expected|guess(?:ed)?)(?:\s+final)?)\s+\Z"
    r"|(?:错误的?|錯誤的?|如果|假如|假设|假設|若|学生的?|學生的?|原来的?|他的|她的)\Z"
)
"""Before the word: a condition, or somebody else's answer."""
_OPTION = re.compile(r"(?:option|choice)s?(?:\s{1,3}(?:is|are|must\s+be|should\s+be)\b\s{0,2}[:：]?|\s{0,2}[:：])")
_OPTION_BEFORE = re.compile(r"\b(?:correct|right|best|final)\s+(?:answer\s+)?\Z")
_CHINESE_ANSWER = re.compile(
    r"答案(?:选项|選項)?[*_\s]{0,3}(?:(?:应该|应当|应|應該|應當|應|可能|大概|也许|也許|似乎|只能|必定|就|则|則|最终|最後){0,2}"
    r"(?:是|为|為|等于|等於|选|選)[*_]{0,3}\s{0,2}[:：]?|[:：=＝】]\s?[:：]?|(?P<heading>(?=\n)))"
)
_CHOSEN = re.compile(
    r"(?:(?:选|選)(?:项|項|择|擇)?(?:应该|应|應)?(?:是|为|為)?)[*_]{0,3}[：:\s]{0,3}[（(\[]?"
    r"([a-j](?:[、,，和]?\s?[a-j]){0,6})(?![a-z0-9])[）)\]]?[*_]{0,3}\s{0,2}(?=[。．.，,；;！!\n]|因|由于|正|项|項|\Z)"
)
_CHOSEN_BEFORE = re.compile(r"(?:[故应應此以题題上终終该該我确確]|(?:^|\n)\s{0,3}|案[是为為]?[:：]?)\Z")
_BARE_NUMBER = re.compile(
    r"[-+−]?\s?\\?[$€£¥]?\s?-?[0-9][0-9,]*(?:\.[0-9]+)?(?:/[0-9]+)?\s?(?:\\?%|°)?\.?|\$[^$\n]{1,200}\$\.?"
    r"|\\[a-z(\[][^\n]{0,200}|[a-j]"
)
_HEAD_BLANKS = re.compile(r"[ \t\u3000\xa0]*(?:\n[ \t\u3000\xa0]*(?:[=_-]{3,}[ \t]*(?=\n))?){0,3}")
_HEADS = 1_000
"""Words that could open a statement, looked at from the end: `answer answer answer …`."""
_MISSES = 16
"""Clauses read that gave no value: `answer: is x are answer: is x are …`."""


class Statement(NamedTuple):
    span: Span | None
    at: int
    """The word that opened it."""
    silent_until: int
    """No number that stands before this place is an answer."""


def last_statement(text: Passage, truncated: bool, misses: int = _MISSES) -> Statement:
    """The last place where the text says which its answer is; if cut off, one that ended before the cut."""
    best: Span | None = None
    floor, heads, silent = text.start, _HEADS, -1
    for keyword, read in _READERS:
        at = text.lower.rfind(keyword, floor, text.stop)
        while at >= 0 and heads and misses:
            heads -= 1
            stated = read(text, at)
            if isinstance(stated, tuple):
                if stated[2] or not truncated:
                    best, floor = stated[:2], at
                    break
            elif stated is not None and stated is not False:
                silent = max(silent, stated)
            misses -= stated is not None
            at = text.lower.rfind(keyword, floor, at)
    return Statement(best, floor, silent)


_OTHER_AFTER = re.compile(
    r"(?i:[\s.,;:*$)\\\]}~。，；—–-]{0,10}(?:(?<![a-z])(?:or|perhaps|maybe|possibly|otherwise|else|alternatively|if\s+not"
    r"|no|wait|oder|but|as\s+well\s+as|and\s+also|which)\b|或者?|(?:也|又|还|還)?可能|(?:也|还|還)许|不[对對])"
    r"(?:[\s,，:：]|(?:is|it|it's|might|may|the|answer|final|could|be|maybe|perhaps|possibly|even|also)\b|[是为為选選]|答案|选项){0,12}"
    r"[\s$\\(*\[{-]{0,6})(?P<other>[0-9][0-9.,/]*|[A-H](?![A-Za-z])|\\[dt]?frac|\\sqrt|√)"
)
"""Behind a finished value another one is offered."""
_OTHER_BEFORE = re.compile(
    r"(?:(?<![a-z])or[\s,:]{1,3}(?:(?:maybe|perhaps|possibly|that|the|my|our)\s{1,2}){0,2}(?:final\s{1,2})?|或者?|也?可能)[<\[]?\Z"
)


def other_offered(text: Passage, at: int, span: Span) -> bool:
    """Whether the text names another answer next to this one."""
    if _OTHER_BEFORE.search(text.lower, max(text.start, at - 30), at):
        return True
    begin = span[1] + 9 if text.lower.startswith("</answer>", span[1]) else span[1]
    other = _OTHER_AFTER.match(text.shown, begin, text.stop)
    return other is not None and other["other"].rstrip(".,") != text.shown[slice(*span)]


_KEY = re.compile(r'answer"\s{0,4}:\s{0,4}(?:"((?:[^"\\\n]|\\.){1,400})"|(-?[0-9][0-9.e+/-]{0,40})(?=\s{0,4}[,}\]\n]))')
"""`{"answer": "B"}`."""
_ASKED_BEFORE = re.compile(
    r"\b(?:is|was|could|would|should)\s{1,3}(?:the|this|that|my|your|our)\s{1,3}(?:final\s{1,3}|correct\s{1,3})?\Z"
)
_ASKED_AFTER = re.compile(r"[^.?!\n]{0,60}\?")


def _read_answer(text: Passage, at: int) -> Stated:
    """`The final answer is …`, `**Answer:** …`, a heading `### Final Answer`, `<answer>…`, `"answer": …`."""
    lower = text.lower
    before = lower[at - 1] if at > text.start else ""
    if before == "<" and lower.startswith(">", at + 6):
        return _read_tag(text, at + 7, "</answer>")
    if before == "[" and lower.startswith("]", at + 6):
        return _read_tag(text, at + 7, "[/answer]")
    if lower.startswith('"', at + 6):
        key = _KEY.match(text.lower, at, text.stop)
        return None if key is None else (*key.span(1 if key[1] is not None else 2), True)
    head = _ANSWER.match(lower, at, text.stop)
    if head is None and _ASKED_BEFORE.search(lower, max(text.start, at - 40), at):
        asked = _ASKED_AFTER.match(lower, at, text.stop)
        return None if asked is None else asked.end()
    if head is None or (before in "/_" and before) or "a" <= before <= "z":
        return None
    line = max(lower.rfind("\n", max(text.start, at - 200), at) + 1, text.start, at - 200)
    if head["heading"] is not None and not _HEADING_BEFORE.fullmatch(lower, line, at):
        return None
    if _NOT_STATED.search(lower, max(text.start, at - 40), at):
        return _denied_until(text, at, head.end())
    if _supposed(lower, line, at):
        return None
    return stated_value(text, _after_head(text, line, head.end()), label=head["verb"] is None)


_DENIED = re.compile(r"\b(?:wrong|incorrect|tempting)(?:\s+final)?\s+\Z")


def _denied_until(text: Passage, at: int, start: int) -> int | None:
    """`The wrong answer is 5`: the end of its clause."""
    denied = _DENIED.search(text.lower, max(text.start, at - 40), at)
    return None if denied is None else clause_end(text, start)[0]


def _supposed(lower: str, line: int, at: int) -> bool:
    """The sentence before this place opens with a condition: `If it asks for x, then the answer is 5`."""
    begin = max(lower.rfind(". ", line, at) + 2, line) if ". " in lower[line:at] else line
    return lower[begin:at].lstrip(" *_(").startswith(("if ", "suppose ", "assuming ", "had ", "should "))


def _read_tag(text: Passage, start: int, closing: str) -> Stated:
    limit = min(text.stop, start + LONGEST_CLAUSE)
    end = text.lower.find(closing, start, limit)
    if end < 0:
        return stated_value(text, _after_head(text, start, start), label=True)
    span = stripped(text, start, end)
    if is_empty(text.lower[slice(*span)]):
        return text.stop
    return not says_nothing(text, span) and (*(narrowed(text, span) or span), True)


def _read_option(text: Passage, at: int) -> Stated:
    """`The correct option is C`."""
    head = _OPTION.match(text.lower, at, text.stop)
    if head is None or not _OPTION_BEFORE.search(text.lower, max(text.start, at - 24), at):
        return None
    line = max(text.lower.rfind("\n", max(text.start, at - 200), at) + 1, text.start, at - 200)
    return stated_value(text, _after_head(text, line, head.end()), label=False)


def _read_chinese(text: Passage, at: int) -> Stated:
    """`答案：…`, `答案是…`, `故答案为：…`."""
    lower = text.lower
    head = _CHINESE_ANSWER.match(lower, at, text.stop)
    if head is None or _NOT_STATED.search(lower, max(text.start, at - 8), at):
        return None
    line = max(lower.rfind("\n", max(text.start, at - 200), at) + 1, text.start, at - 200)
    if head["heading"] is not None and not re.fullmatch(r"[\s#*>_-]*(?:最终|最終|正确|正確)?", lower[line:at]):
        return None
    return stated_value(text, _after_head(text, line, head.end()), label=True)


def _read_chosen(text: Passage, at: int) -> Stated:
    """`故选 C`, `正确选项为 B`."""
    chosen = _CHOSEN.match(text.lower, at, text.stop)
    if chosen is None:
        return None
    named = text.lower[at + 1 : at + 2] in ("项", "項")
    if not named and at > text.start and not _CHOSEN_BEFORE.search(text.lower, max(text.start, at - 4), at):
        return None
    return chosen.start(1), chosen.end(1), chosen.end() < text.stop


_CORRECTED = re.compile(
    r"不[对對][，,。.！!；;]?\s{0,2}(?:正确)?(?:答案)?(?:应该|应当|应|應該|應當|應)?(?:是|为|為|选|選)(?:项|項)?\s{0,2}[:：]?\s{0,2}"
)


def _read_corrected(text: Passage, at: int) -> Stated:
    """`不对，应该是6`."""
    head = _CORRECTED.match(text.lower, at, text.stop)
    return None if head is None else stated_value(text, head.end(), label=True)


def _read_hashes(text: Passage, at: int) -> Stated:
    """`#### 96`; a heading of the fourth level is none."""
    line = text.lower.rfind("\n", max(text.start, at - 4), at)
    if (line < 0 and at - text.start >= 4) or text.lower[max(line + 1, text.start) : at].strip():
        return None
    return _read_line(text, at + 4)


def _read_letter(text: Passage, at: int) -> Stated:
    """`A: 96` on a line of its own, as few-shot prompts write it; the first of several options is none."""
    stated = _read_line(text, at + 3)
    if not isinstance(stated, tuple):
        return stated
    following = text.lower[stated[1] : stated[1] + 40].lstrip(" .\n*")
    return None if following.startswith(("b:", "b)", "b.", "b：")) else stated


def _read_line(text: Passage, start: int) -> Stated:
    """The rest of a line, if it is a bare value."""
    lower = text.lower
    limit = min(text.stop, start + LONGEST_CLAUSE)
    end = lower.find("\n", start, limit)
    span = trimmed(lower, start, limit if end < 0 else end)
    if not _BARE_NUMBER.fullmatch(lower, *span):
        return None
    span = stripped(text, *span)
    return not says_nothing(text, span) and (*span, end >= 0)


_READERS: tuple[tuple[str, Callable[[Passage, int], Stated]], ...] = (
    ("answer", _read_answer),
    ("答案", _read_chinese),
    ("选", _read_chosen),
    ("選", _read_chosen),
    ("不对", _read_corrected),
    ("不對", _read_corrected),
    ("####", _read_hashes),
    ("option", _read_option),
    ("choice", _read_option),
    ("\na:", _read_letter),
)


def _after_head(text: Passage, line: int, start: int) -> int:
    """Where the value starts: behind blanks, up to three line ends, and the end of a label in bold type."""
    if text.lower.startswith("**", start) and text.lower.count("**", line, start) % 2 == 1:
        start += 2
    blanks = _HEAD_BLANKS.match(text.lower, start, text.stop)
    return start if blanks is None else blanks.end()
