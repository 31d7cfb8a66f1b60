"""Labelled cases of expressions, calls and searches, through the real door."""

import json
import subprocess
import sys

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


QUIET = """
import json, sys, tracemalloc
from veriward.tool_agent import evaluate_expression, run_call, toolbox
cases = json.load(sys.stdin)
toolbox(), run_call(""), evaluate_expression("calculator", "1")
events, found = [], []
WATCHED = ("open", "import", "exec", "compile", "os", "subprocess", "socket", "ctypes")
sys.addaudithook(lambda event, _: events.append(event) if event.split(".")[0] in WATCHED else None)
tracemalloc.start()
for tool, text in cases:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    evaluate_expression(tool, text) if tool else run_call(text)
    found.append([tracemalloc.get_traced_memory()[1] - before, sorted(set(events))])
    events.clear()
print(json.dumps(found))
"""


def test_no_case_opens_a_file_runs_code_or_takes_much_memory(own_cases):
    inputs = [(None if case["level"] == "call" else case["tool"], input_of(case)) for case in own_cases]
    run = [sys.executable, "-P", "-c", QUIET]
    found = json.loads(subprocess.run(run, input=json.dumps(inputs), capture_output=True, text=True, check=True).stdout)
    assert [case["id"] for case, (_, events) in zip(own_cases, found, strict=True) if events] == []
    assert max(taken for taken, _ in found) < 8 * 2**20
