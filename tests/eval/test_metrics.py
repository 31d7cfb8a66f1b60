from __future__ import annotations

import json

import pytest

from veriward.eval.metrics import measured_errors, summarise_run, verifier_errors
from veriward.eval.runs import ContractName, read_run
from veriward.rewards import CONTRACTS, get_contract
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("scipy")
pytest.importorskip("statsmodels")


def boxed(*answers):
    return {f"p{n}": answer if answer == "nothing" else rf"\boxed{{{answer}}}" for n, answer in enumerate(answers)}


RIGHT = [str(n + 1) for n in range(12)]


def test_what_is_open_is_not_correct_and_bounds_the_accuracy(run_folders, tmp_path):
    answers = ["0", r"\int_0^1 x dx", r"\sum_{n=1}^\infty n", *RIGHT[3:10]]  # the last two were never asked
    run = run_folders.write_run(tmp_path / "run", boxed(*answers))
    summary = summarise_run(run)
    assert str(summary.accuracy) == "7/10 = 70.0%"
    assert summary.bounds.open == {"undecided": 2, "missing": 2}
    assert (str(summary.bounds.lowest), str(summary.bounds.highest)) == ("7/12 = 58.3%", "11/12 = 91.7%")
    assert summary.outcomes["wrong"] == 1


def test_a_complete_run_without_open_verdicts_has_bounds_that_meet(run_folders, tmp_path):
    summary = summarise_run(run_folders.write_run(tmp_path / "run", boxed(*RIGHT)))
    assert summary.bounds.lowest == summary.bounds.highest == summary.accuracy
    assert summary.bounds.open == {}


def test_one_response_a_problem_has_wilsons_interval(run_folders, tmp_path):
    summary = summarise_run(run_folders.write_run(tmp_path / "run", boxed(*RIGHT[:6], *["0"] * 6)))
    assert summary.interval_method == "Wilson"
    assert summary.interval == pytest.approx((0.254, 0.746), abs=0.001)


def test_several_samples_are_clustered_by_their_problem(run_folders, tmp_path):
    texts = {f"p{n}": [rf"\boxed{{{n + 1 if n < 6 or sample else 0}}}" for sample in range(4)] for n in range(12)}
    summary = summarise_run(run_folders.write_run(tmp_path / "run", texts))
    assert summary.interval_method == "clustered by problem"
    assert summary.interval[0] < summary.accuracy.interval()[0] + 0.05


def test_fewer_than_ten_clusters_have_no_interval_and_it_says_why(run_folders, tmp_path):
    summary = summarise_run(run_folders.write_run(tmp_path / "run", boxed(*RIGHT[:6], *["0"] * 6)), cluster="subject")
    assert summary.interval is None
    assert summary.interval_method == "undefined: 2 clusters by 'subject', wanted at least 10"


