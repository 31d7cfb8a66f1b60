"""Rates with their denominators and intervals, pass@k, and the summary of a run.

A rate over nothing is undefined (None), never 0. Intervals come from scipy, loaded when one is asked for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veriward.rewards import Outcome
from veriward.tool_agent.errors import need

FEWEST_CLUSTERS = 10
"""With fewer problems than this, the spread between them says too little for an interval."""

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
        if not self.total:
            return None
        need("scipy", extra="eval", purpose="an interval")
        from scipy.stats import binomtest

        found = binomtest(self.successes, self.total).proportion_ci(confidence_level=confidence, method="wilson")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        return f"{self.successes}/{self.total}" + ("" if self.value is None else f" = {self.value:.1%}")

    def to_row(self) -> dict[str, object]:
        return {"successes": self.successes, "total": self.total, "value": self.value}


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
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not samples:
        raise ValueError("pass@k of no problems is undefined")
    for n, c in zip(samples, correct, strict=True):
        if not 0 <= c <= n:
            raise ValueError(f"wanted 0 <= correct <= samples, got {c} of {n}")
        if k > n:
            raise ValueError(f"pass@{k} is undefined for a problem with {n} samples")
    chances = [1 - math.comb(n - c, k) / math.comb(n, k) for n, c in zip(samples, correct, strict=True)]
    return math.fsum(chances) / len(chances)


def clustered_interval(rates: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Student's interval of the mean of one rate per problem, within [0, 1].

    For several samples a problem: these are not independent, so the problem is the unit. None under
    FEWEST_CLUSTERS problems, and where all rates are equal, since no spread is not certainty.
    """
    if len(rates) < FEWEST_CLUSTERS or len(set(rates)) == 1:
        return None
    need("scipy", extra="eval", purpose="an interval")
    from scipy.stats import ttest_1samp

    found = ttest_1samp(rates, 0.0).confidence_interval(confidence_level=confidence)
    return max(0.0, float(found.low)), min(1.0, float(found.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers of one finished run, under one contract."""

    contract: str
    problems: int
    """Problems asked; unreadable references are not among them."""
    samples: int
    """Responses a problem."""
    accuracy: Rate
    """Correct responses among all whose reference could be read. Unsupported, undecided and timed-out ones count as
    not correct; `outcomes` says how many there are."""
    interval: Interval | None
    """95 % interval of the accuracy: Wilson's for one sample a problem, else with the problem as the unit;
    None where it is undefined."""
    outcomes: Mapping[str, int]
    """Responses by outcome, every outcome named."""
    format_valid: Rate
    truncated: Rate
    tokens: int
    """Written by the model in all responses."""
    mean_tokens: float | None
    pass_at_k: Mapping[int, float]
    """For k = 1, 2, 4, … and the number of samples; empty for one sample a problem."""
    unreadable_references: Mapping[str, str]
    """Problem id to the reason its reference cannot be read under the contract; left out of every number above."""

    def to_row(self) -> dict[str, object]:
        return {
            "contract": self.contract,
            "problems": self.problems,
            "samples": self.samples,
            "accuracy": {**self.accuracy.to_row(), "interval": None if self.interval is None else list(self.interval)},
            "outcomes": dict(self.outcomes),
            "format_valid": self.format_valid.to_row(),
            "truncated": self.truncated.to_row(),
            "tokens": self.tokens,
            "mean_tokens": self.mean_tokens,
            "pass_at_k": {str(k): value for k, value in self.pass_at_k.items()},
            "unreadable_references": dict(self.unreadable_references),
        }


def summarise(
    rows: Sequence[Mapping[str, Any]], *, contract: str, samples: int, unreadable: Mapping[str, str]
) -> Summary:
    """The summary of the rows that `eval.loop` writes: `samples` of them for every problem."""
    outcomes = Counter(str(row["outcome"]) for row in rows)
    correct: Counter[str] = Counter()
    for row in rows:
        correct[str(row["id"])] += row["outcome"] == Outcome.CORRECT
    accuracy = Rate(successes=outcomes[Outcome.CORRECT], total=len(rows))
    counts = list(correct.values())
    tokens = sum(row["tokens"] for row in rows)
    return Summary(
        contract=contract,
        problems=len(counts),
        samples=samples,
        accuracy=accuracy,
        interval=accuracy.interval() if samples == 1 else clustered_interval([count / samples for count in counts]),
        outcomes={outcome.value: outcomes[outcome] for outcome in Outcome},
        format_valid=Rate(successes=sum(row["format_valid"] is True for row in rows), total=len(rows)),
        truncated=Rate(successes=sum(row["truncated"] is True for row in rows), total=len(rows)),
        tokens=tokens,
        mean_tokens=tokens / len(rows) if rows else None,
        pass_at_k={k: pass_at_k([samples] * len(counts), counts, k) for k in ks(samples)} if counts else {},
        unreadable_references=dict(unreadable),
    )


def ks(samples: int) -> list[int]:
    """1, 2, 4, … up to the number of samples, itself included; none for a single sample."""
    powers = [2**power for power in range(samples.bit_length()) if 2**power < samples]
    return [*powers, samples] if samples > 1 else []
