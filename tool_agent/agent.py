"""One problem from question to final answer: call, validation, execution, response, verdict, and at most one correction
of each.

    ask_call -> execute -> ask_answer -> verify -> complete
       ^___________|            ^___________|
       a refusal, once          the gate, once

Each step ends in a state that is stored before the next one begins, so that a run goes on after any end without asking
the model anything twice. Several problems are worked at together, so that a generator can write their responses in one
batch; what becomes of a problem does not depend on the others.

Only the verdict decides: a refused call, a second refusal and a tool that never answers all lead to a final response.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from veriward import rewards
from veriward.rewards import DEFAULT
from veriward.rewards.chain import fields_for
from veriward.rewards.pool import VerdictPool, verify_many
from veriward.rewards.verdict import Outcome, Verdict
from veriward.rewards.worker import sources_stamp
from veriward.tool_agent import messages
from veriward.tool_agent.call import READERS, CallRefusal, ToolCall, read_call
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.executor import execute
from veriward.tool_agent.faults import NO_FAULTS, FaultPlan
from veriward.tool_agent.files import differences
from veriward.tool_agent.generator import Finished, Generation, Generator, Message, Prompt, storable
from veriward.tool_agent.messages import Correction
from veriward.tool_agent.state import (
    ANSWERS,
    AgentProblem,
    AnswerAttempt,
    CallAttempt,
    Phase,
    ProblemState,
    Step,
    call_attempt,
    content_sha256,
    executed,
    read_state,
)
from veriward.tool_agent.store import StateStore, fingerprint
from veriward.tool_agent.toolbox import Toolbox

WIDTH = 16
"""Problems that are worked at together."""
WIDEST = 1_000_000
FEW = 3
"""Problems that an error names; among more of them it would name nobody."""


class Gate(StrEnum):
    """Who says whether a final response is to be corrected."""

    ORACLE = "oracle"
    """The verifier with the reference: the score can only rise, and cannot be had where there is no reference."""
    REFERENCE_FREE = "reference_free"
    """What a deployment can see: the answer is missing, cut off, unreadable, or differs from the tool's number."""
    ALWAYS_ONCE = "always_once"
    """Every response: what one more look is worth by itself."""
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """How problems are worked at; all of it decides the outcome, and is part of a run's fingerprint."""

    tools: bool = True
    """False: the model answers alone, and nothing is corrected but by the gate."""
    reader: str = "native"
    """How calls are read: 'native', 'hermes' or 'openai'."""
    gate: Gate = Gate.ORACLE
    contract: str = DEFAULT
    instruction: str = messages.INSTRUCTION
    """Follows each request for a final response."""
    call_tokens: int = 256
    answer_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.reader not in READERS:
            raise ConfigError(f"unknown reader {self.reader!r}; wanted one of {', '.join(READERS)}")
        if self.gate not in list(Gate):
            raise ConfigError(f"unknown gate {self.gate!r}; wanted one of {', '.join(Gate)}")
        object.__setattr__(self, "gate", Gate(self.gate))
        for name in ("call_tokens", "answer_tokens"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} must be a number of tokens, at least 1, got {value!r}")
        if not 0 <= self.temperature < math.inf:
            raise ConfigError(f"temperature must be 0 (greedy) or more, got {self.temperature}")


def describe_agent(generator: Generator, toolbox: Toolbox, settings: AgentSettings) -> dict[str, object]:
    """Everything that decides a run beside its problems, JSON-safe. 'code' is of our own sources, and stands apart."""
    from veriward.rewards.contracts import get_contract

    return {
        "code": sources_stamp(Path(rewards.__file__).parent, Path(__file__).parent),
        "generator": dict(generator.settings),
        "toolbox": toolbox.settings if settings.tools else None,
        "contract": {"name": settings.contract, "fingerprint": get_contract(settings.contract).fingerprint},
        "agent": asdict(settings),
    }


