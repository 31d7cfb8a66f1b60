"""Exact normal forms: every part of a program as a fraction of polynomials over Q in independent-looking atoms.

Atoms are letters, pi, e, i, roots, logarithms, exponentials, moduli and whatever else cannot be taken apart. Those that
are algebraic over earlier ones carry a relation (`r^n = radicand`, `i^2 = -1`, `|f|^2 = f^2`), by which every
polynomial is reduced as soon as it is made. Sines and cosines are exponentials of `i` times the angle, so that one
rule, `e^u e^v = e^(u+v)`, holds all their identities.

Each rewriting holds wherever all parts of both sides have a value, which is all that equality asks for:

- A real program has real parts. So the radicand of a written even root and the argument of a written logarithm are not
  negative, and that is used as a fact: `sqrt(x^2)` is `|x|`, but beside a `sqrt(x)` or `ln x` it is `x`.
- `sqrt(P/Q)` is `sqrt(PQ)/|Q|`, with the modulus: `P/Q >= 0` leaves the sign of Q open.
- Factors leave a root alone only if they are provably not negative (or the degree is odd); the others stay together.
- `b^u` with a base of unknown sign is a formal exponential over a formal logarithm of the base. Only odd powers of a
  factor share the factor's formal logarithm: `(x^2)^n` is `|x|^(2n)`.
- In a complex program none of this is used of values that are not proved real.

A difference that reduces to zero is zero: proved. One that does not is different from zero only if the atoms are known
to be independent: letters, prime radicals, i and at most one of pi and e.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import flint
from flint import arb, fmpq, fmpz

from veriward.rewards.contracts.v3.comparison import Finding
from veriward.rewards.contracts.v3.engine import balls
from veriward.rewards.contracts.v3.engine import program as p
from veriward.rewards.contracts.v3.engine.exponentials import Exponentials
from veriward.rewards.contracts.v3.engine.polynomials import (
    AgainError,
    Fraction,
    Known,
    NoValueError,
    OverBudgetError,
    ZeroDivisorError,
)
from veriward.rewards.contracts.v3.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What the normal forms of both sides say."""

    finding: Finding
    skipped: bool = False
    """Not run, or not to the end, for its cost."""
    note: str = ""
    work: int = 0
    """Word operations that were counted."""
    regions: bool = True
    """A modulus, or a root that may hide one, is left: what agrees in one region may differ in the next."""


def decide(program: p.Program, limits: Limits) -> Form:
    """Equal, unequal or undefined by normal forms; undecided where they do not tell."""
    known = Known()
    previous = flint.ctx.prec
    flint.ctx.prec = _SIGN_PRECISION
    try:
        for _ in range(_MAX_ROUNDS):
            known.changed = False
            forms = _Forms(program, limits, known)
            try:
                finding = forms.run()
            except AgainError:
                continue
            except NoValueError:
                return Form(finding=Finding.UNDECIDED, note="a part is not real", work=known.work)
            except OverBudgetError as error:
                if known.changed:
                    continue
                return Form(finding=Finding.UNDECIDED, skipped=True, note=f"given up: {error}", work=known.work)
            if finding is not None:
                return Form(finding=finding, note=_NOTES[finding], work=known.work)
            if not known.changed:
                break
    finally:
        flint.ctx.prec = previous
    note = "different, but the atoms may depend on one another"
    return Form(finding=Finding.UNDECIDED, note=note, work=known.work, regions=forms.regions)


_SIGN_PRECISION = 128
_MAX_ROUNDS = 4
"""What one round learns of signs, common angles and root degrees serves the next."""
_NOTES = {
    Finding.EQUAL: "the difference reduces to zero",
    Finding.UNEQUAL: "different, over independent atoms",
    Finding.LEFT_UNDEFINED: "a divisor reduces to zero",
    Finding.RIGHT_UNDEFINED: "a divisor reduces to zero",
}
_SMALL_BITS = 16
"""Bits of the coefficients in a sum of logarithms or angles that is looked at through its exponential."""
_MAX_SHIFT = 16
"""Steps by which one factorial is brought to another."""


