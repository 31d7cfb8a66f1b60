"""The numbers of one run, made of its stored states and nothing else.

No accuracy stands alone: it has its denominator, an interval, and the bounds between which it lies whatever the open
responses are worth, and beside it the measured error rates of the verifier that made it.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from veriward.eval.rates import (
    FEWEST_CLUSTERS,
    Interval,
    Rate,
    clustered_interval,
    ks,
    pass_at_k,
    pass_hat_k,
    smallest_difference,
)
from veriward.eval.runs import ContractName, Row, Run
from veriward.eval.voting import majority
from veriward.rewards import Outcome
from veriward.tool_agent.errors import ConfigError

OPEN = (Outcome.UNSUPPORTED, Outcome.UNDECIDED, Outcome.TIMEOUT, Outcome.CRASHED)
"""Outcomes that say nothing of the answer; so does a response that is missing."""
MISSING = "missing"
TEMPLATE = "template"
"""Column that names what a problem was made from; where it is there, problems of one template are one cluster."""
MOST_PARTS = 30
"""A column with more values than this is no breakdown."""
VERIFIER_ERRORS = Path(__file__).with_name("verifier_errors.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The accuracy over everything that was to be asked, if all that is open were wrong, and if it were right."""

    lowest: Rate
    highest: Rate
    open: Mapping[str, int]
    """By outcome, 'missing' among them; only what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The accuracy on the problems that have one value in one column."""

    column: str
    value: str
    problems: int
    accuracy: Rate
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the responses took, up to the answer that is counted."""

    problems: int
    """With at least one response."""
    correct: int
    """Correct responses."""
    model_calls: int
    tokens: int
    tool_seconds: float
    seconds: float
    """Of generation and tools; what a batch took is shared out among its responses."""

    def per_problem(self) -> dict[str, float] | None:
        return self._per(self.problems)

    def per_correct(self) -> dict[str, float] | None:
        return self._per(self.correct)

    def _per(self, count: int) -> dict[str, float] | None:
        if not count:
            return None
        spent = ("model_calls", "tokens", "tool_seconds", "seconds")
        return {name: round(getattr(self, name) / count, 4) for name in spent}

    def to_row(self) -> dict[str, Any]:
        return {**as_row(self), "per_problem": self.per_problem(), "per_correct": self.per_correct()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRate:
    """How often the verifier of a contract was wrong on labelled cases."""

    kind: str
    """'false_accept': called correct what is not; 'false_reject': called wrong what is correct."""
    rate: Rate
    upper: float
    """One-sided 95 % upper bound."""
    cases: str
    """Which cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers of one run under one contract; `to_row` has the same names."""

    run: str
    model: str
    fingerprint: str
    contract: ContractName
    answer: str
    """'final', or 'first' for what stood before a correction."""
    problems: int
    """Problems that were to be asked; unreadable references are not among them."""
    samples: int
    """Responses a problem."""
    responses: int
    missing: int
    accuracy: Rate
    """Correct responses among those that are there. What is open counts as not correct here; see `bounds`."""
    interval: Interval | None
    """95 % interval of the accuracy."""
    interval_method: str
    """How it was made, or why it is undefined."""
    bounds: Bounds
    outcomes: Mapping[str, int]
    """Responses by outcome, every outcome named."""
    format_valid: Rate
    truncated: Rate
    tokens: int
    """Written by the model in all responses."""
    lengths: Mapping[str, float]
    """Tokens a response: mean, median, p90, longest."""
    pass_at_k: Mapping[int, float]
    """For k = 1, 2, 4, … and the number of samples, over problems whose samples are all there; empty for one sample."""
    pass_hat_k: Mapping[int, float]
    maj_at_k: Mapping[int, float]
    breakdown: tuple[Part, ...]
    cost: Cost
    smallest_difference: float | None
    """True difference to another run on these problems that a paired test would find 4 times in 5, if the two differ
    on a fifth of the problems; None where no difference can be found with so few."""
    unreadable_references: Mapping[str, str]
    """Problem id to the reason its reference cannot be read under the contract; left out of every number above."""
    verifier: tuple[ErrorRate, ...]
    """Empty where this version of the contract was not measured."""

    def to_row(self) -> dict[str, Any]:
        row: dict[str, Any] = as_row(self)
        row["contract"] = self.contract.name
        row["contract_fingerprint"] = self.contract.fingerprint
        row["accuracy"] = {**self.accuracy.to_row(), "interval": row.pop("interval")}
        row["cost"] = self.cost.to_row()
        return row


def summarise_run(run: Run, *, first: bool = False, cluster: str | None = None) -> Summary:
    """
    first     of the first answers of a run that corrects; else of the final ones
    cluster   column of the problems that are alike; None: 'template' where every problem has one, else the problem
    raises    ConfigError for a column that a problem lacks
    """
    rows = run.first_rows if first else run.rows
    asked = run.set.asked
    outcomes = Counter(str(row["outcome"]) for row in rows)
    accuracy = accuracy_of(rows)
    interval, method = accuracy_interval(run, rows, cluster)
    correct, whole = correct_by_problem(run, rows)
    tokens = sum(row["tokens"] for row in rows)
    drawn = ks(run.samples) if whole else []
    return Summary(
        run=run.name,
        model=run.model,
        fingerprint=run.fingerprint,
        contract=run.contract,
        answer="first" if first and run.corrected else "final",
        problems=len(asked),
        samples=run.samples,
        responses=len(rows),
        missing=len(run.missing),
        accuracy=accuracy,
        interval=interval,
        interval_method=method,
        bounds=bounds_of(accuracy, outcomes, len(run.missing)),
        outcomes={outcome.value: outcomes[outcome] for outcome in Outcome},
        format_valid=Rate(successes=sum(row["format_valid"] is True for row in rows), total=len(rows)),
        truncated=Rate(successes=sum(row["truncated"] is True for row in rows), total=len(rows)),
        tokens=tokens,
        lengths=lengths_of([row["tokens"] for row in rows]),
        pass_at_k={k: pass_at_k([run.samples] * len(whole), whole, k) for k in drawn},
        pass_hat_k={k: pass_hat_k([run.samples] * len(whole), whole, k) for k in drawn},
        maj_at_k=majority(run, rows, drawn) if drawn else {},
        breakdown=breakdown_of(run, rows),
        cost=Cost(
            problems=len(correct),
            correct=accuracy.successes,
            model_calls=sum(row["model_calls"] for row in rows),
            tokens=sum(row["all_tokens"] for row in rows),
            tool_seconds=round(sum(row["tool_seconds"] for row in rows), 3),
            seconds=round(sum(row["seconds"] for row in rows), 3),
        ),
        smallest_difference=smallest_difference(len(asked)),
        unreadable_references=dict(run.set.unreadable),
        verifier=verifier_errors(run.contract),
    )


def accuracy_of(rows: Sequence[Row]) -> Rate:
    return Rate(successes=sum(row["outcome"] == Outcome.CORRECT for row in rows), total=len(rows))


def correct_by_problem(run: Run, rows: Sequence[Row]) -> tuple[dict[str, int], list[int]]:
    """How many samples of each problem are correct, and the same of the problems whose samples are all there."""
    correct: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for row in rows:
        there[row["id"]] += 1
        correct[row["id"]] += row["outcome"] == Outcome.CORRECT
    return dict(correct), [correct[problem] for problem, count in there.items() if count == run.samples]


def accuracy_interval(run: Run, rows: Sequence[Row], cluster: str | None) -> tuple[Interval | None, str]:
    """Wilson's where every response is a problem of its own; else over the clusters."""
    if not rows:
        return None, "undefined: no response"
    clusters, name = clusters_of(run, cluster)
    named = [clusters[row["id"]] for row in rows]
    count = len(set(named))
    if count == len(rows):
        return accuracy_of(rows).interval(), "Wilson"
    if count < FEWEST_CLUSTERS:
        return None, f"undefined: {count} clusters by {name}, wanted at least {FEWEST_CLUSTERS}"
    found = clustered_interval([float(row["outcome"] == Outcome.CORRECT) for row in rows], named)
    return found, f"clustered by {name}" if found else "undefined: every response has the same outcome"


