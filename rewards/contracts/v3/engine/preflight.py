"""A bound of what the exact tier would cost, composed over the instructions before any polynomial is built.

Each instruction is bounded as a fraction of polynomials: degree, terms and bits of its top and its bottom. Products
add degrees and bits and multiply terms; powers multiply degrees and bits, their terms are counted as combinations; sums
stand over the product of their divisors; a root carries the size of its radicand, since an even power brings the
radicand back. Terms are capped by the number of monomials there are: the roots' degrees multiplied, times the monomials
of the degree in the free atoms. What exceeds a limit is not refused: only the exact tier is left out, and spelling,
balls, separation and residues, whose cost is instructions times precision, still run.

The rules cannot see sizes that relations or common angles bring about; `normal` therefore looks at the actual sizes
again before each product and each power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from veriward.rewards.contracts.v3.engine import program as p
from veriward.rewards.contracts.v3.limits import LIMITS, Limits
from veriward.rewards.contracts.v3.tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the exact comparison of two scalars may come to, and whether it is run."""

    bits: int
    """Bits of the largest coefficient."""
    terms: int
    """Terms of the largest polynomial."""
    degree: int
    """Total degree of the largest polynomial."""
    atoms: int
    """Letters, roots and function values, each counted once."""
    work: int
    """Word operations in all."""
    reason: str | None
    """Why the exact tier is left out; None if it is within the limits."""


def plan(left: Node, right: Node, limits: Limits = LIMITS) -> Plan:
    """The plan for two trees."""
    return bound(p.lower(left, right, limits), limits)


def bound(program: p.Program, limits: Limits) -> Plan:
    """The plan for a program: one pass over its instructions, which stops at the first that exceeds a limit."""
    meter = _Meter(limits, program)
    sizes: list[_Size] = []
    for step in program.code:
        size = _RULES[step[0]](meter, step, sizes)
        sizes.append(size)
        meter.see(size)
        if meter.reason is not None:
            break
    if meter.reason is None and program.left is not None and program.right is not None:
        meter.see(meter.sum([sizes[program.left], sizes[program.right]]))
    return Plan(
        bits=min(meter.bits, _CAP),
        terms=min(meter.terms, _CAP),
        degree=min(meter.degree, _CAP),
        atoms=meter.atoms,
        work=min(int(meter.work), _CAP),
        reason=meter.reason,
    )


_CAP = 1 << 62
"""Figures end here: a machine word holds them, and no limit is near."""
_SPARSE_TERMS = 64
"""Terms of a polynomial whose degree may exceed the limit, as `x^9999999 - x^9999998`: it is never divided."""
_SPARSE_DEGREE = 1 << 40


class _Side(NamedTuple):
    degree: int
    terms: int
    bits: int


class _Size(NamedTuple):
    top: _Side
    bottom: _Side


_ONE = _Side(0, 1, 1)


class _Meter:
    """The largest figures so far, and the work summed."""

    def __init__(self, limits: Limits, program: p.Program) -> None:
        self.limits = limits
        self.bits = program.folded_bits
        self.terms = 1
        self.degree = 0
        self.atoms = 0
        self.free = 0
        self.roots = 1
        self.work: float = program.folding_work
        self.entangled = False
        self.sparse = all(
            step[0] in (p.RATIONAL, p.SYMBOL, p.ADD, p.MULTIPLY) or (step[0] == p.POWER and step[2] > 0)
            for step in program.code
        )
        self.reason: str | None = None

    def see(self, size: _Size) -> None:
        for side in size:
            self.bits = max(self.bits, side.bits)
            self.terms = max(self.terms, side.terms)
            self.degree = max(self.degree, side.degree)
        limits = self.limits
        for name, figure, limit in (
            ("bits", self.bits, limits.max_bits),
            ("terms", self.terms, limits.max_terms),
            ("atoms", self.atoms, limits.max_atoms),
            ("work", self.work, limits.max_work),
        ):
            if figure > limit:
                self.reason = f"{name} above {limit}"
                return
        if self.degree > limits.max_degree and not (
            self.sparse and self.terms <= _SPARSE_TERMS and self.degree <= _SPARSE_DEGREE
        ):
            self.reason = f"degree above {limits.max_degree}"

    def capped(self, degree: int, terms: int) -> int:
        """Terms, no more than there are monomials."""
        if terms <= self.limits.max_terms:
            return terms
        return min(terms, self.roots * _choose(min(degree, 1 << 20) + self.free, self.free, terms))

    def product_side(self, a: _Side, b: _Side) -> _Side:
        bits = a.bits + b.bits + min(a.terms, b.terms).bit_length() if a.bits > 1 and b.bits > 1 else a.bits + b.bits
        if not (a is _ONE or b is _ONE):
            self.work += a.terms * b.terms * (1 + bits / 64) ** 1.6
        degree = a.degree + b.degree
        return _Side(degree, self.capped(degree, a.terms * b.terms), bits)

    def product(self, a: _Size, b: _Size) -> _Size:
        bottom = (
            a.bottom if b.bottom is _ONE else b.bottom if a.bottom is _ONE else self.product_side(a.bottom, b.bottom)
        )
        return _Size(self.product_side(a.top, b.top), bottom)

    def sum(self, sizes: Sequence[_Size]) -> _Size:
        total = sizes[0]
        for size in sizes[1:]:
            if total.bottom is _ONE and size.bottom is _ONE:
                a, b, bottom = total.top, size.top, _ONE
            else:
                a = self.product_side(total.top, size.bottom)
                b = self.product_side(size.top, total.bottom)
                bottom = self.product_side(total.bottom, size.bottom)
            self.work += (a.terms + b.terms) * (1 + (a.bits + b.bits) / 64)
            degree = max(a.degree, b.degree)
            total = _Size(_Side(degree, self.capped(degree, a.terms + b.terms), a.bits + b.bits + 1), bottom)
        return total

    def power_side(self, base: _Side, exponent: int) -> _Side:
        if base is _ONE:
            return _ONE
        degree = base.degree * exponent
        bits = 1 if base.terms == 1 and base.bits == 1 else exponent * (base.bits + (base.terms - 1).bit_length())
        if bits > self.limits.max_bits or degree > _SPARSE_DEGREE:
            return _Side(min(degree, _CAP), base.terms, min(bits, _CAP))
        terms = self.capped(degree, _choose(base.terms + exponent - 1, base.terms - 1, _CAP))
        if self.entangled:
            steps = 2 * exponent.bit_length()
            self.work += steps * min(terms, 4 * self.limits.max_terms) ** 2 * (1 + bits / 64) ** 1.6 / 4
        else:
            self.work += terms * base.terms * (1 + bits / 64) ** 1.6 if exponent > 1 else 0
        return _Side(degree, terms, bits)

    def algebraic(self, degree: int) -> None:
        """One more atom with a relation of that degree."""
        self.atoms += 1
        self.roots = min(self.roots * degree, _CAP)
        self.entangled = True

    def transcendental(self, count: int = 1) -> None:
        self.atoms += count
        self.free += count


