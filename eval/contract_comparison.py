"""Two contracts on the same pairs: the matrix of outcomes, and every pair on which they disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.eval.pair_file import read_pairs
from veriward.rewards import Outcome, Reason, Verdict, VerdictPool, get_contract, verify_many
from veriward.rewards.contracts import v2
from veriward.rewards.normalize import normalize
from veriward.rewards.response import reasoning_text, response_text
from veriward.rewards.task import make_task
from veriward.tool_agent.errors import ConfigError

SKIPPED = "skipped"

COSTLY = frozenset(
    {
        Reason.EXPRESSION_TOO_LONG,
        Reason.PARENTHESES_TOO_DEEP,
        Reason.NUMERIC_LITERAL_TOO_LONG,
        Reason.SCIENTIFIC_EXPONENT_TOO_LARGE,
        Reason.TOO_MANY_OPERATIONS,
        Reason.TOO_MANY_AST_NODES,
        Reason.POWER_EXPONENT_TOO_LARGE,
        Reason.DYNAMIC_POWER_EXPONENT,
    }
)
"""What v2's preflight refuses for its cost: contract v1, which has none, is not called on it."""

CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractComparison:
    first: str
    second: str
    fingerprints: tuple[str, str]
    pairs: int
    matrix: Mapping[tuple[str, str], int]
    """(outcome under the first, outcome under the second) to how many pairs; `skipped` where v1 was not called."""
    disagreements: tuple[Mapping[str, Any], ...]
    """Pairs with different outcomes: line, id, candidate, reference, both outcomes and reasons."""
    skipped: int
    refused: int
    """Rows that are no pair, and were reported."""

    def to_row(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "second": self.second,
            "fingerprints": list(self.fingerprints),
            "pairs": self.pairs,
            "skipped": self.skipped,
            "refused": self.refused,
            "matrix": [[*outcomes, count] for outcomes, count in self.matrix.items()],
            "disagreements": [dict(row) for row in self.disagreements],
        }


def compare_contracts(
    pairs: Path,
    first: str,
    second: str,
    *,
    complain: Callable[[str], None],
    on_progress: Callable[[int], None] = lambda done: None,
    pool: VerdictPool | None = None,
) -> ContractComparison:
    """Verify every pair of a file under both contracts.

    pairs      JSONL as `grade` takes it, without answer types and options where a contract knows none
    complain   called with one line for each row that is no pair
    pool       where the comparisons are made; None: the shared pool of this process
    raises     ConfigError for a file that cannot be read or holds no pair
    """
    refused = 0

    def counted(line: str) -> None:
        nonlocal refused
        refused += 1
        complain(line)

    rows = list(read_pairs(pairs, (first, second), counted))
    if not rows:
        raise ConfigError(f"{pairs}: no pairs; wanted rows with response or prediction, and reference")
    sides: list[list[Verdict | None]] = []
    for side, contract in enumerate((first, second)):
        verdicts: list[Verdict | None] = []
        for start in range(0, len(rows), CHUNK):
            chunk = [forms[side] for _, forms in rows[start : start + CHUNK]]
            called = [row for row in chunk if contract != "v1" or not is_costly(row)]
            decided = iter(verify_many(called, contract=contract, pool=pool))
            verdicts += [next(decided) if contract != "v1" or not is_costly(row) else None for row in chunk]
            on_progress(len(chunk))
        sides.append(verdicts)
    matrix: Counter[tuple[str, str]] = Counter()
    disagreements = []
    for (line, (row, _)), one, other in zip(rows, *sides, strict=True):
        outcomes = _outcome(one), _outcome(other)
        matrix[outcomes] += 1
        if outcomes[0] != outcomes[1] and SKIPPED not in outcomes:
            disagreements.append(_disagreement(line, row, one, other))
    return ContractComparison(
        first=first,
        second=second,
        fingerprints=(get_contract(first).fingerprint, get_contract(second).fingerprint),
        pairs=len(rows),
        matrix=dict(sorted(matrix.items(), key=lambda item: _order(item[0]))),
        disagreements=tuple(disagreements),
        skipped=sum(verdict is None for verdicts in sides for verdict in verdicts),
        refused=refused,
    )


def is_costly(row: Mapping[str, Any]) -> bool:
    """v2 would refuse the answer or the reference for its cost."""
    texts = [row["reference"]]
    if "prediction" in row:
        texts.append(row["prediction"])
    else:
        response = row["response"]
        text, reasoning = response_text(response), reasoning_text(response)
        found = get_contract("v2").extract(text, reasoning, make_task(row["reference"]), False)
        texts += [found.candidate] if found.candidate is not None else []
    return any(v2.preflight(normalize(text)) in COSTLY for text in texts)


def _outcome(verdict: Verdict | None) -> str:
    return SKIPPED if verdict is None else verdict.outcome.value


def _order(outcomes: tuple[str, str]) -> tuple[int, int]:
    known = [*(outcome.value for outcome in Outcome), SKIPPED]
    return known.index(outcomes[0]), known.index(outcomes[1])


def _disagreement(line: int, row: Mapping[str, Any], one: Verdict | None, other: Verdict | None) -> dict[str, Any]:
    if one is None or other is None:
        raise ValueError("a pair that was not called has no outcome to disagree with")
    return {
        "line": line,
        "id": row.get("id"),
        "reference": one.reference,
        "candidates": [one.candidate, other.candidate],
        "outcomes": [one.outcome.value, other.outcome.value],
        "reasons": [None if side.reason is None else side.reason.value for side in (one, other)],
    }
