"""Algebraic constants: how near to zero a value may come without being zero, and so whether it is.

The bound is that of Burnikel, Funke, Mehlhorn, Schirra and Schmitt ("A separation bound for real algebraic
expressions", 2001): an expression is a quotient U/L of algebraic integers; u and l bound all their conjugates, D the
degree of the field that holds them; if it is not zero, its absolute value is at least 1/(u^(D-1) l). Bounds of
conjugates hold for whichever branch a root takes, so the same rules serve complex values; roots of unity bring cosines
and sines of rational multiples of pi. Shared parts count once towards D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm, log2

from flint import arb, fmpq

from veriward.rewards.contracts.v3.comparison import Finding
from veriward.rewards.contracts.v3.engine import balls
from veriward.rewards.contracts.v3.engine import program as p
from veriward.rewards.contracts.v3.limits import Limits

_GUARD = 64
"""Bits beyond the bound: of rounding in the values."""
_SLACK = 1e-6
"""Added to every logarithm, so that rounding of floats never makes a bound too small."""
_MAX_ORDER = 1_024
"""Order of a root of unity beyond which no bound is in reach."""
_OUT_OF_REACH = 1 << 40
"""A degree whose bound no precision reaches."""
_TURN_BITS = 64
"""Bits of the multiple of pi that an angle may be."""
_HUGE = 1e15
"""Logarithms of bounds end here: far beyond any precision, and far from where floats overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """What the bound says of a difference of two constants."""

    finding: Finding
    note: str
    work: int = 0
    """Word operations of the evaluation."""


def decide(program: p.Program, limits: Limits) -> Separation:
    """Equal or unequal, proved, for algebraic constants whose bound is within the precision."""
    turns = _turns(program)
    bounds = _bounds(program, turns)
    if bounds is None:
        return Separation(finding=Finding.UNDECIDED, note="not algebraic, by its parts")
    degree = _degree(program, turns)
    tested = _tested(program)
    needed = [_bits(bounds[place], degree) for place in tested]
    left, right = bounds[program.left or 0], bounds[program.right or 0]
    difference = _bits(_sum([left, right]), degree)
    most = max([difference, *needed])
    precision = int(min(most, _HUGE)) + _GUARD + _loss(bounds)
    if precision > limits.max_precision or balls.cost(program, precision) > limits.max_work:
        return Separation(finding=Finding.UNDECIDED, note=f"the bound asks for {precision} bits")
    result = _measured(program, precision, dict(zip(tested, needed, strict=True)), difference)
    return replace(result, work=balls.cost(program, precision))


def _measured(program: p.Program, precision: int, needed: dict[int, float], difference: float) -> Separation:
    """Values at a precision where each divisor that is not zero, and the difference, must show that it is not."""
    values = balls.evaluate(program, {}, precision, partial=True) or []
    for place, bits in needed.items():
        value = values[place]
        if value is None:
            return Separation(finding=Finding.UNDECIDED, note="not defined, as far as balls tell")
        if _below(value, bits):
            finding = Finding.LEFT_UNDEFINED if place in program.left_parts else Finding.RIGHT_UNDEFINED
            return Separation(finding=finding, note="a divisor is smaller than it may be without being zero")
    left, right = values[program.left or 0], values[program.right or 0]
    if left is None or right is None or any(value is None for value in values):
        return Separation(finding=Finding.UNDECIDED, note="not defined, as far as balls tell")
    if balls.apart(left, right):
        return Separation(finding=Finding.UNEQUAL, note=f"apart at {precision} bits")
    if _below(left - right, difference):
        return Separation(finding=Finding.EQUAL, note=f"nearer than different values may be, at {precision} bits")
    return Separation(finding=Finding.UNDECIDED, note=f"not settled at {precision} bits")


def _below(value: balls.Ball, bits: float) -> bool:
    return bool(balls.size(value) < arb(2) ** -(int(bits) + 1))


_Bound = tuple[float, float]
"""Logarithms to base 2 of u and l."""


def _bits(bound: _Bound, degree: int) -> float:
    """The value, if not zero, is at least 2 to the minus this."""
    return min(_HUGE, (degree - 1) * bound[0] + bound[1] + 1) if degree * bound[0] < _HUGE else _HUGE


def _tested(program: p.Program) -> list[int]:
    """The places that must not be zero."""
    return sorted({step[1] for step in program.code if step[0] == p.POWER and step[2] <= 0})


def _loss(bounds: list[_Bound]) -> int:
    """Bits that rounding may cost: each step loses a few, and large intermediate values the bits they are large by."""
    return 4 * len(bounds) + int(min(_HUGE, 2 * max(u for u, _ in bounds)))


