"""A blind sheet for marking responses by hand, and what the marks say about the verifier.

The sheet is a CSV with question, response and reference, in random order, and no verdict; whoever marks it writes
`right`, `wrong` or `cannot tell` behind each. The key beside it says which responses were drawn, and is sealed with the
run's fingerprint and its verdicts, so that marks are never held against a run that has changed.

How it is drawn: the outcomes are strata. Each gets the same number of rows, and what a small one cannot fill goes to
the others, so that rare outcomes are looked at too. Every number is weighted back: a row of an outcome that N responses
have and n marked rows stand for counts N/n. An interval is Wilson's for the number of rows that would carry as much in
a plain sample; each stratum's share is for that moved a little towards 1/2 (as if two more rows had been marked, one of
each kind), since a stratum without a mistake so far is not one without any.

Not covered: two markers and their agreement with each other; responses of one problem count as independent.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from veriward.eval.rates import Interval, Rate
from veriward.eval.runs import Row, Run
from veriward.rewards import Outcome
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.files import cannot_write, to_json, write_whole

AUDIT = "audit.json"
SCHEMA = 1

Label = Literal["right", "wrong", "cannot tell"]
LABELS: tuple[Label, ...] = get_args(Label)
COLUMNS = ("item", "question", "response", "reference", "label", "note")
SHOWN = COLUMNS[1:4]
"""What a marker sees and does not change."""

LONGEST = 15_000
"""Characters of a cell; a spreadsheet cuts off at 32,767, and a sign can count as two."""
CUT = "[…] "
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A cell that begins so is run by some spreadsheet."""
SHORT = 40
"""A cell up to this length may be taken for a number or a date: 1/2 becomes the first of February."""
GUARD = "'"

Counts = dict[str, int]


