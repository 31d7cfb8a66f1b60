"""Marking: a model's response in, a verdict or a reward out. Imports nothing of ours and no torch."""

from veriward.rewards.chain import check_reference, verify, verify_answer, verify_batch
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
from veriward.rewards.response import Completion, response_text
from veriward.rewards.verdict import Extraction, Method, Outcome, Reason, Verdict

__all__ = [
    "CONTRACTS",
    "DEFAULT",
    "DEFAULT_WEIGHTS",
    "REFERENCE_COLUMNS",
    "Completion",
    "Component",
    "ComponentSettings",
    "Contract",
    "Extraction",
    "Method",
    "Outcome",
    "Reason",
    "Verdict",
    "accuracy_reward",
    "check_reference",
    "format_reward",
    "get_contract",
    "make_components",
    "overlong_penalty",
    "repetition_penalty",
    "response_text",
    "supported_reward",
    "verify",
    "verify_answer",
    "verify_batch",
]
