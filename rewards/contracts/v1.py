"""Grading contract v1, frozen: normalise, compare the texts, then the parts, then ask SymPy.

Exact match of the normalised texts first; then both sides are split into parts, and a different number of
parts is a decided 'different'; then every part is parsed by the narrow grammar, and what does not parse is
'unsupported_expression'; then two parts are equal if SymPy simplifies their difference to zero.

Deviations from the rules as first published, each of them only where those would stop a trainer:
- No text reaches a Python parser or `eval`; the grammar is read in `narrow.py`.
- What used to raise (`1,2` against `2,1`, lone surrogates, very deep or very long input) is refused.
- A size estimate stands before SymPy (`estimated_cost_too_large`), since these rules had no limits of their own.
- Where enclosures of both values at a sample point are disjoint, the difference cannot simplify to zero, and
  SymPy is not asked to: same outcome, bounded time.
- What has no value (`1/0`, `x/(x-x)`) is refused, and infinity is an answer but no operand (`oo-oo`, `1/oo`).
- Decimals are exact: `0.1+0.2` equals `0.3`.

Known behaviour, kept: `1 2` reads as `12`, `{1,2}` as `(1,2)`, `2e+3` as 2000, `f(2)` as a product, a bare `1,2` is
no tuple, `0^0` equals 1, any two identical texts are equal, and `\\sin(0)` is unsupported although a person sees
the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from veriward.rewards.contracts import narrow
from veriward.rewards.contracts.narrow import Node, Refused, Size, SizeLimits
from veriward.rewards.normalize import normalize
from veriward.rewards.verdict import Decision, Method, Outcome, Reason

if TYPE_CHECKING:
    import sympy

NAME = "v1"

SIZE_LIMITS = SizeLimits()

POLICIES = {
    "extraction": "last box by brace depth, else last number",
    "identity": "normalised texts, before anything is parsed",
    "decimals": "exact",
    "letters": "complex symbols",
    "undefined": "refused",
}

PRECISION_BITS = 128
SAMPLE_NUMERATORS = (1283, 2741)
"""Letters take the values numerator / (997 + 61 * code), one set of values a sample: unrelated, positive, near 1."""

OPENING = {"(": ")", "[": "]"}

_flint_precision = Lock()
"""python-flint's precision is one for the whole process."""


def decide(candidate: str, reference: str) -> Decision:
    """What v1 says of a candidate and a reference, as written."""
    return decide_normalized(normalize(candidate), normalize(reference))


def check_reference(reference: str) -> Reason | None:
    """Why v1 cannot read this reference, or None if it can. An identical answer is equal all the same."""
    normal = normalize(reference)
    if len(normal) > SIZE_LIMITS.max_text:
        return Reason.REFERENCE_ESTIMATED_COST_TOO_LARGE
    try:
        _parsed(split_into_parts(normal))
    except Refused as refusal:
        return refusal.reason.of_reference
    return None


def decide_normalized(candidate: str, reference: str) -> Decision:
    """What v1 says of two normalised texts."""

    def decision(outcome: Outcome, reason: Reason | None, method: Method | None) -> Decision:
        return Decision(
            outcome=outcome,
            reason=reason,
            method=method,
            candidate_normal=candidate,
            reference_normal=reference,
            verifier_called=True,
        )

    if candidate == reference and candidate:
        return decision(Outcome.CORRECT, None, Method.NORMALIZED_EXACT)
    if len(candidate) > SIZE_LIMITS.max_text:
        return decision(Outcome.UNSUPPORTED, Reason.ESTIMATED_COST_TOO_LARGE, None)
    if len(reference) > SIZE_LIMITS.max_text:
        return decision(Outcome.BAD_REFERENCE, Reason.REFERENCE_ESTIMATED_COST_TOO_LARGE, None)
    candidate_parts, reference_parts = split_into_parts(candidate), split_into_parts(reference)
    if len(candidate_parts) != len(reference_parts):
        return decision(Outcome.WRONG, Reason.DIFFERENT_PART_COUNT, Method.PART_COUNT)
    try:
        candidates = _parsed(candidate_parts)
    except Refused as refusal:
        return decision(Outcome.UNSUPPORTED, refusal.reason, None)
    try:
        references = _parsed(reference_parts)
    except Refused as refusal:
        return decision(Outcome.BAD_REFERENCE, refusal.reason.of_reference, None)
    try:
        equal = _all_equal(list(zip(candidates, references, strict=True)))
    except Refused as refusal:
        return decision(Outcome.UNSUPPORTED, refusal.reason, None)
    if equal:
        return decision(Outcome.CORRECT, None, Method.SYMPY)
    return decision(Outcome.WRONG, Reason.NOT_EQUAL, Method.SYMPY)


