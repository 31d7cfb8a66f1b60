"""Text to a typed tree: the whole answer grammar of contract v3, total and bounded.

`parse` reads an answer in plain text, LaTeX or a mixture, English or Chinese, and gives a tree of `tree` or `Refused`.
A reading is of the whole text or none: no number is mined from a sentence. Nothing is computed beyond numerals.
This module takes wrappings off and knows the forms that only a whole answer has: choices, times, yes and no, words.
Words alone are read by `prose`, mathematics by `reader` on top of `terms`, `forms`, `brackets`, `quantities`, `names`,
`digits` and `cursor`, each for one kind of part; `unit_words` knows what may stand behind a number.

Readings that could be another one
- `1,234` is one number and `(1,234)` are two; `1,2345` are two. `2\\frac12` is 5/2, `2\\frac{x}{3}` a product.
- `1/2x` is x/2. Any other division by an implicit product (`x/2y`, `\\pi/2x`) is refused as ambiguous.
- A function without brackets takes the product behind it, up to a sign, the next function or an explicit times sign;
  refused where a slash, a bracket, e, i or a vector follows. `sin(x)^2` is the square of the sine.
- `f(x)`, `g(…)`, `h(…)`, `O(…)` are calls, as is any letter with several arguments or on the left of `=`; other
  letters with a bracket are products. `i` and `e` are constants except as `i = …`, an index or a bound variable.
- `4:45` is a ratio unless a.m. or p.m. stands behind it. `+-` inside a sum is refused, in front it is plus or minus.
- Letters behind a number are a product (`12d`), words of four letters and known units are a unit (`12 cm`). A unit is
  a known one or up to four plain words. Words that hedge, judge, count or calculate (`5 maybe`, `5 doubled`), digits
  and operators make no unit; exponents belong to lengths and to units below a line.
- A bracket with one number behind a value and a blank (`5 (6)`, `3/8 (0.375)`) is refused: a product or a remark.
- `2^n3^n` is a product; `x^23` has the exponent 23. `1 000 000` outside brackets is one number: groups of three digits,
  at least three groups. `1 000` could be two numbers and is refused.
- Text behind an option's letter that names another option or starts by denying it (`(A) no, B`) is refused.
- Characters that nobody sees (zero-width blanks and joiners, variation selectors) are dropped, also between digits;
  those that turn the direction of writing or stand for a sign are refused. Colours, boxes, underlines and bold type do
  not count; lines of an alignment that start with a relation sign go on with the line above.
- `P(X=2) = …`, `E[X] = …`: the left side is one name, as written.
- Two or three capitals are one name (`AB`); two or three small letters beside other mathematics are a product, three
  alone are a word. Longer runs are words, and a text with such words is `Text` as a whole.

Not covered (refused, or words)
- Arithmetic on matrices, vectors in brackets, sets, quantities, percentages and numerals in a base; determinants;
  norms; transposes; piecewise functions; sets of functions; quantifiers; logic; congruences without `\\pmod`.
- `C_n^k`, `P_n^k`, `A_n^k`: combinations or a power. Partial and higher derivatives, one-sided limits.
- Numbers in words beyond twelve, 三万五 (35,000 or 30,005), dates, times of day without a.m. or p.m., compound
  quantities (`2 hours 30 minutes`), feet and inches by `'` and `"`, radix points in another base, Roman numerals.
- `1 000` with a blank (thin ones are read), `1_000`, hexadecimal prefixes, decimals that go on (`0.333...`).
- Outward brackets but in one interval (`]1,2[` is read, `]1,2[ \\cup ]3,4[` is not), relations without a left side
  (`> 5`), arrows, `\\Rightarrow`, proofs.
- Mathematical alphanumeric letters (𝑥), combining accents, letters of other scripts inside mathematics.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from veriward.rewards.contracts.v3.limits import LIMITS, Limits
from veriward.rewards.contracts.v3.reading.cursor import Refusal
from veriward.rewards.contracts.v3.reading.names import prefixed
from veriward.rewards.contracts.v3.reading.prose import KEYWORDS_ALONE, NEVER_WORDS, as_words, plain_words
from veriward.rewards.contracts.v3.reading.reader import Reader
from veriward.rewards.contracts.v3.reading.signs import PLAIN_FUNCTIONS, PLAIN_NAMES
from veriward.rewards.contracts.v3.reading.tokens import (
    Refused,
    Token,
    lexed,
    normal_characters,
    offset_in,
    same_tokens,
    visible_characters,
)
from veriward.rewards.contracts.v3.reading.unit_words import DENIALS, GLUED_PRODUCT, UNITS, words_of
from veriward.rewards.contracts.v3.tree import (
    Alternatives,
    Choice,
    Listing,
    NamedSet,
    Node,
    Number,
    Relation,
    Symbol,
    Text,
    Time,
    Truth,
)
from veriward.rewards.verdict import Reason

__all__ = ["Refused", "parse", "plain_words", "same_tokens"]

_TRUTH = {
    **dict.fromkeys(("yes", "true", "是", "是的", "对", "正确", "对的"), True),
    **dict.fromkeys(("no", "false", "否", "错", "错误", "不是", "不对", "不正确", "错的"), False),
}
_NUMBER_WORDS = re.split(" ", "zero one two three four five six seven eight nine ten eleven twelve")
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")


def parse(text: str, *, limits: Limits = LIMITS, decimal_comma: bool = False, words: bool = True) -> Node | Refused:
    """The tree of an answer, or why it has none. Total: any string whatsoever.

    decimal_comma   `3,5` is 7/2 and `1.234,5` is 1234.5; without it a comma separates parts or thousands
    words           answers in words are read as `Text`; without it they are refused
    `4:45` is a ratio unless a.m. or p.m. stands behind it. `1,234` is one number, `(1,234)` two. `1/2x` is x/2, but a
    division by an implicit product of anything but two numerals (`x/2y`) is refused as ambiguous.
    """
    if len(text) <= 19 and _INTEGER.match(text):
        return Number(Fraction(int(text)), text)
    if len(text) > limits.max_answer_characters:
        return Refused(Reason.TEXT_TOO_LONG, limits.max_answer_characters, f"{len(text)} characters")
    visible = visible_characters(text)
    characters = normal_characters(visible)
    if isinstance(characters, Refused):
        node: Node | Refused = characters
    else:
        node = _answer(characters, 0, len(characters), limits, decimal_comma, words, 0)
    if len(visible) != len(text) and isinstance(node, Refused):
        return replace(node, position=offset_in(text, node.position))
    return node


# ------------------------------------------------------------------------------------------ the whole answer

_BLANKS = r"(?:\s|~|\\[,;:!> ]|\\q?quad(?![A-Za-z])|\\displaystyle(?![A-Za-z]))"
_LEADING = re.compile(rf"{_BLANKS}*")
_OPENERS = re.compile(
    rf"\$\$?|\\\(|\\\[|\*\*(?=\S)"
    rf"|\\(?:boxed|fbox|framebox|text|mbox|textbf|textit|textrm|emph|mathrm|mathbf|underline){_BLANKS}*\{{"
    rf"|\\(?:textcolor|color(?:box)?){_BLANKS}*(?:\[[A-Za-z]*\])?\{{[^{{}}]*\}}(?:{_BLANKS}*\{{)?"
    rf"|\{{{_BLANKS}*\\color{_BLANKS}*\{{[^{{}}]*\}}"
    r"|(?:=|\\approx(?![A-Za-z])|≈|(?:approximately|about)\s|约[为是]?)\s*"
)
_EXPRESSION = re.compile(r"[-+*/=^(,]|\\[a-z]*(?:frac|sqrt)|\A[0-9.]+\Z")
_LABEL = re.compile(
    r"(\\text(?:bf|rm)?\s*\{)?\s*(?:(?:the\s+)?(?:final\s+|correct\s+)?answer(?:\s*[:：]|\s+is\s*:?(?![A-Za-z]))|(?:故|所以)?(?:最终)?答案\s*(?:[:：]|是[:：]?|为[:：]?))\s*",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"(?:(?:故|应|答案|本题)*\s*(?:选择?项?)\s*[:：]?\s*|(?:the\s+)?(?:correct\s+)?(?:option|choice)\s*(?:is\s*)?:?\s*)?"
    rf"(?P<open>\\(?:text|textbf|textrm|mathrm|mathbf|mbox|bf)\s*\{{)?{_BLANKS}*"
    rf"(?:\({_BLANKS}*(?P<letter>[A-Ja-d]){_BLANKS}*\)|(?P<bare>[A-J])"
    rf"(?P<mark>{_BLANKS}*\)|\.(?![0-9])|:(?=\s+\S)|(?={_BLANKS}*\}}?\s*\Z)))",
    re.IGNORECASE,
)
_OTHER_OPTION = re.compile(
    r"(?<![A-Za-z}])\(\s*[A-HJ]\s*\)|(?:\A|[^-+*/=^_{<>\\A-Za-z0-9)}\s(]|[A-Za-z0-9)}]\s|\b(?:or|and)\b)\s*\(?[A-HJ]\s*(?=[).:,;]|\Z|\s(?:or|and)\b)"
)
"""Another option's letter behind the first one, as a label and no factor or summand."""
_OPTION_IN_WORDS = re.compile(r"(?<![A-Za-z\\])(?!A\s+(?!is|was|or|and|not|if|but)[a-z])[A-HJ](?![A-Za-z'])")
_OTHERWISE = words_of("rather instead otherwise else alternatively versus vs but except unless")
_SPACE_COMMAND = re.compile(r"\\(?:[ ,;:!]|q?quad(?![A-Za-z]))|~")
_SIGN_COMMAND = re.compile(r"\\(?!text|mbox|math)[A-Za-z]+\s*")
_FIRST_WORD = re.compile(
    r"[\s\\{(]*(?:text\s*\{\s*)?(?:(?P<word>[A-Za-z]+)\s*(?P<sign>[,;.!])?\s*|(?P<han>[不或错非]))"
)
_PART_LABEL = re.compile(
    rf"(?:([,;]|\band\b){_BLANKS}*|\A|)\({_BLANKS}*([1-8a-h]){_BLANKS}*\)(?=\s*(?!and\b|or\b)[^\s,;)(+*/^=.])"
)
_LABEL_IN_TEXT = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mbox)\s*\{\s*\(([A-Ja-h1-8])\)\s*~?\s*\}")
_CONDITION = re.compile(
    r"(?:,\s*)?(?:\\(?:text|mbox)\s*\{\s*,?\s*)?\bfor\s+(?:all|any|every|each|(?P<some>some))\s*"
    r"(?P<kind>(?:real|integer|rational|natural|complex)(?:\s+(?:number|value))?s?)?\s*\}?\s*\$?"
    r"(?P<letter>[A-Za-z])\$?(?:\s*\\in\s*\\mathbb\s*\{?\s*(?P<set>[NZQRC])\s*\}?(?:_\{[^{}]*\}|\^\+)?)?\$?\s*"
    r"(?=\Z|,|\\text\s*\{\s*,?\s*and\b|\band\b|\\,)"
)
_SET_NAMES = {"n": "N", "z": "Z", "q": "Q", "r": "R", "c": "C"} | {
    f"{name}{noun}": letter
    for name, letter in zip(("natural", "integer", "rational", "real", "complex"), "NZQRC", strict=True)
    for noun in ("", " number", " value")
}
_DATE = re.compile(r"[12][0-9]{3}-[01]?[0-9]-[0-3]?[0-9]\Z")
_TIME = re.compile(
    r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?(?:\s|~|\\[,; ])*"
    r"(?:\\(?:text|mbox|mathrm|textrm)\s*\{\s*~?)?\s*([AaPp])\.?\s*[Mm]\.?\s*\}?\Z"
)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without blanks and closing punctuation at its ends."""
    leading = _LEADING.match(text, start, end)
    start = start if leading is None else leading.end()
    while end > start:
        last = text[end - 1]
        if last.isspace() or last == "~":
            if text[end - 2 : end - 1] == "\\" and text[end - 3 : end - 2] != "\\" and end - 2 >= start:
                end -= 2
            else:
                end -= 1
        elif last in ".,;!:" and text[end - 2 : end - 1] == "\\" and text[end - 3 : end - 2] != "\\":
            end -= 2
        elif last in ".," and not text.endswith(("..", "\\right.", "\\left."), start, end):
            end -= 1
        elif last == "d" and text.endswith("quad", start, end) and re.search(r"\\q?quad\Z", text[start:end]):
            end = text.rindex("\\", start, end)
        else:
            break
    return start, end


def _unwrapped(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span inside one wrapping around the whole of it (`$…$`, a box, `\\text{…}`, `= …`), or None."""
    opener = _OPENERS.match(text, start, end)
    if opener is None:
        return None
    kind, inner = opener.group(), opener.end()
    if kind[0] in "=≈约a" or kind.startswith("\\approx"):
        return (inner, end) if inner < end else None
    if kind[-1] == "}":
        if kind[0] != "{":
            return inner, end
        return (inner, end - 1) if text[end - 1] == "}" and _closing(text, start + 1, end) == end - 1 else None
    if kind[-1] == "{":
        if text[end - 1] != "}" or _closing(text, inner, end) != end - 1:
            return None
        content = text[inner : end - 1].strip()
        if len(content) == 1 and "math" in kind:
            return None  # a constant, a unit or a vector by its name
        if kind.startswith("\\math") and content in PLAIN_FUNCTIONS:
            return None
        if kind.startswith(("\\mathbf", "\\underline")) and not _EXPRESSION.search(content):
            return None
        return inner, end - 1
    closer = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]", "**": "**"}[kind]
    if end - len(closer) < inner or not text.endswith(closer, inner, end) or closer in text[inner : end - len(closer)]:
        return None
    if kind == "$" and text[end - 2] == "\\":
        return None
    return inner, end - len(closer)


