"""The door of the tool agent: total for any text, light to import, and the guide's examples run."""

import contextlib
import io
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.tool_agent import READERS, Category, Envelope, ToolResult, evaluate_expression, run_call

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/tools.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/agent.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
MORE_BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)

TEXTS = st.one_of(
    st.text(max_size=200),
    st.text(alphabet='{}[]"\\:,0123456789.eE+-*/()!%^ nulltrefas<>`', max_size=200),
    st.text(st.characters(categories=["Cs", "Nd", "Sm", "Cc"]), max_size=40),
)


def fits_together(result):
    assert isinstance(result, ToolResult)
    assert isinstance(json.dumps(result.value), str)
    assert result.text.encode("utf-8")
    assert len(result.text) <= 4_096
    assert result.ok or result.text.count("\n") <= 1


@given(st.sampled_from(["calculator", "python_expr", "local_search"]), TEXTS, st.sampled_from(["default", "strict"]))
def test_any_text_gives_a_result_of_a_tool(tool, text, profile):
    fits_together(evaluate_expression(tool, text, profile))


@given(TEXTS, st.sampled_from(READERS), st.sampled_from(["default", "strict"]))
def test_any_text_gives_a_result_of_a_call(text, reader, profile):
    fits_together(run_call(text, reader, profile))


@given(st.sampled_from(["calculator", "python_expr", "local_search"]), TEXTS)
def test_any_argument_in_a_call_gives_a_result(tool, text):
    argument = "query" if tool == "local_search" else "expression"
    fits_together(run_call(json.dumps({"tool": tool, "arguments": {argument: text}})))


def test_a_call_and_its_envelope_are_recorded():
    text = '<think>add</think>\n```json\n{"tool": "calculator", "arguments": {"expression": "1 + 1"}}\n```'
    result = run_call(text)
    assert (result.value, result.text, result.tool) == (2, "2", "calculator")
    assert result.envelope == (Envelope.THINK, Envelope.FENCE)


def test_a_refused_call_says_why_in_two_lines_at_most():
    result = run_call("Let me compute 1 + 1.")
    assert (result.ok, result.category) == (False, Category.NOT_JSON)
    assert result.text.startswith("no result: not_json")
    assert result.text.count("\n") <= 1


def test_a_tool_that_does_not_exist_is_a_result():
    assert evaluate_expression("oracle", "1").category is Category.UNKNOWN_TOOL


def test_the_strict_profile_keeps_the_original_rules():
    results = [evaluate_expression("calculator", text, "strict") for text in ("(25 - 7) * 6 / 9", "7!")]
    assert (results[0].text, results[1].category) == ("12.0", Category.SYNTAX)


@pytest.mark.parametrize("call", [lambda: run_call(b"{}"), lambda: evaluate_expression("calculator", 7)])
def test_what_is_no_text_is_the_callers_mistake(call):
    with pytest.raises(TypeError, match="text is a text, got"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run_call("{}", reader="guess"), "guess"),
        (lambda: run_call("{}", profile="lax"), "unknown profile 'lax'"),
        (lambda: evaluate_expression("calculator", "1", "lax"), "unknown profile 'lax'"),
    ],
)
def test_an_unknown_reader_or_profile_is_the_callers_mistake(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize("text", ["print(1)", "1is 1", "1if 1else 2", "(1)(2)", "0xfor 1"])
def test_nothing_is_printed_and_no_warning_is_given(text, profile, capfd, recwarn):
    evaluate_expression("python_expr", text, profile)
    assert capfd.readouterr() == ("", "")
    assert not recwarn


def test_importing_the_door_loads_nothing_heavy():
    code = "import sys, veriward.tool_agent; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"torch", "numpy", "transformers", "bm25s", "sympy", "openai"}
    assert not heavy & set(loaded.split())


def test_no_call_opens_a_file():
    code = (
        "import sys, veriward.tool_agent as agent\n"
        "sys.addaudithook(lambda event, _: event in ('open', 'import') and sys.exit(f'{event} after the import'))\n"
        "agent.evaluate_expression('local_search', 'telemetry port')\n"
        "agent.evaluate_expression('python_expr', 'sqrt(2) ** 0.5', 'strict')\n"
        "agent.run_call('no call')\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("program", "output"),
    [
        (code, text)
        for blocks in (BLOCKS, MORE_BLOCKS)
        for (kind, code), (below, text) in itertools.pairwise(blocks)
        if (kind, below) == ("python", "text")
    ],
)
def test_an_example_of_the_guide_prints_what_stands_below_it(program, output, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/examples"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "docs/tools.md", "exec"), {})  # noqa: S102
    assert printed.getvalue() == output


def test_the_guide_shows_the_example_as_it_is():
    source = (ROOT / "docs/examples/days_tool.py").read_text(encoding="utf-8")
    assert ("python", source.split("\n\n", 1)[1]) in BLOCKS


def test_the_guide_names_every_category():
    row_ends = GUIDE.replace("`_", "`disallowed_")
    assert [category for category in Category if f"`{category}`" not in row_ends] == []


def test_the_example_runs_in_a_child(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/examples"))
    from days_tool import days_between

    from veriward.tool_agent import as_tool

    tool = as_tool(days_between, deadline_s=5.0)
    assert tool.run(first="2024-02-28", second="2024-03-01") == 2
    assert tool.run(first="x", second="y").category is Category.SYNTAX
