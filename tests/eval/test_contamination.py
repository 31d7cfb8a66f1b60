from __future__ import annotations

import pytest

from veriward.eval.contamination import completion_of, cut_between_words, first_part, probe, read_contamination
from veriward.eval.fresh_problems import fresh_problems
from veriward.eval.problems import load_problems
from veriward.eval.scripted import ScriptedGenerator
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("statsmodels")

QUESTIONS = [f"A farmer has {n} cows and sells two of them to his neighbour. How many are left?" for n in range(10, 16)]


@pytest.fixture
def problems(write_jsonl):
    rows = ({"id": f"c{n}", "question": text, "answer": str(n + 8)} for n, text in enumerate(QUESTIONS))
    return load_problems(write_jsonl(*rows))


def test_the_rest_word_for_word_is_counted_and_so_is_the_answer(problems, tmp_path):
    half, _ = first_part(problems)
    rest = {problem.id: str(problem.columns["rest_of_question"]) for problem in half.problems}
    script = {
        "c0": [f"{rest['c0']} \\boxed{{8}}"],
        "c1": [rest["c1"]],
        "c2": ["\\boxed{10}"],
        "c3": [rest["c3"].replace("left?", "gone?")],
        "c4": ["I do not know."],
        "c5": [""],
    }
    generator = ScriptedGenerator(script, {problem.id: problem.question for problem in half.problems})
    found = probe(generator, problems, tmp_path / "probe")
    assert (str(found.exact), str(found.near)) == ("2/6 = 33.3%", "3/6 = 50.0%")
    assert str(found.answered) == "2/6 = 33.3%"
    assert str(found.answered_without_the_rest) == "1/4 = 25.0%"
    assert read_contamination(tmp_path / "probe").to_row() == found.to_row()


def test_the_model_never_sees_the_rest(problems):
    for whole, part in zip(problems.problems, first_part(problems)[0].problems, strict=True):
        assert whole.question.startswith(part.question)
        assert str(part.columns["rest_of_question"]) not in part.question
        assert f"{part.question} {part.columns['rest_of_question']}" == whole.question


@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.5, 0.75, 0.99])
def test_both_parts_have_a_word_and_nothing_is_lost(fraction):
    first, rest = cut_between_words("one two  three\nfour five", fraction)
    assert first.split() + rest.split() == ["one", "two", "three", "four", "five"]
    assert first
    assert rest


def test_problems_that_are_too_short_are_left_out_by_name(write_jsonl):
    problems = load_problems(
        write_jsonl(
            {"id": "s", "question": "1+1?", "answer": "2"}, {"id": "l", "question": QUESTIONS[0], "answer": "8"}
        )
    )
    half, short = first_part(problems)
    assert ([problem.id for problem in half.problems], short) == (["l"], ["s"])


def test_a_set_of_short_problems_cannot_be_probed(write_jsonl):
    with pytest.raises(ConfigError, match="none of its 1 problems has 8 words"):
        first_part(load_problems(write_jsonl({"question": "1+1?", "answer": "2"})))


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0])
def test_a_fraction_outside_its_range_is_refused(problems, fraction):
    with pytest.raises(ConfigError, match="fraction must be above 0 and below 1"):
        first_part(problems, fraction)


def test_a_response_that_the_limit_ended_early_is_counted_apart():
    row = {"id": "a", "text": "of the", "correct": False, "truncated": True}
    assert completion_of(row, "of the rest").cut_short
    assert not completion_of({**row, "text": "of the rest and"}, "of the rest").cut_short


def test_an_evaluation_is_no_probe(run_folders, tmp_path):
    run_folders.write_run(tmp_path / "run", {"p0": r"\boxed{1}"})
    with pytest.raises(ConfigError, match="is no run of a contamination probe"):
        read_contamination(tmp_path / "run")


def test_a_fresh_set_is_probed_like_any_other():
    half, short = first_part(fresh_problems(32, seed=0))
    assert len(half) + len(short) == 32
    assert len(half) >= 24
