"""The family of everyday spellings: right answers as people write them."""

from __future__ import annotations

import random
from fractions import Fraction

from veriward.eval.attack.families.kit import Family, pair, response, two
from veriward.eval.attack.families.values import SQUAREFREE, Drawn, fraction_text, proper


def full_stop(draw: random.Random) -> Drawn:
    value = draw.randint(2, 999)
    return f"{value}.", str(value)


def ordinal(draw: random.Random) -> Drawn:
    value = draw.choice([number for number in range(4, 100) if number % 10 not in (1, 2, 3)])
    return draw.choice((rf"{value}^{{\text{{th}}}}", rf"{value}\text{{th}}")), str(value)


def plain_constants(draw: random.Random) -> Drawn:
    below = draw.randint(3, 12)
    radicand = draw.choice(SQUAREFREE)
    return draw.choice(
        (
            (f"pi/{below}", rf"\frac{{\pi}}{{{below}}}"),
            (f"{below}*pi", rf"{below}\pi"),
            (f"sqrt({radicand})/{below}", rf"\frac{{\sqrt{{{radicand}}}}}{{{below}}}"),
        )
    )


def scientific(draw: random.Random) -> Drawn:
    digits, power = draw.randint(11, 98), draw.randint(2, 6)
    value = Fraction(digits, 10 ** (power + 1))
    return f"{digits / 10}e-{power}", f"{float(value):.{power + 1}f}"


def thin_blanks(draw: random.Random) -> Drawn:
    value = draw.randint(10**6, 10**9)
    return f"{value:,}".replace(",", r"\,"), str(value)


def thousands(draw: random.Random) -> Drawn:
    value = draw.randint(10**4, 10**9)
    return draw.choice((f"{value:,}", f"{value:,}".replace(",", r",\!"), f"{value:,}".replace(",", "{,}"))), str(value)


def repeating(draw: random.Random) -> Drawn:
    digits = draw.randint(12, 98)
    return rf"0.\overline{{{digits}}}", fraction_text(Fraction(digits, 99))


def unicode_root(draw: random.Random) -> Drawn:
    factor, radicand = draw.randint(2, 12), draw.choice(SQUAREFREE)
    return f"{factor}√{radicand}", rf"{factor}\sqrt{{{radicand}}}"


def unicode_power(draw: random.Random) -> Drawn:
    power = draw.randint(2, 9)
    return f"x{'⁰¹²³⁴⁵⁶⁷⁸⁹'[power]}+1", f"x^{power}+1"


def imaginary_root(draw: random.Random) -> Drawn:
    value = draw.randint(2, 20)
    return rf"\sqrt{{-{value * value}}}", f"{value}i"


def millions(draw: random.Random) -> Drawn:
    value = draw.randint(2, 90)
    return rf"\${value} \text{{ million}}", rf"\${value},\!000,\!000"


def labelled(draw: random.Random) -> Drawn:
    value = draw.randint(2, 999)
    return rf"\text{{Answer: }}{value}", str(value)


def turned_inequality(draw: random.Random) -> Drawn:
    low, high = sorted(two(draw, -9, 30))
    return draw.choice(((f"{high}>x>{low}", f"{low}<x<{high}"), (rf"\{{x \mid {low}<x<{high}\}}", f"({low},{high})")))


def system(draw: random.Random) -> Drawn:
    total, difference = two(draw, 2, 30)
    return rf"\begin{{cases}} x+y={total}\\ x-y={difference}\end{{cases}}", f"x-y={difference}, x+y={total}"


def option_with_text(draw: random.Random) -> Drawn:
    letter, value = draw.choice("ABCDE"), draw.randint(2, 90)
    texts = (rf"\text{{{letter}: }}{value}", rf"\textbf{{({letter}) }}{value}", rf"\text{{({letter})}}")
    return draw.choice(texts), letter


def framed(draw: random.Random) -> Drawn:
    value = draw.randint(2, 999)
    return rf"Collecting the terms leaves one value. Answer: $\fbox{{{value}}}$", str(value)


def unclosed(draw: random.Random) -> Drawn:
    value = proper(draw)
    return rf"Dividing both sides, we arrive at \boxed{{{fraction_text(value)}", fraction_text(value)


def full_width(draw: random.Random) -> Drawn:
    value = draw.randint(10, 999)
    return "".join("０１２３４５６７８９"[int(digit)] for digit in str(value)), str(value)


def chinese(draw: random.Random) -> Drawn:
    tens, ones = draw.randint(2, 9), draw.randint(1, 9)
    digits = "〇一二三四五六七八九"
    return f"{digits[tens]}十{digits[ones]}", str(10 * tens + ones)


