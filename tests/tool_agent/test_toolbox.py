"""A tool is a typed function: its schema comes from the signature, and what has no schema is refused by name."""

import json
from pathlib import Path
from typing import Annotated, Literal

import pytest

from veriward.tool_agent import Toolbox, as_tool, toolbox


def made(annotation, default=...):
    """A function of one parameter."""
    if default is ...:

        def function(value):
            """Does it."""
    else:

        def function(value=default):
            """Does it."""

    function.__annotations__ = {"value": annotation}
    return function


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Literal["km", "mi"], {"type": "string", "enum": ["km", "mi"]}),
        (list[float], {"type": "array", "items": {"type": "number"}}),
        (Annotated[str, "a day"], {"type": "string", "description": "a day"}),
        ("list[Literal['a']]", {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    ],
    ids=str,
)
def test_a_parameter_has_the_schema_of_its_type(annotation, schema):
    tool = as_tool(made(annotation))
    assert tool.parameters == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_a_parameter_with_a_default_is_not_required():
    parameters = as_tool(made(int, 3)).parameters
    assert (parameters["properties"]["value"], parameters["required"]) == ({"type": "integer", "default": 3}, [])


@pytest.mark.parametrize(
    "annotation", [dict, list, bytes, str | None, list[list[int]], Literal[1], Literal["a", 1], tuple[int], object]
)
def test_any_other_type_is_refused_by_the_name_of_its_parameter(annotation):
    with pytest.raises(ValueError, match=r"tool function, parameter value: no JSON schema for .*; wanted str, int"):
        as_tool(made(annotation))


def stars(*numbers: int) -> int:
    """Adds."""
    return sum(numbers)


def untyped(number):
    """Does it."""


def positional(number: int, /) -> int:
    """Does it."""
    return number


def silent(number: int) -> int:
    return number


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (stars, "parameter numbers: a model names its arguments"),
        (positional, "parameter number: a model names its arguments"),
        (untyped, "parameter number: no type"),
        (silent, "tool silent: no docstring"),
        (lambda: 1, "tool '<lambda>': wanted a name"),
    ],
)
def test_a_function_that_makes_no_tool_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        as_tool(function)


def test_the_description_is_the_first_paragraph_on_one_line():
    def function() -> int:
        """One line
        and its end.

        More for people.
        """
        return 1

    assert as_tool(function).description == "One line and its end."


def test_a_local_function_cannot_run_in_a_child():
    with pytest.raises(ValueError, match="tool function: a child process imports its function, and finds no"):
        as_tool(made(int), deadline_s=1.0)


def test_an_impossible_deadline_is_refused_at_once(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import unruly_tools

    with pytest.raises(ValueError, match="deadline_s is a number of seconds above 0"):
        as_tool(unruly_tools.double, deadline_s=-1.0)


# ---- toolbox ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_a_toolbox_has_the_three_tools(profile):
    tools = toolbox(profile)
    assert (tools.profile, list(tools.tools)) == (profile, ["calculator", "python_expr", "local_search"])


@pytest.mark.parametrize(
    ("name", "argument"), [("calculator", "expression"), ("python_expr", "expression"), ("local_search", "query")]
)
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_a_known_tool_has_one_text_argument(profile, name, argument):
    parameters = toolbox(profile).tools[name].parameters
    assert parameters["properties"] == {argument: {"type": "string"}}
    assert parameters["required"] == [argument]


def test_schemas_are_what_chat_apis_take():
    (first, *_) = toolbox().schemas()
    assert first["type"] == "function"
    assert first["function"].keys() == {"name", "description", "parameters"}


def test_settings_name_the_profile_and_the_documents():
    settings = json.loads(json.dumps(toolbox().settings))
    assert settings["profile"] == "default"
    assert len(settings["tools"]["local_search"]["documents"]) == 64


def test_own_documents_take_the_place_of_the_notes(tmp_path):
    pytest.importorskip("bm25s")
    (tmp_path / "a.txt").write_text("one")
    tools = toolbox(documents=tmp_path)
    assert list(tools.tools) == ["calculator", "python_expr", "local_search"]
    assert [record["id"] for record in tools.tools["local_search"].run(query="one")] == ["a.txt"]
    assert tools.settings != toolbox().settings


def test_an_extra_tool_stands_behind_the_others():
    tools = toolbox(extra_tools=[as_tool(made(int), name="mine")])
    assert list(tools.tools)[-1] == "mine"


def test_the_code_of_an_extra_tool_is_in_the_settings():
    settings = toolbox(extra_tools=[as_tool(made(int), name="mine")]).settings
    assert len(settings["tools"]["mine"]["code"]) == 16


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two tools are called calculator"):
        toolbox(extra_tools=[as_tool(made(int), name="calculator")])


def test_an_unknown_profile_is_refused():
    with pytest.raises(ValueError, match="unknown profile 'lax'; wanted one of default, strict"):
        toolbox("lax")


def test_tools_cannot_be_exchanged_in_a_toolbox():
    tools = toolbox()
    assert isinstance(tools, Toolbox)
    with pytest.raises(TypeError):
        tools.tools["calculator"] = None


def test_a_typed_function_is_a_tool_as_it_stands():
    def add(first: int, second: int) -> int:
        """Sum of two numbers."""
        return first + second

    assert toolbox(extra_tools=[add]).tools["add"].run(first=1, second=2) == 3


@pytest.mark.parametrize("returned", [dict, dict[str, int], bytes, None, set[int]])
def test_a_function_that_says_it_returns_no_value_is_refused(returned):
    def odd(text: str):
        """Odd."""

    odd.__annotations__["return"] = returned
    with pytest.raises(ValueError, match=r"tool odd: returns .*; wanted a number, a text"):
        as_tool(odd)