def clusters_of(run: Run, column: str | None) -> tuple[dict[str, str], str]:
    """The cluster of every problem that was asked, and what they are clustered by."""
    asked = run.set.asked
    if column is None and all(problem.columns.get(TEMPLATE) is not None for problem in asked):
        column = TEMPLATE
    if column is None:
        return {problem.id: problem.id for problem in asked}, "problem"
    lacking = [problem.id for problem in asked if problem.columns.get(column) is None]
    if lacking:
        raise ConfigError(f"{run.path}: problem {lacking[0]} has no column {column!r} to cluster by; name another")
    return {problem.id: json.dumps(problem.columns[column], default=str) for problem in asked}, repr(column)


def bounds_of(accuracy: Rate, outcomes: Mapping[str, int], missing: int) -> Bounds:
    found = {outcome.value: outcomes[outcome] for outcome in OPEN} | {MISSING: missing}
    unsettled = {name: count for name, count in found.items() if count}
    total = accuracy.total + missing
    return Bounds(
        lowest=Rate(successes=accuracy.successes, total=total),
        highest=Rate(successes=accuracy.successes + sum(unsettled.values()), total=total),
        open=unsettled,
    )


def lengths_of(tokens: Sequence[int]) -> dict[str, float]:
    if not tokens:
        return {}
    ordered = sorted(tokens)
    return {
        "mean": round(statistics.fmean(ordered), 2),
        "median": statistics.median(ordered),
        "p90": ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)],
        "longest": ordered[-1],
    }


