"""The narrow grammar of contracts v1 and v2: text to a small tree, its size, its value.

    sum      = sign* product (("+" | "-") product)*
    product  = factor (("*" | "/" | "//") factor | power)*          2x and 2(x+1) are products
    factor   = sign* power
    power    = atom ["**" factor]                                   right-associative, binds before a sign
    atom     = number | letter | "pi" | "sqrt(" sum ")" | "(" sum ")"
    answer   = sum | sign* "oo"                                     infinity is an answer, and no operand

No text is ever evaluated: the tree is made here, measured by `size`, and only then built in SymPy,
node by node. Decimals are exact rationals. Every single letter is a symbol, `e` and `i` too.

Not covered, and refused: other functions, names of several letters, a number right behind a letter or
bracket (`x2`), leading zeros (`007`), arithmetic with infinity, equations, units, words, roots of other degrees,
sets, intervals and nested tuples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from veriward.rewards.verdict import Reason

if TYPE_CHECKING:
    import sympy

Kind = Literal["number", "letter", "pi", "oo", "sqrt", "neg", "inverse", "sum", "product", "floor", "power"]


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a parsed answer."""

    kind: Kind
    parts: tuple[Node, ...] = ()
    number: Fraction = Fraction(0)
    """Of a 'number'."""
    letter: str = ""
    """Of a 'letter'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimits:
    """What may be handed to SymPy, so that a decision stays under a second; each with the input that made it needed."""

    max_text: int = 2_000
    """Characters of one answer: 3,000 additions exhaust the stack."""
    max_depth: int = 24
    """Nested brackets, exponents and floor divisions: 200 open brackets break Python's own parser."""
    max_literal_digits: int = 1_000
    """Digits of one literal, and its scientific exponent: 1e999999999."""
    max_bits: int = 4_096
    """Bits of any integer in the expanded form: (((9^64)^64)^64)^64. Three times as much is more than Python prints."""
    max_root_bits: int = 2_048
    """Bits under all roots together: SymPy looks for factors of a radicand, and sqrt(1e308^15+7) took 12 s."""
    max_root_degree: int = 1_000
    """Denominator of an exponent: 2^(1/999983)."""
    max_exponent_bits: int = 10
    """Bits of an exponent that is no plain number: 2^(x-x+10^10)."""
    max_degree: int = 4_096
    """Total degree: ((x^64)^64)^64."""
    max_simplify_terms: int = 250
    """Terms of numerator and denominator of the difference, if it must be simplified: (a+b+c+d+e+f)^64."""
    max_simplify_degree: int = 64
    """Degree of the difference, if it must be simplified: sqrt(12+a+(b^216)^2)."""
    max_simplify_root_degree: int = 16
    """Product of the degrees of all roots on both sides, if it must be simplified: (sqrt(2)+sqrt(3)+sqrt(5))^9, and
    ((1.5)^(1/5))^(1/4), whose powers in a denominator took 8 s."""
    max_simplify_bits: int = 1_024
    """Bits of both sides together, if the difference must be simplified: (1e308+1e-3)^(1/6)."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A bound on an expanded polynomial: terms, total degree, and coefficients of at most 2**bits."""

    terms: int
    degree: int
    bits: int


@dataclass(frozen=True, slots=True)
class Atom:
    """What an expanded form is a polynomial in: a letter, pi, a root, a power with a computed exponent."""

    node: Node
    bits: int
    """Of what stands inside it."""
    degree: int = 1
    """Of a root: how often it must be multiplied with itself to be gone."""


@dataclass(frozen=True, slots=True)
class Size:
    """A bound on an expanded fraction, and the atoms that it is a polynomial in."""

    over: Polynomial
    under: Polynomial
    atoms: frozenset[Atom] = frozenset()

    @property
    def terms(self) -> int:
        return self.over.terms + self.under.terms

    @property
    def bits(self) -> int:
        return max(self.over.bits, self.under.bits)

    @property
    def degree(self) -> int:
        return max(self.over.degree, self.under.degree)

    @property
    def root_degree(self) -> int:
        return math.prod(atom.degree for atom in self.atoms)

    @property
    def root_bits(self) -> int:
        return sum(atom.bits for atom in self.atoms)