def solve(
    problem: AgentProblem,
    generator: Generator,
    toolbox: Toolbox,
    *,
    settings: AgentSettings | None = None,
    store: StateStore | None = None,
    pool: VerdictPool | None = None,
    faults: FaultPlan = NO_FAULTS,
) -> ProblemState:
    """Work at one problem until it is complete; what a store already holds of it is used and not done again.

    store    where each phase is kept; None: nowhere
    pool     where answers are verified; None: the shared pool of this process
    faults   what goes wrong on purpose, and where
    raises   ConfigError for a store that cannot be written, or holds another question under this id
    """
    (state,) = solve_many(
        [problem], generator, toolbox, settings=settings, store=store, pool=pool, faults=faults, width=1
    )
    return state


def solve_many(
    problems: Iterable[AgentProblem],
    generator: Generator,
    toolbox: Toolbox,
    *,
    settings: AgentSettings | None = None,
    store: StateStore | None = None,
    pool: VerdictPool | None = None,
    faults: FaultPlan = NO_FAULTS,
    width: int = WIDTH,
) -> Iterator[ProblemState]:
    """Work at many problems, `width` of them together, and yield each as it is complete; otherwise as `solve`."""
    if not 1 <= width <= WIDEST:
        raise ConfigError(f"width must be from 1 to {WIDEST:,}, got {width}")
    agent = _Agent(generator, toolbox, settings or AgentSettings(), store, pool, faults)
    waiting = iter(problems)
    jobs: list[_Job] = []
    while True:
        jobs += [agent.begin(problem) for problem in islice(waiting, width - len(jobs))]
        if not jobs:
            return
        agent.work_without_model(jobs)
        for job in jobs:
            if job.state.step is Step.NOTHING:
                yield job.state
        jobs = [job for job in jobs if job.state.step is not Step.NOTHING]
        for step in (Step.ASK_CALL, Step.ASK_ANSWER):
            agent.ask([job for job in jobs if job.state.step is step], step)


def refuse_other_settings(store: StateStore, described: dict[str, object]) -> None:
    """A store that was opened for another generator, toolbox or settings would hold states under their name."""
    shared = sorted(described.keys() & store.settings.keys() - {"code"})
    wanted = json.loads(json.dumps({name: described[name] for name in shared}))
    found = differences({name: store.settings[name] for name in shared}, wanted)
    if found:
        raise ConfigError(f"{store.path}: was opened for other settings: {'; '.join(found)}; open it with these")


def to_verify(generation: Generation, problem: AgentProblem, contract: str) -> dict[str, Any]:
    """A response as `verify_many` takes it: here it meets its reference, in every run of whatever kind."""
    return {
        "response": generation.text,
        "reference": problem.reference,
        "truncated": generation.truncated,
        **fields_for(contract, problem.columns),
    }


@dataclass(slots=True)
class _Job:
    problem: AgentProblem
    state: ProblemState


