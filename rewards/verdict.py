"""The records that leave this folder: what was decided about a response, and why.

`correct`, `format_valid` and `supported` answer three questions and are never merged:
does the answer equal the reference, is the box there and complete, and could it be decided at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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

    EMPTY_ANSWER = "empty_answer"
    """Nothing but blanks, `$` or an empty box."""
    TEXT_TOO_LONG = "text_too_long"
    """More characters or tokens than an answer may have."""
    NESTED_TOO_DEEP = "nested_too_deep"
    """Brackets, roots, fractions, exponents or signs inside one another beyond the limit."""
    TOO_MANY_PARTS = "too_many_parts"
    """A list, set, tuple or matrix with more parts than the limit."""
    UNBALANCED_BRACKETS = "unbalanced_brackets"
    ADJACENT_NUMBERS = "adjacent_numbers"
    """`1 2`: neither 12 nor 2."""
    MISSING_OPERAND = "missing_operand"
    """`2+`, `^2`, `\\frac{1}`."""
    PROGRAM_SYNTAX = "program_syntax"
    """`4//2`, `1<<9`, `x:=2`, `a@b`, a string in quotes, an attribute: a program and no mathematics."""
    UNSUPPORTED_NOTATION = "unsupported_notation"
    """Mathematics that the grammar does not cover."""

    OVER_BUDGET = "over_budget"
    """The tiers whose cost is always bounded did not decide, and the exact one would cost too much."""
    NOT_SETTLED = "not_settled"
    """Every tier ran, and none decided."""
    NARROWER_DOMAIN = "narrower_domain"
    """Equal wherever the answer has a value, and it has none for some letters where the reference has one."""
    AMBIGUOUS_NOTATION = "ambiguous_notation"
    """Equal under one reading and unequal under another: `\\log 100` and 2."""
    KINDS_NOT_COMPARED = "kinds_not_compared"
    """Both sides were read, and no rule says how this kind of answer meets that kind of reference."""
    TEXT_NOT_EXPECTED = "text_not_expected"
    """Words where the reference is mathematics."""
    HEDGED = "hedged"
    """Several alternatives where one answer is asked."""
    UNIT_MISSING = "unit_missing"
    """The task requires a unit, sign or base that the answer leaves out."""
    NOT_SIMPLIFIED = "not_simplified"
    """Equal, and still to be worked out, where the task requires it worked out."""
    NOT_OF_DECLARED_TYPE = "not_of_declared_type"
    """Read, but as something else than the task's answer type."""

    TIME_LIMIT = "time_limit"
    """The worker process had not decided when the time was up, and was killed."""
    WORKER_DIED = "worker_died"
    """Two worker processes, one after the other, ended on this item, as when memory runs out."""

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
    REFERENCE_EMPTY_ANSWER = "reference_empty_answer"
    REFERENCE_TEXT_TOO_LONG = "reference_text_too_long"
    REFERENCE_NESTED_TOO_DEEP = "reference_nested_too_deep"
    REFERENCE_TOO_MANY_PARTS = "reference_too_many_parts"
    REFERENCE_UNBALANCED_BRACKETS = "reference_unbalanced_brackets"
    REFERENCE_ADJACENT_NUMBERS = "reference_adjacent_numbers"
    REFERENCE_MISSING_OPERAND = "reference_missing_operand"
    REFERENCE_PROGRAM_SYNTAX = "reference_program_syntax"
    REFERENCE_AMBIGUOUS_NOTATION = "reference_ambiguous_notation"
    REFERENCE_NOT_OF_DECLARED_TYPE = "reference_not_of_declared_type"
    REFERENCE_UNSUPPORTED_NOTATION = "reference_unsupported_notation"

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

    IDENTITY = "identity"
    """The texts are the same, character for character."""
    SPELLING = "spelling"
    """The trees are the same up to the order in sums, products and sets."""
    RATIONAL = "rational"
    """Both sides are exact rationals."""
    BALLS = "balls"
    """Ball arithmetic put the two values apart, at a point where both are defined."""
    NORMAL_FORM = "normal_form"
    """Exact normal forms over roots, logarithms, exponentials and trigonometric values with their relations."""
    SEPARATION = "separation"
    """Algebraic constants nearer to one another than two different ones can be, or proved apart."""
    MODULAR = "modular"
    """Evaluated modulo a large prime."""
    HIGH_PRECISION = "high_precision"
    """The values agree to hundreds of digits at several points: probable, never proved."""
    TOLERANCE = "tolerance"
    """Within the tolerance that the task states."""
    PLUGIN = "plugin"
    """By the answer type of another package."""
    ROUNDING = "rounding"
    """The reference is a rounded decimal, and the answer rounds to it."""
    KIND = "kind"
    """Two kinds of answer that are never equal: words that differ, another letter, a set and a number."""


