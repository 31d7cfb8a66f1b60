"""The generator that runs a model with vLLM's offline engine, for many responses on a GPU.

Covered: model folders, hub names, LoRA adapter folders; greedy or sampled; stop strings; chat templates. Every
response is handed over in the step that completes it.
Not covered: GGUF files, several machines, quantised adapters, images; weights that a model folder lacks, which vLLM
does not always notice and fills with other numbers (`TransformersGenerator` refuses such a folder); an engine that
the system kills, as for memory: vLLM waits for it without end, so stop the command and start it again.
Tested with vLLM 0.30 on a CPU; the tests are the same where there is a GPU.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from veriward.eval.generators import check_request, derive_seed, numbers_of, tokenize
from veriward.eval.model_loading import GGUF, check_place, first_line, hash_tokenizer, is_adapter
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.generator import NO_ROOM, Finished, Generation, Prompt, goes_on

SEEDS = 2**31
"""Seeds of a request are below this."""
MEMORY = "max_num_seqs, max_model_len or gpu_memory_utilization"
WEIGHTS = ("*.safetensors", "*.bin", "*.pt")
"""The first of them that a folder holds is what the engine loads; a trainer leaves other .bin files beside it."""


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
        log_to_stderr()
        need("vllm", extra="vllm", purpose="the engine vllm")
        self.name = str(model)
        base, adapter = base_and_adapter(self.name)
        check_folder(base)
        if adapter is not None:
            check_folder(adapter)
        import vllm

        options: dict[str, Any] = {} if adapter is None else {"enable_lora": True, "max_lora_rank": rank_of(adapter)}
        try:
            self._llm: Any = vllm.LLM(
                model=base,
                tokenizer=tokenizer_of(base, adapter),
                seed=0,
                dtype=dtype,
                max_model_len=max_model_len,
                max_num_seqs=max_num_seqs,
                gpu_memory_utilization=gpu_memory_utilization,
                tensor_parallel_size=tensor_parallel_size,
                enforce_eager=enforce_eager,
                **options,
            )
        except Exception as error:  # a damaged folder fails in as many ways as there are files in it
            raise ConfigError(f"{self.name}: vLLM cannot load it: {reason_of(error)}") from error
        self._engine: Any = self._llm.llm_engine
        self._tokenizer: Any = self._llm.get_tokenizer()
        self._adapter = adapter
        self._at_once = 2 * max_num_seqs  # so that something waits wherever a response ends
        self._names = count()
        self._settings = {
            "engine": "vllm",
            "engine_version": vllm.__version__,
            "model": self.name,
            "weights_sha256": hash_files(base, *([] if adapter is None else [adapter])),
            **({} if adapter is None else {"adapter_sha256": hash_files(adapter)}),
            "tokenizer_sha256": hash_tokenizer(self._tokenizer),
            "chat_template": getattr(self._tokenizer, "chat_template", None),
            "dtype": str(self._engine.model_config.dtype).removeprefix("torch."),
            "device": device_name(),
            "devices": tensor_parallel_size,
            "max_num_seqs": max_num_seqs,
            "enforce_eager": enforce_eager,
            "context": self._context(),
            "end_tokens": self._end_tokens(),
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
        """See `Generator`. Many responses end in no order, so what a killed run loses is only what was in the air."""
        check_request(temperature, max_new_tokens)
        numbers = numbers_of(prompts, sample_numbers)
        results: dict[int, Generation] = {}

        def hand_over(finished: Finished) -> None:
            results.update(finished)
            if on_finished is not None and finished:
                on_finished(finished)

        requests = [
            self._request(index, prompt, numbers[index], temperature, max_new_tokens, seed, chat_template_kwargs or {})
            for index, prompt in enumerate(prompts)
        ]
        hand_over([(request.index, NO_ROOM) for request in requests if request.limit < 1])
        asked = [request for request in requests if request.limit >= 1]
        with closing(self._write(asked, temperature, stop)) as steps:
            for finished in steps:
                hand_over(finished)
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
    ) -> Generator[Finished, None, None]:
        """What each step of the engine completes. Closed early, it leaves nothing behind in the engine."""
        from vllm.v1.engine.exceptions import EngineDeadError

        waiting = list(reversed(requests))
        in_air: dict[str, Request] = {}
        try:
            while waiting or in_air:
                while waiting and len(in_air) < self._at_once:
                    name = str(next(self._names))
                    in_air[name] = waiting.pop()
                    self._ask(name, in_air[name], temperature, stop)
                ended = [output for output in self._engine.step() if output.finished]
                yield [self._read(in_air.pop(output.request_id), output.outputs[0], stop) for output in ended]
        except EngineDeadError as error:
            in_air.clear()
            raise ConfigError(
                f"{self.name}: vLLM's engine has died, and its log above says why; if memory ran out, lower {MEMORY}"
            ) from error
        finally:
            if in_air:
                self._engine.abort_request(list(in_air))

    def _ask(self, name: str, request: Request, temperature: float, stop: Sequence[str]) -> None:
        from vllm import SamplingParams
        from vllm.lora.request import LoRARequest
        from vllm.sampling_params import RequestOutputKind

        [prompt] = self._engine.renderer.render_cmpl([{"prompt_token_ids": request.token_ids}])
        self._engine.add_request(
            name,
            prompt,
            SamplingParams(**sampling(request, temperature, stop), output_kind=RequestOutputKind.FINAL_ONLY),
            lora_request=None if self._adapter is None else LoRARequest("adapter", 1, self._adapter),
        )

    def _read(self, request: Request, output: Any, stop: Sequence[str]) -> tuple[int, Generation]:
        """Of vLLM's CompletionOutput. Its own text leaves out the last character of a response that was cut inside it,
        and would so be another than that of `TransformersGenerator`."""
        text = str(self._tokenizer.decode(output.token_ids, skip_special_tokens=True))
        return request.index, as_generation(text, output.token_ids, output.finish_reason, stop, request.seed)

    def _context(self) -> int:
        return int(self._engine.model_config.max_model_len)

    def _end_tokens(self) -> list[int]:
        """Those that the engine ends a response at: of the model's generation settings and the tokenizer's."""
        named = self._engine.model_config.try_get_generation_config().get("eos_token_id")
        found = {named} if isinstance(named, int) else set(named or ())
        return sorted(found | ({self._tokenizer.eos_token_id} - {None}))


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


def as_generation(
    text: str, token_ids: Sequence[int], finish_reason: str | None, stop: Sequence[str], seed: int | None
) -> Generation:
    """What the engine broke off is no response."""
    if finish_reason not in ("stop", "length"):
        raise ConfigError(f"vLLM broke off a response ({finish_reason}); see its log, and start the run again")
    cuts = [text.index(mark) for mark in stop if mark in text]
    return Generation(
        text=text[: min(cuts)] if cuts else text,
        token_ids=tuple(token_ids),
        finish_reason="stop" if cuts or finish_reason == "stop" else "length",
        seed=seed,
    )


def reason_of(error: Exception) -> str:
    """Errors of a check by pydantic have a title in their first line and the reason below it."""
    found = getattr(error, "errors", None)
    if callable(found):
        return str(found()[0]["msg"]).removeprefix("Value error, ")
    advice = f"; if memory ran out, lower {MEMORY}" if isinstance(error, RuntimeError) else ""
    return first_line(error) + advice


def check_folder(name: str) -> None:
    """ConfigError for a path without weights, before the engine starts: it takes half a minute to find that out."""
    if Path(name).suffix.lower() == GGUF:
        raise ConfigError(f"{name}: vLLM takes no GGUF file; use the engine transformers, or a saved model")
    check_place(name)
    if Path(name).is_dir():
        weight_files(name)


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


def hash_files(*names: str) -> str:
    """sha256 over the weight files of folders, or of what the engine fetched for hub names: another checkpoint is
    noticed."""
    digest = hashlib.sha256()
    for name in names:
        for file in weight_files(name):
            with file.open("rb") as stream:
                digest.update(f"{file.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def weight_files(name: str) -> list[Path]:
    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, local_files_only=True))
    found = next((files for pattern in WEIGHTS if (files := sorted(folder.glob(pattern)))), None)
    if found is None:
        raise ConfigError(f"{name}: no weights ({', '.join(WEIGHTS)}) in it; wanted a saved model")
    return found


def log_to_stderr() -> None:
    """A command's output is its result alone. vLLM looks at the variable when it is imported, here and in its
    workers."""
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    for handler in logging.getLogger("vllm").handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stdout:
            handler.setStream(sys.stderr)


def device_name() -> str:
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