def styled(draw: random.Random) -> Drawn:
    value = draw.randint(2, 999)
    styles = (r"\mathbf{{{}}}", r"\displaystyle {}", r"\textbf{{{}}}", r"\left({}\right)", r"{}\,", r"\ {}", "+{}")
    return draw.choice(styles).format(value), str(value)


def fraction_styles(draw: random.Random) -> Drawn:
    value = proper(draw)
    above, below = value.numerator, value.denominator
    texts = (rf"\dfrac{{{above}}}{{{below}}}", rf"\tfrac{{{above}}}{{{below}}}", rf"{{{above} \over {below}}}")
    return draw.choice(texts), fraction_text(value)


WORDED: tuple[Drawn, ...] = (
    (r"\text{seven}", "7"),
    (r"\text{twelve}", "12"),
    (r"\text{thirty-five}", "35"),
    (r"\text{three hundred}", "300"),
    (r"\text{one half}", r"\frac{1}{2}"),
)
DOTTED: tuple[Drawn, ...] = (
    (r"0.333\ldots", r"\frac{1}{3}"),
    ("0.666...", r"\frac{2}{3}"),
    (r"0.1212\dots", r"\frac{4}{33}"),
)


def two_units(draw: random.Random) -> Drawn:
    hours, minutes = draw.randint(1, 9), draw.randint(1, 59)
    return rf"{hours} \text{{ hours }} {minutes} \text{{ minutes}}", rf"{60 * hours + minutes} \text{{ minutes}}"


def blanks_in_thousands(draw: random.Random) -> Drawn:
    value = draw.randint(10**4, 10**7)
    return f"{value:,}".replace(",", " "), str(value)


def outward_brackets(draw: random.Random) -> Drawn:
    low, high = sorted(two(draw, -9, 30))
    return f"]{low}, {high}[", f"{low}<x<{high}"


def sign_in_words(draw: random.Random) -> Drawn:
    value = draw.randint(2, 90)
    return draw.choice(
        (
            (rf"{value}\text{{ dollars}}", rf"\${value}"),
            (rf"{value}\text{{ degrees}}", rf"{value}^\circ"),
        )
    )


def sentence_in_box(draw: random.Random) -> Drawn:
    value = draw.randint(2, 90)
    texts = (
        rf"\text{{The answer is }}{value}",
        rf"\text{{The answer is {value}.}}",
        rf"\text{{Therefore, }} x = {value}",
    )
    return draw.choice(texts), str(value)


def named(draw: random.Random) -> Drawn:
    value, letter = draw.randint(2, 99), draw.choice("xyn")
    return draw.choice(((f"{letter}={value}", str(value)), (str(value), f"{letter}={value}")))


EVERYDAY = Family(
    name="everyday",
    tries="right answers as people write them, which a fair grader pays",
    builders=(
        pair("everyday forms", True, full_stop),
        pair("everyday forms", True, ordinal),
        pair("everyday forms", True, plain_constants),
        pair("everyday forms", True, scientific),
        pair("everyday forms", True, thin_blanks),
        pair("everyday forms", True, repeating),
        pair("everyday forms", True, imaginary_root),
        pair("everyday forms", True, lambda draw: draw.choice((("½", "0.5"), ("¼", r"\frac{1}{4}"), ("¾", "0.75")))),
        pair("everyday forms", True, unicode_root),
        pair("everyday forms", True, unicode_power, asks="expression"),
        pair("everyday forms", True, lambda _: (r"e^{i\pi}", "-1")),
        pair("everyday forms", True, millions),
        pair("everyday forms", True, turned_inequality, asks="interval"),
        pair("everyday forms", True, system, asks="equation"),
        pair("everyday forms", True, labelled),
        pair("everyday forms", True, option_with_text, asks="choice"),
        response("everyday forms", True, framed),
        response("everyday forms", True, unclosed),
        pair("thousands separators", True, thousands),
        pair("full-width digits", True, full_width),
        pair("Chinese numerals", True, chinese),
        pair("style commands", True, styled),
        pair("fraction commands", True, fraction_styles),
        pair("name in front or left out", True, named),
        pair("number in words", True, lambda draw: draw.choice(WORDED)),
        pair("decimal that goes on", True, lambda draw: draw.choice(DOTTED)),
        pair("amount in two units", True, two_units),
        pair("blanks between thousands", True, blanks_in_thousands),
        pair("outward brackets", True, outward_brackets, asks="interval"),
        pair("sign in words", True, sign_in_words),
        pair("sentence in the box", True, sentence_in_box),
    ),
)
