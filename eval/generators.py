"""Generators: what turns prompts into responses. So far `transformers`, on CUDA or the CPU.

Covered: model folders, hub names, LoRA adapter folders (peft), models already loaded; greedy or sampled,
several samples a prompt, stop strings.
Not covered: models that do not fit on one device, encoder-decoder models, images.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.generator import Finished, FinishReason, Generation, Prompt

if TYPE_CHECKING:
    import torch

DEFAULT_BATCH_SIZE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One response to be written: one row of a batch."""

    prompt: int
    """Index into the prompts of the call."""
    sample: int
    token_ids: list[int]
    limit: int
    """New tokens at most: max_new_tokens, or what the model's context leaves."""
    seed: int | None


class TransformersGenerator:
    """Answers prompts with a causal language model of `transformers`.

    A sampled response depends on its own seed, which is made of the call's seed, the prompt and the sample's
    index: neither the other rows of its batch nor the global random state take part. Batch composition can still
    change rounding, and so a close call between two tokens.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | None = None,
        dtype: str | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """Load a model folder, a hub name, or the folder of a LoRA adapter, which names its base.

        device       'cuda', 'cpu', …; CUDA if there is one
        dtype        'bfloat16', 'float32', …; bfloat16 on CUDA, float32 on the CPU
        batch_size   responses written at the same time
        raises       ConfigError if there is no such model, or weights are missing in it
        """
        need("torch", extra="train", purpose="running a model")
        need("transformers", extra="train", purpose="running a model")
        import torch

        check_batch_size(batch_size)
        device = choose_device(device)
        dtype = dtype or ("float32" if device == "cpu" else "bfloat16")
        if not isinstance(getattr(torch, dtype, None), torch.dtype):
            raise ConfigError(f"unknown dtype {dtype!r}; wanted float32, bfloat16 or float16")
        self.name = str(model)
        self.batch_size = batch_size
        self._model, self._tokenizer = load(self.name, device=device, dtype=getattr(torch, dtype))
        self._weights_sha256 = hash_weights(self._model)

    @classmethod
    def from_loaded(
        cls, model: Any, tokenizer: Any, *, name: str, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> TransformersGenerator:
        """For a model in memory, as in the middle of a training run; it stays on its device and in its mode.

        Its weights are hashed here: build a new generator after they have changed.
        """
        check_batch_size(batch_size)
        self = cls.__new__(cls)
        self.name, self.batch_size, self._model, self._tokenizer = name, batch_size, model, tokenizer
        self._weights_sha256 = hash_weights(model)
        return self

    @property
    def settings(self) -> Mapping[str, object]:
        return {
            "engine": "transformers",
            "model": self.name,
            "weights_sha256": self._weights_sha256,
            "tokenizer_sha256": hash_tokenizer(self._tokenizer),
            "chat_template": getattr(self._tokenizer, "chat_template", None),
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "device": self._device_name(),
            "batch_size": self.batch_size,
            "context": self._context(),
            "end_tokens": self._end_tokens(),
        }

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        samples: int = 1,
        temperature: float = 0.0,
        max_new_tokens: int,
        seed: int,
        stop: Sequence[str] = (),
        chat_template_kwargs: Mapping[str, object] | None = None,
        on_finished: Callable[[Finished], None] | None = None,
    ) -> list[list[Generation]]:
        """See `Generator`. The longest prompts come first: a lack of memory shows at once, not after hours."""
        check_request(samples, temperature, max_new_tokens)
        jobs = [
            job
            for index, prompt in enumerate(prompts)
            for job in self._jobs(index, prompt, samples, temperature, max_new_tokens, seed, chat_template_kwargs or {})
        ]
        jobs.sort(key=lambda job: (-len(job.token_ids), job.prompt, job.sample))
        results: list[list[Generation]] = [[] for _ in prompts]
        with ready_to_generate(self._model):
            for start in range(0, len(jobs), self.batch_size):
                batch = jobs[start : start + self.batch_size]
                for job, generation in zip(batch, self._write(batch, temperature, stop), strict=True):
                    results[job.prompt].append(generation)
                if on_finished is not None:
                    done = [job.prompt for job in batch if job.sample == samples - 1]
                    on_finished([(index, results[index]) for index in done])
        return results

    def _jobs(
        self,
        index: int,
        prompt: Prompt,
        samples: int,
        temperature: float,
        max_new_tokens: int,
        seed: int,
        chat_template_kwargs: Mapping[str, object],
    ) -> Iterator[Job]:
        text, token_ids = self._tokenize(prompt, chat_template_kwargs)
        context = self._context()
        limit = max_new_tokens if context is None else min(max_new_tokens, context - len(token_ids))
        if limit < 1:
            raise ConfigError(
                f"{self.name}: a prompt has {len(token_ids)} tokens and the model's context {context}; "
                f"take the problem out, or another model; it begins {text[:60]!r}"
            )
        for sample in range(samples):
            sample_seed = derive_seed(seed, text, sample) if temperature > 0 else None
            yield Job(prompt=index, sample=sample, token_ids=token_ids, limit=limit, seed=sample_seed)

    def _tokenize(self, prompt: Prompt, chat_template_kwargs: Mapping[str, object]) -> tuple[str, list[int]]:
        """The text in front of the model and its tokens; a chat template brings its own special tokens."""
        if isinstance(prompt, str):
            return prompt, self._tokenizer(prompt)["input_ids"]
        if getattr(self._tokenizer, "chat_template", None) is None:
            raise ConfigError(f"{self.name}: the model has no chat template; use template 'plain' or a template file")
        text = self._tokenizer.apply_chat_template(
            prompt, tokenize=False, add_generation_prompt=True, **chat_template_kwargs
        )
        return text, self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def _write(self, batch: Sequence[Job], temperature: float, stop: Sequence[str]) -> list[Generation]:
        import torch

        input_ids, attention_mask = pad_left([job.token_ids for job in batch], self._pad_token(), self._model.device)
        width = input_ids.shape[1]
        watch = StopWatch(self._decode, stop, width) if stop else None
        try:
            with torch.no_grad():
                output = self._model.generate(
                    input_ids=input_ids,
                    attention_mask=attention_mask,
                    generation_config=self._generation_config(max(job.limit for job in batch)),
                    logits_processor=[RowSampler([job.seed for job in batch], temperature)] if temperature > 0 else [],
                    stopping_criteria=[] if watch is None else [watch],
                )
        except torch.OutOfMemoryError as error:
            raise ConfigError(
                f"{self.name}: out of GPU memory with {len(batch)} responses at a time; lower the batch size"
            ) from error
        stopped = {} if watch is None else watch.stopped
        rows = output[:, width:].tolist()
        return [self._read(job, rows[index], stopped.get(index), stop) for index, job in enumerate(batch)]

    def _generation_config(self, max_new_tokens: int) -> Any:
        from transformers import GenerationConfig

        return GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False,  # RowSampler samples; what it returns leaves the choice to the largest value
            max_new_tokens=max_new_tokens,
            eos_token_id=self._end_tokens() or None,
            pad_token_id=self._pad_token(),
        )

    def _read(self, job: Job, token_ids: list[int], stopped: int | None, stop: Sequence[str]) -> Generation:
        """Cut a row at its end token, stop string or limit, whichever came first: what follows is padding."""
        end_tokens = set(self._end_tokens())
        ends = [job.limit] if stopped is None else [job.limit, stopped]
        kept = token_ids[: min(ends)]
        end = next((position for position, token in enumerate(kept) if token in end_tokens), None)
        kept = kept if end is None else kept[: end + 1]
        text = self._decode(kept)
        cuts = [text.index(mark) for mark in stop if mark in text]
        finish_reason: FinishReason = "stop" if end is not None or cuts else "length"
        return Generation(
            text=text[: min(cuts)] if cuts else text,
            token_ids=tuple(kept),
            finish_reason=finish_reason,
            seed=job.seed,
        )

    def _decode(self, token_ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(token_ids, skip_special_tokens=True))

    def _end_tokens(self) -> list[int]:
        """Of the model's generation settings and the tokenizer's: a base model often names only one of its two."""
        named = self._model.generation_config.eos_token_id
        found = {named} if isinstance(named, int) else set(named or ())
        return sorted(found | ({self._tokenizer.eos_token_id} - {None}))

    def _pad_token(self) -> int:
        if self._tokenizer.pad_token_id is not None:
            return int(self._tokenizer.pad_token_id)
        return (self._end_tokens() or [0])[0]

    def _context(self) -> int | None:
        return getattr(self._model.config.get_text_config(), "max_position_embeddings", None)

    def _device_name(self) -> str:
        import torch

        device: torch.device = self._model.device
        return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


class StopWatch:
    """Ends a row once its new text holds a stop string, as a stopping criterion; remembers after how many tokens."""

    def __init__(self, decode: Callable[[Sequence[int]], str], stop: Sequence[str], width: int) -> None:
        self._decode, self._stop, self._width = decode, stop, width
        # A token adds at least one byte and a character has at most four, save for special tokens: some room.
        self._tail = 4 * max(map(len, stop)) + 16
        self.stopped: dict[int, int] = {}

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: object) -> torch.Tensor:
        import torch

        written = input_ids.shape[1] - self._width
        tails = input_ids[:, self._width :][:, -self._tail :].tolist()
        for row, tail in enumerate(tails):
            if row not in self.stopped and any(mark in self._decode(tail) for mark in self._stop):
                self.stopped[row] = written
        return torch.tensor([row in self.stopped for row in range(len(tails))], device=input_ids.device)


class RowSampler:
    """Samples every row from its own random numbers, as a logits processor in front of a greedy choice.

    argmax(scores / temperature - log(E)) with E exponential is a draw from softmax(scores / temperature):
    the way torch.multinomial draws, too. The global random state is neither read nor written.
    """

    def __init__(self, seeds: Sequence[int | None], temperature: float) -> None:
        self._seeds, self._temperature = seeds, temperature
        self._streams: list[torch.Generator] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        if not self._streams:
            self._streams = [torch.Generator(scores.device).manual_seed(seed or 0) for seed in self._seeds]
        scores = scores.float() / self._temperature
        waits = torch.empty_like(scores)
        for row, stream in zip(waits, self._streams, strict=True):
            row.exponential_(generator=stream)
        return scores - waits.clamp_min_(torch.finfo(waits.dtype).tiny).log_()


@contextmanager
def ready_to_generate(model: Any) -> Iterator[None]:
    """Evaluation mode, and none of the model's own sampling settings: a repetition penalty in its folder counts.

    Everything is put back at the end: the model may be in the middle of its training.
    """
    from transformers import GenerationConfig

    training, own = model.training, model.generation_config
    # generate() of peft hands its settings down to the model inside.
    owners = [model, model.get_base_model()] if hasattr(model, "get_base_model") else [model]
    ends = {"eos_token_id": own.eos_token_id, "pad_token_id": own.pad_token_id}
    for owner in owners:
        owner.generation_config = GenerationConfig(**ends)  # type: ignore[no-untyped-call]
    model.eval()
    try:
        yield
    finally:
        for owner in owners:
            owner.generation_config = own
        model.train(training)


def derive_seed(seed: int, text: str, sample: int) -> int:
    digest = hashlib.sha256(f"{seed}\n{sample}\n{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) >> 1


def pad_left(rows: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, L) token ids and their attention mask; the prompts end together, so that writing starts together."""
    import torch

    longest = max(map(len, rows))
    token_ids = [[pad] * (longest - len(row)) + list(row) for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(token_ids, device=device), torch.tensor(mask, device=device)


def check_batch_size(batch_size: int) -> None:
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, got {batch_size}")


def check_request(samples: int, temperature: float, max_new_tokens: int) -> None:
    if samples < 1:
        raise ConfigError(f"samples must be at least 1, got {samples}")
    if not 0 <= temperature < float("inf"):
        raise ConfigError(f"temperature must be 0 (greedy) or above, got {temperature}")
    if samples > 1 and temperature == 0:
        raise ConfigError(
            f"{samples} samples at temperature 0 are the same response {samples} times; raise temperature"
        )
    if max_new_tokens < 1:
        raise ConfigError(f"max_new_tokens must be at least 1, got {max_new_tokens}")


def choose_device(wanted: str | None) -> str:
    import torch

    if wanted is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(wanted).type
    except RuntimeError as error:
        raise ConfigError(f"unknown device {wanted!r}: {first_line(error)}") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f"device {wanted!r} asked for, but this torch ({torch.__version__}) finds no CUDA device; use cpu"
        )
    return wanted


