"""Reward components in TRL's call: what they pay, when they say None, and which mistakes they refuse."""

import pickle
from inspect import signature

import numpy as np
import pytest

from veriward.rewards import (
    REFERENCE_COLUMNS,
    ComponentSettings,
    accuracy_reward,
    format_reward,
    make_components,
    overlong_penalty,
    pool,
    repetition_penalty,
    supported_reward,
)

COMPONENTS = [accuracy_reward, format_reward, supported_reward, repetition_penalty]


@pytest.mark.parametrize(
    ("completion", "accuracy", "format_valid", "supported"),
    [
        pytest.param(r"\boxed{4}", 1.0, 1.0, 1.0, id="right, boxed"),
        pytest.param("It is 4.", 1.0, 0.0, 1.0, id="right, no box"),
        pytest.param(r"\boxed{5}", 0.0, 1.0, 1.0, id="wrong, boxed"),
        pytest.param(r"\boxed{1 2}", 0.0, 1.0, 0.0, id="unsupported"),
        pytest.param("no idea", 0.0, 0.0, 0.0, id="no answer"),
        pytest.param("", 0.0, 0.0, 0.0, id="nothing"),
    ],
)
@pytest.mark.parametrize("chat", [False, True])
def test_each_component_pays_for_its_own_question(completion, accuracy, format_valid, supported, chat):
    batch = [[{"role": "assistant", "content": completion}]] if chat else [completion]
    rewards = [component(completions=batch, reference=["4"])[0] for component in COMPONENTS[:3]]
    assert rewards == [accuracy, format_valid, supported]


@pytest.mark.parametrize("name", REFERENCE_COLUMNS)
def test_each_of_the_reference_names_is_found(name):
    assert accuracy_reward(completions=["4"], subject=["algebra"], **{name: ["4"]}) == [1.0]


def test_several_reference_columns_are_refused_with_the_first_value_of_each():
    with pytest.raises(ValueError, match=r"answer: '4'.*reference_column") as error:
        accuracy_reward(completions=["4"], solution=[r"We add: \boxed{4}"], answer=["4"])
    assert "solution: 'We add:" in str(error.value)


def test_no_reference_column_is_refused_with_the_columns_seen():
    with pytest.raises(ValueError, match="columns seen: key, level"):
        accuracy_reward(completions=["4"], prompts=["?"], key=["4"], level=[1], trainer_state=None)


def test_reference_column_settles_it():
    (component,) = make_components(weights={"accuracy_reward": 1.0}, reference_column="key")
    assert component(completions=["4"], key=["4"], answer=["5"]) == [1.0]


def test_a_reference_column_that_is_not_there_is_refused():
    (component,) = make_components(weights={"accuracy_reward": 1.0}, reference_column="key")
    with pytest.raises(ValueError, match="no column 'key'"):
        component(completions=["4"], answer=["5"])


@pytest.mark.parametrize("reference", [4, 4.0])
def test_a_number_in_a_typed_column_is_as_good_as_its_text(reference):
    assert accuracy_reward(completions=["4"], answer=[reference]) == [1.0]


def test_the_numbers_of_a_typed_array_are_numbers_too():
    for reference in (np.int64(4), np.float64(4.0), np.float32(4.0)):
        assert accuracy_reward(completions=["4"], answer=[reference]) == [1.0]


@pytest.mark.parametrize("reference", [None, True, np.True_, ["4"], {"value": 4}])
def test_a_reference_of_another_type_is_refused_with_its_row(reference):
    with pytest.raises(ValueError, match="'answer', row 1"):
        accuracy_reward(completions=["4", "4"], answer=["4", reference])


@pytest.mark.parametrize(
    ("completion_ids", "references"), [([[1]], ["4", "4"]), ([[1], [2], [3]], ["4", "4"]), (None, ["4"])]
)
def test_unequal_lengths_are_refused(completion_ids, references):
    with pytest.raises(ValueError, match="completion"):
        accuracy_reward(completions=["4", "4"], completion_ids=completion_ids, answer=references)


