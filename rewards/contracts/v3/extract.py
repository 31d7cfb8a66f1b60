"""From a response to the answer in it, under contract v3.

One policy, in this order: what is not addressed to the reader is cut (the thinking, the channels, whatever follows the
end of the turn); a new problem or role after an answer ends the search; then the last complete box; else the last
explicit statement (`The final answer is …`, `**Answer:** …`, `#### …`, `<answer>…`, `答案：…`, `故选 C`); else the last
number of the visible text with the mathematics it stands in. A box beats every sentence, and a span always points into
the response as it was given.

Decided on purpose:
- A box is empty, and counts as not written, if it holds blanks, dots, a question mark, `\\square` or the words of the
  instruction (`\\boxed{answer}`). The outer one of nested boxes is the box; the grammar reads the inner one.
- Without braces `\\boxed` takes a run of digits, one command with its arguments, a letter or a bracket; that is an
  answer, but no valid format. So is a last box that never closes, unless the response was cut off.
- Code fenced as a programming language, or as the output of a tool, holds no answer. Other fences do.
- A number glued or joined to mathematics brings it along: the last number of `5√3` is not 3, of `6 * 7` not 7.

Not covered: a conversation inside one response whose later turns think again (its last turn is read, unless a token
ends the first one), answers that only stand in a table or in judgements on every option, numerals written as words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from veriward.rewards.contracts.v3.limits import LIMITS
from veriward.rewards.extract import SPECIAL_TOKEN

THINKING: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""Opening and closing marks of thinking. Channels (`<|channel|>final<|message|>`) are read without an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What extraction made of one response."""

    candidate: str | None
    """The text to be judged, as written; joined boxes are joined by a comma and a blank. None if nothing was found."""
    how: str
    """boxed, statement, last_number or none."""
    span: tuple[int, int] | None
    """Where the candidate stands in the response; of joined boxes from the first content to the last."""
    format_valid: bool
    """A complete box that is not empty is the answer."""
    flags: tuple[str, ...] = ()
    """answer_in_reasoning, run_on, joined_boxes, hedged, unclosed_box, braceless_box, response_too_long."""


class _Text(NamedTuple):
    """The part of a response that is searched. All three texts have one length, so a place in one is a place in all."""

    response: str
    shown: str
    """Special tokens and code blanked."""
    lower: str
    start: int
    stop: int

    def part(self, start: int, stop: int) -> _Text:
        return _Text(self.response, self.shown, self.lower, start, stop)


class _Box(NamedTuple):
    marker: int
    start: int
    stop: int
    braced: bool
    closed: bool


Span = tuple[int, int]


def extract(
    response: str,
    *,
    reasoning: str = "",
    truncated: bool = False,
    joins: Callable[[], bool] | bool = False,
    delimiters: Sequence[tuple[str, str]] = THINKING,
) -> Found:
    """The candidate of a response, how it was found, and what is to be said about it.

    reasoning    what a chat message set apart as reasoning: never a source of the answer, only of a flag
    truncated    the response was cut off at its token limit
    joins        the expected answer has several parts; asked only where several boxes could be one answer
    delimiters   (opening, closing) marks of thinking, in any case; an empty mark is none
    """
    if len(response) > LIMITS.max_response_characters:
        return _nothing("response_too_long")
    lower = _lowered(response)
    stop, ran_on = _end_of_turn(response, lower)
    visible = _after_thinking(response, lower, stop, delimiters)
    truncated = truncated and not ran_on  # the turn ended before the cut
    flags = ("run_on",) if ran_on else ()
    if not visible.unclosed:
        text = _text(response, lower, visible.start, visible.stop)
        cut = _run_on(text)
        if cut is not None:
            text, truncated, flags = text.part(text.start, cut), False, ("run_on",)
        found = _in_boxes(text, truncated, joins, flags) or _in_words(text, truncated, flags)
        if found is not None:
            return found
    thought = _text(response, lower, *visible.thought)
    if _has_answer(thought) or (reasoning and _has_answer(_text_of(reasoning[: LIMITS.max_response_characters]))):
        flags = (*flags, "answer_in_reasoning")
    return _nothing(*flags)


def _in_boxes(text: _Text, truncated: bool, joins: Callable[[], bool] | bool, flags: tuple[str, ...]) -> Found | None:
    boxes = _boxes(text)
    if boxes and not boxes[-1].closed:
        if not truncated:
            return _found(text, (boxes[-1].start, boxes[-1].stop), "boxed", (*flags, "unclosed_box"))
        boxes.pop()
    elif truncated and boxes and not boxes[-1].braced and not text.shown[boxes[-1].stop : text.stop].strip():
        boxes.pop()  # `\boxed 5` could have become 57
    if not boxes:
        return None
    last = boxes[-1]
    run = _linked(text, boxes)
    if run.hedged:
        flags = (*flags, "hedged")
    elif len(run.boxes) > 1:
        if joins() if callable(joins) else joins:
            return Found(
                candidate=", ".join(text.response[box.start : box.stop] for box in run.boxes),
                how="boxed",
                span=(run.boxes[0].start, last.stop),
                format_valid=all(box.braced for box in run.boxes),
                flags=(*flags, "joined_boxes"),
            )
        if run.bare:
            flags = (*flags, "hedged")
    if not last.braced:
        flags = (*flags, "braceless_box")
    return _found(text, (last.start, last.stop), "boxed", flags, format_valid=last.braced)


def _in_words(text: _Text, truncated: bool, flags: tuple[str, ...]) -> Found | None:
    span = _last_statement(text, truncated)
    if span is not None:
        return _found(text, span, "statement", flags)
    if truncated:
        return None
    span = _last_number(text)
    if span is None:
        return None
    other = _ALTERNATIVE_BEFORE.search(text.shown, max(text.start, span[0] - 60), span[0])
    if other is not None:  # `x = 3 or x = 2` is one answer where two values are asked, and a hedge elsewhere
        return _found(text, (other.start(), span[1]), "last_number", flags)
    if _OR_BEFORE.search(text.lower, max(text.start, span[0] - 30), span[0]):
        flags = (*flags, "hedged")
    return _found(text, span, "last_number", flags)


