"""Answer types: a tree read as the type that a task declares, and the type that a reference has by itself."""

from __future__ import annotations

from math import gcd

from veriward.rewards.contracts.v3.rules import realsets
from veriward.rewards.contracts.v3.tree import (
    SCALARS,
    Alternatives,
    Apply,
    Based,
    BigOperator,
    Bracketed,
    Choice,
    Degrees,
    Listing,
    Matrix,
    NamedSet,
    Negation,
    Node,
    Number,
    Percent,
    PlusMinus,
    Product,
    Quantity,
    Quotient,
    Ratio,
    Relation,
    SetBuilder,
    SetOf,
    SetOperation,
    Sum,
    Symbol,
    System,
    Text,
    Time,
    Truth,
    walk,
)

SEVERAL = (Listing, SetOf, Alternatives, Bracketed)
SINGLE_VALUES = (*SCALARS, Degrees, Percent, Quantity, Based, PlusMinus)
SETS = (SetOperation, SetBuilder, NamedSet, SetOf)


def as_declared(node: Node, answer_type: str) -> Node | None:
    """The tree as its declared type has it; None where it cannot be of that type."""
    match answer_type:
        case "tuple":
            return _tuple(node)
        case "list":
            return Listing(_parts(node))
        case "set":
            return SetOf(_parts(node))
        case "interval":
            if isinstance(node, Bracketed) and len(node.items) == 2:
                return SetOperation("union", (node,))
            return node if isinstance(node, (*SETS, Relation, Alternatives, Listing, System)) else None
        case "matrix":
            return _matrix(node)
        case "choice":
            return _choice(node)
        case "equation" | "inequality":
            return node if any(isinstance(part, Relation) for part in (node, *getattr(node, "items", ()))) else None
        case "number":
            return node if isinstance(node, SINGLE_VALUES) and not _letters(node) else _named(node)
        case "expression":
            return node if isinstance(node, SINGLE_VALUES) else _named(node)
        case "ratio":
            return node if isinstance(node, (Ratio, *SINGLE_VALUES)) else None
        case "text":
            return _choice(node) if isinstance(node, Symbol) else _of(node, Text, Truth, Choice, Time)
    return node


def _parts(node: Node) -> tuple[Node, ...]:
    """The parts of a list in whatever brackets; anything else, `[1, 2)` too, is one part."""
    if isinstance(node, Bracketed):
        return node.items if (node.left == "(") == (node.right == ")") else (node,)
    return node.items if isinstance(node, Listing | SetOf | Alternatives) else (node,)


def _tuple(node: Node) -> Node | None:
    """Brackets that only hold together; several tuples stay a list, and `[1, 2)` is no tuple."""
    match node:
        case Bracketed("(", items, ")") | Bracketed("[", items, "]"):
            return Bracketed("(", items, ")")
        case Listing(items) if not any(isinstance(item, (*SEVERAL, Relation)) for item in items):
            return Bracketed("(", items, ")")
        case Listing(items) if all(isinstance(item, Bracketed) for item in items):
            return Listing(tuple(_tuple(item) or item for item in items))
    return _of(node, Matrix)


def _of(node: Node, *kinds: type) -> Node | None:
    return node if isinstance(node, kinds) else None


def _named(node: Node) -> Node | None:
    """`x = 5` is a number with a name in front."""
    return node if isinstance(node, Relation) and node.operators == ("=",) else None


def _letters(node: Node) -> bool:
    return any(isinstance(part, Symbol) for part in walk(node))


def _matrix(node: Node) -> Node | None:
    if isinstance(node, Bracketed | Listing):
        if all(isinstance(item, Bracketed) for item in node.items):
            rows = tuple(item.items for item in node.items if isinstance(item, Bracketed))
            return Matrix(rows) if len({len(row) for row in rows}) == 1 else None
        return Matrix(tuple((item,) for item in node.items))
    return _of(node, Matrix)


def _choice(node: Node) -> Node | None:
    if isinstance(node, Choice):
        return Choice(node.letter.upper(), node.value)
    if isinstance(node, Symbol) and len(node.name) == 1:
        return Choice(node.name.upper(), None)
    return None


def derived_type(node: Node) -> str:
    """The answer type that a reference has by itself."""
    match node:
        case Bracketed(left, items, right):
            infinite = (realsets.UPWARD, realsets.DOWNWARD)
            if (left == "(") != (right == ")") or any(item in infinite for item in items):
                return "interval"
            return "tuple" if left == "(" else "list"
        case Listing() | Alternatives():
            return "list"
        case PlusMinus() | SetOf():
            return "set"
        case SetOperation() | SetBuilder() | NamedSet():
            return "interval"
        case Relation(_, operators):
            return "equation" if set(operators) <= {"=", "approx", "equiv"} else "inequality"
        case System():
            return "equation"
        case Matrix():
            return "matrix"
        case Choice():
            return "choice"
        case Text() | Truth() | Time():
            return "text"
        case Ratio():
            return "ratio"
    return "expression" if _letters(node) else "number"


def is_unevaluated(node: Node) -> bool:
    """Arithmetic on plain numbers that could still be worked out: `17 \\times 23`, `54 + 54`, `15/3`, a written sum.

    Powers, roots and a number times a power of ten are finished.
    """
    return any(_can_be_worked_out(part) for part in walk(node))


def _can_be_worked_out(node: Node) -> bool:
    match node:
        case Sum(parts):
            return sum(_is_plain(part) for part in parts) > 1
        case Product(parts):
            return sum(_is_plain(part) for part in parts) > 1
        case Quotient(numerator, denominator) if _is_plain(numerator) and _is_plain(denominator):
            return gcd(_plain(numerator), _plain(denominator)) != 1 or abs(_plain(denominator)) == 1
        case BigOperator() | Apply("factorial" | "binomial" | "gcd" | "lcm" | "max" | "min", _):
            return not _letters(node)
    return False


def _is_plain(node: Node) -> bool:
    inner = node.operand if isinstance(node, Negation) else node
    return isinstance(inner, Number) and inner.value != 0


def _plain(node: Node) -> int:
    inner = node.operand if isinstance(node, Negation) else node
    return inner.value.numerator if isinstance(inner, Number) else 1
