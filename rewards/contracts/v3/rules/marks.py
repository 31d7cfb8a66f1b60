"""Values that carry a mark: percent, units, degrees, bases, option letters, words, yes and no, times of day."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from veriward.rewards.contracts.v3 import units
from veriward.rewards.contracts.v3.comparison import Comparison
from veriward.rewards.contracts.v3.engine import algebra
from veriward.rewards.contracts.v3.rules.comparer import (
    EQUAL,
    UNEQUAL,
    Comparer,
    equal,
    flagged,
    summed,
    undecided,
    unequal,
)
from veriward.rewards.contracts.v3.rules.rewrite import difference, number, quotient
from veriward.rewards.contracts.v3.tree import (
    Alternatives,
    Apply,
    Based,
    Choice,
    Constant,
    Degrees,
    Negation,
    Node,
    Number,
    Percent,
    Power,
    Product,
    Quantity,
    Symbol,
    Text,
    Time,
    Truth,
    is_scalar,
    walk,
)
from veriward.rewards.task import Options
from veriward.rewards.verdict import Certainty, Method, Reason

PERCENT_WRITTEN = "percent_written"
UNIT_MISSING = "unit_missing"
UNIT_ADDED = "unit_added"
UNIT_CONVERTED = "unit_converted"
LABEL_DROPPED = "label_dropped"
BASE_MISSING = "base_missing"

ROUNDED = "rounded"
SUBJECT_OF_SENTENCE = "subject_of_sentence"
TOLERANCE = "tolerance"

HEDGED = "hedged"
MIN_NAME = 4
VERBS = frozenset(
    (
        *(
            "will",
            "is",
            "was",
            "has",
            "had",
            "can",
            "did",
            "does",
            "won",
            "wins",
            "lost",
            "loses",
            "got",
            "gets",
            "gave",
        ),
        *("received", "receives", "served", "serves", "scored", "earned", "finished", "took", "takes", "went", "goes"),
    )
)
TAKES_BACK = frozenset(
    (
        *("and", "or", "nor", "but", "not", "never", "no", "unless", "except", "if", "only", "either", "neither"),
        *("cannot", "nothing", "none", "nobody", "hardly", "rarely", "seldom", "fails", "failed", "rather", "instead"),
        *("than", "without", "wrong", "false", "doesnt", "isnt", "wont", "didnt", "unlikely", "maybe", "perhaps"),
    )
)
DOUBTS = frozenset(
    (
        *("no", "not", "wait", "or", "but", "maybe", "perhaps", "possibly", "wrong", "incorrect", "false", "instead"),
        *("answer", "could", "might", "rather", "actually", "option", "choice", "either", "neither", "unless", "guess"),
        *("b", "c", "d", "e", "f", "g", "h", "j"),
    )
)

HUNDRED = number(100)
SIGNIFICANT_DIGITS = 3
DECIMAL = re.compile(r"-?\d*\.\d+")
EXACT = 1 << 30
MARKED = (Degrees, Percent, Quantity)
OPTION_LETTERS = frozenset("ABCDEFGHIJ")


def texts(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Words against words: the same are equal, others may be a synonym. Words against mathematics are not decided.

    A name is equal to a sentence that begins with it as its subject: `Petya` for `Petya will receive the last token`.
    """
    if isinstance(candidate, Text):
        if not isinstance(reference, Text):
            return undecided(Reason.TEXT_NOT_EXPECTED)
        if candidate.words == reference.words:
            return equal(Method.SPELLING)
        if _is_subject(candidate.words, reference.words):
            return equal(Method.KIND, Certainty.PROBABLE, flags=(SUBJECT_OF_SENTENCE,))
        return undecided(Reason.NOT_SETTLED)
    return undecided(Reason.KINDS_NOT_COMPARED) if isinstance(reference, Text) else None


def _is_subject(name: str, sentence: str) -> bool:
    """A word, then one of a few verbs, and nothing that takes it back."""
    first, *rest = sentence.split()
    return (
        first == name
        and name.isalpha()
        and len(name) >= MIN_NAME
        and len(rest) >= 3
        and rest[0] in VERBS
        and all(word.strip(".,").isalnum() for word in rest)
        and TAKES_BACK.isdisjoint(rest)
    )


