from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from veriward.scripts.cli import app

for module in ("jinja2", "statsmodels", "huggingface_hub", "yaml"):
    pytest.importorskip(module)


@pytest.fixture
def place(run_folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_folders.write_run(tmp_path / "run", {f"p{n}": rf"\boxed{{{n}}}" for n in range(12)})
    return tmp_path


def card(*arguments):
    return CliRunner().invoke(app, ["card", *map(str, arguments)])


def test_a_card_is_written_and_verified(place):
    assert card("model", "run", "--out", "cards/README.md").exit_code == 0
    done = card("verify", "cards/README.md")
    assert (done.exit_code, "every line is what the runs say" in done.stdout) == (0, True)


def test_a_changed_number_is_exit_code_1_with_the_line(place):
    card("model", "run", "--out", "card.md")
    file = place / "card.md"
    file.write_text(file.read_text().replace("0/12 = 0.0 %", "12/12 = 100.0 %", 1))
    done = card("verify", "card.md")
    assert done.exit_code == 1
    assert "12/12" in done.stderr


def test_a_run_that_has_moved_is_named_on_the_command_line(place):
    card("model", "run", "--out", "card.md")
    (place / "run").rename(place / "elsewhere")
    assert card("verify", "card.md").exit_code == 2
    assert json.loads(card("verify", "card.md", "elsewhere", "--json").stdout)["verified"] is True


def test_a_run_without_tools_has_no_system_card(place):
    done = card("system", "run")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert not (place / "system_card.md").exists()


def test_a_folder_without_a_run_is_one_line(place):
    done = card("model", "nothing")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


def test_what_no_run_can_show_is_named_until_it_is_given(place, run_folders):
    row = {
        "decision": "keep",
        "candidate": None,
        "reasons": [],
        "complaints": [],
        "runs": [],
        "rule": {"name": "sums"},
        "rule_sha256": "ab" * 32,
        "stamped_at": "2026-01-01",
        "base": {"name": "base", "weights": "0" * 64},
        "set_sha256": run_folders.problem_set().sha256,
    }
    (place / "decision.json").write_text(json.dumps(row))
    card("model", "run", "--out", "card.md", "--decision", "decision.json")
    assert json.loads(card("verify", "card.md", "--json").stdout)["unchecked"] == ["decision"]
    checked = card("verify", "card.md", "--decision", "decision.json", "--json")
    assert json.loads(checked.stdout) == {"card": "card.md", "verified": True, "faults": [], "unchecked": []}
