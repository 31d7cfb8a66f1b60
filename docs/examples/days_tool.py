"""A tool of your own: how many days lie between two dates."""

from datetime import date
from typing import Annotated

from veriward.tool_agent import Category, Refused, as_tool

Day = Annotated[str, "a date, as 2025-03-14"]


def days_between(first: Day, second: Day) -> int | Refused:
    """Number of days from one date to another; negative where the second is the earlier one."""
    try:
        return (date.fromisoformat(second) - date.fromisoformat(first)).days
    except ValueError:
        return Refused(category=Category.SYNTAX, hint="write both dates as 2025-03-14")


DAYS = as_tool(days_between)