def _found(text: _Text, span: Span, how: str, flags: tuple[str, ...], *, format_valid: bool = False) -> Found:
    candidate = text.response[span[0] : span[1]]
    return Found(candidate=candidate, how=how, span=span, format_valid=format_valid, flags=flags)


def _nothing(*flags: str) -> Found:
    return Found(candidate=None, how="none", span=None, format_valid=False, flags=flags)


def _has_answer(text: _Text) -> bool:
    """A box or a statement; a number alone says nothing."""
    return text.start < text.stop and bool(_boxes(text) or _last_statement(text, truncated=False, misses=4))


# ------------------------------------------------------------------------------------- what the reader sees

_TURN_END = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eot|endoftext|end_of_text|end_of_turn|eos|end|return|start_header_id|user)\|>"
    r"|<｜(?:end▁of▁sentence|user)｜>|</s>|<end_of_turn>|<start_of_turn>|<eos>"
)
_TURN_START = re.compile(r"\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</?s>|<(?:bos|eos|pad|start_of_turn|end_of_turn)>)")
_HARMONY_TURN_ENDS = frozenset({"<|end|>"})
"""In channel markup these end a message, not the turn."""
_STRUCK_BEFORE = re.compile(r"<s>[^<>\n\\]{1,40}\Z")
"""`<s>12</s> 15` strikes 12 out."""
_CHANNEL_MARK = "<|channel|>"
_FINAL_HEADER = re.compile(
    r"\s{0,3}final(?:[^<a-z][^<]{0,60})?(?:<\|constrain\|>[^<]{0,40})?<\|message\|>|\s{0,3}final(?![a-z<])"
)
_MESSAGE_END = re.compile(r"<\|(?:end|return|start|channel|call)\|>")
_STRIPPED_OPENING = re.compile(
    r"\s*(?:(?:analysis|commentary)(?=[^\W_]|[\\$]|[ \t]{0,4}[\r\n])|assistant(?:analysis|commentary))"
)
"""`analysisWe need …`: the marks were stripped and the channel's name is glued to its text. `Analysis of …` is text."""
_STRIPPED_FINAL = "assistantfinal"


def _lowered(text: str) -> str:
    """Lower-case, with every character in its place: `İ` is the only one that becomes two."""
    return text.replace("İ", "i").lower()


_INVISIBLE = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]{0,4}"
_VARIANTS = {"<": "[<＜]", ">": "[>＞]", "[": r"[\[［]", "]": r"[\]］]", "/": "[/／]", "|": "[|｜]"}
_NAMES = re.compile(r"[a-z_:]+")


class _Marks(NamedTuple):
    names: tuple[str, ...]
    """Without one of these in it, a text of ASCII characters has no mark."""
    pattern: re.Pattern[str]
    """Every opening and closing mark; the group `closing` holds one that closes."""


@lru_cache(maxsize=8)
def _marks_of(delimiters: tuple[tuple[str, str], ...]) -> _Marks:
    """A pattern for marks as models write them: with blanks, an attribute, wide or invisible characters in them."""
    openings = [_lowered(opening) for opening, _ in delimiters if opening]
    closings = [_lowered(closing) for _, closing in delimiters if closing]
    names = {max(_NAMES.findall(mark), key=len, default="") for mark in openings + closings}
    pattern = "|".join(
        [f"(?P<closing>{'|'.join(map(_spelled, closings)) or '(?!)'})", "|".join(map(_spelled, openings)) or "(?!)"]
    )
    return _Marks(tuple(sorted(names)), re.compile(pattern))


def _spelled(mark: str) -> str:
    pieces: list[str] = []
    for at, character in enumerate(mark):
        sign = _VARIANTS.get(character) or re.escape(character)
        if character.isascii() and character.isalpha():
            sign = f"[{character}{chr(ord(character) + 0xFEE0)}]"
        if at == len(mark) - 1 and character == ">" and mark[0] == "<" and mark[-2].isalpha():
            pieces.append(r"(?:[\s/]{1,4}[^<>＜＞]{0,60})?")
        elif at and not (character.isalpha() and mark[at - 1].isalpha()):
            pieces.append(rf"{_INVISIBLE}\s{{0,4}}{_INVISIBLE}")
        elif at:
            pieces.append(_INVISIBLE)
        if at == len(mark) - 1:
            pieces.append(_INVISIBLE)
        pieces.append(sign)
    return "".join(pieces)


def _end_of_turn(response: str, lower: str) -> tuple[int, bool]:
    """Where the turn ends, and whether more than special tokens follows."""
    if "<" not in lower:
        return len(lower), False
    begin = 0
    while (token := _TURN_START.match(lower, begin)) is not None:
        begin = token.end()
    harmony = _CHANNEL_MARK in lower
    for token in _TURN_END.finditer(lower, begin):
        if harmony and token[0] in _HARMONY_TURN_ENDS:
            continue
        if token[0] == "</s>" and _STRUCK_BEFORE.search(lower, max(begin, token.start() - 44), token.start()):
            continue
        rest = SPECIAL_TOKEN.sub("", response[token.end() :]).replace("<end_of_turn>", "")
        return token.start(), bool(rest.strip())
    return len(lower), False


class _Visible(NamedTuple):
    start: int
    stop: int
    thought: Span
    """What was cut in front; all of the turn where thinking never ended."""
    unclosed: bool


