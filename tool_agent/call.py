"""A model's text to one tool call, or the category why not. Three readers, chosen by name and never guessed.

native   the whole text is `{"tool": …, "arguments": {…}}`, possibly in envelopes, which are removed and recorded: a
         leading closed <think> block, one ``` or ```json fence, one <tool_call>, inside which `name` may stand for
         `tool`.
hermes   one <tool_call>{"name": …, "arguments": {…}}</tool_call> anywhere in the text, as chat templates have it; what
         stands around it is left alone, a leading <think> block is removed and recorded.
openai   JSON of the chat API: the list `tool_calls` with one entry, that entry, or the message that holds the list.
         `function.arguments` is a JSON string. What else a server writes beside `name` and `arguments` is left alone.

Order of checks: size, envelope, depth, JSON, the two keys and their types, the tool's name, the arguments' keys and
types against the tool's schema, UTF-8. What the arguments mean is the tool's to check.

Covered: total, and linear in the text, for every reader. Not covered: nothing is repaired; single quotes, trailing
commas and comments are `not_json`, and other call formats (XML-like ones) are no call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from veriward.tool_agent.result import Category, Envelope
from veriward.tool_agent.strict_json import (
    BLANKS,
    MAX_DEPTH,
    RefusedText,
    bracketed,
    has_lone_surrogate,
    quoted,
    read_value,
)

READERS = ("native", "hermes", "openai")

MAX_CHARACTERS = 65_536
"""Of the text that holds a call."""
MAX_TRIES = 64
"""Places of a text that is no call where an object is looked for, to tell extra text from none."""

NATIVE_FORM = '{"tool": "<name>", "arguments": {…}}'
HERMES_FORM = '<tool_call>{"name": "<name>", "arguments": {…}}</tool_call>'
OPENAI_FORM = "a function call of the API, with name and arguments"


class Described(Protocol):
    """What a reader has to know of a tool."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that fits its tool's schema."""

    tool: str
    arguments: dict[str, Any]
    envelope: tuple[Envelope, ...] = ()
    """What stood around it, from the outside in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRefusal:
    """Why a text is no call."""

    category: Category
    hint: str
    """What the model can do about it; only from the text itself and the tools' schemas."""
    tool: str | None = None
    """The tool that was meant; None where none was read or none of that name exists."""
    envelope: tuple[Envelope, ...] = ()


def read_call(text: str, reader: str, tools: Mapping[str, Described]) -> ToolCall | CallRefusal:
    """The call in a text.

    reader   one of `READERS`
    tools    by name, those that may be called
    raises   ValueError for an unknown reader; nothing for any text
    """
    read = _READ.get(reader)
    if read is None:
        raise ValueError(f"unknown reader {reader!r}; wanted one of {', '.join(READERS)}")
    envelope: list[Envelope] = []
    tool: str | None = None
    try:
        if len(text) > MAX_CHARACTERS:
            raise RefusedText(Category.TOO_LONG, f"{len(text):,} characters; a call has at most {MAX_CHARACTERS:,}")
        named = read(text, envelope)
        if named.tool not in tools:
            hint = f"there is no tool {quoted(named.tool)}; the tools are {', '.join(tools)}"
            raise RefusedText(Category.UNKNOWN_TOOL, hint)
        tool = named.tool
        _check_arguments(named.arguments, tools[tool].parameters, tool)
        if has_lone_surrogate(text) or _holds_lone_surrogate(named.arguments):
            raise RefusedText(Category.INVALID_UNICODE, "half a surrogate pair is no character; leave it out")
    except RefusedText as refused:
        return CallRefusal(category=refused.category, hint=refused.hint, tool=tool, envelope=tuple(envelope))
    return ToolCall(tool=tool, arguments=named.arguments, envelope=tuple(envelope))


class _Named(NamedTuple):
    """The two values of a call, of the right types."""

    tool: str
    arguments: dict[str, Any]


# ---- the three readers -----------------------------------------------------------------------------------------------


