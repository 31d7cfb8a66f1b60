"""Problems as TRL's training rows: a prompt, the answer key, and where the problem came from.

Files are read by `eval.problems` and prompts are written by `eval.prompting`, the same functions that
evaluation uses, so that a model is trained on the prompts it will be measured with.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.eval.problems import Problem, load_problems
from veriward.eval.prompting import DEFAULT_INSTRUCTION, PromptTemplate
from veriward.rewards import Reason, check_reference, fields_for
from veriward.tool_agent.errors import ConfigError
from veriward.train.settings import RunSettings

REFERENCE = "reference"
"""The column of a training row that holds the answer key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableReference:
    """A problem whose answer key the contract cannot read: no response to it could ever be marked."""

    problem_id: str
    reference: str
    reason: Reason


OFFENDERS = 3
"""Unreadable references that are shown; all of them are listed in a file of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """The rows to train on, and what was left out of them."""

    name: str
    sha256: str
    rows: tuple[dict[str, Any], ...]
    """Each with 'prompt', 'reference' and 'problem_id'."""
    read: int
    """Problems read, before any was left out."""
    unreadable: tuple[UnreadableReference, ...]
    excluded: bool
    """Whether the unreadable ones were left out of `rows`."""

    def in_words(self) -> str:
        """'12000 problems of math.jsonl; 312/12000 references unreadable under v2: left out (…)'."""
        start = f"{self.read} problems of {self.name}"
        if not self.unreadable:
            return f"{start}; every reference can be read"
        reasons = Counter(item.reason.value for item in self.unreadable).most_common(3)
        share = f"{len(self.unreadable)}/{self.read} references unreadable ({len(self.unreadable) / self.read:.1%})"
        fate = "left out" if self.excluded else "kept, though no response to them is ever paid"
        counts = ", ".join(f"{reason} {count}" for reason, count in reasons)
        first = "; ".join(f"{item.problem_id}: {shortened(item.reference)}" for item in self.unreadable[:OFFENDERS])
        return f"{start}; {share}: {fate} ({counts}); the first: {first}"

    def write_unreadable(self, path: Path) -> None:
        """One line per unreadable reference, so that the key can be mended."""
        lines = [
            json.dumps({"problem_id": item.problem_id, "reference": item.reference, "reason": item.reason.value})
            for item in self.unreadable
        ]
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def prompt_template(settings: RunSettings) -> PromptTemplate:
    return PromptTemplate(
        template=settings.template,
        instruction=DEFAULT_INSTRUCTION if settings.instruction is None else settings.instruction,
        enable_thinking=settings.enable_thinking,
    )


def training_set(settings: RunSettings) -> TrainingSet:
    """Read the problems, check every answer key under the run's contract, and write the prompts."""
    problems = load_problems(
        settings.problems,
        question_column=settings.question_column,
        reference_column=settings.reference_column,
        split=settings.problems_split,
        limit=settings.max_problems,
    )
    unreadable = unreadable_references(problems.problems, settings.contract)
    if unreadable and settings.require_references:
        raise ConfigError(
            f"{settings.problems}: {len(unreadable)} of {len(problems)} references cannot be read under contract "
            f"{settings.contract}, and require_references is set; the first, of problem {unreadable[0].problem_id}: "
            f"{shortened(unreadable[0].reference)} ({unreadable[0].reason}); see them all with "
            f"veriward check-references"
        )
    excluded = settings.unreadable_references == "exclude"
    left_out = {item.problem_id for item in unreadable} if excluded else set()
    template = prompt_template(settings)
    rows = tuple(
        {
            "prompt": template.render(problem.question),
            REFERENCE: problem.reference,
            "problem_id": problem.id,
            **declared_columns(problem, settings.contract),
        }
        for problem in problems.problems
        if problem.id not in left_out
    )
    if not rows:
        raise ConfigError(
            f"{settings.problems}: none of its {len(unreadable)} references can be read under contract "
            f"{settings.contract}; the first is {unreadable[0].reference[:60]!r}; is reference_column the right one?"
        )
    return TrainingSet(
        name=problems.name,
        sha256=problems.sha256,
        rows=rows,
        read=len(problems.problems),
        unreadable=tuple(unreadable),
        excluded=excluded,
    )


def declared_columns(problem: Problem, contract: str) -> dict[str, str]:
    """What a problem says about its answer, as the columns that the reward functions read; options as JSON text."""
    fields = fields_for(contract, problem.columns)
    return {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True) for name, value in fields.items()
    }


def unreadable_references(problems: list[Problem] | tuple[Problem, ...], contract: str) -> list[UnreadableReference]:
    found = []
    for problem in problems:
        reason = check_reference(problem.reference, contract=contract, **fields_for(contract, problem.columns))
        if reason is not None:
            found.append(UnreadableReference(problem_id=problem.id, reference=problem.reference, reason=reason))
    return found
