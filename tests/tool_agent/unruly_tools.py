"""Tools that hang, die, raise and refuse; children import them from here."""

import os
import time

from veriward.tool_agent.result import Category, Refused


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def hang(seconds: float) -> str:
    """Sleeps."""
    time.sleep(seconds)
    return "awake"


def hang_once(mark: str) -> str:
    """Sleeps for ever, unless its mark is there already."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "awake"
    time.sleep(60)
    return "never"


def die(code: int) -> int:
    """Ends its process."""
    os._exit(code)


def fail(text: str) -> str:
    """Has a bug."""
    raise RuntimeError("a bug")


def refuse(text: str) -> Refused:
    """Refuses."""
    return Refused(category=Category.DOMAIN_ERROR, hint="not this", position=3)


def records(count: int) -> list[dict[str, object]]:
    """Records."""
    return [{"id": str(number), "text": "word", "overlap": 1} for number in range(count)]


def decide_nothing(item: object) -> object:
    """Ends its process in place of a verdict."""
    os._exit(3)
