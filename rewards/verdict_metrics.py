"""What became of many verdicts, in numbers: for a logger, and in one line for a person."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from veriward.rewards.verdict import Certainty, Method, Outcome, Verdict

NOT_DECIDED = (Outcome.UNSUPPORTED, Outcome.UNDECIDED, Outcome.TIMEOUT, Outcome.CRASHED)
"""Outcomes that say nothing about the answer."""

ENOUGH = 256
"""Verdicts before a share means something."""

STEP = 1.05
"""Times are counted in classes, each this much wider than the one before."""


class VerdictMetrics:
    """Counts of verdicts since the start."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.methods: Counter[Method] = Counter()
        self.certainties: Counter[Certainty] = Counter()
        self._times: Counter[int] = Counter()
        self._warn_from = ENOUGH

    def add(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            self.outcomes[verdict.outcome] += 1
            if verdict.method is not None:
                self.methods[verdict.method] += 1
            if verdict.certainty is not None:
                self.certainties[verdict.certainty] += 1
            self._times[math.ceil(math.log(max(1, verdict.microseconds), STEP))] += 1

    @property
    def verdicts(self) -> int:
        return self.outcomes.total()

    @property
    def not_decided(self) -> float:
        """Share of unsupported, undecided, timeout and crashed together; 0 before the first verdict."""
        return sum(self.outcomes[outcome] for outcome in NOT_DECIDED) / max(1, self.verdicts)

    def microseconds(self, share: float) -> int:
        """The time that this share of the verdicts did not exceed, to 5 %; 0 before the first verdict."""
        wanted, seen = share * self.verdicts, 0
        for place in sorted(self._times):
            seen += self._times[place]
            if seen >= wanted:
                return round(STEP**place)
        return 0

    def to_dict(self, *, restarts: int = 0) -> dict[str, float]:
        """A flat mapping with the same keys whenever it is asked for."""
        total = max(1, self.verdicts)
        return {
            "verdicts": self.verdicts,
            **{f"outcome/{outcome}": self.outcomes[outcome] for outcome in Outcome},
            **{f"method/{method}": self.methods[method] for method in Method},
            **{f"certainty/{certainty}": self.certainties[certainty] for certainty in Certainty},
            **{f"share/{outcome}": self.outcomes[outcome] / total for outcome in NOT_DECIDED},
            "share/not_decided": self.not_decided,
            "microseconds/p50": self.microseconds(0.5),
            "microseconds/p99": self.microseconds(0.99),
            "restarts": restarts,
        }

    def line(self, *, restarts: int = 0) -> str:
        """`1,024 verdicts: correct 61.2 %, wrong 37.9 %, undecided 0.9 %; p50 0.11 ms, p99 1.30 ms; 0 restarts`."""
        total = max(1, self.verdicts)
        shares = [f"{outcome} {count / total:.1%}" for outcome, count in self.outcomes.most_common()]
        times = [f"p{round(share * 100)} {self.microseconds(share) / 1000:.2f} ms" for share in (0.5, 0.99)]
        ended = f"{restarts} worker restart{'' if restarts == 1 else 's'}"
        return f"{self.verdicts:,} verdicts: {', '.join(shares) or 'none'}; {', '.join(times)}; {ended}"

    def warning(self, limit: float) -> str | None:
        """A line where the share not decided is above a limit; said again each time the count has doubled."""
        if self.verdicts < self._warn_from or self.not_decided <= limit:
            return None
        self._warn_from = 2 * self.verdicts
        worst = ", ".join(f"{outcome} {self.outcomes[outcome]:,}" for outcome in NOT_DECIDED if self.outcomes[outcome])
        return (
            f"WARNING: {self.not_decided:.1%} of {self.verdicts:,} verdicts say nothing about the answer ({worst}), "
            f"more than {limit:.0%}: read the reasons in the rollouts; `veriward explain` shows how one comes about"
        )
