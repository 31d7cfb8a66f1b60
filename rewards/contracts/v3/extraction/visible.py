"""What of a response is addressed to its reader: no thinking, no other channel, no code, nothing struck out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from veriward.rewards.contracts.v3.extraction.hidden import opens_text, without_code, without_hidden
from veriward.rewards.extract import SPECIAL_TOKEN


class Passage(NamedTuple):
    """The part of a response that is searched. All three texts have one length, so a place in one is a place in all."""

    response: str
    shown: str
    """Special tokens and code blanked."""
    lower: str
    start: int
    stop: int

    def part(self, start: int, stop: int) -> Passage:
        return Passage(self.response, self.shown, self.lower, start, stop)


Span = tuple[int, int]
_TURN_END = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eot|endoftext|end_of_text|end_of_turn|eos|end|return|start_header_id|user)\|>"
    r"|<｜(?:end▁of▁sentence|user)｜>|</s>|<end_of_turn>|<start_of_turn>|<eos>"
)
_TURN_START = re.compile(r"\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</?s>|<(?:bos|eos|pad|start_of_turn|end_of_turn)>)")
_HARMONY_TURN_ENDS = frozenset({"<|end|>"})
"""In channel markup these end a message, not the turn."""
_STRUCK_BEFORE = re.compile(r"<s>(?:\s{0,5}[^\s<>\\][^<>\n\\]{0,40}|(?P<box>[\s$*({\[\\]{0,9}\\f?box[^<>]{0,120}))\Z")
"""`<s>12</s> 15` strikes 12 out."""
_CHANNEL_MARK = "<|channel|>"
_FINAL_HEADER = re.compile(
    r"\s{0,3}final(?:[^<a-z][^<]{0,60})?(?:<\|constrain\|>[^<]{0,40})?<\|message\|>|\s{0,3}final(?![a-z<])"
)
_MESSAGE_END = re.compile(r"<\|(?:end|return|start|channel|call)\|>")
_STRIPPED_OPENING = re.compile(
    r"\s*(?:(?:analysis|commentary)(?=[^\W_]|[\\$]|[ \t]{0,4}[\r\n]|[ \t][A-Z])|assistant(?:analysis|commentary))"
)
"""`analysisWe need …`: the marks were stripped and the channel's name is glued to its text. `Analysis of …` is text."""
_STRIPPED_FINAL = "assistantfinal"


def lowered(text: str) -> str:
    """Lower-case, with every character in its place: `İ` is the only one that becomes two."""
    return text.replace("İ", "i").lower()


_INVISIBLE = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]{0,4}"
_VARIANTS = {"<": "<＜", ">": ">＞", "[": r"\[［", "]": r"\]］", "/": "/／", "|": "|｜"}
_NAMES = re.compile(r"[a-z_:]+")


class _Marks(NamedTuple):
    names: tuple[str, ...]
    """Without one of these in it, a text of ASCII characters has no mark."""
    pattern: re.Pattern[str]
    """Every opening and closing mark; the group `closing` holds one that closes."""


@lru_cache(maxsize=8)
def _marks_of(delimiters: tuple[tuple[str, str], ...]) -> _Marks:
    """A pattern for marks as models write them: with blanks, an attribute, wide or invisible characters in them."""
    openings = [lowered(opening) for opening, _ in delimiters if opening]
    closings = [lowered(closing) for _, closing in delimiters if closing]
    names = {max(_NAMES.findall(mark), key=len, default="") for mark in openings + closings}
    leads = "".join(sorted({_VARIANTS.get(mark[0], re.escape(mark[0])) for mark in openings + closings}))
    closing, opening = ("|".join(map(_spelled, marks)) or "(?!)" for marks in (closings, openings))
    pattern = f"[{leads}](?:(?P<closing>{closing})|{opening})" if leads else "(?!)(?P<closing>)"
    return _Marks(tuple(sorted(names)), re.compile(pattern))


def _spelled(mark: str) -> str:
    """A pattern for a mark behind its first character, which was matched with those of the others."""
    pieces: list[str] = []
    for at, character in enumerate(mark):
        sign = _VARIANTS.get(character, re.escape(character))
        if character.isascii() and character.isalpha():
            sign += chr(ord(character) + 0xFEE0)
        sign = f"[{sign}]"
        if at == len(mark) - 1 and character == ">" and mark[0] == "<" and mark[-2].isalpha():
            pieces.append(r"(?:\s[^<>＜＞]{0,60})?(?<!/)")
        elif at and not (character.isalpha() and mark[at - 1].isalpha()):
            pieces.append(rf"{_INVISIBLE}\s{{0,4}}{_INVISIBLE}")
        elif at:
            pieces.append(_INVISIBLE)
        if at == len(mark) - 1:
            pieces.append(_INVISIBLE)
        pieces.append(f"(?<={sign})" if at == 0 else sign)
    return "".join(pieces)


def end_of_turn(response: str, lower: str) -> tuple[int, bool]:
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
        if token[0] == "</s>" and _ends_struck(lower, begin, token.start()):
            continue
        rest = SPECIAL_TOKEN.sub("", response[token.end() :]).replace("<end_of_turn>", "")
        return token.start(), bool(rest.strip())
    return len(lower), False


def _ends_struck(lower: str, begin: int, at: int) -> bool:
    struck = _STRUCK_BEFORE.search(lower, max(begin, at - 130), at)
    return struck is not None and (struck["box"] is None or not opens_text(lower, begin, struck.start()))


class Visible(NamedTuple):
    start: int
    stop: int
    thought: Span
    """What was cut in front; all of the turn where thinking never ended."""
    unclosed: bool


def after_thinking(response: str, lower: str, stop: int, delimiters: Sequence[tuple[str, str]]) -> Visible:
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
    return Visible(start, stop, (begin, stop if opened else cut), opened)


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


def passage_of(text: str) -> Passage:
    return passage(text, lowered(text), 0, len(text))


def passage(response: str, lower: str, start: int, stop: int) -> Passage:
    """The part, with special tokens and code blanked."""
    part = response[start:stop]
    shown = part
    if "\\boxed" in part or "\\fbox" in part or "~~" in part or "<!--" in part or "</" in part:
        shown = without_hidden(shown)
    if "<" in part:
        shown = SPECIAL_TOKEN.sub(lambda token: " " * len(token[0]), shown)
    if "```" in part or "~~~" in part:
        shown = without_code(shown)
    if shown is part:
        return Passage(response, response, lower, start, stop)
    shown = response[:start] + shown + response[stop:]
    return Passage(response, shown, lowered(shown), start, stop)
