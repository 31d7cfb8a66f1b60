"""Problem sets: a JSONL or Parquet file, a `datasets` folder or hub name, a preset, read with a content hash.

Training and evaluation read problems through `load_problems`, so that both see the same rows. Whatever is
unclear about a file is refused here, before a model loads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from veriward.rewards.task import task_fields
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.generator import SURROGATE

if TYPE_CHECKING:
    import datasets

__all__ = [
    "ID_COLUMNS",
    "QUESTION_COLUMNS",
    "REFERENCE_COLUMNS",
    "ConfigError",
    "Problem",
    "ProblemSet",
    "load_problems",
]

QUESTION_COLUMNS = ("question", "problem", "prompt")
REFERENCE_COLUMNS = ("reference", "solution", "answer", "ground_truth", "label", "target", "references")
ID_COLUMNS = ("id", "unique_id", "problem_id")
"""In order of preference; with none of them the row's number, counted from 1, is the id."""

HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?(:[\w.-]+)?")
"""`owner/name`, and `owner/name:config` where a data set has several configurations."""
FILE_SUFFIXES = {".jsonl", ".json", ".ndjson", ".txt", ".csv", ".parquet"}

PARQUET = ".parquet"
SHA256 = re.compile("[0-9a-f]{12,64}")
"""The hex digits by which a set may be named: the first twelve, or more."""

Row = Mapping[str, object]
NumberedRow = tuple[int, Row]
"""A row and the number people find it by: the line of a file, else the row of a table, counted from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Where a public set is, and which of its columns ask and answer."""

    hub: str
    split: str
    question_column: str
    reference_column: str
    count: int
    """Another number of rows is another set, and refused."""


PRESETS: Mapping[str, Preset] = {
    "math-500": Preset(
        hub="HuggingFaceH4/MATH-500",
        split="test",
        question_column="problem",
        reference_column="answer",
        count=500,
    ),
    "gsm8k": Preset(
        hub="openai/gsm8k:main",
        split="test",
        question_column="question",
        reference_column="answer",
        count=1319,
    ),
    "aime-2024": Preset(
        hub="HuggingFaceH4/aime_2024",
        split="train",
        question_column="problem",
        reference_column="answer",
        count=30,
    ),
    "aime-2025": Preset(
        hub="math-ai/aime25",
        split="test",
        question_column="problem",
        reference_column="answer",
        count=30,
    ),
}
"""By the name that `load_problems` takes; `tool_problems` has the frozen twelve, which are part of the package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    id: str
    question: str
    reference: str
    columns: Row
    """The other columns, untouched: subject, level and the like; `answer_type` and `options` say what is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSet:
    problems: tuple[Problem, ...]
    sha256: str
    """Over id, question, reference, answer type and options of every problem in order: what is asked, and how it is
    verified."""
    name: str
    """The path or hub name as it was given."""
    question_column: str
    reference_column: str

    def __len__(self) -> int:
        return len(self.problems)


