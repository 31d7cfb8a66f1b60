"""A program's values at a point, as balls that surely contain them (FLINT's arb and acb).

A value is None where it is not provably defined: real, if the program is real, and complex only if it may be. Real
values stay arb in a complex program, so that a real odd root and a principal value are told apart by what is proved.
The cost is the number of instructions times the precision, whatever the numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flint
from flint import acb, arb, fmpq, fmpz

from veriward.rewards.contracts.v3.engine import program as p

Ball = Any
"""An arb, or an acb whose imaginary part is not known to be zero."""
Values = list[Ball | None]
Point = Mapping[str, fmpq]

_MAX_FACTORIAL_BITS = 48
"""Bits of a number whose factorial is enclosed: Stirling's series costs the precision, not the number."""


def evaluate(program: p.Program, point: Point, precision: int, *, partial: bool = False) -> Values | None:
    """The value of every instruction; None as soon as one has none, unless `partial`.

    The caller holds the engine's lock: FLINT's precision is one number for the whole process.
    """
    previous = flint.ctx.prec
    flint.ctx.prec = precision
    try:
        values: Values = []
        whole_exponents = all(point[name].q == 1 for name in program.exponent_letters if name in point)
        for instruction in program.code:
            value = _STEPS[instruction[0]](instruction, values, point, program.complex)
            if instruction[0] == p.RAISE and not whole_exponents and not _positive(values[instruction[1]]):
                value = None
            if value is None and not partial:
                return None
            values.append(value)
        return values
    finally:
        flint.ctx.prec = previous


def _positive(value: Ball | None) -> bool:
    return type(value) is arb and bool(value > 0)


def defined_but_opaque(program: p.Program, point: Point, precision: int) -> bool:
    """Whether each part without a value is opaque or made of opaque parts."""
    values = evaluate(program, point, precision, partial=True) or []
    hidden: set[int] = set()
    for place, (step, value) in enumerate(zip(program.code, values, strict=True)):
        if value is not None:
            continue
        if step[0] != p.OPAQUE and not hidden.intersection(p.operands(step)):
            return False
        hidden.add(place)
    return True


def cost(program: p.Program, precision: int) -> int:
    """Word operations that one evaluation may take: a square root counts as a few products, a sine as many."""
    words = 1 + precision // 64
    steps = sum(_WEIGHTS[instruction[0]] for instruction in program.code)
    return steps * int(words**1.5)


_WEIGHTS = (1, 1, 1, 1, 1, 1, 2, 2, 20, 20, 40, 60, 60, 1)
"""Of each kind of instruction, in the order of `program`."""


def apart(left: Ball, right: Ball) -> bool:
    """Whether the balls prove two values different."""
    return not left.overlaps(right) if type(left) is type(right) else not acb(left).overlaps(acb(right))


def size(ball: Ball) -> arb:
    """An upper bound of the absolute value."""
    upper: arb = ball.abs_upper()
    return upper


def extent(values: Values) -> tuple[int, int]:
    """How many bits the smallest value is below 1 and the largest above it, leaving out what may be zero."""
    low = high = 0
    for value in values:
        if value is None:
            continue
        high = max(high, _exponent(value.abs_upper()))
        if excludes_zero(value):
            low = max(low, -_exponent(value.abs_lower()))
    return low, high


def _exponent(exact: arb) -> int:
    mantissa, exponent = exact.man_exp()
    return int(exponent) + int(mantissa).bit_length()


def excludes_zero(ball: Ball) -> bool:
    return not ball.contains(0)


def towers_apart(program: p.Program, point: Point) -> bool:
    """Whether iterated logarithms tell apart two towers that are too large for a ball, at a point of positive numbers.

    Only where nothing but positive numbers, products and powers occurs, so that every part is defined and positive.
    """
    if any(step[0] not in _TOWER_PARTS or (step[0] == p.RATIONAL and step[1] <= 0) for step in program.code) or any(
        value <= 0 for value in point.values()
    ):
        return False
    values = evaluate(program, point, 64, partial=True) or []
    levels = [values]
    low, ends = {program.left: False, program.right: False}, (program.left or 0, program.right or 0)
    for _ in range(_MAX_LOGARITHMS):
        levels.append(_logarithms(program, levels))
        left, right = (levels[-1][end] for end in ends)
        if left is not None and right is not None and apart(left, right):
            return True
        for end, other in (ends, ends[::-1]):
            value = levels[-1][end]
            low[end] = low[end] or (value is not None and value < _HIGH)
            # What is high after a logarithm was high before it as well.
            if value is not None and value > _HIGH and low[other]:
                return True
    return False


_TOWER_PARTS = (p.RATIONAL, p.SYMBOL, p.PI, p.EULER, p.MULTIPLY, p.POWER, p.EXPONENTIAL, p.RAISE)
_MAX_LOGARITHMS = 20
_HIGH = 60


