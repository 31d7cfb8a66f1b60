"""A run read back from its folder: what was asked, what came back, what was decided.

Everything that counts, compares, promotes, draws or writes a card reads runs through `read_run`, and through nothing
else. A folder holds

    run.json        the settings of the run and their fingerprint (`tool_agent.run_header`)
    problems.jsonl  what is asked: question, reference and columns of every problem, and why a reference is unreadable
    states          one for each response (`tool_agent.store`)
    summary.json    once every response is there

Nothing is changed and nothing asked while one is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from veriward.eval.problems import Problem, ProblemSet, hash_problems, load_problems, parse_line
from veriward.eval.tool_problems import NAME, frozen_twelve
from veriward.rewards import CONTRACTS, check_reference, fields_for, get_contract
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import cannot_write, shorten, write_whole
from veriward.tool_agent.run_header import RUN, refuse_unreachable
from veriward.tool_agent.state import AnswerAttempt, CallAttempt, Phase, ProblemState, read_state
from veriward.tool_agent.store import StateReader, read_store

PROBLEMS = "problems.jsonl"
SUMMARY = "summary.json"

Row = dict[str, Any]


class ContractName(NamedTuple):
    name: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProblems:
    """What a run asks, and what it leaves out."""

    problems: tuple[Problem, ...]
    """All of the set, in its order; the reference is empty where `references` is False."""
    unreadable: Mapping[str, str]
    """Problem id to the reason its reference cannot be read under the contract; never asked, and in no number."""
    references: bool = True
    """False in a bundle that was packed without them."""

    @property
    def asked(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.id not in self.unreadable]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, complete or not."""

    path: Path
    settings: Mapping[str, Any]
    """As run.json holds them: 'generator', 'problems', 'contract', and for a plain run 'prompt' and 'generation', for
    one of the tool agent 'agent' and 'toolbox'."""
    fingerprint: str
    continued_under: Sequence[Mapping[str, str]]
    """Each time the run went on under other code."""
    set: RunProblems
    states: tuple[ProblemState, ...]
    """Of every complete response, in the order of the problems and their samples."""
    missing: tuple[str, ...]
    """Keys of the responses that are not there yet; see `response_key`."""
    set_aside: tuple[str, ...]
    """States that could not be read, a line each."""
    label: str | None = None
    """Its name among others, where the folder's is not enough."""

    @property
    def name(self) -> str:
        return self.label or run_name(self.path)

    @property
    def contract(self) -> ContractName:
        return ContractName(self.settings["contract"]["name"], self.settings["contract"]["fingerprint"])

    @property
    def samples(self) -> int:
        """Responses a problem."""
        return samples_of(self.settings)

    @property
    def agent(self) -> bool:
        """A run of the tool agent, with tools or without; else one of the plain evaluation."""
        return "agent" in self.settings

    @property
    def tools(self) -> bool:
        return self.agent and bool(self.settings["agent"]["tools"])

    @property
    def corrected(self) -> bool:
        """A second answer may have been asked for."""
        return self.agent and self.settings["agent"]["gate"] != "never"

    @property
    def model(self) -> str:
        """For people: the last part of the model's path or hub name."""
        return Path(str(self.settings["generator"].get("model", "generator"))).name

    @property
    def problem_set(self) -> str:
        """For people: the name of the set, of a file without its folders."""
        name = str(self.settings["problems"]["name"])
        return Path(name).name if Path(name).suffix else name

    @property
    def weights(self) -> str:
        """What tells one model from another: the hash where the engine knows it, behind a server the model's name."""
        generator = self.settings["generator"]
        return str(generator.get("weights_sha256") or generator.get("script_sha256") or generator.get("model"))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The final answer of every complete response, flat; see `answer_row`."""
        return tuple(answer_row(state, self.samples, -1) for state in self.states)

    @cached_property
    def first_rows(self) -> tuple[Row, ...]:
        """The first answer of every complete response: the same rows where nothing is corrected."""
        return tuple(answer_row(state, self.samples, 0) for state in self.states) if self.corrected else self.rows

    @cached_property
    def by_id(self) -> Mapping[str, Problem]:
        return {problem.id: problem for problem in self.set.problems}

    @property
    def complete(self) -> bool:
        return not self.missing


def response_key(problem: str, sample: int, samples: int) -> str:
    """The id under which a response is stored: the problem's, and with several samples '#' and the sample's number."""
    return problem if samples == 1 else f"{problem}#{sample}"


def problem_of(key: str, samples: int) -> tuple[str, int]:
    """The problem and the sample of a key."""
    if samples == 1:
        return key, 0
    problem, _, sample = key.rpartition("#")
    return problem, int(sample)


def samples_of(settings: Mapping[str, Any]) -> int:
    return int(settings.get("generation", {}).get("samples", 1))


