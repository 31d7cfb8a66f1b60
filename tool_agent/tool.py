"""A tool: a typed function that a model may call, with the JSON schema derived from its signature.

    def area(width: float, height: float) -> float:
        '''Area of a rectangle.'''
        return width * height

    as_tool(area)                        # plain: runs in this process
    as_tool(area, deadline_s=2.0)        # runs in a supervised child that is killed at the deadline

Covered: what a tool returns is a value that can be stored and shown, or a refusal; in a child, a hang and a death are
refusals too. Not covered: a plain tool that never returns hangs its caller; nothing here limits what a tool may read,
write or send, so a tool that hands a model's text to something dangerous is dangerous.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from veriward.tool_agent.faults import SIGKILL
from veriward.tool_agent.result import Category, Refused, Value

if TYPE_CHECKING:
    from veriward.rewards.worker_pool import WorkerPool

Schema: TypeAlias = dict[str, Any]
Function: TypeAlias = Callable[..., Value | Refused]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z", re.ASCII)
"""What chat APIs take for the name of a function."""

LARGEST_INTEGER_BITS = 4_096
"""Of a whole number that a tool returns; the numeric tools have the same cap on what they compute."""

JSON_TYPES: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}

HALF_SURROGATE = re.compile("[\ud800-\udfff]")

NO_VALUES = (type(None), bytes, dict, set, tuple, complex)
"""What a tool cannot return, where its signature says so."""

WANTED = "str, int, float, bool, Literal of texts, or list of one of these"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model may call; made by `as_tool`."""

    name: str
    description: str
    """What the model is told it gives."""
    parameters: Schema
    """JSON schema of the arguments."""
    deadline_s: float | None
    """Seconds after which the child that runs it is killed; None: it runs in this process."""
    settings: Mapping[str, object]
    """JSON-safe: what decides its results beside its schema."""
    example: Mapping[str, object]
    """Arguments of a call that a model is shown."""
    _call: Callable[..., Value | Refused] = field(repr=False)
    _pool: WorkerPool | None = field(default=None, repr=False)

    def run(self, /, **arguments: Any) -> Value | Refused:
        """The value, checked, or a refusal; `timeout` and `crashed` where a child did not answer.

        A bug of the tool is raised with its arguments: as it is, or as WorkerError out of a child.
        """
        if self._pool is not None:
            return _run_in_child(self.name, self._pool, arguments)
        try:
            return checked(self.name, self._call(**arguments))
        except Exception as bug:
            _say_where(bug, self.name, arguments)
            raise

    def kill_worker(self) -> None:
        """Kill the child, as a drill does; nothing where there is none. The next call has a fresh one."""
        for pid in self._pool.pids() if self._pool is not None else ():
            os.kill(pid, SIGKILL)

    def to_schema(self) -> Schema:
        """The tool as chat APIs and chat templates take it."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }


def as_tool(
    function: Function,
    *,
    name: str | None = None,
    deadline_s: float | None = None,
    memory_mb: int | None = 1024,
    settings: Mapping[str, object] | None = None,
    example: Mapping[str, object] | None = None,
) -> Tool:
    """The tool that calls a function.

    function     typed; the first paragraph of its docstring is the description. It returns a value, or Refused
    name         None: the function's own
    deadline_s   run it in a child process that is killed after so many seconds. The child imports the function, so it
                 stands at the top of a module; arguments and results cross as JSON
    memory_mb    address space of that child in MiB; None: no limit
    settings     JSON-safe, what decides the results beside the function, as the hash of its documents
    example      arguments of a call, for the prompt of models whose template shows no tools; small models copy it.
                 None: a placeholder for each argument
    raises       ValueError naming what a schema cannot be made of
    """
    named = str(name or getattr(function, "__name__", ""))
    if not NAME.match(named):
        raise ValueError(f"tool {named!r}: wanted a name of at most 64 ASCII letters, digits, _ and -; pass name=")
    paragraph = (inspect.getdoc(function) or "").strip().split("\n\n")[0]
    if not paragraph:
        raise ValueError(f"tool {named}: no docstring; its first paragraph tells the model what the tool gives")
    pool = None if deadline_s is None else _pool(named, function, deadline_s, memory_mb)
    parameters = parameters_of(function, named)
    returned = _types_of(function, named).get("return", object)
    if get_origin(returned) is Annotated:
        returned = get_args(returned)[0]
    if returned in NO_VALUES or get_origin(returned) in NO_VALUES:
        raise ValueError(f"tool {named}: returns {returned}; wanted a number, a text, a list of records, or Refused")
    shown = {argument: f"<{argument}>" for argument in parameters["properties"]} if example is None else dict(example)
    if unknown := sorted(shown.keys() - parameters["properties"].keys()):
        raise ValueError(f"tool {named}: the example has {unknown[0]!r}, which is no argument; take it out")
    return Tool(
        name=named,
        description=" ".join(paragraph.split()),
        parameters=parameters,
        example=shown,
        deadline_s=deadline_s,
        settings={**_code_of(function), **(settings or {})},
        _call=function,
        _pool=pool,
    )


# ---- schema ----------------------------------------------------------------------------------------------------------


def parameters_of(function: Callable[..., Any], name: str) -> Schema:
    """JSON schema of a function's arguments; ValueError naming the parameter that has none."""
    types = _types_of(function, name)
    properties: Schema = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        where = f"tool {name}, parameter {parameter.name}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f"{where}: a model names its arguments; wanted no *, ** and no positional-only parameter")
        if parameter.name not in types:
            raise ValueError(f"{where}: no type; wanted {WANTED}")
        schema = _schema_of(types[parameter.name], where)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            schema["default"] = _default_of(parameter.default, where)
        properties[parameter.name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _types_of(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """Types by parameter, and by `return`: one at a time, so that the one that cannot be read is named."""
    names = getattr(inspect.unwrap(function), "__globals__", {})
    types: dict[str, Any] = {}
    for parameter, annotation in getattr(function, "__annotations__", {}).items():
        one = SimpleNamespace(__annotations__={parameter: annotation})
        try:
            types.update(get_type_hints(one, names, include_extras=True))
        except (NameError, AttributeError, TypeError, SyntaxError, ValueError, LookupError) as error:
            what = "the returned value" if parameter == "return" else f"parameter {parameter}"
            raise ValueError(
                f"tool {name}, {what}: the type {annotation!r} cannot be read: {_one_line(error)}; "
                "import or define it at the top of the function's module"
            ) from error
    return types


def _default_of(default: Any, where: str) -> Any:
    try:
        text = json.dumps(default, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{where}: the default {_one_line(repr(default))} is no JSON value: {_one_line(error)}; wanted {WANTED}"
        ) from error
    return json.loads(text)


def _one_line(said: object) -> str:
    text = " ".join(str(said).split())
    return text if len(text) <= 100 else f"{text[:99]}…"


def _schema_of(annotation: Any, where: str) -> Schema:
    origin, inner = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and annotation in JSON_TYPES:
        return {"type": JSON_TYPES[annotation]}
    if origin is Annotated:
        texts = [extra for extra in inner[1:] if isinstance(extra, str)]
        return {**_schema_of(inner[0], where), **({"description": texts[0]} if texts else {})}
    if origin is Literal and all(isinstance(choice, str) for choice in inner):
        return {"type": "string", "enum": list(inner)}
    if origin is list and inner:
        items = _schema_of(inner[0], where)
        if items["type"] != "array":
            return {"type": "array", "items": items}
    raise ValueError(f"{where}: no JSON schema for {annotation!r}; wanted {WANTED}")


# ---- results ---------------------------------------------------------------------------------------------------------


def checked(name: str, value: object) -> Value | Refused:
    """What a tool returned, as it can be stored: of Python's own types. TypeError for what is no value."""
    if isinstance(value, Refused):
        return _checked_refusal(name, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return Refused(category=Category.OUT_OF_RANGE, hint="the result is no finite number")
    if isinstance(value, int) and value.bit_length() > LARGEST_INTEGER_BITS:
        return Refused(category=Category.RESOURCE_LIMIT, hint="the result has too many digits")
    if isinstance(value, str):
        return _escaped(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple) and all(isinstance(record, Mapping) for record in value):
        return _checked_records(name, value)
    raise TypeError(
        f"tool {name} returned {type(value).__name__}; wanted int, float, str, bool, a list of records, or Refused"
    )


def _checked_refusal(name: str, refused: Refused) -> Refused:
    category, hint, position = refused.category, refused.hint, refused.position
    if category not in list(Category):
        raise TypeError(f"tool {name} refused with category {category!r}; wanted one of {', '.join(Category)}")
    if not isinstance(hint, str | None):
        raise TypeError(f"tool {name} refused with hint {hint!r}; wanted a text, or None")
    if not isinstance(position, int | None):
        raise TypeError(f"tool {name} refused with position {position!r}; wanted an index, or None")
    return Refused(category=Category(category), hint=None if hint is None else _escaped(hint), position=position)


def _checked_records(name: str, records: Sequence[Mapping[str, object]]) -> Value:
    """As they will be read back from a state, so that a tool's records do not change when a run goes on."""
    try:
        text = json.dumps(records, ensure_ascii=False, allow_nan=False, default=_as_dict)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"tool {name} returned records that no state can hold: {_one_line(error)}; "
            "wanted texts, finite numbers, true, false, None, and lists and records of these"
        ) from error
    stored: Value = json.loads(HALF_SURROGATE.sub(lambda half: f"\\\\u{ord(half[0]):04x}", text))
    return stored


def _as_dict(part: object) -> dict[Any, Any]:
    if isinstance(part, Mapping):
        return dict(part)
    raise TypeError(f"{type(part).__name__} is no JSON value")


def _escaped(text: str) -> str:
    """Half surrogates as escapes: no state could hold them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _say_where(bug: Exception, name: str, arguments: Mapping[str, Any]) -> None:
    shown = repr(dict(arguments))
    bug.add_note(f"raised by tool {name} on {shown if len(shown) <= 2_000 else shown[:2_000] + '…'}")


def _code_of(function: Callable[..., Any]) -> dict[str, object]:
    """Hash of the file that a tool of another package stands in: its code decides its results."""
    module = getattr(function, "__module__", None) or ""
    source = getattr(sys.modules.get(module), "__file__", None)
    if module.split(".")[0] == "veriward" or source is None or not Path(source).is_file():
        return {}
    return {"code": hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16]}


# ---- in a child ------------------------------------------------------------------------------------------------------


def _pool(name: str, function: Callable[..., Any], deadline_s: float, memory_mb: int | None) -> WorkerPool:
    from veriward.rewards.worker_pool import WorkerPool

    module, path = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if module == "__main__" or getattr(sys.modules.get(module), path, None) is not function:
        raise ValueError(
            f"tool {name}: a child process imports its function, and finds no {path} in {module}; "
            "put it at the top of a module of its own, or leave deadline_s out"
        )
    setup = {"module": module, "function": path}
    return WorkerPool(f"{__name__}:in_child", deadline_s=deadline_s, memory_mb=memory_mb, setup=setup)


def in_child(module: str, function: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a child runs: arguments in, a value or a refusal out, as JSON."""
    return functools.partial(_packed, function, getattr(importlib.import_module(module), function))


def _packed(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    value = checked(name, function(**arguments))
    if isinstance(value, Refused):
        return {"category": value.category, "hint": value.hint, "position": value.position}
    return {"value": value}


def _run_in_child(name: str, pool: WorkerPool, arguments: dict[str, Any]) -> Value | Refused:
    from veriward.rewards.worker_pool import Lost

    (result,) = pool.run([arguments])
    if isinstance(result, Lost):
        return Refused(category=Category(result.outcome.value), hint=result.detail)
    if "value" in result.value:
        value: Value = result.value["value"]
        return value
    return Refused(**{**result.value, "category": Category(result.value["category"])})
