"""Reward components in TRL's call: one number of the verdict each, weights elsewhere.

    trainer = GRPOTrainer(reward_funcs=[accuracy_reward, format_reward], args=GRPOConfig(reward_weights=[1.0, 0.25]), …)

The dataset column with the reference is found by its name (`REFERENCE_COLUMNS`). All components of a batch share one
verdict per completion. `make_components` gives a configured set; every component can be pickled.

What a component returns is None where the *reference* could not be read: then every component says None, since TRL
counts a None beside numbers as 0 and leaves a row out only if all are None. Model text never raises; wiring mistakes
(no reference column, several, wrong lengths) raise at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

from veriward.rewards.chain import check_reference, fields_for
from veriward.rewards.contracts import DEFAULT, get_contract
from veriward.rewards.pool import DEADLINE_S, MEMORY_MB, WARN_NOT_DECIDED, VerdictPool, capped, shared_pool
from veriward.rewards.response import Completion, response_text
from veriward.rewards.verdict import Certainty, Method, Outcome, Verdict
from veriward.rewards.verdict_metrics import NOT_DECIDED
from veriward.rewards.worker_pool import check_limits

LogExtra = Callable[[str, list[Any]], None]
LogMetric = Callable[[str, float], None]

REFERENCE_COLUMNS = ("reference", "solution", "answer", "ground_truth", "label", "target", "references")

TASK_COLUMNS = ("answer_type", "options")
"""Columns by which a row says what it asks for; a data set's own labels under these names are not taken."""

TRAINER_ARGUMENTS = frozenset({"prompts", "trainer_state", "environments"})
"""What TRL passes beside the dataset's columns."""

DEFAULT_WEIGHTS: Mapping[str, float] = {"accuracy_reward": 1.0, "format_reward": 0.25, "supported_reward": 0.0}
"""Dyadic, so that equal rewards have a standard deviation of exactly zero; `supported_reward` is logged only."""


