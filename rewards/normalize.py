"""One spelling for one answer, under contracts v1 and v2: surface only, nothing is computed.

`\\dfrac{2}{4}` -> `((2)/(4))`, `\\sqrt{9}` -> `sqrt(9)`, `2^3` -> `2**3`, `1,000` -> `1000`.

Known behaviour of these frozen rules: all white space is removed, so `1 2` reads as `12` and
`1 1/2` as `11/2`; braces become parentheses, so `{1,2}` reads as the tuple `(1,2)`.
"""

from __future__ import annotations

import re

from veriward.rewards.extract import SPECIAL_TOKEN

MAX_NESTING = 64
"""Nested `\\frac`, `\\sqrt` and `^{}` are rewritten from the inside this many times; deeper ones stay as they are."""

MAX_TEXT = 10_000
"""Characters; a longer text is no answer in these contracts' grammar, and is left as it stands."""

OUTER_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))

SPACE = re.compile(r"\\[,;:! ]|\\q?quad(?![A-Za-z])|~|\s+")
COMMANDS = (
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:left|right)(?![A-Za-z])"), ""),
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])|[×·⋅∗]"), "*"),
    (re.compile(r"\\div(?![A-Za-z])|÷"), "/"),
    (re.compile(r"\\pi(?![A-Za-z])|π"), "pi"),
    (re.compile(r"\\infty(?![A-Za-z])|∞"), "oo"),
    (re.compile(r"[−–]"), "-"),
)

SQRT_OF_SIGN = re.compile(r"\\sqrt([0-9A-Za-z])")
SHORT_FRACTION = re.compile(r"\\frac([0-9A-Za-z])([0-9A-Za-z])")
SHORT_NUMERATOR = re.compile(r"\\frac([0-9A-Za-z])\{")
SHORT_DENOMINATOR = re.compile(r"\\frac(\{[^{}]*\})([0-9A-Za-z])")
INNERMOST = re.compile(
    r"\\frac\{(?P<over>[^{}]*)\}\{(?P<under>[^{}]*)\}|\\sqrt\{(?P<root>[^{}]*)\}|\^\{(?P<power>[^{}]*)\}"
)
ENDS = re.compile(rf"\A(?:\s|{SPECIAL_TOKEN.pattern})+|(?:\s|{SPECIAL_TOKEN.pattern})+\Z")
THOUSANDS = re.compile(r"(?<![0-9.,])[1-9][0-9]{0,2}(?:(?:,|\{,\})[0-9]{3})+(?![0-9,])")


def normalize(text: str) -> str:
    """The answer in v1's one spelling; an empty text if nothing but spelling was there."""
    text = text.strip()
    if len(text) > MAX_TEXT:
        return text
    text = _without_outer_delimiters(ENDS.sub("", text))
    for command, replacement in COMMANDS:
        text = command.sub(replacement, text)
    text = SPACE.sub("", text)
    text = _thousands_joined(text)
    text = SQRT_OF_SIGN.sub(r"\\sqrt{\1}", text)
    text = SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)
    text = SHORT_NUMERATOR.sub(r"\\frac{\1}{", text)
    for _ in range(MAX_NESTING):
        shorter = INNERMOST.sub(_plain, SHORT_DENOMINATOR.sub(r"\\frac\1{\2}", text))
        if shorter == text:
            break
        text = shorter
    return text.replace("{", "(").replace("}", ")").replace("^", "**")


def _without_outer_delimiters(text: str) -> str:
    for opening, closing in OUTER_DELIMITERS:
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and len(text) >= len(opening) + len(closing):
            return inner.strip() if opening not in inner and closing not in inner else text
    return text


def _thousands_joined(text: str) -> str:
    """`1,000` -> `1000`, outside brackets only: `(1,000)` and `{1,000}` may be pairs."""
    if "," not in text:
        return text
    pieces: list[str] = []
    depth, done = int(text.startswith("{")), 0
    for match in THOUSANDS.finditer(text):
        depth += _opened(text, done, match.start())
        pieces.append(text[done : match.start()])
        pieces.append(re.sub("[{},]", "", match.group()) if depth == 0 else match.group())
        done = match.end()
    pieces.append(text[done:])
    return "".join(pieces)


def _opened(text: str, start: int, end: int) -> int:
    return sum(text.count(sign, start, end) for sign in "([") - sum(text.count(sign, start, end) for sign in ")]")


def _plain(match: re.Match[str]) -> str:
    if match["over"] is not None:
        return f"(({match['over']})/({match['under']}))"
    if match["root"] is not None:
        return f"sqrt({match['root']})"
    return f"^({match['power']})"
