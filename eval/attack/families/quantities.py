"""Families about sizes: tiny and huge numbers, percentages, units."""

from __future__ import annotations

import random
from fractions import Fraction

from veriward.eval.attack.families.kit import Family, pair, two
from veriward.eval.attack.families.values import SQUAREFREE, Drawn, fraction_text, other_digit

# Tiny and huge numbers


def two_tiny_powers(draw: random.Random) -> Drawn:
    first, second = two(draw, 90, 160)
    return draw.choice(
        (
            (rf"\frac{{1}}{{2^{{{first}}}}}", rf"\frac{{1}}{{2^{{{second}}}}}"),
            (f"2^{{-{first}}}", f"2^{{-{second}}}"),
            (f"e^{{-{first}}}", f"e^{{-{second}}}"),
            (f"3^{{-{first}}}", f"3^{{-{second}}}"),
        )
    )


def two_constants_of_nature(draw: random.Random) -> Drawn:
    """Magnitudes as of the elementary charge and the Planck constant."""
    (first, second), (low, high) = two(draw, 11, 98), two(draw, 18, 36)
    return rf"{first / 10} \times 10^{{-{low}}}", rf"{second / 10} \times 10^{{-{high}}}"


def tiny_for_zero(draw: random.Random) -> Drawn:
    power = draw.randint(8, 60)
    return draw.choice((f"10^{{-{power}}}", f"0.{'0' * (power - 1)}1")), "0"


def two_tiny_decimals(draw: random.Random) -> Drawn:
    (first, second), zeros = two(draw, 11, 99), "0" * draw.randint(6, 9)
    return f"0.{zeros}{first}", f"0.{zeros}{second}"


def tiny_fraction_and_decimal(draw: random.Random) -> Drawn:
    power, digit = draw.randint(7, 9), draw.randint(2, 9)
    return rf"\frac{{1}}{{{10**power}}}", f"0.{'0' * (power - 1)}{digit}"


def neighbour_of_power(draw: random.Random) -> Drawn:
    base, power = draw.choice((2, 3, 10)), draw.randint(60, 90)
    return str(base**power + draw.choice((-1, 1))), f"{base}^{{{power}}}"


def huge_digit_changed(draw: random.Random) -> Drawn:
    digits = str(draw.randint(10**39, 10**40))
    return digits[:20] + other_digit(draw, digits[20:]), digits


def above_floats(draw: random.Random) -> Drawn:
    first, second = two(draw, 310, 999)
    return f"10^{{{first}}}", f"10^{{{second}}}"


def next_float(draw: random.Random) -> Drawn:
    """Both are the same binary floating-point number."""
    even = 2**53 + 2 * draw.randint(1, 10**6)
    return str(even + 1), str(even)


def near_miss(draw: random.Random) -> Drawn:
    radicand, power, large = draw.choice(SQUAREFREE), draw.randint(12, 40), draw.randint(10**7, 10**8)
    return draw.choice(
        (
            (rf"\sqrt{{{radicand}}}+10^{{-{power}}}", rf"\sqrt{{{radicand}}}"),
            (rf"\sqrt{{{large * large + 1}}}", str(large)),
            (r"e^{\pi\sqrt{163}}", "262537412640768744"),
            (r"\frac{355}{113}", r"\pi"),
            (f"0.{'3' * power}", r"\frac{1}{3}"),
            ("0.30000000000000004", "0.3"),
        )
    )


def equal_tiny(draw: random.Random) -> Drawn:
    digits, power = draw.randint(11, 98), draw.randint(10, 40)
    return draw.choice(
        (
            (rf"{digits / 10} \times 10^{{-{power}}}", rf"{digits} \times 10^{{-{power + 1}}}"),
            (f"2^{{-{power}}}", rf"\frac{{1}}{{2^{{{power}}}}}"),
            (f"0.{'0' * (power - 1)}1", f"10^{{-{power}}}"),
        )
    )