def truths(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`yes`, `True`, `是`."""
    if isinstance(candidate, Truth) and isinstance(reference, Truth):
        return equal(Method.KIND) if candidate == reference else unequal(Method.KIND)
    return None


def times(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Times of day; one that leaves out morning or afternoon is not settled against one that says it."""
    if isinstance(candidate, Time) and isinstance(reference, Time):
        if (candidate.hour % 12, candidate.minute, candidate.second or 0) != (
            reference.hour % 12,
            reference.minute,
            reference.second or 0,
        ):
            return unequal(Method.KIND)
        if candidate.half is not None and reference.half is not None and candidate.half != reference.half:
            return unequal(Method.KIND)
        same = candidate.half == reference.half and candidate.hour == reference.hour
        return equal(Method.KIND) if same else undecided(Reason.NOT_SETTLED)
    return None


def choices(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`\\text{(D) }47` for D, for `(D)` and for 47; another letter is another option; a letter's text must agree."""
    chosen, asked = _as_choice(candidate), _as_choice(reference)
    if chosen is not None and asked is not None:
        if chosen.letter != asked.letter:
            return unequal(Method.KIND)
        if asked.value is None and chosen.value is not None and _takes_back(chosen.value):
            return unequal(Method.KIND, Certainty.PROBABLE, reason=Reason.HEDGED, flags=(HEDGED,))
        if chosen.value is None and asked.value is not None and chosen.letter.islower():
            return undecided(Reason.KINDS_NOT_COMPARED)  # a label alone, where its value is asked
        if chosen.value is None or asked.value is None:
            return equal(Method.KIND)
        return comparer.compare(chosen.value, asked.value)
    if isinstance(candidate, Choice) and asked is None:
        if candidate.value is None:
            return undecided(Reason.KINDS_NOT_COMPARED)
        return flagged(comparer.compare(candidate.value, reference), LABEL_DROPPED)
    if isinstance(reference, Choice) and chosen is None:
        if reference.value is None:
            return undecided(Reason.KINDS_NOT_COMPARED)
        return flagged(comparer.compare(candidate, reference.value), LABEL_DROPPED)
    return None


def _takes_back(value: Node) -> bool:
    """The text behind an option's letter names other options or doubts: `(C) no wait, the answer is D`."""
    for part in walk(value):
        if isinstance(part, Choice | Alternatives):
            return True
        if isinstance(part, Text) and not DOUBTS.isdisjoint(re.findall(r"[^\W\d_]+", part.words)):
            return True
    return False


def _as_choice(node: Node) -> Choice | None:
    """An option: a Choice, or an upper-case letter by itself beside one."""
    if isinstance(node, Choice):
        return node
    if isinstance(node, Symbol) and node.name in OPTION_LETTERS:
        return Choice(node.name, None)
    return None


def within_tolerance(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`tolerance: 0.01`, or `1%` of the reference: only where the task states one."""
    stated = comparer.options.tolerance
    if not stated or not is_scalar(candidate) or not is_scalar(reference):
        return None
    allowed: Node = number(Fraction(stated.removesuffix("%")))
    if stated.endswith("%"):
        allowed = Product((quotient(allowed, HUNDRED), Apply("abs", (reference,))))
    off = Apply("abs", (difference(candidate, reference),))
    if algebra.sign(difference(candidate, reference)) is None or algebra.sign(difference(allowed, off)) not in (0, 1):
        return None
    found = comparer.scalars(candidate, reference)
    return found if found.finding is EQUAL else equal(Method.TOLERANCE, Certainty.PROBABLE, flags=(TOLERANCE,))


def rounded(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """7.03125 and 225/32 for the reference 7.03: a decimal reference may be a rounded one, a candidate never.

    A reference counts as rounded if it has at least three significant digits, one of them after the point: 33.3 and
    0.333, not 0.5 and no integer. The candidate must be exact, or have more digits, and round half up to it.
    """
    if comparer.options.rounding == "exact" or comparer.options.tolerance:
        return None
    if not is_scalar(candidate) or (isinstance(candidate, Number) and _places(candidate) <= _places(reference)):
        return None
    places = _places(reference)
    shown = _decimal(reference)
    if shown is None or places < 1 or len(shown.text.replace(".", "").lstrip("-0")) < SIGNIFICANT_DIGITS:
        return None
    asked = algebra.value(reference)
    if asked is None:
        return None
    half = Fraction(1, 2 * 10**places)
    low = algebra.sign(difference(absolute(candidate, asked), number(abs(asked) - half)))
    high = algebra.sign(difference(absolute(candidate, asked), number(abs(asked) + half)))
    if low in (0, 1) and high == -1:
        found = comparer.scalars(candidate, reference)
        return found if found.finding is EQUAL else equal(Method.ROUNDING, Certainty.PROBABLE, flags=(ROUNDED,))
    return None


def _decimal(node: Node) -> Number | None:
    """The number of a plain decimal, its sign apart."""
    inner = node.operand if isinstance(node, Negation) else node
    return inner if isinstance(inner, Number) and DECIMAL.fullmatch(inner.text) else None


def _places(node: Node) -> int:
    """Digits after the point of a plain decimal; an integer has none, anything else is exact and has many."""
    shown = _decimal(node)
    if shown is not None:
        return len(shown.text.partition(".")[2])
    return 0 if isinstance(node, Number) and node.value.denominator == 1 else EXACT


def absolute(candidate: Node, asked: Fraction) -> Node:
    """The candidate, mirrored where the reference is negative: rounding goes away from zero on both sides."""
    return Negation(candidate) if asked < 0 else candidate


def option_or_value(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """17 for the reference `C`: a value where an option's letter is asked says nothing about the letter."""
    if not (isinstance(reference, Symbol) and reference.name in OPTION_LETTERS):
        return None
    if isinstance(candidate, Symbol) or not is_scalar(candidate) or reference in set(walk(candidate)):
        return None
    return undecided(Reason.KINDS_NOT_COMPARED)


def bases(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`1432_5`: the same digits in the same base. Another base is another numeral, even of the same value."""
    if isinstance(candidate, Based) and isinstance(reference, Based):
        if candidate.base != reference.base:
            return unequal(Method.KIND)
        same = candidate.digits.lstrip("0") == reference.digits.lstrip("0")
        return equal(Method.RATIONAL) if same else unequal(Method.RATIONAL)
    based, other = (candidate, reference) if isinstance(candidate, Based) else (reference, candidate)
    if not isinstance(based, Based):
        return None
    if isinstance(other, Number) and other.text and other.text.lstrip("0") == based.digits.lstrip("0"):
        if other is candidate and comparer.options.base == "required":
            return unequal(Method.KIND, Certainty.PROBABLE, reason=Reason.UNIT_MISSING)
        return equal(Method.KIND, flags=(BASE_MISSING,)) if other is candidate else undecided(Reason.NOT_SETTLED)
    return undecided(Reason.KINDS_NOT_COMPARED)


def different_marks(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """36 degrees are no 36 dollars, 50 percent are no 50 cm; `30 \\text{ degrees}` and `30^\\circ` are one mark."""
    if not (isinstance(candidate, MARKED) and isinstance(reference, MARKED)) or type(candidate) is type(reference):
        return None
    if _mark(candidate) == _mark(reference):
        return comparer.compare(candidate.operand, reference.operand)
    return unequal(Method.KIND, Certainty.PROBABLE)


def _mark(node: Degrees | Percent | Quantity) -> str:
    if isinstance(node, Percent):
        return "percent"
    if isinstance(node, Degrees):
        return "degrees"
    unit = node.unit.strip().lower()
    return {"degree": "degrees", "deg": "degrees", "°": "degrees", "度": "degrees", "%": "percent"}.get(unit, unit)


def percents(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """50% is 1/2; whether it is 50 as well depends on who wrote the sign.

    For a reference `N%`, both N and N/100 are right. For a bare reference r, `N%` is right if N = r, or if r = N/100
    and r lies between -1 and 1, so that 1200% is not 12. One reading holds for the whole answer: `50\\%, 20\\%` is
    `50, 20` and is `0.5, 0.2`, and is no `50, 0.2`.
    """
    if isinstance(candidate, Percent) and isinstance(reference, Percent):
        return comparer.compare(candidate.operand, reference.operand)
    as_share = comparer.percent == "share"
    if isinstance(reference, Percent) and is_scalar(candidate):
        if comparer.options.units == "required":
            return unequal(Method.KIND, Certainty.PROBABLE, reason=Reason.UNIT_MISSING)
        found = comparer.compare(Product((HUNDRED, candidate)) if as_share else candidate, reference.operand)
    elif isinstance(candidate, Percent) and is_scalar(reference):
        value = algebra.value(reference)
        if as_share and comparer.options.percent == "either" and (value is None or abs(value) > 1):
            return unequal(Method.KIND, Certainty.PROBABLE)
        found = comparer.compare(quotient(candidate.operand, HUNDRED) if as_share else candidate.operand, reference)
    else:
        return None
    return found if as_share or found.finding is not EQUAL else flagged(found, PERCENT_WRITTEN)


def in_one_reading(candidate: Node, reference: Node, comparer: Comparer) -> Comparison:
    """The first reading of the percent signs, all as shares or all as numbers, under which both sides are equal."""
    found: list[Comparison] = []
    for reading in _readings(candidate, reference, comparer.options):
        comparer.percent = reading
        found.append(comparer.compare(candidate, reference))
        if found[-1].finding is EQUAL:
            break
    settled = next((one for one in reversed(found) if one.finding is not UNEQUAL), found[0])
    return replace(settled, cost=summed(found)) if len(found) > 1 else settled


def _readings(candidate: Node, reference: Node, options: Options) -> tuple[str, ...]:
    if options.percent != "either":
        return (options.percent,)
    if any(isinstance(part, Percent) for part in walk(reference)):
        return ("share", "number")
    return ("number", "share") if any(isinstance(part, Percent) for part in walk(candidate)) else ("number",)


def degrees(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """The sign may be missing; degrees against an angle with pi in it is not settled without a second sign."""
    if isinstance(candidate, Degrees) and isinstance(reference, Degrees):
        return comparer.compare(candidate.operand, reference.operand)
    marked, other = (candidate, reference) if isinstance(candidate, Degrees) else (reference, candidate)
    if not isinstance(marked, Degrees) or not is_scalar(other):
        return None
    if any(part == Constant("pi") for part in walk(other)):
        return undecided(Reason.KINDS_NOT_COMPARED)
    if marked is reference and comparer.options.units == "required":
        return unequal(Method.KIND, Certainty.PROBABLE, reason=Reason.UNIT_MISSING)
    left, right = (marked.operand, other) if marked is candidate else (other, marked.operand)
    return flagged(comparer.scalars(left, right), UNIT_ADDED if marked is candidate else UNIT_MISSING)


def quantities(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """A unit or word may be missing, and must not contradict: `5 \\text{ cm}` is 5, is 50 mm, and is not 5 m."""
    if isinstance(candidate, Quantity) and isinstance(reference, Quantity):
        return _both_with_units(candidate, reference, comparer)
    if isinstance(candidate, Quantity):
        bare = _with_letter_as_unit(reference, candidate.unit)
        if bare is not None:
            return _both_with_units(candidate, bare, comparer)
        return flagged(comparer.compare(candidate.operand, reference), UNIT_ADDED)
    if isinstance(reference, Quantity):
        bare = _with_letter_as_unit(candidate, reference.unit)
        if bare is not None:
            return _both_with_units(bare, reference, comparer)
        if comparer.options.units == "required":
            return unequal(Method.KIND, Certainty.PROBABLE, reason=Reason.UNIT_MISSING)
        return flagged(comparer.compare(candidate, reference.operand), UNIT_MISSING)
    return None


def _with_letter_as_unit(node: Node, unit: str) -> Quantity | None:
    """`5m` beside 米, `12m^3` beside 立方米: the letter is the symbol of the unit that the other side carries."""
    match node:
        case Product((*factors, Symbol(name))) if factors:
            text = name
        case Product((*factors, Power(Symbol(name), Number(exponent)))) if factors:
            text = f"{name}^{exponent}"
        case _:
            return None
    letter, other = units.read(text), units.read(unit)
    if letter is None or other is None or letter.dimension != other.dimension:
        return None
    return Quantity(factors[0] if len(factors) == 1 else Product(tuple(factors)), text)


def _both_with_units(candidate: Quantity, reference: Quantity, comparer: Comparer) -> Comparison:
    found = comparer.compare(candidate.operand, reference.operand)
    if _same_words(candidate.unit, reference.unit):
        return found
    one, other = units.read(candidate.unit), units.read(reference.unit)
    if one is None or other is None:
        return _with_generic_unit(candidate.unit, reference.unit, found, comparer)
    if one.dimension != other.dimension:
        if not units.contradict(one, other):
            return undecided(Reason.KINDS_NOT_COMPARED)
        return unequal(Method.KIND, Certainty.PROBABLE)
    if one.size == other.size:
        return found
    scaled = Product((number(Fraction(one.size / other.size)), candidate.operand))
    return flagged(comparer.compare(scaled, reference.operand), UNIT_CONVERTED)


def _with_generic_unit(unit: str, asked: str, found: Comparison, comparer: Comparer) -> Comparison:
    """`5 square units` is 5 cm^2 and no 5 cm; `5 units` may be either. Words that are no units are not compared."""
    powers = units.generic_power(unit), units.generic_power(asked)
    if powers == (None, None) or (None in powers and units.power_of_length(unit, asked) is None):
        return undecided(Reason.KINDS_NOT_COMPARED)
    if powers[0] is not None and powers[1] is None and comparer.options.units == "required":
        return unequal(Method.KIND, Certainty.PROBABLE, reason=Reason.UNIT_MISSING)
    power, other = (units.power_of_length(unit, asked) if one is None else one for one in powers)
    if power is not None and other is not None and power != other and units.ANY not in (power, other):
        return unequal(Method.KIND, Certainty.PROBABLE)
    return found


def _same_words(one: str, other: str) -> bool:
    """The same words, in singular or plural."""
    left, right = one.lower().rstrip("."), other.lower().rstrip(".")
    return left == right or left.rstrip("s") == right.rstrip("s")