class _Forms(Exponentials):
    """One round over the instructions of a program."""

    def run(self) -> Finding | None:
        program = self.program
        for place, instruction in enumerate(program.code):
            self.place = place
            try:
                self.values.append(self.step(instruction))
            except ZeroDivisorError:
                return Finding.LEFT_UNDEFINED if place in program.left_parts else Finding.RIGHT_UNDEFINED
        if program.left is None or program.right is None:
            return None
        left, right = self.values[program.left], self.values[program.right]
        if program.left == program.right:
            return Finding.EQUAL
        difference, independent = self.difference(left, right), self.independent
        if difference.top.is_zero() or self.vanishes(difference):
            return Finding.EQUAL
        # A round that learnt something may hold two atoms where one would do: 2^(1/2) and 2^(1/6).
        return Finding.UNEQUAL if independent and not self.known.changed else None

    def vanishes(self, difference: Fraction) -> bool:
        """Whether a sum of logarithms, or of constant angles, is zero because its exponential is 1.

        The exponential is one to one on the reals; on angles it is so within a turn, and balls see to that.
        """
        kinds, scale = set(), 1
        if not difference.bottom.is_one() or len(difference.top) > self.size:
            return False
        for monomial, coefficient in difference.top.terms():
            places = [place for place, count in enumerate(monomial) if count]
            if len(places) != 1 or monomial[places[0]] != 1 or coefficient.height_bits() > _SMALL_BITS:
                return False
            kinds.add(self.atoms[places[0]].kind)
            scale = lcm(scale, int(coefficient.q))
        exponent = self.scaled(difference, fmpq(scale))
        if kinds == {"ln"}:
            ends = (self.program.left or 0, self.program.right or 0)
            if not all(self.real_value(end) for end in ends):
                return False
        elif kinds <= {"asin", "atan", "pi"}:
            left, right = self.ball(self.program.left or 0), self.ball(self.program.right or 0)
            if type(left) is not arb or type(right) is not arb or not abs(left - right) * scale < 1:
                return False
            exponent = self.product(self.imaginary(), exponent)
        else:
            return False
        try:
            return bool(self.difference(self.exponential(exponent), self.rational(fmpq(1))).top.is_zero())
        except ZeroDivisorError:
            return False

    def step(self, instruction: p.Instruction) -> Fraction:
        kind = instruction[0]
        if kind == p.RATIONAL:
            return self.rational(instruction[1])
        if kind == p.SYMBOL:
            return self.atom("letter", instruction[1], real=True)
        if kind == p.ADD:
            return self.total([self.values[place] for place in instruction[1]])
        if kind == p.MULTIPLY:
            result: Fraction = self.values[instruction[1][0]]
            for place in instruction[1][1:]:
                result = self.product(result, self.values[place])
            return result
        if kind == p.POWER:
            return self.power(self.values[instruction[1]], instruction[2])
        if kind == p.ROOT:
            return self.root(self.values[instruction[1]], instruction[2], instruction[1])
        if kind == p.PI:
            return self.pi()
        if kind == p.EULER:
            return self.exponential(self.rational(fmpq(1)))
        if kind == p.IMAGINARY:
            return self.imaginary()
        if kind == p.EXPONENTIAL:
            return self.exponential(self.values[instruction[1]])
        if kind == p.RAISE:
            return self.raised(self.values[instruction[1]], self.values[instruction[2]], instruction[1])
        if kind == p.FUNCTION:
            return self.function(instruction[1], instruction[2])
        if kind == p.OPAQUE:
            arguments = ", ".join(self.spell(self.values[place]) for place in instruction[2])
            return self.opaque(f"{instruction[1]}({arguments})", real=self.real)
        raise OverBudgetError("an infinity")

    # ------------------------------------------------------------------------------------------- functions

    def function(self, name: str, places: tuple[int, ...]) -> Fraction:
        values = [self.values[place] for place in places]
        if name in ("sin", "cos"):
            turn = self.exponential(self.product(self.imaginary(), values[0]))
            back = self.inverse(turn)
            if name == "cos":
                return self.scaled(self.total([turn, back]), fmpq(1, 2))
            return self.scaled(self.quotient(self.difference(turn, back), self.imaginary()), fmpq(1, 2))
        if name == "ln":
            return self.logarithm(values[0], places[0])
        if name == "abs":
            return self.absolute(values[0], places[0])
        if name == "acos":
            quarter = self.scaled(self.pi(), fmpq(1, 2))
            return self.difference(quarter, self.inverse_angle("asin", values[0], places[0]))
        if name in ("asin", "atan"):
            return self.inverse_angle(name, values[0], places[0])
        if name == "floor":
            return self.floor(values[0], places[0])
        if name == "factorial":
            return self.factorial(values[0])
        if name == "binomial":
            top, lower, upper = values[0], values[1], self.difference(values[0], values[1])
            above = self.constant(upper)
            if above is not None and above.q == 1 and above < 0:
                return self.rational(fmpq(0))
            if any(constant is not None and constant < 0 for constant in map(self.constant, values)):
                return self.opaque(f"binomial({self.spell(top)}, {self.spell(lower)})", real=self.real)
            below = self.product(self.factorial(lower), self.factorial(upper))
            return self.quotient(self.factorial(top), below)
        if name == "sgn":
            ball = self.ball(places[0])
            if type(ball) is arb and (ball > 0 or ball < 0):
                return self.rational(fmpq(1 if ball > 0 else -1))
        if name in ("re", "im", "conjugate"):
            parts = self.parts(values[0])
            if parts is not None:
                real, imaginary = parts
                if name == "conjugate":
                    return self.difference(real, self.product(self.imaginary(), imaginary))
                return real if name == "re" else imaginary
        arguments = ", ".join(self.spell(value) for value in values)
        return self.opaque(f"{name}({arguments})", real=name != "conjugate")

    def floor(self, value: Fraction, place: int) -> Fraction:
        constant = self.constant(value)
        if constant is not None:
            return self.rational(fmpq(constant.floor()))
        ball = self.ball(place)
        if type(ball) is arb:
            known = balls.whole(ball.floor())
            if known is not None:
                return self.rational(fmpq(known))
        whole, rest = self.shift(value)
        index = self.opaque(f"floor {self.spell(rest)}", real=True)
        return self.total([index, self.rational(fmpq(whole))])

    def shift(self, value: Fraction) -> tuple[fmpz, Fraction]:
        """The integer part of the constant term, and the value without it."""
        if not value.bottom.is_one():
            return fmpz(0), value
        whole = value.top[(0,) * self.size].floor()
        return whole, self.difference(value, self.rational(fmpq(whole)))

    def factorial(self, value: Fraction) -> Fraction:
        """`(w + k)! = w! (w + 1) ... (w + k)`, for one w to all integers k near it."""
        constant = self.constant(value)
        if constant is not None:
            if constant.q == 1 and constant < 0:
                raise ZeroDivisorError
            if constant.q == 1 and constant.p <= 1_000:
                return self.rational(fmpq(p.factorial(int(constant.p))))
            return self.opaque(f"factorial {constant}", real=True)
        whole, rest = self.shift(value)
        if abs(whole) > _MAX_SHIFT:
            return self.opaque(f"factorial {self.spell(value)}", real=self.real)
        count, result = int(whole), self.opaque(f"factorial {self.spell(rest)}", real=self.real)
        for step in range(1, count + 1):
            result = self.product(result, self.total([rest, self.rational(fmpq(step))]))
        for step in range(0, count, -1):
            result = self.quotient(result, self.total([rest, self.rational(fmpq(step))]))
        return result
