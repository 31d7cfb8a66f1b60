from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal

import pytest

from veriward.eval import problems
from veriward.eval.problems import PRESETS, ConfigError, Preset, load_problems

QUESTION, ANSWER = {"question": "1+1"}, {"answer": "2"}


def test_ids_default_to_the_line_number(write_jsonl):
    path = write_jsonl({**QUESTION, **ANSWER}, "", {"question": "2+2", "answer": "4"})
    assert [problem.id for problem in load_problems(path).problems] == ["1", "3"]


@pytest.mark.parametrize("identity", ["id", "unique_id", "problem_id"])
def test_an_id_column_is_found(write_jsonl, identity):
    path = write_jsonl({identity: "a/b.json", **QUESTION, **ANSWER})
    assert load_problems(path).problems[0].id == "a/b.json"


@pytest.mark.parametrize("question", ["question", "problem", "prompt"])
@pytest.mark.parametrize(
    "reference", ["reference", "solution", "answer", "ground_truth", "label", "target", "references"]
)
def test_the_usual_column_names_are_found(write_jsonl, question, reference):
    problem = load_problems(write_jsonl({question: "1+1", reference: "2"})).problems[0]
    assert (problem.question, problem.reference) == ("1+1", "2")


def test_explicit_names_settle_an_ambiguity(write_jsonl):
    path = write_jsonl({**QUESTION, **ANSWER, "solution": "one and one is 2"})
    assert load_problems(path, reference_column="answer").problems[0].reference == "2"


def test_other_columns_are_kept(write_jsonl):
    path = write_jsonl({**QUESTION, **ANSWER, "level": 3, "subject": "Sums"})
    assert load_problems(path).problems[0].columns == {"level": 3, "subject": "Sums"}


@pytest.mark.parametrize(("value", "text"), [(18, "18"), (0.5, "0.5"), (-3, "-3")])
def test_a_number_is_read_as_its_text(write_jsonl, value, text):
    assert load_problems(write_jsonl({**QUESTION, "answer": value})).problems[0].reference == text


def test_the_limit_keeps_the_first_problems(write_jsonl):
    path = write_jsonl(*({"question": str(n), "answer": str(n)} for n in range(5)))
    assert [problem.question for problem in load_problems(path, limit=2).problems] == ["0", "1"]


def test_the_hash_is_of_the_content_and_not_of_the_file(write_jsonl):
    first = write_jsonl({"id": "a", **QUESTION, **ANSWER}, name="one.jsonl")
    second = write_jsonl({"level": 1, **ANSWER, **QUESTION, "id": "a"}, "", name="two.jsonl")
    assert load_problems(first).sha256 == load_problems(second).sha256


@pytest.mark.parametrize("changed", [{"id": "b"}, {"question": "1+2"}, {"answer": "3"}])
def test_a_changed_problem_changes_the_hash(write_jsonl, changed):
    row = {"id": "a", **QUESTION, **ANSWER}
    first, second = write_jsonl(row, name="one.jsonl"), write_jsonl({**row, **changed}, name="two.jsonl")
    assert load_problems(first).sha256 != load_problems(second).sha256


