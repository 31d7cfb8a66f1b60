"""The batch arithmetic of a run, worked out as TRL does it, before TRL is imported."""

from __future__ import annotations

from dataclasses import dataclass

from veriward.tool_agent.errors import ConfigError
from veriward.train.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """How many prompts and completions make a step, worked out as TRL does it."""

    ranks: int
    completions_per_generation: int
    samples: int
    """Completions for each prompt (num_generations)."""
    generations_per_epoch: int
    dropped_per_epoch: int
    """Prompts left over when the last batch of an epoch is not full: TRL drops them."""
    steps: int
    steps_per_generation: float
    """Optimizer steps taken on one generation; under 1 where several generations make a step."""

    @property
    def prompts_per_generation(self) -> int:
        return self.completions_per_generation // self.samples

    @property
    def completions_per_step(self) -> int:
        return round(self.completions_per_generation / min(1.0, self.steps_per_generation))

    def in_words(self) -> str:
        size = f"{self.prompts_per_generation} prompts x {self.samples} completions"
        per = (
            "a step" if self.steps_per_generation == 1 else f"a generation, {self.steps_per_generation:g} steps on each"
        )
        ranks = f" over {self.ranks} processes" if self.ranks > 1 else ""
        return f"{size} {per}{ranks}; {self.dropped_per_epoch} prompts dropped an epoch; {self.steps} steps"


def plan_batch(settings: Settings, *, ranks: int, prompts: int | None) -> BatchPlan:
    """The batch arithmetic of TRL, refused in words where it does not come out. `prompts` is None if not known yet."""
    value = settings.library_value
    per_device, samples = int(value("per_device_train_batch_size")), int(value("num_generations"))
    accumulation, iterations = int(value("gradient_accumulation_steps")), int(value("num_iterations"))
    for name in (
        *("per_device_train_batch_size", "gradient_accumulation_steps", "num_iterations"),
        *("generation_batch_size", "steps_per_generation"),
    ):
        if value(name) is not None and int(value(name)) < 1:
            raise ConfigError(f"{name} is {value(name)}; it must be at least 1")
    if samples < 2:
        raise ConfigError(f"num_generations is {samples}; a group needs at least 2 completions to compare")
    device_batch = per_device * ranks
    generation, per_generation = value("generation_batch_size"), value("steps_per_generation")
    if generation is not None and per_generation is not None:
        raise ConfigError("generation_batch_size and steps_per_generation are both set; each follows from the other")
    if generation is None:
        generation = device_batch * (accumulation if per_generation is None else per_generation)
    if generation % device_batch:
        raise ConfigError(
            f"generation_batch_size is {generation}, not a multiple of per_device_train_batch_size x processes = "
            f"{per_device} x {ranks} = {device_batch}; change one of them"
        )
    if generation % samples:
        raise ConfigError(
            f"{generation} completions a generation ({per_device} per device x {ranks} processes x "
            f"{generation // device_batch} steps) do not divide by num_generations = {samples}; "
            f"use a multiple of {samples}, as per_device_train_batch_size: {samples * max(1, per_device // samples)}"
        )
    steps_per_generation = generation // device_batch * iterations / accumulation
    return whole_plan(settings, ranks, generation, samples, steps_per_generation, prompts)


def whole_plan(
    settings: Settings, ranks: int, generation: int, samples: int, steps_per_generation: float, prompts: int | None
) -> BatchPlan:
    per_generation = generation // samples
    if prompts is not None and prompts < per_generation:
        raise ConfigError(
            f"{settings.run.problems}: {prompts} usable problems, fewer than the {per_generation} prompts of one "
            f"generation ({generation} completions / {samples} each); lower per_device_train_batch_size or add problems"
        )
    per_epoch = 0 if prompts is None else prompts // per_generation
    max_steps = int(settings.library_value("max_steps"))
    epochs = float(settings.library_value("num_train_epochs"))
    steps = max_steps if max_steps > 0 else max(1, int(per_epoch * steps_per_generation * epochs))
    return BatchPlan(
        ranks=ranks,
        completions_per_generation=generation,
        samples=samples,
        generations_per_epoch=per_epoch,
        dropped_per_epoch=0 if prompts is None else prompts % per_generation,
        steps=steps,
        steps_per_generation=steps_per_generation,
    )
