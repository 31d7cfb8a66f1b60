"""The one evaluation loop: problems to prompts, to responses, to verdicts, to rows on disk, to a summary.

The reference of a problem meets its response only in `verify_many`, after the response is written.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from veriward.eval.generators import check_request
from veriward.eval.metrics import Summary, summarise
from veriward.eval.problems import Problem, ProblemSet
from veriward.eval.prompting import PromptTemplate
from veriward.eval.run_folder import Row, RunFolder
from veriward.rewards import (
    CONTRACTS,
    DEFAULT,
    Outcome,
    Verdict,
    check_reference,
    fields_for,
    get_contract,
    verify_many,
)
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.generator import Finished, Generation, Generator, Prompt, storable

LIBRARIES = ("veriward", "torch", "transformers", "tokenizers", "peft", "sympy", "python-flint")
"""Whose versions can change a response or a verdict."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """Where a run stands; the same object is handed over after every batch."""

    total: int
    """Responses that the run needs."""
    reused: int
    """Of these, stored by an earlier start of the same run."""
    finished: int = 0
    """Responses verified and stored, the reused ones included."""
    tokens: int = 0
    """Written since this start."""
    truncated: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[Row]) -> None:
        self.finished += len(rows)
        self.truncated += sum(row["truncated"] for row in rows)
        self.outcomes.update(row["outcome"] for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalResult:
    folder: Path
    summary: Summary
    rows: list[Row]
    """One per response, in the order of the problems; the keys are those of `make_row`."""
    reused: int
    """How many of the rows were stored by an earlier start."""
    settings: Mapping[str, object]


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
    on_progress: Callable[[Progress], None] | None = None,
) -> EvalResult:
    """Ask every problem, verify every response, and leave the rows and their summary in `out_dir`.

    Started again with the same settings it goes on where it was stopped: what is stored is not asked again.
    References that the contract cannot read are found first; their problems are left out and listed.

    temperature   0 is greedy; above 0 each of the `samples` responses is drawn from a seed of its own
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
    unreadable = unreadable_references(problems, contract)
    asked = [problem for problem in problems.problems if problem.id not in unreadable]
    if not asked:
        first, reason = next(iter(unreadable.items()))
        raise ConfigError(
            f"{problems.name}: none of its {len(problems)} references can be read under contract {contract}; "
            f"the first, of problem {first}: {reason}; is {problems.reference_column!r} the bare final answer?"
        )
    with RunFolder(out_dir, settings, samples=samples) as folder:
        reused = len(folder.rows)
        known = {problem.id for problem in asked}
        foreign = next((row["id"] for row in folder.rows if row["id"] not in known), None)
        if foreign is not None:
            raise ConfigError(
                f"{out_dir}: holds a response to {foreign!r}, which is no problem of this set; choose another"
            )
        progress = Progress(total=len(asked) * samples, reused=reused)
        progress.add(folder.rows)
        stored = {row["id"] for row in folder.rows}
        pending = [problem for problem in asked if problem.id not in stored]
        prompts = [template.render(problem.question) for problem in pending]
        if on_progress is not None:
            on_progress(progress)
        if pending:
            generator.generate(
                prompts,
                samples=samples,
                temperature=temperature,
                max_new_tokens=max_new_tokens,
                seed=seed,
                stop=stop,
                chat_template_kwargs=template.chat_template_kwargs,
                on_finished=Recorder(pending, prompts, folder, contract, progress, on_progress),
            )
        rows = in_order(folder.rows, asked)
        if len(rows) != progress.total:
            raise RuntimeError(f"{generator.name}: handed over {len(rows)} of {progress.total} responses")
        summary = summarise(rows, contract=contract, samples=samples, unreadable=unreadable)
        folder.write_summary({**summary.to_row(), "contract_fingerprint": get_contract(contract).fingerprint})
    return EvalResult(folder=Path(out_dir), summary=summary, rows=rows, reused=reused, settings=settings)


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
    """Everything that decides the rows of a run, as it is written to settings.json and compared on a restart."""
    if contract not in CONTRACTS:
        raise ConfigError(f"unknown contract {contract!r}; wanted one of {', '.join(CONTRACTS)}")
    check_request(samples, temperature, max_new_tokens)
    return {
        "generator": dict(generator.settings),
        "problems": {
            "name": problems.name,
            "sha256": problems.sha256,
            "count": len(problems),
            "question_column": problems.question_column,
            "reference_column": problems.reference_column,
        },
        "prompt": dict(template.settings),
        "contract": {"name": contract, "fingerprint": get_contract(contract).fingerprint},
        "generation": {
            "samples": samples,
            "temperature": temperature,
            "max_new_tokens": max_new_tokens,
            "seed": seed,
            "stop": list(stop),
        },
        "versions": {"python": platform.python_version(), **{name: library_version(name) for name in LIBRARIES}},
    }


