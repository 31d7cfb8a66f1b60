"""A comparison as plain JSON: to a worker process, and its decision back.

`decide` is the function that the workers of a `VerdictPool` run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from veriward.rewards.contracts import get_contract
from veriward.rewards.task import PLAIN_OPTIONS, Options, Task
from veriward.rewards.verdict import Certainty, Cost, Decision, Method, Outcome, Reason


def question(candidate: str, task: Task, flags: tuple[str, ...], contract: str) -> list[Any]:
    """What `decide` is asked."""
    options = None if task.options == PLAIN_OPTIONS else asdict(task.options)
    return [contract, candidate, task.reference, task.answer_type, options, flags]


class _Decide:
    """What a contract says of a candidate and a task."""

    def __init__(self) -> None:
        self._loaded: set[str] = set()

    def __call__(self, item: Sequence[Any]) -> list[Any]:
        contract, candidate, reference, answer_type, options, flags = item
        task = Task(
            reference=reference,
            answer_type=answer_type,
            options=PLAIN_OPTIONS if options is None else Options(**options),
        )
        return _to_wire(get_contract(contract).decide(candidate, task, tuple(flags)))

    def before_batch(self, items: Sequence[Sequence[Any]]) -> None:
        """Decide something once under each contract: the libraries it imports then are no item's time."""
        for contract in {item[0] for item in items} - self._loaded:
            get_contract(contract).decide("1+x", Task(reference="x+1"), ())
            self._loaded.add(contract)


decide = _Decide()


def _to_wire(found: Decision) -> list[Any]:
    cost = found.cost
    return [
        found.outcome,
        found.reason,
        found.method,
        found.certainty,
        found.candidate_normal,
        found.reference_normal,
        found.verifier_called,
        found.answer_type,
        found.flags,
        None if cost is None else (cost.bits, cost.terms, cost.work),
    ]


def decision(value: Sequence[Any]) -> Decision:
    """The decision that `decide` made; its steps stay behind."""
    outcome, reason, method, certainty, candidate, reference, called, answer_type, flags, cost = value
    return Decision(
        outcome=Outcome(outcome),
        reason=None if reason is None else Reason(reason),
        method=None if method is None else Method(method),
        certainty=None if certainty is None else Certainty(certainty),
        candidate_normal=candidate,
        reference_normal=reference,
        verifier_called=called,
        answer_type=answer_type,
        flags=tuple(flags),
        cost=None if cost is None else Cost(bits=cost[0], terms=cost[1], work=cost[2]),
    )
