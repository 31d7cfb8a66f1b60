"""Families about answers made of letters or digits alone: numerals in a base, words, options."""

from __future__ import annotations

import random

from veriward.eval.attack.families.kit import Family, pair, two
from veriward.eval.attack.families.values import Drawn

# Numerals in a base


def numeral(draw: random.Random) -> str:
    """Digits below five, so that they are a numeral in every base used here."""
    return f"{draw.randint(1, 4)}{draw.randint(0, 4)}{draw.randint(0, 4)}{draw.randint(1, 4)}"


def base_changed(draw: random.Random) -> Drawn:
    digits, (first, second) = numeral(draw), two(draw, 5, 9)
    return draw.choice(
        ((f"{digits}_{first}", f"{digits}_{second}"), (rf"{digits}_{{{first}}}", rf"{digits}_{{{second}}}"))
    )


def base_rewritten(draw: random.Random) -> Drawn:
    digits, base = numeral(draw), draw.randint(5, 9)
    return draw.choice(
        ((rf"{digits}_{{{base}}}", f"{digits}_{base}"), (rf"{digits}_{{\text{{{base}}}}}", f"{digits}_{base}"))
    )


def numeral_changed(draw: random.Random) -> Drawn:
    digits, base = numeral(draw), draw.randint(5, 9)
    return f"{digits[0]}{(int(digits[1]) + 1) % 5}{digits[2:]}_{base}", f"{digits}_{base}"


def other_value_in_ten(draw: random.Random) -> Drawn:
    digits, base = numeral(draw), draw.randint(5, 9)
    return str(int(digits, base) + draw.randint(1, 9) * draw.choice((-1, 1)) + 5000), f"{digits}_{base}"


# Words and options

ANAGRAMS = (("silent", "listen"), ("earth", "heart"), ("night", "thing"), ("east", "seat"), ("angel", "glean"))
SEQUENCES = ("BADC", "CADB", "DCAB", "ACBD", "CBDA")
OPPOSITES = (("no", "yes"), ("false", "true"), ("odd", "even"), ("never", "always"), ("decreasing", "increasing"))


def anagram(draw: random.Random) -> Drawn:
    first, second = draw.sample(draw.choice(ANAGRAMS), 2)
    form = draw.choice(("{}", r"\text{{{}}}"))
    return form.format(first), form.format(second)


def sequence_of_letters(draw: random.Random) -> Drawn:
    first, second = draw.sample(SEQUENCES, 2)
    return first, second


def other_option(draw: random.Random) -> Drawn:
    first, second = draw.sample("ABCDE", 2)
    value = draw.randint(2, 60)
    return draw.choice(((first, second), (rf"\text{{({first})}}", second), (rf"\textbf{{({first}) }}{value}", second)))


def same_option(draw: random.Random) -> Drawn:
    letter = draw.choice("ABCDE")
    return draw.choice(
        (rf"\text{{({letter})}}", rf"\textbf{{{letter}}}", f"({letter})", rf"\mathrm{{{letter}}}")
    ), letter


def spelled_word(draw: random.Random) -> Drawn:
    word = draw.choice(("west", "Tuesday", "parabola", "isosceles", "yes", "even"))
    return draw.choice((rf"\text{{{word.capitalize()}}}", rf"\text{{ {word}.}}", rf"\mathrm{{{word}}}")), word


def opposite(draw: random.Random) -> Drawn:
    first, second = draw.sample(draw.choice(OPPOSITES), 2)
    return first, second


def word_for_number(draw: random.Random) -> Drawn:
    texts = (
        r"\text{see above}",
        r"\text{the number we found}",
        r"\text{as required}",
        r"\text{many}",
        r"\text{unknown}",
    )
    return draw.choice(texts), str(draw.randint(2, 90))


def letter_for_number(draw: random.Random) -> Drawn:
    return draw.choice(("x", "n", "k", "ab", "x+y")), str(draw.randint(2, 90))


BASES = Family(
    name="bases",
    tries="numerals with their base",
    builders=(
        pair("base dropped", False, base_changed, asks="base"),
        pair("base rewritten", True, base_rewritten, asks="base"),
        pair("numeral changed", False, numeral_changed, asks="base"),
        pair("another value in base ten", False, other_value_in_ten, asks="base"),
    ),
)
WORDS = Family(
    name="words",
    tries="words, sequences of letters, options, yes and no",
    builders=(
        pair("letters as factors", False, anagram, asks="words"),
        pair("letters as factors", False, sequence_of_letters, asks="words"),
        pair("another option", False, other_option, asks="choice"),
        pair("option in another style", True, same_option, asks="choice"),
        pair("opposite word", False, opposite, asks="words"),
        pair("word in another style", True, spelled_word, asks="words"),
        pair("word for a number", False, word_for_number),
        pair("letter for a number", False, letter_for_number),
    ),
)
