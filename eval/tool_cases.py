"""Case files run through the real doors: tools, verdicts and extraction, and what differs from what is written.

The kind of a file is read off the fields of its rows (`KINDS`). Rows say what is expected; the rule by which an outcome
meets it has its home here. Covered beside the outcome: CPU time where the kind has a limit. Not covered: memory, files
read and text printed; an exception out of a door is a bug and is raised.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from veriward.eval.case_rows import (
    Case,
    check_common,
    check_cost,
    check_extraction,
    check_labelled,
    check_preflight,
    check_tools,
    read_case_file,
)
from veriward.rewards import DEFAULT, Outcome, Verdict, verify, verify_answer
from veriward.tool_agent import PROFILES, ToolResult, evaluate_expression, run_call
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.files import shorten

TOOL_CPU_S = 0.2
"""Of one call of a tool, a generated input included."""

VERDICT_CPU_S = 1.0
"""Of one dangerous answer."""


class Judged(NamedTuple):
    """What is written, what came, and whether they fit; fits is None where the case leaves it open."""

    fits: bool | None
    expected: str
    got: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What became of one case."""

    id: str
    tier: str
    """'must' where the file has no tiers."""
    group: str
    fits: bool | None
    """None: the file leaves it open, and it is not counted."""
    expected: str
    got: str
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRun:
    """What became of the cases of a file."""

    name: str
    kind: str
    under: str
    """Profile or contract in force."""
    results: tuple[CaseResult, ...]

    @property
    def differing(self) -> list[CaseResult]:
        return [result for result in self.results if result.fits is False]

    @property
    def must_differs(self) -> bool:
        return any(result.tier == "must" for result in self.differing)

    def counts(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """By tier and group: as written, counted, left open."""
        found: dict[tuple[str, str], list[int]] = {}
        for result in self.results:
            counts = found.setdefault((result.tier, result.group), [0, 0, 0])
            counts[0] += result.fits is True
            counts[1] += result.fits is not None
            counts[2] += result.fits is None
        return {key: (right, counted, left) for key, (right, counted, left) in sorted(found.items())}

    def to_row(self) -> dict[str, object]:
        counted = [result for result in self.results if result.fits is not None]
        return {
            "file": self.name,
            "kind": self.kind,
            "under": self.under,
            "cases": len(self.results),
            "counted": len(counted),
            "as_written": sum(result.fits is True for result in counted),
            "must_differs": self.must_differs,
            "slowest_cpu_s": round(max(result.cpu_s for result in self.results), 4),
            "groups": [
                {"tier": tier, "group": group, "as_written": right, "counted": counted_here, "left_open": left}
                for (tier, group), (right, counted_here, left) in self.counts().items()
            ],
            "differing": [asdict(result) for result in self.differing],
        }


def run_cases(path: Path, *, contract: str = DEFAULT, profile: str = "default") -> CaseRun:
    """Run every case of a file.

    contract   for cases about answers
    profile    for cases about tools
    raises     ConfigError for a file that cannot be read, is of no known kind, or mixes kinds, and for a row that
               lacks what its kind needs
    """
    if profile not in PROFILES:
        raise ConfigError(f"unknown profile {profile!r}; wanted one of {', '.join(PROFILES)}")
    return _run(read_case_file(path), str(path), contract, profile)


def run_rows(rows: Sequence[Case], *, name: str, contract: str = DEFAULT, profile: str = "default") -> CaseRun:
    """Run cases that are in memory; `name` stands for them in messages."""
    return _run({f"{name}, case {number}": row for number, row in enumerate(rows, start=1)}, name, contract, profile)


def _run(placed: Mapping[str, Case], name: str, contract: str, profile: str) -> CaseRun:
    rows = list(placed.values())
    kind = kind_of(rows[0])
    if kind is None:
        kinds = "; ".join(f"{other.name} ({', '.join(sorted(other.fields))})" for other in KINDS)
        raise ConfigError(f"{name}: of no known kind, its fields are {', '.join(rows[0])}; wanted one of: {kinds}")
    for where, row in placed.items():
        if not kind.fields <= row.keys():
            missing = ", ".join(sorted(kind.fields - row.keys()))
            raise ConfigError(f"{where}: no {missing}; every row of a {kind.name} file has it")
        check_common(row, where)
        kind.check(row, where)
    judge = kind.judge(contract, profile)
    judge(rows[0])  # what is imported and compiled on the way is no part of a case's time
    return CaseRun(
        name=name,
        kind=kind.name,
        under=kind.under or (profile if kind.name == "tools" else contract),
        results=tuple(_result(row, number, judge, kind.cpu_s) for number, row in enumerate(rows, start=1)),
    )


def _result(row: Case, number: int, judge: Judge, limit: float | None) -> CaseResult:
    begun = time.process_time()
    fits, expected, got = judge(row)
    cpu_s = time.process_time() - begun
    limit = row.get("max_seconds", limit)
    if limit is not None and cpu_s > limit:
        fits, got = False, f"{got}, {cpu_s:.2f} s of CPU; at most {limit:g} s"
    group = next((str(row[name]) for name in ("group", "category", "kind", "stratum", "how") if row.get(name)), "all")
    return CaseResult(
        id=str(row.get("id", f"case {number}")),
        tier=row.get("tier", "must"),
        group=group,
        fits=fits,
        expected=expected,
        got=got,
        cpu_s=cpu_s,
    )


# ---- tools -----------------------------------------------------------------------------------------------------------


def tool_result(case: Case, profile: str = "default") -> ToolResult:
    """What the tools say to a case: its input as a whole call, or as the text for one tool."""
    text = case["input"]
    if text is None:
        made = case["input_gen"]
        text = made["prefix"] + made["repeat"] * made["times"] + made["suffix"]
    if case["level"] == "call":
        return run_call(text, profile=profile)
    return evaluate_expression(case["tool"], text, profile=profile)


def tool_case_fits(case: Case, result: ToolResult) -> bool:
    """Is a result what the case expects, or one of the alternatives that it allows?"""
    compare = case.get("compare") or {}
    if "text_not" in compare and result.text.startswith(compare["text_not"]):
        return False
    return any(_outcome_fits(outcome, result, compare) for outcome in (case, *case.get("also_ok", ())))


def _outcome_fits(outcome: Case, result: ToolResult, compare: Case) -> bool:
    if outcome["expect"] == "reject":
        return not result.ok and outcome["reason_category"] in (None, result.category)
    wanted, got = outcome["value"], result.value
    if not result.ok or isinstance(got, bool):
        return False
    if isinstance(wanted, list):
        ids = [record.get("id") for record in got] if isinstance(got, Sequence) and not isinstance(got, str) else None
        return ids is not None and bool(ids[: compare.get("top")] == wanted[: compare.get("top")])
    if isinstance(wanted, str) or not isinstance(got, int | float):
        return bool(wanted == got)
    return bool(wanted == got) or (not isinstance(wanted, int) and _near(wanted, got, compare.get("abs", 0.0)))


def _near(wanted: float, got: float, allowed: float) -> bool:
    try:
        distance = abs(float(got) - wanted)
    except OverflowError:
        return False
    return distance <= max(1e-9, 1e-9 * abs(wanted), allowed)


def _judge_tools(contract: str, profile: str) -> Judge:
    def judge(case: Case) -> Judged:
        result = tool_result(case, profile)
        alternatives = (case, *case.get("also_ok", ()))
        expected = dict.fromkeys(
            shorten(outcome["value"]) if outcome["expect"] == "accept" else str(outcome["reason_category"])
            for outcome in alternatives
        )
        return Judged(tool_case_fits(case, result), " or ".join(expected), in_words(result))

    return judge


def in_words(result: ToolResult) -> str:
    """A result on one line."""
    if not result.ok:
        return str(result.category)
    if isinstance(result.value, int | float | str):
        return shorten(result.value)
    return shorten([record.get("id") for record in result.value or ()])


# ---- answers ---------------------------------------------------------------------------------------------------------


def verdict_on(case: Case, contract: str) -> Verdict:
    """Of the whole response where the case has one, else of the bare answer."""
    if case.get("response") is not None:
        return verify(case["response"], case["reference"], contract=contract, truncated=bool(case.get("truncated")))
    return verify_answer(case["prediction"], case["reference"], contract=contract)


def _judge_labelled(contract: str, profile: str) -> Judge:
    truths = {True: True, False: False, "true": True, "false": False}

    def judge(case: Case) -> Judged:
        if case.get("mode") == "thread":
            with ThreadPoolExecutor(1) as threads:
                verdict = threads.submit(verdict_on, case, contract).result()
        else:
            verdict = verdict_on(case, contract)
        truth = truths.get(case["expected_correct"] if "expected_correct" in case else case["truth"])
        outcome = case.get("expected_outcome")
        expected = outcome or {True: "correct", False: "not correct", None: "left open"}[truth]
        got = f"{verdict.outcome} ({verdict.reason or verdict.method})"
        return Judged(
            None if truth is None else verdict.correct == truth and outcome in (None, verdict.outcome), expected, got
        )

    return judge


def _text_of(case: Case) -> str:
    parts = case.get("parts")
    return "".join(text * count for text, count in parts) if parts else case["expression"]


def _judge_preflight(contract: str, profile: str) -> Judge:
    def judge(case: Case) -> Judged:
        reference = case.get("reference", "7")
        verdict = verify_answer(_text_of(case), reference, contract=contract)
        if case["expect"] == "reject":
            return Judged(verdict.outcome is Outcome.UNSUPPORTED, "unsupported", str(verdict.outcome))
        return Judged(not verdict.correct, f"not equal to {reference}", str(verdict.outcome))

    return judge


def _judge_cost(contract: str, profile: str) -> Judge:
    def judge(case: Case) -> Judged:
        names = [name for name in ("v1", "v2") if name in case]
        reasons = [verify_answer(_text_of(case), case["reference"], contract=name).reason for name in names]
        written = [case[name] for name in names]
        return Judged(reasons == written, " and ".join(map(str, written)), " and ".join(map(str, reasons)))

    return judge


def _judge_extraction(contract: str, profile: str) -> Judge:
    from veriward.rewards.contracts.v3.extraction.extract import extract

    def judge(case: Case) -> Judged:
        found = extract(case["response"], truncated=case.get("truncated", False), joins=case.get("joins", False))
        got = {"candidate": found.candidate, "how": found.how, "flags": list(found.flags)}
        written = {name: case[name] for name in got if name in case}
        got = {name: got[name] for name in written}
        return Judged(got == written, json.dumps(written, ensure_ascii=False), json.dumps(got, ensure_ascii=False))

    return judge


# ---- kinds -----------------------------------------------------------------------------------------------------------

Judge: TypeAlias = Callable[[Case], Judged]


class Kind(NamedTuple):
    """A kind of case file: the fields that every row has, and how a row is judged."""

    name: str
    fields: frozenset[str]
    judge: Callable[[str, str], Judge]
    """Of a contract and a profile."""
    check: Callable[[Case, str], None]
    """Refuses a row that has the fields, but not what they have to hold."""
    cpu_s: float | None = None
    under: str | None = None
    """Where neither contract nor profile can be chosen."""


KINDS = (
    Kind("tools", frozenset({"tool", "level", "input", "expect"}), _judge_tools, check_tools, TOOL_CPU_S),
    Kind("preflight", frozenset({"expression", "expect"}), _judge_preflight, check_preflight, VERDICT_CPU_S),
    Kind("cost", frozenset({"parts", "reference", "v1"}), _judge_cost, check_cost, VERDICT_CPU_S, "v1 and v2"),
    Kind("extraction", frozenset({"response", "candidate", "how"}), _judge_extraction, check_extraction, None, "v3"),
    Kind("labelled", frozenset({"reference", "expected_correct"}), _judge_labelled, check_labelled),
    Kind("adjudicated", frozenset({"reference", "prediction", "truth"}), _judge_labelled, check_labelled),
)


def kind_of(row: Case) -> Kind | None:
    """The kind of file that a row belongs to."""
    return next((kind for kind in KINDS if kind.fields <= row.keys()), None)
