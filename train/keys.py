"""One setting: its name, its type as the installed libraries write it, and whether a value fits.

The fields of TRL's dataclasses are read from their source text, since importing torch and trl takes seconds: a
misspelt key or a wrong type is refused at once. A test holds that text and the real dataclasses together.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from veriward.tool_agent.errors import ConfigError

INSTALL_HINT = "install it with: pip install 'veriward[train]'"


LIBRARY_SOURCES = (
    ("transformers", "training_args.py", "TrainingArguments"),
    ("trl", "trainer/base_config.py", "_BaseConfig"),
    ("trl", "trainer/grpo_config.py", "GRPOConfig"),
    ("trl", "trainer/model_config.py", "ModelConfig"),
)
"""Where the fields of GRPOConfig (three classes, the later ones override) and ModelConfig stand."""


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
