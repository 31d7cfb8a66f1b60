from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from veriward.eval.vllm_engine import (
    Request,
    as_generation,
    base_and_adapter,
    check_folder,
    hash_files,
    rank_of,
    reason_of,
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


@pytest.mark.parametrize(
    ("written", "finish_reason", "stop", "text", "kept"),
    [
        pytest.param("12", "stop", (), "12", "stop", id="the model ended it"),
        pytest.param("12", "length", (), "12", "length", id="the limit cut it off"),
        pytest.param("12\n\n", "stop", ("\n\n",), "12", "stop", id="a stop string ended it"),
        pytest.param("12###7", "length", ("7", "###"), "12", "stop", id="a stop string before the limit"),
    ],
)
def test_a_response_ends_at_the_first_stop_string_or_the_limit(written, finish_reason, stop, text, kept):
    generation = as_generation(written, [3, 4], finish_reason, stop, 5)
    assert (generation.text, generation.token_ids, generation.finish_reason, generation.seed) == (text, (3, 4), kept, 5)


@pytest.mark.parametrize("finish_reason", ["abort", "error", None])
def test_what_the_engine_broke_off_is_no_response(finish_reason):
    with pytest.raises(ConfigError, match="broke off a response"):
        as_generation("12", [3, 4], finish_reason, (), None)


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


def test_what_a_trainer_leaves_beside_the_weights_is_none_of_them(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"one")
    first = hash_files(str(tmp_path))
    (tmp_path / "training_args.bin").write_bytes(b"two")
    assert hash_files(str(tmp_path)) == first


def test_an_adapter_on_another_base_is_another_model(tmp_path):
    for name in ("one", "two", "adapter"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(name.encode())
    one, two, adapter = (str(tmp_path / name) for name in ("one", "two", "adapter"))
    assert hash_files(one, adapter) != hash_files(two, adapter)


@pytest.mark.parametrize(
    ("name", "said"),
    [("empty", "no weights"), ("model.gguf", "vLLM takes no GGUF file"), ("nothing", "no such folder")],
)
def test_a_place_without_weights_is_refused_before_the_engine_starts(tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=said):
        check_folder(str(tmp_path / name))


def test_the_reason_of_a_refused_option_is_not_its_title():
    pydantic = pytest.importorskip("pydantic")
    with pytest.raises(pydantic.ValidationError) as refused:
        pydantic.create_model("ModelConfig", max_model_len=(int, ...))(max_model_len="many")
    assert reason_of(refused.value).startswith("Input should be a valid integer")


def test_a_lack_of_memory_is_answered_with_what_to_lower():
    assert "lower max_num_seqs" in reason_of(RuntimeError("Engine core initialization failed.\nmore"))


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


def runs_here():
    """vLLM for CUDA needs a device; there is one for CPUs too."""
    if importlib.util.find_spec("vllm") is None:
        return False
    from vllm.platforms import current_platform

    return has_cuda() or bool(current_platform.is_cpu())


OPTIONS = {"dtype": "float32", "max_num_seqs": 4, "gpu_memory_utilization": 0.1, "enforce_eager": True}
PROMPTS = ["1+1", [{"role": "user", "content": "What is 2+3?"}], "7"]


@pytest.fixture(scope="module")
def model(tiny_model, tmp_path_factory):
    """The small model with heads of a size that every attention of vLLM takes."""
    import torch
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig, Qwen3ForCausalLM

    folder = tmp_path_factory.mktemp("model") / "wide"
    config = AutoConfig.from_pretrained(tiny_model)
    config.head_dim = 64
    torch.manual_seed(0)
    wide = Qwen3ForCausalLM(config)
    wide.generation_config = GenerationConfig.from_pretrained(tiny_model)
    wide.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(model, tmp_path_factory):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("adapter")
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    get_peft_model(AutoModelForCausalLM.from_pretrained(model), config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def start():
    from veriward.eval.vllm_engine import VllmGenerator

    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    return lambda model, **options: VllmGenerator(model, **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def engine(model, start):
    return start(model)


def written_by_transformers(model, **options):
    import torch

    from veriward.eval.generators import TransformersGenerator

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return TransformersGenerator(model, device=device, dtype="float32").generate(PROMPTS, seed=0, **options)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(not runs_here(), reason="needs vllm (pip install 'veriward[vllm]') and a device that it runs on")
class TestEngine:
    @pytest.mark.parametrize("stop", [(), ("1", "*")], ids=["whole", "stop strings"])
    def test_greedy_is_what_transformers_writes(self, engine, model, stop):
        options = {"max_new_tokens": 16, "stop": stop}
        assert engine.generate(PROMPTS, seed=0, **options) == written_by_transformers(model, **options)

    def test_a_sample_asked_alone_is_the_one_that_was_asked_with_the_others(self, engine):
        options = {"temperature": 1.0, "max_new_tokens": 8, "seed": 0}
        together = engine.generate(["1+1"] * 3, sample_numbers=range(3), **options)
        assert engine.generate(["1+1"], sample_numbers=[2], **options) == together[2:]
        assert len({one.text for one in together}) == 3

    def test_responses_are_handed_over_before_the_last_is_written(self, engine):
        parts = []
        engine.generate(["1+1"] * 24, max_new_tokens=8, seed=0, on_finished=parts.append)
        assert sorted(index for part in parts for index, _ in part) == list(range(24))
        assert len(parts) >= 24 // OPTIONS["max_num_seqs"]

    def test_a_caller_that_fails_leaves_nothing_behind_in_the_engine(self, engine):
        def fail(finished):
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            engine.generate(["1+1"] * 24, max_new_tokens=8, seed=0, on_finished=fail)
        [again] = engine.generate(["7"], max_new_tokens=4, seed=0)
        assert again.tokens == 4

    def test_a_conversation_that_fills_the_context_has_no_room(self, engine):
        said = [{"role": "user", "content": "2+3?"}, {"role": "assistant", "content": "x" * engine.settings["context"]}]
        full, other = engine.generate([[*said, {"role": "user", "content": "Sure?"}], "7"], max_new_tokens=4, seed=0)
        assert (full.text, full.tokens, full.truncated) == ("", 0, True)
        assert other.tokens == 4

    def test_a_first_prompt_without_room_is_one_line(self, engine):
        with pytest.raises(ConfigError, match="the engine's context 4096"):
            engine.generate(["x" * 4096], max_new_tokens=4, seed=0)

    def test_a_run_goes_through_the_loop(self, engine, run_folders, tmp_path):
        from veriward.eval.loop import evaluate
        from veriward.eval.prompting import PromptTemplate

        plain = PromptTemplate(template="plain", instruction="")
        run = evaluate(engine, run_folders.problem_set(4), tmp_path / "run", template=plain, max_new_tokens=8).run
        assert [(row["finish_reason"], row["tokens"]) for row in run.rows] == [("length", 8)] * 4
        assert run.settings["generator"]["engine"] == "vllm"

    def test_an_adapter_is_what_transformers_makes_of_it(self, adapter, engine, start):
        ours = start(adapter)
        written = ours.generate(PROMPTS, max_new_tokens=16, seed=0)
        assert written == written_by_transformers(adapter, max_new_tokens=16)
        assert written != engine.generate(PROMPTS, max_new_tokens=16, seed=0)
        assert ours.settings["weights_sha256"] != engine.settings["weights_sha256"]
        assert "adapter_sha256" in ours.settings
        assert "adapter_sha256" not in engine.settings

    def test_an_option_that_the_model_does_not_take_is_one_line(self, model, start):
        with pytest.raises(ConfigError, match=r"vLLM cannot load it: .*max_model_len") as refused:
            start(model, max_model_len=999_999)
        assert "\n" not in str(refused.value)

    @pytest.mark.skipif(has_cuda(), reason="what ends the engine here is the attention for CPUs")
    def test_an_engine_that_dies_is_one_line(self, tiny_model, start):
        ours = start(tiny_model)  # its heads are of a size that the CPU's attention finds out about too late
        with pytest.raises(ConfigError, match="vLLM's engine has died") as died:
            ours.generate(["1+1"], max_new_tokens=8, seed=0)
        assert "\n" not in str(died.value)

    def test_the_command_prints_its_result_alone(self, model, write_jsonl, tmp_path):
        problems = write_jsonl({"question": "What is 1 + 1?", "answer": "2"})
        command = [sys.executable, "-m", "veriward.scripts.cli", "eval", "--engine", "vllm", "--model", model, "--json"]
        command += ["--problems", problems, "--out", tmp_path / "run", "--max-new-tokens", "8"]
        environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
        environment.pop("VLLM_LOGGING_STREAM", None)  # set by the other tests, and not by a person
        done = subprocess.run(map(str, command), capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        assert json.loads(done.stdout)["responses"] == 1