def _one_of(setting: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"unknown {setting} {value!r}; known: {', '.join(known)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSettings:
    """What a set of components agrees on."""

    contract: str = DEFAULT
    unsupported: Literal["zero", "abstain"] = "zero"
    """An answer that could not be decided earns 0.0, or the row is left out (None from all components). Leaving it
    out is a loophole: wrong rows are pushed down and left-out rows are not, so probability drifts towards them."""
    fallback: Literal["pay", "zero"] = "pay"
    """Whether a right answer that stands in no box earns accuracy."""
    reference_column: str | None = None
    """Name of the dataset column with the reference; None: the only one of REFERENCE_COLUMNS that is there."""
    max_completion_length: int | None = None
    """Tokens at which generation is cut; None: unknown, and no response counts as truncated."""
    stop_token_ids: tuple[int, ...] = ()
    """A completion of full length that ends with one of these was not cut off."""
    overlong_buffer: int = 0
    """Tokens before the limit over which `overlong_penalty` grows from 0 to -1."""
    repetition_ngram: int = 4
    """Length, in tokens, of the runs that `repetition_penalty` looks for."""
    workers: int | None = None
    """Worker processes that verdicts run in; None: VERIWARD_WORKERS, or else 1; 0: in the caller's process."""
    deadline_s: float = DEADLINE_S
    """Seconds that one comparison may take before its worker is killed."""
    memory_mb: int = MEMORY_MB
    """Address space of a worker in MiB."""
    warn_not_decided: float = WARN_NOT_DECIDED
    """Share of verdicts that say nothing about the answer, above which a loud line is printed."""

    def __post_init__(self) -> None:
        get_contract(self.contract)
        _one_of("unsupported", self.unsupported, ("zero", "abstain"))
        _one_of("fallback", self.fallback, ("pay", "zero"))
        limit = self.max_completion_length
        if limit is not None and limit < 1:
            raise ValueError(f"max_completion_length must be at least 1 token, got {limit}")
        if self.overlong_buffer < 0 or (limit is not None and self.overlong_buffer > limit):
            raise ValueError(f"overlong_buffer must be between 0 and max_completion_length, got {self.overlong_buffer}")
        if self.repetition_ngram < 1:
            raise ValueError(f"repetition_ngram must be at least 1 token, got {self.repetition_ngram}")
        if self.workers is not None:
            capped(self.workers)
        check_limits(self.deadline_s, self.memory_mb)
        if not 0 <= self.warn_not_decided <= 1:
            raise ValueError(f"warn_not_decided is a share between 0 and 1, got {self.warn_not_decided}")

    @property
    def pool(self) -> VerdictPool:
        """Where the verdicts are made: one pool a process for all components with these settings."""
        return shared_pool(self.workers, self.deadline_s, self.memory_mb, self.warn_not_decided)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One completion as a component sees it."""

    verdict: Verdict
    text: str
    token_ids: Sequence[int] | None
    """None where the trainer passed no ids."""


@dataclass(frozen=True)
class Component:
    """A reward function: called with a batch, returns one value per completion, in order.

    completions     (B,) texts or chat messages
    completion_ids  (B,) token ids without padding, or None
    columns         (B,) each: the dataset's other columns, the reference among them
    returns         (B,) numbers; None for a row whose reference could not be read
    raises          ValueError for no or several reference columns and for wrong lengths
    """

    settings: ComponentSettings = field(default_factory=ComponentSettings)
    weight: float = 0.0
    """The trainer's weight for this component; the component itself does not apply it."""
    name: ClassVar[str]

    @property
    def __name__(self) -> str:
        """What trainers use as the key of their metrics."""
        return self.name

    def score(self, row: Scored) -> float:
        """The number of one completion whose reference could be read."""
        raise NotImplementedError

    def __call__(
        self,
        completions: Sequence[Completion],
        completion_ids: Sequence[Sequence[int]] | None = None,
        *,
        log_extra: LogExtra | None = None,
        log_metric: LogMetric | None = None,
        **columns: Any,
    ) -> list[float | None]:
        verdicts = judge(completions, completion_ids, columns, self.settings)
        if log_extra is not None:
            _log_columns(verdicts, log_extra)
        if log_metric is not None and verdicts:
            _log_shares(verdicts, self.settings, log_metric)
        ids = completion_ids if completion_ids is not None else [None] * len(verdicts)
        return [
            None if _left_out(verdict, self.settings) else self.score(_scored(verdict, completion, tokens))
            for verdict, completion, tokens in zip(verdicts, completions, ids, strict=True)
        ]


class AccuracyReward(Component):
    """1.0 for an answer that equals its reference, whatever the format; 0.0 wrong, missing or not decided."""

    name = "accuracy_reward"

    def score(self, row: Scored) -> float:
        return float(row.verdict.correct and (self.settings.fallback == "pay" or row.verdict.format_valid is True))


class FormatReward(Component):
    """1.0 for a complete box as the last one, whatever stands in it."""

    name = "format_reward"

    def score(self, row: Scored) -> float:
        return float(row.verdict.format_valid is True)


class SupportedReward(Component):
    """1.0 for an answer that could be decided, right or wrong. Weight 0 by default: to be watched, not to be paid."""

    name = "supported_reward"

    def score(self, row: Scored) -> float:
        return float(row.verdict.supported)


class OverlongPenalty(Component):
    """0 for short completions, falling linearly to -1 over the last `overlong_buffer` tokens before the limit.

    Method: "DAPO", arXiv 2503.14476, section 3.4, with the limit that generation is cut at.
    """

    name = "overlong_penalty"

    def score(self, row: Scored) -> float:
        limit, buffer = self.settings.max_completion_length, self.settings.overlong_buffer
        if limit is None:
            raise ValueError("overlong_penalty needs the limit: make_components(max_completion_length=…)")
        over = _length(row, "overlong_penalty") - (limit - buffer)
        if over <= 0 or buffer == 0:
            return 0.0 if over < 0 or buffer else -1.0
        return -min(1.0, over / buffer)


class RepetitionPenalty(Component):
    """Minus the share of token runs (`repetition_ngram` long) that occurred before in the same completion."""

    name = "repetition_penalty"

    def score(self, row: Scored) -> float:
        length = self.settings.repetition_ngram
        tokens = row.text.split() if row.token_ids is None else row.token_ids
        runs = [tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1)]
        return len(set(runs)) / len(runs) - 1.0 if runs else 0.0


