"""What contract v3 spends on one answer: every bound, its unit, and the input that made it necessary."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one verdict. Part of the contract's fingerprint: changing one is a new contract."""

    max_response_characters: int = 4_000_000
    """Characters of a response that is searched for an answer; longer ones are refused unread."""
    max_answer_characters: int = 4_096
    """Characters of a candidate or reference: `1+` and a million blanks and `1`."""
    max_tokens: int = 768
    """Lexical tokens of an answer: `1,` fifty thousand times."""
    max_depth: int = 40
    """Nested brackets, roots, fractions and exponents: `((((…x…))))` ends Python's stack."""
    max_digits: int = 1_000
    """Digits of one number: `0.` and five thousand threes."""
    max_signs: int = 8
    """Signs in a row: `-` a hundred thousand times before a 1."""
    max_parts: int = 64
    """Parts of a list, set, tuple or matrix: cost is spent per part, so parts are counted."""

    max_bits: int = 65_536
    """Bits of an exact integer: `(((9^64)^64)^64)^64` has 53 million."""
    max_terms: int = 1_200
    """Terms of an expanded polynomial: `(a+b+c+d+e+f)^64` has ten million."""
    max_degree: int = 4_096
    """Total degree of an expanded polynomial: `((x^2+1)^64+1)^64`."""
    max_atoms: int = 12
    """Symbols, roots and function values treated as independent unknowns in one comparison: `sqrt(2)+sqrt(3)+…`."""
    max_root_degree: int = 64
    """Degree of a root handled exactly: `\\sqrt[1000000]{2}`."""
    max_work: int = 2_000_000
    """Word operations of the exact tier, summed over all parts of an answer: a tuple of eight powers that each fit."""
    max_precision: int = 8_192
    """Bits of ball arithmetic: `sqrt(2)+10^-16` against `sqrt(2)` needs 64, a separation bound may ask for more."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} must be at least 1, got {getattr(self, field.name)}")


LIMITS = Limits()