class Certainty(StrEnum):
    """How sure a decision is. A reward accepts both; a strict report counts 'proved' alone."""

    PROVED = "proved"
    """By exact arithmetic, or by balls that cannot hold one value."""
    PROBABLE = "probable"
    """Agreement to hundreds of digits or modulo a large prime, wrong with a chance that no one will ever see; or a
    convention about notation, as that `[3, 8]` is not `(3, 8)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the preflight expected of an exact comparison, whether or not it was run."""

    bits: int
    """Bits of the largest integer."""
    terms: int
    """Terms of the largest polynomial."""
    work: int
    """Word operations in all."""


Step = tuple[str, str]
"""A tier or rule, and what it found."""


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
    flags: tuple[str, ...] = ()
    """Remarks about the response, as 'answer_in_reasoning' or 'run_on'."""


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
    certainty: Certainty | None = None
    """None where nothing was decided, and under v1 and v2, which do not say."""
    answer_type: str = "auto"
    """The declared type, or the one that was read off the reference."""
    flags: tuple[str, ...] = ()
    """Conventions that were applied, as 'name_dropped'."""
    cost: Cost | None = None
    steps: tuple[Step, ...] = ()
    """What was looked at, in order; not kept in the verdict."""
    refused_at: int | None = None
    """Where reading stopped, in characters of the candidate or, for bad_reference, of the reference."""


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
    """How the candidate was found: 'boxed', 'statement', 'last_number', 'none' or 'given'."""
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
    """Remarks and conventions, as 'answer_in_reasoning' and 'name_dropped'."""
    certainty: Certainty | None = None
    """None where nothing was decided, and under v1 and v2, which do not say."""
    cost: Cost | None = None
    """What the preflight expected of the comparison; None where none was planned."""
    answer_type: str = "auto"
    """The declared type, or the one that was read off the reference; v1 and v2 know none."""
    fingerprint: str = ""
    """Of the contract."""
    microseconds: int = field(default=0, compare=False)
    """Wall-clock time of this verdict; two verdicts that differ in it alone are equal."""

    def __post_init__(self) -> None:
        if (self.reason is None) != self.correct:
            raise ValueError(f"a reason is missing or too much: {self}")

    def __bool__(self) -> bool:
        """A verdict has no truth of its own: `if verify(…)` would pay every answer."""
        raise TypeError("a verdict is neither true nor false; ask its .correct, .supported or .format_valid")

    @property
    def correct(self) -> bool:
        return self.outcome is Outcome.CORRECT

    @property
    def supported(self) -> bool:
        """It could be decided: the outcome is 'correct' or 'wrong'."""
        return self.outcome in (Outcome.CORRECT, Outcome.WRONG)

    def to_row(self, *, reference: bool = True) -> dict[str, object]:
        """All fields as one flat, JSON-safe dict with the same keys for every verdict.

        reference   False leaves out the reference and its normal form, for rows that the model may see
        """
        row: dict[str, object] = {
            "outcome": self.outcome.value,
            "reason": None if self.reason is None else self.reason.value,
            "method": None if self.method is None else self.method.value,
            "certainty": None if self.certainty is None else self.certainty.value,
            "correct": self.correct,
            "supported": self.supported,
            "format_valid": self.format_valid,
            "candidate": self.candidate,
            "candidate_normal": self.candidate_normal,
            "extraction": self.extraction,
            "span": None if self.span is None else list(self.span),
            "reference": self.reference,
            "reference_normal": self.reference_normal,
            "answer_type": self.answer_type,
            "verifier_called": self.verifier_called,
            "flags": list(self.flags),
            "cost_bits": None if self.cost is None else self.cost.bits,
            "cost_terms": None if self.cost is None else self.cost.terms,
            "cost_work": None if self.cost is None else self.cost.work,
            "contract": self.contract,
            "fingerprint": self.fingerprint,
            "truncated": self.truncated,
            "microseconds": self.microseconds,
        }
        if not reference:
            del row["reference"], row["reference_normal"]
        return row
