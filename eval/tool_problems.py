"""The frozen twelve: four problems for each of the three tools, written before any model answered one.

Each problem names the tool that it is made for in its column `expected_tool`. The texts and the notes that
local_search looks through never change: what was measured on them could not be compared with what is measured later.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib import resources

from veriward.eval.problems import ProblemSet, load_problems
from veriward.tool_agent.errors import ConfigError

NAME = "frozen-twelve"
"""For people and for the record of a run, in place of a path that differs from machine to machine."""

PROBLEMS = ("veriward.eval", "tool_problems.jsonl")
NOTES = ("veriward.tool_agent", "local_search_docs.jsonl")

FROZEN = {
    PROBLEMS: "52e327b378712aaa2fa70940d0e75c4f248422444d5bef8a60dd6c36369f060b",
    NOTES: "29ecd06424981debfd731fffb03c099cdd4c44d3450ea507cb971039d5ddb8d9",
}
"""sha256 of the bytes of each file."""


def frozen_twelve() -> ProblemSet:
    """In their order, calculator-01 to search-04; ConfigError if a file was changed since they were frozen."""
    for (package, file), sha256 in FROZEN.items():
        got = hashlib.sha256(resources.files(package).joinpath(file).read_bytes()).hexdigest()
        if got != sha256:
            raise ConfigError(
                f"{package}/{file}: the file was changed (sha256 {got[:12]}…, frozen as {sha256[:12]}…); "
                "put it back, or run your own problems under another name"
            )
    with resources.as_file(resources.files(PROBLEMS[0]).joinpath(PROBLEMS[1])) as path:
        return replace(load_problems(path), name=NAME)
