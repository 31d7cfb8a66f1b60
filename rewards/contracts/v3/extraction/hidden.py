"""What a reader of a response cannot see: code, comments, what is struck out or printed invisibly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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
    r"|\\(?:(?:re)?newcommand|providecommand|declare(?:robustcommand|mathoperator)|(?:new|renew|provide|declare)documentcommand"
    r"|[gex]?def)\*?\s{0,3}(?:\{\s{0,3}\\?[a-z@*]{1,40}\s{0,3}\}|\\(?:[a-z@]{1,40}|.))\s{0,3}(?:\[[^\]\n]{0,40}\]\s{0,3}){0,2}"
    r"(?:\{[a-z+!\s]{0,20}\}\s{0,3})?(?:#[1-9][^{}#\n]{0,10}){0,9}\{"
    r"|\\(?:renew|new)environment\*?\s{0,3}\{[a-z@*]{1,40}\}\s{0,3}(?:\[[^\]\n]{0,40}\]\s{0,3}){0,2}(?:\{[^{}]{0,80}\}\s{0,3})?\{"
    r"|\\(?:(?:s|save)box\s{0,3}(?:\{\s{0,3}\\[a-z]{1,40}\s{0,3}\}|\\[a-z]{1,40}|[0-9]{1,3})(?:\[[^\]\n]{0,20}\]){0,2}|setbox\s{0,3}(?:[0-9]{1,3}|\\[a-z]{1,40})\s{0,3}=?\s{0,3}\\[hv]box|typeout|message|toks[0-9]{1,3}\s?=?)\s{0,3}\{"
    rf"|\\color{_WHITE}|\\fontsize\{{0(?:pt)?\}}\{{[^{{}}]{{0,6}}\}}|\\[\\{{}}]|[{{}}]",
    re.IGNORECASE,
)
_ON_COLOUR = re.compile(
    r"\\(?:f?colorbox(?:\[[^\]]{0,20}\])?(?:\{[^{}]{0,30}\}){1,2}|bbox\[[^\]]{0,40}\])\s*\{[\s$]*\Z"
)
"""White print on another ground is seen."""
_SWITCH_ENDS = re.compile(r"\\(?:color|normalcolor|normalsize)(?![a-z])|\n[ \t]*\n|\Z")


_OPENS_TEXT = re.compile(
    r"(?:\A|(?:think\w{0,3}|thought|reasoning|reflection|scratchpad|inst)\s?[\]>]|[|｜]>|<s>|</s>|▷)\s{0,40}\Z",
    re.IGNORECASE,
)
"""In front of the token `<s>`; anywhere else it strikes a box out."""


def opens_text(text: str, begin: int, at: int) -> bool:
    return _OPENS_TEXT.search(text[max(begin, at - 40) : at]) is not None


_COMMENT_MARKS = (
    ("<!--", "-->"),
    ("\\begin{comment}", "\\end{comment}"),
    ("\\begin{filecontents}", "\\end{filecontents}"),
    ("\\iffalse", "\\fi"),
    ("\\if0", "\\fi"),
)


def without_hidden(text: str) -> str:
    """With what is struck out, commented, printed invisibly or only defined blanked."""
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
    if not any(name in text for name in _STRIKING_NAMES):
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


_STRIKING_NAMES = (
    "cancel", "sout", "xout", "\\st{", "phantom", "color", "\\scalebox", "\\transparent", "\\html",
    "\\fontsize", "\\hide", "\\pdf", "\\label", "ommand", "perator", "\\def", "\\gdef", "\\edef", "\\xdef",
    "nvironment", "\\sbox", "\\savebox", "\\setbox", "\\typeout", "\\message", "\\toks",
)  # fmt: skip
"""One of them stands in a text that `_STRIKING` finds something in; looking for them is ten times as fast."""


def _tex_comments(text: str) -> Iterator[tuple[int, int]]:
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


def _between(text: str, opening: str, closing: str) -> Iterator[tuple[int, int]]:
    at = text.find(opening)
    while at >= 0:
        end = text.find(closing, at + len(opening))
        stop = len(text) if end < 0 else end + len(closing)
        yield at, stop
        at = text.find(opening, stop)


def _unseen(text: str) -> list[tuple[int, int]]:
    """What stands in tags that strike it out or are not displayed, and tags that hide a box in an attribute."""
    spans: list[tuple[int, int]] = []
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


def _with_blanks(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, stop in spans:
        if stop > done:
            pieces += [text[done:start], _blanked(text[max(start, done) : stop])]
            done = stop
    return "".join([*pieces, text[done:]]) if pieces else text


def _without_struck_box(struck: re.Match[str]) -> str:
    """`\\boxed{5} <s>\\boxed{6}</s>`: blanked, unless the mark opens the text as the token of that name."""
    return struck[0] if opens_text(struck.string, 0, struck.start()) else " " * len(struck[0])


def _blanked(text: str) -> str:
    """Blanks; but a per cent sign or a command blanks nothing but a box."""
    return text if text.lstrip()[:1] in "\\%" and "boxed" not in text and "fbox" not in text else " " * len(text)


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


def without_code(text: str) -> str:
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
