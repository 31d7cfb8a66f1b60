"""The settings of a training run: one YAML file and the command line, checked before anything heavy loads.

One flat file fills three records: `RunSettings` (ours, below), TRL's `GRPOConfig` and TRL's `ModelConfig`.
Every key can be given on the command line as `--key value`, which wins over the file.
`keys` says what a single value may be, `cross_checks` what they may be together.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from veriward.eval.yaml_file import load_yaml
from veriward.rewards import CONTRACTS, DEFAULT, DEFAULT_WEIGHTS
from veriward.rewards.pool import DEADLINE_S, MEMORY_MB, WARN_NOT_DECIDED
from veriward.rewards.worker_pool import LEAST_MEMORY_MB
from veriward.tool_agent.errors import ConfigError
from veriward.train.cross_checks import CROSS_CHECKS
from veriward.train.keys import (
    LIBRARY_SOURCES,
    Key,
    checked,
    did_you_mean,
    from_text,
    library_fields,
)

PRESETS = Path(__file__).parent / "presets"


OF_THE_PROBLEMS = ("problems_split", "question_column", "reference_column")
"""Keys that describe the problems of a config; given other problems on the command line, they go with the old ones."""


INSTEAD: Mapping[str, str] = {
    "reward_weights": "set accuracy_weight, format_weight, supported_weight, overlong_weight, repetition_weight",
    "resume_from_checkpoint": "resuming is not supported yet (TRL repeats and skips prompts after the first epoch); "
    "start a new run, with model_name_or_path set to the checkpoint to go on from its weights",
    "auto_find_batch_size": "GRPO needs whole prompt groups; lower per_device_train_batch_size instead",
    "remove_unused_columns": "the reward components read the columns that this would remove; leave it out",
    "hub_token": "it would be written into the run folder; log in with `hf auth login` instead",
    "push_to_hub": "nothing is uploaded by this command; upload the finished folder with `hf upload`",
}
"""Library keys that this command decides itself, with what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a run needs beyond TRL's own settings."""

    problems: str = field(metadata={"help": "problem file (JSONL) or the name of a `datasets` set"})
    problems_split: str | None = field(default=None, metadata={"help": "split of a `datasets` set, as 'train'"})
    question_column: str | None = field(default=None, metadata={"help": "column of the question; found if unset"})
    reference_column: str | None = field(default=None, metadata={"help": "column of the answer key; found if unset"})
    max_problems: int | None = field(default=None, metadata={"help": "take only the first N problems"})
    template: str = field(default="chat", metadata={"help": "'chat', 'plain' or the path of a template file"})
    instruction: str | None = field(default=None, metadata={"help": "asks for the boxed answer; a good one if unset"})
    enable_thinking: bool | None = field(default=None, metadata={"help": "handed to the chat template; unset: not"})
    stop_strings: list[str] = field(
        default_factory=list, metadata={"help": "texts that end a response, whatever the engine"}
    )
    contract: str = field(default=DEFAULT, metadata={"help": "grading contract: " + ", ".join(CONTRACTS)})
    accuracy_weight: float = field(
        default=DEFAULT_WEIGHTS["accuracy_reward"], metadata={"help": "weight of accuracy_reward"}
    )
    format_weight: float = field(
        default=DEFAULT_WEIGHTS["format_reward"],
        metadata={"help": "weight of format_reward: well under accuracy_weight, or a boxed guess pays nearly as well"},
    )
    supported_weight: float = field(
        default=DEFAULT_WEIGHTS["supported_reward"], metadata={"help": "weight of supported_reward; 0: logged only"}
    )
    overlong_weight: float | None = field(default=None, metadata={"help": "weight of overlong_penalty; unset: absent"})
    repetition_weight: float | None = field(
        default=None, metadata={"help": "weight of repetition_penalty; unset: absent"}
    )
    overlong_buffer: int = field(
        default=0, metadata={"help": "tokens before the limit over which overlong_penalty grows"}
    )
    unsupported: str = field(
        default="zero",
        metadata={"help": "pay of an answer that the contract cannot read", "choices": ("zero", "abstain")},
    )
    fallback: str = field(
        default="pay",
        metadata={"help": "whether a right answer outside a box earns accuracy", "choices": ("pay", "zero")},
    )
    verdict_workers: int | None = field(
        default=None, metadata={"help": "processes that verdicts of a rank run in; unset: 1; 0: in the trainer itself"}
    )
    verdict_deadline_s: float = field(
        default=DEADLINE_S, metadata={"help": "seconds a comparison may take before its process is killed"}
    )
    verdict_memory_mb: int = field(default=MEMORY_MB, metadata={"help": "address space of such a process in MiB"})
    warn_not_decided: float = field(
        default=WARN_NOT_DECIDED,
        metadata={"help": "share of verdicts that say nothing about the answer, above which a loud line is printed"},
    )
    unreadable_references: str = field(
        default="exclude",
        metadata={
            "help": "problems whose answer key cannot be read: left out and listed, or kept though never paid",
            "choices": ("exclude", "keep"),
        },
    )
    require_references: bool = field(
        default=False, metadata={"help": "stop before the model loads if one answer key cannot be read"}
    )
    prepare: str | None = field(
        default=None, metadata={"help": "'tiny': make the tiny model and problems if absent", "choices": ("tiny",)}
    )
    prepare_timeout: int = field(default=1800, metadata={"help": "seconds that other ranks wait for rank 0"})
    device: str = field(
        default="auto",
        metadata={"help": "where to train; 'cuda' refuses to start without one", "choices": ("auto", "cuda", "cpu")},
    )
    existing: str = field(
        default="refuse",
        metadata={
            "help": "a run folder with files in it: refuse, or set it aside as NAME.old-1",
            "choices": ("refuse", "set_aside"),
        },
    )

    def __post_init__(self) -> None:
        for name, least in (
            *(("max_problems", 1), ("prepare_timeout", 1), ("overlong_buffer", 0), ("verdict_workers", 0)),
            *(("verdict_deadline_s", 0.01), ("verdict_memory_mb", LEAST_MEMORY_MB), ("warn_not_decided", 0)),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} is {value}; it must be at least {least}")
        if self.contract not in CONTRACTS:
            raise ConfigError(f"contract {self.contract!r} does not exist; use one of: {', '.join(CONTRACTS)}")
        if not any(weight for weight in self.weights.values()):
            raise ConfigError("every reward weight is 0, so nothing could be learned; set accuracy_weight, as 1.0")
        if "" in self.stop_strings:
            raise ConfigError("stop_strings holds an empty text, which would end every response at once; remove it")

    @property
    def weights(self) -> dict[str, float]:
        """Component name to weight, for the components that this run computes."""
        asked = {
            "accuracy_reward": self.accuracy_weight,
            "format_reward": self.format_weight,
            "supported_reward": self.supported_weight,
            "overlong_penalty": self.overlong_weight,
            "repetition_penalty": self.repetition_weight,
        }
        return {name: weight for name, weight in asked.items() if weight is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that was asked for, sorted by whom it is for."""

    source: str
    """The config file as it was named."""
    run: RunSettings
    grpo: Mapping[str, Any]
    model: Mapping[str, Any]
    env: Mapping[str, str]
    check_only: bool = False

    @property
    def output_dir(self) -> Path:
        return Path(str(self.grpo["output_dir"]))

    def library_value(self, name: str) -> Any:
        """The value that TRL will see for one of its keys, without importing TRL."""
        given = self.grpo if name in self.grpo else self.model
        return given[name] if name in given else all_keys()[name].default

    def as_given(self) -> dict[str, Any]:
        """Flat and re-usable as a config file: our settings in full, and the library keys that were set."""
        ours = {f.name: getattr(self.run, f.name) for f in fields(self.run)}
        flat = {**ours, **self.model, **self.grpo}
        return {**({"env": dict(self.env)} if self.env else {}), **flat}

    def digest(self) -> str:
        """sha256 over the settings that can change the result: not the folder, nor what is done with an old one."""
        kept = {k: v for k, v in self.as_given().items() if k not in ("output_dir", "existing", "prepare_timeout")}
        return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()


# Keys ---------------------------------------------------------------------------------------------


@cache
def all_keys() -> dict[str, Key]:
    """Every key that a config file may hold. Ours win over library fields of the same name."""
    keys: dict[str, Key] = {}
    for package, file, class_name in LIBRARY_SOURCES:
        owner = "model" if class_name == "ModelConfig" else "grpo"
        for key in library_fields(package, file, class_name, owner):
            keys[key.name] = key
    return {**keys, **{key.name: key for key in own_fields()}}


def own_fields() -> Iterator[Key]:
    for item in fields(RunSettings):
        default = item.default if item.default_factory is MISSING else item.default_factory()
        default = None if default is MISSING else default
        yield Key(
            name=item.name,
            annotation=str(item.type),
            owner="run",
            default=default,
            help=item.metadata["help"],
            choices=item.metadata.get("choices"),
        )


# The file -----------------------------------------------------------------------------------------


def find_config(name: str) -> Path:
    """A path, or the name of a preset: `quickstart_cpu` and `quickstart_cpu.yaml` both stand for ours."""
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        raise ConfigError(f"{name}: is a folder; --config wants a YAML file")
    preset = PRESETS / f"{name.removesuffix('.yaml')}.yaml"
    if path.name == name and preset.is_file():
        return preset
    raise ConfigError(f"{name}: no such config file; the presets are: {', '.join(sorted(presets()))}")


def presets() -> dict[str, Path]:
    return {path.stem: path for path in PRESETS.glob("*.yaml")}


def read_yaml(path: Path) -> dict[str, Any]:
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark is not None else ""
        raise ConfigError(f"{path.name}:{line} cannot be read: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path.name}: holds {type(content).__name__}; wanted lines of the form 'key: value'")
    return {str(key): value for key, value in content.items()}


# The command line ---------------------------------------------------------------------------------


def split_options(arguments: Sequence[str]) -> dict[str, list[str]]:
    """`--a 1 --b=2 3 --c` as {'a': ['1'], 'b': ['2', '3'], 'c': []}; a number may be negative."""
    options: dict[str, list[str]] = {}
    current: list[str] | None = None
    for argument in arguments:
        if argument.startswith("--") and len(argument) > 2:
            name, _, value = argument[2:].partition("=")
            current = options[name.replace("-", "_")] = [value] if "=" in argument else []
        elif current is None:
            raise ConfigError(f"command line: {argument!r} stands alone; wanted --key value")
        else:
            current.append(argument)
    return options


# All together -------------------------------------------------------------------------------------


def read_settings(arguments: Sequence[str]) -> Settings:
    """The settings of a command line with `--config FILE`, every key and type checked; imports no torch."""
    options = split_options(arguments)
    config = options.pop("config", [])
    if len(config) != 1:
        raise ConfigError("command line: --config wants one YAML file or the name of a preset")
    check_only = options.pop("check", None) is not None
    path = find_config(config[0])
    content = read_yaml(path)
    env = environment(path.name, content.pop("env", None))
    values = {name: checked(path.name, known_key(path.name, name), value) for name, value in content.items()}
    given = dict(command_line_values(options))
    if "problems" in given:  # what the file says of its own problems does not hold for these
        values = {name: value for name, value in values.items() if name not in OF_THE_PROBLEMS}
    values |= given
    if "problems" not in values:
        raise ConfigError(f"{path.name}: 'problems' is missing; set it to a JSONL file or the name of a `datasets` set")
    if not values.get("model_name_or_path"):
        raise ConfigError(f"{path.name}: 'model_name_or_path' is missing; set it to a model folder or a hub name")
    values.setdefault("output_dir", f"runs/{path.stem}")
    return sorted_by_owner(str(config[0]), path.name, values, env, check_only)


def sorted_by_owner(
    source: str, where: str, values: Mapping[str, object], env: Mapping[str, str], check_only: bool
) -> Settings:
    keys = all_keys()
    by_owner: dict[str, dict[str, Any]] = {"run": {}, "grpo": {}, "model": {}}
    for name, value in values.items():
        by_owner[keys[name].owner][name] = value
    try:
        run = RunSettings(**by_owner["run"])
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    settings = Settings(
        source=source, run=run, grpo=by_owner["grpo"], model=by_owner["model"], env=env, check_only=check_only
    )
    for check in CROSS_CHECKS:
        problem = check(settings)
        if problem is not None:
            raise ConfigError(f"{where}: {problem}")
    return settings


def known_key(where: str, name: str) -> Key:
    key = all_keys().get(name)
    if key is None:
        raise ConfigError(f"{where}: unknown key {name!r}{did_you_mean(name, list(all_keys()))}")
    if name in INSTEAD:
        raise ConfigError(f"{where}: {name} cannot be set here: {INSTEAD[name]}")
    return key


def command_line_values(options: Mapping[str, list[str]]) -> Iterator[tuple[str, object]]:
    for name, texts in options.items():
        negated = name.removeprefix("no_")
        if name not in all_keys() and negated in all_keys() and "bool" in all_keys()[negated].kinds and not texts:
            yield negated, False
            continue
        key = known_key("command line", name)
        yield name, checked("command line", key, from_text(key, texts))


def environment(where: str, given: object) -> dict[str, str]:
    """The `env:` block: variables that must be set before torch loads, as OMP_NUM_THREADS."""
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str | int | float) for value in given.values()):
        raise ConfigError(f"{where}: env is {given!r}; wanted a mapping of variable names to texts")
    secret = next((name for name in given if re.search("TOKEN|KEY|SECRET|PASSWORD", str(name).upper())), None)
    if secret is not None:
        raise ConfigError(
            f"{where}: env holds {secret}, which would be written into the run folder; set it in the shell"
        )
    return {str(name): str(value) for name, value in given.items()}
