"""A row as text that proves itself whole: JSON whose last key, `checksum`, is SHA-256 of all that stands before it.

The checksum is of the bytes as they are stored, so that a row is checked without being read as JSON, and written with
one pass over it. A file that was printed anew by another program counts as damaged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection
from json.encoder import encode_basestring as quoted
from typing import Any

Row = dict[str, Any]
"""JSON-safe, with at least "problem": {"id": str, …}, "phase": str and "fingerprint": str."""

CHECKSUM = "checksum"
SEAL = re.compile(rb',\s*"checksum": ?"([0-9a-f]{64})"\s*\}\s*\Z')
SEAL_BYTES = 100
"""What a seal is shorter than."""

HIDDEN = re.compile("[\x80-\x9f\u2028-\u202e\u2066-\u2069]")
"""Signs that would steer the terminal of whoever looks at a file."""


def printer(item: str, key: str) -> Callable[[object], str]:
    """Prints JSON on one line, with these separators.

    `JSONEncoder.encode` makes itself a new encoder in C for each value, at the cost of printing a small one; so that
    encoder is made once, where Python has it. ValueError for nan and infinity.
    """
    whole = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(item, key))
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return whole.encode
    parts = make(None, whole.default, quoted, None, key, item, False, False, False)
    return lambda value: "".join(parts(value, 0))


compact = printer(",", ":")
on_one_line = printer(", ", ": ")


def pretty(record: dict[str, Any], line: str = "\n") -> str:
    """JSON for the eye: a line for each item, also of records in a list; any other value on the line of its name."""
    inner, below = f"{line} ", f"{line}  "
    items = []
    for key, value in record.items():
        kind = type(value)
        if kind is str:
            text = quoted(value)
        elif kind is list and value and type(value[0]) is dict:
            several = [pretty(one, below) if type(one) is dict else on_one_line(one) for one in value]
            text = f"[{below}{f',{below}'.join(several)}{inner}]"
        else:
            text = on_one_line(value)
        items.append(f"{quoted(key)}: {text}")
    return f"{{{f',{inner}'.join(items)}}}"


def sealed(text: str) -> bytes:
    """A printed row with its checksum. UnicodeEncodeError, a ValueError, for a lone surrogate."""
    if not text.isascii():
        text = HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
    body = text[:-1].encode()
    start, end = (",\n ", "}\n") if "\n" in text else (",", "}")
    return body + f'{start}"checksum": "{hashlib.sha256(body).hexdigest()}"{end}'.encode("ascii")


def opened(content: bytes) -> Row | str:
    """The row in stored bytes, without its checksum; or why there is none."""
    if not content:
        return "empty"
    seal = SEAL.search(content, max(0, len(content) - SEAL_BYTES))
    if seal is None:
        return "torn, or no state"
    if hashlib.sha256(content[: seal.start()]).hexdigest() != seal[1].decode("ascii"):
        return "the checksum does not fit"
    try:
        row = json.loads(content)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    if not isinstance(row, dict):
        return f"a {type(row).__name__}, and no state"
    del row[CHECKSUM]
    return row


def fault_of_row(row: Row, fingerprints: Collection[str]) -> str:
    """What keeps a row from being a state of this run; empty if nothing does."""
    problem = row.get("problem")
    if not isinstance(problem, dict) or not isinstance(problem.get("id"), str):
        return "no problem id"
    if not isinstance(row.get("phase"), str):
        return "no phase"
    if row.get("fingerprint") not in fingerprints:
        return f"fingerprint {row.get('fingerprint')!r} of another run"
    return ""