def unreadable_references(problems: ProblemSet, contract: str) -> dict[str, str]:
    """Problem id to the reason its reference cannot be read; known before any response exists."""
    reasons = {
        problem.id: check_reference(problem.reference, contract=contract, **fields_for(contract, problem.columns))
        for problem in problems.problems
    }
    return {identity: reason.value for identity, reason in reasons.items() if reason is not None}


class Recorder:
    """What happens to finished responses: verdict, row, disk, progress. Called by the generator."""

    def __init__(
        self,
        problems: Sequence[Problem],
        prompts: Sequence[Prompt],
        folder: RunFolder,
        contract: str,
        progress: Progress,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._problems, self._prompts, self._folder, self._contract = problems, prompts, folder, contract
        self._progress, self._on_progress = progress, on_progress
        self._since = time.perf_counter()

    def __call__(self, finished: Finished) -> None:
        responses = sum(len(generations) for _, generations in finished)
        if not responses:
            return
        seconds = round((time.perf_counter() - self._since) / responses, 4)
        answers = [
            Answer(self._problems[index], self._prompts[index], sample, generation)
            for index, generations in finished
            for sample, generation in enumerate(generations)
        ]
        verdicts = verify_many([answer.to_verify(self._contract) for answer in answers], contract=self._contract)
        rows = [make_row(answer, verdict, seconds) for answer, verdict in zip(answers, verdicts, strict=True)]
        self._folder.append(rows)
        self._progress.tokens += sum(row["tokens"] for row in rows)
        self._progress.add(rows)
        if self._on_progress is not None:
            self._on_progress(self._progress)
        self._since = time.perf_counter()


class Answer(NamedTuple):
    """One response to one problem."""

    problem: Problem
    prompt: Prompt
    sample: int
    generation: Generation

    @property
    def text(self) -> str:
        return storable(self.generation.text)

    def to_verify(self, contract: str) -> dict[str, object]:
        return {
            "response": self.text,
            "reference": self.problem.reference,
            "truncated": self.generation.truncated,
            **fields_for(contract, self.problem.columns),
        }


def make_row(answer: Answer, verdict: Verdict, seconds: float) -> Row:
    """One response with its verdict: the line of rows.jsonl.

    `seconds` is the time of the batch, shared out evenly among its responses.
    """
    problem, prompt, sample, generation = answer
    if verdict.outcome is Outcome.BAD_REFERENCE:
        raise RuntimeError(
            f"problem {problem.id}: check_reference reads the reference {problem.reference!r}, "
            f"but verify refuses it: {verdict.reason}"
        )
    row = verdict.to_row()
    del row["microseconds"]  # "seconds" is the time that counts here
    return {
        "id": problem.id,
        "sample": sample,
        "prompt": prompt,
        "text": answer.text,
        "tokens": len(generation.token_ids),
        "finish_reason": generation.finish_reason,
        "seed": generation.seed,
        "seconds": seconds,
        **row,
    }


def in_order(rows: Sequence[Row], problems: Sequence[Problem]) -> list[Row]:
    place = {problem.id: index for index, problem in enumerate(problems)}
    return sorted(rows, key=lambda row: (place[row["id"]], row["sample"]))


def library_version(name: str) -> str | None:
    """None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
