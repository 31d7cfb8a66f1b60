"""`veriward agent` and `veriward stages`: a problem set through the tool agent, and what became of it by stage."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from veriward.scripts.display import printable, show_progress
from veriward.scripts.generator_options import (
    BATCH_SIZE,
    BatchOption,
    DeviceOption,
    DurabilityOption,
    ModelOption,
    ServerOption,
    StoreOption,
    TimeoutOption,
    check_extras,
    made_generator,
)
from veriward.scripts.options import ContractOption, JsonOption, known_contract
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line, need

if TYPE_CHECKING:
    from veriward.eval.problems import ProblemSet
    from veriward.eval.stage_report import StageReport
    from veriward.tool_agent.agent import AgentSettings
    from veriward.tool_agent.generator import Generator
    from veriward.tool_agent.toolbox import Tool, Toolbox

ProblemsOption = Annotated[
    str | None, typer.Option("--problems", help="Where the problems are now.", show_default="where they were asked")
]


def agent(
    model: ModelOption,
    server: ServerOption = None,
    problems: Annotated[str, typer.Option(help="JSONL file, or 'frozen-twelve'.")] = "frozen-twelve",
    question_column: Annotated[str | None, typer.Option(help="Column of the question.", show_default="found")] = None,
    reference_column: Annotated[str | None, typer.Option(help="Column of the answer.", show_default="found")] = None,
    tools: Annotated[
        bool | None,
        typer.Option("--tools/--no-tools", help="Only the run with tools, or only the baseline.", show_default="both"),
    ] = None,
    reader: Annotated[str, typer.Option(help="How calls are read: 'native', 'hermes' or 'openai'.")] = "native",
    profile: Annotated[str, typer.Option(help="Of the numeric tools: 'default' or 'strict'.")] = "default",
    documents: Annotated[
        Path | None, typer.Option(help="JSONL or folder for local_search.", show_default="four fixed notes")
    ] = None,
    tool: Annotated[
        list[str] | None, typer.Option(help="A tool of your own; may be repeated.", metavar="PKG.MOD:NAME")
    ] = None,
    gate: Annotated[
        str, typer.Option(help="What answers are corrected: 'oracle', 'reference_free', 'always_once' or 'never'.")
    ] = "oracle",
    contract: ContractOption = None,
    call_tokens: Annotated[int, typer.Option(help="Tokens a call at most.")] = 256,
    answer_tokens: Annotated[int, typer.Option(help="Tokens an answer at most.")] = 512,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of sampled texts.")] = 0,
    device: DeviceOption = None,
    batch_size: BatchOption = None,
    timeout: TimeoutOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs.", show_default="one under runs/agent for these settings")
    ] = None,
    store: StoreOption = "files",
    durability: DurabilityOption = "power",
    continue_under: Annotated[
        bool, typer.Option("--continue-under", help="Go on with a run of other code; every later state says so.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Work at problems with tools, and without as the baseline. The same command again goes on where it was stopped.

    Another --gate in the same folder is set beside what is there; the baseline is not asked twice.
    """
    from veriward.eval.agent_run import (
        arm_name,
        check_run,
        expected_tools,
        read_agent_runs,
        run_agent,
    )
    from veriward.eval.runs import problem_set_named, run_problems
    from veriward.rewards import DEFAULT
    from veriward.tool_agent.agent import AgentSettings, Gate

    check_extras("veriward agent", server)
    if documents is not None:
        need("bm25s", extra="agent", purpose="--documents")
    settings = AgentSettings(
        reader=reader,
        gate=known_gate(gate),
        contract=known_contract(contract or DEFAULT),
        call_tokens=call_tokens,
        answer_tokens=answer_tokens,
        temperature=temperature,
        seed=seed,
    )
    # What the baseline does not use is left out of its settings, so that it is asked once.
    alone = replace(settings, tools=False, gate=Gate.NEVER, reader="native", call_tokens=AgentSettings().call_tokens)
    wanted = [one for one in (alone, settings) if tools in (None, one.tools)]
    problem_set = problem_set_named(problems, question_column, reference_column)
    box = made_toolbox(profile, documents, tool or [])
    expected_tools(problem_set.name, problem_set.problems, box.tools if settings in wanted else None)
    run_problems(problem_set, settings.contract)
    console = Console(stderr=True)
    with console.status(f"loading {model}"):
        generator = made_generator(model, server, device, batch_size, timeout)
    out = out or default_folder(generator, problem_set, box, settings)
    for one in wanted:
        check_run(
            generator,
            problem_set,
            box,
            out / arm_name(one),
            settings=one,
            kind=store,  # type: ignore[arg-type]  # open_store refuses what is neither
            continue_under=continue_under,
        )
    try:
        for one in wanted:
            with disk_full_in_one_line(out), show_progress(console, f"{arm_name(one)}: ") as on_progress:
                run = run_agent(
                    generator,
                    problem_set,
                    box,
                    out / arm_name(one),
                    settings=one,
                    kind=store,  # type: ignore[arg-type]  # open_store refuses what is neither
                    durability=durability,  # type: ignore[arg-type]
                    continue_under=continue_under,
                    width=batch_size or BATCH_SIZE,
                    on_progress=on_progress,
                    notice=say,
                )
            aside = (
                f"set aside and asked anew, a state that could not be read: {line}" for line in run.report.set_aside
            )
            say(*aside)
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on from here: {out} keeps what is done", file=sys.stderr)
        raise typer.Exit(130) from None
    show(*read_agent_runs(out, problems), out, as_json=as_json)


