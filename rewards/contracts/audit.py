"""Run a contract's own case table and say what came out: the check that its decisions are the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from veriward.rewards.chain import verify, verify_answer
from veriward.rewards.contracts import get_contract, v2
from veriward.rewards.normalize import normalize
from veriward.rewards.verdict import Verdict

Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What the cases of one contract gave."""

    contract: str
    fingerprint: str
    table: tuple[tuple[str, str], ...]
    """Lines of the published table: label and figure."""
    differences: tuple[str, ...]
    """One line for each case or count that is not as written."""


def audit(contract: str) -> Audit:
    """Run the case table of a contract; ValueError if no contract has that name."""
    rules = get_contract(contract)
    cases = rules.read_cases()
    table, differences = {"v1": _audit_v1, "v2": _audit_v2, "v3": _audit_v3}[contract](cases)
    return Audit(contract=contract, fingerprint=rules.fingerprint, table=tuple(table), differences=tuple(differences))


# ---- v1: six normalisations, ten comparisons, eight whole responses --------------------------------------------------


def _audit_v1(cases: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], list[str]]:
    differences = {case["id"]: _difference(case, _V1_RUNS[case["kind"]](case)) for case in cases}
    table = []
    for kind, label in (
        ("normalization", "normalization"),
        ("verification", "verification"),
        ("end_to_end", "end-to-end"),
    ):
        ids = [case["id"] for case in cases if case["kind"] == kind]
        table.append((f"{label} cases", _share(sum(not differences[case_id] for case_id in ids), len(ids))))
    failed = [line for line in differences.values() if line]
    table.append(("overall", _share(len(cases) - len(failed), len(cases))))
    return table, failed


def _normalization(case: Case) -> Case:
    return {"expected": normalize(case["text"])}


def _verification(case: Case) -> Case:
    return _fields(verify_answer(case["prediction"], case["reference"], contract="v1"))


def _end_to_end(case: Case) -> Case:
    return _fields(verify(case["response"], case["reference"], contract="v1"))


_V1_RUNS = {"normalization": _normalization, "verification": _verification, "end_to_end": _end_to_end}


# ---- v2: 24 probes, each looked at by the preflight, the safe ones compared with v1 ----------------------------------


def _audit_v2(cases: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], list[str]]:
    verdicts = {case["id"]: verify_answer(case["prediction"], case["reference"], contract="v2") for case in cases}
    differences = [_difference(case, _probe(case, verdicts[case["id"]])) for case in cases]
    refused = [case for case in cases if not verdicts[case["id"]].verifier_called]
    dangerous = [case for case in refused if case["v1"] == "dangerous"]
    compared = [case for case in refused if case["v1"] != "dangerous"]
    disagreements = 0
    for case in compared:
        frozen = verify_answer(case["prediction"], case["reference"], contract="v1")
        disagreements += (frozen.correct, frozen.supported) != (False, False)
        differences.append(_difference({"id": case["id"], "v1": case["v1"]}, {"v1": frozen.outcome.value}))
    failed = [line for line in differences if line]
    failed_ids = {line.split(":")[0] for line in failed}
    table = [
        ("all probes", _share(len(cases) - len(failed_ids), len(cases))),
        ("accepted by candidate", str(len(cases) - len(refused))),
        ("rejected before verifier", str(len(refused))),
        ("safe comparisons with frozen v1", str(len(compared))),
        ("candidate / v1 disagreements", str(disagreements)),
        ("dangerous v1 calls skipped", str(len(dangerous))),
    ]
    return table, failed


def _probe(case: Case, verdict: Verdict) -> Case:
    """An accepted probe must also be decided equal: all eight are."""
    accepted = v2.preflight(normalize(case["prediction"])) is None and verdict.correct
    return {"accepted": accepted, "reason": None if verdict.reason is None else verdict.reason.value}


# ---- v3: bare answers and whole responses, a line a kind -------------------------------------------------------------


def _audit_v3(cases: list[dict[str, Any]]) -> tuple[list[tuple[str, str]], list[str]]:
    differences = {case["id"]: _difference(case, _judged(case)) for case in cases}
    table = []
    for kind in dict.fromkeys(case["kind"] for case in cases):
        ids = [case["id"] for case in cases if case["kind"] == kind]
        table.append((f"{kind} cases", _share(sum(not differences[case_id] for case_id in ids), len(ids))))
    failed = [line for line in differences.values() if line]
    table.append(("overall", _share(len(cases) - len(failed), len(cases))))
    return table, failed


def _judged(case: Case) -> Case:
    declared = {"answer_type": case.get("answer_type"), "options": case.get("options")}
    if "response" in case:
        truncated = case.get("truncated", False)
        verdict = verify(case["response"], case["reference"], contract="v3", truncated=truncated, **declared)
    else:
        verdict = verify_answer(case["prediction"], case["reference"], contract="v3", **declared)
    row = verdict.to_row()
    return {name: row[name] for name in ("outcome", "reason", "method", "certainty", "format_valid", "flags")}


# ---- what is compared ------------------------------------------------------------------------------------------------


def _fields(verdict: Verdict) -> Case:
    row = verdict.to_row()
    return {name: row[name] for name in ("outcome", "reason", "method", "candidate", "format_valid")}


def _difference(case: Case, got: Case) -> str:
    """An empty text if everything that the case states came out, else one line that begins with the case's id."""
    wrong = [
        f"{name} {got[name]!r}, written {case[name]!r}" for name in got if name in case and got[name] != case[name]
    ]
    return f"{case['id']}: {'; '.join(wrong)}" if wrong else ""


def _share(right: int, total: int) -> str:
    return f"{right} / {total}"
