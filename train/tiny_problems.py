"""An exact arithmetic problem set, made locally: questions with one integer answer, by difficulty and seed.

Every number that a worked solution passes through lies in 0 to 59, the numbers for which the tiny model's
tokenizer has one token each. The same seed, difficulty and sizes give the same bytes on every machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from veriward.tool_agent.errors import ConfigError

SMALLEST_NUMBER = 0
LARGEST_NUMBER = 59
"""The tokenizer has one token for each number from SMALLEST_NUMBER to LARGEST_NUMBER."""

TRAIN_FILE = "train.jsonl"
HELDOUT_FILE = "heldout.jsonl"
MANIFEST_FILE = "manifest.json"
GENERATOR = "veriward.train.tiny_problems/1"
"""Goes up by one when the same seed would no longer give the same questions."""

_FRUITLESS_DRAWS = 1000
"""Questions that repeat or leave the range are drawn again; after this many in a row, the level is used up."""


class ProblemSetError(ConfigError):
    """A problem set that cannot be made, or that is not the one that its manifest describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """What a level's questions look like."""

    name: str
    min_terms: int
    max_terms: int
    operators: str
    """Characters out of `+-*`, each equally likely; a product binds first, as usual."""
    largest: int = LARGEST_NUMBER
    """No intermediate value is above it, and none is below 0."""

    def __post_init__(self) -> None:
        if not 2 <= self.min_terms <= self.max_terms:
            raise ValueError(f"terms must satisfy 2 <= min <= max, got {self.min_terms} and {self.max_terms}")
        if not self.operators or set(self.operators) - set("+-*"):
            raise ValueError(f"operators must be some of + - *, got {self.operators!r}")
        if not 9 <= self.largest <= LARGEST_NUMBER:
            raise ValueError(f"largest must be in 9 to {LARGEST_NUMBER}, got {self.largest}")


