"""The report: one HTML file about stored runs, which opens without a network and runs nothing that a model wrote.

Numbers and pictures are made here; the browser of responses is drawn by the page's own script from data that it never
reads as markup. The page allows exactly its own style and its own script, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from veriward.eval import report_charts as charts
from veriward.eval.cards import as_interval, percent
from veriward.eval.comparison import Comparison, compare_with
from veriward.eval.diagnosis import Category, Diagnosed, Diagnosis, counts, diagnose
from veriward.eval.metrics import Summary, summarise_run
from veriward.eval.report_charts import Point
from veriward.eval.report_data import answer_rows, changes_between, correct_of, group_of, problem_rows
from veriward.eval.report_maths import Formulas
from veriward.eval.runs import Run
from veriward.tool_agent.agent import Gate
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.files import cannot_write, write_whole

METRICS = "metrics.jsonl"
"""Of a training folder: a row for each time that the trainer logged."""
SHARES = ("outcome/correct", "format_valid", "supported", "truncated")
CURVES = ("completions/mean_length", "entropy", "kl", "reward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    number: int
    run: Run
    first: Summary
    final: Summary
    diagnoses: Mapping[str, Diagnosis]
    first_diagnoses: Mapping[str, Diagnosis]
    """Empty where nothing is corrected."""
    counts: Diagnosed

    @property
    def colour(self) -> int:
        return self.number % charts.RUN_COLOURS

    @property
    def answers(self) -> list[tuple[str, Summary]]:
        """What is counted of the run, by its label: one answer, or the first and the corrected one side by side."""
        if not self.run.corrected:
            return [(self.run.name, self.final)]
        return [(f"{self.run.name}, first answer", self.first), (f"{self.run.name}, corrected", self.final)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs whose numbers may be compared: of one contract and one problem set."""

    title: str
    contract: str
    entries: Sequence[Entry]
    comparisons: Sequence[Comparison]
    oracle: bool
    """In one of them the gate knew the reference."""
    accuracy: str
    breakdowns: Sequence[tuple[str, str]]
    """Column, and its picture."""
    outcomes: str
    outcome_names: Sequence[str]
    lengths: Sequence[tuple[Entry, str]]
    kinds: str


def write_report(runs: Sequence[Run], out: Path, *, training: Sequence[Path] = ()) -> int:
    """The file's size in bytes; ConfigError where there is nothing to show, or the file cannot be written."""
    content = make_report(runs, training=training).encode("utf-8")
    try:
        write_whole(out, content)
    except OSError as error:
        raise cannot_write(out, error) from error
    return len(content)