@pytest.mark.parametrize("reference", ["4 5", "((4", ""])
@pytest.mark.parametrize("completion", [r"\boxed{4}", "no idea", r"\boxed{))4}", r"\boxed{1 2}"])
def test_a_reference_that_cannot_be_read_gives_none_from_every_component(reference, completion):
    components = make_components(
        weights=dict.fromkeys(["accuracy_reward", "format_reward", "supported_reward", "overlong_penalty"], 1.0),
        max_completion_length=4,
    )
    for component in [*components, repetition_penalty]:
        assert (
            component(completions=[completion, "4"], completion_ids=[[1, 2], [1]], answer=[reference, "4"])[0] is None
        )
        assert (
            component(completions=[completion, "4"], completion_ids=[[1, 2], [1]], answer=[reference, "4"])[1]
            is not None
        )


def test_an_unsupported_answer_earns_zero_by_default_and_none_everywhere_if_told_to_abstain():
    paid = [component(completions=[r"\boxed{1 2}"], answer=["0"])[0] for component in make_components()]
    abstained = [
        component(completions=[r"\boxed{1 2}"], answer=["0"])[0] for component in make_components(unsupported="abstain")
    ]
    assert paid == [0.0, 1.0, 0.0]
    assert abstained == [None, None, None]


def test_no_answer_never_abstains():
    components = make_components(unsupported="abstain")
    assert [component(completions=["no idea"], answer=["4"])[0] for component in components] == [0.0, 0.0, 0.0]


def test_an_answer_without_a_box_need_not_be_paid():
    components = make_components(fallback="zero")
    assert [component(completions=["It is 4."], answer=["4"])[0] for component in components] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("length", "penalty"), [(0, 0.0), (6, 0.0), (7, -0.25), (8, -0.5), (10, -1.0), (11, -1.0)])
def test_the_overlong_penalty_grows_linearly_over_the_buffer(length, penalty):
    (component,) = make_components(weights={"overlong_penalty": 1.0}, max_completion_length=10, overlong_buffer=4)
    assert component(completions=["4"], completion_ids=[[7] * length], answer=["4"]) == [penalty]


def test_without_a_buffer_only_the_limit_itself_is_penalised():
    (component,) = make_components(weights={"overlong_penalty": 1.0}, max_completion_length=10)
    ids = [[7] * 9, [7] * 10]
    assert component(completions=["4", "4"], completion_ids=ids, answer=["4", "4"]) == [0.0, -1.0]


def test_the_overlong_penalty_needs_its_limit():
    with pytest.raises(ValueError, match="max_completion_length"):
        make_components(weights={"overlong_penalty": 1.0})
    with pytest.raises(ValueError, match="max_completion_length"):
        overlong_penalty(completions=["4"], completion_ids=[[1]], answer=["4"])


@pytest.mark.parametrize(
    ("ids", "penalty"),
    [([], 0.0), ([1, 2, 3], 0.0), ([1, 2, 3, 4, 5], 0.0), ([1] * 5, -0.5), ([1, 2, 3, 4] * 2, -0.2)],
)
def test_the_repetition_penalty_is_the_share_of_repeated_runs(ids, penalty):
    assert repetition_penalty(completions=["4"], completion_ids=[ids], answer=["4"]) == [pytest.approx(penalty)]


def test_without_token_ids_repetition_counts_words():
    assert repetition_penalty(completions=["a b c d a b c d 4"], answer=["4"])[0] < 0


@pytest.mark.parametrize("component", [*make_components(), *COMPONENTS, overlong_penalty], ids=lambda c: c.__name__)
def test_a_component_can_be_pickled_and_keeps_its_name(component):
    copy = pickle.loads(pickle.dumps(component))  # noqa: S301
    assert copy == component
    assert copy.__name__ == component.__name__


def test_names_are_unique_and_weights_dyadic():
    components = make_components()
    assert [component.__name__ for component in components] == ["accuracy_reward", "format_reward", "supported_reward"]
    assert [component.weight for component in components] == [1.0, 0.25, 0.0]


