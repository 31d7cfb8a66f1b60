"""A problem set made from a seed when it is asked for, so that no model can have seen it in training.

It stands beside a public set: what a model gains on both it can do, what it gains on the public one alone it may have
read. Each template computes its reference with integers and fractions.

Covered: school mathematics with one number as its answer, in sixteen templates and three levels.
Not covered: proofs, geometry beyond rectangles, answers with letters. The templates are public, so a model can be
trained on their kind; the numbers it cannot have seen.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from veriward.eval.problems import Problem, ProblemSet, hash_problems
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import cannot_write, write_whole

GENERATOR = "veriward.eval.fresh_problems/1"
"""Goes up by one when the same seed would no longer give the same problems."""

DIFFICULTIES: Mapping[str, tuple[int, ...]] = {"easy": (1,), "standard": (2,), "hard": (3,), "mixed": (1, 2, 3)}
"""Levels by name. A level has larger numbers than the one below it."""

NAMES = ("Amira", "Bruno", "Chen", "Dalia", "Emeka", "Freya", "Goran", "Hana")
THINGS = ("pencils", "marbles", "stickers", "apples", "tickets", "shells")
GROUPS = ("club", "choir", "council", "team", "class", "union")
SHELVED = ("books", "vases", "photos", "jars", "trophies", "plants", "clocks", "dolls")
FRUITLESS_DRAWS = 1000
"""Problems that were drawn before are drawn again; after this many in a row a template is used up."""


class Draft(NamedTuple):
    question: str
    answer: Fraction | int


class Draw:
    """Random numbers of one problem."""

    def __init__(self, seed: str, level: int) -> None:
        self._random = random.Random(seed)  # a text seeds alike on every platform
        self.level = level

    def number(self, *largest: int, least: int = 2) -> int:
        """From `least` to the largest number of this level, given for the levels 1, 2, 3."""
        return self._random.randint(least, largest[self.level - 1])

    def of(self, values: tuple[str, ...]) -> str:
        return values[self._random.randrange(len(values))]

    @property
    def name(self) -> str:
        return self.of(NAMES)

    @property
    def thing(self) -> str:
        return self.of(THINGS)


def shopping(draw: Draw) -> Draft:
    boxes, each, given = draw.number(9, 30, 80), draw.number(9, 40, 150), draw.number(9, 40, 90)
    left = boxes * each - given
    question = (
        f"{draw.name} buys {boxes} boxes of {draw.thing}, and each box holds {each} of them. "
        f"After {given} were given away and nothing else was lost, how many are left?"
    )
    return Draft(question, left)


def travel(draw: Draw) -> Draft:
    first, second = draw.number(40, 90, 180, least=10), draw.number(40, 90, 180, least=10)
    hours, more = draw.number(3, 6, 12), draw.number(4, 8, 14)
    question = (
        f"A train travels for {hours} hours at {first} kilometres an hour. Then it travels for another {more} hours "
        f"at {second} kilometres an hour. How many kilometres does it travel in all?"
    )
    return Draft(question, hours * first + more * second)


def linear_equation(draw: Draw) -> Draft:
    a, b = draw.number(9, 20, 60), draw.number(20, 90, 400)
    x = draw.number(12, 40, 200)
    return Draft(f"Find the number x that solves the equation {a}x + {b} = {a * x + b}.", x)


def two_unknowns(draw: Draw) -> Draft:
    small, gap = draw.number(20, 90, 700), draw.number(12, 60, 300)
    return Draft(
        f"Two numbers have the sum {2 * small + gap}, and the larger one exceeds the smaller one by {gap}. "
        "What is the larger number?",
        small + gap,
    )


def fraction_sum(draw: Draw) -> Draft:
    below = draw.number(12, 20, 48, least=3), draw.number(12, 20, 48, least=3)
    first, second = (Fraction(draw.number(*[part - 1] * 3, least=1), part) for part in below)
    question = f"What fraction in lowest terms do you get if you add the two fractions {first} and {second}?"
    return Draft(question, first + second)


def fraction_of_rest(draw: Draw) -> Draft:
    first, second, unit = draw.number(4, 6, 9), draw.number(4, 6, 9), draw.number(5, 12, 40)
    whole = first * second * unit
    question = (
        f"{draw.name} has {whole} {draw.thing} and sells 1/{first} of them in the morning. "
        f"In the afternoon 1/{second} of what remained is sold too. How many are left in the evening?"
    )
    rest = whole * (1 - Fraction(1, first)) * (1 - Fraction(1, second))
    return Draft(question, rest)


def percent_change(draw: Draw) -> Draft:
    price, up, down = (
        draw.number(9, 30, 90) * 20,
        draw.number(5, 9, 18, least=1) * 5,
        draw.number(5, 9, 18, least=1) * 5,
    )
    question = (
        f"A machine costs {price} dollars, and its price is raised by {up} percent. "
        f"The new price is then lowered by {down} percent. What does it cost in dollars now?"
    )
    return Draft(question, Fraction(price * (100 + up) * (100 - down), 10_000))


def before_discount(draw: Draw) -> Draft:
    price, cut = draw.number(9, 30, 90) * 20, draw.number(5, 9, 18, least=1) * 5
    paid = Fraction(price * (100 - cut), 100)
    question = (
        f"In a sale every price is lowered by {cut} percent, and after that a coat costs {written(paid)} dollars. "
        "How many dollars did it cost before the sale?"
    )
    return Draft(question, price)


def committee(draw: Draw) -> Draft:
    group = draw.of(GROUPS)
    women, men, chosen = draw.number(9, 11, 14, least=3), draw.number(9, 11, 14, least=3), draw.number(2, 3, 3)
    question = (
        f"A {group} has {women} women and {men} men as its members. In how many ways can it choose a committee "
        f"of {chosen} women and 2 men?"
    )
    return Draft(question, math.comb(women, chosen) * math.comb(men, 2))


def arrangement(draw: Draw) -> Draft:
    things, count, fixed = draw.of(SHELVED), draw.number(7, 8, 9, least=4), draw.number(2, 3, 3)
    question = (
        f"{draw.name} puts {things} in a row on a shelf, and each of them looks different. In how many ways can this "
        f"be done if there are {count} {things} in all and {fixed} certain ones must stand side by side, in any order?"
    )
    return Draft(question, math.factorial(count - fixed + 1) * math.factorial(fixed))


def largest_tile(draw: Draw) -> Draft:
    common = draw.number(9, 24, 90)
    long, wide = common * draw.number(9, 14, 30), common * draw.number(9, 14, 30)
    question = (
        "A floor is to be covered with equal square tiles, none of them cut. How many centimetres long can the side "
        f"of a tile be at most if the floor is {long} centimetres long and {wide} centimetres wide?"
    )
    return Draft(question, math.gcd(long, wide))


def next_meeting(draw: Draw) -> Draft:
    buses = draw.number(12, 25, 60, least=4), draw.number(12, 25, 60, least=4), draw.number(9, 16, 30, least=3)
    question = (
        f"Three buses leave a station together. From then on one of them leaves every {buses[0]} minutes, another "
        f"every {buses[1]} minutes and the last every {buses[2]} minutes. "
        "After how many minutes do all three leave together again?"
    )
    return Draft(question, math.lcm(*buses))


def arithmetic_sequence(draw: Draw) -> Draft:
    first, step, count = draw.number(20, 60, 300), draw.number(9, 25, 90), draw.number(12, 30, 90, least=5)
    question = (
        f"A sequence begins with {first}, and each later term is {step} larger than the one before it. "
        f"What is the sum of its first {count} terms?"
    )
    return Draft(question, sum(range(first, first + step * count, step)))


def geometric_sequence(draw: Draw) -> Draft:
    first, ratio, place = draw.number(40, 60, 90), draw.number(4, 5, 7), draw.number(5, 6, 8, least=4)
    question = (
        f"A colony has {first} cells on day 1, and on each later day it has {ratio} times as many cells as on the day "
        f"before. How many cells does it have on day {place}?"
    )
    return Draft(question, first * ratio ** (place - 1))


def missing_score(draw: Draw) -> Draft:
    scores = [draw.number(30, 60, 200, least=5) for _ in range(3)]
    mean = max(scores) + draw.number(9, 20, 60, least=1)
    listed = f"{scores[0]}, {scores[1]} and {scores[2]}"
    question = (
        f"In three games {draw.name} scored {listed} points. How many points are needed in the fourth game "
        f"for a mean of exactly {mean} points over all four games?"
    )
    return Draft(question, 4 * mean - sum(scores))


def urn(draw: Draw) -> Draft:
    red, blue = draw.number(12, 20, 40, least=3), draw.number(12, 20, 40, least=3)
    question = (
        "Two balls are drawn from an urn without putting any back. What is the probability, as a fraction in lowest "
        f"terms, that both are red if the urn holds {red} red and {blue} blue balls?"
    )
    return Draft(question, Fraction(math.comb(red, 2), math.comb(red + blue, 2)))


TEMPLATES: Mapping[str, Callable[[Draw], Draft]] = {
    make.__name__: make
    for make in (
        shopping,
        travel,
        linear_equation,
        two_unknowns,
        fraction_sum,
        fraction_of_rest,
        percent_change,
        before_discount,
        committee,
        arrangement,
        largest_tile,
        next_meeting,
        arithmetic_sequence,
        geometric_sequence,
        missing_score,
        urn,
    )
}
"""More than the ten that an interval by template needs (`metrics.FEWEST_CLUSTERS`)."""


def fresh_problems(count: int, *, seed: int, difficulty: str = "mixed") -> ProblemSet:
    """`count` different problems, the templates in turn; columns `template` and `level`.

    The same ones for the same arguments on every machine; a larger count only adds to them.

    raises   ConfigError for an unknown difficulty, and where a template has no more different problems
    """
    if difficulty not in DIFFICULTIES:
        raise ConfigError(f"unknown difficulty {difficulty!r}; wanted one of {', '.join(DIFFICULTIES)}")
    if count < 1:
        raise ConfigError(f"wanted at least 1 problem, got {count}")
    levels, names = DIFFICULTIES[difficulty], tuple(TEMPLATES)
    seen: set[str] = set()
    problems = []
    for number in range(count):
        template = names[number % len(names)]
        level = levels[number // len(names) % len(levels)]
        draft = unseen(f"{GENERATOR}:{difficulty}:{seed}:{number}", template, level, seen)
        problems.append(
            Problem(
                id=f"fresh-{seed}-{number + 1:04d}",
                question=draft.question,
                reference=written(draft.answer),
                columns={"template": template, "level": level},
            )
        )
    return ProblemSet(
        problems=tuple(problems),
        sha256=hash_problems(problems),
        name=f"fresh problems ({difficulty}, seed {seed})",
        question_column="question",
        reference_column="reference",
    )


def unseen(seed: str, template: str, level: int, seen: set[str]) -> Draft:
    for again in range(FRUITLESS_DRAWS):
        draft = TEMPLATES[template](Draw(f"{seed}:{again}", level))
        if draft.question not in seen:
            seen.add(draft.question)
            return draft
    raise ConfigError(
        f"template {template} has no more different problems of level {level}; ask for fewer, or for 'mixed' or 'hard'"
    )


def written(number: Fraction | int) -> str:
    """As '7' or '7/12'."""
    value = Fraction(number)
    if value.denominator == 1:
        return str(value.numerator)
    return f"{value.numerator}/{value.denominator}"


def write_fresh(out: Path, count: int, *, seed: int, difficulty: str = "mixed") -> ProblemSet:
    """The set as JSONL that `load_problems` reads with the same hash."""
    made = fresh_problems(count, seed=seed, difficulty=difficulty)
    rows = [
        {"id": problem.id, "question": problem.question, "reference": problem.reference, **problem.columns}
        for problem in made.problems
    ]
    try:
        write_whole(out, "".join(f"{json.dumps(row)}\n" for row in rows).encode("ascii"))
    except OSError as error:
        raise cannot_write(out, error) from error
    return made
