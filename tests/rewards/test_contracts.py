"""Frozen contracts: fingerprints that notice any change, case tables that come out as written, in a wheel too."""

import ast
import json
import shutil
import subprocess
import sys
import venv
from dataclasses import fields, replace
from inspect import getsource
from pathlib import Path

import pytest

from veriward.rewards import DEFAULT, get_contract, verify
from veriward.rewards.contracts import fingerprint_of
from veriward.rewards.contracts.audit import audit

ROOT = Path(__file__).parents[2]

PINNED = {"v1": "dbc04219eb19bda6", "v2": "077b806edadded8b"}
"""A released contract never changes. If this fails, the change belongs in a new contract."""


def sources(contract):
    return {module.__name__: getsource(module) for module in contract.rules}


@pytest.mark.parametrize("name", PINNED)
def test_a_released_contract_has_the_fingerprint_it_was_released_with(name):
    assert get_contract(name).fingerprint == PINNED[name]


@pytest.mark.parametrize("name", PINNED)
def test_every_limit_counts(name):
    contract = get_contract(name)
    for number, limits in enumerate(contract.limits):
        for field in fields(limits):
            changed = replace(limits, **{field.name: getattr(limits, field.name) + 1})
            others = (*contract.limits[:number], changed, *contract.limits[number + 1 :])
            assert replace(contract, limits=others).fingerprint != contract.fingerprint, field.name


@pytest.mark.parametrize("name", PINNED)
def test_every_policy_counts(name):
    contract = get_contract(name)
    for policy in contract.policies:
        changed = {**contract.policies, policy: "otherwise"}
        assert replace(contract, policies=changed).fingerprint != contract.fingerprint, policy


@pytest.mark.parametrize("name", PINNED)
def test_every_case_counts(name):
    contract = get_contract(name)
    lines = contract.case_text().splitlines()
    for number in range(len(lines)):
        fewer = "\n".join(lines[:number] + lines[number + 1 :])
        assert fingerprint_of(contract, sources(contract), fewer) != contract.fingerprint, lines[number]


class _Mutation(ast.NodeTransformer):
    """Puts a statement at the head of the n-th function."""

    def __init__(self, number):
        self.number = number
        self.name = None

    def visit_FunctionDef(self, node):
        if self.number == 0:
            self.name = node.name
            node.body.insert(0, ast.Pass())
        self.number -= 1
        return self.generic_visit(node)


@pytest.mark.parametrize("name", PINNED)
def test_every_rule_function_counts(name):
    contract = get_contract(name)
    for module, source in sources(contract).items():
        functions = sum(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(source)))
        assert functions
        for number in range(functions):
            mutation = _Mutation(number)
            changed = ast.unparse(mutation.visit(ast.parse(source)))
            mutated = {**sources(contract), module: changed}
            assert fingerprint_of(contract, mutated, contract.case_text()) != contract.fingerprint, mutation.name


@pytest.mark.parametrize("name", PINNED)
def test_every_pattern_and_table_of_the_rules_counts(name):
    contract = get_contract(name)
    for module, source in sources(contract).items():
        tree = ast.parse(source)
        for number, statement in enumerate(tree.body):
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                fewer = ast.unparse(ast.Module(tree.body[:number] + tree.body[number + 1 :], []))
                mutated = {**sources(contract), module: fewer}
                assert fingerprint_of(contract, mutated, contract.case_text()) != contract.fingerprint


def test_comments_docstrings_and_layout_do_not_count():
    contract = get_contract("v2")
    respelled = {}
    for module, source in sources(contract).items():
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = "Another docstring."
        respelled[module] = ast.unparse(tree) + "\n# a comment\n"
    assert fingerprint_of(contract, respelled, contract.case_text()) == contract.fingerprint


def test_the_default_contract_is_v3():
    assert DEFAULT == "v3"
    assert verify("4", "4").contract == "v3"


def test_an_unknown_contract_is_an_error_that_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'v9'; known: v1, v2, v3"):
        verify("4", "4", contract="v9")


