"""Runs packed into one file, so that a stranger can check every number of a card on another machine.

    manifest.json        what is packed: the runs, and SHA-256 of every other file
    README.md            how to verify it
    requirements.lock    versions of the packages on the machine that packed it
    runs/NAME/           run.json, problems.jsonl, a file for each state, and summary.json and audit.json where they are
    cards/NAME.md        the cards that were given

The same runs and cards give the same bytes on the same machine, whenever they are packed.

Covered: damage, and a file that was changed, taken out or put in, by name; archives made to write elsewhere or to fill
the disk; every number made again from the states; with references, every verdict decided again.
Not covered: somebody who packs other states and hashes them anew. Against that, compare the bundle's `sha256` with what
the publisher says. Nobody can see in a bundle that its responses came from the model that it names. Without references
a correct response still holds its answer, and whoever guesses every reference of a small set sees by its hash that they
are right.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions, version
from pathlib import Path
from typing import IO, Any

from veriward.eval.audit_sample import AUDIT
from veriward.eval.problems import REFERENCE_COLUMNS, Problem
from veriward.eval.runs import SUMMARY, Run, read_run, write_problems
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import cannot_write, to_json
from veriward.tool_agent.run_header import RUN
from veriward.tool_agent.store import export, read_store

SCHEMA = 1
MANIFEST, README, LOCK = "manifest.json", "README.md", "requirements.lock"
RUNS, CARDS = "runs", "cards"
LARGEST = 8 * 1024**3
"""Bytes of a bundle when it is unpacked."""
MOST_FILES = 1_000_000
LARGEST_MANIFEST = 256 * 1024**2
AT_ONCE = 1024**2
TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file in the archive: the earliest that the format knows."""
UNSAFE_NAME = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle whose hashes were checked, as it lies unpacked."""

    runs: tuple[Path, ...]
    """Folders that `read_run` reads; each has the name that its run had."""
    cards: tuple[Path, ...]
    manifest: Mapping[str, Any]
    sha256: str
    """Of the manifest, and so of everything in the bundle: what a publisher says beside it."""


# --------------------------------------------------------------------------------------------------------- packing


def make_bundle(
    runs: Sequence[str | Path], out: str | Path, *, references: bool = True, cards: Sequence[str | Path] = ()
) -> str:
    """Pack runs and the cards made of them, and return the bundle's sha256.

    references   False leaves the references out, and nothing else; verdicts never hold them
    raises       ConfigError for a run with states that cannot be read, for two runs or cards of one name, and where a
                 column would still give the references away
    """
    place = Path(out)
    refuse_same_names([Path(run) for run in runs], "run")
    refuse_same_names([Path(card) for card in cards], "card")
    try:
        with tempfile.TemporaryDirectory(prefix=".bundle-", dir=place.parent) as name:
            folder = Path(name) / "content"
            described = [pack_run(Path(run), folder / RUNS, references) for run in runs]
            for card in cards:
                copy_card(Path(card), folder / CARDS)
            (folder / README).write_bytes(readme(described, references).encode())
            (folder / LOCK).write_bytes(lock_file().encode())
            manifest = to_json(
                {
                    "schema": SCHEMA,
                    "veriward": version("veriward"),
                    "runs": described,
                    "files": {file: describe_file(folder / file) for file in files_below(folder)},
                }
            )
            (folder / MANIFEST).write_bytes(manifest)
            write_archive(folder, Path(name) / place.name)
            (Path(name) / place.name).replace(place)
    except OSError as error:
        raise cannot_write(place, error) from error
    return hashlib.sha256(manifest).hexdigest()


def refuse_same_names(paths: Sequence[Path], what: str) -> None:
    """In a bundle they lie side by side; on some systems capitals make no difference."""
    seen: dict[str, Path] = {}
    for path in paths:
        name = name_in_bundle(path)
        if not name.strip(". ") or UNSAFE_NAME.search(name):
            raise ConfigError(f"{path}: the name {name!r} is none on every system; rename the {what}")
        if (other := seen.setdefault(name.casefold(), path)) is not path:
            raise ConfigError(f"{path}: has the name of {other}; rename one, or leave one out")


def name_in_bundle(path: Path) -> str:
    place = path.resolve()
    return place.stem if place.suffix == ".jsonl" else place.name


def pack_run(path: Path, into: Path, references: bool) -> dict[str, Any]:
    """Copy what belongs to a run, whatever store it is in, and describe it."""
    run = read_run(path)
    if run.set_aside:
        raise ConfigError(
            f"{path}: {len(run.set_aside)} states cannot be read: {run.set_aside[0]}; the command that made the run, "
            "started again, asks for them anew"
        )
    into.mkdir(parents=True, exist_ok=True)
    folder = into / name_in_bundle(path)
    with read_store(path) as store:
        export(store, folder)
    if not references:
        refuse_leaks(path, run.set.problems)
    write_problems(folder, run.set, references=references)
    for name in (SUMMARY, AUDIT):
        if path.is_dir() and (path / name).is_file():
            shutil.copyfile(path / name, folder / name)
    return describe_run(read_run(folder))


def refuse_leaks(path: Path, problems: Sequence[Problem]) -> None:
    """A set with two columns of references names one of them; the other lies among the columns, by whatever name."""
    for column in sorted({name for problem in problems for name in problem.columns}):
        rows = [(str(one.columns[column]), one.reference) for one in problems if column in one.columns]
        boxed = any(f"\\boxed{{{reference}}}" in value for value, reference in rows)
        repeated = all(value.strip() == reference.strip() for value, reference in rows)
        if column.casefold() in REFERENCE_COLUMNS or boxed or repeated:
            raise ConfigError(
                f"{path}: the column {column!r} of its problems would give the references away; pack with "
                "references, or evaluate a set without that column"
            )


def describe_run(run: Run) -> dict[str, Any]:
    return {
        "name": run.name,
        "fingerprint": run.fingerprint,
        "contract": run.contract._asdict(),
        "problems_sha256": run.settings["problems"]["sha256"],
        "references": run.set.references,
        "responses": len(run.states),
        "missing": len(run.missing),
    }


def copy_card(card: Path, into: Path) -> None:
    into.mkdir(exist_ok=True)
    try:
        content = card.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{card}: the card cannot be read: {error.strerror}; write it with `veriward card`"
        ) from error
    (into / card.name).write_bytes(content)


def describe_file(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"sha256": digest, "bytes": file.stat().st_size}


def files_below(folder: Path) -> list[str]:
    """Sorted names with '/', without locks and other hidden files."""
    found = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return sorted(file.as_posix() for file in found if not any(part.startswith(".") for part in file.parts))


def write_archive(folder: Path, out: Path) -> None:
    with zipfile.ZipFile(out, "x", zipfile.ZIP_DEFLATED) as archive:
        for name in files_below(folder):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            entry.file_size = (folder / name).stat().st_size
            with (folder / name).open("rb") as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target, AT_ONCE)


def lock_file() -> str:
    """Every installed package with its version, as pip takes it."""
    found = {re.sub(r"[-_.]+", "-", one.name).lower(): one.version for one in distributions() if one.name}
    lines = [f"{name}=={found[name]}" for name in sorted(found)]
    return "\n".join([f"# Python {platform.python_version()}", *lines, ""])


def readme(runs: Sequence[Mapping[str, Any]], references: bool) -> str:
    listed = "\n".join(
        f"- `{run['name']}`: {run['responses']} responses, {run['missing']} missing, "
        f"contract {run['contract']['name']} ({run['contract']['fingerprint']}), run {run['fingerprint']}"
        for run in runs
    )
    without = (
        "The references are packed too, so that `--check` decides every verdict again."
        if references
        else "The references were left out, so that verdicts can be counted here and not decided again. With the "
        "problem set at hand, whoever holds it can do so."
    )
    return f"""# Stored runs, to verify a card by

