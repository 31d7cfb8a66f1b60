from __future__ import annotations

import csv
import io
import json
import shutil

import pytest
from typer.testing import CliRunner

from veriward.scripts.cli import app

pytest.importorskip("statsmodels")
pytest.importorskip("jinja2")


@pytest.fixture
def place(run_folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_folders.write_run(tmp_path / "run", {f"p{n}": rf"\boxed{{{n}}}" for n in range(12)})
    return tmp_path


def veriward(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], terminal_width=120)


def test_a_stranger_checks_the_bundle_and_the_card_in_it(place):
    veriward("card", "model", "run", "--out", "card.md")
    assert veriward("bundle", "run", "--out", "runs.zip", "--card", "card.md").exit_code == 0
    shutil.rmtree(place / "run")
    (place / "card.md").unlink()
    assert veriward("bundle", "--check", "runs.zip").exit_code == 0
    done = veriward("card", "verify", "card.md", "runs.zip")
    assert (done.exit_code, "every line is what the runs say" in done.stdout) == (0, True)


def test_a_damaged_bundle_is_exit_code_1(place):
    veriward("bundle", "run", "--out", "runs.zip")
    file = place / "runs.zip"
    file.write_bytes(file.read_bytes()[:-100])
    done = veriward("bundle", "--check", "runs.zip", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["faults"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "wanted RUN… and --out FILE.zip"),
        (("run",), "wanted RUN… and --out FILE.zip"),
        (("run", "--out", "runs.tar"), "wanted a name that ends in .zip"),
        (("run", "--check", "x.zip"), "leave out the runs"),
        (("--check", "none.zip"), "none.zip: cannot be read"),
    ],
)
def test_a_command_that_cannot_work_is_one_line(place, arguments, message):
    done = veriward("bundle", *arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_a_sheet_is_drawn_marked_and_read_back(place):
    assert "4 responses" in veriward("audit-sample", "run", "--n", 4, "--out", "sheet.csv").stdout
    rows = list(csv.DictReader(io.StringIO((place / "sheet.csv").read_text("utf-8-sig"))))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0].keys())
    writer.writeheader()
    writer.writerows({**row, "label": "wrong"} for row in rows)
    (place / "sheet.csv").write_text(text.getvalue(), "utf-8")
    done = veriward("audit-sample", "run", "--read", "sheet.csv")
    assert done.exit_code == 0, done.output
    assert "verifier and marks agree" in done.stdout
    assert (place / "run" / "audit.json").exists()


def test_an_unmarked_sheet_names_every_row_and_counts_nothing(place):
    veriward("audit-sample", "run", "--n", 3, "--out", "sheet.csv")
    done = veriward("audit-sample", "run", "--read", "sheet.csv")
    assert (done.exit_code, done.stderr.count("no label of item")) == (2, 3)
    assert not (place / "run" / "audit.json").exists()


def test_fresh_problems_are_written_for_eval(place):
    assert veriward("fresh", "--n", 20, "--seed", 4, "--out", "fresh.jsonl").exit_code == 0
    assert len((place / "fresh.jsonl").read_text().splitlines()) == 20
    done = veriward("fresh", "--out", "fresh.jsonl")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


def test_a_model_is_probed_on_a_set_and_on_fresh_problems(place):
    pytest.importorskip("transformers")
    from veriward.train.tiny_model import write_model

    write_model(place / "tiny", seed=0)
    question = "Tom has {} red apples and buys two more. How many apples are there?"
    rows = [{"question": question.format(n), "answer": str(n + 2)} for n in range(3)]
    rows.append({"question": "1 + 1?", "answer": "2"})
    (place / "set.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = ("contamination", "--model", "tiny", "--problems", "set.jsonl", "--fresh", 4, "--max-new-tokens", 8)
    done = veriward(*command, "--device", "cpu", "--json")
    assert done.exit_code == 0, done.output
    first, second = json.loads(done.stdout)["probes"]
    assert (first["exact"]["total"], second["exact"]["total"]) == (3, 4)
    assert (first["too_short"], second["too_short"]) == (1, 0)
