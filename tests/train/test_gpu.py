"""The same commands on a CUDA device."""

import json

import pytest
import torch

from veriward.eval.generators import TransformersGenerator
from veriward.train.grpo import train
from veriward.train.rollouts import read_lines
from veriward.train.settings import read_settings
from veriward.train.tiny_model import write_model
from veriward.train.tiny_problems import write_problems

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and there is none here"),
]


@pytest.fixture
def tiny(tmp_path):
    write_model(tmp_path / "model", seed=0)
    write_problems(tmp_path / "data", seed=0, train=64, heldout=8)
    return tmp_path


@pytest.mark.parametrize("words", [[], ["--use_peft"]], ids=["full", "lora"])
def test_two_steps_of_grpo_run_on_the_gpu(tiny, words):
    settings = read_settings(
        [
            *("--config", "quickstart_cpu", "--prepare", "none", "--device", "cuda", "--bf16", "true"),
            *("--model_name_or_path", str(tiny / "model"), "--problems", str(tiny / "data/train.jsonl")),
            *("--output_dir", str(tiny / "run"), "--max_steps", "2", "--per_device_train_batch_size", "16", *words),
        ]
    )
    result = train(settings, say=lambda line: None)
    record = json.loads((result.folder / "run.json").read_text())
    assert result.steps == 2
    assert record["settings"]["grpo"]["bf16"] is True
    assert sum(1 for _ in read_lines(result.folder / "rollouts-0.jsonl")) == 32


def test_a_sampled_response_does_not_depend_on_its_batch(tiny):
    prompts = [[{"role": "user", "content": question}] for question in ("1+2", "3+4", "5+6+7")]
    texts = []
    for batch_size in (1, 3):
        generator = TransformersGenerator(tiny / "model", device="cuda", dtype="float32", batch_size=batch_size)
        written = generator.generate(prompts, temperature=1.0, max_new_tokens=8, seed=0)
        texts.append([generation.text for generation in written])
    assert texts[0] == texts[1]