def _logarithms(program: p.Program, levels: list[Values]) -> Values:
    """One more logarithm of every value: of the last if that is a ball, else from the logarithms of its parts."""
    result: Values = []
    for place, step in enumerate(program.code):
        last = levels[-1][place]
        value: Ball | None = None
        if last is not None:
            value = last.log() if last > 0 else None
        elif step[0] == p.EXPONENTIAL:
            value = levels[-1][step[1]]
        elif len(levels) == 1 and step[0] == p.MULTIPLY:
            parts = [result[inner] for inner in step[1]]
            value = None if None in parts else sum(parts[1:], start=parts[0])
        elif len(levels) == 1 and step[0] == p.POWER:
            base = result[step[1]]
            value = None if base is None else base * fmpz(step[2])
        elif len(levels) == 1 and step[0] == p.RAISE:
            base, exponent = result[step[1]], levels[0][step[2]]
            value = None if base is None or exponent is None else base * exponent
        elif step[0] == p.RAISE and len(levels) > 1:
            value = _logarithm_of_logarithm(levels, step[1], step[2], result)
        result.append(None if value is None else _finite(value))
    return result


def _logarithm_of_logarithm(levels: list[Values], base: int, exponent: int, result: Values) -> Ball | None:
    """Further logarithms of `u ln b`: first `ln u + ln ln b`, and from then on as good as those of `ln u` alone."""
    inner = levels[-1][exponent]
    if inner is None:
        return None
    if len(levels) == 2:
        outer = result[base]
        return None if outer is None else inner + outer
    outer = levels[2][base]
    # ln(s + c) = ln s + ln(1 + c/s), where ln s > 60 and |c| < 10^6 leave less than 10^-6 of the second.
    return inner + arb(0, 1e-6) if outer is not None and abs(outer) < 1e6 and inner > _HIGH else None


# ---------------------------------------------------------------------------------------------------- steps


def _finite(value: Ball) -> Ball | None:
    if not value.is_finite():
        return None
    if type(value) is acb and value.imag.is_zero():
        return value.real
    return value


def _rational(instruction: p.Instruction, _values: Values, _point: Point, _complex: bool) -> Ball | None:
    return arb(instruction[1])


def _symbol(instruction: p.Instruction, _values: Values, point: Point, _complex: bool) -> Ball | None:
    value = point.get(instruction[1])
    return None if value is None else arb(value)


def _nothing(_instruction: p.Instruction, _values: Values, _point: Point, _complex: bool) -> Ball | None:
    return None


def _sum(instruction: p.Instruction, values: Values, _point: Point, _complex: bool) -> Ball | None:
    total = values[instruction[1][0]]
    for place in instruction[1][1:]:
        term = values[place]
        if total is None or term is None:
            return None
        total = total + term
    return None if total is None else _finite(total)


def _product(instruction: p.Instruction, values: Values, _point: Point, _complex: bool) -> Ball | None:
    total = values[instruction[1][0]]
    for place in instruction[1][1:]:
        factor = values[place]
        if total is None or factor is None:
            return None
        total = total * factor
    return None if total is None else _finite(total)


def _power(instruction: p.Instruction, values: Values, _point: Point, _complex: bool) -> Ball | None:
    base, exponent = values[instruction[1]], instruction[2]
    if base is None or (exponent <= 0 and not excludes_zero(base)):
        return None
    if exponent == -1:
        return _finite(1 / base)
    if exponent.bit_length() > p.MAX_EXPONENT_BITS:
        return None
    if type(base) is arb and not excludes_zero(base):
        return _finite(_power_near_zero(base, fmpz(exponent)))
    return _finite(base ** fmpz(exponent))


def _power_near_zero(base: arb, exponent: Any) -> arb:
    """A power of positive exponent of a ball that reaches zero, where FLINT has none."""
    if base.is_zero():
        return base
    high: arb = size(base) ** exponent
    if base >= 0 or (type(exponent) is fmpz and exponent % 2 == 0):
        return arb(0).union(high)
    return (-high).union(high)


def _root(instruction: p.Instruction, values: Values, _point: Point, may_be_complex: bool) -> Ball | None:
    radicand, degree = values[instruction[1]], instruction[2]
    if radicand is None:
        return None
    if type(radicand) is acb:
        if degree % 2 and radicand.imag.contains(0) and not radicand.real > 0:
            return None
        return _finite(radicand.sqrt() if degree == 2 else radicand.root(degree))
    if radicand >= 0:
        return _finite(_positive_root(radicand, degree))
    if degree % 2:
        if radicand < 0:
            return _finite(-((-radicand).root(degree)))
        high = size(radicand).root(degree)
        return _finite((-high).union(high))
    if not may_be_complex:
        return None
    if radicand < 0 or degree == 2:
        return _finite(acb(radicand).sqrt() if degree == 2 else acb(radicand).root(degree))
    return None


