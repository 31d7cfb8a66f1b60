"""Make the embedded default: a tiny problem set, and a tiny model warm-started on it. Needs no download.

    python -m veriward.scripts.make_tiny_model --out runs/tiny --seed 0

writes runs/tiny/data (train.jsonl, heldout.jsonl, manifest.json) and runs/tiny/base (model and tokenizer).
A folder that was made with the same arguments is left as it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from veriward.tool_agent.errors import ConfigError, need
from veriward.train import sft, tiny_base
from veriward.train.tiny_problems import DEFAULT_DIFFICULTY, LEVELS


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Exit code 0 when both folders are there, 2 with one line if something is not as needed."""
    options = parser().parse_args(arguments)
    console = Console(highlight=False)
    started = time.perf_counter()
    try:
        for module in ("torch", "transformers", "datasets", "trl"):
            need(module, extra="train", purpose="making the tiny model")
        with progress_bar(console) as bar:
            base = tiny_base.make_base(
                options.out,
                seed=options.seed,
                steps=options.steps,
                difficulty=options.difficulty,
                train=options.train,
                heldout=options.heldout,
                on_progress=Reporter(bar, console),
            )
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    taken = f"made in {time.perf_counter() - started:.0f} s" if base.made else "there already, left as it is"
    console.print(f"{base.folder}: {taken}", soft_wrap=True, markup=False)
    console.print(f"model     {base.model}", soft_wrap=True, markup=False)
    console.print(f"problems  {base.problems.train} and {base.problems.heldout}", soft_wrap=True, markup=False)
    return 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python -m veriward.scripts.make_tiny_model",
        description="Make a tiny problem set and a tiny model, warm-started on it; about a minute on one core.",
    )
    options.add_argument("--out", required=True, metavar="DIR", help="new folder for both")
    options.add_argument("--seed", type=int, default=0, help="of the problems, the weights and the order of training")
    options.add_argument("--steps", type=int, default=tiny_base.TINY_SETTINGS.steps, help="steps of the warm start")
    options.add_argument("--difficulty", choices=tuple(LEVELS), default=DEFAULT_DIFFICULTY)
    options.add_argument("--train", type=int, default=4000, metavar="N", help="problems to train on")
    options.add_argument("--heldout", type=int, default=200, metavar="N", help="problems to evaluate on, none shared")
    return options


class Reporter:
    """Shows the warm start: a bar on a terminal, a line each tenth of the way elsewhere."""

    def __init__(self, bar: Progress, console: Console) -> None:
        self.bar = bar
        self.console = console
        self.task: TaskID | None = None

    def __call__(self, progress: sft.Progress) -> None:
        loss = "" if progress.loss is None else f"loss {progress.loss:.3f}"
        if self.console.is_terminal:
            if self.task is None:
                self.task = self.bar.add_task("warm start", total=progress.steps, loss="")
            self.bar.update(self.task, completed=progress.step, loss=loss)
        elif progress.step % max(1, progress.steps // 10) == 0:
            self.console.print(f"warm start {progress.step}/{progress.steps}  {loss}".rstrip())


def progress_bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
        console=console,
    )


if __name__ == "__main__":
    sys.exit(main())
