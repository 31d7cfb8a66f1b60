"""Every preset is read, and validated by the libraries' own records up to the point where weights would be fetched."""

from __future__ import annotations

import importlib.util
import json

import pytest

pytest.importorskip("trl")

from veriward.rewards import Contract, get_contract
from veriward.tool_agent.errors import ConfigError
from veriward.train.batch import plan_batch
from veriward.train.configs import device_of, make_configs
from veriward.train.grpo import main as grpo
from veriward.train.grpo import train
from veriward.train.settings import presets, read_settings

GPU_PRESETS = ("qwen3_0.6b_base_1gpu", "qwen3_0.6b_1gpu")


@pytest.fixture
def math_style(tmp_path):
    """A problem file with the columns of MATH: a worked solution beside the answer."""
    path = tmp_path / "math.jsonl"
    rows = [{"problem": f"{n}+{n}?", "solution": f"It is \\boxed{{{2 * n}}}.", "answer": str(2 * n)} for n in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def options(preset, problems):
    words = ["--config", preset]
    return [*words, "--problems", str(problems), "--reference_column", "answer"] if preset in GPU_PRESETS else words


def test_these_presets_exist():
    assert set(presets()) == {"quickstart_cpu", *GPU_PRESETS}


@pytest.mark.parametrize("preset", sorted(presets()))
def test_a_preset_is_valid_for_the_installed_libraries(preset, math_style, capsys):
    assert grpo([*options(preset, math_style), "--check"]) == 0
    assert "valid" in capsys.readouterr().out


@pytest.mark.parametrize("preset", sorted(presets()))
def test_a_preset_says_its_contract_and_dyadic_weights(preset):
    settings = read_settings(["--config", preset])
    assert isinstance(get_contract(settings.run.contract), Contract)
    assert all((weight * 1024).is_integer() for weight in settings.run.weights.values())


@pytest.mark.parametrize("preset", GPU_PRESETS)
def test_a_gpu_preset_needs_a_gpu_and_says_so_before_anything_is_written(preset, math_style, tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    settings = read_settings([*options(preset, math_style), "--output_dir", str(tmp_path / "run")])
    with pytest.raises(ConfigError, match="needs a CUDA device"):
        train(settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("preset", GPU_PRESETS)
def test_without_a_gpu_not_even_the_problems_are_fetched(preset, monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    monkeypatch.setattr("veriward.train.prompts.load_problems", None)  # a call would be a TypeError
    with pytest.raises(ConfigError, match="needs a CUDA device"):
        train(read_settings(["--config", preset]))


def test_vllm_asked_for_and_not_installed_is_refused_at_once(math_style):
    if importlib.util.find_spec("vllm"):
        pytest.skip("vllm is installed here")
    with pytest.raises(ConfigError, match=r"use_vllm needs the package vllm, not installed; run: pip install"):
        train(read_settings([*options("qwen3_0.6b_1gpu", math_style), "--use_vllm"]))


@pytest.mark.parametrize("preset", GPU_PRESETS)
def test_a_gpu_preset_takes_the_answer_column_beside_the_solution(preset):
    assert read_settings(["--config", preset]).run.reference_column == "answer"


@pytest.mark.parametrize("preset", GPU_PRESETS)
def test_a_gpu_preset_makes_whole_groups_with_and_without_vllm(preset):
    for words in ([], ["--use_vllm"]):
        plan = plan_batch(read_settings(["--config", preset, *words]), ranks=1, prompts=12000)
        assert plan.in_words().startswith("8 prompts x 8 completions a step; 0 prompts dropped")


def test_stop_strings_reach_the_engine_under_its_own_name():
    def kwargs(*words):
        settings = read_settings(["--config", "qwen3_0.6b_base_1gpu", *words])
        return make_configs(settings, device_of(settings, strict=False)).grpo.generation_kwargs

    stops = ["\n\nQuestion:", "\n\nProblem:"]
    assert kwargs() == {"stop_strings": stops}
    assert kwargs("--use_vllm") == {"stop": stops}


def test_thinking_is_turned_off_in_the_chat_template():
    settings = read_settings(["--config", "qwen3_0.6b_1gpu"])
    assert make_configs(settings, device_of(settings, strict=False)).grpo.chat_template_kwargs == {
        "enable_thinking": False
    }


def test_vllm_fields_are_passed_through():
    settings = read_settings(
        ["--config", "qwen3_0.6b_base_1gpu", "--vllm_mode", "server", "--vllm_server_port", "9000"]
    )
    grpo_config = make_configs(settings, device_of(settings, strict=False)).grpo
    assert (grpo_config.vllm_mode, grpo_config.vllm_server_port) == ("server", 9000)
