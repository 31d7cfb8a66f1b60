"""`python -m veriward.scripts.fuzz_tools`: a small run, and what it does with an input that raises or is slow."""

import subprocess
import sys

import pytest

from veriward.scripts import fuzz_tools
from veriward.scripts.fuzz_tools import CASES, KINDS, drawn, read_texts, run
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.result import ToolResult


def test_three_thousand_inputs_neither_raise_nor_are_slow():
    result = run(range(3_000), 1, CASES, seconds=120)
    assert (result.done, result.raised, result.too_slow) == (3_000, None, [])


def test_the_command_prints_categories_and_counts():
    done = subprocess.run(
        [sys.executable, "-m", "veriward.scripts.fuzz_tools", "--count", "300"],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "300 inputs, 0 raised, 0 over 200 ms"


def test_an_input_follows_from_its_seed_and_number():
    assert [drawn(4, number, CASES) for number in range(100)] == [drawn(4, number, CASES) for number in range(100)]


def test_all_kinds_and_doors_are_drawn():
    cases = [drawn(0, number, CASES) for number in range(1_000)]
    assert {case.kind for case in cases} == set(KINDS)
    assert len({case.door for case in cases}) == 7


def test_an_input_that_raises_ends_the_run_and_is_kept(monkeypatch):
    def decided(case):
        if case == drawn(0, 23, CASES):
            raise ZeroDivisionError
        return "value", 0.0

    monkeypatch.setattr(fuzz_tools, "decided_in", decided)
    result = run(range(20, 40), 0, CASES, seconds=60)
    assert (result.done, result.raised[0], type(result.raised[2])) == (3, 23, ZeroDivisionError)


def test_an_input_counts_as_slow_only_if_it_is_slow_twice(monkeypatch):
    seconds = iter([0.3, 0.1, 0.3, 0.3])
    monkeypatch.setattr(fuzz_tools, "decided_in", lambda _case: ("value", next(seconds)))
    assert [number for _, number, _ in run(range(2), 0, CASES, seconds=60).too_slow] == [1]


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -0.0, True])
def test_a_result_that_cannot_be_stored_is_a_finding(value):
    result = ToolResult(ok=True, value=value, text="", category=None)
    with pytest.raises((TypeError, ValueError), match="no number"):
        fuzz_tools.check_storable(result)


def test_a_file_without_inputs_is_refused_in_one_line(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": 1}\n')
    with pytest.raises(ConfigError, match="no row has an input"):
        read_texts(path)
