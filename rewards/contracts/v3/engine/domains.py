"""Where expressions have a value and where their formula may change: what agreement at a few points cannot see.

Two expressions made of analytic functions that agree at points drawn from a large set agree everywhere. It is not so
where a modulus, a step or a branch divides the letters' range into regions, one of which may lie between the points.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from flint import arb

from veriward.rewards.contracts.v3.engine import balls
from veriward.rewards.contracts.v3.engine import program as p
from veriward.rewards.contracts.v3.engine.points import points
from veriward.rewards.contracts.v3.tree import (
    Apply,
    Constant,
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

_STEPS = frozenset({"abs", "floor", "sgn", "arg", "binomial"})
_ARCS = frozenset({"asin", "acos", "atan"})
_MAX_ARC_DEGREE = 3
"""Degree of an inverse function's argument whose branches the points are trusted to meet."""
_POINTS = 36
"""Points at which the domains of two sides are compared."""


def has_hidden_regions(program: p.Program, *, skipped: bool) -> bool:
    """Whether the sides may agree at all points asked and differ in a region between them.

    `skipped`: the exact tier did not look at the roots, so that `sqrt(u^2)` may be a modulus of anything.
    """
    symbolic: list[bool] = []
    open_powers: list[bool] = []
    for step in program.code:
        inner = p.operands(step)
        varies = step[0] in (p.SYMBOL, p.OPAQUE) or any(symbolic[place] for place in inner)
        symbolic.append(varies)
        opened = any(open_powers[place] for place in inner)
        open_powers.append(opened)
        if not varies:
            continue
        kind = step[0]
        if kind == p.FUNCTION:
            if step[1] in _STEPS or (step[1] in _ARCS and _arc_degree(program, step[2][0]) > _MAX_ARC_DEGREE):
                return True
            if program.complex and (step[1] == "ln" or step[1] in _ARCS):
                return True
        elif kind == p.ROOT:
            positive = _is_positive(program, step[1])
            if step[2] % 2 == 0 and not positive and (opened or skipped):
                return True
            if program.complex and not positive:
                return True
        elif kind == p.RAISE and not _is_positive(program, step[1]):
            if opened or (program.complex and symbolic[step[1]]) or not _is_whole(program, step[2]):
                return True
            open_powers[-1] = not _is_positive(program, step[1], or_zero=True)
    return False


def is_kinked(program: p.Program) -> bool:
    """Whether two sides may agree in one region and not in the next."""
    return any(
        (instruction[0] == p.ROOT and instruction[2] % 2 == 0)
        or instruction[0] == p.RAISE
        or (instruction[0] == p.FUNCTION and instruction[1] in ("abs", "floor", "sgn", "asin", "acos", "atan", "ln"))
        for instruction in program.code
    )


def _is_positive(program: p.Program, place: int, *, or_zero: bool = False) -> bool:
    """Whether a look at the parts shows that a value is positive.

    An even power is positive or zero: it may be the square of what changes its sign, unless something is added.
    """
    pending = [(place, or_zero)]
    seen = set()
    while pending:
        entry = pending.pop()
        if entry in seen:
            continue
        seen.add(entry)
        place, or_zero = entry
        step = program.code[place]
        kind = step[0]
        if kind in (p.PI, p.EULER) or (kind == p.EXPONENTIAL and not program.complex):
            continue
        if kind == p.RATIONAL and (step[1] > 0 or (or_zero and step[1] == 0)):
            continue
        if kind == p.ADD:
            # One positive term is enough, and a constant is the one that is easily seen.
            solid = or_zero or any(program.code[part][0] in (p.RATIONAL, p.PI, p.EULER) for part in step[1])
            pending.extend((part, solid and program.code[part][0] not in (p.RATIONAL, p.PI)) for part in step[1])
        elif (
            or_zero
            and not program.complex
            and ((kind in (p.ROOT, p.POWER) and step[2] % 2 == 0) or (kind == p.FUNCTION and step[1] == "abs"))
        ):
            continue
        elif kind in (p.RAISE, p.POWER, p.ROOT):
            pending.append((step[1], or_zero))
        elif kind == p.MULTIPLY:
            pending.extend((part, or_zero) for part in step[1])
        else:
            return False
    return True


def _is_whole(program: p.Program, place: int) -> bool:
    """Whether a value is a whole number wherever the letters are."""
    pending, seen = [place], set()
    while pending:
        place = pending.pop()
        if place in seen:
            continue
        seen.add(place)
        step = program.code[place]
        if step[0] in (p.ADD, p.MULTIPLY) or (step[0] == p.POWER and step[2] > 0):
            pending.extend(p.operands(step))
        elif not (step[0] == p.SYMBOL or (step[0] == p.RATIONAL and step[1].q == 1)):
            return False
    return True


