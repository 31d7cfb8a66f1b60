"""The embedded default, from nothing: problems, a tiny model, and a warm start that leaves rewards something to find.

`make_base` makes a model that can work step by step but mostly guesses. One folder, made whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from veriward.eval.problems import read_jsonl
from veriward.tool_agent.errors import ConfigError
from veriward.train.sft import (
    Demonstration,
    OnProgress,
    Progress,
    WarmStartSettings,
    occupied,
    quiet_libraries,
    renamed_when_complete,
    warm_start,
)
from veriward.train.tiny_model import build_model, build_tokenizer
from veriward.train.tiny_problems import (
    DEFAULT_DIFFICULTY,
    ProblemFiles,
    check_problems,
    solve,
    write_atomically,
    write_problems,
)

RECIPE = "veriward.train.tiny_base/1"
"""Goes up by one when the same arguments of make_base would no longer give the same model."""


RECIPE_FILE = "recipe.json"


RANK_VARIABLES = frozenset({"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})


LAUNCHER_PREFIXES = ("ACCELERATE_", "FSDP_", "PARALLELISM_CONFIG_", "TORCHELASTIC_", "GROUP_", "ROLE_")
"""With the above: what torchrun and accelerate tell a process about the others, and about how to train."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curriculum:
    """What the embedded default is shown: first every solution step by step, then mostly guesses.

    After the last phase the model guesses by habit, although it could still work an answer out: exactly what
    a reward for the right answer can change within a minute.
    """

    worked_share: float = 0.86
    """Share of the steps in which every response is worked out: '17-6+2=11+2=13 \\boxed{13}'."""
    late_worked: float = 0.3
    """In the steps after it, the share that still is worked out."""
    late_guess: float = 0.5
    """... the share that is the answer alone, in a box."""
    late_bare: float = 0.2
    """... the share that is the answer alone, without a box: the format, too, is left to be learned."""

    def __post_init__(self) -> None:
        shares = (self.worked_share, self.late_worked, self.late_guess, self.late_bare)
        if not all(0 <= share <= 1 for share in shares) or not math.isclose(sum(shares[1:]), 1):
            raise ConfigError(f"shares must lie in 0 to 1, and the three late ones add up to 1; got {shares}")


