"""How often the verifier of each contract is wrong on real answers whose truth two readers settled.

    python -m veriward.scripts.measure_verifier --shared FOLDER            prints the rates
    python -m veriward.scripts.measure_verifier --shared FOLDER --write    writes eval/verifier_errors.json

The file has a contract's fingerprint beside each rate, and `eval.metrics` puts them beside every accuracy that was
made under exactly that version. Measure again after a change of the rules.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from veriward.eval.metrics import VERIFIER_ERRORS
from veriward.rewards import CONTRACTS, Outcome, get_contract
from veriward.scripts.bench_verifier import Row, labelled_files, verdict_of

FILE = "adjudicated_given"
CASES = "{} real answers of models, their truth settled by two readers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="folder with cases/")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = labelled_files(options.shared)[FILE]
    content = json.dumps([rate for contract in CONTRACTS for rate in rates(contract, rows)], indent=2) + "\n"
    if options.write:
        VERIFIER_ERRORS.write_text(content, encoding="ascii")
    else:
        print(content, end="")


def rates(contract: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Of the answers that are wrong, those called correct; of those that are correct, those called wrong."""
    judged = [(row["truth"], verdict_of(row, contract)) for row in rows]
    accepted = [verdict.correct for truth, verdict in judged if not truth]
    rejected = [verdict.outcome is Outcome.WRONG for truth, verdict in judged if truth]
    common = {"contract": contract, "fingerprint": get_contract(contract).fingerprint, "cases": CASES.format(len(rows))}
    return [
        {**common, "kind": "false_accept", "successes": sum(accepted), "total": len(accepted)},
        {**common, "kind": "false_reject", "successes": sum(rejected), "total": len(rejected)},
    ]


if __name__ == "__main__":
    main()
