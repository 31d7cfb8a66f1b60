"""Families about single values: equal ones written differently, and different ones that look alike.

The steps are exact (integers, fractions, squarefree radicands), so that a pair is equal or different by construction.
"""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from math import comb, factorial

from veriward.eval.attack.families.kit import Family, pair, two

Drawn = tuple[str, str]
"""An answer and a reference."""

SQUAREFREE = (2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19)
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
EXACT_TRIGONOMETRY = (
    (r"\sin\frac{\pi}{6}", r"\frac{1}{2}"),
    (r"\cos\frac{\pi}{4}", r"\frac{\sqrt{2}}{2}"),
    (r"\tan\frac{\pi}{3}", r"\sqrt{3}"),
    (r"\cos\frac{\pi}{12}", r"\frac{\sqrt{6}+\sqrt{2}}{4}"),
    (r"\sin\frac{\pi}{12}", r"\frac{\sqrt{6}-\sqrt{2}}{4}"),
    (r"\cos\frac{\pi}{5}", r"\frac{1+\sqrt{5}}{4}"),
    (r"\tan\frac{\pi}{8}", r"\sqrt{2}-1"),
)
LAWS = (
    (r"1-2\sin^2 t", r"\cos 2t"),
    (r"1+\tan^2 t", r"\sec^2 t"),
    (r"2\sin t\cos t", r"\sin 2t"),
    (r"\cos^2 t-\sin^2 t", r"\cos 2t"),
    (r"|x|", r"\sqrt{x^2}"),
    (r"\frac{(n+1)!}{n!}", "n+1"),
    (r"\frac{a-b}{c-d}", r"\frac{b-a}{d-c}"),
)