class _Agent:
    """The steps, each from one stored state to the next."""

    def __init__(
        self,
        generator: Generator,
        toolbox: Toolbox,
        settings: AgentSettings,
        store: StateStore | None,
        pool: VerdictPool | None,
        faults: FaultPlan,
    ) -> None:
        self._generator, self._toolbox, self._settings = generator, toolbox, settings
        self._store, self._pool, self._faults = store, pool, faults
        described = describe_agent(generator, toolbox, settings)
        if store is not None:
            refuse_other_settings(store, described)
        self._fingerprint = fingerprint(described) if store is None else store.fingerprint
        self._begun: set[str] = set()

    def begin(self, problem: AgentProblem) -> _Job:
        """The stored state of a problem, or a new one."""
        if problem.id in self._begun:
            raise ConfigError(f"two problems have the id {problem.id!r}; their states would be one: rename one")
        self._begun.add(problem.id)
        return _Job(problem, self._stored(problem) or self._new(problem))

    def _new(self, problem: AgentProblem) -> ProblemState:
        return ProblemState(
            problem=problem.id,
            content_sha256=content_sha256(problem),
            fingerprint=self._fingerprint,
            continued_under=[] if self._store is None else list(self._store.continued_under),
            tools=self._settings.tools,
        )

    def _stored(self, problem: AgentProblem) -> ProblemState | None:
        row = None if self._store is None else self._store.read(problem.id)
        if self._store is None or row is None:
            return None
        state = read_state(row)
        if isinstance(state, str):
            self._store.put_aside(problem.id, state)
            return None
        if state.content_sha256 != content_sha256(problem):
            raise ConfigError(
                f"{self._store.path}: holds another question under the id {problem.id!r}; choose another folder"
            )
        if state.phase is not Phase.COMPLETE:
            state.fingerprint, state.continued_under = self._fingerprint, list(self._store.continued_under)
            if state.step is not Step.FINISH:
                state.replays[state.step.value] = state.replays.get(state.step.value, 0) + 1
        return state

    def _save(self, state: ProblemState, phase: Phase) -> None:
        state.phase = phase
        if self._store is not None:
            self._store.write(state.problem, state.to_row())
        self._faults.at(f"agent.stored.{phase.value}", state.problem)

    # ---- without the model ----------------------------------------------------------------------------------------

    def work_without_model(self, jobs: Sequence[_Job]) -> None:
        """Everything up to the next request to the model, or to the end."""
        for job in jobs:
            if job.state.step is Step.EXECUTE:
                self._execute(job.state)
        self._verify([job for job in jobs if job.state.step is Step.VERIFY])
        for job in jobs:
            if job.state.step is Step.FINISH:
                self._save(job.state, Phase.COMPLETE)

    def _execute(self, state: ProblemState) -> None:
        attempt = state.calls[-1]
        if attempt.call is None:
            raise RuntimeError(f"problem {state.problem}: nothing to execute in {attempt}")
        since = time.perf_counter()
        done = execute(attempt.call, self._toolbox, faults=self._faults, problem=state.problem)
        executed(attempt, done, time.perf_counter() - since)
        self._faults.at("agent.executed", state.problem)
        self._save(state, Phase.TOOL_READY)

    def _verify(self, jobs: Sequence[_Job]) -> None:
        if not jobs:
            return
        contract = self._settings.contract
        rows = [to_verify(job.state.answers[-1].generation, job.problem, contract) for job in jobs]
        for job, verdict in zip(jobs, self._verdicts(rows), strict=True):
            last = job.state.answers[-1]
            last.verdict = verdict.to_row(reference=False)
            correction = self._correction(job) if len(job.state.answers) < ANSWERS else None
            last.gate = None if correction is None else correction.value
            self._faults.at("agent.verified", job.problem.id)
            self._save(job.state, Phase.GRADED)

    def _verdicts(self, rows: Sequence[dict[str, Any]]) -> list[Verdict]:
        return verify_many(rows, contract=self._settings.contract, pool=self._pool)

    def _correction(self, job: _Job) -> Correction | None:
        last = job.state.answers[-1]
        match self._settings.gate:
            case Gate.ORACLE:
                return _by_outcome(last.outcome, last.generation)
            case Gate.REFERENCE_FREE:
                return self._without_reference(job)
            case Gate.ALWAYS_ONCE:
                return Correction.LOOK_AGAIN
        return None

    def _without_reference(self, job: _Job) -> Correction | None:
        """Compared with the tool's own number by the same verifier; documents are nothing to compare with.

        Both ways: `1.414214` is right where the tool says 1.4142135623730951, and that is no answer rounded to it.
        """
        last, result = job.state.answers[-1], job.state.result
        if last.generation.truncated:
            return Correction.CUT_OFF
        if last.outcome == Outcome.NO_ANSWER:
            return Correction.NOT_ACCEPTED
        if result is None or not isinstance(result.value, int | float):
            return None
        (against_tool,) = self._verdicts(
            [{"response": last.generation.text, "reference": result.text, "truncated": last.generation.truncated}]
        )
        if against_tool.outcome is Outcome.WRONG and against_tool.candidate is not None:
            (turned,) = self._verdicts([{"prediction": result.text, "reference": against_tool.candidate}])
            if turned.correct:
                return None
        return _by_outcome(against_tool.outcome, last.generation)

    # ---- with the model -------------------------------------------------------------------------------------------

    def ask(self, jobs: Sequence[_Job], step: Step) -> None:
        """Have the model write what comes next in these problems; each is stored as soon as it is there."""
        if not jobs:
            return
        prompts = [self._prompt(job) for job in jobs]
        unanswered = set(range(len(jobs)))
        since = time.perf_counter()

        def on_finished(finished: Finished) -> None:
            nonlocal since
            seconds = round((time.perf_counter() - since) / max(1, len(finished)), 4)
            for index, generation in finished:
                if index not in unanswered:
                    raise RuntimeError(f"{self._generator.name}: handed over prompt {index} twice, or never had it")
                unanswered.discard(index)
                self._take(jobs[index].state, prompts[index], generation, step, seconds)
            since = time.perf_counter()

        for_call = step is Step.ASK_CALL
        arguments = messages.template_arguments(self._toolbox, self._settings.reader, for_call=for_call)
        try:
            written = self._generator.generate(
                prompts,
                temperature=self._settings.temperature,
                max_new_tokens=self._settings.call_tokens if for_call else self._settings.answer_tokens,
                seed=self._settings.seed,
                chat_template_kwargs=arguments if self._settings.tools else None,
                on_finished=on_finished,
            )
        except ConfigError as error:
            waiting = [jobs[index].problem.id for index in sorted(unanswered)]
            if len(waiting) > FEW:
                raise
            raise ConfigError(f"{error}; without an answer: problem {', '.join(waiting)}") from error
        if unanswered and len(written) == len(jobs):  # a generator need not call on_finished
            on_finished([(index, written[index]) for index in sorted(unanswered)])
        if unanswered:
            problem = jobs[min(unanswered)].problem.id
            raise RuntimeError(f"{self._generator.name}: nothing was handed over for problem {problem}")

    def _prompt(self, job: _Job) -> Prompt:
        state, settings = job.state, self._settings
        if state.answers:
            rejected = state.answers[-1]
            correction = Correction(rejected.gate or Correction.NOT_ACCEPTED)
            return _joined(
                rejected.prompt, messages.after_answer(rejected.generation, correction, settings.instruction)
            )
        if not settings.tools:
            return messages.plain(job.problem.question, settings.instruction)
        if not state.calls:
            return messages.opening(job.problem.question, self._toolbox, settings.reader)
        last = state.calls[-1]
        return _joined(last.prompt, self._after_call(state, last))

    def _after_call(self, state: ProblemState, last: CallAttempt) -> list[Message]:
        reader, instruction = self._settings.reader, self._settings.instruction
        if last.result is not None and state.step is Step.ASK_CALL:
            return messages.after_refusal(last.generation, last.result, reader)
        if last.result is not None and last.result.ok:
            return messages.after_result(last.generation, last.result, reader, instruction)
        return messages.without_result(last.generation, reader, instruction)

    def _take(self, state: ProblemState, prompt: Prompt, written: Generation, step: Step, seconds: float) -> None:
        """Put down what the model wrote, read as a call where one was asked for."""
        generation = replace(
            written,
            text=storable(written.text),
            token_ids=tuple(map(int, written.token_ids)),
            tool_calls=None if written.tool_calls is None else storable(written.tool_calls),
        )
        if step is Step.ASK_CALL:
            read = self._read(written)
            state.calls.append(call_attempt(prompt, generation, read, seconds))
        else:
            state.answers.append(AnswerAttempt(prompt=prompt, generation=generation, seconds=seconds))
        self._faults.at("agent.asked", state.problem)
        self._save(state, Phase.CALL_WRITTEN if step is Step.ASK_CALL else Phase.ANSWERED)

    def _read(self, written: Generation) -> ToolCall | CallRefusal:
        reader = self._settings.reader
        text = written.tool_calls if reader == "openai" and written.tool_calls is not None else written.text
        return read_call(text, reader, self._toolbox.tools)


def _by_outcome(outcome: str | None, generation: Generation) -> Correction | None:
    """Undecided and lost verdicts say nothing about the answer, and ask for nothing."""
    if outcome == Outcome.UNSUPPORTED:
        return Correction.UNREADABLE
    if outcome in (Outcome.WRONG, Outcome.NO_ANSWER):
        return Correction.CUT_OFF if generation.truncated else Correction.NOT_ACCEPTED
    return None


def _joined(prompt: Prompt, more: list[Message]) -> Prompt:
    if isinstance(prompt, str):
        raise TypeError("a conversation goes on from messages, not from plain text")
    return [*prompt, *more]
