from __future__ import annotations

import json
import shutil
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from veriward.eval.generators import TransformersGenerator, derive_seed  # noqa: E402
from veriward.tool_agent.errors import ConfigError, MissingExtraError  # noqa: E402
from veriward.tool_agent.generator import NO_ROOM  # noqa: E402

PROMPTS = ["1+1", [{"role": "user", "content": "What is twelve times twelve, and why?"}], "7"]


def answer(generator, prompts=PROMPTS, **options):
    return generator.generate(prompts, **{"max_new_tokens": 12, "seed": 0, **options})


def texts(results):
    return [generation.text for generation in results]


def drawn(generator, prompts, samples, **options):
    """The samples of every prompt, one list for each."""
    numbers = [number for _ in prompts for number in range(samples)]
    repeated = [prompt for prompt in prompts for _ in range(samples)]
    results = answer(generator, repeated, sample_numbers=numbers, **{"temperature": 1.0, **options})
    return [results[start : start + samples] for start in range(0, len(results), samples)]


def test_responses_come_in_the_order_of_the_prompts(generator):
    together = texts(answer(generator))
    alone = [texts(answer(generator, [prompt]))[0] for prompt in PROMPTS]
    assert together == alone


def test_greedy_is_what_the_model_itself_writes(generator, tiny_model):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(tiny_model), AutoTokenizer.from_pretrained(tiny_model)
    ids = tokenizer("1+1", return_tensors="pt")["input_ids"]
    output = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert answer(generator, ["1+1"])[0].token_ids == tuple(output.tolist())


def test_a_sample_depends_on_its_seed_and_not_on_its_batch(generator):
    together = [texts(samples) for samples in drawn(generator, PROMPTS, 3)]
    alone = [texts(drawn(generator, [prompt], 3)[0]) for prompt in PROMPTS]
    assert together == alone


def test_samples_of_a_prompt_differ_and_carry_their_seeds(generator):
    samples = drawn(generator, ["1+1"], 6)[0]
    assert [sample.seed for sample in samples] == [derive_seed(0, "1+1", index) for index in range(6)]
    assert len({sample.text for sample in samples}) == 6


def test_another_seed_gives_other_samples(generator):
    first, second = (answer(generator, ["1+1"], temperature=1.0, seed=seed) for seed in (0, 1))
    assert texts(first) != texts(second)


def test_greedy_draws_nothing_and_has_no_seed(generator):
    assert answer(generator, ["1+1"])[0].seed is None


def test_sampling_follows_the_models_probabilities(generator, tiny_model):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(tiny_model), AutoTokenizer.from_pretrained(tiny_model)
    with torch.no_grad():
        logits = model(tokenizer("1+1", return_tensors="pt")["input_ids"]).logits[0, -1]
    expected = torch.softmax(logits / 0.5, -1)
    many = TransformersGenerator(tiny_model, device="cpu", batch_size=500)
    samples = drawn(many, ["1+1"], 2_000, temperature=0.5, max_new_tokens=1)[0]
    counts = torch.bincount(torch.tensor([sample.token_ids[0] for sample in samples]), minlength=len(expected))
    top = expected.topk(20).indices
    deviation = (counts[top] / 2_000 - expected[top]) / (expected[top] * (1 - expected[top]) / 2_000).sqrt()
    assert deviation.abs().max() < 4.5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_global_random_state_is_left_alone(generator, temperature):
    before = torch.get_rng_state()
    answer(generator, temperature=temperature)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_end_token_ends_a_response_and_the_limit_cuts_it_off(generator):
    samples = drawn(generator, ["1+1"], 40, temperature=1.5, max_new_tokens=60)[0]
    end = generator.settings["end_tokens"][0]
    assert {sample.finish_reason for sample in samples} == {"stop", "length"}
    for sample in samples:
        assert sample.truncated is (end not in sample.token_ids)
        assert (
            len(sample.token_ids) == 60
            if sample.truncated
            else sample.token_ids.index(end) == len(sample.token_ids) - 1
        )


def test_a_stop_string_ends_a_response_and_is_left_out_of_its_text(generator):
    whole = answer(generator, ["1+1"])[0]
    mark = whole.text[3:5]
    stopped = answer(generator, ["1+1"], stop=["never there", mark])[0]
    assert stopped.text == whole.text[: whole.text.index(mark)]
    assert stopped.finish_reason == "stop"
    assert len(stopped.token_ids) < len(whole.token_ids)


def test_a_stop_string_ends_only_its_own_row(generator):
    whole = texts(answer(generator))
    mark = whole[0][3:5]
    stopped = texts(answer(generator, stop=[mark]))
    assert stopped == [text.split(mark)[0] for text in whole]


