"""A checkpoint as a folder that can be published: weights, tokenizer, chat template, and the card of its stored runs.

The weights must be those that the runs were asked with, bit for bit, or nothing is written: a card describes what was
measured. A LoRA adapter can be merged into its base; the merged weights are other numbers than base and adapter side
by side, so the largest difference that this makes to the model's output is measured and written down.

Covered: folders of saved models and of adapters, as `transformers` and peft write them. Not covered: GGUF files, models
behind a server, merging into a quantised base.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.eval.cards import EVAL_RESULTS, Card, model_card
from veriward.eval.metrics import summarise_run
from veriward.eval.model_loading import hash_weights, is_adapter, load, load_model
from veriward.eval.runs import SUMMARY, Run
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.files import cannot_write, to_json
from veriward.tool_agent.run_header import RUN

CARD = "README.md"
RECORD = "veriward"
"""Folder of the run cards."""
PROBE = "1 + 1 ="


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is or would be written."""

    folder: Path
    written: bool
    merged: bool
    weights_sha256: str
    """Of the weights in the folder; of the runs' where nothing was written."""
    largest_difference: float | None
    """Of a logit on a probe, merged against unmerged; None where nothing was merged."""
    files: Mapping[str, int]
    """File to bytes; of weights that are not written yet, their size in memory."""


def export(
    runs: Sequence[Run], out: Path, *, merge_lora: bool, write: bool, decision: Mapping[str, Any] | None = None
) -> Export:
    """
    runs      of the weights alone, all of the same model in a local folder; their numbers are on the card
    out       a folder that is not there yet
    write     False: only look whether it could be done
    raises    ConfigError where the weights are not those of the runs any more, or cannot be merged
    """
    if out.exists():
        raise ConfigError(f"{out}: is there already; choose another --out")
    card = model_card(runs, decision=decision)
    source = source_of(runs[0])
    if merge_lora and not is_adapter(str(source)):
        raise ConfigError(f"{source}: is no adapter, so there is nothing to merge; leave out --merge-lora")
    model, tokenizer = loaded(runs[0], source)
    difference = None
    if merge_lora:
        before = probe(model, tokenizer)
        model = model.merge_and_unload(safe_merge=True)
        difference = float((probe(model, tokenizer) - before).abs().max())
        if not difference < float("inf"):
            raise ConfigError(f"{source}: merged into its base it writes no numbers; export the adapter as it is")
        model = model.to(own_dtype(source))
    weights = hash_weights(model)
    card = with_origin(card, runs[0], merge_lora, weights, difference)
    if not write:
        sizes = {"weights": sum(one.numel() * one.element_size() for one in model.state_dict().values())}
        sizes |= {f"{EVAL_RESULTS}/{name}": len(text.encode()) for name, text in card.eval_results.items()}
        sizes |= {f"{RECORD}/{run.name}/{RUN}": (run.path / RUN).stat().st_size for run in runs}
        sizes[CARD] = len(card.markdown.encode())
        return Export(
            folder=out,
            written=False,
            merged=merge_lora,
            weights_sha256=weights,
            largest_difference=difference,
            files=sizes,
        )
    save(model, tokenizer, card, runs, out)
    if merge_lora:
        refuse_other_weights(out, model, weights)
    files = {str(file.relative_to(out)): file.stat().st_size for file in sorted(out.rglob("*")) if file.is_file()}
    return Export(
        folder=out, written=True, merged=merge_lora, weights_sha256=weights, largest_difference=difference, files=files
    )


def source_of(run: Run) -> Path:
    generator = run.settings["generator"]
    source = Path(str(generator.get("model", "")))
    if generator.get("engine") != "transformers" or not source.is_dir():
        raise ConfigError(
            f"{run.path}: its model {generator.get('model')!r} is no folder on this machine; only such can be exported"
        )
    return source


def loaded(run: Run, source: Path) -> tuple[Any, Any]:
    """As the run was asked; ConfigError where the folder holds other weights now."""
    need("torch", extra="train", purpose="veriward export")
    import torch

    generator = run.settings["generator"]
    model, tokenizer = load(str(source), device="cpu", dtype=getattr(torch, generator["dtype"]))
    found = hash_weights(model)
    if found != generator["weights_sha256"]:
        raise ConfigError(
            f"{source}: its weights have changed since {run.name} was asked (sha256 {found[:12]}… now, "
            f"{generator['weights_sha256'][:12]}… then); evaluate it again first"
        )
    return model, tokenizer


def own_dtype(source: Path) -> Any:
    """In which the base is stored."""
    import torch
    from peft import PeftConfig
    from transformers import AutoConfig

    base = PeftConfig.from_pretrained(str(source)).base_model_name_or_path
    named = getattr(AutoConfig.from_pretrained(base), "dtype", None)
    return named if isinstance(named, torch.dtype) else torch.float32


def probe(model: Any, tokenizer: Any) -> Any:
    """The logits behind a short text, as (tokens, vocabulary) in single precision."""
    import torch

    with torch.no_grad():
        return model(tokenizer(PROBE, return_tensors="pt")["input_ids"]).logits[0].float()


def with_origin(card: Card, run: Run, merged: bool, weights: str, difference: float | None) -> Card:
    """The card, with a line on what happened to the weights between measurement and this folder."""
    if not merged:
        return card
    measured = run.settings["generator"]["weights_sha256"]
    line = (
        f"The numbers were measured on base and adapter side by side (sha256 `{measured[:16]}…`); these are the merged "
        f"weights (sha256 `{weights[:16]}…`), whose logits on a probe differ by at most {difference:.2g}."
    )
    start, end = card.markdown.split("<!-- end of notes -->")
    return Card(kind=card.kind, markdown=f"{start}{line}\n<!-- end of notes -->{end}", eval_results=card.eval_results)


def save(model: Any, tokenizer: Any, card: Card, runs: Sequence[Run], out: Path) -> None:
    """Under another name first: a folder that is there is whole."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise cannot_write(out, error) from error
    try:
        part.chmod(0o755)  # mkdtemp's is for nobody else
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        (part / CARD).unlink(missing_ok=True)  # the draft that peft and trainers leave
        card.write(part / CARD)
        for run in runs:
            folder = part / RECORD / run.name
            folder.mkdir(parents=True)
            (folder / RUN).write_bytes((run.path / RUN).read_bytes())
            (folder / SUMMARY).write_bytes(to_json(summarise_run(run).to_row()))
        part.rename(out)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise cannot_write(out, error) from error


def refuse_other_weights(out: Path, model: Any, weights: str) -> None:
    """What was saved is what was checked."""
    again = load_model(str(out), device="cpu", dtype=next(model.parameters()).dtype)
    if hash_weights(again) != weights:
        raise RuntimeError(f"{out}: the saved weights are not the merged ones")


def push(folder: Path, repo: str) -> str:
    """Uploads an exported folder; its address. ConfigError in one line where the Hub refuses or cannot be reached."""
    need("huggingface_hub", extra="eval", purpose="veriward export --push")
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, LocalTokenNotFoundError, OfflineModeIsEnabled

    api = HfApi()
    try:
        api.create_repo(repo, exist_ok=True, private=True)
        return str(api.upload_folder(repo_id=repo, folder_path=folder, commit_message="Export with its card"))
    except HFValidationError as error:
        raise ConfigError(f"--push {repo!r}: is no name of a repository: {first_line(error)}") from error
    except (HTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled, OSError) as error:
        raise ConfigError(
            f"--push {repo}: {first_line(error)}; the folder {folder} is written: log in (hf auth login), upload it"
        ) from error


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
