"""From a response to the answer in it, under contracts v1 and v2.

The last `\\boxed` decides. Without a complete one, the last recognisable number of the visible
text is taken, so that a right sum is still seen to be right; the format is then not valid.
"""

from __future__ import annotations

import re

from veriward.rewards.verdict import Extraction

BOX_MARKER = r"\boxed"

SPECIAL_TOKEN = re.compile(
    r"<[|｜][^<>|｜]{1,60}[|｜]>|</?s>|<(?:pad|eos|bos|unk|mask)>|\[(?:PAD|EOS|BOS|UNK|CLS|SEP|MASK)\]"
    r"|[<\[](?:extra_id_|unused_?|SPECIAL_|reserved_)[A-Za-z0-9_]{1,30}[>\]]"
)
"""Markers of tokenizers that can be left in decoded text: no part of what a reader sees."""

NUMBER = re.compile(
    r"(?:(?<![\w.)}\]])-)?"  # a minus is a sign unless something stands before it to be subtracted from
    r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![\w.])\.[0-9]+)"  # 12, 1,000, 2.50, .5
    r"(?:[eE][+-]?[0-9]+(?!\w)|/[0-9]+)?"  # 1e5, 3/4
)


def extract(response: str) -> Extraction:
    """The candidate of a response: its last box, else its last number.

    A last `\\boxed` that never closes, or has no brace behind it, gives no box, even after an
    earlier complete one. Braces are counted plainly, escaped ones too.
    """
    span = last_box(response)
    if span is not None:
        return Extraction(candidate=response[slice(*span)], how="boxed", span=span, format_valid=True)
    span = last_number(response)
    if span is not None:
        return Extraction(candidate=response[slice(*span)], how="last_number", span=span, format_valid=False)
    return Extraction(candidate=None, how="none", span=None, format_valid=False)


def last_box(text: str) -> tuple[int, int] | None:
    """Start and end of the content of the last `\\boxed{…}`, or None if that one is not complete."""
    marker = text.rfind(BOX_MARKER)
    if marker < 0:
        return None
    start = marker + len(BOX_MARKER)
    while start < len(text) and text[start].isspace():
        start += 1
    if not text.startswith("{", start):
        return None
    depth = 0
    for brace in re.finditer("[{}]", text[start:]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return start + 1, start + brace.start()
    return None


def last_number(text: str) -> tuple[int, int] | None:
    """Start and end of the last number of the visible text; special tokens hold no number."""
    visible = SPECIAL_TOKEN.sub(lambda token: " " * len(token.group()), text)
    span = None
    for match in NUMBER.finditer(visible):
        span = match.span()
    return span
