"""`veriward eval` and `veriward reverify`: a model asked every problem, and its responses verified again."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from veriward.scripts.display import printable, result_table, show_progress
from veriward.scripts.generator_options import (
    SMALL_MODEL,
    BatchOption,
    DeviceOption,
    DurabilityOption,
    EngineOption,
    EngineSettingsOption,
    ModelOption,
    ServerOption,
    StoreOption,
    TimeoutOption,
    check_extras,
    made_generator,
)
from veriward.scripts.options import ContractOption, JsonOption, known_contract
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line

if TYPE_CHECKING:
    from veriward.eval.loop import Progress

SHOWN = 10
"""Unreadable references that are named on the screen."""


def evaluate(
    model: ModelOption,
    problems: Annotated[
        str,
        typer.Option(
            help="JSONL or Parquet file, a folder or hub name that `datasets` reads, or 'math-500', 'gsm8k', "
            "'aime-2024', 'aime-2025', 'frozen-twelve'."
        ),
    ],
    server: ServerOption = None,
    engine: EngineOption = "transformers",
    question_column: Annotated[str | None, typer.Option(help="Column of the question.", show_default="found")] = None,
    reference_column: Annotated[str | None, typer.Option(help="Column of the answer.", show_default="found")] = None,
    split: Annotated[str | None, typer.Option(help="Split of a data set.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many problems.")] = None,
    sha256: Annotated[
        str | None, typer.Option(help="What the set's sha256 must begin with; a changed set is refused.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Responses a problem; above 1 needs a temperature.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    max_new_tokens: Annotated[int, typer.Option(help="Tokens a response at most.")] = 512,
    template: Annotated[str, typer.Option(help="'chat', 'plain', or a file with {question} in it.")] = "chat",
    instruction: Annotated[
        str | None, typer.Option(help="Follows the question; '' for none.", show_default="asks for a box")
    ] = None,
    thinking: Annotated[
        bool | None,
        typer.Option("--thinking/--no-thinking", help="For chat templates with a switch.", show_default="the model's"),
    ] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Text that ends a response; may be repeated.")] = None,
    contract: ContractOption = None,
    batch_size: BatchOption = None,
    engine_option: EngineSettingsOption = None,
    seed: Annotated[int, typer.Option(help="Of sampled responses.")] = 0,
    device: DeviceOption = None,
    timeout: TimeoutOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run.", show_default="one under runs/eval for these settings")
    ] = None,
    store: StoreOption = "files",
    durability: DurabilityOption = "power",
    as_json: JsonOption = False,
) -> None:
    """Ask a model every problem and verify its responses. The same command again goes on where it was stopped."""
    from veriward.eval.generators import check_request, check_samples
    from veriward.eval.loop import describe_run
    from veriward.eval.loop import evaluate as run
    from veriward.eval.model_loading import check_place
    from veriward.eval.prompting import DEFAULT_INSTRUCTION, PromptTemplate
    from veriward.eval.rehearsal import rehearse
    from veriward.eval.runs import problem_set_named, run_problems
    from veriward.rewards import DEFAULT

    options: dict[str, Any] = {
        "template": PromptTemplate(
            template=template,
            instruction=DEFAULT_INSTRUCTION if instruction is None else instruction,
            enable_thinking=thinking,
        ),
        "contract": known_contract(contract or DEFAULT),
        "samples": samples,
        "temperature": temperature,
        "max_new_tokens": max_new_tokens,
        "seed": seed,
        "stop": tuple(stop or ()),
    }
    problem_set = problem_set_named(
        problems, question_column, reference_column, split=split, limit=limit, sha256=sha256
    )
    check_samples(samples, temperature)
    check_request(temperature, max_new_tokens)
    check_extras("veriward eval", server, engine)
    if server is None and model != SMALL_MODEL:
        check_place(model)
    for line in left_out(run_problems(problem_set, options["contract"]).unreadable):
        say(line)
    console = Console(stderr=as_json)
    with console.status("rehearsing the whole way"):
        rehearse(problem_set, **options)
    with console.status(f"loading {model}"):
        generator = made_generator(model, server, device, batch_size, timeout, engine, engine_option or ())
    out = out or default_folder(model, problems, describe_run(generator, problem_set, **options))
    started = time.perf_counter()
    begun: list[Progress] = []
    try:
        with disk_full_in_one_line(out), show_progress(console) as on_progress:

            def begins(progress: Progress) -> None:
                begun.append(progress)
                on_progress(progress)

            result = run(
                generator,
                problem_set,
                out,
                **options,
                kind=store,  # type: ignore[arg-type]  # open_store refuses what is neither
                durability=durability,  # type: ignore[arg-type]
                on_progress=begins,
                notice=say,
            )
    except KeyboardInterrupt:
        print(f"stopped; the same command with --out {out} goes on from here", file=sys.stderr)
        raise typer.Exit(130) from None
    except ConfigError as error:
        if not begun:
            raise
        raise ConfigError(f"{error}; the same command with --out {out} goes on from what is stored") from error
    if as_json:
        print(json.dumps({**result.summary.to_row(), "folder": str(out)}))
    else:
        console.print(result_table(result, time.perf_counter() - started))


def reverify(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or a file of `state export`.", metavar="RUN")],
    contract: Annotated[str, typer.Option(help="Grading contract to verify under.", metavar="NAME")],
    problems: Annotated[
        str | None, typer.Option(help="Where the problems are now.", show_default="in the run's folder")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the new run.", show_default="RUN-CONTRACT beside it")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Verify the stored responses of a run under another contract, as a new run; the old one stays as it is."""
    from veriward.eval.reverify import default_folder as beside
    from veriward.eval.reverify import reverify as again
    from veriward.tool_agent.errors import need

    need("scipy", extra="eval", purpose="veriward reverify")
    known_contract(contract)
    out = out or beside(run, contract)
    console = Console(stderr=as_json)
    started = time.perf_counter()
    with disk_full_in_one_line(out), show_progress(console) as on_progress:
        result = again(run, out, contract=contract, problems=problems, on_progress=on_progress)
    if as_json:
        row = {**result.summary.to_row(), "folder": str(out), "parent": result.run.settings["parent"]}
        print(json.dumps(row))
        return
    console.print(result_table(result, time.perf_counter() - started))
    if result.run.missing:
        say(f"never asked under the old contract, and missing here: {', '.join(result.run.missing)}")


def left_out(unreadable: Mapping[str, str]) -> list[str]:
    """By name, and some only by number: summary.json has all of them."""
    named = [f"{problem} ({reason})" for problem, reason in list(unreadable.items())[:SHOWN]]
    more = len(unreadable) - len(named)
    if not named:
        return []
    return [f"left out, the reference cannot be read: {', '.join(named)}" + (f" and {more} more" if more else "")]


def say(line: str) -> None:
    print(printable(line), file=sys.stderr)


def default_folder(model: str, problems: str, settings: dict[str, object]) -> Path:
    """One folder for one set of settings, so that the same command finds its run again."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return Path("runs", "eval", f"{Path(model).name}-{Path(problems).stem}-{digest}")
