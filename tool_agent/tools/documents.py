"""A person's own documents: read once, refused in one line where they cannot be searched."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from veriward.tool_agent.errors import ConfigError

TEXT_FILES = (".md", ".markdown", ".txt")

PASSAGE = 700
"""Characters of a text that are found and shown together: five of them are what a model is shown at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    id: str
    title: str | None
    text: str


def read_documents(path: Path) -> list[Document]:
    """The documents of a JSONL file or of a folder; ConfigError in one line for what is none."""
    if os.path.isdir(path):  # False, too, for a path that no system takes
        documents = list(_of_folder(path))
        wanted = f"a folder with files in {', '.join(TEXT_FILES)}"
    else:
        documents = list(_of_rows(path))
        wanted = "JSONL with id and text"
    if not documents:
        raise ConfigError(f"{path}: no document in it; wanted {wanted}")
    return documents


def passages(document: Document) -> Iterator[Document]:
    """A text as it is shown, with its title in front; a long one in pieces whose ids end in #1, #2 and so on.

    A piece ends at the end of a paragraph, else at a blank, else wherever it is full.
    """
    head = f"{document.title}\n" if document.title else ""
    pieces = [piece for piece in _pieces(document.text) if piece]
    for number, piece in enumerate(pieces, start=1):
        name = document.id if len(pieces) == 1 else f"{document.id}#{number}"
        yield Document(id=name, title=document.title, text=head + piece)


def digest_of(documents: Iterable[Document]) -> str:
    content = hashlib.sha256()
    for document in documents:
        content.update(json.dumps([document.id, document.title, document.text]).encode() + b"\n")
    return content.hexdigest()


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PASSAGE:
        full = start + PASSAGE
        end = text.rfind("\n\n", start + PASSAGE // 2, full)
        if end < 0:
            blanks = (at for at in range(full, start + PASSAGE // 2, -1) if text[at].isspace())
            end = next(blanks, full)
        yield text[start:end].strip()
        start = end
    yield text[start:].strip()


def _of_folder(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.suffix.lower() in TEXT_FILES and not hidden and path.is_file():
            name = inside.as_posix()
            if _has_half_surrogate(name):
                raise ConfigError(f"{folder}: the name {name!r} is not UTF-8; documents are named by it: rename it")
            yield Document(id=name, title=None, text=_text(path))


def _of_rows(path: Path) -> Iterator[Document]:
    seen: dict[str, int] = {}
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            document = _of_row(f"{path}, line {number}", line)
            if document.id in seen:
                raise ConfigError(
                    f"{path}, line {number}: id {document.id!r} stands in line {seen[document.id]} too; "
                    "documents are named by it: make it unique"
                )
            seen[document.id] = number
            yield document


def _of_row(where: str, line: str) -> Document:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: no JSON: {error}; wanted an object with id and text") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: got {type(row).__name__}; wanted an object with id and text")
    name = row.get("id")
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    for key, value in (("id", name), ("text", row.get("text"))):
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{where}: {key} is {value!r:.60}; wanted a text that is not blank")
    title = row.get("title")
    if title is not None and not isinstance(title, str):
        raise ConfigError(f"{where}: title is {title!r:.60}; wanted a text, or none")
    if _has_half_surrogate(f"{name}{title}{row['text']}"):
        raise ConfigError(f"{where}: holds half a surrogate pair, which is no text; mend the file")
    return Document(id=str(name), title=title, text=row["text"])


def _has_half_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _text(path: Path) -> str:
    """What a file holds, as text."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"{path}: cannot be read: {why}; wanted a JSONL file, or a folder of Markdown and text"
        ) from error
    if b"\0" in content:
        raise ConfigError(f"{path}: a binary file, or UTF-16; wanted text in UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8, or take it out") from error
    if not text.strip():
        raise ConfigError(f"{path}: is empty; fill it or take it out")
    return text
