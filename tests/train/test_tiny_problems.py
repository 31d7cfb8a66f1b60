"""The tiny problem sets: exact, seeded, disjoint, and described by their manifest."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from veriward.eval.problems import load_problems
from veriward.tool_agent.errors import ConfigError
from veriward.train import tiny_problems
from veriward.train.tiny_problems import (
    LARGEST_NUMBER,
    LEVELS,
    Difficulty,
    check_problems,
    generate_problems,
    solve,
    write_problems,
)


@pytest.mark.parametrize(
    ("question", "answer", "solution"),
    [
        pytest.param("9+8-6+2", 13, "17-6+2=11+2=13", id="sums and differences from the left"),
        pytest.param("5-3", 2, "2", id="one operation is one step"),
        pytest.param("2+3*4-5", 9, "2+12-5=14-5=9", id="the product first"),
        pytest.param("2*3*4+1", 25, "6*4+1=24+1=25", id="products from the left"),
        pytest.param("17-6", 11, "11", id="numbers of two digits"),
        pytest.param("7", 7, "", id="nothing to do"),
    ],
)
def test_a_question_is_solved_one_operation_at_a_time(question, answer, solution):
    problem = solve(question)
    assert (problem.answer, problem.solution) == (answer, solution)


@pytest.mark.parametrize("question", ["", "1+", "1++2", "-1+2", "1 + 2", "2/1", "(1+2)", "１+2", "a+1"])
def test_what_is_no_question_is_refused(question):
    with pytest.raises(ConfigError, match="whole numbers"):
        solve(question)


@pytest.mark.parametrize("level", LEVELS)
def test_every_step_of_a_worked_solution_has_the_value_of_the_answer(level):
    for problem in generate_problems(300, seed=1, difficulty=level):
        forms = [problem.question, *problem.solution.split("=")]
        assert {eval(form) for form in forms} == {problem.answer}  # noqa: S307


@pytest.mark.parametrize("level", LEVELS)
def test_no_number_of_a_solution_leaves_the_range_of_the_tokenizer(level):
    solutions = [problem.solution for problem in generate_problems(500, seed=2, difficulty=level)]
    numbers = [int(number) for solution in solutions for number in re.findall(r"\d+", solution)]
    assert min(numbers) >= 0
    assert max(numbers) <= LEVELS[level].largest <= LARGEST_NUMBER
    assert not any(form.startswith("-") for solution in solutions for form in solution.split("="))


@pytest.mark.parametrize("level", LEVELS)
def test_questions_have_the_terms_and_operators_of_their_level(level):
    questions = [problem.question for problem in generate_problems(500, seed=3, difficulty=level)]
    settings = LEVELS[level]
    assert {len(re.findall(r"\d", question)) for question in questions} == set(
        range(settings.min_terms, settings.max_terms + 1)
    )
    assert set("".join(questions)) - set("123456789") == set(settings.operators)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_large_enough_for_the_default_sizes(level):
    assert len({problem.question for problem in generate_problems(4200, seed=0, difficulty=level)}) == 4200


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_problems(tmp_path / name, seed=5, train=50, heldout=10)
    for file in ("train.jsonl", "heldout.jsonl", "manifest.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_the_default_set_of_seed_0_is_the_published_one(tmp_path):
    files = write_problems(tmp_path, seed=0)
    digest = hashlib.sha256(files.heldout.read_bytes()).hexdigest()
    assert digest.startswith("2a84dc9ea6d463c2"), "a changed generator needs a new GENERATOR name"


def test_another_seed_gives_other_questions():
    first, second = ({p.question for p in generate_problems(100, seed=seed)} for seed in (0, 1))
    assert len(first & second) < 10


def test_train_and_heldout_share_no_question(tmp_path):
    files = write_problems(tmp_path, seed=0, train=4000, heldout=200)
    train, heldout = ({p.question for p in load_problems(path).problems} for path in (files.train, files.heldout))
    assert (len(train), len(heldout), len(train & heldout)) == (4000, 200, 0)


def test_rows_are_read_by_the_problem_loader_with_their_answers(tmp_path):
    files = write_problems(tmp_path, seed=0, train=20, heldout=5)
    for problem in load_problems(files.heldout).problems:
        assert problem.reference == str(solve(problem.question).answer)
        assert problem.id.startswith("heldout-")


def test_the_manifest_names_the_settings_and_the_hash_of_each_file(tmp_path):
    files = write_problems(tmp_path, seed=7, train=20, heldout=5, difficulty="hard")
    manifest = json.loads(files.manifest.read_text())
    assert (manifest["seed"], manifest["difficulty"]["name"], manifest["difficulty"]["max_terms"]) == (7, "hard", 8)
    assert manifest["files"] == {
        path.name: {"rows": rows, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path, rows in ((files.train, 20), (files.heldout, 5))
    }


def test_an_untouched_set_passes_its_check(tmp_path):
    files = write_problems(tmp_path, seed=0, train=20, heldout=5)
    assert check_problems(tmp_path) == files


def test_a_changed_file_is_refused(tmp_path):
    files = write_problems(tmp_path, seed=0, train=20, heldout=5)
    files.heldout.write_text(files.heldout.read_text().replace('"answer": "', '"answer": "1', 1))
    with pytest.raises(ConfigError, match=r"heldout\.jsonl: differs"):
        check_problems(tmp_path)


@pytest.mark.parametrize("file", ["train.jsonl", "manifest.json"])
def test_a_missing_file_is_refused(tmp_path, file):
    write_problems(tmp_path, seed=0, train=20, heldout=5)
    (tmp_path / file).unlink()
    with pytest.raises(ConfigError, match=re.escape(file)):
        check_problems(tmp_path)


def test_more_questions_than_a_level_has_is_one_clear_error(monkeypatch):
    sums = Difficulty(name="sums", min_terms=2, max_terms=2, operators="+")
    monkeypatch.setattr(tiny_problems, "LEVELS", {"sums": sums})
    with pytest.raises(ConfigError, match="'sums' gave only 81 different questions, 82 were asked for"):
        generate_problems(82, seed=0, difficulty="sums")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"train": 0}, "train must be at least 1", id="no training problem"),
        pytest.param({"heldout": -1}, "heldout must be at least 1", id="negative size"),
        pytest.param({"difficulty": "brutal"}, "unknown difficulty 'brutal'; choose one of: easy", id="no such level"),
    ],
)
def test_what_makes_no_set_is_refused_before_a_file_is_written(tmp_path, arguments, message):
    with pytest.raises(ConfigError, match=message):
        write_problems(tmp_path / "set", seed=0, **arguments)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_nothing_but_the_three_files_is_left_behind(tmp_path):
    write_problems(tmp_path, seed=0, train=20, heldout=5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heldout.jsonl", "manifest.json", "train.jsonl"]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"min_terms": 1, "max_terms": 2, "operators": "+"}, id="one term"),
        pytest.param({"min_terms": 3, "max_terms": 2, "operators": "+"}, id="minimum above maximum"),
        pytest.param({"min_terms": 2, "max_terms": 3, "operators": "/"}, id="division"),
        pytest.param({"min_terms": 2, "max_terms": 3, "operators": ""}, id="no operator"),
        pytest.param({"min_terms": 2, "max_terms": 3, "operators": "+", "largest": 99}, id="beyond the tokenizer"),
    ],
)
def test_an_impossible_level_is_refused_at_birth(settings):
    with pytest.raises(ValueError, match="must"):
        Difficulty(name="x", **settings)