def _positive_root(radicand: arb, degree: int) -> arb:
    """The root of what is not negative; the ball may reach zero, where FLINT has no root but of degree 2."""
    if degree == 2:
        return radicand.sqrt()
    if excludes_zero(radicand):
        return radicand.root(degree)
    high = size(radicand)
    return high if high.is_zero() else arb(0).union(high.root(degree))


def _exponential(instruction: p.Instruction, values: Values, _point: Point, _complex: bool) -> Ball | None:
    exponent = values[instruction[1]]
    return None if exponent is None else _finite(exponent.exp())


def _raise(instruction: p.Instruction, values: Values, _point: Point, may_be_complex: bool) -> Ball | None:
    base, exponent = values[instruction[1]], values[instruction[2]]
    if base is None or exponent is None:
        return None
    if type(base) is arb and type(exponent) is arb:
        if base > 0:
            return _finite(base**exponent)
        if base >= 0 and exponent > 0:
            return _finite(_power_near_zero(base, exponent))
        integer = whole(exponent)
        if integer is not None and excludes_zero(base):
            return _finite(base**integer)
    if not may_be_complex or not excludes_zero(base):
        return None
    if type(base) is arb and not base < 0:
        return None
    return _finite((acb(exponent) * acb(base).log()).exp())


def _function(instruction: p.Instruction, values: Values, _point: Point, may_be_complex: bool) -> Ball | None:
    arguments = [values[place] for place in instruction[2]]
    if any(argument is None for argument in arguments):
        return None
    value = _FUNCTIONS[instruction[1]](*arguments, may_be_complex)
    return None if value is None else _finite(value)


def _opaque(_instruction: p.Instruction, _values: Values, _point: Point, _complex: bool) -> Ball | None:
    return None


_STEPS: tuple[Callable[[p.Instruction, Values, Point, bool], Ball | None], ...] = (
    _rational,
    _symbol,
    lambda *_: arb.pi(),
    lambda *_: arb.const_e(),
    lambda *_: acb(0, 1),
    _nothing,
    _sum,
    _product,
    _power,
    _root,
    _exponential,
    _raise,
    _function,
    _opaque,
)
"""By kind of instruction, in the order of `program`."""


# ------------------------------------------------------------------------------------------------ functions


def _ln(u: Ball, may_be_complex: bool) -> Ball | None:
    if type(u) is arb:
        if u > 0:
            return u.log()
        if not may_be_complex or not u < 0:
            return None
        return acb((-u).log(), arb.pi())
    return u.log() if excludes_zero(u) else None


def _inverse(name: str) -> Callable[[Ball, bool], Ball | None]:
    """arcsin or arccos, not on their cuts: conventions differ there."""

    def value(u: Ball, _complex: bool) -> Ball | None:
        if type(u) is acb and u.imag.contains(0) and not abs(u.real) < 1:
            return None
        return getattr(u, name)()

    return value


def whole(u: Ball) -> fmpz | None:
    """The integer that a ball is, not only contains, below 2^64: `9^(10^12)` as an integer would end the process."""
    if type(u) is not arb or not u.is_exact() or not abs(u) < _WORD or not u.is_integer():
        return None
    return u.unique_fmpz()


_WORD = 1 << 64


def _factorial(u: Ball, _complex: bool) -> Ball | None:
    number = whole(u)
    if number is None or number < 0 or number.bit_length() > _MAX_FACTORIAL_BITS:
        return None
    return u.fac()


def _binomial(n: Ball, k: Ball, _complex: bool) -> Ball | None:
    upper, lower = whole(n), whole(k)
    if upper is None or lower is None or lower < 0 or upper < 0 or upper.bit_length() > _MAX_FACTORIAL_BITS:
        return None
    return arb(0) if lower > upper else n.fac() / (k.fac() * (n - k).fac())


def _sign(u: Ball, _complex: bool) -> Ball | None:
    if type(u) is acb:
        return None
    return arb(1) if u > 0 else arb(-1) if u < 0 else arb(0) if u.is_zero() else None


def _argument(u: Ball, _complex: bool) -> Ball | None:
    if type(u) is arb:
        return arb(0) if u > 0 else arb.pi() if u < 0 else None
    return u.arg() if excludes_zero(u) else None


_FUNCTIONS: dict[str, Callable[..., Ball | None]] = {
    "sin": lambda u, _: u.sin(),
    "cos": lambda u, _: u.cos(),
    "asin": _inverse("asin"),
    "acos": _inverse("acos"),
    "atan": lambda u, _: u.atan(),
    "ln": _ln,
    "abs": lambda u, _: abs(u),
    "floor": lambda u, _: u.floor() if type(u) is arb else None,
    "factorial": _factorial,
    "binomial": _binomial,
    "sgn": _sign,
    "re": lambda u, _: u.real,
    "im": lambda u, _: u.imag,
    "conjugate": lambda u, _: u.conjugate() if type(u) is acb else u,
    "arg": _argument,
}
