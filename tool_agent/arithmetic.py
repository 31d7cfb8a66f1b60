"""Exact, bounded evaluation, shared by the numeric tools: text in, a number or the refusal why not out.

Decimals are the fractions that they are written as, so 0.1+0.2 is 0.3 and 1e16+1-1e16 is 1. Only irrational roots and
fractional powers become doubles, through decimals of 60 digits, so that every machine gives the same one. No value
ever has more than 4,096 bits above or below the fraction line: a power, factorial or binomial that would have many
more is refused by its size alone, everything else at most doubles what it is made from and is looked at then.

Covered: total over all texts, at once over the costly ones; neither a clock nor a child process is needed.
Not covered: complex numbers, infinity, symbols, more digits than a double has of what is irrational.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from veriward.tool_agent.expression import RefusedExpression, Step, read_expression
from veriward.tool_agent.result import Category, Refused

MAX_BITS = 4_096
"""Of any numerator and any denominator on the way."""
MAX_NDIGITS = 100
"""Of round(), either way."""

WHOLE_DOUBLES = 2.0**53
"""Below it a whole double is shown as the integer it is; above, its last digits are not known."""

Number: TypeAlias = Fraction | float
"""A float where the value is known to a double only."""


def evaluate(text: str, functions: frozenset[str] = frozenset()) -> int | float | Refused:
    """The value of an expression that may call these functions: an int where it is whole, else the nearest double.

    Total: every text gives a number or a refusal; never nan, an infinity, negative zero or a boolean.
    """
    try:
        return _final(_run(read_expression(text, functions)))
    except RefusedExpression as refusal:
        return refusal.as_record(text)


def show(value: int | float) -> str:
    """A number as the model is shown it: all digits of an integer, the shortest that give a double back."""
    return str(value) if isinstance(value, int) else repr(value)


def _run(program: list[Step]) -> Number:
    stack: list[Number] = []
    for step in program:
        try:
            stack.append(_value_of(step, stack))
        except RefusedExpression as refusal:
            refusal.position = step.position
            raise
    return stack.pop()


def _value_of(step: Step, stack: list[Number]) -> Number:
    match step.name:
        case "number":
            return step.number if step.number is not None else Fraction(0)
        case "positive":
            return stack.pop()
        case "negative":
            return -stack.pop()
        case "!" | "factorial":
            return _factorial(stack.pop())
        case "percent":
            return _arithmetic("/", stack.pop(), Fraction(100))
        case "sqrt":
            return _square_root(stack.pop())
        case "comb" | "gcd" | "round":
            values = stack[-step.arguments :]
            del stack[-step.arguments :]
            return _WITH_ARGUMENTS[step.name](values)
        case "**":
            exponent = stack.pop()
            return _power(stack.pop(), exponent)
    right = stack.pop()
    return _arithmetic(step.name, stack.pop(), right)


def _final(value: Number) -> int | float:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return value.numerator
        value = _double(value)
    return int(value) if abs(value) < WHOLE_DOUBLES and value.is_integer() else value


# ---- bounds ----------------------------------------------------------------------------------------------------------


def _too_large() -> RefusedExpression:
    return RefusedExpression(Category.RESOURCE_LIMIT, "more digits than are computed here; about 1,200 are the limit")


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise _too_large()
    return value


def _double(value: Fraction | Decimal) -> float:
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if math.isinf(double):
        raise RefusedExpression(Category.OUT_OF_RANGE, "the result is not whole and too large for a double")
    return double


def _rounded_as(operands: list[Number], value: Fraction) -> Number:
    """The value, bounded; a double where an operand is one."""
    return _double(value) if any(isinstance(operand, float) for operand in operands) else _bounded(value)


# ---- operators -------------------------------------------------------------------------------------------------------


def _arithmetic(name: str, left: Number, right: Number) -> Number:
    a, b = Fraction(left), Fraction(right)
    if name in ("/", "//", "%") and not b:
        raise RefusedExpression(Category.DIVISION_BY_ZERO, "the right side is 0")
    match name:
        case "+":
            value = a + b
        case "-":
            value = a - b
        case "*":
            value = a * b
        case "/":
            value = a / b
        case "//":
            value = Fraction(a // b)
        case _:
            value = a % b
    return _rounded_as([left, right], value)


def _power(base: Number, exponent: Number) -> Number:
    b, e = Fraction(base), Fraction(exponent)
    if not b:
        if e < 0:
            raise RefusedExpression(Category.DIVISION_BY_ZERO, "0 has no negative power")
        return Fraction(0 if e else 1)
    if b < 0 and e.denominator != 1:
        raise RefusedExpression(
            Category.COMPLEX_RESULT, "a negative base with a fractional exponent is not real; use a positive base"
        )
    if isinstance(base, float) or isinstance(exponent, float):
        return _double_power(b, e)
    if e.denominator == 1:
        return _whole_power(b, e.numerator)
    above, below = _whole_root(b.numerator, e.denominator), _whole_root(b.denominator, e.denominator)
    if above is not None and below is not None:
        return _whole_power(Fraction(above, below), e.numerator)
    return _double_power(b, e)


def _whole_power(base: Fraction, exponent: int) -> Fraction:
    """Exact; refused before it is computed if it has many more bits than allowed."""
    if base in (1, -1):
        return base if exponent % 2 else Fraction(1)
    # A number of n bits is at least 2**(n-1), and its power has at most twice the bits that this bound gives.
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if (bits - 1) * abs(exponent) >= MAX_BITS:
        raise _too_large()
    return _bounded(base**exponent)


def _whole_root(number: int, degree: int) -> int | None:
    """The root of a number above 0, if it is whole."""
    if number == 1:
        return 1
    if degree >= number.bit_length():
        return None
    if degree == 2:
        root = math.isqrt(number)
    else:
        # Newton from just above the root, where it falls until it has arrived.
        guess = math.log2(number) / degree
        shift = max(0, int(guess) - 50)
        root = int(2.0 ** (guess - shift) * (1 + 2.0**-30) + 1) << shift
        while (smaller := ((degree - 1) * root + number // root ** (degree - 1)) // degree) < root:
            root = smaller
    return root if root**degree == number else None


# ---- doubles ---------------------------------------------------------------------------------------------------------

_DIGITS = Context(prec=60, Emin=-99_999, Emax=99_999, traps=[])

LARGEST_LOGARITHM = 800
"""e to this is beyond every double."""


def _double_power(base: Fraction, exponent: Fraction) -> float:
    """Neither is 0, and the exponent is whole where the base is negative."""
    logarithm = _DIGITS.multiply(_decimal(exponent), _logarithm(abs(base)))
    if logarithm > LARGEST_LOGARITHM:
        raise RefusedExpression(Category.OUT_OF_RANGE, "the result is too large for a double")
    size = 0.0 if logarithm < -LARGEST_LOGARITHM else _double(_DIGITS.exp(logarithm))
    return -size if base < 0 and exponent.numerator % 2 else size


def _logarithm(value: Fraction) -> Decimal:
    """Natural logarithm of a number above 0, to 40 digits at least, close to 1 as well."""
    above_one = value - 1
    if abs(above_one) >= Fraction(1, 10**20):
        return _DIGITS.ln(_decimal(value))
    x = _decimal(above_one)
    square = _DIGITS.multiply(x, x)
    cube = _DIGITS.multiply(square, x)
    return _DIGITS.add(_DIGITS.subtract(x, _DIGITS.divide(square, 2)), _DIGITS.divide(cube, 3))


def _square_root(value: Number) -> Number:
    exact = Fraction(value)
    if exact < 0:
        raise RefusedExpression(Category.DOMAIN_ERROR, "the root of a negative number is not real")
    above, below = math.isqrt(exact.numerator), math.isqrt(exact.denominator)
    if above**2 == exact.numerator and below**2 == exact.denominator:
        return _rounded_as([value], Fraction(above, below))
    return _double(_DIGITS.sqrt(_decimal(exact)))


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


# ---- functions -------------------------------------------------------------------------------------------------------


def _whole(value: Number, of: str) -> int:
    exact = Fraction(value)
    if exact.denominator != 1:
        raise RefusedExpression(Category.DOMAIN_ERROR, f"{of} takes whole numbers only")
    return exact.numerator


def _factorial(value: Number) -> Fraction:
    n = _whole(value, "a factorial")
    if n < 0:
        raise RefusedExpression(Category.DOMAIN_ERROR, "a negative number has no factorial; write -(3!) for the sign")
    if n > MAX_BITS:  # n! has more than n bits from there on
        raise _too_large()
    return _bounded(Fraction(math.factorial(n)))


def _comb(values: list[Number]) -> Fraction:
    n, k = (_whole(value, "comb") for value in values)
    if n < 0 or k < 0:
        raise RefusedExpression(Category.DOMAIN_ERROR, "comb takes no negative number")
    if k > n:
        return Fraction(0)
    chosen = min(k, n - k)
    # comb(n, k) is at least (n/k)**k, and at least 2**k for k up to n/2.
    bits = chosen * max(1, n.bit_length() - 1 - chosen.bit_length())
    if bits > MAX_BITS:
        raise _too_large()
    return _bounded(Fraction(math.comb(n, chosen)))


def _gcd(values: list[Number]) -> Fraction:
    return Fraction(math.gcd(*(_whole(value, "gcd") for value in values)))


def _round(values: list[Number]) -> Fraction:
    """Half to even, exact also for a double: round(sqrt(2), 6) * 10**6 is whole."""
    ndigits = _whole(values[1], "the second argument of round") if len(values) == 2 else 0
    if abs(ndigits) > MAX_NDIGITS:
        raise RefusedExpression(Category.RESOURCE_LIMIT, f"round takes at most {MAX_NDIGITS} digits")
    return _bounded(Fraction(round(Fraction(values[0]), ndigits)))


_WITH_ARGUMENTS = {"comb": _comb, "gcd": _gcd, "round": _round}
