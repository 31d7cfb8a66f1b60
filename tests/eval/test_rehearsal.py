from __future__ import annotations

import pytest

from veriward.eval.prompting import PromptTemplate
from veriward.eval.rehearsal import rehearse
from veriward.tool_agent.errors import ConfigError

for module in ("jinja2", "statsmodels", "huggingface_hub"):
    pytest.importorskip(module)

PLAIN = PromptTemplate(template="plain", instruction="")


def test_the_whole_way_is_gone_once_and_ends_in_a_card(run_folders):
    card = rehearse(run_folders.problem_set(12), template=PLAIN, contract="v3")
    assert "1/3 = 33.3 %" in card
    assert "rehearsal" in card


def test_nothing_is_left_behind(run_folders, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    rehearse(run_folders.problem_set(3), template=PLAIN, contract="v3", samples=2, temperature=1.0)
    assert list(tmp_path.iterdir()) == []


def test_a_renamed_field_stops_it_before_any_model_is_asked(run_folders, monkeypatch):
    from veriward.eval import runs

    original = runs.answer_row
    monkeypatch.setattr(
        runs, "answer_row", lambda *a: {("words" if k == "tokens" else k): v for k, v in original(*a).items()}
    )
    with pytest.raises(KeyError, match="tokens"):
        rehearse(run_folders.problem_set(3), template=PLAIN, contract="v3")


def test_a_template_that_cannot_be_rendered_stops_it(run_folders):
    from veriward.eval import cards

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cards, "PRESETS", {"new-set": cards.PRESETS["gsm8k"]})
        with pytest.raises(KeyError, match="new-set"):
            rehearse(run_folders.problem_set(3), template=PLAIN, contract="v3")


def test_a_set_of_one_problem_is_enough(run_folders):
    assert "1/1 = 100.0 %" in rehearse(run_folders.problem_set(1), template=PLAIN, contract="v3")


def test_a_set_without_a_readable_reference_is_refused(write_jsonl):
    from veriward.eval.problems import load_problems

    problems = load_problems(write_jsonl({"question": "What?", "reference": r"\frac{1}{"}))
    with pytest.raises(ConfigError, match="none of its 1 references can be read"):
        rehearse(problems, template=PLAIN, contract="v3")
