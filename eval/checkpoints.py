"""The checkpoints of a training folder, each asked exactly as the base was."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from veriward.eval.loop import OnProgress, evaluate
from veriward.eval.problems import ProblemSet
from veriward.eval.prompting import PromptTemplate
from veriward.eval.runs import Run
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.generator import Generator

CHECKPOINT = re.compile(r"checkpoint-(\d+)")

Watch = Callable[[str], AbstractContextManager[OnProgress]]
"""Shows the progress of the run that it is given the name of."""


def checkpoints_of(training: Path) -> list[Path]:
    """By step."""
    if not training.is_dir():
        raise ConfigError(f"{training}: no such folder; wanted the output_dir of a training run")
    steps = {int(name[1]): path for path in training.iterdir() if (name := CHECKPOINT.fullmatch(path.name))}
    if not steps:
        raise ConfigError(f"{training}: no checkpoint-STEP in it; wanted the output_dir of a training run")
    return [steps[step] for step in sorted(steps)]


def evaluate_checkpoints(
    base: Run, training: Path, out: Path, *, make: Callable[[Path], Generator], watch: Watch
) -> list[Run]:
    """Each under the settings of the base run, in a folder of `out` named after it; what is stored is not asked again.

    make   loads a checkpoint
    """
    problems, template = problems_of(base), template_of(base)
    generation = base.settings["generation"]
    runs = []
    for checkpoint in checkpoints_of(training):
        with watch(checkpoint.name) as on_progress:
            result = evaluate(
                make(checkpoint),
                problems,
                out / checkpoint.name,
                template=template,
                contract=base.contract.name,
                samples=base.samples,
                temperature=generation["temperature"],
                max_new_tokens=generation["max_new_tokens"],
                seed=generation["seed"],
                stop=generation["stop"],
                on_progress=on_progress,
            )
        runs.append(result.run)
    return runs


def problems_of(run: Run) -> ProblemSet:
    """What a run was asked, to ask it again."""
    if not run.set.references:
        raise ConfigError(f"{run.path}: was packed without references; without them nothing can be verified")
    described = run.settings["problems"]
    return ProblemSet(
        problems=run.set.problems,
        sha256=described["sha256"],
        name=described["name"],
        question_column=described["question_column"],
        reference_column=described["reference_column"],
    )


def template_of(run: Run) -> PromptTemplate:
    """How a run put its questions; ConfigError where its template file has changed since."""
    prompt = run.settings["prompt"]
    template = PromptTemplate(
        template=prompt["template"], instruction=prompt["instruction"], enable_thinking=prompt["enable_thinking"]
    )
    if dict(template.settings) != dict(prompt):
        raise ConfigError(f"{run.path}: its template file {prompt['template']} has changed; put back the one it had")
    return template