def _after_thinking(response: str, lower: str, stop: int, delimiters: Sequence[tuple[str, str]]) -> _Visible:
    """What is left of a turn behind its channels and its last closing mark of thinking."""
    start, cut, channels, opened, stop = _final_channel(response, lower, stop)
    begin = min(len(lower) - len(lower.lstrip()), stop)
    marks = _marks_of(delimiters if isinstance(delimiters, tuple) else tuple(delimiters))
    if not lower.isascii() or any(name in lower for name in marks.names):
        pending = False  # thinking that was opened in front of the channels, or behind them
        for mark in marks.pattern.finditer(lower, 0, stop):
            if mark["closing"] is not None:
                pending = False
                if mark.end() > start:
                    start, cut = mark.end(), mark.start()
            elif channels <= mark.start() < start or _is_mention(lower, mark):
                continue
            else:
                pending = True
                if mark.start() == begin:
                    begin = mark.end()
        opened = opened or pending
    return _Visible(start, stop, (begin, stop if opened else cut), opened)


def _is_mention(lower: str, mark: re.Match[str]) -> bool:
    """`<think>` between backticks."""
    return lower[mark.start() - 1 : mark.start()] == "`" and lower[mark.end() : mark.end() + 1] == "`"


def _final_channel(response: str, lower: str, stop: int) -> tuple[int, int, int, bool, int]:
    """Start of the final channel, where its header starts and where the first channel does, whether a channel that
    is not final is left open, and the stop."""
    first = lower.find(_CHANNEL_MARK, 0, stop) if _CHANNEL_MARK in lower else -1
    if first >= 0:
        at = lower.rfind(_CHANNEL_MARK, 0, stop)
        while at >= 0:
            header = _FINAL_HEADER.match(lower, at + len(_CHANNEL_MARK), stop)
            if header is not None:
                end = _MESSAGE_END.search(lower, header.end(), stop)
                return header.end(), at, first, False, stop if end is None else end.start()
            at = lower.rfind(_CHANNEL_MARK, 0, at)
        return 0, 0, stop, True, stop
    opened = _STRIPPED_OPENING.match(response) is not None
    marked = response.rfind(_STRIPPED_FINAL, 0, stop) if _STRIPPED_FINAL in response else -1
    if marked >= 0:
        return marked + len(_STRIPPED_FINAL), marked, 0 if opened else marked, False, stop
    return 0, 0, stop, opened, stop


_CODE = frozenset(
    {
        *(
            "py",
            "python",
            "python3",
            "ipython",
            "sage",
            "sagemath",
            "c",
            "cpp",
            "c++",
            "csharp",
            "c#",
            "java",
            "kotlin",
        ),
        *(
            "javascript",
            "js",
            "typescript",
            "ts",
            "go",
            "rust",
            "r",
            "ruby",
            "julia",
            "matlab",
            "octave",
            "mathematica",
        ),
        *("wolfram", "maple", "haskell", "lean", "lean4", "perl", "php", "lua", "swift", "scala", "sql", "html", "xml"),
        *("json", "bash", "sh", "shell", "console", "output", "stdout", "tool_call", "tool_response"),
    }
)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```+|~~~+)[ \t]*([^\s`{]*)", re.MULTILINE)


def _text_of(text: str) -> _Text:
    return _text(text, _lowered(text), 0, len(text))


def _text(response: str, lower: str, start: int, stop: int) -> _Text:
    """The part, with special tokens and code blanked."""
    part = response[start:stop]
    shown = part
    if "<" in part:
        shown = SPECIAL_TOKEN.sub(lambda token: " " * len(token[0]), shown)
    if "```" in part or "~~~" in part:
        shown = _without_code(shown)
    if "\\boxed" in part or "\\fbox" in part or "~~" in part or "<!--" in part:
        shown = _without_struck(shown)
    if shown is part:
        return _Text(response, response, lower, start, stop)
    shown = response[:start] + shown + response[stop:]
    return _Text(response, shown, _lowered(shown), start, stop)


_STRUCK = re.compile(
    r"~~[^~]{1,400}~~|<!--[^<>]{0,400}-->|<(del|strike)>[^<>]{0,400}</\1>"
    r"|\\begin\{comment\}[^\n]{0,400}?\\end\{comment\}"
    r"|(?:^[ \t]*|(?<=[^0-9\s}$)\\][ \t]))%[^\n]{0,400}",
    re.MULTILINE,
)
"""Struck out or commented. A per cent sign behind a number is none of a comment."""
_STRIKING = re.compile(r"\\(?:[bx]?cancel|sout|st|[hv]?phantom)\s{0,3}\{|\\[\\{}]|[{}]")


def _without_struck(text: str) -> str:
    """With what is struck out, commented or printed invisibly blanked."""
    if "~~" in text or "%" in text or "<!--" in text or "<del>" in text or "<strike>" in text or "{comment}" in text:
        text = _STRUCK.sub(lambda struck: _blanked(struck[0]), text)
    if "cancel" not in text and "\\sout" not in text and "\\st{" not in text and "phantom" not in text:
        return text
    pieces: list[str] = []
    done = depth = 0
    opened: tuple[int, int] | None = None
    for brace in _STRIKING.finditer(text):
        sign = brace[0]
        if sign == "}":
            depth -= depth > 0
            if opened is not None and depth == opened[1]:
                pieces += [text[done : opened[0]], _blanked(text[opened[0] : brace.end()])]
                done, opened = brace.end(), None
        elif sign[-1] == "{" and sign != "\\{":
            if opened is None and len(sign) > 1:
                opened = brace.start(), depth
            depth += 1
    pieces.append(text[done:])
    return "".join(pieces)


def _blanked(text: str) -> str:
    """Blanks; but a per cent sign or a command blanks nothing but a box."""
    return text if text.lstrip()[:1] in "\\%" and "boxed" not in text and "fbox" not in text else " " * len(text)


def _without_code(text: str) -> str:
    pieces: list[str] = []
    done, opened, code = 0, -1, False
    for fence in _FENCE.finditer(text):
        if opened < 0:
            opened, code = fence.start(), fence[1].lower() in _CODE
            code = code and not (fence[1].lower() == "json" and _ANSWER_KEY.search(text, fence.end(), fence.end() + 4000))
        elif not fence[1]:
            if code:
                pieces += [text[done:opened], " " * (fence.end() - opened)]
                done = fence.end()
            opened = -1
    if opened >= 0 and code:
        pieces += [text[done:opened], " " * (len(text) - opened)]
        done = len(text)
    pieces.append(text[done:])
    return "".join(pieces) if done else text


