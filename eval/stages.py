"""What became of a run at each stage: call, choice of the tool, executor, use of its result, verdict.

Stages fail on their own and trade places, so that no total stands alone here. Everything is counted from stored states
and the tools that the problem set names; no reference is needed, since each state holds its verdicts.

valid call      the reader took the model's text for a call; what the executor then says is the next stage
chosen tool     of the last valid call; 'none' where there is none
executor        what the last valid call came to: a result, an empty search, a refusal by category, timeout, crashed
result used     the final answer equals the tool's number, or is that number rounded to three digits or more

Not covered: whether what a search found was used, and answers rounded to one or two digits, which count as differing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from veriward.eval.rates import Rate, mcnemar
from veriward.rewards import Outcome, verify_many
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.result import TRANSIENT, Category
from veriward.tool_agent.state import CallAttempt, ProblemState

VALID = "valid"
OK, EMPTY = "ok", "empty"
"""What an executor gave: a result, or a search without a document, which is told to the model as such."""
NONE, NOT_NAMED, ALL = "none", "not named", "all"

Row = dict[str, Any]


class Used(StrEnum):
    """How the final answer stands to the tool's number."""

    USED = "used"
    DIFFERS = "differs"
    NO_ANSWER = "no_answer"
    UNDECIDED = "undecided"
    """One of the two could not be read, or the comparison was not settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemStages:
    """One complete problem, stage by stage."""

    problem: str
    expected: str | None
    """The tool that the problem is made for; None where the set names none."""
    read: tuple[str, ...]
    """For each text that should be a call: VALID, or the category under which the reader refused it."""
    chosen: str | None
    executed: tuple[str | None, ...]
    """For each of these texts: OK, EMPTY, or a category; None where nothing was run."""
    faults: tuple[Category, ...]
    """Of the machinery, tried again without the model."""
    used: Used | None
    """None where there is no number to use."""
    outcomes: tuple[str, ...]
    """Of each final response, in order."""
    truncated: tuple[bool, ...]

    @property
    def execution(self) -> str | None:
        """Of the last valid call; None where there is none."""
        return next((one for one in reversed(self.executed) if one is not None), None)

    @property
    def right_tool(self) -> bool:
        return self.expected is not None and self.chosen == self.expected

    @property
    def right_first(self) -> bool:
        return self.outcomes[0] == Outcome.CORRECT

    @property
    def right(self) -> bool:
        """After the correction, where there was one."""
        return self.outcomes[-1] == Outcome.CORRECT


def problem_stages(
    states: Iterable[ProblemState], expected: Mapping[str, str | None], contract: str, fingerprint: str
) -> list[ProblemStages]:
    """The stages of complete problems, in the order in which they come.

    expected      the tool that each problem is made for, by the problem's id
    fingerprint   of the contract: a verdict under any other is refused with ConfigError
    """
    rows: list[ProblemStages] = []
    numbers: dict[int, Row] = {}
    for place, state in enumerate(states):
        refuse_other_verdicts(state, contract, fingerprint)
        rows.append(_stages(state, expected[state.problem]))
        if state.result is not None and isinstance(state.result.value, int | float):
            last = state.answers[-1].generation
            numbers[place] = {"response": last.text, "truncated": last.truncated, "reference": state.result.text}
    for place, used in zip(numbers, _compared(list(numbers.values()), contract), strict=True):
        rows[place] = replace(rows[place], used=used)
    return rows


def refuse_other_verdicts(state: ProblemState, contract: str, fingerprint: str) -> None:
    """Numbers of different contracts are never counted together."""
    for answer in state.answers:
        got = None if answer.verdict is None else (answer.verdict["contract"], answer.verdict["fingerprint"])
        if got != (contract, fingerprint):
            raise ConfigError(
                f"problem {state.problem}: has a verdict of {got}, and its run is under contract {contract}, "
                f"fingerprint {fingerprint}; set the state apart and go on with the run"
            )


def _stages(state: ProblemState, expected: str | None) -> ProblemStages:
    valid = [attempt.call for attempt in state.calls if attempt.call is not None]
    return ProblemStages(
        problem=state.problem,
        expected=expected,
        read=tuple(VALID if attempt.call is not None else _category(attempt) for attempt in state.calls),
        chosen=valid[-1].tool if valid else None,
        executed=tuple(_executed(attempt) for attempt in state.calls),
        faults=tuple(fault for attempt in state.calls for fault in attempt.transient),
        used=None,
        outcomes=tuple(str(answer.outcome) for answer in state.answers),
        truncated=tuple(answer.generation.truncated for answer in state.answers),
    )


def _category(attempt: CallAttempt) -> str:
    if attempt.result is None or attempt.result.category is None:
        raise ValueError(f"no refusal in {attempt}")
    return attempt.result.category.value


def _executed(attempt: CallAttempt) -> str | None:
    if attempt.call is None or attempt.result is None:
        return None
    if attempt.result.ok:
        return EMPTY if isinstance(attempt.result.value, list) and not attempt.result.value else OK
    return _category(attempt)


def _compared(rows: Sequence[Row], contract: str) -> list[Used]:
    """Final responses against the tool's numbers. A decimal answer that the number rounds to is found by asking
    the other way round: what the contract takes for rounded is the reference."""
    verdicts = verify_many(rows, contract=contract)
    turned = {
        place: {"prediction": rows[place]["reference"], "reference": verdict.candidate}
        for place, verdict in enumerate(verdicts)
        if verdict.outcome is Outcome.WRONG and verdict.candidate is not None
    }
    rounded = dict(zip(turned, verify_many(list(turned.values()), contract=contract), strict=True))
    return [
        Used.USED if place in rounded and rounded[place].correct else _USED.get(verdict.outcome, Used.UNDECIDED)
        for place, verdict in enumerate(verdicts)
    ]


_USED = {Outcome.CORRECT: Used.USED, Outcome.WRONG: Used.DIFFERS, Outcome.NO_ANSWER: Used.NO_ANSWER}


# -------------------------------------------------------------------------------------------------- counted together


def stage_rates(rows: Sequence[ProblemStages], *, tools: bool) -> dict[str, Rate]:
    """Each stage with its own denominator; without tools only the answers."""
    answers = {
        "right_first": Rate(successes=sum(row.right_first for row in rows), total=len(rows)),
        "right_final": Rate(successes=sum(row.right for row in rows), total=len(rows)),
        "cut_off_first": Rate(successes=sum(row.truncated[0] for row in rows), total=len(rows)),
        "cut_off_final": Rate(successes=sum(row.truncated[-1] for row in rows), total=len(rows)),
    }
    if not tools:
        return answers
    named = [row for row in rows if row.expected is not None]
    executed = Counter(row.execution for row in rows if row.chosen is not None)
    numbers = [row for row in rows if row.used is not None]
    return {
        "valid_call_first": Rate(successes=sum(row.read[0] == VALID for row in rows), total=len(rows)),
        "valid_call": Rate(successes=sum(row.chosen is not None for row in rows), total=len(rows)),
        "right_tool": Rate(successes=sum(row.right_tool for row in named), total=len(named)),
        "executor_ok": Rate(successes=executed[OK], total=executed.total()),
        "executor_empty": Rate(successes=executed[EMPTY], total=executed.total()),
        "result_used": Rate(successes=sum(row.used is Used.USED for row in numbers), total=len(numbers)),
        **answers,
    }


def groups(rows: Sequence[ProblemStages]) -> dict[str, list[ProblemStages]]:
    """The problems by the tool that they name, in the order of the set, and all of them."""
    found: dict[str, list[ProblemStages]] = {}
    for row in rows:
        found.setdefault(row.expected or NOT_NAMED, []).append(row)
    return {**found, ALL: list(rows)}


def selection(rows: Sequence[ProblemStages]) -> dict[str, Counter[str]]:
    """Expected tool to the tools that were chosen, 'none' among them."""
    return {name: Counter(row.chosen or NONE for row in group) for name, group in groups(rows).items() if name != ALL}


def executions(rows: Sequence[ProblemStages]) -> dict[str, Counter[str]]:
    """Tool to what its last valid calls came to."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row.chosen is not None and row.execution is not None:
            found.setdefault(row.chosen, Counter())[row.execution] += 1
    return dict(sorted(found.items()))


