"""A problem set through the agent: states on disk, progress on the way, a report by stage at the end.

A folder of runs holds one folder for each arm, so that the baseline is asked once and every gate stands beside it:

    plain/                  the model alone, one answer
    tools/                  with tools, answers corrected by the oracle gate
    tools-reference_free/   and so on: the other gates

In each: run.json and the states (`tool_agent.store`), and summary.json once every problem is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veriward.eval.loop import OnProgress, Progress, describe_contract
from veriward.eval.problems import Problem, ProblemSet
from veriward.eval.runs import SUMMARY, Run, describe_problems, read_run, run_problems, write_problems
from veriward.eval.stage_report import StageReport
from veriward.eval.stages import problem_stages
from veriward.tool_agent.agent import WIDTH, AgentSettings, Gate, describe_agent, solve_many
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.faults import NO_FAULTS, FaultPlan
from veriward.tool_agent.files import TEMPORARY, cannot_write, to_json, write_whole
from veriward.tool_agent.generator import Finished, Generation, Generator, Prompt
from veriward.tool_agent.run_header import RUN, refuse_unreachable
from veriward.tool_agent.state import Phase
from veriward.tool_agent.store import Durability, Kind, open_store
from veriward.tool_agent.toolbox import Toolbox

PLAIN, TOOLS = "plain", "tools"
EXPECTED = "expected_tool"
"""Column of a problem that names the tool it is made for."""
PART = ".part"
"""What the name of a folder ends with that is no run yet."""


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
    describe_contract(settings.contract)
    return {
        **describe_agent(generator, toolbox, settings),
        "problems": describe_problems(problems),
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
    expected_tools(problems.name, problems.problems, toolbox.tools if settings.tools else None)
    described = describe_agent_run(generator, problems, toolbox, settings)
    refuse_untaught_model(generator, settings)
    wanted = run_problems(problems, settings.contract)
    asked = wanted.asked
    folder = Path(out_dir)
    with open_store(
        folder, described, kind=kind, durability=durability, continue_under=continue_under, faults=faults
    ) as store:
        if store.took_over is not None:
            notice(store.took_over)
        write_problems(folder, wanted)
        complete = {name for name, phase in store.phases().items() if phase == Phase.COMPLETE}
        reused = sum(problem.id in complete for problem in asked)
        if reused < len(asked):
            (folder / SUMMARY).unlink(missing_ok=True)
        progress = Progress(total=len(asked), reused=reused)
        watched = _Watched(generator, progress, on_progress)
        states = solve_many(asked, watched, toolbox, settings=settings, store=store, faults=faults, width=width)
        for state in states:
            progress.add(outcome=str(state.outcome), truncated=state.answers[-1].generation.truncated)
            if on_progress is not None:
                on_progress(progress)
        set_aside = tuple(store.set_aside)
    report = replace(report_of(read_run(folder)), set_aside=set_aside)
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


def expected_tools(name: str, problems: Iterable[Problem], known: Iterable[str] | None) -> dict[str, str | None]:
    """Problem id to the tool that it names; None where it names none. `known` are the tools of this run, if any."""
    found: dict[str, str | None] = {}
    for problem in problems:
        tool = problem.columns.get(EXPECTED)
        if tool is not None and (not isinstance(tool, str) or (known is not None and tool not in known)):
            wanted = "the name of a tool" if known is None else f"one of {', '.join(known)}"
            raise ConfigError(
                f"{name}, problem {problem.id}: {EXPECTED} {tool!r}; wanted {wanted}, or add it with --tool"
            )
        found[problem.id] = tool
    return found


def report_of(run: Run) -> StageReport:
    """The report of a run's complete states, in the order of the problems."""
    expected = expected_tools(run.settings["problems"]["name"], run.set.problems, None)
    return StageReport(
        name=run.name,
        settings=run.settings,
        fingerprint=run.fingerprint,
        continued_under=run.continued_under,
        rows=tuple(problem_stages(run.states, expected, *run.contract)),
        missing=run.missing,
        unreadable=run.set.unreadable,
        set_aside=run.set_aside,
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
    ) -> list[Generation]:
        def counted(finished: Finished) -> None:
            if on_finished is not None:
                on_finished(finished)
            self._progress.tokens += sum(generation.tokens for _, generation in finished)
            if self._on_progress is not None:
                self._on_progress(self._progress)

        return self._generator.generate(prompts, on_finished=counted, **arguments)


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


def read_agent_run(path: Path, problems: str | None = None) -> StageReport:
    """The report of one run, complete or not; nothing is changed, and nothing asked."""
    run = read_run(path, problems)
    if not run.agent:
        raise ConfigError(f"{path}: is no run of the tool agent; wanted the folder of a `veriward agent`")
    return report_of(run)
