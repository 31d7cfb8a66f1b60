"""The comparison of one answer: what is left to spend, and how the findings about parts become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from veriward.rewards.contracts.v3.comparison import NO_COST, Comparison, Finding
from veriward.rewards.contracts.v3.engine import algebra
from veriward.rewards.contracts.v3.limits import LIMITS, Limits
from veriward.rewards.contracts.v3.tree import Apply, Node, Root, walk
from veriward.rewards.task import PLAIN_OPTIONS, Options
from veriward.rewards.verdict import Certainty, Cost, Method, Reason

EQUAL, UNEQUAL, UNDECIDED = Finding.EQUAL, Finding.UNEQUAL, Finding.UNDECIDED

MAX_PART_COMPARISONS = 256
"""Comparisons of parts in one answer: two sets of sixty roots in different order would need 3,600."""

TOTAL = frozenset({"sin", "cos", "abs", "floor", "ceil", "arctan", "exp", "max", "min", "sgn", "sinh", "cosh", "tanh"})
"""Functions with a value for every real."""

Rule = Callable[[Node, Node, "Comparer"], Comparison | None]
"""(candidate, reference, comparer) -> what was found, or None where the rule does not apply."""


@dataclass(slots=True)
class Comparer:
    """Applies the rules in order, and lets all parts of one answer share one budget."""

    rules: Sequence[Rule]
    limits: Limits = LIMITS
    answer_type: str = "auto"
    options: Options = PLAIN_OPTIONS
    work_left: int = field(default=LIMITS.max_work)
    comparisons_left: int = MAX_PART_COMPARISONS
    inside: int = 0
    """How many containers stand around what is compared now."""
    percent: str = "number"
    """How percent signs are read now: `share` or `number`."""

    def compare(self, candidate: Node, reference: Node) -> Comparison:
        """What the first rule that applies finds."""
        self.comparisons_left -= 1
        if self.comparisons_left < 0:
            return undecided(Reason.OVER_BUDGET)
        for rule in self.rules:
            found = rule(candidate, reference, self)
            if found is not None:
                name = rule.__name__
                if name == "scalars":  # its steps are the tiers
                    return found
                return replace(found, steps=((name.replace("_", " "), found.finding.value), *found.steps[:63]))
        return undecided(Reason.KINDS_NOT_COMPARED)

    def charge(self, comparisons: int) -> bool:
        """Whether a comparison that costs as much as so many is still within the budget; it is spent in either case."""
        self.comparisons_left -= comparisons
        return self.comparisons_left >= 0

    def scalars(self, candidate: Node, reference: Node) -> Comparison:
        """The engine's finding, paid for out of the shared budget."""
        found = algebra.compare(candidate, reference, limits=self.limits, budget=self.work_left)
        self.work_left -= min(self.work_left, found.cost.work)
        if found.finding is EQUAL and found.method is not Method.SPELLING and self._shrinks(candidate, reference):
            return replace(undecided(Reason.NARROWER_DOMAIN), cost=found.cost, steps=found.steps)
        return found

    def _shrinks(self, candidate: Node, reference: Node) -> bool:
        """`x + 0\\sqrt{-x}` agrees with `-|x|` where it has a value: roots and logarithms that only take values away.

        Where the reference has roots or logarithms itself, `\\ln x^2` and `2\\ln x`, the common domain is what counts.
        """
        if any(isinstance(part, Root | Apply) and not _is_total(part) for part in walk(reference)):
            return False
        return algebra.is_narrower(candidate, reference, limits=self.limits)

    def in_order(self, candidates: Sequence[Node], references: Sequence[Node]) -> Comparison:
        """Part by part; as many parts on both sides."""
        if len(candidates) != len(references):
            return unequal(Method.PART_COUNT, reason=Reason.DIFFERENT_PART_COUNT)
        self.inside += 1
        found = merged(self.compare(*pair) for pair in zip(candidates, references, strict=True))
        self.inside -= 1
        return found

    def in_any_order(self, candidates: Sequence[Node], references: Sequence[Node], *, repeats: bool) -> Comparison:
        """Each part equal to one on the other side; `repeats`: how often a part stands there counts.

        Equality is transitive, so taking the first equal partner loses nothing. A part that provably equals none of
        the other side settles the matter; otherwise a partner that was not settled leaves all unsettled.
        """
        self.inside += 1
        found = self._in_any_order(candidates, references, repeats=repeats)
        self.inside -= 1
        return found

    def _in_any_order(self, candidates: Sequence[Node], references: Sequence[Node], *, repeats: bool) -> Comparison:
        found: list[Comparison] = []
        free, surplus = list(references), 0
        for candidate in candidates:
            partner, tried = self._partner(candidate, free, swap=False)
            if partner is None and len(free) < len(references):
                partner, tried = self._partner(candidate, references, swap=False)
                surplus += partner is not None
            elif partner is not None and repeats:
                del free[partner]
            if partner is None:
                return _no_partner(tried, [*found, *tried])
            found.append(tried[partner])
        for reference in free:
            partner, tried = self._partner(reference, candidates, swap=True)
            if partner is None:
                return _no_partner(tried, [*found, *tried])
            found.append(tried[partner])
            surplus += repeats
        if surplus:
            return replace(undecided(Reason.DIFFERENT_PART_COUNT), cost=summed(found))
        return merged(found)

    def _partner(self, part: Node, others: Sequence[Node], *, swap: bool) -> tuple[int | None, list[Comparison]]:
        """Where the first equal part stands, and what was found up to there."""
        tried: list[Comparison] = []
        for at, other in enumerate(others):
            tried.append(self.compare(other, part) if swap else self.compare(part, other))
            if tried[-1].finding is EQUAL:
                return at, tried
        return None, tried