_ANSWER_KEY = re.compile(r'answer"\s{0,4}:')

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


_MOST_MARKERS = 100
"""Markers before the first answer: `Q:` on every line."""


def _run_on(text: _Text) -> int | None:
    """Where the model, having answered, goes on with a new problem or another role's turn."""
    begin = text.start
    for marker in _markers(text):
        if _has_answer(text.part(begin, marker)):
            return marker
        begin = marker
    return None


def _markers(text: _Text) -> list[int]:
    """Where new problems and roles are announced, in order."""
    found = [marker.start() for marker in islice(_NEW_PROBLEM.finditer(text.lower, text.start, text.stop), _MOST_MARKERS)]
    if any(word in text.lower for word in ("inst]", "problem", "question", "exercise", "user", "human", "task")):
        in_line = islice(_PROBLEM_IN_LINE.finditer(text.lower, text.start, text.stop), _MOST_MARKERS)
        found = sorted([*found, *(marker.start() for marker in in_line)])
    return found


def _run_on_after_number(text: _Text) -> int | None:
    """Where a new problem follows visible text whose number could be the answer."""
    for marker in _markers(text)[:_FEW_MARKERS]:
        if _last_number(text.part(text.start, marker)) is not None:
            return marker
    return None


_FEW_MARKERS = 10


# ------------------------------------------------------------------------------------------------- boxes

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


def _boxes(text: _Text) -> list[_Box]:
    """The outermost boxes that hold something, in order. Only the last can be one that never closes."""
    shown, stop = text.shown, text.stop
    first = _first_of_last(shown, text.start, stop)
    if first < 0:
        return []
    boxes: list[_Box] = []
    closing: dict[bool, dict[int, int]] = {}
    unclosed: re.Match[str] | None = None
    covered = first
    for marker in _BOX.finditer(shown, first, stop):
        if marker.start() < covered:
            continue
        at = marker.end()
        if not shown.startswith("{", at) or at >= stop:
            bare = _BARE.match(shown, at, stop)
            if bare is not None and not _is_empty(shown[at : bare.end()]):
                boxes.append(_Box(marker.start(), at, bare.end(), braced=False, closed=True))
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
        inner = _trimmed(shown, at + 1, close)
        if not _is_empty(shown[slice(*inner)]):
            boxes.append(_Box(marker.start(), *inner, braced=True, closed=True))
            unclosed = None
    if unclosed is not None:
        span = _unclosed_content(text, unclosed.end() + 1)
        if not _is_empty(shown[slice(*span)]):
            boxes.append(_Box(unclosed.start(), *span, braced=True, closed=False))
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


def _unclosed_content(text: _Text, start: int) -> Span:
    """To the end of its sentence, line or formula."""
    limit = min(text.stop, start + LIMITS.max_answer_characters + 1)
    end = _BOX_BREAK.search(text.shown, start, limit)
    return _stripped(text, start, limit if end is None else end.start())


def _is_empty(content: str) -> bool:
    if content[:1].isdigit():
        return False
    if len(content) <= 40 and _WRAP.sub(r"\1", content).strip(" .[]<>$").lower() in _PLACEHOLDERS:
        return True
    return _EMPTY.fullmatch(content) is not None


_LINK_LENGTH = 80
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]|\n[ \t]*\n")
_OR = (
    r"(?:\b(?:n?or|oder|ou|alternatively|otherwise|else|versus|vs|maybe|perhaps|possibly|if\s+not)\b"
    r"(?!\s+(?:rather|better|equivalently))|\\l?or(?![a-z])|\\vee(?![a-z])|/|\||或|还是|還是|(?:也|又|还|還)?(?:可能|也许|也許)|要么|要麼)"
)
_HEDGE = re.compile(_OR)
_HEDGE_AFTER_BOX = re.compile(rf"[\s$*,，.。;；:?？!—–)\]\\-]{{0,12}}{_OR}")
_HEDGE_BEFORE_BOX = re.compile(rf"{_OR}[\s$*:：,，是(\[\\]{{0,12}}\Z")
_SLASH_ONLY = re.compile(r"[\s$*]*[/|][\s$*]*\Z")
_BOTH_AFTER = re.compile(r"[\s$*})]{0,6},?\s{0,2}(?:or\s+(?:both|either|neither|all|none)|(?:n?either|one)\s+of)\b")
_HEDGE_BEFORE_RUN = re.compile(
    r"(?:\b(?:not|neither|either(?!\s+way)|nor|or|one\s+of|any\s+of|some\s+of|perhaps|maybe|possibly|(?:could|might|may)\s+be)\b"
    r"|不是|不为|或|要么|之一(?:是|为)?)(?:\s+(?:the|a|an|of|all|both|be|these|following|values?|numbers?|answers?|options?))*"
    r"[\s$*:：,(\[\\{]{0,8}(?:[a-z]\s?=\s?)?[\s$\\]{0,3}\Z"
)
_DENIED_BEFORE_BOX = re.compile(
    r"(?:\b(?:not|never|neither|cannot\s+be)|n't(?:\s+be)?|\\neq?|≠|不是|不为|不等于)(?:\s+(?:equal\s+to|the|a|just|simply))?[\s$*:：\\(\[]{0,8}\Z"
)
_JOINT = re.compile(r"[,，、]|\band\b|[和与與及]")
_PLAIN_LINK = re.compile(r"(?:[\s$,，、*{}]|\\[()\[\],;: ]|\\q?quad(?![a-z])|\\text(?:rm)?\{\s{0,3}(?:and|,)?\s{0,3}\}|[和与與及]|and\b)*+")
"""Nothing but a comma or `and`: one value is asked, and these are several."""
_NAME_BEFORE = re.compile(r"([a-z](?:_\{?[a-z0-9]{1,3}\}?)?)\s?=\s?[\s$]*\\?\Z")
_LINK = re.compile(
    r"(?:[\s$,，、*]|\\[()\[\],;: ]|\\q?quad(?![a-z])|\\text(?:rm)?\{\s{0,3}(?:and|or|,)?\s{0,3}\}|[和与與及以或]"
    r"|(?:and|or|the|other|second|third|fourth|last|one|root|solution|value|is|are)\b"
    r"|[a-z](?:_\{?[a-z0-9]{1,3}\}?)?\s?(?:=|≈|为|是|\bis\b)|[{}])*+"
)
"""All that may stand between two boxes that are parts of one answer."""


