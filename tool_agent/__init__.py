"""The system around the model: calls read strictly, tools that refuse instead of raising, records of every step.

Imports no torch, transformers or numpy.
"""

from __future__ import annotations

from veriward.tool_agent.agent import AgentSettings, Gate, solve, solve_many
from veriward.tool_agent.call import READERS, CallRefusal, ToolCall, read_call
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.executor import Execution, as_result, execute, refused_call, unknown_tool
from veriward.tool_agent.faults import FaultPlan
from veriward.tool_agent.generator import Generation, Generator, Message, Prompt
from veriward.tool_agent.result import TRANSIENT, Category, Envelope, Refused, ToolResult, Value
from veriward.tool_agent.state import Phase, ProblemState
from veriward.tool_agent.store import StateStore, open_store, read_store
from veriward.tool_agent.toolbox import PROFILES, Tool, Toolbox, as_tool, toolbox

__all__ = [
    "PROFILES",
    "READERS",
    "TRANSIENT",
    "AgentSettings",
    "CallRefusal",
    "Category",
    "ConfigError",
    "Envelope",
    "Execution",
    "FaultPlan",
    "Gate",
    "Generation",
    "Generator",
    "Message",
    "Phase",
    "ProblemState",
    "Prompt",
    "Refused",
    "StateStore",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Toolbox",
    "Value",
    "as_tool",
    "evaluate_expression",
    "execute",
    "open_store",
    "read_call",
    "read_store",
    "run_call",
    "solve",
    "solve_many",
    "toolbox",
]


def evaluate_expression(tool: str, text: str, profile: str = "default") -> ToolResult:
    """What one of the three tools says to a text: no call around it.

    tool      'calculator', 'python_expr' or 'local_search' (the fixed notes); any other is a result `unknown_tool`
    raises    TypeError for what is no text, ValueError for an unknown profile; never for what stands in the text
    """
    _check_text("tool", tool)
    _check_text("text", text)
    tools = toolbox(profile)
    known = tools.tools.get(tool)
    if known is None:
        return unknown_tool(tool, tools)
    (argument,) = known.parameters["properties"]
    return as_result(known.run(**{argument: text}), tool)


def run_call(text: str, reader: str = "native", profile: str = "default") -> ToolResult:
    """Read a model's whole text as a call of one of the three tools, and run it.

    reader    'native', 'hermes' or 'openai' (the text is then the JSON of the chat API's `tool_calls`)
    raises    TypeError for what is no text, ValueError for an unknown reader or profile; never for what a model wrote
    """
    _check_text("text", text)
    tools = toolbox(profile)
    call = read_call(text, reader, tools.tools)
    if isinstance(call, CallRefusal):
        return refused_call(call)
    return execute(call, tools).result


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, got {type(value).__name__}")