def call_refusals(rows: Sequence[ProblemStages], attempt: int) -> Counter[str]:
    """Categories of the reader for each first (0) or corrected (1) text."""
    return Counter(row.read[attempt] for row in rows if len(row.read) > attempt and row.read[attempt] != VALID)


def executor_refusals(rows: Sequence[ProblemStages], attempt: int) -> Counter[str]:
    """Categories of the executor for each first (0) or corrected (1) call."""
    ran = (row.executed[attempt] for row in rows if len(row.executed) > attempt)
    return Counter(one for one in ran if one not in (None, OK, EMPTY))


def call_corrections(rows: Sequence[ProblemStages]) -> dict[str, int]:
    """How many calls were asked for again, and what that led to."""
    second = [row.executed[1] for row in rows if len(row.read) > 1]
    rescued = sum(one in (OK, EMPTY) for one in second)
    return {"started": len(second), "rescued": rescued, "no_result": len(second) - rescued}


def answer_corrections(rows: Sequence[ProblemStages]) -> dict[str, int]:
    """How many final responses were asked for again; `lost` were right before."""
    started = [row for row in rows if len(row.outcomes) > 1]
    kinds = Counter((row.right_first, row.right) for row in started)
    return {
        "started": len(started),
        "rescued": kinds[False, True],
        "lost": kinds[True, False],
        "still_right": kinds[True, True],
        "still_not_right": kinds[False, False],
    }


