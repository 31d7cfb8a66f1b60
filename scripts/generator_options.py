"""The model of a command: on this machine with transformers or vLLM, or behind a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from veriward.tool_agent.errors import ConfigError, need

if TYPE_CHECKING:
    from veriward.tool_agent.generator import Generator

SMALL_MODEL = "smollm2"
ENGINES = ("transformers", "vllm")
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
BatchOption = Annotated[int, typer.Option("--batch-size", help="Texts written at the same time; a kill loses those.")]
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
    batch_size: int,
    timeout: float | None,
    engine: str = "transformers",
) -> Generator:
    if batch_size < 1:
        raise ConfigError(f"--batch-size must be at least 1, got {batch_size}")
    if timeout is not None and server is None:
        raise ConfigError("--timeout is for a --server; leave it out for models that run here")
    if timeout is not None and not 0 < timeout <= A_DAY:
        raise ConfigError(f"--timeout must be above 0 and at most {A_DAY:,} seconds, got {timeout:g}")
    if server is not None:
        if device is not None or engine != ENGINES[0]:
            raise ConfigError("--device and --engine are for models that run here; leave them out with --server")
        from veriward.eval.openai_server import OpenAIGenerator

        return OpenAIGenerator(model, base_url=server, concurrency=batch_size, timeout_s=timeout or SERVER_TIMEOUT)
    if engine == "vllm":
        if device is not None:
            raise ConfigError("--device is for transformers; choose GPUs for vllm with CUDA_VISIBLE_DEVICES")
        from veriward.eval.vllm_engine import VllmGenerator

        return VllmGenerator(model)
    from transformers.utils import logging

    from veriward.eval.generators import TransformersGenerator
    from veriward.eval.smollm2 import smollm2_path

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return TransformersGenerator(
        smollm2_path() if model == SMALL_MODEL else model, device=device, batch_size=batch_size
    )
