"""Extraction under contract v3: the policy, its order, its spans, and that it is total and linear."""

import time
import tracemalloc

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from veriward.rewards.contracts.v3.extraction.extract import THINKING, Found, extract
from veriward.rewards.contracts.v3.limits import LIMITS
from veriward.rewards.response import reasoning_text, response_text

PIECES = [
    *(
        "\\boxed{",
        "\\boxed",
        "\\fbox{",
        "}",
        "{",
        "\\{",
        "\\}",
        "\\\\",
        "$",
        "$$",
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "**",
        "`",
    ),
    *("<think>", "</think>", "[THINK]", "[/THINK]", "<|channel|>final<|message|>", "<|channel|>analysis<|message|>"),
    *(
        "analysis",
        "assistantfinal",
        "<|im_end|>",
        "</s>",
        "<s>",
        "<|end|>",
        "```python\n",
        "```\n",
        "<answer>",
        "</answer>",
    ),
    *(
        "The final answer is ",
        "Answer: ",
        "answer",
        "#### ",
        "答案：",
        "答案是",
        "故选",
        "选项为",
        "correct option is ",
        "A: ",
    ),
    *(
        "\nProblem: ",
        "\nQ: ",
        "\n问题：",
        "\nUser:",
        "\n### Problem 2\n",
        "\n",
        " ",
        ", ",
        "，",
        ". ",
        "。",
        " or ",
        " and ",
        "、",
    ),
    *(
        "5",
        "12",
        "-3",
        "1,234",
        "3/4",
        "\\frac{3}{8}",
        "2π",
        "50%",
        "x = ",
        "=",
        "B",
        "（C）",
        "或",
        "3万",
        "½",
        "７",
        "is ",
    ),
    *(
        "<think >",
        "`<think>`",
        "</ think>",
        "<|channel|>",
        "~~",
        "\\cancel{",
        "% ",
        "<!--",
        "-->",
        "<s>",
        "[INST]",
        "\r",
    ),
    *(
        '"answer": "',
        '"',
        "不对，",
        "maybe ",
        " vs. ",
        "not ",
        "≤ ",
        " > ",
        " : ",
        " (",
        "i.e. ",
        "is the answer",
        "The sum ",
    ),
    *('<span style="display:none">', "</span>", "<del>", "</del>", "{\\color{white}", "\\iffalse", "\\fi", "might be "),
    *("is wrong", "is not the answer", "if that is wrong, ", "% \\boxed{5}", "No.", "不对"),
    *("\x00", "\ud800", "İ", "\u202e", "if ", "not ", "?", "!", "...", "since ", "(", ")", "[", "]"),
]
RESPONSES = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=24).map("".join))


def pieces_in_order(candidate: str, text: str) -> bool:
    at = 0
    for piece in candidate.split(", "):
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def test_every_case_of_the_table_is_read_as_it_says(read_cases):
    wrong = []
    for case in read_cases("v3_extraction_cases.jsonl"):
        found = extract(case["response"], truncated=case["truncated"], joins=case["joins"])
        got = {"candidate": found.candidate, "how": found.how, "flags": list(found.flags)}
        if got != {key: case[key] for key in got}:
            wrong.append((case["response"], got))
    assert wrong == []


def test_every_span_of_the_table_points_at_its_candidate(read_cases):
    for case in read_cases("v3_extraction_cases.jsonl"):
        found = extract(case["response"], truncated=case["truncated"])
        assert found.span is None or case["response"][slice(*found.span)] == found.candidate


@given(RESPONSES, st.booleans(), st.booleans(), RESPONSES)
@settings(max_examples=1_500, deadline=None)
@example("\\boxed", False, True, "")
@example("answer is", True, False, "")
@example("\ud800\\boxed{\ud800}\x00", False, False, "\ud800")
def test_any_text_gives_a_record_that_fits_together(response, truncated, joins, reasoning):
    found = extract(response, truncated=truncated, joins=joins, reasoning=reasoning)
    assert (found.candidate is None) == (found.span is None) == (found.how == "none")
    assert not found.format_valid or found.how == "boxed"
    if found.span is None:
        return
    part = response[slice(*found.span)]
    assert found.candidate.strip()
    if "joined_boxes" in found.flags:
        assert pieces_in_order(found.candidate, part)
    else:
        assert part == found.candidate


@given(RESPONSES)
@settings(max_examples=400, deadline=None)
def test_a_closed_box_at_the_end_decides_whatever_stands_before_it_in_the_thinking(thought):
    lower = thought.lower()
    assume(not any(token in lower for token in ("<|im_end|>", "</s>", "<|end|>", "<|channel|>")))  # they end it
    assume(not lower.lstrip().startswith(("analysis", "commentary", "assistant")))  # a channel without its marks
    assert extract(f"{thought}</think>\n\nSo it is $\\boxed{{417}}$.").candidate == "417"


