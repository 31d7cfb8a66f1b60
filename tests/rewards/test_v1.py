"""Contract v1: what is equal, what is decided different, what is refused, and that nothing hangs or raises."""

import threading

import pytest
import sympy

from veriward.rewards import verify, verify_answer
from veriward.rewards.contracts import v1


@pytest.mark.parametrize(
    ("candidate", "reference", "method"),
    [
        (r"\text{(C)}", r"\text{(C)}", "normalized_exact"),
        ("1,000", "1000", "normalized_exact"),
        (r"\frac{2}{6}", "1/3", "sympy"),
        (r"\dfrac{1}{2}", "0.5", "sympy"),
        ("0.1+0.2", "0.3", "sympy"),
        ("x+x", "2*x", "sympy"),
        ("2x", "2*x", "sympy"),
        ("(x+1)(x-1)", "x^2-1", "sympy"),
        ("4//2", "2", "sympy"),
        ("-2^2", "-4", "sympy"),
        ("2^3^2", "512", "sympy"),
        ("2^-1", "1/2", "sympy"),
        (r"2\pi", r"\pi+\pi", "sympy"),
        (r"\sqrt{8}", r"2\sqrt{2}", "sympy"),
        (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}", "sympy"),
        ("(1, 2)", "[1,2]", "sympy"),
        (r"\left(3,\frac{\pi}{2}\right)", r"(3, \pi/2)", "sympy"),
        ("1e3", "1000", "sympy"),
        (r"+\infty", r"\infty", "sympy"),
        (r"-(\infty)", r"-\infty", "sympy"),
        (r"(-\infty, 2)", "(-oo, 4/2)", "sympy"),
        ("8/2/2", "2", "sympy"),
        ("8/(2/2)", "8", "sympy"),
        ("x/y/z", "x/(y*z)", "sympy"),
        ("7//2//2", "1", "sympy"),
        ("x^{y+1}", "x^{1+y}", "sympy"),
        (r"\frac{1,000}{2}", "500", "sympy"),
        ("4<|im_end|>", "<s>4", "normalized_exact"),
        ("1" + "/1" * 900, "1", "sympy"),
    ],
)
def test_equal_answers_are_correct(candidate, reference, method):
    verdict = verify_answer(candidate, reference, contract="v1")
    assert (verdict.outcome, verdict.method) == ("correct", method)


@pytest.mark.parametrize(
    ("candidate", "reference", "reason"),
    [
        ("5", "4", "not_equal"),
        ("(1,2,3)", "(1,2)", "different_part_count"),
        ("(1,2)", "(2,1)", "not_equal"),
        (r"\sqrt{x^2}", "x", "not_equal"),
        ("0.333", "1/3", "not_equal"),
        ("3.14", r"\pi", "not_equal"),
        (r"\infty", "5", "not_equal"),
        (r"\infty", "x", "not_equal"),
        (r"\infty", r"-\infty", "not_equal"),
        ("x", "y", "not_equal"),
        (r"\text{a},\text{b}", r"(\text{a},\text{b})", "different_part_count"),
    ],
)
def test_different_answers_are_decided_wrong(candidate, reference, reason):
    verdict = verify_answer(candidate, reference, contract="v1")
    assert (verdict.outcome, verdict.reason, verdict.supported) == ("wrong", reason, True)


