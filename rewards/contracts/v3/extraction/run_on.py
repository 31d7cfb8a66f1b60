"""Where a model that has answered goes on with a new problem or another role."""

from __future__ import annotations

import re
from itertools import islice

from veriward.rewards.contracts.v3.extraction.boxes import boxes_of
from veriward.rewards.contracts.v3.extraction.last_number import last_number
from veriward.rewards.contracts.v3.extraction.statements import last_statement
from veriward.rewards.contracts.v3.extraction.visible import Passage


def has_answer(text: Passage) -> bool:
    """A box or a statement; a number alone says nothing."""
    return text.start < text.stop and (
        bool(boxes_of(text)) or last_statement(text, truncated=False, misses=4).span is not None
    )


_LINE_END = r"[\n\r\u2028\u2029\x0b\x0c\x85]"
_NEW_PROBLEM = re.compile(
    _LINE_END + r"(?=[ \t#*>_\-\[0-9nasfpqeiuhtl新下另问問题題例习習练練用助系第])"
    r"[ \t]{0,4}(?:[#*>_-]{1,6}[ \t]{0,3})?(?:[0-9]{1,3}[.)][ \t]{1,3})?[*_]{0,3}(?:"
    r"(?:now[ \t]{1,2})?(?:(?:the|a)[ \t]{1,2})?(?:(?:new|next|another|similar|follow-?up|practice)[ \t]{1,2})?"
    r"(?:problem|question|exercise|instruction|user|human|assistant|system|task|example|input|q)"
    r"(?:[ \t]{0,2}#?[0-9]{1,4})?[*_]{0,3}[ \t]{0,2}[:：]"
    r"|(?:now|next),?[ \t]{1,2}(?:solve|answer|consider|find|compute)\b[^\n:：]{0,40}[:：]"
    r"|(?:problem|question|exercise)[ \t]{1,2}[0-9]{1,4}[.)][ \t]"
    r"|(?:user|human|assistant|system)[ \t]{0,2}(?=\n)"
    r"|(?<=[#* ])(?:problem|question|exercise|instruction|task|example)(?:[ \t]{1,2}[0-9]{1,4})?"
    r"[ \t]{0,2}[*_]{0,3}[ \t]{0,2}(?=\n)"
    r"|(?:新的?|下一[道个個]?|另一[道个個]?)?"
    r"(?:问题|問題|题目|題目|例题|例題|例|习题|習題|练习|練習|问|問|用户|用戶|助手|系统|系統)"
    r"[ \t]{0,2}[0-9一二三四五六七八九十]{0,3}[*_】]{0,3}[ \t]{0,2}[:：]"
    r"|第[ \t]{0,2}[0-9一二三四五六七八九十]{1,3}[ \t]{0,2}[题題][ \t]{0,2}[:：])"
)
"""A new problem or role at the start of a line. The first line of a text can hold none that follows an answer."""
_PROBLEM_IN_LINE = re.compile(
    r"\[/?inst\]"
    r"|(?<=[.!?。！？}$])[ \t]{1,4}[*_]{0,3}(?:(?:new|next|another)[ \t]{1,2})?"
    r"(?:problem|question|exercise|user|human|task)(?:[ \t]{0,2}#?[0-9]{1,4})?[*_]{0,3}[ \t]{0,2}[:：]"
)
"""The same behind a finished sentence."""
_ANNOUNCING = ("problem", "question", "exercise", "user", "human", "task")
_MOST_MARKERS = 100
"""Markers before the first answer: `Q:` on every line."""
_FEW_MARKERS = 10
"""Markers before the first number."""


def run_on_at(text: Passage, markers: list[int]) -> int | None:
    """Where the model, having answered, goes on with a new problem or another role's turn."""
    begin = text.start
    for marker in markers:
        if has_answer(text.part(begin, marker)):
            return marker
        begin = marker
    return None


def new_problems(text: Passage) -> list[int]:
    """Where new problems and roles are announced, in order."""
    found = [
        marker.start() for marker in islice(_NEW_PROBLEM.finditer(text.lower, text.start, text.stop), _MOST_MARKERS)
    ]
    colon = ":" in text.lower or "：" in text.lower
    if (colon and any(word in text.lower for word in _ANNOUNCING)) or "inst]" in text.lower:
        in_line = islice(_PROBLEM_IN_LINE.finditer(text.lower, text.start, text.stop), _MOST_MARKERS)
        found = sorted([*found, *(marker.start() for marker in in_line)])
    return found


def run_on_after_number(text: Passage, markers: list[int]) -> int | None:
    """Where a new problem follows visible text whose number could be the answer."""
    for marker in markers[:_FEW_MARKERS]:
        if last_number(text.part(text.start, marker)) is not None:
            return marker
    return None
