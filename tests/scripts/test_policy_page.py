"""docs/policy.md is what the rules and cases make of it."""

from veriward.rewards import get_contract
from veriward.rewards.contracts.v3.rules import structure
from veriward.scripts import policy_page


def test_the_page_is_the_one_that_the_code_makes():
    assert policy_page.PAGE.read_text(encoding="utf-8") == policy_page.page(), (
        "run: python -m veriward.scripts.policy_page --write"
    )


def test_every_rule_has_a_case():
    decided = {policy_page.rule_of(case) for case in get_contract("v3").read_cases()}
    assert {rule.__name__ for rule in structure.RULES} - decided == set()
