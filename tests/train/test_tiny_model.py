"""The embedded model and its tokenizer, as other libraries load and use them."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.chat_template_utils import is_chat_template_prefix_preserving

from veriward.train.tiny_model import BOX, ROLES, TEXT_MARKERS, build_model, build_tokenizer, write_model

QUESTION = [{"role": "user", "content": "9+8-6+2"}]
ANSWER = {"role": "assistant", "content": r"17-6+2=11+2=13 \boxed{13}"}


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    write_model(path, seed=0)
    return path


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(r"17-6+2=11+2=13 \boxed{13}", id="a worked solution"),
        pytest.param("  two  spaces\n\n\ttab ", id="white space"),
        pytest.param("Ünïcode 你好 👍 \x00\x7f", id="any bytes"),
        pytest.param("the user's assistant, a tool; 2024, 100, 007", id="role words and long numbers in text"),
        pytest.param("<think>a</think><tool_call>b</tool_call>", id="markers"),
        pytest.param("", id="nothing"),
    ],
)
def test_any_text_comes_back_as_it_was(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) == text


@pytest.mark.parametrize("piece", [*ROLES, *TEXT_MARKERS, BOX, *map(str, range(60))])
def test_one_piece_is_one_token(tokenizer, piece):
    assert len(tokenizer.encode(piece)) == 1


def test_the_vocabulary_has_no_token_that_the_model_lacks(tokenizer):
    model = build_model(tokenizer, seed=0)
    assert model.get_input_embeddings().num_embeddings == len(tokenizer) == 320


def test_padding_is_not_the_end(tokenizer):
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


def test_the_prompt_is_compact(tokenizer):
    prompt = tokenizer.apply_chat_template(QUESTION, add_generation_prompt=True, tokenize=False)
    assert prompt == "<|start|>user9+8-6+2<|end|><|start|>assistant"
    assert len(tokenizer.encode(prompt)) == 12


def test_a_prompt_is_a_prefix_of_the_prompt_with_its_answer(tokenizer):
    prompt = tokenizer.apply_chat_template(QUESTION, add_generation_prompt=True)["input_ids"]
    whole = tokenizer.apply_chat_template([*QUESTION, ANSWER])["input_ids"]
    assert whole[: len(prompt)] == prompt
    assert whole[-1] == tokenizer.eos_token_id


def test_later_turns_do_not_change_how_earlier_ones_are_rendered(tokenizer):
    assert is_chat_template_prefix_preserving(tokenizer)


def test_only_what_the_assistant_said_is_marked_as_its_own(tokenizer):
    rendered = tokenizer.apply_chat_template([*QUESTION, ANSWER], return_dict=True, return_assistant_tokens_mask=True)
    said = [token for token, own in zip(rendered["input_ids"], rendered["assistant_masks"], strict=True) if own]
    assert tokenizer.decode(said) == ANSWER["content"] + "<|end|>"


def test_an_unknown_role_is_refused(tokenizer):
    with pytest.raises(Exception, match="unknown role critic"):
        tokenizer.apply_chat_template([{"role": "critic", "content": "no"}])


def test_an_answer_keeps_its_markers_when_special_tokens_are_skipped(tokenizer):
    ids = tokenizer.encode("<think>3</think>4<|end|><|pad|>")
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<think>3</think>4"


def test_the_saved_folder_loads_with_the_auto_classes(folder, tokenizer):
    model, loaded = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert model.config.model_type == "qwen3"
    assert model.dtype == torch.float32
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert (loaded.chat_template, loaded.padding_side) == (tokenizer.chat_template, "left")


def test_the_saved_model_knows_where_to_stop_and_how_to_pad(folder, tokenizer):
    generation = AutoModelForCausalLM.from_pretrained(folder).generation_config
    assert (generation.eos_token_id, generation.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert generation.max_new_tokens == 64


def test_it_has_0_36_million_parameters(folder):
    assert sum(p.numel() for p in AutoModelForCausalLM.from_pretrained(folder).parameters()) == 363_312


def test_weights_depend_on_the_seed_alone(tokenizer):
    first, second, other = (build_model(tokenizer, seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_building_a_model_leaves_the_random_state_alone(tokenizer):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    build_model(tokenizer, seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_left_padded_prompts_generate_as_they_do_alone(folder):
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    prompts = ["<|start|>user1+2<|end|><|start|>assistant", "<|start|>user9+8-6+2-3<|end|><|start|>assistant"]
    together = model.generate(**tokenizer(prompts, return_tensors="pt", padding=True), max_new_tokens=5)
    alone = [model.generate(**tokenizer(prompt, return_tensors="pt"), max_new_tokens=5)[0] for prompt in prompts]
    assert [row[-5:].tolist() for row in together] == [row[-5:].tolist() for row in alone]
