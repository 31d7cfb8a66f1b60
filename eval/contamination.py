"""A probe for problems that a model has read before: how much of the rest it knows when it sees the first half.

The model gets the beginning of each problem's text, cut between two words, as plain text to go on with, greedily.
Counted is how often it writes the rest word for word, how near it comes, and how often it ends with the right answer to
a question of which it saw half. The same probe on problems made a moment ago (`fresh_problems`) stands beside it: what
a model reaches there it has guessed. The two are other problems and are not compared by a test.

Covered: word-for-word memory of the problem's text, and answers recalled with it.
Not covered: problems read in other words or in another language, and solutions learned without their question. A low
rate is no proof that a set was never seen. A rest that follows from its beginning is completed by any good model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from veriward.eval.loop import OnProgress, evaluate
from veriward.eval.problems import Problem, ProblemSet, hash_problems
from veriward.eval.prompting import PromptTemplate
from veriward.eval.rates import Rate
from veriward.eval.runs import Row, Run, read_run
from veriward.rewards import DEFAULT
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.generator import Generator

REST = "rest_of_question"
"""The column of a probe's problems that holds what the model did not see."""
FEWEST_WORDS = 8
"""A problem with fewer is left out: half of it says too little to be known again."""
NEAR = 0.75
"""ROUGE-L from which a completion counts as near, as a rest with a word or a number changed is."""
WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """How one response goes on, beside the rest of its problem."""

    id: str
    exact: bool
    """The response begins with the rest, word for word."""
    prefix: float
    """Share of the rest's words that the response begins with."""
    rouge_l: float
    """Words that rest and response have in common in the same order, as a share of the rest's; the response is cut to
    the length of the rest, so that a long one has no advantage."""
    answered: bool
    """The verdict on the whole response is 'correct'."""
    cut_short: bool
    """The limit ended it before it had as many words as the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contamination:
    """What a probe found on one set; every number is made of the stored run."""

    name: str
    completions: Sequence[Completion]
    missing: int
    """Responses that are not there yet."""

    def rate(self, holds: Callable[[Completion], bool]) -> Rate:
        return Rate(successes=sum(map(holds, self.completions)), total=len(self.completions))

    @property
    def exact(self) -> Rate:
        return self.rate(lambda one: one.exact)

    @property
    def near(self) -> Rate:
        return self.rate(lambda one: one.rouge_l >= NEAR)

    @property
    def answered(self) -> Rate:
        return self.rate(lambda one: one.answered)

    @property
    def answered_without_the_rest(self) -> Rate:
        """Of the responses that do not complete the problem, those that end with its answer all the same."""
        others = [one for one in self.completions if not one.exact]
        return Rate(successes=sum(one.answered for one in others), total=len(others))

    @property
    def prefix(self) -> float | None:
        return fmean(one.prefix for one in self.completions) if self.completions else None

    @property
    def rouge_l(self) -> float | None:
        return fmean(one.rouge_l for one in self.completions) if self.completions else None

    @property
    def cut_short(self) -> int:
        return sum(one.cut_short for one in self.completions)

    def to_row(self) -> dict[str, Any]:
        rates = {
            "exact": self.exact,
            "near": self.near,
            "answered": self.answered,
            "answered_without_the_rest": self.answered_without_the_rest,
        }
        return {
            "problems": self.name,
            **{name: rate_row(rate) for name, rate in rates.items()},
            "prefix": self.prefix,
            "rouge_l": self.rouge_l,
            "cut_short": self.cut_short,
            "missing": self.missing,
        }


def rate_row(rate: Rate) -> dict[str, object]:
    """With Wilson's interval; `low` and `high` are None where the rate is undefined."""
    low, high = rate.interval() or (None, None)
    return {"successes": rate.successes, "total": rate.total, "value": rate.value, "low": low, "high": high}


# ----------------------------------------------------------------------------------------------------------- asking


