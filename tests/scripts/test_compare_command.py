from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from veriward.scripts.cli import app

pytest.importorskip("statsmodels")


@pytest.fixture
def runs(run_folders, tmp_path):
    for name, right in (("before", range(4)), ("after", range(2, 12)), ("same", range(4))):
        texts = {f"p{n}": rf"\boxed{{{n + 1 if n in right else 0}}}" for n in range(12)}
        run_folders.write_run(tmp_path / name, texts)
    return tmp_path


def compare(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], terminal_width=100)


def test_the_table_has_the_pairs_the_test_and_the_changed_problems(runs):
    shown = compare(runs / "before", runs / "after").stdout
    for text in ("+50.0 points", "exact McNemar, p = 0.11", "only by before", "p11", "compute"):
        assert text in shown


def test_several_runs_are_compared_with_the_first(runs):
    row = json.loads(compare(runs / "before", runs / "after", runs / "same", "--json").stdout)
    assert [one["second"]["run"] for one in row["comparisons"]] == ["after", "same"]
    assert row["comparisons"][0]["adjusted_p"] == pytest.approx(2 * row["comparisons"][0]["p_value"])


def test_one_run_is_not_enough(runs):
    done = compare(runs / "before")
    assert done.exit_code == 2
    assert "got 1 run, wanted at least 2" in done.stderr


def test_a_run_that_changed_nothing_says_so(runs):
    assert "no problem has another outcome" in compare(runs / "before", runs / "same").stdout


def test_training_seeds_are_put_together(runs):
    shown = compare(runs / "before", runs / "after", runs / "same", "--seeds").stdout
    assert "2 training seeds, 12 problems" in shown
    assert "undefined under 3 seeds" in shown


def test_a_state_that_cannot_be_read_is_named(runs):
    file = next((runs / "after" / "problems").rglob("*.json"))
    file.write_text(file.read_text()[:-20])
    assert "after: counted as missing, a state that cannot be read" in compare(runs / "before", runs / "after").stderr
