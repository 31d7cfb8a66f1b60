"""Where a response went wrong: its first false step, what came after the right answer, and the kind of mistake.

A diagnosis for people, never a reward: it looks at what a response says on its way, and a model that is paid for that
learns to say it. Everything is decided by the verifier under contract v3, whatever the run's own contract is.

Categories, the first that fits:

repetition            the same words again and again, and no right answer
cut_off               the limit ended it, and no right answer
format_only           the right answer stands in it, and not as the contract wants it
ignored_tool_result   the tool gave the right number, and the answer is another one
wrong_tool            another tool than the one the problem is made for, and no right answer
no_answer             nothing could be taken for an answer
lost_right_answer     the right answer stood there, and the response went on to another one
wrong_sum             a step of numbers is false
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from veriward.eval.agent_run import EXPECTED
from veriward.eval.runs import Row, Run, response_key
from veriward.eval.steps import Step, steps_in
from veriward.rewards import Certainty, Outcome, VerdictPool, fields_for, verify_many
from veriward.tool_agent.state import ProblemState

CONTRACT = "v3"
BOXED = re.compile(r"\\f?boxed\s*\{")
SAID = re.compile(r"(?:answer|result|total)\s*(?:is|=|:)\s*:?\s*(\$?-?\d[\d,./]*\d|\$?-?\d)", re.IGNORECASE)
BARE = re.compile(r"^[ \t]*\**\$?(-?\d[\d,./]*)\$?\**[ \t]*$", re.MULTILINE)
"""A line with nothing but a number, as models that were asked for a number begin."""
MOST_ANSWERS = 40
"""Stated answers of one response that are looked at: the first of them."""
LONGEST_ANSWER = 200
DECIMAL = re.compile(r"[-−–]?[\d,]*\.(\d{1,20})")
WORDS_OF_A_LOOP, LOOPED = 60, 0.5
"""A response repeats itself where of at least so many words this share is in runs of six that occurred before."""
RUN_OF_WORDS = 6


class Category(StrEnum):
    REPETITION = "repetition"
    CUT_OFF = "cut_off"
    FORMAT_ONLY = "format_only"
    IGNORED_TOOL_RESULT = "ignored_tool_result"
    WRONG_TOOL = "wrong_tool"
    NO_ANSWER = "no_answer"
    LOST_RIGHT_ANSWER = "lost_right_answer"
    WRONG_SUM = "wrong_sum"


class Span(NamedTuple):
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    steps: int
    """That could be checked."""
    first_false: Step | None
    first_right: Span | None
    """Where the right answer stood first: in a box, or stated in words."""
    detour: bool
    """Right in the end, and on the way a false step or another answer."""
    category: Category | None
    """None for what is right in every way, and for mistakes of no known kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """The counts of a run; each with its own denominator."""

    right: int
    detours: int
    """Of the right ones."""
    wrong: int
    deviations: int
    """Of the wrong ones, with a first false step."""
    lost: int
    """Of the wrong ones, in which the right answer stood before."""
    categories: Mapping[str, int]


def counts(run: Run, found: Mapping[str, Diagnosis]) -> Diagnosed:
    rows = [(row["outcome"] == Outcome.CORRECT, found[key_of(row, run)]) for row in run.rows]
    right = [one for correct, one in rows if correct]
    wrong = [one for correct, one in rows if not correct]
    named = Counter(one.category for _, one in rows if one.category is not None)
    return Diagnosed(
        right=len(right),
        detours=sum(one.detour for one in right),
        wrong=len(wrong),
        deviations=sum(one.first_false is not None for one in wrong),
        lost=sum(one.first_right is not None for one in wrong),
        categories={category.value: named[category] for category in Category if named[category]},
    )


def diagnose(run: Run, *, first: bool = False, pool: VerdictPool | None = None) -> dict[str, Diagnosis]:
    """Every complete response of a run, by its key (`runs.response_key`).

    first   of the first answers of a run that corrects; else of the final ones
    """
    rows = run.first_rows if first else run.rows
    steps = [list(steps_in(row["text"])) for row in rows]
    false = false_steps({(step.left, step.right) for found in steps for step in found}, pool)
    stated = [stated_answers(row["text"]) for row in rows]
    right = right_answers(run, rows, stated, pool)
    return {
        key_of(row, run): diagnosis_of(run, row, state, found, false, answers, right)
        for row, state, found, answers in zip(rows, run.states, steps, stated, strict=True)
    }


def key_of(row: Row, run: Run) -> str:
    return response_key(row["id"], row["sample"], run.samples)


def diagnosis_of(
    run: Run,
    row: Row,
    state: ProblemState,
    steps: Sequence[Step],
    false: set[tuple[str, str]],
    answers: Sequence[tuple[Span, str]],
    right: Mapping[tuple[str, str], bool],
) -> Diagnosis:
    first_false = next((step for step in steps if (step.left, step.right) in false), None)
    judged = [(span, right.get((row["id"], answer), False)) for span, answer in answers]
    first_right = next((span for span, correct in judged if correct), None)
    correct = row["outcome"] == Outcome.CORRECT
    other_answer = any(not one for _, one in judged)
    return Diagnosis(
        steps=len(steps),
        first_false=first_false,
        first_right=first_right,
        detour=correct and (first_false is not None or (other_answer and first_right is not None)),
        category=category_of(run, row, state, first_false, first_right),
    )


