"""Problems become training rows, and answer keys that cannot be read are found before training."""

from __future__ import annotations

import json

import pytest

from veriward.tool_agent.errors import ConfigError

pytest.importorskip("yaml")

from veriward.eval.prompting import DEFAULT_INSTRUCTION
from veriward.train.prompts import training_set
from veriward.train.settings import RunSettings

READABLE = {"id": "a", "question": "1+1", "answer": "2"}
UNREADABLE = {"id": "b", "question": "2+2", "answer": "4 5"}


@pytest.fixture
def problem_file(tmp_path):
    def write(*rows: dict[str, object]) -> str:
        path = tmp_path / "problems.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    return write


def test_a_chat_row_asks_for_the_box_and_keeps_its_id(problem_file):
    rows = training_set(RunSettings(problems=problem_file(READABLE))).rows
    prompt = [{"role": "user", "content": f"1+1\n\n{DEFAULT_INSTRUCTION}"}]
    assert rows == ({"prompt": prompt, "reference": "2", "problem_id": "a"},)


def test_a_plain_row_is_text(problem_file):
    rows = training_set(RunSettings(problems=problem_file(READABLE), template="plain", instruction="")).rows
    assert rows[0]["prompt"] == "1+1"


def test_a_problem_with_an_unreadable_reference_is_left_out_and_named(problem_file):
    found = training_set(RunSettings(problems=problem_file(READABLE, UNREADABLE)))
    assert [row["problem_id"] for row in found.rows] == ["a"]
    assert "1/2 references unreadable (50.0%): left out" in found.in_words()
    assert "adjacent_numbers 1" in found.in_words()


def test_the_unreadable_references_are_listed_for_mending(problem_file, tmp_path):
    training_set(RunSettings(problems=problem_file(READABLE, UNREADABLE))).write_unreadable(tmp_path / "list.jsonl")
    row = json.loads((tmp_path / "list.jsonl").read_text())
    assert (row["problem_id"], row["reference"]) == ("b", "4 5")


def test_unreadable_references_can_be_kept(problem_file):
    settings = RunSettings(problems=problem_file(READABLE, UNREADABLE), unreadable_references="keep")
    found = training_set(settings)
    assert len(found.rows) == 2
    assert "no response to them is ever paid" in found.in_words()


def test_what_is_readable_depends_on_the_contract(problem_file):
    problems = problem_file({**UNREADABLE, "answer": "2x"}, READABLE)
    assert len(training_set(RunSettings(problems=problems, contract="v1")).rows) == 2
    assert len(training_set(RunSettings(problems=problems, contract="v2")).rows) == 1


def test_a_file_without_one_readable_reference_is_refused(problem_file):
    with pytest.raises(ConfigError, match="none of its 1 references can be read under contract v3"):
        training_set(RunSettings(problems=problem_file(UNREADABLE)))


def test_one_unreadable_reference_stops_the_run_where_that_is_asked(problem_file):
    settings = RunSettings(problems=problem_file(READABLE, UNREADABLE), require_references=True)
    with pytest.raises(ConfigError, match=r"1 of 2 references cannot be read .* of problem b: '4 5' \(reference_adj"):
        training_set(settings)


def test_the_first_offenders_are_named(problem_file):
    assert "the first: b: '4 5'" in training_set(RunSettings(problems=problem_file(READABLE, UNREADABLE))).in_words()


def test_types_and_options_of_a_problem_reach_the_rewards(problem_file):
    problems = problem_file(
        {"id": "a", "question": "?", "answer": "(1, 2)", "answer_type": "set", "options": {"units": "required"}},
        {"id": "b", "question": "?", "answer": "2", "answer_type": "Numerical", "options": ["1", "2"]},
    )
    rows = training_set(RunSettings(problems=problems)).rows
    assert rows[0].items() >= {"answer_type": "set", "options": '{"units": "required"}'}.items()
    assert not {"answer_type", "options"} & rows[1].keys()
    assert not {"answer_type"} & training_set(RunSettings(problems=problems, contract="v1")).rows[0].keys()


def test_two_possible_answer_columns_are_refused(problem_file):
    with pytest.raises(ConfigError, match="could be the reference"):
        training_set(RunSettings(problems=problem_file({**READABLE, "solution": "one and one"})))
