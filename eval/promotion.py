"""Which checkpoint to keep, decided by a rule that was written down before any candidate was evaluated.

'The higher number wins' promotes one of five equal checkpoints nearly always. Here a candidate replaces the base only
if a paired test at a level shared out among all announced candidates, a minimum gain and every guard metric allow it;
keeping the base is a result like any other, and 'undecided' is said where the problems are too few to tell.

`decide` is the rule as a pure function: the command and the simulation (`scripts.simulate_promotion`) call the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from veriward.eval.comparison import Comparison, compare_runs, settings_between
from veriward.eval.metrics import Summary, as_row
from veriward.eval.promotion_rule import Guards, Rule, Stamp
from veriward.eval.rates import Interval, mcnemar
from veriward.eval.runs import Run
from veriward.tool_agent.errors import ConfigError

Choice = Literal["promote", "keep", "undecided"]
HOW_ASKED = ("engine", "dtype", "device", "batch_size", "base_url", "extra_body")
"""Settings of a generator that say how a model is asked; the others say which model it is, and may differ."""
STEP = re.compile(r"\d+\Z")
TOLERANCE = 1e-9
"""Shares are fractions of a few hundred; a limit that is met exactly is met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What the guards look at, of one run."""

    format_valid: float
    unsupported: float
    truncated: float
    mean_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One checkpoint beside the base; in a rule, too, candidates are checkpoints and not answers."""

    name: str
    gain: float
    """Difference of the accuracies, candidate less base."""
    interval: Interval | None
    p_value: float | None
    measures: Measures
    smallest_difference: float | None = None
    only_base: int | None = None
    """Problems that only the base solves; None for several samples a problem."""
    only_candidate: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One candidate under the rule."""

    candidate: Candidate
    allowed: bool
    """It may be promoted."""
    reasons: tuple[str, ...]
    """Why not; empty where it is allowed."""
    settled: bool
    """It is no better than the rule asks for, as far as these problems can tell; else they are too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    decision: Choice
    candidate: str | None
    """The one that is promoted."""
    reasons: tuple[str, ...]
    judged: tuple[Judged, ...]


def decide(rule: Rule, base: Measures, candidates: Sequence[Candidate]) -> Decision:
    """The rule applied; candidates come in the order of their steps, the earliest first."""
    judged = tuple(judge(rule, base, candidate) for candidate in candidates)
    allowed = [one for one in judged if one.allowed]
    if allowed:
        best = max(one.candidate.gain for one in allowed)
        equal = [one.candidate for one in allowed if one.candidate.gain >= best - rule.tie - TOLERANCE]
        winner = equal[0]
        reasons = [
            f"{winner.name}: {points(winner.gain)} points, p = {winner.p_value:.2g} at a level of {rule.level:.2g}, "
            "and no guard is broken"
        ]
        if len(equal) > 1:
            reasons.append(f"{len(equal)} candidates are within {points(rule.tie)} points; the earliest step is taken")
        return Decision(decision="promote", candidate=winner.name, reasons=tuple(reasons), judged=judged)
    reasons = [f"{one.candidate.name}: {reason}" for one in judged for reason in one.reasons]
    open_ones = [one.candidate for one in judged if not one.settled]
    if open_ones and rule.no_evidence == "undecided":
        return Decision(decision="undecided", candidate=None, reasons=tuple(reasons), judged=judged)
    if open_ones:
        reasons.append("where there is no evidence, the rule keeps the base")
    return Decision(decision="keep", candidate=None, reasons=tuple(reasons), judged=judged)


def judge(rule: Rule, base: Measures, candidate: Candidate) -> Judged:
    """A candidate that loses to the base, breaks a guard or surely gains too little is settled; any other is open."""
    broken = guards_broken(rule.guards, base, candidate.measures)
    too_little = candidate.gain < rule.minimum_gain - TOLERANCE
    by_chance = candidate.p_value is None or candidate.p_value > rule.level
    reasons = list(broken)
    if too_little:
        reasons.append(f"a gain of {points(candidate.gain)} points, wanted at least {points(rule.minimum_gain)}")
    if by_chance and candidate.p_value is None:
        reasons.append("the test is undefined on these problems")
    elif by_chance:
        reasons.append(
            f"p = {candidate.p_value:.2g}, wanted at most {rule.level:.2g} ({rule.alpha:g} for {rule.candidates} "
            f"{'candidate' if rule.candidates == 1 else 'candidates'})"
        )
    surely_little = candidate.interval is not None and candidate.interval[1] < max(rule.minimum_gain, TOLERANCE)
    surely_worse = not by_chance and candidate.gain <= 0
    return Judged(
        candidate=candidate,
        allowed=not reasons and candidate.gain > 0,
        reasons=tuple(reasons) or (() if candidate.gain > 0 else ("no better than the base",)),
        settled=bool(broken) or surely_little or surely_worse,
    )


def guards_broken(guards: Guards, base: Measures, candidate: Measures) -> list[str]:
    """Each guard says how much worse a candidate may be than the base."""
    found = []
    losses = {
        "format_valid": base.format_valid - candidate.format_valid,
        "unsupported": candidate.unsupported - base.unsupported,
        "truncated": candidate.truncated - base.truncated,
    }
    for name, loss in losses.items():
        limit = getattr(guards, name)
        if limit is not None and loss > limit + TOLERANCE:
            found.append(f"guard {name}: {points(loss)} points worse than the base, allowed {points(limit)}")
    if guards.mean_tokens is not None and base.mean_tokens:
        growth = candidate.mean_tokens / base.mean_tokens - 1
        if growth > guards.mean_tokens + TOLERANCE:
            found.append(f"guard mean_tokens: {growth:.0%} longer than the base, allowed {guards.mean_tokens:.0%}")
    return found


