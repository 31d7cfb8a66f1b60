"""Calls out of a model's text: the three readers, the checks and their order."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.tool_agent.call import READERS, CallRefusal, ToolCall, read_call
from veriward.tool_agent.result import Envelope
from veriward.tool_agent.strict_json import RefusedText, read_value


class Described:
    def __init__(self, required, **properties):
        self.parameters = {"type": "object", "properties": properties, "required": required}


TOOLS = {
    "calculator": Described(["expression"], expression={"type": "string"}),
    "weather": Described(
        ["city"],
        city={"type": "string"},
        days={"type": "integer"},
        share={"type": "number"},
        wind={"type": "boolean"},
        unit={"type": "string", "enum": ["metric", "imperial"]},
        hours={"type": "array", "items": {"type": "integer"}},
    ),
}
CALL = '{"tool": "calculator", "arguments": {"expression": "1+1"}}'
HERMES = '<tool_call>{"name": "calculator", "arguments": {"expression": "1+1"}}</tool_call>'
ENTRY = {"id": "1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression": "1+1"}'}}


def outcome(text, reader="native"):
    """The arguments of a call, or the category of its refusal."""
    found = read_call(text, reader, TOOLS)
    return found.arguments if isinstance(found, ToolCall) else found.category.value


ONE = {"expression": "1+1"}


# ---- native ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "envelope"),
    [
        pytest.param(CALL, (), id="bare"),
        pytest.param(f"```json\n{CALL}\n```", (Envelope.FENCE,), id="fence"),
        pytest.param(f"<think>{{</think>{CALL}", (Envelope.THINK,), id="think, whatever is in it"),
        pytest.param(HERMES, (Envelope.TOOL_CALL,), id="tool_call with name"),
        pytest.param(
            f"<think>a</think>\n```\n{HERMES}\n```",
            (Envelope.THINK, Envelope.FENCE, Envelope.TOOL_CALL),
            id="from the outside in",
        ),
    ],
)
def test_envelopes_are_removed_and_recorded(text, envelope):
    assert read_call(text, "native", TOOLS) == ToolCall(tool="calculator", arguments=ONE, envelope=envelope)


def test_a_refusal_records_its_envelope_and_the_tool_that_was_meant():
    found = read_call('```\n{"tool": "calculator", "arguments": {}}\n```', "native", TOOLS)
    assert (found.category, found.tool, found.envelope) == ("missing_key", "calculator", (Envelope.FENCE,))


@pytest.mark.parametrize(
    ("text", "category"),
    [
        pytest.param(" " * 65_536 + "{", "too_long", id="size before JSON"),
        pytest.param(f"{CALL} {CALL[:-1]}", "extra_text", id="envelope before JSON"),
        pytest.param('{"a": 1, "a": 2} x', "extra_text", id="envelope before keys that are there twice"),
        pytest.param("{'a': " + "[" * 17, "too_deep", id="depth before JSON"),
        pytest.param('{"x": 1, "x": NaN}', "non_finite", id="the first of two faults of JSON"),
        pytest.param('{"tool": 1, "tool": 2}', "duplicate_key", id="JSON before the outer keys"),
        pytest.param('{"tool": 1}', "missing_key", id="keys before their types"),
        pytest.param('{"tool": "nobody", "arguments": []}', "wrong_type", id="types before the tool's name"),
        pytest.param('{"tool": "nobody", "arguments": {"a": 1}}', "unknown_tool", id="the name before arguments"),
        pytest.param(CALL.replace('"1+1"', '"\\ud800", "x": 1'), "extra_key", id="the arguments' keys before UTF-8"),
        pytest.param(f"<think>\ud800</think>{CALL}", "invalid_unicode", id="UTF-8 of the whole text"),
    ],
)
def test_checks_come_in_order(text, category):
    assert outcome(text) == category


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CALL.replace(", ", " ", 1), id="a comma is missing"),
        pytest.param(CALL.replace('"tool":', '"tool"'), id="a colon is missing"),
        pytest.param(CALL.replace('"tool"', "tool"), id="a bare key"),
        pytest.param(CALL.replace('"tool"', "/* */ 'tool'"), id="a comment"),
        pytest.param(CALL[:-1], id="cut off"),
        pytest.param(f"{{{CALL}}}", id="in brackets once more"),
    ],
)
def test_an_object_inside_a_broken_one_does_not_count(text):
    assert outcome(text) == "not_json"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("nothing", '{"tool": "<name>", "arguments": {…}}', id="the form"),
        pytest.param(CALL.replace("calculator", "Calculator"), "the tools are calculator, weather", id="the tools"),
        pytest.param(CALL.replace("expression", "formula"), "calculator takes expression", id="the arguments"),
        pytest.param(f"{CALL} done", "the object alone", id="nothing beside it"),
        pytest.param(CALL[:-1], "at character 58", id="the place"),
        pytest.param("x" * 65_537, "65,536", id="the limit"),
    ],
)
def test_a_hint_says_what_to_do(text, words):
    assert words in read_call(text, "native", TOOLS).hint


def test_a_hint_can_be_stored_whatever_the_text():
    assert read_call('{"\ud800": 1}', "native", TOOLS).hint.encode()


# ---- schema ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "category"),
    [
        ('"days": 3', None),
        ('"days": 3.0', "wrong_type"),
        ('"days": true', "wrong_type"),
        ('"days": "3"', "wrong_type"),
        ('"days": 1e2', "wrong_type"),
        ('"share": 3', None),
        ('"share": -2.5e-3', None),
        ('"share": 1e999', "non_finite"),
        ('"share": null', "wrong_type"),
        ('"wind": false', None),
        ('"wind": 0', "wrong_type"),
        ('"unit": "metric"', None),
        ('"unit": "Metric"', "wrong_type"),
        ('"hours": []', None),
        ('"hours": [1, 2]', None),
        ('"hours": [1, "2"]', "wrong_type"),
        ('"hours": {"0": 1}', "wrong_type"),
        ('"minutes": 1', "extra_key"),
    ],
)
def test_arguments_are_checked_against_the_tools_schema(argument, category):
    found = read_call(f'{{"tool": "weather", "arguments": {{"city": "Oslo", {argument}}}}}', "native", TOOLS)
    assert (found.category if isinstance(found, CallRefusal) else None) == category


# ---- hermes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(HERMES, ONE, id="alone"),
        pytest.param(f"I add them. {HERMES} Done.", ONE, id="text around"),
        pytest.param(f"<think>a <tool_call> b</think>\n{HERMES}", ONE, id="think"),
        pytest.param(f"{HERMES}\n{HERMES}", "multiple_objects", id="two blocks"),
        pytest.param(HERMES.replace("}}", "}} {}"), "multiple_objects", id="two objects in a block"),
        pytest.param(HERMES.replace("}}", "}} x"), "extra_text", id="text in the block"),
        pytest.param(HERMES[:-12], "not_json", id="never closed"),
        pytest.param("The answer is 2.", "not_json", id="no block"),
        pytest.param(CALL, "not_json", id="the native form"),
        pytest.param(HERMES.replace("name", "tool"), "missing_key", id="tool for name"),
        pytest.param("<tool_call></tool_call>", "not_json", id="empty block"),
        pytest.param("<tool_call>[]</tool_call>", "wrong_type", id="a list"),
        pytest.param(f"<think>{HERMES}", "not_json", id="think that never closes"),
    ],
)
def test_hermes_reads_one_block(text, expected):
    assert outcome(text, "hermes") == expected


# ---- openai ----------------------------------------------------------------------------------------------------------


def entry(**function):
    return {"id": "1", "type": "function", "function": {"name": "calculator", **function}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param([ENTRY], ONE, id="the list"),
        pytest.param(ENTRY, ONE, id="one entry"),
        pytest.param({"role": "assistant", "content": None, "tool_calls": [ENTRY]}, ONE, id="the message"),
        pytest.param({**ENTRY, "index": 0, "function": {**ENTRY["function"], "x": 1}}, ONE, id="more than we read"),
        pytest.param([ENTRY, ENTRY], "multiple_objects", id="two entries"),
        pytest.param([], "not_json", id="no entry"),
        pytest.param({"tool_calls": None}, "not_json", id="no calls"),
        pytest.param({"tool_calls": {}}, "wrong_type", id="calls that are no list"),
        pytest.param([1], "wrong_type", id="an entry that is no object"),
        pytest.param({"id": "1"}, "missing_key", id="no function"),
        pytest.param(entry(), "missing_key", id="no arguments"),
        pytest.param(entry(arguments={"expression": "1"}), "wrong_type", id="arguments that are no string"),
        pytest.param(entry(arguments=""), "not_json", id="empty arguments"),
        pytest.param(entry(arguments="[]"), "wrong_type", id="arguments that are a list"),
        pytest.param(entry(arguments='{"expression": "1", "expression": "2"}'), "duplicate_key", id="a key twice"),
        pytest.param(entry(arguments='{"expression": "1"} x'), "extra_text", id="text behind the arguments"),
        pytest.param(entry(arguments='{"expression": "\\ud800"}'), "invalid_unicode", id="half a pair"),
    ],
)
def test_openai_reads_one_entry(value, expected):
    assert outcome(json.dumps(value), "openai") == expected


def test_openai_reads_no_plain_text():
    assert outcome("1 + 1 is 2", "openai") == "not_json"


def test_readers_are_never_guessed():
    with pytest.raises(ValueError, match="unknown reader 'xml'; wanted one of native, hermes, openai"):
        read_call(CALL, "xml", TOOLS)


# ---- cost and laws ---------------------------------------------------------------------------------------------------

HOSTILE = [
    *("{", "[", '"', "{}", "[]", '{"', '{"a":', '{"a":"', '{"":x', '\\"', '"\\n', "{ ", "a{", "-", "9", "1,", "NaN"),
    *("```", "```json\n", "<think>", "</think>", "<tool_call>", "</tool_call>", " ", "\t\n", "\ud800", "\\ud800", "x"),
]
PREFIXES = ("", '{"a": [', "<tool_call>", "```json\n", "<think>", '{"tool": "', f"{CALL} ")


@pytest.mark.parametrize("reader", READERS)
def test_long_texts_are_read_in_linear_time(reader):
    for prefix in PREFIXES:
        for piece in HOSTILE:
            text = (prefix + piece * 65_536)[:65_536]
            started = time.process_time()
            read_call(text, reader, TOOLS)
            assert time.process_time() - started < 0.2, (prefix, piece)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_what_the_standard_library_writes_is_read_back(value, escaped, indent):
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    reading = read_value(text)
    assert (reading.value, reading.end, reading.fault) == (value, len(text), None)


@given(st.text('{}[]",:\\ntruefals019.eE+- \n/b', max_size=30))
def test_what_is_read_is_what_the_standard_library_reads(text):
    try:
        ours = [read_value(text)]
    except RefusedText:
        ours = []
    try:
        theirs = [json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n"))[0]]
    except ValueError:
        theirs = []
    assert [reading.value for reading in ours] == theirs


ARGUMENTS = st.text().filter(lambda text: not any("\ud800" <= character <= "\udfff" for character in text))


@given(ARGUMENTS, st.booleans(), st.sampled_from(["{}", "```json\n{}\n```", "<think>…</think>{}", " {}\r\n"]))
def test_a_call_that_was_written_is_read_back(expression, escaped, around):
    written = json.dumps({"tool": "calculator", "arguments": {"expression": expression}}, ensure_ascii=escaped)
    found = read_call(around.replace("{}", written), "native", TOOLS)
    assert (found.tool, found.arguments) == ("calculator", {"expression": expression})


@given(st.text(max_size=80) | st.text('{}[]"\\:,<>/`toljnamecrguns ', max_size=80), st.sampled_from(READERS))
def test_every_text_gives_a_call_or_a_refusal_always_the_same(text, reader):
    found = read_call(text, reader, TOOLS)
    assert found == read_call(text, reader, TOOLS)
    assert isinstance(found, ToolCall) or found.hint.encode()
