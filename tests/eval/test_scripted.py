from __future__ import annotations

import json

import pytest

from veriward.eval.generators import derive_seed
from veriward.eval.scripted import Line, ScriptedGenerator
from veriward.tool_agent.errors import ConfigError

SCRIPT = {"sum": ["first call", "second call", "answer"], "long": ["call", Line(text="cut", finish_reason="length")]}
QUESTIONS = {"sum": "What is 2 + 3?", "long": "What is 2 + 3? And then?", "silent": "Why?"}


@pytest.fixture
def scripted():
    return ScriptedGenerator(SCRIPT, QUESTIONS)


def conversation(question, *turns):
    """The assistant's turns, each followed by a message of the user."""
    messages = [{"role": "system", "content": "What is 2 + 3? is an example."}]
    messages.append({"role": "user", "content": f"Use a tool.\n\n{question}\n\nWrite JSON."})
    for turn in turns:
        messages += [{"role": "assistant", "content": turn}, {"role": "user", "content": "Go on. Why?"}]
    return messages


def answer(generator, *prompts, **options):
    return generator.generate(list(prompts), **{"max_new_tokens": 8, "seed": 0, **options})


def texts(results):
    return [generation.text for generation in results]


def test_lines_follow_the_conversation_and_not_the_calls(scripted):
    late, early = conversation("What is 2 + 3?", "first call", "second call"), conversation("What is 2 + 3?")
    assert texts(answer(scripted, late, early, late)) == ["answer", "first call", "answer"]


def test_the_longest_question_in_the_prompt_is_the_one_that_was_asked(scripted):
    assert texts(answer(scripted, conversation("What is 2 + 3? And then?"))) == ["call"]


def test_plain_text_is_a_first_turn(scripted):
    assert texts(answer(scripted, "Q: What is 2 + 3?\nA:")) == ["first call"]


def test_a_line_says_how_it_ended():
    calls = json.dumps([{"function": {"name": "calculator", "arguments": "{}"}}])
    scripted = ScriptedGenerator({"sum": [Line(text="é", finish_reason="length", tool_calls=calls)]}, QUESTIONS)
    generation = answer(scripted, conversation("What is 2 + 3?"))[0]
    assert (generation.truncated, generation.tool_calls, generation.token_ids) == (True, calls, (0xC3, 0xA9))


def test_samples_carry_seeds_only_where_something_would_be_drawn(scripted):
    greedy = answer(scripted, "What is 2 + 3?")
    drawn = answer(scripted, *["What is 2 + 3?"] * 2, sample_numbers=[0, 1], temperature=1.0)
    assert [generation.seed for generation in greedy + drawn] == [
        None,
        *(derive_seed(0, "sum\n0", sample) for sample in range(2)),
    ]


def test_the_prompts_are_kept_as_they_stood(scripted):
    prompt = conversation("What is 2 + 3?")
    answer(scripted, prompt)
    prompt.append({"role": "assistant", "content": "first call"})
    answer(scripted, prompt)
    assert [len(messages) for messages in scripted.calls] == [2, 3]


def test_a_log_counts_the_calls_of_every_process(tmp_path):
    log = tmp_path / "calls.jsonl"
    for _ in range(2):
        scripted = ScriptedGenerator(SCRIPT, QUESTIONS, log=log)
        answer(scripted, conversation("What is 2 + 3?"), conversation("What is 2 + 3?", "first call"))
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert entries == [{"problem": "sum", "turn": 0}, {"problem": "sum", "turn": 1}] * 2


def test_finished_prompts_are_handed_over_one_by_one(scripted):
    seen = []
    results = answer(scripted, "What is 2 + 3?", "What is 2 + 3? And then?", on_finished=seen.append)
    assert seen == [[(0, results[0])], [(1, results[1])]]


def test_settings_name_the_script():
    one, same, other = (ScriptedGenerator(script, QUESTIONS) for script in (SCRIPT, dict(SCRIPT), {"sum": ["x"]}))
    assert one.settings == same.settings != other.settings
    assert json.loads(json.dumps(one.settings))["engine"] == "scripted"


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        pytest.param(
            "What else?", "no question of its problems stands in the prompt 'What else", id="unknown question"
        ),
        pytest.param("Why?", "0 lines for problem silent, and line 1 was asked for", id="no lines"),
        pytest.param(conversation("What is 2 + 3?", *"abc"), "3 lines for problem sum, and line 4", id="too few lines"),
    ],
)
def test_a_script_that_does_not_go_so_far_is_refused(scripted, prompt, message):
    with pytest.raises(ConfigError, match=message):
        answer(scripted, prompt)


def test_lines_for_a_problem_that_is_not_there_are_refused():
    with pytest.raises(ConfigError, match="lines for 'product', which is no problem of this set"):
        ScriptedGenerator({"product": ["x"]}, QUESTIONS)


def test_two_problems_with_one_question_are_refused():
    with pytest.raises(ConfigError, match="two problems have the same question"):
        ScriptedGenerator({}, {**QUESTIONS, "again": "Why?"})
