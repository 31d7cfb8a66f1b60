"""The one evaluation loop: problems to prompts, to responses, to verdicts, to stored states, to a summary.

A response is stored as soon as the generator hands it over, one state for each (`tool_agent.store`), and again with its
verdict, so that a run that is stopped, killed or out of disk goes on as if nothing had been: what is stored is not
asked again, and what has no verdict yet gets it first.
The reference of a problem meets its response only in `verify_many`, after the response is written.

Runs with tools and corrections go through `agent_run.run_agent`: the same problems, generators, verifier and store.
"""

from __future__ import annotations

import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias, TypeVar

from veriward.eval.generators import check_request, check_samples
from veriward.eval.metrics import Summary, summarise_run
from veriward.eval.problems import Problem, ProblemSet
from veriward.eval.prompting import PromptTemplate
from veriward.eval.runs import (
    SUMMARY,
    Row,
    Run,
    describe_problems,
    read_run,
    response_key,
    run_problems,
    write_problems,
)
from veriward.rewards import CONTRACTS, DEFAULT, Outcome, Verdict, get_contract, verify_many
from veriward.tool_agent.agent import to_verify
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import cannot_write, to_json, write_whole
from veriward.tool_agent.generator import Finished, Generation, Generator, Prompt, storable
from veriward.tool_agent.state import AnswerAttempt, Phase, ProblemState, content_sha256, read_state
from veriward.tool_agent.store import Durability, Kind, StateStore, open_store

LIBRARIES = ("veriward", "torch", "transformers", "tokenizers", "peft", "vllm", "sympy", "python-flint")
"""Whose versions can change a response or a verdict."""

T = TypeVar("T")

