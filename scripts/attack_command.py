"""`veriward attack`: attack reward functions, and show what was found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from veriward.scripts.display import show_attack, show_attacking
from veriward.scripts.options import JsonOption, refuse_output
from veriward.tool_agent.errors import ConfigError


def attack(
    contract: Annotated[
        list[str] | None, typer.Option(help="Grading contract.", show_default="the current one", metavar="NAME")
    ] = None,
    peer: Annotated[list[str] | None, typer.Option(help="'math-verify' or 'trl'.", metavar="NAME")] = None,
    function: Annotated[
        list[str] | None, typer.Option(help="Reward function in TRL's call, or what makes one.", metavar="PKG.MOD:NAME")
    ] = None,
    server: Annotated[
        list[str] | None, typer.Option(help="HTTP judge; VERIWARD_SERVER_TOKEN is its bearer token.", metavar="URL")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the cases.")] = 0,
    per_family: Annotated[int, typer.Option(help="Cases drawn from each family.")] = 40,
    family: Annotated[
        list[str] | None, typer.Option(help="Only this family; may be repeated.", show_default="all", metavar="NAME")
    ] = None,
    deadline: Annotated[float, typer.Option(help="Seconds after which a call hangs.")] = 2.0,
    threshold: Annotated[float, typer.Option(help="A reward above it pays.")] = 0.5,
    plain: Annotated[bool, typer.Option("--plain", help="Functions get texts, and no chat messages.")] = False,
    column: Annotated[
        str | None, typer.Option(help="The reference column of a function.", show_default="every usual one")
    ] = None,
    server_format: Annotated[str, typer.Option(help="'veriward', 'openrlhf' or 'openai'.")] = "veriward",
    judge_model: Annotated[
        str | None, typer.Option(help="Model that an OpenAI-compatible server is asked for.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="JSON of every finding.", metavar="FILE.json")] = None,
    page: Annotated[
        list[Path] | None, typer.Option(help="Page whose attack tables are replaced.", metavar="PAGE.md")
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option(help="Exit code 1 if found, as wrong-accepts,hangs,crashes.", metavar="FINDINGS")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Attack reward functions: wrong accepts and rejects, hangs, crashes, by families of hostile and honest answers.

    Each target runs in a process of its own, which is killed where it hangs. Several targets stand side by side.
    """
    from veriward.eval.attack.cases import attack_cases
    from veriward.eval.attack.report import (
        check_markers,
        findings_named,
        never_answered,
        never_paid,
        replace_tables,
        to_row,
    )
    from veriward.eval.attack.run import AttackSettings
    from veriward.eval.attack.run import attack as run_attack
    from veriward.eval.attack.targets import Target
    from veriward.rewards import DEFAULT

    nothing_named = not (contract or peer or function or server)
    targets = [
        *(Target(kind="contract", name=name) for name in ([DEFAULT] if nothing_named else contract or [])),
        *(Target(kind="peer", name=name) for name in peer or []),
        *(Target(kind="function", name=name, plain=plain, column=column) for name in function or []),
        *(
            Target(kind="server", name=url, server_format=server_format, judge_model=judge_model)
            for url in server or []
        ),
    ]
    settings = AttackSettings(
        seed=seed,
        per_family=per_family,
        families=tuple(dict.fromkeys(family)) if family else None,
        deadline_s=deadline,
        threshold=threshold,
    )
    failing = findings_named(fail_on)
    if out is not None:
        refuse_output(out)
    for path in page or []:
        check_markers(path)
    cases = attack_cases(seed=seed, per_family=per_family, families=settings.families)
    with show_attacking(Console(stderr=True), len(targets), len(cases)) as on_progress:
        run = run_attack(targets, cases, settings, on_progress)
    if out is not None:
        try:
            out.write_text(json.dumps(to_row(run), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{out}: cannot be written: {error.strerror}; choose another --out") from error
    if as_json:
        print(json.dumps(to_row(run)))
    else:
        show_attack(run, Console())
    if run.stopped:
        print("stopped; the figures are of the calls until then", file=sys.stderr)
        raise typer.Exit(130)
    unanswered = [line for report in run.reports if (line := never_answered(report)) is not None]
    if unanswered:
        raise ConfigError("; ".join(unanswered))
    for path in page or []:
        replace_tables(path, run)
    for line in filter(None, map(never_paid, run.reports)):
        print(f"veriward attack: {line}", file=sys.stderr)
    if run.faults(failing):
        raise typer.Exit(1)
