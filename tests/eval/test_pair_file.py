"""A file of pairs is graded row by row; nothing written is lost, and a stopped run goes on."""

import json
from collections import Counter

import pytest

from veriward.eval.pair_file import grade_file
from veriward.rewards import verify, verify_answer
from veriward.tool_agent.errors import ConfigError

ROWS = [
    {"id": "a", "response": r"So \boxed{1/2}.", "reference": "0.5"},
    {"id": "b", "prediction": "3", "reference": "4"},
    {"response": [{"role": "assistant", "content": r"\boxed{x+1}"}], "reference": "1+x"},
    {"prediction": 5, "reference": 5},
    {"response": "25 - 7 = 18", "reference": "18", "truncated": True},
    {"prediction": "(1, 2)", "reference": "2, 1", "answer_type": "set"},
    {"prediction": "3,5", "reference": "7/2", "options": {"decimal_comma": True}},
]


def write(path, lines):
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def stored(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def grade(pairs, out, complaints=None, **more):
    return grade_file(pairs, out, contract="v3", complain=(complaints if complaints is not None else []).append, **more)


def test_every_row_has_the_verdict_of_verify_in_order(tmp_path):
    pairs = write(tmp_path / "pairs.jsonl", ROWS)
    result = grade(pairs, tmp_path / "out.jsonl")
    rows = stored(tmp_path / "out.jsonl")
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["id"] for row in rows] == ["a", "b", *[None] * 5]
    assert [row["outcome"] for row in rows] == [
        "correct",
        "wrong",
        "correct",
        "correct",
        "no_answer",
        "correct",
        "correct",
    ]
    first = verify(ROWS[0]["response"], "0.5", contract="v3").to_row()
    second = verify_answer("3", "4", contract="v3").to_row()
    for row, verdict in zip(rows[:2], (first, second), strict=True):
        assert {name: row[name] for name in verdict if name != "microseconds"} == {
            name: value for name, value in verdict.items() if name != "microseconds"
        }
    assert (result.rows, result.graded, result.refused) == (7, 7, 0)
    assert result.outcomes == Counter(row["outcome"] for row in rows)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{not json\n", "line 2: no JSON"),
        ("[1, 2]\n", "line 2: a row is an object with response or prediction"),
        ('{"prediction": "4"}\n', "line 2: a row has a 'reference'"),
        ('{"reference": "4"}\n', "line 2: a row has either a 'response' or a 'prediction'"),
        ('{"prediction": true, "reference": "4"}\n', "line 2: an answer and a reference are texts, got bool"),
        ('{"prediction": "4", "reference": "4", "options": {"x": 1}}\n', "line 2: unknown option 'x'"),
        ('{"prediction": "4", "reference": "4", "answer_type": ["list"]}\n', "line 2: unknown answer_type"),
        ('{"response": "4", "reference": "4", "truncated": "no"}\n', "line 2: 'truncated' is true or false"),
        ('{"response": 4, "reference": "4"}\n', "line 2: a completion is a text"),
        ("[" * 100_000 + "\n", "line 2: no JSON"),
        ("\xff\xfe\n", "line 2: no JSON"),
    ],
)
def test_a_line_that_is_no_pair_is_reported_and_the_rest_goes_on(tmp_path, line, complaint):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_bytes(json.dumps(ROWS[0]).encode() + b"\n" + line.encode("latin-1") + json.dumps(ROWS[1]).encode())
    complaints = []
    result = grade(pairs, tmp_path / "out.jsonl", complaints)
    assert [row["line"] for row in stored(tmp_path / "out.jsonl")] == [1, 3]
    assert (result.rows, result.graded, result.refused) == (3, 2, 1)
    assert len(complaints) == 1
    assert complaint in complaints[0]


def test_a_run_that_was_stopped_goes_on_and_gives_the_file_of_an_unbroken_one(tmp_path):
    pairs = write(tmp_path / "pairs.jsonl", [*ROWS, "\n", "{bad\n", *ROWS])
    grade(pairs, tmp_path / "whole.jsonl")
    content = (tmp_path / "whole.jsonl").read_bytes()
    for cut in (0, 1, 40, content.index(b"\n") + 1, len(content) // 2, len(content) - 1, len(content)):
        (tmp_path / "out.jsonl").write_bytes(content[:cut])
        result = grade(pairs, tmp_path / "out.jsonl")
        left = [[row[name] for name in row if name != "microseconds"] for row in stored(tmp_path / "out.jsonl")]
        right = [[row[name] for name in row if name != "microseconds"] for row in stored(tmp_path / "whole.jsonl")]
        assert left == right
        assert (result.graded + result.reused, result.reused) == (14, content[:cut].count(b"\n"))
        assert result.refused == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("hello\n", "no verdict of an earlier run"),
        ('{"line": 1}\n', "no verdict of an earlier run"),
    ],
)
def test_a_file_of_something_else_is_not_written_into(tmp_path, content, complaint):
    pairs = write(tmp_path / "pairs.jsonl", ROWS)
    (tmp_path / "out.jsonl").write_text(content)
    with pytest.raises(ConfigError, match=complaint):
        grade(pairs, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == content


def test_verdicts_on_other_pairs_or_of_another_contract_are_not_continued(tmp_path):
    pairs = write(tmp_path / "pairs.jsonl", ROWS[:2])
    grade(pairs, tmp_path / "out.jsonl")
    other = write(tmp_path / "other.jsonl", ROWS[1:])
    with pytest.raises(ConfigError, match="a verdict on other pairs"):
        grade(other, tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="graded under contract v3"):
        grade_file(pairs, tmp_path / "out.jsonl", contract="v2", complain=print)


def test_a_file_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        grade(tmp_path / "none.jsonl", tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_label_that_is_no_answer_type_here_is_counted_and_read_as_auto(tmp_path):
    pairs = write(tmp_path / "pairs.jsonl", [{"prediction": "2,1", "reference": "1,2", "answer_type": "integer"}])
    result = grade(pairs, tmp_path / "out.jsonl")
    assert (result.outcomes, result.unknown_types, result.refused) == ({"correct": 1}, {"integer": 1}, 0)
