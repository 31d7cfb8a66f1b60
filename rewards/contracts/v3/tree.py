"""The typed tree an answer is read into, and its one canonical spelling.

Scalars are what the engine (`algebra`) compares; everything else is compared part by part (`structure`). The grammar
builds no arithmetic on what is no scalar. Trees are immutable, hashable and bounded by the limits of their text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Literal

# ---------------------------------------------------------------------------------------------- scalars


@dataclass(frozen=True, slots=True)
class Number:
    """An exact rational: decimals, mixed numbers and repeating decimals as well."""

    value: Fraction
    text: str = field(default="", compare=False)
    """The numeral as written, `3.50`: its digits say whether a reference was rounded. Empty if computed."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name: `x`, `alpha`, `c_1`, `AB`, `x'`. Case counts."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    name: Literal["pi", "e", "i", "infinity"]


@dataclass(frozen=True, slots=True)
class Negation:
    operand: Node


@dataclass(frozen=True, slots=True)
class Sum:
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Product:
    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Quotient:
    numerator: Node
    denominator: Node


@dataclass(frozen=True, slots=True)
class Power:
    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Root:
    """The principal root; of odd degree and a negative real radicand, the real one."""

    radicand: Node
    degree: int


@dataclass(frozen=True, slots=True)
class Apply:
    """A known function of mathematics (`FUNCTIONS`) applied to its arguments."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function that has only a name, as the left side of `f(x) = x^2`; equal to itself and nothing else."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class BigOperator:
    """A sum, product, integral or limit, kept as written."""

    operator: Literal["sum", "prod", "int", "lim"]
    variable: str
    lower: Node | None
    """For a limit: where the variable goes."""
    upper: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class PlusMinus:
    """`a \\pm b`, or `\\pm b` where `first` is None: two values, spelled once. `a \\mp b` has a negated `second`."""

    first: Node | None
    second: Node


@dataclass(frozen=True, slots=True)
class Degrees:
    """An angle with its degree sign. Inside a trigonometric function it is `pi/180` each."""

    operand: Node


# ------------------------------------------------------------------------------- scalars that carry a mark


@dataclass(frozen=True, slots=True)
class Percent:
    operand: Node


@dataclass(frozen=True, slots=True)
class Quantity:
    """A scalar with a unit or words: `5 \\text{ cm}`, `\\$3`, `7 apples`, `5 米`."""

    operand: Node
    unit: str
    """As written, lower-case only where it is a word, blanks collapsed: `cm^2`, `square feet`, `apples`, `$`, `米`."""


@dataclass(frozen=True, slots=True)
class Based:
    """A numeral in a base: `1432_5`."""

    digits: str
    base: int


# ---------------------------------------------------------------------------------------------- structures


@dataclass(frozen=True, slots=True)
class Bracketed:
    """Comma-separated parts in round or square brackets: a point, a pair, a list or an interval, as the task has it."""

    left: Literal["(", "["]
    items: tuple[Node, ...]
    right: Literal[")", "]"]


@dataclass(frozen=True, slots=True)
class Listing:
    """Parts without brackets around them: `3, 5, 7`, `343 and 512`, `x=1, y=2`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Parts joined by 'or': `x=2 or x=3`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SetOf:
    """A finite set, written out; without items the empty set."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class NamedSet:
    name: str
    """One of N, Z, Q, R, C, with a mark as in `R+`."""


@dataclass(frozen=True, slots=True)
class SetOperation:
    operator: Literal["union", "intersection", "difference"]
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SetBuilder:
    """`\\{x \\mid x > 2\\}`."""

    element: Node
    condition: Node


@dataclass(frozen=True, slots=True)
class Relation:
    """A chain: one operator fewer than operands. `1 < x \\le 3`, `x = 5`, `x \\in (1, 2)`, `a \\ne b`."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]
    """Each of = != < <= > >= in notin subset equiv approx."""


@dataclass(frozen=True, slots=True)
class System:
    """Relations that hold together: `\\begin{cases} … \\end{cases}`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    rows: tuple[tuple[Node, ...], ...]
    """All of one length. A column vector has rows of one entry."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """`2:3`, `1:4:9`."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An option's letter, with its own text where that stands behind it: `(C)`, `\\text{(D) }47`, `选C`."""

    letter: str
    """As written: upper-case for options, lower-case for labels."""
    value: Node | None


