"""What a declared answer type and each option change, and what is read off a reference without them."""

import pytest

from veriward.rewards import (
    ANSWER_TYPES,
    Options,
    Reason,
    UnreadableReferenceError,
    compile_reference,
    verify,
    verify_answer,
)

TYPED = [
    # answer_type, candidate, reference, outcome
    ("tuple", "[1, 2]", "(1, 2)", "correct"),
    ("tuple", "1, 2", "(1, 2)", "correct"),
    ("tuple", "2, 1", "1, 2", "wrong"),
    ("list", "(2, 1)", "1, 2", "correct"),
    ("list", "1, 1, 2", "1, 2, 2", "undecided"),
    ("list", "x = 2 or x = 1", "1, 2", "correct"),
    ("list", "5", "5", "correct"),
    ("set", "1, 1, 2", "1, 2", "correct"),
    ("set", "{5}", "5", "correct"),
    ("interval", "1 < x < 2", "(1, 2)", "correct"),
    ("interval", "[1, 2]", "(1, 2)", "wrong"),
    ("interval", "(1, 2)", "(1, 2]", "wrong"),
    ("equation", "5", "x = 5", "correct"),
    ("tuple", "(3, 5), (1, 7)", "(1, 7), (3, 5)", "correct"),
    ("tuple", "[1, 2)", "(1, 2)", "wrong"),
    ("text", "yes", "True", "correct"),
    ("text", "E", r"\text{(E)}", "correct"),
    ("equation", "2x = 10", "x = 5", "correct"),
    ("inequality", "2x > 4", "x > 2", "correct"),
    ("matrix", "(1, 2)", r"\begin{pmatrix}1\\2\end{pmatrix}", "correct"),
    ("matrix", "[[1, 2], [3, 4]]", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", "correct"),
    ("choice", "b", "B", "correct"),
    ("choice", r"\textbf{(B)} \frac12", "B", "correct"),
    ("choice", "C", "B", "wrong"),
    ("text", "The Cat", "cat", "correct"),
    ("text", "dog", "god", "undecided"),
    ("text", "CA", "AC", "undecided"),
    ("ratio", "4:6", "2:3", "correct"),
    ("ratio", r"\frac23", "2:3", "correct"),
    ("expression", "x+1", "1+x", "correct"),
    ("number", "0.5", r"\frac12", "correct"),
]

OPTIONS = [
    # options, candidate, reference, outcome, reason
    ({"percent": "share"}, r"50\%", "50", "wrong", "not_equal"),
    ({"percent": "share"}, r"150\%", "1.5", "correct", None),
    ({"percent": "number"}, r"50\%", "0.5", "wrong", "not_equal"),
    ({"percent": "number"}, "0.5", r"50\%", "wrong", "not_equal"),
    ({"units": "required"}, "5", "5 cm", "wrong", "unit_missing"),
    ({"units": "required"}, "5 cm", "5 cm", "correct", None),
    ({"units": "required"}, "30", r"30^\circ", "wrong", "unit_missing"),
    ({"units": "required"}, "50", r"50\%", "wrong", "unit_missing"),
    ({"order": "ordered"}, "2, 1", "1, 2", "wrong", "not_equal"),
    ({"order": "free"}, "(2, 1)", "(1, 2)", "correct", None),
    ({"tolerance": 0.01}, "3.14", r"\pi", "correct", None),
    ({"tolerance": "0.001"}, "3.14", r"\pi", "wrong", "not_equal"),
    ({"tolerance": "1%"}, "99", "100", "correct", None),
    ({"tolerance": "1%"}, "98.9", "100", "wrong", "not_equal"),
    ({"tolerance": "1%"}, "(1.005, -2)", "(1, -2.01)", "correct", None),
    ({"base": "required"}, "1432", "1432_5", "wrong", "unit_missing"),
    ({"require_simplified": True}, r"17 \times 23", "391", "wrong", "not_simplified"),
    ({"require_simplified": True}, r"\frac{15}{3}", "5", "wrong", "not_simplified"),
    ({"require_simplified": True}, r"\frac{5}{3}", r"\frac53", "correct", None),
    ({"require_simplified": True}, r"3 \times 10^8", "300000000", "correct", None),
    ({"decimal_comma": True}, "1.234,5", "1234.5", "bad_reference", None),
    ({"decimal_comma": True}, "1.234,5", "1234,5", "correct", None),
]


@pytest.mark.parametrize(("answer_type", "candidate", "reference", "outcome"), TYPED)
def test_a_declared_type_decides_how_both_sides_are_read(answer_type, candidate, reference, outcome):
    assert verify_answer(candidate, reference, contract="v3", answer_type=answer_type).outcome == outcome


@pytest.mark.parametrize(("options", "candidate", "reference", "outcome", "reason"), OPTIONS)
def test_an_option_changes_the_verdict_as_it_says(options, candidate, reference, outcome, reason):
    verdict = verify_answer(candidate, reference, contract="v3", options=options)
    assert verdict.outcome == outcome
    if reason is not None:
        assert verdict.reason == reason


@pytest.mark.parametrize(
    ("reference", "answer_type"),
    [
        ("5", "number"),
        (r"\frac{\sqrt3}{2}", "number"),
        ("5 cm", "number"),
        ("2x+1", "expression"),
        ("(1, 2)", "tuple"),
        ("(1, 2]", "interval"),
        (r"(1, \infty)", "interval"),
        ("1, 2", "list"),
        (r"\{1, 2\}", "set"),
        (r"2 \pm 3", "set"),
        ("x = 5", "equation"),
        ("x < 5", "inequality"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", "matrix"),
        ("(C)", "choice"),
        ("2:3", "ratio"),
        (r"\text{Evelyn}", "text"),
        ("yes", "text"),
        (r"\mathbb{R}", "interval"),
    ],
)
def test_the_type_of_a_bare_reference_is_recorded(reference, answer_type):
    assert verify_answer("7", reference, contract="v3").answer_type == answer_type


@pytest.mark.parametrize(
    ("answer_type", "reference"),
    [("number", "2x"), ("tuple", "5"), ("interval", "5"), ("equation", "5"), ("choice", "12"), ("matrix", "x+1")],
)
def test_a_reference_that_is_not_of_its_declared_type_is_refused_before_training_and_read_as_it_is_later(
    answer_type, reference
):
    with pytest.raises(UnreadableReferenceError) as raised:
        compile_reference(reference, answer_type=answer_type)
    assert raised.value.reason is Reason.REFERENCE_NOT_OF_DECLARED_TYPE
    assert verify_answer(f"{reference} ", reference, contract="v3", answer_type=answer_type).correct


@pytest.mark.parametrize("answer_type", ANSWER_TYPES)
def test_the_same_text_is_equal_under_every_type(answer_type):
    assert verify_answer("(1, 2)", "(1, 2)", contract="v3", answer_type=answer_type).correct


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"percent": "both"}, "option percent is one of either, share, number; got 'both'"),
        ({"units": True}, "option units is a text, got True"),
        ({"tolerance": -1}, "option tolerance is a positive number"),
        ({"tolerance": "1e9"}, "option tolerance is a positive number"),
        ({"tolerance": "0"}, "option tolerance is a positive number"),
        ({"require_simplified": "yes"}, "option require_simplified is true or false, got 'yes'"),
        ({"thinking": "<plan>"}, "option thinking is opening and closing marks in turn, got '<plan>'"),
        ({"unit": "required"}, "unknown option 'unit'; known: percent, units"),
    ],
)
def test_an_option_that_is_none_is_refused_in_words(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        verify_answer("1", "1", contract="v3", options=options)


def test_further_marks_of_thinking_may_be_named():
    response = r"<plan>\boxed{4}</plan> It is \boxed{5}. <plan>Now \boxed{6}"
    assert verify(response, "6", contract="v3").correct
    assert verify(response, "6", contract="v3", options={"thinking": "<plan> </plan>"}).outcome == "no_answer"
    assert verify(response[:40], "5", contract="v3", options={"thinking": "<plan> </plan>"}).correct


def test_options_may_hold_nulls_as_data_sets_fill_them_in():
    assert verify_answer("1", "1", contract="v3", options={"percent": None, "tolerance": None}).correct


def test_options_may_be_given_as_their_record():
    assert verify_answer("3.14", r"\pi", contract="v3", options=Options(tolerance="0.01")).correct


@pytest.mark.parametrize(
    ("candidate", "reference", "flagged"),
    [
        (r"17 \times 23", "391", True),
        ("54+54", "108", True),
        (r"\frac{15}{3}", "5", True),
        (r"\frac{5}{3}", r"\frac53", False),
        (r"3 \times 10^8", "300000000", False),
        ("2^{10}", "1024", False),
        ("2x+3x", "5x", False),
        ("54+54", "54+54+0", False),
    ],
)
def test_arithmetic_that_is_left_to_do_is_flagged(candidate, reference, flagged):
    assert ("unevaluated" in verify_answer(candidate, reference, contract="v3").flags) is flagged