def _closing(text: str, start: int, end: int) -> int:
    """Where the brace that is open at `start` closes, or -1."""
    depth, at = 1, start
    while at < end:
        character = text[at]
        if character == "\\":
            at += 2
            continue
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return -1


def _answer(
    text: str, start: int, end: int, limits: Limits, decimal_comma: bool, words: bool, level: int
) -> Node | Refused:
    """The reading of text[start:end]: wrappings off, forms of whole answers, then mathematics, then words."""
    in_words = False
    for _ in range(8):
        start, end = _trimmed(text, start, end)
        inner = _unwrapped(text, start, end)
        if inner is None:
            label = _LABEL.match(text, start, end)
            if label is None or label.end() >= end:
                break
            if label[1] is None:
                inner = label.end(), end
            elif text[label.end()] == "}":
                inner = label.end() + 1, end
            else:
                break
        elif text.startswith(("\\text", "\\mbox"), start):
            in_words = True
        start, end = inner
    if text.startswith("\\$", start) and text.endswith("\\$", start, end) and text.count("\\$", start, end) == 2:
        start, end = _trimmed(text, start + 2, end - 2)
    if text.startswith("\\text", start) or text.startswith("\\m", start):
        text = _LABEL_IN_TEXT.sub(lambda found: f"({found[1]})".ljust(len(found[0])), text)
    if text.startswith("(", start):
        text = _without_labels(text, start, end)
    if start >= end:
        return Refused(Reason.EMPTY_ANSWER, min(start, max(len(text) - 1, 0)), "nothing in it")
    if end - start <= 8:
        written = text[start:end].lower()
        truth = _TRUTH.get(written)
        if truth is not None:
            return Truth(truth)
        if written in _NUMBER_WORDS:
            return Number(Fraction(_NUMBER_WORDS.index(written)))
        if written == "n/a" and words:
            return Text(written)
    first = text[start]
    if first in "(\\ABCDEFGHIJ选故应答本Ooct" and level < 3:
        choice = _choice(text, start, end, limits, decimal_comma, words, level)
        if choice is not None:
            return choice
    if first.isdigit() and text[end - 1] in "mM}.":
        time = _time(text, start, end)
        if time is not None:
            return time
    if first.isdigit() and _DATE.match(text[start:end]):
        return Refused(Reason.UNSUPPORTED_NOTATION, start, "a date")
    if level == 0 and "for " in text:
        conditioned = _conditioned(text, start, end, limits, decimal_comma)
        if conditioned is not None:
            return conditioned
    tokens = lexed(text, start, end, limits)
    if isinstance(tokens, Refused):
        refused: Refused = tokens
        tokens = []
    elif not tokens:
        return Refused(Reason.EMPTY_ANSWER, start, "nothing in it")
    else:
        if len(tokens) == 1 and (lone := _lone(tokens[0], text[start:end], words)) is not None:
            return lone
        reader = Reader(tokens, end, limits, decimal_comma)
        try:
            return reader.answer()
        except Refusal as refusal:
            refused = refusal.refused
    if refused.reason in NEVER_WORDS:
        return refused
    prose = as_words(text, start, end, tokens, in_words)
    if prose is None:
        return refused
    if isinstance(prose, Refused):
        return prose
    if not words:
        return Refused(Reason.UNSUPPORTED_NAME, refused.position, "words")
    return prose