class _Run(NamedTuple):
    boxes: list[_Box]
    """Those at the end that one sentence lists."""
    hedged: bool
    """They are offered as alternatives, or denied."""
    bare: bool
    """Two of them have nothing but a comma or `and` between them."""


def _linked(text: _Text, boxes: list[_Box]) -> _Run:
    """The boxes at the end that belong together, and how."""
    run = [boxes[-1]]
    bare = False
    if _BOTH_AFTER.match(text.lower, boxes[-1].stop, text.stop):
        return _Run(run, len(boxes) > 1, False)
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
            if _HEDGE_AFTER_BOX.match(between) or _HEDGE_BEFORE_BOX.search(text.lower, tail, after.marker):
                return _Run(run, True, False)
        if not whole or _SENTENCE_END.search(between):
            break
        if not roots and not same and _HEDGE.search(between):
            return _Run(run, True, False)
        joint = roots or _JOINT.search(between)
        if not (joint and _LINK.fullmatch(between.rstrip("\\"))):
            break
        bare = bare or (not same and (roots or _PLAIN_LINK.fullmatch(between.rstrip("\\")) is not None))
        run = run if same else [box, *run]
    first = run[0].marker
    before = text.lower[max(text.start, first - 60) : first]
    pattern = _HEDGE_BEFORE_RUN if len(run) > 1 else _DENIED_BEFORE_BOX
    return _Run(run, pattern.search(before) is not None, bare)


def _name_of(text: _Text, box: _Box) -> str:
    name = _NAME_BEFORE.search(text.lower, max(text.start, box.marker - 30), box.marker)
    return "" if name is None else name[1]


# --------------------------------------------------------------------------------------------- statements

