"""The whole way once, before the first model call: a scripted run of a few problems, read back, counted, compared, and
written as the card that the real run will get.

A field that was renamed, a template that cannot be rendered, a package that is not installed or a disk that cannot be
written then costs seconds, and not the night after which it would have come out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from veriward.eval.problems import ProblemSet, hash_problems
from veriward.eval.prompting import PromptTemplate
from veriward.eval.runs import run_problems
from veriward.eval.scripted import Line, ScriptedGenerator

FEW = 3
"""Problems of a rehearsal: one answered as its reference, one wrongly, one cut off."""


def rehearse(
    problems: ProblemSet,
    *,
    template: PromptTemplate,
    contract: str,
    samples: int = 1,
    temperature: float = 0.0,
    max_new_tokens: int = 512,
    seed: int = 0,
    stop: Sequence[str] = (),
) -> str:
    """The card of a scripted run under the settings of the real one, from a store that is thrown away.

    raises   what the real run would have raised at its end
    """
    from veriward.eval.cards import model_card
    from veriward.eval.comparison import compare_runs
    from veriward.eval.loop import evaluate

    few = first_few(problems, contract)
    script = {problem.id: [answer] for problem, answer in zip(few.problems, scripted_answers(few), strict=True)}
    generator = ScriptedGenerator(script, {problem.id: problem.question for problem in few.problems}, name="rehearsal")
    with tempfile.TemporaryDirectory(prefix="veriward-rehearsal-") as folder:
        result = evaluate(
            generator,
            few,
            Path(folder, "run"),
            template=template,
            contract=contract,
            samples=samples,
            temperature=temperature,
            max_new_tokens=max_new_tokens,
            seed=seed,
            stop=stop,
            durability="process",
        )
        compare_runs(result.run, result.run)
        return model_card([result.run]).markdown


def first_few(problems: ProblemSet, contract: str) -> ProblemSet:
    """Of those that will be asked, and with questions that a script can tell apart."""
    asked, seen = [], set()
    for problem in run_problems(problems, contract).asked:
        if problem.question not in seen:
            seen.add(problem.question)
            asked.append(problem)
        if len(asked) == FEW:
            break
    return replace(problems, problems=tuple(asked), sha256=hash_problems(asked))


def scripted_answers(problems: ProblemSet) -> list[Line]:
    right, wrong, cut = rf"It is \boxed{{{problems.problems[0].reference}}}.", r"It is \boxed{-987654321}.", "It is"
    lines = [Line(text=right), Line(text=wrong), Line(text=cut, finish_reason="length")]
    return lines[: len(problems)]