@dataclass(frozen=True, slots=True)
class Time:
    hour: int
    minute: int
    second: int | None
    half: Literal["am", "pm"] | None


@dataclass(frozen=True, slots=True)
class Truth:
    """yes/no, true/false, 是/否, 对/错, and the words they came as do not matter."""

    value: bool


@dataclass(frozen=True, slots=True)
class Dots:
    """An ellipsis among the parts of a list: `1, 3, \\ldots, 2n-1`."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words with no mathematical reading: lower-case, blanks collapsed, no articles, no final full stop."""

    words: str


Node = (
    Number
    | Symbol
    | Constant
    | Negation
    | Sum
    | Product
    | Quotient
    | Power
    | Root
    | Apply
    | Call
    | BigOperator
    | PlusMinus
    | Degrees
    | Percent
    | Quantity
    | Based
    | Bracketed
    | Listing
    | Alternatives
    | SetOf
    | NamedSet
    | SetOperation
    | SetBuilder
    | Relation
    | System
    | Matrix
    | Ratio
    | Choice
    | Time
    | Truth
    | Dots
    | Text
)

SCALARS = (Number, Symbol, Constant, Negation, Sum, Product, Quotient, Power, Root, Apply, Call, BigOperator)
"""What the engine compares, with Degrees inside trigonometric functions."""

FUNCTIONS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("sin", "cos", "tan", "cot", "sec", "csc"), (1,)),
    **dict.fromkeys(("arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc"), (1,)),
    **dict.fromkeys(("sinh", "cosh", "tanh", "coth", "sech", "csch"), (1,)),
    **dict.fromkeys(("arcsinh", "arccosh", "arctanh"), (1,)),
    **dict.fromkeys(("ln", "exp", "abs", "floor", "ceil", "factorial", "double_factorial"), (1,)),
    "log": (1, 2),
    **dict.fromkeys(("binomial", "permutations", "mod"), (2,)),
    **dict.fromkeys(("gcd", "lcm", "max", "min"), tuple(range(1, 17))),
    **dict.fromkeys(("re", "im", "conjugate", "arg", "det", "sgn", "deg"), (1,)),
}
"""Every known function and how many arguments it may have. `log` has (base, argument), or only the argument where no
base was written: 10 in school, e in analysis, so what holds for one base only is left undecided."""

_NODE_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(part.name for part in fields(kind) if "Node" in str(part.type)) for kind in Node.__args__
}
"""Which fields of each kind hold nodes."""


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, left to right."""
    for name in _NODE_FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            for item in value:
                if isinstance(item, tuple):
                    yield from item
                else:
                    yield item
        elif value is not None:
            yield value


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def is_scalar(node: Node) -> bool:
    """A plain value the engine can be asked about."""
    return isinstance(node, SCALARS) and not any(isinstance(part, PlusMinus) for part in walk(node))


# --------------------------------------------------------------------------------- the canonical spelling

_SUM, _PRODUCT, _POWER, _ATOM = range(4)
"""How tightly a spelling binds."""


def spell(node: Node) -> str:
    """One plain text per tree, sums and products flattened and sorted: equal spellings mean equal trees up to order.

    Sets and 'or' are sorted as well; lists and tuples keep their order. The verdict records it as the normal form.
    """
    return _spelled(node)[0]


def _spelled(node: Node) -> tuple[str, int]:
    """The spelling and how tightly it binds; one frame of Python's stack for a level of a scalar."""
    match node:
        case Number(value):
            binding = _SUM if value < 0 else _PRODUCT if value.denominator != 1 else _ATOM
            top = _digits(value.numerator)
            return top if value.denominator == 1 else f"{top}/{_digits(value.denominator)}", binding
        case Symbol(name) | Constant(name) | NamedSet(name):
            return name, _ATOM
        case Negation(operand):
            return f"-{_in_brackets(_spelled(operand), _PRODUCT)}", _SUM
        case Sum():
            texts = []
            for term in _flat(node, Sum):
                texts.append(_in_brackets(_spelled(term), _PRODUCT))
            texts.sort()
            return " + ".join(texts), _SUM
        case Product():
            texts = []
            for factor in _flat(node, Product):
                texts.append(_in_brackets(_spelled(factor), _POWER))
            texts.sort()
            return "*".join(texts), _PRODUCT
        case Quotient(numerator, denominator):
            top, bottom = _in_brackets(_spelled(numerator), _POWER), _in_brackets(_spelled(denominator), _POWER)
            return f"{top}/{bottom}", _PRODUCT
        case Power(base, exponent):
            text = _in_brackets(_spelled(base), _ATOM)
            return f"{text}^{_in_brackets(_spelled(exponent), _ATOM)}", _POWER
        case Root(radicand, 2):
            return f"sqrt({_spelled(radicand)[0]})", _ATOM
        case Root(radicand, degree):
            return f"root({_digits(degree)}, {_spelled(radicand)[0]})", _ATOM
        case Apply(name, arguments) | Call(name, arguments):
            texts = []
            for argument in arguments:
                texts.append(_spelled(argument)[0])
            return f"{name}({', '.join(texts)})", _ATOM
        case BigOperator(operator, variable, lower, upper, body):
            texts = [_spelled(body)[0], variable]
            for end in (lower, upper):
                texts.append("" if end is None else _spelled(end)[0])
            return f"{operator}({', '.join(texts)})", _ATOM
        case PlusMinus(first, second):
            start = "" if first is None else f"{_in_brackets(_spelled(first), _PRODUCT)} "
            sign = "±"
            if isinstance(second, Negation):
                sign, second = "∓", second.operand
            return f"{start}{sign} {_in_brackets(_spelled(second), _PRODUCT)}", _SUM
        case Degrees(operand):
            return f"{_in_brackets(_spelled(operand), _ATOM)}°", _POWER
        case Percent(operand):
            return f"{_in_brackets(_spelled(operand), _ATOM)}%", _POWER
        case Quantity(operand, unit):
            return f"{_in_brackets(_spelled(operand), _ATOM)} [{unit}]", _POWER
        case Based(digits, base):
            return f"{digits}_{base}", _ATOM
        case _:
            return _spelled_structure(node), _ATOM


