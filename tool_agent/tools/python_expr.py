"""python_expr: numbers, operators and five functions.

Covered: the grammar of `veriward.tool_agent.expression`; exact, bounded, total.
Not covered: every other function, names and attributes, keyword arguments, anything that is no arithmetic. It is no
sandbox for Python: no Python is run.
"""

from __future__ import annotations

from veriward.tool_agent.arithmetic import evaluate
from veriward.tool_agent.expression import FUNCTIONS
from veriward.tool_agent.result import Refused
from veriward.tool_agent.tools.strict import STRICT_FUNCTIONS, evaluate_strictly


def python_expr(expression: str) -> int | float | Refused:
    """Compute an expression of numbers, + - * / // % **, !, round brackets and the functions comb(n, k), factorial(n),
    gcd(a, b, ...), round(x, ndigits) and sqrt(x). round goes half to even. ^ is power, 50% is 0.5.
    """
    return evaluate(expression, FUNCTIONS)


def strict_python_expr(expression: str) -> int | float | Refused:
    """Compute an expression of numbers, + - * / // % **, round brackets and the functions comb(n, k), factorial(n),
    gcd(a, b, ...), round(x, ndigits) and sqrt(x), in Python notation.
    """
    return evaluate_strictly(expression, STRICT_FUNCTIONS)
