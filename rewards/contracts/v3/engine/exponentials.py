"""Logarithms, exponentials and powers with any exponent in normal forms."""

from __future__ import annotations

from flint import arb, fmpq

from veriward.rewards.contracts.v3.engine.angles import Angles
from veriward.rewards.contracts.v3.engine.polynomials import (
    Atom,
    Fraction,
    Monomial,
    NoValueError,
    OverBudgetError,
    Polynomial,
    ZeroDivisorError,
    content_of,
    height,
    shared_step,
)
from veriward.rewards.contracts.v3.engine.radicals import prime_factors

_MAX_MULTIPLE = 64
"""Multiple of an inverse angle whose sine is taken apart: `sin(64 arctan x)`."""


class Exponentials(Angles):
    """Sums for logarithms of products, products for exponentials of sums."""

    def logarithm(self, value: Fraction, place: int) -> Fraction:
        if value.top.is_zero():
            raise ZeroDivisorError
        if self.real:
            content, parts, rest = self.factors(value)
            if content < 0 and not parts and rest is None:
                raise NoValueError
            self.learn_sign(content, parts, rest)
            return self.log_modulus(content, parts, rest)
        constant = value.top.leading_coefficient() if value.bottom.is_one() and value.top.is_constant() else None
        ball = arb(constant) if constant is not None else self.ball(place)
        if type(ball) is arb and (ball > 0 or ball < 0):
            result = self.log_modulus(*self.factors(value))
            return result if ball > 0 else self.total([result, self.product(self.imaginary(), self.pi())])
        content = abs(content_of(value.top)) / abs(content_of(value.bottom))
        inner = self.scaled(value, 1 / content)
        index, new = self.index("complex ln", self.spell(inner), real=False)
        if new:
            self.atoms[index].data = inner
        return self.total([self.log_modulus(content, [], None), self.fraction(self.generators[index])])

    def log_modulus(self, content: fmpq, parts: list[tuple[Polynomial, int]], rest: Polynomial | None) -> Fraction:
        """The logarithm of the modulus of a product, factor by factor."""
        result = self.rational(fmpq(0))
        for number, direction in ((abs(content.p), 1), (content.q, -1)):
            for prime, count, _ in prime_factors(number):
                place, new = self.index("ln", str(prime), real=True, positive=True)
                if new:
                    self.atoms[place].data = self.rational(fmpq(prime))
                    self.atoms[place].ball = arb(prime).log()
                atom = self.fraction(self.generators[place])
                result = self.total([result, self.scaled(atom, fmpq(direction * count))])
        for factor, count in parts:
            result = self.total([result, self.scaled(self.log_factor(factor), fmpq(count))])
        return result if rest is None else self.total([result, self.log_factor(rest)])

    def log_factor(self, factor: Polynomial) -> Fraction:
        """`ln |f|` of one factor."""
        single = self.single(factor)
        if single is not None:
            atom = self.atoms[single]
            if atom.kind in ("root", "prime", "number"):
                radicand, degree = atom.data
                return self.scaled(self.log_modulus(*self.factors(radicand)), fmpq(1, degree))
            if atom.kind == "exponential" and atom.real and atom.positive:
                return atom.data  # type: ignore[no-any-return]
            if atom.kind == "modulus":
                return self.log_factor(atom.data)
        value = self.fraction(factor)
        place, new = self.index("ln", self.spell(value), real=True)
        if new:
            self.atoms[place].data = value
        return self.fraction(self.generators[place])

    def raised(self, base: Fraction, exponent: Fraction, place: int) -> Fraction:
        """A power whose exponent is not written as a rational."""
        constant = self.constant(exponent)
        if constant is not None and constant.q == 1:
            return self.power(base, self.small(constant.p))
        if base.top.is_zero():
            return self.opaque(f"raise 0 {self.spell(exponent)}", real=self.real)
        if not self.real:
            return self.exponential(self.product(exponent, self.logarithm(base, place)))
        content, parts, rest = self.factors(base)
        log = self.log_modulus(content, [], None)
        if content < 0:
            log = self.total([log, self.formal_log(self.rational(fmpq(-1)))])
        for factor, count in parts:
            if count % 2 == 0 or self.sign(factor) > 0:
                part = self.log_factor(factor)
            else:
                part = self.formal_log(self.fraction(factor))
            log = self.total([log, self.scaled(part, fmpq(count))])
        if rest is not None:
            log = self.total([log, self.formal_log(self.fraction(rest))])
        return self.exponential(self.product(exponent, log))

    def formal_log(self, value: Fraction) -> Fraction:
        place, new = self.index("formal ln", self.spell(value), real=False)
        if new:
            self.atoms[place].data = value
        return self.fraction(self.generators[place])

    def exponential(self, exponent: Fraction) -> Fraction:
        """`e^u`, term by term of the exponent."""
        result = self.rational(fmpq(1))
        if len(exponent.top) > self.size:
            raise OverBudgetError("terms of an exponent")
        for monomial, coefficient in list(exponent.top.terms()):
            result = self.product(result, self.exponential_term(monomial, coefficient, exponent.bottom))
        return result

    def exponential_term(self, monomial: Monomial, coefficient: fmpq, bottom: Polynomial) -> Fraction:
        names = [place for place, count in enumerate(monomial) if count]
        if bottom.is_one() and names:
            special = self.special_exponential(monomial, names, coefficient)
            if special is not None:
                return special
        single = Fraction(self.context.from_dict({monomial: 1}), bottom, height(bottom))
        key = self.spell(single)
        step = self.known.steps.get(key)
        if step is None or (coefficient / step).q != 1:
            first, step = step is None, coefficient if step is None else shared_step(step, coefficient)
            step = abs(step)
            if step.height_bits() > 256:
                raise OverBudgetError("bits")
            self.known.steps[key] = step
            if not first:
                self.known.changed = True
        real = all(self.atoms[place].real for place in names) and self.is_real(bottom)
        place, new = self.index("exponential", f"{step} {key}", real=real, positive=real)
        if new:
            self.atoms[place].data = self.scaled(single, step)
            if not names and bottom.is_one():
                self.atoms[place].ball = arb(step).exp()
        return self.power(self.fraction(self.generators[place]), self.small((coefficient / step).p))

    def special_exponential(self, monomial: Monomial, names: list[int], coefficient: fmpq) -> Fraction | None:
        """Terms whose exponential is simpler: logarithms, and `i` times an angle that has a name."""
        if len(names) == 1 and monomial[names[0]] == 1:
            atom = self.atoms[names[0]]
            if atom.kind in ("ln", "formal ln", "complex ln"):
                return self.power_of_log(atom, coefficient)
        angle = self.without_imaginary(monomial)
        if angle is None:
            return None
        names = [place for place, count in enumerate(angle) if count]
        if len(names) != 1 or angle[names[0]] != 1:
            return None
        atom = self.atoms[names[0]]
        if atom.kind == "pi":
            return self.turn(coefficient)
        if atom.kind in ("asin", "atan") and coefficient.q == 1 and abs(coefficient) <= _MAX_MULTIPLE:
            return self.power(self.turn_of_inverse(atom), int(coefficient.p))
        return None

    def power_of_log(self, atom: Atom, coefficient: fmpq) -> Fraction | None:
        """`e^(c ln u)`."""
        base: Fraction = atom.data
        if atom.kind == "ln":
            base = self.absolute_of_factor(base)
        whole, rest = divmod(coefficient.p, coefficient.q)
        result = self.power(base, self.small(whole))
        if not rest:
            return result
        if atom.kind == "complex ln" or coefficient.q > self.limits.max_root_degree:
            return None
        content, parts, others = self.factors(base)
        if atom.kind == "formal ln" and coefficient.q % 2 == 0:
            return None
        degree = int(coefficient.q)
        root = self.real_root(base, degree) if degree % 2 == 0 else self.odd_root(content, parts, others, degree)
        return self.product(result, self.power(root, int(rest)))
