"""local_search: words in, documents out. Four fixed notes by default, a person's own file or folder on request.

Covered: a query is a bag of words (runs of letters or digits, case folded) and nothing else, so `*`, `../`, `(a+)+$`
and `open('/etc/passwd')` are the words in them; at most 512 characters; ties go by id, so an answer is always the same;
documents are read once, before the run, and what happens to their files later makes no difference. Every word that
counts stands in the text that is shown.
Not covered: meaning (a query of other words than the document's finds nothing), word forms and spelling mistakes,
accents written as separate characters.

The fixed notes are ranked by lexical overlap: how many different words of the query stand in the text; titles do not
count, as they are not shown. A person's own documents are ranked by BM25 and kept only where they share a word.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.result import Category, Refused
from veriward.tool_agent.tool import Tool, as_tool
from veriward.tool_agent.tools.documents import Document, digest_of, passages, read_documents

Record: TypeAlias = dict[str, object]

EXAMPLE = {"query": "opening hours library"}

FIXED_NOTES = "local_search_docs.jsonl"
_FIXED_BYTES = resources.files("veriward.tool_agent").joinpath(FIXED_NOTES).read_bytes()
"""Read at the import: no call opens a file, and what is searched is what the settings name."""

LONGEST_QUERY = 512

TOP = 5
"""Passages of a person's own documents that the model is shown at most."""

SURROGATE = re.compile("[\ud800-\udfff]")

WORD = re.compile(r"[^\W_]+")

UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
"""Chinese and Japanese, whose words have no blanks between them."""


def local_search(query: str) -> list[Record] | Refused:
    """Search the notes for words. Gives the notes that hold words of the query, the best first, with their ids."""
    refused = refused_query(query)
    if refused is not None:
        return refused
    wanted = set(words(query))
    found = [(len(wanted & held), note) for note, held in fixed_notes() if wanted & held]
    found.sort(key=lambda pair: (-pair[0], pair[1].id))
    return [{"id": note.id, "text": note.text, "overlap": overlap} for overlap, note in found]


def local_search_tool(path: str | Path) -> Tool:
    """local_search over a person's own documents: a JSONL file (`id`, `text`, optional `title`), or a folder of
    Markdown and text files. They are read and indexed here.

    raises   ConfigError in one line for a file that is not text, ids that appear twice, and nothing to search
    """
    need("bm25s", extra="agent", purpose="local_search over your own documents")
    documents = read_documents(Path(path))
    index = Bm25Index([passage for document in documents for passage in passages(document)])
    if not index.terms:
        raise ConfigError(f"{path}: no word in any document; wanted letters or digits to search for")

    def local_search(query: str) -> list[Record] | Refused:
        """Search the documents for words. Gives the passages that fit the query best, with their ids."""
        return refused_query(query) or index.search(query)

    settings = {"documents": digest_of(documents), "count": len(documents), "ranking": index.name, "top": TOP}
    return as_tool(local_search, settings=settings, example=EXAMPLE)


def refused_query(query: str) -> Refused | None:
    if len(query) > LONGEST_QUERY:
        return Refused(
            category=Category.TOO_LONG, hint=f"a query has at most {LONGEST_QUERY} characters; use few words"
        )
    if not query.strip():
        return Refused(category=Category.EMPTY, hint="write the words to look for")
    if SURROGATE.search(query):
        return Refused(category=Category.INVALID_UNICODE, hint="the query holds half a surrogate pair")
    return None


def words(text: str) -> list[str]:
    """Runs of letters or digits, case folded."""
    return [word.casefold() for word in WORD.findall(text)]


def terms(text: str) -> list[str]:
    """`words`, with Chinese and Japanese in pairs of neighbouring characters: a whole sentence would be one word."""
    found: list[str] = []
    for word in words(text):
        end = 0
        for run in UNSPACED.finditer(word):
            found += filter(None, [word[end : run.start()]])
            found += [run[0][at : at + 2] for at in range(max(1, len(run[0]) - 1))]
            end = run.end()
        found += filter(None, [word[end:]])
    return found


# ---- the fixed notes -------------------------------------------------------------------------------------------------


@cache
def fixed_notes() -> tuple[tuple[Document, frozenset[str]], ...]:
    """The four notes, and the words in each."""
    rows = [json.loads(line) for line in _FIXED_BYTES.splitlines()]
    notes = [Document(id=row["id"], title=row["title"], text=row["text"]) for row in rows]
    return tuple((note, frozenset(words(note.text))) for note in notes)


def fixed_settings() -> dict[str, object]:
    return {"documents": hashlib.sha256(_FIXED_BYTES).hexdigest(), "ranking": "overlap"}


# ---- a person's own documents ----------------------------------------------------------------------------------------


class Bm25Index:
    """Passages ranked by BM25 (Lucene's form, k1 1.5, b 0.75), in memory."""

    def __init__(self, documents: Sequence[Document]) -> None:
        import bm25s

        self.name = f"bm25s {bm25s.__version__}, lucene"
        self._documents = documents
        counted = [terms(document.text) for document in documents]
        self._held = [frozenset(found) for found in counted]
        self.terms = {term: number for number, term in enumerate(sorted(frozenset().union(*self._held)))}
        self._index: Any = bm25s.BM25(method="lucene", k1=1.5, b=0.75, dtype="float64", backend="numpy")
        if not self.terms:
            return
        as_numbers = [[self.terms[term] for term in found] for found in counted]
        self._index.index((as_numbers, self.terms), create_empty_token=False, show_progress=False)

    def search(self, query: str) -> list[Record]:
        wanted = sorted({term for term in terms(query) if term in self.terms})
        if not wanted:
            return []
        scores = self._index.get_scores([self.terms[term] for term in wanted])
        ranked = heapq.nsmallest(
            TOP, (int(place) for place in scores.nonzero()[0]), lambda at: (-scores[at], self._documents[at].id)
        )
        return [
            {
                "id": self._documents[at].id,
                "text": self._documents[at].text,
                "overlap": len(self._held[at].intersection(wanted)),
            }
            for at in ranked
        ]
