"""Grading contracts by name. A released contract never changes: any changed verdict is a new contract.

A contract is a named set of rules, limits and policies with the cases that it must decide as written. Its
fingerprint covers all of them, so that two numbers under one name and one fingerprint were decided alike.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import import_module, resources
from inspect import getsource
from types import ModuleType
from typing import Any

from veriward.rewards import extract, normalize
from veriward.rewards.contracts import narrow, v1, v2
from veriward.rewards.contracts.v3 import contract as v3
from veriward.rewards.contracts.v3.limits import LIMITS
from veriward.rewards.task import Task
from veriward.rewards.verdict import Decision, Extraction, Reason

DEFAULT = "v3"

ANSWER_IN_REASONING = "answer_in_reasoning"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Contract:
    """One grading contract."""

    name: str
    limits: tuple[Any, ...]
    """Frozen dataclasses of limits."""
    policies: Mapping[str, str]
    """Choices that a reader of a number should know, a line each."""
    rules: tuple[ModuleType, ...]
    """The modules whose functions decide."""
    cases: str
    """Name of the case table, package data beside the contract."""
    extract: Callable[[str, str, Task, bool], Extraction]
    """(response, its reasoning set apart, task, whether the response was cut off) -> the answer taken out of it."""
    decide: Callable[[str, Task, tuple[str, ...]], Decision]
    """(candidate, task, flags of the extraction) -> what the contract says."""
    check: Callable[[Task], Reason | None]
    """Why the reference of a task cannot be read, or None."""
    reads_types: bool
    """Whether answer types and options of a task mean anything to it."""
    reference_first: bool
    """Whether an unreadable reference is said before a missing answer."""

    def __repr__(self) -> str:
        return f"<contract {self.name}>"

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits over name, limits, policies, rules and cases; comments and docstrings do not count."""
        return _fingerprint(self)

    def read_cases(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.case_text().splitlines()]

    def case_text(self) -> str:
        return resources.files(__name__).joinpath(self.cases).read_text(encoding="utf-8")


def _fingerprint(contract: Contract) -> str:
    if contract not in _FINGERPRINTS:
        sources = {module.__name__: getsource(module) for module in contract.rules}
        _FINGERPRINTS[contract] = fingerprint_of(contract, sources, contract.case_text())
    return _FINGERPRINTS[contract]


_FINGERPRINTS: dict[Contract, str] = {}


def _parsed(source: str) -> ast.Module:
    """The syntax tree of a source. Python 3.11 and 3.12 raise SystemError where two threads parse at once."""
    while True:
        try:
            return ast.parse(source)
        except SystemError:
            continue


def fingerprint_of(contract: Contract, sources: Mapping[str, str], case_text: str) -> str:
    """The fingerprint that a contract has with these sources and this case table."""
    content = {
        "name": contract.name,
        "limits": [[type(limits).__name__, asdict(limits)] for limits in contract.limits],
        "policies": dict(contract.policies),
        "cases": case_text.splitlines(),
    }
    rules = ", ".join(f"{json.dumps(name)}: {_code(_parsed(sources[name]))}" for name in sorted(sources))
    text = f'{json.dumps(content, sort_keys=True)[:-1]}, "rules": {{{rules}}}}}'
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code(node: object) -> str:
    """A syntax tree as JSON, the same in every Python version: no positions, docstrings or empty fields.

    Written as text piece by piece: a tree of lists takes three times as long, and the first verdict waits for it.
    """
    if isinstance(node, ast.AST):
        parts = [
            f'["{name}", {_code(value)}]'
            for name in node._fields
            if (value := getattr(node, name, None)) is not None and value != []
        ]
        return f'["{type(node).__name__}", [{", ".join(parts)}]]'
    if isinstance(node, list):
        return f"[{', '.join([_code(item) for item in node if not _is_docstring(item)])}]"
    return json.dumps(repr(node))


def _is_docstring(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _from_response(text: str, reasoning: str, task: Task, truncated: bool) -> Extraction:
    """The extraction of v1 and v2, with a word on reasoning that was set apart."""
    extraction = extract.extract(text)
    if extraction.candidate is None and extract.extract(reasoning).candidate is not None:
        return replace(extraction, flags=(ANSWER_IN_REASONING,))
    return extraction


V1 = Contract(
    name=v1.NAME,
    limits=(v1.SIZE_LIMITS,),
    policies=v1.POLICIES,
    rules=(extract, normalize, narrow, v1),
    cases="v1_cases.jsonl",
    extract=_from_response,
    decide=lambda candidate, task, flags: v1.decide(candidate, task.reference),
    check=lambda task: v1.check_reference(task.reference),
    reads_types=False,
    reference_first=False,
)

V2 = Contract(
    name=v2.NAME,
    limits=(v2.LIMITS, v1.SIZE_LIMITS),
    policies=v2.POLICIES,
    rules=(extract, normalize, narrow, v1, v2),
    cases="v2_cases.jsonl",
    extract=_from_response,
    decide=lambda candidate, task, flags: v2.decide(candidate, task.reference),
    check=lambda task: v2.check_reference(task.reference),
    reads_types=False,
    reference_first=False,
)

V3_MODULES = (
    "comparison",
    "contract",
    "engine.algebra",
    "engine.angles",
    "engine.atoms",
    "engine.balls",
    "engine.domains",
    "engine.exponentials",
    "engine.modular",
    "engine.normal",
    "engine.points",
    "engine.polynomials",
    "engine.preflight",
    "engine.program",
    "engine.radicals",
    "engine.separation",
    "extraction.around_number",
    "extraction.boxes",
    "extraction.clauses",
    "extraction.closing",
    "extraction.denials",
    "extraction.extract",
    "extraction.hedges",
    "extraction.hidden",
    "extraction.last_number",
    "extraction.run_on",
    "extraction.statements",
    "extraction.values",
    "extraction.visible",
    "limits",
    "reading.brackets",
    "reading.cursor",
    "reading.digits",
    "reading.forms",
    "reading.grammar",
    "reading.names",
    "reading.numerals",
    "reading.prose",
    "reading.quantities",
    "reading.reader",
    "reading.signs",
    "reading.terms",
    "reading.tokens",
    "reading.unit_words",
    "rules.comparer",
    "rules.declared",
    "rules.marks",
    "rules.realsets",
    "rules.relations",
    "rules.rewrite",
    "rules.structure",
    "tree",
    "units",
)

V3 = Contract(
    name=v3.NAME,
    limits=(LIMITS,),
    policies=v3.POLICIES,
    rules=(extract, *(import_module(f"{__name__}.v3.{module}") for module in V3_MODULES)),
    cases="v3_cases.jsonl",
    extract=v3.extract,
    decide=v3.decide,
    check=v3.check,
    reads_types=True,
    reference_first=True,
)

CONTRACTS: Mapping[str, Contract] = {contract.name: contract for contract in (V1, V2, V3)}


def get_contract(name: str) -> Contract:
    """The contract of a name; ValueError with the known names for any other."""
    if name not in CONTRACTS:
        raise ValueError(f"unknown grading contract {name!r}; known: {', '.join(CONTRACTS)}")
    return CONTRACTS[name]
