"""What contract v3 does with a response and with an answer, step by step.

extract   the final answer of a response
decide    candidate and reference to a decision: identity, grammar, structure rules, engine
check     whether a reference can be read
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from veriward.rewards.answer_types import AnswerType, registered
from veriward.rewards.contracts.v3.comparison import Comparison, Finding
from veriward.rewards.contracts.v3.extraction import extract as extraction_rules
from veriward.rewards.contracts.v3.reading.grammar import Refused, parse, plain_words, same_tokens
from veriward.rewards.contracts.v3.rules import structure
from veriward.rewards.contracts.v3.rules.declared import as_declared, derived_type, is_unevaluated
from veriward.rewards.contracts.v3.tree import Alternatives, Listing, Node, SetOf, Text, spell
from veriward.rewards.task import ANSWER_TYPES, Task
from veriward.rewards.verdict import Certainty, Decision, Extraction, Method, Outcome, Reason

NAME = "v3"

POLICIES = {
    "extraction": "after the last closing thinking delimiter: last complete box, answer statement, or last number",
    "identity": "the same text is the same answer, read or not; a value that is undefined equals nothing",
    "equality": "exact, on the common real domain of both sides; no tolerance but a stated one",
    "rounding": "what rounds to a decimal reference of three digits and more is equal, unless the task says exact",
    "undecided": "what no tier settles is undecided, never wrong",
}

OUTCOMES = {
    Finding.EQUAL: Outcome.CORRECT,
    Finding.UNEQUAL: Outcome.WRONG,
    Finding.UNDECIDED: Outcome.UNDECIDED,
    Finding.LEFT_UNDEFINED: Outcome.WRONG,
    Finding.RIGHT_UNDEFINED: Outcome.BAD_REFERENCE,
}

NOT_READ_AS_ASKED = frozenset({Reason.TEXT_NOT_EXPECTED})
"""Reasons for which an undecided answer counts as unsupported."""


UNEVALUATED = "unevaluated"

BLANK_SEPARATED = re.compile(r"-?\d{1,9}(?: -?\d{1,9}){2,20}")
"""A reference of three integers and more with blanks between is a list, `6 4 0`; an answer written so is refused."""

COMMANDS = re.compile(r"\\[A-Za-z]+")
WORDS = re.compile(r"[^\W\d_]{2,}|[\u3400-\u9fff]")
"""Two of them around a box make a solution of it."""

SHORT = 256
"""Characters up to which a text's tree is remembered."""


def extract(text: str, reasoning: str, task: Task, truncated: bool) -> Extraction:
    """The final answer of a response; several boxes are joined only where the task asks for a list or set."""
    found = extraction_rules.extract(
        text,
        reasoning=reasoning,
        truncated=truncated,
        joins=lambda: asks_for_several(task),
        delimiters=_delimiters(task.options.thinking),
    )
    return Extraction(
        candidate=found.candidate,
        how=found.how,
        span=found.span,
        format_valid=found.format_valid,
        flags=found.flags,
    )


@lru_cache(maxsize=8)
def _delimiters(more: str) -> tuple[tuple[str, str], ...]:
    """The usual marks around thinking and those of the task."""
    marks = more.split()
    return (*extraction_rules.THINKING, *zip(marks[::2], marks[1::2], strict=True))


def decide(candidate: str, task: Task, flags: tuple[str, ...] = ()) -> Decision:
    """Whether a candidate equals the reference of a task. `flags` are the extraction's: a hedge is never correct."""
    kind = registered().get(task.answer_type) if task.answer_type not in ANSWER_TYPES else None
    if kind is not None:
        return _hedged(_decided_by(kind, candidate, task), flags)
    reference = read(task.reference, task)
    same = candidate in (task.reference, key_of(task.reference))
    answer = reference if same else read(candidate, task, as_reference=False)
    answer_type = _type_of(reference, task)
    if same and candidate.strip() and not _has_no_value(reference):
        return _hedged(_identical(answer, answer_type), flags)
    if isinstance(reference, Refused):
        if reference.reason is not Reason.EMPTY_ANSWER and same_tokens(candidate, key_of(task.reference)):
            return _hedged(_identical(answer, answer_type, Method.SPELLING), flags)
        return _refused(reference, Outcome.BAD_REFERENCE, answer, None, answer_type)
    if isinstance(answer, Refused):
        return _refused(answer, Outcome.UNSUPPORTED, None, reference, answer_type)
    found = structure.compare(answer, reference, answer_type=task.answer_type, options=task.options)
    if found.finding is Finding.LEFT_UNDEFINED and structure.has_no_value(reference):
        found = replace(found, finding=Finding.RIGHT_UNDEFINED)
    decision = _decision(found, answer, reference, answer_type)
    return _hedged(_worked_out(decision, answer, reference, task), flags)


