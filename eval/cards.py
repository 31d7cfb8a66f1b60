"""The two cards, written from stored runs and from nothing else.

A model card is about the weights alone: no tools, no correction, every number with its denominator, interval, bounds,
contract and fingerprint. A system card is about everything around them. A tool number in a model card is an error.

A card ends with a line for machines that says what it was made of, so that `verify_card` can make it again from the
states and hold the two against each other, line by line. What stands between the two notes marks is a person's own, and
is kept and not compared.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from veriward.eval.audit_sample import read_audit
from veriward.eval.card_front_matter import eval_results, front_matter
from veriward.eval.metrics import Summary, summarise_run
from veriward.eval.problems import PRESETS
from veriward.eval.runs import ContractName, Run, read_run
from veriward.eval.system_card import system_context
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.files import cannot_write, write_whole

MADE_OF = re.compile(r"<!-- made of: (\{.*\}) -->\s*\Z")
NOTES = ("<!-- notes: yours, kept when the card is written again -->", "<!-- end of notes -->")
"""Between these a person writes what no run says."""
SHOWN_NAMES = {"math-500": "MATH-500", "gsm8k": "GSM8K", "aime-2024": "AIME 2024", "aime-2025": "AIME 2025"}
EVAL_RESULTS = ".eval_results"
DECIDED = {
    "decision",
    "candidate",
    "reasons",
    "complaints",
    "rule",
    "rule_sha256",
    "stamped_at",
    "set_sha256",
    "base",
    "runs",
}
"""What a card takes from a decision.json."""
MARKUP = re.compile(r"[\\`*{}\[\]<#|$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|~(?=~)|(?<=~)~")
"""What Markdown or HTML would read as more than text; an underscore inside a word is text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    kind: str
    """'model' or 'system'."""
    markdown: str
    eval_results: Mapping[str, str]
    """File name to YAML, as the Hub reads it from the folder `.eval_results`; empty for a system card."""

    def write(self, file: Path) -> None:
        """The card, with the notes of the one that it replaces, and `.eval_results` beside it."""
        if file.exists() and MADE_OF.search(file.read_text("utf-8")) is None:
            raise ConfigError(f"{file}: is there and is no card of this package; choose another --out")
        text = with_notes(self.markdown, notes_of(file.read_text("utf-8")) if file.exists() else "")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text.encode("utf-8"))
            for name, content in self.eval_results.items():
                (file.parent / EVAL_RESULTS).mkdir(exist_ok=True)
                write_whole(file.parent / EVAL_RESULTS / name, content.encode("utf-8"))
        except OSError as error:
            raise cannot_write(file, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run on a card."""

    run: Run
    summary: Summary
    audit: Mapping[str, Any] | None
    """Agreement of the verifier with a person, where a sheet was marked."""
    selection: str
    """Whether the checkpoint was chosen by this number."""

    @property
    def settings(self) -> str:
        """How it was asked, in a line."""
        generation, generator = self.run.settings["generation"], self.run.settings["generator"]
        shown = [str(generator.get("engine", "")), str(generator.get("dtype", ""))]
        shown += [f"batch size {generator['batch_size']}"] if "batch_size" in generator else []
        shown += [f"temperature {generation['temperature']:g}", f"at most {generation['max_new_tokens']} tokens"]
        shown += [f"seed {generation['seed']}"] if generation["temperature"] else []
        shown += [f"template {self.run.settings['prompt']['template']}"]
        return ", ".join(part for part in shown if part)


def model_card(runs: Sequence[Run], *, decision: Mapping[str, Any] | None = None, at: Path | None = None) -> Card:
    """
    runs       of the weights alone
    decision   of `veriward promote`, as `read_decision` gives it
    at         where the card will stand; paths in it are relative to there
    raises     ConfigError for a run with tools or corrections, and for runs of different models
    """
    refuse_nothing(runs)
    for run in runs:
        if run.tools or run.corrected:
            raise ConfigError(
                f"{run.path}: has tools or corrected answers, and a model card is about the weights alone; "
                "use `veriward card system`"
            )
        if run.agent:
            raise ConfigError(
                f"{run.path}: is a run of the tool agent; ask the model with `veriward eval` for its card"
            )
    models = {run.weights for run in runs}
    if len(models) > 1:
        raise ConfigError(f"{runs[0].path}: {len(models)} different models are among the runs; a card is about one")
    entries = [
        Entry(run=run, summary=summarise_run(run), audit=read_audit(run), selection=selection_of(run, decision))
        for run in runs
    ]
    by_contract: dict[ContractName, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_contract[entry.run.contract].append(entry)
    context = {
        "model": runs[0].model,
        "weights": runs[0].weights,
        "groups": list(by_contract.items()),
        "decision": decision,
        "place": place_in(decision, runs[0]),
        "unused": unused_sets(runs),
    }
    complete = [(entry.run, entry.summary) for entry in entries if entry.run.complete]
    made_of = {"kind": "model", "runs": runs_row(runs, at), "decision": decision}
    text = front_matter(runs[0].model, complete) + render("model_card.md.j2", context)
    return Card(kind="model", markdown=with_marks(text, made_of), eval_results=eval_results(complete))


def system_card(
    runs: Sequence[Run], *, drill: Sequence[Mapping[str, str]] | None = None, at: Path | None = None
) -> Card:
    """
    runs     of the tool agent, with its controls and its baseline without tools where there are any
    drill    injected faults, and the way that each problem took, as `drill_rows` reads them
    raises   ConfigError where no run has tools, and for runs under different contracts or of other problems
    """
    refuse_nothing(runs)
    context = system_context(runs, drill)
    made_of = {"kind": "system", "runs": runs_row(runs, at), "drill": drill}
    return Card(kind="system", markdown=with_marks(render("system_card.md.j2", context), made_of), eval_results={})


def refuse_nothing(runs: Sequence[Run]) -> None:
    if not runs:
        raise ConfigError("a card needs at least one run")
    for run in runs:
        if not run.rows:
            raise ConfigError(f"{run.path}: holds no complete response; go on with it first")
    seen: dict[str, Run] = {}
    for run in runs:
        if run.fingerprint in seen:
            raise ConfigError(f"{run.path}: is the same run as {seen[run.fingerprint].path}; name it once")
        seen[run.fingerprint] = run


def place_in(decision: Mapping[str, Any] | None, run: Run) -> str:
    """What the decision says of this model."""
    if decision is None:
        return ""
    if run.weights == decision["base"]["weights"]:
        return "the base"
    found = [row["name"] for row in decision["runs"] if row["weights"] == run.weights]
    if not found:
        return "NOT AMONG THE CANDIDATES of this decision"
    promoted = decision["decision"] == "promote" and decision["candidate"] in found
    return f"the candidate {found[0]}, which was {'promoted' if promoted else 'not promoted'}"


def selection_of(run: Run, decision: Mapping[str, Any] | None) -> str:
    if decision is None:
        return "no promotion rule is on record for this checkpoint"
    if run.settings["problems"]["sha256"] != decision["set_sha256"]:
        return "not used to choose the checkpoint"
    return "SELECTED ON THIS SET: the checkpoint was chosen by this number, which is therefore too high on average"


def unused_sets(runs: Sequence[Run]) -> list[str]:
    """Public sets that no run on the card asked."""
    asked = {str(run.settings["problems"]["name"]).casefold() for run in runs}
    return [SHOWN_NAMES[name] for name, preset in PRESETS.items() if not {name, preset.hub.casefold()} & asked]


def read_decision(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
        if DECIDED - found.keys():
            raise ValueError("a field is missing")
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"{file}: is no decision of `veriward promote`: {error}") from error
    return dict(found)


# --------------------------------------------------------------------------------------------------------- rendering


def render(template: str, context: Mapping[str, Any]) -> str:
    need("jinja2", extra="eval", purpose="a card")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701  Markdown: what is not ours goes through the filter `md`
        loader=PackageLoader("veriward.eval"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["counts"] = as_counts
    environment.filters |= {"md": as_markdown, "percent": percent, "interval": as_interval, "row": as_table_row}
    return environment.get_template(template).render(**context)


def as_markdown(value: object) -> str:
    """Any text, as words that Markdown and HTML leave alone, on one line."""
    line = " ".join(str(value).split())
    return MARKUP.sub(lambda found: f"&#{ord(found[0])};", line.replace("&", "&amp;"))


def percent(share: float | None) -> str:
    return "undefined" if share is None else f"{100 * share:.1f} %"


def as_interval(interval: Sequence[float] | None) -> str:
    return "undefined" if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f} %"


def as_counts(counts: Mapping[str, int]) -> str:
    """Of what there is, in words."""
    shown = [f"{as_markdown(name.replace('_', ' '))} {count}" for name, count in counts.items() if count]
    return ", ".join(shown) or "none"


def as_table_row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def with_marks(text: str, made_of: Mapping[str, Any]) -> str:
    return f"{text.rstrip()}\n\n## Notes\n\n{NOTES[0]}\n{NOTES[1]}\n\n{made_of_line(made_of)}\n"


def made_of_line(made_of: Mapping[str, Any]) -> str:
    """A comment that nothing in it can end."""
    line = json.dumps(made_of, sort_keys=True).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"<!-- made of: {line} -->"


def notes_of(text: str) -> str:
    start, end = text.find(NOTES[0]), text.find(NOTES[1])
    return text[start + len(NOTES[0]) : end].strip("\n") if 0 <= start < end else ""


def with_notes(text: str, notes: str) -> str:
    return text.replace(f"{NOTES[0]}\n{NOTES[1]}", f"{NOTES[0]}\n{notes}\n{NOTES[1]}") if notes else text


def without_notes(text: str) -> str:
    start, end = text.find(NOTES[0]), text.find(NOTES[1])
    return text[: start + len(NOTES[0])] + "\n" + text[end:] if 0 <= start < end else text


# ------------------------------------------------------------------------------------------------------ verification


def runs_row(runs: Sequence[Run], at: Path | None) -> list[dict[str, str]]:
    return [{"name": run.name, "path": relative(run.path, at), "fingerprint": run.fingerprint} for run in runs]


def relative(path: Path, at: Path | None) -> str:
    return os.path.relpath(path, at.parent if at is not None else Path.cwd())


def verify_card(
    card: Path,
    runs: Sequence[Run] | None = None,
    *,
    decision: Mapping[str, Any] | None = None,
    drill: Sequence[Mapping[str, str]] | None = None,
) -> list[str]:
    """Everything in which a card, and `.eval_results` beside it, differ from what its runs say; a line each.

    runs       where the runs are now; None: where they were when the card was written
    decision   of `veriward promote`; None: the card's own word is taken for it, see `unchecked`
    drill      of `drill_rows`; None: likewise
    raises     ConfigError for what is no card, and where its runs cannot be found or read
    """
    text, made_of = read_card(card)
    refuse_other_evidence(card, made_of["kind"], decision=decision, drill=drill)
    given = {name: value for name, value in (("decision", decision), ("drill", drill)) if value is not None}
    made_of = {**made_of, **given}
    found = [find_run(card, row, runs) for row in made_of["runs"]]
    again = (
        model_card(found, decision=made_of["decision"], at=card)
        if made_of["kind"] == "model"
        else system_card(found, drill=made_of["drill"], at=card)
    )
    faults = differences_between(without_notes(text), without_notes(again.markdown))
    if made_of["kind"] == "model":
        faults += faults_beside(card.parent / EVAL_RESULTS, again.eval_results)
    return faults


def faults_beside(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Of `.eval_results`. A card that stands alone, as in a bundle, has no such folder, and claims nothing by it."""
    if not folder.is_dir():
        return []
    there = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    faults = []
    for name in sorted(wanted.keys() | there.keys()):
        if name not in there:
            faults.append(f"{EVAL_RESULTS}/{name}: is missing")
        elif name not in wanted:
            faults.append(f"{EVAL_RESULTS}/{name}: is of no run")
        elif there[name] != wanted[name].encode("utf-8"):
            faults.append(f"{EVAL_RESULTS}/{name}: is not what the runs say")
    return faults


def refuse_other_evidence(card: Path, kind: str, *, decision: object, drill: object) -> None:
    """A decision belongs to a model card, a drill to a system card."""
    if kind == "model" and drill is not None:
        raise ConfigError(f"{card}: is a model card, which has no drill; leave out --drill")
    if kind == "system" and decision is not None:
        raise ConfigError(f"{card}: is a system card, which has no decision; leave out --decision")


def unchecked(card: Path, given: Sequence[str] = ()) -> list[str]:
    """What a card holds that its runs do not: 'decision', 'drill'. `given` is held against the original."""
    _, made_of = read_card(card)
    return [name for name in ("decision", "drill") if made_of.get(name) and name not in given]


def read_card(card: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = card.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{card}: cannot be read: {error}; wanted a card of `veriward card`") from error
    found = MADE_OF.search(text)
    try:
        made_of: dict[str, Any] = json.loads(found[1]) if found else {}
        known = made_of.get("kind") in ("model", "system") and {"decision", "drill"} & made_of.keys()
        if not known or not all({"name", "path", "fingerprint"} <= row.keys() for row in made_of["runs"]):
            raise ValueError
        if found is None or found[0].rstrip() != made_of_line(made_of):
            raise ValueError("not as it was written: it could hide text that is shown")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{card}: does not say what it was made of; wanted a card of `veriward card`") from None
    return text, made_of


def find_run(card: Path, row: Mapping[str, str], runs: Sequence[Run] | None) -> Run:
    """Under the name that it had when the card was written."""
    if runs is not None:
        for run in runs:
            if run.fingerprint == row["fingerprint"]:
                return replace(run, label=row["name"])
        raise ConfigError(f"{card}: none of the runs given has the fingerprint {row['fingerprint']} of {row['path']}")
    return replace(read_run(card.parent / row["path"]), label=row["name"])


def differences_between(card: str, again: str) -> list[str]:
    """By line; what the runs say, where the card says something else. The paths of moved runs are no difference."""
    have, want = MADE_OF.sub("", card).split("\n"), MADE_OF.sub("", again).split("\n")
    faults = []
    for kind, start, end, other_start, other_end in SequenceMatcher(None, have, want, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        wanted = want[other_start:other_end] or ["nothing"]
        for place, line in enumerate(have[start:end] or ["nothing"]):
            said = wanted[min(place, len(wanted) - 1)]
            faults.append(f"line {start + place + 1}: {line.strip()[:160]!r}; the runs say {said.strip()[:160]!r}")
    return faults
