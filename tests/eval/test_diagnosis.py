from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.eval.agent_run import run_agent
from veriward.eval.diagnosis import Category, counts, diagnose, false_steps, stated_answers
from veriward.eval.drill import SCRIPT
from veriward.eval.runs import read_run
from veriward.eval.scripted import ScriptedGenerator
from veriward.eval.steps import MOST_STEPS, steps_in
from veriward.eval.tool_problems import frozen_twelve
from veriward.tool_agent import toolbox
from veriward.tool_agent.agent import AgentSettings


def pairs(text):
    return [(step.left, step.right) for step in steps_in(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("17 * 24 = 408", [("17 * 24", "408")]),
        ("So the total is 3 + 4 = 7 apples.", [("3 + 4", "7")]),
        ("2*3 + 4 = 6 + 4 = 10", [("2*3 + 4", "6 + 4"), ("6 + 4", "10")]),
        ("x = 2 + 3 = 5", [("2 + 3", "5")]),
        (r"\[\frac{1}{2} + \frac13 = \frac{5}{6}\]", [(r"\frac{1}{2} + \frac13", r"\frac{5}{6}")]),
        ("She pays $5 + $6 = $11 today", [("5 + 6", "11")]),
        ("1. 3 + 4 = 7", [("3 + 4", "7")]),
        ("- 3 + 4 = 7", [("3 + 4", "7")]),
        ("**6 x 7** or 6 × 7 = **42**.", [("6 × 7", "42")]),
        ("1,000 - 1 = 999.", [("1,000 - 1", "999")]),
        (r"$2+3=5$ and \(4-1=3\)", [("2+3", "5"), ("4-1", "3")]),
        (r"14+2=16 \boxed{16}", [("14+2", "16")]),
    ],
)
def test_equations_of_numbers_are_steps(text, found):
    assert pairs(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "x + 3 = 5",
        "3x = 12",
        "f(3) = 9 + 1",
        "f(2 + 1) = 9",
        "20% of 50 + 0 = 10",
        "the square of 3 + 1 = 16",
        "17 / 5 = 3 remainder 2",
        "2 * 2 = 4 thousand",
        "5 + 5 = 10x",
        "5 + 5 = 10 x",
        "2 + 2 <= 5 and 2 + 3 >= 4",
        "2 + 2 != 5",
        "2 + 2 == 5",
        "x := 3 + 4",
        "x = 5 = 7",
        "eggs - 3 = 13",
        "12 eggs * 2 = 24",
        "101_2 + 1 = 6",
        r"3 + 4 \equiv 1",
        "(3 + 4 = 7 + (2",
        "7 + = 9",
        r"2 \times 3 = 6 \text{ ab",
        "n = 3, m = 4",
        "10:30 + 45 = 11:15",
        "3:00 + 2 = 5",
        "30 + 45 = 1:15",
        "2/3 = 0.66...",
        "2/3 = 0.66…",
        "60 * 60 = 1 hour",
        r"60 \cdot 60 = 1 \text{ hour}",
        "50 + 50 = 1 dollar",
        "8 + 5 = 1 pm",
        "8 + 5 = 15 in base 8",
    ],
)
def test_what_a_person_would_not_check_is_no_step(text):
    assert [pair for pair in pairs(text) if pair != ("2 \\times 3", "6")] == []


@pytest.mark.parametrize(
    ("text", "false"),
    [
        ("7 * 8 = 54", True),
        ("7 * 8 = 56", False),
        ("10 / 3 = 3.33", False),  # rounded
        ("10 / 3 = 3.35", True),
        ("50 * 10% = 5", False),  # percent has two readings
        ("2/3 = 0.67", False),
        ("2/3 = 0.66", True),
        ("-2/3 = -0.67", False),
        ("0.67 = 2/3", False),
        ("3.14 * 2 = 6.3", False),
        (r"\sqrt{2} + 0 = 1.4", False),
        ("1/8 = 0.12", False),  # to the even digit
        ("17 * 24 = 408.5", True),
        ("3.33 * 3 = 10", True),
        ("2^10 = 1024", False),
        ("5 - 8 = −3", False),
        ("1/2 + 1/3 = 2/5", True),
    ],
)
def test_only_what_is_proved_to_differ_is_false(text, false):
    assert bool(false_steps(set(pairs(text)), None)) is false


def test_a_step_is_where_it_stands():
    text = "First, 3 + 4 = 7. Then 7 * 8 = 54 in all."
    assert [text[step.start : step.end] for step in steps_in(text)] == ["3 + 4 = 7", "7 * 8 = 54"]


@given(st.text(alphabet="0123456789+-*/=() .,xy%$\\{}\n", max_size=200))
def test_any_text_has_steps_within_it(text):
    for step in steps_in(text):
        assert 0 <= step.start < step.end <= len(text)