COMPONENTS: tuple[type[Component], ...] = (
    AccuracyReward,
    FormatReward,
    SupportedReward,
    OverlongPenalty,
    RepetitionPenalty,
)

accuracy_reward = AccuracyReward(weight=DEFAULT_WEIGHTS["accuracy_reward"])
format_reward = FormatReward(weight=DEFAULT_WEIGHTS["format_reward"])
supported_reward = SupportedReward()
overlong_penalty = OverlongPenalty()
repetition_penalty = RepetitionPenalty()


def make_components(*, weights: Mapping[str, float] = DEFAULT_WEIGHTS, **settings: Any) -> list[Component]:
    """A set of components that share their settings, in the order of `weights`.

    weights    component name to the weight for the trainer's `reward_weights`; each component keeps its own as
               `.weight`. A weight of 0 logs a component without training on it.
    settings   the fields of ComponentSettings
    raises     ValueError for an unknown name or an impossible setting, TypeError for an unknown setting
    """
    known = {component.name: component for component in COMPONENTS}
    for name in weights:
        _one_of("component", name, tuple(known))
    shared = ComponentSettings(**settings)
    if "overlong_penalty" in weights and shared.max_completion_length is None:
        raise ValueError("overlong_penalty needs the limit: make_components(max_completion_length=…)")
    return [known[name](shared, weight) for name, weight in weights.items()]


def judge(
    completions: Sequence[Completion],
    completion_ids: Sequence[Sequence[int]] | None,
    columns: Mapping[str, Any],
    settings: ComponentSettings,
) -> list[Verdict]:
    """The verdicts that the components of a set read: one per completion, decided once a batch.

    Where the reference cannot be read, the outcome is bad_reference, whatever was wrong with the response too.
    """
    references = find_references(columns, settings.reference_column)
    if completion_ids is not None and len(completion_ids) != len(completions):
        raise ValueError(f"got {len(completion_ids)} completion_ids for {len(completions)} completions")
    if len(references) != len(completions):
        raise ValueError(f"got {len(references)} references for {len(completions)} completions")
    cut = [False] * len(completions) if completion_ids is None else [_is_cut(ids, settings) for ids in completion_ids]
    declared = [
        fields_for(settings.contract, {name: columns[name][row] for name in TASK_COLUMNS if name in columns})
        for row in range(len(completions))
    ]
    verdicts = settings.pool.verify_many(
        [
            {"response": completion, "reference": reference, "truncated": truncated, **fields}
            for completion, reference, truncated, fields in zip(completions, references, cut, declared, strict=True)
        ],
        contract=settings.contract,
    )
    return [
        _of_bad_reference(verdict, reference, fields)
        for verdict, reference, fields in zip(verdicts, references, declared, strict=True)
    ]


def _of_bad_reference(verdict: Verdict, reference: str, fields: Mapping[str, Any]) -> Verdict:
    refusal = None if verdict.correct else check_reference(reference, contract=verdict.contract, **fields)
    if refusal is None:
        return verdict
    return replace(verdict, outcome=Outcome.BAD_REFERENCE, reason=refusal, method=None, certainty=None)


def find_references(columns: Mapping[str, Any], reference_column: str | None) -> list[str]:
    """The references of a batch, from the one dataset column that holds them."""
    columns = {name: column for name, column in columns.items() if name not in TRAINER_ARGUMENTS}
    seen = ", ".join(sorted(columns)) or "none"
    if reference_column is not None:
        if reference_column not in columns:
            raise ValueError(f"no column {reference_column!r} (reference_column); columns seen: {seen}")
        return [_reference(value, reference_column, row) for row, value in enumerate(columns[reference_column])]
    found = [name for name in REFERENCE_COLUMNS if name in columns]
    if len(found) == 1:
        return [_reference(value, found[0], row) for row, value in enumerate(columns[found[0]])]
    if not found:
        raise ValueError(
            f"no reference column: wanted one of {', '.join(REFERENCE_COLUMNS)}; columns seen: {seen}; "
            "name yours with make_components(reference_column=…)"
        )
    firsts = "; ".join(f"{name}: {_first(columns[name])}" for name in found)
    raise ValueError(
        f"several reference columns, and the reward must not guess; first values: {firsts}; columns seen: {seen}; "
        "choose one with make_components(reference_column=…)"
    )