def fraction_text(value: Fraction) -> str:
    """TeX of a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    return rf"{'-' if value < 0 else ''}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def proper(draw: random.Random) -> Fraction:
    """A fraction that is no integer, nor its own reciprocal."""
    denominator = draw.randint(2, 41)
    return Fraction(denominator * draw.randint(0, 3) + draw.randint(1, denominator - 1), denominator)


def terms_text(coefficients: list[int], letter: str) -> str:
    """A polynomial, the highest power first. The leading coefficient comes first in the list too."""
    text = ""
    for power, coefficient in zip(range(len(coefficients) - 1, -1, -1), coefficients, strict=True):
        if coefficient == 0:
            continue
        letters = "" if power == 0 else letter if power == 1 else f"{letter}^{{{power}}}"
        size = "" if abs(coefficient) == 1 and letters else str(abs(coefficient))
        sign = "-" if coefficient < 0 else "+" if text else ""
        text += sign + size + letters
    return text


def times(left: list[int], right: list[int]) -> list[int]:
    """The coefficients of a product of two polynomials."""
    product = [0] * (len(left) + len(right) - 1)
    for i, first in enumerate(left):
        for j, second in enumerate(right):
            product[i + j] += first * second
    return product


def signed(draw: random.Random, high: int) -> int:
    return draw.choice((-1, 1)) * draw.randint(1, high)


def linear(draw: random.Random) -> list[int]:
    return [draw.randint(1, 9), signed(draw, 12)]


def other_digit(draw: random.Random, digits: str) -> str:
    """The same digits but for one, which is not the first."""
    place = draw.randrange(1, len(digits))
    digit = draw.choice([digit for digit in "0123456789" if digit != digits[place]])
    return digits[:place] + digit + digits[place + 1 :]


# Equal by rewriting


def unreduced(draw: random.Random) -> Drawn:
    value, factor = proper(draw), draw.randint(2, 9)
    return rf"\frac{{{value.numerator * factor}}}{{{value.denominator * factor}}}", fraction_text(value)


def exact_decimal(draw: random.Random) -> Drawn:
    denominator = draw.choice((2, 4, 5, 8, 16, 20, 25, 40, 125))
    value = Fraction(denominator * draw.randint(0, 9) + 1, denominator)
    return str(Decimal(value.numerator) / Decimal(value.denominator)), fraction_text(value)


def plain_fraction(draw: random.Random) -> Drawn:
    value = proper(draw)
    return f"{value.numerator}/{value.denominator}", fraction_text(value)


def mixed_number(draw: random.Random) -> Drawn:
    whole, part = draw.randint(1, 12), Fraction(draw.randint(1, 6), 7)
    return rf"{whole}\frac{{{part.numerator}}}{{{part.denominator}}}", fraction_text(whole + part)


def rationalised(draw: random.Random) -> Drawn:
    above, below, radicand = draw.randint(1, 12), draw.randint(1, 9), draw.choice(SQUAREFREE)
    value = Fraction(above, below * radicand)
    factor = "" if value.numerator == 1 else str(value.numerator)
    root = rf"{factor}\sqrt{{{radicand}}}"
    return (
        rf"\frac{{{above}}}{{{below if below > 1 else ''}\sqrt{{{radicand}}}}}",
        root if value.denominator == 1 else rf"\frac{{{root}}}{{{value.denominator}}}",
    )


def nested_radical(draw: random.Random) -> Drawn:
    first, second = draw.sample(PRIMES, 2)
    return rf"\sqrt{{{first + second}+2\sqrt{{{first * second}}}}}", rf"\sqrt{{{first}}}+\sqrt{{{second}}}"


def square_drawn_out(draw: random.Random) -> Drawn:
    factor, radicand = draw.randint(2, 30), draw.choice(SQUAREFREE)
    return rf"\sqrt{{{factor * factor * radicand}}}", rf"{factor}\sqrt{{{radicand}}}"


def cube_drawn_out(draw: random.Random) -> Drawn:
    factor, radicand = draw.randint(2, 9), draw.choice(SQUAREFREE)
    return rf"\sqrt[3]{{{factor**3 * radicand}}}", rf"{factor} \cdot {radicand}^{{1/3}}"


def expanded(draw: random.Random) -> Drawn:
    letter = draw.choice("xyzabt")
    factors = [linear(draw) for _ in range(draw.randint(2, 3))]
    product = [1]
    for factor in factors:
        product = times(product, factor)
    return "".join(f"({terms_text(factor, letter)})" for factor in factors), terms_text(product, letter)


def common_denominator(draw: random.Random) -> Drawn:
    first, second, below = draw.randint(2, 9), draw.randint(1, 9), draw.randint(2, 9)
    return rf"\frac{{x}}{{{first}}}+\frac{{{second}}}{{{below}}}", (
        rf"\frac{{{below}x+{first * second}}}{{{first * below}}}"
    )


def reordered(draw: random.Random) -> Drawn:
    terms = [f"{draw.randint(2, 9)}{letters}" for letters in ("m", "n^2", "mn", r"\sqrt{3}", r"\pi")]
    return "+".join(draw.sample(terms, len(terms))), "+".join(terms)


def logarithm_of_power(draw: random.Random) -> Drawn:
    base, power = draw.choice(PRIMES), draw.randint(2, 6)
    return rf"\ln {base**power}", rf"{power}\ln {base}"


def logarithm_with_base(draw: random.Random) -> Drawn:
    base, power = draw.choice(PRIMES), draw.randint(2, 6)
    return rf"\log_{{{base}}} {base**power}", str(power)


def power_worked_out(draw: random.Random) -> Drawn:
    base, power = draw.randint(2, 7), draw.randint(10, 40)
    return f"{base}^{{{power}}}", str(base**power)


def binomial(draw: random.Random) -> Drawn:
    size = draw.randint(5, 20)
    chosen = draw.randint(2, size - 2)
    return rf"\binom{{{size}}}{{{chosen}}}", str(comb(size, chosen))


def factorial_worked_out(draw: random.Random) -> Drawn:
    size = draw.randint(4, 12)
    return f"{size}!", str(factorial(size))


def complex_product(draw: random.Random) -> Drawn:
    a, b, c, d = (draw.randint(2, 9) for _ in range(4))
    real, imaginary = a * c + b * d, b * c - a * d
    size = "" if abs(imaginary) == 1 else str(abs(imaginary))
    whole = str(real) if imaginary == 0 else f"{real}{'+' if imaginary > 0 else '-'}{size}i"
    return f"({a}+{b}i)({c}-{d}i)", whole


def symbolic_exponent(draw: random.Random) -> Drawn:
    base = draw.randint(2, 9)
    return f"{base}^{{k-n}}", rf"\frac{{{base}^k}}{{{base}^n}}"


# Unequal by perturbation


def digit_changed(draw: random.Random) -> Drawn:
    digits = str(draw.randint(1000, 999999))
    return other_digit(draw, digits), digits


def digits_swapped(draw: random.Random) -> Drawn:
    digits = [str(digit) for digit in draw.sample(range(1, 10), 4)]
    place = draw.randrange(3)
    swapped = digits.copy()
    swapped[place], swapped[place + 1] = digits[place + 1], digits[place]
    return "".join(swapped), "".join(digits)


def point_moved(draw: random.Random) -> Drawn:
    digits = draw.randint(101, 989)
    return f"{digits // 10}.{digits % 10}", f"{digits // 100}.{digits % 100:02d}"


def sign_changed(draw: random.Random) -> Drawn:
    value = proper(draw)
    return draw.choice(((fraction_text(-value), fraction_text(value)), (fraction_text(value), fraction_text(-value))))


def upside_down(draw: random.Random) -> Drawn:
    value = proper(draw)
    return fraction_text(1 / value), fraction_text(value)


def exponent_changed(draw: random.Random) -> Drawn:
    (first, second), factor = two(draw, 2, 9), draw.randint(2, 9)
    return f"{factor}x^{{{first}}}", f"{factor}x^{{{second}}}"


def coefficient_changed(draw: random.Random) -> Drawn:
    terms = [draw.randint(1, 9), signed(draw, 9), signed(draw, 9)]
    changed = terms.copy()
    changed[draw.randrange(3)] += draw.choice((1, 2, 10))
    return terms_text(changed, "x"), terms_text(terms, "x")


def operator_changed(draw: random.Random) -> Drawn:
    whole, radicand = draw.randint(1, 20), draw.choice(SQUAREFREE)
    texts = [rf"{whole}+\sqrt{{{radicand}}}", rf"{whole}-\sqrt{{{radicand}}}", rf"{whole + 1}\sqrt{{{radicand}}}"]
    first, second = draw.sample(texts, 2)
    return first, second


def radicand_changed(draw: random.Random) -> Drawn:
    (first, second), factor = draw.sample(SQUAREFREE, 2), draw.randint(2, 12)
    return rf"{factor}\sqrt{{{first}}}", rf"{factor}\sqrt{{{second}}}"


def factor_dropped(draw: random.Random) -> Drawn:
    factor, mark = draw.randint(2, 60), draw.choice((r"\pi", r"\sqrt{3}", "i", "x", "e"))
    return draw.choice(((str(factor), f"{factor}{mark}"), (f"{factor}{mark}", str(factor))))


def bracket_moved(draw: random.Random) -> Drawn:
    factor, added = draw.randint(2, 9), draw.randint(1, 9)
    return draw.choice(
        (
            (f"{factor}x+{added}", f"{factor}(x+{added})"),
            (f"({factor}x)^2", f"{factor}x^2"),
            (rf"\sqrt{{x}}+{added}", rf"\sqrt{{x+{added}}}"),
            (rf"\frac{{{factor}}}{{x+{added}}}", rf"\frac{{{factor}}}{{x}}+{added}"),
        )
    )


def rounded(draw: random.Random) -> Drawn:
    denominator = draw.choice((3, 7, 9, 11, 13))
    value = Fraction(denominator * draw.randint(0, 20) + draw.randint(1, denominator - 1), denominator)
    places = draw.randint(2, 7)
    return draw.choice(
        (
            (f"{round(float(value), places):.{places}f}", fraction_text(value)),
            ("3.14159265", r"\pi"),
            ("1.41421356", r"\sqrt{2}"),
        )
    )


def conjugate(draw: random.Random) -> Drawn:
    real, imaginary = draw.randint(1, 20), draw.randint(2, 20)
    return f"{real}+{imaginary}i", f"{real}-{imaginary}i"


def case_changed(draw: random.Random) -> Drawn:
    factor = draw.randint(2, 9)
    return draw.choice(((rf"{factor}\pi R", rf"{factor}\pi r"), (f"{factor}A-a", f"{factor}a-A")))


def function_changed(draw: random.Random) -> Drawn:
    value = draw.choice(PRIMES)
    texts = [rf"\sin {value}", rf"\cos {value}", rf"\tan {value}", rf"\ln {value}", rf"\sqrt{{{value}}}", str(value)]
    first, second = draw.sample(texts, 2)
    return first, second


def root_degree_changed(draw: random.Random) -> Drawn:
    radicand, (first, second) = draw.choice(SQUAREFREE), two(draw, 3, 6)
    return rf"\sqrt[{first}]{{{radicand}}}", rf"\sqrt[{second}]{{{radicand}}}"


def other_domain(draw: random.Random) -> Drawn:
    return draw.choice(((r"x", r"\sqrt{x^2}"), (r"-x", r"|x|"), (r"\sqrt{(x-1)^2}", "x-1")))


def mixed_as_product(draw: random.Random) -> Drawn:
    whole, part = draw.randint(2, 12), Fraction(draw.randint(1, 6), 7)
    return rf"{whole}\frac{{{part.numerator}}}{{{part.denominator}}}", fraction_text(whole * part)


def factorial_dropped(draw: random.Random) -> Drawn:
    size = draw.randint(3, 12)
    return draw.choice(((f"{size}!", str(size)), (str(size), f"{size}!")))


def digits_apart(draw: random.Random) -> Drawn:
    first, second = draw.randint(1, 99), draw.randint(1, 9)
    return f"{first} {second}", f"{first}{second}"


EQUAL = Family(
    name="equal",
    tries="equal values, rewritten by exact steps",
    builders=(
        pair("unreduced fraction", True, unreduced),
        pair("exact decimal", True, exact_decimal),
        pair("plain fraction", True, plain_fraction),
        pair("mixed number", True, mixed_number),
        pair("root in the denominator", True, rationalised),
        pair("nested radical", True, nested_radical),
        pair("square drawn out of a root", True, square_drawn_out),
        pair("cube drawn out of a root", True, cube_drawn_out),
        pair("product of factors for the expanded form", True, expanded, asks="expression"),
        pair("common denominator", True, common_denominator, asks="expression"),
        pair("terms in another order", True, reordered, asks="expression"),
        pair("logarithm of a power", True, logarithm_of_power),
        pair("logarithm with a base", True, logarithm_with_base),
        pair("power worked out", True, power_worked_out),
        pair("binomial coefficient", True, binomial),
        pair("factorial", True, factorial_worked_out),
        pair("complex product", True, complex_product),
        pair("exponent with letters", True, symbolic_exponent, asks="expression"),
        pair("exact trigonometric value", True, lambda draw: draw.choice(EXACT_TRIGONOMETRY)),
        pair("law", True, lambda draw: draw.choice(LAWS), asks="expression"),
    ),
)
UNEQUAL = Family(
    name="unequal",
    tries="values that differ in one digit, sign, exponent, operator, bracket or letter",
    builders=(
        pair("digit changed", False, digit_changed),
        pair("digits swapped", False, digits_swapped),
        pair("decimal point moved", False, point_moved),
        pair("sign changed", False, sign_changed),
        pair("fraction upside down", False, upside_down),
        pair("exponent changed", False, exponent_changed, asks="expression"),
        pair("coefficient changed", False, coefficient_changed, asks="expression"),
        pair("operator changed", False, operator_changed),
        pair("radicand changed", False, radicand_changed),
        pair("factor dropped", False, factor_dropped),
        pair("bracket moved", False, bracket_moved, asks="expression"),
        pair("rounded for exact", False, rounded),
        pair("conjugate", False, conjugate),
        pair("letter's case changed", False, case_changed, asks="expression"),
        pair("function changed", False, function_changed),
        pair("degree of a root changed", False, root_degree_changed),
        pair("equal for some letters only", False, other_domain, asks="expression"),
        pair("mixed number read as a product", False, mixed_as_product),
        pair("factorial dropped", False, factorial_dropped),
        pair("digits apart", False, digits_apart),
    ),
)