def test_a_byte_order_mark_and_line_separators_inside_text_are_read(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"question": "a\xe2\x80\xa8b", "answer": "1"}\r\n')
    assert load_problems(path).problems[0].question == "a\u2028b"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([], "no problems", id="empty file"),
        pytest.param(['{"question": "1'], "line 1: no JSON", id="bad JSON"),
        pytest.param([{**QUESTION, **ANSWER}, "[1]"], "line 2: got list", id="no object"),
        pytest.param(["[" * 100_000], "line 1: no JSON", id="nested without end"),
        pytest.param([{"question": "1+1"}], "no reference column; it has question", id="no reference column"),
        pytest.param([{**ANSWER}], "no question column", id="no question column"),
        pytest.param([{**QUESTION, **ANSWER, "solution": "x"}], "answer = '2'", id="two references"),
        pytest.param([{**QUESTION, **ANSWER}, QUESTION], "row 2: no column 'answer'", id="column missing in a row"),
        pytest.param([{**QUESTION, "answer": None}], "'answer' is NoneType", id="null"),
        pytest.param([{**QUESTION, "answer": True}], "'answer' is bool", id="truth value"),
        pytest.param([{**QUESTION, "answer": ["1"]}], "'answer' is list", id="several answers"),
        pytest.param([{**QUESTION, "answer": "  "}], "'answer' is empty", id="blank answer"),
        pytest.param([{"question": "\ud800", "answer": "1"}], "half a surrogate pair", id="half a surrogate pair"),
        pytest.param([{"id": 1, **QUESTION, **ANSWER}] * 2, "id '1' appears twice", id="repeated id"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(write_jsonl, lines, message):
    path = write_jsonl(*lines)
    with pytest.raises(ConfigError) as caught:
        load_problems(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_bytes(b'{"question": "1", "answer": "1"}\n\xff\xfe\n')
    with pytest.raises(ConfigError, match="line 2: no UTF-8 text"):
        load_problems(path)


@pytest.mark.parametrize("name", ["nowhere.jsonl", "/no/such/folder", "./nowhere/set"])
def test_a_missing_file_is_not_looked_up_on_the_hub(name):
    with pytest.raises(ConfigError, match="no such file"):
        load_problems(name)


def test_an_unknown_explicit_column_names_those_there(write_jsonl):
    with pytest.raises(ConfigError, match=r"no column 'anwser'; it has answer, question"):
        load_problems(write_jsonl({**QUESTION, **ANSWER}), reference_column="anwser")


def test_the_question_cannot_be_the_reference(write_jsonl):
    path = write_jsonl({**QUESTION, **ANSWER})
    with pytest.raises(ConfigError, match="both the question and the reference"):
        load_problems(path, question_column="answer", reference_column="answer")


def test_a_limit_below_one_is_refused(write_jsonl):
    with pytest.raises(ConfigError, match="limit must be at least 1"):
        load_problems(write_jsonl({**QUESTION, **ANSWER}), limit=0)


def test_a_jsonl_file_has_no_splits(write_jsonl):
    with pytest.raises(ConfigError, match="no splits"):
        load_problems(write_jsonl({**QUESTION, **ANSWER}), split="test")


def test_a_saved_data_set_is_read_like_the_file_it_came_from(write_jsonl, tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = [{"id": str(n), "question": f"{n}+1", "answer": str(n + 1)} for n in range(3)]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "saved")
    assert load_problems(tmp_path / "saved").sha256 == load_problems(write_jsonl(*rows)).sha256


def test_a_folder_of_data_files_is_read_with_its_split(write_jsonl, tmp_path):
    pytest.importorskip("datasets")
    write_jsonl({**QUESTION, **ANSWER}, name="test.jsonl")
    write_jsonl({"question": "2+2", "answer": "4"}, name="train.jsonl")
    assert load_problems(tmp_path, split="train").problems[0].reference == "4"


def test_several_splits_and_none_named_lists_them(tmp_path):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list([{**QUESTION, **ANSWER}])
    datasets.DatasetDict(train=table, test=table).save_to_disk(tmp_path / "saved")
    with pytest.raises(ConfigError, match="it has train, test; name one with split"):
        load_problems(tmp_path / "saved")


def test_a_folder_without_data_is_refused_in_one_line(tmp_path):
    pytest.importorskip("datasets")
    with pytest.raises(ConfigError, match="cannot load it") as caught:
        load_problems(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("file", "count"), [("gsm8k_test.jsonl", 1319), ("math500.jsonl", 500)])
def test_the_public_problem_files_load_as_they_are(shared_data, file, count):
    problems = load_problems(shared_data / file)
    assert len(problems) == count
    assert problems.reference_column == "answer"


def test_a_number_too_long_for_python_is_one_line(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text('{"question": "a", "answer": ' + "9" * 10_000 + "}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1: no JSON"):
        load_problems(path)


@pytest.fixture
def write_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(**columns):
        path = tmp_path / "problems.parquet"
        parquet.write_table(pyarrow.table(columns), path)
        return path

    return write


def test_a_parquet_file_is_read_like_the_jsonl_file_of_the_same_rows(write_parquet, write_jsonl):
    rows = [{"id": str(n), "question": f"{n}+1", "answer": str(n + 1), "level": n} for n in range(3)]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert load_problems(write_parquet(**columns)).problems == load_problems(write_jsonl(*rows)).problems


def test_a_decimal_of_a_parquet_file_is_read_as_its_text(write_parquet):
    assert load_problems(write_parquet(question=["a"], answer=[Decimal("1.50")])).problems[0].reference == "1.50"


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing else PAR1"])
def test_a_damaged_parquet_file_is_one_line(tmp_path, content):
    pytest.importorskip("pyarrow")
    path = tmp_path / "set.parquet"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"set\.parquet: cannot be read as Parquet") as caught:
        load_problems(path)
    assert "\n" not in str(caught.value)


def test_a_row_without_an_answer_in_a_parquet_file_is_named(write_parquet):
    with pytest.raises(ConfigError, match=r"row 2: 'answer' is NoneType"):
        load_problems(write_parquet(question=["a", "b"], answer=["1", None]))


def test_the_presets_are_the_published_sets():
    assert {name: (preset.split, preset.count) for name, preset in PRESETS.items()} == {
        "math-500": ("test", 500),
        "gsm8k": ("test", 1319),
        "aime-2024": ("train", 30),
        "aime-2025": ("test", 30),
    }


@pytest.fixture
def preset(tmp_path, monkeypatch):
    """A preset whose set lies in a folder here: three rows, with a solution beside the answer."""
    datasets = pytest.importorskip("datasets")
    rows = [{"problem": f"{n}+1", "solution": "Count on.", "answer": str(n + 1)} for n in range(3)]
    table = datasets.Dataset.from_list(rows)
    datasets.DatasetDict(train=table.select([0]), test=table).save_to_disk(tmp_path / "hub")
    made = Preset(
        hub=str(tmp_path / "hub"), split="test", question_column="problem", reference_column="answer", count=3
    )

    def name_it(**changes):
        monkeypatch.setattr(problems, "PRESETS", {"small": replace(made, **changes)})
        return "small"

    monkeypatch.chdir(tmp_path)
    return name_it


def test_a_preset_brings_its_split_and_columns(preset):
    found = load_problems(preset())
    assert [(problem.question, problem.reference) for problem in found.problems] == [
        ("0+1", "1"),
        ("1+1", "2"),
        ("2+1", "3"),
    ]
    assert found.name == "small"


def test_a_preset_with_another_number_of_rows_is_refused_whatever_the_limit(preset):
    with pytest.raises(ConfigError, match="has 3 rows, and the set as it was published 4"):
        load_problems(preset(count=4), limit=2)


def test_a_limit_keeps_the_first_of_a_preset(preset):
    assert len(load_problems(preset(), limit=2)) == 2


def test_a_preset_has_its_own_split(preset):
    with pytest.raises(ConfigError, match="the preset is the split 'test'"):
        load_problems(preset(), split="train")


def test_without_a_network_a_preset_is_one_line_that_says_what_to_do(tmp_path):
    pytest.importorskip("datasets")
    code = "import sys; from veriward.eval.problems import load_problems; load_problems(sys.argv[1])"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, "math-500"], env=offline, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert "ConfigError: HuggingFaceH4/MATH-500: Couldn't reach" in last
    assert last.endswith("mend the network, or name a file that holds the set")


def test_a_set_is_named_by_the_first_digits_of_its_hash(write_jsonl):
    path = write_jsonl({**QUESTION, **ANSWER})
    found = load_problems(path).sha256
    assert load_problems(path, sha256=found) == load_problems(path, sha256=found[:12])


def test_a_changed_set_is_refused_with_both_hashes(write_jsonl):
    path = write_jsonl({**QUESTION, **ANSWER})
    with pytest.raises(ConfigError, match=rf"has sha256 {load_problems(path).sha256}, and {'0' * 12} was wanted"):
        load_problems(path, sha256="0" * 12)


@pytest.mark.parametrize("sha256", ["", "0" * 11, "A" * 12, "0" * 65, "sha256:00000000"])
def test_a_hash_that_cannot_be_one_is_not_taken_for_a_changed_set(write_jsonl, sha256):
    with pytest.raises(ConfigError, match="sha256 must be the first 12 or more"):
        load_problems(write_jsonl({**QUESTION, **ANSWER}), sha256=sha256)


def test_a_split_of_a_saved_set_without_splits_is_refused(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([{**QUESTION, **ANSWER}]).save_to_disk(tmp_path / "saved")
    with pytest.raises(ConfigError, match="without splits was saved there, got split 'test'"):
        load_problems(tmp_path / "saved", split="test")


def test_the_folder_one_stands_in_is_read(write_jsonl, tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    write_jsonl({**QUESTION, **ANSWER}, name="test.jsonl")
    monkeypatch.chdir(tmp_path)
    assert load_problems(".", split="test").problems[0].reference == "2"
