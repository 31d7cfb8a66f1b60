from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
peft = pytest.importorskip("peft")
pytest.importorskip("statsmodels")
pytest.importorskip("jinja2")

from typer.testing import CliRunner  # noqa: E402

from veriward.eval.cards import verify_card  # noqa: E402
from veriward.eval.export import export  # noqa: E402
from veriward.eval.generators import TransformersGenerator  # noqa: E402
from veriward.eval.loop import evaluate  # noqa: E402
from veriward.eval.prompting import PromptTemplate  # noqa: E402
from veriward.eval.runs import read_run  # noqa: E402
from veriward.scripts.cli import app  # noqa: E402
from veriward.tool_agent.errors import ConfigError  # noqa: E402

PLAIN = PromptTemplate(template="plain", instruction="")


def asked(model, folder, run_folders):
    generator = TransformersGenerator(model, device="cpu")
    return evaluate(generator, run_folders.problem_set(3), folder, template=PLAIN, max_new_tokens=4).run


@pytest.fixture(scope="module")
def adapter(tiny_model, tmp_path_factory):
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("adapter")
    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    parts = {name.split(".")[-1] for name, part in base.named_modules() if isinstance(part, torch.nn.Linear)}
    torch.manual_seed(0)
    settings = peft.LoraConfig(
        r=2, target_modules=sorted(parts - {"lm_head"}), task_type="CAUSAL_LM", init_lora_weights=False
    )
    peft.get_peft_model(base, settings).save_pretrained(folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": str(tiny_model)}))
    return folder


def test_a_dry_run_writes_nothing_and_says_what_it_would(tiny_model, tmp_path, run_folders):
    run = asked(tiny_model, tmp_path / "run", run_folders)
    found = export([run], tmp_path / "out", merge_lora=False, write=False)
    assert not found.written
    assert found.files["weights"] > 1000
    assert not (tmp_path / "out").exists()


def test_a_merged_adapter_writes_the_same_greedy_text(adapter, tmp_path, run_folders):
    run = asked(adapter, tmp_path / "run", run_folders)
    found = export([run], tmp_path / "out", merge_lora=True, write=True)
    assert found.largest_difference < 1e-3
    assert not (tmp_path / "out" / "adapter_config.json").exists()
    again = asked(tmp_path / "out", tmp_path / "again", run_folders)
    assert [row["text"] for row in again.rows] == [row["text"] for row in run.rows]
    assert again.settings["generator"]["weights_sha256"] == found.weights_sha256


def test_the_folder_has_our_card_and_the_run_card_and_no_draft(adapter, tmp_path, run_folders):
    run = asked(adapter, tmp_path / "run", run_folders)
    export([run], tmp_path / "out", merge_lora=True, write=True)
    card = tmp_path / "out" / "README.md"
    assert "measured on base and adapter side by side" in card.read_text()
    assert verify_card(card, [run]) == []
    assert json.loads((tmp_path / "out" / "veriward" / "run" / "summary.json").read_text())["problems"] == 3
    assert {"model.safetensors", "tokenizer.json"} <= {file.name for file in (tmp_path / "out").iterdir()}


def test_weights_that_changed_since_the_run_are_refused(adapter, tmp_path, run_folders):
    import shutil

    moved = shutil.copytree(adapter, tmp_path / "adapter")
    run = asked(moved, tmp_path / "run", run_folders)
    file = moved / "adapter_model.safetensors"
    from safetensors.torch import load_file, save_file

    save_file({name: tensor * 2 for name, tensor in load_file(file).items()}, file)
    with pytest.raises(ConfigError, match="its weights have changed since run was asked"):
        export([run], tmp_path / "out", merge_lora=True, write=True)
    assert not (tmp_path / "out").exists()


def test_a_whole_model_has_nothing_to_merge(tiny_model, tmp_path, run_folders):
    run = asked(tiny_model, tmp_path / "run", run_folders)
    with pytest.raises(ConfigError, match="is no adapter, so there is nothing to merge"):
        export([run], tmp_path / "out", merge_lora=True, write=False)


def test_a_model_that_is_not_here_cannot_be_exported(run_folders, tmp_path):
    run = run_folders.write_run(tmp_path / "run", {"p0": r"\boxed{1}"})
    with pytest.raises(ConfigError, match="is no folder on this machine"):
        export([run], tmp_path / "out", merge_lora=False, write=False)


def test_a_folder_that_is_there_is_not_overwritten(run_folders, tmp_path):
    run = run_folders.write_run(tmp_path / "run", {"p0": r"\boxed{1}"})
    with pytest.raises(ConfigError, match="is there already"):
        export([run], tmp_path, merge_lora=False, write=True)


def test_the_command_is_a_dry_run_by_default(tiny_model, tmp_path, run_folders):
    asked(tiny_model, tmp_path / "run", run_folders)
    done = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "nothing was written" in done.stdout
    assert not (tmp_path / "out").exists()


def test_a_push_without_a_network_is_one_line_and_keeps_the_folder(tiny_model, tmp_path, run_folders, monkeypatch):
    asked(tiny_model, tmp_path / "run", run_folders)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    arguments = ["export", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--write", "--push", "me/mine"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "is written: log in" in done.stderr.splitlines()[-1]
    assert (tmp_path / "out" / "README.md").exists()


def test_a_push_of_nothing_is_refused(run_folders, tmp_path):
    run_folders.write_run(tmp_path / "run", {"p0": r"\boxed{1}"})
    done = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--push", "me/mine"])
    assert done.exit_code == 2
    assert "add --write" in done.stderr


def test_a_run_reads_back_from_the_folder_that_it_was_exported_with(tiny_model, tmp_path, run_folders):
    run = asked(tiny_model, tmp_path / "run", run_folders)
    export([run], tmp_path / "out", merge_lora=False, write=True)
    assert read_run(tmp_path / "run").fingerprint in (tmp_path / "out" / "README.md").read_text()


def test_nothing_of_a_person_is_in_the_way(tiny_model, tmp_path, run_folders):
    run = asked(tiny_model, tmp_path / "run", run_folders)
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "mine").write_text("kept")
    export([run], tmp_path / "out", merge_lora=False, write=True)
    assert (tmp_path / "out.part" / "mine").read_text() == "kept"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "out.part", "run"]