def _choose(n: int, k: int, cap: int) -> int:
    """The binomial coefficient, or anything above the cap."""
    k = min(k, n - k)
    result = 1
    for step in range(1, k + 1):
        result = result * (n - k + step) // step
        if result > cap:
            return cap + 1
    return result


_ATOM = _Size(_Side(1, 1, 1), _ONE)


def _rational(_meter: _Meter, step: p.Instruction, _sizes: list[_Size]) -> _Size:
    return _Size(_Side(0, 1, step[1].height_bits()), _ONE)


def _free(meter: _Meter, _step: p.Instruction, _sizes: list[_Size]) -> _Size:
    meter.transcendental()
    return _ATOM


def _imaginary(meter: _Meter, _step: p.Instruction, _sizes: list[_Size]) -> _Size:
    meter.algebraic(2)
    return _ATOM


def _sum(meter: _Meter, step: p.Instruction, sizes: list[_Size]) -> _Size:
    return meter.sum([sizes[place] for place in step[1]])


def _product(meter: _Meter, step: p.Instruction, sizes: list[_Size]) -> _Size:
    total: _Size = sizes[step[1][0]]
    for place in step[1][1:]:
        total = meter.product(total, sizes[place])
    return total


def _power(meter: _Meter, step: p.Instruction, sizes: list[_Size]) -> _Size:
    base: _Size = sizes[step[1]]
    exponent = step[2]
    top, bottom = meter.power_side(base.top, abs(exponent)), meter.power_side(base.bottom, abs(exponent))
    return _Size(top, bottom) if exponent >= 0 else _Size(bottom, top)


def _root(meter: _Meter, step: p.Instruction, sizes: list[_Size]) -> _Size:
    radicand: _Size = sizes[step[1]]
    degree = step[2]
    if degree > meter.limits.max_root_degree:
        meter.reason = f"root degree above {meter.limits.max_root_degree}"
        return radicand
    meter.algebraic(degree)
    top = radicand.top
    if radicand.bottom is not _ONE:
        top = meter.product_side(top, meter.power_side(radicand.bottom, degree - 1))
    return _Size(_Side(top.degree + 1, top.terms, top.bits), radicand.bottom)


def _exponential(meter: _Meter, step: p.Instruction, sizes: list[_Size]) -> _Size:
    """One atom for each term of the exponent."""
    terms = max(1, sizes[step[1]].top.terms)
    meter.transcendental(min(terms, 2 * meter.limits.max_atoms))
    return _Size(_Side(terms, 1, 1), _Side(terms, 1, 1))


def _raise(meter: _Meter, step: p.Instruction, sizes: list[_Size]) -> _Size:
    terms = max(1, sizes[step[2]].top.terms)
    meter.transcendental(min(terms, 2 * meter.limits.max_atoms))
    return _Size(_Side(terms, 1, 1), _Side(terms, 1, 1))


def _function(meter: _Meter, step: p.Instruction, sizes: list[_Size]) -> _Size:
    name: str = step[1]
    argument: _Size = sizes[step[2][0]]
    if name in ("sin", "cos"):
        # Both are made of the exponential of i times the angle, which the other shares.
        meter.entangled = True
        terms = argument.top.terms
        meter.transcendental(min(terms, 2 * meter.limits.max_atoms) if name == "sin" else 0)
        meter.atoms += 1 if name == "cos" else 0
        return _Size(_Side(2 * terms, 2, 2), _Side(terms, 1, 1))
    if name == "abs":
        meter.algebraic(2)
        return argument
    meter.transcendental()
    return _Size(_Side(argument.top.degree + 1, 2, argument.top.bits), _ONE)


_RULES = (
    _rational,
    _free,
    _free,
    _free,
    _imaginary,
    lambda *_: _ATOM,
    _sum,
    _product,
    _power,
    _root,
    _exponential,
    _raise,
    _function,
    _free,
)
"""By kind of instruction, in the order of `program`."""
