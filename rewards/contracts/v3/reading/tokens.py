"""Text to lexical tokens: one compiled expression, explicit tables, no folding of look-alike letters.

Full-width signs and digits, typographic operators and decimal digits of other scripts are mapped one to one, so that
positions stay positions in the given text. Every other character outside the tables is a token of its own kind, which
the grammar refuses; control, bidirectional and surrogate characters are refused here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from veriward.rewards.contracts.v3.limits import LIMITS, Limits
from veriward.rewards.contracts.v3.reading.signs import (
    COMMANDS,
    CONNECTORS,
    FUNCTION_WORDS,
    HAN_CONNECTORS,
    ONE_TO_ONE,
    OPERATORS,
    RUN_ON,
    SIZES,
    SKIPPED,
    SUBSCRIPTS,
    SUPERSCRIPTS,
    UNICODE,
    VULGAR,
)
from veriward.rewards.verdict import Reason


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a text has no reading, and where."""

    reason: Reason
    position: int
    """Offset in characters of the given text."""
    detail: str


class Token(NamedTuple):
    kind: str
    """NUM, WORD, NAME, FUNC, TEXT, HAN, AND, OR, …; an operator or bracket is its own kind."""
    text: str
    start: int
    end: int
    gap: int
    """What stood before it: 0 nothing, 1 blanks, 2 a thin blank, 3 a negative one, as in `20,\\!480`."""


NO_GAP, BLANK, THIN, NEGATIVE = range(4)

_TEXT_COMMANDS = (
    "text|mbox|textbf|textit|textrm|textnormal|textsf|texttt|mathrm|mathsf|mathtt|hbox|operatorname\\*?|emph"
)

