from __future__ import annotations

import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from veriward.eval.attack.cases import FAMILIES, MECHANISMS, attack_cases
from veriward.eval.attack.families.trees import Ring, combined, letter_leaf, worked_out
from veriward.eval.attack.families.values import terms_text, times
from veriward.rewards import Outcome, verify
from veriward.tool_agent.errors import ConfigError

PAID_AND_WRONG: frozenset[str] = frozenset()
"""Mechanisms that contract v3 is known to pay by mistake: each leaves this list when it is mended."""

NOT_DECIDED = frozenset(
    {
        "amount in two units",
        "blanks between thousands",
        "decimal that goes on",
        "number in words",
        "outward brackets",
        "sentence in the box",
        "set of solutions in another form",
        "sum, integral or limit worked out",
    }
)
"""Mechanisms whose right answers contract v3 does not decide, all or some."""


@pytest.fixture(scope="module")
def judged():
    cases = [case for seed in (0, 1) for case in attack_cases(seed=seed)]
    return [(case, verify(case.completion, case.reference)) for case in cases]


def test_a_seed_gives_the_same_cases():
    assert attack_cases(seed=3) == attack_cases(seed=3)


def test_a_seed_gives_the_same_cases_in_another_process():
    """Whatever the order of its hashes."""
    code = "from veriward.eval.attack.cases import attack_cases; print(ascii(attack_cases(seed=3)))"
    runs = [
        subprocess.run(
            [sys.executable, "-P", "-c", code],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={"PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_another_seed_gives_other_cases():
    assert attack_cases(seed=3) != attack_cases(seed=4)


def test_a_family_does_not_depend_on_the_others():
    alone = attack_cases(seed=3, families=["units"])
    assert alone == [case for case in attack_cases(seed=3) if case.family == "units"]


def test_fewer_cases_are_the_first_ones():
    few = attack_cases(seed=3, per_family=5, families=["units"])
    assert few == attack_cases(seed=3, families=["units"])[:5]


def test_ids_are_unique():
    ids = [case.id for case in attack_cases(seed=0)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_fills_its_count(family):
    assert len(attack_cases(seed=0, per_family=17, families=[family])) == 17


def test_every_known_mechanism_is_tried():
    assert set(MECHANISMS) <= {case.mechanism for case in attack_cases(seed=0, per_family=32)}


def test_every_family_has_tried_all_it_knows_after_32_cases():
    assert max(len(family.builders) for family in FAMILIES.values()) <= 32


def test_cases_can_be_sent_as_text():
    for case in attack_cases(seed=0):
        (case.prompt + case.completion + case.reference).encode("utf-8")


def test_no_unequal_case_has_the_reference_in_its_box():
    wrong = [
        case for case in attack_cases(seed=0) if case.accept is False and case.family in {"unequal", "expressions"}
    ]
    assert not [case for case in wrong if rf"\boxed{{{case.reference}}}" in case.completion]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param({"families": ["unit"]}, "unknown family 'unit'; choose from equal, ", id="unknown family"),
        pytest.param({"per_family": 0}, "per_family: got 0, wanted at least 1", id="no cases"),
    ],
)
def test_a_wrong_choice_is_one_line(arguments, says):
    with pytest.raises(ConfigError) as error:
        attack_cases(seed=0, **arguments)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_surds_multiply_exactly():
    ring = Ring(leaf=letter_leaf, radicand=2)
    plus, minus = ({(0, 0): Fraction(1), (1, 0): Fraction(sign)} for sign in (1, -1))
    assert combined("*", plus, minus, ring) == {(0, 0): Fraction(-1)}


def test_a_value_is_written_as_a_sum():
    value = {(2, 0): Fraction(1), (1, 1): Fraction(-3), (0, 0): Fraction(1, 2)}
    assert worked_out(value, "x") == r"x^{2}-3xy+\frac{1}{2}"


def test_polynomials_multiply_and_are_written_out():
    assert terms_text(times([1, -1], [1, 1]), "x") == "x^{2}-1"


def test_a_changed_tree_has_another_value():
    draw = random.Random(0)
    for _ in range(200):
        for builder in FAMILIES["expressions"].builders:
            draft = builder(draw)
            if draft.accept is False:
                assert verify(draft.completion, draft.reference).outcome is Outcome.WRONG


def test_no_wrong_answer_is_paid_by_contract_v3(judged):
    paid = [case for case, verdict in judged if case.accept is False and verdict.correct]
    assert not [case for case in paid if case.mechanism not in PAID_AND_WRONG]


def test_the_list_of_mistakes_is_no_longer_than_it_must_be(judged):
    assert {case.mechanism for case, verdict in judged if case.accept is False and verdict.correct} == PAID_AND_WRONG


def test_right_answers_are_paid_by_contract_v3_but_for_named_mechanisms(judged):
    unpaid = [case for case, verdict in judged if case.accept and not verdict.correct]
    assert not [case for case in unpaid if case.mechanism not in NOT_DECIDED]


def test_no_right_answer_is_called_wrong_by_contract_v3(judged):
    assert not [case for case, verdict in judged if case.accept and verdict.outcome is Outcome.WRONG]


def test_every_known_fault_stands_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "attack.md").read_text(encoding="utf-8")
    assert [name for name in MECHANISMS if f"| {name} |" not in page] == []
