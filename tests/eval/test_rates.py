from __future__ import annotations

import itertools

import pytest

from veriward.eval.rates import (
    Rate,
    clustered_interval,
    holm,
    ks,
    mcnemar,
    pass_at_k,
    pass_hat_k,
    smallest_difference,
)

pytest.importorskip("scipy")
pytest.importorskip("statsmodels")


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        (9, 12, 0.47, 0.91),
        (105, 128, 0.745, 0.877),
        (41, 256, 0.120, 0.210),
        (178, 1000, 0.156, 0.203),
        (0, 20, 0, 0.161),
    ],
)
def test_the_interval_is_wilsons(successes, total, low, high):
    assert Rate(successes=successes, total=total).interval() == pytest.approx((low, high), abs=0.005)


def test_a_rate_over_nothing_is_undefined():
    rate = Rate(successes=0, total=0)
    assert (rate.value, rate.interval(), str(rate)) == (None, None, "0/0")


def test_a_rate_is_shown_with_its_denominator():
    assert str(Rate(successes=178, total=1000)) == "178/1000 = 17.8%"


@pytest.mark.parametrize(("successes", "total"), [(-1, 3), (4, 3)])
def test_an_impossible_rate_is_refused_at_birth(successes, total):
    with pytest.raises(ValueError, match="0 <= successes <= total"):
        Rate(successes=successes, total=total)


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (6, 1, 4), (4, 4, 2), (4, 0, 4)])
def test_pass_at_k_is_the_share_of_draws_that_hold_a_correct_sample(n, c, k):
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k([n], [c], k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_pass_at_k_averages_over_problems():
    assert pass_at_k([2, 2], [0, 2], 1) == 0.5


def test_pass_at_k_of_thousands_of_samples_is_finite():
    assert pass_at_k([20_000], [1], 10_000) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("samples", "correct", "k"), [([2], [1], 3), ([], [], 1), ([2], [3], 1), ([2], [1], 0), ([2, 2], [1], 1)]
)
def test_pass_at_k_outside_its_domain_is_undefined(samples, correct, k):
    with pytest.raises(ValueError):  # noqa: PT011
        pass_at_k(samples, correct, k)


@pytest.mark.parametrize(("samples", "expected"), [(1, []), (2, [1, 2]), (4, [1, 2, 4]), (6, [1, 2, 4, 6])])
def test_pass_at_k_is_shown_for_powers_of_two_and_the_number_of_samples(samples, expected):
    assert ks(samples) == expected


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 3, 2), (6, 1, 4), (4, 4, 2), (4, 0, 4)])
def test_pass_hat_k_is_the_share_of_draws_that_are_all_correct(n, c, k):
    draws = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_hat_k([n], [c], k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_the_clustered_interval_is_wider_than_one_that_counts_every_sample():
    values = [0.0] * 8 + [1.0] * 8
    problems = [n // 8 for n in range(160)]
    low, high = clustered_interval(values * 10, problems)
    wilson = Rate(successes=80, total=160).interval()
    assert (low < wilson[0], high > wilson[1]) == (True, True)


def test_the_clustered_interval_of_equal_clusters_is_students_on_their_means():
    from scipy.stats import ttest_1samp

    means = [0.1 * n for n in range(10)]
    values = [value for mean in means for value in (mean - 0.05, mean + 0.05)]
    expected = ttest_1samp(means, 0).confidence_interval()
    found = clustered_interval(values, [n // 2 for n in range(20)])
    assert found == pytest.approx((expected.low, expected.high), rel=0.01)


@pytest.mark.parametrize(
    ("values", "clusters"),
    [([0.0, 1.0] * 20, [n % 9 for n in range(40)]), ([0.5] * 50, range(50))],
    ids=["too few clusters", "no spread"],
)
def test_the_clustered_interval_can_be_undefined(values, clusters):
    assert clustered_interval(values, list(clusters)) is None


@pytest.mark.parametrize(
    ("only_first", "only_second", "p_value"),
    [(0, 0, 1.0), (0, 1, 1.0), (0, 5, 0.0625), (0, 6, 0.03125), (3, 3, 1.0), (10, 25, 0.01667)],
)
def test_mcnemar_is_exact(only_first, only_second, p_value):
    assert mcnemar(only_first, only_second) == pytest.approx(p_value, rel=1e-3)


def test_holm_adjusts_each_p_value_for_those_that_are_left():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_nothing_found_among_n_is_bounded_by_three_over_n():
    assert Rate(successes=0, total=300).upper() == pytest.approx(3 / 300, rel=0.01)


@pytest.mark.parametrize(("problems", "least"), [(12, None), (128, 0.109), (256, 0.078), (1000, 0.0395)])
def test_the_smallest_difference_that_a_paired_test_finds(problems, least):
    found = smallest_difference(problems)
    assert found == (None if least is None else pytest.approx(least, abs=0.004))


def test_a_paired_test_finds_the_smallest_difference_four_times_in_five():
    import numpy

    draw = numpy.random.default_rng(0)
    difference = smallest_difference(256, 0.2)
    gained, lost = (0.2 + difference) / 2, (0.2 - difference) / 2
    tables = draw.multinomial(256, [gained, lost, 1 - gained - lost], size=600)
    found = sum(mcnemar(int(worse), int(better)) < 0.05 for better, worse, _ in tables) / 600
    assert 0.72 < found < 0.86
