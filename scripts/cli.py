"""The `veriward` command. Each command reads its options, calls into the packages and shows what came back.

Exit codes: 0 done; 2 bad input or a missing extra, in one line; 130 stopped with Ctrl-C. A bug shows its traceback.
Nothing heavy is imported before a command runs, so that every --help works on the core dependencies.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from veriward.scripts.agent_command import agent, stages
from veriward.scripts.attack_command import attack
from veriward.scripts.audit_sample_command import audit_sample
from veriward.scripts.bundle_command import bundle
from veriward.scripts.card_command import card
from veriward.scripts.compare_command import compare as compare_runs
from veriward.scripts.contamination_command import contamination, fresh
from veriward.scripts.display import (
    first_lines,
    grading_table,
    show_comparison,
    show_grading,
    show_references,
    verdict_table,
)
from veriward.scripts.drill_command import drill
from veriward.scripts.eval_command import evaluate, reverify
from veriward.scripts.export_command import export
from veriward.scripts.options import (
    AnswerOption,
    ContractOption,
    DeadlineOption,
    JsonOption,
    OptionsOption,
    TruncatedOption,
    TypeOption,
    WorkersOption,
    known_contract,
    refuse_output,
)
from veriward.scripts.promote_command import promote
from veriward.scripts.report_command import report
from veriward.scripts.state_command import state
from veriward.scripts.tools_command import audit_tools, run_cases
from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line

if TYPE_CHECKING:
    from veriward.rewards import Explanation, VerdictPool


class OneLineErrors(TyperGroup):
    """Commands whose errors for people are one line and exit code 2; anything else keeps its traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        standalone, extra["standalone_mode"] = extra.get("standalone_mode", True), False
        if not standalone:
            return super().main(*args, **extra)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a terminal that is not UTF-8 shows escapes, and no traceback
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(*args, **extra)
        except ConfigError as error:
            sys.exit(complain(f"veriward: {error}"))
        except typer.TyperException as error:
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "veriward"
            sys.exit(complain(f"{command}: {error.format_message()} See {command} --help."))
        except (typer.Abort, KeyboardInterrupt):
            sys.exit(130)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            sys.exit(complain("veriward: no space left to write the output to; free some and start again"))
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=OneLineErrors,
    help="Rewards that verify: verdicts on model answers, and numbers made of them.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def complain(message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return 2


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"veriward {version('veriward')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(context_settings={"ignore_unknown_options": True})
def verify(
    response: Annotated[str, typer.Argument(help="What the model wrote; '-' reads it from standard input.")],
    reference: Annotated[str, typer.Argument(help="The right answer, bare.")],
    answer: AnswerOption = False,
    contract: ContractOption = None,
    answer_type: TypeOption = None,
    option: OptionsOption = None,
    truncated: TruncatedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Verify one response: is its answer right, is its format valid, could it be decided?"""
    explanation = decide(response, reference, answer, contract, answer_type, option, truncated)
    if as_json:
        print(json.dumps(explanation.verdict.to_row()))
    else:
        Console().print(verdict_table(explanation.verdict))


def made_pool(workers: int | None, deadline_s: float) -> VerdictPool:
    """Worker processes for a command, as many as there are cores; a mistake of the person's is one line."""
    from veriward.rewards import VerdictPool
    from veriward.rewards.pool import WORKERS_VARIABLE, cores

    if workers is None and WORKERS_VARIABLE not in os.environ:
        workers = cores()
    try:
        return VerdictPool(workers, deadline_s)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def decide(
    response: str,
    reference: str,
    bare: bool,
    contract: str | None,
    answer_type: str | None,
    option: list[str] | None,
    truncated: bool,
) -> Explanation:
    """What `verify` and `explain` both ask; a mistake of the person's is one line."""
    from veriward.rewards import DEFAULT, explain

    if response == "-":
        response = sys.stdin.buffer.read().decode("utf-8", "replace")
    contract = known_contract(contract or DEFAULT)
    try:
        return explain(
            response,
            reference,
            bare=bare,
            contract=contract,
            answer_type=answer_type,
            options=dict(map(named_option, option)) if option else None,
            truncated=truncated,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def named_option(text: str) -> tuple[str, object]:
    """'tolerance=0.01' as name and value; true and false are no texts."""
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"--option {text!r}: wanted NAME=VALUE, as tolerance=0.01")
    return name, {"true": True, "false": False}.get(value, value)


@app.command()
def grade(
    pairs: Annotated[Path, typer.Argument(help="JSONL: response or prediction, and reference.", metavar="PAIRS.jsonl")],
    out: Annotated[Path, typer.Option(help="JSONL of verdicts, one line a row.", metavar="VERDICTS.jsonl")],
    contract: ContractOption = None,
    workers: WorkersOption = None,
    deadline: DeadlineOption = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Verify a file of pairs, row by row. The same command again goes on where it was stopped.

    Optional columns: id, answer_type, options, truncated. A row that is no pair is reported and left out; then the
    exit code is 2.
    """
    from veriward.eval.pair_file import grade_file
    from veriward.rewards import DEFAULT

    console = Console(stderr=True)
    pool = made_pool(workers, deadline)
    try:
        with pool, disk_full_in_one_line(out), show_grading(console, pairs) as on_progress:
            result = grade_file(
                pairs,
                out,
                contract=known_contract(contract or DEFAULT),
                complain=first_lines(console),
                on_progress=on_progress,
                pool=pool,
            )
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on from here: {out} keeps what is graded", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(result.to_row()))
    else:
        Console().print(grading_table(result))
        if pool.metrics.verdicts:
            Console().print(pool.line(), highlight=False)
    lost = result.outcomes.get("timeout", 0) + result.outcomes.get("crashed", 0)
    if lost:
        complain(f"veriward grade: {lost} rows are timeout or crashed, and stay so; another --out decides them anew")
    if result.refused:
        raise typer.Exit(complain(f"veriward grade: {result.refused} of {result.rows} rows are no pairs, and left out"))


@app.command(context_settings={"ignore_unknown_options": True})
def explain(
    response: Annotated[str, typer.Argument(help="What the model wrote; '-' reads it from standard input.")],
    reference: Annotated[str, typer.Argument(help="The right answer, bare.")],
    answer: AnswerOption = False,
    contract: ContractOption = None,
    answer_type: TypeOption = None,
    option: OptionsOption = None,
    truncated: TruncatedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show how a verdict comes about: the answer taken, how both sides are read, what each tier found."""
    from veriward.scripts.explain import show

    explanation = decide(response, reference, answer, contract, answer_type, option, truncated)
    if as_json:
        print(json.dumps({**explanation.verdict.to_row(), "steps": [list(step) for step in explanation.steps]}))
    else:
        show(explanation, Console())


@app.command(name="check-references")
def check_references(
    data: Annotated[Path, typer.Argument(help="JSONL with a column of references.", metavar="DATA.jsonl")],
    column: Annotated[str | None, typer.Option(help="Column of the reference.", show_default="found")] = None,
    require: Annotated[bool, typer.Option("--require-references", help="Exit code 1 if one cannot be read.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Read every reference before training: which cannot be read, which leave a question open, and a table by kind."""
    from veriward.eval.reference_check import check_references as run

    result = run(data, column)
    if as_json:
        print(json.dumps(result.to_row()))
    else:
        show_references(result, Console())
    if require and result.unreadable:
        raise typer.Exit(1)


@app.command(name="compare-contracts")
def compare(
    pairs: Annotated[Path, typer.Argument(help="JSONL as `grade` takes it.", metavar="PAIRS.jsonl")],
    first: Annotated[str, typer.Argument(help="Grading contract, as 'v1'.")],
    second: Annotated[str, typer.Argument(help="Grading contract, as 'v3'.")],
    out: Annotated[Path | None, typer.Option(help="JSONL of every disagreement.")] = None,
    show: Annotated[int, typer.Option(help="Disagreements printed.")] = 20,
    workers: WorkersOption = None,
    deadline: DeadlineOption = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Verify the same pairs under two contracts: matrix of outcomes, and each disagreement with both reasons.

    Answers that v2 refuses for their cost are not handed to v1, and counted as skipped.
    """
    from veriward.eval.contract_comparison import compare_contracts

    console = Console(stderr=True)
    if out is not None:
        refuse_output(out)
    with console.status("0 verdicts") as status:
        done = 0

        def on_progress(more: int) -> None:
            nonlocal done
            done += more
            status.update(f"{done:,} verdicts")

        with made_pool(workers, deadline) as pool:
            result = compare_contracts(
                pairs,
                known_contract(first),
                known_contract(second),
                complain=first_lines(console),
                on_progress=on_progress,
                pool=pool,
            )
    if out is not None:
        try:
            out.write_text("".join(json.dumps(row) + "\n" for row in result.disagreements), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{out}: cannot be written: {error.strerror}; choose another --out") from error
    if as_json:
        print(json.dumps(result.to_row()))
    else:
        show_comparison(result, max(show, 0), Console())
    if result.refused:
        lines = result.pairs + result.refused
        raise typer.Exit(complain(f"veriward compare-contracts: {result.refused} of {lines} rows are no pairs"))


@app.command()
def audit(
    what: Annotated[str, typer.Argument(help="Grading contract, as 'v1'; or 'tools'.")],
    as_json: JsonOption = False,
) -> None:
    """Run a contract's own case table, or ten inputs of the tools; exit code 1 if one comes out otherwise."""
    if what == "tools":
        audit_tools(as_json)
        return
    from veriward.rewards.contracts.audit import audit as run

    result = run(known_contract(what))
    if as_json:
        print(json.dumps({"contract": result.contract, "fingerprint": result.fingerprint, **dict(result.table)}))
    else:
        print(f"contract {result.contract}, fingerprint {result.fingerprint}")
        for label, figure in result.table:
            print(f"{label:<34}{figure:>8}")
    for line in result.differences:
        print(line, file=sys.stderr)
    if result.differences:
        raise typer.Exit(1)


app.command(name="eval")(evaluate)
app.command()(reverify)
app.command(name="compare")(compare_runs)
app.command()(report)
app.command()(promote)
app.command()(export)
app.command()(bundle)
app.command(name="audit-sample")(audit_sample)
app.command()(contamination)
app.command()(fresh)
app.command()(attack)
app.command()(agent)
app.command()(stages)
app.command()(drill)
app.command(name="run-cases")(run_cases)
app.add_typer(state, name="state")
app.add_typer(card, name="card")


if __name__ == "__main__":
    app()