AT_ONCE = 256
"""Responses stored, or verified, in one go."""
WRITERS = 8
"""States on their way to the disk at the same time."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """Where a run stands; the same object is handed over after every batch."""

    total: int
    """Responses that the run needs."""
    reused: int = 0
    """Of these, stored by an earlier start of the same run."""
    finished: int = 0
    """Responses verified and stored, the reused ones included."""
    tokens: int = 0
    """Written since this start."""
    truncated: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, *, outcome: str, truncated: bool) -> None:
        self.finished += 1
        self.truncated += truncated
        self.outcomes[outcome] += 1


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    folder: Path
    run: Run
    summary: Summary
    reused: int
    """How many responses were stored by an earlier start."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """One per response, in the order of the problems and their samples; see `runs.answer_row`."""
        return self.run.rows


def evaluate(
    generator: Generator,
    problems: ProblemSet,
    out_dir: str | Path,
    *,
    template: PromptTemplate,
    contract: str = DEFAULT,
    samples: int = 1,
    temperature: float = 0.0,
    max_new_tokens: int = 512,
    seed: int = 0,
    stop: Sequence[str] = (),
    kind: Kind = "files",
    durability: Durability = "power",
    on_progress: OnProgress | None = None,
    notice: Callable[[str], None] = lambda line: None,
) -> EvalResult:
    """Ask every problem, verify every response, and leave the states and their summary in `out_dir`.

    Started again with the same settings it goes on where it was stopped: what is stored is not asked again.
    References that the contract cannot read are found first; their problems are left out and listed.

    temperature   0 is greedy; above 0 each of the `samples` responses is drawn from a seed of its own
    kind          'files', one a response, or 'sqlite' for large sets
    durability    'power': a stored response survives a power failure; 'process': the end of the process
    notice        is told, in a line, what was found on the way in: the lock of a dead writer, a damaged state
    raises        ConfigError for settings that cannot work, and for a folder that holds another run
    """
    settings = describe_run(
        generator,
        problems,
        template=template,
        contract=contract,
        samples=samples,
        temperature=temperature,
        max_new_tokens=max_new_tokens,
        seed=seed,
        stop=stop,
    )
    asked = run_problems(problems, contract)
    folder = Path(out_dir)
    with open_store(folder, settings, kind=kind, durability=durability) as store:
        if store.took_over is not None:
            notice(store.took_over)
        write_problems(folder, asked)
        progress = Progress(total=len(asked.asked) * samples)
        stored = count_stored(store, progress)
        for line in store.set_aside:
            notice(f"set aside and asked anew, a state that could not be read: {line}")
        asks = [
            Ask(problem, template.render(problem.question), sample, response_key(problem.id, sample, samples))
            for problem in asked.asked
            for sample in range(samples)
        ]
        pending = [ask for ask in asks if ask.key not in stored.complete and ask.key not in stored.answered]
        unverified = [(ask.problem, stored.answered[ask.key]) for ask in asks if ask.key in stored.answered]
        if on_progress is not None:
            on_progress(progress)
        if pending or unverified:
            (folder / SUMMARY).unlink(missing_ok=True)
            with Recorder(pending, store, contract, progress, on_progress) as recorder:
                recorder.verify(unverified)
                if pending:
                    generator.generate(
                        [ask.prompt for ask in pending],
                        sample_numbers=[ask.sample for ask in pending],
                        temperature=temperature,
                        max_new_tokens=max_new_tokens,
                        seed=seed,
                        stop=stop,
                        chat_template_kwargs=template.chat_template_kwargs,
                        on_finished=recorder,
                    )
    result = finish(folder, reused=progress.reused, name=generator.name)
    if temperature > 0 and all_alike(result.run):
        notice(
            f"every sample of every problem is the same text; does {generator.name} take no notice of the temperature?"
        )
    return result


def finish(folder: Path, *, reused: int, name: str) -> EvalResult:
    """A whole run read back, with its summary."""
    run = read_run(folder)
    if run.missing:
        raise RuntimeError(f"{name}: {len(run.missing)} responses were never handed over; the first: {run.missing[0]}")
    return EvalResult(folder=folder, run=run, summary=write_summary(run), reused=reused)


def all_alike(run: Run) -> bool:
    """Several samples, and no problem with two different ones."""
    texts: dict[str, set[str]] = {}
    for row in run.rows:
        texts.setdefault(row["id"], set()).add(row["text"])
    return run.samples > 1 and all(len(found) == 1 for found in texts.values())


def write_summary(run: Run) -> Summary:
    """Made of what is stored, and of nothing else."""
    summary = summarise_run(run)
    try:
        write_whole(run.path / SUMMARY, to_json(summary.to_row()))
    except OSError as error:
        raise cannot_write(run.path / SUMMARY, error) from error
    return summary


class Stored(NamedTuple):
    """What an earlier start of a run left."""

    complete: set[str]
    answered: dict[str, ProblemState]
    """By their keys: responses that the process ended too soon to verify."""


def count_stored(store: StateStore, progress: Progress) -> Stored:
    """What is complete is counted."""
    stored = Stored(set(), {})
    for row in store.rows():
        key = row["problem"]["id"]
        if row["phase"] == Phase.COMPLETE:
            stored.complete.add(key)
            progress.add(outcome=row["outcome"], truncated=row["answers"][-1]["finish_reason"] == "length")
        elif row["phase"] == Phase.ANSWERED and isinstance(state := read_state(row), ProblemState):
            stored.answered[key] = state
    progress.reused = len(stored.complete)
    return stored


def describe_run(
    generator: Generator,
    problems: ProblemSet,
    *,
    template: PromptTemplate,
    contract: str,
    samples: int,
    temperature: float,
    max_new_tokens: int,
    seed: int,
    stop: Sequence[str] = (),
) -> dict[str, object]:
    """Everything that decides the responses and verdicts of a run, as run.json holds it and a restart compares it."""
    check_samples(samples, temperature)
    check_request(temperature, max_new_tokens)
    return {
        "generator": dict(generator.settings),
        "problems": describe_problems(problems),
        "prompt": dict(template.settings),
        "contract": describe_contract(contract),
        "generation": {
            "samples": samples,
            "temperature": temperature,
            "max_new_tokens": max_new_tokens,
            "seed": seed,
            "stop": list(stop),
        },
        "versions": {"python": platform.python_version(), **{name: library_version(name) for name in LIBRARIES}},
    }


def describe_contract(contract: str) -> dict[str, str]:
    if contract not in CONTRACTS:
        raise ConfigError(f"unknown contract {contract!r}; wanted one of {', '.join(CONTRACTS)}")
    return {"name": contract, "fingerprint": get_contract(contract).fingerprint}


class Ask(NamedTuple):
    """One response that is to be written."""

    problem: Problem
    prompt: Prompt
    sample: int
    key: str


class Answer(NamedTuple):
    """One response as it was handed over."""

    ask: Ask
    generation: Generation
    seconds: float
    """The time of its batch, shared out evenly among its responses."""


Unverified: TypeAlias = tuple[Problem, ProblemState]
"""A response that is stored, and has no verdict yet."""


class Recorder:
    """What happens to finished responses: disk, verdict, disk again, progress. The generator calls it and writes on.

    It works in two threads of its own, so that a fast engine waits for neither the disk nor the verifier: one stores
    responses as they come, the other verifies those that are stored. Several states are written at a time, since a disk
    flushes many files in the time of one. What was handed over and is not stored yet when the process is killed is
    asked again; a run that ends otherwise, by Ctrl-C too, stores and verifies it first. An error ends the generation.
    """

    def __init__(
        self,
        asks: Sequence[Ask],
        store: StateStore,
        contract: str,
        progress: Progress,
        on_progress: OnProgress | None,
    ) -> None:
        self._asks, self._store, self._contract = asks, store, contract
        self._progress, self._on_progress = progress, on_progress
        self._handed_over: SimpleQueue[list[Answer] | None] = SimpleQueue()
        self._to_verify: SimpleQueue[list[Unverified] | None] = SimpleQueue()
        self._error: BaseException | None = None
        self._since = time.perf_counter()
        self._threads = [
            threading.Thread(target=self._work, args=(self._handed_over, self._keep), name="store", daemon=True),
            threading.Thread(target=self._work, args=(self._to_verify, self._verify), name="verify", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, finished: Finished) -> None:
        if self._error is not None:
            raise self._error
        seconds = round((time.perf_counter() - self._since) / max(1, len(finished)), 4)
        answers = [Answer(self._asks[index], as_stored(generation), seconds) for index, generation in finished]
        self._handed_over.put(answers)
        self._since = time.perf_counter()

    def verify(self, unverified: Sequence[Unverified]) -> None:
        """Responses that an earlier start stored."""
        if unverified:
            self._to_verify.put(list(unverified))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything that was handed over is stored and verified, or the error that kept it from being is raised."""
        store, verify = self._threads
        self._handed_over.put(None)
        store.join()  # before the other: it hands over
        self._to_verify.put(None)
        verify.join()
        if self._error is not None and self._error is not error:
            raise self._error

    def _work(self, queue: SimpleQueue[list[T] | None], do: Callable[[list[T], Executor], None]) -> None:
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="write") as writers:
            while (items := all_that_wait(queue)) is not None:
                try:
                    do(items, writers)
                except BaseException as error:  # noqa: BLE001  raised where the generator hands over
                    self._error = error
                    return

    def _keep(self, answers: list[Answer], writers: Executor) -> None:
        unverified = [(answer.ask.problem, self._state(answer)) for answer in answers]
        self._write([state for _, state in unverified], writers)
        self._progress.tokens += sum(answer.generation.tokens for answer in answers)
        self._to_verify.put(unverified)

    def _verify(self, unverified: list[Unverified], writers: Executor) -> None:
        answers = [(problem, state.answers[-1]) for problem, state in unverified]
        verdicts = verify_many(
            [to_verify(answer.generation, problem, self._contract) for problem, answer in answers],
            contract=self._contract,
        )
        for (problem, answer), (_, state), verdict in zip(answers, unverified, verdicts, strict=True):
            refuse_unread_reference(problem, verdict)
            answer.verdict, state.phase = verdict.to_row(reference=False), Phase.COMPLETE
        states = [state for _, state in unverified]
        self._write(states, writers)
        for state in states:
            self._progress.add(outcome=str(state.outcome), truncated=state.answers[-1].generation.truncated)
        if self._on_progress is not None:
            self._on_progress(self._progress)

    def _write(self, states: Sequence[ProblemState], writers: Executor) -> None:
        list(writers.map(lambda state: self._store.write(state.problem, state.to_row()), states))

    def _state(self, answer: Answer) -> ProblemState:
        return ProblemState(
            problem=answer.ask.key,
            content_sha256=content_sha256(answer.ask.problem),
            fingerprint=self._store.fingerprint,
            tools=False,
            answers=[AnswerAttempt(prompt=answer.ask.prompt, generation=answer.generation, seconds=answer.seconds)],
            phase=Phase.ANSWERED,
        )


def all_that_wait(queue: SimpleQueue[list[T] | None]) -> list[T] | None:
    """What is in a queue, up to AT_ONCE; None at its end."""
    items = queue.get()
    while items is not None and len(items) < AT_ONCE and not queue.empty():
        more = queue.get()
        if more is None:
            queue.put(None)
            break
        items = [*items, *more]
    return items


def as_stored(generation: Generation) -> Generation:
    """As text files can hold it: the stored text is the text that is judged."""
    return replace(generation, text=storable(generation.text), token_ids=tuple(map(int, generation.token_ids)))


def refuse_unread_reference(problem: Problem, verdict: Verdict) -> None:
    if verdict.outcome is Outcome.BAD_REFERENCE:
        raise RuntimeError(
            f"problem {problem.id}: check_reference reads the reference {problem.reference!r}, "
            f"but verify refuses it: {verdict.reason}"
        )


def library_version(name: str) -> str | None:
    """None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
