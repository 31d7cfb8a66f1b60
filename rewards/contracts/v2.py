"""Grading contract v2, frozen: v1 behind a preflight that looks at the syntax tree before anything is evaluated.

After normalisation only a tree is built (`ast`), nothing is evaluated, and the tree is checked first. Both sides
are checked, the prediction first; a refusal ends there and v1 is not called. What passes is decided by v1.

Stricter than v1 by design: implicit multiplication (`2x`), floor division (`4//2`), computed exponents, 17 levels of
brackets, 65 operations and every character outside plain arithmetic are refused, so a number under v2 is never
compared with one under v1.

These limits look at each node alone and do not bound the cost: exponents multiply along a path
(`(((9^64)^64)^64)^64`). v1's size estimate behind them does, as `estimated_cost_too_large`: a deviation from the
rules as first published. The preflight is no sandbox and no proof that what passes is cheap.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from veriward.rewards.contracts import v1
from veriward.rewards.normalize import normalize
from veriward.rewards.verdict import Decision, Outcome, Reason

NAME = "v2"

POLICIES = {**v1.POLICIES, "preflight": "both sides, the prediction first, before identity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HardeningLimits:
    """What an expression may hold. A value at its limit passes."""

    max_expression_length: int = 256
    """Characters after normalisation."""
    max_parenthesis_depth: int = 16
    max_numeric_literal_digits: int = 32
    max_scientific_exponent: int = 308
    max_operations: int = 64
    """Binary operations and signs."""
    max_ast_nodes: int = 256
    max_power_exponent: int = 64


LIMITS = HardeningLimits()


def decide(candidate: str, reference: str) -> Decision:
    """What v2 says of a candidate and a reference, as written."""
    candidate_normal, reference_normal = normalize(candidate), normalize(reference)

    def refused(outcome: Outcome, reason: Reason) -> Decision:
        return Decision(
            outcome=outcome,
            reason=reason,
            method=None,
            candidate_normal=candidate_normal,
            reference_normal=reference_normal,
            verifier_called=False,
        )

    reason = preflight(candidate_normal)
    if reason is not None:
        return refused(Outcome.UNSUPPORTED, reason)
    reason = preflight(reference_normal)
    if reason is not None:
        return refused(Outcome.BAD_REFERENCE, reason.of_reference)
    return v1.decide_normalized(candidate_normal, reference_normal)


def check_reference(reference: str) -> Reason | None:
    """Why v2 cannot read this reference, or None if it can."""
    reason = preflight(normalize(reference))
    return v1.check_reference(reference) if reason is None else reason.of_reference


def preflight(expression: str, limits: HardeningLimits = LIMITS) -> Reason | None:
    """Why a normalised expression is refused, or None if it may be handed on. Nothing is evaluated."""
    for text_rule in TEXT_RULES:
        reason = text_rule(expression, limits)
        if reason is not None:
            return reason
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Reason.SYNTAX_ERROR
    nodes = list(ast.walk(tree))
    for tree_rule in TREE_RULES:
        reason = tree_rule(tree, nodes, limits)
        if reason is not None:
            return reason
    for node in nodes:
        for node_rule in NODE_RULES:
            reason = node_rule(node, limits)
            if reason is not None:
                return reason
    return None


# ---- rules on the text -----------------------------------------------------------------------------------------------

ALLOWED_CHARACTERS = re.compile(r"[0-9A-Za-z+\-*/().,\[\]]*")
LITERAL = re.compile(r"(?<![A-Za-z0-9.])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?")


def expression_length(expression: str, limits: HardeningLimits) -> Reason | None:
    """65 thousand characters need no tree to be refused; nothing at all is no expression."""
    if not expression:
        return Reason.SYNTAX_ERROR
    return Reason.EXPRESSION_TOO_LONG if len(expression) > limits.max_expression_length else None


def dunder_identifier(expression: str, limits: HardeningLimits) -> Reason | None:
    """`__import__(os)`"""
    return Reason.DUNDER_IDENTIFIER if "__" in expression else None


def ambiguous_percent(expression: str, limits: HardeningLimits) -> Reason | None:
    """`4%3` is a remainder or a percentage; this contract does not guess."""
    return Reason.AMBIGUOUS_PERCENT_NOTATION if "%" in expression else None


def characters(expression: str, limits: HardeningLimits) -> Reason | None:
    """Python folds `ｓｑｒｔ` to `sqrt` and drops what follows a `#`, so other characters never reach its parser."""
    return None if ALLOWED_CHARACTERS.fullmatch(expression) else Reason.UNSUPPORTED_CHARACTER


def parenthesis_depth(expression: str, limits: HardeningLimits) -> Reason | None:
    """200 open brackets break Python's parser."""
    depth = 0
    for sign in expression:
        depth += (sign in "([") - (sign in ")]")
        if depth > limits.max_parenthesis_depth:
            return Reason.PARENTHESES_TOO_DEEP
    return None


def numeric_literals(expression: str, limits: HardeningLimits) -> Reason | None:
    """`1e309`, and literals of many digits."""
    for literal in LITERAL.finditer(expression):
        if (
            sum(sign.isdigit() for sign in literal.group().lower().partition("e")[0])
            > limits.max_numeric_literal_digits
        ):
            return Reason.NUMERIC_LITERAL_TOO_LONG
        exponent = literal["exponent"]
        if exponent and (len(exponent) > 8 or abs(int(exponent)) > limits.max_scientific_exponent):
            return Reason.SCIENTIFIC_EXPONENT_TOO_LARGE
    return None


