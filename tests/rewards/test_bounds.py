"""Cost: every answer is decided or refused, whatever a model wrote, and honest answers are rarely refused.

The times themselves are printed by scripts/bench_verifier.py.
"""

from collections import Counter

import pytest

from veriward.rewards import Outcome, verify, verify_answer
from veriward.scripts.answer_strings import grammar_pairs, hostile_pairs, noise_pairs


def text_of(parts):
    return "".join(text * count for text, count in parts)


@pytest.mark.parametrize("contract", ["v1", "v2"])
def test_every_cost_bomb_ends_as_written(contract, read_cases):
    for case in read_cases("cost_bombs.jsonl"):
        verdict = verify_answer(text_of(case["parts"]), case["reference"], contract=contract)
        assert verdict.reason == case[contract], case["id"]


@pytest.mark.parametrize("contract", ["v1", "v2"])
def test_a_cost_bomb_in_a_box_is_no_worse(contract, read_cases):
    for case in read_cases("cost_bombs.jsonl"):
        response = rf"\boxed{{{text_of(case['parts'])}}}"
        assert verify(response, case["reference"], contract=contract).outcome in Outcome


KNOWN_FAULTS = {"pf-s117", "pf-s198", "pf-s224", "pf-s225", "pf-s226", "pf-s227", "pf-s228"}
"""`2\\frac{1}{2}` read as a product, `0^0` equal to 1, white space that joins numbers: documented for v1 and v2."""


@pytest.mark.parametrize("contract", ["v1", "v2"])
def test_the_labelled_preflight_cases_are_refused_or_never_equal_to_their_trap(contract, shared_folder, read_rows):
    for case in read_rows(shared_folder / "cases/preflight_cases.jsonl"):
        expression = case["expression"] or text_of(case["parts"])
        verdict = verify_answer(expression, case.get("reference", "7"), contract=contract)
        assert not verdict.correct or case["id"] in KNOWN_FAULTS, case["id"]
        if case["expect"] == "reject" and contract == "v2":
            assert not verdict.supported, case["id"]
        verify_answer(expression, expression, contract=contract)


@pytest.mark.slow
@pytest.mark.parametrize("contract", ["v1", "v2"])
def test_thousands_of_strings_raise_nothing_and_at_most_half_of_the_grammar_is_refused(contract):
    refused = Counter()
    for candidate, reference in grammar_pairs(2_000, seed=1, contract=contract):
        verdict = verify(rf"\boxed{{{candidate}}}", reference, contract=contract)
        refused[verdict.supported] += 1
    for candidate, reference in noise_pairs(2_000, seed=1):
        assert verify(candidate, reference, contract=contract).contract == contract
    for candidate, reference in hostile_pairs(500, seed=1):
        assert verify_answer(candidate, reference, contract=contract).contract == contract
    assert refused[False] <= 1_000, refused


@pytest.mark.slow
@pytest.mark.parametrize("contract", ["v1", "v2"])
def test_which_side_is_the_reference_does_not_change_what_is_correct(contract):
    for candidate, reference in [*grammar_pairs(500, seed=2, contract=contract), *hostile_pairs(200, seed=2)]:
        one = verify_answer(candidate, reference, contract=contract)
        other = verify_answer(reference, candidate, contract=contract)
        assert one.correct == other.correct, (candidate, reference)


@pytest.mark.parametrize("contract", ["v1", "v2"])
def test_a_caller_whose_stack_is_nearly_full_gets_a_verdict(contract):
    nested = "(" * 15 + "x" + "+1)/2" * 15

    def deeper(levels):
        return deeper(levels - 1) if levels else verify_answer(nested, "y", contract=contract)

    assert deeper(700).outcome in Outcome
