"""Where one problem stands: what was asked, what came back, what was decided, and what comes next.

A state is the whole memory of a problem. It is stored after each phase, and what comes next is read off it alone, so
that a run goes on after any end as if there had been none:

    new            nothing yet
    call_written   the model wrote what should be a call; it was read, or refused
    tool_ready     the call was run: a result, or the executor's refusal
    answered       the model wrote a final response
    graded         the response has its verdict
    complete       nothing more will be asked

It never holds a reference, nor anything made from one but the verdict's outcome.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, Self

from veriward.tool_agent.call import CallRefusal, ToolCall
from veriward.tool_agent.executor import Execution, refused_call
from veriward.tool_agent.generator import Generation, Prompt
from veriward.tool_agent.result import TRANSIENT, Category, Envelope, ToolResult

SCHEMA = 1

CALLS, ANSWERS = 2, 2
"""What a model may write of each: the first one and one correction."""

Row = dict[str, Any]


class AgentProblem(Protocol):
    """What is asked; `veriward.eval.problems.Problem` is one."""

    @property
    def id(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def columns(self) -> Mapping[str, object]:
        """`answer_type` and `options`, where they are there, say how the answer is verified."""


class Phase(StrEnum):
    NEW = "new"
    CALL_WRITTEN = "call_written"
    TOOL_READY = "tool_ready"
    ANSWERED = "answered"
    GRADED = "graded"
    COMPLETE = "complete"


class Step(StrEnum):
    """What comes next."""

    ASK_CALL = "ask_call"
    EXECUTE = "execute"
    ASK_ANSWER = "ask_answer"
    VERIFY = "verify"
    FINISH = "finish"
    NOTHING = "nothing"


@dataclass(slots=True, kw_only=True)
class CallAttempt:
    """One text that should be a call, and what became of it."""

    prompt: Prompt
    generation: Generation
    call: ToolCall | None
    """None where the text is no call."""
    result: ToolResult | None = None
    """A reader's refusal at once; of a call, what the executor said; None until it was run."""
    executor_attempts: int = 0
    transient: tuple[Category, ...] = ()
    """Faults of the machinery while it was run; no correction was spent on them."""
    seconds: float = 0.0
    """Of writing and running it."""
    tool_seconds: float = 0.0
    """Of these, of running it."""

    @property
    def refused(self) -> bool:
        """By the reader or by the executor, for what the model wrote."""
        return self.result is not None and self.result.category is not None and self.result.category not in TRANSIENT


@dataclass(slots=True, kw_only=True)
class AnswerAttempt:
    """One final response and its verdict."""

    prompt: Prompt
    generation: Generation
    verdict: Row | None = None
    """The verdict's row without the reference; None until it was verified."""
    gate: str | None = None
    """Why it is to be corrected, said with the verdict; None where it is not."""
    seconds: float = 0.0

    @property
    def outcome(self) -> str | None:
        return None if self.verdict is None else str(self.verdict["outcome"])


