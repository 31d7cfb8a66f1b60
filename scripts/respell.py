"""The same answer in other words: what people and models write for one value, made from its tree.

respelled(r"\\frac{\\sqrt{3}}{2}")  ->  [("dfrac", …), ("spaces", …), ("dollar", …), ("plain", "sqrt(3)/2"), …]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from veriward.rewards.contracts.v3.reading.grammar import Refused, parse
from veriward.rewards.contracts.v3.tree import (
    Apply,
    Based,
    Bracketed,
    Constant,
    Degrees,
    Listing,
    Matrix,
    Negation,
    Node,
    Number,
    Percent,
    Power,
    Product,
    Quotient,
    Ratio,
    Relation,
    Root,
    SetOf,
    SetOperation,
    Sum,
    Symbol,
)

SPACED = re.compile(r"\s*([-+=,<>])\s*")
LATEX_NAMES = {"pi": r"\pi", "infinity": r"\infty", "e": "e", "i": "i"}
LATEX_SIGNS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "in": r"\in"}
PLAIN_NAMES = {"pi": "pi", "infinity": "oo", "e": "e", "i": "i"}
BIG = {"union": r"\cup", "intersection": r"\cap", "difference": r"\setminus"}


class Unwritten(Exception):  # noqa: N818  no error: it never leaves this module
    """A node that this writer has no spelling for."""


def respelled(text: str) -> Iterator[tuple[str, str]]:
    """(way, text) for every way that applies and changes the text."""
    ways: list[tuple[str, Callable[[], str]]] = [
        ("dfrac", lambda: text.replace(r"\frac", r"\dfrac")),
        ("dollar", lambda: f"${text}$" if "$" not in text else text),
    ]
    if "text" not in text and "mbox" not in text and "mathrm" not in text and "begin" not in text:
        ways.append(("spaces", lambda: SPACED.sub(r" \1 ", text) if not re.search(r"\d,\d|,\\!", text) else text))
    node = parse(text)
    if not isinstance(node, Refused):
        ways += [
            ("plain", lambda: write(node, latex=False, mirrored=False)),
            ("latex", lambda: write(node, latex=True, mirrored=False)),
            ("commuted", lambda: write(node, latex=True, mirrored=True)),
        ]
    for way, make in ways:
        try:
            other = make()
        except Unwritten:
            continue
        if other != text:
            yield way, other


def write(node: Node, *, latex: bool, mirrored: bool) -> str:
    """A tree as text; `mirrored` turns sums, products and sets round. Unwritten where there is no spelling."""

    def inner(part: Node) -> str:
        return write(part, latex=latex, mirrored=mirrored)

    def held(part: Node) -> str:
        """In brackets unless it holds together by itself."""
        text = inner(part)
        plain = isinstance(part, Symbol | Constant | Root | Apply) or (isinstance(part, Number) and "/" not in text)
        return text if plain and not text.startswith("-") else f"({text})"

    def turned(parts: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(reversed(parts)) if mirrored else parts

    def grouped(text: str) -> str:
        return f"{{{text}}}" if latex else f"({text})"

    match node:
        case Number(value):
            if value.denominator == 1:
                return str(value.numerator)
            if not latex:
                return f"{value.numerator}/{value.denominator}"
            return rf"{'-' if value < 0 else ''}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
        case Symbol(name):
            if not re.fullmatch(r"[A-Za-z]", name):
                raise Unwritten
            return name
        case Constant(name):
            return (LATEX_NAMES if latex else PLAIN_NAMES)[name]
        case Negation(operand):
            return f"-{held(operand)}"
        case Sum(terms):
            return "+".join(
                f"({inner(term)})" if inner(term).startswith("-") else inner(term) for term in turned(terms)
            )
        case Product(factors):
            return (r" \cdot " if latex else "*").join(map(held, turned(factors)))
        case Quotient(numerator, denominator):
            return (
                rf"\frac{{{inner(numerator)}}}{{{inner(denominator)}}}"
                if latex
                else f"{held(numerator)}/{held(denominator)}"
            )
        case Power(base, exponent):
            return f"{held(base)}^{grouped(inner(exponent))}"
        case Root(radicand, 2):
            return rf"\sqrt{grouped(inner(radicand))}" if latex else f"sqrt({inner(radicand)})"
        case Root(radicand, degree) if latex:
            return rf"\sqrt[{degree}]{{{inner(radicand)}}}"
        case Apply("abs", (operand,)):
            return f"|{inner(operand)}|"
        case Apply("sin" | "cos" | "tan" | "ln" as name, (operand,)):
            return rf"\{name}({inner(operand)})" if latex else f"{name}({inner(operand)})"
        case Bracketed(left, items, right):
            return f"{left}{', '.join(map(inner, items))}{right}"
        case Listing(items):
            return ", ".join(map(inner, turned(items)))
        case SetOf(items) if items:
            return rf"\{{{', '.join(map(inner, turned(items)))}\}}"
        case SetOperation(operator, items):
            return f" {BIG[operator]} ".join(map(inner, items if operator == "difference" else turned(items)))
        case Relation(operands, operators) if all(sign in "=<=>=" for sign in operators):
            signs = [f" {LATEX_SIGNS.get(sign, sign) if latex else sign} " for sign in operators]
            return "".join(part + sign for part, sign in zip(map(inner, operands), [*signs, ""], strict=True))
        case Matrix(rows):
            lines = r" \\ ".join(" & ".join(map(inner, row)) for row in rows)
            return rf"\begin{{bmatrix}} {lines} \end{{bmatrix}}"
        case Ratio(parts):
            return ":".join(map(held, parts))
        case Percent(operand):
            return rf"{inner(operand)}\%" if latex else f"{inner(operand)}%"
        case Degrees(operand):
            return rf"{held(operand)}^{{\circ}}" if latex else f"{held(operand)}°"
        case Based(digits, base):
            return f"{digits}_{{{base}}}" if latex else f"{digits}_{base}"
    raise Unwritten
