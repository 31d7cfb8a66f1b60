"""The stored responses of a run verified again, under another contract, without a model.

It makes a new run that names its parent; the old one is never rewritten. Of a run of the tool agent every answer is
verified anew, but whether it was to be corrected was settled when it was asked, under the old contract: the new run
keeps that, and names its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from veriward.eval.loop import EvalResult, OnProgress, Progress, describe_contract, write_summary
from veriward.eval.problems import Problem
from veriward.eval.runs import Run, problem_of, read_run, unreadable_references, write_problems
from veriward.rewards import verify_many
from veriward.tool_agent.agent import to_verify
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.state import ProblemState
from veriward.tool_agent.store import open_store

AT_ONCE = 256
"""States verified in one call."""


def reverify(
    run_dir: str | Path,
    out_dir: str | Path,
    *,
    contract: str,
    problems: str | None = None,
    on_progress: OnProgress | None = None,
) -> EvalResult:
    """A new run in `out_dir` with the responses of the old one and verdicts under `contract`.

    Problems whose reference only the new contract reads were never asked: they are missing in the new run, by name.

    problems   as for `read_run`
    raises     ConfigError where the references are not at hand, or `out_dir` holds another run
    """
    old = read_run(run_dir, problems, any_contract=True)
    if not old.set.references:
        raise ConfigError(f"{run_dir}: was packed without references; without them nothing can be verified again")
    if not old.states:
        raise ConfigError(f"{run_dir}: holds no complete response; go on with it first")
    described = describe_contract(contract)
    if described == dict(old.settings["contract"]):
        raise ConfigError(f"{run_dir}: is under contract {old.contract} already; name another with --contract")
    unreadable = unreadable_references(old.set.problems, contract)
    kept = [(old.by_id[problem_of(state.problem, old.samples)[0]], state) for state in old.states]
    kept = [(problem, state) for problem, state in kept if problem.id not in unreadable]
    progress = Progress(total=len(kept))
    folder = Path(out_dir)
    with open_store(folder, settings_of(old, described)) as store:
        write_problems(folder, replace(old.set, unreadable=unreadable))
        for start in range(0, len(kept), AT_ONCE):
            for state in verified_again(kept[start : start + AT_ONCE], contract, store.fingerprint):
                store.write(state.problem, state.to_row())
                progress.add(outcome=str(state.outcome), truncated=state.answers[-1].generation.truncated)
            if on_progress is not None:
                on_progress(progress)
    run = read_run(folder)
    return EvalResult(folder=folder, run=run, summary=write_summary(run), reused=0)


def settings_of(old: Run, contract: dict[str, str]) -> dict[str, object]:
    settings = {**old.settings, "contract": contract}
    if old.agent:
        settings["agent"] = {**old.settings["agent"], "contract": contract["name"]}
    parent = {"name": old.name, "fingerprint": old.fingerprint, "contract": dict(old.settings["contract"])}
    return {**settings, "parent": parent}


def verified_again(
    kept: Sequence[tuple[Problem, ProblemState]], contract: str, fingerprint: str
) -> Sequence[ProblemState]:
    rows = [to_verify(answer.generation, problem, contract) for problem, state in kept for answer in state.answers]
    verdicts = iter(verify_many(rows, contract=contract))
    return [
        replace(
            state,
            fingerprint=fingerprint,
            continued_under=[],
            answers=[replace(answer, verdict=next(verdicts).to_row(reference=False)) for answer in state.answers],
        )
        for _, state in kept
    ]


def default_folder(run_dir: str | Path, contract: str) -> Path:
    """Beside the old run, named after it and the contract."""
    run = Path(run_dir)
    return run.with_name(f"{run.name.removesuffix('.jsonl')}-{contract}")
