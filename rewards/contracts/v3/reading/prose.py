"""Answers in words: which texts have no mathematical reading and are no program, and the words as they are compared."""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3.reading.signs import PLAIN_FUNCTIONS, PLAIN_NAMES
from veriward.rewards.contracts.v3.reading.tokens import Refused, Token
from veriward.rewards.contracts.v3.reading.unit_words import words_of
from veriward.rewards.contracts.v3.tree import Text
from veriward.rewards.verdict import Reason

NEVER_WORDS = frozenset(
    (
        Reason.PROGRAM_SYNTAX,
        Reason.UNSUPPORTED_CALL,
        Reason.ATTRIBUTE_ACCESS,
        Reason.TEXT_TOO_LONG,
        Reason.NESTED_TOO_DEEP,
        Reason.TOO_MANY_PARTS,
        Reason.DUNDER_IDENTIFIER,
    )
)
KEYWORDS_ALONE = words_of("lambda import async yield exec eval def elif")
_PROGRAM = re.compile(
    r"__|[A-Za-z0-9)\]]\.[A-Za-z_][A-Za-z_0-9]|[A-Za-z]{2,}\(|^\s*(?:import|from|def|class|return|raise|print|assert|del)\s"
    r"|\blambda\b|\bif\b.*\belse\b|[\[({][^\])}]*\bfor\b[^\])}]*\bin\b|//|<<|>>|:=|[@`\"#\[\]{}|]|\d(?:if|else|or|and)\b"
)
_COMMAND_WITH_ARGUMENTS = re.compile(r"\\[A-Za-z]+\s*(?:\{[^{}]*\})*")
_CALL = re.compile(r"\s*\w+\s*\([^A-Za-z]*\)\s*")
_NAMES_IN_PROSE = re.compile(r"\b(?:sin|cos|tan|log|ln|sqrt|exp|max|min|gcd|lcm)\(|[A-Za-z]{2,}\(s\)|e\.g\.|i\.e\.")
_WORD_IN_PROSE = re.compile(r"[^\W\d_]{2,}|[\u3400-\u9fff①-⑳]")
_TEXT_COMMAND = re.compile(r"\\(?:text|mbox|textbf|textit|textrm|mathrm)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_ARTICLES = re.compile(r"\b(?:a|an|the|The|An)\s+(?=\w)|\AA\s+(?=[a-z]{2})")
_MARKS = re.compile(r"\\\\|\\[$]|\\[ ,;:!()\[\]]|[$~]")
_LETTERS = re.compile(r"[A-Za-z]{2,}")


def as_words(text: str, start: int, end: int, tokens: list[Token], in_words: bool) -> Text | Refused | None:
    """A text without a mathematical reading as words; None where there are none, Refused where it is a program."""
    if "\\begin" in text or "\\end" in text:
        return None
    plain = _TEXT_COMMAND.sub(r" \1 ", text[start:end])
    bare = re.sub(r"\\[A-Za-z]+|~", " ", plain)
    bare = re.sub(r"[\\${}|]", " ", bare) if in_words or "\\" in text or "$" in text else bare
    outside = _COMMAND_WITH_ARGUMENTS.sub(" ", plain)
    found = [word for word in _WORD_IN_PROSE.findall(outside) if word.lower() not in ("and", "or")]
    telling = [
        word for word in found if (len(word) > 2 and not (len(word) == 3 and word.isupper())) or not word.isascii()
    ]
    if all(word in PLAIN_FUNCTIONS or word in PLAIN_NAMES for word in telling):
        letters = bare.replace(" ", "")
        if len(found) < 2 or "\\" in text or not letters.isalpha() or not letters.isascii():
            return None
    if _PROGRAM.search(_NAMES_IN_PROSE.sub(" ", bare)) or _CALL.fullmatch(bare):
        return Refused(Reason.PROGRAM_SYNTAX, start, "a program")
    if re.search(r"[^\W\d_]'[^\W\d_]*'|(?<!\w)'|'(?=\w*')", bare):
        return Refused(Reason.PROGRAM_SYNTAX, start, "quotation marks")
    for character in bare:
        if not (
            character.isalnum() or character.isspace() or character in "+-*/^_=<>()[],.;:!?%'&|°≤≥≠≈∞∈∠△√±×÷…·¥€£$°"
        ):
            return None
    return Text(plain_words(plain))


_AROUND_COMMA = re.compile(r" ?, ?(?![0-9]{3})")


def plain_words(text: str) -> str:
    """Words as they are compared: lower-case, blanks collapsed, no articles, no final full stop."""
    text = _MARKS.sub(" ", text)
    text = _AROUND_COMMA.sub(", ", " ".join(text.split()))
    without = _ARTICLES.sub("", text).rstrip(".").rstrip() or text
    return _LETTERS.sub(lambda word: word.group().lower(), without)