def split_into_parts(text: str) -> list[str]:
    """The members of a flat tuple or list, whatever its brackets; else the text as one part."""
    if not text or text[-1] != OPENING.get(text[0], ""):
        return [text]
    parts: list[str] = []
    closing: list[str] = []
    start = 1
    for position, sign in enumerate(text):
        if sign in OPENING:
            closing.append(OPENING[sign])
        elif sign in ")]":
            if not closing or closing.pop() != sign or (not closing and position < len(text) - 1):
                return [text]
        elif sign == "," and len(closing) == 1:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:-1]] if parts and not closing else [text]


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of an answer, read and measured."""

    tree: Node
    size: Size
    values: tuple[Any, ...]
    """Enclosures of its value at the sample points; none for infinity."""


_Pair = tuple[_Part, _Part]


def _parsed(parts: Sequence[str]) -> list[_Part]:
    try:
        return [_part(part) for part in parts]
    except RecursionError:  # the caller's own stack is nearly full
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE) from None


def _part(text: str) -> _Part:
    tree = narrow.parse(text, SIZE_LIMITS)
    size = narrow.size(tree, SIZE_LIMITS)
    if _is_infinite(tree):
        return _Part(tree, size, ())
    values = _values(tree)
    if not all(value.is_finite() for value in values):
        raise Refused(Reason.UNDEFINED_VALUE)
    return _Part(tree, size, values)


def _is_infinite(tree: Node) -> bool:
    return tree.kind == "oo" or (tree.kind == "neg" and tree.parts[0].kind == "oo")


def _values(tree: Node) -> tuple[Any, ...]:
    import flint

    with _flint_precision, flint.ctx.workprec(PRECISION_BITS):
        return tuple(narrow.to_ball(tree, _Points(numerator)) for numerator in SAMPLE_NUMERATORS)


class _Points(dict[str, Any]):
    """The value of every letter at one sample point."""

    def __init__(self, numerator: int) -> None:
        super().__init__()
        self.numerator = numerator

    def __missing__(self, letter: str) -> Any:
        import flint

        return flint.acb(flint.fmpq(self.numerator, 997 + 61 * ord(letter) % 1009))


def _all_equal(pairs: Sequence[_Pair]) -> bool:
    """Whether the parts of every pair are equal; raises Refused if finding out would cost too much."""
    if any(_have_different_values(*pair) for pair in pairs):
        return False
    try:
        return _all_differences_are_zero([pair for pair in pairs if pair[0].tree != pair[1].tree])
    except (RecursionError, MemoryError):
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE) from None
    except (ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError):
        raise Refused(Reason.SYMPY_FAILED) from None


def _have_different_values(left: _Part, right: _Part) -> bool:
    """Proof that two parts differ: one is infinite, or enclosures at one point are disjoint."""
    if not left.values or not right.values:
        return left.tree != right.tree
    return any(not one.overlaps(other) for one, other in zip(left.values, right.values, strict=True))


def _all_differences_are_zero(pairs: Sequence[_Pair]) -> bool:
    import sympy

    differences = [_difference(left.tree, right.tree) for left, right in pairs]
    if any(difference.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) for difference in differences):
        raise Refused(Reason.UNDEFINED_VALUE)
    open_pairs = [pair for pair, difference in zip(pairs, differences, strict=True) if difference != 0]
    _refuse_costly([part.size for pair in open_pairs for part in pair])
    return all(sympy.simplify(difference) == 0 for difference in differences if difference != 0)


def _difference(left: Node, right: Node) -> sympy.Expr:
    """Always taken in the same direction: SymPy may see that a-b is zero and not that b-a is."""
    first, second = sorted((left, right), key=repr)
    return narrow.to_sympy(first) - narrow.to_sympy(second)


def _refuse_costly(sizes: Sequence[Size]) -> None:
    """The parts share one budget, or a tuple of eight would cost eight times as much."""
    within_limits = (
        sum(size.terms for size in sizes) <= SIZE_LIMITS.max_simplify_terms
        and sum(size.degree for size in sizes) <= SIZE_LIMITS.max_simplify_degree
        and sum(size.bits for size in sizes) <= SIZE_LIMITS.max_simplify_bits
        and math.prod(size.root_degree for size in sizes) <= SIZE_LIMITS.max_simplify_root_degree
    )
    if not within_limits:
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