_ADVERB = (
    r"(?:indeed|therefore|thus|then|simply|just|clearly|hence|also|still|now|probably|likely|approximately|about|roughly"
    r"|exactly|precisely|actually|definitely|given\s+by|equal\s+to|as\s+follows)"
)
_ANSWER = re.compile(
    r"answers?(?:\s{1,3}(?:choice|option))?(?:\s{1,3}(?:to|for|of)\s{1,3}[^\n.:：?!]{1,80}?)?[*_]{0,3}(?:"
    r"(?P<verb>\s{1,3}(?:is|are|was|were|equals|becomes|(?:would|will|must|should|has\s+to|ought\s+to)\s+be"
    r"|(?:comes|turns)\s+out\s+(?:to\s+be|as))\b"
    rf"(?:\s{{1,3}}{_ADVERB}\b){{0,2}}(?:[*_]{{0,3}}\s{{0,2}}[:：])?)"
    r"|(?P<label>[ \t]{0,2}[:：=])|(?P<heading>[ \t]{0,4}(?=\n)))"
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
_NO_VALUE = re.compile(
    r"(?:(?:in)?correct|wrong|reasonable|consistent|valid|verified|confirmed|plausible|obtained|found|below|above"
    r"|in\s+the\s+(?:form|format|box)|in\s+(?:simplest|lowest)|expected|supposed|the\s+same|what|right\Z|not\s+yet)\b"
    r"|正确的?\Z|正確的?\Z|对的\Z|错误的?\Z|合理的?\Z"
)
"""`The answer is correct` says nothing about which."""
_PROSE = re.compile(r"(?:let(?:'s)?|we|i|first|to|since|because|given|here|this|start|step|by|in\s+order|using)[\s,]")
"""`Answer: Let us count …` opens the working, as base models do."""
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
_WORDS = re.compile(r"(?<![\\a-z])[a-z]{2,}")
_NUMBERS = re.compile(r"[0-9][0-9,.]*")
_DOUBTS = re.compile(r"\b(?:or|either|not|no|between|least|most|less|more|than|if|except)\b")
_SENTENCE = re.compile(
    rf"(?P<subject>[^=$\\0-9\n]*)\b(?:is|are|equals)\s+(?:{_ADVERB}\s+)?(?=[-+−$\\(\[{{*0-9√π.])"
    r"|[一-鿿]{1,20}?(?<![不非])(?:等于|等於|为|為|是)(?=[-+−$\\(\[{*0-9０-９√π.一二三四五六七八九十])"
)
_FEW_WORDS = 6

_CLAUSE = 2_000
"""Characters of a clause that are read; what is longer is no value, and the grammar will say so."""
_HEADS = 1_000
"""Words that could open a statement, looked at from the end: `answer answer answer …`."""
_MISSES = 16
"""Clauses read that gave no value: `answer: is x are answer: is x are …`."""

_Stated = tuple[int, int, bool] | Literal[False] | None
"""Start and end of a value, and whether something ended it before the text did. None: the word opens no statement.
False: it does, and what follows is no value."""


def _last_statement(text: _Text, truncated: bool, misses: int = _MISSES) -> Span | None:
    """The last place where the text says which its answer is; if cut off, one that ended before the cut."""
    best: Span | None = None
    floor, heads = text.start, _HEADS
    for keyword, read in _READERS:
        at = text.lower.rfind(keyword, floor, text.stop)
        while at >= 0 and heads and misses:
            heads -= 1
            stated = read(text, at)
            if stated and (stated[2] or not truncated):
                best, floor = stated[:2], at
                break
            misses -= stated is not None
            at = text.lower.rfind(keyword, floor, at)
    return best


def _read_answer(text: _Text, at: int) -> _Stated:
    """`The final answer is …`, `**Answer:** …`, a heading `### Final Answer`, `<answer>…`."""
    lower = text.lower
    before = lower[at - 1] if at > text.start else ""
    if before == "<" and lower.startswith(">", at + 6):
        return _read_tag(text, at + 7)
    head = _ANSWER.match(lower, at, text.stop)
    if head is None or (before in "/_" and before) or "a" <= before <= "z":
        return None
    line = max(lower.rfind("\n", max(text.start, at - 200), at) + 1, text.start, at - 200)
    if head["heading"] is not None and not _HEADING_BEFORE.fullmatch(lower, line, at):
        return None
    if _NOT_STATED.search(lower, max(text.start, at - 40), at) or _supposed(lower, line, at):
        return None
    return _value(text, _after_head(text, line, head.end()), label=head["verb"] is None)


def _supposed(lower: str, line: int, at: int) -> bool:
    """The sentence before this place opens with a condition: `If it asks for x, then the answer is 5`."""
    begin = max(lower.rfind(". ", line, at) + 2, line) if ". " in lower[line:at] else line
    return lower[begin:at].lstrip(" *_(").startswith(("if ", "suppose ", "assuming ", "had ", "should "))


def _read_tag(text: _Text, start: int) -> _Stated:
    limit = min(text.stop, start + _CLAUSE)
    end = text.lower.find("</answer>", start, limit)
    if end < 0:
        return _value(text, _after_head(text, start, start), label=True)
    span = _stripped(text, start, end)
    return not _says_nothing(text, span) and (*(_narrowed(text, span) or span), True)


def _read_option(text: _Text, at: int) -> _Stated:
    """`The correct option is C`."""
    head = _OPTION.match(text.lower, at, text.stop)
    if head is None or not _OPTION_BEFORE.search(text.lower, max(text.start, at - 24), at):
        return None
    line = max(text.lower.rfind("\n", max(text.start, at - 200), at) + 1, text.start, at - 200)
    return _value(text, _after_head(text, line, head.end()), label=False)


def _read_chinese(text: _Text, at: int) -> _Stated:
    """`答案：…`, `答案是…`, `故答案为：…`."""
    lower = text.lower
    head = _CHINESE_ANSWER.match(lower, at, text.stop)
    if head is None or _NOT_STATED.search(lower, max(text.start, at - 8), at):
        return None
    line = max(lower.rfind("\n", max(text.start, at - 200), at) + 1, text.start, at - 200)
    if head["heading"] is not None and not re.fullmatch(r"[\s#*>_-]*(?:最终|最終|正确|正確)?", lower[line:at]):
        return None
    return _value(text, _after_head(text, line, head.end()), label=True)


def _read_chosen(text: _Text, at: int) -> _Stated:
    """`故选 C`, `正确选项为 B`."""
    chosen = _CHOSEN.match(text.lower, at, text.stop)
    if chosen is None:
        return None
    named = text.lower[at + 1 : at + 2] in ("项", "項")
    if not named and at > text.start and not _CHOSEN_BEFORE.search(text.lower, max(text.start, at - 4), at):
        return None
    return chosen.start(1), chosen.end(1), chosen.end() < text.stop


def _read_hashes(text: _Text, at: int) -> _Stated:
    """`#### 96`; a heading of the fourth level is none."""
    line = text.lower.rfind("\n", max(text.start, at - 4), at)
    if (line < 0 and at - text.start >= 4) or text.lower[max(line + 1, text.start) : at].strip():
        return None
    return _read_line(text, at + 4)


def _read_letter(text: _Text, at: int) -> _Stated:
    """`A: 96` on a line of its own, as few-shot prompts write it; the first of several options is none."""
    stated = _read_line(text, at + 3)
    if not stated:
        return stated
    following = text.lower[stated[1] : stated[1] + 40].lstrip(" .\n*")
    return None if following.startswith(("b:", "b)", "b.", "b：")) else stated


def _read_line(text: _Text, start: int) -> _Stated:
    """The rest of a line, if it is a bare value."""
    lower = text.lower
    limit = min(text.stop, start + _CLAUSE)
    end = lower.find("\n", start, limit)
    span = _trimmed(lower, start, limit if end < 0 else end)
    if not _BARE_NUMBER.fullmatch(lower, *span):
        return None
    span = _stripped(text, *span)
    return not _says_nothing(text, span) and (*span, end >= 0)


_READERS: tuple[tuple[str, Callable[[_Text, int], _Stated]], ...] = (
    ("answer", _read_answer),
    ("答案", _read_chinese),
    ("选", _read_chosen),
    ("選", _read_chosen),
    ("####", _read_hashes),
    ("option", _read_option),
    ("choice", _read_option),
    ("\na:", _read_letter),
)


def _after_head(text: _Text, line: int, start: int) -> int:
    """Where the value starts: behind blanks, up to three line ends, and the end of a label in bold type."""
    if text.lower.startswith("**", start) and text.lower.count("**", line, start) % 2 == 1:
        start += 2
    blanks = _HEAD_BLANKS.match(text.lower, start, text.stop)
    return start if blanks is None else blanks.end()


_BULLET = re.compile(r"(?:[-*•+]|[0-9]{1,2}[.)])[ \t]{1,4}(?=\S)")
_BULLETS = re.compile(r"(?:[^\n]{0,400}\n\s{0,4}(?:[-*•+]|[0-9]{1,2}[.)])[ \t]{1,4}(?=\S)){1,20}[^\n]{0,400}")


def _value(text: _Text, start: int, *, label: bool) -> _Stated:
    """The value that a sentence or label gives, without what the clause says further."""
    if "\n" in text.lower[max(text.start, start - 6) : start] and (
        bullet := _BULLET.match(text.lower, start, text.stop)
    ):
        items = _BULLETS.match(text.lower, start, text.stop)
        if items is not None:  # several items are one answer, or none
            return (*_stripped(text, start, items.end()), items.end() < text.stop)
        start = bullet.end()
    if label and _PROSE.match(text.lower, start, text.stop):
        return False
    if _NO_VALUE.match(text.lower, start, text.stop) or text.lower.startswith(("\\boxed", "\\fbox"), start):
        return False
    end, closed, asked = _clause_end(text, start)
    span = _stripped(text, start, end)
    if asked or _says_nothing(text, span):
        return False
    narrow = _narrowed(text, span) if label else span
    return narrow is not None and (*narrow, closed)


def _says_nothing(text: _Text, span: Span) -> bool:
    content = text.lower[slice(*span)]
    return "\\boxed" in content or "\\fbox" in content or _is_empty(content)


def _narrowed(text: _Text, span: Span) -> Span | None:
    """The value of a sentence that stands behind a label: `Answer: The area is 12` gives 12; None if it gives none."""
    content = text.lower[slice(*span)]
    sentence = _SENTENCE.match(content)
    if sentence is not None and not _DOUBTS.search(sentence["subject"] or ""):
        return _stripped(text, span[0] + sentence.end(), span[1])
    words = len(_WORDS.findall(content))
    if words < 3 or _DOUBTS.search(content):
        return span if words < _FEW_WORDS else None
    if len(_NUMBERS.findall(content)) == 1:
        return _last_number(text.part(*span)) or span
    return span if words < _FEW_WORDS else None


# ------------------------------------------------------------------------------------------------ clauses

_BREAK = re.compile(
    r"\\[\\,;:!.{}$]|\n|[.。．!！?？;；,，]|[({\[（【〔［｛]|[)}\]）】〕］｝]|\${1,2}|\\[()\[\]]"
    r"|\s(?:because|since|so|but|which|although|though|as(?=\s[a-z]{2})|due\s+to|based\s+on|after|rather\s+than)\b"
    r"|因为|因為|由于|由於|理由|</|<\||<br|\s[—–-]{1,3}\s(?=[a-z]{2})|——"
)
_GOES_ON = re.compile(
    r"[,，;；]\s{0,3}(?:(?:and|or)\s{1,3}|[和或与及]\s{0,2})?(?:[-+−±－＋($\\\[{（［｛*0-9０-９.√π∞]"
    r"|[a-z](?![a-z])(?!\s+[a-z])|[一-鿿](?=[=＝])|(?:pi|sqrt|sin|cos|tan|log|ln|exp|infinity)\b)"
)
"""Behind the comma the value goes on: `5, 6`, `x = 1, y = 2`, `3, and 4`."""
_OPENING = frozenset("({[（【〔［｛")
_CLOSING = frozenset(")}]）】〕］｝")
_MATHS = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]"}