def test_every_response_is_handed_over_once(generator):
    seen = []
    results = answer(generator, PROMPTS * 2, sample_numbers=[0] * 3 + [1] * 3, temperature=1.0, on_finished=seen.extend)
    assert [generation for _, generation in sorted(seen, key=lambda pair: pair[0])] == results


def test_a_sample_asked_alone_is_the_one_that_was_asked_with_the_others(generator):
    together = drawn(generator, ["1+1"], 3)[0]
    assert answer(generator, ["1+1"], sample_numbers=[2], temperature=1.0) == together[2:]


def test_the_longest_prompt_comes_first(tiny_model):
    single, seen = TransformersGenerator(tiny_model, device="cpu", batch_size=1), []
    answer(single, ["a", "a much longer prompt", "a b c"], on_finished=seen.extend)
    assert [index for index, _ in seen] == [1, 2, 0]


def test_a_model_in_training_is_left_as_it_was(tiny_model):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(tiny_model).train()
    model.generation_config.repetition_penalty = 5.0
    loaded = TransformersGenerator.from_loaded(model, AutoTokenizer.from_pretrained(tiny_model), name="step 3")
    answer(loaded)
    assert (model.training, model.generation_config.repetition_penalty, loaded.name) == (True, 5.0, "step 3")


def test_sampling_settings_in_the_models_folder_do_not_count(tiny_model, generator, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    settings = json.loads((folder / "generation_config.json").read_text())
    settings |= {"repetition_penalty": 5.0, "do_sample": True, "top_k": 3, "temperature": 2.0}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    assert texts(answer(TransformersGenerator(folder, device="cpu"))) == texts(answer(generator))


def test_a_response_never_outgrows_the_context(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 10}))
    small = TransformersGenerator(folder, device="cpu")
    longer, shorter = answer(small, ["1234567", "12"], max_new_tokens=50)
    assert (len(longer.token_ids), longer.finish_reason) == (10 - len("1234567") + 3, "length")
    assert len(shorter.token_ids) == 9
    with pytest.raises(ConfigError, match="the model's context 10"):
        answer(small, ["a prompt without room"])


def test_a_conversation_that_filled_the_context_is_cut_off_before_its_first_word(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 30}))
    small = TransformersGenerator(folder, device="cpu")
    said = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2" * 60}]
    seen = []
    written = answer(small, [[*said, {"role": "user", "content": "again"}], "1+1"], on_finished=seen.extend)
    assert written[0] == NO_ROOM
    assert written[1].token_ids
    assert sorted(index for index, _ in seen) == [0, 1]


