"""What a tree is worth at a point, by mpmath alone: a second opinion on proofs, sharing none of the engine's code."""

from __future__ import annotations

from fractions import Fraction

import mpmath
from mpmath import mp, mpc, mpf

from veriward.rewards.contracts.v3.tree import (
    Apply,
    Constant,
    Degrees,
    Negation,
    Node,
    Number,
    Power,
    Product,
    Quotient,
    Root,
    Sum,
    Symbol,
    walk,
)


class NoValueError(ArithmeticError):
    """Undefined at this point, or too near to it to tell."""


def is_complex(*trees: Node) -> bool:
    """Whether values may be complex: `i` occurs, or there is no letter at all."""
    nodes = [node for tree in trees for node in walk(tree)]
    return Constant("i") in nodes or not any(isinstance(node, Symbol) for node in nodes)


def names(*trees: Node) -> list[str]:
    return sorted({node.name for tree in trees for node in walk(tree) if isinstance(node, Symbol)})


class Oracle:
    """Values at one point; `may_be_complex` as of both sides together."""

    def __init__(self, point: dict[str, Fraction], *, may_be_complex: bool) -> None:
        self.point = point
        self.may_be_complex = may_be_complex
        self.largest = mpf(1)

    def value(self, node: Node) -> mpf | mpc:
        result = self._value(node)
        if isinstance(result, mpc) and result.imag == 0:
            result = result.real
        if not mpmath.isfinite(result):
            raise NoValueError
        if isinstance(result, mpc) and not self.may_be_complex:
            raise NoValueError
        self.largest = max(self.largest, abs(result))
        return result

    def nonzero(self, value: mpf | mpc) -> mpf | mpc:
        if abs(value) < mpf(10) ** (-mp.dps // 2):
            raise NoValueError
        return value

    def _value(self, node: Node) -> mpf | mpc:
        match node:
            case Number(value):
                return mpf(value.numerator) / value.denominator
            case Symbol(name):
                return mpf(self.point[name].numerator) / self.point[name].denominator
            case Constant("pi"):
                return +mp.pi
            case Constant("e"):
                return +mp.e
            case Constant("i"):
                return mpc(0, 1)
            case Constant():
                raise NoValueError
            case Negation(operand):
                return -self.value(operand)
            case Sum(terms):
                return mpmath.fsum([self.value(term) for term in terms])
            case Product(factors):
                return mpmath.fprod([self.value(factor) for factor in factors])
            case Quotient(top, bottom):
                return self.value(top) / self.nonzero(self.value(bottom))
            case Degrees(operand):
                return self.value(operand) * mp.pi / 180
            case Root(radicand, degree):
                return self.root(self.value(radicand), degree)
            case Power(base, exponent):
                return self.power(self.value(base), exponent)
            case Apply(name, arguments):
                return self.function(name, [self.value(argument) for argument in arguments])
        raise NoValueError

    def root(self, value: mpf | mpc, degree: int) -> mpf | mpc:
        if isinstance(value, mpf) and value < 0 and degree % 2:
            self.nonzero(value)
            return -mpmath.root(-value, degree)
        if isinstance(value, mpf) and abs(value) < mpf(10) ** (-mp.dps // 2) and value != 0:
            raise NoValueError
        if isinstance(value, mpc) and abs(value.imag) < mpf(10) ** (-mp.dps // 2) * abs(value.real) and value.real < 0:
            raise NoValueError
        return mpmath.root(value, degree)

    def power(self, base: mpf | mpc, exponent: Node) -> mpf | mpc:
        rational = _rational(exponent)
        if rational is None:
            power = self.value(exponent)
            letters = [node.name for node in walk(exponent) if isinstance(node, Symbol)]
            positive = isinstance(base, mpf) and base > 0
            if not positive and any(self.point[name].denominator != 1 for name in letters):
                raise NoValueError
            if isinstance(power, mpf) and power == int(power):
                rational = Fraction(int(power))
            elif isinstance(base, mpf) and base < 0 and not self.may_be_complex:
                raise NoValueError
            else:
                return mpmath.exp(power * mpmath.log(self.nonzero(base)))
        self.value(exponent)
        if rational <= 0:
            self.nonzero(base)
        if rational == 0:
            return mpf(1)
        return self.root(base, rational.denominator) ** rational.numerator

    def function(self, name: str, arguments: list[mpf | mpc]) -> mpf | mpc:
        if name == "log":
            return self.log(arguments[1]) / self.nonzero(self.log(arguments[0]))
        u = arguments[0]
        if name in ("tan", "sec"):
            self.nonzero(mpmath.cos(u))
        if name in ("cot", "csc"):
            self.nonzero(mpmath.sin(u))
        if name == "ln":
            return self.log(u)
        if name == "abs":
            return abs(u)
        if name in ("floor", "ceil"):
            if isinstance(u, mpc) or (abs(u - mpmath.nint(u)) < mpf(10) ** (-mp.dps // 2) and u != mpmath.nint(u)):
                raise NoValueError
            return mpmath.floor(u) if name == "floor" else mpmath.ceil(u)
        if name in ("max", "min"):
            if any(isinstance(argument, mpc) for argument in arguments):
                raise NoValueError
            return max(arguments) if name == "max" else min(arguments)
        if name == "sgn":
            if isinstance(u, mpc) or (u != 0 and abs(u) < mpf(10) ** (-mp.dps // 2)):
                raise NoValueError
            return mpmath.sign(u)
        if name in ("arcsin", "arccos") and (isinstance(u, mpc) or abs(u) > 1):
            raise NoValueError
        if name == "factorial":
            if isinstance(u, mpc) or u < 0 or u != int(u) or u > 10**6:
                raise NoValueError
            return mpmath.factorial(u)
        return _FUNCTIONS[name](u)

    def log(self, u: mpf | mpc) -> mpf | mpc:
        self.nonzero(u)
        if isinstance(u, mpc) and abs(u.imag) < mpf(10) ** (-mp.dps // 2) * abs(u.real) and u.real < 0:
            raise NoValueError
        return mpmath.log(u)


def _rational(node: Node) -> Fraction | None:
    """The value of an exponent written with numbers alone."""
    match node:
        case Number(value):
            return value
        case Negation(operand):
            inner = _rational(operand)
            return None if inner is None else -inner
        case Quotient(top, bottom):
            a, b = _rational(top), _rational(bottom)
            return None if a is None or not b else a / b
        case Sum(parts) | Product(parts):
            values = [_rational(part) for part in parts]
            if None in values:
                return None
            result = Fraction(0) if isinstance(node, Sum) else Fraction(1)
            for value in values:
                result = result + value if isinstance(node, Sum) else result * value
            return result
    return None


_FUNCTIONS = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "cot": mpmath.cot,
    "sec": mpmath.sec,
    "csc": mpmath.csc,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "exp": mpmath.exp,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
}
