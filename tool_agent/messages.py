"""Every text that the model sees, by reader. No function here takes a reference, so none of the texts can hold one.

native   the tools and the form of a call are described in the question's message; results come back as user messages
hermes   the tools go through the chat template (`tools=`); results come back in the role `tool`
openai   the tools go into the request (`tools`); calls and results are paired by the id that the server gave
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from veriward.tool_agent.generator import Generation, Message, storable
from veriward.tool_agent.result import ToolResult
from veriward.tool_agent.toolbox import Toolbox

INSTRUCTION = r"Put your final answer within \boxed{}."

CALL_FORM = '{"tool": "<name>", "arguments": {"<argument>": "<value>"}}'


class Correction(StrEnum):
    """Why a final response is asked for once more; the model reads no more than this."""

    NOT_ACCEPTED = "not_accepted"
    CUT_OFF = "cut_off"
    UNREADABLE = "unreadable"
    LOOK_AGAIN = "look_again"


CORRECTIONS = {
    Correction.NOT_ACCEPTED: "Your last response was not accepted. Look at the same information again.",
    Correction.CUT_OFF: "Your last response was not accepted: it was cut off at the length limit. Be brief.",
    Correction.UNREADABLE: "The answer in your last response could not be read. State it again, plainly.",
    Correction.LOOK_AGAIN: "Look at your last response again and check it.",
}


def plain(question: str, instruction: str) -> list[Message]:
    """The question to a model without tools."""
    return [_user(question, instruction)]


def opening(question: str, toolbox: Toolbox, reader: str) -> list[Message]:
    """The question with the request for a tool call."""
    if reader == "native":
        return [
            _user(
                question,
                f"You can use one tool before you answer:\n{described(toolbox)}",
                f"First reply with one JSON object and nothing else, in this form:\n{CALL_FORM}",
                "You will then get its result, and write your answer.",
            )
        ]
    return [_user(question, "First call one tool. You will then get its result, and write your answer.")]


def template_arguments(toolbox: Toolbox, reader: str, *, for_call: bool) -> dict[str, Any]:
    """What the chat template or the server gets beside the messages.

    A server is not offered the tools again for the final response: it would call once more in place of an answer.
    """
    return {"tools": toolbox.schemas()} if reader == "hermes" or (reader == "openai" and for_call) else {}


def described(toolbox: Toolbox) -> str:
    """The tools in words, a line each, with an example of their arguments."""
    lines = []
    for tool in toolbox.tools.values():
        form = json.dumps({"tool": tool.name, "arguments": tool.example}, ensure_ascii=False)
        lines.append(f"- {tool.name}: {tool.description} Example: {form}")
    return "\n".join(lines)


def after_refusal(generation: Generation, refusal: ToolResult, reader: str) -> list[Message]:
    """What follows a call that was refused, by the reader or by the tool: the category and its hint."""
    said = ["Your call was not accepted.", refusal.text]
    if generation.truncated:
        said.append("It was cut off at the length limit: send the call alone.")
    return _reply(generation, reader, " ".join(said[:1]) + "\n" + "\n".join(said[1:]), "Send one corrected call.")


def after_result(generation: Generation, result: ToolResult, reader: str, instruction: str) -> list[Message]:
    """The tool's result, and the request for the final response."""
    return _reply(generation, reader, f"Tool result:\n{result.text}", f"Now answer the question. {instruction}".strip())


def without_result(generation: Generation, reader: str, instruction: str) -> list[Message]:
    """What follows a call without a result: the model still answers."""
    request = f"Answer the question without it. {instruction}".strip()
    return _reply(generation, reader, "There is no tool result.", request)


def after_answer(generation: Generation, correction: Correction, instruction: str) -> list[Message]:
    """The one request to correct a final response."""
    request = f"{CORRECTIONS[correction]} Then answer once more. {instruction}".strip()
    return [{"role": "assistant", "content": generation.text}, _user(request)]


def _reply(generation: Generation, reader: str, outcome: str, request: str) -> list[Message]:
    """The model's call as it stands in the conversation, what came of it, and what is wanted next."""
    called = _paired_call(generation) if reader == "openai" else None
    if called is not None:
        return [
            {"role": "assistant", "content": generation.text, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": called["id"], "content": outcome},
            _user(request),
        ]
    spoken: Message = {"role": "assistant", "content": generation.text or generation.tool_calls or ""}
    if reader == "hermes":
        return [spoken, {"role": "tool", "content": outcome}, _user(request)]
    return [spoken, _user(outcome, request)]


def _paired_call(generation: Generation) -> dict[str, Any] | None:
    """The one call of the chat API that a result can be paired with; None where there is none that servers take."""
    try:
        calls = json.loads(generation.tool_calls or "[]")
    except (ValueError, RecursionError):
        return None
    match calls:
        case [{"id": str() as identity, "function": {"name": str() as name, "arguments": str() as arguments}}]:
            function = {"name": storable(name), "arguments": storable(arguments)}
            return {"id": storable(identity), "type": "function", "function": function}
    return None


def _user(*parts: str) -> Message:
    return {"role": "user", "content": storable("\n\n".join(part for part in parts if part))}
