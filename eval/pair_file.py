"""Grade a file of pairs: one JSONL row in, one verdict row out. Survives a kill, and goes on where it stopped.

A row that cannot be graded is reported with its line number and left out; the rest goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from veriward.rewards import VerdictPool, get_contract, verify_many
from veriward.rewards.chain import check_row
from veriward.rewards.task import known_types
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import lock_file, shorten, to_line

CHUNK = 256
"""Rows graded and stored at a time."""

FIELDS = ("response", "prediction", "reference", "id", "answer_type", "options", "truncated")
"""Of a row of pairs; any other is not looked at."""

Complain = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedFile:
    """What became of a file of pairs."""

    contract: str
    fingerprint: str
    rows: int
    """Lines of the file that are not blank: graded, reused or refused."""
    graded: int
    reused: int
    """Graded by an earlier run that was stopped, and taken over."""
    refused: int
    """Lines that are no pair; reported by this run, or by an earlier one."""
    unknown_types: Mapping[str, int]
    """Values of `answer_type` that are no answer type here, and how many rows were read as `auto` for it."""
    outcomes: Mapping[str, int]
    certainties: Mapping[str, int]
    reasons: Mapping[str, int]

    def to_row(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Progress:
    """Running counts; `bytes` of the file of pairs are behind us."""

    rows: int = 0
    graded: int = 0
    reused: int = 0
    bytes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    certainties: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    unknown_types: Counter[str] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any]) -> None:
        for counter, name in (
            (self.outcomes, "outcome"),
            (self.certainties, "certainty"),
            (self.reasons, "reason"),
        ):
            if row[name] is not None:
                counter[row[name]] += 1


def grade_file(
    pairs: Path,
    out: Path,
    *,
    contract: str,
    complain: Complain,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    pool: VerdictPool | None = None,
) -> GradedFile:
    """Grade every row of `pairs` and append its verdict to `out`, in order.

    pairs      JSONL: `response` (text or chat messages) or `prediction` (a bare answer), and `reference`; optional
               `id`, `answer_type` (one that is not known here counts as `auto`), `options`, `truncated`
    out        one line per graded row: `line` (its number in `pairs`), `row` (hash of that line), `id`, the verdict.
               A file of an earlier run is continued if its lines belong to these pairs and this contract.
    complain   called with one line for each row that cannot be graded
    pool       where the comparisons are made; None: the shared pool of this process
    raises     ConfigError for files that cannot be read or written, or an `out` of something else
    """
    fingerprint = get_contract(contract).fingerprint
    progress = Progress()
    with _open_pairs(pairs) as source, _append_to(out, pairs) as file:
        lines = _numbered(source, progress)
        _take_over(out, lines, contract, fingerprint, progress)
        on_progress(progress)
        while chunk := list(islice(lines, CHUNK)):
            good = [
                pair for line in chunk if (pair := _as_pair(*line, contract, pairs, complain, progress)) is not None
            ]
            verdicts = verify_many([row for _, _, row in good], contract=contract, pool=pool)
            for (number, line, row), verdict in zip(good, verdicts, strict=True):
                entry = {"line": number, "row": _digest(line), "id": row.get("id"), **verdict.to_row()}
                progress.add(entry)
                file.write(to_line(entry))
            file.flush()
            os.fsync(file.fileno())
            progress.graded += len(good)
            on_progress(progress)
    return GradedFile(
        contract=contract,
        fingerprint=fingerprint,
        rows=progress.rows,
        graded=progress.graded,
        reused=progress.reused,
        refused=progress.rows - progress.graded - progress.reused,
        outcomes=dict(progress.outcomes),
        certainties=dict(progress.certainties),
        reasons=dict(progress.reasons.most_common()),
        unknown_types=dict(progress.unknown_types.most_common()),
    )


def read_pairs(
    pairs: Path, contracts: Sequence[str], complain: Complain
) -> Iterator[tuple[int, tuple[dict[str, Any], ...]]]:
    """(line, the row as each contract takes it) of every pair in a file; any other line is complained about once."""
    progress = Progress()
    with _open_pairs(pairs) as source:
        for number, line in _numbered(source, progress):
            found: list[dict[str, Any]] = []
            for contract in contracts:
                pair = _as_pair(number, line, contract, pairs, complain, progress)
                if pair is None:
                    break
                found.append(pair[2])
            else:
                yield number, tuple(found)


def _open_pairs(pairs: Path) -> IO[bytes]:
    try:
        return pairs.open("rb")
    except OSError as error:
        raise ConfigError(f"{pairs}: cannot be read: {error.strerror}; wanted a JSONL file of pairs") from error


def _numbered(source: IO[bytes], progress: Progress) -> Iterator[tuple[int, bytes]]:
    """Number from 1 and content of each line that is not blank."""
    for number, line in enumerate(source, start=1):
        progress.bytes += len(line)
        if line.strip():
            progress.rows += 1
            yield number, line.strip()


def _as_pair(
    number: int, line: bytes, contract: str, pairs: Path, complain: Complain, progress: Progress
) -> tuple[int, bytes, dict[str, Any]] | None:
    """The row of a line; None, after a complaint, where it is no pair."""
    try:
        row = _as_object(line)
        row = {name: _as_text(name, row[name]) for name in FIELDS if row.get(name) is not None}
        if isinstance(row.get("id"), float) and not math.isfinite(row["id"]):
            raise ValueError(f"the id {row['id']} is no number that JSON can hold")
        if "response" in row:
            row.pop("prediction", None)
        _drop_unknown_types(row, contract, progress)
        check_row(row, contract=contract)
    except (ValueError, TypeError) as error:
        complain(f"{pairs}, line {number}: {error}; left out")
        return None
    return number, line, row


def _drop_unknown_types(row: dict[str, Any], contract: str, progress: Progress) -> None:
    """A data set's own label is no answer type, and a contract without types grades every row as it can."""
    declared = row.get("answer_type")
    if not get_contract(contract).reads_types:
        if row.pop("answer_type", None) is not None or row.pop("options", None) is not None:
            progress.unknown_types[f"types and options, which {contract} does not know"] += 1
        row.pop("options", None)
    elif isinstance(declared, str) and declared not in known_types():
        progress.unknown_types[row.pop("answer_type")] += 1


