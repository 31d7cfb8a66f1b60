"""The tools that a model is given, by profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from veriward.tool_agent.tool import Function, Schema, Tool, as_tool
from veriward.tool_agent.tools import calculator, local_search, python_expr

__all__ = ["PROFILES", "Tool", "Toolbox", "as_tool", "toolbox"]

PROFILES = ("default", "strict")
"""`default` reads human notation. `strict` is frozen: Python notation only, as in runs of an earlier grammar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Tools by name, and what decides their results."""

    profile: str
    tools: Mapping[str, Tool]

    @property
    def settings(self) -> dict[str, object]:
        """JSON-safe, for the fingerprint of a run."""
        tools = {
            name: {"schema": tool.to_schema(), "example": tool.example, **tool.settings}
            for name, tool in self.tools.items()
        }
        return {"profile": self.profile, "tools": tools}

    def schemas(self) -> list[Schema]:
        """The tools as chat APIs and chat templates take them."""
        return [tool.to_schema() for tool in self.tools.values()]


def toolbox(
    profile: str = "default", *, documents: str | Path | None = None, extra_tools: Iterable[Tool | Function] = ()
) -> Toolbox:
    """calculator, python_expr and local_search, and your own tools behind them.

    profile      grammar of the two numeric tools (`PROFILES`)
    documents    JSONL file or folder that local_search searches; None: the four fixed notes
    extra_tools  made by `as_tool`, or typed functions, of which it makes tools
    raises       ValueError for an unknown profile and for two tools of one name; ConfigError for the documents
    """
    known = _known_tools(profile)
    if documents is not None:
        own = local_search.local_search_tool(documents)
        known = tuple(own if tool.name == own.name else tool for tool in known)
    tools: dict[str, Tool] = {}
    for given in (*known, *extra_tools):
        tool = given if isinstance(given, Tool) else as_tool(given)
        if tool.name in tools:
            raise ValueError(f"two tools are called {tool.name}; a model tells them apart by name: pass name=")
        tools[tool.name] = tool
    return Toolbox(profile=profile, tools=MappingProxyType(tools))


@cache
def _known_tools(profile: str) -> tuple[Tool, ...]:
    """One entry a tool."""
    if profile not in PROFILES:
        raise ValueError(f"unknown profile {profile!r}; wanted one of {', '.join(PROFILES)}")
    strict = profile == "strict"
    compute = calculator.strict_calculator if strict else calculator.calculator
    compute_more = python_expr.strict_python_expr if strict else python_expr.python_expr
    return (
        as_tool(compute, name="calculator", example={"expression": "(3 + 4) * 2"}),
        as_tool(compute_more, name="python_expr", example={"expression": "comb(5, 2) + sqrt(16)"}),
        as_tool(local_search.local_search, settings=local_search.fixed_settings(), example=local_search.EXAMPLE),
    )
