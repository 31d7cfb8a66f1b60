"""The points at which expressions are asked: rational, of many scales and signs, drawn from the expressions."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from flint import fmpq

from veriward.rewards.contracts.v3.engine import program as p


def points(program: p.Program, seed: bytes, *, anywhere: bool = False) -> Iterator[dict[str, fmpq]]:
    """Rational points of many scales and signs, in an order that depends on the seed alone; they never end.

    The seed comes from the expressions, so that no expression can be written to vanish at the points it will be asked.
    Every third point looks beyond the numbers that the expressions hold, since their regions end there.
    Where factorials occur, the points are whole numbers. Letters in exponents are so at every second point, and where
    they are not, all letters are positive. Neither holds for points `anywhere`.
    """
    whole = any(step[0] == p.FUNCTION and step[1] in ("factorial", "binomial") for step in program.code)
    whole, powers = whole and not anywhere, bool(program.exponent_letters) and not anywhere
    names = sorted(program.symbols)
    marks = _marks(program)
    index = 0
    while True:
        point = {}
        beyond = index % 3 == 2 and index > 2
        for name in names:
            digest = blake2b(f"{index} {name}".encode("utf-8", "surrogatepass"), key=seed).digest()
            if whole:
                point[name] = fmpq(int.from_bytes(digest[:2], "big") % 4_096 if beyond else digest[0] % (5 + index))
                continue
            if beyond and (len(names) == 1 or digest[11] % 2):
                turn = index // 3 if len(names) == 1 else digest[12]
                point[name] = marks[turn % len(marks)]
            else:
                point[name] = _coordinate(index, digest)
            if powers:
                if index % 2 == 0:
                    point[name] = abs(point[name])
                elif name in program.exponent_letters:
                    size = 8 if index < 3 or digest[10] % 2 else 1 << (4 + digest[10] % 11)
                    draw = int.from_bytes(digest[9:12], "big") if size > 8 else digest[9]
                    point[name] = fmpq((1 + draw % size) * (1 if digest[4] % 2 else -1))
        yield point
        index += 1


_FAR = tuple(fmpq(sign * 10**exponent * 9, 8) for exponent in (9, 13, 20, 41) for sign in (1, -1))
_NEAR = tuple(fmpq(sign * 9, 8 * 10**exponent) for exponent in (7, 15) for sign in (1, -1))
_MARKED, _MARK_BITS = 6, 512
"""Numbers of the expressions that points are made of, and their size."""


def _marks(program: p.Program) -> list[fmpq]:
    """Coordinates beyond and between the numbers that occur, then ones far from and near to zero."""
    found = {abs(step[1]) for step in program.code if step[0] == p.RATIONAL and step[1].height_bits() <= _MARK_BITS}
    numbers = sorted(found - {fmpq(0), fmpq(1)}, reverse=True)[:_MARKED]
    marks: list[fmpq] = [fmpq(0)]
    for number, below in zip(numbers, [*numbers[1:], fmpq(0)], strict=False):
        marks += [2 * number, -2 * number, number, -number, number + 1, number - 1, -number - 1, 1 - number]
        marks += [(number + below) / 2, number / 2, -number / 2, 1 / (2 * number), -1 / (2 * number)]
    marks = list(dict.fromkeys(marks))
    return [*(mark for pair in zip(marks, (*_FAR, *_NEAR) * len(marks), strict=False) for mark in pair), *_FAR, *_NEAR]


_KINDS = 13


def _coordinate(index: int, digest: bytes) -> fmpq:
    """One coordinate: a numerator below 2000 over a denominator near 1000, scaled and signed by the point's kind.

    Every second point has the same kind in all coordinates (two letters near -10^4), the others one for each.
    """
    draw = int.from_bytes(digest[:4], "big")
    unit = fmpq(1009 + draw % 991, 1009)
    sign, low = (1 if digest[4] % 2 else -1), digest[5]
    kind, turn = index // 2 % _KINDS, index // (2 * _KINDS)
    if index % 2:
        kind = digest[6] % (_KINDS + 6)
        turn = digest[7] % 3
    if kind == 0:
        return unit
    if kind == 1:
        return fmpq(2 + draw % (6 + turn))
    if kind == 2:
        return -unit * fmpq(3, 2)
    if kind == 3:
        return unit * fmpq(1, 1000 * (1 + turn))
    if kind == 4:
        return unit * (7_000 + low * 13)
    if kind == 5:
        return unit * sign * fmpq(1 + low // 8, 8)
    if kind == 6:
        return -unit * (7_000 + low * 13)
    if kind == 7:
        return unit * sign * fmpq(10) ** (digest[8] % 7)
    if kind == 8:
        return fmpq(sign * (1 + draw % (8 + 8 * turn)))
    if kind == 9:
        return unit * fmpq(1, 3)
    if kind == 10:
        return unit * sign * 1_000_000
    if kind == 11:
        return fmpq((draw % 49) - 24, 2) + fmpq(1, 7)
    if kind == 12:
        return fmpq((2 * (draw % 8) + 1) * sign, 2)
    # What is left is a number between -1 and 1, for arcsines, and for logarithms of either sign.
    return fmpq(sign * (1 + draw % 1007), 1009)