def _conditioned(text: str, start: int, end: int, limits: Limits, decimal_comma: bool) -> Node | None:
    """`(1+3t, 2t) \\text{ for some integer } t` as the value and what its letter runs over; None for anything else.

    The same condition behind each of several values counts once. Only the usual sets are read.
    """
    found = list(_CONDITION.finditer(text, start, end))
    if not found or len({(condition["letter"], _set_of(condition)) for condition in found}) != 1:
        return None
    letter, where = found[0]["letter"], _set_of(found[0])
    if where is None:
        return None
    for condition in found:
        text = text[: condition.start()] + " " * len(condition[0]) + text[condition.end() :]
    value = _answer(text, start, end, limits, decimal_comma, False, 1)
    if isinstance(value, Refused):
        return None
    if isinstance(value, Relation) and any(condition["some"] for condition in found):
        return None  # `f(x) = 0 for some x` is another claim than `f(x) = 0 for all x`
    values = value.items if isinstance(value, Listing) else (value,)
    return Listing((*values, Relation((Symbol(letter), NamedSet(where)), ("in",))))


def _set_of(condition: re.Match[str]) -> str | None:
    return _SET_NAMES.get((condition["set"] or condition["kind"] or "real").lower().removesuffix("s").strip())


def _lone(token: Token, written: str, words: bool) -> Node | Refused | None:
    """The reading of an answer of one token that is a word; None for anything else."""
    kind, name = token[:2]
    if kind == "TEXT":
        if len(name) == 1 and name.isalpha() and name.isascii():
            return Symbol(name)
        inner = Text(plain_words(name))
        return inner if words else Refused(Reason.UNSUPPORTED_NAME, token.start, "words")
    if kind != "WORD" or name in PLAIN_NAMES or (name.isupper() and len(name) == 3) or prefixed(name) is not None:
        return None
    if len(name) < 3 and (name not in UNITS or name in GLUED_PRODUCT):
        return None
    if name in KEYWORDS_ALONE:
        return Refused(Reason.PROGRAM_SYNTAX, token.start, name)
    return Text(plain_words(written)) if words else Refused(Reason.UNSUPPORTED_NAME, token.start, "a word")


