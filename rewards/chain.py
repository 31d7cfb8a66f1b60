"""verify(): response, extraction, contract, verdict. The one place where the steps meet.

Everything here runs in the caller's process. Batches go through `pool`, which has the same steps with the decision in
a worker process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter_ns
from typing import Any, NamedTuple

from veriward.rewards.contracts import DEFAULT, get_contract
from veriward.rewards.response import Completion, reasoning_text, response_text
from veriward.rewards.task import Options, Task, make_task, task_fields
from veriward.rewards.verdict import Decision, Extraction, Outcome, Reason, Step, Verdict

LONG_REFERENCE = 1_000
"""Characters above which nothing is remembered of a reference."""


def verify(
    response: Completion,
    reference: str,
    *,
    contract: str = DEFAULT,
    answer_type: str | None = None,
    options: Mapping[str, object] | Options | None = None,
    truncated: bool = False,
) -> Verdict:
    """Take the final answer out of a response and decide whether it equals the reference.

    response      the model's text, or its chat messages; text set apart as reasoning is no source of the answer
    reference     the key, bare: `\\frac{1}{2}`, not a sentence
    contract      name of the grading contract
    answer_type   what the task asks for (`task.ANSWER_TYPES`); None reads it off the reference
    options       conventions of the task (`task.Options`)
    truncated     the response was cut off: what stands at the cut is no answer; v1 and v2 decide it like any other
    raises        TypeError and ValueError for wiring mistakes; never for what a model wrote
    """
    task = _task(reference, answer_type, options, contract)
    return _verify(Job(response_text(response), reasoning_text(response), task, truncated), contract)


def verify_answer(
    candidate: str,
    reference: str,
    *,
    contract: str = DEFAULT,
    answer_type: str | None = None,
    options: Mapping[str, object] | Options | None = None,
) -> Verdict:
    """Decide whether a bare answer equals the reference; there is no response, so `format_valid` is None."""
    return _verify(Job(_text(candidate), None, _task(reference, answer_type, options, contract), False), contract)


def check_row(row: Mapping[str, Any], *, contract: str = DEFAULT) -> None:
    """TypeError or ValueError where `verify_many` would refuse a row, whatever a model wrote in it."""
    job_of(row, contract)


class Job(NamedTuple):
    """One row, hashable."""

    text: str
    reasoning: str | None
    """None where the text is a bare answer."""
    task: Task
    truncated: bool


def job_of(row: Mapping[str, Any], contract: str) -> Job:
    """A row as `verify_many` takes it. TypeError and ValueError for wiring mistakes."""
    if not isinstance(row, Mapping):
        raise TypeError(f"a row is a mapping with response or prediction, and reference; got {type(row).__name__}")
    row = {
        name: value for name, value in row.items() if value is not None
    }  # a data set fills what is missing with null
    if "reference" not in row:
        raise ValueError("a row has a 'reference', got none")
    if ("response" in row) == ("prediction" in row):
        got = "both" if "response" in row else "neither"
        raise ValueError(f"a row has either a 'response' or a 'prediction', got {got}")
    task = _task(row["reference"], row.get("answer_type"), row.get("options"), contract)
    if "prediction" in row:
        return Job(_text(row["prediction"]), None, task, False)
    truncated = row.get("truncated", False)
    if not isinstance(truncated, bool):
        raise TypeError(f"'truncated' is true or false, got {truncated!r}")
    return Job(response_text(row["response"]), reasoning_text(row["response"]), task, truncated)


def _task(
    reference: object, answer_type: str | None, options: Mapping[str, object] | Options | None, contract: str
) -> Task:
    task = make_task(reference, answer_type, options)
    if not task.is_plain and not get_contract(contract).reads_types:
        raise ValueError(f"contract {contract} knows no answer types and no options; leave them out, or choose v3")
    return task


def fields_for(contract: str, columns: Mapping[str, object]) -> dict[str, Any]:
    """The `answer_type` and `options` in a data row that this contract takes: none under v1 and v2."""
    return task_fields(columns) if get_contract(contract).reads_types else {}


def check_reference(
    reference: str,
    *,
    contract: str = DEFAULT,
    answer_type: str | None = None,
    options: Mapping[str, object] | Options | None = None,
) -> Reason | None:
    """Why the contract cannot read this reference, or None if it can. Ask before training, not during it."""
    task = _task(reference, answer_type, options, contract)
    return get_contract(contract).check(task) if len(reference) > LONG_REFERENCE else _check(task, contract)


@lru_cache(maxsize=16_384)
def _check(task: Task, contract: str) -> Reason | None:
    return get_contract(contract).check(task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A verdict and how it came about."""

    verdict: Verdict
    response: str | None
    """The text that was searched; None where a bare answer was verified."""
    steps: tuple[Step, ...]
    """What each rule and tier found, in order."""
    refused_at: int | None
    """Where reading stopped, in characters of the candidate or, for bad_reference, of the reference."""


