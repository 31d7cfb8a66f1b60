"""What the report's browser of responses holds: every answer, its verdict, its problem and its tool calls.

Text is put down as the model wrote it, but for two things: half a character (a lone surrogate) becomes U+FFFD, and of
a text longer than LONGEST_TEXT the middle is left out and counted. Places in a text count UTF-16 units, as the page
does.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veriward.eval.diagnosis import Diagnosis, key_of
from veriward.eval.problems import Problem
from veriward.eval.report_maths import Formulas
from veriward.eval.runs import Row, Run
from veriward.rewards import Outcome, VerdictPool, fields_for
from veriward.tool_agent.generator import SURROGATE
from veriward.tool_agent.state import CallAttempt, ProblemState

LONGEST_TEXT = 100_000
"""Characters of one response in the report; `veriward state show` has all of it."""
KEPT_AT_THE_END = 40_000
"""Of these: an answer mostly stands there."""
LONGEST_NOTE = 4_000
"""Characters of a column, a hint or a tool's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A text as the page has it, and where its places went."""

    text: str
    head: int
    """Characters in front of what was left out; the length of the text where nothing was."""
    left_out: int
    wide: tuple[int, ...]
    """Places of the characters that are two units in UTF-16."""

    def place(self, index: int) -> int | None:
        """Of a character of the original; None if it was left out."""
        if index > self.head:
            if index < self.head + self.left_out:
                return None
            index -= self.left_out
        return self.unit(index)

    def unit(self, index: int) -> int:
        return index + bisect_left(self.wide, index)

    def span(self, span: Sequence[int] | None) -> list[int] | None:
        if span is None:
            return None
        start, end = self.place(span[0]), self.place(span[1])
        return None if start is None or end is None else [start, end]


def show(text: str, longest: int = LONGEST_TEXT, at_the_end: int = KEPT_AT_THE_END) -> Shown:
    text = SURROGATE.sub("\ufffd", text)
    left_out = max(0, len(text) - longest)
    head = longest - at_the_end if left_out else len(text)
    kept = text[:head] + text[head + left_out :]
    wide = () if kept.isascii() else tuple(i for i, character in enumerate(kept) if ord(character) > 0xFFFF)
    return Shown(text=kept, head=head, left_out=left_out, wide=wide)