class Drawn(NamedTuple):
    """One row of the sheet."""

    id: str
    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a person says about one response."""

    id: str
    sample: int
    label: Label


# ----------------------------------------------------------------------------------------------------- the sheet out


def draw(run: Run, count: int, seed: int) -> list[Drawn]:
    """Which responses are to be marked, in the order of the sheet; all of them where there are no more than `count`."""
    if count < 1:
        raise ConfigError(f"--n must be at least 1, got {count}")
    if not run.rows:
        raise ConfigError(f"{run.path}: holds no complete response; go on with it first")
    if not run.set.references:
        raise ConfigError(f"{run.path}: was packed without references, and nobody can mark without them")
    strata: dict[str, list[Drawn]] = defaultdict(list)
    for row in run.rows:
        strata[row["outcome"]].append(Drawn(row["id"], row["sample"]))
    source = random.Random(f"veriward.audit_sample:{run.fingerprint}:{seed}")
    shares = equal_shares({outcome: len(rows) for outcome, rows in strata.items()}, count)
    chosen = [one for outcome in sorted(strata) for one in source.sample(strata[outcome], shares[outcome])]
    source.shuffle(chosen)
    return chosen


def equal_shares(sizes: Mapping[str, int], count: int) -> Counts:
    """The same number from each stratum, and what a small one cannot fill from the others; smaller ones first."""
    left, shares = count, {}
    for place, (name, size) in enumerate(sorted(sizes.items(), key=lambda one: (one[1], one[0]))):
        shares[name] = min(size, left // (len(sizes) - place))
        left -= shares[name]
    return shares


def key_path(sheet: Path) -> Path:
    return sheet.with_name(f"{sheet.stem}.key.json")


def write_sheet(run: Run, sheet: Path, *, count: int = 100, seed: int = 0) -> int:
    """Write the sheet, and the key beside it; the number of rows in it.

    raises   ConfigError where one of the files is there already: it may hold marks
    """
    for file in (sheet, key_path(sheet)):
        if file.exists():
            raise ConfigError(f"{file}: is there already, and may hold marks; choose another --out")
    drawn = draw(run, count, seed)
    rows = {Drawn(row["id"], row["sample"]): row for row in run.rows}
    shown = [shown_cells(run, rows[one]) for one in drawn]
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    for item, cells in enumerate(shown, start=1):
        writer.writerow([item, *map(guarded, cells), "", ""])
    key = {
        "schema": SCHEMA,
        "seed": seed,
        **seal(run),
        "rows": [[*one, cells_sha256(cells)] for one, cells in zip(drawn, shown, strict=True)],
    }
    try:
        write_whole(sheet, text.getvalue().encode("utf-8-sig"))  # the mark tells a spreadsheet that it is UTF-8
        write_whole(key_path(sheet), to_json(key))
    except OSError as error:
        raise cannot_write(sheet, error) from error
    return len(drawn)


def seal(run: Run) -> dict[str, str]:
    """What marks belong to: the run, and the outcome of every response in it."""
    outcomes = [[row["id"], row["sample"], row["outcome"]] for row in run.rows]
    return {
        "run": run.fingerprint,
        "contract": str(run.contract),
        "outcomes_sha256": hashlib.sha256(json.dumps(outcomes).encode()).hexdigest(),
    }


def shown_cells(run: Run, row: Row) -> list[str]:
    problem = run.by_id[row["id"]]
    return [beginning(problem.question), ending(row["text"]), beginning(problem.reference)]


def beginning(text: str) -> str:
    text = text.replace("\0", "\ufffd")  # ends a cell in some programs
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} {CUT}"


def ending(text: str) -> str:
    """Of a long response the last part, where its answer is."""
    text = text.replace("\0", "\ufffd")
    return text if len(text) <= LONGEST else f"{CUT}{text[-LONGEST:]}"


def guarded(cell: str) -> str:
    """A cell that no spreadsheet runs or turns into a number; `unguarded` gives it back exactly."""
    return GUARD + cell if len(cell) <= SHORT or cell.startswith((GUARD, *FORMULA)) else cell


def unguarded(cell: str) -> str:
    """Also where a spreadsheet took the guard away itself."""
    return cell.removeprefix(GUARD)


def cells_sha256(cells: Iterable[str]) -> str:
    """Blanks and line ends aside, which spreadsheets write as they like."""
    return hashlib.sha256(json.dumps([" ".join(cell.split()) for cell in cells]).encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------- the sheet back


def read_sheet(run: Run, sheet: Path) -> tuple[list[Mark], list[str]]:
    """The marks in the order of the sheet, and one line for each thing that is wrong with it.

    raises   ConfigError for a file that cannot be read, and for a sheet of another run or of other verdicts
    """
    key = read_key(run, key_path(sheet))
    rows = {str(item): row for item, row in enumerate(key["rows"], start=1)}
    marks: list[Mark] = []
    faults = []
    seen: set[str] = set()
    for line, cells in read_cells(sheet):
        item, label = cells["item"].strip(), " ".join(cells["label"].lower().split())
        if item not in rows:
            faults.append(f"{sheet}, row {line}: item {item!r} is none of this sheet; take the row out")
        elif item in seen:
            faults.append(f"{sheet}, row {line}: item {item} is there twice; take one out")
        elif cells_sha256(unguarded(cells[name]) for name in SHOWN) != rows[item][2]:
            faults.append(
                f"{sheet}, row {line}: question, response or reference of item {item} was changed; put it back"
            )
        elif label not in LABELS:
            got = f"label {cells['label']!r}" if label else "no label"
            faults.append(f"{sheet}, row {line}: {got} of item {item}; wanted one of {', '.join(LABELS)}")
        else:
            marks.append(Mark(id=rows[item][0], sample=rows[item][1], label=label))
        seen.add(item)
    faults += [f"{sheet}: item {item} is missing; put its row back" for item in rows if item not in seen]
    return marks, faults


def read_key(run: Run, file: Path) -> dict[str, Any]:
    try:
        key = json.loads(file.read_bytes())
    except OSError as error:
        raise ConfigError(f"{file}: the key of the sheet cannot be read: {error.strerror}; put it beside it") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: damaged: {error}; draw a new sheet") from error
    if not isinstance(key, dict) or key.get("schema") != SCHEMA or not isinstance(key.get("rows"), list):
        raise ConfigError(f"{file}: is no key of a sheet of this version; draw a new sheet")
    for name, wanted in seal(run).items():
        if key.get(name) != wanted:
            raise ConfigError(
                f"{file}: the sheet was drawn from another run, or from this one before it changed: {name} is "
                f"{key.get(name)!r}, wanted {wanted!r}; draw a new sheet"
            )
    return key


def read_cells(sheet: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Row number, the header being row 1, and cells by column; also with the separators that spreadsheets write."""
    try:
        text = sheet.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{sheet}: cannot be read: {error.strerror}; name the marked sheet") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{sheet}: no UTF-8 text; save it as 'CSV UTF-8'") from error
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, restval=""))
    except csv.Error as error:
        raise ConfigError(f"{sheet}: no CSV: {error}; save it as 'CSV UTF-8'") from error
    lost = set(COLUMNS[:5]) - set(rows[0] if rows else ())
    if lost:
        raise ConfigError(f"{sheet}: no column {sorted(lost)[0]!r}; wanted the columns of the sheet that was drawn")
    for number, row in enumerate(rows, start=2):
        if any(row[name] for name in COLUMNS[:5]):
            yield number, row


# ------------------------------------------------------------------------------------------------------- the numbers