def explain(
    answer: Completion,
    reference: str,
    *,
    bare: bool = False,
    contract: str = DEFAULT,
    answer_type: str | None = None,
    options: Mapping[str, object] | Options | None = None,
    truncated: bool = False,
) -> Explanation:
    """The verdict that `verify` gives (`bare`: that `verify_answer` gives), with every step on the way."""
    started = perf_counter_ns()
    text = response_text(answer)
    task = _task(reference, answer_type, options, contract)
    job = Job(text, None if bare else reasoning_text(answer), task, truncated)
    extraction = extraction_of(job, contract)
    decision = decision_of(extraction, task, contract)
    return Explanation(
        verdict=verdict_of(job, extraction, decision, contract, _since(started)),
        response=None if bare else text,
        steps=decision.steps,
        refused_at=decision.refused_at,
    )


def _verify(job: Job, contract: str) -> Verdict:
    started = perf_counter_ns()
    extraction = extraction_of(job, contract)
    decision = decision_of(extraction, job.task, contract)
    return verdict_of(job, extraction, decision, contract, _since(started))


def extraction_of(job: Job, contract: str) -> Extraction:
    """The answer in a job's response; a bare answer is taken as it is."""
    if job.reasoning is None:
        return Extraction(candidate=job.text, how="given", span=None, format_valid=None)
    return get_contract(contract).extract(job.text, job.reasoning, job.task, job.truncated)


def decision_of(extraction: Extraction, task: Task, contract: str) -> Decision:
    """What the contract says of an extracted answer, or of there being none."""
    rules = get_contract(contract)
    if extraction.candidate is not None:
        return rules.decide(extraction.candidate, task, extraction.flags)
    unreadable = rules.check(task) if rules.reference_first else None
    if unreadable is not None:
        return Decision(outcome=Outcome.BAD_REFERENCE, reason=unreadable, method=None)
    return Decision(outcome=Outcome.NO_ANSWER, reason=Reason.NO_ANSWER, method=None)


def verdict_of(job: Job, extraction: Extraction, decision: Decision, contract: str, microseconds: int) -> Verdict:
    """The record of a decision."""
    return Verdict(
        outcome=decision.outcome,
        reason=decision.reason,
        method=decision.method,
        certainty=decision.certainty,
        format_valid=extraction.format_valid,
        candidate=extraction.candidate,
        candidate_normal=decision.candidate_normal,
        extraction=extraction.how,
        span=extraction.span,
        reference=job.task.reference,
        reference_normal=decision.reference_normal,
        verifier_called=decision.verifier_called,
        flags=extraction.flags + decision.flags,
        cost=decision.cost,
        answer_type=decision.answer_type,
        contract=contract,
        fingerprint=get_contract(contract).fingerprint,
        truncated=job.truncated,
        microseconds=microseconds,
    )


def _since(started: int) -> int:
    return (perf_counter_ns() - started) // 1_000


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"an answer and a reference are texts, got {type(value).__name__}: {value!r}")
    return value
