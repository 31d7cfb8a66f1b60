"""The rule file of a promotion: read, checked in full, hashed, and stamped with the time at which it stood.

The stamp lies beside the rule (`RULE.stamp.json`). A rule whose text is not the stamped one, and outputs that are older
than the stamp, are named in the decision and on the card: whoever sees the numbers first can choose the rule by them.
Times are those of the files, so the stamp finds mistakes and shortcuts, not somebody who sets clocks.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from veriward.eval.runs import PROBLEMS, Run
from veriward.rewards import CONTRACTS
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.files import cannot_write, to_json, write_whole
from veriward.tool_agent.run_header import RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """How much worse than the base a candidate may be; None: not looked at."""

    format_valid: float | None = None
    """Loss of the share of responses whose format is valid."""
    unsupported: float | None = None
    """Growth of the share of responses without a verdict: unsupported, undecided, timed out, crashed."""
    truncated: float | None = None
    """Growth of the share that was cut off."""
    mean_tokens: float | None = None
    """Growth of the mean length, as a share of the base's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    path: str
    sha256: str
    name: str
    contract: str
    set_sha256: str
    """Of the problem set that the checkpoints are chosen on, or its beginning."""
    n: int
    """Problems that are asked."""
    alpha: float
    candidates: int
    """Announced beforehand; alpha is shared out among them."""
    minimum_gain: float
    """Of the accuracy, as a fraction."""
    guards: Guards
    tie: float = 0.0
    """Candidates whose gains are this close are equal, and the earliest step is taken."""
    no_evidence: str = "keep"
    """'keep' or 'undecided': what follows where nothing is allowed and the problems are too few to tell."""
    cluster: str | None = None
    """Column of problems that are alike."""

    @property
    def level(self) -> float:
        return self.alpha / self.candidates

    def to_row(self) -> dict[str, Any]:
        names = ("name", "contract", "set_sha256", "n", "alpha", "candidates", "minimum_gain", "tie", "no_evidence")
        row = {name: getattr(self, name) for name in names}
        guards = {name: getattr(self.guards, name) for name in Guards.__slots__}
        return {**row, "cluster": self.cluster, "guards": guards, "file": Path(self.path).name}


Check = tuple[Callable[[Any], bool], str]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


SHARE: Check = (lambda value: is_number(value) and 0 <= value <= 1, "a fraction from 0 to 1")
CHECKS: Mapping[str, Check] = {
    "name": (lambda value: isinstance(value, str) and bool(value.strip()), "a text"),
    "contract": (lambda value: isinstance(value, str) and value in CONTRACTS, f"one of {', '.join(CONTRACTS)}"),
    "set_sha256": (
        lambda value: isinstance(value, str) and len(value) >= 12 and not set(value) - set("0123456789abcdef"),
        "at least 12 digits of the set's sha256, as run.json has it",
    ),
    "n": (is_count, "the number of problems"),
    "metric": (lambda value: value == "accuracy", "accuracy"),
    "test": (lambda value: value == "paired", "paired: exact McNemar, or a bootstrap over clusters"),
    "alpha": (lambda value: is_number(value) and 0 < value <= 0.2, "a number above 0 and at most 0.2"),
    "candidates": (is_count, "the number of candidates"),
    "minimum_gain": SHARE,
    "guards": (lambda value: isinstance(value, dict), "a mapping of guards"),
    "tie": SHARE,
    "no_evidence": (lambda value: isinstance(value, str) and value in ("keep", "undecided"), "keep or undecided"),
    "cluster": (lambda value: value is None or isinstance(value, str), "the name of a column"),
}
OPTIONAL = ("tie", "no_evidence", "cluster")
GUARDS: Mapping[str, Check] = {
    "format_valid": SHARE,
    "unsupported": SHARE,
    "truncated": SHARE,
    "mean_tokens": (lambda value: is_number(value) and value >= 0, "a number of at least 0: 0.25 is a quarter longer"),
}


def read_rule(path: str | Path) -> Rule:
    """ConfigError, in one line, for anything in it that is missing, unknown or out of range."""
    need("yaml", extra="eval", purpose="a rule file")
    import yaml

    from veriward.eval.yaml_file import load_yaml

    try:
        content = Path(path).read_bytes()
        found = load_yaml(content.decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; wanted a rule file") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path}: no YAML: {' '.join(str(error).split())[:200]}; wanted a rule file") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: wanted a mapping of {', '.join(CHECKS)}")
    check(path, "", found, CHECKS, OPTIONAL)
    check(path, "guards.", found["guards"], GUARDS, tuple(GUARDS))
    given = {name: value for name, value in found.items() if name not in ("metric", "test", "guards")}
    return Rule(path=str(path), sha256=hashlib.sha256(content).hexdigest(), guards=Guards(**found["guards"]), **given)


def check(
    path: str | Path, where: str, found: Mapping[Any, Any], checks: Mapping[str, Check], optional: Sequence[str]
) -> None:
    for name in found:
        if name not in checks:
            raise ConfigError(f"{path}: unknown key {where}{name}; wanted one of {', '.join(checks)}")
    for name, (fits, wanted) in checks.items():
        if name not in found and name not in optional:
            raise ConfigError(f"{path}: {where}{name} is missing; wanted {wanted}")
        if name in found and not fits(found[name]):
            raise ConfigError(f"{path}: {where}{name} is {found[name]!r}; wanted {wanted}")


# --------------------------------------------------------------------------------------------------------- the stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    sha256: str
    time: str
    """UTC, as ISO 8601 writes it."""

    def complaints(self, rule: Rule, runs: Sequence[Run]) -> list[str]:
        """Why the rule may have been chosen by the outputs; empty where it stood before all of them."""
        found = []
        if self.sha256 != rule.sha256:
            found.append(f"the rule was changed after it was stamped at {self.time}")
        stamped = datetime.fromisoformat(self.time)
        found += [
            f"{run.name} was made by reverify: its responses are older than its folder, and may be older than the stamp"
            for run in runs
            if "parent" in run.settings
        ]
        found += [
            f"{run.name} was begun at {began.isoformat(timespec='seconds')}, before the rule was stamped at {self.time}"
            for run in runs
            if (began := began_at(run)) < stamped
        ]
        return found


def began_at(run: Run) -> datetime:
    """By the oldest of the files that a run begins with."""
    files = [run.path / name for name in (RUN, PROBLEMS)] if run.path.is_dir() else [run.path]
    return datetime.fromtimestamp(min(file.stat().st_mtime for file in files if file.exists()), UTC)


def stamp_path(rule: Rule) -> Path:
    return Path(rule.path).with_suffix(".stamp.json")


def stamped(rule: Rule) -> tuple[Stamp, bool]:
    """The stamp of a rule, made now where there is none; whether it was made now."""
    file = stamp_path(rule)
    if not file.exists():
        stamp = Stamp(sha256=rule.sha256, time=datetime.now(UTC).isoformat(timespec="microseconds"))
        try:
            write_whole(file, to_json({"sha256": stamp.sha256, "time": stamp.time}))
        except OSError as error:
            raise cannot_write(file, error) from error
        return stamp, True
    try:
        stored = json.loads(file.read_bytes())
        stamp = Stamp(sha256=str(stored["sha256"]), time=str(stored["time"]))
        if datetime.fromisoformat(stamp.time).tzinfo is None:
            raise ValueError("a time without its zone")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file}: is no stamp of a rule ({error}); put back the one that was made") from error
    return stamp, False