def answer_row(state: ProblemState, samples: int, which: int) -> Row:
    """One answer with its verdict, flat and JSON-safe; the reference is not in it.

    which   0 the first answer, -1 the last one

    id, sample      of the problem, and the number of the sample
    prompt, text    as the model saw and wrote it
    tokens          the answer's; 'all_tokens' has those of every call and answer up to it
    model_calls     requests to the model up to it
    seconds         from the first request to this answer; 'tool_seconds' of them in tools
    then            finish_reason, seed, and the keys of `Verdict.to_row` but the reference's
    """
    answers = state.answers if which else state.answers[:1]
    answer = answers[-1]
    if answer.verdict is None:
        raise ValueError(f"{state.problem}: no verdict, and yet complete")
    problem, sample = problem_of(state.problem, samples)
    attempts: list[CallAttempt | AnswerAttempt] = [*state.calls, *answers]
    written = [attempt.generation for attempt in attempts]
    return {
        "id": problem,
        "sample": sample,
        "prompt": answer.prompt,
        "text": answer.generation.text,
        "tokens": answer.generation.tokens,
        "all_tokens": sum(generation.tokens for generation in written),
        "model_calls": len(written),
        "finish_reason": answer.generation.finish_reason,
        "seed": answer.generation.seed,
        "seconds": round(sum(attempt.seconds for attempt in attempts), 4),
        "tool_seconds": round(sum(attempt.tool_seconds for attempt in state.calls), 4),
        **verdict_fields(answer),
    }


def verdict_fields(answer: AnswerAttempt) -> Row:
    return {name: value for name, value in (answer.verdict or {}).items() if name != "microseconds"}


# ------------------------------------------------------------------------------------------- what is asked, on disk


def run_problems(problems: ProblemSet, contract: str) -> RunProblems:
    """What a run under a contract asks; ConfigError where no reference can be read."""
    unreadable = unreadable_references(problems.problems, contract)
    if len(unreadable) == len(problems):
        first, reason = next(iter(unreadable.items()))
        raise ConfigError(
            f"{problems.name}: none of its {len(problems)} references can be read under contract {contract}; "
            f"the first, of problem {first}: {reason}; is {problems.reference_column!r} the bare final answer?"
        )
    return RunProblems(problems=problems.problems, unreadable=unreadable)


def unreadable_references(problems: Iterable[Problem], contract: str) -> dict[str, str]:
    """Problem id to the reason its reference cannot be read; known before any response exists."""
    reasons = {
        problem.id: check_reference(problem.reference, contract=contract, **fields_for(contract, problem.columns))
        for problem in problems
    }
    return {identity: reason.value for identity, reason in reasons.items() if reason is not None}


def describe_problems(problems: ProblemSet) -> dict[str, object]:
    """As run.json holds it."""
    return {
        "name": problems.name,
        "sha256": problems.sha256,
        "columns_sha256": hash_columns(problems.problems),
        "count": len(problems),
        "question_column": problems.question_column,
        "reference_column": problems.reference_column,
    }


def hash_columns(problems: Iterable[Problem]) -> str:
    """Of the columns that nothing asks and nothing verifies by: subject, level, template, the tool that is named."""
    content = [[problem.id, problem.columns] for problem in problems]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode("ascii")).hexdigest()


def write_problems(folder: Path, asked: RunProblems, *, references: bool = True) -> None:
    """problems.jsonl, where it is not there yet: the settings hold its hashes, so it is compared when it is read."""
    file = folder / PROBLEMS
    if file.exists():
        return
    lines = []
    for problem in asked.problems:
        row: Row = {"id": problem.id, "question": problem.question, "columns": dict(problem.columns)}
        if references:
            row["reference"] = problem.reference
        row["unreadable"] = asked.unreadable.get(problem.id)
        lines.append(json.dumps(row, default=str))
    try:
        write_whole(file, "".join(f"{line}\n" for line in lines).encode("ascii"))
    except OSError as error:
        raise cannot_write(file, error) from error