def _clause_end(text: _Text, start: int) -> tuple[int, bool, bool]:
    """Where the clause that begins here ends, whether before the text does, and whether it is a question."""
    lower = text.lower
    limit = min(text.stop, start + _CLAUSE)
    depth, at = 0, start
    absent: set[str] = set()
    while (mark := _BREAK.search(lower, at, limit)) is not None:
        sign, at = mark[0], mark.end()
        if sign in _MATHS:
            closing = _MATHS[sign]
            end = -1 if closing in absent else _formula_end(lower, sign, at, limit)
            if end >= 0:
                at = end
                if lower[mark.end() : at - len(closing)].rstrip().endswith("."):
                    return at, at < text.stop, False
            elif sign[0] == "\\":
                absent.add(closing)
        elif sign[-1] in _OPENING:
            depth += 1
        elif sign[-1] in _CLOSING:
            depth = max(0, depth - 1)
        elif sign[0] == "\\":
            continue  # `\,`, `\$`
        elif sign == "\n":
            return mark.start(), True, False
        elif _ends_clause(lower, mark, depth, limit):
            factorial = sign == "!" and mark.start() > start and lower[mark.start() - 1] in _FACTORIAL_OF
            end = mark.end() if factorial else mark.start()
            certain = mark.end() < text.stop or sign in "。！？！"
            return end, certain, sign in "?？"
    return limit, limit < text.stop, False


_FACTORIAL_OF = frozenset("0123456789abcdefghijklmnopqrstuvwxyz)}")


def _formula_end(lower: str, opening: str, start: int, limit: int) -> int:
    """Behind the closing mark of a formula, or -1. A `$` that no formula closes is a currency sign."""
    closing = _MATHS[opening]
    end = lower.find(closing, start, limit)
    while end > 0 and closing == "$" and lower[end - 1] == "\\":
        end = lower.find(closing, end + 1, limit)
    if end < 0:
        return -1
    if opening == "$":
        content = lower[start:end]
        if not content or (content[0].isspace() and content[-1].isspace() is False) or "\n" in content:
            return -1
        if content[0].isdigit() and content[-1].isspace():
            return -1
    return end + len(closing)


def _ends_clause(lower: str, mark: re.Match[str], depth: int, limit: int) -> bool:
    sign, at = mark[0], mark.start()
    if sign in "。！？":
        return True
    if depth and sign not in ("</", "<|"):
        return False
    if sign in ",，;；":
        return _GOES_ON.match(lower, at, limit) is None
    after = lower[at + 1 : at + 2] if at + 1 < limit else ""
    if sign in ".．":
        if after.isdigit() or after == "." or lower[at - 1 : at] == "." or after == ",":
            return False
        if (after == "m" and lower[at - 1 : at] in ("a", "p")) or lower[at - 3 : at] in ("a.m", "p.m"):
            return False  # 5 p.m.
        return not after.isalpha() or lower[at - 1 : at] in "0123456789$)}]*" or not after.isascii()
    if sign == "!":
        return after.isspace() or not after or after == "*"
    return True


_PAIRS = (("**", "**"), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("`", "`"), ("*", "*"), ("__", "__"))
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"), ("『", "』"))
_TRAILING = frozenset(".,;:，。；、：．")
_BLANK = " \t\n\r\f\v\u3000\u00a0"


def _trimmed(text: str, start: int, stop: int) -> Span:
    """The span without blanks at its ends; empty spans end where they start."""
    while start < stop and text[stop - 1].isspace() and not (text[stop - 2] == "\\" and start < stop - 1):
        stop -= 1
    while start < stop and text[start].isspace():
        start += 1
    return start, stop


