"""What is asked for is understood, and what cannot work is refused in one line before anything heavy loads."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import pytest

from veriward.tool_agent.errors import ConfigError

pytest.importorskip("yaml")

from veriward.train.batch import plan_batch
from veriward.train.settings import Settings, all_keys, read_settings

MODULE = [sys.executable, "-P", "-m", "veriward.train.grpo"]
SCRIPT = [sys.executable, str(Path(__file__).parents[2] / "train" / "grpo.py")]
BASE = {"problems": "problems.jsonl", "model_name_or_path": "org/model"}


@pytest.fixture
def settings_of(tmp_path):
    """Settings from the lines of a config file and words of a command line."""

    def read(*lines: str, words: tuple[str, ...] = ()) -> Settings:
        path = tmp_path / "run.yaml"
        given = {line.split(":")[0] for line in lines}
        base = [f"{key}: {value}" for key, value in BASE.items() if key not in given]
        path.write_text("\n".join([*base, *lines]) + "\n", encoding="utf-8")
        return read_settings(["--config", str(path), *words])

    return read


# Read ---------------------------------------------------------------------------------------------


def test_the_command_line_wins_over_the_file(settings_of):
    settings = settings_of("max_steps: 5", words=("--max_steps", "7", "--format_weight=0.5"))
    assert (settings.library_value("max_steps"), settings.run.format_weight) == (7, 0.5)


@pytest.mark.parametrize("text", ["1e-6", "1.0e-6", "0.000001"])
def test_a_float_that_yaml_reads_as_text_is_a_number(settings_of, text):
    assert settings_of(f"learning_rate: {text}").library_value("learning_rate") == 1e-6


def test_keys_go_to_the_record_that_owns_them(settings_of):
    settings = settings_of("contract: v1", "lora_r: 8", "beta: 0.01")
    assert (settings.run.contract, settings.model["lora_r"], settings.grpo["beta"]) == ("v1", 8, 0.01)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        pytest.param(("--use_vllm",), "use_vllm", True, id="a flag alone is true"),
        pytest.param(("--use_vllm", "no"), "use_vllm", False, id="no is false"),
        pytest.param(("--no_shuffle_dataset",), "shuffle_dataset", False, id="no_ in front is false"),
        pytest.param(("--epsilon-high", "-1e-3"), "epsilon_high", -1e-3, id="hyphens and a negative number"),
        pytest.param(
            ("--lora_target_modules", "q_proj", "v_proj"), "lora_target_modules", ["q_proj", "v_proj"], id="list"
        ),
        pytest.param(("--min_p", "none"), "min_p", None, id="none"),
        pytest.param(("--generation_kwargs", '{"top_k": 5}'), "generation_kwargs", {"top_k": 5}, id="mapping"),
        pytest.param(("--report_to", "none"), "report_to", "none", id="report_to none is a word"),
    ],
)
def test_what_is_typed_has_the_type_of_its_field(settings_of, words, name, value):
    assert settings_of(words=words).library_value(name) == value


def test_a_preset_is_found_by_its_name():
    assert read_settings(["--config", "quickstart_cpu"]).run.prepare == "tiny"


def test_the_written_settings_give_the_same_run_again(settings_of, tmp_path):
    import yaml

    settings = settings_of("beta: 0.01", 'stop_strings: ["\\n\\nQ:"]', "env: {OMP_NUM_THREADS: 1}")
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(settings.as_given()), encoding="utf-8")
    assert read_settings(["--config", str(again)]).as_given() == settings.as_given()


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("beta: 0.5", False),
        ("format_weight: 0.5", False),
        ("output_dir: elsewhere", True),
        ("existing: set_aside", True),
    ],
)
def test_the_hash_follows_what_can_change_the_result(settings_of, line, same):
    assert (settings_of(line).digest() == settings_of().digest()) is same


def test_the_fields_read_from_source_are_those_of_the_real_dataclasses():
    pytest.importorskip("trl")
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.model_config import ModelConfig

    for owner, record in (("grpo", GRPOConfig), ("model", ModelConfig)):
        real = {f.name: f for f in dataclasses.fields(record) if f.init and not f.name.startswith("_")}
        read = {key.name: key for key in all_keys().values() if key.owner == owner}
        assert set(read) == set(real)
        plain = {
            name: f.default for name, f in real.items() if isinstance(f.default, int | float | str) or f.default is None
        }
        differing = {name: (read[name].default, value) for name, value in plain.items() if read[name].default != value}
        assert {name: pair for name, pair in differing.items() if name not in LEFT_TO_THE_LIBRARY} == {}


LEFT_TO_THE_LIBRARY = {
    "optim",
    "lr_scheduler_type",
    "logging_strategy",
    "save_strategy",
    "eval_strategy",
    "hub_strategy",
}
"""Defaults that are no literals in the source; none of them is read by our checks."""


# Refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param(["formt_weight: 1"], "unknown key 'formt_weight'; did you mean 'format_weight'", id="misspelt"),
        pytest.param(["learning_rat: 1"], "did you mean 'learning_rate'", id="misspelt library key"),
        pytest.param(["max_steps: ten"], r"max_steps is 'ten' \(str\); wanted a whole number", id="text for int"),
        pytest.param(["max_steps: 5.0"], "wanted a whole number", id="float for int"),
        pytest.param(["max_steps: true"], "wanted a whole number", id="bool for int"),
        pytest.param(["use_vllm: 1"], "wanted true or false", id="int for bool"),
        pytest.param(["learning_rate: fast"], "wanted a number", id="text for float"),
        pytest.param(["stop_strings: END"], "wanted a list of texts", id="text for list"),
        pytest.param(["loss_type: grop"], "wanted one of: grpo", id="unknown loss"),
        pytest.param(["contract: v9"], "contract 'v9' does not exist; use one of", id="no such contract"),
        pytest.param(["unsupported: half"], "wanted one of: zero, abstain", id="unknown word"),
        pytest.param(["beta: 1", "beta: 2"], "line 4.*'beta' stands twice", id="a key twice"),
        pytest.param(["problems: [a"], "line 3: cannot be read", id="broken YAML"),
        pytest.param(["model_name_or_path: ./no/model"], "no such folder", id="no model folder"),
        pytest.param(["model_name_or_path: null"], "'model_name_or_path' is missing", id="no model"),
        pytest.param(["reward_weights: [1.0]"], "set accuracy_weight", id="weights under TRL's name"),
        pytest.param(["resume_from_checkpoint: x"], "not supported yet", id="resume"),
        pytest.param(["hub_token: x"], "written into the run folder", id="a token"),
        pytest.param(["env: {WANDB_API_KEY: x}"], "written into the run folder; set it in the shell", id="a secret"),
        pytest.param(["eval_strategy: steps"], "not supported yet", id="evaluation in training"),
        pytest.param(["accuracy_weight: 0", "format_weight: 0"], "every reward weight is 0", id="no reward"),
        pytest.param(["max_problems: 0"], "must be at least 1", id="no problems"),
        pytest.param(["overlong_buffer: 9000"], "more than max_completion_length", id="buffer above the limit"),
        pytest.param(["template: plain", "enable_thinking: false"], "enable_thinking is for", id="thinking, no chat"),
        pytest.param(['stop_strings: [""]'], "end every response at once", id="empty stop string"),
        pytest.param(
            ['stop_strings: ["Q:"]', "mask_truncated_completions: true"], "turn one of the two off", id="stop and mask"
        ),
        pytest.param(['generation_kwargs: {stop: ["Q:"]}'], "give them as stop_strings", id="stop inside kwargs"),
        pytest.param(["prepare: tiny"], "give both in one FOLDER", id="tiny in another folder"),
    ],
)
def test_it_is_refused_in_one_line(settings_of, lines, message):
    with pytest.raises(ConfigError, match=message) as refused:
        settings_of(*lines)
    assert str(refused.value).startswith("run.yaml: ") or "run.yaml:" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ("--max_stepz", "5"), "command line: unknown key 'max_stepz'; did you mean 'max_steps'", id="misspelt"
        ),
        pytest.param(("--max_steps",), "--max_steps has no value", id="no value"),
        pytest.param(("--max_steps", "5", "6"), "has 2 values", id="two values"),
        pytest.param(("5",), "--config wants one YAML file", id="a value alone"),
    ],
)
def test_a_wrong_command_line_is_refused(settings_of, words, message):
    with pytest.raises(ConfigError, match=message):
        settings_of(words=words)


def test_a_missing_config_names_the_presets():
    with pytest.raises(ConfigError, match="no such config file; the presets are: quickstart_cpu"):
        read_settings(["--config", "nowhere.yaml"])


# Batch --------------------------------------------------------------------------------------------


def test_the_batch_is_told_in_words(settings_of):
    settings = settings_of("per_device_train_batch_size: 128", "max_steps: 60")
    words = plan_batch(settings, ranks=1, prompts=4000).in_words()
    assert words == "16 prompts x 8 completions a step; 0 prompts dropped an epoch; 60 steps"


def test_prompts_left_over_at_the_end_of_an_epoch_are_counted(settings_of):
    settings = settings_of("per_device_train_batch_size: 128", "num_train_epochs: 2")
    plan = plan_batch(settings, ranks=1, prompts=100)
    assert (plan.dropped_per_epoch, plan.steps) == (4, 12)


@pytest.mark.parametrize(
    ("lines", "ranks", "generation", "steps_each"),
    [
        pytest.param(["gradient_accumulation_steps: 4"], 1, 32, 1, id="accumulation makes one larger step"),
        pytest.param(["steps_per_generation: 4"], 1, 32, 4, id="one generation feeds four steps"),
        pytest.param(["generation_batch_size: 64"], 2, 64, 4, id="two processes share it"),
        pytest.param(["num_iterations: 2"], 1, 8, 2, id="each completion is used twice"),
    ],
)
def test_the_batch_comes_out_as_trl_has_it(settings_of, lines, ranks, generation, steps_each):
    plan = plan_batch(settings_of(*lines), ranks=ranks, prompts=1000)
    assert (plan.completions_per_generation, plan.steps_per_generation) == (generation, steps_each)


@pytest.mark.parametrize(
    ("lines", "prompts", "message"),
    [
        pytest.param(["per_device_train_batch_size: 12"], None, "do not divide by num_generations = 8", id="no groups"),
        pytest.param(["generation_batch_size: 20"], None, "not a multiple of", id="no whole steps"),
        pytest.param(["num_generations: 1"], None, "at least 2 completions", id="a group of one"),
        pytest.param(["generation_batch_size: 8", "steps_per_generation: 1"], None, "both set", id="said twice"),
        pytest.param(["per_device_train_batch_size: 80"], 9, "9 usable problems, fewer than the 10", id="too few"),
    ],
)
def test_a_batch_that_does_not_come_out_is_refused(settings_of, lines, prompts, message):
    with pytest.raises(ConfigError, match=message):
        plan_batch(settings_of(*lines), ranks=1, prompts=prompts)


# The command --------------------------------------------------------------------------------------


def command(*words: str, program: list[str] = SCRIPT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("program", [SCRIPT, MODULE], ids=["file", "module"])
def test_without_a_config_it_shows_the_presets_and_the_next_command_within_two_seconds(program):
    started = time.monotonic()
    done = command(program=program)
    assert done.returncode == 2
    assert time.monotonic() - started < 2
    assert "quickstart_cpu" in done.stdout
    assert "accelerate launch" in done.stdout
    assert "--config" in done.stdout


def test_help_names_our_keys_and_the_libraries():
    done = command("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("--problems", "--check", "learning_rate", "lora_r"))


def test_a_refusal_is_one_line_and_exit_code_2_before_torch_loads(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("problems: a.jsonl\nmodel_name_or_path: a/b\nformt_weight: 1\n", encoding="utf-8")
    code = (
        "import sys; from veriward.train.grpo import main; code = main(sys.argv[1:]); "
        "print('torch' in sys.modules, 'trl' in sys.modules); sys.exit(code)"
    )
    done = command("--config", str(config), program=[sys.executable, "-P", "-c", code])
    assert done.returncode == 2
    assert done.stderr.strip() == "run.yaml: unknown key 'formt_weight'; did you mean 'format_weight'?"
    assert done.stdout.strip() == "False False"


def test_what_a_config_says_of_its_problems_does_not_hold_for_others_given_instead(tmp_path):
    settings = read_settings(["--config", "qwen3_0.6b_1gpu", "--problems", "mine.jsonl", "--reference_column", "key"])
    assert settings.run.problems_split is None
    assert settings.run.question_column is None
    assert settings.run.reference_column == "key"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seed", "-1"], "seed is -1; it must be between 0 and"),
        (["--learning_rate", "-1.0"], "learning_rate is -1.0; it must be between"),
        (["--temperature", "0"], "temperature is 0"),
        (["--top_p", "2.0"], "top_p is 2.0"),
        (["--max_steps", "0"], "max_steps is 0"),
        (["--max_steps", "-1", "--num_train_epochs", "0"], "num_train_epochs is 0"),
    ],
)
def test_a_number_that_something_would_refuse_much_later_is_refused_now(words, message):
    with pytest.raises(ConfigError, match=message):
        read_settings(["--config", "quickstart_cpu", *words])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("learning_rate: .nan", "learning_rate is nan; it must be between"),
        ("accuracy_weight: .inf", "the weight of accuracy_reward is inf"),
    ],
)
def test_what_yaml_writes_for_no_number_is_refused(line, message, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(f"model_name_or_path: org/model\nproblems: mine.jsonl\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_settings(["--config", str(config)])
