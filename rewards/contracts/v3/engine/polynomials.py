"""Fractions of polynomials over Q, each step bounded before it is made and reduced by the relations of the atoms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flint import Ordering, arb, fmpq, fmpq_mpoly_ctx, fmpz

from veriward.rewards.contracts.v3.engine import balls
from veriward.rewards.contracts.v3.engine import program as p
from veriward.rewards.contracts.v3.limits import Limits

Polynomial = Any
Monomial = tuple[int, ...]

_SPARE_ATOMS = 2
"""Generators for each atom allowed: helpers such as `i` and atoms that the end does not need."""
FACTOR_BITS = 1_024
"""Bits of coefficients up to which bounds are taken for sizes, and polynomials are factored."""
_GCD_WORK = 150_000
"""Estimated word operations of a greatest common divisor: beyond, a fraction stays unreduced."""
_SPARSE_DEGREE = 1 << 40
"""Exponent of a letter in a sparse polynomial: `x^9999999 - x^9999998`."""
_DENSE_DEGREE = 256
"""Total degree above which only common monomials are cancelled."""


class OverBudgetError(ArithmeticError):
    """The next step would cost more than is allowed."""


class ZeroDivisorError(ArithmeticError):
    """A divisor, or the argument of a logarithm, reduces to zero."""


class NoValueError(ArithmeticError):
    """A part of a real program reduces to a constant that is not real: the sides have no common domain."""


class AgainError(ArithmeticError):
    """A root of unity of a new order: the round begins again, with all of them powers of one."""


@dataclass(slots=True)
class Known:
    """What is learnt in one round and holds in all: keys are spellings over names, not places."""

    signs: dict[str, int] = field(default_factory=dict)
    """Irreducible polynomials whose sign is fixed wherever both sides are defined: 1 for >= 0, -1 for <= 0."""
    steps: dict[object, fmpq] = field(default_factory=dict)
    """For each exponent, the rational of which all its coefficients are multiples."""
    degrees: dict[str, int] = field(default_factory=dict)
    """For each radicand, the least common multiple of its roots' degrees."""
    order: int = 1
    """Least common multiple of the orders of the roots of unity, beyond those that radicals give."""
    changed: bool = False
    work: int = 0
    """Word operations of all rounds."""


@dataclass(slots=True)
class Atom:
    kind: str
    key: str
    """A spelling that is the same in every round."""
    real: bool
    positive: bool = False
    """Provably not negative."""
    degree: int = 0
    """Of its relation: `atom^degree = relation`; 0 without one."""
    relation: Fraction | None = None
    reductions: list[Polynomial] | None = None
    """For a root of unity: its powers up to the order, reduced."""
    data: Any = None
    """The argument, base or radicand it was made of."""
    ball: arb | None = None
    """Its value, if it is a constant that polynomials' signs are read from."""


class Fraction:
    """A quotient of polynomials; `bits` bounds the size of the coefficients of both."""

    __slots__ = ("bits", "bottom", "top")

    def __init__(self, top: Polynomial, bottom: Polynomial, bits: int) -> None:
        self.top = top
        self.bottom = bottom
        self.bits = bits


_CONTEXTS: dict[int, Any] = {}


def _context(size: int) -> Any:
    context = _CONTEXTS.get(size)
    if context is None:
        context = _CONTEXTS[size] = fmpq_mpoly_ctx.get(("a", size), Ordering.degrevlex)
    return context


def height(polynomial: Polynomial) -> int:
    return max((coefficient.height_bits() for coefficient in polynomial.coeffs()), default=1)


