"""Labelled cases of expressions, calls and searches, through the real door."""

import pytest

from veriward.eval.tool_cases import run_rows
from veriward.tool_agent import evaluate_expression, run_call


def input_of(case):
    made = case.get("input_gen")
    return case["input"] if made is None else made["prefix"] + made["repeat"] * made["times"] + made["suffix"]


def run_case(case):
    text = input_of(case)
    return run_call(text) if case["level"] == "call" else evaluate_expression(case["tool"], text)


def differing(rows):
    return [(found.id, found.expected, found.got) for found in run_rows(rows, name="cases").differing]


@pytest.fixture(scope="module")
def own_cases(read_cases):
    return read_cases("tool_cases.jsonl")


@pytest.fixture(scope="module")
def shared_cases(shared_folder, read_rows):
    return read_rows(shared_folder / "cases" / "executor_cases.jsonl")


def test_our_own_cases_come_out_as_written(own_cases):
    assert differing(own_cases) == []


def test_the_shared_cases_come_out_as_written(shared_cases):
    assert differing(shared_cases) == []


def test_every_case_says_why_and_has_a_name_of_its_own(own_cases):
    assert all(case["why"] for case in own_cases)
    assert len({case["id"] for case in own_cases}) == len(own_cases)


def test_every_refusal_has_a_hint(own_cases):
    results = [run_case(case) for case in own_cases]
    assert [result for result in results if not result.ok and not result.hint] == []


def test_no_case_prints(own_cases, capfd):
    for case in own_cases:
        run_case(case)
    assert capfd.readouterr() == ("", "")