def equal_huge(draw: random.Random) -> Drawn:
    power, (base, root) = draw.randint(30, 200), draw.choice(((4, 2), (9, 3), (25, 5)))
    return draw.choice(((f"{base}^{{{power}}}", f"{root}^{{{2 * power}}}"), (f"1{'0' * power}", f"10^{{{power}}}")))


# Percentages


def both_percent(draw: random.Random) -> Drawn:
    """57% is 0.57 or 57, 0.57% is 0.0057 or 0.57: a grader that tries both finds a match."""
    share = draw.randint(11, 99)
    return draw.choice(
        ((rf"{share}\%", rf"0.{share}\%"), (rf"0.{share}\%", rf"{share}\%"), (rf"{share}\%", f"{share}00\\%"))
    )


def mixed_readings(draw: random.Random) -> Drawn:
    """One percentage would have to be its number and the other its share."""
    first, second = two(draw, 11, 98)
    answer, reference = rf"{first}\%, {second}\%", f"{first}, 0.{second}"
    return draw.choice(
        ((answer, reference), (f"({answer})", f"({reference})"), (f"{second}\\%, {first}\\%", reference))
    )


def percent_for_fraction(draw: random.Random) -> Drawn:
    share = draw.randint(1, 99)
    return rf"{share}\%", fraction_text(Fraction(share, 100))


def decimal_for_percent(draw: random.Random) -> Drawn:
    share = draw.randint(11, 99)
    return str(share / 100), rf"{share}\%"


def hidden_hundred(draw: random.Random) -> Drawn:
    share = draw.randint(11, 99)
    return draw.choice(((f"0.{share}", str(share)), (str(share), f"0.{share}")))


def other_percent(draw: random.Random) -> Drawn:
    first, second = two(draw, 1, 99)
    return rf"{first}\%", draw.choice((rf"{second}\%", f"{second}"))


def factor_of_ten(draw: random.Random) -> Drawn:
    share = draw.randint(1, 9)
    return draw.choice(
        ((rf"{share}\%", f"0.{share}"), (rf"{share}0\%", rf"{share}\%"), (rf"{share}\%", rf"{share}0\%"))
    )


def percent_in_words(draw: random.Random) -> Drawn:
    share = draw.randint(1, 99)
    return draw.choice((rf"{share}\text{{ percent}}", f"{share} percent", f"{share}%")), rf"{share}\%"


# Units

SAME_DIMENSION = (
    ("cm", "m"), ("mm", "cm"), ("m", "km"), ("g", "kg"), ("ml", "l"), ("minutes", "hours"), ("seconds", "minutes"),
    ("hours", "days"), ("km/h", "m/s"), ("cents", "dollars"), ("inches", "feet"),
)  # fmt: skip
LENGTHS = ("cm", "m", "km", "mm", "inches", "feet")
CONVERSIONS = (
    ("cm", "mm", 10), ("m", "cm", 100), ("km", "m", 1000), ("kg", "g", 1000), ("hours", "minutes", 60),
    ("minutes", "seconds", 60), ("days", "hours", 24), ("m", "mm", 1000),
)  # fmt: skip
OTHER_DIMENSION = ((r"\text{ kg}", r"\text{ m}"), (r"\text{ cm}", r"\text{ seconds}"), (r"^\circ", r"\text{ cm}"))


def with_unit(value: int, unit: str) -> str:
    return rf"{value}\text{{ {unit}}}"


def contradiction(draw: random.Random) -> Drawn:
    value, units = draw.randint(2, 90), draw.sample(draw.choice(SAME_DIMENSION), 2)
    return with_unit(value, units[0]), with_unit(value, units[1])


def letter_for_unit(draw: random.Random) -> Drawn:
    """Only letters that no one would take for a unit where they stand."""
    value, letter = draw.randint(2, 90), draw.choice("dt")
    return draw.choice(
        (
            (f"{value}{letter}", str(value)),
            (f"x^2+{value}h", f"x^2+{value}"),
            (str(value), f"{value}{letter}"),
        )
    )


def letters_kept(draw: random.Random) -> Drawn:
    first, second = two(draw, 2, 9)
    letter = draw.choice("dhmst")
    return f"{first}{letter}+{second}", f"{second}+{first}{letter}"