def _as_object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        hint = "; the file looks like UTF-16, wanted UTF-8" if b"\x00" in line else ""
        raise ValueError(f"no JSON: {error}{hint}") from error
    if not isinstance(row, dict):
        raise ValueError(f"a row is an object with response or prediction, and reference; got {shorten(row)}")
    return row


def _as_text(name: str, value: object) -> object:
    """A number as answer or reference is as good as its text."""
    if isinstance(value, float) and not math.isfinite(value) and name in ("reference", "prediction"):
        raise ValueError(f"{name} is {value}, and no number")
    if name in ("reference", "prediction") and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]


def _take_over(
    out: Path, lines: Iterator[tuple[int, bytes]], contract: str, fingerprint: str, progress: Progress
) -> None:
    """Count the rows of an earlier run and pass their pairs; a last line that a kill tore is cut off."""
    with out.open("rb") as file:
        whole = 0
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                if not _is_torn(line):
                    raise ConfigError(f"{out}, line {number}: no verdict of an earlier run; choose another --out")
                break
            row = _stored(out, number, line, contract, fingerprint)
            if not any(at == row["line"] and _digest(pair) == row["row"] for at, pair in _up_to(lines, row["line"])):
                raise ConfigError(f"{out}, line {number}: a verdict on other pairs; choose another --out")
            progress.add(row)
            progress.reused += 1
            whole += len(line)
    if whole < out.stat().st_size:
        os.truncate(out, whole)


def _is_torn(line: bytes) -> bool:
    """The beginning of a line of ours."""
    start = b'{"line": '
    return line.startswith(start) or start.startswith(line)


def _up_to(lines: Iterator[tuple[int, bytes]], last: int) -> Iterator[tuple[int, bytes]]:
    for number, line in lines:
        yield number, line
        if number >= last:
            return


def _stored(out: Path, number: int, line: bytes, contract: str, fingerprint: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    needed = {"line", "row", "outcome", "certainty", "reason", "fingerprint"}
    if not isinstance(row, dict) or not needed <= row.keys() or not isinstance(row["line"], int):
        raise ConfigError(f"{out}, line {number}: no verdict of an earlier run; choose another --out")
    if row["fingerprint"] != fingerprint:
        raise ConfigError(
            f"{out}, line {number}: graded under contract {row.get('contract')}, fingerprint {row['fingerprint']}; "
            f"now it would be {contract}, {fingerprint}, and the two are never mixed; choose another --out"
        )
    return row


@contextlib.contextmanager
def _append_to(out: Path, pairs: Path) -> Iterator[IO[bytes]]:
    """The file of verdicts, open for one writer; ConfigError where it can be no such file."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.exists() and not out.is_file():
            raise ConfigError(f"{out}: no regular file; choose another --out")
        if out.exists() and out.samefile(pairs):
            raise ConfigError(f"{out}: is the file of pairs itself; choose another --out")
        file = out.open("ab")
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}; choose another --out") from error
    with file:
        lock_file(file, out)
        yield file
