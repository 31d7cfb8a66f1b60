"""verify(): correct, format_valid and supported are decided apart; the record is whole."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.rewards import (
    CONTRACTS,
    Outcome,
    Reason,
    Verdict,
    chain,
    check_reference,
    explain,
    verify,
    verify_answer,
    verify_batch,
    verify_many,
)


@pytest.mark.parametrize(
    ("response", "reference", "correct", "format_valid"),
    [
        pytest.param(r"Draft \boxed{5}; corrected \boxed{7}.", "7", True, True, id="last box wins"),
        pytest.param("Therefore the result is 4.", "4", True, False, id="right answer, no box"),
        pytest.param(r"Final attempt: \boxed{4", "4", True, False, id="right answer, box not closed"),
        pytest.param(r"\boxed{5}", "4", False, True, id="good box, wrong answer"),
        pytest.param("No idea.", "4", False, False, id="nothing to judge"),
    ],
)
@pytest.mark.parametrize("contract", CONTRACTS)
def test_correctness_and_format_are_decided_apart(response, reference, correct, format_valid, contract):
    verdict = verify(response, reference, contract=contract)
    assert (verdict.correct, verdict.format_valid) == (correct, format_valid)


@pytest.mark.parametrize(
    ("response", "outcome", "supported"),
    [
        (r"\boxed{4}", "correct", True),
        (r"\boxed{5}", "wrong", True),
        (r"\boxed{1 2}", "unsupported", False),
        ("no number", "no_answer", False),
    ],
)
def test_no_answer_and_unsupported_are_two_things_and_neither_is_wrong(response, outcome, supported):
    verdict = verify(response, "4")
    assert (verdict.outcome, verdict.supported) == (outcome, supported)


def test_a_bare_answer_has_no_format():
    assert verify_answer("4", "4").format_valid is None


def test_text_and_message_forms_of_one_response_get_one_verdict():
    text = r"So \boxed{4}."
    parts = [{"type": "text", "text": "So "}, {"type": "text", "text": r"\boxed{4}."}]
    messages = [{"role": "assistant", "content": text}]
    assert verify(text, "4") == verify(messages, "4") == verify([{"role": "assistant", "content": parts}], "4")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": None}],
        [{"role": "assistant", "content": ""}],
        [{"role": "user", "content": r"\boxed{4}"}],
        [{"role": "assistant", "content": r"\boxed{4}"}, {"role": "tool", "content": "4"}],
        [{"role": "assistant", "content": [{"type": "image"}]}],
    ],
)
def test_only_the_last_message_of_the_assistant_holds_an_answer(messages):
    assert verify(messages, "4").outcome == "no_answer"


def test_an_answer_in_the_reasoning_alone_is_no_answer_and_flagged():
    verdict = verify([{"role": "assistant", "content": "", "reasoning_content": r"\boxed{4}"}], "4")
    assert (verdict.outcome, verdict.flags) == ("no_answer", ("answer_in_reasoning",))


@pytest.mark.parametrize(
    "part", [{"type": "thinking", "thinking": r"\boxed{4}"}, {"type": "reasoning", "text": r"\boxed{4}"}]
)
def test_a_reasoning_part_is_reasoning_too(part):
    verdict = verify([{"role": "assistant", "content": [part]}], "4")
    assert (verdict.outcome, verdict.flags) == ("no_answer", ("answer_in_reasoning",))


def test_an_answer_beside_reasoning_is_not_flagged():
    verdict = verify([{"role": "assistant", "content": r"\boxed{4}", "reasoning_content": r"\boxed{5}"}], "4")
    assert (verdict.outcome, verdict.flags) == ("correct", ())


@pytest.mark.parametrize("truncated", [True, False])
@pytest.mark.parametrize("contract", ["v1", "v2"])
def test_truncation_is_recorded_and_changes_nothing_under_v1_and_v2(truncated, contract):
    verdict = verify("cut off at 4", "4", truncated=truncated, contract=contract)
    assert (verdict.truncated, verdict.correct) == (truncated, True)


def test_a_number_at_the_cut_is_no_answer():
    assert verify("cut off at 4", "4", truncated=True).outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize("reference", [4, None, 4.0, ["4"]])
def test_a_reference_that_is_no_text_is_a_wiring_mistake(reference):
    with pytest.raises(TypeError, match="are texts"):
        verify(r"\boxed{4}", reference)


@pytest.mark.parametrize("completion", [4, None, b"4", [4], [{"role": "assistant", "content": 4}]])
def test_a_completion_that_is_no_text_and_no_messages_is_a_wiring_mistake(completion):
    with pytest.raises(TypeError):
        verify(completion, "4")


def test_every_refusal_has_its_twin_for_references():
    of_a_pair = {
        Reason.NOT_EQUAL,
        Reason.DIFFERENT_PART_COUNT,
        Reason.NO_ANSWER,
        Reason.SYMPY_FAILED,
        Reason.OVER_BUDGET,
        Reason.NOT_SETTLED,
        Reason.KINDS_NOT_COMPARED,
        Reason.TIME_LIMIT,
        Reason.WORKER_DIED,
        Reason.NARROWER_DOMAIN,
        Reason.TEXT_NOT_EXPECTED,
        Reason.HEDGED,
        Reason.UNIT_MISSING,
        Reason.NOT_SIMPLIFIED,
    }
    for reason in set(Reason) - of_a_pair:
        assert reason.is_of_reference or reason.of_reference.is_of_reference


def test_every_refusal_of_the_grammar_can_be_said_of_a_reference():
    sources = [
        path.read_text(encoding="utf-8") for path in (Path(chain.__file__).parent / "contracts/v3").rglob("*.py")
    ]
    for name in {
        name for source in sources for name in re.findall(r"(?:Refused|refuse|Refusal)\(\s*Reason\.([A-Z_]+)", source)
    }:
        assert Reason[name].of_reference.is_of_reference


@pytest.mark.parametrize(("outcome", "reason"), [("correct", "not_equal"), ("wrong", None)])
def test_a_verdict_with_a_reason_too_much_or_missing_cannot_be_made(outcome, reason):
    verdict = verify_answer("4", "4").__class__
    values = {name: getattr(verify_answer("4", "4"), name) for name in verdict.__slots__}
    with pytest.raises(ValueError, match="a reason is missing or too much"):
        Verdict(**{**values, "outcome": Outcome(outcome), "reason": reason and Reason(reason)})


@pytest.mark.parametrize("response", [r"\boxed{4}", r"\boxed{5}", r"\boxed{\ud800}", "none", r"\boxed{9^9^9}"])
def test_the_row_of_a_verdict_is_json_with_constant_keys(response):
    row = verify(response, "4").to_row()
    assert json.loads(json.dumps(row)) == row
    assert list(row) == list(verify("4", "4").to_row())


def test_a_batch_gives_the_verdicts_of_its_rows_in_order():
    rows = [
        {"response": r"\boxed{4}", "reference": "4"},
        {"response": "5", "reference": "4", "truncated": True, "id": "not looked at"},
        {"response": [{"role": "assistant", "content": r"\boxed{6}"}], "reference": "6"},
        {"prediction": "4", "reference": "4"},
        {"response": r"\boxed{4}", "reference": "5"},
    ]
    assert verify_many(rows) == [
        verify(row["response"], row["reference"], truncated=row.get("truncated", False))
        if "response" in row
        else verify_answer(row["prediction"], row["reference"])
        for row in rows
    ]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("4", "row 1: a row is a mapping with response or prediction, and reference; got str"),
        ({"response": "4"}, "row 1: a row has a 'reference', got none"),
        ({"reference": "4"}, "row 1: a row has either a 'response' or a 'prediction'"),
        ({"reference": "4", "response": "4", "prediction": "4"}, "either a 'response' or a 'prediction'"),
        ({"reference": 4, "response": "4"}, "row 1: an answer and a reference are texts, got int"),
        ({"reference": "4", "response": "4", "truncated": 1}, "row 1: 'truncated' is true or false"),
        ({"reference": "4", "response": "4", "answer_type": "sum"}, "row 1: unknown answer_type 'sum'; known: auto"),
        ({"reference": "4", "response": "4", "options": {"unit": 1}}, "row 1: unknown option 'unit'; known:"),
        ({"reference": "4", "response": "4", "options": [1]}, "row 1: options are a mapping"),
    ],
)
def test_a_row_of_a_batch_that_is_wired_wrong_is_named(row, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        verify_many([{"response": "4", "reference": "4"}, row], contract="v3")


def test_a_batch_in_a_trainer_s_shape_gives_the_same_verdicts():
    completions, references = [r"\boxed{4}", "5", [{"role": "assistant", "content": r"\boxed{6}"}]], ["4", "4", "6"]
    assert verify_batch(completions, references, truncated=[False, True, False]) == [
        verify(completion, reference, truncated=cut)
        for completion, reference, cut in zip(completions, references, [False, True, False], strict=True)
    ]


@pytest.mark.parametrize(("references", "truncated"), [(["4"], None), (["4", "4"], [True])])
def test_a_batch_of_unequal_lengths_is_a_wiring_mistake(references, truncated):
    with pytest.raises(ValueError, match="one reference per completion"):
        verify_batch(["4", "4"], references, truncated=truncated)


def test_nulls_in_a_row_are_what_is_missing():
    row = {"response": None, "prediction": "4", "reference": "4", "truncated": None, "options": None}
    assert verify_many([row])[0].correct


def test_a_verdict_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"ask its \.correct"):
        bool(verify("5", "4"))


def test_an_unreadable_reference_is_said_before_a_missing_answer():
    assert verify("blah", r"\frac{3}{4").outcome is Outcome.BAD_REFERENCE
    assert verify("blah", "4").outcome is Outcome.NO_ANSWER


def test_contracts_without_answer_types_say_so():
    with pytest.raises(ValueError, match="contract v2 knows no answer types"):
        verify("4", "4", contract="v2", answer_type="list")


@pytest.mark.parametrize("contract", sorted(CONTRACTS))
@pytest.mark.parametrize("response", [r"\boxed{x+1}", "nothing", r"\boxed{1 2}", r"\boxed{2}"])
def test_an_explanation_holds_the_verdict_that_verify_gives(response, contract):
    assert explain(response, "1+x", contract=contract).verdict == verify(response, "1+x", contract=contract)


def test_an_explanation_of_a_bare_answer_holds_the_verdict_of_verify_answer():
    assert explain("x+1", "1+x", bare=True, contract="v3").verdict == verify_answer("x+1", "1+x", contract="v3")


def test_the_row_for_the_model_s_eyes_holds_nothing_of_the_reference():
    row = verify(r"\boxed{4}", "5", contract="v3").to_row(reference=False)
    assert not [name for name in row if name.startswith("reference")]


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(sorted(CONTRACTS)))
def test_no_text_raises_on_either_side(response, reference, contract):
    for verdict in (
        verify(response, reference, contract=contract),
        verify(rf"\boxed{{{response}}}", reference, contract=contract),
        verify_answer(response, reference, contract=contract),
    ):
        assert verify_answer(verdict.candidate or "", reference, contract=contract).contract == contract
    check_reference(reference, contract=contract)


@given(st.text(alphabet="0123456789+-*/^(){}xyπ√.,[]e\\ ", max_size=40), st.sampled_from(sorted(CONTRACTS)))
def test_a_readable_reference_equals_itself(answer, contract):
    if check_reference(answer, contract=contract) is None:
        assert verify_answer(answer, answer, contract=contract).correct