Roles = Mapping[tuple[bool, str], Literal["hit", "miss"]]
"""What a row is to a share, by 'has the verdict correct' and its label; one that is neither is not among."""

AGREEMENT: Roles = {
    (True, "right"): "hit",
    (True, "wrong"): "miss",
    (False, "right"): "miss",
    (False, "wrong"): "hit",
}
FALSE_ACCEPT: Roles = {(True, "wrong"): "hit", (False, "wrong"): "miss"}
FALSE_REJECT: Roles = {(False, "right"): "hit", (True, "right"): "miss"}


class Stratum(NamedTuple):
    """The responses of one outcome, and the marks on those of them that could be told."""

    accepted: bool
    """The outcome is 'correct'."""
    responses: int
    right: int
    wrong: int

    @property
    def told(self) -> int:
        return self.right + self.wrong

    def shares(self, smooth: int = 0) -> dict[str, float]:
        """Of each label; `smooth` 1: as if one more row of each had been marked."""
        rows = self.told + 2 * smooth
        return {"right": (self.right + smooth) / rows, "wrong": (self.wrong + smooth) / rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A share of the run's responses, as a stratified sample says it."""

    in_sample: Rate
    """The marked rows themselves; only the same as `value` where every outcome was drawn in its proportion."""
    value: float | None
    interval: Interval | None

    def to_row(self) -> dict[str, Any]:
        low, high = self.interval or (None, None)
        return {"value": self.value, "low": low, "high": high, **counted(self.in_sample)}


def counted(rate: Rate) -> dict[str, int]:
    return {"successes": rate.successes, "total": rate.total}


def measure(run: Run, marks: Sequence[Mark], seed: int) -> dict[str, Any]:
    """audit.json: how far the verifier and the marks agree, with everything needed to compute it again.

    run, contract, outcomes_sha256   what the marks belong to
    responses, marked, cannot_tell   of the run; of the sheet; of these
    agreement       the verdict is 'correct' exactly where the mark is 'right'
    false_accept    of the responses marked wrong, those with the verdict 'correct'
    false_reject    of the responses marked right, those with any other verdict
                    each: value, low, high weighted to the whole run (None: undefined); successes, total in the sample
    kappa           Cohen's, weighted; None where it is undefined
    strata          outcome to responses, marked, right, wrong, cannot_tell, weight
    marks           id, sample and label of every row
    """
    outcome_of = {(row["id"], row["sample"]): row["outcome"] for row in run.rows}
    sizes = Counter(outcome_of.values())
    labels: dict[str, Counter[str]] = {name: Counter() for name in sizes}
    for mark in marks:
        labels[outcome_of[mark.id, mark.sample]][mark.label] += 1
    strata = [
        Stratum(name == Outcome.CORRECT, sizes[name], labels[name]["right"], labels[name]["wrong"]) for name in sizes
    ]
    strata = [one for one in strata if one.told]
    return {
        "schema": SCHEMA,
        **seal(run),
        "seed": seed,
        "responses": len(run.rows),
        "marked": len(marks),
        "cannot_tell": sum(mark.label == "cannot tell" for mark in marks),
        "agreement": weighted(strata, AGREEMENT).to_row(),
        "false_accept": weighted(strata, FALSE_ACCEPT).to_row(),
        "false_reject": weighted(strata, FALSE_REJECT).to_row(),
        "kappa": kappa(strata),
        "strata": {name: stratum_row(sizes[name], labels[name]) for name in sorted(sizes)},
        "marks": [{"id": mark.id, "sample": mark.sample, "label": mark.label} for mark in marks],
    }


def weighted(strata: Sequence[Stratum], roles: Roles) -> Weighted:
    """Hits among hits and misses over the whole run: a ratio of two sums over strata; undefined without either."""
    hits, among = sums(strata, roles, smooth=0)
    marked: Counter[str] = Counter()
    for (accepted, label), role in roles.items():
        marked[role] += sum(getattr(one, label) for one in strata if one.accepted == accepted)
    rate = Rate(successes=marked["hit"], total=marked["hit"] + marked["miss"])
    if not among:
        return Weighted(in_sample=rate, value=None, interval=None)
    return Weighted(
        in_sample=rate, value=hits / among, interval=wilson(hits / among, worth(strata, roles) or rate.total)
    )


def sums(strata: Sequence[Stratum], roles: Roles, *, smooth: int) -> tuple[float, float]:
    """Responses that are hits, and that are hits or misses, as the marked rows say."""
    hits = among = 0.0
    for one in strata:
        for label, share in one.shares(smooth).items():
            role = roles.get((one.accepted, label))
            hits += one.responses * share * (role == "hit")
            among += one.responses * share * (role is not None)
    return hits, among


def worth(strata: Sequence[Stratum], roles: Roles) -> float:
    """How many rows of a plain sample carry as much: p(1 - p) over the variance of the share, both from smooth shares.

    The variance is the linearised one of a ratio R of two stratified sums: over the strata, N^2/n times the variance
    of a row's score, which is 1 - R for a hit, -R for a miss and 0 for any other. 0 where no score can vary.
    """
    hits, among = sums(strata, roles, smooth=1)
    ratio = hits / among
    scores = {"hit": 1 - ratio, "miss": -ratio, None: 0.0}
    variance = 0.0
    for one in strata:
        shares = one.shares(smooth=1)
        right, wrong = (scores[roles.get((one.accepted, label))] for label in ("right", "wrong"))
        variance += one.responses**2 / one.told * shares["right"] * shares["wrong"] * (right - wrong) ** 2
    return ratio * (1 - ratio) * among**2 / variance if variance else 0.0


def wilson(share: float, rows: float) -> Interval:
    need("statsmodels", extra="eval", purpose="the interval of an audit")
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(share * rows, rows, method="wilson")
    return max(0.0, float(low)), min(1.0, float(high))


def kappa(strata: Sequence[Stratum]) -> float | None:
    """Cohen's for accepted or not against right or wrong, each row with its weight; None where chance explains all."""
    total = sum(one.responses for one in strata)
    if not total:
        return None
    observed = sums(strata, AGREEMENT, smooth=0)[0] / total
    right = sum(one.responses * one.shares()["right"] for one in strata) / total
    accepted = sum(one.responses for one in strata if one.accepted) / total
    chance = right * accepted + (1 - right) * (1 - accepted)
    return None if chance >= 1 else (observed - chance) / (1 - chance)


def stratum_row(size: int, found: Mapping[str, int]) -> dict[str, Any]:
    """`weight`: responses that a marked row stands for; None where no row could be told."""
    return {
        "responses": size,
        "marked": sum(found.values()),
        "right": found["right"],
        "wrong": found["wrong"],
        "cannot_tell": found["cannot tell"],
        "weight": size / (found["right"] + found["wrong"]) if found["right"] + found["wrong"] else None,
    }


# --------------------------------------------------------------------------------------------------- beside the run


def write_audit(run: Run, sheet: Path, out: Path | None = None) -> tuple[dict[str, Any] | None, list[str]]:
    """Read a marked sheet and write audit.json into the run's folder, or to `out`; or what is wrong with the sheet."""
    if out is None and not run.path.is_dir():
        raise ConfigError(f"{run.path}: is no folder to write {AUDIT} into; say where with --out")
    marks, faults = read_sheet(run, sheet)
    if faults:
        return None, faults
    audit = measure(run, marks, seed=int(read_key(run, key_path(sheet))["seed"]))
    file = out or run.path / AUDIT
    try:
        write_whole(file, to_json(audit))
    except OSError as error:
        raise cannot_write(file, error) from error
    return audit, []


def read_audit(run: Run) -> dict[str, Any] | None:
    """The run's audit.json; None where there is none. ConfigError where it does not belong to the run as it is now."""
    file = run.path / AUDIT
    if not (run.path.is_dir() and file.is_file()):
        return None
    if fault := fault_of_audit(run):
        raise ConfigError(f"{file}: {fault}; read the marked sheet again with `veriward audit-sample`")
    audit: dict[str, Any] = json.loads(file.read_bytes())
    return audit


def fault_of_audit(run: Run) -> str:
    """What is wrong with a run's audit.json: every number in it is made again from its marks and the run's verdicts."""
    try:
        stored = json.loads((run.path / AUDIT).read_bytes())
        marks = [Mark(id=one["id"], sample=one["sample"], label=one["label"]) for one in stored["marks"]]
        seed = stored["seed"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return f"no audit: {type(error).__name__}: {error}"
    known = [(row["id"], row["sample"]) for row in run.rows]
    if foreign := next((mark for mark in marks if (mark.id, mark.sample) not in known), None):
        return f"marks {foreign.id}, which is no response of this run"
    if foreign := next((mark for mark in marks if mark.label not in LABELS), None):
        return f"marks {foreign.id} as {foreign.label!r}; wanted one of {', '.join(LABELS)}"
    again = json.loads(json.dumps(measure(run, marks, seed)))
    different = [name for name in again if not same(stored.get(name), again[name])]
    return f"{', '.join(different)} are not what the marks and the verdicts say" if different else ""


def same(one: Any, other: Any) -> bool:
    """Equal, floats to twelve digits: their last ones may differ between machines."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return bool(one == other)