def load(name: str, *, device: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """Model and tokenizer, the model in evaluation mode on its device."""
    folder = Path(name)
    if folder.is_dir() and (folder / "adapter_config.json").is_file():
        return load_adapter(name, device=device, dtype=dtype)
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ConfigError(f"{name}: no config.json or adapter_config.json in it; wanted a folder with a saved model")
    if not folder.is_dir() and (folder.is_absolute() or name.count("/") > 1 or name.startswith(".")):
        raise ConfigError(f"{name}: no such folder; wanted a saved model's folder, or a hub name")
    return load_model(name, device=device, dtype=dtype), load_tokenizer(name)


def load_model(name: str, *, device: str, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    auto_class: Any = AutoModelForCausalLM
    try:
        model, info = auto_class.from_pretrained(name, dtype=dtype, output_loading_info=True)
    except Exception as error:  # a damaged folder fails in as many ways as there are files in it
        raise ConfigError(f"{name}: no model can be loaded from it: {first_line(error)}") from error
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        raise ConfigError(
            f"{name}: {len(missing)} weights are missing, such as {missing[0]}; "
            "they would be random numbers: save the model again"
        )
    return model.to(device).eval()


def load_tokenizer(name: str) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name)
    except Exception as error:
        raise ConfigError(f"{name}: no tokenizer can be loaded from it: {first_line(error)}") from error


def load_adapter(name: str, *, device: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """A LoRA adapter on its base; the tokenizer of the adapter's folder if there is one, else the base's."""
    need("peft", extra="train", purpose=f"{name} is an adapter, and loading it")
    from peft import PeftConfig, PeftModel

    base = PeftConfig.from_pretrained(name).base_model_name_or_path
    if not base:
        raise ConfigError(f"{name}: adapter_config.json names no base model (base_model_name_or_path); add it there")
    model = PeftModel.from_pretrained(load_model(base, device=device, dtype=dtype), name)
    tokenizer = load_tokenizer(name if (Path(name) / "tokenizer_config.json").is_file() else base)
    return model.to(device).eval(), tokenizer


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def hash_weights(model: Any) -> str:
    """sha256 over the names and bytes of all weights: another checkpoint under the same path is noticed."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).cpu().numpy())
    return digest.hexdigest()


def hash_tokenizer(tokenizer: Any) -> str:
    """Of a fast tokenizer's definition; of the vocabulary for the few others."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    definition = json.loads(backend.to_str()) if backend is not None else sorted(tokenizer.get_vocab().items())
    if isinstance(definition, dict):  # what the last call padded or cut to is no part of it
        definition |= {"padding": None, "truncation": None}
    return hashlib.sha256(json.dumps(definition).encode()).hexdigest()
