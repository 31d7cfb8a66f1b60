"""The main job, end to end: make problems and a tiny model, measure it, train it on verified rewards, measure again.

    python -m veriward.scripts.quickstart [--seed N] [--max_steps N] [--out FOLDER]

Everything is real and local: the model is trained here from nothing, its rewards and its marks come from the
same `verify`. Training is `veriward.train.grpo` with the preset `quickstart_cpu`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: on a model this small more threads only wait
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from veriward.tool_agent.errors import ConfigError, disk_full_in_one_line, need

if TYPE_CHECKING:
    from veriward.eval.loop import EvalResult
    from veriward.eval.problems import ProblemSet
    from veriward.train.settings import Settings

PRESET = "quickstart_cpu"
SAMPLES = 4
TEMPERATURE = 1.0
BATCH_SIZE = 200
NEEDED_MIB = 150
SIDE_BY_SIDE = 4
"""Responses shown before and after."""
KEPT = "tiny"
"""The base model and its problems: used again by a second run with the same seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One model on the held-out problems."""

    greedy: EvalResult
    sampled: EvalResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table: a share with its counts, or a plain number."""

    name: str
    before: str
    after: str


def main(arguments: Sequence[str] | None = None) -> int:
    options = command_line(arguments)
    console = Console(highlight=False, soft_wrap=True)
    try:
        for module in ("yaml", "torch", "trl", "matplotlib", "scipy"):
            need(module, extra="train", purpose="the quickstart")
        refuse_small_disk(options.out)
        with disk_full_in_one_line(options.out):
            run(options, console)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; what was done so far is in {options.out}, and the next start begins anew", file=sys.stderr)
        return 130
    return 0


