from __future__ import annotations

import json
import shutil

import pytest

from veriward.eval.agent_run import run_agent
from veriward.eval.cards import model_card, read_decision, system_card, unchecked, verify_card
from veriward.eval.drill import SCRIPT, run_drill
from veriward.eval.problems import load_problems
from veriward.eval.runs import read_run
from veriward.eval.scripted import ScriptedGenerator
from veriward.eval.system_card import drill_rows
from veriward.eval.tool_problems import frozen_twelve
from veriward.tool_agent import toolbox
from veriward.tool_agent.agent import AgentSettings, Gate
from veriward.tool_agent.errors import ConfigError

for module in ("jinja2", "statsmodels", "huggingface_hub", "yaml"):
    pytest.importorskip(module)


@pytest.fixture
def write(run_folders, tmp_path):
    def write(name, right=range(4), **options):
        texts = {f"p{n}": rf"\boxed{{{n + 1 if n in right else 0}}}" for n in range(12)}
        return run_folders.write_run(tmp_path / name, texts, **options)

    return write


def test_a_model_card_has_everything_that_a_number_needs(write):
    run = write("run")
    text = model_card([run]).markdown
    for wanted in (
        "4/12 = 33.3 %",
        "13.8 to 60.9 % (Wilson)",
        "33.3 %, 33.3 %",
        run.fingerprint,
        run.contract.fingerprint,
        "wrong answers called correct 0 of 70",
        "no promotion rule is on record",
        "MATH-500: 0 runs",
        "What is not claimed",
    ):
        assert wanted in text


def test_the_front_matter_is_what_the_hub_reads(write, tmp_path):
    from huggingface_hub import ModelCard

    card = tmp_path / "card.md"
    model_card([write("run")]).write(card)
    (result,) = ModelCard.load(card).data.eval_results
    assert (result.metric_value, result.metric_args["n"], result.metric_args["correct"]) == (33.33, 12, 4)


def test_a_set_that_the_hub_knows_has_an_eval_results_file(write, run_folders):
    run = write("run", problems=run_folders.problem_set(12, name="math-500"))
    card = model_card([run])
    (name,) = card.eval_results
    assert name == "HuggingFaceH4_MATH-500.yaml"
    assert "no-tools; accuracy; 4 of 12" in card.eval_results[name].replace("\n    ", " ")
    assert "MATH-500: 0 runs" not in card.markdown


def test_an_incomplete_run_is_partial_and_not_in_the_front_matter(run_folders, tmp_path):
    card = model_card([run_folders.write_run(tmp_path / "half", {"p0": r"\boxed{1}"})])
    assert "PARTIAL: 11 of 12 responses are missing" in card.markdown
    assert "model-index" not in card.markdown


def test_runs_under_different_contracts_stand_in_different_tables(write):
    text = model_card([write("one"), write("two", contract="v2")]).markdown
    assert text.count("## Results under grading contract") == 2
    assert "Numbers under different contracts are not comparable" in text


def test_two_models_are_not_on_one_card(write):
    with pytest.raises(ConfigError, match="2 different models"):
        model_card([write("one"), write("two", weights="1" * 64)])


def test_the_same_run_twice_is_refused(write):
    run = write("one")
    with pytest.raises(ConfigError, match="is the same run as"):
        model_card([run, run])


@pytest.fixture
def decision(tmp_path, run_folders):
    def decision(**changes):
        row = {
            "decision": "promote",
            "candidate": "step-2",
            "rule_sha256": "ab" * 32,
            "set_sha256": run_folders.problem_set().sha256,
            "rule": {"name": "sums"},
            "stamped_at": "2026-01-01T00:00:00+00:00",
            "complaints": [],
            "reasons": ["step-2: +9.0 points"],
            "base": {"name": "base", "weights": "9" * 64},
            "runs": [{"name": "step-2", "weights": "0" * 64}, {"name": "step-1", "weights": "1" * 64}],
        }
        file = tmp_path / "decision.json"
        file.write_text(json.dumps({**row, **changes}))
        return read_decision(file)

    return decision


def test_a_number_that_chose_the_checkpoint_says_so(write, decision):
    text = model_card([write("run")], decision=decision()).markdown
    assert "SELECTED ON THIS SET" in text
    assert "`abababababababab…`" in text


@pytest.mark.parametrize(
    ("weights", "place"),
    [
        ("0", "the candidate step-2, which was promoted"),
        ("1", "the candidate step-1, which was not promoted"),
        ("9", "the base"),
        ("5", "NOT AMONG THE CANDIDATES"),
    ],
)
def test_a_card_says_what_the_decision_says_of_its_model(write, decision, weights, place):
    assert f"This model is {place}" in model_card([write("run", weights=weights * 64)], decision=decision()).markdown


def test_a_number_on_another_set_says_that_too(write, decision):
    assert "not used to choose the checkpoint" in model_card([write("run")], decision=decision(set_sha256="0")).markdown


