"""Atoms of the normal forms: what is taken for an unknown, what is known of its sign, and polynomials as products."""

from __future__ import annotations

from flint import arb, fmpq, fmpz_poly

from veriward.rewards.contracts.v3.engine import balls
from veriward.rewards.contracts.v3.engine.polynomials import (
    FACTOR_BITS,
    Atom,
    Fraction,
    Fractions,
    OverBudgetError,
    Polynomial,
    content_of,
    height,
)

_FACTOR_TERMS, _FACTOR_DEGREE, _FACTOR_LETTERS = 40, 24, 5
"""Polynomials that are factored: beyond, one stays a single factor. FLINT's time is below 2 ms there."""
_EULER = "exponential 1 1"


class Atoms(Fractions):
    """Atoms by their keys, which do not depend on the order in which a round meets them."""

    def atom(self, kind: str, key: str, *, real: bool, positive: bool = False) -> Fraction:
        """The fraction that is one atom, made if it is new."""
        return self.fraction(self.generators[self.index(kind, key, real=real, positive=positive)[0]])

    def index(self, kind: str, key: str, *, real: bool, positive: bool = False) -> tuple[int, bool]:
        """An atom's place and whether it is new; only letters and prime radicals are known to be independent."""
        name = f"{kind} {key}"
        place = self.places.get(name)
        if place is not None:
            return place, False
        place = len(self.atoms)
        if place >= self.size:
            raise OverBudgetError("atoms")
        self.places[name] = place
        self.atoms.append(Atom(kind, name, real, positive))
        if kind not in ("letter", "pi", "i", "prime", "unity") and name != _EULER:
            self.independent = False
        kinds = {atom.kind for atom in self.atoms}
        if ("pi" in kinds and _EULER in self.places) or ("unity" in kinds and ("prime" in kinds or "i" in kinds)):
            self.independent = False
        return place, True

    def relate(self, place: int, degree: int, relation: Fraction) -> None:
        atom = self.atoms[place]
        atom.degree, atom.relation = degree, relation
        self.related.append(place)

    def opaque(self, key: str, *, real: bool, positive: bool = False) -> Fraction:
        return self.atom("opaque", key, real=real, positive=positive)

    def pi(self) -> Fraction:
        place, new = self.index("pi", "", real=True, positive=True)
        if new:
            self.atoms[place].ball = arb.pi()
        return self.fraction(self.generators[place])

    def imaginary(self) -> Fraction:
        if self.known.order > 1:
            return self.unity(self.known.order // 4)
        place, new = self.index("i", "", real=False)
        if new:
            self.relate(place, 2, self.rational(fmpq(-1)))
        return self.fraction(self.generators[place])

    def unity(self, count: int) -> Fraction:
        """A power of the root of unity whose order was learnt before."""
        order = self.known.order
        place, new = self.index("unity", str(order), real=False)
        if new:
            modulus = fmpz_poly.cyclotomic(order)
            power, reductions = fmpz_poly([1]), []
            for _ in range(order):
                reductions.append(
                    sum(
                        (self.generators[place] ** degree * int(c) for degree, c in enumerate(power.coeffs()) if c),
                        start=self.zero,
                    )
                )
                power = power * fmpz_poly([0, 1]) % modulus
            self.atoms[place].degree = modulus.degree()
            self.atoms[place].reductions = reductions
            self.related.append(place)
        reductions = self.atoms[place].reductions or []
        return self.fraction(reductions[count % order])

    def spell(self, value: Fraction) -> str:
        """A key for a value that does not depend on the order in which atoms were met in this round."""
        top, bottom = self.spell_polynomial(value.top), self.spell_polynomial(value.bottom)
        return top if bottom == "1" else f"({top})/({bottom})"

    def spell_polynomial(self, polynomial: Polynomial) -> str:
        self.spend(4 * len(polynomial))
        parts = []
        for monomial, coefficient in polynomial.terms():
            names = [f"[{self.atoms[place].key}]^{count}" for place, count in enumerate(monomial) if count]
            parts.append("*".join((str(coefficient), *sorted(names))))
        return "+".join(sorted(parts)) or "0"

    def single(self, polynomial: Polynomial) -> int | None:
        """The place of the atom that a polynomial is."""
        if len(polynomial) != 1 or polynomial.total_degree() != 1 or polynomial.leading_coefficient() != 1:
            return None
        return int(polynomial.degrees().index(1))

    # -------------------------------------------------------------------------------- signs and factors

    def is_real(self, polynomial: Polynomial) -> bool:
        return all(self.atoms[place].real for place, degree in enumerate(polynomial.degrees()) if degree)

    def ball(self, place: int) -> balls.Ball | None:
        """The value of a constant instruction, in a program of constants."""
        if self.program.symbols:
            return None
        if self.constants is None:
            self.constants = balls.evaluate(self.program, {}, 256, partial=True)
        return None if self.constants is None else self.constants[place]

    def real_value(self, place: int) -> bool:
        """Whether an instruction's value is real: in a real program each is."""
        return self.real or type(self.ball(place)) is arb

    def sign(self, polynomial: Polynomial) -> int:
        """1 for provably not negative, -1 for not positive, 0 for unknown."""
        if polynomial.is_constant():
            return 1 if polynomial.leading_coefficient() > 0 else -1
        if not self.is_real(polynomial):
            return 0
        known = self.known.signs.get(self.spell_polynomial(polynomial))
        if known is not None:
            return known
        evens = [atom.positive for atom in self.atoms]
        signs = set()
        for monomial, coefficient in polynomial.terms():
            if any(count % 2 and not evens[place] for place, count in enumerate(monomial)):
                signs.add(0)
                break
            signs.add(1 if coefficient > 0 else -1)
        if len(signs) == 1 and 0 not in signs:
            return signs.pop()
        return self.sign_by_ball(polynomial)

    def sign_by_ball(self, polynomial: Polynomial) -> int:
        total = self.polynomial_ball(polynomial)
        return 0 if total is None else 1 if total > 0 else -1 if total < 0 else 0

    def polynomial_ball(self, polynomial: Polynomial) -> arb | None:
        """The value of a polynomial in radicals, pi, e and logarithms of numbers."""
        used = [place for place, degree in enumerate(polynomial.degrees()) if degree]
        if any(self.atoms[place].ball is None for place in used) or len(polynomial) > _FACTOR_TERMS:
            return None
        total = arb(0)
        for monomial, coefficient in polynomial.terms():
            term = arb(coefficient)
            for place in used:
                if monomial[place]:
                    term *= self.atoms[place].ball ** monomial[place]
            total += term
        return total

    def factors(self, value: Fraction) -> tuple[fmpq, list[tuple[Polynomial, int]], Polynomial | None]:
        """The rational, the real irreducible factors with their exponents, and the rest, whose factors are not real.

        The value is the product of all three.
        """
        content, parts = fmpq(1), []
        rest: Polynomial | None = None
        for polynomial, direction in ((value.top, 1), (value.bottom, -1)):
            if polynomial.is_one():
                continue
            constant, found = self.factored(polynomial)
            content *= constant**direction
            for factor, count in found:
                if self.is_real(factor):
                    parts.append((factor, direction * int(count)))
                elif direction == 1:
                    part = self.raw_power(factor, int(count), int(count) * (height(factor) + 8))
                    rest = part if rest is None else self.times(rest, part, height(rest) + height(part) + 8)
                else:
                    raise OverBudgetError("a divisor that is not real")
        return content, parts, rest

    def factored(self, polynomial: Polynomial) -> tuple[fmpq, list[tuple[Polynomial, int]]]:
        degrees = polynomial.degrees()
        cheap = (
            len(polynomial) <= _FACTOR_TERMS
            and sum(degrees) <= _FACTOR_DEGREE
            and sum(1 for degree in degrees if degree) <= _FACTOR_LETTERS
            and height(polynomial) <= FACTOR_BITS
        )
        if cheap or len(polynomial) == 1:
            self.spend(2_000 if len(polynomial) > 1 else 50)
            constant, found = polynomial.factor()
            result = []
            for factor, count in found:
                leading = factor.leading_coefficient()
                content = content_of(factor) * (1 if leading > 0 else -1)
                constant *= content ** int(count)
                result.append((factor / content, int(count)))
            return constant, result
        content = content_of(polynomial) * (1 if polynomial.leading_coefficient() > 0 else -1)
        return content, [(polynomial / content, 1)]

    def learn_sign(self, content: fmpq, parts: list[tuple[Polynomial, int]], rest: Polynomial | None) -> None:
        """The product is not negative wherever both sides are defined: so is its only factor of unknown sign."""
        if rest is not None:
            return
        sign, unknown = (1 if content > 0 else -1), []
        for factor, count in parts:
            if count % 2:
                known = self.sign(factor)
                if known == 0:
                    unknown.append(factor)
                else:
                    sign *= known
        if len(unknown) == 1:
            self.known.signs[self.spell_polynomial(unknown[0])] = sign
            self.known.changed = True