def points(share: float) -> str:
    return f"{100 * share:+.1f}" if share else "0.0"


def paired(
    name: str, only_base: int, only_candidate: int, problems: int, measures: Measures, *, chance: float | None = None
) -> Candidate:
    """A candidate from its counts alone, as the simulation has them: no interval.

    chance   the p-value, where it is known already
    """
    return Candidate(
        name=name,
        gain=(only_candidate - only_base) / problems,
        interval=None,
        p_value=mcnemar(only_base, only_candidate) if chance is None else chance,
        measures=measures,
        only_base=only_base,
        only_candidate=only_candidate,
    )


# ---------------------------------------------------------------------------------------------------- stored runs


def decide_runs(rule: Rule, base: Run, candidates: Sequence[Run]) -> Decision:
    """ConfigError for runs that the rule is not about."""
    for run in (base, *candidates):
        refuse_unfit(rule, run)
    refuse_count(rule, len(candidates))
    seen = {base.weights: base.name}
    for run in candidates:
        other = how_asked(base, run)
        if other:
            raise ConfigError(f"{run.path}: was asked otherwise than the base: {'; '.join(other)}")
        same = seen.setdefault(run.weights, run.name)
        if same != run.name:
            raise ConfigError(f"{run.path}: has the weights of {same}; name every checkpoint once")
    comparisons = [compare_runs(base, run, cluster=rule.cluster) for run in candidates]
    found = [candidate_of(comparison) for comparison in comparisons]
    return decide(rule, measures_of(comparisons[0].first), found)


def by_step(runs: Sequence[Run]) -> list[Run]:
    """The earliest step first, where every run or model ends with its step; else as they are given."""
    steps = [STEP.search(run.model) or STEP.search(run.name) for run in runs]
    if not all(steps):
        return list(runs)
    return [run for _, run in sorted(zip(steps, runs, strict=True), key=lambda pair: int(pair[0][0]) if pair[0] else 0)]


def refuse_count(rule: Rule, candidates: int) -> None:
    if not 1 <= candidates <= rule.candidates:
        raise ConfigError(
            f"{rule.path}: {candidates} candidates, and the rule announces {rule.candidates}; the level is shared out "
            "among those announced: a rule for more must be written before they are evaluated"
        )


def refuse_unfit(rule: Rule, run: Run) -> None:
    problems = run.settings["problems"]
    if run.agent:
        raise ConfigError(f"{run.path}: is a run of the tool agent; a checkpoint is chosen by runs of `veriward eval`")
    if run.contract.name != rule.contract:
        raise ConfigError(f"{run.path}: graded under {run.contract}; the rule is about contract {rule.contract}")
    if not str(problems["sha256"]).startswith(rule.set_sha256):
        raise ConfigError(
            f"{run.path}: asked {problems['name']} with sha256 {problems['sha256'][:12]}…; the rule is about "
            f"{rule.set_sha256[:12]}…"
        )
    if len(run.set.asked) != rule.n:
        raise ConfigError(f"{run.path}: asks {len(run.set.asked)} problems; the rule says n: {rule.n}")
    if run.missing:
        raise ConfigError(f"{run.path}: {len(run.missing)} responses are missing; go on with the run first")


def how_asked(base: Run, run: Run) -> list[str]:
    """In which settings they differ that have nothing to do with the model itself."""
    allowed = tuple(f"generator.{name} " for name in HOW_ASKED)
    return [
        line for line in settings_between(base, run) if not line.startswith("generator.") or line.startswith(allowed)
    ]


def candidate_of(comparison: Comparison) -> Candidate:
    pairs = comparison.pairs
    return Candidate(
        name=comparison.second.run,
        gain=comparison.difference,
        interval=comparison.interval,
        p_value=comparison.p_value,
        measures=measures_of(comparison.second),
        smallest_difference=comparison.smallest_difference,
        only_base=None if pairs is None else pairs.only_first,
        only_candidate=None if pairs is None else pairs.only_second,
    )


def measures_of(summary: Summary) -> Measures:
    total = summary.responses
    return Measures(
        format_valid=summary.format_valid.value or 0.0,
        unsupported=sum(summary.bounds.open.values()) / total,
        truncated=summary.truncated.value or 0.0,
        mean_tokens=summary.lengths["mean"],
    )


# ------------------------------------------------------------------------------------------------------- the record


def record(
    rule: Rule, stamp: Stamp, decision: Decision, base: Run, candidates: Sequence[Run], report: Run | None
) -> dict[str, Any]:
    """decision.json: everything by which the decision can be made again, and how far it can be trusted."""
    late = stamp.complaints(rule, candidates)
    return {
        "decision": decision.decision,
        "candidate": decision.candidate,
        "reasons": list(decision.reasons),
        "rule": rule.to_row(),
        "rule_sha256": rule.sha256,
        "stamped_at": stamp.time,
        "changed": bool(late),
        "complaints": late,
        "set_sha256": base.settings["problems"]["sha256"],
        "set": base.problem_set,
        "contract": {"name": base.contract.name, "fingerprint": base.contract.fingerprint},
        "base": run_row(base),
        "runs": [run_row(run) for run in candidates],
        "report": None if report is None else {**run_row(report), "set_sha256": report.settings["problems"]["sha256"]},
        "candidates": [as_row(one) for one in decision.judged],
    }


def run_row(run: Run) -> Mapping[str, str]:
    return {"name": run.name, "model": run.model, "weights": run.weights, "fingerprint": run.fingerprint}
