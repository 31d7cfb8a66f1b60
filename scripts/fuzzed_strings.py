"""Responses to fuzz a verifier with: expressions, pieces of notation in a row, noise, and mutations of real texts.

Each follows from its seed, its number, the contract and the texts at hand alone, so that one can be drawn again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from veriward.rewards import ANSWER_TYPES, CONTRACTS, get_contract
from veriward.scripts.answer_strings import NOISE, grammar_pairs, hostile_pairs
from veriward.tool_agent.errors import ConfigError

LONGEST = 16_000
"""Characters of a response; a mutation that makes more is cut."""
SHORT = 300
"""Characters up to which a text is called an answer."""
TYPES = tuple(ANSWER_TYPES)


# ------------------------------------------------------------------------------------------------------ the texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What people and models wrote, to be mutated."""

    answers: tuple[str, ...]
    """References and answers."""
    responses: tuple[str, ...]


def read_texts(shared: Path | None) -> Texts:
    """The texts of all contracts' case tables and, where given, of every JSONL file in the folder's cases/ and data/.

    raises   ConfigError if the folder has no such files
    """
    rows = [case for name in CONTRACTS for case in get_contract(name).read_cases()]
    if shared is not None:
        paths = sorted([*shared.glob("cases/*.jsonl"), *shared.glob("data/*.jsonl")])
        if not paths:
            raise ConfigError(
                f"--shared {shared}: no .jsonl file in its cases/ and data/; name the folder that holds both"
            )
        rows += [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]
    found = list(dict.fromkeys(text for row in rows for text in _texts_of(row)))
    return Texts(
        answers=tuple(text for text in found if len(text) <= SHORT),
        responses=tuple(text for text in found if len(text) > SHORT or "boxed" in text or "think" in text),
    )


def _texts_of(row: dict[str, Any]) -> Iterator[str]:
    columns = ("prediction", "reference", "answer", "response", "expression", "text", "solution", "input")
    for value in (row.get(column) for column in columns):
        if isinstance(value, str):
            yield value
    if row.get("parts"):
        yield "".join(text * count for text, count in row["parts"])[:LONGEST]


# ---------------------------------------------------------------------------------------------------- the strings


@dataclass(frozen=True, slots=True)
class Case:
    """One call of `verify`."""

    kind: str
    response: str
    reference: str
    answer_type: str | None = None
    truncated: bool = False


SIGNS = "+ - * / ^ _ ! % ° = < > , ; : . | & ( ) [ ] { } $ ' ± × · ÷ √ π ∞ − ≤ ∈ ∪ （ ） ， 。 或 和"
VALUES = "0 1 2 3 7 12 100 0.5 .25 1,000 1e308 10^ x y z n a i e ½ 三 万 米 度 x= (A) cm apples and or Answer:"
COMMANDS = (
    r"\frac{ \dfrac12 \sqrt{ \sqrt[3]{ \pi \infty \left( \right) \text{ \mathrm{ \begin{pmatrix} \end{pmatrix} \\ "
    r"\sin \cos \ln \log \log_2 \arctan \pm \cdot \times \le \ne \in \cup \{ \} \% \$ \circ ^\circ \binom{ \lfloor "
    r"\boxed{ \sum_{k=1}^ \int_0^ \lim_{x\to dx \overline{ \cdots \quad }{ }^{ }_{ <think> </think> ###"
)
PIECES = (*SIGNS.split(), *VALUES.split(), *COMMANDS.split(), " ", " ", " ", "\n", "\n\n")
"""Notation and words that the grammar and the extraction give a meaning."""

LEFT_AND_RIGHT = (
    r"( ) | { } | [ ] | \left( \right) | \sqrt{ } | \frac{ }{2} | \frac{1}{1+ } | ( )^2 | ( )^{64} | 2^{ } | -( ) | "
    r"\sin( ) | \text{ } | \boxed{ } | \{ \} | $ $ | <think> </think>"
)
AROUND = (
    *((*pair.split(),) for pair in LEFT_AND_RIGHT.split(" | ")),
    ("|", "|"),
    ("-", ""),
    ("", "!"),
    ("", "%"),
    ("√", ""),
)
"""What is put around a text, up to forty times."""

HOSTILE_SIGNS = "\x00\x1b\r\x7f\x85\u200b\u202e\u2028\ufeff\u0301\ud800\udfff\U000e0041"
"""Control characters, marks without width, halves of surrogate pairs."""

