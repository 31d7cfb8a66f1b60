"""The evaluation loop beside inspect_ai and lm-eval: the same model, the same prompts, and `kill -9` in the middle.

    python -m veriward.scripts.bench_harnesses --model FOLDER --problems FILE.jsonl

Every harness runs the model with its own `transformers` engine, in a process of its own: greedy, the same batch size,
one thread, since on a busy machine several wait for each other in a model this small. Each call of `generate` is noted
in a log that outlives the process, before and after: it says whether all of them put the same prompts in front of the
model, how long the model took, and what was asked again after a kill. The responses that a harness stored are then
verified by `verify_many`, beside the mark of the harness's own scorer.

Each is killed with the model as fast as it is, and with one that takes PAUSE seconds longer for a batch, as a larger
one does; then the kill comes in the middle of a batch.

    inspect_ai       provider `hf`, scorer `math`; begun again with `eval_retry`
    lm-eval          model `hf`, metric `exact_match` behind the last-number filter of its gsm8k task
    lm-eval, cache   the same with `use_cache`, which is what it has for going on; begun again with the same call
    veriward         `evaluate`, begun again with the same call

A harness that is not installed is named, and the others go on.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from veriward.eval.problems import Problem, ProblemSet, hash_problems, load_problems
from veriward.eval.prompting import PromptTemplate
from veriward.rewards import DEFAULT, verify_many
from veriward.tool_agent.errors import ConfigError

INSTALL = {"inspect_ai": "inspect_ai latex2sympy2-extended==1.11.0", "lm_eval": "lm-eval"}
"""The package of each harness and what brings it; inspect_ai's `math` asks for exactly this parser."""
LAST_NUMBER = {"function": "regex", "group_select": -1, "regex_pattern": r"(-?[$0-9.,]{2,})|(-?[0-9]+)"}
"""`flexible-extract` of lm-eval's gsm8k task."""
OURS = "veriward"
PAUSE = 1.0


Plan = argparse.Namespace
"""The options of the command: what every harness is asked to do."""
Answers = Mapping[str, tuple[str, bool]]
"""By problem id: the stored response, and whether the harness's own scorer took it."""


def read_problems(plan: Plan) -> tuple[Problem, ...]:
    found = load_problems(plan.problems).problems[: plan.limit]
    if len({problem.question for problem in found}) < len(found):
        raise ConfigError(f"{plan.problems}: a question stands there twice; the log could not tell the two apart")
    return found


def ours(plan: Plan, folder: Path) -> Answers:
    """As the next two: begin in a folder, or go on with what is in it."""
    from veriward.eval.generators import TransformersGenerator
    from veriward.eval.loop import evaluate

    problems = read_problems(plan)
    columns = {"question_column": "question", "reference_column": "reference"}
    result = evaluate(
        TransformersGenerator(plan.model, device="cpu", batch_size=plan.batch_size),
        ProblemSet(problems=problems, sha256=hash_problems(problems), name="bench", **columns),
        folder / "run",
        template=PromptTemplate(template="chat", instruction=""),
        max_new_tokens=plan.max_new_tokens,
    )
    return {row["id"]: (row["text"], row["correct"]) for row in result.rows}


