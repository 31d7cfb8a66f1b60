"""What of a response is addressed to its reader: no thinking, no other channel, no code, nothing struck out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

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
_OPENS_TEXT = re.compile(
    r"(?:\A|(?:think\w{0,3}|thought|reasoning|reflection|scratchpad|inst)\s?[\]>]|[|｜]>|<s>|</s>|▷)\s{0,40}\Z",
    re.IGNORECASE,
)
"""In front of the token `<s>`; anywhere else it strikes a box out."""
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
    return struck is not None and (struck["box"] is None or not _opens_text(lower, begin, struck.start()))


def _opens_text(text: str, begin: int, at: int) -> bool:
    return _OPENS_TEXT.search(text[max(begin, at - 40) : at]) is not None


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


def passage_of(text: str) -> Passage:
    return passage(text, lowered(text), 0, len(text))


def passage(response: str, lower: str, start: int, stop: int) -> Passage:
    """The part, with special tokens and code blanked."""
    part = response[start:stop]
    shown = part
    if "\\boxed" in part or "\\fbox" in part or "~~" in part or "<!--" in part or "</" in part:
        shown = _without_struck(shown)
    if "<" in part:
        shown = SPECIAL_TOKEN.sub(lambda token: " " * len(token[0]), shown)
    if "```" in part or "~~~" in part:
        shown = _without_code(shown)
    if shown is part:
        return Passage(response, response, lower, start, stop)
    shown = response[:start] + shown + response[stop:]
    return Passage(response, shown, lowered(shown), start, stop)


_STRUCK = re.compile(r"~~[^~]{1,400}~~|<s>\s{0,5}[^\s<>\\][^<>\n\\]{0,40}</s>")
_LINK_COMMENT = re.compile(r"^[ \t]{0,3}\[[^\]\n]{1,40}\]:[ \t]*(?:#|<>)[ \t]*[(\"'][^\n]{0,400}", re.MULTILINE)
_ONLY_A_BOX = re.compile(
    r"%{1,3}[ \t]{0,9}(?:[a-z]{1,10}[ \t]){0,3}(?:[a-z]{1,10}[:=]?)?[ \t]{0,9}[$({\[\\*]{0,4}\\f?box", re.IGNORECASE
)
_TAG = re.compile(r"<(?P<closing>/?)(?P<name>[a-z][a-z0-9]{0,9})(?P<attributes>(?:\s[^<>]{0,300})?)/?>", re.IGNORECASE)
_STRIKING_TAGS = frozenset({"del", "strike", "template", "script", "style", "noscript"})
_VOID_TAGS = frozenset({"img", "input", "br", "hr", "meta", "link"})
_UNSEEN_STYLE = (
    r"(?:display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}(?:hidden|collapse)|(?:opacity|font-size)\s{0,3}:\s{0,3}0(?![0-9.])"
    r"|opacity\s{0,3}:\s{0,3}0\.0+(?![0-9])|(?<![a-z-])(?:max-)?(?:height|width)\s{0,3}:\s{0,3}0(?![0-9.])|scale\(0\)"
    r"|(?:left|right|top|text-indent)\s{0,3}:\s{0,3}-[0-9]{3,5}"
    r"|(?<![a-z-])color\s{0,3}[:=]\s{0,3}[\"']?(?:transparent|white|#fff(?:fff)?\b|rgba\([^()]{1,30},\s{0,3}0\)))"
)
_UNSEEN = re.compile(rf"{_UNSEEN_STYLE}|(?<=[\s\"'])hidden(?=[\s=/]|\Z)", re.IGNORECASE)
_WHITE = (
    r"(?:\[[a-z]{1,10}\])?"
    r"\{\s{0,3}(?:white|transparent|#?fff(?:fff)?|1|1\s?,\s?1\s?,\s?1|255\s?,\s?255\s?,\s?255)\s{0,3}\}"
)
_STRUCK_BOX = re.compile(r"<s>[\s$*({\[\\]{0,9}\\f?box[^<>]{0,120}</s>")
_STRIKING = re.compile(
    r"\\(?:[bx]?cancel|sout|xout|st|hide|pdfcomment|label|[hv]?phantom)\s{0,3}\{"
    rf"|\\textcolor{_WHITE}\s{{0,3}}\{{|\\(?:scalebox\{{0(?:\.0*)?\}}|transparent\{{0\}}|htmlstyle\{{[^{{}}]{{0,60}}{_UNSEEN_STYLE}[^{{}}]{{0,60}}\}})\s{{0,3}}\{{"
    rf"|\\color{_WHITE}|\\fontsize\{{0(?:pt)?\}}\{{[^{{}}]{{0,6}}\}}|\\[\\{{}}]|[{{}}]",
    re.IGNORECASE,
)
_ON_COLOUR = re.compile(
    r"\\(?:f?colorbox(?:\[[^\]]{0,20}\])?(?:\{[^{}]{0,30}\}){1,2}|bbox\[[^\]]{0,40}\])\s*\{[\s$]*\Z"
)
"""White print on another ground is seen."""
_SWITCH_ENDS = re.compile(r"\\(?:color|normalcolor|normalsize)(?![a-z])|\n[ \t]*\n|\Z")


_COMMENT_MARKS = (("<!--", "-->"), ("\\begin{comment}", "\\end{comment}"), ("\\iffalse", "\\fi"), ("\\if0", "\\fi"))


def _without_struck(text: str) -> str:
    """With what is struck out, commented or printed invisibly blanked."""
    if "~~" in text or "<s>" in text:
        text = _STRUCK.sub(lambda struck: _blanked(struck[0]), text)
    if "%" in text:
        text = _with_blanks(text, _tex_comments(text))
    if "]:" in text:
        text = _LINK_COMMENT.sub(lambda struck: " " * len(struck[0]), text)
    for opening, closing in _COMMENT_MARKS:
        if opening in text:
            text = _with_blanks(text, _between(text, opening, closing))
    if "<" in text:
        text = _with_blanks(text, _unseen(text))
    if "<s>" in text:
        text = _STRUCK_BOX.sub(_without_struck_box, text)
    if not _STRIKING_NAMES.search(text):
        return text
    pieces: list[str] = []
    done = depth = 0
    opened: tuple[int, int] | None = None
    for brace in _STRIKING.finditer(text):
        sign = brace[0]
        if brace.start() < done:
            continue
        if sign == "}":
            depth -= depth > 0
            if opened is not None and depth == opened[1]:
                pieces += [text[done : opened[0]], _blanked(text[opened[0] : brace.end()])]
                done, opened = brace.end(), None
        elif len(sign) > 2 and sign[-1] == "}":
            if opened is None and not _ON_COLOUR.search(text, max(0, brace.start() - 90), brace.start()):
                opened = brace.start(), depth - 1  # a switch: to the end of its group
                end = None if depth else _SWITCH_ENDS.search(text, brace.end())
                if end is not None:
                    pieces += [text[done : brace.start()], _blanked(text[brace.start() : end.start()])]
                    done, opened = end.start(), None
        elif sign[-1] == "{" and sign != "\\{":
            if opened is None and len(sign) > 1:
                opened = brace.start(), depth
            depth += 1
    pieces.append(text[done:])
    return "".join(pieces)


_STRIKING_NAMES = re.compile(
    r"cancel|\\x?sout|\\st\{|phantom|color|\\scalebox|\\transparent|\\html|\\fontsize|\\hide|\\pdf|\\label"
)


def _tex_comments(text: str) -> Iterator[Span]:
    """From a per cent sign to the end of its line."""
    at = text.find("%")
    while at >= 0:
        end = at + 1
        if _opens_comment(text, at):
            line_end = text.find("\n", at)
            end = min(at + 401, len(text) if line_end < 0 else line_end)
            yield at, end
        at = text.find("%", end)


def _opens_comment(text: str, at: int) -> bool:
    """At the start of a line or behind a word; behind a number or a box only where a box is all that follows."""
    before = text[max(0, at - 41) : at]
    written = before.rstrip(" \t")
    last, gap = written[-1:], len(before) - len(written)
    if last in ("", "\n") or (gap == 1 and last not in "0123456789}$)\\\r"):
        return True
    of_box = last in "})*]" or (last == "$" and not written[-2:-1].isdigit())
    return of_box and gap < 5 and _ONLY_A_BOX.match(text, at) is not None


def _between(text: str, opening: str, closing: str) -> Iterator[Span]:
    at = text.find(opening)
    while at >= 0:
        end = text.find(closing, at + len(opening))
        stop = len(text) if end < 0 else end + len(closing)
        yield at, stop
        at = text.find(opening, stop)


def _unseen(text: str) -> list[Span]:
    """What stands in tags that strike it out or are not displayed, and tags that hide a box in an attribute."""
    spans: list[Span] = []
    opened: dict[str, list[int]] = {}
    for tag in _TAG.finditer(text):
        name, attributes = tag["name"].lower(), tag["attributes"]
        if tag["closing"]:
            start = opened[name].pop() if opened.get(name) else -1
            spans += [(start, tag.end())] if start >= 0 else []
        elif name in _VOID_TAGS or "\\boxed" in attributes or "\\fbox" in attributes:
            spans += [tag.span()] if "=" in attributes else []
        elif name in _STRIKING_TAGS or (_UNSEEN.search(attributes) and "background" not in attributes):
            opened.setdefault(name, []).append(tag.start())
        elif name in opened:
            opened[name].append(-1)
    unclosed = [
        at
        for name, starts in opened.items()
        if name not in _STRIKING_TAGS and (len(name) > 1 or name == "p")
        for at in starts
        if at >= 0
    ]
    return sorted([*spans, (min(unclosed), len(text))] if unclosed else spans)


def _with_blanks(text: str, spans: Iterable[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for start, stop in spans:
        if stop > done:
            pieces += [text[done:start], _blanked(text[max(start, done) : stop])]
            done = stop
    return "".join([*pieces, text[done:]]) if pieces else text


def _without_struck_box(struck: re.Match[str]) -> str:
    """`\\boxed{5} <s>\\boxed{6}</s>`: blanked, unless the mark opens the text as the token of that name."""
    return struck[0] if _opens_text(struck.string, 0, struck.start()) else " " * len(struck[0])


def _blanked(text: str) -> str:
    """Blanks; but a per cent sign or a command blanks nothing but a box."""
    return text if text.lstrip()[:1] in "\\%" and "boxed" not in text and "fbox" not in text else " " * len(text)


def _without_code(text: str) -> str:
    pieces: list[str] = []
    done, opened, code = 0, -1, False
    for fence in _FENCE.finditer(text):
        if opened < 0:
            opened, code = fence.start(), fence[1].lower() in _CODE
            code = code and not (
                fence[1].lower() == "json" and _ANSWER_KEY.search(text, fence.end(), fence.end() + 4000)
            )
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
