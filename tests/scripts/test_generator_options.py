from __future__ import annotations

import inspect

import pytest

from veriward.eval.vllm_engine import VllmGenerator
from veriward.scripts.generator_options import VLLM_OPTIONS, made_generator, vllm_settings
from veriward.tool_agent.errors import ConfigError


def test_engine_options_are_numbers_switches_and_words():
    given = ["max_model_len=4096", "gpu_memory_utilization=0.8", "enforce_eager=true", "dtype=bfloat16"]
    assert vllm_settings(given) == {
        "max_model_len": 4096,
        "gpu_memory_utilization": 0.8,
        "enforce_eager": True,
        "dtype": "bfloat16",
    }


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("max_len=1", "unknown; wanted one of dtype, max_model_len"),
        ("max_model_len", "wanted max_model_len=4096"),
        ("max_model_len=many", "wanted max_model_len=4096"),
        ("max_model_len=true", "wanted max_model_len=4096"),
        ("enforce_eager=1", "wanted enforce_eager=true"),
        ("dtype=", "wanted dtype=bfloat16"),
    ],
)
def test_an_engine_option_that_cannot_be_meant_is_one_line(option, message):
    with pytest.raises(ConfigError, match=message) as refused:
        vllm_settings([option])
    assert "\n" not in str(refused.value)


def test_every_engine_option_is_one_of_the_engine():
    assert VLLM_OPTIONS.keys() <= inspect.signature(VllmGenerator.__init__).parameters.keys()


def test_engine_options_are_for_vllm_alone():
    with pytest.raises(ConfigError, match="--engine-option is for --engine vllm"):
        made_generator("m", None, None, None, None, "transformers", ["dtype=float32"])
