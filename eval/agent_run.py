"""A problem set through the agent: states on disk, progress on the way, a report by stage at the end.

A folder of runs holds one folder for each arm, so that the baseline is asked once and every gate stands beside it:

    plain/                  the model alone, one answer
    tools/                  with tools, answers corrected by the oracle gate
    tools-reference_free/   and so on: the other gates

In each: run.json and the states (`tool_agent.store`), and summary.json once every problem is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.eval.loop import Progress, unreadable_references
from veriward.eval.problems import Problem, ProblemSet, load_problems
from veriward.eval.stage_report import StageReport
from veriward.eval.stages import problem_stages
from veriward.eval.tool_problems import NAME, frozen_twelve
from veriward.rewards import CONTRACTS, get_contract
from veriward.tool_agent.agent import WIDTH, AgentSettings, Gate, describe_agent, solve_many
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.faults import NO_FAULTS, FaultPlan
from veriward.tool_agent.files import TEMPORARY, cannot_write, to_json, write_whole
from veriward.tool_agent.generator import Finished, Generation, Generator, Prompt
from veriward.tool_agent.run_header import RUN, refuse_unreachable
from veriward.tool_agent.state import Phase, ProblemState, read_state
from veriward.tool_agent.store import Durability, Kind, StateReader, open_store, read_store
from veriward.tool_agent.toolbox import Toolbox

PLAIN, TOOLS = "plain", "tools"
SUMMARY = "summary.json"
EXPECTED = "expected_tool"
"""Column of a problem that names the tool it is made for."""
PART = ".part"
"""What the name of a folder ends with that is no run yet."""

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    folder: Path
    report: StageReport
    reused: int
    """Problems that were complete before this start."""


def arm_name(settings: AgentSettings) -> str:
    """Of the folder that a run stands in."""
    if not settings.tools:
        return PLAIN
    return TOOLS if settings.gate == Gate.ORACLE else f"{TOOLS}-{Gate(settings.gate).value}"


def describe_agent_run(
    generator: Generator, problems: ProblemSet, toolbox: Toolbox, settings: AgentSettings
) -> dict[str, object]:
    """Everything that decides a run, as run.json holds it."""
    if settings.contract not in CONTRACTS:
        raise ConfigError(f"unknown contract {settings.contract!r}; wanted one of {', '.join(CONTRACTS)}")
    return {
        **describe_agent(generator, toolbox, settings),
        "problems": {
            "name": problems.name,
            "sha256": problems.sha256,
            "expected_tools": hash_expected(problems),
            "count": len(problems),
            "question_column": problems.question_column,
            "reference_column": problems.reference_column,
        },
    }


def run_agent(
    generator: Generator,
    problems: ProblemSet,
    toolbox: Toolbox,
    out_dir: str | Path,
    *,
    settings: AgentSettings,
    kind: Kind = "files",
    durability: Durability = "power",
    continue_under: bool = False,
    width: int = WIDTH,
    on_progress: OnProgress | None = None,
    notice: Callable[[str], None] = lambda line: None,
    faults: FaultPlan = NO_FAULTS,
) -> AgentRun:
    """Work at every problem, and leave the states and their summary in `out_dir`.

    Started again with the same settings it goes on where it was stopped: what is stored is not asked again. References
    that the contract cannot read are found first; their problems are left out and listed.

    width    problems that are worked at together
    notice   is told, in a line, what was found on the way in: the lock of a dead writer
    raises   ConfigError for settings that cannot work, and for a folder that holds another run
    """
    need("scipy", extra="eval", purpose="a report by stage")
    expected = expected_tools(problems, toolbox.tools if settings.tools else None)
    described = describe_agent_run(generator, problems, toolbox, settings)
    refuse_untaught_model(generator, settings)
    asked, unreadable = readable(problems, settings.contract)
    folder = Path(out_dir)
    with open_store(
        folder, described, kind=kind, durability=durability, continue_under=continue_under, faults=faults
    ) as store:
        if store.took_over is not None:
            notice(store.took_over)
        complete = {name for name, phase in store.phases().items() if phase == Phase.COMPLETE}
        reused = sum(problem.id in complete for problem in asked)
        if reused < len(asked):
            (folder / SUMMARY).unlink(missing_ok=True)
        progress = Progress(total=len(asked), reused=reused)
        watched = _Watched(generator, progress, on_progress)
        states = solve_many(asked, watched, toolbox, settings=settings, store=store, faults=faults, width=width)
        report = report_of(
            store, _counted(states, progress, on_progress), asked, expected, unreadable, run_name(folder)
        )
        try:
            write_whole(folder / SUMMARY, to_json(report.to_row()))
        except OSError as error:
            raise cannot_write(folder / SUMMARY, error) from error
    return AgentRun(folder=folder, report=report, reused=reused)


def check_run(
    generator: Generator,
    problems: ProblemSet,
    toolbox: Toolbox,
    folder: Path,
    *,
    settings: AgentSettings,
    kind: Kind = "files",
    continue_under: bool = False,
) -> None:
    """Refuse now what `run_agent` would refuse, before another run of the same command takes its hours."""
    described = describe_agent_run(generator, problems, toolbox, settings)
    refuse_untaught_model(generator, settings)
    refuse_unreachable(folder / RUN)
    if (folder / RUN).exists():
        with open_store(folder, described, kind=kind, continue_under=continue_under):
            pass


def refuse_untaught_model(generator: Generator, settings: AgentSettings) -> None:
    """A template that does not show the tools would ask a model to call what it never saw."""
    engine = generator.settings
    if not settings.tools or settings.reader == "native":
        return
    if settings.reader == "hermes" and "chat_template" in engine and "tools" not in str(engine["chat_template"]):
        raise ConfigError(f"{generator.name}: its chat template shows no tools; use the reader native")
    if settings.reader == "hermes" and engine.get("engine") == "openai":
        raise ConfigError(
            f"{generator.name}: a server reads its model's calls itself, and the reader hermes would find none in the "
            "text; use openai or native"
        )
    if settings.reader == "openai" and engine.get("engine") == "transformers":
        raise ConfigError(f"{generator.name}: the reader openai reads what a server sends; use native or hermes")


def expected_tools(problems: ProblemSet, known: Iterable[str] | None) -> dict[str, str | None]:
    """Problem id to the tool that it names; None where it names none. `known` are the tools of this run, if any."""
    found: dict[str, str | None] = {}
    for problem in problems.problems:
        tool = problem.columns.get(EXPECTED)
        if tool is not None and (not isinstance(tool, str) or (known is not None and tool not in known)):
            wanted = "the name of a tool" if known is None else f"one of {', '.join(known)}"
            raise ConfigError(
                f"{problems.name}, problem {problem.id}: {EXPECTED} {tool!r}; wanted {wanted}, or add it with --tool"
            )
        found[problem.id] = tool
    return found


def hash_expected(problems: ProblemSet) -> str:
    """Over the tool that each problem names; of the rates by tool, and not of what is asked."""
    named = [[identity, tool] for identity, tool in expected_tools(problems, None).items()]
    return hashlib.sha256(json.dumps(named).encode("ascii")).hexdigest()


def readable(problems: ProblemSet, contract: str) -> tuple[list[Problem], dict[str, str]]:
    """The problems that can be asked, and the ids of the others with the reason."""
    unreadable = unreadable_references(problems, contract)
    asked = [problem for problem in problems.problems if problem.id not in unreadable]
    if not asked:
        raise ConfigError(
            f"{problems.name}: no reference can be read under contract {contract}: {next(iter(unreadable.values()))}; "
            f"is {problems.reference_column!r} the bare final answer?"
        )
    return asked, unreadable


def report_of(
    store: StateReader,
    states: Iterable[ProblemState],
    asked: Sequence[Problem],
    expected: Mapping[str, str | None],
    unreadable: Mapping[str, str],
    name: str,
) -> StageReport:
    """The report of complete states, in the order of the problems."""
    contract: Any = store.settings["contract"]
    rows = {row.problem: row for row in problem_stages(states, expected, contract["name"], contract["fingerprint"])}
    return StageReport(
        name=name,
        settings=store.settings,
        fingerprint=store.fingerprint,
        continued_under=store.header.continued_under,
        rows=tuple(rows[problem.id] for problem in asked if problem.id in rows),
        missing=tuple(problem.id for problem in asked if problem.id not in rows),
        unreadable=unreadable,
        set_aside=tuple(store.set_aside),
    )


# ---------------------------------------------------------------------------------------------------------- progress


class _Watched:
    """A generator whose tokens are counted, so that a run shows that it lives before its first problem is complete."""

    def __init__(self, generator: Generator, progress: Progress, on_progress: OnProgress | None) -> None:
        self.name, self._generator = generator.name, generator
        self._progress, self._on_progress = progress, on_progress

    @property
    def settings(self) -> Mapping[str, object]:
        return self._generator.settings

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        on_finished: Callable[[Finished], None] | None = None,
        **arguments: Any,
    ) -> list[list[Generation]]:
        def counted(finished: Finished) -> None:
            if on_finished is not None:
                on_finished(finished)
            self._progress.tokens += sum(len(one.token_ids) for _, written in finished for one in written)
            if self._on_progress is not None:
                self._on_progress(self._progress)

        return self._generator.generate(prompts, on_finished=counted, **arguments)


def _counted(
    states: Iterable[ProblemState], progress: Progress, on_progress: OnProgress | None
) -> Iterator[ProblemState]:
    """The states as they come, each counted."""
    for state in states:
        progress.finished += 1
        progress.truncated += state.answers[-1].generation.truncated
        progress.outcomes[str(state.outcome)] += 1
        if on_progress is not None:
            on_progress(progress)
        yield state


# ------------------------------------------------------------------------------------------------------ read again


def read_agent_runs(place: str | Path, problems: str | None = None) -> tuple[list[StageReport], list[str]]:
    """The reports of a folder of runs, of one run, or of a file of `state export`; the run without tools first.

    Beside them the runs of the folder that have no report, a line each with the reason.

    problems   where the problem set is now; None: where it was when it was asked
    raises     ConfigError where no run can be reported: there is none, or each was asked other problems
    """
    path = Path(place)
    refuse_unreachable(path / RUN)
    runs = (
        sorted(file.parent for file in path.glob(f"*/{RUN}") if not half_copied(file.parent)) if path.is_dir() else []
    )
    reports: list[StageReport] = []
    refused: list[ConfigError] = []
    for run in [path] if (path / RUN).exists() or not runs else runs:
        try:
            reports.append(read_agent_run(run, problems))
        except ConfigError as error:
            refused.append(error)
    if not reports:
        raise refused[0]
    return sorted(reports, key=lambda report: (report.tools, report.name)), [str(error) for error in refused]


def half_copied(run: Path) -> bool:
    """What a killed `state export` left."""
    return run.name.startswith(TEMPORARY) or run.name.endswith(PART)


def run_name(path: Path) -> str:
    """Of a run in a report, unlike that of any other in its folder."""
    place = Path(os.path.abspath(path))
    return place.stem if place.suffix == ".jsonl" else place.name


def read_agent_run(path: Path, problems: str | None = None) -> StageReport:
    """The report of one run, complete or not; nothing is changed, and nothing asked."""
    with read_store(path) as store:
        settings: Any = store.settings
        if not {"agent", "contract", "problems"} <= settings.keys() or "name" not in settings["problems"]:
            raise ConfigError(f"{path}: is no run of a problem set; wanted the folder of a `veriward agent`")
        contract = settings["contract"]
        refuse_other_contract(path, contract)
        problem_set = asked_problems(path, settings["problems"], problems)
        asked, unreadable = readable(problem_set, contract["name"])
        known = {problem.id for problem in asked}
        states = (state for state in complete_states(store) if state.problem in known)
        return report_of(store, states, asked, expected_tools(problem_set, None), unreadable, run_name(path))


def complete_states(store: StateReader) -> Iterator[ProblemState]:
    for row in store.rows():
        if row["phase"] == Phase.COMPLETE:
            state = read_state(row)
            if isinstance(state, str):
                store.set_aside.append(f"{row['problem']['id']}: {state}")
            else:
                yield state


def refuse_other_contract(path: Path, contract: Mapping[str, str]) -> None:
    name, wanted = contract["name"], contract["fingerprint"]
    here = get_contract(name).fingerprint if name in CONTRACTS else None
    if here != wanted:
        raise ConfigError(
            f"{path}: graded under contract {name} with fingerprint {wanted}, and this version has {here}; "
            "use the version that wrote it"
        )


def asked_problems(path: Path, described: Mapping[str, Any], given: str | None) -> ProblemSet:
    """The problem set that a run was asked, read again and compared."""
    name = given or str(described["name"])
    try:
        problems = problem_set_named(name, described.get("question_column"), described.get("reference_column"))
    except ConfigError as error:
        raise ConfigError(f"{path}: its problems cannot be read; name them with --problems: {error}") from error
    if problems.sha256 != described["sha256"]:
        raise ConfigError(
            f"{path}: was asked other problems: {name} has sha256 {problems.sha256[:12]}…, the run "
            f"{described['sha256'][:12]}…; name the right ones with --problems"
        )
    tools, wanted = hash_expected(problems), described.get("expected_tools")
    if wanted not in (None, tools):  # None: written by who names no tools
        raise ConfigError(
            f"{path}: was asked problems for other tools: the column {EXPECTED} of {name} has sha256 {tools[:12]}…, "
            f"the run's {wanted[:12]}…; put it back, or name the right problems with --problems"
        )
    return problems


def problem_set_named(name: str, question_column: str | None = None, reference_column: str | None = None) -> ProblemSet:
    """The frozen twelve by their name, or what `load_problems` reads."""
    if name == NAME:
        return frozen_twelve()
    return load_problems(name, question_column=question_column, reference_column=reference_column)
