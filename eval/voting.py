"""The answer that most samples of a problem agree on (maj@k): agreement is decided by the verifier, not by spelling.

`1/2`, `0.5` and `\\frac{1}{2}` are one vote. A sample without an answer has none. Where answers tie, each of them
counts by its share. What the verifier does not decide counts as different.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from veriward.eval.runs import Run
from veriward.rewards import Outcome, fields_for, verify_many

MOST_SUBSETS = 500
"""Every subset of k samples is counted up to this number; of more, so many are drawn."""
MOST_ANSWERS = 64
"""Different answers to one problem that are compared with each other; further ones stand alone."""

Row = Mapping[str, Any]


def majority(run: Run, rows: Sequence[Row], ks: Sequence[int]) -> dict[int, float]:
    """maj@k over the problems whose samples are all there; {} where there is none.

    For k under the number of samples the mean over their subsets of size k, drawn from a fixed seed where they are
    many.
    """
    by_problem: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_problem[row["id"]].append(row)
    whole = {problem: found for problem, found in by_problem.items() if len(found) == run.samples}
    if not whole:
        return {}
    groups = grouped(run, {problem: [answer_of(row) for row in found] for problem, found in whole.items()})
    votes = {
        problem: [(groups[problem].get(answer_of(row) or ""), row["outcome"] == Outcome.CORRECT) for row in found]
        for problem, found in whole.items()
    }
    return {k: math.fsum(chance(problem, cast, k) for problem, cast in votes.items()) / len(votes) for k in ks}


def answer_of(row: Row) -> str | None:
    return row["candidate"] if row["outcome"] != Outcome.NO_ANSWER else None


def chance(problem: str, votes: Sequence[tuple[int | None, bool]], k: int) -> float:
    """That the most frequent answer of k samples is correct."""
    shares = [won(subset) for subset in subsets(problem, votes, k)]
    return math.fsum(shares) / len(shares)


def subsets(
    problem: str, votes: Sequence[tuple[int | None, bool]], k: int
) -> Iterator[Sequence[tuple[int | None, bool]]]:
    if math.comb(len(votes), k) <= MOST_SUBSETS:
        yield from itertools.combinations(votes, k)
        return
    draw = random.Random(f"{problem} {k}")
    for _ in range(MOST_SUBSETS):
        yield draw.sample(votes, k)


def won(votes: Sequence[tuple[int | None, bool]]) -> float:
    """Share of the most frequent answers that is correct; an answer is as correct as its samples are."""
    cast = Counter(group for group, _ in votes if group is not None)
    if not cast:
        return 0.0
    most = max(cast.values())
    first = [group for group, count in cast.items() if count == most]
    right = [sum(correct for group, correct in votes if group == winner) / cast[winner] for winner in first]
    return math.fsum(right) / len(right)


def grouped(run: Run, answers: Mapping[str, Sequence[str | None]]) -> dict[str, dict[str, int]]:
    """Of every problem, each answer's group; one comparison of every problem at a time, so that they share batches."""
    different = {problem: [answer for answer in dict.fromkeys(found) if answer] for problem, found in answers.items()}
    leaders: dict[str, list[str]] = {problem: [] for problem in answers}
    groups: dict[str, dict[str, int]] = {problem: {} for problem in answers}
    for turn in range(max(map(len, different.values()), default=0)):
        due = {problem: found[turn] for problem, found in different.items() if turn < len(found)}
        same = equal_pairs(
            run,
            [
                (problem, leader, answer)
                for problem, answer in due.items()
                for leader in leaders[problem][:MOST_ANSWERS]
            ],
        )
        for problem, answer in due.items():
            known = leaders[problem]
            leader = next((one for one in known if (problem, one, answer) in same), answer)
            if leader == answer:
                known.append(answer)
            groups[problem][answer] = known.index(leader)
    return groups


def equal_pairs(run: Run, asked: Sequence[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    contract = run.contract.name
    rows = [
        {"prediction": answer, "reference": leader, **fields_for(contract, run.by_id[problem].columns)}
        for problem, leader, answer in asked
    ]
    verdicts = verify_many(rows, contract=contract) if rows else []
    return {pair for pair, verdict in zip(asked, verdicts, strict=True) if verdict.correct}