@pytest.mark.parametrize(
    ("thought", "visible"),
    [
        pytest.param("\\boxed{4}? No.", "So \\boxed{5}.", id="box"),
        pytest.param("\\boxed{4}? No.", "答案：5。", id="statement"),
        pytest.param("\\boxed{4}", "Nothing to add.", id="answer in the reasoning alone"),
        pytest.param("Final answer: 4", "I am done.", id="statement in the reasoning alone"),
        pytest.param("Hmm.", "I am done.", id="no answer at all"),
        pytest.param("Hmm.", "It is 12", id="last number"),
        pytest.param("The answer is", "12", id="a sentence across the border"),
        pytest.param("a", "\\boxed{5}\n\nQ: next \\boxed{6}", id="run-on"),
    ],
)
@pytest.mark.parametrize("marks", THINKING, ids=lambda marks: marks[0])
def test_text_and_message_of_one_response_are_read_alike(thought, visible, marks):
    def read(completion, truncated) -> tuple:
        found = extract(response_text(completion), reasoning=reasoning_text(completion), truncated=truncated)
        return found.candidate, found.how, found.format_valid, found.flags

    message = [{"role": "assistant", "content": visible, "reasoning_content": thought}]
    text = f"{marks[0]}{thought}{marks[1]}{visible}"
    assert [read(text, cut) for cut in (False, True)] == [read(message, cut) for cut in (False, True)]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_read_under_every_key_that_servers_use(key):
    message = {"role": "assistant", "content": "I am done.", key: "\\boxed{4}"}
    assert extract(response_text([message]), reasoning=reasoning_text([message])).flags == ("answer_in_reasoning",)


def test_a_switch_under_a_reasoning_key_is_no_reasoning():
    assert reasoning_text([{"role": "assistant", "content": "5", "thinking": True, "reasoning": {"effort": 1}}]) == ""


@pytest.mark.parametrize("thought", ["Hmm, 5", "\\boxed{4}", "the answer is 4."])
def test_thinking_that_never_ends_and_a_message_without_content_are_read_alike(thought):
    assert extract(f"<think>{thought}") == extract("", reasoning=thought)


def test_delimiters_can_be_chosen():
    response = "<plan>\\boxed{4}</PLAN>\\boxed{5} </think> 6"
    assert extract(response, delimiters=[("<plan>", "</plan>"), ("", "")]).candidate == "5"


@pytest.mark.parametrize("denial", ["is not the answer.", "? No.", ", which is wrong.", "不对。"])
def test_a_denied_last_box_is_a_hedge_and_no_earlier_box_stands_in(denial):
    found = extract(f"\\boxed{{5}} holds. \\boxed{{6}}{denial}")
    assert (found.candidate, found.flags) == ("6", ("hedged",))


@pytest.mark.parametrize("denial", ["Wrong:", "The wrong answer is", "Do not answer", "I doubt that it is", "不要回答"])
def test_a_last_box_denied_in_front_is_a_hedge_and_no_earlier_box_stands_in(denial):
    found = extract(f"\\boxed{{5}} holds. {denial} \\boxed{{6}}")
    assert (found.candidate, found.flags) == ("6", ("hedged",))


@pytest.mark.parametrize(
    "head", ["\\newcommand{\\x}", "\\def\\x", "\\providecommand*\\x[1]", "\\def\\x#1#2", "\\sbox0"]
)
def test_a_box_that_is_only_defined_is_none(head):
    assert extract(f"\\boxed{{5}} {head}{{\\boxed{{6}}}}").candidate == "5"


def test_a_hidden_box_leaves_its_place_to_the_one_before():
    response = '\\boxed{5} <span style="display:none">or \\boxed{6}</span> is not 7.'
    found = extract(response)
    assert (found.candidate, found.span, found.flags) == ("5", (7, 8), ())


def test_what_joins_is_asked_only_where_boxes_could_be_joined():
    def never() -> bool:
        raise AssertionError("asked without need")

    assert extract("\\boxed{1}. Then \\boxed{2}", joins=never).candidate == "2"


def test_a_joined_span_runs_from_the_first_content_to_the_last():
    response = "Roots: $\\boxed{2}$ and $\\boxed{3}$."
    found = extract(response, joins=lambda: True)
    assert response[slice(*found.span)] == "2}$ and $\\boxed{3"


