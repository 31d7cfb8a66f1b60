"""Rational functions modulo a prime of 62 bits: whatever the size of their numbers and powers, a few steps each.

Two equal rational functions have equal residues wherever no divisor vanishes, so other residues prove them unequal. The
same residues at two points, each with its own prime, are agreement only. Points and primes are drawn from the
expressions: to a fixed prime q, `3^(1-q)` and `2^(1-q)` would be the same, and an answer could be written that way.
"""

from __future__ import annotations

from hashlib import blake2b

from flint import fmpz

from veriward.rewards.contracts.v3.engine import program as p

_POINTS = 2
_PRIME_BITS = 61
_MAX_WEIGHT_BITS = 40
"""Bits of an expression's weight, its degree plus the bits of its numbers, up to which agreement says something: a
number of w bits has at most w/61 prime divisors of that size, among more than 2^55."""


def agree(program: p.Program, seed: bytes) -> bool | None:
    """Whether both sides have the same residues; None if a part is no rational function, or a divisor vanishes."""
    if program.left is None or program.right is None:
        return None
    same = True
    for point in range(_POINTS):
        residues = _residues(program, seed, point)
        if residues is None:
            return None
        same = same and residues[program.left] == residues[program.right]
    return same if not same or _weight(program).bit_length() <= _MAX_WEIGHT_BITS else None


def _prime(seed: bytes, point: int) -> int:
    """A prime drawn from the seed."""
    draw = int.from_bytes(blake2b(f"prime {point}".encode(), key=seed, digest_size=8).digest(), "big")
    candidate = (1 << _PRIME_BITS) + (draw >> 3) | 1
    while not fmpz(candidate).is_prime():
        candidate += 2
    return candidate


def _residues(program: p.Program, seed: bytes, point: int) -> list[int] | None:
    """The residue of every instruction; None where one has none."""
    prime = _prime(seed, point)
    residues: list[int] = []
    for step in program.code:
        residue = _residue(step, residues, prime, seed, point)
        if residue is None:
            return None
        residues.append(residue)
    return residues


def _residue(step: p.Instruction, residues: list[int], prime: int, seed: bytes, point: int) -> int | None:
    kind = step[0]
    if kind == p.RATIONAL:
        bottom = int(step[1].q) % prime
        return int(step[1].p) * int(pow(bottom, -1, prime)) % prime if bottom else None
    if kind == p.SYMBOL:
        digest = blake2b(f"{point} {step[1]}".encode("utf-8", "surrogatepass"), key=seed, digest_size=16).digest()
        return 2 + int.from_bytes(digest, "big") % (prime - 3)
    if kind == p.ADD:
        total: int = sum(residues[place] for place in step[1])
        return total % prime
    if kind == p.MULTIPLY:
        result: int = 1
        for place in step[1]:
            result = result * residues[place] % prime
        return result
    if kind == p.POWER:
        base, exponent = residues[step[1]], int(step[2])
        if not base:
            return 0 if exponent > 0 else None
        # Fermat: exponents count modulo the prime less one.
        return int(pow(base, exponent % (prime - 1), prime))
    return None


def _weight(program: p.Program) -> int:
    """A bound of the degree in the letters plus the bits of the numbers, of anything in the program."""
    weights: list[int] = []
    for step in program.code:
        kind = step[0]
        if kind in (p.ADD, p.MULTIPLY):
            weights.append(sum(weights[place] for place in step[1]) + len(step[1]))
        elif kind == p.POWER:
            weights.append(weights[step[1]] * abs(step[2]))
        else:
            weights.append(step[1].height_bits() if kind == p.RATIONAL else 1)
        if weights[-1].bit_length() > _MAX_WEIGHT_BITS:
            break
    return 2 * max(weights, default=0)