@dataclass(slots=True, kw_only=True)
class ProblemState:
    """All that is known of one problem in one run."""

    problem: str
    """Its id."""
    content_sha256: str
    """Of what is asked, so that another question under the same id is noticed."""
    fingerprint: str
    """Of the run's settings."""
    continued_under: list[Mapping[str, str]] = field(default_factory=list)
    """Each time the run went on under other code: fingerprints 'from' and 'to', and the 'time'."""
    tools: bool = True
    """False: the model answers alone."""
    calls: list[CallAttempt] = field(default_factory=list)
    answers: list[AnswerAttempt] = field(default_factory=list)
    phase: Phase = Phase.NEW
    replays: dict[str, int] = field(default_factory=dict)
    """Steps that a restart found without a result and began again, by name."""

    @property
    def step(self) -> Step:
        """What comes next, read off what is there."""
        if self.phase is Phase.COMPLETE:
            return Step.NOTHING
        if self.answers:
            if self.answers[-1].verdict is None:
                return Step.VERIFY
            return Step.FINISH if self.answers[-1].gate is None else Step.ASK_ANSWER
        if not self.tools:
            return Step.ASK_ANSWER
        if not self.calls:
            return Step.ASK_CALL
        last = self.calls[-1]
        if last.result is None:
            return Step.EXECUTE
        return Step.ASK_CALL if last.refused and len(self.calls) < CALLS else Step.ASK_ANSWER

    @property
    def result(self) -> ToolResult | None:
        """The tool result that the final response is written on; None where there is none."""
        if not self.calls or self.calls[-1].result is None or not self.calls[-1].result.ok:
            return None
        return self.calls[-1].result

    @property
    def call_corrections(self) -> int:
        return max(0, len(self.calls) - 1)

    @property
    def answer_retries(self) -> int:
        return max(0, len(self.answers) - 1)

    @property
    def executor_attempts(self) -> int:
        return sum(attempt.executor_attempts for attempt in self.calls)

    @property
    def first_outcome(self) -> str | None:
        return self.answers[0].outcome if self.answers else None

    @property
    def outcome(self) -> str | None:
        """Of the last response that has a verdict."""
        return next((answer.outcome for answer in reversed(self.answers) if answer.verdict is not None), None)

    def to_row(self) -> Row:
        """Everything as JSON, in the order in which a person reads it."""
        return {
            "schema": SCHEMA,
            "fingerprint": self.fingerprint,
            "continued_under": [dict(entry) for entry in self.continued_under],
            "problem": {"id": self.problem, "content_sha256": self.content_sha256},
            "phase": self.phase.value,
            "outcome": self.outcome,
            "tools": self.tools,
            "call_corrections": self.call_corrections,
            "answer_retries": self.answer_retries,
            "executor_attempts": self.executor_attempts,
            "replays": dict(self.replays),
            "calls": [_call_row(attempt) for attempt in self.calls],
            "answers": [_answer_row(attempt) for attempt in self.answers],
        }

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The state of a row. ValueError, KeyError or TypeError for a row that is none: `read_state` catches them."""
        if row["schema"] != SCHEMA:
            raise ValueError(f"schema {row['schema']!r}; this version reads {SCHEMA}")
        return cls(
            problem=row["problem"]["id"],
            content_sha256=row["problem"]["content_sha256"],
            fingerprint=row["fingerprint"],
            continued_under=list(row["continued_under"]),
            tools=row["tools"],
            calls=[_call(part) for part in row["calls"]],
            answers=[_answer(part) for part in row["answers"]],
            phase=Phase(row["phase"]),
            replays=dict(row["replays"]),
        )


def read_state(row: Row) -> ProblemState | str:
    """The state of a stored row, or why it is none."""
    try:
        state = ProblemState.from_row(row)
    except (KeyError, TypeError, ValueError) as error:
        return f"no state: {type(error).__name__}: {error}"
    if state.phase is not (expected := _phase_of(state)) and state.phase is not Phase.COMPLETE:
        return f"no state: phase {state.phase} where the content says {expected}"
    return state


def _phase_of(state: ProblemState) -> Phase:
    """The phase that the content stands for, before completion."""
    if state.answers:
        return Phase.GRADED if state.answers[-1].verdict is not None else Phase.ANSWERED
    if not state.calls:
        return Phase.NEW
    last = state.calls[-1]
    return Phase.TOOL_READY if last.call is not None and last.result is not None else Phase.CALL_WRITTEN


def content_sha256(problem: AgentProblem) -> str:
    """Of everything about a problem but its reference."""
    asked = {name: problem.columns[name] for name in ("answer_type", "options") if name in problem.columns}
    content = json.dumps([problem.id, problem.question, asked], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()


# ------------------------------------------------------------------------------------------ to and from JSON


def _generation_row(generation: Generation) -> Row:
    return {
        "text": generation.text,
        "tool_calls": generation.tool_calls,
        "token_ids": list(generation.token_ids),
        "finish_reason": generation.finish_reason,
        "seed": generation.seed,
        "reported_tokens": generation.reported_tokens,
    }


def _generation(row: Row) -> Generation:
    return Generation(
        text=row["text"],
        tool_calls=row["tool_calls"],
        token_ids=tuple(row["token_ids"]),
        finish_reason=row["finish_reason"],
        seed=row["seed"],
        reported_tokens=row.get("reported_tokens"),  # not there in states of version 0.1
    )


def _call_row(attempt: CallAttempt) -> Row:
    call, result = attempt.call, attempt.result
    return {
        "prompt": attempt.prompt,
        **_generation_row(attempt.generation),
        "call": None
        if call is None
        else {"tool": call.tool, "arguments": call.arguments, "envelope": list(call.envelope)},
        "result": None if result is None else _result_row(result),
        "executor_attempts": attempt.executor_attempts,
        "transient": list(attempt.transient),
        "seconds": attempt.seconds,
        "tool_seconds": attempt.tool_seconds,
    }


def _result_row(result: ToolResult) -> Row:
    return {
        "ok": result.ok,
        "value": result.value,
        "text": result.text,
        "category": result.category,
        "hint": result.hint,
        "tool": result.tool,
        "envelope": list(result.envelope),
    }


def _call(row: Row) -> CallAttempt:
    call, result = row["call"], row["result"]
    return CallAttempt(
        prompt=row["prompt"],
        generation=_generation(row),
        call=None
        if call is None
        else ToolCall(tool=call["tool"], arguments=call["arguments"], envelope=tuple(map(Envelope, call["envelope"]))),
        result=None if result is None else _result(result),
        executor_attempts=row["executor_attempts"],
        transient=tuple(map(Category, row["transient"])),
        seconds=row["seconds"],
        tool_seconds=row.get("tool_seconds", 0.0),
    )


def _result(row: Row) -> ToolResult:
    return ToolResult(
        ok=row["ok"],
        value=row["value"],
        text=row["text"],
        category=None if row["category"] is None else Category(row["category"]),
        hint=row["hint"],
        tool=row["tool"],
        envelope=tuple(map(Envelope, row["envelope"])),
    )


def _answer_row(attempt: AnswerAttempt) -> Row:
    return {
        "prompt": attempt.prompt,
        **_generation_row(attempt.generation),
        "verdict": attempt.verdict,
        "gate": attempt.gate,
        "seconds": attempt.seconds,
    }


def _answer(row: Row) -> AnswerAttempt:
    return AnswerAttempt(
        prompt=row["prompt"],
        generation=_generation(row),
        verdict=row["verdict"],
        gate=row["gate"],
        seconds=row["seconds"],
    )


def call_attempt(prompt: Prompt, generation: Generation, read: ToolCall | CallRefusal, seconds: float) -> CallAttempt:
    """What a model wrote as a call, as it was read."""
    if isinstance(read, CallRefusal):
        return CallAttempt(prompt=prompt, generation=generation, call=None, result=refused_call(read), seconds=seconds)
    return CallAttempt(prompt=prompt, generation=generation, call=read, seconds=seconds)


def executed(attempt: CallAttempt, execution: Execution, seconds: float) -> None:
    """Put down what the executor said."""
    attempt.result = execution.result
    attempt.executor_attempts = execution.attempts
    attempt.transient = execution.transient
    attempt.seconds = round(attempt.seconds + seconds, 4)
    attempt.tool_seconds = round(seconds, 4)
