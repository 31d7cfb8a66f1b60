"""What a run leaves on disk as it goes: every completion with its verdict, and every log row.

Lines are written and flushed batch by batch: a run that is stopped keeps all that it had done.
The verdicts are those that the reward components were paid by, asked for again from the batch's memo.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from veriward.rewards import Verdict


class JsonLines:
    """A JSONL file that is only ever added to; each call ends on a complete line on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A lone surrogate in a model's text becomes \udXXX, which is JSON's own escape for it.
        self._file: TextIO = path.open("a", encoding="utf-8", errors="backslashreplace")

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file; a last line cut off in writing is left out."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n") and line.strip():
                yield json.loads(line)


def rollout_rows(
    *,
    step: int,
    mode: str,
    problem_ids: Sequence[str],
    texts: Sequence[str],
    token_counts: Sequence[int],
    verdicts: Sequence[Verdict],
    components: Mapping[str, Sequence[float]],
) -> list[dict[str, Any]]:
    """One flat row per completion.

    step        the optimizer step that these completions were made for, counted from 1
    components  name to values, one per completion, as the trainer used them; NaN (not paid) becomes null
    """
    rows = []
    for i, verdict in enumerate(verdicts):
        rows.append(
            {
                "step": step,
                "mode": mode,
                "problem_id": problem_ids[i],
                "text": texts[i],
                "completion_tokens": token_counts[i],
                "truncated": verdict.truncated,
                "candidate": verdict.candidate,
                "reference": verdict.reference,
                "outcome": verdict.outcome.value,
                "reason": None if verdict.reason is None else verdict.reason.value,
                "method": None if verdict.method is None else verdict.method.value,
                "format_valid": verdict.format_valid,
                "supported": verdict.supported,
                "flags": list(verdict.flags),
                **{name: number_or_none(values[i]) for name, values in components.items()},
                "contract": verdict.contract,
            }
        )
    return rows


def metrics_row(step: int, epoch: float | None, logs: Mapping[str, Any]) -> dict[str, Any]:
    """One row of metrics.jsonl: step and epoch first, numbers as numbers, what is not finite as null."""
    numbers = {name: number_or_none(value) for name, value in logs.items() if name not in ("step", "epoch")}
    return {"step": step, "epoch": number_or_none(epoch), **numbers}


def number_or_none(value: Any) -> float | int | None:
    if value is None or isinstance(value, bool | int):
        return value
    return float(value) if math.isfinite(float(value)) else None
