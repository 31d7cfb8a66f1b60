"""From a trainer's completion to the text in which an answer may stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Completion = str | Sequence[Mapping[str, Any]]
"""TRL's completion: plain text, or a list of chat messages."""

REASONING_PARTS = frozenset({"thinking", "reasoning"})
"""Types of content parts that are not addressed to the reader."""

REASONING_KEYS = ("reasoning", "thinking")
"""Keys beside `reasoning_content` whose text is reasoning; what else stands under them, as a switch, is none."""


def response_text(completion: Completion) -> str:
    """The text that the model addressed to its reader.

    completion   text; or chat messages, of which the last must be the assistant's: then its content,
                 a string or a list of parts whose texts are joined. A conversation that ends with a tool's
                 message, or with a call that was never answered, has no response: the text is empty.
    raises       TypeError if the value is neither
    """
    message = _last_message(completion)
    if isinstance(message, str):
        return message
    return _content_text(message.get("content")) if message.get("role") == "assistant" else ""


def reasoning_text(completion: Completion) -> str:
    """What a chat template or a server set apart as reasoning: never a source of the answer."""
    message = _last_message(completion)
    if isinstance(message, str):
        return ""
    content = message.get("content")
    parts = [] if content is None or isinstance(content, str) else [part for part in content if _is_reasoning(part)]
    texts = [value for key in REASONING_KEYS if isinstance(value := message.get(key), str)]
    return "".join([_content_text(message.get("reasoning_content")), *texts, *map(_part_text, parts)])


def _last_message(completion: object) -> str | Mapping[str, Any]:
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, Sequence) or isinstance(completion, bytes):
        raise TypeError(f"a completion is a text or a list of messages, got {type(completion).__name__}")
    message = completion[-1] if completion else {}
    if not isinstance(message, Mapping):
        raise TypeError(f"a message is a mapping with role and content, got {type(message).__name__}")
    return message


def _content_text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        return "".join(_part_text(part) for part in content if not _is_reasoning(part))
    raise TypeError(f"the content of a message is a text, a list of parts or None, got {type(content).__name__}")


def _is_reasoning(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in REASONING_PARTS


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        text = part.get("text", part.get("thinking"))
        return text if isinstance(text, str) else ""
    raise TypeError(f"a part of a message is a text or a mapping, got {type(part).__name__}")
