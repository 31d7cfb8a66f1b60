"""Whose run a folder holds: run.json, written before the first state and compared at every later start.

run.json  schema       of this file and of the stored rows
          kind         how the states are stored: 'files' or 'sqlite'
          fingerprint  of the settings
          settings     everything that decides the run; the key 'code' holds the fingerprint of our own sources
          continued_under   one entry for each time the run went on under other code: from, to, time
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import cannot_write, differences, to_json, write_whole

RUN = "run.json"
SCHEMA = 1
CODE = "code"
"""The one setting that may differ, where the person says so."""

Kind = Literal["files", "sqlite"]
Settings = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What run.json says."""

    schema: int = SCHEMA
    kind: str
    """A Kind, or 'jsonl' at the head of an exported file."""
    fingerprint: str
    settings: Settings
    continued_under: Sequence[Mapping[str, str]] = ()
    """Fingerprints 'from' and 'to', and the 'time', for each time it went on under other code; in order."""

    @property
    def fingerprints(self) -> frozenset[str]:
        """Of the run now, and of what it was continued from: a state under any other is another run's."""
        return frozenset({self.fingerprint, *(one["from"] for one in self.continued_under)})


def fingerprint(settings: Mapping[str, object]) -> str:
    """The first 16 hex digits of SHA-256 over the settings as canonical JSON."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def adopt(folder: Path, settings: Mapping[str, object], kind: Kind, *, continue_under: bool) -> RunHeader:
    """The header of the run in a folder, made where there is none; ConfigError if it is another run's."""
    if kind not in get_args(Kind):
        raise ConfigError(f"{folder}: unknown kind of store {kind!r}; wanted one of {', '.join(get_args(Kind))}")
    wanted: Settings = json.loads(to_json(settings))
    if not (folder / RUN).exists():
        header = RunHeader(kind=kind, fingerprint=fingerprint(wanted), settings=wanted)
        write_header(folder, header)
        return header
    header = read_header(folder)
    if header.kind != kind:
        raise ConfigError(
            f"{folder}: stores its states as {header.kind!r}, and {kind!r} was asked for; ask for {header.kind!r}, or "
            "copy it with `veriward state export`"
        )
    found = differences(decisive(header.settings), decisive(wanted))
    if not found:
        return header
    if without_code(header.settings) != without_code(wanted):
        raise ConfigError(
            f"{folder}: holds a run with other settings: {'; '.join(found)}; choose another folder, or these settings"
        )
    if not continue_under:
        raise ConfigError(
            f"{folder}: holds a run of other code: {'; '.join(found)}; choose another folder, or go on under this code "
            "with --continue-under, which every later state and the card will say"
        )
    step = {
        "from": header.fingerprint,
        "to": fingerprint(wanted),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    header = replace(header, settings=wanted, fingerprint=step["to"], continued_under=(*header.continued_under, step))
    write_header(folder, header)
    return header


def without_code(settings: Settings) -> str:
    """As text, since in Python 1, 1.0 and true are equal."""
    return json.dumps({key: value for key, value in decisive(settings).items() if key != CODE}, sort_keys=True)


def decisive(settings: Mapping[str, Any]) -> Settings:
    """The settings without the name of the problems, where their sha256 says which they are.

    'p.jsonl', './p.jsonl' and its absolute path are the same problems.
    """
    problems = settings.get("problems")
    if not isinstance(problems, Mapping) or "sha256" not in problems:
        return dict(settings)
    return {**settings, "problems": {key: value for key, value in problems.items() if key != "name"}}


def refuse_unreachable(path: Path) -> None:
    """ConfigError for a path that the system cannot look at: a name too long, a folder that is closed to us.

    Where it merely is not there, whoever opens it has more to say.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL, which no path has
        return
    except OSError as error:
        raise ConfigError(f"{path}: cannot be looked at: {error.strerror}; choose another") from error


def write_header(folder: Path, header: RunHeader) -> None:
    try:
        write_whole(folder / RUN, to_json(asdict(header)))
    except OSError as error:
        raise cannot_write(folder / RUN, error) from error


def read_header(folder: Path) -> RunHeader:
    """ConfigError where there is no run, or a damaged one."""
    file = folder / RUN
    refuse_unreachable(file)
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; wanted one that holds a run")
    try:
        stored = json.loads(file.read_bytes())
    except FileNotFoundError:
        inner = ", ".join(str(file.parent) for file in sorted(folder.glob(f"*/{RUN}"))[:4])
        advice = f"wanted one of the runs in it: {inner}" if inner else "choose another folder"
        raise ConfigError(f"{folder}: holds no {RUN}, so it is no run; {advice}") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}; make it readable") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: damaged: {error}; choose another folder") from error
    return to_header(stored, str(file))


def to_header(stored: object, where: str) -> RunHeader:
    """Checked, since all that is resumed rests on it."""
    if not isinstance(stored, dict) or not {"schema", "kind", "fingerprint", "settings"} <= stored.keys():
        raise ConfigError(f"{where}: is not of a run; choose another folder")
    if stored["schema"] != SCHEMA:
        raise ConfigError(
            f"{where}: has schema {stored['schema']!r}, and this version reads {SCHEMA}; use the version that wrote it"
        )
    wrong = wrong_field(stored)
    if wrong is not None:
        raise ConfigError(f"{where}: damaged: {wrong}; choose another folder")
    known = ("schema", "kind", "fingerprint", "settings", "continued_under")
    return RunHeader(**{name: stored[name] for name in known if name in stored})


def wrong_field(stored: Mapping[str, Any]) -> str | None:
    """What a header holds that no run writes; None where all is in order."""
    kind, settings, steps = stored["kind"], stored["settings"], stored.get("continued_under", [])
    if not isinstance(kind, str):
        return f"kind is {type(kind).__name__}; wanted text"
    if not isinstance(settings, dict):
        return f"settings is {type(settings).__name__}; wanted an object"
    if not isinstance(steps, list) or not all(is_step(step) for step in steps):
        return "continued_under is no list of steps with the texts from, to and time"
    try:
        intact = fingerprint(settings) == stored["fingerprint"]
    except ValueError:  # a number that JSON does not have
        intact = False
    return None if intact else "its settings do not fit its fingerprint"


def is_step(step: object) -> bool:
    return isinstance(step, dict) and all(isinstance(step.get(name), str) for name in ("from", "to", "time"))
