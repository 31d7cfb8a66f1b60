from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from veriward.scripts.cli import app

pytest.importorskip("yaml")
pytest.importorskip("statsmodels")

EXAMPLE = Path(__file__).parents[2] / "docs/examples/promotion_rule.yaml"


@pytest.fixture
def place(run_folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = run_folders.problem_set(40)
    for name, right, weights in (("base", range(10), "0"), ("better", range(30), "1"), ("equal", range(11), "2")):
        texts = {f"p{n}": rf"\boxed{{{n + 1 if n in right else 0}}}" for n in range(40)}
        run_folders.write_run(tmp_path / name, texts, problems=problems, weights=weights * 64)
    lines = EXAMPLE.read_text().replace("n: 200", "n: 40").splitlines()
    lines = [f"set_sha256: {problems.sha256}" if line.startswith("set_sha256") else line for line in lines]
    (tmp_path / "rule.yaml").write_text("\n".join(lines))
    return tmp_path


def promote(*arguments):
    return CliRunner().invoke(app, ["promote", *map(str, arguments)], terminal_width=120)


def test_a_better_candidate_is_promoted_and_the_decision_written(place):
    done = promote("rule.yaml", "base", "better")
    assert done.exit_code == 0, done.output
    assert "promote better" in done.stdout
    assert "chosen on this set" in done.stdout
    assert json.loads((place / "rule.decision.json").read_text())["candidate"] == "better"


def test_an_equal_candidate_keeps_the_base(place):
    assert "keep the base" in promote("rule.yaml", "base", "equal").stdout


def test_a_rule_that_is_stamped_after_its_outputs_is_called_not_clean(place):
    assert "NOT CLEAN: better was begun at" in promote("rule.yaml", "base", "better").stdout.replace("\n", " ")


def test_a_stamped_rule_that_was_changed_is_called_not_clean(place):
    assert "stamped at" in promote("rule.yaml", "--stamp").stdout
    rule = place / "rule.yaml"
    rule.write_text(rule.read_text().replace("alpha: 0.05", "alpha: 0.1"))
    row = json.loads(promote("rule.yaml", "base", "better", "--json").stdout)
    assert row["changed"] is True
    assert "the rule was changed after it was stamped" in row["complaints"][0]


def test_a_second_stamp_on_other_content_is_refused(place):
    promote("rule.yaml", "--stamp")
    rule = place / "rule.yaml"
    rule.write_text(rule.read_text().replace("alpha: 0.05", "alpha: 0.1"))
    done = promote("rule.yaml", "--stamp")
    assert done.exit_code == 2
    assert "is stamped with other content" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("base",)])
def test_a_base_alone_is_not_enough(place, arguments):
    done = promote("rule.yaml", *arguments)
    assert done.exit_code == 2
    assert "wanted the run of the base and those of candidates" in done.stderr


@pytest.mark.parametrize(
    ("out", "message"),
    [("base/run.json", "is there already, and is no decision"), ("nowhere/d.json", "no folder nowhere")],
)
def test_a_file_of_somebody_else_is_not_written_over(place, out, message):
    before = (place / "base/run.json").read_bytes()
    done = promote("rule.yaml", "base", "better", "--out", out)
    assert (done.exit_code, message in done.stderr) == (2, True)
    assert (place / "base/run.json").read_bytes() == before


def test_an_earlier_decision_is_written_over(place):
    assert [promote("rule.yaml", "base", "better").exit_code for _ in range(2)] == [0, 0]


def test_too_many_checkpoints_are_refused_before_any_is_asked(place):
    for step in (1, 2, 3):
        (place / "grpo" / f"checkpoint-{step}").mkdir(parents=True)
    done = promote("rule.yaml", "base", "--checkpoints", "grpo")
    assert done.exit_code == 2
    assert "3 candidates, and the rule announces 2" in done.stderr
