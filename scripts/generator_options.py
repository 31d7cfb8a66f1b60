"""The model of a command: on this machine with transformers or vLLM, or behind a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veriward.tool_agent.errors import ConfigError, need

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veriward.tool_agent.generator import Generator

SMALL_MODEL = "smollm2"
ENGINES = ("transformers", "vllm")
BATCH_SIZE = 16
VLLM_OPTIONS: dict[str, tuple[Any, str]] = {
    "dtype": (str, "bfloat16"),
    "max_model_len": (int, "4096"),
    "gpu_memory_utilization": (int | float, "0.8"),
    "tensor_parallel_size": (int, "2"),
    "enforce_eager": (bool, "true"),
}
"""Arguments of `VllmGenerator` that a command takes: their type, and an example."""
SERVER_TIMEOUT = 600.0
"""Seconds, unless --timeout says another number."""
A_DAY = 86_400
"""Seconds; a wait is over some day, and systems take no number of any size."""

ModelOption = Annotated[
    str,
    typer.Option("--model", help="'smollm2', a model or adapter folder, a GGUF file, or a hub name."),
]
ServerOption = Annotated[
    str | None, typer.Option("--server", help="Ask this OpenAI-compatible server for the model.", metavar="URL")
]
EngineOption = Annotated[str, typer.Option("--engine", help="'transformers', or 'vllm' on a GPU.")]
DeviceOption = Annotated[
    str | None, typer.Option("--device", help="As 'cuda:1' or 'cpu'.", show_default="CUDA if there")
]
BatchOption = Annotated[
    int | None,
    typer.Option(
        "--batch-size", help="Texts written at the same time; a kill loses those.", show_default="16; with vllm 256"
    ),
]
EngineSettingsOption = Annotated[
    list[str] | None,
    typer.Option("--engine-option", help="Of vllm, as max_model_len=4096; may be repeated.", metavar="NAME=VALUE"),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout", help="Seconds for one try of a server.", show_default=f"{SERVER_TIMEOUT:g}", metavar="SECONDS"
    ),
]
StoreOption = Annotated[str, typer.Option("--store", help="'files', one a response; 'sqlite' for large sets.")]
DurabilityOption = Annotated[
    str,
    typer.Option("--durability", help="A stored state survives: 'power' failures; or only the end of the 'process'."),
]


def check_extras(command: str, server: str | None, engine: str = "transformers") -> None:
    """Everything that a run will need, before anything is read or loaded."""
    if engine not in ENGINES:
        raise ConfigError(f"unknown engine {engine!r}; wanted one of {', '.join(ENGINES)}")
    if server is not None:
        need("openai", extra="agent", purpose=f"{command} --server")
    else:
        for module in ("torch", "transformers"):
            need(module, extra="train", purpose=f"{command} with a model that runs here")
    if engine == "vllm":
        need("vllm", extra="vllm", purpose=f"{command} --engine vllm")
    need("scipy", extra="eval", purpose=command)


def made_generator(
    model: str,
    server: str | None,
    device: str | None,
    batch_size: int | None,
    timeout: float | None,
    engine: str = "transformers",
    engine_options: Sequence[str] = (),
) -> Generator:
    if batch_size is not None and batch_size < 1:
        raise ConfigError(f"--batch-size must be at least 1, got {batch_size}")
    if timeout is not None and server is None:
        raise ConfigError("--timeout is for a --server; leave it out for models that run here")
    if timeout is not None and not 0 < timeout <= A_DAY:
        raise ConfigError(f"--timeout must be above 0 and at most {A_DAY:,} seconds, got {timeout:g}")
    if engine_options and (engine != "vllm" or server is not None):
        raise ConfigError("--engine-option is for --engine vllm; leave it out")
    small = batch_size or BATCH_SIZE
    if server is not None:
        if device is not None or engine != ENGINES[0]:
            raise ConfigError("--device and --engine are for models that run here; leave them out with --server")
        from veriward.eval.openai_server import OpenAIGenerator

        return OpenAIGenerator(model, base_url=server, concurrency=small, timeout_s=timeout or SERVER_TIMEOUT)
    if engine == "vllm":
        if device is not None:
            raise ConfigError("--device is for transformers; choose GPUs for vllm with CUDA_VISIBLE_DEVICES")
        from veriward.eval.vllm_engine import VllmGenerator

        given: dict[str, Any] = {} if batch_size is None else {"max_num_seqs": batch_size}
        return VllmGenerator(place_of(model), **given, **vllm_settings(engine_options))
    from transformers.utils import logging

    from veriward.eval.generators import TransformersGenerator

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return TransformersGenerator(place_of(model), device=device, batch_size=small)


def place_of(model: str) -> str:
    from veriward.eval.smollm2 import smollm2_path

    return str(smollm2_path()) if model == SMALL_MODEL else model


def vllm_settings(options: Sequence[str]) -> dict[str, Any]:
    """As numbers and switches where they are written so: max_model_len=4096, enforce_eager=true."""
    found: dict[str, Any] = {}
    for option in options:
        name, _, value = option.partition("=")
        fits, wanted = VLLM_OPTIONS.get(name, (None, ""))
        if fits is None:
            raise ConfigError(f"--engine-option {option}: unknown; wanted one of {', '.join(VLLM_OPTIONS)}")
        try:
            found[name] = value if fits is str else json.loads(value)
        except ValueError:
            found[name] = None
        if not value or not isinstance(found[name], fits) or (fits is not bool and isinstance(found[name], bool)):
            raise ConfigError(f"--engine-option {option}: wanted {name}={wanted}")
    return found
