"""What an attack found, for machines and for a page: JSON with every finding, and a Markdown table."""

from __future__ import annotations

import platform
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from veriward.eval.attack.cases import FAMILIES, MECHANISMS
from veriward.eval.attack.http_judge import JUDGE_PROMPT
from veriward.eval.attack.run import FAILURES, FAULTS, AttackRun, Finding, Result, TargetReport
from veriward.tool_agent.errors import ConfigError

TABLES = ("attack summary", "attack table")
"""What a page may show: a line a target, and a line a family. Each stands between comments with its name."""


def to_row(run: AttackRun) -> dict[str, Any]:
    """Everything, as JSON: settings, versions, and of each target the counts and every finding with its input.

    The same for the same seed and versions, except for the keys `seconds`.
    """
    settings = run.settings
    return {
        "command": command_of(run),
        "seed": settings.seed,
        "per_family": settings.per_family,
        "deadline_s": settings.deadline_s,
        "threshold": settings.threshold,
        "cases": len(run.cases),
        "stopped": run.stopped,
        "versions": {"veriward": version("veriward"), "python": platform.python_version(), "system": sys.platform},
        "targets": [target_row(report, run.families) for report in run.reports],
    }


def target_row(report: TargetReport, families: Sequence[str]) -> dict[str, Any]:
    target = report.target
    row: dict[str, Any] = {
        "target": target.label,
        "kind": target.kind,
        "versions": target.versions(),
        "fingerprint": target.fingerprint,
        "total": figures(report),
        "families": {family: figures(report, family) for family in families if report.cases(family)},
        "known_mechanisms": [name for name in MECHANISMS if name in report.mechanisms()],
        "mechanisms": {name: _kinds(results) for name, results in report.mechanisms().items()},
        "findings": [finding_row(result) for result in report.results if result.finding is not Finding.FINE],
    }
    if target.server_format == "openai":
        row["judge_model"], row["judge_prompt"] = target.judge_model, JUDGE_PROMPT
    return row


def figures(report: TargetReport, family: str | None = None) -> dict[str, Any]:
    """Cases, each fault's count and seconds, of one family or of all."""
    counts = report.counts(family)
    return {
        "cases": report.cases(family),
        **{finding.plural.replace(" ", "_"): counts[finding] for finding in FAULTS},
        "seconds": round(report.seconds(family), 3),
    }


def finding_row(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "finding": result.finding.value,
        "id": case.id,
        "family": case.family,
        "mechanism": case.mechanism,
        "accept": case.accept,
        "value": result.value,
        "outcome": result.outcome,
        "detail": result.detail,
        "call": case.call,
        "prompt": case.prompt,
        "completion": case.completion,
        "reference": case.reference,
        "answer_type": case.answer_type,
        "seconds": round(result.seconds, 3),
    }


def _kinds(results: Sequence[Result]) -> Mapping[str, int]:
    return dict(Counter(result.finding.plural.replace(" ", "_") for result in results))


def kinds_in_words(results: Sequence[Result]) -> str:
    """'3 wrong accepts, 1 hang'."""
    counts = Counter(result.finding for result in results)
    return ", ".join(
        f"{counts[finding]} {finding.value if counts[finding] == 1 else finding.plural}"
        for finding in FAULTS
        if counts[finding]
    )


def findings_named(names: str | None) -> list[Finding]:
    """The findings of an option such as 'wrong-accepts,hangs'."""
    known = {finding.plural.replace(" ", "-"): finding for finding in FAULTS}
    wanted = names.split(",") if names else []
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--fail-on: unknown finding {name!r}; wanted some of {','.join(known)}")
    return [known[name] for name in wanted]


def never_answered(report: TargetReport) -> str | None:
    """A line for the person where every call raised: the call is wrong, not the answers, and nothing was measured."""
    if len(report.results) < 2 or report.counts()[Finding.EXCEPTION] != len(report.results):
        return None
    first = report.results[0].detail or ""
    if report.target.kind == "server":
        hint = "does --server-format name how it speaks?"
    elif "unexpected keyword argument" in first:
        hint = "TRL passes every column by its name: let it take **kwargs"
    else:
        hint = "is it called as it wants to be? see --plain and --column"
    return f"{report.target.label}: every call raised, the first {first}; {hint}"


def never_paid(report: TargetReport) -> str | None:
    """A line for the person where no right answer was paid: that is seldom what a reward function is for."""
    right = [result for result in report.results if result.case.accept]
    if not right or any((result.value or 0) > 0 for result in right):
        return None
    hint = "; does it want plain texts (--plain)?" if report.target.kind == "function" else ""
    return f"{report.target.label}: paid none of {len(right)} right answers{hint}"


