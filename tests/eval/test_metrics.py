from __future__ import annotations

import itertools

import pytest

from veriward.eval.metrics import Rate, clustered_interval, ks, pass_at_k, summarise

pytest.importorskip("scipy")


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


def test_the_clustered_interval_is_wider_than_one_that_counts_every_sample():
    rates = [0.0, 1.0] * 10
    low, high = clustered_interval(rates)
    wilson = Rate(successes=80, total=160).interval()
    assert (low < wilson[0], high > wilson[1]) == (True, True)


@pytest.mark.parametrize("rates", [[0.0, 1.0] * 4, [0.5] * 50], ids=["too few problems", "no spread"])
def test_the_clustered_interval_can_be_undefined(rates):
    assert clustered_interval(rates) is None


def rows(*outcomes: tuple[str, str]):
    return [
        {"id": name, "outcome": outcome, "format_valid": outcome == "correct", "truncated": False, "tokens": 10}
        for name, outcome in outcomes
    ]


def test_what_could_not_be_decided_is_not_correct_and_is_counted_apart():
    summary = summarise(
        rows(("a", "correct"), ("b", "unsupported"), ("c", "timeout")), contract="v2", samples=1, unreadable={}
    )
    assert str(summary.accuracy) == "1/3 = 33.3%"
    assert (summary.outcomes["unsupported"], summary.outcomes["timeout"], summary.outcomes["wrong"]) == (1, 1, 0)


def test_a_summary_of_samples_has_pass_at_k_over_problems():
    summary = summarise(
        rows(("a", "correct"), ("a", "wrong"), ("b", "wrong"), ("b", "wrong")), contract="v2", samples=2, unreadable={}
    )
    assert summary.pass_at_k == {1: 0.25, 2: 0.5}
