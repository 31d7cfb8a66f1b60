"""What single values cannot show: settings that contradict each other, and numbers out of range.

Each function gives the line for the person, or None if there is nothing to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veriward.train.settings import Settings


def numbers_out_of_range(settings: Settings) -> str | None:
    """What numpy, torch or transformers would refuse in the middle of things, or TRL would take without a word."""
    for name, (least, most) in RANGES.items():
        value = settings.library_value(name)
        if isinstance(value, int | float) and not least <= value <= most:
            return f"{name} is {value}; it must be between {least:g} and {most:g}"
    uneven = [name for name, weight in settings.run.weights.items() if not math.isfinite(weight)]
    if uneven:
        return f"the weight of {uneven[0]} is {settings.run.weights[uneven[0]]}; it must be a finite number"
    if settings.library_value("max_steps") == 0:
        return "max_steps is 0; give at least 1, or leave it out for num_train_epochs"
    if settings.library_value("max_steps") < 0 and not settings.library_value("num_train_epochs") > 0:
        return f"num_train_epochs is {settings.library_value('num_train_epochs')}; it must be above 0"
    return None


def overlong_buffer_too_long(settings: Settings) -> str | None:
    limit, buffer = settings.library_value("max_completion_length"), settings.run.overlong_buffer
    if limit is None or limit < 1:
        return f"max_completion_length is {limit}; it must be at least 1 token"
    return None if buffer <= limit else f"overlong_buffer is {buffer}, more than max_completion_length = {limit}"


def stop_strings_twice(settings: Settings) -> str | None:
    inside = settings.library_value("generation_kwargs")
    if isinstance(inside, dict) and {"stop", "stop_strings"} & set(inside):
        return "generation_kwargs holds stop strings; give them as stop_strings, which serves every engine"
    return None


def stop_strings_unheard(settings: Settings) -> str | None:
    if not settings.run.stop_strings:
        return None
    if settings.library_value("use_transformers_continuous_batching"):
        return "stop_strings are not heard by use_transformers_continuous_batching; turn one of the two off"
    if settings.library_value("mask_truncated_completions"):
        return (
            "mask_truncated_completions takes every response that a stop string ended for a truncated one "
            "(it has no end token) and would learn nothing from it; turn one of the two off"
        )
    return None


def thinking_without_chat(settings: Settings) -> str | None:
    if settings.run.enable_thinking is not None and settings.run.template != "chat":
        return f"enable_thinking is for template: chat, and template is {settings.run.template!r}; remove one"
    inside = settings.library_value("chat_template_kwargs")
    if settings.run.enable_thinking is not None and isinstance(inside, dict) and "enable_thinking" in inside:
        return "enable_thinking stands in chat_template_kwargs, too; remove it there"
    return None


def evaluation_without_problems(settings: Settings) -> str | None:
    if settings.grpo.get("eval_strategy", "no") != "no":
        return (
            "eval_strategy: evaluation in training is not supported yet; evaluate the saved model with `veriward eval`"
        )
    return None


def tiny_paths(settings: Settings) -> str | None:
    """`prepare: tiny` writes FOLDER/base and FOLDER/data, so both paths must lie there."""
    if settings.run.prepare != "tiny":
        return None
    model = Path(str(settings.model["model_name_or_path"]))
    wanted = model.parent / "data"
    if model.name != "base" or Path(settings.run.problems).parent != wanted:
        return (
            f"prepare: tiny makes FOLDER/base and FOLDER/data/train.jsonl, but model_name_or_path is '{model}' and "
            f"problems is '{settings.run.problems}'; give both in one FOLDER"
        )
    return None


def model_folder_missing(settings: Settings) -> str | None:
    name = str(settings.model["model_name_or_path"])
    looks_local = name.startswith((".", "/", "~")) or name.count("/") != 1
    path = Path(name).expanduser()
    if settings.run.prepare == "tiny" or not (looks_local and "/" in name) or path.is_dir():
        return None
    return f"model_name_or_path is '{name}': no such folder; give a model folder or a hub name as 'Qwen/Qwen3-0.6B'"


RANGES: Mapping[str, tuple[float, float]] = {
    "seed": (0, 2**32 - 1),
    "learning_rate": (0.0, 1e3),
    "temperature": (1e-4, 1e4),
    "top_p": (1e-9, 1.0),
    "beta": (0.0, 1e6),
    "epsilon": (0.0, 1e6),
    "weight_decay": (0.0, 1e3),
    "max_grad_norm": (0.0, 1e9),
}
"""Least and most; NaN lies in no range."""


CROSS_CHECKS: tuple[Callable[[Settings], str | None], ...] = (
    numbers_out_of_range,
    overlong_buffer_too_long,
    stop_strings_twice,
    stop_strings_unheard,
    thinking_without_chat,
    evaluation_without_problems,
    tiny_paths,
    model_folder_missing,
)