# ---------------------------------------------------------------------------------------------- the table of a page


def summary(run: AttackRun) -> str:
    """A line a target; below it what is needed to run it again."""
    unequal, equal = _claims(run)
    names = (
        f"wrong accepts, of {unequal}",
        f"wrong rejects, of {equal}",
        "right answers undecided",
        f"no answer in {run.settings.deadline_s:g} s",
        "crashes, exceptions",
        f"of {len(MECHANISMS)} known faults",
        "seconds",
    )
    lines = [_line(["", *names]), _line(["---", *("---:" for _ in names)])]
    for report in run.reports:
        counts = report.counts()
        failures = counts[Finding.CRASH] + counts[Finding.EXCEPTION]
        shown = (
            *(counts[Finding.WRONG_ACCEPT], counts[Finding.WRONG_REJECT], report.left_undecided()),
            *(counts[Finding.HANG], failures, len(MECHANISMS.keys() & report.mechanisms().keys())),
        )
        lines.append(_line([report.target.label, *map(str, shown), f"{report.seconds():,.1f}"]))
    return "\n".join([*lines, "", made_by(run)])


def made_by(run: AttackRun) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in _versions(run).items())
    return f"`{command_of(run)}` with {versions}; a call is a hang after {run.settings.deadline_s:g} s."


def markdown(run: AttackRun) -> str:
    """Families down, targets across, four figures a cell; below it what is needed to run it again."""
    lines = [
        f"{len(run.cases):,} cases; of each target: wrong accepts / wrong rejects / right answers undecided / no answer"
        f" in {run.settings.deadline_s:g} s, crashes and exceptions",
        "",
        _line(["family", "what it tries", "unequal", "equal", *(report.target.label for report in run.reports)]),
        _line(["---", "---", "---:", "---:", *("---:" for _ in run.reports)]),
    ]
    for family in run.families:
        tries = FAMILIES[family].tries if family in FAMILIES else ""
        cells = [cell(report, family) for report in run.reports]
        lines.append(_line([family, tries, *_claims(run, family), *cells]))
    lines.append(_line(["**all**", "", *_claims(run), *(f"**{cell(report)}**" for report in run.reports)]))
    lines.append(_line(["seconds", "", "", "", *(f"{report.seconds():,.1f}" for report in run.reports)]))
    return "\n".join([*lines, "", made_by(run)])


def command_of(run: AttackRun) -> str:
    """The command that makes this run again, without its files."""
    words = ["veriward", "attack"]
    for report in run.reports:
        words += report.target.options()
    for name, value in run.settings.changed():
        words += [f"--{name}", str(value)]
    return shlex.join(words)


def cell(report: TargetReport, family: str | None = None) -> str:
    """The four figures of a target, of one family or of all."""
    counts = report.counts(family)
    failures = sum(counts[finding] for finding in FAILURES)
    shown = (counts[Finding.WRONG_ACCEPT], counts[Finding.WRONG_REJECT], report.left_undecided(family), failures)
    return " / ".join(f"{count:,}" for count in shown) if report.cases(family) else "-"


def _claims(run: AttackRun, family: str | None = None) -> list[str]:
    """How many cases must not be paid, and how many must: what the wrong accepts and wrong rejects are counted of."""
    accepts = [case.accept for case in run.cases if family in (None, case.family)]
    return [f"{accepts.count(False):,}", f"{accepts.count(True):,}"]


def _versions(run: AttackRun) -> dict[str, str]:
    numbers = {"veriward": version("veriward")}
    for report in run.reports:
        numbers |= report.target.versions()
    return {**numbers, "Python": platform.python_version()}


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |"


def check_markers(page: Path) -> None:
    """Before the minutes that a run takes: the page is there, and says where a table goes."""
    _text_with_markers(page)


def replace_tables(page: Path, run: AttackRun) -> None:
    """Put each table between its comments in a page, in place of what stood there."""
    text = _text_with_markers(page)
    for name, table in zip(TABLES, (summary(run), markdown(run)), strict=True):
        before, first, rest = text.partition(f"<!-- {name} -->")
        _, last, after = rest.partition(f"<!-- /{name} -->")
        if last:
            text = f"{before}{first}\n{table}\n{last}{after}"
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{page}: cannot be written: {error.strerror}") from error


def _text_with_markers(page: Path) -> str:
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigError(f"{page}: cannot be read: {reason}") from error
    if not any(f"<!-- /{name} -->" in text.partition(f"<!-- {name} -->")[2] for name in TABLES):
        first = TABLES[0]
        raise ConfigError(
            f"{page}: wanted a line <!-- {first} --> and below it <!-- /{first} -->, or the same with {TABLES[1]}, to "
            "put the table between"
        )
    return text