def area_for_length(draw: random.Random) -> Drawn:
    value, unit = draw.randint(2, 90), draw.choice(LENGTHS)
    area, length = rf"{value}\text{{ {unit}}}^2", with_unit(value, unit)
    return draw.choice(((area, length), (length, area), (area, rf"{value}\text{{ {unit}}}^3")))


def other_dimension(draw: random.Random) -> Drawn:
    value, (first, second) = draw.randint(2, 90), draw.choice(OTHER_DIMENSION)
    return draw.choice(((f"{value}{first}", f"{value}{second}"), (f"{value}^\\circ", rf"\${value}")))


def converted(draw: random.Random) -> Drawn:
    value, (large, small, factor) = draw.randint(2, 40), draw.choice(CONVERSIONS)
    return draw.choice(
        (
            (with_unit(value, large), with_unit(value * factor, small)),
            (with_unit(value * factor, small), with_unit(value, large)),
        )
    )


def converted_wrongly(draw: random.Random) -> Drawn:
    value, (large, small, factor) = draw.randint(2, 40), draw.choice(CONVERSIONS)
    return with_unit(value, large), with_unit(value * factor * 10, small)


def unit_left_out(draw: random.Random) -> Drawn:
    value, unit = draw.randint(2, 90), draw.choice(LENGTHS)
    return str(value), draw.choice((with_unit(value, unit), rf"{value}\text{{ {unit}}}^2", rf"{value}^\circ"))


def unit_added(draw: random.Random) -> Drawn:
    value = draw.randint(2, 90)
    texts = (with_unit(value, "km/h"), with_unit(value, "cm"), with_unit(value, "apples"), rf"\${value}")
    return draw.choice(texts), str(value)


def other_amount(draw: random.Random) -> Drawn:
    (first, second), unit = two(draw, 2, 90), draw.choice((*LENGTHS, "apples", "dollars"))
    return with_unit(first, unit), draw.choice((with_unit(second, unit), str(second)))


TINY_AND_HUGE = Family(
    name="tiny_and_huge",
    tries="numbers far from one, where tolerances and floats fail",
    builders=(
        pair("absolute zero test", False, two_tiny_powers),
        pair("six-place rounding", False, two_tiny_decimals),
        pair("absolute zero test", False, two_constants_of_nature),
        pair("six-place rounding", False, tiny_fraction_and_decimal),
        pair("absolute zero test", False, tiny_for_zero),
        pair("neighbour of a power", False, neighbour_of_power),
        pair("digit of a huge number changed", False, huge_digit_changed),
        pair("powers above the range of floats", False, above_floats),
        pair("integers that are one float", False, next_float),
        pair("near miss", False, near_miss),
        pair("equal tiny numbers", True, equal_tiny),
        pair("equal huge numbers", True, equal_huge),
    ),
)
PERCENT = Family(
    name="percent",
    tries="percentages, shares and factors of a hundred",
    builders=(
        pair("both readings of percent", False, both_percent),
        pair("both readings of percent", False, mixed_readings, asks="list"),
        pair("percentage for its share", True, percent_for_fraction),
        pair("share for its percentage", True, decimal_for_percent),
        pair("hidden factor of a hundred", False, hidden_hundred),
        pair("another percentage", False, other_percent),
        pair("percentage off by ten", False, factor_of_ten),
        pair("percent in words", True, percent_in_words),
    ),
)
UNITS = Family(
    name="units",
    tries="units that contradict, convert, are left out or are letters",
    builders=(
        pair("units stripped by letter", False, letter_for_unit, asks="expression"),
        pair("units stripped by letter", False, contradiction),
        pair("units stripped by letter", True, letters_kept, asks="expression"),
        pair("units stripped by letter", False, area_for_length),
        pair("units of another dimension", False, other_dimension),
        pair("converted unit", True, converted),
        pair("unit converted wrongly", False, converted_wrongly),
        pair("unit left out", True, unit_left_out),
        pair("unit added", True, unit_added),
        pair("another amount of one unit", False, other_amount),
    ),
)