def test_a_rule_that_was_changed_late_is_on_the_card(write, decision):
    card = model_card([write("run")], decision=decision(complaints=["the rule was changed after it was stamped"]))
    assert "NOT CLEAN: the rule was changed after it was stamped" in card.markdown


def test_what_is_no_decision_is_refused(tmp_path):
    (tmp_path / "decision.json").write_text("[]")
    with pytest.raises(ConfigError, match="is no decision of `veriward promote`"):
        read_decision(tmp_path / "decision.json")


HOSTILE = "a|b <script>alert(1)</script> `x` **y** [z](http://e) --- \n# h"


def test_names_that_are_not_ours_cannot_write_markdown(run_folders, tmp_path):
    problems = run_folders.problem_set(2, columns=[{"subject": HOSTILE}] * 2, name=HOSTILE)
    run = run_folders.write_run(tmp_path / "run", {"p0": r"\boxed{1}"}, problems=problems, model=HOSTILE)
    body = model_card([run]).markdown.split("\n---\n", 1)[-1].rsplit("<!-- made of", 1)[0]
    assert "<script>" not in body
    assert "**y**" not in body
    assert "](http" not in body
    assert "\n# h" not in body


# ------------------------------------------------------------------------------------------------------ verification


@pytest.fixture
def card(write, tmp_path):
    file = tmp_path / "card.md"
    model_card([write("run")], at=file).write(file)
    return file


def test_a_card_that_nobody_touched_is_verified(card):
    assert verify_card(card) == []


@pytest.mark.parametrize(
    ("old", "new"), [("4/12", "5/12"), ("value: 33.33", "value: 43.33"), ("MATH-500: 0 runs", "MATH-500: 1 run")]
)
def test_a_number_that_was_changed_is_found_with_its_line(card, old, new):
    lines = card.read_text().splitlines()
    place = next(number for number, line in enumerate(lines, start=1) if old in line)
    card.write_text(card.read_text().replace(old, new))
    (fault,) = verify_card(card)
    assert fault.startswith(f"line {place}: ")
    assert old in fault.split("the runs say")[1]


def test_a_line_that_was_added_or_taken_out_is_found(card):
    text = card.read_text()
    card.write_text(text.replace("## What is not claimed", "Best model ever.\n\n## What is not claimed"))
    assert len(verify_card(card)) == 2
    card.write_text(text.replace("- GSM8K: 0 runs\n", ""))
    assert "the runs say '- GSM8K: 0 runs'" in verify_card(card)[0]


def test_a_state_that_was_changed_is_found(card, write):
    states = sorted((card.parent / "run" / "problems").glob("*/*.json"))
    wrong = next(file for file in states if '"outcome": "wrong"' in file.read_text())
    wrong.unlink()
    assert verify_card(card)


def test_the_line_for_machines_cannot_hide_text_that_is_shown(card):
    text = card.read_text()
    card.write_text(text.replace('"kind": "model"', '"kind": "model", "x": "--> <h1>99 %</h1> <!--"'))
    with pytest.raises(ConfigError, match="does not say what it was made of"):
        verify_card(card)


@pytest.mark.parametrize("end", ["-->", "--!>"])
def test_no_name_ends_the_line_for_machines(write, decision, end):
    last = model_card([write("run")], decision=decision(reasons=[f"{end} <h1>99 %</h1>"])).markdown.splitlines()[-1]
    assert (last.count("<"), last.count(">")) == (1, 1)


def test_a_line_break_that_is_none_in_markdown_is_found(card):
    card.write_text(card.read_text().replace("## What is not claimed\n", "## What is not claimed\f"))
    assert verify_card(card)


@pytest.fixture
def hub_card(write, run_folders, tmp_path):
    file = tmp_path / "card.md"
    model_card([write("run", problems=run_folders.problem_set(12, name="math-500"))], at=file).write(file)
    return file


def test_an_eval_results_file_of_no_run_is_found(hub_card):
    (hub_card.parent / ".eval_results" / "openai_gsm8k.yaml").write_text("- value: 99")
    assert verify_card(hub_card) == [".eval_results/openai_gsm8k.yaml: is of no run"]


def test_an_eval_results_file_that_was_changed_is_found(hub_card):
    (file,) = (hub_card.parent / ".eval_results").iterdir()
    file.write_text(file.read_text().replace("33.33", "93.33"))
    assert verify_card(hub_card) == [f".eval_results/{file.name}: is not what the runs say"]


def test_a_card_on_a_hub_set_is_verified_without_its_eval_results(hub_card):
    shutil.rmtree(hub_card.parent / ".eval_results")
    assert verify_card(hub_card) == []


def test_notes_are_kept_and_not_compared(card, write):
    text = card.read_text()
    start = text.index("-->\n<!-- end of notes")
    card.write_text(text[:start] + "-->\nOur own words: 99 %.\n<!-- end of notes" + text[start + 21 :])
    assert "Our own words" in card.read_text()
    assert verify_card(card) == []
    model_card([read_run(card.parent / "run")], at=card).write(card)
    assert "Our own words: 99 %." in card.read_text()


