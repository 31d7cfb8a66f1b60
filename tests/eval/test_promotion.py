from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from veriward.eval.promotion import Measures, by_step, decide, decide_runs, paired, record
from veriward.eval.promotion_rule import Guards, Rule, read_rule, stamp_path, stamped
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("yaml")
pytest.importorskip("statsmodels")

SAME = Measures(format_valid=0.9, unsupported=0.0, truncated=0.1, mean_tokens=100.0)
RULE = Rule(
    path="rule.yaml",
    sha256="0" * 64,
    name="test",
    contract="v3",
    set_sha256="0" * 64,
    n=256,
    alpha=0.05,
    candidates=2,
    minimum_gain=0.02,
    guards=Guards(format_valid=0.02, unsupported=0.01, truncated=0.02, mean_tokens=0.5),
)


def candidate(gained, lost, *, name="step-1", measures=SAME):
    return paired(name, lost, gained, 256, measures)


def test_a_gain_that_is_no_chance_is_promoted():
    decision = decide(RULE, SAME, [candidate(50, 12)])
    assert (decision.decision, decision.candidate) == ("promote", "step-1")


def test_the_base_is_kept_where_there_is_no_evidence():
    decision = decide(RULE, SAME, [candidate(20, 29)])  # 32/256 beside 41/256
    assert decision.decision == "keep"
    assert any("p = " in reason for reason in decision.reasons)
    assert decision.reasons[-1] == "where there is no evidence, the rule keeps the base"


def test_the_same_is_undecided_where_the_rule_says_so():
    assert decide(replace(RULE, no_evidence="undecided"), SAME, [candidate(20, 29)]).decision == "undecided"


def test_a_candidate_that_is_surely_worse_is_no_open_question():
    decision = decide(replace(RULE, no_evidence="undecided"), SAME, [candidate(5, 45)])
    assert decision.decision == "keep"


def test_the_level_is_shared_out_among_the_candidates_that_were_announced():
    close = [candidate(30, 13)]
    assert decide(replace(RULE, candidates=1), SAME, close).decision == "promote"
    assert decide(replace(RULE, candidates=5), SAME, close).decision == "keep"


def test_too_small_a_gain_is_not_promoted():
    decision = decide(replace(RULE, minimum_gain=0.2), SAME, [candidate(50, 12)])
    assert decision.decision == "keep"
    assert "a gain of +14.8 points, wanted at least +20.0" in decision.reasons[0]


@pytest.mark.parametrize(
    ("measures", "named"),
    [
        (replace(SAME, format_valid=0.87), "guard format_valid: +3.0 points worse than the base, allowed +2.0"),
        (replace(SAME, unsupported=0.02), "guard unsupported"),
        (replace(SAME, truncated=0.13), "guard truncated"),
        (replace(SAME, mean_tokens=160.0), "guard mean_tokens: 60% longer than the base, allowed 50%"),
    ],
)
def test_a_broken_guard_keeps_the_base(measures, named):
    decision = decide(RULE, SAME, [candidate(50, 12, measures=measures)])
    assert decision.decision == "keep"
    assert named in decision.reasons[0]


def test_a_limit_that_is_met_exactly_is_kept():
    met = replace(SAME, format_valid=0.9 - 0.02, mean_tokens=150.0)
    assert decide(RULE, SAME, [candidate(50, 12, measures=met)]).decision == "promote"


def test_of_equal_gains_the_earlier_step_is_taken():
    both = [candidate(50, 12, name="step-1"), candidate(51, 12, name="step-2")]
    assert decide(replace(RULE, tie=0.005), SAME, both).candidate == "step-1"
    assert decide(RULE, SAME, both).candidate == "step-2"


def test_five_equal_candidates_are_promoted_in_under_five_of_a_hundred_runs():
    from veriward.scripts.simulate_promotion import Setting, promoted

    found = promoted(Setting("", 128, 5, 0.20, 0.0), 2000, 0)
    assert found.rule < 0.05
    assert found.higher > 0.9


