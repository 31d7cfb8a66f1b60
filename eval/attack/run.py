"""The attack: every case put to every target, each target in a child process of its own, and what came of each case.

A call that is not back at the deadline is a hang, a child that dies is a crash; the child is replaced and the next case
goes on. What a case must not do is written in the case; what the target did is judged here, by its value alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from veriward.eval.attack.cases import AttackCase
from veriward.eval.attack.targets import READY, Target, case_item
from veriward.rewards import Outcome
from veriward.rewards.verdict_metrics import NOT_DECIDED
from veriward.rewards.worker_pool import Done, Lost, WorkerError, WorkerPool
from veriward.tool_agent.errors import ConfigError


class Finding(StrEnum):
    """What a target did with one case: exactly one a case."""

    FINE = "fine"
    """As the case asks; or the case asks for nothing, and a value came back."""
    WRONG_ACCEPT = "wrong accept"
    """Paid what is not equal to the reference."""
    WRONG_REJECT = "wrong reject"
    """Decided, and did not pay what is equal to the reference."""
    NOT_DECIDED = "not decided"
    """None, or an outcome that says so: never counted as a wrong reject."""
    HANG = "hang"
    """Not back at the deadline."""
    CRASH = "crash"
    """The process died."""
    EXCEPTION = "exception"
    """The call raised, or returned what a trainer cannot use."""

    @property
    def plural(self) -> str:
        """As a column's head."""
        return {"crash": "crashes", "not decided": "not decided"}.get(self, f"{self}s")


FAULTS = tuple(finding for finding in Finding if finding is not Finding.FINE)
FAILURES = (Finding.HANG, Finding.CRASH, Finding.EXCEPTION)
"""What would stop a training run or hold it up, whatever the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One case, and what a target did with it."""

    case: AttackCase
    finding: Finding
    value: float | None
    """The reward; None where none came back, or where the target left the case out."""
    outcome: str | None
    """What the target logged as its outcome; None where it logs none."""
    detail: str | None
    """The exception, or how the process was lost."""
    seconds: float
    """By the clock, less the time without a processor: the only figure that differs between two runs."""


@dataclass(slots=True, kw_only=True)
class TargetReport:
    """Everything about one target: results in the order of the cases."""

    target: Target
    results: list[Result] = field(default_factory=list)

    def counts(self, family: str | None = None) -> Counter[Finding]:
        return Counter(result.finding for result in self._of(family))

    def left_undecided(self, family: str | None = None) -> int:
        """Right answers without a decision; a wrong one without is not paid either, which does no harm."""
        return sum(result.finding is Finding.NOT_DECIDED and result.case.accept is True for result in self._of(family))

    def seconds(self, family: str | None = None) -> float:
        return sum(result.seconds for result in self._of(family))

    def cases(self, family: str | None = None) -> int:
        return sum(1 for _ in self._of(family))

    def mechanisms(self) -> dict[str, list[Result]]:
        """Every mechanism with a fault other than 'not decided', and its results, in the order of the cases."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            if result.finding not in (Finding.FINE, Finding.NOT_DECIDED):
                found.setdefault(result.case.mechanism, []).append(result)
        return found

    def _of(self, family: str | None) -> Sequence[Result]:
        return [result for result in self.results if family in (None, result.case.family)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackSettings:
    """What a run's figures depend on, beside its targets."""

    seed: int = 0
    per_family: int = 40
    families: tuple[str, ...] | None = None
    """None: all of them."""
    deadline_s: float = 2.0
    threshold: float = 0.5
    """A reward above it pays."""

    def __post_init__(self) -> None:
        if not 0 < self.deadline_s <= 86_400:
            raise ConfigError(f"--deadline must be above 0 seconds, got {self.deadline_s}")
        if not math.isfinite(self.threshold):
            raise ConfigError(f"--threshold must be a number, got {self.threshold}")

    def changed(self) -> Iterator[tuple[str, object]]:
        """The options of the command by which these settings differ from the usual ones."""
        usual = AttackSettings()
        fields = {"seed": "seed", "per-family": "per_family", "deadline": "deadline_s", "threshold": "threshold"}
        for name, field_name in fields.items():
            if (value := getattr(self, field_name)) != getattr(usual, field_name):
                yield name, value
        yield from (("family", name) for name in self.families or ())


