from __future__ import annotations

import csv
import io
import json

import pytest

from veriward.eval.audit_sample import draw, equal_shares, guarded, read_audit, unguarded, write_audit, write_sheet
from veriward.eval.cards import model_card
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("statsmodels")
pytest.importorskip("jinja2")


@pytest.fixture
def run(run_folders, tmp_path):
    texts = {f"p{n}": rf"\boxed{{{n + 1 if n < 30 else 0}}}" for n in range(40)}
    return run_folders.write_run(tmp_path / "run", texts, problems=run_folders.problem_set(40))


def rows_of(sheet):
    return list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"))))


def marked(sheet, label):
    rows = rows_of(sheet)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0].keys(), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows({**row, "label": label(row)} for row in rows)
    sheet.write_text(text.getvalue(), "utf-8")


def by_reference(row):
    return "right" if unguarded(row["reference"]) in row["response"] else "wrong"


def test_the_sheet_has_no_verdict(run, tmp_path):
    write_sheet(run, tmp_path / "sheet.csv", count=20)
    assert set(rows_of(tmp_path / "sheet.csv")[0]) == {"item", "question", "response", "reference", "label", "note"}
    assert "correct" not in (tmp_path / "sheet.csv").read_text()


def test_rare_outcomes_are_drawn_as_often_as_common_ones(run):
    outcome = {row["id"]: row["outcome"] for row in run.rows}
    drawn = [outcome[one.id] for one in draw(run, 20, 0)]
    assert (drawn.count("correct"), drawn.count("wrong")) == (10, 10)


def test_what_a_small_stratum_cannot_fill_goes_to_the_others():
    assert equal_shares({"correct": 100, "wrong": 3, "timeout": 1}, 20) == {"timeout": 1, "wrong": 3, "correct": 16}


def test_the_same_seed_draws_the_same_sheet(run):
    assert draw(run, 20, 1) == draw(run, 20, 1)
    assert draw(run, 20, 1) != draw(run, 20, 2)


@pytest.mark.parametrize("cell", ["=1+1", "@x", "-3", "1/2", "+1", "'quoted", "\tx", "a" * 100, ""])
def test_no_cell_is_a_formula_and_each_comes_back_as_it_was(cell):
    assert unguarded(guarded(cell)) == cell
    assert not guarded(cell).startswith(("=", "+", "-", "@", "\t"))


def test_marks_that_agree_are_agreement_with_an_interval(run, tmp_path):
    write_sheet(run, tmp_path / "sheet.csv", count=20)
    marked(tmp_path / "sheet.csv", by_reference)
    audit, faults = write_audit(run, tmp_path / "sheet.csv")
    assert faults == []
    agreement = audit["agreement"]
    assert (agreement["value"], agreement["successes"], agreement["total"]) == (1.0, 20, 20)
    assert agreement["low"] < 1.0


def test_shares_are_weighted_back_to_the_whole_run(run, tmp_path):
    write_sheet(run, tmp_path / "sheet.csv", count=20)
    marked(tmp_path / "sheet.csv", lambda row: "right")
    audit, _ = write_audit(run, tmp_path / "sheet.csv")
    assert audit["agreement"]["value"] == pytest.approx(30 / 40)  # 10 of 20 in the sheet, 30 of 40 in the run
    assert audit["agreement"]["successes"] == 10


def test_the_agreement_stands_on_the_card(run, tmp_path):
    write_sheet(run, tmp_path / "sheet.csv", count=20)
    marked(tmp_path / "sheet.csv", by_reference)
    write_audit(run, tmp_path / "sheet.csv")
    assert read_audit(run)["marked"] == 20
    assert "20 responses; verifier and marks agree on 100.0 %" in model_card([run]).markdown


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda text: text.replace('"right"', '"maybe"', 1), "label 'maybe' of item"),
        (lambda text: text.replace('"right"', '""', 1), "no label of item"),
        (lambda text: text.replace("What is 1", "What was 1", 1), "was changed; put it back"),
        (lambda text: text.rsplit('"', 13)[0].rsplit("\n", 1)[0], "is missing; put its row back"),
    ],
)
def test_a_sheet_with_a_fault_is_named_by_its_row_and_counts_nothing(run, tmp_path, change, fault):
    sheet = tmp_path / "sheet.csv"
    write_sheet(run, sheet, count=6)
    marked(sheet, lambda row: "right")
    sheet.write_text(change(sheet.read_text()))
    audit, faults = write_audit(run, sheet)
    assert audit is None
    assert any(fault in line for line in faults)


def test_a_sheet_of_another_run_is_refused(run, run_folders, tmp_path):
    other = run_folders.write_run(tmp_path / "other", {"p0": r"\boxed{1}"}, weights="1" * 64)
    write_sheet(other, tmp_path / "sheet.csv", count=1)
    with pytest.raises(ConfigError, match="drawn from another run"):
        write_audit(run, tmp_path / "sheet.csv")


def test_a_sheet_that_may_hold_marks_is_not_overwritten(run, tmp_path):
    write_sheet(run, tmp_path / "sheet.csv", count=2)
    with pytest.raises(ConfigError, match="may hold marks"):
        write_sheet(run, tmp_path / "sheet.csv", count=2)


@pytest.mark.parametrize(
    ("mark", "fault"),
    [
        ({"id": {}, "sample": 0, "label": "right"}, "is no response of this run"),
        ({"id": "p0", "sample": 0, "label": "maybe"}, "as 'maybe'; wanted one of"),
        ({"id": "p0"}, "no audit: KeyError"),
    ],
)
def test_an_audit_that_was_made_up_is_said_in_one_line(run, mark, fault):
    (run.path / "audit.json").write_text(json.dumps({"seed": 0, "marks": [mark]}))
    with pytest.raises(ConfigError, match=fault):
        read_audit(run)


def test_an_audit_that_was_changed_by_hand_is_refused(run, tmp_path):
    write_sheet(run, tmp_path / "sheet.csv", count=6)
    marked(tmp_path / "sheet.csv", lambda row: "wrong")
    write_audit(run, tmp_path / "sheet.csv")
    file = run.path / "audit.json"
    file.write_text(file.read_text().replace('"label": "wrong"', '"label": "right"'))
    with pytest.raises(ConfigError, match="are not what the marks and the verdicts say"):
        read_audit(run)
