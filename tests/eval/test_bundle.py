from __future__ import annotations

import json
import shutil
import zipfile

import pytest

from veriward.eval.audit_sample import read_cells, write_audit, write_sheet
from veriward.eval.bundle import make_bundle, open_bundle
from veriward.eval.bundle_check import check_bundle
from veriward.eval.cards import model_card, verify_card
from veriward.eval.runs import read_run
from veriward.tool_agent.errors import ConfigError

pytest.importorskip("statsmodels")
pytest.importorskip("jinja2")

TEXTS = {f"p{n}": rf"\boxed{{{n + 1 if n < 6 else 0}}}" for n in range(12)}


@pytest.fixture
def run(run_folders, tmp_path):
    run = run_folders.write_run(tmp_path / "run", TEXTS)
    from veriward.eval.loop import write_summary

    write_summary(run)
    return run


@pytest.fixture
def packed(run, tmp_path):
    card = tmp_path / "card.md"
    model_card([run], at=card).write(card)
    make_bundle([run.path], tmp_path / "runs.zip", cards=[card])
    return tmp_path / "runs.zip"


def changed(bundle, name, change, *, out=None):
    """The bundle with another content under a name; None takes it out."""
    out = out or bundle.with_name("changed.zip")
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            content = change(old.read(entry)) if entry.filename == name else old.read(entry)
            if content is not None:
                new.writestr(entry.filename, content)
        if name not in old.namelist():
            new.writestr(name, change(b""))
    return out


def test_a_bundle_is_checked_whole(packed):
    found = check_bundle(packed)
    assert found.faults == []
    assert (found.runs, found.responses, found.decided_again, found.cards) == (1, 12, 12, 1)


def test_a_stranger_verifies_the_card_from_the_bundle_alone(packed, run):
    shutil.rmtree(run.path)
    with open_bundle(packed) as bundle:
        assert verify_card(bundle.cards[0], [read_run(folder) for folder in bundle.runs]) == []


def test_the_same_runs_give_the_same_bytes(run, tmp_path):
    assert make_bundle([run.path], tmp_path / "a.zip") == make_bundle([run.path], tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def state_of(bundle, word):
    with zipfile.ZipFile(bundle) as archive:
        return next(name for name in archive.namelist() if "/problems/" in name and word in archive.read(name).decode())


def test_a_changed_state_is_named(packed):
    name = state_of(packed, '"outcome": "wrong"')
    found = check_bundle(changed(packed, name, lambda content: content.replace(b'"wrong"', b'"correct"')))
    assert any(fault.startswith(name) for fault in found.faults)


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("README.md", lambda content: None, "README.md: missing"),
        ("runs/run/extra.json", lambda content: b"{}", "added; it is not in the manifest"),
        ("manifest.json", lambda content: b"[]", "changed, or of another version"),
        ("manifest.json", lambda content: None, "manifest.json: missing"),
        ("../evil", lambda content: b"x", "a name that leads elsewhere"),
        ("/etc/evil", lambda content: b"x", "a name that leads elsewhere"),
        ("runs/run/con\x07", lambda content: b"x", "a name that leads elsewhere"),
    ],
)
def test_a_bundle_that_is_not_as_it_was_packed_is_named(packed, name, change, fault):
    assert any(fault in line for line in check_bundle(changed(packed, name, change)).faults)


def with_manifest(**entries):
    return lambda content: json.dumps({**json.loads(content), **entries}).encode()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(with_manifest(files=5), id="no files"),
        pytest.param(with_manifest(runs=[]), id="a run is kept quiet"),
        pytest.param(with_manifest(runs=[{"name": "run"}, {"name": "run"}]), id="a run is there twice"),
        pytest.param(with_manifest(runs=[{"name": "../run"}]), id="a run lies elsewhere"),
        pytest.param(lambda content: content.replace(b'"bytes": ', b'"bytes": "1", "b": '), id="sizes are texts"),
    ],
)
def test_a_manifest_that_was_made_up_is_said_and_not_raised(packed, change):
    (fault,) = check_bundle(changed(packed, "manifest.json", change)).faults
    assert fault.startswith("manifest.json: changed")