{listed}

## How to verify

    pip install "veriward[eval]=={version("veriward")}"
    veriward bundle --check THIS_FILE.zip
    veriward card verify cards/CARD.md THIS_FILE.zip

The first command names every file that was changed, is missing or was added, and makes the numbers again from the
stored responses. The second one compares a card with them. No network and no model are needed. {without}

`requirements.lock` has the packages of the machine that packed this; what the runs themselves were made with is in
`run.json` of each, under `versions` or `code`.
"""


# ------------------------------------------------------------------------------------------------------- unpacking


@contextmanager
def open_bundle(path: str | Path) -> Iterator[Bundle]:
    """Unpack a bundle for as long as the block lasts; ConfigError where anything in it is not as it was packed."""
    with tempfile.TemporaryDirectory(prefix="veriward-bundle-") as name:
        bundle, faults = unpack(Path(path), Path(name))
        if bundle is None or faults:
            more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
            raise ConfigError(f"{path}: {faults[0]}{more}; see `veriward bundle --check`, or get the bundle again")
        yield bundle


def is_bundle(path: str | Path) -> bool:
    """By its name: a folder of a run may have any other."""
    return Path(path).suffix == ".zip"


def unpack(path: Path, into: Path) -> tuple[Bundle | None, list[str]]:
    """Unpack into an empty folder: the bundle, and each fault in a line; None where nothing can be unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            faults = unsafe_entries(archive.infolist())
            if faults:
                return None, faults
            content = read_manifest(archive)
            if isinstance(content, str):
                return None, [content]
            manifest: dict[str, Any] = json.loads(content)
            present = set(archive.namelist()) - {MANIFEST}
            listed = manifest["files"]
            faults = [f"{name}: missing" for name in sorted(listed.keys() - present)]
            faults += [f"{name}: added; it is not in the manifest" for name in sorted(present - listed.keys())]
            for name in sorted(listed.keys() & present):
                if fault := unpack_file(archive, name, listed[name], into / name):
                    faults.append(f"{name}: {fault}")
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; wanted a file of `veriward bundle`") from error
    except (*UNREADABLE, OSError) as error:
        return None, [f"is no whole zip archive: {error or type(error).__name__}"]
    runs = tuple(into / RUNS / str(run["name"]) for run in manifest["runs"])
    cards = tuple(into / name for name in sorted(listed) if name.startswith(f"{CARDS}/"))
    return Bundle(runs=runs, cards=cards, manifest=manifest, sha256=hashlib.sha256(content).hexdigest()), faults


