"""The generator that runs a model with vLLM's offline engine, for many responses on a GPU.

Covered: model folders, hub names, LoRA adapter folders; greedy or sampled; stop strings; chat templates.
Not covered: several machines, quantised adapters, images. It is written against vLLM's documentation and tested where
there is a GPU; the parts that need none are tested everywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from veriward.eval.generators import check_request, derive_seed, numbers_of, tokenize
from veriward.eval.model_loading import check_place, first_line, hash_tokenizer, is_adapter
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.generator import NO_ROOM, Finished, FinishReason, Generation, Prompt, goes_on

AT_ONCE = 1_024
"""Prompts handed to the engine together: what is in the air when a run is killed is asked again."""
SEEDS = 2**31
"""Seeds of a request are below this."""
WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One response to be written."""

    index: int
    """Of its prompt in the call."""
    token_ids: list[int]
    limit: int
    """New tokens at most; under 1 where the context leaves none."""
    seed: int | None


class VllmGenerator:
    """Answers prompts with vLLM, which schedules and batches them itself.

    A sampled response is drawn from its own seed, made as that of `TransformersGenerator`. Batch composition can
    still change rounding, and so a close call between two tokens.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        dtype: str = "auto",
        max_model_len: int | None = None,
        max_num_seqs: int = 256,
        gpu_memory_utilization: float = 0.9,
        tensor_parallel_size: int = 1,
        enforce_eager: bool = False,
    ) -> None:
        """Load a model folder, a hub name, or the folder of a LoRA adapter, which names its base.

        max_model_len          tokens of prompt and response together; the model's own if None
        max_num_seqs           responses written at the same time
        raises                 ConfigError if there is no such model, or it does not fit
        """
        need("vllm", extra="vllm", purpose="the engine vllm")
        from vllm import LLM

        check_place(str(model))
        self.name = str(model)
        base, adapter = base_and_adapter(self.name)
        options: dict[str, Any] = {
            "dtype": dtype,
            "max_model_len": max_model_len,
            "max_num_seqs": max_num_seqs,
            "gpu_memory_utilization": gpu_memory_utilization,
            "tensor_parallel_size": tensor_parallel_size,
            "enforce_eager": enforce_eager,
        }
        if adapter is not None:
            options |= {"enable_lora": True, "max_lora_rank": rank_of(adapter)}
        try:
            self._llm: Any = LLM(model=base, tokenizer=tokenizer_of(base, adapter), seed=0, **options)
        except (ValueError, RuntimeError, OSError) as error:
            raise ConfigError(f"{self.name}: vLLM cannot load it: {first_line(error)}") from error
        self._tokenizer: Any = self._llm.get_tokenizer()
        self._adapter = adapter
        self._settings = {
            "engine": "vllm",
            "engine_version": version("vllm"),
            "model": self.name,
            "weights_sha256": hash_files(base if adapter is None else adapter),
            "base_sha256": None if adapter is None else hash_files(base),
            "tokenizer_sha256": hash_tokenizer(self._tokenizer),
            "chat_template": getattr(self._tokenizer, "chat_template", None),
            "device": device_name(),
            "context": self._context(),
            **{name: value for name, value in options.items() if name != "gpu_memory_utilization"},
        }

    @property
    def settings(self) -> Mapping[str, object]:
        return self._settings

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        sample_numbers: Sequence[int] | None = None,
        temperature: float = 0.0,
        max_new_tokens: int,
        seed: int,
        stop: Sequence[str] = (),
        chat_template_kwargs: Mapping[str, object] | None = None,
        on_finished: Callable[[Finished], None] | None = None,
    ) -> list[Generation]:
        """See `Generator`. Responses are handed over after every AT_ONCE prompts."""
        check_request(temperature, max_new_tokens)
        numbers = numbers_of(prompts, sample_numbers)
        requests = [
            self._request(index, prompt, numbers[index], temperature, max_new_tokens, seed, chat_template_kwargs or {})
            for index, prompt in enumerate(prompts)
        ]
        results: dict[int, Generation] = {}
        for part in parts_of(requests, AT_ONCE):
            finished = self._write(part, temperature, stop)
            results.update(finished)
            if on_finished is not None:
                on_finished(finished)
        return [results[index] for index in range(len(prompts))]

    def _request(
        self,
        index: int,
        prompt: Prompt,
        sample: int,
        temperature: float,
        max_new_tokens: int,
        seed: int,
        chat_template_kwargs: Mapping[str, object],
    ) -> Request:
        text, token_ids = tokenize(self._tokenizer, self.name, prompt, chat_template_kwargs)
        limit = min(max_new_tokens, self._context() - len(token_ids))
        if limit < 1 and not goes_on(prompt):
            raise ConfigError(
                f"{self.name}: a prompt has {len(token_ids)} tokens and the engine's context {self._context()}; "
                f"take the problem out, or raise max_model_len; it begins {text[:60]!r}"
            )
        own = derive_seed(seed, text, sample) % SEEDS if temperature > 0 else None
        return Request(index=index, token_ids=token_ids, limit=limit, seed=own)

    def _write(
        self, requests: Sequence[Request], temperature: float, stop: Sequence[str]
    ) -> list[tuple[int, Generation]]:
        from vllm import SamplingParams
        from vllm.lora.request import LoRARequest

        full = [(request.index, NO_ROOM) for request in requests if request.limit < 1]
        asked = [request for request in requests if request.limit >= 1]
        if not asked:
            return full
        adapter = None if self._adapter is None else LoRARequest("adapter", 1, self._adapter)
        written = self._llm.generate(
            [{"prompt_token_ids": request.token_ids} for request in asked],
            [SamplingParams(**sampling(request, temperature, stop)) for request in asked],
            lora_request=adapter,
            use_tqdm=False,
        )
        return full + [
            (request.index, as_generation(output.outputs[0], request.seed))
            for request, output in zip(asked, written, strict=True)
        ]

    def _context(self) -> int:
        return int(self._llm.llm_engine.model_config.max_model_len)


def parts_of(requests: Sequence[Request], size: int) -> Iterator[Sequence[Request]]:
    for start in range(0, len(requests), size):
        yield requests[start : start + size]


def sampling(request: Request, temperature: float, stop: Sequence[str]) -> dict[str, Any]:
    """None of the model's own sampling settings takes part: what is not said here is off."""
    return {
        "temperature": temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "max_tokens": request.limit,
        "seed": request.seed,
        "stop": list(stop) or None,
        "skip_special_tokens": True,
    }