def _native(text: str, envelope: list[Envelope]) -> _Named:
    body = _without_think(text, envelope)
    for _ in range(2):
        body = _without_fence_or_tag(body, envelope)
    value = _only_value(body, NATIVE_FORM)
    renamed = isinstance(value, dict) and Envelope.TOOL_CALL in envelope and "name" in value and "tool" not in value
    return _named(value, "name" if renamed else "tool", NATIVE_FORM)


def _hermes(text: str, envelope: list[Envelope]) -> _Named:
    body = _without_think(text, envelope)
    start, end = body.find("<tool_call>"), body.rfind("</tool_call>")
    if start < 0:
        raise RefusedText(Category.NOT_JSON, f"no call; write {HERMES_FORM}")
    if end < start:
        raise RefusedText(Category.NOT_JSON, "the <tool_call> is never closed")
    envelope.append(Envelope.TOOL_CALL)
    value = _only_value(body[start + len("<tool_call>") : end].strip(BLANKS), HERMES_FORM)
    return _named(value, "name", HERMES_FORM)


def _openai(text: str, _envelope: list[Envelope]) -> _Named:
    value = _only_value(text.strip(BLANKS), OPENAI_FORM)
    if isinstance(value, dict) and "tool_calls" in value:
        value = value["tool_calls"]
        if value is None:
            raise RefusedText(Category.NOT_JSON, "the message holds no call")
        if not isinstance(value, list):
            raise RefusedText(Category.WRONG_TYPE, "tool_calls is a list")
    if isinstance(value, list):
        if len(value) != 1:
            category = Category.MULTIPLE_OBJECTS if value else Category.NOT_JSON
            raise RefusedText(category, f"{len(value)} calls; send exactly one")
        value = value[0]
    function = _of_type(value, "the call", dict).get("function")
    if function is None:
        raise RefusedText(Category.MISSING_KEY, "the call has no function")
    kept = {key: part for key, part in _of_type(function, "function", dict).items() if key in ("name", "arguments")}
    if isinstance(kept.get("arguments"), str):
        kept["arguments"] = _only_value(kept["arguments"].strip(BLANKS), "the arguments as one JSON object")
    elif "arguments" in kept:
        raise RefusedText(Category.WRONG_TYPE, "arguments is a JSON object written as a string")
    return _named(kept, "name", OPENAI_FORM)


_READ = {"native": _native, "hermes": _hermes, "openai": _openai}


# ---- envelopes -------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"```(?:json)?(?=[ \t\r\n{])")


def _without_think(text: str, envelope: list[Envelope]) -> str:
    body = text.strip(BLANKS)
    if not body.startswith("<think>"):
        return body
    _, closed, rest = body.partition("</think>")
    if not closed:
        raise RefusedText(Category.NOT_JSON, "the <think> block is never closed, and no call stands behind it")
    envelope.append(Envelope.THINK)
    return rest.strip(BLANKS)


def _without_fence_or_tag(body: str, envelope: list[Envelope]) -> str:
    """The body without its outermost fence or <tool_call>, each removed once at most."""
    fence = _FENCE.match(body)
    if fence and body.endswith("```") and len(body) >= fence.end() + 3 and Envelope.FENCE not in envelope:
        envelope.append(Envelope.FENCE)
        return body[fence.end() : -3].strip(BLANKS)
    tagged = body.startswith("<tool_call>") and body.endswith("</tool_call>")
    if tagged and Envelope.TOOL_CALL not in envelope:
        envelope.append(Envelope.TOOL_CALL)
        return body[len("<tool_call>") : -len("</tool_call>")].strip(BLANKS)
    return body


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _only_value(body: str, form: str) -> Any:
    """The JSON value that is the whole body."""
    try:
        reading = read_value(body)
    except RefusedText as refused:
        raise _why_no_value(body, refused, form) from None
    if reading.end < len(body):
        objects = isinstance(reading.value, dict) + _count_objects(body, reading.end)
        raise _beside_others(objects) or RefusedText(Category.NOT_JSON, "text behind a JSON value", reading.end)
    if reading.fault is not None:
        raise reading.fault
    return reading.value


