"""`veriward grade` and `veriward explain`, as a person runs them."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from veriward.rewards import CONTRACTS, verify
from veriward.scripts.cli import app

RUN = "from veriward.scripts.cli import app; app(prog_name='veriward')"
BOXED = r"Draft \boxed{5}; so $x = \boxed{\frac{\sqrt{12}}{2}}$, done."


STARTED = "veriward: verdicts run in 1 worker process, limited to 1024 MiB"


def veriward(*arguments, **more):
    environment = {**os.environ, "COLUMNS": "100", "VERIWARD_WORKERS": "1"}
    return subprocess.run(
        [sys.executable, "-c", RUN, *map(str, arguments)],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env=environment,
        **more,
    )


def explain(*arguments):
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, ["explain", *arguments], catch_exceptions=False)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [{"id": n, "prediction": f"{n}/2", "reference": str(n / 2)} for n in range(300)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_grade_writes_a_verdict_a_row_and_prints_the_counts(pairs, tmp_path):
    done = veriward("grade", pairs, "--out", tmp_path / "new/out.jsonl", "--contract", "v3")
    assert (done.returncode, done.stderr) == (0, f"{STARTED}\n")
    rows = [json.loads(line) for line in (tmp_path / "new/out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == list(range(300))
    assert all(row["correct"] for row in rows)
    assert "300/300" in done.stdout


def test_grade_for_a_machine_prints_one_json_object(pairs, tmp_path):
    done = veriward("grade", pairs, "--out", tmp_path / "out.jsonl", "--contract", "v3", "--json")
    assert json.loads(done.stdout)["outcomes"] == {"correct": 300}


def test_grade_goes_on_after_a_bad_row_and_says_so_at_the_end(pairs, tmp_path):
    with pairs.open("a") as file:
        file.write("[1]\n" * 30 + '{"prediction": "1", "reference": "1"}\n')
    done = veriward("grade", pairs, "--out", tmp_path / "out.jsonl", "--contract", "v3")
    started, *lines = sorted(done.stderr.splitlines(), key=lambda line: line != STARTED)
    assert (done.returncode, started) == (2, STARTED)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 301
    assert "pairs.jsonl, line 301: a row is an object" in lines[0]
    assert len(lines) == 22
    assert lines[-1] == "veriward grade: 30 of 331 rows are no pairs, and left out"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none.jsonl", "--out", "out.jsonl"], "none.jsonl: cannot be read: No such file or directory"),
        ([".", "--out", "out.jsonl"], ".: cannot be read: Is a directory"),
        (["pairs.jsonl", "--out", "."], ".: no regular file"),
        (["pairs.jsonl", "--out", "/dev/null"], "/dev/null: no regular file"),
        (["pairs.jsonl", "--out", "x" * 300], "cannot be written: File name too long"),
        (["pairs.jsonl", "--out", "notes.txt"], "notes.txt, line 1: no verdict of an earlier run"),
        (["pairs.jsonl", "--out", "pairs.jsonl/x"], "pairs.jsonl/x: cannot be written: "),
        (["pairs.jsonl", "--out", "pairs.jsonl"], "pairs.jsonl: is the file of pairs itself"),
        (["pairs.jsonl", "--out", "out.jsonl", "--contract", "v9"], "unknown contract 'v9'"),
        (["pairs.jsonl"], "Missing option '--out'"),
    ],
)
def test_what_a_person_got_wrong_is_one_line_and_exit_code_2(pairs, arguments, complaint):
    (pairs.parent / "notes.txt").write_text("my notes")
    before = pairs.read_bytes()
    done = veriward("grade", *arguments, cwd=pairs.parent)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert pairs.read_bytes() == before
    assert (pairs.parent / "notes.txt").read_text() == "my notes"


@pytest.mark.skipif(sys.platform == "win32", reason="the lock is not made on Windows")
def test_two_gradings_into_one_file_are_refused(pairs, tmp_path):
    import fcntl

    with (tmp_path / "out.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = veriward("grade", pairs, "--out", tmp_path / "out.jsonl")
    assert (done.returncode, (tmp_path / "out.jsonl").read_bytes()) == (2, b"")
    assert "another process is writing into it" in done.stderr


def test_a_one_row_file_without_a_line_end_is_not_taken_for_a_torn_one(tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"prediction": "1", "reference": "1"}')
    assert veriward("grade", pairs, "--out", pairs).returncode == 2
    assert pairs.read_text() == '{"prediction": "1", "reference": "1"}'


@pytest.mark.parametrize("arguments", [["verify"], ["explain"]])
def test_a_terminal_that_knows_ascii_alone_shows_escapes(arguments):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "100"}
    command = [sys.executable, "-c", RUN, *arguments, r"\boxed{√2}", "√2"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_compare_contracts_overwrites_nothing(pairs):
    before = pairs.read_bytes()
    done = veriward("compare-contracts", pairs, "v2", "v3", "--out", pairs)
    assert (done.returncode, pairs.read_bytes()) == (2, before)
    assert "is there already" in done.stderr


def test_compare_contracts_prints_the_matrix_and_each_disagreement_with_both_reasons(tmp_path):
    rows = [("x=3", "3"), ("4", "4"), ("9^9^9", "9"), ("5", "6")]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({"prediction": a, "reference": b}) + "\n" for a, b in rows) + "[]\n")
    done = veriward("compare-contracts", path, "v1", "v3", "--out", tmp_path / "out.jsonl")
    assert done.returncode == 2
    assert "line 1: unsupported (unsupported_expression) -> correct: x=3  for  3" in done.stdout
    assert "1 disagreements; 1 calls of v1 skipped for their cost" in done.stdout
    assert "compare-contracts: 1 of 5 rows are no pairs" in done.stderr
    (row,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert row["outcomes"] == ["unsupported", "correct"]


def test_compare_contracts_leaves_types_out_where_a_contract_knows_none(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"prediction": "(1, 2)", "reference": "2, 1", "answer_type": "set"}) + "\n")
    done = veriward("compare-contracts", path, "v2", "v3", "--json")
    assert (done.returncode, done.stderr) == (0, f"{STARTED}\n")
    assert json.loads(done.stdout)["disagreements"][0]["outcomes"] == ["wrong", "correct"]


def test_verify_and_explain_take_types_and_options():
    for command in ("verify", "explain"):
        done = veriward(command, "3.14", r"\pi", "--answer", "--option", "tolerance=0.01", "--json")
        assert json.loads(done.stdout)["flags"] == ["tolerance"]
        done = veriward(command, "2, 1", "(1, 2)", "--answer", "--answer-type", "set", "--json")
        assert json.loads(done.stdout)["correct"]


@pytest.mark.parametrize("option", ["tolerance", "units=2", "key=1"])
def test_an_option_that_is_none_is_one_line(option):
    done = veriward("verify", "4", "4", "--option", option)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_check_references_lists_what_cannot_be_read_with_its_place(tmp_path):
    path = tmp_path / "data.jsonl"
    keys = [r"\frac12", "x+1 2", "(1, 2)", "C", "72 = 70 + 2\n#### 72", "3.142"]
    path.write_text("".join(json.dumps({"question": "?", "answer": key}) + "\n" for key in keys))
    done = veriward("check-references", path)
    assert done.returncode == 0
    for part in (
        "line 2: reference_adjacent_numbers, character 4",
        "x+1 2",
        "a point or an open interval",
        "an option",
    ):
        assert part in done.stdout
    row = json.loads(veriward("check-references", path, "--column", "answer", "--json").stdout)
    assert (row["references"], row["solutions"], len(row["unreadable"]), len(row["ambiguous"])) == (6, 1, 1, 3)
    assert row["kinds"] == {"number": 3, "tuple": 1, "expression": 1}
    assert veriward("check-references", path, "--require-references").returncode == 1


@pytest.mark.parametrize(
    ("content", "arguments", "complaint"),
    [
        ("", [], "no rows"),
        ('{"question": "?"}\n', [], "which column holds the references? none looks like it; columns: question"),
        ('{"answer": "1", "solution": "1"}\n', [], "several could be it: solution, answer"),
        ('{"answer": "1"}\n', ["--column", "key"], "line 1: no column 'key'"),
        ('{"answer": "1"}\n{"answer": null}\n', [], "line 2: a reference is a text or a number, got None"),
        ("[1]\n", [], "line 1: a row is an object"),
    ],
)
def test_check_references_says_what_it_wants_in_one_line(tmp_path, content, arguments, complaint):
    path = tmp_path / "data.jsonl"
    path.write_text(content)
    done = veriward("check-references", path, *arguments)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert complaint in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_grading_goes_on_and_loses_nothing(tmp_path, how):
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": n, "prediction": f"x^{n % 60}+{n}", "reference": f"{n}+x^{n % 60}"} for n in range(60_000)]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-c", RUN, "grade", str(pairs), "--out", str(out), "--contract", "v3"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    while not out.exists() or out.stat().st_size < 300_000:
        time.sleep(0.05)
    running.send_signal(how)
    _, said = running.communicate(timeout=60)
    if how is signal.SIGINT:
        assert running.returncode == 130
        assert said.splitlines()[-1] == f"stopped; the same command goes on from here: {out} keeps what is graded"
    assert len(out.read_text().splitlines()) < 60_000
    done = veriward("grade", pairs, "--out", out, "--contract", "v3", "--json")
    assert json.loads(done.stdout)["reused"] > 0
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == list(range(60_000))


@pytest.mark.parametrize("contract", sorted(CONTRACTS))
def test_explain_says_what_verify_decides(contract):
    done = explain(BOXED, "sqrt(3)", "--contract", contract, "--json")
    row = json.loads(done.stdout)
    wanted = verify(BOXED, "sqrt(3)", contract=contract).to_row()
    assert {name: row[name] for name in wanted if name != "microseconds"} == {
        name: value for name, value in wanted.items() if name != "microseconds"
    }


def test_explain_shows_the_answer_both_readings_and_each_tier():
    shown = explain(BOXED, "sqrt(3)").stdout
    for part in ("taken as boxed", r"\frac{\sqrt{12}}{2}", "sqrt(12)/2", "normal", "correct", "proved", "format valid"):
        assert part in shown


def test_explain_marks_the_place_of_a_refusal_under_the_text():
    lines = explain("--answer", "x+1 2", "7").stdout.splitlines()
    (row,) = [number for number, line in enumerate(lines) if "x+1 2" in line]
    assert lines[row + 1].index("^") == lines[row].index("x+1 2") + 4
    assert "adjacent_numbers" in lines[row]


@pytest.mark.parametrize("text", ["", "\x1b[2J", "[red]", "\ud800", "\\boxed{" * 50, "x" * 10_000])
def test_explain_prints_any_text(text):
    assert explain(text.encode("utf-8", "replace").decode(), "4").exit_code == 0
    assert "\x1b" not in explain(text.encode("utf-8", "replace").decode(), "4").stdout


def test_explain_refuses_an_unknown_answer_type_in_one_line():
    done = veriward("explain", "4", "4", "--answer-type", "sum")
    assert done.returncode == 2
    assert done.stderr.startswith("veriward: unknown answer_type 'sum'; known: auto, number, expression")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["grade", "explain"])
def test_help_works_on_the_core_alone(command):
    extras = ("torch", "transformers", "peft", "trl", "datasets", "accelerate", "scipy", "matplotlib", "yaml", "numpy")
    code = f"import sys; sys.modules.update(dict.fromkeys({extras!r})); {RUN}"
    done = subprocess.run([sys.executable, "-c", code, command, "--help"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_rows_that_were_lost_are_told_of(tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    rows = [{"prediction": f"x^{n}+{n}", "reference": f"{n}+x^{n}"} for n in range(3)]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):
        done = veriward("grade", pairs, "--out", tmp_path / "out.jsonl", "--deadline", "0.000001")
        assert done.returncode == 0
    lost = sum(json.loads(line)["outcome"] == "timeout" for line in (tmp_path / "out.jsonl").read_text().splitlines())
    said = f"veriward grade: {lost} rows are timeout or crashed, and stay so; another --out decides them anew"
    assert (said in done.stderr.splitlines()) is (lost > 0)
