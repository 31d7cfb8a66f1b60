"""Kills an evaluation with SIGKILL again and again, and looks at what a restart makes of it.

    python -m veriward.scripts.crash_eval --kills 100

A run of 40 problems with 4 samples each is begun in a forked process, killed at a random moment, begun again in the
same folder, and so on until it is whole; then the next run, until there were enough kills. After each kill the states
on the disk are read; the log of the generator, which outlives its process, says what was asked. Wanted: nothing that
was stored is asked again, no state is damaged, and the rows and numbers at the end are those of a run that nobody
disturbed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veriward.eval.loop import evaluate
from veriward.eval.prompting import PromptTemplate
from veriward.eval.runs import read_run, response_key
from veriward.eval.scripted import ScriptedGenerator
from veriward.scripts.bench_loop import sums
from veriward.tool_agent.generator import Finished, Generation, Prompt
from veriward.tool_agent.run_header import RUN
from veriward.tool_agent.store import Kind

PROBLEMS, SAMPLES = 40, 4
SECONDS = 0.01
"""Of one response: a run lasts long enough to be killed in its middle."""
PLAIN = PromptTemplate(template="plain", instruction="")
CLOCK = ("seconds", "tool_seconds")
NAMED = ("cost", "run")
"""The parts of a summary that depend on the clock, and on the name of the folder."""


class SlowScript(ScriptedGenerator):
    """One response after the other, each noted in a file before it is written."""

    def __init__(self, *arguments: Any, asked: Path, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._asked = asked

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        sample_numbers: Sequence[int] | None = None,
        on_finished: Callable[[Finished], None] | None = None,
        **options: Any,
    ) -> list[Generation]:
        written = []
        numbers = sample_numbers or [0] * len(prompts)
        with self._asked.open("a", buffering=1) as file:
            for index, (prompt, sample) in enumerate(zip(prompts, numbers, strict=True)):
                file.write(response_key(self.place(prompt)[0], sample, SAMPLES) + "\n")
                time.sleep(SECONDS)
                written += super().generate([prompt], sample_numbers=[sample], **options)
                if on_finished is not None:
                    on_finished([(index, written[-1])])
        return written


@dataclass(slots=True)
class Found:
    kills: int = 0
    runs: int = 0
    repeated: list[str] = field(default_factory=list)
    """Responses that were stored and asked again."""
    damaged: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    """Runs that ended with other rows or numbers than the undisturbed one."""
    asked: int = 0
    needed: int = 0

    @property
    def clean(self) -> bool:
        return not (self.repeated or self.damaged or self.different)


def main() -> None:
    parser = argparse.ArgumentParser(prog="crash_eval", description="Kill an evaluation again and again.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=("files", "sqlite"), default="files")
    options = parser.parse_args()
    found = crash(options.kills, options.seed, options.store)
    print(
        f"{found.kills} kills over {found.runs} runs of {PROBLEMS} x {SAMPLES} responses, store {options.store}: "
        f"{len(found.repeated)} stored responses asked again, {len(found.damaged)} states damaged, "
        f"{len(found.different)} runs with other rows or numbers; asked {found.asked:,} for {found.needed:,}"
    )
    for line in [*found.repeated, *found.damaged, *found.different][:20]:
        print(line, file=sys.stderr)
    sys.exit(0 if found.clean else 1)


def crash(kills: int, seed: int, kind: Kind) -> Found:
    draw, found = random.Random(seed), Found()
    with tempfile.TemporaryDirectory(prefix="crash-eval-") as place:
        folder = Path(place)
        begin(folder / "wanted", folder / "wanted.log", kind).wait(None)
        wanted = outcome_of(folder / "wanted")
        while found.kills < kills:
            disturbed_run(folder / f"run-{found.runs}", kind, draw, kills, wanted, found)
            found.runs += 1
    return found


def disturbed_run(run: Path, kind: Kind, draw: random.Random, kills: int, wanted: Any, found: Found) -> None:
    """One run from its beginning to its end, killed on the way."""
    stored: set[str] = set()
    while True:
        log = run.with_name(f"{run.name}-{found.kills}.log")
        after = draw.uniform(0.0, 1.5 * PROBLEMS * SAMPLES * SECONDS) if found.kills < kills else None
        killed = begin(run, log, kind).wait(after)
        asked = log.read_text().splitlines() if log.exists() else []
        found.repeated += [f"{run.name}: {key} was stored and asked again" for key in asked if key in stored]
        found.asked += len(asked)
        if not killed:
            break
        found.kills += 1
        if (run / RUN).exists():
            half = read_run(run)
            found.damaged += [f"{run.name}: {line}" for line in half.set_aside]
            stored |= {state.problem for state in half.states}
    found.needed += PROBLEMS * SAMPLES
    if outcome_of(run) != wanted:
        found.different.append(f"{run.name}: other rows or numbers")


@dataclass(frozen=True, slots=True)
class Child:
    process: int

    def wait(self, seconds: float | None) -> bool:
        """True if it was killed after so many seconds; it ended by itself before, if not."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            ended, status = os.waitpid(self.process, 0 if until is None else os.WNOHANG)
            if ended:
                if status:
                    raise RuntimeError(f"the evaluation ended with status {status}")
                return False
            time.sleep(0.0005)
        os.kill(self.process, signal.SIGKILL)
        return os.waitpid(self.process, 0)[1] != 0


def begin(run: Path, log: Path, kind: Kind) -> Child:
    """A process that evaluates; forked, since a new interpreter would take most of the time to start."""
    process = os.fork()
    if process:
        return Child(process)
    code = 1
    try:
        problems = sums(PROBLEMS)
        script = {
            problem.id: [rf"\boxed{{{problem.reference if number % 3 else number}}}"]
            for number, problem in enumerate(problems.problems)
        }
        questions = {problem.id: problem.question for problem in problems.problems}
        generator = SlowScript(script, questions, asked=log)
        evaluate(generator, problems, run, template=PLAIN, samples=SAMPLES, temperature=1.0, kind=kind)
        code = 0
    finally:
        os._exit(code)


def outcome_of(run: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows and numbers of a whole run, without what depends on the clock."""
    rows = [{key: value for key, value in row.items() if key not in CLOCK} for row in read_run(run).rows]
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return rows, {key: value for key, value in summary.items() if key not in NAMED}


if __name__ == "__main__":
    main()
