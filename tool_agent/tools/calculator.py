"""calculator: numbers and operators.

Covered: the grammar of `veriward.tool_agent.expression` without its functions; exact, bounded, total.
Not covered: the functions, which are python_expr's; names; anything that is no arithmetic.
"""

from __future__ import annotations

from veriward.tool_agent.arithmetic import evaluate
from veriward.tool_agent.result import Refused
from veriward.tool_agent.tools.strict import evaluate_strictly


def calculator(expression: str) -> int | float | Refused:
    """Compute an expression of numbers, + - * / // % **, ! and round brackets. ^ is power, 50% is 0.5."""
    return evaluate(expression)


def strict_calculator(expression: str) -> int | float | Refused:
    """Compute an expression of numbers, + - * / // % ** and round brackets, in Python notation."""
    return evaluate_strictly(expression)
