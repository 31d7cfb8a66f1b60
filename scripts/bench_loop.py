"""What the evaluation loop costs beside the model: verdicts, states and progress, without a model to wait for.

    python -m veriward.scripts.bench_loop

A scripted generator answers at once, so that the time of a run is the loop's own: reading the set, verdicts, states on
the disk, the summary. Beside it stands the time that a real model takes for one response on this machine, and that of
the same loop around that model, whose difference to the model alone is the overhead.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from veriward.eval.loop import evaluate
from veriward.eval.problems import Problem, ProblemSet, hash_problems
from veriward.eval.prompting import PromptTemplate
from veriward.eval.scripted import ScriptedGenerator

WAYS = (("files", "power"), ("files", "process"), ("sqlite", "power"), ("sqlite", "process"))
PLAIN = PromptTemplate(template="plain", instruction="")
WORDS = "We add the two numbers, look at the result once more, and write it down. " * 12
"""About 900 characters, as a short solution has."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench_loop", description="Problems a second of the loop alone.")
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--model", default=None, help="model folder; also measure the loop around it")
    parser.add_argument("--model-problems", type=int, default=48)
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    row: dict[str, Any] = {"problems": options.problems, "alone": loop_alone(options.problems)}
    if options.model:
        row["around a model"] = around_model(options.model, options.model_problems, options.max_new_tokens)
    if options.json:
        print(json.dumps(row))
    else:
        show(row, Console())


def loop_alone(count: int) -> dict[str, float]:
    """Problems a second for each store and durability; the first, short run is for the imports."""
    timed(partial(scripted_run, 8, kind="files", durability="process"))
    return {
        f"{kind}, {durability}": round(count / timed(partial(scripted_run, count, kind=kind, durability=durability)))
        for kind, durability in WAYS
    }


def scripted_run(count: int, folder: Path, *, kind: Any, durability: Any) -> None:
    problems = sums(count)
    script = {problem.id: [rf"{WORDS}\boxed{{{problem.reference}}}"] for problem in problems.problems}
    generator = ScriptedGenerator(script, {problem.id: problem.question for problem in problems.problems})
    evaluate(generator, problems, folder, template=PLAIN, kind=kind, durability=durability)


def sums(count: int) -> ProblemSet:
    problems = [
        Problem(id=f"sum-{n}", question=f"{n:06d} + 1 =", reference=str(n + 1), columns={}) for n in range(count)
    ]
    return ProblemSet(
        problems=tuple(problems),
        sha256=hash_problems(problems),
        name="sums",
        question_column="question",
        reference_column="reference",
    )


def around_model(model: str, count: int, max_new_tokens: int) -> dict[str, float]:
    """Seconds of the model alone and of the loop around it, twice each in turn, the smaller one counts."""
    from veriward.eval.generators import TransformersGenerator

    generator = TransformersGenerator(model, device="cpu")
    problems = sums(count)
    prompts = [PLAIN.render(problem.question) for problem in problems.problems]

    def alone(_: Path) -> None:
        generator.generate(prompts, max_new_tokens=max_new_tokens, seed=0)

    def looped(folder: Path) -> None:
        evaluate(generator, problems, folder, template=PLAIN, max_new_tokens=max_new_tokens)

    looped_s, alone_s = (min(times) for times in zip(*((timed(looped), timed(alone)) for _ in range(3)), strict=True))
    return {
        "responses": count,
        "model_s": round(alone_s, 3),
        "loop_s": round(looped_s, 3),
        "overhead": round(looped_s / alone_s - 1, 4),
    }


def timed(work: Callable[[Path], None]) -> float:
    """Seconds of one run into a new folder, which is removed."""
    folder = Path(tempfile.mkdtemp(prefix="bench-loop-"))
    try:
        started = time.perf_counter()
        work(folder / "run")
        return time.perf_counter() - started
    finally:
        shutil.rmtree(folder)


def show(row: dict[str, Any], console: Console) -> None:
    table = Table(title=f"the loop alone, {row['problems']:,} problems", title_justify="left")
    table.add_column("store, durability")
    table.add_column("problems a second", justify="right")
    for name, rate in row["alone"].items():
        table.add_row(name, f"{rate:,}")
    console.print(table)
    if found := row.get("around a model"):
        console.print(
            f"{found['responses']} responses: the model alone {found['model_s']} s, the loop around it "
            f"{found['loop_s']} s: {found['overhead']:.1%} more"
        )


if __name__ == "__main__":
    main()
