"""`veriward audit`: prints the published tables from running the cases, and fails on any difference."""

import json
from importlib import import_module

import pytest
from typer.testing import CliRunner

from veriward.rewards import get_contract
from veriward.scripts.cli import app

audit_module = import_module("veriward.rewards.contracts.audit")


@pytest.mark.parametrize(
    ("contract", "lines"),
    [
        (
            "v1",
            ["normalization cases 6 / 6", "verification cases 10 / 10", "end-to-end cases 8 / 8", "overall 24 / 24"],
        ),
        (
            "v2",
            [
                "all probes 24 / 24",
                "accepted by candidate 8",
                "rejected before verifier 16",
                "safe comparisons with frozen v1 11",
                "candidate / v1 disagreements 6",
                "dangerous v1 calls skipped 5",
            ],
        ),
    ],
)
def test_the_published_table_is_printed(contract, lines):
    result = CliRunner().invoke(app, ["audit", contract])
    printed = [" ".join(line.split()) for line in result.output.splitlines()]
    assert result.exit_code == 0
    assert printed == [f"contract {contract}, fingerprint {get_contract(contract).fingerprint}", *lines]


def test_the_table_can_be_read_by_a_machine():
    result = CliRunner().invoke(app, ["audit", "v1", "--json"])
    assert json.loads(result.output)["overall"] == "24 / 24"


def test_a_difference_ends_with_exit_code_1_and_names_the_case(monkeypatch):
    monkeypatch.setattr(audit_module, "normalize", lambda text: "otherwise")
    result = CliRunner().invoke(app, ["audit", "v1"])
    assert result.exit_code == 1
    assert "n1: expected 'otherwise', written '((2)/(4))'" in result.output


def test_an_unknown_contract_is_one_line_and_exit_code_2(capfd):
    with pytest.raises(SystemExit) as ended:
        app(["audit", "v9"])
    assert ended.value.code == 2
    assert capfd.readouterr().err == "veriward: unknown contract 'v9'; wanted one of v1, v2, v3\n"