def test_problems_of_one_template_are_clustered_without_being_told(run_folders, tmp_path):
    problems = run_folders.problem_set(40, columns=[{"template": n // 2} for n in range(40)])
    run = run_folders.write_run(
        tmp_path / "run", boxed(*(str(n + 1 if n % 4 < 3 else 0) for n in range(40))), problems=problems
    )
    assert summarise_run(run).interval_method == "clustered by 'template'"


def test_a_column_that_a_problem_lacks_cannot_cluster(run_folders, tmp_path):
    run = run_folders.write_run(tmp_path / "run", boxed(*RIGHT))
    with pytest.raises(ConfigError, match="problem p0 has no column 'tint' to cluster by"):
        summarise_run(run, cluster="tint")


def test_samples_have_pass_at_k_and_all_of_k_and_the_majority_of_k(run_folders, tmp_path):
    texts = {"p0": [r"\boxed{1}", r"\boxed{2/2}", r"\boxed{3}", "none"]}
    problems = run_folders.problem_set(1)
    summary = summarise_run(run_folders.write_run(tmp_path / "run", texts, problems=problems))
    assert summary.pass_at_k == pytest.approx({1: 0.5, 2: 5 / 6, 4: 1.0})
    assert summary.pass_hat_k == pytest.approx({1: 0.5, 2: 1 / 6, 4: 0.0})
    assert summary.maj_at_k[4] == 1.0  # 1 and 2/2 are one answer


def test_answers_that_tie_count_by_their_share(run_folders, tmp_path):
    texts = {"p0": [r"\boxed{1}", r"\boxed{3}"]}
    summary = summarise_run(run_folders.write_run(tmp_path / "run", texts, problems=run_folders.problem_set(1)))
    assert summary.maj_at_k[2] == 0.5


def test_one_sample_has_no_pass_at_k(run_folders, tmp_path):
    summary = summarise_run(run_folders.write_run(tmp_path / "run", boxed(*RIGHT)))
    assert (summary.pass_at_k, summary.pass_hat_k, summary.maj_at_k) == ({}, {}, {})


def test_the_accuracy_is_broken_down_by_the_columns_that_sort_the_problems(run_folders, tmp_path):
    summary = summarise_run(run_folders.write_run(tmp_path / "run", boxed(*RIGHT[:6], *["0"] * 6)))
    parts = {(part.column, part.value): str(part.accuracy) for part in summary.breakdown}
    assert parts == {
        ("subject", "even"): "3/6 = 50.0%",
        ("subject", "odd"): "3/6 = 50.0%",
        ("level", "0"): "2/4 = 50.0%",
        ("level", "1"): "2/4 = 50.0%",
        ("level", "2"): "2/4 = 50.0%",
    }


def test_what_the_responses_took_is_there_for_each_correct_one(run_folders, tmp_path):
    summary = summarise_run(run_folders.write_run(tmp_path / "run", boxed(*RIGHT[:3], *["0"] * 9)))
    assert summary.cost.per_problem()["model_calls"] == 1
    assert summary.cost.per_correct()["model_calls"] == 4
    assert summary.cost.tokens == summary.tokens == sum(map(len, boxed(*RIGHT[:3], *["0"] * 9).values()))


def test_nothing_correct_has_no_cost_of_a_correct_one(run_folders, tmp_path):
    assert summarise_run(run_folders.write_run(tmp_path / "run", boxed(*["0"] * 12))).cost.per_correct() is None


def test_a_response_that_was_cut_off_is_counted_by_itself(run_folders, tmp_path):
    run = run_folders.write_run(
        tmp_path / "run", {"p0": [(r"so \boxed{1}", "length")]}, problems=run_folders.problem_set(1)
    )
    assert str(summarise_run(run).truncated) == "1/1 = 100.0%"


def test_a_summary_is_json_and_names_its_contract(run_folders, tmp_path):
    run = run_folders.write_run(tmp_path / "run", boxed(*RIGHT))
    row = json.loads(json.dumps(summarise_run(run).to_row(), allow_nan=False))
    assert (row["contract"], row["contract_fingerprint"]) == tuple(run.contract)
    assert row["accuracy"]["interval"] == pytest.approx([0.757, 1.0], abs=0.001)


def test_a_run_without_any_response_has_a_summary(run_folders, tmp_path):
    summary = summarise_run(run_folders.write_run(tmp_path / "run", {}))
    assert (summary.accuracy.value, summary.interval, summary.lengths) == (None, None, {})
    assert summary.bounds.open == {"missing": 12}


def test_a_run_that_is_read_again_has_the_same_summary(run_folders, tmp_path):
    run = run_folders.write_run(tmp_path / "run", boxed(*RIGHT[:7], *["0"] * 5))
    assert summarise_run(read_run(run.path)) == summarise_run(run)


def test_the_verifiers_error_rates_were_measured_for_every_contract_as_it_is_now():
    for name in CONTRACTS:
        contract = ContractName(name, get_contract(name).fingerprint)
        assert [error.kind for error in verifier_errors(contract)] == ["false_accept", "false_reject"], (
            f"measure {name} again: python -m veriward.scripts.measure_verifier --shared FOLDER --write"
        )


def test_the_verifiers_error_rates_are_those_of_the_labelled_cases(shared_folder):
    from veriward.scripts.bench_verifier import labelled_files
    from veriward.scripts.measure_verifier import FILE, rates

    stored = [row for row in measured_errors() if row["contract"] == "v3"]
    assert rates("v3", labelled_files(shared_folder)[FILE]) == stored


def test_another_version_of_a_contract_has_no_measured_error_rates():
    assert verifier_errors(ContractName("v3", "0" * 16)) == ()