@dataclass(slots=True, kw_only=True)
class AttackRun:
    """One command's worth: the same cases for every target."""

    settings: AttackSettings
    cases: Sequence[AttackCase]
    reports: list[TargetReport] = field(default_factory=list)
    stopped: bool = False
    """Interrupted by Ctrl-C: the last report is short, and targets may be missing."""

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(case.family for case in self.cases))

    def faults(self, findings: Sequence[Finding]) -> int:
        return sum(report.counts()[finding] for report in self.reports for finding in findings)


Progress = Callable[[TargetReport], None]


def attack(
    targets: Sequence[Target],
    cases: Sequence[AttackCase],
    settings: AttackSettings,
    on_progress: Progress = lambda _report: None,
) -> AttackRun:
    """Put every case to every target, one target after another.

    Ctrl-C ends the run early, and what was found so far is returned.

    raises   ConfigError for a target that cannot be opened
    """
    for target in targets:
        target.check()
    run = AttackRun(settings=settings, cases=cases)
    try:
        for target in targets:
            attack_one(target, run, on_progress)
    except KeyboardInterrupt:
        run.stopped = True
    return run


def attack_one(target: Target, run: AttackRun, on_progress: Progress) -> None:
    """Open the target in a child and put the cases to it; the report grows as they come back."""
    with WorkerPool(
        "veriward.eval.attack.targets:open_target",
        workers=1,
        deadline_s=run.settings.deadline_s,
        memory_mb=MEMORY_MB if target.kind == "contract" else None,
        setup=target.setup(),
    ) as pool:
        refuse_if_not_ready(target, pool)
        report = TargetReport(target=target)
        run.reports.append(report)
        on_progress(report)
        for case in run.cases:
            (answer,) = pool.run([case_item(case)])
            report.results.append(judge(case, answer, run.settings))
            on_progress(report)


MEMORY_MB = 1024
"""Address space for a contract; torch, which other targets may import, reserves more than it uses."""


def refuse_if_not_ready(target: Target, pool: WorkerPool) -> None:
    try:
        (answer,) = pool.run([READY])
    except WorkerError as error:
        if target.kind != "function":
            raise
        last = str(error).strip().splitlines()[-1]
        raise ConfigError(f"{target.name}: the process that imports it fails: {last}") from error
    if isinstance(answer, Lost):
        raise ConfigError(f"{target.name}: {answer.outcome} before the first case: {answer.detail}")
    if answer.value["refused"] is not None:
        raise ConfigError(answer.value["refused"])


def judge(case: AttackCase, answer: Done | Lost, settings: AttackSettings) -> Result:
    """What the target did with a case, from what came back."""
    if isinstance(answer, Lost):
        hang = answer.outcome is Outcome.TIMEOUT
        finding = Finding.HANG if hang else Finding.CRASH
        seconds = settings.deadline_s if hang else answer.microseconds / 1e6
        said: dict[str, Any] = {"value": None, "outcome": None, "raised": answer.detail, "seconds": seconds}
    else:
        said = answer.value
        finding = finding_of(case.accept, said, settings.threshold)
        if said["seconds"] >= settings.deadline_s:  # the pool may wait longer, for a child that got no processor
            finding, said = Finding.HANG, {**said, "raised": f"no end within {settings.deadline_s:g} s"}
    return Result(
        case=case,
        finding=finding,
        value=said["value"],
        outcome=said["outcome"],
        detail=said["raised"],
        seconds=said["seconds"],
    )


def finding_of(accept: bool | None, said: dict[str, Any], threshold: float) -> Finding:
    if said["raised"] is not None:
        return Finding.EXCEPTION
    if accept is None:
        return Finding.FINE
    value = said["value"]
    paid = value is not None and value > threshold
    if paid and not accept:
        return Finding.WRONG_ACCEPT
    if value is None or (not paid and said["outcome"] in NOT_DECIDED):
        return Finding.NOT_DECIDED
    return Finding.FINE if paid == accept else Finding.WRONG_REJECT
