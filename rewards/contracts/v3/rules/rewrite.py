"""Trees made from trees: a letter replaced, a sign of plus-or-minus chosen, a relation brought to one side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction

from veriward.rewards.contracts.v3.tree import (
    Negation,
    Node,
    Number,
    PlusMinus,
    Quotient,
    Sum,
    Symbol,
    children,
    walk,
)

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def number(value: int | Fraction) -> Number:
    return Number(Fraction(value))


def difference(left: Node, right: Node) -> Node:
    return left if right == ZERO else Sum((left, Negation(right)))


def quotient(numerator: Node, denominator: Node) -> Node:
    return Quotient(numerator, denominator)


def symbols(*nodes: Node) -> tuple[Symbol, ...]:
    """Every letter, once, in the order of its name."""
    return tuple(sorted({part for node in nodes for part in walk(node) if isinstance(part, Symbol)}, key=_name))


def _name(symbol: Symbol) -> str:
    return symbol.name


def substituted(node: Node, values: Mapping[Symbol, Node]) -> Node:
    """The tree with letters replaced."""
    if isinstance(node, Symbol):
        return values.get(node, node)
    return rebuilt(node, {child: substituted(child, values) for child in children(node)})


def with_sign(node: Node, *, plus: bool) -> Node:
    """The tree with every plus-or-minus read as its upper or as its lower sign."""
    below = rebuilt(node, {child: with_sign(child, plus=plus) for child in children(node)})
    if not isinstance(below, PlusMinus):
        return below
    second = below.second if plus else Negation(below.second)
    return second if below.first is None else Sum((below.first, second))


def has_plus_minus(node: Node) -> bool:
    return any(isinstance(part, PlusMinus) for part in walk(node))


def rebuilt(node: Node, changed: Mapping[Node, Node]) -> Node:
    """The node with the nodes directly below it exchanged."""
    if all(old is new for old, new in changed.items()):
        return node
    parts: dict[str, object] = {}
    for part in fields(node):
        value = getattr(node, part.name)
        if isinstance(value, tuple):
            parts[part.name] = tuple(
                tuple(changed[item] for item in entry) if isinstance(entry, tuple) else changed.get(entry, entry)
                for entry in value
            )
        elif value is not None and not isinstance(value, str | int | Fraction):
            parts[part.name] = changed.get(value, value)
    return replace(node, **parts)  # type: ignore[arg-type]
