"""The records that leave this folder: what was decided about a response, and why.

`correct`, `format_valid` and `supported` answer three questions and are never merged:
does the answer equal the reference, is the box there and complete, and could it be decided at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of one response: exactly one per verdict."""

    CORRECT = "correct"
    """The answer equals the reference."""
    WRONG = "wrong"
    """The answer was read and differs from the reference."""
    NO_ANSWER = "no_answer"
    """Nothing in the response could be taken for an answer."""
    UNSUPPORTED = "unsupported"
    """An answer was found, but the contract does not read it, or refuses its cost."""
    UNDECIDED = "undecided"
    """Both sides were read; whether they are equal was not settled."""
    TIMEOUT = "timeout"
    """The time limit passed before a decision."""
    CRASHED = "crashed"
    """The worker process died on this item."""
    BAD_REFERENCE = "bad_reference"
    """The reference, not the answer, could not be read: the row says nothing about the model."""


class Reason(StrEnum):
    """Why a verdict is not 'correct'. A refused reference has the same reason with `reference_` in front."""

    NOT_EQUAL = "not_equal"
    """Both sides were read and their difference is not zero."""
    DIFFERENT_PART_COUNT = "different_part_count"
    """A tuple or list with more or fewer parts than the reference."""
    NO_ANSWER = "no_answer"
    """No box and no number in the response."""

    UNSUPPORTED_EXPRESSION = "unsupported_expression"
    """Outside the grammar of contract v1."""
    ESTIMATED_COST_TOO_LARGE = "estimated_cost_too_large"
    """Readable, but the size estimate says that deciding it could take seconds."""

    UNDEFINED_VALUE = "undefined_value"
    """`1/0`, `x/(x-x)`: equal to nothing, and no answer."""
    SYMPY_FAILED = "sympy_failed"
    """SymPy raised on this pair: recorded under its own name, so that it is noticed, and the run goes on."""

    EXPRESSION_TOO_LONG = "expression_too_long"
    PARENTHESES_TOO_DEEP = "parentheses_too_deep"
    NUMERIC_LITERAL_TOO_LONG = "numeric_literal_too_long"
    SCIENTIFIC_EXPONENT_TOO_LARGE = "scientific_exponent_too_large"
    TOO_MANY_OPERATIONS = "too_many_operations"
    TOO_MANY_AST_NODES = "too_many_ast_nodes"
    POWER_EXPONENT_TOO_LARGE = "power_exponent_too_large"
    """`9^999999`: a constant exponent above the limit."""
    DYNAMIC_POWER_EXPONENT = "dynamic_power_exponent"
    """`9^9^9`, `x^x`: an exponent that is itself computed."""
    CONTAINER_OPERATION = "container_operation"
    """`[1]*1000000`: arithmetic on a tuple or list."""
    NESTED_CONTAINER = "nested_container"
    """`((1,2),3)`: only flat tuples and lists are read."""
    AMBIGUOUS_PERCENT_NOTATION = "ambiguous_percent_notation"
    """`4%3`: a remainder or a percentage."""
    DUNDER_IDENTIFIER = "dunder_identifier"
    """`__import__(os)`."""
    IMPLICIT_MULTIPLICATION = "implicit_multiplication"
    """`2x`: contract v1 reads it, v2 refuses."""
    FLOOR_DIVISION = "floor_division"
    """`4//2`: contract v1 computes it, v2 refuses."""
    UNSUPPORTED_CALL = "unsupported_call"
    """`factorial(3)`: any call but `sqrt` of one argument."""
    UNSUPPORTED_NAME = "unsupported_name"
    """A word that is not one letter, `pi` or `oo`."""
    UNSUPPORTED_CHARACTER = "unsupported_character"
    """A character outside digits, ASCII letters and `+-*/().,[]`."""
    ATTRIBUTE_ACCESS = "attribute_access"
    SUBSCRIPT_ACCESS = "subscript_access"
    UNSUPPORTED_SYNTAX = "unsupported_syntax"
    """Parses as Python, but is no arithmetic: a lone `...`, an empty tuple, a conditional."""
    SYNTAX_ERROR = "syntax_error"

    REFERENCE_UNSUPPORTED_EXPRESSION = "reference_unsupported_expression"
    REFERENCE_ESTIMATED_COST_TOO_LARGE = "reference_estimated_cost_too_large"
    REFERENCE_UNDEFINED_VALUE = "reference_undefined_value"
    REFERENCE_EXPRESSION_TOO_LONG = "reference_expression_too_long"
    REFERENCE_PARENTHESES_TOO_DEEP = "reference_parentheses_too_deep"
    REFERENCE_NUMERIC_LITERAL_TOO_LONG = "reference_numeric_literal_too_long"
    REFERENCE_SCIENTIFIC_EXPONENT_TOO_LARGE = "reference_scientific_exponent_too_large"
    REFERENCE_TOO_MANY_OPERATIONS = "reference_too_many_operations"
    REFERENCE_TOO_MANY_AST_NODES = "reference_too_many_ast_nodes"
    REFERENCE_POWER_EXPONENT_TOO_LARGE = "reference_power_exponent_too_large"
    REFERENCE_DYNAMIC_POWER_EXPONENT = "reference_dynamic_power_exponent"
    REFERENCE_CONTAINER_OPERATION = "reference_container_operation"
    REFERENCE_NESTED_CONTAINER = "reference_nested_container"
    REFERENCE_AMBIGUOUS_PERCENT_NOTATION = "reference_ambiguous_percent_notation"
    REFERENCE_DUNDER_IDENTIFIER = "reference_dunder_identifier"
    REFERENCE_IMPLICIT_MULTIPLICATION = "reference_implicit_multiplication"
    REFERENCE_FLOOR_DIVISION = "reference_floor_division"
    REFERENCE_UNSUPPORTED_CALL = "reference_unsupported_call"
    REFERENCE_UNSUPPORTED_NAME = "reference_unsupported_name"
    REFERENCE_UNSUPPORTED_CHARACTER = "reference_unsupported_character"
    REFERENCE_ATTRIBUTE_ACCESS = "reference_attribute_access"
    REFERENCE_SUBSCRIPT_ACCESS = "reference_subscript_access"
    REFERENCE_UNSUPPORTED_SYNTAX = "reference_unsupported_syntax"
    REFERENCE_SYNTAX_ERROR = "reference_syntax_error"

    @property
    def of_reference(self) -> Reason:
        """The same refusal, said of the reference."""
        return Reason(f"reference_{self.value}")

    @property
    def is_of_reference(self) -> bool:
        return self.value.startswith("reference_")