def command_line(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="quickstart", description="Train a tiny model on verified rewards, on the CPU, in a few minutes."
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed: other problems, another model (default 0)")
    parser.add_argument("--max_steps", "--max-steps", type=int, default=None, help="GRPO steps (default: the preset's)")
    parser.add_argument("--out", type=Path, default=None, help="folder (default runs/quickstart, or …-seedN)")
    options = parser.parse_args(arguments)
    if not 0 <= options.seed < 2**32:
        parser.error(f"--seed is {options.seed}; it must be between 0 and {2**32 - 1}")
    if options.max_steps is not None and options.max_steps < 1:
        parser.error(f"--max_steps is {options.max_steps}; it must be at least 1")
    if options.out is None:
        options.out = Path("runs", "quickstart" if options.seed == 0 else f"quickstart-seed{options.seed}")
    return options


def run(options: argparse.Namespace, console: Console) -> None:
    """The job as a table of contents."""
    started = time.monotonic()
    out: Path = options.out
    console.print("loading torch and trl …", style="dim")
    settings = settings_of(options)
    heading(console, "1/4  problems and a tiny model")
    make_base(out / KEPT, options.seed, console)
    set_earlier_aside(out, console)
    heading(console, "2/4  the model before: held-out problems, greedy and sampled")
    problems = heldout(out)
    before = measure(out / KEPT / "base", problems, settings, out / "before", console)
    heading(console, "3/4  GRPO on verified rewards")
    trained = train(settings, console)
    heading(console, "4/4  the model after: the same held-out problems")
    after = measure(trained, problems, settings, out / "after", console)
    figures = compare(before, after)
    console.print()
    console.print(table(figures, settings, len(problems)))
    console.print()
    pairs = chosen_pairs(before.greedy, after.greedy, options.seed)
    console.print(style_table(pairs))
    shutil.copyfile(out / "grpo" / "curves.png", out / "curves.png")
    write_report(out / "report.md", figures, pairs, settings, len(problems))
    where(console, out, trained, time.monotonic() - started)


def refuse_small_disk(out: Path) -> None:
    """Before a minute is spent on the warm start."""
    in_the_way = next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None)
    if in_the_way is not None:
        raise ConfigError(f"--out {out}: {in_the_way} is a file; wanted a folder")
    present = next(folder for folder in (out, *out.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(present).free // 2**20
    if free < NEEDED_MIB:
        raise ConfigError(f"--out {out}: {free} MiB of disk are free there; wanted {NEEDED_MIB}; choose another folder")


def settings_of(options: argparse.Namespace) -> Settings:
    from veriward.train.settings import read_settings

    out = options.out
    words = ["--config", PRESET, "--seed", str(options.seed), "--output_dir", str(out / "grpo")]
    words += ["--model_name_or_path", str(out / KEPT / "base"), "--problems", str(out / KEPT / "data" / "train.jsonl")]
    if options.max_steps is not None:
        words += ["--max_steps", str(options.max_steps)]
    return read_settings(words)


def set_earlier_aside(out: Path, console: Console) -> None:
    """Nothing is overwritten: an earlier run moves into a folder of its own; its base model stays in use."""
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; wanted a folder")
    found = [path for path in out.glob("*") if path.name != KEPT and not path.name.startswith("earlier-")]
    if not found:
        return
    aside = next(path for n in range(1, 10_000) if not (path := out / f"earlier-{n}").exists())
    aside.mkdir()
    for path in found:
        path.rename(aside / path.name)
    console.print(f"the earlier run in {out} is now in {aside}", style="dim")


def make_base(folder: Path, seed: int, console: Console) -> None:
    from veriward.train import sft, tiny_base
    from veriward.train.processes import quiet_libraries

    quiet_libraries(None)
    with progress_bar(console) as bar:
        task = bar.add_task("warm start", total=None, note="")

        def show(now: sft.Progress) -> None:
            bar.update(task, completed=now.step, total=now.steps, note=f"loss {now.loss:.3f}" if now.loss else "")

        base = tiny_base.make_base(folder, seed=seed, on_progress=show)
    record = json.loads((folder / tiny_base.RECIPE_FILE).read_text(encoding="utf-8"))
    what = f"made in {record['seconds']:.0f} s" if base.made else "found complete, used again"
    console.print(f"{base.model}: {what}; {record['train']} problems to train on, {record['heldout']} held out")


def heldout(out: Path) -> ProblemSet:
    from veriward.eval.problems import load_problems

    return load_problems(out / KEPT / "data" / "heldout.jsonl")


def measure(model: Path, problems: ProblemSet, settings: Settings, folder: Path, console: Console) -> Measurement:
    """Greedy, and SAMPLES responses a problem at T=1, by the loop that `veriward eval` uses."""
    from veriward.eval.generators import TransformersGenerator
    from veriward.eval.loop import Progress as EvalProgress
    from veriward.eval.loop import evaluate
    from veriward.train.prompts import prompt_template

    generator = TransformersGenerator(model, device="cpu", batch_size=BATCH_SIZE)
    results = {}
    for name, samples, temperature in (("greedy", 1, 0.0), ("sampled", SAMPLES, TEMPERATURE)):
        with progress_bar(console) as bar:
            task = bar.add_task(name, total=len(problems) * samples, note="")

            def show(now: EvalProgress, bar: Progress = bar, task: Any = task) -> None:
                bar.update(task, completed=now.finished, note=f"{now.outcomes['correct']} correct")

            results[name] = evaluate(
                generator,
                problems,
                folder / name,
                template=prompt_template(settings.run),
                contract=settings.run.contract,
                samples=samples,
                temperature=temperature,
                max_new_tokens=int(settings.library_value("max_completion_length")),
                stop=settings.run.stop_strings,
                on_progress=show,
            )
        summary = results[name].summary
        console.print(f"{name:<8} correct {summary.accuracy}, boxed {summary.format_valid}")
    return Measurement(**results)


def train(settings: Settings, console: Console) -> Path:
    from veriward.train.grpo import train as train_grpo

    result = train_grpo(settings, say=lambda line: console.print(line, markup=False))
    if result.model is None:
        raise KeyboardInterrupt
    return result.model


# What is shown ------------------------------------------------------------------------------------


def compare(before: Measurement, after: Measurement) -> list[Figure]:
    def both(name: str, read: Any) -> Figure:
        return Figure(name=name, before=read(before), after=read(after))

    return [
        both("correct, greedy", lambda m: with_interval(m.greedy.summary.accuracy, m.greedy.summary.interval)),
        both("boxed, greedy", lambda m: with_interval(m.greedy.summary.format_valid)),
        both(
            f"correct, {SAMPLES} at T=1",
            lambda m: with_interval(m.sampled.summary.accuracy, m.sampled.summary.interval),
        ),
        both(
            f"boxed, {SAMPLES} at T=1",
            lambda m: with_interval(m.sampled.summary.format_valid, over_problems(m.sampled, "format_valid")),
        ),
        both(f"pass@{SAMPLES}", lambda m: with_interval(solved_at_all(m.sampled))),
        both("tokens, greedy", lambda m: f"{m.greedy.summary.lengths['mean']:.1f}"),
    ]


def with_interval(rate: Any, interval: tuple[float, float] | None = None) -> str:
    """'45/200 22.5% [17.3, 28.8]': counts, share, 95% interval."""
    found = rate.interval() if interval is None else interval
    return f"{rate.successes}/{rate.total} {rate.value:.1%} [{100 * found[0]:.1f}, {100 * found[1]:.1f}]"


def over_problems(result: EvalResult, column: str) -> tuple[float, float] | None:
    """Interval of a share of samples with the problem as the unit: samples of one problem are alike."""
    from veriward.eval.rates import clustered_interval

    values = [float(row[column] is True) for row in result.rows]
    return clustered_interval(values, [row["id"] for row in result.rows])


def solved_at_all(result: EvalResult) -> Any:
    """pass@k with k samples drawn is a count of problems, so it has a plain interval."""
    from veriward.eval.rates import Rate

    correct: dict[str, bool] = {}
    for row in result.rows:
        correct[row["id"]] = correct.get(row["id"], False) or row["correct"]
    return Rate(successes=sum(correct.values()), total=len(correct))


def table(figures: Sequence[Figure], settings: Settings, problems: int) -> Table:
    shown = Table(
        title=f"{problems} held-out problems, contract {settings.run.contract}, seed {settings.library_value('seed')}",
        caption="in brackets: 95% intervals in percent, Wilson's; for the share of samples the problem is the unit",
        title_style="bold",
        box=box.SIMPLE_HEAD,  # no vertical lines: it fits a terminal of 80 columns
        show_edge=False,
    )
    shown.add_column("", no_wrap=True)
    shown.add_column("before", justify="right", no_wrap=True)
    shown.add_column("after", justify="right", style="bold", no_wrap=True)
    for figure in figures:
        shown.add_row(figure.name, figure.before, figure.after)
    return shown


Pair = tuple[Mapping[str, Any], Mapping[str, Any]]


def chosen_pairs(before: EvalResult, after: EvalResult, seed: int) -> list[Pair]:
    """The same few problems from both, drawn by seed: neither the best nor the worst ones."""
    later = {row["id"]: row for row in after.rows}
    drawn = random.Random(seed).sample(before.rows, min(SIDE_BY_SIDE, len(before.rows)))
    return [(row, later[row["id"]]) for row in drawn]


def style_table(pairs: Sequence[Pair]) -> Table:
    shown = Table(title="greedy responses, problems drawn at random", title_style="bold", show_lines=True)
    for name in ("problem", "before", "after"):
        shown.add_column(name)
    for before, after in pairs:
        shown.add_row(Text(question_of(before)), marked(before), marked(after))
    return shown


def question_of(row: Mapping[str, Any]) -> str:
    prompt = row["prompt"]
    return prompt if isinstance(prompt, str) else str(prompt[-1]["content"])


def marked(row: Mapping[str, Any]) -> Text:
    return Text(row["text"]).append(f"\n{row['outcome']}", style="green" if row["correct"] else "red")


def write_report(path: Path, figures: Sequence[Figure], pairs: Sequence[Pair], settings: Settings, n: int) -> None:
    """The tables as Markdown, beside the run."""
    lines = [
        "# Quickstart",
        "",
        f"{n} held-out problems, contract {settings.run.contract}, seed {settings.library_value('seed')}, "
        f"settings {settings.digest()[:12]}. In brackets: 95% intervals in percent.",
        "",
        "| | before | after |",
        "|---|---|---|",
        *(f"| {figure.name} | {figure.before} | {figure.after} |" for figure in figures),
        "",
        "![curves](curves.png)",
        "",
        "| problem | before | after |",
        "|---|---|---|",
        *(
            f"| `{question_of(a)}` | `{a['text']}` ({a['outcome']}) | `{b['text']}` ({b['outcome']}) |"
            for a, b in pairs
        ),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def where(console: Console, out: Path, trained: Path, seconds: float) -> None:
    console.print(f"\ndone in {clock(seconds)}", style="bold")
    for name, what in (
        (out / "curves.png", "the curves: accuracy, format, length, entropy by step"),
        (out / "report.md", "the tables above"),
        (out / "grpo" / "rollouts-0.jsonl", "every response of the training, with verdict and rewards"),
        (out / "grpo" / "run.json", "settings, versions, hashes, contract"),
        (trained, "the trained model with its tokenizer"),
    ):
        console.print(f"  {name!s:<40} {what}", markup=False)
    console.print("next, with your own model and problems (rows with a question and an answer):", style="dim")
    if Path(".venv/bin/activate").is_file():
        console.print("  . .venv/bin/activate", markup=False)
    console.print(
        "  python -m veriward.train.grpo --config qwen3_0.6b_base_1gpu --model_name_or_path MODEL "
        "--problems FILE.jsonl --check",
        markup=False,
    )


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def heading(console: Console, text: str) -> None:
    console.print(f"\n{text}", style="bold")


def progress_bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description:<10}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    return Progress(
        *columns,
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


if __name__ == "__main__":
    sys.exit(main())
