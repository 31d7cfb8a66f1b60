"""From a call to its result: bounded attempts for faults of the machinery, one for everything else.

Covered: a tool's child that hangs or dies is tried again at most EXECUTOR_ATTEMPTS times in all, and then is a result
with category `timeout` or `crashed`; a refusal is an answer and never tried again; what the model is shown is short and
can be stored as UTF-8. Not covered: a plain tool that hangs, and a tool that raises, which is a bug and stops the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from veriward.tool_agent.arithmetic import show
from veriward.tool_agent.faults import NO_FAULTS, Action, FaultPlan
from veriward.tool_agent.result import TRANSIENT, Category, Envelope, Refused, ToolResult, Value

if TYPE_CHECKING:
    from veriward.tool_agent.call import CallRefusal, ToolCall
    from veriward.tool_agent.toolbox import Tool, Toolbox

EXECUTOR_ATTEMPTS = 3
"""Of one call, where the machinery fails. They are no corrections of the model."""

LONGEST_SHOWN = 4_096
"""Characters of a result that the model is shown."""

LONGEST_HINT = 300

NOTHING_FOUND = "no document matches; answer without it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A result, and what it took."""

    result: ToolResult
    attempts: int
    transient: tuple[Category, ...]
    """Faults of the machinery on the way, in order; where all attempts failed the last one is the result's category."""


def execute(
    call: ToolCall, toolbox: Toolbox, *, faults: FaultPlan = NO_FAULTS, problem: str | None = None
) -> Execution:
    """Run a call that was read against this toolbox.

    faults    visited at `executor.run` once an attempt: TIMEOUT (the attempt counts as timed out), KILL_WORKER (the
              tool's child is killed, if it has one, and the attempt counts as crashed), REFUSE (`resource_limit`)
    problem   id for the fault plan
    raises    whatever a tool raises, with its arguments: a bug
    """
    tool = toolbox.tools.get(call.tool)
    if tool is None:
        return Execution(result=unknown_tool(call.tool, toolbox, call.envelope), attempts=0, transient=())
    transient: list[Category] = []
    attempts = 0
    while attempts < EXECUTOR_ATTEMPTS:
        attempts += 1
        value = _attempt(tool, call, faults.at("executor.run", problem))
        if not (isinstance(value, Refused) and value.category in TRANSIENT):
            break
        transient.append(value.category)
    result = as_result(value, tool.name, call.envelope)
    return Execution(result=result, attempts=attempts, transient=tuple(transient))


def _attempt(tool: Tool, call: ToolCall, planned: Action | None) -> Value | Refused:
    match planned:
        case Action.TIMEOUT:
            return Refused(category=Category.TIMEOUT, hint="planned")
        case Action.REFUSE:
            return Refused(category=Category.RESOURCE_LIMIT, hint="planned")
        case Action.KILL_WORKER:
            tool.kill_worker()
            return Refused(category=Category.CRASHED, hint="planned")
    return tool.run(**call.arguments)


# ---- results ---------------------------------------------------------------------------------------------------------


def as_result(value: Value | Refused, tool: str | None, envelope: tuple[Envelope, ...] = ()) -> ToolResult:
    """The record of a value or of a refusal, with the text for the model."""
    if not isinstance(value, Refused):
        return ToolResult(ok=True, value=value, text=shown(value), category=None, tool=tool, envelope=envelope)
    hint = None if value.hint is None else _storable(value.hint)[:LONGEST_HINT]
    return ToolResult(
        ok=False,
        value=None,
        text=f"no result: {value.category}" + (f"\n{hint}" if hint else ""),
        category=value.category,
        hint=hint,
        tool=tool,
        envelope=envelope,
    )


def refused_call(refusal: CallRefusal) -> ToolResult:
    """The record of a text that is no call."""
    refused = Refused(category=refusal.category, hint=refusal.hint)
    return as_result(refused, refusal.tool, refusal.envelope)


def unknown_tool(name: str, toolbox: Toolbox, envelope: tuple[Envelope, ...] = ()) -> ToolResult:
    hint = f"the tools are {', '.join(toolbox.tools)}"
    return as_result(Refused(category=Category.UNKNOWN_TOOL, hint=hint), None, envelope)


def shown(value: Value) -> str:
    """A value as the model is shown it; a long one is cut, and says so."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, int | float):
        text = show(value)
    else:
        text = "\n".join(map(_shown_record, value)) or NOTHING_FOUND
    text = _storable(text)
    if len(text) > LONGEST_SHOWN:
        note = f"… (cut here; {len(text):,} characters in all)"
        text = text[: LONGEST_SHOWN - len(note)] + note
    return text


def _shown_record(record: Mapping[str, object]) -> str:
    if record.keys() == {"id", "text", "overlap"}:
        return f"[{record['id']}] {record['text']} (overlap {record['overlap']})"
    return json.dumps(dict(record), ensure_ascii=False)


def _storable(text: str) -> str:
    """Half surrogates as escapes: no state file could hold them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
