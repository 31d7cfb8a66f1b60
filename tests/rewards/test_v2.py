"""Contract v2: the preflight's reasons, that nothing is called after a refusal, and that the limits are exact."""

import ast
import warnings
from dataclasses import replace

import pytest
import sympy

from veriward.rewards import check_reference, verify_answer
from veriward.rewards.contracts import v1, v2

REFUSED = [
    ("9^999999", "power_exponent_too_large"),
    ("2^65", "power_exponent_too_large"),
    ("2^{-65}", "power_exponent_too_large"),
    ("9^9^9", "dynamic_power_exponent"),
    ("x^x", "dynamic_power_exponent"),
    ("4^{1/2}", "dynamic_power_exponent"),
    ("1e309", "scientific_exponent_too_large"),
    ("1E309", "scientific_exponent_too_large"),
    ("1e-309", "scientific_exponent_too_large"),
    ("1" * 33, "numeric_literal_too_long"),
    ("0." + "1" * 32, "numeric_literal_too_long"),
    ("[1]*1000000", "container_operation"),
    ("(1,2)+(3,4)", "container_operation"),
    ("((1,2),3)", "nested_container"),
    ("4%3", "ambiguous_percent_notation"),
    (r"50\%", "ambiguous_percent_notation"),
    ("__import__(os)", "dunder_identifier"),
    ("x.__class__", "dunder_identifier"),
    ("x.real", "attribute_access"),
    ("x.f(1)", "attribute_access"),
    ("x[0]", "subscript_access"),
    ("factorial(3)", "unsupported_call"),
    ("sqrt(1,2)", "unsupported_call"),
    ("sqrt()", "unsupported_call"),
    ("2x", "implicit_multiplication"),
    ("2(3)", "implicit_multiplication"),
    ("x(y)", "implicit_multiplication"),
    ("(x+1)(x-1)", "implicit_multiplication"),
    ("0x10", "implicit_multiplication"),
    ("1j", "implicit_multiplication"),
    ("1if 1else 2", "implicit_multiplication"),
    ("4//2", "floor_division"),
    ("xy", "unsupported_name"),
    ("True", "unsupported_name"),
    ("None", "unsupported_name"),
    ("x if y else z", "unsupported_name"),
    ("lambda:1", "unsupported_character"),
    ("1_000", "unsupported_character"),
    ("1#2", "unsupported_character"),
    ("a=1", "unsupported_character"),
    ("1<2", "unsupported_character"),
    ("'a'", "unsupported_character"),
    ("ｘ", "unsupported_character"),
    ("ſqrt(4)", "unsupported_character"),
    ("𝐩𝐢", "unsupported_character"),
    ("\ud800", "unsupported_character"),
    ("\x00", "unsupported_character"),
    (r"\sin(0)", "unsupported_character"),
    (r"\text{(C)}", "unsupported_character"),
    ("...", "unsupported_syntax"),
    ("()", "unsupported_syntax"),
    ("(1,)", "unsupported_syntax"),
    ("sqrt(*x)", "unsupported_call"),
    ("01", "syntax_error"),
    ("1+", "syntax_error"),
    ("[1,2)", "syntax_error"),
    ("", "syntax_error"),
    ("1" + "+1" * 65, "too_many_operations"),
    ("-" * 65 + "1", "too_many_operations"),
    ("(" * 17 + "1" + ")" * 17, "parentheses_too_deep"),
    ("1+" * 150 + "1", "expression_too_long"),
    ("-" * 100000 + "1", "expression_too_long"),
]


@pytest.mark.parametrize(("expression", "reason"), REFUSED, ids=lambda value: ascii(value)[:40])
def test_a_refused_answer_carries_the_reason_that_was_written_for_it(expression, reason):
    verdict = verify_answer(expression, "1", contract="v2")
    assert (verdict.outcome, verdict.reason, verdict.verifier_called) == ("unsupported", reason, False)


@pytest.mark.parametrize(("expression", "reason"), REFUSED, ids=lambda value: ascii(value)[:40])
def test_a_refused_reference_is_named_as_such(expression, reason):
    verdict = verify_answer("1", expression, contract="v2")
    assert (verdict.outcome, verdict.reason) == ("bad_reference", f"reference_{reason}")
    assert check_reference(expression, contract="v2") == f"reference_{reason}"


def test_the_prediction_is_checked_first():
    assert verify_answer("x^x", "9^999999", contract="v2").reason == "dynamic_power_exponent"


@pytest.mark.parametrize(
    "expression",
    [
        "2^64",
        "2^{-64}",
        "1e308",
        "1" * 32,
        "1" + "+1" * 64,
        "(" * 16 + "1" + ")" * 16,
        "1+" * 64 + "1" * 32,
        "-(x-1)",
        r"\sqrt{x}+\pi",
        "(1,2)",
        "[1,2,3]",
        "-oo",
    ],
    ids=lambda value: value[:30],
)
def test_a_value_at_its_limit_passes(expression):
    assert v2.preflight(v2.normalize(expression)) is None


def test_a_tree_of_too_many_nodes_is_refused():
    limits = replace(v2.LIMITS, max_operations=1000, max_ast_nodes=9)
    assert v2.preflight("1+1+1+1+1", limits) is None
    assert v2.preflight("1+1+1+1+1+1", limits) == "too_many_ast_nodes"


@pytest.mark.parametrize("dangerous", ["9^999999", "9^9^9", "x^x", "1e309", "[1]*1000000", "__import__(os)"])
@pytest.mark.parametrize("side", ["prediction", "reference"])
def test_nothing_is_built_or_called_after_a_refusal(dangerous, side, monkeypatch):
    def called(*arguments, **options):
        raise AssertionError(f"called after a refusal: {arguments}")

    monkeypatch.setattr(v1, "decide_normalized", called)
    monkeypatch.setattr(v1.narrow, "parse", called)
    monkeypatch.setattr(sympy, "simplify", called)
    pair = (dangerous, "1") if side == "prediction" else ("1", dangerous)
    assert verify_answer(*pair, contract="v2").verifier_called is False


def test_the_trap_notices_a_call(monkeypatch):
    """The check above would see a verifier that is called: here it is."""

    def called(*arguments, **options):
        raise AssertionError("called")

    monkeypatch.setattr(v1, "decide_normalized", called)
    with pytest.raises(AssertionError, match="called"):
        verify_answer("1", "1", contract="v2")


def test_python_warns_about_nothing_that_a_model_wrote():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for expression, _ in REFUSED:
            verify_answer(expression, "1", contract="v2")


def test_no_tree_is_made_of_text_that_python_would_fold(monkeypatch):
    monkeypatch.setattr(ast, "parse", lambda *_, **__: pytest.fail("parsed"))
    assert verify_answer("ｘ", "x", contract="v2").reason == "unsupported_character"


@pytest.mark.parametrize("tower", ["(((9^64)^64)^64)^64", "(((9^-64)^-64)^64)^64", "(((x^64)^64)^64)^64"])
def test_what_the_limits_let_through_the_size_estimate_refuses(tower):
    assert v2.preflight(v2.normalize(tower)) is None
    assert verify_answer(tower, "7", contract="v2").reason == "estimated_cost_too_large"
