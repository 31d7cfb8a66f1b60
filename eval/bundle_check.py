"""What a stranger can check about a bundle: its files, its numbers, and its verdicts.

With references every verdict is decided again by the verifier of this machine. Without them verdicts can only be
counted, and the result says so. A verdict that hit a time limit may be decided on a faster machine; it is named as any
other difference.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.eval.agent_run import report_of
from veriward.eval.audit_sample import AUDIT, fault_of_audit, same
from veriward.eval.bundle import Bundle, describe_run, unpack
from veriward.eval.metrics import summarise_run
from veriward.eval.problems import Problem
from veriward.eval.runs import SUMMARY, Run, problem_of, read_run, unreadable_references
from veriward.rewards import verify_many
from veriward.tool_agent.agent import to_verify
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.state import AnswerAttempt, ProblemState, content_sha256

NOT_COMPARED = ("microseconds", "reference", "reference_normal")
"""Of a verdict: the time that it took, and what is never stored."""


@dataclass(slots=True, kw_only=True)
class BundleCheck:
    """What was looked at, and what was found."""

    faults: list[str]
    """One line each; none: everything is as it was packed, and every number is what the states say."""
    sha256: str | None = None
    """Of the bundle; None where it could not be unpacked."""
    files: int = 0
    runs: int = 0
    responses: int = 0
    decided_again: int = 0
    """Verdicts, first answers and corrections alike."""
    only_counted: int = 0
    """Verdicts whose reference was left out."""
    numbers: int = 0
    """Entries of summaries and audits that were made again."""
    cards: int = 0
    """Packed; `veriward card verify` compares each with the runs."""

    def to_row(self) -> dict[str, Any]:
        return {
            "sha256": self.sha256,
            "files": self.files,
            "runs": self.runs,
            "responses": self.responses,
            "verdicts_decided_again": self.decided_again,
            "verdicts_only_counted": self.only_counted,
            "numbers_made_again": self.numbers,
            "cards": self.cards,
            "faults": self.faults,
        }


def check_bundle(path: str | Path) -> BundleCheck:
    """Look at everything; ConfigError only where there is no file that can be read."""
    with tempfile.TemporaryDirectory(prefix="veriward-bundle-") as name:
        bundle, faults = unpack(Path(path), Path(name))
        check = BundleCheck(faults=faults)
        if bundle is not None:
            check.sha256, check.files, check.cards = bundle.sha256, len(bundle.manifest["files"]), len(bundle.cards)
        if bundle is not None and not faults:
            check_runs(bundle, check)
    return check


def check_runs(bundle: Bundle, check: BundleCheck) -> None:
    for folder, described in zip(bundle.runs, bundle.manifest["runs"], strict=True):
        check.runs += 1
        try:
            run = read_run(folder)
        except ConfigError as error:
            check.faults.append(str(error).replace(f"{folder}", folder.name))
            continue
        check.responses += len(run.states)
        found = [f"cannot be read: {line}" for line in run.set_aside]
        found += [
            f"is not the run of the manifest: {name} is {got!r}, wanted {described.get(name)!r}"
            for name, got in describe_run(run).items()
            if got != described.get(name)
        ]
        found += faults_of_states(run)
        found += faults_of_verdicts(run, check)
        found += faults_of_numbers(run, check)
        check.faults += [f"{run.name}: {line}" for line in found]


def faults_of_states(run: Run) -> Iterator[str]:
    """Each asks what problems.jsonl says, and its verdicts are under the run's contract."""
    for state in run.states:
        if state.content_sha256 != content_sha256(asked(run, state)):
            yield f"{state.problem}: another question than in problems.jsonl"
        for answer in state.answers:
            verdict = answer.verdict or {}
            if (verdict.get("contract"), verdict.get("fingerprint")) != tuple(run.contract):
                yield f"{state.problem}: a verdict that is not under contract {run.contract}"


def faults_of_verdicts(run: Run, check: BundleCheck) -> Iterator[str]:
    answers = [(asked(run, state), answer) for state in run.states for answer in state.answers]
    if not run.set.references:
        check.only_counted += len(answers)
        return
    if unreadable_references(run.set.problems, run.contract.name) != dict(run.set.unreadable):
        yield "problems.jsonl says of other references that they cannot be read"
    rows = [to_verify(answer.generation, problem, run.contract.name) for problem, answer in answers]
    for (problem, answer), verdict in zip(answers, verify_many(rows, contract=run.contract.name), strict=True):
        check.decided_again += 1
        if different := different_fields(answer, verdict.to_row()):
            yield f"{problem.id}: decided otherwise here: {different}"


def different_fields(answer: AnswerAttempt, again: Mapping[str, Any]) -> str:
    """As 'outcome wrong, stored correct'; empty where both agree."""
    stored, again = plain(answer.verdict or {}), plain(again)
    return "; ".join(
        f"{name} {again.get(name)!r}, stored {stored.get(name)!r}"
        for name in sorted(stored.keys() | again.keys())
        if stored.get(name) != again.get(name)
    )


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON keeps it: tuples are lists."""
    kept: dict[str, Any] = json.loads(json.dumps({name: row[name] for name in row if name not in NOT_COMPARED}))
    return kept


def faults_of_numbers(run: Run, check: BundleCheck) -> Iterator[str]:
    if (run.path / SUMMARY).is_file():
        counted = report_of(run).to_row() if run.agent else summarise_run(run).to_row()
        stored, again = read_object(run.path / SUMMARY), json.loads(json.dumps(counted))
        if isinstance(stored, str):
            yield f"{SUMMARY}: {stored}"
        else:
            check.numbers += len(again)
            for name in sorted(stored.keys() | again.keys()):
                if not same(stored.get(name), again.get(name)):
                    yield f"{SUMMARY}: {name} is {stored.get(name)!r}, and the states say {again.get(name)!r}"
    if (run.path / AUDIT).is_file():
        check.numbers += 1
        if fault := fault_of_audit(run):
            yield f"{AUDIT}: {fault}"


def read_object(file: Path) -> dict[str, Any] | str:
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        return f"no JSON: {error}"
    return found if isinstance(found, dict) else "no JSON object"


def asked(run: Run, state: ProblemState) -> Problem:
    return run.by_id[problem_of(state.problem, run.samples)[0]]