def category_of(
    run: Run, row: Row, state: ProblemState, first_false: Step | None, first_right: Span | None
) -> Category | None:
    outcome = row["outcome"]
    if outcome == Outcome.CORRECT:
        return Category.FORMAT_ONLY if row["format_valid"] is False else None
    if repeats(row["text"]):
        return Category.REPETITION
    if row["truncated"]:
        return Category.CUT_OFF
    if outcome == Outcome.NO_ANSWER and first_right is not None:
        return Category.FORMAT_ONLY
    if tool_was_right(run, state):
        return Category.IGNORED_TOOL_RESULT
    if chose_another_tool(run, row, state):
        return Category.WRONG_TOOL
    if outcome == Outcome.NO_ANSWER:
        return Category.NO_ANSWER
    if first_right is not None:
        return Category.LOST_RIGHT_ANSWER
    return Category.WRONG_SUM if first_false is not None else None


def chose_another_tool(run: Run, row: Row, state: ProblemState) -> bool:
    expected = run.by_id[row["id"]].columns.get(EXPECTED) if run.tools else None
    chosen = next((attempt.call.tool for attempt in reversed(state.calls) if attempt.call is not None), None)
    return expected is not None and chosen is not None and chosen != expected


def tool_was_right(run: Run, state: ProblemState) -> bool:
    """Decided one by one: few responses come so far."""
    result = state.result
    if not run.tools or not run.set.references or result is None or not isinstance(result.value, int | float):
        return False
    problem = run.by_id[state.problem]
    row = {"prediction": result.text, "reference": problem.reference, **fields_for(CONTRACT, problem.columns)}
    (verdict,) = verify_many([row], contract=CONTRACT)
    return verdict.correct


def repeats(text: str) -> bool:
    words = text.split()
    if len(words) < WORDS_OF_A_LOOP:
        return False
    runs = [tuple(words[place : place + RUN_OF_WORDS]) for place in range(len(words) - RUN_OF_WORDS + 1)]
    return 1 - len(set(runs)) / len(runs) >= LOOPED


# ---------------------------------------------------------------------------------------------------- what is said


def false_steps(pairs: set[tuple[str, str]], pool: VerdictPool | None) -> set[tuple[str, str]]:
    """Those whose sides are proved to differ. With a percent sign there are two readings, and none is called false.

    A decimal alone on its side may be rounded: 2/3 = 0.67 is right, 2/3 = 0.66 is not.
    """
    asked = sorted(pair for pair in pairs if "%" not in "".join(pair))
    rows = [{"prediction": left, "reference": right, **rounding(left, right)} for left, right in asked]
    turned = [{"prediction": right, "reference": left, **rounding(left, right)} for left, right in asked]
    verdicts = verify_many(rows + turned, contract=CONTRACT, pool=pool)
    return {
        pair
        for pair, one, other in zip(asked, verdicts[: len(asked)], verdicts[len(asked) :], strict=True)
        if all(verdict.outcome is Outcome.WRONG and verdict.certainty is Certainty.PROVED for verdict in (one, other))
    }


def rounding(left: str, right: str) -> dict[str, Any]:
    """Half a unit of the last place of a side that is nothing but a decimal, as the contract's tolerance."""
    decimal = DECIMAL.fullmatch(right) or DECIMAL.fullmatch(left)
    return {} if decimal is None else {"options": {"tolerance": f"0.{'0' * len(decimal[1])}5"}}


def stated_answers(text: str) -> list[tuple[Span, str]]:
    """What is boxed, called the answer, or a line of its own, in the order of the text."""
    found = [
        (Span(match.start(1), match.end(1)), match[1].strip("$"))
        for pattern in (SAID, BARE)
        for match in pattern.finditer(text)
    ]
    for match in BOXED.finditer(text):
        end = closing(text, match.end())
        if end is not None:
            found.append((Span(match.start(), end + 1), text[match.end() : end].strip()))
    return sorted(found)[:MOST_ANSWERS]


def closing(text: str, start: int) -> int | None:
    """Of the brace that was opened before `start`."""
    depth = 1
    for place in range(start, min(len(text), start + LONGEST_ANSWER)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return place
    return None


def right_answers(
    run: Run, answered: Sequence[Row], stated: Sequence[Sequence[tuple[Span, str]]], pool: VerdictPool | None
) -> dict[tuple[str, str], bool]:
    """Problem and answer to whether they are equal; empty without references."""
    if not run.set.references:
        return {}
    asked = sorted(
        {(row["id"], answer) for row, answers in zip(answered, stated, strict=True) for _, answer in answers}
    )
    rows = [
        {
            "prediction": answer,
            "reference": run.by_id[problem].reference,
            **fields_for(CONTRACT, run.by_id[problem].columns),
        }
        for problem, answer in asked
    ]
    return {pair: one.correct for pair, one in zip(asked, verify_many(rows, contract=CONTRACT, pool=pool), strict=True)}
