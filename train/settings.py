"""The settings of a training run: one YAML file and the command line, checked before anything heavy loads.

One flat file fills three records: `RunSettings` (ours, below), TRL's `GRPOConfig` and TRL's `ModelConfig`.
Every key can be given on the command line as `--key value`, which wins over the file.
Importing torch and trl takes seconds, so their keys are read from their source text, which takes
milliseconds: a misspelt key or a wrong type is refused at once. A test holds that text and the real
dataclasses together.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.util
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from veriward.eval.errors import ConfigError
from veriward.rewards import CONTRACTS, DEFAULT, DEFAULT_WEIGHTS

PRESETS = Path(__file__).parent / "presets"
INSTALL_HINT = "install it with: pip install 'veriward[train]'"

LIBRARY_SOURCES = (
    ("transformers", "training_args.py", "TrainingArguments"),
    ("trl", "trainer/base_config.py", "_BaseConfig"),
    ("trl", "trainer/grpo_config.py", "GRPOConfig"),
    ("trl", "trainer/model_config.py", "ModelConfig"),
)
"""Where the fields of GRPOConfig (three classes, the later ones override) and ModelConfig stand."""

OF_THE_PROBLEMS = ("problems_split", "question_column", "reference_column")
"""Keys that describe the problems of a config; given other problems on the command line, they go with the old ones."""

FILE_OR_MAPPING = ("deepspeed", "fsdp_config", "accelerator_config")
"""Keys whose text is the path of a JSON file."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "loss_type": ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"),
    "scale_rewards": ("group", "batch", "none", "true", "false"),
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_mode": ("colocate", "server"),
    "dtype": ("auto", "bfloat16", "float16", "float32"),
}
"""Words that TRL itself would refuse only after the model has loaded, or not at all."""

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
    unreadable_references: str = field(
        default="exclude",
        metadata={
            "help": "problems whose answer key cannot be read: left out and listed, or kept though never paid",
            "choices": ("exclude", "keep"),
        },
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
        for name, least in (("max_problems", 1), ("prepare_timeout", 1), ("overlong_buffer", 0)):
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
class Key:
    """One setting: its name, its type as written in the source, and whose it is."""

    name: str
    annotation: str
    owner: str
    """'run', 'grpo' or 'model'."""
    default: object
    help: str = ""
    choices: tuple[str, ...] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """'int | None' as ('int', 'None'); a class of words, as SchedulerType, is 'str'."""
        parts = [part.strip() for part in self.annotation.split("|")]
        known = ("int", "float", "str", "bool", "None")
        kinds = [
            part if part in known or part.startswith(("list", "dict")) else "bool" if "False" in part else "str"
            for part in parts
        ]
        if any(kind.startswith("dict") for kind in kinds) and self.name not in FILE_OR_MAPPING:
            kinds = [
                kind for kind in kinds if kind != "str"
            ]  # TRL takes JSON text there; a mapping says the same and can be checked
        return tuple(kinds)


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


def library_fields(package: str, file: str, class_name: str, owner: str) -> Iterator[Key]:
    """The dataclass fields of one class, read from the installed source without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(f"the package '{package}' is not installed; {INSTALL_HINT}")
    path = Path(spec.origin).parent / file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next((n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name), None)
    if body is None:
        raise ConfigError(f"{path}: no class {class_name}; this version of {package} is not supported; {INSTALL_HINT}")
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, keywords = node.target.id, call_keywords(node.value)
            if not name.startswith("_") and keywords.get("init") is not False:
                yield Key(
                    name=name,
                    annotation=ast.unparse(node.annotation),
                    owner=owner,
                    default=keywords.get("default"),
                    choices=CHOICES.get(name),
                )


def call_keywords(value: ast.expr | None) -> dict[str, object]:
    """The literal keyword values of `field(default=…, init=…)`; what is not a literal is left out."""
    if not isinstance(value, ast.Call):
        return {"default": value.value} if isinstance(value, ast.Constant) else {}
    found: dict[str, object] = {}
    for keyword in value.keywords:
        try:
            found[str(keyword.arg)] = ast.literal_eval(keyword.value)
        except ValueError:
            continue
    return found


def did_you_mean(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else "; `--help` lists the keys"


# Values -------------------------------------------------------------------------------------------


def checked(where: str, key: Key, value: object) -> object:
    """The value in the type of its field, or one line saying what was wanted."""
    value = in_kind(key, value, where)
    if key.choices is not None and value is not None and str(value).lower() not in key.choices:
        raise ConfigError(f"{where}: {key.name} is {value!r}; wanted one of: {', '.join(key.choices)}")
    return value


def in_kind(key: Key, value: object, where: str) -> object:
    for kind in key.kinds:
        matched, converted = match_kind(kind, value)
        if matched:
            return converted
    raise ConfigError(
        f"{where}: {key.name} is {value!r} ({type(value).__name__}); wanted {' or '.join(map(spoken, key.kinds))}"
    )


def match_kind(kind: str, value: object) -> tuple[bool, object]:
    """Whether a YAML value is of this kind, and the value in it; '1e-6', which YAML reads as text, is a float."""
    if kind.startswith("list"):
        inner = kind[5:-1] or "str"
        items = value if isinstance(value, list) else None
        matches = [match_kind(inner, item) for item in items] if items is not None else []
        return items is not None and all(ok for ok, _ in matches), [item for _, item in matches]
    if kind.startswith("dict"):
        return isinstance(value, dict), value
    if kind == "None":
        return value is None, None
    if kind == "bool":
        return isinstance(value, bool), value
    if isinstance(value, bool):
        return False, None
    if kind == "int":
        return isinstance(value, int), value
    if kind == "float":
        if isinstance(value, int | float):
            return True, float(value) if isinstance(value, float) else value
        return (True, float(value)) if isinstance(value, str) and is_float(value) else (False, None)
    return isinstance(value, str), value


def is_float(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text.strip()) is not None


def spoken(kind: str) -> str:
    words = {
        "int": "a whole number",
        "float": "a number",
        "str": "a text",
        "bool": "true or false",
        "None": "null",
        "list[str]": "a list of texts",
        "list[float]": "a list of numbers",
    }
    return words.get(kind, "a list" if kind.startswith("list") else "a mapping")


# The file -----------------------------------------------------------------------------------------


class OneMeaningLoader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML as usual, but a key that stands twice is refused: the loader would silently take the last."""


def _mapping(loader: OneMeaningLoader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
        seen.add(key.value)
    return dict(loader.construct_pairs(node, deep=True))


OneMeaningLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


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
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=OneMeaningLoader)  # noqa: S506 (a SafeLoader)
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


def from_text(key: Key, texts: Sequence[str]) -> object:
    """What was typed, in the type of the field; the check follows as for a file."""
    where = f"command line: --{key.name}"
    if any(kind.startswith("list") for kind in key.kinds) and not (len(texts) == 1 and key.kinds[0] in ("None", "str")):
        if len(texts) == 1 and texts[0].lstrip().startswith("["):
            return yaml_value(where, texts[0])
        return [yaml_value(where, text) if "float" in key.annotation else text for text in texts]
    if not texts and "bool" in key.kinds:
        return True
    if len(texts) != 1:
        got = f"{len(texts)} values {list(texts)}" if texts else "no value"
        raise ConfigError(f"{where} has {got}; wanted {' or '.join(map(spoken, key.kinds))}")
    return typed(where, key, texts[0])


def typed(where: str, key: Key, text: str) -> object:
    kinds = key.kinds
    if text.lower() in ("none", "null") and "None" in kinds and key.name != "report_to":
        return None
    if "bool" in kinds and text.lower() in ("true", "false", "yes", "no", "1", "0"):
        return text.lower() in ("true", "yes", "1")
    if any(kind.startswith("dict") for kind in kinds) and text.lstrip().startswith("{"):
        return yaml_value(where, text)
    if "int" in kinds and re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if "float" in kinds and is_float(text):
        return float(text)
    return text


def yaml_value(where: str, text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"{where}: {text!r} cannot be read; write it as YAML or JSON") from None


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


def numbers_out_of_range(settings: Settings) -> str | None:
    """What numpy, torch or transformers would refuse in the middle of things, or TRL would take without a word."""
    for name, (least, most) in RANGES.items():
        value = settings.library_value(name)
        if isinstance(value, int | float) and not least <= value <= most:
            return f"{name} is {value}; it must be between {least:g} and {most:g}"
    uneven = [name for name, weight in settings.run.weights.items() if not math.isfinite(weight)]
    if uneven:
        return f"the weight of {uneven[0]} is {settings.run.weights[uneven[0]]}; it must be a finite number"
    if settings.library_value("max_steps") == 0:
        return "max_steps is 0; give at least 1, or leave it out for num_train_epochs"
    if settings.library_value("max_steps") < 0 and not settings.library_value("num_train_epochs") > 0:
        return f"num_train_epochs is {settings.library_value('num_train_epochs')}; it must be above 0"
    return None


def overlong_buffer_too_long(settings: Settings) -> str | None:
    limit, buffer = settings.library_value("max_completion_length"), settings.run.overlong_buffer
    if limit is None or limit < 1:
        return f"max_completion_length is {limit}; it must be at least 1 token"
    return None if buffer <= limit else f"overlong_buffer is {buffer}, more than max_completion_length = {limit}"


def stop_strings_twice(settings: Settings) -> str | None:
    inside = settings.library_value("generation_kwargs")
    if isinstance(inside, dict) and {"stop", "stop_strings"} & set(inside):
        return "generation_kwargs holds stop strings; give them as stop_strings, which serves every engine"
    return None


def stop_strings_unheard(settings: Settings) -> str | None:
    if not settings.run.stop_strings:
        return None
    if settings.library_value("use_transformers_continuous_batching"):
        return "stop_strings are not heard by use_transformers_continuous_batching; turn one of the two off"
    if settings.library_value("mask_truncated_completions"):
        return (
            "mask_truncated_completions takes every response that a stop string ended for a truncated one "
            "(it has no end token) and would learn nothing from it; turn one of the two off"
        )
    return None


def thinking_without_chat(settings: Settings) -> str | None:
    if settings.run.enable_thinking is not None and settings.run.template != "chat":
        return f"enable_thinking is for template: chat, and template is {settings.run.template!r}; remove one"
    inside = settings.library_value("chat_template_kwargs")
    if settings.run.enable_thinking is not None and isinstance(inside, dict) and "enable_thinking" in inside:
        return "enable_thinking stands in chat_template_kwargs, too; remove it there"
    return None


def evaluation_without_problems(settings: Settings) -> str | None:
    if settings.grpo.get("eval_strategy", "no") != "no":
        return (
            "eval_strategy: evaluation in training is not supported yet; evaluate the saved model with `veriward eval`"
        )
    return None


def tiny_paths(settings: Settings) -> str | None:
    """`prepare: tiny` writes FOLDER/base and FOLDER/data, so both paths must lie there."""
    if settings.run.prepare != "tiny":
        return None
    model = Path(str(settings.model["model_name_or_path"]))
    wanted = model.parent / "data"
    if model.name != "base" or Path(settings.run.problems).parent != wanted:
        return (
            f"prepare: tiny makes FOLDER/base and FOLDER/data/train.jsonl, but model_name_or_path is '{model}' and "
            f"problems is '{settings.run.problems}'; give both in one FOLDER"
        )
    return None


def model_folder_missing(settings: Settings) -> str | None:
    name = str(settings.model["model_name_or_path"])
    looks_local = name.startswith((".", "/", "~")) or name.count("/") != 1
    path = Path(name).expanduser()
    if settings.run.prepare == "tiny" or not (looks_local and "/" in name) or path.is_dir():
        return None
    return f"model_name_or_path is '{name}': no such folder; give a model folder or a hub name as 'Qwen/Qwen3-0.6B'"


RANGES: Mapping[str, tuple[float, float]] = {
    "seed": (0, 2**32 - 1),
    "learning_rate": (0.0, 1e3),
    "temperature": (1e-4, 1e4),
    "top_p": (1e-9, 1.0),
    "beta": (0.0, 1e6),
    "epsilon": (0.0, 1e6),
    "weight_decay": (0.0, 1e3),
    "max_grad_norm": (0.0, 1e9),
}
"""Least and most; NaN lies in no range."""

CROSS_CHECKS: tuple[Callable[[Settings], str | None], ...] = (
    numbers_out_of_range,
    overlong_buffer_too_long,
    stop_strings_twice,
    stop_strings_unheard,
    thinking_without_chat,
    evaluation_without_problems,
    tiny_paths,
    model_folder_missing,
)