def _degree(program: p.Program, turns: list[fmpq | None]) -> int:
    """The product of all roots' degrees, and the degree of the field of the roots of unity."""
    degree, order = 1, 1
    for step in program.code:
        if step[0] == p.ROOT:
            degree *= step[2]
        elif step[0] == p.IMAGINARY:
            order = lcm(order, 4)
        elif step[0] == p.FUNCTION:
            turn = turns[step[2][0]]
            if turn is not None:
                order = lcm(order, 4, 2 * int(turn.q))
        if degree > _MAX_ORDER or order > _MAX_ORDER:
            return _OUT_OF_REACH
    return degree * _totient(order)


def _totient(number: int) -> int:
    result, rest, prime = number, number, 2
    while prime * prime <= rest:
        if rest % prime == 0:
            while rest % prime == 0:
                rest //= prime
            result -= result // prime
        prime += 1
    return result - result // rest if rest > 1 else result


def _turns(program: p.Program) -> list[fmpq | None]:
    """c for every instruction that is `c pi` with a rational c other than 0."""
    turns: list[fmpq | None] = []
    for step in program.code:
        turn: fmpq | None = None
        if step[0] == p.PI:
            turn = fmpq(1)
        elif step[0] == p.ADD and all(turns[place] is not None for place in step[1]):
            turn = sum((turns[place] for place in step[1]), start=fmpq(0))
        elif step[0] == p.MULTIPLY and len(step[1]) == 2:
            first, second = step[1]
            for one, other in ((first, second), (second, first)):
                if turns[one] is not None and program.code[other][0] == p.RATIONAL:
                    turn = turns[one] * program.code[other][1]
        turns.append(turn if turn is not None and turn != 0 and turn.height_bits() <= _TURN_BITS else None)
    return turns


def _bounds(program: p.Program, turns: list[fmpq | None]) -> list[_Bound] | None:
    """The bounds of every instruction; None if one of them is not algebraic, or may not be.

    An angle's own size does not matter, as its cosine is algebraic; but only sines and cosines may use it.
    """
    result: list[_Bound] = []
    for place, step in enumerate(program.code):
        if turns[place] is not None:
            result.append((0.0, 0.0))
            continue
        bound = _bound(step, result, turns)
        if bound is None:
            return None
        result.append((min(bound[0] + _SLACK, _HUGE), min(bound[1] + _SLACK, _HUGE)))
    ends = (program.left or 0, program.right or 0)
    return None if any(turns[end] is not None for end in ends) else result


def _bound(step: p.Instruction, earlier: list[_Bound], turns: list[fmpq | None]) -> _Bound | None:
    kind = step[0]
    if kind == p.RATIONAL:
        return _log(int(step[1].p)), _log(int(step[1].q))
    if kind == p.IMAGINARY:
        return 0.0, 0.0
    if kind == p.FUNCTION:
        # Half the sum of two roots of unity, or of one and the other's negative over i.
        return (1.0, 1.0) if step[1] in ("sin", "cos") and turns[step[2][0]] is not None else None
    operands = step[1] if kind in (p.ADD, p.MULTIPLY) else step[1:2]
    if kind not in (p.ADD, p.MULTIPLY, p.POWER, p.ROOT) or any(turns[place] is not None for place in operands):
        return None
    if kind == p.ADD:
        return _sum([earlier[place] for place in operands])
    if kind == p.MULTIPLY:
        return sum(earlier[place][0] for place in operands), sum(earlier[place][1] for place in operands)
    above, below = earlier[step[1]]
    if kind == p.POWER:
        exponent = step[2]
        if exponent.bit_length() > 48:
            return _HUGE, _HUGE
        return (above * exponent, below * exponent) if exponent >= 0 else (-below * exponent, -above * exponent)
    degree = step[2]
    if above >= below:
        return (above + (degree - 1) * below) / degree, below
    return above, ((degree - 1) * above + below) / degree


def _sum(bounds: list[_Bound]) -> _Bound:
    """`u1 l2 + u2 l1` over `l1 l2`, for many at once."""
    below = sum(bound[1] for bound in bounds)
    highest = max(u - own for u, own in bounds) + below
    return highest + log2(len(bounds)), below


def _log(number: int) -> float:
    """An upper bound of the logarithm of a number's size; 0 for 0, whose conjugates are bounded by 1."""
    size = abs(number)
    return 0.0 if size <= 1 else (size.bit_length() if size.bit_length() > 1_000 else log2(size))
