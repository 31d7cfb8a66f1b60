"""Angles in normal forms: turns by multiples of pi, and the angles whose sine or tangent is known."""

from __future__ import annotations

from math import lcm

from flint import arb, fmpq

from veriward.rewards.contracts.v3.engine.polynomials import AgainError, Atom, Fraction, Monomial
from veriward.rewards.contracts.v3.engine.radicals import Radicals

_MAX_ORDER = 240
"""Order of a root of unity that is reduced by its cyclotomic polynomial."""


class Angles(Radicals):
    """`e^(i u)` of angles that have a name, and inverse sines and tangents."""

    def turn(self, half_turns: fmpq) -> Fraction:
        """`e^(i pi c)`: by radicals for multiples of pi/12, else a root of unity."""
        half_turns -= 2 * fmpq((half_turns / 2).floor())
        twelfths = half_turns * 12
        if twelfths.q == 1:
            cosine, sine = self.twelfth(int(twelfths.p) + 6), self.twelfth(int(twelfths.p))
            return self.total([cosine, self.product(self.imaginary(), sine)])
        order = lcm(2 * self.small(half_turns.q), 4)
        if self.known.order % order:
            wanted = lcm(order, self.known.order)
            if wanted <= _MAX_ORDER:
                self.known.order = wanted
                raise AgainError
            return self.opaque(f"turn {half_turns}", real=False)
        return self.unity(int((half_turns * self.known.order / 2).p))

    def twelfth(self, count: int) -> Fraction:
        """`sin(pi count/12)`."""
        count %= 24
        if count > 12:
            return self.negative(self.twelfth(count - 12))
        count = min(count, 12 - count)
        if count in (0, 2, 6):
            return self.rational(fmpq(0) if count == 0 else fmpq(1, 2) if count == 2 else fmpq(1))
        if count in (3, 4):
            return self.scaled(self.rational_root(fmpq(count - 1), 2), fmpq(1, 2))
        six, two = self.rational_root(fmpq(6), 2), self.rational_root(fmpq(2), 2)
        return self.scaled(self.total([six, two if count == 5 else self.negative(two)]), fmpq(1, 4))

    def turn_of_inverse(self, atom: Atom) -> Fraction:
        """`e^(i arcsin u) = sqrt(1 - u^2) + i u`, `e^(i arctan u) = (1 + i u)/sqrt(1 + u^2)`, of a real u."""
        argument: Fraction = atom.data
        square = self.product(argument, argument)
        one = self.rational(fmpq(1))
        if atom.kind == "asin":
            cosine = self.known_root(self.difference(one, square))
            return self.total([cosine, self.product(self.imaginary(), argument)])
        length = self.known_root(self.total([one, square]))
        return self.quotient(self.total([one, self.product(self.imaginary(), argument)]), length)

    def without_imaginary(self, monomial: Monomial) -> Monomial | None:
        """The monomial divided by `i`, if it has that factor."""
        if self.known.order > 1:
            place, count = self.places.get(f"unity {self.known.order}"), self.known.order // 4
        else:
            place, count = self.places.get("i "), 1
        if place is None or monomial[place] != count:
            return None
        return (*monomial[:place], 0, *monomial[place + 1 :])

    def inverse_angle(self, name: str, value: Fraction, place: int) -> Fraction:
        if value.top.is_zero():
            return value
        if value.top.leading_coefficient() < 0:
            return self.negative(self.inverse_angle_of(name, self.negative(value), place, -1))
        return self.inverse_angle_of(name, value, place, 1)

    def inverse_angle_of(self, name: str, value: Fraction, place: int, sign: int) -> Fraction:
        """An angle below pi/2 whose sine or tangent is known by radicals, else an atom."""
        ball = self.ball(place)
        if type(ball) is arb:
            ball *= sign
        elif value.bottom.is_one():
            ball = self.polynomial_ball(value.top)
        real = self.real
        if type(ball) is arb:
            real = real or name == "atan" or bool(abs(ball) <= 1)
            angle = ball.asin() if name == "asin" else ball.atan()
            twelfths = (angle * 12 / arb.pi() + arb(0.5)).floor().unique_fmpz()
            if angle.is_finite() and twelfths is not None and abs(twelfths) <= 6:
                count = int(twelfths)
                sine = self.twelfth(count)
                if name == "asin" or abs(count) == 6:
                    same = name == "asin" and self.difference(sine, value).top.is_zero()
                else:
                    same = self.difference(self.quotient(sine, self.twelfth(count + 6)), value).top.is_zero()
                if same:
                    return self.scaled(self.pi(), fmpq(count, 12))
        index, new = self.index(name if real else f"complex {name}", self.spell(value), real=real)
        if new:
            self.atoms[index].data = value
        return self.fraction(self.generators[index])