def digit_before_letter(expression: str, limits: HardeningLimits) -> Reason | None:
    """`2x`; also `0x10`, `0b11`, `1j` and `1if 1else 2`, which Python would read its own way."""
    rest = LITERAL.sub(lambda literal: "#" * len(literal.group()), expression)
    return Reason.IMPLICIT_MULTIPLICATION if re.search("#[A-Za-z]", rest) else None


TEXT_RULES: tuple[Callable[[str, HardeningLimits], Reason | None], ...] = (
    expression_length,
    dunder_identifier,
    ambiguous_percent,
    characters,
    parenthesis_depth,
    numeric_literals,
    digit_before_letter,
)


# ---- rules on the whole tree -----------------------------------------------------------------------------------------


def tree_size(tree: ast.expr, nodes: list[ast.AST], limits: HardeningLimits) -> Reason | None:
    """`1+1+1+…` is cheap a node and long in all. Operator and context marks are no nodes of the expression."""
    count = sum(isinstance(node, ast.expr) for node in nodes)
    return Reason.TOO_MANY_AST_NODES if count > limits.max_ast_nodes else None


def operations(tree: ast.expr, nodes: list[ast.AST], limits: HardeningLimits) -> Reason | None:
    """65 additions."""
    count = sum(isinstance(node, ast.BinOp | ast.UnaryOp) for node in nodes)
    return Reason.TOO_MANY_OPERATIONS if count > limits.max_operations else None


def containers(tree: ast.expr, nodes: list[ast.AST], limits: HardeningLimits) -> Reason | None:
    """`[1]*1000000`: a tuple or list may be the whole answer, and no part of a computation."""
    inner = [node for node in nodes if isinstance(node, ast.Tuple | ast.List) and node is not tree]
    if not inner:
        return None
    flat = isinstance(tree, ast.Tuple | ast.List) and all(node in tree.elts for node in inner)
    return Reason.NESTED_CONTAINER if flat else Reason.CONTAINER_OPERATION


TREE_RULES: tuple[Callable[[ast.expr, list[ast.AST], HardeningLimits], Reason | None], ...] = (
    tree_size,
    operations,
    containers,
)


# ---- rules on one node -----------------------------------------------------------------------------------------------

LETTER = re.compile("[A-Za-z]")
NAMES = frozenset({"pi", "oo"})
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
ALLOWED_NODES = (
    *(ast.BinOp, ast.UnaryOp, ast.Call, ast.Constant, ast.Name, ast.Tuple, ast.List),
    *(ast.operator, ast.unaryop, ast.expr_context),
)


def power_exponent(node: ast.AST, limits: HardeningLimits) -> Reason | None:
    """`9^9^9` is short to write and endless to build, so an exponent is a literal, and a small one: `9^999999`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)):
        return None
    exponent = _literal_number(node.right)
    if exponent is None:
        return Reason.DYNAMIC_POWER_EXPONENT
    return Reason.POWER_EXPONENT_TOO_LARGE if abs(exponent) > limits.max_power_exponent else None


def _literal_number(node: ast.AST) -> float | None:
    """The value of a number with at most signs before it."""
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        node = node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None


def operator(node: ast.AST, limits: HardeningLimits) -> Reason | None:
    """`4//2`"""
    if isinstance(node, ast.FloorDiv):
        return Reason.FLOOR_DIVISION
    other = isinstance(node, ast.operator) and not isinstance(node, ARITHMETIC)
    return Reason.UNSUPPORTED_SYNTAX if other else None


def call(node: ast.AST, limits: HardeningLimits) -> Reason | None:
    """`2(3)` and `x(y)` are products without a sign; of functions only `sqrt` of one argument is read."""
    if not isinstance(node, ast.Call):
        return None
    if not isinstance(node.func, ast.Name) or LETTER.fullmatch(node.func.id) or node.func.id in NAMES:
        return Reason.ATTRIBUTE_ACCESS if isinstance(node.func, ast.Attribute) else Reason.IMPLICIT_MULTIPLICATION
    one_argument = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
    return None if node.func.id == "sqrt" and one_argument else Reason.UNSUPPORTED_CALL


def access(node: ast.AST, limits: HardeningLimits) -> Reason | None:
    """`x.real`, `x[0]`"""
    if isinstance(node, ast.Attribute):
        return Reason.ATTRIBUTE_ACCESS
    return Reason.SUBSCRIPT_ACCESS if isinstance(node, ast.Subscript) else None


def name(node: ast.AST, limits: HardeningLimits) -> Reason | None:
    """`os`, `xy`, `True`. `sqrt` alone is no value either, but v1's grammar says so."""
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
        return Reason.UNSUPPORTED_SYNTAX if node.value is Ellipsis else Reason.UNSUPPORTED_NAME
    if not isinstance(node, ast.Name):
        return None
    return None if LETTER.fullmatch(node.id) or node.id in NAMES or node.id == "sqrt" else Reason.UNSUPPORTED_NAME


def kind(node: ast.AST, limits: HardeningLimits) -> Reason | None:
    """Everything that is not named above, and tuples that hold less than two values: `()`, `(1,)`."""
    if isinstance(node, ast.Tuple) and len(node.elts) < 2:
        return Reason.UNSUPPORTED_SYNTAX
    return None if isinstance(node, ALLOWED_NODES) else Reason.UNSUPPORTED_SYNTAX


NODE_RULES: tuple[Callable[[ast.AST, HardeningLimits], Reason | None], ...] = (
    power_exponent,
    operator,
    call,
    access,
    name,
    kind,
)
