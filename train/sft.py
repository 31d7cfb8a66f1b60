"""The warm start: supervised training on demonstrations, before rewards take over.

The command trains any model on a file of demonstrations; `tiny_base` makes the embedded default with it:

    python -m veriward.train.sft --model PATH --demonstrations FILE.jsonl --out DIR

Covered: full fine-tuning in float32 (bfloat16 autocast on a GPU that has it), on one device or, with AdamW,
data parallel under torchrun. Not covered: LoRA, sharded models, resuming; TRL's own `trl sft` has them.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriward.eval.problems import read_jsonl
from veriward.eval.prompting import PromptTemplate
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.generator import Message, Prompt

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
    from trl.trainer.sft_trainer import SFTTrainer

OPTIMIZERS = ("adamw", "muon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One prompt and the response to learn: both text, or both messages. Only the response is learned."""

    prompt: Prompt
    completion: Prompt

    def __post_init__(self) -> None:
        if isinstance(self.prompt, str) != isinstance(self.completion, str):
            raise ValueError("prompt and completion must both be text or both be messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStartSettings:
    """How to train on the demonstrations. The rates are for weights that already know a language."""

    steps: int
    batch_size: int = 32
    """Demonstrations a step and process."""
    optimizer: str = "adamw"
    """'muon': Muon for the matrices inside the layers, AdamW for the rest; for small models from scratch."""
    learning_rate: float = 2e-5
    """AdamW's peak rate."""
    muon_learning_rate: float = 0.02
    """Muon's peak rate; unused with 'adamw'."""
    warmup_share: float = 0.05
    """Share of the steps in which both rates rise from zero."""
    flat_until: float = 0.5
    """Share of the steps after which both rates fall, in a straight line."""
    final_share: float = 0.02
    """What is left of the rates at the end."""
    max_grad_norm: float = 1.0
    max_length: int | None = None
    """Longer demonstrations, in tokens of prompt and response, are left out, never cut; None: no limit."""
    shuffle: bool = True
    """False keeps the order of the demonstrations, which then is a curriculum."""
    seed: int = 0
    cpu: bool = False
    """Stay on the CPU even where there is a GPU."""

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ConfigError(f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {self.optimizer!r}")
        for name in ("steps", "batch_size", "learning_rate", "muon_learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.warmup_share <= self.flat_until <= 1:
            raise ConfigError(
                "the schedule needs 0 <= warmup_share <= flat_until <= 1, "
                f"got {self.warmup_share} and {self.flat_until}"
            )
        if self.max_length is not None and self.max_length < 2:
            raise ConfigError(f"max_length must be at least 2, got {self.max_length}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where the warm start stands: told after every step."""

    step: int
    """0 before the first step."""
    steps: int
    loss: float | None
    """Mean over the last few steps; None before there is one."""


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStart:
    """What a warm start did."""

    steps: int
    loss: float
    """Mean over the last tenth of the steps, in nats a token of the responses."""
    left_out: int
    """Demonstrations above max_length."""
    seconds: float


def warm_start(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    demonstrations: Sequence[Demonstration],
    settings: WarmStartSettings,
    on_progress: OnProgress | None = None,
) -> WarmStart:
    """Train the model in place on the responses of the demonstrations.

    Text gets the tokenizer's end token; messages go through its chat template.

    raises    ConfigError if no demonstration is left under max_length, or if the loss is no longer finite
    """
    started = time.perf_counter()
    with quiet_libraries(), tempfile.TemporaryDirectory(prefix="veriward-sft-") as scratch:
        trainer = _trainer(model, tokenizer, demonstrations, settings, scratch)
        left_out = _leave_out_long(trainer, settings.max_length)
        if on_progress is not None:
            on_progress(Progress(step=0, steps=settings.steps, loss=None))
            trainer.add_callback(_progress_callback(on_progress, settings.steps))
        trainer.train()
    losses = [float(row["loss"]) for row in trainer.state.log_history if "loss" in row]
    last = losses[-max(1, len(losses) // 10) :]
    loss = sum(last) / len(last)
    if not math.isfinite(loss):
        raise ConfigError(f"the loss became {loss} within {settings.steps} steps; lower the learning rate")
    model.eval()  # type: ignore[no-untyped-call]
    return WarmStart(steps=settings.steps, loss=loss, left_out=left_out, seconds=time.perf_counter() - started)


def read_demonstrations(path: str | Path, template: PromptTemplate, *, chat: bool) -> list[Demonstration]:
    """Demonstrations from a JSONL file, all rows of one kind.

    {"question", "response"}    the question is put by `template`, as in training and evaluation
    {"prompt", "completion"}    used as they are: both text, or both lists of messages

    chat      whether the model has a chat template, which messages need
    raises    ConfigError with file and line
    """
    path = Path(path)
    rows = read_jsonl(path)
    if not rows:
        raise ConfigError(f"{path}: no demonstrations in it; wanted at least one")
    demonstrations = [_read_row(f"{path}, line {number}", dict(row), template) for number, row in rows]
    first_is_text = isinstance(demonstrations[0].prompt, str)
    for (number, _), demonstration in zip(rows, demonstrations, strict=True):
        if isinstance(demonstration.prompt, str) != first_is_text:
            raise ConfigError(f"{path}, line {number}: text and messages in one file; use one of them throughout")
    if not first_is_text and not chat:
        raise ConfigError(f"{path}: these are messages, but the model has no chat template; give --template plain")
    return demonstrations


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silences the libraries' progress bars and their notices about their own future, and nothing else."""
    import datasets
    from transformers.utils import logging

    bars = (datasets.are_progress_bars_disabled(), logging.is_progress_bar_enabled())
    datasets.disable_progress_bars()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        if not bars[0]:
            datasets.enable_progress_bars()
        if bars[1]:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Exit code 0 when the model is saved, 2 with one line if something is not as needed."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    """Check everything that can be checked, then load, train and save."""
    out = Path(options.out)
    if occupied(out):
        raise ConfigError(f"{out}: exists already; name another folder with --out, or remove it")
    model_path = Path(options.model)
    if model_path.exists() and not (model_path / "config.json").is_file():
        raise ConfigError(f"{model_path}: no model there (no config.json); wanted a folder made by save_pretrained")
    template = PromptTemplate(template=options.template, instruction=options.instruction)
    demonstrations = read_demonstrations(options.demonstrations, template, chat=True)
    settings = _settings(options, len(demonstrations))
    for module in ("torch", "transformers", "datasets", "trl"):
        need(module, extra="train", purpose="the warm start")
    model, tokenizer = _load(options.model)
    if not isinstance(demonstrations[0].prompt, str) and not tokenizer.chat_template:
        raise ConfigError(f"{options.model}: has no chat template, and messages need one; give --template plain")
    print(f"{len(demonstrations)} demonstrations, {settings.steps} steps of {settings.batch_size}", flush=True)
    done = warm_start(model, tokenizer, demonstrations, settings, _print_progress)
    if int(os.environ.get("RANK", "0")) == 0:
        with renamed_when_complete(out) as unfinished, quiet_libraries():
            model.save_pretrained(unfinished)
            tokenizer.save_pretrained(unfinished)
    left_out = f"; {done.left_out} demonstrations above {settings.max_length} tokens left out" if done.left_out else ""
    print(f"saved {out}: loss {done.loss:.4f} after {done.steps} steps, {done.seconds:.0f} s{left_out}", flush=True)


def _parser() -> argparse.ArgumentParser:
    defaults = WarmStartSettings(steps=1)
    parser = argparse.ArgumentParser(
        prog="python -m veriward.train.sft", description="Train a model on demonstrations, before rewards take over."
    )
    parser.add_argument("--model", required=True, metavar="PATH", help="model folder or hub name")
    parser.add_argument(
        "--demonstrations",
        required=True,
        metavar="FILE",
        help='JSONL with {"question", "response"} or {"prompt", "completion"} rows',
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="new folder for the trained model")
    parser.add_argument("--template", default="chat", help="for questions: 'chat', 'plain' or a template file")
    parser.add_argument("--instruction", default="", help="follows each question; give the one of the later training")
    parser.add_argument("--epochs", type=float, default=1.0, help="passes over the file, unless --steps is given")
    parser.add_argument("--steps", type=int, help="optimizer steps")
    parser.add_argument("--batch-size", "--batch_size", type=int, default=defaults.batch_size)
    parser.add_argument("--optimizer", default=defaults.optimizer, help="adamw, or muon for small models from scratch")
    parser.add_argument("--learning-rate", "--learning_rate", type=float, default=defaults.learning_rate)
    parser.add_argument("--muon-learning-rate", "--muon_learning_rate", type=float, default=defaults.muon_learning_rate)
    parser.add_argument("--max-length", "--max_length", type=int, default=2048, help="longer rows are left out")
    parser.add_argument("--keep-order", "--keep_order", action="store_true", help="a curriculum: do not shuffle")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    return parser


def _settings(options: argparse.Namespace, demonstrations: int) -> WarmStartSettings:
    if options.batch_size < 1:
        raise ConfigError(f"--batch-size must be at least 1, got {options.batch_size}")
    if options.steps is None and not options.epochs > 0:
        raise ConfigError(f"--epochs must be above 0, got {options.epochs}")
    batch = options.batch_size * int(os.environ.get("WORLD_SIZE", "1"))
    return WarmStartSettings(
        steps=math.ceil(options.epochs * demonstrations / batch) if options.steps is None else options.steps,
        batch_size=options.batch_size,
        optimizer=options.optimizer,
        learning_rate=options.learning_rate,
        muon_learning_rate=options.muon_learning_rate,
        max_length=options.max_length,
        shuffle=not options.keep_order,
        seed=options.seed,
    )


def _load(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with quiet_libraries():
            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name, dtype="float32")
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"--model {name}: cannot be loaded: {reason}") from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def _print_progress(progress: Progress) -> None:
    if progress.loss is not None and (progress.step % 10 == 0 or progress.step == progress.steps):
        print(f"step {progress.step}/{progress.steps}  loss {progress.loss:.4f}", flush=True)


def _read_row(where: str, row: dict[str, object], template: PromptTemplate) -> Demonstration:
    forms = [form for form in (("question", "response"), ("prompt", "completion")) if form[0] in row and form[1] in row]
    if len(forms) != 1:
        raise ConfigError(
            f"{where}: has {', '.join(sorted(row)) or 'no columns'}; wanted either question and response, "
            "or prompt and completion"
        )
    first, second = (row[name] for name in forms[0])
    if forms[0][0] == "question":
        prompt = template.render(_text(where, "question", first))
        response = _text(where, "response", second)
        return Demonstration(
            prompt=prompt, completion=response if isinstance(prompt, str) else [_said("assistant", response)]
        )
    if isinstance(first, str) and isinstance(second, str):
        return Demonstration(prompt=_text(where, "prompt", first), completion=_text(where, "completion", second))
    return Demonstration(prompt=_messages(where, "prompt", first), completion=_messages(where, "completion", second))


def _text(where: str, column: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{where}: {column} is {_shown(value)}; wanted a text that is not empty")
    return value


def _messages(where: str, column: str, value: object) -> list[Message]:
    wanted = f"{where}: {column} is {_shown(value)}; wanted text in both columns or messages in both"
    if not isinstance(value, list) or not value:
        raise ConfigError(wanted)
    for message in value:
        if not isinstance(message, dict) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise ConfigError(f'{where}: {column} holds {_shown(message)}; wanted {{"role": …, "content": …}}')
    return [_said(message["role"], message["content"]) for message in value]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _said(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _trainer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    demonstrations: Sequence[Demonstration],
    settings: WarmStartSettings,
    scratch: str,
) -> SFTTrainer:
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    gpu = not settings.cpu and torch.cuda.is_available()
    arguments = SFTConfig(
        output_dir=scratch,
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size,
        train_sampling_strategy="random" if settings.shuffle else "sequential",
        max_grad_norm=settings.max_grad_norm,
        max_length=None,
        completion_only_loss=True,
        bf16=gpu and torch.cuda.is_bf16_supported(),
        dataloader_pin_memory=gpu,
        gradient_checkpointing=False,
        use_cpu=settings.cpu,
        seed=settings.seed,
        save_strategy="no",
        report_to=[],
        logging_steps=min(10, settings.steps),
        logging_nan_inf_filter=False,
        disable_tqdm=True,
    )
    torch.nn.Module.to(model, arguments.device)  # before the optimizer takes hold of the parameters
    optimizer = _optimizer(model, settings)
    trainer = SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(
            [
                {"prompt": demonstration.prompt, "completion": demonstration.completion}
                for demonstration in demonstrations
            ]
        ),
        processing_class=tokenizer,
        optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate_at(done, settings))),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def rate_at(done: int, settings: WarmStartSettings) -> float:
    """The share of the peak learning rate in force after `done` steps: up, flat, then down in a straight line."""
    now = (done + 1) / settings.steps
    if now <= settings.warmup_share:
        return now / settings.warmup_share
    if now <= settings.flat_until:
        return 1.0
    fallen = (now - settings.flat_until) / (1 - settings.flat_until) if settings.flat_until < 1 else 0.0
    return 1 - (1 - settings.final_share) * min(1.0, fallen)


def _optimizer(model: PreTrainedModel, settings: WarmStartSettings) -> torch.optim.Optimizer:
    import torch

    if settings.optimizer == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    from veriward.train.muon import MuonWithAdamW

    return MuonWithAdamW(model, muon_learning_rate=settings.muon_learning_rate, learning_rate=settings.learning_rate)


def _leave_out_long(trainer: SFTTrainer, max_length: int | None) -> int:
    """TRL would cut long rows, and the model would learn to stop in the middle of a sentence."""
    if max_length is None:
        return 0
    table: Any = trainer.train_dataset
    lengths = [len(ids) for ids in table["input_ids"]]
    kept = [index for index, length in enumerate(lengths) if length <= max_length]
    if not kept:
        raise ConfigError(
            f"all {len(lengths)} demonstrations are longer than max_length {max_length} (the shortest has "
            f"{min(lengths)} tokens); raise it"
        )
    if len(kept) < len(lengths):
        trainer.train_dataset = table.select(kept)
    return len(lengths) - len(kept)


def _progress_callback(on_progress: OnProgress, steps: int) -> TrainerCallback:
    from transformers import TrainerCallback

    class Reporter(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            losses = [row["loss"] for row in state.log_history[-1:] if "loss" in row]
            if state.is_world_process_zero:
                on_progress(Progress(step=state.global_step, steps=steps, loss=float(losses[0]) if losses else None))

    return Reporter()


@contextlib.contextmanager
def renamed_when_complete(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder` that takes its name if the body ends well, and is removed otherwise.

    If `folder` came into being meanwhile, the new one is dropped: whoever was first has made a complete one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.unfinished-"))
    try:
        inner = unfinished / folder.name  # mkdtemp's folder is private; this one has the usual permissions
        inner.mkdir()
        yield inner
        with contextlib.suppress(OSError):
            inner.rename(folder)
        if not occupied(folder):
            raise ConfigError(f"{folder}: could not be put in place; is something else there?")
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def occupied(folder: Path) -> bool:
    """An empty folder is free to be filled."""
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))


if __name__ == "__main__":
    sys.exit(main())
