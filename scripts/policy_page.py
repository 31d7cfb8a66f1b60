"""Write docs/policy.md from the rules of contract v3 and its case table: the page and the code cannot differ.

python -m veriward.scripts.policy_page            prints the page
python -m veriward.scripts.policy_page --write    writes docs/policy.md
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from veriward.rewards import (
    ANSWER_TYPES,
    Certainty,
    Method,
    Options,
    Outcome,
    Reason,
    explain,
    get_contract,
)
from veriward.rewards.contracts.v3.extraction import extract
from veriward.rewards.contracts.v3.reading import grammar
from veriward.rewards.contracts.v3.rules import structure

PAGE = Path(__file__).resolve().parents[1] / "docs" / "policy.md"

Case = Mapping[str, Any]

HEAD = """# The policy of contract v3

Every convention by which an answer counts as equal to its reference, in the order in which the rules are asked: the
first that applies decides, and what no rule covers is undecided, never wrong. This page is made from the code and from
the contract's own cases (`python -m veriward.scripts.policy_page --write`); a test holds it to them, and
`veriward audit v3` runs every case.

A verdict names what was applied in its `flags`, and says how it was decided (`method`) and how surely (`certainty`).
`outcome` is one of correct, wrong, undecided, unsupported, no_answer, bad_reference; timeout and crashed are the worker
process's, and no rule's.
"""


def page() -> str:
    """The whole page."""
    cases = get_contract("v3").read_cases()
    by_rule: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_rule[rule_of(case)].append(case)
    parts = [HEAD, *types_and_options(), *before_the_rules(by_rule)]
    for number, rule in enumerate(structure.RULES, start=1):
        name = rule.__name__.replace("_", " ")
        parts += [f"### {number}. {name}", text_of(rule), table(by_rule.pop(rule.__name__, []))]
    parts += list(words_of_a_verdict())
    parts += ["## Not covered", listed(grammar.__doc__ or "", "Not covered")]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def rule_of(case: Case) -> str:
    """The rule that decided a case, or the step before the rules."""
    if "response" in case:
        return "extraction"
    explained = explain(
        case["prediction"],
        case["reference"],
        bare=True,
        contract="v3",
        answer_type=case.get("answer_type"),
        options=case.get("options"),
    )
    first = explained.steps[0][0] if explained.steps else ""
    names = {rule.__name__.replace("_", " "): rule.__name__ for rule in structure.RULES}
    return names.get(first, "scalars" if explained.verdict.verifier_called else "reading")


def types_and_options() -> Iterator[str]:
    yield "## Answer types and options of a task"
    yield "Both may stand in a task row (`answer_type`, `options`) or be given to `verify` and `compile_reference`."
    rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in ANSWER_TYPES.items())
    yield f"| answer_type | meaning |\n|---|---|\n{rows}"
    source = inspect.getsource(Options)
    rows = "\n".join(
        f"| `{option.name}` | `{json.dumps(option.default)}` | {attribute_text(source, option.name)} |"
        for option in fields(Options)
    )
    yield f"| option | default | meaning |\n|---|---|---|\n{rows}"


def before_the_rules(by_rule: dict[str, list[Case]]) -> Iterator[str]:
    yield "## From a response to an answer"
    yield text_of(extract)
    yield table(by_rule.pop("extraction", []))
    yield "## Reading"
    yield (
        "The same text, character for character, is the same answer (identity), whether or not it can be read; what "
        "has no value equals nothing. An answer that is refused is `unsupported`, a reference that is refused "
        "`bad_reference`. Of a whole solution the key is what stands behind the last `####`, else in its last box."
    )
    yield table(by_rule.pop("reading", []))
    yield "## Rules"


def words_of_a_verdict() -> Iterator[str]:
    yield "## Words in a verdict"
    yield (
        "`certainty` speaks of the values after the conventions named in `flags`; what rests on a convention of "
        "notation alone is `probable`. `timeout` and `crashed` are kept for verdicts in a worker process."
    )
    for words in (Outcome, Method, Certainty, Reason):
        source = inspect.getsource(words)
        rows = [
            f"| `{word.value}` | {attribute_text(source, word.name, ' = ')} |"
            for word in words
            if not word.value.startswith("reference_")
        ]
        yield f"| {words.__name__.lower()} | meaning |\n|---|---|\n" + "\n".join(rows)
    yield "A refused reference has the same reason with `reference_` in front."


def table(cases: list[Case]) -> str:
    if not cases:
        return ""
    rows = "\n".join(
        f"| {cell(case.get('response') or case['prediction'])} | {cell(case['reference'])} | {outcome(case)} | "
        f"{case['why']} |"
        for case in cases
    )
    return f"| answer | reference | outcome | because |\n|---|---|---|---|\n{rows}"


def outcome(case: Case) -> str:
    said = [case["outcome"].replace("_", " ")]
    said += [f"`{flag}`" for flag in case.get("flags", [])]
    said += [f"`{case['reason']}`"] if case.get("reason") else []
    declared = {**({"answer_type": case["answer_type"]} if "answer_type" in case else {}), **case.get("options", {})}
    if case.get("truncated"):
        declared["truncated"] = True
    said += [f"with `{name}: {json.dumps(value)}`" for name, value in declared.items()]
    return ", ".join(said)


def cell(text: str) -> str:
    """Code in a table cell, on one line."""
    shown = " ⏎ ".join(text.splitlines()) or " "
    shown = shown.replace("|", "\\|")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def text_of(thing: object) -> str:
    return inspect.getdoc(thing) or ""


def attribute_text(source: str, name: str, after_name: str = ": ") -> str:
    """The text below an attribute of a class, on one line; empty where there is none."""
    line, _, below = source.partition(f"    {name}{after_name}")[2].partition("\n")
    text = below.lstrip().removeprefix('"""').partition('"""')[0] if below.lstrip().startswith('"""') else ""
    return " ".join(text.split()).replace("|", "\\|").replace("\\\\", "\\") if line else ""


def listed(text: str, heading: str) -> str:
    """The part of a docstring from a heading on."""
    return inspect.cleandoc(text[text.index(heading) :]) if heading in text else inspect.cleandoc(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