def test_a_run_that_has_moved_is_found_by_its_fingerprint(card):
    moved = card.parent / "moved"
    shutil.move(card.parent / "run", moved)
    with pytest.raises(ConfigError):
        verify_card(card)
    assert verify_card(card, [read_run(moved)]) == []


def test_a_run_that_the_card_was_not_made_of_is_refused(card, write):
    with pytest.raises(ConfigError, match="none of the runs given has the fingerprint"):
        verify_card(card, [write("other", weights="9" * 64)])


@pytest.mark.parametrize("text", ["", "# A card\n", "<!-- made of: {} -->", "<!-- made of: [ -->"])
def test_what_is_no_card_is_refused(tmp_path, text):
    (tmp_path / "card.md").write_text(text)
    with pytest.raises(ConfigError, match="wanted a card of `veriward card`"):
        verify_card(tmp_path / "card.md")


def test_a_file_that_is_no_card_is_not_overwritten(write, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match="is no card of this package"):
        model_card([write("run")]).write(tmp_path / "README.md")
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_card_with_a_decision_is_verified_without_its_file(write, decision, tmp_path):
    file = tmp_path / "card.md"
    model_card([write("run")], decision=decision(), at=file).write(file)
    (tmp_path / "decision.json").unlink()
    assert verify_card(file) == []


def test_a_decision_is_held_against_its_file(write, decision, tmp_path):
    file = tmp_path / "card.md"
    model_card([write("run")], decision=decision(reasons=["step-2: +90.0 points"]), at=file).write(file)
    assert unchecked(file) == ["decision"]
    assert "+90.0" in verify_card(file, decision=decision())[0]


def test_a_drill_is_not_held_against_a_model_card(card):
    with pytest.raises(ConfigError, match="leave out --drill"):
        verify_card(card, drill=[])


# ------------------------------------------------------------------------------------------------------- system card


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """The drill's texts through the agent: with tools under the oracle gate, and alone."""
    folder = tmp_path_factory.mktemp("agents")
    twelve = frozen_twelve()
    questions = {problem.id: problem.question for problem in twelve.problems}
    generator = ScriptedGenerator(SCRIPT, questions, name="twelve")
    run_agent(generator, twelve, toolbox("strict"), folder / "tools", settings=AgentSettings(answer_tokens=192))
    alone = ScriptedGenerator({name: [r"\boxed{1}"] for name in questions}, questions, name="twelve")
    plain = AgentSettings(tools=False, gate=Gate.NEVER, answer_tokens=192)
    run_agent(alone, twelve, toolbox("strict"), folder / "plain", settings=plain)
    return folder


def test_a_system_card_has_first_and_corrected_side_by_side_and_says_what_gated(agents):
    text = system_card([read_run(agents / "tools"), read_run(agents / "plain")]).markdown
    assert "| tools | oracle-gated | 7/12 = 58.3 % | 32.0 to 80.7 % | 9/12 = 75.0 %" in text
    assert "'oracle-gated'" in text
    for wanted in ("right tool", "by the executor", "plain", "What is not claimed", "4,096 bits"):
        assert wanted in text


def test_controls_that_were_not_run_are_named(agents):
    text = system_card([read_run(agents / "tools")]).markdown
    assert "Control always_once: not run" in text
    assert "Control reference_free: not run" in text


def test_the_drill_gives_the_injected_faults_with_their_paths(agents, tmp_path):
    run_drill(tmp_path / "drill")
    text = system_card([read_run(agents / "tools")], drill=drill_rows(tmp_path / "drill")).markdown
    assert "| calculator-01 | timeout -> executor again -> 761 -> complete/correct | yes |" in text


def test_a_system_card_is_verified(agents, tmp_path):
    file = tmp_path / "system.md"
    system_card([read_run(agents / "tools"), read_run(agents / "plain")], at=file).write(file)
    assert verify_card(file) == []
    file.write_text(file.read_text().replace("7/12 =", "8/12 =", 1))
    assert len(verify_card(file)) == 1


def test_a_tool_number_in_a_model_card_is_an_error(agents):
    with pytest.raises(ConfigError, match="a model card is about the weights alone"):
        model_card([read_run(agents / "tools")])


def test_a_system_card_without_tools_is_an_error(agents, write):
    with pytest.raises(ConfigError, match="has no tools"):
        system_card([read_run(agents / "plain")])
    with pytest.raises(ConfigError, match="is no run of the tool agent"):
        system_card([write("run")])


def test_a_run_on_a_folder_of_problems_is_named_by_it(tmp_path, run_folders, write_jsonl):
    file = write_jsonl({"id": "a", "question": "6 * 8?", "reference": "48"})
    run = run_folders.write_run(tmp_path / "run", {"a": r"\boxed{48}"}, problems=load_problems(file))
    assert "type: problems.jsonl" in model_card([run]).markdown