class Refused(Exception):  # noqa: N818  (an outcome of reading, not an error)
    """The text is outside the grammar, or what it says is too large."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


# ---- text to tree ----------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<word>[A-Za-z]+)|(?P<sign>\*\*|//|[-+*/()])"
)


INFINITY = re.compile(r"[+-]*\(?[+-]*oo\)?")


def parse(text: str, limits: SizeLimits) -> Node:
    """The tree of one scalar answer in normalised spelling; raises Refused."""
    if len(text) > limits.max_text:
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
    if INFINITY.fullmatch(text):
        return Node("neg", (Node("oo"),)) if text.count("-") % 2 else Node("oo")
    parser = _Parser(_tokens(text), limits)
    node = parser.sum(depth=0)
    if parser.peek() is not None:
        raise Refused(Reason.UNSUPPORTED_EXPRESSION)
    return node


LEADING_ZEROS = re.compile("0[0-9]")


def _tokens(text: str) -> list[re.Match[str]]:
    tokens = []
    position = 0
    while position < len(text):
        token = TOKEN.match(text, position)
        if token is None:
            raise Refused(Reason.UNSUPPORTED_EXPRESSION)
        tokens.append(token)
        position = token.end()
    return tokens


class _Parser:
    """One pass over the tokens; each method reads the rule of its name."""

    def __init__(self, tokens: Sequence[re.Match[str]], limits: SizeLimits) -> None:
        self.tokens = tokens
        self.limits = limits
        self.position = 0

    def peek(self) -> str | None:
        return self.tokens[self.position].group() if self.position < len(self.tokens) else None

    def take(self, *wanted: str) -> str | None:
        text = self.peek()
        if text not in wanted:
            return None
        self.position += 1
        return text

    def sum(self, depth: int) -> Node:
        terms = [self.product(depth)]
        while sign := self.take("+", "-"):
            term = self.product(depth)
            terms.append(Node("neg", (term,)) if sign == "-" else term)
        return terms[0] if len(terms) == 1 else Node("sum", tuple(terms))

    def product(self, depth: int) -> Node:
        factors = [self.factor(depth)]
        while True:
            if operator := self.take("*", "/", "//"):
                factor = self.factor(depth)
            elif self.starts_implicit_factor():
                operator, factor = "*", self.power(depth)
            else:
                return _product(factors)
            if operator == "//":
                depth = self.deeper(depth)
                factors = [Node("floor", (_product(factors), factor))]
            else:
                factors.append(Node("inverse", (factor,)) if operator == "/" else factor)

    def starts_implicit_factor(self) -> bool:
        if self.position == len(self.tokens):
            return False
        token = self.tokens[self.position]
        return token["word"] is not None or token.group() == "("

    def factor(self, depth: int) -> Node:
        negative = False
        while sign := self.take("+", "-"):
            negative ^= sign == "-"
        node = self.power(depth)
        return Node("neg", (node,)) if negative else node

    def power(self, depth: int) -> Node:
        base = self.atom(depth)
        if self.take("**") is None:
            return base
        return Node("power", (base, self.factor(self.deeper(depth))))

    def atom(self, depth: int) -> Node:
        if self.position == len(self.tokens):
            raise Refused(Reason.UNSUPPORTED_EXPRESSION)
        token = self.tokens[self.position]
        self.position += 1
        if token["number"] is not None:
            return Node("number", number=self.number(token["number"]))
        if token["word"] is not None and token["word"] != "sqrt":
            return _named(token["word"])
        if token["word"] == "sqrt" and self.take("(") is None:
            raise Refused(Reason.UNSUPPORTED_EXPRESSION)
        if token["word"] is None and token.group() != "(":
            raise Refused(Reason.UNSUPPORTED_EXPRESSION)
        inner = self.sum(self.deeper(depth))
        if self.take(")") is None:
            raise Refused(Reason.UNSUPPORTED_EXPRESSION)
        return Node("sqrt", (inner,)) if token["word"] else inner

    def number(self, text: str) -> Fraction:
        if LEADING_ZEROS.match(text):
            raise Refused(Reason.UNSUPPORTED_EXPRESSION)
        mantissa, _, exponent = text.lower().partition("e")
        limit = self.limits.max_literal_digits
        if len(mantissa) > limit or len(exponent) > 8 or abs(int(exponent or 0)) > limit:
            raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
        return Fraction(text)

    def deeper(self, depth: int) -> int:
        if depth >= self.limits.max_depth:
            raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
        return depth + 1


def _product(factors: Sequence[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Node("product", tuple(factors))


def _named(word: str) -> Node:
    if word == "pi":
        return Node("pi")
    if len(word) == 1:
        return Node("letter", letter=word)
    raise Refused(Reason.UNSUPPORTED_EXPRESSION)


# ---- how large it is, before anything is evaluated -------------------------------------------------------------------

ONE = Polynomial(1, 0, 0)


def size(node: Node, limits: SizeLimits) -> Size:
    """A bound on the expanded form of a tree; raises Refused where the bound passes a limit."""
    bound = _size(node, limits)
    within_limits = (
        bound.bits <= limits.max_bits and bound.degree <= limits.max_degree and bound.root_bits <= limits.max_root_bits
    )
    if not within_limits:
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
    return bound


def _size(node: Node, limits: SizeLimits) -> Size:
    match node.kind:
        case "number":
            over, under = node.number.numerator, node.number.denominator
            return Size(Polynomial(1, 0, _bits(over)), Polynomial(1, 0, _bits(under)))
        case "letter" | "pi" | "oo":
            return _atom(node)
        case "neg":
            return size(node.parts[0], limits)
        case "sum":
            return reduce(_added, _sizes(node.parts, limits))
        case "product":
            return reduce(_multiplied, _sizes(node.parts, limits))
        case "inverse":
            return _inverse(size(node.parts[0], limits))
        case "floor":
            if exact_value(node) is None:
                raise Refused(Reason.UNSUPPORTED_EXPRESSION)
            return reduce(_multiplied, _sizes(node.parts, limits))
        case "sqrt":
            return _root(node, size(node.parts[0], limits), 2)
        case "power":
            return _power(node, limits)


def _sizes(parts: Iterable[Node], limits: SizeLimits) -> list[Size]:
    return [size(part, limits) for part in parts]


def _atom(node: Node) -> Size:
    return Size(Polynomial(1, 1, 0), ONE, frozenset([Atom(node, 0)]))


def _inverse(fraction: Size) -> Size:
    return Size(fraction.under, fraction.over, fraction.atoms)


def _multiplied(left: Size, right: Size) -> Size:
    atoms = left.atoms | right.atoms
    return Size(_times(left.over, right.over, atoms), _times(left.under, right.under, atoms), atoms)


def _added(left: Size, right: Size) -> Size:
    atoms = left.atoms | right.atoms
    if left.under == right.under == ONE:
        return Size(_plus(left.over, right.over, atoms), ONE, atoms)
    crossed = _plus(_times(left.over, right.under, atoms), _times(right.over, left.under, atoms), atoms)
    return Size(crossed, _times(left.under, right.under, atoms), atoms)


def _times(left: Polynomial, right: Polynomial, atoms: frozenset[Atom]) -> Polynomial:
    bits = left.bits + right.bits + _bits(min(left.terms, right.terms))
    return _capped(left.terms * right.terms, left.degree + right.degree, bits, atoms)


def _plus(left: Polynomial, right: Polynomial, atoms: frozenset[Atom]) -> Polynomial:
    return _capped(left.terms + right.terms, max(left.degree, right.degree), max(left.bits, right.bits) + 1, atoms)


def _raised(base: Polynomial, exponent: int, atoms: frozenset[Atom]) -> Polynomial:
    terms = 1 if base.terms == 1 else _binomial(base.terms + exponent - 1, exponent)
    bits = exponent * (base.bits + _bits(base.terms))
    return _capped(terms, base.degree * exponent, bits, atoms)


def _capped(terms: int, degree: int, bits: int, atoms: frozenset[Atom]) -> Polynomial:
    """There are never more terms than monomials of that degree in that many atoms."""
    return Polynomial(min(terms, _binomial(degree + len(atoms), len(atoms))), degree, bits)


def _bits(number: int) -> int:
    """The smallest b with |number| <= 2**b."""
    return max(abs(number) - 1, 0).bit_length()


MANY = 10**9
"""Stands for any count beyond it."""


def _binomial(n: int, k: int) -> int:
    k = min(k, n - k)
    if k > 64:
        return MANY
    return min(MANY, math.comb(min(n, MANY), max(k, 0)))


def _power(node: Node, limits: SizeLimits) -> Size:
    base, exponent = node.parts
    inner = size(base, limits)
    value = exact_value(exponent)
    if value is None:
        return _computed_power(node, inner, size(exponent, limits), limits)
    steps = abs(value.numerator)
    if steps > limits.max_bits or value.denominator > limits.max_root_degree:
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
    if value.denominator != 1:
        inner = _root(node, inner, value.denominator)
    if value < 0:
        inner = _inverse(inner)
    return Size(_raised(inner.over, steps, inner.atoms), _raised(inner.under, steps, inner.atoms), inner.atoms)


def _root(node: Node, radicand: Size, degree: int) -> Size:
    """A root is an atom that carries its radicand's size: an even power of it brings the radicand back."""
    atoms = radicand.atoms | {Atom(node, radicand.bits, degree)}
    under = _raised(radicand.under, degree - 1, atoms)
    return Size(_plus(_times(radicand.over, under, atoms), Polynomial(1, 1, 0), atoms), radicand.under, atoms)


