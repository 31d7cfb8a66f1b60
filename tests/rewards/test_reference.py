"""A reference is compiled once: its key found, its type read off, what cannot be read said loudly."""

import pickle

import pytest

from veriward.rewards import (
    Outcome,
    Reason,
    UnreadableReferenceError,
    check_reference,
    compile_reference,
    make_components,
    verify,
    verify_answer,
)


@pytest.mark.parametrize(
    ("text", "normal", "answer_type"),
    [
        (r"\frac12", "1/2", "number"),
        ("She sells 9 * 2 = 18.\n#### 18", "18", "number"),
        ("#### 1,234", "1234", "number"),
        (r"First \boxed{3}, no: the sum is $\boxed{\frac{3}{4}}$, as asked.", "3/4", "number"),
        (r"\boxed{5}", "5", "number"),
        ("2x+1", "1 + 2*x", "expression"),
        ("3, 5", "list(3, 5)", "list"),
    ],
)
def test_the_key_is_found_by_the_stated_rule(text, normal, answer_type):
    reference = compile_reference(text)
    assert (reference.normal, reference.answer_type) == (normal, answer_type)
    assert verify_answer(normal.removeprefix("list(").removesuffix(")"), text, contract="v3").correct


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", Reason.REFERENCE_EMPTY_ANSWER, 0),
        ("x + 1 2", Reason.REFERENCE_ADJACENT_NUMBERS, 6),
        ("1/0", Reason.REFERENCE_UNDEFINED_VALUE, 0),
        ("((1)", Reason.REFERENCE_UNBALANCED_BRACKETS, None),
    ],
)
def test_what_cannot_be_read_is_an_error_with_reason_and_place(text, reason, position):
    with pytest.raises(UnreadableReferenceError) as raised:
        compile_reference(text)
    assert raised.value.reason is reason
    assert position is None or raised.value.position == position
    assert repr(text) in str(raised.value)


def test_a_reference_of_another_type_than_declared_is_an_error():
    with pytest.raises(UnreadableReferenceError, match="not_of_declared_type"):
        compile_reference("2x", answer_type="number")


def test_a_compiled_reference_brings_its_type_and_options():
    reference = compile_reference("(1, 2)", answer_type="set")
    assert verify(r"\boxed{2, 1}", reference, contract="v3").correct
    assert verify_answer("2, 1", reference, contract="v3").correct
    assert verify_answer("2, 1", "(1, 2)", contract="v3").outcome is not Outcome.CORRECT
    assert check_reference(reference, contract="v3") is None
    about_pi = compile_reference(r"\pi", options={"tolerance": "0.01"})
    assert verify_answer("3.14", about_pi, contract="v3").correct


def test_the_row_s_own_type_comes_before_the_compiled_one():
    reference = compile_reference("(1, 2)", answer_type="set")
    assert not verify_answer("2, 1", reference, contract="v3", answer_type="tuple").correct


def test_a_compiled_reference_is_a_text():
    reference = compile_reference("(1, 2)", answer_type="set")
    assert reference == "(1, 2)"
    assert pickle.loads(pickle.dumps(reference)).task == reference.task  # noqa: S301
    accuracy = make_components(weights={"accuracy_reward": 1.0}, contract="v3")[0]
    assert accuracy(completions=[r"\boxed{2, 1}", r"\boxed{2, 3}"], answer=[reference, reference]) == [1.0, 0.0]


def test_an_answer_that_is_the_key_of_a_solution_is_identical():
    solution = "16 - 3 = 13, and so on.\n#### 18"
    assert verify_answer("18", solution, contract="v3").method == "identity"
    assert not verify_answer("13", solution, contract="v3").correct