def check(task: Task) -> Reason | None:
    """Why the reference cannot be read, or None if it can."""
    kind = registered().get(task.answer_type) if task.answer_type not in ANSWER_TYPES else None
    if kind is not None:
        return Reason.REFERENCE_NOT_OF_DECLARED_TYPE if kind.parse(key_of(task.reference)) is None else None
    reference = read(task.reference, task)
    if isinstance(reference, Refused):
        return reference.reason.of_reference
    return Reason.REFERENCE_UNDEFINED_VALUE if structure.has_no_value(reference) else None


def is_of_declared_type(task: Task) -> bool:
    """Whether the reference is what the task says it is; false for one that cannot be read."""
    found = parse(key_of(task.reference), decimal_comma=task.options.decimal_comma)
    if isinstance(found, Refused):
        return task.answer_type == "text"
    return task.answer_type == "text" or as_declared(found, task.answer_type) is not None


def asks_for_several(task: Task) -> bool:
    """The declared type, or else the reference, is a list or a set."""
    if task.answer_type != "auto":
        return task.answer_type in ("list", "set")
    return isinstance(read(task.reference, task), Listing | SetOf | Alternatives)


def key_of(reference: str) -> str:
    """The key in a reference: behind the last `####` of a whole solution, else in its last box, else all of it.

    A box with nothing but mathematics around it, `-\\boxed{5}`, is no solution, and a solution that ends with several
    boxes has no single key.
    """
    if "####" in reference:
        return reference.rpartition("####")[2].strip()
    if "boxed" in reference or "fbox" in reference:
        found = extraction_rules.extract(reference)
        if found.how == "boxed" and found.format_valid and found.candidate is not None and found.span is not None:
            around = reference[: found.span[0]] + " " + reference[found.span[1] :]
            if structure.HEDGED not in found.flags and len(WORDS.findall(COMMANDS.sub(" ", around))) > 1:
                return found.candidate
    return reference


def read(text: str, task: Task, *, as_reference: bool = True) -> Node | Refused:
    """The tree of a text under the task's conventions; short texts are remembered.

    What is not of the declared type stays what it is: `compile_reference` refuses such a reference before training.
    """
    if as_reference:
        text = key_of(text)
        bare = text.strip().strip("$").strip()
        if BLANK_SEPARATED.fullmatch(bare):
            text = ", ".join(bare.split())
    reading = _read if len(text) > SHORT else _remembered
    return reading(text, task.answer_type, task.options.decimal_comma)


def _read(text: str, answer_type: str, decimal_comma: bool) -> Node | Refused:
    found = parse(text, decimal_comma=decimal_comma)
    if answer_type == "auto" or (isinstance(found, Refused) and answer_type != "text"):
        return found
    declared = None if isinstance(found, Refused) else as_declared(found, answer_type)
    if declared is None and answer_type == "text":
        words = plain_words(text)
        return Text(words) if words else Refused(Reason.EMPTY_ANSWER, 0, "no words")
    return declared or found


_remembered = lru_cache(maxsize=2_048)(_read)


def _type_of(reference: Node | Refused, task: Task) -> str:
    """The declared type, or the one read off the reference."""
    return task.answer_type if task.answer_type != "auto" or isinstance(reference, Refused) else derived_type(reference)


