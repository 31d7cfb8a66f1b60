from __future__ import annotations

import importlib.util
import json
from types import SimpleNamespace

import pytest

from veriward.eval.vllm_engine import (
    Request,
    as_generation,
    base_and_adapter,
    hash_files,
    parts_of,
    rank_of,
    sampling,
    tokenizer_of,
)
from veriward.tool_agent.errors import ConfigError, MissingExtraError


def request(**changes):
    return Request(**{"index": 0, "token_ids": [1, 2], "limit": 8, "seed": None, **changes})


def test_greedy_asks_for_no_seed_and_nothing_of_the_models_own_sampling():
    asked = sampling(request(), 0.0, ())
    assert (asked["temperature"], asked["seed"], asked["stop"]) == (0.0, None, None)
    assert (asked["top_p"], asked["top_k"], asked["repetition_penalty"]) == (1.0, 0, 1.0)


def test_a_sampled_request_has_its_own_seed_and_limit():
    asked = sampling(request(seed=7, limit=3), 0.8, ["\n\n"])
    assert (asked["seed"], asked["max_tokens"], asked["stop"]) == (7, 3, ["\n\n"])


@pytest.mark.parametrize(("reason", "kept"), [("length", "length"), ("stop", "stop"), ("abort", "stop")])
def test_only_the_limit_cuts_a_response_off(reason, kept):
    output = SimpleNamespace(text="12", token_ids=[3, 4], finish_reason=reason)
    generation = as_generation(output, 5)
    assert (generation.text, generation.token_ids, generation.finish_reason, generation.seed) == ("12", (3, 4), kept, 5)


def test_prompts_are_handed_over_in_parts():
    requests = [request(index=n) for n in range(5)]
    assert [[one.index for one in part] for part in parts_of(requests, 2)] == [[0, 1], [2, 3], [4]]


def test_an_adapter_names_its_base(tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "owner/base", "r": 12}))
    assert base_and_adapter(str(tmp_path)) == ("owner/base", str(tmp_path))
    assert rank_of(str(tmp_path)) == 16
    assert base_and_adapter("owner/model") == ("owner/model", None)


def test_an_adapter_with_a_tokenizer_is_asked_through_its_own(tmp_path):
    assert tokenizer_of("owner/base", None) == "owner/base"
    assert tokenizer_of("owner/base", str(tmp_path)) == "owner/base"
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert tokenizer_of("owner/base", str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("content", ["{}", "no json"])
def test_an_adapter_without_a_base_is_refused(tmp_path, content):
    (tmp_path / "adapter_config.json").write_text(content)
    with pytest.raises(ConfigError, match=r"adapter_config\.json"):
        base_and_adapter(str(tmp_path))


def test_other_weights_have_another_hash(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"one")
    first = hash_files(str(tmp_path))
    file.write_bytes(b"two")
    assert hash_files(str(tmp_path)) != first


def test_a_folder_without_weights_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no weights"):
        hash_files(str(tmp_path))


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed here")
def test_without_vllm_it_says_how_to_install_it():
    from veriward.eval.vllm_engine import VllmGenerator

    with pytest.raises(MissingExtraError, match=r"pip install 'veriward\[vllm\]'"):
        VllmGenerator("owner/model")


def has_cuda():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="module")
def engine(tiny_model):
    from veriward.eval.vllm_engine import VllmGenerator

    return VllmGenerator(tiny_model, dtype="float32", max_num_seqs=8, gpu_memory_utilization=0.3, enforce_eager=True)


needs_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not has_cuda(), reason="needs a CUDA device, and there is none here"),
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vllm: pip install 'veriward[vllm]'"),
]


class TestOnAGpu:
    pytestmark = needs_gpu

    def test_greedy_is_what_transformers_writes(self, engine, tiny_model):
        from veriward.eval.generators import TransformersGenerator

        other = TransformersGenerator(tiny_model, device="cuda", dtype="float32")
        prompts = ["1+1", [{"role": "user", "content": "What is 2+3?"}], "7"]
        ours, theirs = (one.generate(prompts, max_new_tokens=8, seed=0) for one in (engine, other))
        assert [one.token_ids for one in ours] == [one.token_ids for one in theirs]

    def test_a_sample_asked_alone_is_the_one_that_was_asked_with_the_others(self, engine):
        options = {"temperature": 1.0, "max_new_tokens": 8, "seed": 0}
        together = engine.generate(["1+1"] * 3, sample_numbers=range(3), **options)
        assert engine.generate(["1+1"], sample_numbers=[2], **options)[0].text == together[2].text

    def test_a_run_goes_through_the_loop(self, engine, run_folders, tmp_path):
        from veriward.eval.loop import evaluate
        from veriward.eval.prompting import PromptTemplate

        plain = PromptTemplate(template="plain", instruction="")
        result = evaluate(engine, run_folders.problem_set(4), tmp_path / "run", template=plain, max_new_tokens=8)
        assert len(result.rows) == 4
        assert result.run.settings["generator"]["engine"] == "vllm"