class Method(StrEnum):
    """How two answers were compared."""

    NORMALIZED_EXACT = "normalized_exact"
    """The normalised texts are the same."""
    PART_COUNT = "part_count"
    """The numbers of parts differ; nothing was parsed."""
    SYMPY = "sympy"
    """The parts were read, and SymPy simplified their differences to zero, or could not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The answer taken out of a response, and how."""

    candidate: str | None
    """The text of the answer as the model wrote it; None if nothing was found."""
    how: str
    """'boxed', 'last_number', 'none'; 'given' where a bare answer was verified."""
    span: tuple[int, int] | None
    """Where the candidate stands in the response: response[start:end] is the candidate."""
    format_valid: bool | None
    """The answer stands in a complete box; None where there was no response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a contract says of one candidate and one reference."""

    outcome: Outcome
    reason: Reason | None
    method: Method | None
    """None where nothing was compared."""
    candidate_normal: str | None = None
    """The candidate after normalisation; None if it was not reached."""
    reference_normal: str | None = None
    verifier_called: bool = False
    """False if the preflight refused before the equivalence check was entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was decided about one response, and everything needed to decide it again."""

    outcome: Outcome
    reason: Reason | None
    """None only when correct."""
    method: Method | None
    """How it was decided; None where nothing was compared."""
    format_valid: bool | None
    """The box is there and complete; None where a bare answer was verified."""
    candidate: str | None
    """The text that was judged, as the model wrote it; None if nothing was found."""
    candidate_normal: str | None
    extraction: str
    """How the candidate was found: 'boxed', 'last_number', 'none' or 'given'."""
    span: tuple[int, int] | None
    """Where the candidate stands in the response text."""
    reference: str
    reference_normal: str | None
    verifier_called: bool
    """False if nothing was handed to the equivalence check: no answer, or refused by the preflight."""
    contract: str
    """The grading contract in force, as 'v2': rows under different ones are never compared."""
    truncated: bool
    """The caller said that the response was cut off."""
    flags: tuple[str, ...] = ()
    """Remarks that do not change the outcome, as 'answer_in_reasoning'."""

    def __post_init__(self) -> None:
        if (self.reason is None) != self.correct:
            raise ValueError(f"a reason is missing or too much: {self}")

    @property
    def correct(self) -> bool:
        return self.outcome is Outcome.CORRECT

    @property
    def supported(self) -> bool:
        """It could be decided: the outcome is 'correct' or 'wrong'."""
        return self.outcome in (Outcome.CORRECT, Outcome.WRONG)

    def to_row(self) -> dict[str, object]:
        """All fields as one flat, JSON-safe dict with the same keys for every verdict."""
        return {
            "outcome": self.outcome.value,
            "reason": None if self.reason is None else self.reason.value,
            "method": None if self.method is None else self.method.value,
            "correct": self.correct,
            "supported": self.supported,
            "format_valid": self.format_valid,
            "candidate": self.candidate,
            "candidate_normal": self.candidate_normal,
            "extraction": self.extraction,
            "span": None if self.span is None else list(self.span),
            "reference": self.reference,
            "reference_normal": self.reference_normal,
            "verifier_called": self.verifier_called,
            "contract": self.contract,
            "truncated": self.truncated,
            "flags": list(self.flags),
        }