LOOKALIKES = tuple(
    str.maketrans(plain, other)
    for plain, other in (
        ("0123456789+-=()", "０１２３４５６７８９＋－＝（）"),
        ("0123456789", "٠١٢٣٤٥٦٧٨٩"),
        ("0123456789", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"),
        ("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ"),
        ("0123456789", "〇一二三四五六七八九"),
        ("-*/<>,.:", "−×∕＜＞，。："),
        ("aceopxyABCE", "асеорхуАВСЕ"),
        ("{}()[]\\", "｛｝（）［］＼"),
    )
)

DIGITS = re.compile(r"\d+")


def drawn(seed: int, number: int, texts: Texts, contract: str) -> Case:
    """The string of that number."""
    draw = Random((seed << 40) + number)
    kind = draw.choices(list(KINDS), cum_weights=_CUMULATED)[0]
    text, reference = KINDS[kind][1](draw, texts, contract)
    typed = get_contract(contract).reads_types and draw.random() < 0.15
    return Case(
        kind,
        (text if kind == "response" else _worded(draw, text))[:LONGEST],
        reference[:LONGEST],
        draw.choice(TYPES) if typed else None,
        draw.random() < 0.1,
    )


def _grammar(draw: Random, _texts: Texts, contract: str) -> tuple[str, str]:
    return next(grammar_pairs(1, seed=draw.getrandbits(40), contract=contract))


def _hostile(draw: Random, _texts: Texts, _contract: str) -> tuple[str, str]:
    return next(hostile_pairs(1, seed=draw.getrandbits(40)))


def _pieces(draw: Random, texts: Texts, _contract: str) -> tuple[str, str]:
    text = "".join(draw.choices(PIECES, k=draw.randint(1, 24)))
    return text, _reference(draw, text, texts)


def _noise(draw: Random, texts: Texts, _contract: str) -> tuple[str, str]:
    text = "".join(draw.choices(NOISE, k=draw.randint(0, 60)))
    return text, _reference(draw, text, texts)


def _answer(draw: Random, texts: Texts, _contract: str) -> tuple[str, str]:
    text = draw.choice(texts.answers)
    return _mutated(draw, text, texts), _reference(draw, text, texts)


def _response(draw: Random, texts: Texts, _contract: str) -> tuple[str, str]:
    text = draw.choice(texts.responses or texts.answers)
    return _mutated(draw, text, texts), draw.choice(texts.answers)


KINDS: dict[str, tuple[int, Callable[[Random, Texts, str], tuple[str, str]]]] = {
    "grammar": (15, _grammar),
    "hostile": (5, _hostile),
    "pieces": (20, _pieces),
    "noise": (10, _noise),
    "answer": (40, _answer),
    "response": (10, _response),
}
"""Kinds of strings: their share in percent, and what makes a text and its reference."""

_CUMULATED = list(accumulate(share for share, _ in KINDS.values()))


def _reference(draw: Random, text: str, texts: Texts) -> str:
    """The text itself, a mutation of it, or another one."""
    chance = draw.random()
    if chance < 0.4:
        return text
    return _mutated(draw, text, texts) if chance < 0.7 else draw.choice(texts.answers)


def _worded(draw: Random, text: str) -> str:
    """The text as a response: bare, in a box, in a sentence, behind thinking, cut off."""
    chance = draw.random()
    if chance < 0.5:
        return rf"\boxed{{{text}}}"
    if chance < 0.75:
        return text
    return draw.choice(
        (
            f"So the answer is {text}.",
            f"**Answer:** ${text}$\n",
            f"答案是{text}。",
            rf"<think>{text} or \boxed{{9}}?</think> It is \boxed{{{text}}}.",
            rf"\boxed{{{text}}} and \boxed{{{text}}}",
            rf"so \boxed{{{text}",
            rf"$$\boxed{{\boxed{{{text}}}}}$$ 1",
            f"#### {text}",
        )
    )


# -------------------------------------------------------------------------------------------------- the mutations


def _mutated(draw: Random, text: str, texts: Texts) -> str:
    for _ in range(draw.randint(1, 3)):
        text = draw.choice(MUTATIONS)(draw, text, texts)[:LONGEST]
    return text


def _cuts(draw: Random, text: str, count: int) -> list[int]:
    return sorted(draw.randint(0, len(text)) for _ in range(count))


def _deleted(draw: Random, text: str, _texts: Texts) -> str:
    start, end = _cuts(draw, text, 2)
    return text[:start] + text[end:] if draw.random() < 0.3 else text[:start] + text[start + draw.randint(1, 3) :]


def _doubled(draw: Random, text: str, _texts: Texts) -> str:
    start, end = _cuts(draw, text, 2)
    return text[:end] + text[start:end] * draw.choice((1, 1, 2, 30)) + text[end:]


def _swapped(draw: Random, text: str, _texts: Texts) -> str:
    first, second, third = _cuts(draw, text, 3)
    return text[:first] + text[second:third] + text[first:second] + text[third:]


def _spliced(draw: Random, text: str, texts: Texts) -> str:
    other = draw.choice(texts.answers)
    return text[: draw.randint(0, len(text))] + other[draw.randint(0, len(other)) :]


def _nested(draw: Random, text: str, _texts: Texts) -> str:
    left, right = draw.choice(AROUND)
    times = draw.randint(2, 40)
    return left * times + text + right * times


def _looking_alike(draw: Random, text: str, _texts: Texts) -> str:
    return text.translate(draw.choice(LOOKALIKES))


def _huge(draw: Random, text: str, _texts: Texts) -> str:
    """A number of the text made long: thousands of digits, an exponent, a decimal without end."""
    digits = draw.choice("1379") * draw.choice((15, 300, 4_301, 9_000))
    number = draw.choice(
        (digits, f"0.{digits}", f"10^{{{digits}}}", "1e999999999", f"9^{digits[:12]}", f"{digits[:40]}!")
    )
    numbers = list(DIGITS.finditer(text))
    if not numbers:
        return text + number
    old = draw.choice(numbers)
    return text[: old.start()] + number + text[old.end() :]


def _with_hostile_signs(draw: Random, text: str, _texts: Texts) -> str:
    for _ in range(draw.randint(1, 3)):
        at = draw.randint(0, len(text))
        text = text[:at] + draw.choice(HOSTILE_SIGNS) + text[at:]
    return text


def _with_a_piece(draw: Random, text: str, _texts: Texts) -> str:
    at = draw.randint(0, len(text))
    return text[:at] + draw.choice(PIECES) + text[at:]


MUTATIONS: tuple[Callable[[Random, str, Texts], str], ...] = (
    _deleted,
    _doubled,
    _swapped,
    _spliced,
    _nested,
    _looking_alike,
    _huge,
    _with_hostile_signs,
    _with_a_piece,
)