class Fractions:
    """The arithmetic of one round; whatever makes atoms builds on it."""

    def __init__(self, program: p.Program, limits: Limits, known: Known) -> None:
        self.program = program
        self.limits = limits
        self.known = known
        self.size = _SPARE_ATOMS * limits.max_atoms
        self.context = _context(self.size)
        self.generators = self.context.gens()
        self.atoms: list[Atom] = []
        self.places: dict[str, int] = {}
        self.related: list[int] = []
        self.independent = True
        self.one = self.context.constant(1)
        self.zero = self.context.constant(0)
        self.values: list[Fraction] = []
        self.constants: balls.Values | None = None
        self.place = 0
        self.real = not program.complex
        self.regions = False

    def spend(self, work: float) -> None:
        self.known.work += int(work)
        if self.known.work > self.limits.max_work:
            raise OverBudgetError("work")

    def rational(self, value: fmpq) -> Fraction:
        return Fraction(self.context.constant(value), self.one, value.height_bits())

    def fraction(self, polynomial: Polynomial) -> Fraction:
        return Fraction(polynomial, self.one, height(polynomial))

    def times(self, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
        """A product whose size is looked at before it is made; `bits` bounds its coefficients."""
        terms = len(a) * len(b)
        if terms > 64 * self.limits.max_terms or bits > self.limits.max_bits:
            raise OverBudgetError("terms" if bits <= self.limits.max_bits else "bits")
        self.spend(terms * (1 + bits / 64) ** 1.6)
        result = a * b
        if len(result) > self.limits.max_terms:
            raise OverBudgetError("terms")
        return result

    def product(self, a: Fraction, b: Fraction) -> Fraction:
        bits = a.bits + b.bits + min(len(a.top), len(b.top)).bit_length()
        top = self.times(a.top, b.top, bits)
        if a.bottom is self.one and b.bottom is self.one:
            return self.reduced(top, self.one, bits)
        return self.reduced(top, self.times(a.bottom, b.bottom, bits), bits)

    def total(self, parts: list[Fraction]) -> Fraction:
        result = parts[0]
        for part in parts[1:]:
            if result.bottom is part.bottom or result.bottom == part.bottom:
                bits = result.bits + part.bits + 1
                if bits > self.limits.max_bits:
                    raise OverBudgetError("bits")
                self.spend((len(result.top) + len(part.top)) * (1 + bits / 64))
                result = self.cancelled(result.top + part.top, result.bottom, bits)
            else:
                bits = 2 * (result.bits + part.bits) + 8
                top = self.times(result.top, part.bottom, bits) + self.times(part.top, result.bottom, bits)
                result = self.reduced(top, self.times(result.bottom, part.bottom, bits), bits)
            if len(result.top) > self.limits.max_terms:
                raise OverBudgetError("terms")
        return result

    def difference(self, a: Fraction, b: Fraction) -> Fraction:
        return self.total([a, Fraction(-b.top, b.bottom, b.bits)])

    def negative(self, a: Fraction) -> Fraction:
        return Fraction(-a.top, a.bottom, a.bits)

    def scaled(self, a: Fraction, factor: fmpq) -> Fraction:
        return self.product(a, self.rational(factor))

    def inverse(self, a: Fraction) -> Fraction:
        if a.top.is_zero():
            raise ZeroDivisorError
        return self.cancelled(a.bottom, a.top, a.bits)

    def quotient(self, a: Fraction, b: Fraction) -> Fraction:
        return self.product(a, self.inverse(b))

    def power(self, base: Fraction, exponent: int) -> Fraction:
        if exponent <= 0 and base.top.is_zero():
            raise ZeroDivisorError
        if exponent == 0:
            return self.rational(fmpq(1))
        if exponent < 0:
            base, exponent = self.inverse(base), -exponent
        if exponent == 1:
            return base
        if exponent > _SPARSE_DEGREE:
            raise OverBudgetError("exponent")
        if self.entangled(base):
            return self.stepwise(base, exponent)
        bits = exponent * (base.bits + max(len(base.top), len(base.bottom)).bit_length())
        top, bottom = self.raw_power(base.top, exponent, bits), self.raw_power(base.bottom, exponent, bits)
        return Fraction(top, bottom, bits if bits < FACTOR_BITS else max(height(top), height(bottom)))

    def raw_power(self, base: Polynomial, exponent: int, bits: int) -> Polynomial:
        """A power without relations: its terms and bits are bounded by counting before it is expanded."""
        if base.is_one():
            return self.one
        if len(base) == 1 and height(base) == 1:
            bits = 1
        elif bits > self.limits.max_bits:
            bits = exponent * (height(base) + len(base).bit_length())
            if bits > self.limits.max_bits:
                raise OverBudgetError("bits")
        terms = _multichoose(len(base), exponent, self.limits.max_terms)
        if terms > self.limits.max_terms:
            raise OverBudgetError("terms")
        if sum(base.degrees()) * exponent > _SPARSE_DEGREE:
            raise OverBudgetError("degree")
        self.spend(terms * len(base) * (1 + bits / 64) ** 1.6)
        return base**exponent

    def stepwise(self, base: Fraction, exponent: int) -> Fraction:
        """Square and reduce: expanding first would build what the relations take away again."""
        result = base
        for digit in bin(exponent)[3:]:
            result = self.product(result, result)
            if digit == "1":
                result = self.product(result, base)
        return result

    def entangled(self, value: Fraction) -> bool:
        if not self.related:
            return False
        top, bottom = value.top.degrees(), value.bottom.degrees()
        return any(top[place] or bottom[place] for place in self.related)

    def reduced(self, top: Polynomial, bottom: Polynomial, bits: int) -> Fraction:
        """The fraction of two polynomials with all relations applied and what is common taken out."""
        if self.related:
            top, top_under, top_bits = self.related_away(top, bits)
            if bottom is self.one:
                bottom, bits = top_under, top_bits
            else:
                bottom, bottom_under, bottom_bits = self.related_away(bottom, bits)
                bits = top_bits + bottom_bits
                if not (top_under is self.one and bottom_under is self.one):
                    top = self.times(top, bottom_under, bits)
                    bottom = self.times(bottom, top_under, bits)
        return self.cancelled(top, bottom, bits)

    def related_away(self, polynomial: Polynomial, bits: int) -> tuple[Polynomial, Polynomial, int]:
        """The polynomial reduced by every relation, latest atom first, over what the relations' divisors became."""
        under = self.one
        for place in reversed(self.related):
            atom = self.atoms[place]
            if polynomial.degrees()[place] < atom.degree:
                continue
            self.spend(8 * len(polynomial))
            if atom.reductions is not None:
                polynomial = self.cyclotomic(polynomial, place, atom)
                bits = height(polynomial)
                continue
            groups: dict[int, dict[Monomial, fmpq]] = {}
            for monomial, coefficient in polynomial.to_dict().items():
                count, rest = divmod(int(monomial[place]), atom.degree)
                groups.setdefault(count, {})[(*monomial[:place], rest, *monomial[place + 1 :])] = coefficient
            polynomial, divisor, bits = self.substituted(groups, atom.relation or self.rational(fmpq(0)), bits)
            if divisor is not self.one:
                under = self.times(under, divisor, bits)
        return polynomial, under, bits

    def substituted(
        self, groups: dict[int, dict[Monomial, fmpq]], relation: Fraction, bits: int
    ) -> tuple[Polynomial, Polynomial, int]:
        """The sum of each group times the relation to the group's power, over the relation's divisor's highest."""
        highest = max(groups)
        if relation.top.is_constant() and relation.bottom.is_one() and relation.bits == 1:
            sign = relation.top.leading_coefficient() if not relation.top.is_zero() else fmpq(0)
            result = self.zero
            for count, group in groups.items():
                result += self.context.from_dict(group) * sign**count
            return result, self.one, bits + len(groups).bit_length()
        tops = self.ladder(relation.top, set(groups), relation.bits)
        bottoms = self.ladder(relation.bottom, {0, *(highest - count for count in groups), highest}, relation.bits)
        bits += highest * (relation.bits + 4) + 8
        result = self.zero
        for count, group in groups.items():
            part = self.times(self.context.from_dict(group), tops[count], bits)
            result += part if bottoms[highest - count].is_one() else self.times(part, bottoms[highest - count], bits)
        if len(result) > self.limits.max_terms:
            raise OverBudgetError("terms")
        return result, bottoms[highest], height(result) if bits > FACTOR_BITS else bits

    def ladder(self, base: Polynomial, counts: set[int], bits: int) -> dict[int, Polynomial]:
        """The powers of a polynomial that are asked for."""
        if base.is_one():
            return dict.fromkeys(counts, self.one)
        powers = {0: self.one}
        if max(counts) > 64:
            if len(base) > 1:
                raise OverBudgetError("powers of a relation")
            for count in counts - {0}:
                powers[count] = self.raw_power(base, count, count * (bits + 1))
            return powers
        for count in range(1, max(counts) + 1):
            powers[count] = self.times(powers[count - 1], base, count * (bits + 4))
        return powers

    def cyclotomic(self, polynomial: Polynomial, place: int, atom: Atom) -> Polynomial:
        reductions = atom.reductions or []
        order = len(reductions)
        groups: dict[int, dict[Monomial, fmpq]] = {}
        for monomial, coefficient in polynomial.to_dict().items():
            rest = int(monomial[place]) % order
            key = (*monomial[:place], 0, *monomial[place + 1 :])
            group = groups.setdefault(rest, {})
            group[key] = group.get(key, fmpq(0)) + coefficient
        result = self.zero
        for rest, group in groups.items():
            result += self.times(self.context.from_dict(group), reductions[rest], 1)
        return result

    def cancelled(self, top: Polynomial, bottom: Polynomial, bits: int) -> Fraction:
        """The fraction with a divisor that is 1, or has a leading 1 and nothing in common with the rest."""
        if bits > FACTOR_BITS:
            bits = max(height(top), height(bottom))
            if bits > self.limits.max_bits:
                raise OverBudgetError("bits")
        if bottom is self.one:
            return Fraction(top, bottom, bits)
        if bottom.is_zero():
            raise ZeroDivisorError
        if top.is_zero():
            return Fraction(top, self.one, 1)
        if not bottom.is_constant():
            common = self.common(top, bottom, bits)
            if common is not None and not common.is_constant():
                top, bottom = top / common, bottom / common
        leading = bottom.leading_coefficient()
        if leading != 1:
            self.spend((len(top) + len(bottom)) * (1 + bits / 64) ** 1.6)
            top, bottom = top / leading, bottom / leading
            bits = max(height(top), height(bottom))
        return Fraction(top, self.one if bottom.is_constant() else bottom, bits)

    def common(self, top: Polynomial, bottom: Polynomial, bits: int) -> Polynomial | None:
        """The greatest common divisor where it is cheap, the common monomial where it is not."""
        if len(bottom) == 1 or len(top) == 1:
            return top.term_content().gcd(bottom.term_content()) if len(top) * len(bottom) < 4096 else None
        upper, lower = top.degrees(), bottom.degrees()
        estimate = (len(top) + len(bottom)) * (2 + bits / 60)
        for high, low in zip(upper, lower, strict=True):
            estimate *= 1 + int(min(high, low))
            if high and low and max(high, low) > _DENSE_DEGREE:
                return None
        if estimate > _GCD_WORK:
            return None
        self.spend(estimate)
        return top.gcd(bottom)

    def constant(self, value: Fraction) -> fmpq | None:
        if not (value.bottom.is_one() and value.top.is_constant()):
            return None
        return fmpq(0) if value.top.is_zero() else value.top.leading_coefficient()

    def small(self, number: fmpz) -> int:
        if number.bit_length() > 40:
            raise OverBudgetError("exponent")
        return int(number)


def _multichoose(terms: int, power: int, cap: int) -> int:
    """How many terms a power may have, or anything above the cap."""
    if terms <= 1:
        return terms
    if terms == 2:
        return power + 1
    result = 1
    for step in range(1, min(power, terms - 1) + 1):
        result = result * (power + terms - step) // step
        if result > cap:
            return cap + 1
    return result


def shared_step(a: fmpq, b: fmpq) -> fmpq:
    """The greatest rational of which both are multiples."""
    return fmpq((a.p * b.q).gcd(b.p * a.q), a.q * b.q)


def content_of(polynomial: Polynomial) -> fmpq:
    """The positive rational that makes the coefficients coprime integers."""
    result = fmpq(0)
    for coefficient in polynomial.coeffs():
        result = abs(coefficient) if result == 0 else shared_step(result, abs(coefficient))
    return result
