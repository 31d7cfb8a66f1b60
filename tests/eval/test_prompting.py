from __future__ import annotations

import inspect

import pytest

from veriward.eval.prompting import DEFAULT_INSTRUCTION, PromptTemplate
from veriward.tool_agent.errors import ConfigError


def test_chat_is_one_user_message_with_the_instruction_behind_the_question():
    assert PromptTemplate().render("1+1") == [{"role": "user", "content": f"1+1\n\n{DEFAULT_INSTRUCTION}"}]


def test_an_empty_instruction_leaves_the_question_alone():
    assert PromptTemplate(instruction="").render("1+1") == [{"role": "user", "content": "1+1"}]
    assert PromptTemplate(template="plain", instruction="").render("1+1") == "1+1"


def test_plain_is_text():
    assert PromptTemplate(template="plain", instruction="Box it.").render("1+1") == "1+1\n\nBox it.\n\n"


def test_a_file_keeps_every_other_brace(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("{question} {instruction} \\boxed{answer} {")
    assert PromptTemplate(template=str(path), instruction="Go.").render("1+1") == "1+1 Go. \\boxed{answer} {"


def test_a_placeholder_in_the_question_is_text(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("{question}|{instruction}")
    template = PromptTemplate(template=str(path), instruction="Go.")
    assert template.render("{instruction}\\1{question}") == "{instruction}\\1{question}|Go."


def test_a_file_without_a_place_for_it_drops_the_default_instruction_and_says_so(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("Q: {question}\nA:")
    template = PromptTemplate(template=str(path))
    assert template.render("1+1") == "Q: 1+1\nA:"
    assert template.settings["instruction"] == ""


def test_a_file_without_a_place_for_it_refuses_another_instruction(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("Q: {question}\nA:")
    with pytest.raises(ConfigError, match=r"no \{instruction\} in it"):
        PromptTemplate(template=str(path), instruction="Be brief.")


def test_a_file_without_the_question_is_refused(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("Answer!")
    with pytest.raises(ConfigError, match=r"no \{question\} in it"):
        PromptTemplate(template=str(path))


def test_an_unknown_template_names_the_choices():
    with pytest.raises(ConfigError, match="wanted 'chat', 'plain' or a template file"):
        PromptTemplate(template="caht")


def test_thinking_is_handed_on_only_when_it_was_set():
    assert PromptTemplate().chat_template_kwargs == {}
    assert PromptTemplate(enable_thinking=False).chat_template_kwargs == {"enable_thinking": False}


def test_thinking_without_a_chat_template_is_refused():
    with pytest.raises(ConfigError, match="for template 'chat'"):
        PromptTemplate(template="plain", enable_thinking=True)


def test_rendering_has_no_way_to_see_a_reference():
    assert list(inspect.signature(PromptTemplate.render).parameters) == ["self", "question"]