def test_an_adapter_folder_is_loaded_onto_its_base(tiny_model, generator, tmp_path):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    adapted = peft.get_peft_model(base, peft.LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    loaded = TransformersGenerator(tmp_path / "adapter", device="cpu")
    assert texts(answer(loaded)) != texts(answer(generator))
    assert loaded.settings["weights_sha256"] != generator.settings["weights_sha256"]


def test_settings_of_a_model_inside_an_adapter_are_put_back(tiny_model):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    base.generation_config.repetition_penalty = 5.0
    adapted = peft.get_peft_model(base, peft.LoraConfig(target_modules=["q_proj"]))
    answer(TransformersGenerator.from_loaded(adapted, AutoTokenizer.from_pretrained(tiny_model), name="x"))
    assert base.generation_config.repetition_penalty == 5.0


def test_other_weights_under_the_same_path_are_noticed(tiny_model, tmp_path):
    from transformers import AutoModelForCausalLM

    folder = shutil.copytree(tiny_model, tmp_path / "model")
    before = TransformersGenerator(folder, device="cpu").settings
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.model.norm.weight[0] += 1e-3
    model.save_pretrained(folder)
    after = TransformersGenerator(folder, device="cpu").settings
    assert [key for key in before if before[key] != after[key]] == ["weights_sha256"]


def test_settings_can_be_written_as_json(generator):
    assert json.loads(json.dumps(dict(generator.settings)))["dtype"] == "float32"


def test_a_model_without_a_chat_template_says_what_to_use(tiny_model):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    tokenizer.chat_template = None
    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    with pytest.raises(ConfigError, match="no chat template; use template 'plain'"):
        answer(TransformersGenerator.from_loaded(model, tokenizer, name="plain model"))


def test_a_folder_with_missing_weights_is_refused(tiny_model, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(tiny_model, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"1 weights are missing, such as model\.norm\.weight"):
        TransformersGenerator(folder, device="cpu")


@pytest.mark.parametrize("name", ["/no/such/model", "./none", "a/b/c"])
def test_a_missing_folder_is_not_looked_up_on_the_hub(name):
    with pytest.raises(ConfigError, match="no such folder"):
        TransformersGenerator(name)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no config\.json or adapter_config\.json"):
        TransformersGenerator(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature must be 0"),
        ({"temperature": float("nan")}, "temperature must be 0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
    ],
)
def test_a_request_that_cannot_work_is_refused(generator, options, message):
    with pytest.raises(ConfigError, match=message):
        answer(generator, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "abacus"}, "unknown device"),
        ({"dtype": "float31"}, "unknown dtype"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_a_place_that_does_not_exist_is_refused(tiny_model, options, message):
    with pytest.raises(ConfigError, match=message):
        TransformersGenerator(tiny_model, **options)


@pytest.fixture(scope="session")
def write_gguf(tmp_path_factory):
    """A llama of one layer with random weights and a tokenizer of single characters, in one file."""
    gguf = pytest.importorskip("gguf")
    numpy = pytest.importorskip("numpy")
    tokens = ["<s>", "</s>", *map(chr, range(33, 127)), "Ġ", "Ċ", "12"]
    shapes = {"token_embd": (len(tokens), 16), "output_norm": (16,), "output": (len(tokens), 16)}
    shapes |= {"blk.0.attn_norm": (16,), "blk.0.ffn_norm": (16,), "blk.0.ffn_down": (16, 32)}
    shapes |= {f"blk.0.attn_{part}": (16, 16) for part in ("q", "k", "v", "output")}
    shapes |= {f"blk.0.ffn_{part}": (32, 16) for part in ("gate", "up")}

    def write(name="tiny.gguf", template=None, without=()):
        path = tmp_path_factory.mktemp("gguf") / name
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_context_length(64)
        writer.add_embedding_length(16)
        writer.add_block_count(1)
        writer.add_feed_forward_length(32)
        writer.add_head_count(2)
        writer.add_head_count_kv(2)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(8)
        writer.add_vocab_size(len(tokens))
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(tokens)
        writer.add_token_types([3, 3, *[1] * (len(tokens) - 2)])
        writer.add_token_merges(["1 2"])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(1)
        if template is not None:
            writer.add_chat_template(template)
        random = numpy.random.default_rng(0)
        for tensor, shape in shapes.items():
            if tensor not in without:
                writer.add_tensor(f"{tensor}.weight", random.normal(size=shape).astype("float32"))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


def test_a_gguf_file_is_a_model(write_gguf):
    path = write_gguf(template="{% for message in messages %}{{ message['content'] }}{% endfor %}")
    loaded = TransformersGenerator(path, device="cpu")
    prompts = ["1+12", [{"role": "user", "content": "1+12"}]]
    assert len({generation.text for generation in answer(loaded, prompts)}) == 1
    assert (loaded.settings["model"], loaded.settings["end_tokens"], loaded.settings["context"]) == (str(path), [1], 64)


def test_a_gguf_file_without_a_chat_template_says_what_to_use(write_gguf):
    loaded = TransformersGenerator(write_gguf(), device="cpu")
    assert answer(loaded, ["1+12"])[0].text
    with pytest.raises(ConfigError, match=r"tiny\.gguf: the model has no chat template; use template 'plain'"):
        answer(loaded, [[{"role": "user", "content": "1+12"}]])


def test_a_gguf_file_with_missing_weights_is_refused(write_gguf):
    with pytest.raises(ConfigError, match=r"tiny\.gguf: 1 weights are missing, such as model\.norm\.weight"):
        TransformersGenerator(write_gguf(without=["output_norm"]), device="cpu")


def test_a_file_that_is_no_gguf_is_refused(tmp_path):
    pytest.importorskip("gguf")
    (tmp_path / "bad.gguf").write_bytes(b"something else")
    with pytest.raises(ConfigError, match=r"bad\.gguf: no model can be loaded from it"):
        TransformersGenerator(tmp_path / "bad.gguf", device="cpu")


def test_a_missing_gguf_file_is_not_looked_up_on_the_hub():
    with pytest.raises(ConfigError, match=r"model\.gguf: no such file; wanted a GGUF file"):
        TransformersGenerator("owner/model.gguf")


def test_the_missing_gguf_package_is_named_with_its_extra(tmp_path, monkeypatch):
    (tmp_path / "some.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'veriward\[gguf\]'"):
        TransformersGenerator(tmp_path / "some.gguf", device="cpu")
