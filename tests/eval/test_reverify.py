from __future__ import annotations

import json

import pytest

from veriward.eval.reverify import default_folder, reverify
from veriward.rewards import verify
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("statsmodels")

TEXTS = {"p0": r"\boxed{1}", "p1": r"\boxed{2\%}", "p2": r"It is 3.", "p3": r"\boxed{8/2}"}


@pytest.fixture
def old(run_folders, tmp_path):
    return run_folders.write_run(tmp_path / "old", TEXTS, problems=run_folders.problem_set(4), contract="v1")


def contents(folder):
    return {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file() and file.name != ".lock"}


def test_stored_responses_get_the_verdicts_of_the_other_contract(old, tmp_path):
    new = reverify(old.path, tmp_path / "new", contract="v3").run
    references = {problem.id: problem.reference for problem in new.set.problems}
    wanted = [verify(row["text"], references[row["id"]], contract="v3").outcome for row in old.rows]
    assert [row["outcome"] for row in new.rows] == wanted
    assert new.contract.name == "v3"


def test_the_old_run_is_never_rewritten(old, tmp_path):
    before = contents(old.path)
    reverify(old.path, tmp_path / "new", contract="v3")
    assert contents(old.path) == before


def test_the_new_run_names_its_parent_and_asks_no_model(old, tmp_path):
    new = reverify(old.path, tmp_path / "new", contract="v3").run
    assert new.settings["parent"]["fingerprint"] == old.fingerprint
    assert [(row["text"], row["tokens"], row["seed"]) for row in new.rows] == [
        (row["text"], row["tokens"], row["seed"]) for row in old.rows
    ]
    assert json.loads((tmp_path / "new" / "summary.json").read_text())["contract"] == "v3"


def test_there_and_back_is_the_old_verdict(old, tmp_path):
    reverify(old.path, tmp_path / "new", contract="v3")
    back = reverify(tmp_path / "new", tmp_path / "back", contract="v1").run
    clock = ("microseconds", "seconds")
    strip = [{name: value for name, value in row.items() if name not in clock} for row in back.rows]
    assert strip == [{name: value for name, value in row.items() if name not in clock} for row in old.rows]


def test_several_samples_are_all_verified(run_folders, tmp_path):
    texts = {"p0": [r"\boxed{1}", r"\boxed{2}"], "p1": [r"\boxed{2}", "?"]}
    old = run_folders.write_run(tmp_path / "old", texts, problems=run_folders.problem_set(2), contract="v2")
    new = reverify(old.path, tmp_path / "new", contract="v3").run
    assert [(row["id"], row["sample"], row["correct"]) for row in new.rows] == [
        ("p0", 0, True),
        ("p0", 1, False),
        ("p1", 0, True),
        ("p1", 1, False),
    ]


def test_the_same_contract_again_is_refused(old, tmp_path):
    with pytest.raises(ConfigError, match=r"is under contract v1 .* already"):
        reverify(old.path, tmp_path / "new", contract="v1")


def test_an_unknown_contract_is_refused(old, tmp_path):
    with pytest.raises(ConfigError, match="unknown contract 'v9'"):
        reverify(old.path, tmp_path / "new", contract="v9")


def test_a_folder_with_another_run_is_refused(old, tmp_path):
    with pytest.raises(ConfigError):
        reverify(old.path, old.path, contract="v3")


def test_the_new_folder_stands_beside_the_old_one(tmp_path):
    assert default_folder(tmp_path / "runs" / "one", "v3") == tmp_path / "runs" / "one-v3"
