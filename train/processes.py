"""The processes of a run: which one this is, how many were asked for, and what they print.

Nothing here imports torch until a process group has to be left.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

Say = Callable[[str], None]
"""Takes a line for the person who watches."""

COMMAND = Path(__file__).with_name("grpo.py")


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Processes that really run: launchers that start several say so here."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def speak(line: str) -> None:
    """For the person who watches: rank 0 only, flushed, so that a pipe shows it at once."""
    if rank() == 0:
        print(line, flush=True)


def launcher_warnings(running: int) -> list[str]:
    """accelerate's CPU launcher takes --num_processes 2 and starts one process without a word."""
    asked = processes_asked()
    if asked is not None and asked > running:
        share = f"a step has {running}/{asked} of the batch; on CPU use: torchrun --nproc_per_node {asked}"
        return [f"WARNING: {asked} processes were asked for and {running} is running, so {share} {own_path()} ..."]
    if asked is None and running == 1 and "MASTER_ADDR" in os.environ and "WORLD_SIZE" not in os.environ:
        # accelerate sets this address only if its settings ask for several processes.
        return [
            "WARNING: the launcher was set up for several processes and one is running; "
            f"on CPU use: torchrun --nproc_per_node N {own_path()} ..."
        ]
    return []


def processes_asked() -> int | None:
    """What accelerate was told on its command line; None where nothing tells."""
    try:
        words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    if not any(Path(word).name.startswith("accelerate") for word in words[:3]):
        return None
    given = re.search(r"--num[_-]processes[= ](\d+)", " ".join(words))
    return int(given.group(1)) if given else None


def own_path() -> str:
    return relative(COMMAND) if Path(relative(COMMAND)).is_file() else "-m veriward.train.grpo"


def relative(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path.resolve())


def set_environment(env: Mapping[str, str]) -> None:
    """The config's `env:` block. What the caller's environment holds already stands."""
    for name, value in env.items():
        os.environ.setdefault(name, value)


def leave_process_group() -> None:
    """Take leave of the other ranks; the trainer must not be in use any more.

    What is left of it is collected first: if torch's gradient reducer is the last to hold the group, its
    destructor waits, with the interpreter's lock, for a gloo thread that waits for the same lock (seen as a
    rank that hangs after its last line).
    """
    import gc

    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        torch.distributed.destroy_process_group()


def quiet_libraries(folder: Path | None) -> None:
    """Library warnings go to warnings.log in the run folder instead of between the progress lines."""
    import logging
    import warnings

    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.filterwarnings("ignore", category=FutureWarning)
    logging.captureWarnings(True)
    handler: logging.Handler = logging.NullHandler()
    if folder is not None and rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(folder / "warnings.log", encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
        handler.setLevel(logging.WARNING)
    for name in ("py.warnings", "transformers", "trl", "accelerate", "datasets", "peft", "huggingface_hub", "torch"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def say_warnings(folder: Path, say: Say) -> None:
    path = folder / "warnings.log"
    count = sum(1 for _ in path.open(encoding="utf-8")) if path.is_file() else 0
    if count:
        say(f"{count} lines of library warnings are in {path}")
