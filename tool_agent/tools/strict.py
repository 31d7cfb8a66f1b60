"""The numeric tools under the `strict` profile: Python notation only, with Python's own numbers.

FROZEN. Runs are replayed under it, so no text may ever get another outcome than it has today; it shares no code with
the default profile, and changes go there.

The text is parsed to a tree by Python's parser, behind caps on its length, brackets and signs, and the tree is looked
at node by node before anything is computed. Nothing is compiled or run.

Covered: int and float numbers, `+ - * / // % **`, signs and round brackets; python_expr also `comb`, `factorial`,
`gcd`, `round` and `sqrt`. `/` and `sqrt` give a float, as in 12.0. An exponent is at most 64 and a whole number at
most 4,096 bits, looked at before it is computed.
Not covered: `!`, `^`, `×`, percent, thousands commas and all other human notation, which is refused.
"""

from __future__ import annotations

import ast
import math
import re
from typing import TypeAlias

from veriward.tool_agent.result import Category, Refused

Number: TypeAlias = int | float

MAX_CHARACTERS = 512
MAX_DEPTH = 32
MAX_NODES = 256
MAX_EXPONENT = 64
MAX_BITS = 4_096
MAX_NDIGITS = 100

STRICT_ARGUMENTS = {"comb": (2, 2), "factorial": (1, 1), "gcd": (2, 256), "round": (1, 2), "sqrt": (1, 1)}
STRICT_FUNCTIONS = frozenset(STRICT_ARGUMENTS)

TOKEN = re.compile(
    r"[ \t]+|(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)"
    r"(?:[eE][+-]?[0-9]+)?(?![A-Za-z_0-9.])"
    r"|[A-Za-z_][A-Za-z_0-9]*|[-+*/%(),.<>=!&|^~@:;\[\]{}]"
)
"""What reaches Python's parser: it warns on standard error about a number with a letter behind it and about escapes."""

BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


class _RefusedStrictly(Exception):  # noqa: N818  no error: how a refusal leaves the loops
    def __init__(self, category: Category, hint: str, position: int | None = None) -> None:
        super().__init__(category)
        self.record = Refused(category=category, hint=hint, position=position)


def evaluate_strictly(text: str, functions: frozenset[str] = frozenset()) -> Number | Refused:
    """The value of an expression in Python notation, as Python has it. Total."""
    try:
        nodes = _checked(_parsed(text), functions)
        return _final(_value_of(nodes))
    except _RefusedStrictly as refusal:
        return refusal.record
    except OverflowError:  # a whole number that is too large for a double met one
        return Refused(category=Category.OUT_OF_RANGE, hint="the result is too large for a float")


# ---- the tree --------------------------------------------------------------------------------------------------------


def _parsed(text: str) -> ast.expr:
    _refuse_by_sight(text)
    try:
        return ast.parse(text.strip(" \t"), mode="eval").body
    except (SyntaxError, ValueError):
        raise _RefusedStrictly(
            Category.SYNTAX, "no Python expression; there are numbers, + - * / // % ** and brackets"
        ) from None
    except (MemoryError, RecursionError):
        raise _RefusedStrictly(Category.TOO_DEEP, "too many parts in one another") from None


def _refuse_by_sight(text: str) -> None:
    """What must not reach the parser."""
    if len(text) > MAX_CHARACTERS:
        raise _RefusedStrictly(Category.TOO_LONG, f"at most {MAX_CHARACTERS} characters; this has {len(text):,}")
    if not text.strip():
        raise _RefusedStrictly(Category.EMPTY, "nothing to compute; write an expression such as 2 * (3 + 4)")
    depth = 0
    at = 0
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise _unread_sign(text, at)
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if depth > MAX_DEPTH:
            raise _RefusedStrictly(Category.TOO_DEEP, f"at most {MAX_DEPTH} brackets in one another", at)
        at = token.end()


def _unread_sign(text: str, at: int) -> _RefusedStrictly:
    if not text[at].isascii():
        return _RefusedStrictly(Category.NON_ASCII, f"write {text[at]!r} in ASCII, as Python has it", at)
    if text[at] in "'\"":
        return _RefusedStrictly(Category.DISALLOWED_LITERAL, "text is not read; write numbers", at)
    return _RefusedStrictly(Category.SYNTAX, f"not Python notation at character {at + 1}", at)


def _checked(root: ast.expr, functions: frozenset[str]) -> list[ast.expr]:
    """The nodes, operands before what is made from them; refused unless every one is allowed."""
    waiting = [root]
    nodes: list[ast.expr] = []
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if len(nodes) > MAX_NODES:
            raise _RefusedStrictly(Category.RESOURCE_LIMIT, f"at most {MAX_NODES} numbers and operators")
        waiting += _allowed_parts(node, functions)
    return nodes[::-1]


