"""Roots and moduli in normal forms: what leaves a root alone, and what stays under it together."""

from __future__ import annotations

from math import gcd, lcm

from flint import arb, fmpq, fmpz

from veriward.rewards.contracts.v3.engine.atoms import Atoms
from veriward.rewards.contracts.v3.engine.polynomials import (
    Fraction,
    Monomial,
    NoValueError,
    OverBudgetError,
    Polynomial,
    content_of,
)

_SIMPLE_DEGREE = 2
"""Degree of a factor under an even root whose regions the points are trusted to meet."""


class Radicals(Atoms):
    """Roots of numbers, of real values and of what may be complex; moduli, which even roots of squares are."""

    def root(self, value: Fraction, degree: int, place: int) -> Fraction:
        """The root of an instruction's value."""
        if value.top.is_zero():
            return value
        if degree > self.limits.max_root_degree:
            return self.free_root(value, degree, real=self.real_value(place))
        if value.bottom.is_one() and value.top.is_constant():
            return self.rational_root(value.top.leading_coefficient(), degree)
        if not self.real_value(place):
            return self.complex_root(value, degree)
        if not self.real:
            ball = self.ball(place)
            if ball is None or not (ball > 0 or ball < 0):
                return self.complex_root(value, degree)
            if ball < 0:
                if degree % 2 == 0:
                    if degree > 2:
                        return self.complex_root(value, degree)
                    return self.product(self.imaginary(), self.real_root(self.negative(value), degree))
                return self.negative(self.real_root(self.negative(value), degree))
        return self.real_root(value, degree)

    def free_root(self, value: Fraction, degree: int, *, real: bool) -> Fraction:
        """A root of a degree beyond the limit, as an atom without its relation."""
        return self.opaque(f"root {degree} {self.spell(value)}", real=real, positive=real and degree % 2 == 0)

    def rational_root(self, value: fmpq, degree: int) -> Fraction:
        if value < 0:
            positive = self.rational_root(-value, degree)
            if degree % 2:
                return self.negative(positive)
            if self.real:
                raise NoValueError
            if degree == 2:
                return self.product(self.imaginary(), positive)
            return self.complex_root(self.rational(value), degree)
        result = self.rational(fmpq(1))
        for number, direction in ((value.p, 1), (value.q, -1)):
            for prime, count, sure in prime_factors(number):
                result = self.product(result, self.radical_power(prime, sure, direction * count, degree))
        return result

    def radical_power(self, prime: fmpz, sure: bool, count: int, degree: int) -> Fraction:
        """`prime^(count/degree)`."""
        whole, rest = divmod(count, degree)
        if abs(whole) * prime.bit_length() > self.limits.max_bits:
            raise OverBudgetError("bits")
        result = self.rational(fmpq(prime) ** whole)
        if rest:
            radical = self.radical(self.rational(fmpq(prime)), str(prime), degree, "prime" if sure else "number")
            result = self.product(result, self.power(radical, rest))
        return result

    def radical(self, radicand: Fraction, key: str, degree: int, kind: str) -> Fraction:
        """The real root of a radicand whose root of this degree is real, as a power of the one atom it has."""
        common = self.known.degrees.get(key, 1)
        if common % degree:
            common = lcm(common, degree)
            if common > self.limits.max_root_degree:
                raise OverBudgetError("root degree")
            first = key not in self.known.degrees
            self.known.degrees[key] = common
            if not first:
                self.known.changed = True
        even = common % 2 == 0
        place, new = self.index(kind, f"{common} {key}", real=True, positive=even or kind in ("prime", "number"))
        if new:
            self.atoms[place].data = (radicand, common)
            if kind in ("prime", "number"):
                self.atoms[place].ball = arb(radicand.top.leading_coefficient()).root(common)
            self.relate(place, common, radicand)
        return self.fraction(self.generators[place] ** (common // degree))

    def complex_root(self, value: Fraction, degree: int) -> Fraction:
        """A principal root of what may be complex: nothing but a positive rational is taken out."""
        content = abs(content_of(value.top)) / abs(content_of(value.bottom))
        inner = self.scaled(value, 1 / content)
        place, new = self.index("complex root", f"{degree} {self.spell(inner)}", real=False)
        if new:
            self.relate(place, degree, inner)
        outer = self.rational_root(content, degree)
        return self.product(outer, self.fraction(self.generators[place]))

    def real_root(self, value: Fraction, degree: int) -> Fraction:
        """The root of a real value, which is not negative where the degree is even."""
        content, parts, rest = self.factors(value)
        if degree % 2:
            return self.odd_root(content, parts, rest, degree)
        self.learn_sign(content, parts, rest)
        self.regions = self.regions or rest is not None or not all(map(self.is_simple, parts))
        result = self.rational_root(abs(content), degree)
        inner = self.rational(fmpq(1 if content > 0 else -1))
        together: list[tuple[Polynomial, int]] = []
        for factor, count in parts:
            sign = self.sign(factor)
            if sign:
                result = self.product(result, self.radical_of(self.scaled_factor(factor, sign), count, degree))
                if sign < 0 and count % 2:
                    inner = self.negative(inner)
                continue
            whole, left_over = divmod(count, degree)
            if whole:
                quiet = left_over and self.is_simple((factor, count))
                result = self.product(result, self.power(self.modulus(factor, quiet=bool(quiet)), whole))
            if left_over:
                together.append((factor, left_over))
        if rest is None and inner.top.is_one():
            return self.product(result, self.joint_root(together, degree))
        for factor, count in together:
            inner = self.product(inner, self.power(self.fraction(factor), count))
        if rest is not None:
            inner = self.product(inner, self.fraction(rest))
        if inner.top.is_one() and inner.bottom.is_one():
            return result
        return self.product(result, self.radical(inner, self.spell(inner), degree, "root"))

    def is_simple(self, part: tuple[Polynomial, int]) -> bool:
        """Whether a factor's sign changes only where the points surely look."""
        factor = part[0]
        varying = [place for place, degree in enumerate(factor.degrees()) if degree and self.atoms[place].ball is None]
        degree = max((sum(int(monomial[place]) for place in varying) for monomial in factor.monoms()), default=0)
        return degree <= _SIMPLE_DEGREE or self.sign(factor) != 0

    def scaled_factor(self, factor: Polynomial, sign: int) -> Polynomial:
        return factor if sign > 0 else -factor

    def radical_of(self, factor: Polynomial, count: int, degree: int) -> Fraction:
        """`factor^(count/degree)` of a factor that is not negative, or of any where the degree is odd."""
        whole, rest = divmod(count, degree)
        result = self.power(self.fraction(factor), whole) if whole else self.rational(fmpq(1))
        if not rest:
            return result
        single = self.single(factor)
        if single is not None:
            atom = self.atoms[single]
            if atom.kind in ("root", "prime", "number"):
                radicand, inner_degree = atom.data
                if degree * inner_degree <= self.limits.max_root_degree:
                    key = atom.key.split(" ", 2)[2]
                    radical = self.radical(radicand, key, degree * inner_degree, atom.kind)
                    return self.product(result, self.power(radical, rest))
        value = self.fraction(factor)
        radical = self.radical(value, self.spell(value), degree, "root")
        return self.product(result, self.power(radical, rest))

    def joint_root(self, parts: list[tuple[Polynomial, int]], degree: int) -> Fraction:
        """The even root of a product of factors of unknown sign, which together are not negative."""
        if not parts:
            return self.rational(fmpq(1))
        shared = gcd(degree, *(count for _, count in parts))
        inner = self.rational(fmpq(1))
        for factor, count in parts:
            base = self.modulus(factor) if shared % 2 == 0 else self.fraction(factor)
            inner = self.product(inner, self.power(base, count // shared))
        smaller = degree // shared
        if smaller == 1:
            return inner
        return self.radical(inner, self.spell(inner), smaller, "root")

    def odd_root(
        self, content: fmpq, parts: list[tuple[Polynomial, int]], rest: Polynomial | None, degree: int
    ) -> Fraction:
        """The real odd root, which takes products apart whatever their signs."""
        result = self.rational_root(content, degree)
        for factor, count in parts:
            result = self.product(result, self.radical_of(factor, count, degree))
        if rest is not None:
            value = self.fraction(rest)
            result = self.product(result, self.radical(value, self.spell(value), degree, "root"))
        return result

    def known_root(self, value: Fraction) -> Fraction:
        constant = self.constant(value)
        if constant is not None:
            return self.rational_root(constant, 2) if constant else value
        return self.real_root(value, 2)

    # ---------------------------------------------------------------------------------------------- moduli

    def absolute(self, value: Fraction, place: int) -> Fraction:
        if value.top.is_zero():
            return value
        if not self.real_value(place) and not (self.is_real(value.top) and self.is_real(value.bottom)):
            both = self.parts(value)
            if both is not None:
                return self.known_root(self.total([self.product(part, part) for part in both]))
            return self.opaque(f"abs {self.spell(value)}", real=True, positive=True)
        if not self.real:
            ball = self.ball(place)
            if type(ball) is arb and (ball > 0 or ball < 0):
                return value if ball > 0 else self.negative(value)
        content, parts, rest = self.factors(value)
        result = self.rational(abs(content))
        for factor, count in parts:
            result = self.product(result, self.power(self.modulus(factor), count))
        return result if rest is None else self.product(result, self.modulus(rest))

    def modulus(self, factor: Polynomial, *, quiet: bool = False) -> Fraction:
        """`|f|` of a real polynomial: f itself, its negative, or an atom whose square is f^2.

        `quiet`: it makes no regions but those that a root beside it has.
        """
        sign = self.sign(factor)
        if sign:
            return self.fraction(self.scaled_factor(factor, sign))
        value = self.fraction(factor)
        place, new = self.index("modulus", self.spell(value), real=True, positive=True)
        self.regions = self.regions or not quiet
        if new:
            self.atoms[place].data = factor
            self.relate(place, 2, self.product(value, value))
        return self.fraction(self.generators[place])

    def absolute_of_factor(self, value: Fraction) -> Fraction:
        constant = self.constant(value)
        return value if constant is not None else self.modulus(value.top, quiet=self.is_simple((value.top, 1)))

    def parts(self, value: Fraction) -> tuple[Fraction, Fraction] | None:
        """The real and the imaginary part of a value whose atoms are real, but for `i`."""
        place = self.places.get("i ")
        if not self.is_real(value.bottom):
            return None
        groups: list[dict[Monomial, fmpq]] = [{}, {}]
        for monomial, coefficient in value.top.terms():
            if any(count and not self.atoms[index].real and index != place for index, count in enumerate(monomial)):
                return None
            count = int(monomial[place]) if place is not None else 0
            rest = tuple(0 if index == place else exponent for index, exponent in enumerate(monomial))
            groups[count][rest] = coefficient
        tops = [self.context.from_dict(group) for group in groups]
        return (
            self.cancelled(tops[0], value.bottom, value.bits),
            self.cancelled(tops[1], value.bottom, value.bits),
        )


_TRIAL_PRIMES = tuple(n for n in range(2, 1_000) if all(n % d for d in range(2, int(n**0.5) + 1)))
_FULL_FACTOR_BITS = 60
"""Numbers that are factored wholly; of a larger one only the small primes are taken out."""


def prime_factors(number: fmpz) -> list[tuple[fmpz, int, bool]]:
    """Primes with their exponents; what is left of a large number is one factor, marked as not sure to be prime."""
    if number.bit_length() <= _FULL_FACTOR_BITS:
        return [(prime, int(count), True) for prime, count in number.factor()]
    result: list[tuple[fmpz, int, bool]] = []
    for prime in _TRIAL_PRIMES:
        count = 0
        while number % prime == 0:
            number //= prime
            count += 1
        if count:
            result.append((fmpz(prime), count, True))
    if number.bit_length() <= _FULL_FACTOR_BITS:
        return result + [(prime, int(count), True) for prime, count in number.factor()]
    return [*result, (number, 1, False)]