def _arc_degree(program: p.Program, place: int) -> int:
    """The degree of an argument made of letters by arithmetic and roots; beyond every limit for any other."""
    degrees: dict[int, int] = {}
    pending = [place]
    while pending:
        current = pending[-1]
        if current in degrees:
            pending.pop()
            continue
        step = program.code[current]
        inner = p.operands(step)
        waiting = [part for part in inner if part not in degrees]
        if waiting:
            pending.extend(waiting)
            continue
        pending.pop()
        highest = max((degrees[part] for part in inner), default=0)
        if step[0] == p.SYMBOL:
            degrees[current] = 1
        elif step[0] == p.MULTIPLY:
            degrees[current] = sum(degrees[part] for part in inner)
        elif step[0] == p.POWER:
            degrees[current] = highest * abs(step[2])
        elif step[0] in (p.RATIONAL, p.PI, p.EULER, p.ADD, p.ROOT) or (highest == 0 and step[0] == p.FUNCTION):
            degrees[current] = highest
        else:
            degrees[current] = _MAX_ARC_DEGREE + 1
    return degrees[place]


# ------------------------------------------------------------------------------------------- narrower domains

_NARROWING = frozenset(
    "ln log arcsin arccos arcsec arccsc arccosh arctanh "  # noqa: SIM905
    "abs floor ceil sgn max min mod".split()
)
"""Functions without a value somewhere, and those that may be zero all along a region and be divided by."""
_ENOUGH_ZEROS, _ZERO = 3, 1e-9
"""Points where a divisor looks like zero that show it to be zero in a region, and the size of its ball."""


def may_narrow(node: Node) -> bool:
    """Whether some part has no real value for some letters, apart from divisors that are zero here and there."""
    narrowing = letters = False
    for part in walk(node):
        match part:
            case Symbol():
                letters = True
            case Root(radicand, degree):
                narrowing = narrowing or (degree % 2 == 0 and type(radicand) is not Number)
            case Power(Constant("e") | Constant("pi"), _):
                pass
            case Power(Number(value), _) if value > 0:
                pass
            case Power(_, exponent):
                narrowing = narrowing or type(exponent) is not Number or exponent.value.denominator % 2 == 0
            case Apply(name):
                narrowing = narrowing or name in _NARROWING
    return narrowing and letters


def is_narrower(program: p.Program, seed: bytes) -> bool:
    """Whether the right side has a real value at one of the points and the left side provably none."""
    if program.complex or program.left is None or program.right is None:
        return False
    left_only = sorted(program.left_parts - program.right_parts)
    if not left_only:
        return False
    zeros = 0
    for point in islice(points(program, seed, anywhere=True), _POINTS):
        values = balls.evaluate(program, point, 64, partial=True) or []
        if any(type(values[place]) is not arb for place in program.right_parts):
            continue
        steps = [program.code[place] for place in left_only]
        zeros += any(_divides_by_zero(step, values) for step in steps)
        if zeros >= _ENOUGH_ZEROS or any(_is_undefined(step, values) for step in steps):
            return True
    return False


def _divides_by_zero(step: p.Instruction, values: balls.Values) -> bool:
    """Whether a divisor is zero, as far as its ball tells: at several points so, it is zero in a region."""
    base: Any = values[step[1]] if step[0] == p.POWER and step[2] < 0 else None
    return type(base) is arb and bool(base.contains(0)) and bool(balls.size(base) < _ZERO)


def _is_undefined(step: p.Instruction, values: balls.Values) -> bool:
    """Whether the parts have real values of which the instruction has none, for another reason than a zero divisor."""
    parts: list[Any] = [values[place] for place in p.operands(step)]
    if not parts or any(type(value) is not arb for value in parts):
        return False
    first = parts[0]
    if step[0] == p.ROOT:
        return step[2] % 2 == 0 and bool(first < 0)
    if step[0] == p.RAISE:
        return bool(first < 0) and not parts[1].contains_integer()
    if step[0] != p.FUNCTION:
        return False
    if step[1] == "ln":
        return bool(first < 0)
    if step[1] in ("asin", "acos"):
        return bool(abs(first) > 1)
    return False


def surely_defined(node: Node) -> bool:
    """Whether a look at the tree shows that it has a value: no divisor, logarithm or exponent that may have none."""
    match node:
        case Number() | Symbol() | Constant():
            return node != _INFINITY
        case Negation(operand):
            return surely_defined(operand)
        case Sum(parts) | Product(parts):
            return all(map(surely_defined, parts))
        case Quotient(numerator, Number(value)):
            return value != 0 and surely_defined(numerator)
        case Power(base, Number(value)):
            return value.denominator == 1 and value > 0 and surely_defined(base)
        case Root(Number(value), degree):
            return degree > 0
    return False


_INFINITY = Constant("infinity")