def make_report(runs: Sequence[Run], *, training: Sequence[Path] = ()) -> str:
    """
    runs       complete or not; those of one contract and problem set are compared, with the first of them
    training   folders of training runs, for their curves
    """
    if not runs:
        raise ConfigError("a report needs at least one run")
    for run in runs:
        if not run.rows:
            raise ConfigError(f"{run.path}: holds no complete response; go on with it first")
    need("jinja2", extra="eval", purpose="a report")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    entries = [entry_of(number, run) for number, run in enumerate(runs)]
    style, script = (
        resources.files("veriward.eval").joinpath("templates", f"report.{kind}").read_text("utf-8")
        for kind in ("css", "js")
    )
    environment = Environment(
        loader=PackageLoader("veriward.eval"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "interval": as_interval, "points": as_points}
    return environment.get_template("report.html.j2").render(
        title=title_of(runs),
        style=style,
        script=script,
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        groups=list(groups_of(entries)),
        entries=entries,
        curves=list(curves_of(training)),
        training=[(number % charts.RUN_COLOURS, name) for number, name in enumerate(names_of(training))],
        data=data_of(entries),
    )


def entry_of(number: int, run: Run) -> Entry:
    found = diagnose(run)
    return Entry(
        number=number,
        run=run,
        first=summarise_run(run, first=True) if run.corrected else summarise_run(run),
        final=summarise_run(run),
        diagnoses=found,
        first_diagnoses=diagnose(run, first=True) if run.corrected else {},
        counts=counts(run, found),
    )


def title_of(runs: Sequence[Run]) -> str:
    models = list(dict.fromkeys(run.model for run in runs))
    sets = list(dict.fromkeys(run.problem_set for run in runs))
    return f"{', '.join(models)} on {', '.join(sets)}"


def hash_of(text: str) -> str:
    """As a content security policy names what it allows."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def as_points(share: float) -> str:
    return f"{100 * share:+.1f}"


# -------------------------------------------------------------------------------------------------------- pictures


def groups_of(entries: Sequence[Entry]) -> Iterator[Group]:
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        found[group_of(entry.run)].append(entry)
    for number, members in enumerate(found.values()):
        first, *others = members
        comparable = [entry.run for entry in others if is_comparable(first.run, entry.run)]
        lengths = [row["tokens"] for entry in members for row in entry.run.rows]
        bins = charts.bins_for(lengths)
        name = f"g{number}"
        shown = [
            (entry.run.name, {key: count for key, count in entry.final.outcomes.items() if count}) for entry in members
        ]
        yield Group(
            title=first.run.problem_set,
            contract=str(first.run.contract),
            entries=members,
            comparisons=compare_with(first.run, comparable) if comparable else [],
            oracle=any(entry.run.corrected and entry.run.settings["agent"]["gate"] == Gate.ORACLE for entry in members),
            accuracy=charts.accuracy_chart(
                [point(label, summary, entry.number) for entry in members for label, summary in entry.answers],
                f"{name}-accuracy",
            ),
            breakdowns=list(breakdowns_of(members, name)),
            outcomes=charts.outcomes_chart(shown, f"{name}-outcomes"),
            outcome_names=list(dict.fromkeys(key for _, one in shown for key in one)),
            lengths=[(entry, lengths_picture(entry, bins, members, name)) for entry in members],
            kinds=kinds_picture(members, name),
        )


def is_comparable(first: Run, other: Run) -> bool:
    """Of the same group: as many samples, and a problem whose samples are all there in both."""
    return first.samples == other.samples and not correct_of(first).keys().isdisjoint(correct_of(other))


def point(label: str, summary: Summary, number: int) -> Point:
    return Point(
        label=label, said=str(summary.accuracy), value=summary.accuracy.value, interval=summary.interval, run=number
    )


def breakdowns_of(entries: Sequence[Entry], name: str) -> Iterator[tuple[str, str]]:
    columns = dict.fromkeys(part.column for entry in entries for part in entry.final.breakdown)
    for place, column in enumerate(columns):
        values = dict.fromkeys(
            part.value for entry in entries for part in entry.final.breakdown if part.column == column
        )
        rows = []
        for value in values:
            parts = [
                Point(
                    label=f"n = {part.problems}",
                    said=str(part.accuracy),
                    value=part.accuracy.value,
                    interval=part.interval,
                    run=entry.number,
                )
                for entry in entries
                for part in entry.final.breakdown
                if (part.column, part.value) == (column, value)
            ]
            rows.append((value or "none", parts))
        yield column, charts.breakdown_chart(rows, f"{name}-part-{place}")


def lengths_picture(entry: Entry, bins: Sequence[float], entries: Sequence[Entry], name: str) -> str:
    highest = max(charts.highest_bin([row["tokens"] for row in one.run.rows], bins) for one in entries)
    whole = [row["tokens"] for row in entry.run.rows if not row["truncated"]]
    cut = [row["tokens"] for row in entry.run.rows if row["truncated"]]
    return charts.lengths_chart(whole, cut, bins, highest, entry.number, f"{name}-lengths-{entry.number}")


def kinds_picture(entries: Sequence[Entry], name: str) -> str:
    """Kinds of mistakes, detours and deviations, as shares of what they are counted among."""
    rows: list[tuple[str, list[tuple[int, int, int]]]] = [
        ("right, with a detour", [(entry.number, entry.counts.detours, entry.counts.right) for entry in entries]),
        (
            "not right, first false step found",
            [(entry.number, entry.counts.deviations, entry.counts.wrong) for entry in entries],
        ),
        (
            "not right, right answer stood before",
            [(entry.number, entry.counts.lost, entry.counts.wrong) for entry in entries],
        ),
    ]
    for category in Category:
        bars = [
            (entry.number, entry.counts.categories.get(category.value, 0), len(entry.run.rows)) for entry in entries
        ]
        if any(count for _, count, _ in bars):
            rows.append((f"kind: {category.value.replace('_', ' ')}", bars))
    return charts.shares_chart(
        [(label, bars) for label, bars in rows if any(total for *_, total in bars)], f"{name}-kinds"
    )


def curves_of(training: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Title and picture: the reward of each component first, then shares, then the rest."""
    rows = {number: read_metrics(folder) for number, folder in enumerate(training)}
    names = dict.fromkeys(name for found in rows.values() for row in found for name in row)
    rewards = [name for name in names if name.startswith("rewards/") and name.endswith("/mean")]
    wanted = [*rewards, *(name for name in (*SHARES, *CURVES) if name in names)]
    for place, name in enumerate(wanted):
        lines = [
            (number, [(row["step"], row[name]) for row in found if is_number(row.get(name))])
            for number, found in rows.items()
        ]
        lines = [(number, found) for number, found in lines if found]
        if lines:
            yield label_of(name), charts.curve_chart(lines, name in SHARES, f"curve-{place}")


def is_number(value: object) -> bool:
    """A training that went wrong logs NaN, and one of the numbers after it may be whole again."""
    return isinstance(value, int | float) and math.isfinite(value)


def names_of(folders: Sequence[Path]) -> list[str]:
    """Of training folders: the last part of each path, the last two where that is not enough."""
    places = [folder.resolve() for folder in folders]
    names = [place.name for place in places]
    return names if len(set(names)) == len(names) else [f"{place.parent.name}/{place.name}" for place in places]


def label_of(metric: str) -> str:
    words = metric.removeprefix("rewards/").removesuffix("/mean").replace("completions/", "").replace("outcome/", "")
    return words.replace("_", " ").replace("/", " ")


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    try:
        lines = (folder / METRICS).read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(
            f"{folder / METRICS}: cannot be read: {error.strerror}; wanted a training run's folder"
        ) from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                break  # a killed training's last line
            raise ConfigError(f"{folder / METRICS}, line {number}: no JSON; is this a training run's folder?") from None
        if isinstance(row, dict) and "reward" in row and is_number(row.get("step")):
            rows.append(row)
    if not rows:
        raise ConfigError(f"{folder / METRICS}: no step was logged yet; wait for the first")
    return rows


# ------------------------------------------------------------------------------------------------------------- data


def data_of(entries: Sequence[Entry]) -> str:
    """JSON for the page's script, without a `<`, so that no text in it can end its element."""
    runs = [entry.run for entry in entries]
    formulas = Formulas()
    problems, places = problem_rows(runs, formulas)
    changes: dict[tuple[int, str], str] = {}
    alike: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for entry in entries:
        alike[*group_of(entry.run), entry.run.samples].append(entry.number)
    for numbers in alike.values():
        if len(numbers) > 1:
            changes |= changes_between(runs, numbers)
    found, first = [entry.diagnoses for entry in entries], [entry.first_diagnoses for entry in entries]
    rows = answer_rows(runs, places, changes, formulas, found, first)
    content = {
        "runs": [{"name": entry.run.name, "model": entry.run.model, "colour": entry.colour} for entry in entries],
        "problems": problems,
        "answers": rows,
        "formulas": formulas.trees,
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