def load_problems(
    path_or_name: str | Path,
    *,
    question_column: str | None = None,
    reference_column: str | None = None,
    split: str | None = None,
    limit: int | None = None,
    sha256: str | None = None,
) -> ProblemSet:
    """Read a problem set, of which `limit` keeps the first few.

    path_or_name   a JSONL or Parquet file; a folder or a hub name that `datasets` reads ('owner/name', or
                   'owner/name:config'), with `split` where there are several; or one of PRESETS
    sha256         what `ProblemSet.sha256` must be, or begin with: a changed set is refused
    raises         ConfigError, one line, for anything that is missing, ambiguous or malformed
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit must be at least 1, got {limit}")
    if sha256 is not None and not SHA256.fullmatch(sha256):
        raise ConfigError(f"sha256 must be the first 12 or more of its digits 0-9 and a-f, got {sha256!r}")
    name = str(path_or_name)
    preset = None if Path(name).exists() else PRESETS.get(name)
    if preset is not None:
        if split is not None:
            raise ConfigError(f"{name}: the preset is the split {preset.split!r} of {preset.hub}; leave split out")
        split = preset.split
        question_column, reference_column = (
            question_column or preset.question_column,
            reference_column or preset.reference_column,
        )
    rows = read_rows(name if preset is None else preset.hub, split, None if preset else limit)
    if preset is not None and len(rows) != preset.count:
        raise ConfigError(
            f"{name}: {preset.hub} has {len(rows)} rows, and the set as it was published {preset.count}; "
            "name the hub's set itself if this is wanted"
        )
    columns = {column for _, row in rows for column in row}
    question = find_column(name, rows, columns, "question", question_column, QUESTION_COLUMNS)
    reference = find_column(name, rows, columns, "reference", reference_column, REFERENCE_COLUMNS)
    if question == reference:
        raise ConfigError(
            f"{name}: {question!r} is both the question and the reference; the model would see the answer"
        )
    identity = next((column for column in ID_COLUMNS if column in columns - {question, reference}), None)
    problems = [make_problem(name, number, row, question, reference, identity) for number, row in rows[:limit]]
    refuse_repeated_ids(name, identity, problems)
    found = hash_problems(problems)
    if sha256 is not None and not found.startswith(sha256):
        raise ConfigError(
            f"{name}: has sha256 {found}, and {sha256} was wanted: it was changed, or is cut by another limit"
        )
    return ProblemSet(
        problems=tuple(problems),
        sha256=found,
        name=name,
        question_column=question,
        reference_column=reference,
    )


def read_rows(name: str, split: str | None, limit: int | None) -> list[NumberedRow]:
    path = Path(name)
    if path.is_file():
        if split is not None:
            raise ConfigError(f"{name}: a file has no splits, got split {split!r}; leave it out")
        rows = read_parquet(path) if path.suffix.lower() == PARQUET else read_jsonl(path)
    elif path.is_dir() or (HUB_NAME.fullmatch(name) and path.suffix.lower() not in FILE_SUFFIXES):
        rows = read_dataset(name, split, limit)
    else:
        raise ConfigError(f"{name}: no such file; wanted a JSONL file, or a folder or name that `datasets` reads")
    if not rows:
        raise ConfigError(f"{name}: no problems in it; wanted at least one")
    return rows


def read_jsonl(path: Path) -> list[NumberedRow]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    # Split at line feeds alone: str.splitlines would also cut at U+2028, which JSON text may hold.
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [(number, parse_line(path, number, line)) for number, line in enumerate(lines, start=1) if line.strip()]


def read_parquet(path: Path) -> list[NumberedRow]:
    need("pyarrow", extra="eval", purpose=f"{path} is a Parquet file, and reading it")
    import pyarrow.lib
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.lib.ArrowException) as error:
        raise ConfigError(f"{path}: cannot be read as Parquet: {' '.join(str(error).split())}") from error
    return list(enumerate(rows, start=1))


def parse_line(path: Path, number: int, line: bytes) -> Row:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}, line {number}: no UTF-8 text ({error.reason}); wanted one JSON object") from error
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of over 4,300 digits
        reason = "nested too deep" if isinstance(error, RecursionError) else getattr(error, "msg", "a number too long")
        raise ConfigError(f"{path}, line {number}: no JSON ({reason}); wanted one JSON object a line") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{path}, line {number}: got {type(row).__name__}; wanted one JSON object a line")
    return row


def read_dataset(name: str, split: str | None, limit: int | None) -> list[NumberedRow]:
    """Through the `datasets` package: a folder that it saved, a folder of data files, or a hub name."""
    need("datasets", extra="train", purpose=f"{name} is not a JSONL file, and reading it")
    import datasets

    try:
        found = open_dataset(name, split)
    except ConfigError:
        raise
    except ConnectionError as error:
        raise ConfigError(
            f"{name}: {' '.join(str(error).split())}; mend the network, or name a file that holds the set"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"{name}: `datasets` cannot load it: {reason}") from error
    if isinstance(found, datasets.DatasetDict):
        found = choose_split(name, split, found)
    table = found if limit is None else found.select(range(min(limit, len(found))))
    return [(number, row) for number, row in enumerate(table, start=1)]


def open_dataset(name: str, split: str | None) -> datasets.Dataset | datasets.DatasetDict:
    import datasets

    folder = Path(name)
    if any((folder / mark).exists() for mark in ("state.json", "dataset_dict.json")):
        found = datasets.load_from_disk(name)
        if split is not None and isinstance(found, datasets.Dataset) and str(found.split) != split:
            raise ConfigError(f"{name}: one data set without splits was saved there, got split {split!r}; leave it out")
        return found
    # '.' has no name of its own, and `datasets` wants one.
    path, _, config = (str(folder.resolve()), "", "") if folder.is_dir() else name.partition(":")
    return datasets.load_dataset(path, config or None, split=split)


def choose_split(name: str, split: str | None, splits: datasets.DatasetDict) -> datasets.Dataset:
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split not in splits:
        got = "no split was named" if split is None else f"there is no split {split!r}"
        raise ConfigError(f"{name}: {got}; it has {', '.join(splits)}; name one with split (--split)")
    return splits[split]


def find_column(
    name: str, rows: Sequence[NumberedRow], columns: set[str], role: str, given: str | None, known: Sequence[str]
) -> str:
    """The column given, or else the only one of the known names that is there."""
    option = f"{role}_column (--{role}-column)"
    if given is not None:
        if given not in columns:
            raise ConfigError(f"{name}: no column {given!r}; it has {', '.join(sorted(columns))}; set {option} to one")
        return given
    found = [column for column in known if column in columns]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigError(
            f"{name}: no {role} column; it has {', '.join(sorted(columns))}; wanted one of {', '.join(known)},"
            f" or name it with {option}"
        )
    raise ConfigError(
        f"{name}: {len(found)} columns could be the {role}: {'; '.join(first_value(rows, c) for c in found)};"
        f" name one with {option}"
    )


def first_value(rows: Sequence[NumberedRow], column: str) -> str:
    value = repr(next(row[column] for _, row in rows if column in row))
    return f"{column} = {value if len(value) <= 60 else value[:57] + '...'}"


def make_problem(name: str, number: int, row: Row, question: str, reference: str, identity: str | None) -> Problem:
    where = f"{name}, row {number}"
    columns = {column: value for column, value in row.items() if column not in (question, reference, identity)}
    return Problem(
        id=str(number) if identity is None else text_value(where, row, identity),
        question=text_value(where, row, question),
        reference=text_value(where, row, reference),
        columns=columns,
    )


def text_value(where: str, row: Row, column: str) -> str:
    """A text, or a number written as text; anything else cannot be asked or verified."""
    if column not in row:
        raise ConfigError(f"{where}: no column {column!r}; every row needs it")
    value = row[column]
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = repr(value)
    if isinstance(value, Decimal):
        value = format(value, "f")
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {column!r} is {type(value).__name__}; wanted text or a number")
    if not value.strip():
        raise ConfigError(f"{where}: {column!r} is empty; fill it or take the row out")
    if SURROGATE.search(value):
        raise ConfigError(f"{where}: {column!r} holds half a surrogate pair, which is no text; mend the file")
    return value


def refuse_repeated_ids(name: str, identity: str | None, problems: Sequence[Problem]) -> None:
    seen: set[str] = set()
    for problem in problems:
        if problem.id in seen:
            raise ConfigError(
                f"{name}: {identity} {problem.id!r} appears twice; rows are told apart by it: make it unique"
            )
        seen.add(problem.id)


def hash_problems(problems: Iterable[Problem]) -> str:
    digest = hashlib.sha256()
    for problem in problems:
        declared = task_fields(problem.columns)
        line = json.dumps([problem.id, problem.question, problem.reference, *([declared] if declared else [])])
        digest.update(line.encode("ascii") + b"\n")
    return digest.hexdigest()
