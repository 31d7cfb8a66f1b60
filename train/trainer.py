"""TRL's GRPOTrainer with as little changed as possible, and the callbacks of a run.

Overridden, each for one reason:
- `create_model_card`: TRL drafts a card with every save, 'a fine-tuned version of None', without one measured number.
- `_calculate_rewards`: every completion is recorded with the values that the trainer goes on to use, and a
  stop string is no part of the response, as in evaluation.
- `_generate_single_turn`: TRL calls `generate` without the tokenizer, so stop strings raise; and it takes
  the padding behind a stopped response for part of it, so the model would be trained on padding.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from trl.trainer.grpo_trainer import GRPOTrainer

from veriward.rewards import ComponentSettings, VerdictPool, response_text
from veriward.rewards.components import TASK_COLUMNS, judge
from veriward.train.prompts import REFERENCE
from veriward.train.rollouts import JsonLines, metrics_row, rollout_rows


class RecordingTrainer(GRPOTrainer):
    """GRPO whose completions are all on disk, and whose stop strings work with every engine."""

    def __init__(
        self,
        *args: Any,
        stop_strings: Sequence[str],
        rollouts: JsonLines,
        component_settings: ComponentSettings,
        **kwargs: Any,
    ) -> None:
        """rollouts: the file of this rank. component_settings: those of the reward components."""
        super().__init__(*args, **kwargs)
        self._stop_strings = tuple(stop_strings)
        self._component_settings = component_settings
        self._rollouts = rollouts
        if self._stop_strings and not self.use_vllm:
            model = self.accelerator.unwrap_model(self.model)
            model.generate = functools.partial(model.generate, tokenizer=self._tokenizer)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: a card is written from an evaluation."""

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        completion_ids, logprobs = super()._generate_single_turn(*args, **kwargs)  # type: ignore[no-untyped-call]
        if self._stop_strings and not self.use_vllm:
            filling = {*self.eos_token_ids, self._tokenizer.pad_token_id}
            completion_ids = [
                cut_after_stop(ids, self._stop_strings, filling, self._tokenizer.decode) for ids in completion_ids
            ]
        return completion_ids, logprobs

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: Any, completions: Any, completion_ids_list: list[list[int]]
    ) -> torch.Tensor:
        if self._stop_strings:
            completions = [without_stop(completion, self._stop_strings) for completion in completions]
        rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        first = self.accelerator.process_index * len(prompts)
        own = rewards[first : first + len(prompts)].tolist()
        columns = {name: [row[name] for row in inputs] for name in (REFERENCE, *TASK_COLUMNS) if name in inputs[0]}
        verdicts = judge(completions, completion_ids_list, columns, self._component_settings)
        self._rollouts.write(
            rollout_rows(
                step=self.state.global_step + 1,
                mode="train" if self.model is not None and self.model.training else "eval",
                problem_ids=[row["problem_id"] for row in inputs],
                texts=[response_text(completion) for completion in completions],
                token_counts=[len(ids) for ids in completion_ids_list],
                verdicts=verdicts,
                components={name: [row[i] for row in own] for i, name in enumerate(self.reward_func_names)},
            )
        )
        return rewards


def without_stop(completion: Any, stop_strings: Sequence[str]) -> Any:
    """The completion up to the first stop string, as evaluation sees it: 'Problem 2' holds no answer."""
    if isinstance(completion, str):
        ends = [completion.index(stop) for stop in stop_strings if stop in completion]
        return completion[: min(ends)] if ends else completion
    return [
        {**message, "content": without_stop(message["content"], stop_strings)}
        if isinstance(message.get("content"), str)
        else message
        for message in completion
    ]


def cut_after_stop(
    ids: list[int], stop_strings: Sequence[str], filling: set[int], decode: Callable[[list[int]], str]
) -> list[int]:
    """The ids up to the stop string, without the padding behind it; unchanged where none ended the response.

    A response that an end token ended keeps it: only where a stop string stands before the trailing
    end and padding tokens can these be padding, since generation had stopped there.
    """
    end = len(ids)
    while end and ids[end - 1] in filling:
        end -= 1
    if end == len(ids) or end == 0:
        return ids
    text = decode(ids[:end])
    return ids[:end] if any(stop in text for stop in stop_strings) else ids


class MetricsCallback(TrainerCallback):
    """Every log row into metrics.jsonl, and one line per row for the person who watches. Rank 0 only."""

    def __init__(self, metrics: JsonLines, pool: VerdictPool, say: Callable[[str], None]) -> None:
        self._metrics, self._pool = metrics, pool
        self._say = say
        self._started = time.monotonic()
        self._first_step: int | None = None
        self._steps_without_reward = 0
        self._rows = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._started, self._first_step = time.monotonic(), state.global_step
        if state.is_world_process_zero:
            self._say(HEADER)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if not state.is_world_process_zero or logs is None:
            return
        self._metrics.write([metrics_row(state.global_step, state.epoch, logs)])
        if "reward" in logs:
            self._warn_if_nothing_is_right(logs)
            self._say(progress_line(state.global_step, state.max_steps, logs, self._seconds_left(state)))
            self._rows += 1
            if self._rows % VERDICT_LINE_EVERY == 0:
                self._say(self._pool.line())

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if state.is_world_process_zero and self._rows % VERDICT_LINE_EVERY:
            self._say(self._pool.line())

    def _warn_if_nothing_is_right(self, logs: dict[str, Any]) -> None:
        if logs.get("outcome/correct", 0.0) > 0:
            self._steps_without_reward = -(10**9)  # it can: no word of it any more
        self._steps_without_reward += 1
        if self._steps_without_reward == PATIENCE:
            self._say(
                f"WARNING: {PATIENCE} steps and not one right answer, so there is nothing to learn from; read the "
                "responses in rollouts-0.jsonl: are template and instruction those the model knows, are they cut off "
                "(truncated), are the problems too hard?"
            )

    def _seconds_left(self, state: TrainerState) -> float:
        done = state.global_step - (self._first_step or 0)
        return (time.monotonic() - self._started) / max(1, done) * (state.max_steps - state.global_step)


VERDICT_LINE_EVERY = 50
"""Log rows between two lines about the verdicts of rank 0."""

PATIENCE = 5
"""Log rows without one right answer before a word is said."""

HEADER = "     step  accuracy  format  tokens  entropy  truncated  s/step    left"


def progress_line(step: int, steps: int, logs: dict[str, Any], left: float) -> str:
    """`  12/60    0.453   0.984    21.3    0.312      0.000    0.52    0:25`, under HEADER."""
    width = len(str(steps))

    def number(name: str, digits: int) -> str:
        value = logs.get(name)
        return "-" if value is None else f"{value:.{digits}f}"

    return (
        f"{step:>{8 - width}}/{steps}"
        f"{number('outcome/correct', 3):>10}{number('format_valid', 3):>8}"
        f"{number('completions/mean_length', 1):>8}{number('entropy', 3):>9}"
        f"{number('truncated', 3):>11}{number('step_time', 2):>8}{clock(left):>8}"
    )


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
