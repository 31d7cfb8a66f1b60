"""One spelling for one answer: surface only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.rewards.normalize import MAX_TEXT, normalize


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (r"\dfrac{2}{4}", "((2)/(4))"),
        (r"\tfrac12", "((1)/(2))"),
        (r"\frac{1}2", "((1)/(2))"),
        (r"\frac1{22}", "((1)/(22))"),
        (r"\frac{\frac12}{3}", "((((1)/(2)))/(3))"),
        (r"\frac{2^{3}}{4}", "((2**(3))/(4))"),
        (r"\sqrt{9}", "sqrt(9)"),
        (r"\sqrt2", "sqrt(2)"),
        ("2^3", "2**3"),
        ("1,000", "1000"),
        ("1{,}000,000", "1000000"),
        ("(1,000)", "(1,000)"),
        ("12,34", "12,34"),
        ("1,2", "1,2"),
        (r"$\frac{1}{2}$", "((1)/(2))"),
        (r"\( 4 \)", "4"),
        ("$1$ and $2$", "$1$and$2$"),
        (r"3 \times 4 \cdot 5 \div 6", "3*4*5/6"),
        (r"\left( 3,\ \frac{\pi}{2} \right)", "(3,((pi)/(2)))"),
        (r"-\infty", "-oo"),
        ("−3", "-3"),
        ("4<|im_end|>", "4"),
    ],
)
def test_a_spelling_is_brought_to_the_one_form(text, normal):
    assert normalize(text) == normal


@pytest.mark.parametrize(("text", "normal"), [("1 2", "12"), ("1 1/2", "11/2"), ("{1,2}", "(1,2)")])
def test_the_known_faults_of_the_frozen_rules_stay_as_documented(text, normal):
    assert normalize(text) == normal


def test_a_text_beyond_any_answer_is_left_as_it_stands():
    text = r"\frac{1}{2}+" * MAX_TEXT
    assert normalize(text) == text


@given(st.text(max_size=200))
def test_no_text_raises(text):
    assert isinstance(normalize(text), str)