@pytest.mark.parametrize("part", ["1 + 1 = 2 ", "= ", "1", "(1 + ", "1 = ", "$ ", "1,1", "a 1 + 1 = 2\n"])
def test_a_long_response_is_one_pass(part):
    started = time.process_time()
    assert sum(1 for _ in steps_in(part * (1_000_000 // len(part)))) <= MOST_STEPS
    assert time.process_time() - started < 5


def test_boxes_and_stated_answers_are_found_in_order():
    text = r"The answer is 12. No: \boxed{\frac{1}{2}}, so the result is: $18"
    assert [answer for _, answer in stated_answers(text)] == ["12", r"\frac{1}{2}", "18"]


# ------------------------------------------------------------------------------------------------------------- runs


@pytest.fixture
def diagnosed(run_folders, tmp_path):
    """Of responses to 'What is 1 + n?', whose reference is n + 1."""

    def diagnosed(*texts):
        problems = run_folders.problem_set(len(texts))
        given = {f"p{n}": [text] if isinstance(text, tuple) else text for n, text in enumerate(texts)}
        run = run_folders.write_run(tmp_path / "run", given, problems=problems)
        found = diagnose(run)
        return run, [found[f"p{n}"] for n in range(len(texts))]

    return diagnosed


def test_the_first_false_step_of_a_wrong_answer_is_its_deviation(diagnosed):
    text = r"2 + 2 = 4, then 4 - 2 = 3, then 3 + 3 = 7: \boxed{7}"
    run, (found,) = diagnosed(text)
    assert (found.first_false.left, found.first_false.right) == ("4 - 2", "3")
    assert found.category is Category.WRONG_SUM
    assert counts(run, {"p0": found}).deviations == 1


def test_what_comes_after_the_right_answer_is_marked(diagnosed):
    text = r"The answer is 1. To explain it again: 12 + 6 = 18, so \boxed{18}"
    run, (found,) = diagnosed(text)
    assert text[found.first_right.start : found.first_right.end] == "1"
    assert found.category is Category.LOST_RIGHT_ANSWER
    assert counts(run, {"p0": found}).lost == 1


def test_a_number_on_a_line_of_its_own_is_an_answer(diagnosed):
    text = "1.0\n\nTo explain this again, we begin with the inner bracket:\n25 - 7 = 18"
    _, (found,) = diagnosed((text, "length"))
    assert text[found.first_right.start : found.first_right.end] == "1.0"


def test_a_right_answer_with_a_false_step_is_a_detour(diagnosed):
    run, (found, straight) = diagnosed(r"0 + 1 = 2. No: \boxed{1}", r"1 + 1 = 2: \boxed{2}")
    assert (found.detour, straight.detour) == (True, False)
    assert counts(run, {"p0": found, "p1": straight}).detours == 1


def test_a_right_answer_after_another_one_is_a_detour(diagnosed):
    _, (found,) = diagnosed(r"The answer is 3. Wait. \boxed{1}")
    assert found.detour


@pytest.mark.parametrize(
    ("text", "category"),
    [
        (r"\boxed{1}", None),
        ("The answer is 1", Category.FORMAT_ONLY),
        ("I do not know.", Category.NO_ANSWER),
        (("I am thinking", "length"), Category.CUT_OFF),
        (("so we add one and one again " * 40, "length"), Category.REPETITION),
        (r"1 + 0 = 2, so \boxed{2}", Category.WRONG_SUM),
        (r"\boxed{77}", None),
    ],
)
def test_every_response_is_of_one_kind(diagnosed, text, category):
    assert diagnosed(text)[1][0].category is category


def test_a_bundle_without_references_has_steps_and_no_right_answer(run_folders, tmp_path):
    from dataclasses import replace

    run = run_folders.write_run(tmp_path / "run", {"p0": r"1 + 0 = 2: \boxed{1}"}, problems=run_folders.problem_set(1))
    bare = replace(run, set=replace(run.set, references=False))
    (found,) = diagnose(bare).values()
    assert (found.first_right, found.first_false is not None) == (None, True)


def test_tools_have_categories_of_their_own(tmp_path):
    twelve = frozen_twelve()
    questions = {problem.id: problem.question for problem in twelve.problems}
    script = {**SCRIPT, "calculator-02": [SCRIPT["calculator-02"][0], *[r"It is \boxed{5}."] * 2]}
    generator = ScriptedGenerator(script, questions, name="twelve")
    run_agent(generator, twelve, toolbox("strict"), tmp_path / "run", settings=AgentSettings(answer_tokens=192))
    run = read_run(tmp_path / "run")
    found = diagnose(run)
    assert found["calculator-02"].category is Category.IGNORED_TOOL_RESULT
    assert found["python-02"].category is Category.WRONG_TOOL
    assert counts(run, found).categories["wrong_tool"] >= 2
