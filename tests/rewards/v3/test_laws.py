"""What holds for every verdict of contract v3: the same everywhere, whatever the blanks, mirrored for values."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veriward.rewards import Outcome, get_contract, verify_many

CASES = [
    {name: case[name] for name in ("response", "prediction", "reference", "truncated") if name in case}
    for case in get_contract("v3").read_cases()
    if "options" not in case and "answer_type" not in case
]
PROGRAM = """
import json, sys
from veriward.rewards import verify_many
rows = [json.loads(line) for line in sys.stdin]
for verdict in verify_many(rows):
    row = verdict.to_row()
    del row["microseconds"]
    print(json.dumps(row))
"""


def decided(rows):
    made = [verdict.to_row() for verdict in verify_many(rows)]
    return [{name: row[name] for name in row if name != "microseconds"} for row in made]


def test_threads_give_the_verdicts_of_the_main_thread():
    shuffled = [CASES[start::8] for start in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(decided, shuffled)) == [decided(rows) for rows in shuffled]


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_another_process_gives_the_same_verdicts_whatever_its_hash_seed(seed):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="".join(json.dumps(case) + "\n" for case in CASES),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == decided(CASES)


def test_the_order_of_the_rows_changes_nothing():
    assert decided(CASES[::-1]) == decided(CASES)[::-1]


SCALARS = [
    "1/2",
    "0.5",
    r"\frac{\sqrt3}{2}",
    "x+1",
    "1+x",
    r"\sin^2 x+\cos^2 x",
    "1",
    r"\sqrt{x^2}",
    "|x|",
    "2^{10}",
    "1024",
    "i^2",
]


@given(st.sampled_from(SCALARS), st.sampled_from(SCALARS))
@settings(max_examples=60, deadline=None)
def test_two_values_are_equal_both_ways_round(one, other):
    rows = [{"prediction": one, "reference": other}, {"prediction": other, "reference": one}]
    first, second = verify_many(rows)
    assert first.outcome == second.outcome


def plain_identity(case):
    """A text that is right only because it is the reference's, character for character."""
    return case["prediction"] == case["reference"]


@given(st.sampled_from(CASES), st.data())
@settings(max_examples=150, deadline=None)
def test_blanks_around_an_answer_change_nothing(case, data):
    if "prediction" not in case or plain_identity(case):
        return
    before, after = (data.draw(st.sampled_from(["", " ", "\n", "\t ", "  "])) for _ in range(2))
    padded = {**case, "prediction": f"{before}{case['prediction']}{after}"}
    plain, changed = verify_many([case, padded])
    assert plain.outcome == changed.outcome


def test_every_verdict_of_the_table_is_whole():
    for verdict in verify_many(CASES):
        assert (verdict.certainty is None) == (verdict.method is None)
        assert verdict.supported == (verdict.outcome in (Outcome.CORRECT, Outcome.WRONG))
        assert verdict.fingerprint == get_contract("v3").fingerprint
        assert json.loads(json.dumps(verdict.to_row())) == verdict.to_row()


def test_the_shared_cases_have_no_wrong_accept_and_nothing_takes_a_second(shared_folder: Path, read_rows):
    for name in ("bug_cases", "zh_think_cases"):
        rows = [
            row for row in read_rows(shared_folder / "cases" / f"{name}.jsonl") if row["expected_correct"] is not None
        ]
        asked = [
            {"response": row["response"], "reference": row["reference"], "truncated": bool(row.get("truncated"))}
            if row["response"]
            else {"prediction": row["prediction"], "reference": row["reference"]}
            for row in rows
        ]
        verdicts = verify_many(asked)
        accepts = [
            row["id"] for row, one in zip(rows, verdicts, strict=True) if one.correct and not row["expected_correct"]
        ]
        misses = [
            row["id"] for row, one in zip(rows, verdicts, strict=True) if row["expected_correct"] and not one.correct
        ]
        assert (accepts, misses) == ([], [])
        assert max(one.microseconds for one in verdicts) < 1_000_000


def test_of_the_adjudicated_pairs_no_wrong_one_is_accepted_and_few_right_ones_are_missed(
    shared_folder: Path, read_rows
):
    rows = [row for row in read_rows(shared_folder / "cases/adjudicated_given.jsonl") if row["truth"] != "ambiguous"]
    verdicts = verify_many([{"prediction": row["prediction"], "reference": row["reference"]} for row in rows])
    pairs = list(zip(rows, verdicts, strict=True))
    assert not [row["id"] for row, one in pairs if one.correct and row["truth"] == "false"]
    assert len([row["id"] for row, one in pairs if row["truth"] == "true" and not one.correct]) <= 4
    assert not [
        row["id"]
        for row, one in pairs
        if row["truth"] == "true" and (one.outcome, one.certainty) == ("wrong", "proved")
    ]