@pytest.mark.parametrize(
    ("response", "format_valid"),
    [
        ("\\boxed{5}", True),
        ("\\fbox{5}", True),
        ("\\boxed 5", False),
        ("\\boxed{5", False),
        ("\\boxed{} 5", False),
        ("The answer is 5.", False),
        ("5", False),
    ],
)
def test_the_format_is_valid_only_with_a_complete_box(response, format_valid):
    found = extract(response)
    assert (found.candidate, found.format_valid) == ("5", format_valid)


def test_a_response_beyond_the_limit_is_not_read():
    assert extract("\\boxed{5}" + " " * LIMITS.max_response_characters) == Found(
        candidate=None, how="none", span=None, format_valid=False, flags=("response_too_long",)
    )


FLOODS = [
    *(
        "\\boxed{",
        "\\boxed",
        "\\boxed5 ",
        "\\boxed{5}",
        "\\boxed{?}",
        "\\boxed{1} or ",
        "{\\boxed{5}",
        "{",
        "}",
        "(",
        "\\(",
    ),
    *(
        "$",
        "$1",
        "answer ",
        "answer is ",
        "answer: ",
        "answer: ? ",
        "answer is \\boxed{} ",
        "answer: is x are ",
        "answer\n",
    ),
    *(
        "the answer is not ",
        "correct option is ",
        "<answer>",
        "#### ",
        "\na: 5",
        "答案",
        "答案是（",
        "选",
        "故选",
        "1,",
        "1 + ",
    ),
    *(
        "<think>",
        "</think>",
        "`<think>",
        "<s>",
        "</s>",
        "<|im_end|>",
        "<|channel|>analysis<|message|>",
        "```python\n",
        "\n ",
    ),
    *("< think ", "[ think", "~~", "~~5~~", "<s>5</s>", "<!--", "\\cancel{", "% ", "<|channel|>", "<|channel|>final"),
    *("[inst]", "\nTask: 5", "x < ", "5、", "$1$ and ", "$x=1$ or ", "(x + 1)", "5 : ", "不对", "is the answer ", "{}"),
    *('answer": ', "\\boxed{5},", "5 ", "The result is 5 (", "Answer: 5 ("),
    *(
        "<del>",
        "<div hidden>",
        '<p style="color:',
        "<ab x='\\boxed{",
        "{\\color{white}",
        "\\color{white}",
        "} % \\boxed{5}",
    ),
    *("[a]: # (x\n", "\\iffalse ", "\\label{", " but it is ", "\\boxed{5} is clearly ", " might also be \\boxed{5}"),
    *("\nQ: ", "\nquestion: 5 \\boxed{}", "\n1. ", "İ", "\ud800", "\x00", "frac", "... ", "analysis", "assistantfinal"),
]


@pytest.mark.parametrize("piece", FLOODS, ids=ascii)
def test_a_flood_costs_no_more_than_its_length(piece):
    """30,000 characters take about 5 ms; what is quadratic in them takes seconds."""

    def seconds(length: int, tail: str, truncated: bool) -> float:
        text = (piece * (length // len(piece) + 1))[:length] + tail
        started = time.process_time()
        extract(text, truncated=truncated)
        return time.process_time() - started

    for tail in ("", "\nx \\boxed{}5?", "\n\nThe answer is 5\n\nQ: x \\boxed{}"):
        for truncated in (False, True):
            assert seconds(30_000, tail, truncated) < 0.1


@pytest.mark.parametrize("piece", ["İ", "{}", "{", "\\boxed{5} or ", "<|x|>", "</s>"], ids=ascii)
def test_a_flood_takes_little_memory(piece):
    """A megabyte of text in less than 25 megabytes."""
    text = "\\boxed{5} " + piece * (1_000_000 // len(piece))
    tracemalloc.start()
    extract(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 25_000_000


def agrees(found: Found, prediction: str) -> bool:
    return "".join((found.candidate or "").split()) == "".join(prediction.split())


DIFFERENTLY_SPELLED = {
    *("zh-016", "zh-022", "zh-025", "zh-033", "zh-044", "zh-073", "zh-075"),  # the table gives the value, not the text
    *("th-003", "th-028", "th-040", "th-041", "th-048", "th-052", "th-063"),  # without \text and \,
    *("bug-ex-020", "bug-ex-026", "bug-hk-038"),  # the system, the amount and the inner box as values
    "bug-fp-023",  # the equation; here its last number
}


@pytest.mark.parametrize("name", ["zh_think_cases.jsonl", "bug_cases.jsonl"])
def test_shared_responses_give_the_text_their_tables_name(name, shared_folder, read_rows):
    rows = [row for row in read_rows(shared_folder / "cases" / name) if row.get("response")]
    differing = {
        row["id"]
        for row in rows
        if not agrees(extract(row["response"], truncated=row.get("truncated", False)), row["prediction"])
    }
    assert differing <= DIFFERENTLY_SPELLED
