"""The run folder before the first step: an empty place, and what is in force written down in it."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, TYPE_CHECKING

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import LOCK, lock
from veriward.train.processes import Say

if TYPE_CHECKING:
    from veriward.train.batch import BatchPlan
    from veriward.train.configs import Configs
    from veriward.train.prompts import TrainingSet
    from veriward.train.settings import Settings

RECORDED_PACKAGES = (
    "veriward",
    "trl",
    "transformers",
    "torch",
    "accelerate",
    "peft",
    "datasets",
    "sympy",
    "python-flint",
    "vllm",
)
LEAST_FREE_MIB = 100
RECORD = "run.json"
BEFORE_THE_FIRST_STEP = frozenset({RECORD, LOCK, "settings.yaml", "unreadable_references.jsonl", "warnings.log"})


def refuse_occupied(folder: Path, existing: str) -> None:
    """Nothing of an earlier run is mixed with this one or lost, and what is no run is left alone."""
    if not folder.name:
        raise ConfigError(f"output_dir '{folder}' is no folder of its own; wanted one for this run, as runs/first")
    try:
        is_file = folder.exists() and not folder.is_dir()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"output_dir {str(folder)!r}: no name for a folder: {reason}") from error
    if is_file:
        raise ConfigError(f"output_dir '{folder}' is a file; wanted a folder")
    if is_free(folder):
        return
    if not (folder / RECORD).is_file():
        raise ConfigError(
            f"output_dir '{folder}' holds files that are no run of ours; choose another with --output_dir"
        )
    if existing == "refuse":
        raise ConfigError(
            f"output_dir '{folder}' holds an earlier run; choose another with --output_dir, or keep it under "
            f"another name with --existing set_aside"
        )
    lock(folder).close()  # refuses while another process is writing into it


def is_free(folder: Path) -> bool:
    """Nothing is in it, or only what a run leaves that was refused before its first step."""
    if not folder.is_dir():
        return True
    left = {path.name for path in folder.iterdir() if path.is_dir() or path.stat().st_size or path.name == RECORD}
    return left <= BEFORE_THE_FIRST_STEP


def make_way(folder: Path, existing: str, say: Say) -> IO[bytes]:
    """An empty run folder, locked until the returned file is closed; an earlier run then stands in NAME.old-1, …"""
    refuse_occupied(folder, existing)
    try:
        if is_free(folder):
            for path in folder.iterdir() if folder.is_dir() else ():
                path.unlink()
        else:
            aside = next(p for n in range(1, 10_000) if not (p := folder.with_name(f"{folder.name}.old-{n}")).exists())
            folder.rename(aside)
            say(f"the earlier run in {folder} is now {aside}")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"output_dir '{folder}': cannot be made: {reason}") from error
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_MIB * 2**20:
        raise ConfigError(f"output_dir '{folder}': {free // 2**20} MiB of disk are free; wanted {LEAST_FREE_MIB}")
    return lock(folder)


def write_settings(
    settings: Settings, problems: TrainingSet, plan: BatchPlan, configs: Configs, template: Mapping[str, object]
) -> None:
    """settings.yaml (to run again) and run.json (everything in force), before a model loads."""
    import yaml

    from veriward.rewards import get_contract

    folder = settings.output_dir
    header = f"# What this run was asked for; run it again with --config {folder / 'settings.yaml'} --output_dir …\n"
    text = yaml.safe_dump(settings.as_given(), sort_keys=False, allow_unicode=True)
    (folder / "settings.yaml").write_text(header + text, encoding="utf-8")
    contract = get_contract(settings.run.contract)
    record = {
        "settings": {"run": asdict(settings.run), "model": asdict(configs.model), "grpo": configs.grpo.to_dict()},
        "settings_sha256": settings.digest(),
        "command": sys.argv,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "contract": {"name": contract.name, "fingerprint": contract.fingerprint},
        "data": {
            "name": problems.name,
            "sha256": problems.sha256,
            "problems_read": problems.read,
            "problems_used": len(problems.rows),
            "unreadable_references": len(problems.unreadable),
        },
        "template": dict(template),
        "stop_strings": list(settings.run.stop_strings),
        "components": settings.run.weights,
        "batch": {
            **asdict(plan),
            "prompts_per_generation": plan.prompts_per_generation,
            "completions_per_step": plan.completions_per_step,
        },
        "versions": {name: found for name in RECORDED_PACKAGES if (found := package_version(name)) is not None},
        "git": git_state(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "device": configs.device_name,
        "ranks": plan.ranks,
    }
    (folder / "run.json").write_text(json.dumps(record, indent=1, default=str) + "\n", encoding="utf-8")
    if problems.unreadable:
        problems.write_unreadable(folder / "unreadable_references.jsonl")


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def git_state() -> dict[str, object] | None:
    """Commit of this checkout, and whether files differ from it; None for an installed package."""
    top = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", *words], cwd=top, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    inside = git("rev-parse", "--show-toplevel")
    if inside is None or Path(inside) != top:
        return None
    commit, changed = git("rev-parse", "--verify", "HEAD"), git("status", "--porcelain")
    return {"commit": commit, "dirty": bool(changed) if changed is not None else None}