def _reference(value: object, column: str, row: int) -> str:
    """A reference is a text; a whole number from a typed column is as good as its text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, bool):
        if isinstance(value, Integral):
            return str(int(value))
        if isinstance(value, Real):
            return repr(float(value))
    raise ValueError(f"column {column!r}, row {row}: a reference is a text or a number, got {value!r}")


def _first(column: Sequence[object]) -> str:
    text = repr(column[0]) if len(column) else "(empty)"
    return text if len(text) <= 60 else text[:57] + "…"


def _is_cut(token_ids: Sequence[int], settings: ComponentSettings) -> bool:
    limit = settings.max_completion_length
    return limit is not None and len(token_ids) >= limit and token_ids[-1] not in settings.stop_token_ids


def _left_out(verdict: Verdict, settings: ComponentSettings) -> bool:
    """The row says nothing about the model, or is to be left out by setting."""
    if verdict.outcome is Outcome.BAD_REFERENCE:
        return True
    return settings.unsupported == "abstain" and verdict.outcome in NOT_DECIDED


def _scored(verdict: Verdict, completion: Completion, token_ids: Sequence[int] | None) -> Scored:
    return Scored(verdict=verdict, text=response_text(completion), token_ids=token_ids)


def _length(row: Scored, component: str) -> int:
    if row.token_ids is None:
        raise ValueError(f"{component} counts tokens: the trainer must pass completion_ids")
    return len(row.token_ids)


def _log_columns(verdicts: Sequence[Verdict], log_extra: LogExtra) -> None:
    log_extra("candidate", [verdict.candidate for verdict in verdicts])
    log_extra("outcome", [verdict.outcome.value for verdict in verdicts])
    log_extra("reason", [None if verdict.reason is None else verdict.reason.value for verdict in verdicts])
    log_extra("method", [None if verdict.method is None else verdict.method.value for verdict in verdicts])
    log_extra("contract", [verdict.contract for verdict in verdicts])


def _log_shares(verdicts: Sequence[Verdict], settings: ComponentSettings, log_metric: LogMetric) -> None:
    """Shares of the batch; of the rows paid for accuracy, the share whose answer stood in no box."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    for outcome in Outcome:
        log_metric(f"outcome/{outcome.value}", counts[outcome] / len(verdicts))
    methods = Counter(verdict.method for verdict in verdicts)
    for method in Method:
        log_metric(f"method/{method.value}", methods[method] / len(verdicts))
    certainties = Counter(verdict.certainty for verdict in verdicts)
    for certainty in Certainty:
        log_metric(f"certainty/{certainty.value}", certainties[certainty] / len(verdicts))
    log_metric("not_decided", sum(counts[outcome] for outcome in NOT_DECIDED) / len(verdicts))
    times = sorted(verdict.microseconds for verdict in verdicts)
    for percent in (50, 99):
        log_metric(f"verdict_ms/p{percent}", times[(len(times) - 1) * percent // 100] / 1000)
    log_metric("worker_restarts", settings.pool.restarts)
    log_metric("format_valid", sum(verdict.format_valid is True for verdict in verdicts) / len(verdicts))
    if settings.max_completion_length is not None:
        log_metric("truncated", sum(verdict.truncated for verdict in verdicts) / len(verdicts))
    unboxed = sum(verdict.correct and not verdict.format_valid for verdict in verdicts)
    paid_unboxed = unboxed if settings.fallback == "pay" else 0
    paid = counts[Outcome.CORRECT] - unboxed + paid_unboxed
    log_metric("paid_through_fallback", paid_unboxed / paid if paid else 0.0)