def outcome_counts(rows: Sequence[ProblemStages], attempt: int) -> dict[str, int]:
    """Of the first (0) or the final (-1) responses, every outcome named."""
    counts = Counter(row.outcomes[attempt] for row in rows)
    return {outcome.value: counts[outcome.value] for outcome in Outcome}


def result_used(rows: Sequence[ProblemStages]) -> dict[str, int]:
    """How the final answers stand to the tools' numbers, where there is one."""
    counts = Counter(row.used for row in rows)
    return {used.value: counts[used] for used in Used}


def lost_to_machinery(rows: Sequence[ProblemStages]) -> dict[str, int]:
    """Timeouts and deaths of tools that were tried again."""
    counts = Counter(fault for row in rows for fault in row.faults)
    return {category.value: counts[category] for category in sorted(TRANSIENT)}


# --------------------------------------------------------------------------------------------------------- exchanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Two yes-or-no questions about the same problems, crossed: two equal totals may be other problems."""

    both: int
    first_only: int
    second_only: int
    neither: int

    @property
    def p(self) -> float:
        """Exact McNemar, two-sided: the chance of discordant pairs this uneven were both sides alike; 1 for none."""
        return mcnemar(self.first_only, self.second_only)

    def to_row(self) -> Row:
        counts = {name: getattr(self, name) for name in ("both", "first_only", "second_only", "neither")}
        return {**counts, "mcnemar_p": self.p}


def exchange(pairs: Iterable[tuple[bool, bool]]) -> Exchange:
    counts = Counter(pairs)
    return Exchange(
        both=counts[True, True],
        first_only=counts[True, False],
        second_only=counts[False, True],
        neither=counts[False, False],
    )


def exchanges(rows: Sequence[ProblemStages], gate: str) -> dict[str, Exchange]:
    """Within one run with tools, each named 'first x second'; `gate` as a report writes it."""
    named = [row for row in rows if row.expected is not None]
    return {
        "right tool x right first answer": exchange((row.right_tool, row.right_first) for row in named),
        f"right before x right after, {gate}": exchange((row.right_first, row.right) for row in rows),
    }