def _allowed_parts(node: ast.expr, functions: frozenset[str]) -> list[ast.expr]:
    """The operands of a node that is allowed, in order."""
    match node:
        case ast.Constant(value=value):
            if type(value) not in (int, float):
                raise _RefusedStrictly(Category.DISALLOWED_LITERAL, "only numbers are read", node.col_offset)
            if isinstance(value, float) and math.isinf(value):
                raise _RefusedStrictly(Category.OUT_OF_RANGE, "this number is too large for a float", node.col_offset)
            return []
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            return [operand]
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, BINARY):
            return [left, right]
        case ast.UnaryOp() | ast.BinOp():
            raise _RefusedStrictly(Category.DISALLOWED_OPERATOR, "there are + - * / // % **", node.col_offset)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            _check_call(node, name, functions, keywords)
            return arguments
        case ast.Name(id=name):
            raise _RefusedStrictly(Category.DISALLOWED_NAME, "names have no value", node.col_offset)
    raise _RefusedStrictly(Category.DISALLOWED_NODE, "only numbers, operators and brackets are read", node.col_offset)


def _check_call(node: ast.Call, name: str, functions: frozenset[str], keywords: list[ast.keyword]) -> None:
    if name not in functions:
        elsewhere = name in STRICT_FUNCTIONS
        hint = f"{name} is in the tool python_expr" if elsewhere else "there is no such function"
        raise _RefusedStrictly(Category.DISALLOWED_CALL, hint, node.col_offset)
    fewest, most = STRICT_ARGUMENTS[name]
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if keywords or starred or not fewest <= len(node.args) <= most:
        raise _RefusedStrictly(Category.DISALLOWED_CALL, f"{name} with these arguments is not read", node.col_offset)


# ---- the value -------------------------------------------------------------------------------------------------------


def _value_of(nodes: list[ast.expr]) -> Number:
    stack: list[Number] = []
    for node in nodes:
        match node:
            case ast.Constant(value=int() | float() as value):
                stack.append(value)
            case ast.UnaryOp(op=op):
                value = stack.pop()
                stack.append(-value if isinstance(op, ast.USub) else value)
            case ast.BinOp(op=op):
                right = stack.pop()
                stack.append(_bounded(_operated(op, stack.pop(), right)))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                values = [stack.pop() for _ in arguments]
                stack.append(_bounded(_applied(name, values[::-1])))
    return stack.pop()


def _operated(op: ast.operator, left: Number, right: Number) -> Number:
    if isinstance(op, ast.Pow):
        return _power(left, right)
    if isinstance(op, ast.Div | ast.FloorDiv | ast.Mod) and not right:
        raise _RefusedStrictly(Category.DIVISION_BY_ZERO, "the right side is 0")
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.FloorDiv():
            return left // right
        case _:
            return left % right


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > MAX_EXPONENT:
        raise _RefusedStrictly(Category.RESOURCE_LIMIT, f"an exponent is at most {MAX_EXPONENT}")
    if not base and exponent < 0:
        raise _RefusedStrictly(Category.DIVISION_BY_ZERO, "0 has no negative power")
    if base < 0 and exponent != int(exponent):
        raise _RefusedStrictly(Category.COMPLEX_RESULT, "a negative base with a fractional exponent is not real")
    if isinstance(base, int) and isinstance(exponent, int) and (abs(base).bit_length() - 1) * exponent >= MAX_BITS:
        raise _too_large()
    value: Number = base**exponent
    return value


def _applied(name: str, values: list[Number]) -> Number:
    first = values[0]
    if name == "sqrt":
        if first < 0:
            raise _RefusedStrictly(Category.DOMAIN_ERROR, "the root of a negative number is not real")
        return math.sqrt(first)
    if name == "round":
        return _rounded(values)
    whole = [value for value in values if isinstance(value, int)]
    if len(whole) < len(values):
        raise _RefusedStrictly(Category.DOMAIN_ERROR, f"{name} takes whole numbers only; / gives a float")
    if name == "gcd":
        return math.gcd(*whole)
    if min(whole) < 0:
        raise _RefusedStrictly(Category.DOMAIN_ERROR, f"{name} takes no negative number")
    return _factorial(whole[0]) if name == "factorial" else _comb(*whole)


def _rounded(values: list[Number]) -> Number:
    if len(values) == 1:
        return round(values[0])
    ndigits = values[1]
    if not isinstance(ndigits, int):
        raise _RefusedStrictly(Category.DOMAIN_ERROR, "round takes a whole number of digits")
    if abs(ndigits) > MAX_NDIGITS:
        raise _RefusedStrictly(Category.RESOURCE_LIMIT, f"round takes at most {MAX_NDIGITS} digits")
    return round(values[0], ndigits)


def _factorial(n: int) -> int:
    if n > MAX_BITS:  # n! has more than n bits from there on
        raise _too_large()
    return math.factorial(n)


def _comb(n: int, k: int) -> int:
    chosen = min(k, n - k)
    if chosen < 0:
        return 0
    # comb(n, k) is at least (n/k)**k, and at least 2**k for k up to n/2.
    if chosen * max(1, n.bit_length() - 1 - chosen.bit_length()) > MAX_BITS:
        raise _too_large()
    return math.comb(n, chosen)


def _too_large() -> _RefusedStrictly:
    return _RefusedStrictly(Category.RESOURCE_LIMIT, "more digits than are computed here")


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise _too_large()
    if isinstance(value, float) and not math.isfinite(value):
        raise _RefusedStrictly(Category.OUT_OF_RANGE, "the result is too large for a float")
    return value


def _final(value: Number) -> Number:
    """Zero has no sign."""
    return value or abs(value)