def as_generation(output: Any, seed: int | None) -> Generation:
    """Of vLLM's CompletionOutput: anything but the length is an end of the model's, or a stop string."""
    finish_reason: FinishReason = "length" if output.finish_reason == "length" else "stop"
    return Generation(text=output.text, token_ids=tuple(output.token_ids), finish_reason=finish_reason, seed=seed)


def base_and_adapter(name: str) -> tuple[str, str | None]:
    if not is_adapter(name):
        return name, None
    base = adapter_config(name).get("base_model_name_or_path")
    if not base:
        raise ConfigError(f"{name}: adapter_config.json names no base model (base_model_name_or_path); add it there")
    return str(base), name


def tokenizer_of(base: str, adapter: str | None) -> str:
    """The adapter's own, if there is one: training may have given it another chat template."""
    own = adapter is not None and Path(adapter, "tokenizer_config.json").is_file()
    return str(adapter) if own else base


def rank_of(adapter: str) -> int:
    """The engine reserves room for ranks of powers of two from 8 on."""
    rank = int(adapter_config(adapter).get("r", 8))
    return max(8, 1 << (rank - 1).bit_length())


def adapter_config(name: str) -> dict[str, Any]:
    try:
        found = json.loads(Path(name, "adapter_config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}: adapter_config.json cannot be read: {error}") from error
    return dict(found)


def hash_files(name: str) -> str:
    """sha256 over the weight files of a folder, or of what the engine fetched for a hub name: another checkpoint is
    noticed."""
    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, local_files_only=True))
    files = sorted(file for pattern in WEIGHTS for file in folder.glob(pattern))
    if not files:
        raise ConfigError(f"{name}: no weights ({', '.join(WEIGHTS)}) in it; wanted a saved model")
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            digest.update(f"{file.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def device_name() -> str:
    import torch

    if not torch.cuda.is_available():
        return "cpu"
    return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}"