def _stripped(text: _Text, start: int, stop: int) -> Span:
    """The span without blanks, final punctuation, bold type, and the `$` or quotes around the whole of it."""
    shown = text.shown
    for _ in range(8):
        before = start, stop
        start, stop = _trimmed(shown, start, stop)
        while start < stop and shown[stop - 1] in _TRAILING:
            if shown.endswith("...", start, stop) or shown.endswith(".m.", start, stop):
                break
            stop -= 1
        if shown.endswith(")", start, stop) and shown.count(")", start, stop) > shown.count("(", start, stop):
            stop -= "[" not in shown[start:stop] and "]" not in shown[start:stop]
        start, stop = _trimmed(shown, start, stop)
        for opening, closing in (*_PAIRS, *_QUOTES):
            width = len(opening)
            if stop - start <= width + len(closing):
                continue
            if not (shown.startswith(opening, start, stop) and shown.endswith(closing, start, stop)):
                continue
            if opening not in shown[start + width : stop - len(closing)].replace("\\$", ""):
                start, stop = start + width, stop - len(closing)
                break
        if shown.startswith("**", start, stop) and shown.find("**", start + 2, stop) < 0:
            start += 2
        if shown.endswith("**", start, stop) and shown.find("**", start, stop - 2) < 0:
            stop -= 2
        if (start, stop) == before:
            break
    return start, stop


# ----------------------------------------------------------------------------------------- the last number

_DIGITS = "0123456789"
_OTHER_DIGITS = "０１２３４５６７８９½⅓⅔¼¾⅕⅛"
_LONGEST = 300
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
    r"|(?:[Ss]tep|[Pp]art|[Cc]ase|STEP)[ \t]{1,2}[0-9]{1,2}[.:)*]|第[0-9]{1,2}[步题題部][：:]?)"
)
"""The number of a step or list item, which is no answer."""
_MOST_ITEMS = 20
_OR_BEFORE = re.compile(
    r"(?:\bn?or|\bversus|\bvs\.?|或者?|还是|還是)\s*(?:maybe|perhaps|possibly|about|even)?\s*[$(\\*\[{]*\Z"
)

_ALTERNATIVE_BEFORE = re.compile(
    r"(?<![A-Za-z0-9.,])(?:[A-Za-z][ \t]?=[ \t]?)?[-−+]?[0-9]{1,20}(?:[./][0-9]{1,20})?[ \t]?,?[ \t]?"
    r"(?:\bor\b|或者?)[ \t]?(?:[A-Za-z][ \t]?=[ \t]?)?\Z"
)


def _last_number(text: _Text) -> Span | None:
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


def _formula_around(text: _Text, at: int) -> Span | None:
    """What a formula that holds this place gives, if the formula is short and stands alone."""
    shown = text.shown
    low, high = max(text.start, at - _LONGEST), min(text.stop, at + _LONGEST)
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
        span = _stripped(text, begin + len(opening), end)
        if end - begin > _LONGEST or _ALIGNED.search(shown, *span):
            return None
        return _right_side(text, span, at)
    return None


def _dollars(text: str, start: int, stop: int) -> int:
    return text.count("$", start, stop) - text.count("\\$", start, stop)


def _right_side(text: _Text, span: Span, at: int) -> Span:
    """Behind the last equals sign, unless the formula lists several things."""
    sign = _last_match(_EQUALS, text.shown, *span)
    if sign is None:
        return span
    content, left = text.shown[slice(*span)], text.shown[span[0] : sign.start()]
    if "\\begin" in content or _is_equation(content):
        return span
    if any(left.count(opening) != left.count(_PARTNER[opening]) for opening in "({"):
        return span
    right = _stripped(text, sign.end(), span[1])
    return right if right[0] <= at < right[1] and not _LIST_COMMA.search(content) else span


_UNKNOWN = re.compile(r"(?<![A-Za-z\\])[xyz](?![A-Za-z])")


def _is_equation(content: str) -> bool:
    """`5x - 7y + 4 = 0` is the answer, and not 0; of `S = 3 + 4 = 7` the last part is."""
    left, sign, right = content.partition("=")
    return (
        bool(sign) and "=" not in right and bool(_UNKNOWN.search(left)) and bool(_SUM_OR_POWER.search(left.strip()[1:]))
    )


_SUM_OR_POWER = re.compile(r"[-+−^²³]")


def _plain_number(text: _Text, at: int) -> Span | None:
    shown = text.shown
    low, high = max(text.start, at - _LONGEST), min(text.stop, at + _LONGEST)
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
    return _trimmed(shown, start, stop)


_LONG_WORD = re.compile(r"(?<!\\)[A-Za-z]{3,}")


def _with_bracket(text: str, start: int, stop: int, low: int) -> int:
    """From the bracket that this token closes: `[1, 2]` is not 2. A remark in brackets stays apart."""
    while stop > start and text[stop - 1] in _RIGHT_EDGE:
        stop -= 1
    if text[stop - 1] not in _CLOSING:
        return start
    token = text[start:stop]
    depth = sum(token.count(sign) for sign in _CLOSING) - sum(token.count(sign) for sign in _OPENING)
    at = start
    while depth > 0 and at > low and text[at - 1] != "\n":
        at -= 1
        depth += (text[at] in _CLOSING) - (text[at] in _OPENING)
    if depth or _LONG_WORD.search(text, at, start):
        return start
    while at > low and _glued(text, at - 1):
        at -= 1
    return at


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
        if start < stop and _alone(text, text[start], start, stop) and text[start] in "([{)]}":
            start += 1
        if start < stop and _alone(text, text[stop - 1], start, stop) and text[stop - 1] in ")]}$!":
            stop -= 1
        if text.startswith("$", start, stop) and text.endswith("$", start, stop) and stop - start > 2:
            start, stop = start + 1, stop - 1
        if (start, stop) == before:
            break
    return start, stop


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
