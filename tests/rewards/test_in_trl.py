"""The components inside TRL's own trainer: what it makes of their numbers and of their None."""

import pytest
import trl
from datasets import Dataset

from veriward.rewards import make_components
from veriward.train.tiny_model import write_model

pytestmark = pytest.mark.slow

RESPONSES = [r"\boxed{4}", r"\boxed{5}", r"\boxed{1 2}", "no idea"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, seed=0)
    return str(folder)


def advantages(model, folder, references, **settings):
    """One real step in which the components see RESPONSES instead of what the untrained model wrote."""
    components = make_components(weights={"accuracy_reward": 1.0, "format_reward": 0.25}, **settings)

    def seeing_the_responses(component):
        def call(completions, completion_ids, **columns):
            texts = RESPONSES * (len(completions) // len(RESPONSES))
            return component(completions=texts, completion_ids=completion_ids, **columns)

        call.__name__ = component.__name__
        return call

    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=[seeing_the_responses(component) for component in components],
        args=trl.GRPOConfig(
            output_dir=str(folder),
            max_steps=1,
            per_device_train_batch_size=4 * len(references),
            num_generations=4,
            max_completion_length=8,
            reward_weights=[component.weight for component in components],
            scale_rewards="none",
            log_completions=True,
            logging_steps=1,
            shuffle_dataset=False,
            bf16=False,
            gradient_checkpointing=False,
            report_to=[],
        ),
        train_dataset=Dataset.from_dict({"prompt": ["2+2"] * len(references), "answer": references}),
    )
    trainer.train()
    return list(trainer._logs["advantages"]), trainer.state.log_history[0]


def test_an_unsupported_answer_ranks_with_the_wrong_ones_by_default(model, tmp_path):
    values, _ = advantages(model, tmp_path, ["4"])
    mean = (1.25 + 0.25 + 0.25 + 0.0) / 4
    assert values == pytest.approx([1.25 - mean, 0.25 - mean, 0.25 - mean, -mean], abs=1e-6)


def test_an_abstained_row_is_left_out_of_its_group(model, tmp_path):
    values, _ = advantages(model, tmp_path, ["4"], unsupported="abstain")
    mean = (1.25 + 0.25 + 0.0) / 3
    assert values == pytest.approx([1.25 - mean, 0.25 - mean, 0.0, -mean], abs=1e-6)


def test_a_row_whose_reference_cannot_be_read_moves_nothing(model, tmp_path):
    values, logs = advantages(model, tmp_path, ["4 5"])
    assert values == [0.0] * 4
    assert logs["loss"] == pytest.approx(0.0, abs=1e-8)


def test_each_component_and_each_share_is_in_the_log(model, tmp_path):
    _, logs = advantages(model, tmp_path, ["4"], max_completion_length=8)
    assert logs["rewards/accuracy_reward/mean"] == 0.25
    assert logs["rewards/format_reward/mean"] == 0.75
    assert logs["outcome/unsupported"] == 0.25
    assert logs["paid_through_fallback"] == 0.0
    assert "truncated" in logs
