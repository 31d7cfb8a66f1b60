"""Rates with their denominators and intervals, pass@k, and tests: the arithmetic under every number of a run.

A rate over nothing is undefined (None), never 0. Intervals and tests come from scipy and statsmodels, loaded when one
is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from veriward.tool_agent.errors import need

FEWEST_CLUSTERS = 10
"""With fewer, the spread between them says too little for an interval."""
LEVEL = 0.05
POWER = 0.8
USUAL_DISCORDANCE = 0.2
"""Share of problems on which two checkpoints of one training differ, where nothing is measured yet."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share that never leaves its denominator."""

    successes: int
    total: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.total:
            raise ValueError(f"wanted 0 <= successes <= total, got {self.successes} of {self.total}")

    @property
    def value(self) -> float | None:
        """None for 0 of 0."""
        return self.successes / self.total if self.total else None

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Wilson's interval for independent trials; None for 0 of 0."""
        return self._interval("wilson", confidence)

    def upper(self, confidence: float = 0.95) -> float | None:
        """One-sided upper bound of Clopper and Pearson, near 3 / n where nothing was found: for rare faults."""
        found = self._interval("exact", 2 * confidence - 1)
        return None if found is None else found[1]

    def _interval(self, method: str, confidence: float) -> Interval | None:
        if not self.total:
            return None
        need("scipy", extra="eval", purpose="an interval")
        from scipy.stats import binomtest

        found = binomtest(self.successes, self.total).proportion_ci(confidence_level=confidence, method=method)
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        return f"{self.successes}/{self.total}" + ("" if self.value is None else f" = {self.value:.1%}")

    def to_row(self) -> dict[str, object]:
        return {"successes": self.successes, "total": self.total, "value": self.value}


# ----------------------------------------------------------------------------------------------------- k samples


def pass_at_k(samples: Sequence[int], correct: Sequence[int], k: int) -> float:
    """Chance that at least one of k samples is correct, averaged over problems.

    Unbiased: 1 - C(n - c, k) / C(n, k) for each problem, not 1 - (1 - c/n)**k, which is
    too low for small n.

    samples   (P,) samples drawn per problem, each >= k
    correct   (P,) how many of them were correct, 0 <= correct <= samples
    returns   a fraction in [0, 1]
    raises    ValueError if a problem has fewer than k samples (pass@k is then undefined, not 1), or if P = 0

    Method: "Evaluating Large Language Models Trained on Code", arXiv 2107.03374, eq. 1.
    """
    check_draws(samples, correct, k)
    return mean([1 - math.comb(n - c, k) / math.comb(n, k) for n, c in zip(samples, correct, strict=True)])


def pass_hat_k(samples: Sequence[int], correct: Sequence[int], k: int) -> float:
    """Chance that all of k samples are correct (pass^k), averaged over problems; arguments as for `pass_at_k`.

    Unbiased: C(c, k) / C(n, k) for each problem. Method: "τ-bench", arXiv 2406.12045, section 3.
    """
    check_draws(samples, correct, k)
    return mean([math.comb(c, k) / math.comb(n, k) for n, c in zip(samples, correct, strict=True)])


def check_draws(samples: Sequence[int], correct: Sequence[int], k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not samples:
        raise ValueError("a chance over no problems is undefined")
    for n, c in zip(samples, correct, strict=True):
        if not 0 <= c <= n:
            raise ValueError(f"wanted 0 <= correct <= samples, got {c} of {n}")
        if k > n:
            raise ValueError(f"k = {k} is undefined for a problem with {n} samples")


def ks(samples: int) -> list[int]:
    """1, 2, 4, … up to the number of samples, itself included; none for a single sample."""
    powers = [2**power for power in range(samples.bit_length()) if 2**power < samples]
    return [*powers, samples] if samples > 1 else []


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# ------------------------------------------------------------------------------------------- intervals and tests


def clustered_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Interval of a mean of shares within [0, 1], whose errors are alike inside a cluster.

    Several samples of a problem, or problems made from one template, are not independent. Student's t with the
    standard error of the clusters' sums, corrected for their number. None under FEWEST_CLUSTERS clusters, and where
    all values are equal, since no spread is not certainty.
    """
    codes = number_of_each(clusters)
    if max(codes, default=-1) + 1 < FEWEST_CLUSTERS or len(set(values)) == 1:
        return None
    need("statsmodels", extra="eval", purpose="a clustered interval")
    import numpy
    from statsmodels.regression.linear_model import OLS

    fit = OLS(numpy.asarray(values, dtype=float), numpy.ones((len(values), 1))).fit(
        cov_type="cluster", cov_kwds={"groups": numpy.asarray(codes)}, use_t=True
    )
    low, high = fit.conf_int(alpha=1 - confidence)[0]
    return max(0.0, float(low)), min(1.0, float(high))


def student(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Interval of the mean of a few independent values; None under 3, and where all are equal."""
    if len(values) < 3 or len(set(values)) == 1:
        return None
    need("scipy", extra="eval", purpose="an interval over seeds")
    from scipy.stats import ttest_1samp

    found = ttest_1samp(values, 0.0).confidence_interval(confidence_level=confidence)
    return float(found.low), float(found.high)


def number_of_each(clusters: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value of two runs on the same problems, from the problems that only one of them solves."""
    discordant = only_first + only_second
    if not discordant:
        return 1.0
    need("scipy", extra="eval", purpose="McNemar's test")
    from scipy.stats import binomtest

    return float(binomtest(only_first, discordant).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for the number of comparisons, in the order given."""
    if not p_values:
        return []
    need("statsmodels", extra="eval", purpose="several comparisons")
    from statsmodels.stats.multitest import multipletests

    return [float(value) for value in multipletests(p_values, method="holm")[1]]


def smallest_difference(
    problems: int, discordance: float = USUAL_DISCORDANCE, *, level: float = LEVEL, power: float = POWER
) -> float | None:
    """The true difference of two runs that a paired test on so many problems finds with the given power.

    discordance   share of problems on which the two runs differ; the difference cannot exceed it
    returns       a fraction, or None where so few problems cannot show even the largest possible one

    Method: Miettinen's approximation for McNemar's test (Biometrics 24, 1968), solved for the difference.
    """
    if problems < 1 or not 0 < discordance <= 1:
        return None
    need("scipy", extra="eval", purpose="the smallest detectable difference")
    from scipy.optimize import brentq
    from scipy.stats import norm

    for_level, for_power = float(norm.isf(level / 2)), float(norm.isf(1 - power))

    def lacking(difference: float) -> float:
        spread = math.sqrt(max(0.0, discordance - difference**2))
        return for_level * math.sqrt(discordance) + for_power * spread - difference * math.sqrt(problems)

    return float(brentq(lacking, 0.0, discordance)) if lacking(discordance) < 0 else None
