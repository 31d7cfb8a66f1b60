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

from dataclasses import dataclass, field
from math import gcd, lcm
from typing import Any

import flint
from flint import Ordering, arb, fmpq, fmpq_mpoly_ctx, fmpz, fmpz_poly

from veriward.rewards.contracts.v3 import balls
from veriward.rewards.contracts.v3 import program as p
from veriward.rewards.contracts.v3.comparison import Finding
from veriward.rewards.contracts.v3.limits import Limits

Polynomial = Any
Monomial = tuple[int, ...]


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


class _OverBudgetError(ArithmeticError):
    """The next step would cost more than is allowed."""


class _ZeroDivisorError(ArithmeticError):
    """A divisor, or the argument of a logarithm, reduces to zero."""


class _NoValueError(ArithmeticError):
    """A part of a real program reduces to a constant that is not real: the sides have no common domain."""


def decide(program: p.Program, limits: Limits) -> Form:
    """Equal, unequal or undefined by normal forms; undecided where they do not tell."""
    known = _Known()
    previous = flint.ctx.prec
    flint.ctx.prec = _SIGN_PRECISION
    try:
        for _ in range(_MAX_ROUNDS):
            known.changed = False
            forms = _Forms(program, limits, known)
            try:
                finding = forms.run()
            except _AgainError:
                continue
            except _NoValueError:
                return Form(finding=Finding.UNDECIDED, note="a part is not real", work=known.work)
            except _OverBudgetError as error:
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
_SPARE_ATOMS = 2
"""Generators for each atom allowed: helpers such as `i` and atoms that the end does not need."""
_MAX_ORDER = 240
"""Order of a root of unity that is reduced by its cyclotomic polynomial."""
_FACTOR_TERMS, _FACTOR_DEGREE, _FACTOR_BITS, _FACTOR_LETTERS = 40, 24, 1_024, 5
"""Polynomials that are factored: beyond, one stays a single factor. FLINT's time is below 2 ms there."""
_GCD_WORK = 150_000
"""Estimated word operations of a greatest common divisor: beyond, a fraction stays unreduced."""
_SPARSE_DEGREE = 1 << 40
"""Exponent of a letter in a sparse polynomial: `x^9999999 - x^9999998`."""
_DENSE_DEGREE = 256
"""Total degree above which only common monomials are cancelled."""
_MAX_MULTIPLE = 64
"""Multiple of an inverse angle whose sine is taken apart: `sin(64 arctan x)`."""
_SIMPLE_DEGREE = 2
"""Degree of a factor under an even root whose regions the points are trusted to meet."""
_MAX_SHIFT = 16
"""Steps by which one factorial is brought to another."""
_SMALL_BITS = 16
"""Bits of the coefficients in a sum of logarithms or angles that is looked at through its exponential."""


@dataclass(slots=True)
class _Known:
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
class _Atom:
    kind: str
    key: str
    """A spelling that is the same in every round."""
    real: bool
    positive: bool = False
    """Provably not negative."""
    degree: int = 0
    """Of its relation: `atom^degree = relation`; 0 without one."""
    relation: _Fraction | None = None
    reductions: list[Polynomial] | None = None
    """For a root of unity: its powers up to the order, reduced."""
    data: Any = None
    """The argument, base or radicand it was made of."""
    ball: arb | None = None
    """Its value, if it is a constant that polynomials' signs are read from."""


class _Fraction:
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


def _height(polynomial: Polynomial) -> int:
    return max((coefficient.height_bits() for coefficient in polynomial.coeffs()), default=1)


