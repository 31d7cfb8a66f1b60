"""Train a model with GRPO on verified rewards.

    accelerate launch train/grpo.py --config train/presets/quickstart_cpu.yaml [--key value …]

    config -> problems -> prompts -> reward components -> GRPOTrainer -> a run folder

What can be refused is refused in this order, cheapest first: settings, batch sizes, the run folder, the
problems; only then torch and trl are imported, the settings are written down, and a model is loaded.
`python -m veriward.train.grpo` and `torchrun train/grpo.py` are the same program.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.path and Path(sys.path[0] or ".").resolve() == Path(__file__).resolve().parent:
    # Started as a file, this folder heads the import path; our own modules are imported as veriward.train.
    del sys.path[0]

try:  # light modules only: torch and trl are imported when everything else has been checked
    from veriward.rewards import Component, VerdictPool, make_components
    from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line
    from veriward.train.batch import BatchPlan, plan_batch
    from veriward.train.configs import Configs, device_of, make_configs, one_line, refuse_missing_packages
    from veriward.train.processes import (
        Say,
        launcher_warnings,
        leave_process_group,
        own_path,
        quiet_libraries,
        rank,
        relative,
        say_warnings,
        set_environment,
        speak,
        world_size,
    )
    from veriward.train.prompts import REFERENCE, TrainingSet, prompt_template, training_set
    from veriward.train.rollouts import JsonLines
    from veriward.train.run_record import is_free, make_way, refuse_occupied, write_settings
    from veriward.train.settings import INSTEAD, Settings, all_keys, presets, read_settings
except ModuleNotFoundError as missing:
    if missing.name not in ("veriward", "yaml"):
        raise
    print(f"{missing.name} is not installed here; run: pip install -e '.[train]'", file=sys.stderr)
    sys.exit(2)

USAGE_ERROR, INTERRUPTED = 2, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Where a run left its things."""

    folder: Path
    model: Path | None
    """The trained model with its tokenizer; None if the run was stopped before its end."""
    steps: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    settings: Settings | None = None
    try:
        if "--help" in arguments or "-h" in arguments:
            show(help_text())
            return 0
        if not any(argument == "--config" or argument.startswith("--config=") for argument in arguments):
            show(presets_text())
            return USAGE_ERROR
        settings = read_settings(arguments)
        if settings.check_only:
            check(settings)
            return 0
        with disk_full_in_one_line(settings.output_dir):
            result = train(settings)
    except ConfigError as error:
        if rank() == 0:
            print(error, file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        if rank() == 0:
            print(interrupted_in_words(settings), file=sys.stderr)
        return INTERRUPTED
    return INTERRUPTED if result.model is None else 0


def show(text: str) -> None:
    """Print a page; a reader who has seen enough (`| head`) is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def train(settings: Settings, *, say: Say | None = None) -> RunResult:
    """The whole run, on this rank. Raises ConfigError before a model loads; `say` gets every line for the reader."""
    say = speak if say is None else say
    set_environment(settings.env)
    ranks = world_size()
    plan_batch(settings, ranks=ranks, prompts=None)
    prompt_template(settings.run)
    refuse_missing_packages(settings)
    if rank() == 0:
        refuse_occupied(settings.output_dir, settings.run.existing)
    for line in [*launcher_warnings(ranks), *weight_warnings(settings.run.weights)]:
        say(line)
    if settings.run.prepare == "tiny":
        prepare_tiny(settings, say)
    if not Path(settings.run.problems).exists():
        device_of(settings)  # refuse before a data set is fetched
    problems = training_set(settings.run)
    say(problems.in_words())
    plan = plan_batch(settings, ranks=ranks, prompts=len(problems.rows))
    say(plan.in_words())
    return train_on(settings, problems, plan, say)


def check(settings: Settings) -> None:
    """`--check`: everything up to the point where weights would be fetched."""
    set_environment(settings.env)
    prompt_template(settings.run)
    present = Path(settings.run.problems).exists()
    to_come = settings.run.prepare == "tiny" or not settings.run.problems.endswith((".jsonl", ".json"))
    problems = training_set(settings.run) if present or not to_come else None
    plan = plan_batch(settings, ranks=world_size(), prompts=len(problems.rows) if problems else None)
    quiet_libraries(None)
    found = device_of(settings, strict=False)
    make_configs(settings, found)
    import yaml

    speak(yaml.safe_dump(settings.as_given(), sort_keys=False, allow_unicode=True).rstrip())
    speak(f"settings hash {settings.digest()[:12]}")
    speak(problems.in_words() if problems else f"{settings.run.problems} is not here; it is fetched or made by the run")
    speak(plan.in_words())
    if settings.run.device == "cuda" and found != "cuda":
        speak("valid, but it needs a CUDA device and there is none here: the run itself would stop at this point")
    else:
        speak(f"valid; the run would now load {settings.model['model_name_or_path']} on {found}")


def weight_warnings(weights: Mapping[str, float]) -> list[str]:
    """Equal rewards of 0.2 have a standard deviation of 1.6e-8 in float32, which TRL takes for a difference."""
    uneven = [f"{name} = {weight}" for name, weight in weights.items() if not (weight * 1024).is_integer()]
    if not uneven:
        return []
    return [
        f"WARNING: weights that are no binary fractions ({', '.join(uneven)}) leave rounding noise in groups of equal "
        f"rewards, and TRL's frac_reward_zero_std misses them; use 0.25, 0.125, … instead"
    ]


def prepare_tiny(settings: Settings, say: Say) -> None:
    """Rank 0 makes the tiny model and its problems if they are absent; the others wait until they are there."""
    model, problems = Path(str(settings.model["model_name_or_path"])), Path(settings.run.problems)
    if model.is_dir() and problems.is_file():
        return
    if rank() == 0:
        say(f"{model.parent}: no tiny model there yet; making it and its problems (about a minute)")
        from veriward.train.sft import Progress
        from veriward.train.tiny_base import make_base

        def progress(now: Progress) -> None:
            if now.step % 100 == 0 and now.loss is not None:
                say(f"  warm start {now.step}/{now.steps}, loss {now.loss:.3f}")

        quiet_libraries(None)
        make_base(model.parent, seed=int(settings.library_value("seed")), on_progress=progress)
        return
    deadline = time.monotonic() + settings.run.prepare_timeout
    while not (model.is_dir() and problems.is_file()):
        if time.monotonic() > deadline:
            raise ConfigError(
                f"rank {rank()} waited {settings.run.prepare_timeout} s for rank 0 to make {model}; is the folder "
                f"shared between the machines? set prepare_timeout higher if rank 0 is only slow"
            )
        time.sleep(0.5)


def train_on(settings: Settings, problems: TrainingSet, plan: BatchPlan, say: Say) -> RunResult:
    """From checked settings to a finished run; the run folder is touched only once nothing can be refused any more."""
    quiet_libraries(None)
    configs = make_configs(settings, device_of(settings))
    tokenizer, stop_token_ids = load_tokenizer(settings, configs)
    held = None
    if rank() == 0:
        refuse_own_inputs(settings)
        held = make_way(settings.output_dir, settings.run.existing, say)
        quiet_libraries(settings.output_dir)
        write_settings(settings, problems, plan, configs, prompt_template(settings.run).settings)
        say(f"settings {settings.digest()[:12]} in {settings.output_dir}; {configs.device_name}")
    configs.grpo.distributed_state.wait_for_everyone()  # no rank writes into a folder that rank 0 sets aside
    settings.output_dir.mkdir(parents=True, exist_ok=True)
    rollouts = JsonLines(settings.output_dir / f"rollouts-{rank()}.jsonl")
    metrics = JsonLines(settings.output_dir / "metrics.jsonl") if rank() == 0 else None
    components = make_components(
        weights=settings.run.weights,
        contract=settings.run.contract,
        unsupported=settings.run.unsupported,
        fallback=settings.run.fallback,
        reference_column=REFERENCE,
        max_completion_length=configs.grpo.max_completion_length,
        overlong_buffer=settings.run.overlong_buffer,
        stop_token_ids=stop_token_ids,
        workers=settings.run.verdict_workers,
        deadline_s=settings.run.verdict_deadline_s,
        memory_mb=settings.run.verdict_memory_mb,
        warn_not_decided=settings.run.warn_not_decided,
    )
    try:
        trainer = make_trainer(settings, configs, problems, tokenizer, components, rollouts)
        if metrics is not None:
            watch(trainer, metrics, components[0].settings.pool, say)
        say_warnings(settings.output_dir, say)
        result = run_trainer(trainer, settings, plan, say)
    finally:
        for file in (rollouts, metrics, held):
            if file is not None:
                file.close()
    del trainer
    leave_process_group()
    return result


def refuse_own_inputs(settings: Settings) -> None:
    """A folder that is set aside must not take the run's own model or problems with it."""
    folder = settings.output_dir.resolve()
    for name, value in (
        ("model_name_or_path", settings.model["model_name_or_path"]),
        ("problems", settings.run.problems),
    ):
        if Path(str(value)).exists() and folder in (Path(str(value)).resolve(), *Path(str(value)).resolve().parents):
            raise ConfigError(f"output_dir '{settings.output_dir}' holds {name} '{value}'; choose another folder")


def watch(trainer: Any, metrics: JsonLines, pool: VerdictPool, say: Say) -> None:
    from veriward.train.trainer import MetricsCallback

    trainer.add_callback(MetricsCallback(metrics, pool, say))


def make_trainer(
    settings: Settings,
    configs: Configs,
    problems: TrainingSet,
    tokenizer: Any,
    components: Sequence[Component],
    rollouts: JsonLines,
) -> Any:
    """Load the model and put everything together; the libraries' own printers are taken out."""
    from datasets import Dataset
    from safetensors import SafetensorError
    from transformers import PrinterCallback, ProgressCallback
    from trl.trainer.utils import get_peft_config, get_quantization_config

    from veriward.train.trainer import RecordingTrainer

    try:
        trainer = RecordingTrainer(
            model=configs.model.model_name_or_path,
            reward_funcs=list(components),
            args=configs.grpo,
            train_dataset=Dataset.from_list(list(problems.rows)),
            processing_class=tokenizer,
            quantization_config=get_quantization_config(configs.model),
            peft_config=get_peft_config(configs.model),
            stop_strings=settings.run.stop_strings,
            rollouts=rollouts,
            component_settings=components[0].settings,
        )
    except (AttributeError, ImportError, KeyError, OSError, SafetensorError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{settings.source}: model {configs.model.model_name_or_path} or a setting of TRL's is refused: "
            f"{type(error).__name__}: {one_line(error)}"
        ) from error
    for printer in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(printer)
    return trainer


def load_tokenizer(settings: Settings, configs: Configs) -> tuple[Any, tuple[int, ...]]:
    """The tokenizer, and every token that ends a response: its own and those of the generation settings."""
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    name = configs.model.model_name_or_path
    options = {"revision": configs.model.model_revision, "trust_remote_code": configs.grpo.trust_remote_code}
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left", truncation_side="left", **options)
        config = AutoConfig.from_pretrained(name, **options)
    except Exception as error:  # a damaged folder fails in as many ways as there are files in it
        raise ConfigError(f"model_name_or_path '{name}': {type(error).__name__}: {one_line(error)}") from error
    if settings.run.template == "chat" and tokenizer.chat_template is None:
        raise ConfigError(f"{name}: its tokenizer has no chat template; set template: plain, or a template file")
    if tokenizer.eos_token_id is None:
        raise ConfigError(
            f"{name}: its tokenizer has no end token (eos_token), so no response could end; set one there"
        )
    try:
        generation = GenerationConfig.from_pretrained(name, **options)
    except OSError:
        generation = GenerationConfig.from_model_config(config)
    ends = generation.eos_token_id
    others = [ends] if isinstance(ends, int) else list(ends or [])
    return tokenizer, tuple(dict.fromkeys([tokenizer.eos_token_id, *others]))


def run_trainer(trainer: Any, settings: Settings, plan: BatchPlan, say: Say) -> RunResult:
    """Train, save, draw. Ctrl-C ends the training with everything up to it on disk."""
    started = time.monotonic()
    folder = settings.output_dir
    model: Path | None = None
    try:
        trainer.train()
        model = save_whole(trainer, folder / "final")
    except KeyboardInterrupt:
        pass
    steps = trainer.state.global_step
    seconds = time.monotonic() - started
    if rank() == 0:
        picture = draw(folder, say)
        where = f"{folder}: metrics.jsonl, rollouts-*.jsonl" + (f", {picture.name}" if picture else "")
        if model is not None:
            say(f"finished {steps} steps in {seconds:.0f} s; model in {model}; {where}")
        else:
            say(f"stopped at step {steps} of {plan.steps}; {checkpoints_in_words(folder)}; {where}")
        say_warnings(folder, say)
    return RunResult(folder=folder, model=model, steps=steps, seconds=seconds)


def save_whole(trainer: Any, place: Path) -> Path:
    """The model under its name only once all of it is there: an interruption leaves no half one."""
    unfinished = place.with_name(f".{place.name}-unfinished")
    trainer.save_model(str(unfinished))
    if rank() == 0:
        unfinished.rename(place)
    trainer.accelerator.wait_for_everyone()
    return place


def draw(folder: Path, say: Say) -> Path | None:
    try:
        from veriward.train.curves import draw_curves
    except ModuleNotFoundError as missing:
        say(f"no curves.png: {missing.name} is not installed; run: pip install 'veriward[eval]'")
        return None
    return draw_curves(folder)


def interrupted_in_words(settings: Settings | None) -> str:
    """For an interruption outside the training itself, or a second one in the middle of the tidying up."""
    if settings is None or is_free(settings.output_dir):
        return "stopped before the first step; nothing was trained"
    folder = settings.output_dir
    final = "final is complete" if (folder / "final").is_dir() else "there is no final model"
    return f"stopped; what was done is in {folder}: {checkpoints_in_words(folder)}, {final}"


def checkpoints_in_words(folder: Path) -> str:
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return f"the newest checkpoint is {found[-1].name}" if found else "no checkpoint had been saved yet"


# What to type -------------------------------------------------------------------------------------


def presets_text() -> str:
    """What to type next; the answer to a call without --config."""
    found = presets()
    first = [f"  {name:<22}{first_comment(path)}" for name, path in sorted(found.items())]
    return "\n".join(
        [
            "Train a model with GRPO on verified rewards. A config file is needed; the presets are:",
            "",
            *first,
            "",
            "Next:",
            f"  accelerate launch {own_path()} --config {relative(found['quickstart_cpu'])}",
            "",
            "Every setting of a file can be given after it as --key value; --help lists them, --check stops before",
            "a model loads.",
        ]
    )


def help_text() -> str:
    keys = [key for key in all_keys().values() if key.name not in INSTEAD]
    ours = [f"  --{key.name:<23}{key.help}{shown_default(key.default)}" for key in keys if key.owner == "run"]
    return "\n".join(
        [
            f"usage: accelerate launch {own_path()} --config FILE [--check] [--key value ...]",
            "",
            "  --config FILE            YAML with one 'key: value' a line, or the name of a preset",
            "  --check                  print the settings and stop before a model loads",
            "",
            "Keys of this command:",
            *ours,
            "",
            "Keys of TRL's ModelConfig:",
            wrapped(sorted(key.name for key in keys if key.owner == "model")),
            "",
            "Keys of TRL's GRPOConfig:",
            wrapped(sorted(key.name for key in keys if key.owner == "grpo")),
        ]
    )


def shown_default(default: object) -> str:
    return f" (default {default})" if default not in (None, [], "") else ""


def wrapped(names: Sequence[str]) -> str:
    import textwrap

    return textwrap.fill(", ".join(names), width=110, initial_indent="  ", subsequent_indent="  ")


def first_comment(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


if __name__ == "__main__":
    sys.exit(main())