def read_problems(file: Path, described: Mapping[str, Any]) -> RunProblems:
    """ConfigError where the file is not the one that the run was asked from."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}; make it readable") from error
    rows = [parse_line(file, number, line) for number, line in enumerate(content.splitlines(), start=1)]
    try:
        problems = tuple(
            Problem(
                id=str(row["id"]),
                question=str(row["question"]),
                reference=str(row.get("reference", "")),
                columns=row["columns"],  # type: ignore[arg-type]
            )
            for row in rows
        )
        unreadable = {str(row["id"]): str(row["unreadable"]) for row in rows if row["unreadable"] is not None}
    except KeyError as error:
        raise ConfigError(f"{file}: a row without {error}; put back the file that the run wrote") from error
    references = all("reference" in row for row in rows)
    changed = hash_columns(problems) != described.get("columns_sha256") or (
        references and hash_problems(problems) != described["sha256"]
    )
    if changed:
        raise ConfigError(f"{file}: was changed since the run began; put back the file that the run wrote")
    return RunProblems(problems=problems, unreadable=unreadable, references=references)


def asked_problems(path: Path, described: Mapping[str, Any], given: str | None) -> ProblemSet:
    """The problem set of a run without problems.jsonl, read again from where it was, and compared."""
    name = given or str(described["name"])
    try:
        problems = problem_set_named(name, described.get("question_column"), described.get("reference_column"))
    except ConfigError as error:
        raise ConfigError(f"{path}: its problems cannot be read; name them with --problems: {error}") from error
    if problems.sha256 != described["sha256"]:
        raise ConfigError(
            f"{path}: was asked other problems: {name} has sha256 {problems.sha256[:12]}…, the run "
            f"{shorten(described['sha256'])[:12]}…; name the right ones with --problems"
        )
    if hash_columns(problems.problems) != described.get("columns_sha256"):
        raise ConfigError(
            f"{path}: was asked problems with other columns than {name} has now, such as the tool that each is made "
            "for; put them back, or name the right problems with --problems"
        )
    return problems


def problem_set_named(
    name: str,
    question_column: str | None = None,
    reference_column: str | None = None,
    *,
    split: str | None = None,
    limit: int | None = None,
    sha256: str | None = None,
) -> ProblemSet:
    """The frozen twelve by their name, or what `load_problems` reads."""
    if name == NAME and split is None and limit is None:
        return frozen_twelve()
    return load_problems(
        name,
        question_column=question_column,
        reference_column=reference_column,
        split=split,
        limit=limit,
        sha256=sha256,
    )


# --------------------------------------------------------------------------------------------------------- read back


def read_run(path: str | Path, problems: str | None = None, *, any_contract: bool = False) -> Run:
    """A run's folder, or a file of `state export`.

    problems       where the problem set is now, for a run without problems.jsonl; None: where it was when it was
                   asked. Another set than the run was asked is refused in any case
    any_contract   read the responses of a run whose verdicts nobody here could make again
    raises         ConfigError, in one line, for what is no run, and for one under a contract that this version has not
    """
    place = Path(path)
    refuse_unreachable(place / RUN)
    with read_store(place) as store:
        settings: Any = store.settings
        if not {"generator", "contract", "problems"} <= settings.keys() or "name" not in settings["problems"]:
            raise ConfigError(f"{path}: is no run of a problem set; wanted the folder of `veriward eval` or `agent`")
        if not any_contract:
            refuse_other_contract(place, settings["contract"])
        asked = problems_of(place, settings, problems)
        states, missing = read_states(store, asked, samples_of(settings))
        return Run(
            path=place,
            settings=settings,
            fingerprint=store.fingerprint,
            continued_under=store.header.continued_under,
            set=asked,
            states=states,
            missing=missing,
            set_aside=tuple(store.set_aside),
        )


def read_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Several runs, with names that tell them apart: `before/greedy` and `after/greedy`, not `greedy` twice."""
    runs = [read_run(path) for path in paths]
    names = [[run.name] for run in runs]
    folders = [list(Path(os.path.abspath(run.path)).parent.parts) for run in runs]
    while True:
        shown = ["/".join(name) for name in names]
        alike = [place for place, name in enumerate(shown) if shown.count(name) > 1 and folders[place]]
        if not alike:
            return [replace(run, label=name) for run, name in zip(runs, shown, strict=True)]
        for place in alike:
            names[place].insert(0, folders[place].pop())


def problems_of(path: Path, settings: Mapping[str, Any], given: str | None) -> RunProblems:
    described, contract = settings["problems"], settings["contract"]["name"]
    if path.is_dir() and (path / PROBLEMS).exists():
        if given is not None:
            asked_problems(path, described, given)  # refuses others
        return read_problems(path / PROBLEMS, described)
    return run_problems(asked_problems(path, described, given), contract)


def read_states(
    store: StateReader, asked: RunProblems, samples: int
) -> tuple[tuple[ProblemState, ...], tuple[str, ...]]:
    """The complete states in the order of the problems, and the keys of those that are not there."""
    wanted = [response_key(problem.id, sample, samples) for problem in asked.asked for sample in range(samples)]
    known, found = set(wanted), {}
    for row in store.rows():
        if row["phase"] != Phase.COMPLETE or row["problem"]["id"] not in known:
            continue
        state = read_state(row)
        if isinstance(state, str):
            store.set_aside.append(f"{row['problem']['id']}: {state}")
        else:
            found[state.problem] = state
    return tuple(found[key] for key in wanted if key in found), tuple(key for key in wanted if key not in found)


def refuse_other_contract(path: Path, contract: Mapping[str, str]) -> None:
    name, wanted = contract["name"], contract["fingerprint"]
    here = get_contract(name).fingerprint if name in CONTRACTS else None
    if here != wanted:
        raise ConfigError(
            f"{path}: graded under contract {name} with fingerprint {wanted}, and this version has {here}; "
            "use the version that wrote it, or verify it again with `veriward reverify`"
        )


def run_name(path: Path) -> str:
    """Of a run in a report, unlike that of any other in its folder."""
    place = Path(os.path.abspath(path))
    return place.stem if place.suffix == ".jsonl" else place.name