_DECIMAL_BITS = 13_000
"""Bits of an integer spelled in decimal digits; larger ones in base 16, as Python refuses above 4,300 digits."""


def _digits(number: int) -> str:
    return str(number) if number.bit_length() <= _DECIMAL_BITS else hex(number)


def _spelled_structure(node: Node) -> str:
    match node:
        case Bracketed(left, items, right):
            return f"{left}{_listed(items)}{right}"
        case Listing(items):
            return f"list({_listed(items)})"
        case Alternatives(items):
            return f"or({', '.join(sorted(map(spell, items)))})"
        case SetOf(items):
            return "{" + ", ".join(sorted(set(map(spell, items)))) + "}"
        case SetOperation("difference", items):
            return f"difference({_listed(items)})"
        case SetOperation(name, items):
            return f"{name}({', '.join(sorted(map(spell, items)))})"
        case SetBuilder(element, condition):
            return "{" + f"{spell(element)} | {spell(condition)}" + "}"
        case Relation(operands, operators):
            parts = [spell(operands[0])]
            for operator, operand in zip(operators, operands[1:], strict=True):
                parts += [operator, spell(operand)]
            return " ".join(parts)
        case System(items):
            return f"system({', '.join(sorted(map(spell, items)))})"
        case Matrix(rows):
            return "[" + "; ".join(map(_listed, rows)) + "]"
        case Ratio(parts):
            return ":".join(_in_brackets(_spelled(part), _ATOM) for part in parts)
        case Choice(letter, value):
            return f"({letter})" if value is None else f"({letter}) {spell(value)}"
        case Time(hour, minute, second, half):
            seconds = "" if second is None else f":{second:02}"
            return f"{hour}:{minute:02}{seconds}{'' if half is None else ' ' + half}"
        case Truth(value):
            return "yes" if value else "no"
        case Dots():
            return "..."
        case Text(words):
            return f'"{words}"'
    raise TypeError(f"no node of an answer: {node!r}")


def _listed(items: tuple[Node, ...]) -> str:
    return ", ".join(map(spell, items))


def _in_brackets(spelled: tuple[str, int], binding: int) -> str:
    """The spelling, in brackets if it binds more loosely than asked."""
    text, own = spelled
    return text if own >= binding else f"({text})"


def _flat(node: Sum | Product, kind: type) -> list[Node]:
    """The terms or factors, with those of sums in sums in their place."""
    result: list[Node] = []
    pending: list[Node] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, kind):
            pending.extend(reversed(part.terms if isinstance(part, Sum) else part.factors))  # type: ignore[union-attr]
        else:
            result.append(part)
    return result