def note(value: object) -> str:
    """A short text; whatever is no text, as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = show(text, LONGEST_NOTE, 0)
    return shown.text + ("…" if shown.left_out else "")


NOTHING: tuple[object, ...] = ("", [], {})


def without_nothing(row: Mapping[str, Any]) -> Row:
    """Keys with None, False, an empty text or an empty list are left out: the page reads them as absent."""
    return {
        name: value for name, value in row.items() if value is not None and value is not False and value not in NOTHING
    }


# ------------------------------------------------------------------------------------------------------- problems


def problem_rows(runs: Sequence[Run], formulas: Formulas) -> tuple[list[Row], dict[tuple[int, str], int]]:
    """Each problem once for each contract, and where the problem of a run (by its number) stands."""
    rows: list[Row] = []
    numbers: dict[tuple[str, str, str], int] = {}
    places: dict[tuple[int, str], int] = {}
    for number, run in enumerate(runs):
        new = [problem for problem in run.set.asked if (*group_of(run), problem.id) not in numbers]
        for problem, normal in zip(new, normal_forms(new, run), strict=True):
            numbers[*group_of(run), problem.id] = len(rows)
            rows.append(problem_row(problem, normal, run.set.references, formulas))
        for problem in run.set.asked:
            places[number, problem.id] = numbers[*group_of(run), problem.id]
    return rows, places


def group_of(run: Run) -> tuple[str, str]:
    """Runs with the same are comparable: the contract, and the hash of the problem set."""
    return str(run.contract), str(run.settings["problems"]["sha256"])


def normal_forms(problems: Sequence[Problem], run: Run) -> list[str | None]:
    """How the contract reads each reference."""
    if not run.set.references:
        return [None] * len(problems)
    rows = [
        {
            "prediction": problem.reference,
            "reference": problem.reference,
            **fields_for(run.contract.name, problem.columns),
        }
        for problem in problems
    ]
    verdicts = VerdictPool(workers=0).verify_many(rows, contract=run.contract.name)
    return [verdict.reference_normal for verdict in verdicts]


def problem_row(problem: Problem, normal: str | None, references: bool, formulas: Formulas) -> Row:
    question, reference = show(problem.question), show(problem.reference, LONGEST_NOTE, 0)
    return without_nothing(
        {
            "id": note(problem.id),
            "question": question.text,
            "question_maths": in_units(formulas.in_text(question.text), question),
            "reference": reference.text if references else None,
            "reference_maths": in_units(formulas.in_answer(reference.text), reference) if references else None,
            "reference_normal": None if normal is None else note(normal),
            "columns": [[note(name), note(value)] for name, value in problem.columns.items() if value is not None],
        }
    )


def in_units(found: Iterable[tuple[int, int, int]], shown: Shown) -> list[int]:
    """Start, end, number, start, end, number, … in UTF-16 units."""
    return [value for start, end, number in found for value in (shown.unit(start), shown.unit(end), number)]


# -------------------------------------------------------------------------------------------------------- answers


def answer_rows(
    runs: Sequence[Run],
    places: Mapping[tuple[int, str], int],
    changes: Mapping[tuple[int, str], str],
    formulas: Formulas,
    diagnoses: Sequence[Mapping[str, Diagnosis]],
    first_diagnoses: Sequence[Mapping[str, Diagnosis]],
) -> list[Row]:
    """Every answer of every run, the runs in order, and in each the problems in theirs.

    diagnoses   of each run, by the key of the response; those of first answers where a run corrects
    """
    return [
        browser_row(
            number,
            run,
            state,
            first,
            row,
            places,
            changes,
            formulas,
            diagnoses[number][key_of(row, run)],
            first_diagnoses[number].get(key_of(row, run)),
        )
        for number, run in enumerate(runs)
        for state, first, row in zip(run.states, run.first_rows, run.rows, strict=True)
    ]


def browser_row(
    number: int,
    run: Run,
    state: ProblemState,
    first: Row,
    row: Row,
    places: Mapping[tuple[int, str], int],
    changes: Mapping[tuple[int, str], str],
    formulas: Formulas,
    diagnosis: Diagnosis,
    first_diagnosis: Diagnosis | None,
) -> Row:
    written = written_row(row, formulas)
    return without_nothing(
        {
            "run": number,
            "problem": places[number, row["id"]],
            "sample": row["sample"] + 1 if run.samples > 1 else None,
            "change": changes.get((number, row["id"])),
            **written,
            "tokens": row["tokens"],
            "all_tokens": row["all_tokens"] if row["all_tokens"] != row["tokens"] else None,
            "seed": row["seed"],
            "finish": row["finish_reason"] if row["finish_reason"] not in ("stop", "length") else None,
            "first": first_row(first, first_diagnosis, formulas) if state.answer_retries else None,
            "gate": state.answers[0].gate if state.answer_retries else None,
            "calls": [call_row(attempt) for attempt in state.calls],
            "diagnosis": diagnosis_row(diagnosis, show(row["text"])),
        }
    )


def written_row(row: Row, formulas: Formulas) -> Row:
    """One response and its verdict."""
    shown = show(row["text"])
    candidate = None if row["candidate"] is None else show(row["candidate"], LONGEST_NOTE, 0)
    return without_nothing(
        {
            "outcome": row["outcome"],
            "reason": row["reason"],
            "method": row["method"],
            "certainty": row["certainty"],
            "extraction": row["extraction"],
            "no_format": row["format_valid"] is False,
            "flags": list(row["flags"]),
            "truncated": row["truncated"],
            "text": shown.text,
            "maths": in_units(formulas.in_text(shown.text), shown),
            "cut": [shown.unit(shown.head), shown.left_out] if shown.left_out else None,
            "span": shown.span(row["span"]),
            "candidate": None if candidate is None else candidate.text,
            "candidate_maths": None if candidate is None else in_units(formulas.in_answer(candidate.text), candidate),
            "candidate_normal": None if row["candidate_normal"] is None else note(row["candidate_normal"]),
        }
    )


def first_row(row: Row, diagnosis: Diagnosis | None, formulas: Formulas) -> Row:
    """The answer that was sent back."""
    found = {} if diagnosis is None else diagnosis_row(diagnosis, show(row["text"]))
    return without_nothing({**written_row(row, formulas), "diagnosis": found})


def call_row(attempt: CallAttempt) -> Row:
    call, result = attempt.call, attempt.result
    return without_nothing(
        {
            "written": note(attempt.generation.text),
            "tool": None if call is None else note(call.tool),
            "arguments": None if call is None else note(dict(call.arguments)),
            "ok": result is not None and result.ok,
            "result": None if result is None else note(result.text),
            "category": None if result is None or result.category is None else result.category.value,
            "hint": None if result is None or result.hint is None else note(result.hint),
            "transient": [category.value for category in attempt.transient],
        }
    )


def diagnosis_row(found: Diagnosis, shown: Shown) -> Row:
    """The first false step, where the answer first stood, whether it took a detour, and the kind of mistake."""
    false, right = found.first_false, found.first_right
    return without_nothing(
        {
            "false": None if false is None else shown.span((false.start, false.end)),
            "right": None if right is None else shown.span((right.start, right.end)),
            "detour": found.detour,
            "category": None if found.category is None else found.category.value,
        }
    )


# ------------------------------------------------------------------------------------------------- what changed


def changes_between(runs: Sequence[Run], numbers: Sequence[int]) -> dict[tuple[int, str], str]:
    """Run and problem to 'gained' or 'lost', against the first of the comparable runs `numbers`.

    A problem is gained if more of its responses are correct. Problems that are not complete in both are left out. In
    the first run stands what became of the problem in the other ones, 'gained' before 'lost'.
    """
    counts = {number: correct_of(runs[number]) for number in numbers}
    base, *others = numbers
    found: dict[tuple[int, str], str] = {}
    for other in others:
        for problem, now in counts[other].items():
            before = counts[base].get(problem)
            if before is None or now == before:
                continue
            found[other, problem] = "gained" if now > before else "lost"
            if found.get((base, problem)) != "gained":
                found[base, problem] = found[other, problem]
    return found


def correct_of(run: Run) -> dict[str, float]:
    """Problem id to the share of its responses that are correct; only where all of them are there."""
    outcomes = defaultdict(list)
    for row in run.rows:
        outcomes[row["id"]].append(row["outcome"] == Outcome.CORRECT)
    return {problem: sum(correct) / run.samples for problem, correct in outcomes.items() if len(correct) == run.samples}