def test_the_audit_of_v1_prints_the_published_table():
    result = audit("v1")
    assert result.differences == ()
    assert result.table == (
        ("normalization cases", "6 / 6"),
        ("verification cases", "10 / 10"),
        ("end-to-end cases", "8 / 8"),
        ("overall", "24 / 24"),
    )


def test_the_audit_of_v2_prints_the_published_table():
    result = audit("v2")
    assert result.differences == ()
    assert result.table == (
        ("all probes", "24 / 24"),
        ("accepted by candidate", "8"),
        ("rejected before verifier", "16"),
        ("safe comparisons with frozen v1", "11"),
        ("candidate / v1 disagreements", "6"),
        ("dangerous v1 calls skipped", "5"),
    )


def test_the_audit_of_v3_finds_every_case_as_written():
    result = audit("v3")
    assert result.differences == ()
    assert result.table[-1] == (
        "overall",
        f"{len(get_contract('v3').read_cases())} / {len(get_contract('v3').read_cases())}",
    )


def test_the_fingerprint_of_v3_covers_every_module_of_its_folder():
    folder = ROOT / "rewards/contracts/v3"
    files = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py") if path.stem != "__init__"]
    modules = {".".join(path.parts) for path in files}
    names = {module.__name__ for module in get_contract("v3").rules}
    assert {name.partition(".v3.")[2] for name in names if ".v3." in name} == modules


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("v1", {"normalization": 6, "verification": 10, "end_to_end": 8}),
        ("v2", {"supported": 8, "syntax": 4, "resource": 9, "compatibility": 3}),
    ],
)
def test_the_case_tables_have_the_published_groups(name, groups):
    counted = {}
    for case in get_contract(name).read_cases():
        group = case.get("kind", case.get("group"))
        counted[group] = counted.get(group, 0) + 1
    assert counted == groups


@pytest.mark.parametrize(
    ("name", "case_id"), [("v1", "v4"), ("v1", "n1"), ("v1", "e1"), ("v2", "p1"), ("v2", "r7"), ("v2", "c1")]
)
def test_an_audit_notices_a_case_that_comes_out_otherwise(name, case_id, monkeypatch):
    cases = get_contract(name).read_cases()
    for case in cases:
        if case["id"] == case_id:
            case.update({key: "otherwise" for key in ("outcome", "expected", "reason", "v1") if key in case})
    monkeypatch.setattr(type(get_contract(name)), "read_cases", lambda contract: cases)
    assert [line for line in audit(name).differences if line.startswith(f"{case_id}:")]


@pytest.mark.slow
def test_all_audits_run_and_a_preset_loads_from_a_wheel_outside_the_checkout(tmp_path):
    source = tmp_path / "source"  # setuptools would leave its build folder in the checkout
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "runs", "build", "*.egg-info", "__pycache__"))
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True, system_site_packages=False)
    python = tmp_path / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", str(wheel)], check=True, capture_output=True)
    program = """
import sys
from importlib import resources
import veriward.rewards
from veriward.rewards.contracts.audit import audit
assert str(sys.prefix) in veriward.rewards.__file__, veriward.rewards.__file__
assert not any(audit(name).differences for name in ("v1", "v2", "v3"))
import yaml
yaml.safe_load(resources.files("veriward.train").joinpath("presets/quickstart_cpu.yaml").read_text())
"""
    path = json.dumps([entry for entry in sys.path if entry.endswith("site-packages")])
    subprocess.run(
        [python, "-c", f"import sys; sys.path += {path}\n{program}"],
        check=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
    )


def test_threads_that_ask_first_and_at_once_get_the_fingerprint():
    program = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from veriward.rewards import get_contract\n"
        "with ThreadPoolExecutor(16) as threads:\n"
        "    asked = [threads.submit(lambda: get_contract('v3').fingerprint) for _ in range(16)]\n"
        "    print(*{each.result() for each in asked})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [get_contract("v3").fingerprint]