@pytest.mark.parametrize(
    ("candidate", "reference", "outcome", "reason"),
    [
        (r"\sin(0)", "0", "unsupported", "unsupported_expression"),
        ("__import__(os)", "1", "unsupported", "unsupported_expression"),
        ("1,2", "2,1", "unsupported", "unsupported_expression"),
        ("\ud800", "1", "unsupported", "unsupported_expression"),
        ("\x00", "1", "unsupported", "unsupported_expression"),
        ("x2", "2", "unsupported", "unsupported_expression"),
        ("xy", "2", "unsupported", "unsupported_expression"),
        ("", "1", "unsupported", "unsupported_expression"),
        ("$$", "", "unsupported", "unsupported_expression"),
        ("1", "", "bad_reference", "reference_unsupported_expression"),
        ("1", r"\text{one}", "bad_reference", "reference_unsupported_expression"),
        ("1", "9^999999", "bad_reference", "reference_estimated_cost_too_large"),
        (r"\infty-\infty", "0", "unsupported", "unsupported_expression"),
        (r"1/\infty", "0", "unsupported", "unsupported_expression"),
        ("1/0", "2/0", "unsupported", "undefined_value"),
        ("1/0", "5", "unsupported", "undefined_value"),
        ("1/(1/0)", "0", "unsupported", "undefined_value"),
        ("x/(x-x)", "1", "unsupported", "undefined_value"),
        ("((x+1)^2-x^2-2x-1)/((x+1)^2-x^2-2x-1)", "1", "unsupported", "undefined_value"),
        ("1", "0/0", "bad_reference", "reference_undefined_value"),
        ("4//0", "1", "unsupported", "unsupported_expression"),
        ("1", "4//(1-1)", "bad_reference", "reference_unsupported_expression"),
        ("x//2", "1", "unsupported", "unsupported_expression"),
        ("007", "7", "unsupported", "unsupported_expression"),
        ("(1,000)", "(1,0)", "unsupported", "unsupported_expression"),
        ("{1,234}", "1234", "wrong", "different_part_count"),
        ("0,001", "1", "unsupported", "unsupported_expression"),
        ("1<|x|>2", "12", "unsupported", "unsupported_expression"),
        ("sqrt(1e308^15+7)", "1", "unsupported", "estimated_cost_too_large"),
        ("2^2^2^12", "1", "unsupported", "estimated_cost_too_large"),
        ("2^(x-x+10^10)", "1", "unsupported", "estimated_cost_too_large"),
        ("2^(sqrt(4)*10^10)", "1", "unsupported", "estimated_cost_too_large"),
        ("1//" * 600 + "1", "1", "unsupported", "estimated_cost_too_large"),
        ("9^999999", "1", "unsupported", "estimated_cost_too_large"),
        ("9^9^9", "1", "unsupported", "estimated_cost_too_large"),
        ("9^(-9^9)", "1", "unsupported", "estimated_cost_too_large"),
        ("(((9^64)^64)^64)^64", "1", "unsupported", "estimated_cost_too_large"),
        ("1e999999999", "1", "unsupported", "estimated_cost_too_large"),
        ("9" * 5000, "1", "unsupported", "estimated_cost_too_large"),
        ("[1]*1000000", "1", "unsupported", "unsupported_expression"),
        ("-" * 20000 + "1", "1", "unsupported", "estimated_cost_too_large"),
        ("-" * 1500 + "1", "2", "wrong", "not_equal"),
        ("(" * 1000 + "1" + ")" * 1000, "1", "unsupported", "estimated_cost_too_large"),
        ("1**" * 600 + "1", "1", "unsupported", "estimated_cost_too_large"),
        ("1+" * 999 + "1", "1", "wrong", "not_equal"),
        ("1+" * 3000 + "1", "1", "unsupported", "estimated_cost_too_large"),
        (r"(a+b+c+d+x+y)^{64}", r"(y+b+c+d+x+a)^{63}*(a+b+c+d+x+y)/1", "correct", None),
        (
            r"(a+b+c+d+x+y)^{64}-1",
            r"((a+b+c+d+x+y)^{32}-1)((a+b+c+d+x+y)^{32}+1)",
            "unsupported",
            "estimated_cost_too_large",
        ),
    ],
    ids=lambda value: str(value)[:40].encode("unicode_escape").decode(),
)
def test_what_cannot_be_decided_is_refused_with_its_reason(candidate, reference, outcome, reason):
    verdict = verify_answer(candidate, reference, contract="v1")
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("candidate", "reference"), [("1 2", "12"), ("1 1/2", "11/2"), ("0^0", "1"), ("{1,2}", "(1,2)")]
)
def test_the_documented_faults_of_the_frozen_contract_are_kept(candidate, reference):
    assert verify_answer(candidate, reference, contract="v1").correct


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(1,2)", ["1", "2"]),
        ("[1,2,3]", ["1", "2", "3"]),
        ("((1)/(2))", ["((1)/(2))"]),
        ("(1,2)(3,4)", ["(1,2)(3,4)"]),
        ("(1,2]", ["(1,2]"]),
        ("((1,2),3)", ["(1,2)", "3"]),
        ("(1,)", ["1", ""]),
        ("1,2", ["1,2"]),
        ("()", ["()"]),
        ("(", ["("]),
        ("", [""]),
    ],
)
def test_a_flat_tuple_is_split_at_its_own_commas(text, parts):
    assert v1.split_into_parts(text) == parts


def test_a_wrong_part_decides_although_another_part_is_costly():
    costly = r"(a+b+c+d+x+y)^{64}-1", r"((a+b+c+d+x+y)^{32}-1)((a+b+c+d+x+y)^{32}+1)"
    verdict = verify_answer(f"({costly[0]}, 1)", f"({costly[1]}, 2)", contract="v1")
    assert verdict.reason == "not_equal"


def test_a_fault_inside_sympy_is_recorded_under_its_own_name(monkeypatch):
    def failing(expression):
        raise ValueError("a fault of the library")

    monkeypatch.setattr(sympy, "simplify", failing)
    verdict = verify_answer("(x+1)^2/(x+1)", "((x+1)^2-1)/x-1", contract="v1")
    assert (verdict.outcome, verdict.reason) == ("unsupported", "sympy_failed")


def test_the_verdict_is_the_same_in_a_thread():
    verdicts = []
    thread = threading.Thread(target=lambda: verdicts.append(verify(r"\boxed{x+x}", "2x", contract="v1")))
    thread.start()
    thread.join()
    assert verdicts == [verify(r"\boxed{x+x}", "2x", contract="v1")]
