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
- A difference without a value (`oo - oo`) decides nothing and is refused.
- Decimals are exact: `0.1+0.2` equals `0.3`.

Known behaviour, kept: `1 2` reads as `12`, `{1,2}` as `(1,2)`, a bare `1,2` is no tuple, `0^0` equals 1, any
two identical texts are equal, and `\\sin(0)` is unsupported although a person sees the answer.
"""

from __future__ import annotations

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
        equal = _all_equal(candidates, references)
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


def _parsed(parts: Sequence[str]) -> list[_Part]:
    if sum(map(len, parts)) > SIZE_LIMITS.max_text:
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)
    trees = [narrow.parse(part, SIZE_LIMITS) for part in parts]
    return [_Part(tree, narrow.size(tree, SIZE_LIMITS)) for tree in trees]


def _all_equal(candidates: Sequence[_Part], references: Sequence[_Part]) -> bool:
    """True if every difference is zero; raises Refused if that would cost too much or has no value."""
    pairs = list(zip(candidates, references, strict=True))
    if any(_differ_at_a_point(candidate.tree, reference.tree) for candidate, reference in pairs):
        return False
    differences = [narrow.to_sympy(candidate.tree) - narrow.to_sympy(reference.tree) for candidate, reference in pairs]
    open_pairs = [pair for pair, difference in zip(pairs, differences, strict=True) if difference != 0]
    _refuse_costly([part.size for pair in open_pairs for part in pair])
    return all(_simplifies_to_zero(difference) for difference in differences if difference != 0)


def _refuse_costly(sizes: Sequence[Size]) -> None:
    """The parts share one budget, or a tuple of eight would cost eight times as much."""
    within_limits = (
        sum(size.terms for size in sizes) <= SIZE_LIMITS.max_simplify_terms
        and sum(size.degree for size in sizes) <= SIZE_LIMITS.max_simplify_degree
        and sum(size.roots for size in sizes) <= SIZE_LIMITS.max_simplify_roots
    )
    if not within_limits:
        raise Refused(Reason.ESTIMATED_COST_TOO_LARGE)


def _simplifies_to_zero(difference: sympy.Expr) -> bool:
    import sympy

    if difference.has(sympy.nan):
        raise Refused(Reason.UNSUPPORTED_EXPRESSION)
    return bool(sympy.simplify(difference) == 0)


def _differ_at_a_point(left: Node, right: Node) -> bool:
    """Proof that two trees have different values: disjoint enclosures at a point where both are defined."""
    import flint

    with _flint_precision, flint.ctx.workprec(PRECISION_BITS):
        for numerator in SAMPLE_NUMERATORS:
            points = _Points(numerator)
            left_ball, right_ball = narrow.to_ball(left, points), narrow.to_ball(right, points)
            if left_ball.is_finite() and right_ball.is_finite() and not left_ball.overlaps(right_ball):
                return True
    return False


class _Points(dict[str, Any]):
    """The value of every letter at one sample point."""

    def __init__(self, numerator: int) -> None:
        super().__init__()
        self.numerator = numerator

    def __missing__(self, letter: str) -> Any:
        import flint

        return flint.acb(flint.fmpq(self.numerator, 997 + 61 * ord(letter) % 1009))
