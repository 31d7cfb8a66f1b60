"""verify(): response, extraction, contract, verdict. The one place where the steps meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from veriward.rewards.contracts import DEFAULT, get_contract
from veriward.rewards.response import Completion, reasoning_text, response_text
from veriward.rewards.verdict import Decision, Extraction, Outcome, Reason, Verdict

ANSWER_IN_REASONING = "answer_in_reasoning"
LONG_REFERENCE = 1_000
"""Characters above which nothing is remembered of a reference."""


def verify(response: Completion, reference: str, *, contract: str = DEFAULT, truncated: bool = False) -> Verdict:
    """Take the final answer out of a response and decide whether it equals the reference.

    response    the model's text, or its chat messages; text set apart as reasoning is no source of the answer
    reference   the key, bare: `\\frac{1}{2}`, not a sentence
    contract    name of the grading contract
    truncated   the response was cut off: recorded; contracts v1 and v2 decide it like any other
    raises      TypeError and ValueError for wiring mistakes; never for what a model wrote
    """
    rules = get_contract(contract)
    extraction = rules.extract(response_text(response))
    if extraction.candidate is not None:
        decision = rules.decide(extraction.candidate, _text(reference))
        return _verdict(extraction, decision, reference, contract, truncated)
    nothing = Decision(outcome=Outcome.NO_ANSWER, reason=Reason.NO_ANSWER, method=None)
    reasoned = rules.extract(reasoning_text(response)).candidate is not None
    flags = (ANSWER_IN_REASONING,) if reasoned else ()
    return _verdict(extraction, nothing, _text(reference), contract, truncated, flags)


def verify_answer(candidate: str, reference: str, *, contract: str = DEFAULT) -> Verdict:
    """Decide whether a bare answer equals the reference; there is no response, so `format_valid` is None."""
    extraction = Extraction(candidate=_text(candidate), how="given", span=None, format_valid=None)
    decision = get_contract(contract).decide(candidate, _text(reference))
    return _verdict(extraction, decision, reference, contract, truncated=False)


def verify_batch(
    completions: Sequence[Completion],
    references: Sequence[str],
    *,
    contract: str = DEFAULT,
    truncated: Sequence[bool] | None = None,
) -> list[Verdict]:
    """One verdict per completion, in order; equal work is done once, and the last batches are remembered.

    A trainer calls every reward function with the same batch, so the second and later calls cost a look-up.

    completions   (B,) texts or chat messages
    references    (B,) the keys
    truncated     (B,) whether each response was cut off; None: none was
    raises        ValueError if the lengths differ
    """
    cut = [False] * len(completions) if truncated is None else truncated
    if not len(completions) == len(references) == len(cut):
        raise ValueError(
            f"a batch has one reference per completion: got {len(completions)} completions, "
            f"{len(references)} references, {len(cut)} truncated marks"
        )
    texts = tuple((response_text(completion), reasoning_text(completion)) for completion in completions)
    return list(_verify_texts(texts, tuple(map(_text, references)), tuple(map(bool, cut)), contract))


@lru_cache(maxsize=4)
def _verify_texts(
    texts: tuple[tuple[str, str], ...], references: tuple[str, ...], truncated: tuple[bool, ...], contract: str
) -> tuple[Verdict, ...]:
    decided: dict[tuple[tuple[str, str], str, bool], Verdict] = {}
    batch = list(zip(texts, references, truncated, strict=True))
    for row in batch:
        if row not in decided:
            (text, reasoning), reference, cut = row
            message = {"role": "assistant", "content": text, "reasoning_content": reasoning}
            decided[row] = verify([message], reference, contract=contract, truncated=cut)
    return tuple(decided[row] for row in batch)


def check_reference(reference: str, *, contract: str = DEFAULT) -> Reason | None:
    """Why the contract cannot read this reference, or None if it can. Ask before training, not during it."""
    if len(_text(reference)) > LONG_REFERENCE:
        return get_contract(contract).check_reference(reference)
    return _check_reference(reference, contract)


@lru_cache(maxsize=16_384)
def _check_reference(reference: str, contract: str) -> Reason | None:
    return get_contract(contract).check_reference(reference)


def _verdict(
    extraction: Extraction,
    decision: Decision,
    reference: str,
    contract: str,
    truncated: bool,
    flags: tuple[str, ...] = (),
) -> Verdict:
    return Verdict(
        outcome=decision.outcome,
        reason=decision.reason,
        method=decision.method,
        format_valid=extraction.format_valid,
        candidate=extraction.candidate,
        candidate_normal=decision.candidate_normal,
        extraction=extraction.how,
        span=extraction.span,
        reference=reference,
        reference_normal=decision.reference_normal,
        verifier_called=decision.verifier_called,
        contract=contract,
        truncated=truncated,
        flags=flags,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"an answer and a reference are texts, got {type(value).__name__}: {value!r}")
    return value
