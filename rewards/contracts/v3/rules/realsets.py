"""Sets of real numbers as sorted, disjoint pieces: intervals, unions, inequalities in solved form, points.

Endpoints are constants that the engine can put in order; a set with an endpoint that it cannot order is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key

from veriward.rewards.contracts.v3.engine import algebra
from veriward.rewards.contracts.v3.tree import (
    Alternatives,
    Bracketed,
    Constant,
    Listing,
    NamedSet,
    Negation,
    Node,
    Number,
    Relation,
    SetBuilder,
    SetOf,
    SetOperation,
    Sum,
    Symbol,
    System,
    is_scalar,
    walk,
)

UPWARD, DOWNWARD = Constant("infinity"), Negation(Constant("infinity"))
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class Unreadable(Exception):  # noqa: N818  no error: it never leaves this module
    """Not a set of reals in solved form, or endpoints in no known order."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval; a point where both ends are the same and closed."""

    low: Node
    low_closed: bool
    high: Node
    high_closed: bool


Pieces = tuple[Piece, ...]

ZERO = Fraction(0)

EVERYTHING: Pieces = (Piece(DOWNWARD, False, UPWARD, False),)


def read(node: Node, *, brackets: bool = True) -> tuple[Pieces, Symbol | None] | None:
    """The set and the unknown it was written with, or None where it is no set of reals in solved form.

    brackets   a pair in round or square brackets may be an interval
    """
    try:
        return _read(node, brackets)
    except Unreadable:
        return None


def _read(node: Node, brackets: bool) -> tuple[Pieces, Symbol | None]:
    match node:
        case Bracketed(left, (low, high), right) if brackets and _is_end(low) and _is_end(high):
            return _interval(low, left == "[", high, right == "]"), None
        case SetOf(items) if all(map(_is_constant, items)):
            return _united([(Piece(item, True, item, True),) for item in items]), None
        case NamedSet("R"):
            return EVERYTHING, None
        case NamedSet("R+"):
            return (Piece(Number(ZERO), False, UPWARD, False),), None
        case NamedSet("R-"):
            return (Piece(DOWNWARD, False, Number(ZERO), False),), None
        case SetOperation("union", items):
            return _combined(items, brackets, _united)
        case SetOperation("intersection", items):
            return _combined(items, brackets, _common)
        case SetOperation("difference", (whole, taken)):
            kept, unknown = _read(whole, brackets)
            return _common([kept, _complement(_read(taken, brackets)[0])]), unknown
        case SetBuilder(Symbol() as unknown, condition):
            pieces, within = _read(condition, brackets)
            if within != unknown:
                raise Unreadable
            return pieces, unknown
        case SetBuilder(Relation((Symbol() as unknown, NamedSet("R")), ("in",)), condition):
            return _read(SetBuilder(unknown, condition), brackets)
        case Relation(operands, operators):
            return _solved(operands, operators)
        case Alternatives(items):
            return _combined(items, False, _united)
        case System(items) | Listing(items) if all(isinstance(item, Relation) for item in items):
            return _combined(items, False, _common)
    raise Unreadable


def _combined(
    items: Sequence[Node], brackets: bool, combine: Callable[[Sequence[Pieces]], Pieces]
) -> tuple[Pieces, Symbol | None]:
    read_items = [_read(item, brackets) for item in items]
    unknowns = {unknown for _, unknown in read_items if unknown is not None}
    if len(unknowns) > 1:
        raise Unreadable
    return combine([pieces for pieces, _ in read_items]), next(iter(unknowns), None)


def _solved(operands: tuple[Node, ...], operators: tuple[str, ...]) -> tuple[Pieces, Symbol]:
    """`x > 2`, `2 > x`, `1 < x <= 3`, `x != 2`, `x \\in [1, 2]`: the unknown alone against constants."""
    unknowns = [at for at, operand in enumerate(operands) if isinstance(operand, Symbol)]
    if len(unknowns) != 1:
        raise Unreadable
    (at,) = unknowns
    unknown = operands[at]
    if not isinstance(unknown, Symbol) or len(operands) > 3 or (len(operands) == 3 and at != 1):
        raise Unreadable
    if operators == ("in",) and at == 0:
        return _read(operands[1], True)[0], unknown
    conditions = []
    for place, operator in enumerate(operators):
        left, right = operands[place], operands[place + 1]
        other, meant = (right, operator) if place == at else (left, MIRRORED.get(operator, operator))
        if not _is_end(other):
            raise Unreadable
        conditions.append(_half_line(meant, other))
    return _common(conditions), unknown