_TOKEN = re.compile(
    rf"""
      (?P<gap>(?:[ \t\r\n~\u2000-\u200a\u202f\u205f]|\\[,;:!>/ \t\n])+)
    | (?P<num>(?:[0-9]+(?:\.[0-9]+|\.(?![.0-9]))?|\.[0-9]+)(?:[eE][-+]?[0-9]+(?![.0-9A-Za-z]))?)
    | (?P<word>[A-Za-z]+)
    | (?P<text>\\(?:{_TEXT_COMMANDS})\s*\{{(?P<content>(?:[^{{}}]|\{{[^{{}}]*\}})*)\}})
    | (?P<begin>\\(?P<edge>begin|end)\s*\{{\s*(?P<environment>[A-Za-z]+)\*?\s*\}}(?:(?<=array\}})\s*\{{[^{{}}]*\}})?)
    | (?P<look>\\(?:(?:text)?color(?:box)?|[hv]space)\*?\s*(?:\[[A-Za-z]*\]\s*)?\{{[^{{}}]*\}})
    | (?P<command>\\[A-Za-z]+)
    | (?P<row>\\\\(?:\s*\[[0-9.]+\s*[a-z]+\])?)
    | (?P<separator>\{{,\}})
    | (?P<operator>\*\*|\\[{{}}%$|&_\#()\[\]]|<=|>=|!=|<>|==|=<|=>|//|<<|>>|:=|\+-|\.\.\.+
        |[-+*/^_()\[\]{{}}<>=,;:|!%&'.$\\])
    | (?P<han>[\u3400-\u4dbf\u4e00-\u9fff\u3007]+)
    | (?P<superscript>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+)
    | (?P<subscript>[₀-₉]+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff]")
"""Characters without a look that change nothing: zero-width blanks, joiners, variation selectors, byte-order mark."""
_DOUBLED = re.compile(r"\\\\(?=(?:[A-Za-z]{2,}))")
_SINGLE = re.compile(r"(?<!\\)\\[A-Za-z]")
_PROGRAM_CHARACTERS = frozenset('"`@#')


def normal_characters(text: str) -> str | Refused:
    """The text with typographic signs and digits mapped one to one; refused where a character cannot stand in it."""
    text = text.replace("\x0crac{", "\\rac{")  # `\frac` unescaped once too often
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        return Refused(Reason.UNSUPPORTED_CHARACTER, forbidden.start(), f"U+{ord(forbidden.group()):04X}")
    if text.isascii():
        return text
    text = text.translate(ONE_TO_ONE)
    if text.isascii():
        return text
    return "".join(
        str(unicodedata.decimal(character)) if not character.isascii() and character.isdecimal() else character
        for character in text
    )


def visible_characters(text: str) -> str:
    """The text without the characters that nobody sees and that change nothing."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def offset_in(text: str, position: int) -> int:
    """Where the character at a position of the visible characters stands in the text itself."""
    for dropped in _INVISIBLE.finditer(text):
        if dropped.start() > position:
            break
        position += 1
    return position


def tokenize(text: str, limits: Limits = LIMITS) -> tuple[Token, ...] | Refused:
    """The tokens of a text, or why it has none. Total: any string whatsoever."""
    if len(text) > limits.max_answer_characters:
        return Refused(Reason.TEXT_TOO_LONG, limits.max_answer_characters, f"{len(text)} characters")
    characters = normal_characters(visible_characters(text))
    if isinstance(characters, Refused):
        return characters
    tokens = lexed(characters, 0, len(characters), limits)
    return tokens if isinstance(tokens, Refused) else tuple(tokens)


def lexed(text: str, start: int, end: int, limits: Limits) -> list[Token] | Refused:
    """The tokens of text[start:end], whose characters are normal."""
    tokens: list[Token] = []
    append = tokens.append
    gap = NO_GAP
    maximum = limits.max_tokens
    dollars = _math_dollars(text, start, end)
    doubled = "\\\\" in text and _SINGLE.search(text, start, end) is None
    for match in _TOKEN.finditer(text, start, end):
        group = match.lastgroup
        here, there = match.span()
        if group == "gap":
            gap = max(gap, _width(match.group()))
            continue
        if group == "look":
            gap = gap or BLANK
            continue
        spelled = match.group()
        if group == "num":
            append(Token("NUM", spelled, here, there, gap))
        elif group == "operator":
            if spelled == "$" and dollars:
                gap = gap or BLANK
                continue
            if spelled in ("\\(", "\\)", "\\[", "\\]"):
                gap = gap or BLANK
                continue
            if spelled == "'" and (not tokens or gap or tokens[-1].kind not in _PRIMED):
                return Refused(Reason.PROGRAM_SYNTAX, here, "a quotation mark")
            if spelled == "!=" and not gap and tokens:
                if tokens[-1].kind in ("NUM", ")"):  # `5!=120`
                    append(Token("!", "!", here, here + 1, NO_GAP))
                    append(Token("REL", "=", here + 1, there, NO_GAP))
                else:  # `n!=24`: a factorial or an inequality
                    append(Token("COMMAND", spelled, here, there, gap))
                continue
            kind, spelled = OPERATORS.get(spelled) or (spelled, spelled)
            if kind == "PROGRAM":
                return Refused(Reason.PROGRAM_SYNTAX, here, spelled)
            if kind[:3] == "...":
                kind = "DOTS"
            elif kind == "." and tokens and tokens[-1].kind == "SIZE":
                tokens.pop()
                continue
            append(Token(kind, spelled, here, there, gap))
        elif group == "word":
            kind = CONNECTORS.get(spelled, "WORD")
            append(Token(kind, spelled, here, there, gap))
        elif group == "command":
            name = spelled[1:]
            known = COMMANDS.get(name)
            if known is not None:
                append(Token(known[0], known[1], here, there, gap))
            elif name in SKIPPED:
                if text[there : there + 1] == "." and name in SIZES:
                    append(Token("SIZE", name, here, there, gap))
                if name not in SIZES:
                    gap = gap or BLANK
                elif name == "left":
                    gap = NO_GAP
                continue
            elif name[:-1] in RUN_ON:  # `\\cotx`
                append(Token("FUNC", name[:-1], here, there - 1, gap))
                append(Token("WORD", name[-1], there - 1, there, NO_GAP))
            else:
                append(Token("COMMAND", name, here, there, gap))
        elif group == "text":
            behind_number = bool(tokens) and tokens[-1].kind == "NUM"
            _append_text(append, match, gap, behind_number)
        elif group == "separator":
            append(Token("{,}", "{,}", here, there, gap))
        elif group == "han":
            _append_han(append, spelled, here, gap)
        elif group == "row":
            if doubled and _DOUBLED.match(text, here):  # `\\frac` of a doubly escaped text
                command = text[here + 2 : there + 40]
                name = command[
                    : len(command) - len(command.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
                ]
                if name in COMMANDS or name in SKIPPED or name in _WRAPPERS:
                    return _undoubled(text, start, end, limits)
            if text[here + 2 : here + 3] in ("%", "$"):
                gap = gap or BLANK
                continue
            append(Token("ROW", "\\\\", here, there, gap))
        elif group == "begin":
            append(Token("BEGIN" if match["edge"] == "begin" else "END", match["environment"], here, there, gap))
        elif group == "superscript":
            append(Token("SUP", spelled.translate(SUPERSCRIPTS), here, there, gap))
        elif group == "subscript":
            append(Token("SUB", spelled.translate(SUBSCRIPTS), here, there, gap))
        else:
            known = UNICODE.get(spelled)
            if known is not None:
                append(Token(known[0], known[1], here, there, gap))
            elif spelled in VULGAR:
                append(Token("VULGAR", VULGAR[spelled], here, there, gap))
            elif spelled in _PROGRAM_CHARACTERS:
                return Refused(Reason.PROGRAM_SYNTAX, here, spelled)
            elif spelled.isalpha() or unicodedata.category(spelled)[0] == "M":
                append(Token("LETTER", spelled, here, there, gap))
            else:
                return Refused(Reason.UNSUPPORTED_CHARACTER, here, f"U+{ord(spelled):04X}")
        gap = NO_GAP
        if len(tokens) > maximum:
            return Refused(Reason.TEXT_TOO_LONG, here, f"more than {maximum} tokens")
    return tokens


_WRAPPERS = frozenset(["text", "mbox", "textbf", "mathrm", "boxed", "begin", "end", "operatorname"])
_PRIMED = frozenset(("WORD", "NAME", ")", "}", "'", "NUM", "]"))


def _undoubled(text: str, start: int, end: int, limits: Limits) -> list[Token] | Refused:
    """The tokens of a text whose backslashes were escaped twice; each pair counts as the second of its two."""
    return lexed(text[:start] + _DOUBLED.sub(r" \\", text[start:end]), start, end, limits)


def _width(blank: str) -> int:
    if "\\!" in blank:
        return NEGATIVE
    return THIN if "\\," in blank or "\u2009" in blank or "\u202f" in blank else BLANK


def _math_dollars(text: str, start: int, end: int) -> bool:
    """The dollar signs are delimiters of mathematics and no currency: in pairs, and not each in front of a digit."""
    count = text.count("$", start, end) - text.count("\\$", start, end)
    if count <= 0 or count % 2:
        return False
    return len(re.findall(r"(?<!\\)\$(?=[0-9])", text[start:end])) != count


_CAPITAL_UNITS = frozenset(("MW", "GW", "GB", "MB", "KB", "TB", "USD", "EUR", "RMB", "CNY", "MJ", "AU", "HP"))
_NO_ARGUMENT = re.compile(r"\s*(?:[,;.$})^/]|\\text|\Z)")
"""What stands behind `5\\text{ min}` and not behind a function."""
_BLANKS_IN_TEXT = re.compile(r"~|\\[ ,]")
_TEXT_LEAD = re.compile(r"([,;])?\s*(?:(and|or)(?![A-Za-z]))?\s*")
_TEXT_TAIL = re.compile(r"(?:(?<![A-Za-z])(and|or))?\s*\Z")


def _append_text(append, match: re.Match[str], gap: int, behind_number: bool) -> None:  # type: ignore[no-untyped-def]
    """The words of a text command, with the commas and the 'and' at its ends as tokens of their own."""
    here, there = match.span()
    content = _BLANKS_IN_TEXT.sub(" ", match["content"]).replace("\\cdot", "·").replace("$", "")
    content = " ".join(content.split())
    if (
        match.group().startswith("\\mathrm")
        and content.isalpha()
        and content.isupper()
        and 2 <= len(content) <= 3
        and content not in _CAPITAL_UNITS
    ):
        append(Token("WORD", content, here, there, gap))
        return
    if match.group().startswith(("\\mathrm", "\\operatorname")):
        if len(content) == 1 and content in "abcdefijknopqruvwxyz":
            append(Token("WORD", content, here, there, gap))
            return
        if content in ("pi", "\\pi"):
            append(Token("NAME", "pi", here, there, gap))
            return
    timed = behind_number and content in ("min", "sec") and _NO_ARGUMENT.match(match.string, there, match.endpos)
    if not timed and content in FUNCTION_WORDS and match.group().startswith(("\\mathrm", "\\operatorname", "\\text")):
        append(Token("FUNC", FUNCTION_WORDS[content], here, there, gap))
        return
    lead = _TEXT_LEAD.match(content)
    assert lead is not None  # noqa: S101  matches the empty text
    if lead[1]:
        append(Token(lead[1], lead[1], here, there, gap))
    if lead[2]:
        append(Token(CONNECTORS[lead[2]], lead[2], here, there, gap or BLANK))
    content = content[lead.end() :]
    tail = _TEXT_TAIL.search(content)
    word = tail[1] if tail is not None else None
    if tail is not None:
        content = content[: tail.start()].rstrip()
    comma = content[-1:] if content[-1:] in (",", ";") and content[-1:] else ""
    content = content.rstrip(",; ")
    if content:
        if content.isdecimal() and content.isascii():
            append(Token("NUM", content, here, there, gap or BLANK))
        else:
            append(Token("TEXT", content, here, there, gap or BLANK))
    if comma:
        append(Token(comma, comma, here, there, NO_GAP))
    if word:
        append(Token(CONNECTORS[word], word, here, there, BLANK))


def _append_han(append, run: str, here: int, gap: int) -> None:  # type: ignore[no-untyped-def]
    """A run of Chinese characters, with 和, 或 … at its ends as tokens of their own."""
    start, end = here, here + len(run)
    connector = HAN_CONNECTORS.get(run)
    if connector is not None:
        append(Token(connector, run, start, end, gap))
        return
    if run[0] in "或" or (run[0] in "和与及且" and len(run) > 1):
        append(Token(HAN_CONNECTORS[run[0]], run[0], start, start + 1, gap))
        run, start, gap = run[1:], start + 1, NO_GAP
    last = HAN_CONNECTORS.get(run[-1]) if len(run) > 1 else None
    if last is not None:
        append(Token("HAN", run[:-1], start, end - 1, gap))
        append(Token(last, run[-1], end - 1, end, NO_GAP))
    else:
        append(Token("HAN", run, start, end, gap))


def same_tokens(left: str, right: str) -> bool:
    """The two texts are spelled alike: the same tokens in the same order, whatever the blanks between them."""
    first, second = tokenize(left), tokenize(right)
    if isinstance(first, Refused) or isinstance(second, Refused):
        return left.strip() == right.strip()
    return [token[:2] for token in first] == [token[:2] for token in second]