def _decided_by(kind: AnswerType, candidate: str, task: Task) -> Decision:
    """What the answer type of another package says; texts that are the same are equal under every type."""
    if candidate in (task.reference, key_of(task.reference)) and candidate.strip():
        outcome, reason, method = Outcome.CORRECT, None, Method.IDENTITY
    else:
        reference, answer = kind.parse(key_of(task.reference)), kind.parse(candidate)
        if reference is None:
            outcome, reason, method = Outcome.BAD_REFERENCE, Reason.REFERENCE_NOT_OF_DECLARED_TYPE, None
        elif answer is None:
            outcome, reason, method = Outcome.UNSUPPORTED, Reason.NOT_OF_DECLARED_TYPE, None
        else:
            same = kind.equal(answer, reference)
            outcome, reason, method = {
                True: (Outcome.CORRECT, None, Method.PLUGIN),
                False: (Outcome.WRONG, Reason.NOT_EQUAL, Method.PLUGIN),
                None: (Outcome.UNDECIDED, Reason.NOT_SETTLED, None),
            }[same]
    return Decision(
        outcome=outcome,
        reason=reason,
        method=method,
        certainty=None if method is None else Certainty.PROVED,
        answer_type=kind.name,
        verifier_called=method is Method.PLUGIN,
    )


def _worked_out(decision: Decision, answer: Node, reference: Node, task: Task) -> Decision:
    """An answer that is equal and could still be worked out carries a flag, or is wrong where the task says so."""
    if decision.outcome is not Outcome.CORRECT or not is_unevaluated(answer):
        return decision
    if task.options.require_simplified:
        return replace(
            decision, outcome=Outcome.WRONG, reason=Reason.NOT_SIMPLIFIED, flags=(*decision.flags, UNEVALUATED)
        )
    return decision if is_unevaluated(reference) else replace(decision, flags=(*decision.flags, UNEVALUATED))


def _has_no_value(node: Node | Refused) -> bool:
    return not isinstance(node, Refused) and structure.has_no_value(node)


def _identical(node: Node | Refused, answer_type: str, method: Method = Method.IDENTITY) -> Decision:
    normal = None if isinstance(node, Refused) else spell(node)
    return Decision(
        outcome=Outcome.CORRECT,
        reason=None,
        method=method,
        certainty=Certainty.PROVED,
        answer_type=answer_type,
        candidate_normal=normal,
        reference_normal=normal,
        steps=((method.value, "the texts are the same"),),
    )


def _refused(
    refused: Refused, outcome: Outcome, candidate: Node | Refused | None, reference: Node | None, answer_type: str
) -> Decision:
    reason = refused.reason.of_reference if outcome is Outcome.BAD_REFERENCE else refused.reason
    return Decision(
        outcome=outcome,
        reason=reason,
        method=None,
        answer_type=answer_type,
        candidate_normal=None if candidate is None or isinstance(candidate, Refused) else spell(candidate),
        reference_normal=None if reference is None else spell(reference),
        steps=(("grammar", refused.detail),),
        refused_at=refused.position,
    )


def _decision(found: Comparison, candidate: Node, reference: Node, answer_type: str) -> Decision:
    outcome = Outcome.UNSUPPORTED if found.reason in NOT_READ_AS_ASKED else OUTCOMES[found.finding]
    reason = found.reason
    if outcome is Outcome.BAD_REFERENCE and reason is not None:
        reason = reason.of_reference
    return Decision(
        outcome=outcome,
        reason=reason,
        method=found.method,
        certainty=found.certainty,
        answer_type=answer_type,
        candidate_normal=spell(candidate),
        reference_normal=spell(reference),
        verifier_called=True,
        flags=found.flags,
        cost=found.cost,
        steps=found.steps,
    )


def _hedged(decision: Decision, flags: tuple[str, ...]) -> Decision:
    """An answer that stands beside another one with 'or' between them is no answer that could be right."""
    if decision.outcome is not Outcome.CORRECT or structure.HEDGED not in flags:
        return decision
    return replace(
        decision,
        outcome=Outcome.WRONG,
        reason=Reason.HEDGED,
        method=Method.KIND,
        certainty=Certainty.PROBABLE,
    )
