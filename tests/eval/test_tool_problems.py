from __future__ import annotations

import re

import pytest

from veriward.eval import tool_problems
from veriward.eval.tool_problems import NOTES, PROBLEMS, frozen_twelve
from veriward.rewards import Outcome, fields_for, verify
from veriward.tool_agent.errors import ConfigError


@pytest.fixture(scope="module")
def problems():
    return {problem.id: problem for problem in frozen_twelve().problems}


def verdict(problem, response, **options):
    return verify(response, problem.reference, **fields_for("v3", problem.columns), **options)


def test_there_are_four_problems_for_each_tool_in_a_fixed_order(problems):
    assert list(problems) == [
        f"{kind}-0{number}" for kind in ("calculator", "python", "search") for number in range(1, 5)
    ]
    tools = [problem.columns["expected_tool"] for problem in problems.values()]
    assert tools == ["calculator"] * 4 + ["python_expr"] * 4 + ["local_search"] * 4


def test_the_set_has_the_same_name_and_hash_on_every_machine():
    twelve = frozen_twelve()
    assert (twelve.name, twelve.sha256[:12]) == ("frozen-twelve", "230cb43d2b03")


@pytest.mark.parametrize("file", [PROBLEMS, NOTES], ids=lambda file: file[1])
def test_a_changed_file_is_refused_in_one_line(monkeypatch, file):
    monkeypatch.setitem(tool_problems.FROZEN, file, "0" * 64)
    with pytest.raises(ConfigError, match=rf"{file[0]}/{file[1]}: the file was changed \(sha256 \w{{12}}…, ") as error:
        frozen_twelve()
    assert "\n" not in str(error.value)


RIGHT = {
    "calculator-01": ["761", r"\boxed{761}", "18 * 43 - 96 / 6 + 3 = 774 - 16 + 3 = 761.", "The result is 761."],
    "calculator-02": ["417", r"\boxed{417}", "24 * 17 + 9 = 417, so the shop sells 417 bottles."],
    "calculator-03": ["5.5", r"\boxed{5.5}", r"\boxed{\frac{11}{2}}"],
    "calculator-04": ["12", "12.0", r"\boxed{12}", "((25 - 7) * 6) / 9 = 12", "The answer is 12."],
    "python-01": ["220", "220 ways", "There are 220 ways.", r"\boxed{\binom{12}{3}}"],
    "python-02": ["21", r"gcd(462, 1071) = \boxed{21}"],
    "python-03": ["21", r"\boxed{21}", "7! / (5! * 2!) = 21"],
    "python-04": ["1.414214", r"\boxed{1.414214}", r"\boxed{\approx 1.414214}", "It is approximately 1.414214."],
    "search-01": ["48", r"\boxed{48}", r"\boxed{48 samples per tray}", "The batch size was 48."],
    "search-02": [r"\boxed{acetonitrile}", r"\boxed{\text{Acetonitrile}}", "The answer is acetonitrile."],
    "search-03": [r"\boxed{14 March 2025}", r"\boxed{\text{14 March 2025}}", "The answer is 14 March 2025."],
    "search-04": [r"The port is \boxed{4317}.", "4317", "port 4317", "The service listens on port 4317."],
}
TEMPTING = {
    "calculator-01": ["755", r"\boxed{758}", "774"],
    "calculator-02": ["408", r"\boxed{50}"],
    "calculator-03": ["7", "5"],
    "calculator-04": ["18", r"\boxed{18}", "108", "((25 - 7) * 6) / 9 = 12. Let me explain it again: 25 - 7 = 18"],
    "python-01": ["1320", "36", "1"],
    "python-02": ["0.431372", "7", "3"],
    "python-03": ["42", r"\boxed{2520}"],
    "python-04": ["1.414213", "1.4142", r"\boxed{\sqrt{2}}", r"\boxed{1.41421356}"],
    "search-01": ["32", r"\boxed{64}"],
    "search-02": ["ethanol", r"\boxed{ethanol}", "The answer is ethanol.", r"\boxed{acetone}"],
    "search-03": [r"\boxed{15 March 2025}", r"\boxed{14 March 2024}", "2025", r"\boxed{14}"],
    "search-04": ["8080", r"The port is \boxed{8080}."],
}


def pairs(table):
    return [pytest.param(key, text, id=f"{key}: {text}") for key, texts in table.items() for text in texts]


@pytest.mark.parametrize(("key", "response"), pairs(RIGHT))
def test_a_natural_right_response_is_correct(problems, key, response):
    assert verdict(problems[key], response).correct


@pytest.mark.parametrize(("key", "response"), pairs(TEMPTING))
def test_a_tempting_wrong_response_is_not_correct(problems, key, response):
    assert not verdict(problems[key], response).correct


def test_a_right_line_followed_by_a_cut_off_explanation_has_no_answer(problems):
    response = "((25 - 7) * 6) / 9 = 12\n\nLet me explain it again:\n25 - 7 = 18"
    assert verdict(problems["calculator-04"], response, truncated=True).outcome is Outcome.NO_ANSWER


def test_no_question_holds_its_answer(problems):
    for problem in problems.values():
        assert not re.search(rf"(?<!\d){re.escape(problem.reference)}(?!\d)", problem.question, re.IGNORECASE), (
            problem.id
        )


@pytest.mark.parametrize(
    ("key", "note"),
    [
        ("search-01", "note-aurora"),
        ("search-02", "note-solvent"),
        ("search-03", "note-orion"),
        ("search-04", "note-telemetry"),
    ],
)
def test_a_question_finds_its_note_and_the_note_holds_the_answer(problems, key, note):
    from veriward.tool_agent.tools.local_search import local_search

    found = local_search(problems[key].question)
    assert found[0]["id"] == note
    assert problems[key].reference in found[0]["text"]