def test_another_compression_is_not_unpacked(packed, tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("manifest.json", b"{}")
    assert check_bundle(tmp_path / "other.zip").faults == [
        "manifest.json: compressed otherwise than `veriward bundle` does"
    ]


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04" + b"\0" * 40])
def test_what_is_no_archive_is_said_and_not_raised(tmp_path, content):
    (tmp_path / "no.zip").write_bytes(content)
    assert "is no whole zip archive" in check_bundle(tmp_path / "no.zip").faults[0]


def test_half_a_bundle_is_said_and_not_raised(packed):
    packed.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    assert check_bundle(packed).faults


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(packed):
    bomb = changed(packed, "README.md", lambda content: b"0" * 50_000_000)
    (fault,) = check_bundle(bomb).faults
    assert "longer than the" in fault


def test_numbers_that_the_states_do_not_say_are_named(run, tmp_path):
    file = run.path / "summary.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "tokens": 1}))
    make_bundle([run.path], tmp_path / "runs.zip")
    (fault,) = check_bundle(tmp_path / "runs.zip").faults
    assert "summary.json: tokens is 1, and the states say" in fault


def test_without_references_none_is_in_the_bundle_and_verdicts_are_only_counted(run_folders, tmp_path):
    problems = run_folders.problem_set(3)
    texts = {problem.id: r"\boxed{0}" for problem in problems.problems}
    run = run_folders.write_run(tmp_path / "run", texts, problems=problems)
    make_bundle([run.path], tmp_path / "runs.zip", references=False)
    with zipfile.ZipFile(tmp_path / "runs.zip") as archive:
        rows = archive.read("runs/run/problems.jsonl").decode().splitlines()
        assert not any("reference" in json.loads(row) for row in rows)
        assert not [name for name in archive.namelist() if b"reference_normal" in archive.read(name)]
    found = check_bundle(tmp_path / "runs.zip")
    assert (found.faults, found.decided_again, found.only_counted) == ([], 0, 3)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("solution", ("see there", "and there")),
        ("Answer", ("", "")),
        ("gold", (1, "2 ")),
        ("steps", (r"\boxed{1}", "")),
    ],
)
def test_a_column_that_gives_the_references_away_is_refused(run_folders, tmp_path, column, values):
    problems = run_folders.problem_set(2, columns=[{column: value} for value in values])
    run = run_folders.write_run(tmp_path / "run", {"p0": r"\boxed{1}"}, problems=problems)
    with pytest.raises(ConfigError, match=f"the column '{column}' .* would give the references away"):
        make_bundle([run.path], tmp_path / "runs.zip", references=False)
    assert not (tmp_path / "runs.zip").exists()


def test_two_runs_of_one_name_are_refused(run, tmp_path):
    other = shutil.copytree(run.path, tmp_path / "other" / "run")
    with pytest.raises(ConfigError, match="has the name of"):
        make_bundle([run.path, other], tmp_path / "runs.zip")


def test_marks_are_packed_and_checked(run, tmp_path):
    mark(run, tmp_path / "sheet.csv")
    make_bundle([run.path], tmp_path / "runs.zip")
    assert check_bundle(tmp_path / "runs.zip").faults == []


def mark(run, sheet):
    write_sheet(run, sheet, count=8)
    marked = [cells for _, cells in read_cells(sheet)]
    lines = sheet.read_text("utf-8-sig").splitlines()
    assert len(marked) == 8
    sheet.write_text("\n".join([lines[0], *(line.replace('"",""', '"right",""') for line in lines[1:])]), "utf-8")
    audit, faults = write_audit(run, sheet)
    assert faults == []
    return audit
