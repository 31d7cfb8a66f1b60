"""Where a clause ends, and what of it is no part of its value: blanks, punctuation, bold type, quotes."""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3.extraction.visible import Passage, Span

LONGEST_CLAUSE = 2_000
"""Characters of a clause that are read; what is longer is no value, and the grammar will say so."""
_BREAK = re.compile(
    r"\\[\\,;:!.{}$]|\n|[.。．!！?？;；,，]|[({\[（【〔［｛]|[)}\]）】〕］｝]|\${1,2}|\\[()\[\]]"
    r"|\s(?:i\.e\.|(?:when|where|because|since|so|but|which|although|though|as(?=\s[a-z]{2})|due\s+to|based\s+on|after|rather\s+than"
    r"|and(?=\s(?:we|i|it|this|that)\b))\b)"
    r"|因为|因為|由于|由於|理由|</|<\||<br|\s[—–-]{1,3}\s(?=[a-z]{2})|——"
)
_GOES_ON = re.compile(
    r"[,，;；]\s{0,3}(?!i\.\s?e\b|e\.\s?g\b)(?:(?:and|or)\s{1,3}|[和或与及]\s{0,2})?(?:[-+−±－＋($\\\[{（［｛*0-9０-９.√π∞]"
    r"|[a-z](?![a-z])(?!\s+[a-z])|[一-鿿](?=[=＝])|(?:pi|sqrt|sin|cos|tan|log|ln|exp|infinity)\b)"
)
"""Behind the comma the value goes on: `5, 6`, `x = 1, y = 2`, `3, and 4`."""
OPENING = frozenset("({[（【〔［｛")
CLOSING = frozenset(")}]）】〕］｝")
_MATHS = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]"}


def clause_end(text: Passage, start: int) -> tuple[int, bool, bool]:
    """Where the clause that begins here ends, whether before the text does, and whether it is a question."""
    lower = text.lower
    limit = min(text.stop, start + LONGEST_CLAUSE)
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
        elif sign[-1] in OPENING:
            depth += 1
        elif sign[-1] in CLOSING:
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


def trimmed(text: str, start: int, stop: int) -> Span:
    """The span without blanks at its ends; empty spans end where they start."""
    while start < stop and text[stop - 1].isspace() and not (text[stop - 2] == "\\" and start < stop - 1):
        stop -= 1
    while start < stop and text[start].isspace():
        start += 1
    return start, stop


def stripped(text: Passage, start: int, stop: int) -> Span:
    """The span without blanks, final punctuation, bold type, and the `$` or quotes around the whole of it."""
    shown = text.shown
    for _ in range(8):
        before = start, stop
        start, stop = trimmed(shown, start, stop)
        while start < stop and shown[stop - 1] in _TRAILING:
            if shown.endswith("...", start, stop) or shown.endswith(".m.", start, stop):
                break
            stop -= 1
        if shown.endswith(")", start, stop) and shown.count(")", start, stop) > shown.count("(", start, stop):
            stop -= "[" not in shown[start:stop] and "]" not in shown[start:stop]
        start, stop = trimmed(shown, start, stop)
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
