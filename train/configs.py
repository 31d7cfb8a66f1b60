"""From our settings to TRL's own records: GRPOConfig and ModelConfig, filled by what was asked for and by device."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

from veriward.tool_agent.errors import ConfigError
from veriward.train.processes import world_size
from veriward.train.prompts import prompt_template
from veriward.train.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Configs:
    """TRL's own records, filled."""

    grpo: Any
    model: Any
    device_name: str


def refuse_missing_packages(settings: Settings) -> None:
    """What TRL would miss only after the model has loaded."""
    value = settings.library_value
    wanted = {
        "vllm": ("use_vllm", bool(value("use_vllm")), "pip install 'veriward[vllm]'"),
        "bitsandbytes": (
            "load_in_4bit/load_in_8bit",
            bool(value("load_in_4bit") or value("load_in_8bit")),
            "pip install bitsandbytes",
        ),
    }
    for package, (key, asked, remedy) in wanted.items():
        if asked and importlib.util.find_spec(package) is None:
            raise ConfigError(f"{settings.source}: {key} needs the package {package}, not installed; run: {remedy}")


def device_of(settings: Settings, *, strict: bool = True) -> str:
    """'cuda' or 'cpu'. A preset that needs a GPU refuses to start on the CPU, where it would take weeks."""
    if settings.run.device == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        if strict and world_size() == 1 and torch.cuda.device_count() > 1:
            raise ConfigError(
                f"{torch.cuda.device_count()} GPUs are visible and one process is running; start one process for each "
                f"(accelerate launch --num_processes {torch.cuda.device_count()} ...), or show one GPU with "
                f"CUDA_VISIBLE_DEVICES=0"
            )
        return "cuda"
    if settings.run.device == "cuda" and strict:
        raise ConfigError(
            f"{settings.source}: needs a CUDA device (device: cuda) and torch {torch.__version__} sees none; "
            f"the preset quickstart_cpu runs here, and --check validates this one without a device"
        )
    return "cpu"


def make_configs(settings: Settings, device: str) -> Configs:
    """GRPOConfig and ModelConfig. What was not asked for is chosen by device, or as a command line needs it."""
    import torch
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.model_config import ModelConfig

    given = dict(settings.grpo)
    on_cuda = device == "cuda"
    chosen = {
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": not on_cuda,
        "gradient_checkpointing": on_cuda,
        "bf16": on_cuda and torch.cuda.is_bf16_supported() and not given.get("fp16", False),
    }
    if not on_cuda and settings.run.device == "cuda":  # only `--check` comes here: the settings, without their device
        given |= {"bf16": False, "fp16": False, "tf32": None, "use_vllm": False}
    model = {"dtype": "bfloat16" if on_cuda and settings.model.get("use_peft") else "float32", **settings.model}
    try:
        model_config = ModelConfig(**model)
        given |= {
            "reward_weights": list(settings.run.weights.values()),
            "generation_kwargs": with_stop_strings(settings),
            "chat_template_kwargs": with_thinking(settings),
            "model_init_kwargs": {
                "revision": model_config.model_revision,
                "attn_implementation": model_config.attn_implementation,
                "dtype": model_config.dtype,
                **(settings.library_value("model_init_kwargs") or {}),
            },
        }
        grpo = GRPOConfig(**{**chosen, **given})
    except (ValueError, TypeError, NotImplementedError, ImportError) as error:
        raise ConfigError(f"{settings.source}: {one_line(error)}") from error
    name = torch.cuda.get_device_name() if on_cuda else f"cpu, {torch.get_num_threads()} thread(s)"
    return Configs(grpo=grpo, model=model_config, device_name=name)


def with_stop_strings(settings: Settings) -> dict[str, Any] | None:
    """Stop strings under the name of the engine that generates."""
    given: dict[str, Any] = dict(settings.library_value("generation_kwargs") or {})
    if settings.run.stop_strings:
        name = "stop" if settings.library_value("use_vllm") else "stop_strings"
        given[name] = list(settings.run.stop_strings)
    return given or None


def with_thinking(settings: Settings) -> dict[str, Any] | None:
    given = {
        **(settings.library_value("chat_template_kwargs") or {}),
        **prompt_template(settings.run).chat_template_kwargs,
    }
    return given or None


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 400 else text[:397] + "..."