def _without_labels(text: str, start: int, end: int) -> str:
    """The text with the labels `(1) …, (2) …` of its parts blanked out, where there are at least two in order."""
    found = [label for label in _PART_LABEL.finditer(text, start, end) if label.start() == start or label[1]]
    labels = "".join(label[2] for label in found)
    if len(labels) < 2 or labels not in ("12345678"[: len(labels)], "abcdefgh"[: len(labels)]):
        return text
    for label in found:
        here = text.index("(", label.start())
        text = text[:here] + " " * (label.end() - here) + text[label.end() :]
    return text


def _choice(
    text: str, start: int, end: int, limits: Limits, decimal_comma: bool, words: bool, level: int
) -> Node | Refused | None:
    """An option's letter with what stands behind it, or None where the text is something else."""
    found = _CHOICE.match(text, start, end)
    if found is None:
        return None
    prefix = text[start] in "选故应答本Ooct" and found.start("letter" if found["letter"] else "bare") > start
    letter = found["letter"] or found["bare"]
    if found["letter"] is None and not letter.isupper():
        return None
    if letter in "EFGHIJefghij" and not letter.isupper():
        return None
    after = found.end()
    inside = found["open"] is not None
    if inside:
        closing = text.find("}", after, end)
        if closing == after or not text[after:closing].strip(" :."):
            after = closing + 1
            inside = False
        elif closing != end - 1:
            return None
    gap = _LEADING.match(text, after, end)
    rest = after if gap is None else gap.end()
    stop = end - 1 if inside else end
    if rest >= stop:
        if not found["mark"] and found["bare"] and not prefix and not text.startswith(".", end):
            return Symbol(letter)
        return Choice(letter, None)
    if text[rest] in ".:":
        gap = _LEADING.match(text, rest + 1, end)
        rest = rest + 1 if gap is None else gap.end()
    elif prefix and not found["mark"] and found["letter"] is None:
        return None
    if rest >= stop:
        return Choice(letter, None)
    connector = re.match(r"(?:\\text\s*\{\s*)?(and|or|和|或|,|与)(?![A-Za-z])\s*\}?\s*", text[rest:stop])
    if connector is not None:
        other = (
            _choice(text, rest + connector.end(), stop, limits, decimal_comma, words, level + 1) if level < 8 else None
        )
        if not isinstance(other, Choice | Alternatives | Listing):
            return None if connector[1] == "," else Refused(Reason.UNSUPPORTED_NOTATION, rest, "options joined")
        kind = Alternatives if connector[1] in ("or", "或") else Listing
        others = other.items if isinstance(other, kind) else (other,)
        return kind((Choice(letter, None), *others))
    lower = found["letter"] is not None and not letter.isupper()
    spaced = rest > after or inside
    if lower and not spaced:
        return None
    if text[rest] == "-" and (not spaced or text[rest + 1 : rest + 2].isspace()):
        return None
    if text[rest] in "+*/^=<>)_!±" or text.startswith(
        ("\\cdot", "\\times", "\\div", "\\le", "\\ge", "\\pm", "\\cup"), rest
    ):
        return None
    if text[rest] == "(" and (lower or not spaced):
        return None
    value = _answer(text, rest, stop, limits, decimal_comma, True, level + 1)
    if isinstance(value, Choice) or (isinstance(value, Symbol) and value.name in "ABCDEFGHIJ"):
        return Refused(Reason.UNSUPPORTED_NOTATION, rest, "options joined")
    said = isinstance(value, Truth) and text[rest:stop] not in ("no", "not")
    if not said and _takes_back(text[rest:stop], letter.isupper(), isinstance(value, Refused | Text)):
        return Refused(Reason.UNSUPPORTED_NOTATION, rest, "an option and what takes it back")
    if isinstance(value, Refused):
        return Choice(letter, None) if letter.isupper() and value.reason not in NEVER_WORDS else value
    return Choice(letter, value)


def _takes_back(written: str, option: bool, in_words: bool) -> bool:
    """What stands behind an option's letter names another option, or starts by denying it: `(A) or rather B`."""
    written = _SIGN_COMMAND.sub("=", _SPACE_COMMAND.sub(" ", written))
    if option and (_OTHER_OPTION.search(written) or (in_words and _OPTION_IN_WORDS.search(written))):
        return True
    first = _FIRST_WORD.match(written)
    if first is None:
        return False
    if first["han"]:
        return True
    word = first["word"]
    if word.lower() not in DENIALS and word not in _OTHERWISE:
        return False
    return word.islower() or (bool(first["sign"]) and first.end() < len(written))


def _time(text: str, start: int, end: int) -> Time | None:
    """A time of the day that says which half: `3:30 \\text{ p.m.}`."""
    found = _TIME.match(text[start:end])
    if found is None:
        return None
    hour, minute, second = int(found[1]), int(found[2] or 0), None if found[3] is None else int(found[3])
    if not 1 <= hour <= 12 or minute > 59 or (second or 0) > 59:
        return None
    return Time(hour, minute, second, "am" if found[4] in "aA" else "pm")
