from __future__ import annotations

from collections import Counter

import pytest

from veriward.eval.fresh_problems import TEMPLATES, fresh_problems, write_fresh
from veriward.eval.problems import load_problems
from veriward.eval.rates import FEWEST_CLUSTERS
from veriward.rewards import check_reference
from veriward.tool_agent.errors import ConfigError


def test_the_same_seed_makes_the_same_problems_and_another_does_not():
    assert fresh_problems(40, seed=1).sha256 == fresh_problems(40, seed=1).sha256
    assert fresh_problems(40, seed=1).sha256 != fresh_problems(40, seed=2).sha256


def test_the_problems_of_a_seed_are_pinned():
    assert fresh_problems(48, seed=0).sha256.startswith("35472fb9a9a72263")


def test_a_larger_set_only_adds_problems():
    assert fresh_problems(60, seed=3).problems[:20] == fresh_problems(20, seed=3).problems


@pytest.mark.parametrize("difficulty", ["easy", "standard", "hard", "mixed"])
def test_no_problem_comes_twice(difficulty):
    problems = fresh_problems(160, seed=5, difficulty=difficulty).problems
    assert len({problem.question for problem in problems}) == len({problem.id for problem in problems}) == 160


@pytest.mark.parametrize("contract", ["v1", "v2", "v3"])
def test_every_contract_reads_every_reference(contract):
    assert [p.id for p in fresh_problems(160, seed=7).problems if check_reference(p.reference, contract=contract)] == []


def test_every_template_comes_as_often_and_they_are_enough_clusters():
    counts = Counter(problem.columns["template"] for problem in fresh_problems(160, seed=0).problems)
    assert set(counts.values()) == {160 // len(TEMPLATES)}
    assert len(counts) > FEWEST_CLUSTERS


def test_a_set_on_disk_is_the_set_in_memory(tmp_path):
    made = write_fresh(tmp_path / "fresh.jsonl", 30, seed=2)
    assert load_problems(tmp_path / "fresh.jsonl").sha256 == made.sha256


@pytest.mark.parametrize(
    ("options", "message"),
    [({"count": 0}, "at least 1 problem"), ({"count": 5, "difficulty": "vile"}, "unknown difficulty 'vile'")],
)
def test_a_set_that_cannot_be_made_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        fresh_problems(seed=0, **options)


def test_a_template_that_is_used_up_is_named():
    with pytest.raises(ConfigError, match="has no more different problems"):
        fresh_problems(100_000, seed=0, difficulty="easy")