def lm_eval_harness(plan: Plan, folder: Path, *, cached: bool) -> Answers:
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    columns = [{"id": row.id, "question": row.question, "answer": row.reference} for row in read_problems(plan)]

    def read_columns(**_: object) -> dict[str, Any]:
        import datasets

        return {"test": datasets.Dataset.from_list(columns)}

    task = {
        "task": "bench",
        "custom_dataset": read_columns,
        "output_type": "generate_until",
        "test_split": "test",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": [], "do_sample": False, "max_gen_toks": plan.max_new_tokens},
        "filter_list": [{"name": "last-number", "filter": [LAST_NUMBER, {"function": "take_first"}]}],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    found = simple_evaluate(
        model="hf",
        model_args={"pretrained": plan.model, "device": "cpu", "dtype": "float32"},
        tasks=[task],
        batch_size=plan.batch_size,
        use_cache=str(folder / "cache") if cached else None,
        apply_chat_template=True,
        task_manager=TaskManager(include_defaults=False),
    )
    samples = found["samples"]["bench"]
    return {row["doc"]["id"]: (row["resps"][0][0], bool(row["exact_match"])) for row in samples}


def inspect_task(problems: str, limit: int) -> Any:
    """What `eval_retry` makes the task from again."""
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import math

    rows = load_problems(problems).problems[:limit]
    return Task(dataset=[Sample(id=row.id, input=row.question, target=row.reference) for row in rows], scorer=math())


def inspect_harness(plan: Plan, folder: Path) -> Answers:
    import inspect_ai
    from inspect_ai.log import list_eval_logs

    task = inspect_ai.task(name="bench")(inspect_task)
    place = str(folder / "logs")
    logs = list_eval_logs(place) if (folder / "logs").exists() else []
    if logs:
        (log,) = inspect_ai.eval_retry(logs[0], log_dir=place, display="none", max_connections=plan.batch_size)
    else:
        (log,) = inspect_ai.eval(
            task(problems=plan.problems, limit=plan.limit),
            model="hf/bench",
            model_args={"model_path": plan.model, "device": "cpu", "do_sample": False},
            max_connections=plan.batch_size,
            max_tokens=plan.max_new_tokens,
            log_dir=place,
            display="none",
        )
    if log.status != "success":
        raise RuntimeError(f"inspect_ai ended with {log.status}: {log.error}")
    return {str(sample.id): (sample.output.completion, sample.scores["math"].value == "C") for sample in log.samples}


HARNESSES: dict[str, tuple[str, Callable[[Plan, Path], Answers]]] = {
    "inspect_ai": ("inspect_ai", inspect_harness),
    "lm-eval": ("lm_eval", functools.partial(lm_eval_harness, cached=False)),
    "lm-eval, cache": ("lm_eval", functools.partial(lm_eval_harness, cached=True)),
    OURS: ("veriward", ours),
}
"""The package of each harness and how it is started."""


def child(name: str, plan: Plan) -> None:
    watch_model(plan.folder / "calls.jsonl", plan.pause)
    answers = HARNESSES[name][1](plan, plan.folder)
    (plan.folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


def watch_model(log: Path, pause: float) -> None:
    """Every harness calls `generate` of transformers: what goes in is noted, and when it has come out."""
    from transformers import GenerationMixin

    generate = GenerationMixin.generate

    @functools.wraps(generate)
    def watched(self: Any, inputs: Any = None, **options: Any) -> Any:
        token_ids = options["input_ids"] if inputs is None else inputs
        rows = zip(token_ids.tolist(), options["attention_mask"].tolist(), strict=True)
        prompts = [" ".join(str(token) for token, seen in zip(*row, strict=True) if seen) for row in rows]
        note({"asked": prompts})
        started = time.perf_counter()
        time.sleep(pause)
        output = generate(self, inputs, **options)
        note({"answered": prompts, "seconds": time.perf_counter() - started})
        return output

    def note(row: dict[str, Any]) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"at": time.time(), **row}) + "\n")

    GenerationMixin.generate = watched  # type: ignore[method-assign]


def read_calls(log: Path) -> list[dict[str, Any]]:
    """A line that the kill cut off is left out."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def prompts_of(calls: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Those that were 'asked', or 'answered'."""
    return [prompt for call in calls for prompt in call.get(key, ())]