def _computed_power(node: Node, base: Size, exponent: Size, limits: SizeLimits) -> Size:
    """`x^y` is an atom that carries its base's size; `x-x+9` may turn out to be a number, so that counts too."""
    exponent_bits = exponent.bits + _bits(exponent.terms)
    if exponent_bits > limits.max_exponent_bits:
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
    atoms = base.atoms | exponent.atoms | {Atom(node, base.bits, 2)}
    bits = base.bits << exponent_bits
    largest = Polynomial(max(base.terms, exponent.terms), max(base.degree, exponent.degree) + 1, bits)
    return Size(largest, largest, atoms)


EXACT_BITS = 4_096


def exact_value(node: Node) -> Fraction | None:
    """The rational that a constant tree stands for; None if it holds a letter or root, is long, or divides by zero."""
    if node.kind == "number":
        return node.number
    values = [exact_value(part) for part in node.parts]
    if not values or any(value is None for value in values):
        return None
    value = _exact(node.kind, [value for value in values if value is not None])
    if value is None or max(value.numerator.bit_length(), value.denominator.bit_length()) > EXACT_BITS:
        return None
    return value


def _exact(kind: Kind, values: Sequence[Fraction]) -> Fraction | None:
    match kind:
        case "neg":
            return -values[0]
        case "sum":
            return sum(values, Fraction(0))
        case "product":
            return math.prod(values, start=Fraction(1))
        case "inverse":
            return None if values[0] == 0 else 1 / values[0]
        case "floor":
            return None if values[1] == 0 else Fraction(values[0] // values[1])
        case "power":
            base, exponent = values
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if exponent.denominator != 1 or abs(exponent) * bits > EXACT_BITS or (base == 0 and exponent < 0):
                return None
            return base**exponent.numerator
        case _:
            return None


# ---- its value -------------------------------------------------------------------------------------------------------


def to_sympy(node: Node) -> sympy.Expr:
    """The SymPy object of a tree, built node by node; call `size` first."""
    import sympy

    parts = [to_sympy(part) for part in node.parts]
    match node.kind:
        case "number":
            return sympy.Rational(node.number.numerator, node.number.denominator)
        case "letter":
            return sympy.Symbol(node.letter)
        case "pi":
            return sympy.pi
        case "oo":
            return sympy.oo
        case "neg":
            return -parts[0]
        case "sum":
            return sympy.Add(*parts)
        case "product":
            return sympy.Mul(*parts)
        case "inverse":
            return 1 / parts[0]
        case "floor":
            return parts[0] // parts[1]
        case "sqrt":
            return sympy.sqrt(parts[0])
        case "power":
            return parts[0] ** parts[1]


def to_ball(node: Node, points: dict[str, Any]) -> Any:
    """An enclosure of the tree's value (flint.acb) with each letter at its point; not finite where undefined.

    The cost is nodes times precision, whatever the numbers are.
    """
    import flint

    parts = [to_ball(part, points) for part in node.parts]
    match node.kind:
        case "number":
            return flint.acb(flint.fmpq(node.number.numerator, node.number.denominator))
        case "letter":
            return points[node.letter]
        case "pi":
            return flint.acb.pi()
        case "neg":
            return -parts[0]
        case "sum":
            return reduce(lambda left, right: left + right, parts)
        case "product":
            return reduce(lambda left, right: left * right, parts)
        case "inverse":
            return 1 / parts[0]
        case "floor":
            value = exact_value(node) or Fraction(0)  # `size` has seen that there is one
            return flint.acb(flint.fmpq(value.numerator, value.denominator))
        case "sqrt":
            return parts[0].sqrt()
        case "power":
            return parts[0] ** parts[1]
        case "oo":
            return flint.acb("nan")