def probe(
    generator: Generator,
    problems: ProblemSet,
    out_dir: str | Path,
    *,
    fraction: float = 0.5,
    contract: str = DEFAULT,
    max_new_tokens: int = 512,
    on_progress: OnProgress | None = None,
) -> Contamination:
    """Ask for the rest of every problem, in a run of the shared loop: started again it goes on where it was stopped.

    max_new_tokens   room for the rest and for an answer after it
    raises           ConfigError as `evaluate` does, and for problems too short to be cut
    """
    half, _ = first_part(problems, fraction)
    result = evaluate(
        generator,
        half,
        out_dir,
        template=PromptTemplate(template="plain", instruction=""),
        contract=contract,
        max_new_tokens=max_new_tokens,
        on_progress=on_progress,
    )
    return contamination_of(result.run)


def first_part(problems: ProblemSet, fraction: float = 0.5) -> tuple[ProblemSet, list[str]]:
    """The set with the beginning of each question in place of it, and the ids of those that are too short.

    The reference stays, and so does what says how it is verified; the rest is in the column `rest_of_question`.
    """
    if not 0 < fraction < 1:
        raise ConfigError(f"fraction must be above 0 and below 1, got {fraction}; 0.5 is half of each problem")
    cut, short = [], []
    for problem in problems.problems:
        if len(WORD.findall(problem.question)) < FEWEST_WORDS:
            short.append(problem.id)
            continue
        beginning, rest = cut_between_words(problem.question, fraction)
        columns = {**problem.columns, REST: rest}
        cut.append(Problem(id=problem.id, question=beginning, reference=problem.reference, columns=columns))
    if not cut:
        raise ConfigError(
            f"{problems.name}: none of its {len(problems)} problems has {FEWEST_WORDS} words; half of so short a "
            "question says nothing, so that this set cannot be probed"
        )
    part = "half" if fraction == 0.5 else f"{fraction:.3g} of each"
    return (
        ProblemSet(
            problems=tuple(cut),
            sha256=hash_problems(cut),
            name=f"{problems.name} (first {part})",
            question_column=problems.question_column,
            reference_column=problems.reference_column,
        ),
        short,
    )


def cut_between_words(text: str, fraction: float) -> tuple[str, str]:
    """Both parts without the blanks between them; each has at least one word of a text of two and more."""
    words = list(WORD.finditer(text))
    at = min(max(1, int(len(words) * fraction)), len(words) - 1)
    return text[: words[at - 1].end()], text[words[at].start() :].rstrip()


# --------------------------------------------------------------------------------------------------------- counting


def read_contamination(path: str | Path) -> Contamination:
    """The numbers of a probe's folder, made anew; ConfigError for a run that is no probe."""
    return contamination_of(read_run(path))


def contamination_of(run: Run) -> Contamination:
    if run.samples != 1 or any(REST not in problem.columns for problem in run.set.problems):
        raise ConfigError(f"{run.path}: is no run of a contamination probe; make one with `veriward contamination`")
    return Contamination(
        name=run.settings["problems"]["name"],
        completions=[completion_of(row, str(run.by_id[row["id"]].columns[REST])) for row in run.rows],
        missing=len(run.missing),
    )


def completion_of(row: Row, rest: str) -> Completion:
    wanted = WORD.findall(rest)
    written = WORD.findall(row["text"])[: len(wanted)]
    return Completion(
        id=row["id"],
        exact=written == wanted,
        prefix=common_beginning(wanted, written) / len(wanted),
        rouge_l=common_in_order(wanted, written) / len(wanted),
        answered=row["correct"],
        cut_short=row["truncated"] and len(written) < len(wanted),
    )


def common_beginning(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words both begin with."""
    for count, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return count
    return min(len(first), len(second))


def common_in_order(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by rows of the usual table."""
    above = [0] * (len(second) + 1)
    for word in first:
        row = [0]
        for place, other in enumerate(second):
            row.append(above[place] + 1 if word == other else max(above[place + 1], row[place]))
        above = row
    return above[-1]