def start(name: str, folder: Path, *, pause: float = 0.0, kill_after: int | None = None) -> float:
    """Seconds of one process, from its start to its end; killed as soon as so many prompts were asked."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "veriward.scripts.bench_harnesses", *sys.argv[1:], "--start", name]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    began = time.perf_counter()
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            [*command, "--folder", str(folder), "--pause", str(pause)],
            stdout=output,
            stderr=output,
            env=os.environ | offline | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        while process.poll() is None:
            if kill_after is not None and len(prompts_of(read_calls(folder / "calls.jsonl"), "asked")) >= kill_after:
                time.sleep(pause / 2)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return time.perf_counter() - began
            time.sleep(0.005)
    if process.returncode:
        raise RuntimeError(f"{name} ended with {process.returncode}:\n{(folder / 'output.txt').read_text()[-3000:]}")
    return time.perf_counter() - began


def undisturbed(name: str, folder: Path) -> dict[str, Any]:
    seconds = start(name, folder)
    calls = read_calls(folder / "calls.jsonl")
    return {
        "seconds": seconds,
        "span": calls[-1]["at"] - calls[0]["at"],
        "model": sum(call.get("seconds", 0.0) for call in calls),
        "prompts": sorted(prompts_of(calls, "asked")),
        "answers": json.loads((folder / "answers.json").read_text(encoding="utf-8")),
    }


def killed(name: str, folder: Path, pause: float, kill_after: int) -> dict[str, float]:
    """Killed with SIGKILL after so many prompts, and begun again in the same folder."""
    log = folder / "calls.jsonl"
    start(name, folder, pause=pause, kill_after=kill_after)
    before = read_calls(log)
    log.rename(folder / "calls-before.jsonl")
    start(name, folder, pause=pause)
    answered = prompts_of(before, "answered")
    again = set(prompts_of(read_calls(log), "asked"))
    return {
        "pause": pause,
        "answered_before": len(answered),
        "answered_and_asked_again": sum(prompt in again for prompt in answered),
    }


def measure(plan: Plan, folder: Path) -> Iterator[dict[str, Any]]:
    """One row for each harness that is there; the repeats take turns, since a machine is not the same all day."""
    problems = read_problems(plan)
    names = [name for name, (package, _) in HARNESSES.items() if importlib.util.find_spec(package)]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(plan.repeats):
        for name in names:
            runs[name].append(undisturbed(name, folder / f"{name}-{turn}"))
    reference = runs[OURS][0]
    for name in names:
        answers = runs[name][0]["answers"]
        verdicts = verify_many({"response": answers[row.id][0], "reference": row.reference} for row in problems)
        own = [answers[problem.id][1] for problem in problems]
        yield {
            "harness": name,
            "problems": len(problems),
            "own": sum(own),
            "verified": sum(verdict.correct for verdict in verdicts),
            "disagreements": sum(mark != verdict.correct for mark, verdict in zip(own, verdicts, strict=True)),
            "same_prompts": runs[name][0]["prompts"] == reference["prompts"],
            "same_texts": sum(answers[key][0] == text for key, (text, _) in reference["answers"].items()),
            **{key: [round(run[key], 2) for run in runs[name]] for key in ("seconds", "span", "model")},
            "kills": [
                killed(name, folder / f"{name}-{pause}-{turn}", pause, len(problems) * (turn + 1) // (plan.kills + 1))
                for pause in (0.0, PAUSE)
                for turn in range(plan.kills)
            ],
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench_harnesses", description="The loop beside two other harnesses.")
    parser.add_argument("--model", required=True, help="model folder with a chat template")
    parser.add_argument("--problems", required=True, help="JSONL file of problems")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--max-new-tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3, help="undisturbed runs of each")
    parser.add_argument("--kills", type=int, default=2, help="runs of each that are killed, at even distances")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--start", choices=HARNESSES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--pause", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.start:
        child(options.start, options)
        return
    for package, install in INSTALL.items():
        if not importlib.util.find_spec(package):
            print(f"{package} is not installed; the others go on. To add it: pip install {install}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="bench-harnesses-") as place:
        rows = list(measure(options, Path(place)))
    if options.json:
        print(json.dumps({"versions": versions(), "contract": DEFAULT, "rows": rows}))
    else:
        show(rows, Console(width=120))


def versions() -> dict[str, str]:
    names = ["veriward", "torch", "transformers", *filter(importlib.util.find_spec, INSTALL)]
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def show(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    console.print(", ".join(f"{name} {number}" for name, number in versions().items()))
    table = Table(title=f"{rows[0]['problems']} problems, contract {DEFAULT}", title_justify="left")
    for column in ("harness", "own scorer", "verified", "they differ", "same responses"):
        table.add_column(column, justify="left" if column == "harness" else "right")
    for column in ("process s", "first to last call s", "in the model s", "asked again", f"asked again, {PAUSE} s"):
        table.add_column(column, justify="right")
    for row in rows:
        counts = [str(row[key]) for key in ("own", "verified", "disagreements")]
        same = f"{row['same_texts']}{'' if row['same_prompts'] else ' (other prompts)'}"
        times = [f"{statistics.median(row[key]):.1f}" for key in ("seconds", "span", "model")]
        table.add_row(row["harness"], *counts, same, *times, *(lost(row["kills"], pause) for pause in (0.0, PAUSE)))
    console.print(table)


def lost(kills: Sequence[Mapping[str, float]], pause: float) -> str:
    """Of the responses that the model had written when it was killed, those that it had to write again."""
    found = [kill for kill in kills if kill["pause"] == pause]
    keys = ("answered_and_asked_again", "answered_before")
    return " of ".join(f"{sum(kill[key] for kill in found):.0f}" for key in keys)


if __name__ == "__main__":
    main()
