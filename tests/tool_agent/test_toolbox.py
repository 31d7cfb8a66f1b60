"""A tool is a typed function: its schema comes from the signature, and what has no schema is refused by name."""

import json
import math
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, List, Literal  # noqa: UP035

import pytest

from veriward.tool_agent import Category, Refused, Toolbox, as_tool, toolbox


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
    "annotation",
    [
        dict,
        list,
        List,  # noqa: UP006
        bytes,
        str | None,
        list[list[int]],
        list[Annotated[list[int], "rows"]],
        Literal[1],
        Literal["a", 1],
        tuple[int],
        object,
        [int],
    ],
    ids=str,
)
def test_any_other_type_is_refused_by_the_name_of_its_parameter(annotation):
    with pytest.raises(ValueError, match=r"tool function, parameter value: no JSON schema for .*; wanted str, int"):
        as_tool(made(annotation))


@pytest.mark.parametrize("annotation", ["Nope", "math.nope", "int[1]", "1 +"])
@pytest.mark.parametrize(("named", "where"), [("value", "parameter value"), ("return", "the returned value")])
def test_a_type_that_cannot_be_read_is_refused_by_name(named, where, annotation):
    function = made(int)
    function.__annotations__[named] = annotation
    with pytest.raises(ValueError, match=f"tool function, {where}: the type '.*' cannot be read: ") as error:
        as_tool(function)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("default", [math.nan, math.inf, object(), {1}, "\ud800"])
def test_a_default_that_is_no_json_is_refused_by_the_name_of_its_parameter(default):
    with pytest.raises(ValueError, match=r"tool function, parameter value: the default .* is no JSON value"):
        as_tool(made(float, default))


def test_a_parameter_may_be_called_self():
    def function(self: int) -> int:
        """Itself."""
        return self

    assert as_tool(function).run(self=3) == 3


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


# ---- what a tool returns ---------------------------------------------------------------------------------------------


class Shouted(float):
    """A number that is written otherwise, as those of array packages are."""

    def __repr__(self):
        return f"Shouted({float(self)})"


class Level(IntEnum):
    HIGH = 3


def returning(value):
    def function():
        """Gives a value."""
        return value

    return as_tool(function).run()


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        pytest.param(Shouted(1.5), 1.5, id="a kind of float"),
        pytest.param(Level.HIGH, 3, id="a kind of int"),
        pytest.param(Category.EMPTY, "empty", id="a kind of text"),
        pytest.param("a\ud800", "a\\ud800", id="half a surrogate"),
        pytest.param([{"\ud800": ["\\\udfff"]}], [{"\\ud800": ["\\\\udfff"]}], id="half a surrogate in a record"),
        pytest.param([{1: 2, "a": (1, 2)}], [{"1": 2, "a": [1, 2]}], id="keys and tuples of a record"),
        pytest.param(
            (MappingProxyType({"a": MappingProxyType({})}),), [{"a": {}}], id="records that are mappings, but no dicts"
        ),
        pytest.param([{"a": Shouted(1.5), "b": Level.HIGH}], [{"a": 1.5, "b": 3}], id="numbers of a record"),
    ],
)
def test_a_value_is_what_a_state_gives_back(value, stored):
    returned = returning(value)
    assert (repr(returned), json.loads(json.dumps(returned))) == (repr(stored), stored)


@pytest.mark.parametrize("record", [{"a": math.nan}, {"a": object()}, {"a": {1}}, {(1, 2): 3}])
def test_records_that_no_state_can_hold_are_a_bug_of_the_tool(record):
    with pytest.raises(TypeError, match="tool function returned records that no state can hold: "):
        returning([record])


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        ({"category": "bogus"}, "with category 'bogus'; wanted one of not_json, "),
        ({"category": None}, "with category None"),
        ({"category": Category.EMPTY, "hint": 5}, "with hint 5; wanted a text"),
        ({"category": Category.EMPTY, "position": "x"}, "with position 'x'; wanted an index"),
    ],
)
def test_a_refusal_that_is_none_is_a_bug_of_the_tool(refused, message):
    with pytest.raises(TypeError, match=f"tool function refused {message}"):
        returning(Refused(**refused))


def test_a_refusal_is_stored_with_a_category_and_a_hint_that_is_text():
    refused = returning(Refused(category="empty", hint="\ud800"))
    assert (type(refused.category), refused.hint) == (Category, "\\ud800")


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
