"""The family of random expressions: worked out exactly, and the same with one leaf or one operator changed.

Three kinds of numbers: rationals, a + b*sqrt(d) with rational a and b, and polynomials in x and y with integer
coefficients. Each kind has sums, differences and products that are exact, so that a changed tree is known to differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from veriward.eval.attack.families.kit import Family, pair
from veriward.eval.attack.families.values import SQUAREFREE, Drawn, fraction_text

OPERATORS = "+-*"
Terms = Mapping[tuple[int, int], Fraction]
"""Coefficients by exponents: of x and y, or of sqrt(d), whose square is then a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """Where a tree's leaves are drawn from, and what is done to its products."""

    leaf: Callable[[random.Random], tuple[str, Terms]]
    """Draws a spelling and its value."""
    radicand: int = 0
    """The square of the first letter; 0 where it is a letter."""


def number_leaf(draw: random.Random) -> tuple[str, Terms]:
    value = Fraction(draw.randint(1, 12), draw.choice((1, 1, 2, 3, 4, 5)))
    return fraction_text(value), {(0, 0): value}


def surd_leaf(radicand: int) -> Callable[[random.Random], tuple[str, Terms]]:
    def leaf(draw: random.Random) -> tuple[str, Terms]:
        factor = draw.randint(2, 9)
        if draw.random() < 0.5:
            return number_leaf(draw)
        return rf"{factor}\sqrt{{{radicand}}}", {(1, 0): Fraction(factor)}

    return leaf


def letter_leaf(draw: random.Random) -> tuple[str, Terms]:
    factor = draw.randint(1, 9)
    spelled = "" if factor == 1 else str(factor)
    leaves: list[tuple[str, Terms]] = [
        (f"{spelled}x", {(1, 0): Fraction(factor)}),
        (f"{spelled}y", {(0, 1): Fraction(factor)}),
        (str(factor), {(0, 0): Fraction(factor)}),
    ]
    return draw.choice(leaves)


def combined(operator: str, left: Terms, right: Terms, ring: Ring) -> Terms:
    """The exact value of `left operator right`, without zero terms."""
    result: dict[tuple[int, int], Fraction] = {}
    if operator == "*":
        for (a, b), first in left.items():
            for (c, d), second in right.items():
                power, factor = a + c, first * second
                if ring.radicand and power == 2:
                    power, factor = 0, factor * ring.radicand
                result[power, b + d] = result.get((power, b + d), Fraction(0)) + factor
    else:
        result = dict(left)
        for place, value in right.items():
            result[place] = result.get(place, Fraction(0)) + (value if operator == "+" else -value)
    return {place: value for place, value in result.items() if value}


def tree(draw: random.Random, ring: Ring, depth: int) -> tuple[str, Terms, str, Terms]:
    """An expression and its value, and beside it one with a leaf or an operator changed, and its value."""
    if depth == 0:
        text, value = ring.leaf(draw)
        other, changed = ring.leaf(draw)
        return text, value, other, changed
    operator = draw.choice(OPERATORS)
    left, left_value, other_left, other_left_value = tree(draw, ring, depth - 1)
    right, right_value, other_right, other_right_value = tree(draw, ring, depth - 1)
    where = draw.choice(("left", "right", "operator"))
    changed_operator = (
        draw.choice([sign for sign in OPERATORS if sign != operator]) if where == "operator" else operator
    )
    changed_left, changed_left_value = (other_left, other_left_value) if where == "left" else (left, left_value)
    changed_right, changed_right_value = (other_right, other_right_value) if where == "right" else (right, right_value)
    return (
        spelled(operator, left, right),
        combined(operator, left_value, right_value, ring),
        spelled(changed_operator, changed_left, changed_right),
        combined(changed_operator, changed_left_value, changed_right_value, ring),
    )


def spelled(operator: str, left: str, right: str) -> str:
    return (
        rf"\left({left}\right) \cdot \left({right}\right)"
        if operator == "*"
        else rf"{left} {operator} \left({right}\right)"
    )


def worked_out(value: Terms, first: str) -> str:
    """A value as a sum, the constant last."""
    text = ""
    for (a, b), factor in sorted(value.items(), reverse=True):
        letters = power_of(first, a) + power_of("y", b)
        size = "" if abs(factor) == 1 and letters else fraction_text(abs(factor))
        text += ("-" if factor < 0 else "+" if text else "") + size + letters
    return text or "0"


def power_of(letter: str, exponent: int) -> str:
    return "" if exponent == 0 else letter if exponent == 1 else f"{letter}^{{{exponent}}}"


def rational(_: random.Random) -> tuple[Ring, str]:
    return Ring(leaf=number_leaf), ""


def surd(draw: random.Random) -> tuple[Ring, str]:
    radicand = draw.choice(SQUAREFREE)
    return Ring(leaf=surd_leaf(radicand), radicand=radicand), rf"\sqrt{{{radicand}}}"


def polynomial(_: random.Random) -> tuple[Ring, str]:
    return Ring(leaf=letter_leaf), "x"


RingOf = Callable[[random.Random], tuple[Ring, str]]
"""Draws a ring and the spelling of its first letter."""


def equal_tree(ring_of: RingOf) -> Callable[[random.Random], Drawn]:
    """A tree for its value, worked out."""

    def drawn(draw: random.Random) -> Drawn:
        ring, first = ring_of(draw)
        text, value, _, _ = tree(draw, ring, draw.randint(2, 3))
        return text, worked_out(value, first)

    return drawn


def changed_tree(ring_of: RingOf) -> Callable[[random.Random], Drawn]:
    """A tree with one change for the value before it; drawn again while the value is the same."""

    def drawn(draw: random.Random) -> Drawn:
        ring, first = ring_of(draw)
        while True:
            _, value, other, changed = tree(draw, ring, draw.randint(2, 3))
            if value != changed:
                return other, worked_out(value, first)

    return drawn


TREES = Family(
    name="expressions",
    tries="random expressions for their exact values, and with one leaf or operator changed",
    builders=(
        pair("random arithmetic", True, equal_tree(rational)),
        pair("random arithmetic changed", False, changed_tree(rational)),
        pair("random surds", True, equal_tree(surd)),
        pair("random surds changed", False, changed_tree(surd)),
        pair("random polynomial", True, equal_tree(polynomial), asks="expression"),
        pair("random polynomial changed", False, changed_tree(polynomial), asks="expression"),
    ),
)