def breakdown_of(run: Run, rows: Sequence[Row]) -> tuple[Part, ...]:
    """By every column that sorts the problems into a few kinds."""
    by_problem: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_problem[row["id"]].append(row)
    return tuple(
        part_of(run, column, value, [row for problem in problems for row in by_problem[problem]])
        for column, kinds in kinds_of(run).items()
        for value, problems in sorted(kinds.items(), key=lambda kind: in_order(kind[0]))
        if any(by_problem[problem] for problem in problems)
    )


def kinds_of(run: Run) -> dict[str, dict[str, list[str]]]:
    """Column to value to problem ids: columns of text or numbers with 2 to MOST_PARTS values, each shared by some."""
    asked = run.set.asked
    found: dict[str, dict[str, list[str]]] = {}
    for column in dict.fromkeys(name for problem in asked for name in problem.columns):
        values = {problem.id: problem.columns.get(column) for problem in asked}
        if not all(isinstance(value, str | int | float | None) for value in values.values()):
            continue
        kinds: dict[str, list[str]] = defaultdict(list)
        for problem, value in values.items():
            kinds["" if value is None else str(value)].append(problem)
        if 2 <= len(kinds) <= MOST_PARTS and 2 * len(kinds) <= len(asked):
            found[column] = dict(kinds)
    return found


def in_order(value: str) -> tuple[float, str]:
    """Numbers by size, before words."""
    try:
        return float(value), value
    except ValueError:
        return float("inf"), value


def part_of(run: Run, column: str, value: str, rows: Sequence[Row]) -> Part:
    accuracy = accuracy_of(rows)
    problems = [row["id"] for row in rows]
    alone = run.samples == 1
    interval = (
        accuracy.interval()
        if alone
        else clustered_interval([float(row["outcome"] == Outcome.CORRECT) for row in rows], problems)
    )
    return Part(column=column, value=value, problems=len(set(problems)), accuracy=accuracy, interval=interval)


@cache
def measured_errors() -> list[dict[str, Any]]:
    return list(json.loads(VERIFIER_ERRORS.read_text("utf-8"))) if VERIFIER_ERRORS.exists() else []


def verifier_errors(contract: ContractName) -> tuple[ErrorRate, ...]:
    """As measured on labelled cases (`scripts.measure_verifier`), for exactly this version of the contract."""
    rates = [
        (row, Rate(successes=row["successes"], total=row["total"]))
        for row in measured_errors()
        if row["fingerprint"] == contract.fingerprint
    ]
    return tuple(
        ErrorRate(kind=row["kind"], rate=rate, upper=rate.upper() or 1.0, cases=row["cases"]) for row, rate in rates
    )


def as_row(value: Any) -> Any:
    """Dataclasses, tuples and mappings as JSON holds them."""
    if isinstance(value, Rate):
        return value.to_row()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_row(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_row(one) for key, one in value.items()}
    return [as_row(one) for one in value] if isinstance(value, list | tuple) else value