def test_a_component_has_more_than_one_parameter_and_takes_any_column():
    """Some trainers count parameters to tell a reward function from a model."""
    parameters = signature(accuracy_reward).parameters
    assert len(parameters) >= 2
    assert any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"contract": "v9"}, "unknown grading contract 'v9'"),
        ({"unsupported": "skip"}, "unknown unsupported 'skip'; known: zero, abstain"),
        ({"fallback": "half"}, "unknown fallback 'half'; known: pay, zero"),
        ({"weights": {"accuracy": 1.0}}, "unknown component 'accuracy'; known: accuracy_reward"),
        ({"max_completion_length": 0}, "at least 1 token"),
        ({"max_completion_length": 4, "overlong_buffer": 5}, "between 0 and max_completion_length"),
        ({"repetition_ngram": 0}, "at least 1 token"),
    ],
)
def test_an_impossible_setting_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        make_components(**settings)


def test_all_components_of_a_batch_share_one_verdict_per_completion(monkeypatch):
    extracted = []
    original = pool.extraction_of

    def counted(job, contract):
        extracted.append(job.text)
        return original(job, contract)

    monkeypatch.setattr(pool, "extraction_of", counted)
    completions = [f"share one verdict {number}" for number in (1, 2, 3, 3)]
    for component in make_components():
        component(completions=completions, answer=["1", "1", "1", "1"])
    assert len(extracted) == 3


def test_columns_and_shares_are_logged():
    columns, shares = {}, {}
    component = make_components(max_completion_length=3, stop_token_ids=(9,))[0]
    component(
        completions=[r"\boxed{4}", "4.0", r"\boxed{1 2}", r"\boxed{5}"],
        completion_ids=[[1, 2, 9], [1], [1, 2, 3], [1, 2, 3, 4]],
        answer=["4"] * 4,
        log_extra=columns.__setitem__,
        log_metric=shares.__setitem__,
    )
    assert columns == {
        "candidate": ["4", "4.0", "1 2", "5"],
        "outcome": ["correct", "correct", "unsupported", "wrong"],
        "reason": [None, None, "adjacent_numbers", "not_equal"],
        "method": ["identity", "rational", None, "rational"],
        "contract": ["v3"] * 4,
    }
    assert shares["outcome/correct"] == 0.5
    assert shares["outcome/wrong"] == shares["outcome/unsupported"] == 0.25
    assert shares["format_valid"] == 0.75
    assert shares["truncated"] == 0.5
    assert shares["paid_through_fallback"] == 0.5


def test_a_row_that_is_left_out_for_its_reference_is_counted_as_such():
    shares = {}
    component = make_components()[0]
    component(completions=["no", r"\boxed{\sin 0}"], answer=["?", "?"], log_metric=shares.__setitem__)
    assert shares["outcome/bad_reference"] == 1.0


def test_nothing_is_paid_through_the_fallback_if_it_pays_nothing():
    shares = {}
    component = make_components(fallback="zero")[0]
    component(completions=["4", r"\boxed{4}"], answer=["4", "4"], log_metric=shares.__setitem__)
    assert shares["paid_through_fallback"] == 0.0


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: c.__name__)
def test_an_empty_batch_gives_no_rewards(component):
    assert component(completions=[], answer=[], log_metric=lambda *_: None) == []


def test_the_lists_of_the_trainer_are_left_as_they_were():
    completions, ids, answers = [[{"role": "assistant", "content": "4"}]], [[1, 2]], ["4"]
    accuracy_reward(completions=completions, completion_ids=ids, answer=answers)
    assert (completions, ids, answers) == ([[{"role": "assistant", "content": "4"}]], [[1, 2]], ["4"])


@pytest.mark.parametrize("text", ["\ud800", "\x00", r"\boxed{" * 5000, "9" * 100_000, r"\boxed{\ud800}"])
def test_model_text_never_raises(text):
    for component in COMPONENTS:
        assert component(completions=[text], completion_ids=[[1]], answer=["4"])[0] is not None


def test_settings_are_keyword_only_and_frozen():
    with pytest.raises(AttributeError):
        ComponentSettings().contract = "v1"