def _half_line(operator: str, end: Node) -> Pieces:
    match operator:
        case "<" | "<=":
            return _interval(DOWNWARD, False, end, operator == "<=")
        case ">" | ">=":
            return _interval(end, operator == ">=", UPWARD, False)
        case "=":
            return _interval(end, True, end, True)
        case "!=":
            return _complement(_interval(end, True, end, True))
    raise Unreadable


def _interval(low: Node, low_closed: bool, high: Node, high_closed: bool) -> Pieces:
    """One piece; none where the ends leave nothing between them. An end at infinity is open, or it is no interval."""
    if (low_closed and _is_infinite(low)) or (high_closed and _is_infinite(high)):
        raise Unreadable
    place = order(low, high)
    if place > 0:
        raise Unreadable
    if place == 0 and not (low_closed and high_closed):
        return ()
    return (Piece(low, low_closed, high, high_closed),)


def order(left: Node, right: Node) -> int:
    """-1, 0 or 1 as left is below, at or above right; Unreadable where that is not proved."""
    first, second = _rank(left), _rank(right)
    if first or second:
        return (first > second) - (first < second)
    sign = algebra.sign(Sum((left, Negation(right))))
    if sign is None:
        raise Unreadable
    return sign


def _rank(end: Node) -> int:
    return 1 if end == UPWARD else -1 if end == DOWNWARD else 0


def _is_infinite(end: Node) -> bool:
    return _rank(end) != 0


def _is_end(node: Node) -> bool:
    return _is_infinite(node) or _is_constant(node)


def _is_constant(node: Node) -> bool:
    return is_scalar(node) and not any(isinstance(part, Symbol) or part == UPWARD for part in walk(node))


def _united(sets: Sequence[Pieces]) -> Pieces:
    """Sorted, and pieces that overlap or touch made one."""
    pieces = sorted((piece for one in sets for piece in one), key=cmp_to_key(_by_low))
    united: list[Piece] = []
    for piece in pieces:
        if united and _meets(united[-1], piece):
            united[-1] = _spanned(united[-1], piece)
        else:
            united.append(piece)
    return tuple(united)


def _by_low(one: Piece, other: Piece) -> int:
    return order(one.low, other.low) or other.low_closed - one.low_closed


def _meets(one: Piece, later: Piece) -> bool:
    place = order(one.high, later.low)
    return place > 0 or (place == 0 and (one.high_closed or later.low_closed))


def _spanned(one: Piece, later: Piece) -> Piece:
    place = order(one.high, later.high)
    if place > 0:
        return one
    closed = later.high_closed or (place == 0 and one.high_closed)
    return Piece(one.low, one.low_closed, later.high, closed)


def _complement(pieces: Pieces) -> Pieces:
    gaps: list[Piece] = []
    low, low_closed = DOWNWARD, False
    edge: Node = low
    for piece in pieces:
        gaps += _gap(edge, low_closed, piece.low, not piece.low_closed)
        edge, low_closed = piece.high, not piece.high_closed
    gaps += _gap(edge, low_closed, UPWARD, False)
    return tuple(gaps)


def _gap(low: Node, low_closed: bool, high: Node, high_closed: bool) -> Pieces:
    if _is_infinite(low) and low == high:
        return ()
    return _interval(low, low_closed and not _is_infinite(low), high, high_closed and not _is_infinite(high))


def _common(sets: Sequence[Pieces]) -> Pieces:
    """What all have in common: the complement of the united complements."""
    return _complement(_united([_complement(one) for one in sets]))


def ends(pieces: Pieces) -> Iterable[Node]:
    for piece in pieces:
        yield piece.low
        yield piece.high
