"""The trap of a cache that knows a checkpoint by its path: other weights under the same path must be noticed."""

from __future__ import annotations

import json
import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("statsmodels")

from veriward.eval.generators import TransformersGenerator  # noqa: E402
from veriward.eval.loop import evaluate  # noqa: E402
from veriward.eval.prompting import PromptTemplate  # noqa: E402
from veriward.tool_agent.errors import ConfigError  # noqa: E402

PLAIN = PromptTemplate(template="plain", instruction="")


@pytest.fixture
def asked(tiny_model, run_folders, tmp_path):
    """Asks the model under one path, in one run folder."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(tiny_model, folder)

    def ask(path=folder):
        generator = TransformersGenerator(path, device="cpu")
        return evaluate(generator, run_folders.problem_set(3), tmp_path / "run", template=PLAIN, max_new_tokens=4)

    ask()
    return folder, ask


def other_weights(folder):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        next(model.parameters())[0, 0] += 0.5
    model.save_pretrained(folder)


def test_the_same_checkpoint_goes_on(asked):
    assert asked[1]().reused == 3


def test_other_weights_under_the_same_path_are_noticed(asked):
    folder, ask = asked
    other_weights(folder)
    with pytest.raises(ConfigError, match=r"generator\.weights_sha256"):
        ask()


def test_another_tokenizer_under_the_same_path_is_noticed(asked):
    folder, ask = asked
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    content["added_tokens"].append({**content["added_tokens"][0], "id": 900, "content": "<new>"})
    file.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"generator\.tokenizer_sha256"):
        ask()


def test_another_chat_template_under_the_same_path_is_noticed(asked):
    folder, ask = asked
    file = folder / "chat_template.jinja"
    file.write_text(file.read_text() + " ")
    with pytest.raises(ConfigError, match=r"generator\.chat_template"):
        ask()


def test_another_adapter_over_the_same_base_is_noticed(asked, tmp_path, run_folders):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    base, _ = asked
    folder = tmp_path / "adapter"
    names = {
        name.split(".")[-1]
        for name, part in AutoModelForCausalLM.from_pretrained(base).named_modules()
        if isinstance(part, torch.nn.Linear)
    }
    settings = peft.LoraConfig(
        r=2, target_modules=sorted(names - {"lm_head"}), task_type="CAUSAL_LM", init_lora_weights=False
    )

    def save(seed):
        torch.manual_seed(seed)
        peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), settings).save_pretrained(folder)

    def ask():
        generator = TransformersGenerator(folder, device="cpu")
        return evaluate(generator, run_folders.problem_set(2), tmp_path / "lora", template=PLAIN, max_new_tokens=4)

    save(0)
    first = ask().run.settings["generator"]
    save(1)
    with pytest.raises(ConfigError, match=r"generator\.adapter_sha256") as refused:
        ask()
    assert "generator.weights_sha256" in str(refused.value)  # of base and adapter together
    save(0)
    other_weights(base)
    changed = TransformersGenerator(folder, device="cpu").settings
    assert changed["adapter_sha256"] == first["adapter_sha256"]
    assert changed["weights_sha256"] != first["weights_sha256"]


def test_a_model_without_an_adapter_names_none(tiny_model):
    assert "adapter_sha256" not in TransformersGenerator(tiny_model, device="cpu").settings


def test_the_refusal_lists_every_difference_and_keeps_what_is_stored(asked, tmp_path):
    folder, ask = asked
    before = sorted((tmp_path / "run" / "problems").rglob("*.json"))
    other_weights(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 99}))
    with pytest.raises(ConfigError) as refused:
        ask()
    assert "generator.weights_sha256" in str(refused.value)
    assert "generator.context" in str(refused.value)
    assert sorted((tmp_path / "run" / "problems").rglob("*.json")) == before
