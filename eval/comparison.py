"""Two runs on the same problems, paired: what changed, by how much, and whether that could be chance.

Both runs answered the same problems under the same contract, else there is nothing to compare, and it is refused. The
comparison is over the problems whose samples are all there in both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import Any

from veriward.eval.metrics import Summary, as_row, clusters_of, summarise_run
from veriward.eval.rates import (
    FEWEST_CLUSTERS,
    Interval,
    holm,
    mcnemar,
    mean,
    number_of_each,
    smallest_difference,
    student,
)
from veriward.eval.runs import Row, Run
from veriward.rewards import Outcome
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.files import differences

DRAWS = 10_000
"""Of the bootstrap."""
MCNEMAR = "exact McNemar"
BOOTSTRAP = "paired bootstrap over {}"
SAME_TOKENS = 0.1
"""Runs whose tokens a response differ by less than this share are of equal compute, if their calls are."""
NOT_COMPARED = ("problems", "contract", "versions", "parent")
"""Settings that are compared by themselves, or that say nothing of how a model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Problems by which run solves them, for one response a problem."""

    both: int
    only_first: int
    only_second: int
    neither: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One problem on which the two runs differ."""

    problem: str
    first: tuple[str, ...]
    """Outcomes of the first run's samples."""
    second: tuple[str, ...]
    gain: float
    """Share of correct samples, second less first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    first: Summary
    second: Summary
    problems: int
    """Whose samples are all there in both runs."""
    pairs: Pairs | None
    """None for several samples a problem."""
    difference: float
    """Of the accuracies on these problems, second less first."""
    interval: Interval | None
    """95 % interval of the difference."""
    p_value: float | None
    """Two-sided; None where `test` says why."""
    test: str
    adjusted_p: float | None = None
    """After Holm, where several runs are compared with one."""
    smallest_difference: float | None
    """That this comparison would find 4 times in 5, at the share of problems on which these two runs differ."""
    changes: tuple[Change, ...]
    compute_equal: bool
    compute: tuple[str, ...]
    """Calls and tokens of the two, a line each."""
    settings: tuple[str, ...]
    """What differs between the two runs beside the numbers, a line each."""

    def to_row(self) -> dict[str, Any]:
        row: dict[str, Any] = as_row(self)
        return {**row, "first": self.first.to_row(), "second": self.second.to_row()}


def compare_runs(first: Run, second: Run, *, cluster: str | None = None, seed: int = 0) -> Comparison:
    """
    cluster   as for `summarise_run`: problems that are alike are drawn together
    seed      of the bootstrap
    raises    ConfigError for runs of different contracts, problem sets or numbers of samples, and where no problem is
              complete in both
    """
    refuse_unlike(first, second)
    earlier, later = outcomes_of(first), outcomes_of(second)
    shared = [problem.id for problem in first.set.asked if problem.id in earlier and problem.id in later]
    if not shared:
        raise ConfigError(f"{first.path} and {second.path}: no problem is complete in both; go on with them first")
    before, after = share_of(earlier, shared), share_of(later, shared)
    gains = [end - start for start, end in zip(before, after, strict=True)]
    pairs = pairs_of(before, after) if first.samples == 1 else None
    clusters, name = clusters_of(first, cluster)
    named = [clusters[problem] for problem in shared]
    interval, chance = bootstrap(gains, named, seed)
    p_value, test = tested(pairs, chance, named, gains, name)
    lines, equal = compute_of(first, second)
    return Comparison(
        first=summarise_run(first, cluster=cluster),
        second=summarise_run(second, cluster=cluster),
        problems=len(shared),
        pairs=pairs,
        difference=mean(gains),
        interval=interval,
        p_value=p_value,
        test=test,
        smallest_difference=smallest_difference(len(shared), sum(map(bool, gains)) / len(gains)),
        changes=tuple(
            Change(problem=problem, first=earlier[problem], second=later[problem], gain=gain)
            for problem, gain in zip(shared, gains, strict=True)
            if sorted(earlier[problem]) != sorted(later[problem])
        ),
        compute_equal=equal,
        compute=lines,
        settings=tuple(settings_between(first, second)),
    )


def compare_with(first: Run, others: Sequence[Run], *, cluster: str | None = None, seed: int = 0) -> list[Comparison]:
    """Each of the others with the first, the p-values adjusted for their number by Holm's method."""
    found = [compare_runs(first, other, cluster=cluster, seed=seed) for other in others]
    known = [comparison.p_value for comparison in found if comparison.p_value is not None]
    adjusted = iter(holm(known))
    return [
        comparison if comparison.p_value is None else replace(comparison, adjusted_p=next(adjusted))
        for comparison in found
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedComparison:
    """A recipe trained from several seeds, beside one run: a gain of one seed may be that seed's luck."""

    base: str
    seeds: tuple[str, ...]
    problems: int
    differences: tuple[float, ...]
    """Of each seed's accuracy, less the base's."""
    mean: float
    spread: float
    """Standard deviation of the differences between the seeds."""
    over_seeds: Interval | None
    """Student's 95 % interval of the mean over seeds: what another seed would add. None under 3 seeds."""
    over_problems: Interval | None
    """95 % bootstrap interval of the mean over problems (or clusters), for these seeds."""

    def to_row(self) -> dict[str, Any]:
        row: dict[str, Any] = as_row(self)
        return row


def compare_seeds(base: Run, seeds: Sequence[Run], *, cluster: str | None = None, seed: int = 0) -> SeedComparison:
    """ConfigError as for `compare_runs`, and for fewer than two seeds."""
    if len(seeds) < 2:
        raise ConfigError(f"{base.path}: {len(seeds)} training seed to compare with it; wanted at least 2")
    for run in seeds:
        refuse_unlike(base, run)
    found = [outcomes_of(run) for run in (base, *seeds)]
    shared = [problem.id for problem in base.set.asked if all(problem.id in one for one in found)]
    if not shared:
        raise ConfigError(f"{base.path} and its seeds: no problem is complete in all of them; go on with them first")
    before, *after = (share_of(one, shared) for one in found)
    gains = [[end - start for start, end in zip(before, one, strict=True)] for one in after]
    differences = [mean(one) for one in gains]
    clusters, _ = clusters_of(base, cluster)
    interval, _ = bootstrap([mean(one) for one in zip(*gains, strict=True)], [clusters[one] for one in shared], seed)
    return SeedComparison(
        base=base.name,
        seeds=tuple(run.name for run in seeds),
        problems=len(shared),
        differences=tuple(differences),
        mean=mean(differences),
        spread=stdev(differences),
        over_seeds=student(differences),
        over_problems=interval,
    )


def refuse_unlike(first: Run, second: Run) -> None:
    both = f"{first.path} and {second.path}"
    if first.contract != second.contract:
        raise ConfigError(
            f"{both}: graded under different contracts, {first.contract} and {second.contract}; their numbers are not "
            "comparable: verify one again with `veriward reverify`"
        )
    one, other = first.settings["problems"], second.settings["problems"]
    if one["sha256"] != other["sha256"]:
        raise ConfigError(
            f"{both}: asked different problems, {one['name']} (sha256 {one['sha256'][:12]}…) and {other['name']} "
            f"(sha256 {other['sha256'][:12]}…); compare runs of one set"
        )
    if first.samples != second.samples:
        raise ConfigError(
            f"{both}: {first.samples} and {second.samples} samples a problem; compare runs with the same number"
        )


def outcomes_of(run: Run) -> dict[str, tuple[str, ...]]:
    """Of the problems whose samples are all there."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in run.rows:
        found[row["id"]].append(str(row["outcome"]))
    return {problem: tuple(outcomes) for problem, outcomes in found.items() if len(outcomes) == run.samples}


def share_of(outcomes: Mapping[str, Sequence[str]], problems: Sequence[str]) -> list[float]:
    return [
        sum(outcome == Outcome.CORRECT for outcome in outcomes[problem]) / len(outcomes[problem])
        for problem in problems
    ]


def pairs_of(before: Sequence[float], after: Sequence[float]) -> Pairs:
    solved = [(bool(start), bool(end)) for start, end in zip(before, after, strict=True)]
    return Pairs(
        both=solved.count((True, True)),
        only_first=solved.count((True, False)),
        only_second=solved.count((False, True)),
        neither=solved.count((False, False)),
    )


def tested(
    pairs: Pairs | None, chance: float | None, named: Sequence[str], gains: Sequence[float], by: str
) -> tuple[float | None, str]:
    """The p-value and the name of its test: McNemar's where every problem stands for itself, else the bootstrap."""
    count = len(set(named))
    if pairs is not None and count == len(named):
        return mcnemar(pairs.only_first, pairs.only_second), MCNEMAR
    if count < FEWEST_CLUSTERS:
        return None, f"undefined: {count} clusters by {by}, wanted at least {FEWEST_CLUSTERS}"
    if not any(gains):
        return 1.0, f"{BOOTSTRAP.format('clusters by ' + by)}: no problem changed"
    return chance, BOOTSTRAP.format(f"clusters by {by}")


def bootstrap(gains: Sequence[float], clusters: Sequence[str], seed: int) -> tuple[Interval | None, float | None]:
    """Percentile interval of the mean gain, and the two-sided p-value of no gain, with whole clusters drawn anew.

    None under FEWEST_CLUSTERS clusters, and where all gains are equal: no spread is not certainty.
    """
    codes = number_of_each(clusters)
    count = max(codes, default=-1) + 1
    if count < FEWEST_CLUSTERS or len(set(gains)) == 1:
        return None, None
    need("scipy", extra="eval", purpose="a comparison")
    import numpy
    from scipy.stats import bootstrap as resampled

    sums = numpy.bincount(codes, weights=gains)
    sizes = numpy.bincount(codes).astype(float)
    found = resampled(
        (sums, sizes),
        lambda gained, size, axis: gained.sum(axis=axis) / size.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=DRAWS,
        method="percentile",
        batch=max(1, 5_000_000 // count),
        rng=numpy.random.default_rng(seed),
    )
    drawn = found.bootstrap_distribution
    tail = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    low, high = found.confidence_interval
    return (float(low), float(high)), min(1.0, 2 * (tail + 1) / (DRAWS + 1))


def compute_of(first: Run, second: Run) -> tuple[tuple[str, ...], bool]:
    """What a response took in each run, and whether that is the same."""
    calls, tokens = ([a_response(run, name) for run in (first, second)] for name in ("model_calls", "all_tokens"))
    limits = [limit_of(run) for run in (first, second)]
    lines = (
        f"model calls a response: {calls[0]:.2f} and {calls[1]:.2f}",
        f"tokens a response: {tokens[0]:,.1f} and {tokens[1]:,.1f}",
        f"limit of tokens an answer: {limits[0]} and {limits[1]}",
    )
    close = abs(tokens[0] - tokens[1]) <= SAME_TOKENS * max(tokens)
    return lines, close and round(calls[0], 2) == round(calls[1], 2) and limits[0] == limits[1]


def a_response(run: Run, name: str) -> float:
    rows: Sequence[Row] = run.rows
    return float(sum(row[name] for row in rows) / len(rows))


def limit_of(run: Run) -> int:
    return int(run.settings["agent"]["answer_tokens"] if run.agent else run.settings["generation"]["max_new_tokens"])


def settings_between(first: Run, second: Run) -> list[str]:
    left, right = (
        {name: value for name, value in run.settings.items() if name not in NOT_COMPARED} for run in (first, second)
    )
    return differences(left, right)