class _Forms:
    def __init__(self, program: p.Program, limits: Limits, known: _Known) -> None:
        self.program = program
        self.limits = limits
        self.known = known
        self.size = _SPARE_ATOMS * limits.max_atoms
        self.context = _context(self.size)
        self.generators = self.context.gens()
        self.atoms: list[_Atom] = []
        self.places: dict[str, int] = {}
        self.related: list[int] = []
        self.independent = True
        self.one = self.context.constant(1)
        self.zero = self.context.constant(0)
        self.values: list[_Fraction] = []
        self.constants: balls.Values | None = None
        self.place = 0
        self.real = not program.complex
        self.regions = False

    # ---------------------------------------------------------------------------------------------- the run

    def run(self) -> Finding | None:
        program = self.program
        for place, instruction in enumerate(program.code):
            self.place = place
            try:
                self.values.append(self.step(instruction))
            except _ZeroDivisorError:
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

    def vanishes(self, difference: _Fraction) -> bool:
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
        except _ZeroDivisorError:
            return False

    def step(self, instruction: p.Instruction) -> _Fraction:
        kind = instruction[0]
        if kind == p.RATIONAL:
            return self.rational(instruction[1])
        if kind == p.SYMBOL:
            return self.atom("letter", instruction[1], real=True)
        if kind == p.ADD:
            return self.total([self.values[place] for place in instruction[1]])
        if kind == p.MULTIPLY:
            result: _Fraction = self.values[instruction[1][0]]
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
        raise _OverBudgetError("an infinity")

    # ------------------------------------------------------------------------------------------ arithmetic

    def spend(self, work: float) -> None:
        self.known.work += int(work)
        if self.known.work > self.limits.max_work:
            raise _OverBudgetError("work")

    def rational(self, value: fmpq) -> _Fraction:
        return _Fraction(self.context.constant(value), self.one, value.height_bits())

    def fraction(self, polynomial: Polynomial) -> _Fraction:
        return _Fraction(polynomial, self.one, _height(polynomial))

    def times(self, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
        """A product whose size is looked at before it is made; `bits` bounds its coefficients."""
        terms = len(a) * len(b)
        if terms > 64 * self.limits.max_terms or bits > self.limits.max_bits:
            raise _OverBudgetError("terms" if bits <= self.limits.max_bits else "bits")
        self.spend(terms * (1 + bits / 64) ** 1.6)
        result = a * b
        if len(result) > self.limits.max_terms:
            raise _OverBudgetError("terms")
        return result

    def product(self, a: _Fraction, b: _Fraction) -> _Fraction:
        bits = a.bits + b.bits + min(len(a.top), len(b.top)).bit_length()
        top = self.times(a.top, b.top, bits)
        if a.bottom is self.one and b.bottom is self.one:
            return self.reduced(top, self.one, bits)
        return self.reduced(top, self.times(a.bottom, b.bottom, bits), bits)

    def total(self, parts: list[_Fraction]) -> _Fraction:
        result = parts[0]
        for part in parts[1:]:
            if result.bottom is part.bottom or result.bottom == part.bottom:
                bits = result.bits + part.bits + 1
                if bits > self.limits.max_bits:
                    raise _OverBudgetError("bits")
                self.spend((len(result.top) + len(part.top)) * (1 + bits / 64))
                result = self.cancelled(result.top + part.top, result.bottom, bits)
            else:
                bits = 2 * (result.bits + part.bits) + 8
                top = self.times(result.top, part.bottom, bits) + self.times(part.top, result.bottom, bits)
                result = self.reduced(top, self.times(result.bottom, part.bottom, bits), bits)
            if len(result.top) > self.limits.max_terms:
                raise _OverBudgetError("terms")
        return result

    def difference(self, a: _Fraction, b: _Fraction) -> _Fraction:
        return self.total([a, _Fraction(-b.top, b.bottom, b.bits)])

    def negative(self, a: _Fraction) -> _Fraction:
        return _Fraction(-a.top, a.bottom, a.bits)

    def scaled(self, a: _Fraction, factor: fmpq) -> _Fraction:
        return self.product(a, self.rational(factor))

    def inverse(self, a: _Fraction) -> _Fraction:
        if a.top.is_zero():
            raise _ZeroDivisorError
        return self.cancelled(a.bottom, a.top, a.bits)

    def quotient(self, a: _Fraction, b: _Fraction) -> _Fraction:
        return self.product(a, self.inverse(b))

    def power(self, base: _Fraction, exponent: int) -> _Fraction:
        if exponent <= 0 and base.top.is_zero():
            raise _ZeroDivisorError
        if exponent == 0:
            return self.rational(fmpq(1))
        if exponent < 0:
            base, exponent = self.inverse(base), -exponent
        if exponent == 1:
            return base
        if exponent > _SPARSE_DEGREE:
            raise _OverBudgetError("exponent")
        if self.entangled(base):
            return self.stepwise(base, exponent)
        bits = exponent * (base.bits + max(len(base.top), len(base.bottom)).bit_length())
        top, bottom = self.raw_power(base.top, exponent, bits), self.raw_power(base.bottom, exponent, bits)
        return _Fraction(top, bottom, bits if bits < _FACTOR_BITS else max(_height(top), _height(bottom)))

    def raw_power(self, base: Polynomial, exponent: int, bits: int) -> Polynomial:
        """A power without relations: its terms and bits are bounded by counting before it is expanded."""
        if base.is_one():
            return self.one
        if len(base) == 1 and _height(base) == 1:
            bits = 1
        elif bits > self.limits.max_bits:
            bits = exponent * (_height(base) + len(base).bit_length())
            if bits > self.limits.max_bits:
                raise _OverBudgetError("bits")
        terms = _multichoose(len(base), exponent, self.limits.max_terms)
        if terms > self.limits.max_terms:
            raise _OverBudgetError("terms")
        if sum(base.degrees()) * exponent > _SPARSE_DEGREE:
            raise _OverBudgetError("degree")
        self.spend(terms * len(base) * (1 + bits / 64) ** 1.6)
        return base**exponent

    def stepwise(self, base: _Fraction, exponent: int) -> _Fraction:
        """Square and reduce: expanding first would build what the relations take away again."""
        result = base
        for digit in bin(exponent)[3:]:
            result = self.product(result, result)
            if digit == "1":
                result = self.product(result, base)
        return result

    def entangled(self, value: _Fraction) -> bool:
        if not self.related:
            return False
        top, bottom = value.top.degrees(), value.bottom.degrees()
        return any(top[place] or bottom[place] for place in self.related)

    def reduced(self, top: Polynomial, bottom: Polynomial, bits: int) -> _Fraction:
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
                bits = _height(polynomial)
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
        self, groups: dict[int, dict[Monomial, fmpq]], relation: _Fraction, bits: int
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
            raise _OverBudgetError("terms")
        return result, bottoms[highest], _height(result) if bits > _FACTOR_BITS else bits

    def ladder(self, base: Polynomial, counts: set[int], bits: int) -> dict[int, Polynomial]:
        """The powers of a polynomial that are asked for."""
        if base.is_one():
            return dict.fromkeys(counts, self.one)
        powers = {0: self.one}
        if max(counts) > 64:
            if len(base) > 1:
                raise _OverBudgetError("powers of a relation")
            for count in counts - {0}:
                powers[count] = self.raw_power(base, count, count * (bits + 1))
            return powers
        for count in range(1, max(counts) + 1):
            powers[count] = self.times(powers[count - 1], base, count * (bits + 4))
        return powers

    def cyclotomic(self, polynomial: Polynomial, place: int, atom: _Atom) -> Polynomial:
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

    def cancelled(self, top: Polynomial, bottom: Polynomial, bits: int) -> _Fraction:
        """The fraction with a divisor that is 1, or has a leading 1 and nothing in common with the rest."""
        if bits > _FACTOR_BITS:
            bits = max(_height(top), _height(bottom))
            if bits > self.limits.max_bits:
                raise _OverBudgetError("bits")
        if bottom is self.one:
            return _Fraction(top, bottom, bits)
        if bottom.is_zero():
            raise _ZeroDivisorError
        if top.is_zero():
            return _Fraction(top, self.one, 1)
        if not bottom.is_constant():
            common = self.common(top, bottom, bits)
            if common is not None and not common.is_constant():
                top, bottom = top / common, bottom / common
        leading = bottom.leading_coefficient()
        if leading != 1:
            self.spend((len(top) + len(bottom)) * (1 + bits / 64) ** 1.6)
            top, bottom = top / leading, bottom / leading
            bits = max(_height(top), _height(bottom))
        return _Fraction(top, self.one if bottom.is_constant() else bottom, bits)

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

    # ------------------------------------------------------------------------------------------------ atoms

    def atom(self, kind: str, key: str, *, real: bool, positive: bool = False) -> _Fraction:
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
            raise _OverBudgetError("atoms")
        self.places[name] = place
        self.atoms.append(_Atom(kind, name, real, positive))
        if kind not in ("letter", "pi", "i", "prime", "unity") and name != _EULER:
            self.independent = False
        kinds = {atom.kind for atom in self.atoms}
        if ("pi" in kinds and _EULER in self.places) or ("unity" in kinds and ("prime" in kinds or "i" in kinds)):
            self.independent = False
        return place, True

    def relate(self, place: int, degree: int, relation: _Fraction) -> None:
        atom = self.atoms[place]
        atom.degree, atom.relation = degree, relation
        self.related.append(place)

    def opaque(self, key: str, *, real: bool, positive: bool = False) -> _Fraction:
        return self.atom("opaque", key, real=real, positive=positive)

    def pi(self) -> _Fraction:
        place, new = self.index("pi", "", real=True, positive=True)
        if new:
            self.atoms[place].ball = arb.pi()
        return self.fraction(self.generators[place])

    def imaginary(self) -> _Fraction:
        if self.known.order > 1:
            return self.unity(self.known.order // 4)
        place, new = self.index("i", "", real=False)
        if new:
            self.relate(place, 2, self.rational(fmpq(-1)))
        return self.fraction(self.generators[place])

    def unity(self, count: int) -> _Fraction:
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

    def spell(self, value: _Fraction) -> str:
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

    def factors(self, value: _Fraction) -> tuple[fmpq, list[tuple[Polynomial, int]], Polynomial | None]:
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
                    part = self.raw_power(factor, int(count), int(count) * (_height(factor) + 8))
                    rest = part if rest is None else self.times(rest, part, _height(rest) + _height(part) + 8)
                else:
                    raise _OverBudgetError("a divisor that is not real")
        return content, parts, rest

    def factored(self, polynomial: Polynomial) -> tuple[fmpq, list[tuple[Polynomial, int]]]:
        degrees = polynomial.degrees()
        cheap = (
            len(polynomial) <= _FACTOR_TERMS
            and sum(degrees) <= _FACTOR_DEGREE
            and sum(1 for degree in degrees if degree) <= _FACTOR_LETTERS
            and _height(polynomial) <= _FACTOR_BITS
        )
        if cheap or len(polynomial) == 1:
            self.spend(2_000 if len(polynomial) > 1 else 50)
            constant, found = polynomial.factor()
            result = []
            for factor, count in found:
                leading = factor.leading_coefficient()
                content = _content(factor) * (1 if leading > 0 else -1)
                constant *= content ** int(count)
                result.append((factor / content, int(count)))
            return constant, result
        content = _content(polynomial) * (1 if polynomial.leading_coefficient() > 0 else -1)
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

    # ------------------------------------------------------------------------------------------------ roots

    def root(self, value: _Fraction, degree: int, place: int) -> _Fraction:
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

    def free_root(self, value: _Fraction, degree: int, *, real: bool) -> _Fraction:
        """A root of a degree beyond the limit, as an atom without its relation."""
        return self.opaque(f"root {degree} {self.spell(value)}", real=real, positive=real and degree % 2 == 0)

    def rational_root(self, value: fmpq, degree: int) -> _Fraction:
        if value < 0:
            positive = self.rational_root(-value, degree)
            if degree % 2:
                return self.negative(positive)
            if self.real:
                raise _NoValueError
            if degree == 2:
                return self.product(self.imaginary(), positive)
            return self.complex_root(self.rational(value), degree)
        result = self.rational(fmpq(1))
        for number, direction in ((value.p, 1), (value.q, -1)):
            for prime, count, sure in _prime_factors(number):
                result = self.product(result, self.radical_power(prime, sure, direction * count, degree))
        return result

    def radical_power(self, prime: fmpz, sure: bool, count: int, degree: int) -> _Fraction:
        """`prime^(count/degree)`."""
        whole, rest = divmod(count, degree)
        if abs(whole) * prime.bit_length() > self.limits.max_bits:
            raise _OverBudgetError("bits")
        result = self.rational(fmpq(prime) ** whole)
        if rest:
            radical = self.radical(self.rational(fmpq(prime)), str(prime), degree, "prime" if sure else "number")
            result = self.product(result, self.power(radical, rest))
        return result

    def radical(self, radicand: _Fraction, key: str, degree: int, kind: str) -> _Fraction:
        """The real root of a radicand whose root of this degree is real, as a power of the one atom it has."""
        common = self.known.degrees.get(key, 1)
        if common % degree:
            common = lcm(common, degree)
            if common > self.limits.max_root_degree:
                raise _OverBudgetError("root degree")
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

    def complex_root(self, value: _Fraction, degree: int) -> _Fraction:
        """A principal root of what may be complex: nothing but a positive rational is taken out."""
        content = abs(_content(value.top)) / abs(_content(value.bottom))
        inner = self.scaled(value, 1 / content)
        place, new = self.index("complex root", f"{degree} {self.spell(inner)}", real=False)
        if new:
            self.relate(place, degree, inner)
        outer = self.rational_root(content, degree)
        return self.product(outer, self.fraction(self.generators[place]))

    def real_root(self, value: _Fraction, degree: int) -> _Fraction:
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
                result = self.product(result, self.power(self.modulus(factor), whole))
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
        return self.sign(factor) != 0 or int(factor.total_degree()) <= _SIMPLE_DEGREE

    def scaled_factor(self, factor: Polynomial, sign: int) -> Polynomial:
        return factor if sign > 0 else -factor

    def radical_of(self, factor: Polynomial, count: int, degree: int) -> _Fraction:
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

    def single(self, polynomial: Polynomial) -> int | None:
        """The place of the atom that a polynomial is."""
        if len(polynomial) != 1 or polynomial.total_degree() != 1 or polynomial.leading_coefficient() != 1:
            return None
        return int(polynomial.degrees().index(1))

    def joint_root(self, parts: list[tuple[Polynomial, int]], degree: int) -> _Fraction:
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
    ) -> _Fraction:
        """The real odd root, which takes products apart whatever their signs."""
        result = self.rational_root(content, degree)
        for factor, count in parts:
            result = self.product(result, self.radical_of(factor, count, degree))
        if rest is not None:
            value = self.fraction(rest)
            result = self.product(result, self.radical(value, self.spell(value), degree, "root"))
        return result

    # ---------------------------------------------------------------------------------------------- moduli

    def absolute(self, value: _Fraction, place: int) -> _Fraction:
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

    def modulus(self, factor: Polynomial) -> _Fraction:
        """`|f|` of a real polynomial: f itself, its negative, or an atom whose square is f^2."""
        sign = self.sign(factor)
        if sign:
            return self.fraction(self.scaled_factor(factor, sign))
        value = self.fraction(factor)
        place, new = self.index("modulus", self.spell(value), real=True, positive=True)
        self.regions = True
        if new:
            self.atoms[place].data = factor
            self.relate(place, 2, self.product(value, value))
        return self.fraction(self.generators[place])

    # ----------------------------------------------------------------------------- logarithms, exponentials

    def logarithm(self, value: _Fraction, place: int) -> _Fraction:
        if value.top.is_zero():
            raise _ZeroDivisorError
        if self.real:
            content, parts, rest = self.factors(value)
            if content < 0 and not parts and rest is None:
                raise _NoValueError
            self.learn_sign(content, parts, rest)
            return self.log_modulus(content, parts, rest)
        constant = value.top.leading_coefficient() if value.bottom.is_one() and value.top.is_constant() else None
        ball = arb(constant) if constant is not None else self.ball(place)
        if type(ball) is arb and (ball > 0 or ball < 0):
            result = self.log_modulus(*self.factors(value))
            return result if ball > 0 else self.total([result, self.product(self.imaginary(), self.pi())])
        content = abs(_content(value.top)) / abs(_content(value.bottom))
        inner = self.scaled(value, 1 / content)
        index, new = self.index("complex ln", self.spell(inner), real=False)
        if new:
            self.atoms[index].data = inner
        return self.total([self.log_modulus(content, [], None), self.fraction(self.generators[index])])

    def log_modulus(self, content: fmpq, parts: list[tuple[Polynomial, int]], rest: Polynomial | None) -> _Fraction:
        """The logarithm of the modulus of a product, factor by factor."""
        result = self.rational(fmpq(0))
        for number, direction in ((abs(content.p), 1), (content.q, -1)):
            for prime, count, _ in _prime_factors(number):
                place, new = self.index("ln", str(prime), real=True, positive=True)
                if new:
                    self.atoms[place].data = self.rational(fmpq(prime))
                    self.atoms[place].ball = arb(prime).log()
                atom = self.fraction(self.generators[place])
                result = self.total([result, self.scaled(atom, fmpq(direction * count))])
        for factor, count in parts:
            result = self.total([result, self.scaled(self.log_factor(factor), fmpq(count))])
        return result if rest is None else self.total([result, self.log_factor(rest)])

    def log_factor(self, factor: Polynomial) -> _Fraction:
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

    def raised(self, base: _Fraction, exponent: _Fraction, place: int) -> _Fraction:
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

    def formal_log(self, value: _Fraction) -> _Fraction:
        place, new = self.index("formal ln", self.spell(value), real=False)
        if new:
            self.atoms[place].data = value
        return self.fraction(self.generators[place])

    def constant(self, value: _Fraction) -> fmpq | None:
        if not (value.bottom.is_one() and value.top.is_constant()):
            return None
        return fmpq(0) if value.top.is_zero() else value.top.leading_coefficient()

    def small(self, number: fmpz) -> int:
        if number.bit_length() > 40:
            raise _OverBudgetError("exponent")
        return int(number)

    def exponential(self, exponent: _Fraction) -> _Fraction:
        """`e^u`, term by term of the exponent."""
        result = self.rational(fmpq(1))
        if len(exponent.top) > self.size:
            raise _OverBudgetError("terms of an exponent")
        for monomial, coefficient in list(exponent.top.terms()):
            result = self.product(result, self.exponential_term(monomial, coefficient, exponent.bottom))
        return result

    def exponential_term(self, monomial: Monomial, coefficient: fmpq, bottom: Polynomial) -> _Fraction:
        names = [place for place, count in enumerate(monomial) if count]
        if bottom.is_one() and names:
            special = self.special_exponential(monomial, names, coefficient)
            if special is not None:
                return special
        single = _Fraction(self.context.from_dict({monomial: 1}), bottom, _height(bottom))
        key = self.spell(single)
        step = self.known.steps.get(key)
        if step is None or (coefficient / step).q != 1:
            first, step = step is None, coefficient if step is None else _shared_step(step, coefficient)
            step = abs(step)
            if step.height_bits() > 256:
                raise _OverBudgetError("bits")
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

    def special_exponential(self, monomial: Monomial, names: list[int], coefficient: fmpq) -> _Fraction | None:
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

    def power_of_log(self, atom: _Atom, coefficient: fmpq) -> _Fraction | None:
        """`e^(c ln u)`."""
        base: _Fraction = atom.data
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

    def absolute_of_factor(self, value: _Fraction) -> _Fraction:
        constant = self.constant(value)
        return value if constant is not None else self.modulus(value.top)

    def without_imaginary(self, monomial: Monomial) -> Monomial | None:
        """The monomial divided by `i`, if it has that factor."""
        if self.known.order > 1:
            place, count = self.places.get(f"unity {self.known.order}"), self.known.order // 4
        else:
            place, count = self.places.get("i "), 1
        if place is None or monomial[place] != count:
            return None
        return (*monomial[:place], 0, *monomial[place + 1 :])

    # --------------------------------------------------------------------------------------------- angles

    def turn(self, half_turns: fmpq) -> _Fraction:
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
                raise _AgainError
            return self.opaque(f"turn {half_turns}", real=False)
        return self.unity(int((half_turns * self.known.order / 2).p))

    def twelfth(self, count: int) -> _Fraction:
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

    def turn_of_inverse(self, atom: _Atom) -> _Fraction:
        """`e^(i arcsin u) = sqrt(1 - u^2) + i u`, `e^(i arctan u) = (1 + i u)/sqrt(1 + u^2)`, of a real u."""
        argument: _Fraction = atom.data
        square = self.product(argument, argument)
        one = self.rational(fmpq(1))
        if atom.kind == "asin":
            cosine = self.known_root(self.difference(one, square))
            return self.total([cosine, self.product(self.imaginary(), argument)])
        length = self.known_root(self.total([one, square]))
        return self.quotient(self.total([one, self.product(self.imaginary(), argument)]), length)

    def known_root(self, value: _Fraction) -> _Fraction:
        constant = self.constant(value)
        if constant is not None:
            return self.rational_root(constant, 2) if constant else value
        return self.real_root(value, 2)

    # ------------------------------------------------------------------------------------------- functions

    def function(self, name: str, places: tuple[int, ...]) -> _Fraction:
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

    def parts(self, value: _Fraction) -> tuple[_Fraction, _Fraction] | None:
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

    def inverse_angle(self, name: str, value: _Fraction, place: int) -> _Fraction:
        if value.top.is_zero():
            return value
        if value.top.leading_coefficient() < 0:
            return self.negative(self.inverse_angle_of(name, self.negative(value), place, -1))
        return self.inverse_angle_of(name, value, place, 1)

    def inverse_angle_of(self, name: str, value: _Fraction, place: int, sign: int) -> _Fraction:
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

    def floor(self, value: _Fraction, place: int) -> _Fraction:
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

    def shift(self, value: _Fraction) -> tuple[fmpz, _Fraction]:
        """The integer part of the constant term, and the value without it."""
        if not value.bottom.is_one():
            return fmpz(0), value
        whole = value.top[(0,) * self.size].floor()
        return whole, self.difference(value, self.rational(fmpq(whole)))

    def factorial(self, value: _Fraction) -> _Fraction:
        """`(w + k)! = w! (w + 1) ... (w + k)`, for one w to all integers k near it."""
        constant = self.constant(value)
        if constant is not None:
            if constant.q == 1 and constant < 0:
                raise _ZeroDivisorError
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


_EULER = "exponential 1 1"


class _AgainError(ArithmeticError):
    """A root of unity of a new order: the round begins again, with all of them powers of one."""


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


def _shared_step(a: fmpq, b: fmpq) -> fmpq:
    """The greatest rational of which both are multiples."""
    return fmpq((a.p * b.q).gcd(b.p * a.q), a.q * b.q)


def _content(polynomial: Polynomial) -> fmpq:
    """The positive rational that makes the coefficients coprime integers."""
    result = fmpq(0)
    for coefficient in polynomial.coeffs():
        result = abs(coefficient) if result == 0 else _shared_step(result, abs(coefficient))
    return result


_TRIAL_PRIMES = tuple(n for n in range(2, 1_000) if all(n % d for d in range(2, int(n**0.5) + 1)))
_FULL_FACTOR_BITS = 60
"""Numbers that are factored wholly; of a larger one only the small primes are taken out."""


def _prime_factors(number: fmpz) -> list[tuple[fmpz, int, bool]]:
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
