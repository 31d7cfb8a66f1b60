"""What every family is made of: drafts of cases, and the words around a problem and an answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Call = Literal["plain", "thread", "async"]

PROMPTS = {
    "number": "Find the value that the following exercise asks for: {source}.",
    "expression": "Write the quantity of {source} in terms of its letters.",
    "list": "Find all solutions of {source}.",
    "point": "Find the coordinates of the point in {source}.",
    "interval": "For which real x does the condition in {source} hold?",
    "equation": "Give an equation of the curve in {source}.",
    "matrix": "Compute the matrix of {source}.",
    "choice": "Which of the options (A) to (E) of {source} is right?",
    "words": "Answer the question of {source} in a word.",
    "base": "Write the result of {source} in the base that is asked for.",
}
SOURCES = (
    "exercise {}",
    "problem {}",
    "question {} of the sheet",
    "task {}",
    "exercise {} of the chapter on this topic",
)
INSTRUCTION = r" Put your final answer in \boxed{}."

OPENINGS = (
    "Let us set up the relation that is given and solve it.",
    "We work through the conditions one after the other.",
    "Rewriting what is given and collecting terms gives the result.",
    "First we translate the statement into symbols, then we simplify.",
    "By symmetry it is enough to look at one case.",
)
ENDINGS = (
    r"Therefore the answer is $\boxed{{{}}}$.",
    r"Hence we get \[\boxed{{{}}}\]",
    r"So the result is \boxed{{{}}}",
    r"The final answer is $\boxed{{{}}}$.",
    r"This gives $$\boxed{{{}}}.$$",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A case without its place in the suite; the fields are those of `AttackCase`."""

    mechanism: str
    prompt: str
    completion: str
    reference: str
    accept: bool | None
    call: Call = "plain"
    answer_type: str | None = None


Builder = Callable[[random.Random], Draft]
Pair = Callable[[random.Random], tuple[str, str]]
"""Draws an answer and a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Builders of cases that try one kind of thing."""

    name: str
    tries: str
    """What it tries, in one line."""
    builders: tuple[Builder, ...]

    def make(self, draw: random.Random, count: int) -> Iterator[Draft]:
        """`count` drafts, from the builders in turn."""
        for number in range(count):
            yield self.builders[number % len(self.builders)](draw)


def prompt_for(draw: random.Random, asks: str = "number") -> str:
    """The user's message. It names no figures of the problem, so that it agrees with any reference."""
    source = draw.choice(SOURCES).format(draw.randint(2, 60))
    return PROMPTS[asks].format(source=source) + INSTRUCTION


def boxed(draw: random.Random, answer: str) -> str:
    """A response that ends in a box."""
    return f"{draw.choice(OPENINGS)} {draw.choice(ENDINGS).format(answer)}"


def pair(mechanism: str, accept: bool | None, draw_pair: Pair, *, asks: str = "number") -> Builder:
    """A builder of cases whose answer stands in one box at the end of an ordinary response."""

    def build(draw: random.Random) -> Draft:
        answer, reference = draw_pair(draw)
        return Draft(
            mechanism=mechanism,
            prompt=prompt_for(draw, asks),
            completion=boxed(draw, answer),
            reference=reference,
            accept=accept,
        )

    return build


def response(mechanism: str, accept: bool | None, draw_pair: Pair, *, asks: str = "number") -> Builder:
    """A builder of cases whose whole response is drawn."""

    def build(draw: random.Random) -> Draft:
        completion, reference = draw_pair(draw)
        return Draft(
            mechanism=mechanism,
            prompt=prompt_for(draw, asks),
            completion=completion,
            reference=reference,
            accept=accept,
        )

    return build


def two(draw: random.Random, low: int, high: int) -> tuple[int, int]:
    """Two different integers, in no order."""
    first, second = draw.sample(range(low, high + 1), 2)
    return first, second