def _why_no_value(body: str, refused: RefusedText, form: str) -> RefusedText:
    if body[:1] not in ("{", "["):
        return _beside_others(_count_objects(body, 0)) or RefusedText(Category.NOT_JSON, f"no call; write {form}")
    end, depth = bracketed(body, 0)
    if depth > MAX_DEPTH:
        return RefusedText(Category.TOO_DEEP, f"at most {MAX_DEPTH} brackets in one another")
    return _beside_others(_count_objects(body, end)) or refused


def _beside_others(objects: int) -> RefusedText | None:
    """What is wrong with a text that is not one JSON value, if objects can be read in it."""
    if objects > 1:
        return RefusedText(Category.MULTIPLE_OBJECTS, "more than one JSON object; send exactly one call")
    if objects == 1:
        return RefusedText(Category.EXTRA_TEXT, "there is text beside the JSON object; send the object alone")
    return None


def _count_objects(body: str, at: int) -> int:
    """Objects that can be read from there on, up to 2. What stands in a broken one does not count."""
    found = 0
    for _ in range(MAX_TRIES):
        start = body.find("{", at)
        if start < 0 or found == 2:
            break
        at, _depth = bracketed(body, start)
        try:
            found += read_value(body, start).end == at
        except RefusedText:
            continue
    return found


# ---- keys and types --------------------------------------------------------------------------------------------------


def _named(value: Any, name_key: str, form: str) -> _Named:
    if not isinstance(value, dict):
        raise RefusedText(Category.WRONG_TYPE, f"a call is one object, not a list or a bare value: {form}")
    _check_keys(value, (name_key, "arguments"), (name_key, "arguments"), f"a call is {form}")
    tool = _of_type(value[name_key], name_key, str)
    return _Named(tool, _of_type(value["arguments"], "arguments", dict))


def _check_keys(value: dict[str, Any], required: Any, allowed: Any, form: str) -> None:
    missing = [key for key in required if key not in value]
    extra = [key for key in value if key not in allowed]
    if missing:
        hint = f"{quoted(missing[0])} is missing" + (f", {quoted(extra[0])} is not read" if extra else "")
        raise RefusedText(Category.MISSING_KEY, f"{hint}; {form}")
    if extra:
        raise RefusedText(Category.EXTRA_KEY, f"{quoted(extra[0])} is not read; {form}")


_SAID: dict[type, str] = {str: "a string", dict: "an object", list: "a list"}


def _of_type(value: Any, what: str, wanted: type) -> Any:
    if not isinstance(value, wanted):
        raise RefusedText(Category.WRONG_TYPE, f"{what} is {_SAID[wanted]}")
    return value


def _check_arguments(arguments: dict[str, Any], schema: Mapping[str, Any], tool: str) -> None:
    """Against the subset of JSON schema that tools have: typed properties, lists of them, enum, required."""
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    form = f"{tool} takes {', '.join(properties) or 'no argument'}"
    _check_keys(arguments, schema.get("required", ()), properties, form)
    for name, value in arguments.items():
        _check_argument(value, properties[name], name)


def _check_argument(value: Any, schema: Mapping[str, Any], name: str) -> None:
    wanted = schema["type"]
    if not _is(value, wanted):
        raise RefusedText(Category.WRONG_TYPE, f"{name} is {_WANTED[wanted]}")
    if isinstance(value, float) and not math.isfinite(value):
        raise RefusedText(Category.NON_FINITE, f"{name} is too large a number")
    if "enum" in schema and value not in schema["enum"]:
        raise RefusedText(Category.WRONG_TYPE, f"{name} is one of {', '.join(map(str, schema['enum']))}")
    if wanted == "array":
        for item in value:
            _check_argument(item, schema["items"], f"each of {name}")


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    return isinstance(value, _PYTHON[wanted])


_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
}
_WANTED = {
    "string": "a string in double quotes",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list in square brackets",
}


def _holds_lone_surrogate(arguments: dict[str, Any]) -> bool:
    values = [part for value in arguments.values() for part in (value if isinstance(value, list) else [value])]
    return any(isinstance(part, str) and has_lone_surrogate(part) for part in values)