LEVELS: Mapping[str, Difficulty] = {
    level.name: level
    for level in (
        Difficulty(name="easy", min_terms=2, max_terms=4, operators="+-", largest=39),
        Difficulty(name="standard", min_terms=4, max_terms=5, operators="+-", largest=39),
        Difficulty(name="hard", min_terms=6, max_terms=8, operators="+-"),
        Difficulty(name="mixed", min_terms=3, max_terms=5, operators="+-*"),
    )
}
DEFAULT_DIFFICULTY = "standard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One question and everything that is known about it."""

    question: str
    """As '9+8-6+2': digits 1 to 9 and operators, no spaces."""
    answer: int
    solution: str
    """As '17-6+2=11+2=13': the question with one operation done at each '=', down to the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFiles:
    """Where a problem set was written."""

    train: Path
    heldout: Path
    manifest: Path


def difficulty_named(name: str) -> Difficulty:
    """The level of this name; ProblemSetError lists the names there are."""
    if name not in LEVELS:
        raise ProblemSetError(f"unknown difficulty {name!r}; choose one of: {', '.join(LEVELS)}")
    return LEVELS[name]


def solve(question: str) -> Problem:
    """Answer and worked solution of a question made of numbers and `+-*`.

    One operation a step: the leftmost product first, then sums and differences from the left.

    raises    ProblemSetError if the text is not such a question
    """
    numbers, operators = _parse(question)
    forms = []
    while operators:
        at = operators.index("*") if "*" in operators else 0
        numbers[at : at + 2] = [_apply(operators.pop(at), numbers[at], numbers[at + 1])]
        forms.append(_write(numbers, operators))
    return Problem(question=question, answer=numbers[0], solution="=".join(forms))


def generate_problems(count: int, *, seed: int, difficulty: str = DEFAULT_DIFFICULTY) -> list[Problem]:
    """`count` different questions of a level, in random order; the same ones for the same arguments.

    raises    ProblemSetError if the level has not that many different questions
    """
    level = difficulty_named(difficulty)
    random_source = random.Random(f"{GENERATOR}:{difficulty}:{seed}")  # a string seeds alike on every platform
    problems: dict[str, Problem] = {}
    fruitless = 0
    while len(problems) < count and fruitless < _FRUITLESS_DRAWS:
        problem = solve(_draw_question(level, random_source))
        is_new = problem.question not in problems and _stays_in_range(problem, level)
        fruitless = 0 if is_new else fruitless + 1
        if is_new:
            problems[problem.question] = problem
    if len(problems) < count:
        raise ProblemSetError(
            f"difficulty {difficulty!r} gave only {len(problems)} different questions, {count} were asked for; "
            "ask for fewer or take a harder level"
        )
    shuffled = list(problems.values())
    random_source.shuffle(shuffled)  # short questions repeat first and so are found early
    return shuffled


def write_problems(
    folder: str | Path, *, seed: int, train: int = 4000, heldout: int = 200, difficulty: str = DEFAULT_DIFFICULTY
) -> ProblemFiles:
    """Write train.jsonl, heldout.jsonl and manifest.json into a folder, which is made if needed.

    No question is in both files. Rows are {"id", "question", "answer"}, the answer as text. Each file
    appears whole or not at all, the manifest last.

    raises    ProblemSetError for sizes below 1, an unknown level, or a level with too few questions
    """
    for name, size in (("train", train), ("heldout", heldout)):
        if size < 1:
            raise ProblemSetError(f"{name} must be at least 1, got {size}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    problems = generate_problems(train + heldout, seed=seed, difficulty=difficulty)
    parts = {HELDOUT_FILE: problems[:heldout], TRAIN_FILE: problems[heldout:]}
    digests = {name: _write_rows(folder / name, part) for name, part in parts.items()}
    manifest = {
        "generator": GENERATOR,
        "seed": seed,
        "difficulty": asdict(difficulty_named(difficulty)),
        "files": {name: {"rows": len(parts[name]), "sha256": digests[name]} for name in parts},
    }
    write_atomically(folder / MANIFEST_FILE, json.dumps(manifest, indent=2) + "\n")
    return ProblemFiles(train=folder / TRAIN_FILE, heldout=folder / HELDOUT_FILE, manifest=folder / MANIFEST_FILE)


def check_problems(folder: str | Path) -> ProblemFiles:
    """The files of a problem set, if each one still is what its manifest says.

    raises    ProblemSetError if a file is missing or was changed
    """
    folder = Path(folder)
    manifest_path = folder / MANIFEST_FILE
    try:
        files = json.loads(manifest_path.read_text("utf-8"))["files"]
        recorded = {name: files[name]["sha256"] for name in (TRAIN_FILE, HELDOUT_FILE)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProblemSetError(f"{manifest_path}: not a readable manifest ({error}); make the set again") from error
    for name, digest in recorded.items():
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise ProblemSetError(f"{folder / name}: {error.strerror}; make the set again") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise ProblemSetError(f"{folder / name}: differs from the sha256 in {MANIFEST_FILE}; make the set again")
    return ProblemFiles(train=folder / TRAIN_FILE, heldout=folder / HELDOUT_FILE, manifest=manifest_path)


def write_atomically(path: Path, text: str) -> str:
    """Write UTF-8 text so that a reader sees the old file or the new one, never a part; returns its sha256."""
    content = text.encode("utf-8")
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())  # mkstemp makes files that only the owner reads
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return hashlib.sha256(content).hexdigest()


def _write_rows(path: Path, problems: Iterable[Problem]) -> str:
    rows = (
        {"id": f"{path.stem}-{number:05d}", "question": problem.question, "answer": str(problem.answer)}
        for number, problem in enumerate(problems)
    )
    return write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows))


def _draw_question(level: Difficulty, random_source: random.Random) -> str:
    terms = random_source.randint(level.min_terms, level.max_terms)
    digits = [random_source.randint(1, 9) for _ in range(terms)]
    return _write(digits, [random_source.choice(level.operators) for _ in range(terms - 1)])


def _stays_in_range(problem: Problem, level: Difficulty) -> bool:
    """Whether every number of every step is one that the level allows."""
    for form in problem.solution.split("="):
        if form.startswith("-"):
            return False
        numbers, _ = _parse(form)
        if not all(SMALLEST_NUMBER <= number <= level.largest for number in numbers):
            return False
    return True


def _parse(form: str) -> tuple[list[int], list[str]]:
    operators = [character for character in form if character in "+-*"]
    pieces = form.translate(str.maketrans("+-*", "   ")).split(" ")
    if not all(piece.isascii() and piece.isdigit() for piece in pieces):
        raise ProblemSetError(f"{form!r} is not made of whole numbers joined by + - *")
    return [int(piece) for piece in pieces], operators


def _write(numbers: list[int], operators: list[str]) -> str:
    return "".join(f"{operator}{number}" for operator, number in zip(["", *operators], numbers, strict=True))


def _apply(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return left + right
    return left - right if operator == "-" else left * right


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
