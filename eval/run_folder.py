"""The folder of one evaluation: settings.json, rows.jsonl, summary.json. It survives a kill at any moment.

settings.json  written before the first question; a folder never mixes two settings
rows.jsonl     one line per response, written as the responses come; each append is on the disk when it returns
summary.json   written once every problem has its rows, so that a half run cannot be taken for a whole one
Not covered: two machines that share the folder.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from veriward.rewards import Outcome
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import (
    TEMPORARY,
    differences,
    lock,
    refuse_foreign,
    shorten,
    to_json,
    to_line,
    write_whole,
)

SETTINGS, ROWS, SUMMARY = "settings.json", "rows.jsonl", "summary.json"
NEEDED = ("id", "sample", "text", "tokens", "truncated", "outcome", "correct", "format_valid")
"""What a summary is made of."""

Row = dict[str, Any]


class RunFolder:
    """An evaluation on disk, open for one writer. Use it as a context manager."""

    def __init__(self, path: str | Path, settings: Mapping[str, object], *, samples: int) -> None:
        """Open the folder for these settings, new or half done; ConfigError if it belongs to others."""
        self.path = Path(path)
        refuse_foreign(self.path, SETTINGS, "evaluation")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = lock(self.path)
        except OSError as error:
            raise ConfigError(f"{path}: no folder to write in: {error.strerror}; choose another") from error
        try:
            self._adopt(json.loads(to_json(settings)))
            self.rows = self._recover(samples)
            """The rows of every problem that has all its samples; others are asked again."""
            self._file = (self.path / ROWS).open("ab")
        except BaseException:
            self._lock.close()
            raise

    def append(self, rows: Sequence[Row]) -> None:
        """Store rows; they are on the disk when this returns."""
        self._file.write(b"".join(map(to_line, rows)))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows.extend(rows)

    def write_summary(self, summary: Mapping[str, object]) -> None:
        write_whole(self.path / SUMMARY, to_json(summary))

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.close()

    def _adopt(self, settings: Mapping[str, object]) -> None:
        for left_over in self.path.glob(f"{TEMPORARY}*"):
            left_over.unlink()
        file = self.path / SETTINGS
        if not file.exists():
            write_whole(file, to_json(settings))
            return
        try:
            stored = json.loads(file.read_bytes())
        except ValueError as error:
            raise ConfigError(f"{file}: damaged: {error}; choose another folder") from error
        found = differences(stored, settings)
        if found:
            raise ConfigError(
                f"{self.path}: holds a run with other settings: {'; '.join(found)}; "
                "choose another folder, or these settings"
            )

    def _recover(self, samples: int) -> list[Row]:
        """Read what is there; a last line that a kill tore, and problems without all their samples, are dropped."""
        file = self.path / ROWS
        if not file.exists():
            return []
        content = file.read_bytes()
        rows = parse_rows(file, content)
        refuse_foreign_rows(file, rows, samples)
        count = Counter(row["id"] for row in rows)
        whole = [row for row in rows if count[row["id"]] == samples]
        kept = b"".join(map(to_line, whole))
        if kept != content:
            write_whole(file, kept)
        return whole


def parse_rows(file: Path, content: bytes) -> list[Row]:
    """All complete lines. Only the last one can be torn: damage before it is no kill's doing."""
    lines = content.split(b"\n")
    rows: list[Row] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if number == len(lines) - 1:
                break
            raise ConfigError(f"{file}, line {number}: damaged: {error}; choose another folder") from error
    return rows


def refuse_foreign_rows(file: Path, rows: Sequence[object], samples: int) -> None:
    """A line that no run wrote would be counted as a response."""
    seen: set[tuple[str, int]] = set()
    for number, row in enumerate(rows, start=1):
        problem = row_fault(row, samples) or ("a repeated response" if row_key(row) in seen else "")
        if problem:
            raise ConfigError(f"{file}, line {number}: {problem}, so this is no row of the run; choose another folder")
        seen.add(row_key(row))


def row_key(row: Any) -> tuple[str, int]:
    return row["id"], row["sample"]


def row_fault(row: object, samples: int) -> str:
    """What keeps a line from being a row; empty if nothing does."""
    if not isinstance(row, dict):
        return f"a {type(row).__name__}"
    missing = [name for name in NEEDED if name not in row]
    if missing:
        return f"no {missing[0]!r}"
    if not isinstance(row["id"], str):
        return f"id {shorten(row['id'])}"
    if not isinstance(row["sample"], int) or not 0 <= row["sample"] < samples:
        return f"sample {shorten(row['sample'])}"
    return "" if row["outcome"] in set(Outcome) else f"outcome {shorten(row['outcome'])}"