def test_a_gain_of_fifteen_points_is_found_nearly_always():
    from veriward.scripts.simulate_promotion import Setting, promoted

    assert promoted(Setting("", 256, 1, 0.25, 0.15), 2000, 0).rule > 0.95


# -------------------------------------------------------------------------------------------------- files and runs

TEXT = """
name: sums
contract: v3
set_sha256: {sha256}
n: 40
metric: accuracy
test: paired
alpha: 0.05
candidates: 2
minimum_gain: 0.05
guards: {{format_valid: 0.1, truncated: 0.1}}
"""


@pytest.fixture
def problems(run_folders):
    return run_folders.problem_set(40)


@pytest.fixture
def rule_file(tmp_path, problems):
    file = tmp_path / "rule.yaml"
    file.write_text(TEXT.format(sha256=problems.sha256))
    return file


@pytest.fixture
def write(run_folders, problems, tmp_path):
    def write(name, right, weights, **options):
        texts = {f"p{n}": rf"\boxed{{{n + 1 if n in right else 0}}}" for n in range(40)}
        options = {"problems": problems, "model": name, "weights": weights * 64, **options}
        return run_folders.write_run(tmp_path / name, texts, **options)

    return write


def test_stored_runs_are_decided(rule_file, write):
    base, better, same = write("base", range(10), "0"), write("better", range(28), "1"), write("same", range(11), "2")
    rule = read_rule(rule_file)
    assert decide_runs(rule, base, [better, same]).candidate == "better"
    assert decide_runs(rule, base, [same]).decision == "keep"


def test_the_same_runs_give_the_same_record(rule_file, write):
    base, better = write("base", range(10), "0"), write("better", range(28), "1")
    rule = read_rule(rule_file)
    stamp, _ = stamped(rule)
    rows = [record(rule, stamp, decide_runs(rule, base, [better]), base, [better], None) for _ in range(2)]
    assert json.dumps(rows[0]) == json.dumps(rows[1])
    assert rows[0]["rule_sha256"] == rule.sha256


@pytest.mark.parametrize(
    ("line", "other", "message"),
    [
        ("n: 40", "n: 41", "asks 40 problems; the rule says n: 41"),
        ("contract: v3", "contract: v2", "the rule is about contract v2"),
        ("candidates: 2", "candidates: 1", "2 candidates, and the rule announces 1"),
    ],
)
def test_runs_that_the_rule_is_not_about_are_refused(rule_file, write, line, other, message):
    rule_file.write_text(rule_file.read_text().replace(line, other))
    with pytest.raises(ConfigError, match=message):
        decide_runs(read_rule(rule_file), write("base", {0}, "0"), [write("a", {1}, "1"), write("b", {2}, "2")])


def test_another_problem_set_is_refused(rule_file, run_folders, tmp_path, write):
    other = run_folders.write_run(tmp_path / "other", {"p0": r"\boxed{1}"})
    with pytest.raises(ConfigError, match="the rule is about"):
        decide_runs(read_rule(rule_file), write("base", {0}, "0"), [other])


def test_a_candidate_that_was_asked_otherwise_is_refused(rule_file, write):
    with pytest.raises(
        ConfigError, match=r"was asked otherwise than the base: generation\.max_new_tokens 64 there, 65"
    ):
        decide_runs(read_rule(rule_file), write("base", {0}, "0"), [write("longer", {0}, "1", max_new_tokens=65)])


def test_the_base_under_another_name_is_no_candidate(rule_file, write):
    with pytest.raises(ConfigError, match="copy: has the weights of base"):
        decide_runs(read_rule(rule_file), write("base", {0}, "0"), [write("copy", {0}, "0")])