TINY_SETTINGS = WarmStartSettings(
    steps=500, optimizer="muon", learning_rate=8e-3, muon_learning_rate=0.012, shuffle=False, cpu=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyBase:
    """The embedded default, ready for training on rewards."""

    folder: Path
    model: Path
    """Model and tokenizer, for AutoModelForCausalLM and AutoTokenizer."""
    problems: ProblemFiles
    made: bool
    """False where it was there already."""


def make_base(
    folder: str | Path,
    *,
    seed: int,
    steps: int = TINY_SETTINGS.steps,
    difficulty: str = DEFAULT_DIFFICULTY,
    train: int = 4000,
    heldout: int = 200,
    on_progress: OnProgress | None = None,
) -> TinyBase:
    """Make the embedded default: problems in folder/data, the warm-started model in folder/base.

    Everything is made in a hidden folder beside it that is renamed at the end, so a folder that exists is
    complete. One that was made with the same arguments is used as it is, also if another process was
    quicker. Runs on the CPU, in one thread; the same arguments give the same weights on the same machine.

    raises    ConfigError if the folder holds something else, or the arguments make no problem set
    """
    folder = Path(folder)
    wanted = {
        "recipe": RECIPE, "seed": seed, "steps": steps, "difficulty": difficulty, "train": train, "heldout": heldout
    }  # fmt: skip
    replace(TINY_SETTINGS, steps=steps)  # refuses bad steps before anything is made
    if occupied(folder):
        return _existing_base(folder, wanted, made=False)
    with renamed_when_complete(folder) as unfinished:
        if _launched_for_more():
            _build_apart(unfinished, wanted, on_progress)
        else:
            _build_base(unfinished, wanted, on_progress)
    return _existing_base(folder, wanted, made=True)


def tiny_demonstrations(
    questions: Sequence[str], *, steps: int, batch_size: int, seed: int, curriculum: Curriculum | None = None
) -> list[Demonstration]:
    """steps x batch_size demonstrations in the order in which they are to be shown.

    The questions are gone through in passes, each in a new random order.
    """
    curriculum = curriculum or Curriculum()
    random_source = random.Random(f"{RECIPE}:{seed}")
    late_from = round(steps * curriculum.worked_share) * batch_size
    late_shares = (curriculum.late_worked, curriculum.late_guess, curriculum.late_bare)
    demonstrations: list[Demonstration] = []
    while len(demonstrations) < steps * batch_size:
        for question in random_source.sample(questions, len(questions)):
            late = len(demonstrations) >= late_from
            style = random_source.choices((_worked, _guess, _bare), late_shares)[0] if late else _worked
            demonstrations.append(_chat(question, style(question)))
    return demonstrations[: steps * batch_size]


def _chat(question: str, response: str) -> Demonstration:
    return Demonstration(
        prompt=[{"role": "user", "content": question}], completion=[{"role": "assistant", "content": response}]
    )


def _worked(question: str) -> str:
    problem = solve(question)
    return rf"{problem.solution} \boxed{{{problem.answer}}}"


def _guess(question: str) -> str:
    return rf"\boxed{{{solve(question).answer}}}"


def _bare(question: str) -> str:
    return str(solve(question).answer)


def _build_base(folder: Path, wanted: dict[str, Any], on_progress: OnProgress | None) -> None:
    """The recipe itself: problems, model, warm start, record."""
    started = time.perf_counter()
    problems = write_problems(
        folder / "data",
        seed=wanted["seed"],
        train=wanted["train"],
        heldout=wanted["heldout"],
        difficulty=wanted["difficulty"],
    )
    settings = replace(TINY_SETTINGS, steps=wanted["steps"], seed=wanted["seed"])
    questions = [str(row["question"]) for _, row in read_jsonl(problems.train)]
    demonstrations = tiny_demonstrations(
        questions, steps=settings.steps, batch_size=settings.batch_size, seed=settings.seed
    )
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, seed=settings.seed)
    with _one_thread():
        done = warm_start(model, tokenizer, demonstrations, settings, on_progress)
    with quiet_libraries():
        model.save_pretrained(folder / "base")
        tokenizer.save_pretrained(folder / "base")
    record = {
        **wanted,
        "curriculum": asdict(Curriculum()),
        "warm_start": asdict(settings),
        "loss": done.loss,
        "seconds": round(time.perf_counter() - started, 1),
        "weights_sha256": hashlib.sha256((folder / "base" / "model.safetensors").read_bytes()).hexdigest(),
        "versions": {name: metadata.version(name) for name in ("torch", "transformers", "trl")},
    }
    write_atomically(folder / RECIPE_FILE, json.dumps(record, indent=2) + "\n")


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """A model this small gains nothing from a second thread, and on a busy machine waits for it."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _launched_for_more() -> bool:
    """Whether a launcher made this process one of several, or set up a way of training that a trainer would adopt."""
    wishes = [os.environ.get(f"ACCELERATE_{name}", "no") for name in ("USE_DEEPSPEED", "USE_FSDP", "MIXED_PRECISION")]
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 or any(wish.lower() not in ("no", "false") for wish in wishes)


def _is_launcher_variable(name: str) -> bool:
    return name in RANK_VARIABLES or name.startswith(LAUNCHER_PREFIXES)


def _build_apart(folder: Path, wanted: dict[str, Any], on_progress: OnProgress | None) -> None:
    """Build in a process that knows nothing of the other ranks: a trainer in this one would wait for them all."""
    code = (
        "import json, sys; from dataclasses import asdict; from pathlib import Path; "
        "from veriward.train import tiny_base; "
        "folder, wanted = json.loads(sys.argv[1]); "
        "tiny_base._build_base(Path(folder), wanted, lambda progress: print(json.dumps(asdict(progress)), flush=True))"
    )
    environment = {name: value for name, value in os.environ.items() if not _is_launcher_variable(name)}
    command = [sys.executable, "-c", code, json.dumps([str(folder), wanted])]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8") as child:
        try:
            for line in child.stdout or ():
                if on_progress is not None and line.startswith('{"step"'):
                    on_progress(Progress(**json.loads(line)))
        except BaseException:
            child.terminate()
            raise
    if child.returncode != 0:
        raise RuntimeError(f"making the tiny base model failed with exit code {child.returncode}; its error is above")


def _existing_base(folder: Path, wanted: dict[str, Any], *, made: bool) -> TinyBase:
    recipe = folder / RECIPE_FILE
    try:
        found = json.loads(recipe.read_text("utf-8"))
        different = [f"{name} {found.get(name)!r}" for name in wanted if found.get(name) != wanted[name]]
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{folder}: exists, but holds no tiny base model (no readable {RECIPE_FILE}); name another folder"
        ) from error
    if different:
        raise ConfigError(
            f"{folder}: was made with {', '.join(different)}, not what was asked for; "
            "name another folder, or remove this one"
        )
    return TinyBase(folder=folder, model=folder / "base", problems=check_problems(folder / "data"), made=made)
