from __future__ import annotations

import json

import pytest

from veriward.eval.comparison import MCNEMAR, Pairs, compare_runs, compare_seeds, compare_with
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("scipy")
pytest.importorskip("statsmodels")


def answers(right, count=20):
    """Right for the problems whose number is in `right`."""
    return {f"p{n}": rf"\boxed{{{n + 1 if n in right else 0}}}" for n in range(count)}


def sampled(right, count=20, samples=4):
    """`right` of the samples of every problem are right, for each problem's number."""
    return {
        f"p{n}": [rf"\boxed{{{n + 1 if sample < right(n) else 0}}}" for sample in range(samples)] for n in range(count)
    }


@pytest.fixture
def write(run_folders, tmp_path):
    def write(name, texts, **options):
        return run_folders.write_run(tmp_path / name, texts, problems=run_folders.problem_set(20), **options)

    return write


def test_problems_are_paired(write):
    found = compare_runs(write("a", answers(range(8))), write("b", answers(range(2, 18)), weights="1" * 64))
    assert found.pairs == Pairs(both=6, only_first=2, only_second=10, neither=2)
    assert found.difference == pytest.approx(0.4)
    assert (found.test, found.p_value) == (MCNEMAR, pytest.approx(0.0386, abs=1e-4))
    assert found.interval[0] < 0.4 < found.interval[1]


def test_every_problem_with_another_outcome_is_named(write):
    found = compare_runs(write("a", answers({0, 1})), write("b", answers({1, 2})))
    assert [(change.problem, change.first, change.second, change.gain) for change in found.changes] == [
        ("p0", ("correct",), ("wrong",), -1.0),
        ("p2", ("wrong",), ("correct",), 1.0),
    ]


def test_samples_are_compared_by_a_bootstrap_over_problems(write):
    found = compare_runs(write("a", sampled(lambda n: n % 3)), write("b", sampled(lambda n: n % 3 + 1)))
    assert found.pairs is None
    assert found.difference == pytest.approx(0.25)
    assert (found.interval, found.p_value) == (None, None)  # every problem gained the same: no spread
    other = compare_runs(write("c", sampled(lambda n: n % 3)), write("d", sampled(lambda n: (n + n // 5) % 4)))
    assert other.test == "paired bootstrap over clusters by problem"
    assert 0 < other.p_value <= 1


def test_the_same_seed_gives_the_same_interval(write):
    first, second = write("a", answers(range(8))), write("b", answers(range(4, 16)))
    assert compare_runs(first, second) == compare_runs(first, second)


def test_turned_around_the_difference_changes_its_sign(write):
    first, second = write("a", answers(range(8))), write("b", answers(range(2, 18)))
    there, back = compare_runs(first, second), compare_runs(second, first)
    assert (back.difference, back.p_value) == (-there.difference, there.p_value)


def test_a_run_beside_itself_shows_no_difference(write):
    run = write("a", answers(range(8)))
    found = compare_runs(run, run)
    assert (found.difference, found.p_value, found.changes, found.compute_equal) == (0.0, 1.0, (), True)


def test_few_clusters_are_no_evidence(write):
    found = compare_runs(write("a", answers(range(8))), write("b", answers(range(18))), cluster="subject")
    assert (found.p_value, found.interval) == (None, None)
    assert found.test == "undefined: 2 clusters by 'subject', wanted at least 10"


def test_other_contracts_are_refused(write):
    with pytest.raises(ConfigError, match=r"graded under different contracts, v3 .* and v2 "):
        compare_runs(write("a", answers({0})), write("b", answers({0}), contract="v2"))


def test_other_problems_are_refused(write, run_folders, tmp_path):
    other = run_folders.write_run(tmp_path / "b", answers({0}, 12))
    with pytest.raises(ConfigError, match="asked different problems"):
        compare_runs(write("a", answers({0})), other)


def test_another_number_of_samples_is_refused(write):
    with pytest.raises(ConfigError, match="1 and 4 samples a problem"):
        compare_runs(write("a", answers({0})), write("b", sampled(lambda n: 1)))


def test_only_problems_that_are_complete_in_both_are_compared(write):
    texts = answers(range(20))
    found = compare_runs(write("a", {f"p{n}": texts[f"p{n}"] for n in range(12)}), write("b", texts))
    assert (found.problems, found.first.missing) == (12, 8)


def test_runs_without_a_common_problem_are_refused(write):
    texts = answers(range(20))
    with pytest.raises(ConfigError, match="no problem is complete in both"):
        compare_runs(write("a", {"p0": texts["p0"]}), write("b", {"p1": texts["p1"]}))


def test_longer_responses_are_not_equal_compute(write):
    short = answers(range(8))
    found = compare_runs(write("a", short), write("b", {name: f"Well, {text}" for name, text in short.items()}))
    assert found.compute_equal is False
    assert found.compute[1] == "tokens a response: 9.0 and 15.0"


def test_what_else_differs_is_said(write):
    found = compare_runs(write("a", answers({0})), write("b", answers({0}), max_new_tokens=65, weights="1" * 64))
    assert any("max_new_tokens 64 there, 65 now" in line for line in found.settings)
    assert any("weights_sha256" in line for line in found.settings)


def test_several_comparisons_are_adjusted_by_holm(write):
    base = write("a", answers(range(8)))
    found = compare_with(base, [write("b", answers(range(18))), write("c", answers(range(8)))])
    assert [comparison.adjusted_p for comparison in found] == [pytest.approx(2 * found[0].p_value), 1.0]


def test_a_comparison_is_json(write):
    found = compare_runs(write("a", answers(range(8))), write("b", answers(range(2, 18))))
    row = json.loads(json.dumps(found.to_row(), allow_nan=False))
    assert row["pairs"]["only_second"] == 10
    assert row["first"]["accuracy"]["total"] == 20


def test_several_training_seeds_have_a_mean_a_spread_and_two_intervals(write):
    base = write("base", answers(range(5)))
    seeds = [write(f"seed-{n}", answers(range(n + 6)), weights=f"{n + 1}" * 64) for n in range(4)]
    found = compare_seeds(base, seeds)
    assert found.differences == pytest.approx((0.05, 0.10, 0.15, 0.20))
    assert (found.mean, found.spread) == (pytest.approx(0.125), pytest.approx(0.0645, abs=1e-3))
    assert found.over_seeds == pytest.approx((0.022, 0.228), abs=1e-3)
    assert found.over_problems[0] < 0.125 < found.over_problems[1]


def test_two_seeds_have_no_interval_over_seeds(write):
    base = write("base", answers(range(5)))
    seeds = [write(f"seed-{n}", answers(range(n + 6)), weights=f"{n + 1}" * 64) for n in range(2)]
    assert compare_seeds(base, seeds).over_seeds is None


def test_one_seed_is_no_recipe(write):
    with pytest.raises(ConfigError, match="1 training seed to compare with it; wanted at least 2"):
        compare_seeds(write("base", answers({0})), [write("seed", answers({1}))])