def test_an_incomplete_run_is_refused(rule_file, run_folders, problems, tmp_path, write):
    half = run_folders.write_run(tmp_path / "half", {"p0": r"\boxed{1}"}, problems=problems, weights="1" * 64)
    with pytest.raises(ConfigError, match="39 responses are missing"):
        decide_runs(read_rule(rule_file), write("base", {0}, "0"), [half])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alpha: 0.05", "alpha: 5", "alpha is 5; wanted a number above 0 and at most 0.2"),
        ("n: 40", "n: many", "n is 'many'; wanted the number of problems"),
        ("n: 40", "m: 40", "unknown key m; wanted one of name"),
        ("alpha: 0.05\n", "", "alpha is missing"),
        ("metric: accuracy", "metric: vibes", "metric is 'vibes'; wanted accuracy"),
        ("format_valid: 0.1", "fromat_valid: 0.1", "unknown key guards.fromat_valid"),
        ("name: sums", "name: [", "no YAML"),
        ("contract: v3", "contract: v9", "wanted one of v1, v2, v3"),
        ("alpha: 0.05", "alpha: 0.05\nalpha: 0.2", "key 'alpha' stands twice"),
        ("alpha: 0.05", "alpha: .nan", "alpha is nan"),
        ("contract: v3", "contract: [v3]", r"contract is \['v3'\]; wanted one of v1, v2, v3"),
        ("alpha: 0.05", "? [alpha]\n: 0.05", "a key that is no word"),
        ("truncated: 0.1", "mean_tokens: .inf", "guards.mean_tokens is inf"),
    ],
)
def test_a_rule_with_a_fault_is_refused_in_one_line(rule_file, old, new, message):
    rule_file.write_text(rule_file.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=message) as refused:
        read_rule(rule_file)
    assert "\n" not in str(refused.value)


def test_a_rule_that_stood_before_its_outputs_has_no_complaint(rule_file, write):
    rule = read_rule(rule_file)
    stamp, new = stamped(rule)
    assert new
    runs = [write("base", {0}, "0"), write("a", {1}, "1")]
    for run in runs:
        later = os.stat(stamp_path(rule)).st_mtime + 5
        for name in ("run.json", "problems.jsonl"):
            os.utime(run.path / name, (later, later))
    assert stamped(rule) == (stamp, False)
    assert stamp.complaints(rule, runs) == []


def test_a_run_that_was_verified_again_may_hold_older_responses(rule_file, write, tmp_path):
    from veriward.eval.reverify import reverify

    old = write("old", range(28), "1", contract="v2")
    rule = read_rule(rule_file)
    stamp, _ = stamped(rule)
    new = reverify(old.path, tmp_path / "new", contract="v3").run
    assert "new was made by reverify" in stamp.complaints(rule, [new])[0]


def test_candidates_are_put_in_the_order_of_their_steps(write):
    runs = [write(f"checkpoint-{step}", {0}, str(n)) for n, step in enumerate((200, 40, 1000))]
    assert [run.name for run in by_step(runs)] == ["checkpoint-40", "checkpoint-200", "checkpoint-1000"]
    named = [write("late", {0}, "8"), runs[0]]
    assert by_step(named) == named


def test_a_rule_that_was_changed_after_its_stamp_is_named(rule_file):
    stamp, _ = stamped(read_rule(rule_file))
    rule_file.write_text(rule_file.read_text().replace("alpha: 0.05", "alpha: 0.1"))
    assert "the rule was changed after it was stamped" in stamp.complaints(read_rule(rule_file), [])[0]


def test_outputs_that_are_older_than_the_stamp_are_named(rule_file, write):
    run = write("early", {0}, "0")
    for name in ("run.json", "problems.jsonl"):
        os.utime(run.path / name, (1e9, 1e9))
    rule = read_rule(rule_file)
    assert "early was begun at 2001-09-09" in stamped(rule)[0].complaints(rule, [run])[0]


def test_a_damaged_stamp_is_refused(rule_file):
    rule = read_rule(rule_file)
    stamp_path(rule).write_text("{}")
    with pytest.raises(ConfigError, match="is no stamp of a rule"):
        stamped(rule)