UNREADABLE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
)
"""What `zipfile` raises for damage: a wrong checksum, an unknown compression, a mark that says it is encrypted."""


def unsafe_entries(entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """Why an archive is not to be unpacked at all, before a byte of it is."""
    faults = []
    seen: set[str] = set()
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        parts = entry.orig_filename.split("/")
        if UNSAFE_NAME.search(entry.orig_filename) or any(not part.strip(". ") for part in parts):
            faults.append(f"{entry.orig_filename!r}: a name that leads elsewhere")
        elif kind not in (0, stat.S_IFREG) or entry.is_dir():
            faults.append(f"{entry.filename}: a link, a folder or a device, and no file")
        elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            faults.append(f"{entry.filename}: compressed otherwise than `veriward bundle` does")
        elif entry.filename.casefold() in seen:
            faults.append(f"{entry.filename}: is there twice")
        seen.add(entry.filename.casefold())
    if len(entries) > MOST_FILES:
        faults.append(f"{len(entries):,} files; at most {MOST_FILES:,} are unpacked")
    if (size := sum(entry.file_size for entry in entries)) > LARGEST:
        faults.append(f"{size:,} bytes when unpacked; at most {LARGEST:,} are")
    return faults


def read_manifest(archive: zipfile.ZipFile) -> bytes | str:
    """The manifest's bytes, or what is wrong with it."""
    if MANIFEST not in archive.namelist():
        return f"{MANIFEST}: missing; is this a file of `veriward bundle`?"
    with archive.open(MANIFEST) as stream:
        content = stream.read(LARGEST_MANIFEST + 1)
    if len(content) > LARGEST_MANIFEST:
        return f"{MANIFEST}: longer than {LARGEST_MANIFEST:,} bytes"
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        return f"{MANIFEST}: changed: no JSON: {error}"
    return fault_of_manifest(manifest) or content


def fault_of_manifest(manifest: Any) -> str:
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        return f"{MANIFEST}: changed, or of another version; this one reads schema {SCHEMA}"
    runs, files = manifest.get("runs"), manifest.get("files")
    whole = (
        isinstance(files, dict)
        and all(
            isinstance(one, dict) and isinstance(one.get("bytes"), int) and "sha256" in one for one in files.values()
        )
        and isinstance(runs, list)
        and all(isinstance(run, dict) for run in runs)
        and sorted(f"{RUNS}/{run.get('name')}/{RUN}" for run in runs)
        == sorted(name for name in files if re.fullmatch(f"{RUNS}/[^/]+/{RUN}", name))
    )
    return "" if whole else f"{MANIFEST}: changed: not the list of runs and files that was packed"


def unpack_file(archive: zipfile.ZipFile, name: str, wanted: Mapping[str, Any], out: Path) -> str:
    """Write one file out; what is wrong with it, or nothing."""
    out.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    try:
        with archive.open(name) as source, out.open("xb") as target:
            for piece in pieces(source):
                size += len(piece)
                if size > wanted["bytes"]:
                    return f"changed: longer than the {wanted['bytes']} bytes of the manifest"
                digest.update(piece)
                target.write(piece)
    except UNREADABLE as error:
        return f"changed: {error or type(error).__name__}"
    return "" if digest.hexdigest() == wanted["sha256"] else "changed: its SHA-256 is not that of the manifest"


def pieces(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(AT_ONCE):
        yield piece
