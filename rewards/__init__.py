"""Marking: a model's response in, a verdict or a reward out. Imports nothing of ours and no torch."""

from veriward.rewards.answer_types import AnswerType
from veriward.rewards.chain import (
    Explanation,
    check_reference,
    explain,
    fields_for,
    verify,
    verify_answer,
)
from veriward.rewards.components import (
    DEFAULT_WEIGHTS,
    REFERENCE_COLUMNS,
    Component,
    ComponentSettings,
    accuracy_reward,
    format_reward,
    make_components,
    overlong_penalty,
    repetition_penalty,
    supported_reward,
)
from veriward.rewards.contracts import CONTRACTS, DEFAULT, Contract, get_contract
from veriward.rewards.pool import VerdictPool, shared_pool, verify_batch, verify_many
from veriward.rewards.reference import Reference, UnreadableReferenceError, compile_reference
from veriward.rewards.response import Completion, response_text
from veriward.rewards.task import ANSWER_TYPES, Options
from veriward.rewards.verdict import Certainty, Cost, Extraction, Method, Outcome, Reason, Verdict
from veriward.rewards.verdict_metrics import VerdictMetrics
from veriward.rewards.worker_pool import WorkerError

__all__ = [
    "ANSWER_TYPES",
    "CONTRACTS",
    "DEFAULT",
    "DEFAULT_WEIGHTS",
    "REFERENCE_COLUMNS",
    "AnswerType",
    "Certainty",
    "Completion",
    "Component",
    "ComponentSettings",
    "Contract",
    "Cost",
    "Explanation",
    "Extraction",
    "Method",
    "Options",
    "Outcome",
    "Reason",
    "Reference",
    "UnreadableReferenceError",
    "Verdict",
    "VerdictMetrics",
    "VerdictPool",
    "WorkerError",
    "accuracy_reward",
    "check_reference",
    "compile_reference",
    "explain",
    "fields_for",
    "format_reward",
    "get_contract",
    "make_components",
    "overlong_penalty",
    "repetition_penalty",
    "response_text",
    "shared_pool",
    "supported_reward",
    "verify",
    "verify_answer",
    "verify_batch",
    "verify_many",
]
