"""The frozen profile: no outcome here may ever change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.tool_agent.arithmetic import show
from veriward.tool_agent.result import Category, Refused
from veriward.tool_agent.tools.strict import STRICT_FUNCTIONS, evaluate_strictly


def outcome(text, functions=STRICT_FUNCTIONS):
    found = evaluate_strictly(text, functions)
    return found.category.value if isinstance(found, Refused) else show(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(25 - 7) * 6 / 9", "12.0"),
        ("10 - 4 - 3", "3"),
        ("7 // -2", "-4"),
        ("-7 % 3", "2"),
        ("2**-1", "0.5"),
        ("-2**2", "-4"),
        ("2**3**2", "512"),
        ("2**64", "18446744073709551616"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1_000 + .5", "1000.5"),
        ("-0.0", "0.0"),
        ("\t 1 + 1 ", "2"),
        ("comb(12, 3)", "220"),
        ("factorial(7) / (factorial(5) * factorial(2))", "21.0"),
        ("gcd(462, 1071)", "21"),
        ("round(sqrt(2), 6)", "1.414214"),
        ("round(2.5)", "2"),
        ("sqrt(16)", "4.0"),
        ("2**65", "resource_limit"),
        ("2**-65", "resource_limit"),
        ("((9**64)**64)**64", "resource_limit"),
        ("9**9**9", "resource_limit"),
        ("factorial(10**6)", "resource_limit"),
        ("comb(10**9, 5*10**8)", "resource_limit"),
        ("round(5, -1000000000)", "resource_limit"),
        ("-" * 300 + "1", "resource_limit"),
        ("(" * 33 + "1" + ")" * 33, "too_deep"),
        ("1" * 513, "too_long"),
        ("", "empty"),
        ("7! / (5! * 2!)", "syntax"),
        ("50%", "syntax"),
        ("1 +", "syntax"),
        ("import os", "syntax"),
        ("1if 1else 2", "syntax"),
        ("1 # one", "syntax"),
        ("1 +\n1", "syntax"),
        ("6 × 7", "non_ascii"),
        ("１", "non_ascii"),
        ("2^10", "disallowed_operator"),
        ("~5", "disallowed_operator"),
        ("1,234", "disallowed_node"),
        ("[x for x in (1, 2)]", "disallowed_node"),
        ("(1).real", "disallowed_node"),
        ("1 < 2", "disallowed_node"),
        ("open('/etc/passwd')", "disallowed_literal"),
        ("True", "disallowed_literal"),
        ("pi", "disallowed_name"),
        ("max(1, 2)", "disallowed_call"),
        ("sqrt(1, 2)", "disallowed_call"),
        ("round(2.5, ndigits=1)", "disallowed_call"),
        ("gcd(*(4, 6))", "disallowed_call"),
        ("1 / 0", "division_by_zero"),
        ("0**-1", "division_by_zero"),
        ("(-8)**(1/3)", "complex_result"),
        ("sqrt(-1)", "domain_error"),
        ("factorial(4/2)", "domain_error"),
        ("comb(-1, 2)", "domain_error"),
        ("1e308 * 10", "out_of_range"),
        ("1e309", "out_of_range"),
        ("10**64*10**64*10**64*10**64*10**64 + 0.5", "out_of_range"),
    ],
)
def test_outcomes_are_frozen(text, expected):
    assert outcome(text) == expected


def test_functions_are_python_exprs():
    found = evaluate_strictly("sqrt(2)")
    assert (found.category, "python_expr" in found.hint) == ("disallowed_call", True)


@given(st.text(max_size=60) | st.text("0123456789.,eEjx+-*/%!^()combsqrtgdf_ \t='[]:<>lambda", max_size=80))
def test_no_text_raises_or_warns(text):
    found = evaluate_strictly(text, STRICT_FUNCTIONS)
    assert isinstance(found, Refused) or type(found) in (int, float)


@pytest.mark.parametrize(
    "text", ["1 5.and 2", "5.and 2", "1.if 1. else 2", ".5or 1", "1e5.and 2", "0x1for 2", "1_0.in 2"]
)
def test_no_number_with_a_word_behind_it_reaches_a_parser_that_warns(text, recwarn):
    assert evaluate_strictly(text, STRICT_FUNCTIONS).category == Category.SYNTAX
    assert not recwarn
