"""Labelled answers of the project's own: Chinese ones and responses of thinking models, each labelled by hand."""

import json
from pathlib import Path

import pytest

from veriward.rewards import verify, verify_answer

FILE = Path(__file__).parents[2] / "cases" / "zh_think_own.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def known(row):
    """The marks of a row: a known fault must be taken off the list once it is mended."""
    return [pytest.mark.xfail(strict=True, reason=row["why"])] if row.get("known_wrong") else []


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"], marks=known(row)) for row in ROWS])
def test_every_row_gets_its_label(row):
    """Bare answers and whole responses under the default contract."""
    if "prediction" in row:
        verdict = verify_answer(row["prediction"], row["reference"])
    else:
        verdict = verify(row["response"], row["reference"], truncated=row.get("truncated", False))
    wanted = (row["expected_correct"], row.get("expected_outcome", verdict.outcome))
    assert (verdict.correct, verdict.outcome) == wanted, row["why"]
