"""verify(): response, extraction, contract, verdict. The one place where the steps meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    return _verify_text(response_text(response), reasoning_text(response), task, contract, truncated)


def verify_answer(
    candidate: str,
    reference: str,
    *,
    contract: str = DEFAULT,
    answer_type: str | None = None,
    options: Mapping[str, object] | Options | None = None,
) -> Verdict:
    """Decide whether a bare answer equals the reference; there is no response, so `format_valid` is None."""
    return _verify_given(_text(candidate), _task(reference, answer_type, options, contract), contract)


def verify_many(rows: Iterable[Mapping[str, Any]], *, contract: str = DEFAULT) -> list[Verdict]:
    """One verdict per row, in order; equal work is done once, and the last batches are remembered.

    A trainer calls every reward function with the same batch, so the second and later calls cost a look-up.

    rows     mappings with `reference` and either `response` (text or chat messages) or, for a bare answer,
             `prediction`; optional `answer_type`, `options`, `truncated`; other keys are not looked at
    raises   TypeError and ValueError with the number of the row for wiring mistakes
    """
    jobs = []
    for place, row in enumerate(rows):
        try:
            jobs.append(_job(row, contract))
        except (TypeError, ValueError) as error:
            raise type(error)(f"row {place}: {error}") from error
    return list(_verify_jobs(tuple(jobs), contract))


def verify_batch(
    completions: Sequence[Completion],
    references: Sequence[str],
    *,
    contract: str = DEFAULT,
    truncated: Sequence[bool] | None = None,
) -> list[Verdict]:
    """`verify_many` in a trainer's shape: (B,) completions, (B,) references and, where known, (B,) cut-off marks.

    raises   ValueError if the lengths differ
    """
    cut = [False] * len(completions) if truncated is None else truncated
    if not len(completions) == len(references) == len(cut):
        raise ValueError(
            f"a batch has one reference per completion: got {len(completions)} completions, "
            f"{len(references)} references, {len(cut)} truncated marks"
        )
    rows = [
        {"response": completion, "reference": reference, "truncated": bool(mark)}
        for completion, reference, mark in zip(completions, references, cut, strict=True)
    ]
    return verify_many(rows, contract=contract)


def check_row(row: Mapping[str, Any], *, contract: str = DEFAULT) -> None:
    """TypeError or ValueError where `verify_many` would refuse a row, whatever a model wrote in it."""
    _job(row, contract)


class _Job(NamedTuple):
    """One row, hashable."""

    text: str
    reasoning: str | None
    """None where the text is a bare answer."""
    task: Task
    truncated: bool


def _job(row: Mapping[str, Any], contract: str) -> _Job:
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
        return _Job(_text(row["prediction"]), None, task, False)
    truncated = row.get("truncated", False)
    if not isinstance(truncated, bool):
        raise TypeError(f"'truncated' is true or false, got {truncated!r}")
    return _Job(response_text(row["response"]), reasoning_text(row["response"]), task, truncated)


def _task(
    reference: object, answer_type: str | None, options: Mapping[str, object] | Options | None, contract: str
) -> Task:
    task = make_task(reference, answer_type, options)
    if not task.is_plain and not get_contract(contract).reads_types:
        raise ValueError(f"contract {contract} knows no answer types and no options; leave them out, or choose v3")
    return task


@lru_cache(maxsize=4)
def _verify_jobs(jobs: tuple[_Job, ...], contract: str) -> tuple[Verdict, ...]:
    decided: dict[_Job, Verdict] = {}
    for job in jobs:
        if job not in decided:
            decided[job] = (
                _verify_given(job.text, job.task, contract)
                if job.reasoning is None
                else _verify_text(job.text, job.reasoning, job.task, contract, job.truncated)
            )
    return tuple(decided[job] for job in jobs)


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
    task = _task(reference, answer_type, options, contract)
    text = response_text(answer)
    rules = get_contract(contract)
    extraction = _given(text) if bare else rules.extract(text, reasoning_text(answer), task, truncated)
    decision = _decision(extraction, task, contract)
    return Explanation(
        verdict=_verdict(extraction, decision, task, contract, truncated, started),
        response=None if bare else text,
        steps=decision.steps,
        refused_at=decision.refused_at,
    )


def _verify_text(text: str, reasoning: str, task: Task, contract: str, truncated: bool) -> Verdict:
    started = perf_counter_ns()
    extraction = get_contract(contract).extract(text, reasoning, task, truncated)
    return _verdict(extraction, _decision(extraction, task, contract), task, contract, truncated, started)


def _verify_given(candidate: str, task: Task, contract: str) -> Verdict:
    started = perf_counter_ns()
    extraction = _given(candidate)
    return _verdict(extraction, _decision(extraction, task, contract), task, contract, False, started)


def _given(candidate: str) -> Extraction:
    return Extraction(candidate=candidate, how="given", span=None, format_valid=None)


def _decision(extraction: Extraction, task: Task, contract: str) -> Decision:
    rules = get_contract(contract)
    if extraction.candidate is not None:
        return rules.decide(extraction.candidate, task, extraction.flags)
    unreadable = rules.check(task) if rules.reference_first else None
    if unreadable is not None:
        return Decision(outcome=Outcome.BAD_REFERENCE, reason=unreadable, method=None)
    return Decision(outcome=Outcome.NO_ANSWER, reason=Reason.NO_ANSWER, method=None)


def _verdict(
    extraction: Extraction, decision: Decision, task: Task, contract: str, truncated: bool, started: int
) -> Verdict:
    elapsed = (perf_counter_ns() - started) // 1_000
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
        reference=task.reference,
        reference_normal=decision.reference_normal,
        verifier_called=decision.verifier_called,
        flags=extraction.flags + decision.flags,
        cost=decision.cost,
        answer_type=decision.answer_type,
        contract=contract,
        fingerprint=get_contract(contract).fingerprint,
        truncated=truncated,
        microseconds=elapsed,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"an answer and a reference are texts, got {type(value).__name__}: {value!r}")
    return value