def stages(
    run: Annotated[Path, typer.Argument(help="Folder of `veriward agent`, whole or one arm of it.", metavar="RUN")],
    problems: ProblemsOption = None,
    as_json: JsonOption = False,
) -> None:
    """What became of a run at each stage, read from its states; a run that goes on can be looked at too."""
    from veriward.eval.agent_run import read_agent_runs

    need("scipy", extra="eval", purpose="veriward stages")
    show(*read_agent_runs(run, problems), run, as_json=as_json)


def show(reports: list[StageReport], unread: list[str], folder: Path, *, as_json: bool) -> None:
    """The reports, why some cannot be set side by side, and the runs that have none."""
    from veriward.eval.stage_report import compare_all
    from veriward.scripts.stage_display import show_reports

    compared, refused = compare_all(reports)
    if as_json:
        runs = {report.name: report.to_row() for report in reports}
        exchanges = {name: one.to_row() for name, one in compared.items()}
        row = {"folder": str(folder), "runs": runs, "exchanges": exchanges, "not_compared": refused}
        print(json.dumps({**row, "not_reported": unread}))
    else:
        console = Console()
        show_reports(reports, compared, console)
        for line in [*refused, *(f"no report of {line}" for line in unread)]:
            console.print(printable(line), soft_wrap=True)
        console.print(printable(f"folder: {folder}"), soft_wrap=True)


def say(*lines: str) -> None:
    for line in lines:
        print(printable(line), file=sys.stderr)


def known_gate(name: str) -> Any:
    from veriward.tool_agent.agent import Gate

    if name not in list(Gate):
        raise ConfigError(f"unknown gate {name!r}; wanted one of {', '.join(Gate)}")
    return Gate(name)


def made_toolbox(profile: str, documents: Path | None, tools: list[str]) -> Toolbox:
    """A mistake of the person's is one line."""
    from veriward.tool_agent.toolbox import toolbox

    own = [named_tool(name) for name in tools]
    try:
        return toolbox(profile, documents=documents, extra_tools=own)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from error


def named_tool(name: str) -> Tool:
    """'package.module:name', found with the working folder on the path: a Tool, or a function that becomes one."""
    from veriward.tool_agent.tool import Tool, as_tool

    module, _, path = name.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), path]):
        raise ConfigError(f"--tool {name!r}: wanted package.module:name, as days_tool:DAYS")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), path, None)
    except ModuleNotFoundError as missing:
        if missing.name is None or not module.startswith(missing.name):
            raise
        raise ConfigError(f"--tool {name}: no module {module} is installed or in the working folder {here}") from None
    if isinstance(found, Tool):
        return found
    if not callable(found):
        raise ConfigError(f"--tool {name}: {module} has no tool and no function {path!r}; name one of that module")
    try:
        return as_tool(found)
    except ValueError as error:
        raise ConfigError(f"--tool {name}: {error}") from error


def default_folder(generator: Generator, problems: ProblemSet, box: Toolbox, settings: AgentSettings) -> Path:
    """One folder for one set of settings, whatever the gate and the code, so that the same command finds it again."""
    from veriward.eval.agent_run import describe_agent_run
    from veriward.tool_agent.agent import AgentSettings
    from veriward.tool_agent.run_header import decisive

    described = describe_agent_run(generator, problems, box, replace(settings, gate=AgentSettings().gate))
    text = json.dumps({key: value for key, value in decisive(described).items() if key != "code"}, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return Path("runs", "agent", f"{Path(generator.name).name}-{Path(problems.name).stem}-{digest}")
