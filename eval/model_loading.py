"""Models and tokenizers as `transformers` loads them, and the hashes that tell one checkpoint from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriward.tool_agent.errors import ConfigError, need

if TYPE_CHECKING:
    import torch

GGUF = ".gguf"


def choose_device(wanted: str | None) -> str:
    import torch

    if wanted is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(wanted).type
    except RuntimeError as error:
        raise ConfigError(f"unknown device {wanted!r}: {first_line(error)}") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f"device {wanted!r} asked for, but this torch ({torch.__version__}) finds no CUDA device; use cpu"
        )
    return wanted


def load(name: str, *, device: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """Model and tokenizer, the model in evaluation mode on its device."""
    check_place(name)
    if is_adapter(name):
        return load_adapter(name, device=device, dtype=dtype)
    return load_model(name, device=device, dtype=dtype), load_tokenizer(name)


def check_place(name: str) -> None:
    """ConfigError for a path without a model, found before anything is loaded."""
    path = Path(name)
    if path.suffix.lower() == GGUF:
        if not path.is_file():
            raise ConfigError(f"{name}: no such file; wanted a GGUF file")
        need("gguf", extra="gguf", purpose=f"{path.name} is a GGUF file, and loading it")
    elif is_adapter(name):
        return
    elif path.is_dir() and not (path / "config.json").is_file():
        raise ConfigError(f"{name}: no config.json or adapter_config.json in it; wanted a folder with a saved model")
    elif not path.is_dir() and (path.is_absolute() or name.count("/") > 1 or name.startswith(".")):
        raise ConfigError(f"{name}: no such folder; wanted a saved model's folder, or a hub name")


def is_adapter(name: str) -> bool:
    return Path(name, "adapter_config.json").is_file()


def split_gguf(name: str) -> tuple[str, dict[str, str]]:
    """What `from_pretrained` takes: a GGUF file is named by its folder and an option."""
    path = Path(name)
    return (str(path.parent), {"gguf_file": path.name}) if path.suffix.lower() == GGUF else (name, {})


def load_model(name: str, *, device: str, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    auto_class: Any = AutoModelForCausalLM
    place, options = split_gguf(name)
    try:
        model, info = auto_class.from_pretrained(place, dtype=dtype, output_loading_info=True, **options)
    except Exception as error:  # a damaged folder fails in as many ways as there are files in it
        raise ConfigError(f"{name}: no model can be loaded from it: {first_line(error)}") from error
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        raise ConfigError(
            f"{name}: {len(missing)} weights are missing, such as {missing[0]}; "
            "they would be random numbers: save the model again"
        )
    return model.to(device).eval()


def load_tokenizer(name: str) -> Any:
    from transformers import AutoTokenizer

    place, options = split_gguf(name)
    try:
        return AutoTokenizer.from_pretrained(place, **options)
    except Exception as error:
        raise ConfigError(f"{name}: no tokenizer can be loaded from it: {first_line(error)}") from error


def load_adapter(name: str, *, device: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """A LoRA adapter on its base; the tokenizer of the adapter's folder if there is one, else the base's."""
    need("peft", extra="train", purpose=f"{name} is an adapter, and loading it")
    from peft import PeftConfig, PeftModel

    base = PeftConfig.from_pretrained(name).base_model_name_or_path
    if not base:
        raise ConfigError(f"{name}: adapter_config.json names no base model (base_model_name_or_path); add it there")
    model = PeftModel.from_pretrained(load_model(base, device=device, dtype=dtype), name)
    tokenizer = load_tokenizer(name if (Path(name) / "tokenizer_config.json").is_file() else base)
    return model.to(device).eval(), tokenizer


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def hash_weights(model: Any) -> str:
    """sha256 over the names and bytes of all weights: another checkpoint under the same path is noticed."""
    return hash_tensors(model.state_dict())


def hash_tensors(tensors: Mapping[str, Any]) -> str:
    import torch

    digest = hashlib.sha256()
    for name, tensor in tensors.items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).cpu().numpy())
    return digest.hexdigest()


def hash_adapter(model: Any) -> str | None:
    """sha256 over the weights of a LoRA adapter alone; None for a model without one."""
    if not hasattr(model, "get_base_model"):
        return None
    from peft import get_peft_model_state_dict

    # Left to itself peft asks the hub whether the base's embeddings were resized.
    return hash_tensors(
        get_peft_model_state_dict(model, adapter_name=name_of_adapter(model), save_embedding_layers=False)
    )


def name_of_adapter(model: Any) -> str:
    active = model.active_adapter
    return active if isinstance(active, str) else str(active[0])


def hash_tokenizer(tokenizer: Any) -> str:
    """Of a fast tokenizer's definition; of the vocabulary for the few others."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    definition = json.loads(backend.to_str()) if backend is not None else sorted(tokenizer.get_vocab().items())
    if isinstance(definition, dict):  # what the last call padded or cut to is no part of it
        definition |= {"padding": None, "truncation": None}
    return hashlib.sha256(json.dumps(definition).encode()).hexdigest()
