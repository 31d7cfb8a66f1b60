"""The generator that runs a model itself: `transformers`, on CUDA or the CPU.

Covered: model folders, hub names, LoRA adapter folders (peft), GGUF files, models already loaded; greedy or sampled,
several samples a prompt, stop strings.
Not covered: models that do not fit on one device, encoder-decoder models, images. A GGUF file is unpacked to whole
weights, so it needs the memory of the model that it was made from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriward.eval.model_loading import choose_device, hash_adapter, hash_tokenizer, hash_weights, load
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.generator import NO_ROOM, Finished, FinishReason, Generation, Prompt, goes_on

if TYPE_CHECKING:
    import torch

DEFAULT_BATCH_SIZE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One response to be written: one row of a batch."""

    index: int
    """Of its prompt in the call."""
    token_ids: list[int]
    limit: int
    """New tokens at most: max_new_tokens, or what the model's context leaves; under 1 where it leaves nothing."""
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
        """Load a model folder, a hub name, a GGUF file, or the folder of a LoRA adapter, which names its base.

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
        adapter = hash_adapter(self._model)
        return {
            "engine": "transformers",
            "model": self.name,
            "weights_sha256": self._weights_sha256,
            **({} if adapter is None else {"adapter_sha256": adapter}),
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
        sample_numbers: Sequence[int] | None = None,
        temperature: float = 0.0,
        max_new_tokens: int,
        seed: int,
        stop: Sequence[str] = (),
        chat_template_kwargs: Mapping[str, object] | None = None,
        on_finished: Callable[[Finished], None] | None = None,
    ) -> list[Generation]:
        """See `Generator`. The longest prompts come first: a lack of memory shows at once, not after hours."""
        check_request(temperature, max_new_tokens)
        results: dict[int, Generation] = {}

        def hand_over(finished: Finished) -> None:
            results.update(finished)
            if on_finished is not None and finished:
                on_finished(finished)

        numbers = numbers_of(prompts, sample_numbers)
        template = chat_template_kwargs or {}
        jobs = [
            self._job(index, prompt, numbers[index] if temperature > 0 else None, max_new_tokens, seed, template)
            for index, prompt in enumerate(prompts)
        ]
        hand_over([(job.index, NO_ROOM) for job in jobs if job.limit < 1])
        jobs = sorted((job for job in jobs if job.limit >= 1), key=lambda job: -len(job.token_ids))
        with ready_to_generate(self._model):
            for start in range(0, len(jobs), self.batch_size):
                batch = jobs[start : start + self.batch_size]
                written = self._write(batch, temperature, stop)
                hand_over([(job.index, generation) for job, generation in zip(batch, written, strict=True)])
        return [results[index] for index in range(len(prompts))]

    def _job(
        self,
        index: int,
        prompt: Prompt,
        sample: int | None,
        max_new_tokens: int,
        seed: int,
        chat_template_kwargs: Mapping[str, object],
    ) -> Job:
        text, token_ids = tokenize(self._tokenizer, self.name, prompt, chat_template_kwargs)
        context = self._context()
        limit = max_new_tokens if context is None else min(max_new_tokens, context - len(token_ids))
        if limit < 1 and not goes_on(prompt):
            raise ConfigError(
                f"{self.name}: a prompt has {len(token_ids)} tokens and the model's context {context}; "
                f"take the problem out, or another model; it begins {text[:60]!r}"
            )
        sample_seed = None if sample is None else derive_seed(seed, text, sample)
        return Job(index=index, token_ids=token_ids, limit=limit, seed=sample_seed)

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


def tokenize(
    tokenizer: Any, name: str, prompt: Prompt, chat_template_kwargs: Mapping[str, object]
) -> tuple[str, list[int]]:
    """The text in front of the model and its tokens; a chat template brings its own special tokens."""
    if isinstance(prompt, str):
        return prompt, list(tokenizer(prompt)["input_ids"])
    if getattr(tokenizer, "chat_template", None) is None:
        raise ConfigError(f"{name}: the model has no chat template; use template 'plain' or a template file")
    text = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True, **chat_template_kwargs)
    return text, list(tokenizer(text, add_special_tokens=False)["input_ids"])


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


def numbers_of(prompts: Sequence[Prompt], sample_numbers: Sequence[int] | None) -> Sequence[int]:
    """The number of every prompt's sample."""
    if sample_numbers is None:
        return [0] * len(prompts)
    if len(sample_numbers) != len(prompts):
        raise ValueError(f"{len(prompts)} prompts and {len(sample_numbers)} sample numbers; wanted one for each")
    return sample_numbers


def check_samples(samples: int, temperature: float) -> None:
    if samples < 1:
        raise ConfigError(f"samples must be at least 1, got {samples}")
    if samples > 1 and temperature == 0:
        raise ConfigError(
            f"{samples} samples at temperature 0 are the same response {samples} times; raise temperature"
        )


def check_request(temperature: float, max_new_tokens: int) -> None:
    if not 0 <= temperature < float("inf"):
        raise ConfigError(f"temperature must be 0 (greedy) or above, got {temperature}")
    if max_new_tokens < 1:
        raise ConfigError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