def _is_total(node: Root | Apply) -> bool:
    """Has a value for every real: an odd root, a sine, a modulus."""
    return node.degree % 2 == 1 if isinstance(node, Root) else node.function in TOTAL


def _no_partner(tried: Sequence[Comparison], paid: Iterable[Comparison]) -> Comparison:
    if all(one.finding is UNEQUAL for one in tried):
        least = _least_certain(tried) or Certainty.PROVED
        method = tried[-1].method if tried else Method.PART_COUNT
        reason = Reason.NOT_EQUAL if tried else Reason.DIFFERENT_PART_COUNT
        found = Comparison(finding=UNEQUAL, method=method, certainty=least, reason=reason)
    else:
        found = next(one for one in tried if one.finding is not UNEQUAL)
    return replace(found, cost=summed(paid), steps=tuple(step for one in tried for step in one.steps)[:64])


def merged(parts: Iterable[Comparison]) -> Comparison:
    """One finding about parts that must all be equal: one that differs settles it, then one that is not settled."""
    found = list(parts)
    cost, flags = summed(found), tuple(dict.fromkeys(flag for one in found for flag in one.flags))
    steps = tuple(step for one in found for step in one.steps)[:64]
    for wanted in (UNEQUAL, Finding.LEFT_UNDEFINED, Finding.RIGHT_UNDEFINED, UNDECIDED):
        for one in found:
            if one.finding is wanted:
                return replace(one, cost=cost, flags=flags, steps=steps)
    certainty = _least_certain(found) or Certainty.PROVED
    decisive = [one for one in found if one.certainty is certainty]
    method = decisive[-1].method if decisive else Method.PART_COUNT
    return Comparison(finding=EQUAL, method=method, certainty=certainty, flags=flags, cost=cost, steps=steps)


def summed(parts: Iterable[Comparison]) -> Cost:
    costs = [one.cost for one in parts]
    if not costs:
        return NO_COST
    return Cost(
        bits=max(cost.bits for cost in costs),
        terms=max(cost.terms for cost in costs),
        work=sum(cost.work for cost in costs),
    )


def _least_certain(parts: Iterable[Comparison]) -> Certainty | None:
    certainties = {one.certainty for one in parts}
    return next((one for one in (Certainty.PROBABLE, Certainty.PROVED) if one in certainties), None)


def equal(method: Method, certainty: Certainty = Certainty.PROVED, *, flags: tuple[str, ...] = ()) -> Comparison:
    return Comparison(finding=EQUAL, method=method, certainty=certainty, flags=flags)


def unequal(
    method: Method,
    certainty: Certainty = Certainty.PROVED,
    *,
    reason: Reason = Reason.NOT_EQUAL,
    flags: tuple[str, ...] = (),
) -> Comparison:
    return Comparison(finding=UNEQUAL, method=method, certainty=certainty, reason=reason, flags=flags)


def undecided(reason: Reason, *, flags: tuple[str, ...] = ()) -> Comparison:
    return Comparison(finding=UNDECIDED, method=None, certainty=None, reason=reason, flags=flags)


def flagged(found: Comparison, *flags: str) -> Comparison:
    """The same finding with remarks added."""
    return replace(found, flags=tuple(dict.fromkeys([*found.flags, *flags])))
