"""One set of claims for both stores, then what only one of them can do wrong."""

import contextlib
import errno
import itertools
import json
import os
import platform
import sqlite3
import subprocess
import sys
import threading
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import Action, Fault, FaultPlan
from veriward.tool_agent.file_store import place
from veriward.tool_agent.store import export, fingerprint, open_store, read_store

SETTINGS = {"model": "scripted", "tools": {"profile": "default"}, "seed": 0, "code": "aaaa"}
KINDS = ("files", "sqlite")
ROOT = os.name == "posix" and os.geteuid() == 0


def row_of(identity, phase="called", **more):
    return {"fingerprint": fingerprint(SETTINGS), "problem": {"id": identity}, "phase": phase, **more}


def header_of(**changed):
    header = {"schema": 1, "kind": "files", "fingerprint": fingerprint({}), "settings": {}}
    return json.dumps({**header, **changed})


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def opened(run, kind):
    """Opens the run again and again; closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            open_store(run, SETTINGS, kind=kind, durability="process", **options)
        )


def damage(run, kind, identity, change):
    """Alter what is stored of a problem, behind the store's back."""
    if kind == "files":
        sub_folder, name = place(identity)
        file = run / "problems" / sub_folder / name
        file.write_bytes(change(file.read_bytes()))
        return
    with contextlib.closing(sqlite3.connect(run / "problems.sqlite")) as database, database:
        (content,) = database.execute("SELECT CAST(row AS BLOB) FROM problems WHERE id = ?", (identity,)).fetchone()
        database.execute("UPDATE problems SET row = CAST(? AS TEXT) WHERE id = ?", (change(content), identity))


# ----------------------------------------------------------------------------------------------------- both stores


def test_a_row_comes_back(opened):
    store = opened()
    store.write("a", row_of("a", result={"value": 12, "text": "12"}))
    assert store.read("a") == row_of("a", result={"value": 12, "text": "12"})


def test_a_row_comes_back_after_a_restart(opened):
    with opened() as store:
        store.write("a", row_of("a"))
    assert opened().read("a") == row_of("a")


def test_a_row_replaces_the_earlier_one(opened):
    store = opened()
    for phase in ("called", "executed", "complete"):
        store.write("a", row_of("a", phase))
    assert [store.read("a"), *store.rows()] == [row_of("a", "complete")] * 2


class Colour(StrEnum):
    RED = "red"


def test_enums_and_tuples_are_stored_as_json_has_them(opened):
    store = opened()
    store.write("a", row_of("a", category=Colour.RED, seen=[Colour.RED], value=({"id": "x"},)))
    assert store.read("a") == row_of("a", category="red", seen=["red"], value=[{"id": "x"}])


def test_a_problem_without_a_row_is_none(opened):
    assert opened().read("a") is None


def test_the_scan_gives_each_problem_and_its_phase(opened):
    store = opened()
    for number in range(30):
        store.write(f"p{number}", row_of(f"p{number}", "complete" if number % 2 else "called"))
    assert store.phases() == {f"p{number}": "complete" if number % 2 else "called" for number in range(30)}


def test_rows_may_be_written_while_they_are_gone_through(opened):
    store = opened()
    for number in range(20):
        store.write(f"p{number}", row_of(f"p{number}"))
    for row in store.rows():
        store.write(row["problem"]["id"], row | {"phase": "complete"})
    assert set(store.phases().values()) == {"complete"}


ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ids,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ids, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(identity=ids, value=values, key=ids.filter(lambda key: key not in {"checksum", *row_of("")}))
def test_any_id_and_any_json_value_come_back_exactly(opened, identity, value, key):
    if not hasattr(opened, "store"):
        opened.store = opened()
    opened.store.write(identity, row_of(identity, **{key: value}))
    back = opened.store.read(identity)
    assert json.dumps(back) == json.dumps(row_of(identity, **{key: value}))


HOSTILE_IDS = [
    "",
    ".",
    "..",
    "../../escape",
    "/etc/passwd",
    "a\0b",
    "con",
    "a" * 10_000,
    "a" * 9_999 + "b",
    "é" * 300,
    "e\u0301" * 300,
    "Case",
    "case",
    "line\nbreak",
    "\u202eright to left",
    ".tmp-1-2",
    "%s{}'\";--",
    "trailing. ",
]


def test_hostile_ids_stay_apart_and_inside_the_folder(opened, run, tmp_path):
    store = opened()
    for number, identity in enumerate(HOSTILE_IDS):
        store.write(identity, row_of(identity, number=number))
    assert [store.read(identity)["number"] for identity in HOSTILE_IDS] == list(range(len(HOSTILE_IDS)))
    assert list(tmp_path.iterdir()) == [run]


def test_no_two_file_names_differ_in_case_alone(opened, run):
    store = opened()
    for identity in HOSTILE_IDS:
        store.write(identity, row_of(identity))
    names = [str(path).lower() for path in run.rglob("*.json")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("identity", "row"),
    [
        pytest.param("\ud800", row_of("\ud800"), id="a lone surrogate in the id"),
        pytest.param("a", row_of("a", text="\udc80"), id="a lone surrogate in a text"),
        pytest.param("a", row_of("a", value=float("nan")), id="nan"),
        pytest.param("a", row_of("a", value=float("inf")), id="infinity"),
        pytest.param("a", row_of("b"), id="another problem's row"),
        pytest.param("a", row_of("a") | {"fingerprint": "0" * 16}, id="another run's fingerprint"),
        pytest.param("a", {"problem": {"id": "a"}, "fingerprint": fingerprint(SETTINGS)}, id="no phase"),
        pytest.param("a", row_of("a", checksum="x"), id="the key that the store adds"),
    ],
)
def test_a_row_that_could_not_be_read_back_is_our_own_mistake(opened, identity, row):
    store = opened()
    store.write("a", row_of("a"))
    with pytest.raises(ValueError, match=r".") as error:
        store.write(identity, row)
    assert not isinstance(error.value, ConfigError)
    assert [*store.rows()] == [row_of("a")]


def torn(content):
    return content[: len(content) // 2]


DAMAGES = [
    pytest.param(torn, id="torn"),
    pytest.param(lambda content: content.replace(b"called", b"CALLED"), id="altered"),
    pytest.param(lambda content: b"", id="empty"),
    pytest.param(lambda content: b"\xff\xfe" + content, id="not UTF-8"),
    pytest.param(lambda content: b"hello", id="not JSON"),
    pytest.param(lambda content: b"[" * 100_000, id="nested"),
    pytest.param(lambda content: content + b"x", id="something behind it"),
    pytest.param(lambda content: b"{}", id="another program's"),
]


@pytest.mark.parametrize("change", DAMAGES)
def test_what_cannot_be_read_counts_as_not_there_and_is_named(opened, run, kind, change):
    with opened() as store:
        store.write("bad", row_of("bad"))
        store.write("good", row_of("good"))
    damage(run, kind, "bad", change)
    store = opened()
    assert store.phases() == {"good": "called"}
    assert len(store.set_aside) == 1
    assert "bad" in store.set_aside[0]
    assert store.read("bad") is None


@pytest.mark.parametrize("change", DAMAGES)
def test_reading_one_damaged_row_finds_none(opened, run, kind, change):
    with opened() as store:
        store.write("bad", row_of("bad"))
    damage(run, kind, "bad", change)
    store = opened()
    assert store.read("bad") is None
    assert len(store.set_aside) == 1


def test_a_problem_that_was_set_aside_can_be_written_again(opened, run, kind):
    with opened() as store:
        store.write("a", row_of("a"))
    damage(run, kind, "a", torn)
    with opened() as store:
        assert store.read("a") is None
        store.write("a", row_of("a", "complete"))
    assert opened().phases() == {"a": "complete"}


def kept_aside(run, kind):
    if kind == "files":
        return sorted(path.read_bytes() for path in (run / "set_aside").iterdir())
    with contextlib.closing(sqlite3.connect(run / "problems.sqlite")) as database:
        return sorted(row for (row,) in database.execute("SELECT CAST(row AS BLOB) FROM set_aside"))


def test_what_was_set_aside_is_kept_each_time(opened, run, kind):
    for number in range(3):
        with opened() as store:
            store.write("a", row_of("a"))
        damage(run, kind, "a", lambda content, number=number: b"torn %d" % number)
        with opened() as store:
            assert store.read("a") is None
    assert kept_aside(run, kind) == [b"torn 0", b"torn 1", b"torn 2"]


def test_a_row_that_the_caller_cannot_use_is_set_aside_too(opened):
    store = opened()
    store.write("a", row_of("a", schema=0))
    store.put_aside("a", "schema 0")
    assert (store.read("a"), len(store.set_aside)) == (None, 1)


def test_several_threads_write_at_once(opened):
    store = opened()

    def work(thread):
        for number in range(30):
            store.write(f"{thread}-{number}", row_of(f"{thread}-{number}"))
            store.write("shared", row_of("shared", number=number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.phases()) == 4 * 30 + 1
    assert not store.set_aside


def test_a_second_writer_is_told_who_the_first_is(opened):
    opened()
    with pytest.raises(ConfigError, match=f"process {os.getpid()} on {platform.node()}") as error:
        opened()
    assert "\n" not in str(error.value)


def test_a_closed_run_can_be_opened_again(opened):
    opened().close()
    assert opened().took_over is None


def test_closing_twice_is_closing_once(opened):
    store = opened()
    store.close()
    store.close()


@pytest.mark.parametrize(
    ("holder", "taken_over"),
    [
        pytest.param({"host": platform.node(), "boot": "an earlier one"}, True, id="this machine, started anew"),
        pytest.param({"host": "a container", "boot": "this"}, True, id="this machine under another name"),
        pytest.param({"host": "another", "boot": "another"}, False, id="another machine"),
    ],
)
def test_a_lock_that_was_left_behind(opened, run, holder, taken_over):
    opened().close()
    boot = Path("/proc/sys/kernel/random/boot_id")
    if holder["boot"] == "this":
        if not boot.exists():
            pytest.skip("no boot id on this system")
        holder = holder | {"boot": boot.read_text().strip()}
    (run / ".lock").write_text(json.dumps({"pid": 4_000_000, "started": "yesterday", **holder}))
    if taken_over:
        assert "process 4000000" in opened().took_over
    else:
        with pytest.raises(ConfigError, match="process 4000000 on another"):
            opened()


def test_a_torn_lock_is_no_obstacle(opened, run):
    opened().close()
    (run / ".lock").write_text('{"pid": 12')
    assert opened().took_over is None


# -------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "seed 0 there, 1 now"),
        ({"seed": 0.0}, "seed 0 there, 0.0 now"),
        ({"seed": None}, "seed 0 there, null now"),
        ({"tools": {"profile": "strict"}}, 'tools.profile "default" there, "strict" now'),
        ({"gate": None}, "gate nothing there, null now"),
        ({"seed": 1, "code": "bbbb"}, "seed 0 there, 1 now; code"),
    ],
)
@pytest.mark.parametrize("continue_under", [False, True])
def test_another_runs_settings_are_refused_with_what_differs(opened, run, kind, change, said, continue_under):
    opened().close()
    with pytest.raises(ConfigError) as error:
        open_store(run, SETTINGS | change, kind=kind, continue_under=continue_under)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_setting_is_a_difference(opened, run, kind):
    opened().close()
    with pytest.raises(ConfigError, match="seed 0 there, nothing now"):
        open_store(run, {key: value for key, value in SETTINGS.items() if key != "seed"}, kind=kind)


@pytest.mark.parametrize(
    ("stored", "wanted", "same"),
    [
        ({"name": "p", "sha256": "a"}, {"name": "./p", "sha256": "a"}, True),
        ({"name": "p", "sha256": "a"}, {"name": "p", "sha256": "b"}, False),
        ({"name": "p"}, {"name": "./p"}, False),
    ],
)
def test_problems_are_the_same_by_their_hash_and_without_one_by_name(tmp_path, stored, wanted, same):
    open_store(tmp_path / "named", {**SETTINGS, "problems": stored}).close()
    with contextlib.nullcontext() if same else pytest.raises(ConfigError, match="other settings"):
        open_store(tmp_path / "named", {**SETTINGS, "problems": wanted}).close()


def test_other_code_is_refused_with_the_way_to_go_on(opened, run, kind):
    opened().close()
    with pytest.raises(ConfigError, match=r'code "aaaa" there, "bbbb" now.*--continue-under'):
        open_store(run, SETTINGS | {"code": "bbbb"}, kind=kind)


def test_a_run_continued_under_other_code_says_so_ever_after(opened, run, kind):
    with opened() as store:
        store.write("old", row_of("old"))
    mended = SETTINGS | {"code": "bbbb"}
    with open_store(run, mended, kind=kind, continue_under=True) as store:
        assert store.read("old") == row_of("old")
        store.write("new", row_of("new") | {"fingerprint": store.fingerprint})
    with open_store(run, mended, kind=kind) as store:
        assert store.phases() == {"old": "called", "new": "called"}
        (step,) = store.continued_under
        assert (step["from"], step["to"]) == (fingerprint(SETTINGS), store.fingerprint)


def test_a_run_can_be_continued_again_and_again(opened, run, kind):
    opened().close()
    for code in ("bbbb", "aaaa", "cccc"):
        with open_store(run, SETTINGS | {"code": code}, kind=kind, continue_under=True) as store:
            last = store
    assert len(last.continued_under) == 3


def test_continuing_under_the_same_code_is_nothing_to_record(opened):
    opened().close()
    assert not opened(continue_under=True).continued_under


def test_the_other_kind_of_store_is_refused(opened, run, kind):
    opened().close()
    (other,) = set(KINDS) - {kind}
    with pytest.raises(ConfigError, match="veriward state export"):
        open_store(run, SETTINGS, kind=other)


# ----------------------------------------------------------------------------------------------------- the folder


def test_a_folder_with_something_else_is_refused_and_left_alone(opened, run):
    run.mkdir()
    (run / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds 'notes\.txt'"):
        opened()
    assert [path.name for path in run.iterdir()] == ["notes.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused(opened, run):
    run.write_text("mine")
    with pytest.raises(ConfigError, match="is a file"):
        opened()


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "file/below"])
def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, kind, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="no folder to write in") as error:
        open_store(tmp_path / name, SETTINGS, kind=kind)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{torn", "damaged"),
        ('{"settings": {}}', "is not of a run"),
        ("[]", "is not of a run"),
        (json.dumps({"schema": 99, "kind": "files", "fingerprint": "", "settings": {}}), "schema 99"),
        (json.dumps({"schema": 1, "kind": "files", "fingerprint": "0" * 16, "settings": {}}), "do not fit"),
        (header_of(kind=[1]), "kind is list; wanted text"),
        (header_of(settings=[]), "settings is list; wanted an object"),
        (header_of(fingerprint=[]), "do not fit"),
        (header_of(continued_under=5), "continued_under is no list of steps"),
        (header_of(continued_under=[{}]), "continued_under is no list of steps"),
        (header_of(continued_under=[{"from": "a", "to": "b"}]), "continued_under is no list of steps"),
        (header_of(continued_under=[{"from": "a", "to": [], "time": "c"}]), "continued_under is no list of steps"),
    ],
)
def test_a_run_json_that_is_not_ours_is_refused(opened, run, content, said):
    run.mkdir()
    (run / "run.json").write_text(content)
    with pytest.raises(ConfigError, match=said):
        opened()
    assert (run / "run.json").read_text() == content


@pytest.mark.skipif(ROOT, reason="root may write anywhere")
def test_a_read_only_folder_is_one_line(opened, run):
    opened().close()
    run.chmod(0o555)
    with pytest.raises(ConfigError, match="cannot be written: Permission denied"):
        opened()
    run.chmod(0o755)


FAULT_POINTS = {
    "files": ["store.temp", "store.write", "store.fsync", "store.rename"],
    "sqlite": ["store.begin", "store.commit"],
}


@pytest.mark.parametrize(
    ("action", "said"), [(Action.DISK_FULL, "the disk is full"), (Action.READ_ONLY, "Read-only file system")]
)
@pytest.mark.parametrize(
    ("kind", "point"), [(kind, point) for kind, points in FAULT_POINTS.items() for point in points]
)
def test_a_write_that_the_disk_refuses_loses_nothing(run, kind, point, action, said):
    faults = FaultPlan([Fault(point=point, action=action, skip=1)])
    with open_store(run, SETTINGS, kind=kind, faults=faults) as store:
        store.write("a", row_of("a"))
        with pytest.raises(ConfigError, match=said) as error:
            store.write("a", row_of("a", "executed"))
        assert "\n" not in str(error.value)
        assert store.read("a") == row_of("a")
        store.write("a", row_of("a", "complete"))
    with open_store(run, SETTINGS, kind=kind) as store:
        assert store.phases() == {"a": "complete"}
        assert not store.set_aside
    assert not [*run.rglob(".tmp-*")]


LIMITED = """
import resource, sys
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.store import open_store
settings, row = {"code": "a"}, {"problem": {"id": "a"}, "phase": "called"}
with open_store(sys.argv[1], settings, kind=sys.argv[2]) as store:
    row["fingerprint"] = store.fingerprint
    store.write("a", row)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    try:
        for number in range(100):
            store.write("a", {**row, "text": "x" * 10_000 * number})
    except ConfigError as error:
        print(error)
    size = len(store.read("a").get("text", ""))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    print(size >= 10_000, len(store.set_aside))
"""


def test_a_file_that_may_not_grow_stops_in_one_line_and_keeps_the_old_row(run, kind):
    """The system writes less than it was given before it says so: what a disk that fills up does."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, run, kind], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    line, found = done.stdout.splitlines()
    assert "what was stored before is still there" in line
    assert found == "True 0"
    assert not [*run.rglob(".tmp-*")]


# --------------------------------------------------------------------------------------------------------- readers


def test_a_reader_sees_a_run_that_is_being_written(opened, run):
    opened().write("a", row_of("a"))
    with read_store(run) as reader:
        assert (reader.read("a"), reader.phases()) == (row_of("a"), {"a": "called"})


def test_a_reader_changes_nothing(opened, run, kind):
    with opened() as store:
        store.write("a", row_of("a"))
        store.write("bad", row_of("bad"))
    damage(run, kind, "bad", torn)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with read_store(run) as reader:
        assert reader.phases() == {"a": "called"}
        assert len(reader.set_aside) == 1
        with pytest.raises(ValueError, match="opened to read"):
            reader.write("a", row_of("a"))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_run_that_was_only_begun_has_no_rows(opened, run):
    opened().close()
    for path in run.glob("problems*"):
        path.unlink() if path.is_file() else path.rmdir()
    with read_store(run) as reader:
        assert reader.phases() == {}


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, Path.touch])
def test_what_is_no_run_cannot_be_read(run, make):
    make(run)
    with pytest.raises(ConfigError, match=r"no such folder|holds no run\.json"):
        read_store(run)


# ---------------------------------------------------------------------------------------------------------- export


@pytest.mark.parametrize("out", ["out.jsonl", "out.sqlite", "out"])
def test_an_export_holds_the_same_rows_and_settings(opened, run, tmp_path, out):
    rows = {identity: row_of(identity, text="×\u2028\x9b", value=[1.5, None]) for identity in HOSTILE_IDS}
    with opened() as store:
        for identity, row in rows.items():
            store.write(identity, row)
    with read_store(run) as source:
        assert export(source, tmp_path / out) == len(rows)
        with read_store(tmp_path / out) as copy:
            assert {row["problem"]["id"]: row for row in copy.rows()} == rows
            assert (copy.settings, copy.fingerprint) == (source.settings, source.fingerprint)


def test_an_export_goes_round_and_can_be_gone_on_with(opened, run, kind, tmp_path):
    with opened() as store:
        store.write("a", row_of("a"))
    places = [run, tmp_path / "1.jsonl", tmp_path / "2.sqlite", tmp_path / "3.jsonl", tmp_path / "4"]
    for source, out in itertools.pairwise(places):
        with read_store(source) as reader:
            export(reader, out)
    with open_store(tmp_path / "4", SETTINGS) as store:
        assert store.read("a") == row_of("a")


def test_an_export_keeps_what_it_was_continued_under(opened, run, kind, tmp_path):
    with opened() as store:
        store.write("a", row_of("a"))
    open_store(run, SETTINGS | {"code": "bbbb"}, kind=kind, continue_under=True).close()
    with read_store(run) as reader:
        export(reader, tmp_path / "out.jsonl")
    with read_store(tmp_path / "out.jsonl") as copy:
        assert copy.phases() == {"a": "called"}


def test_an_export_overwrites_nothing(opened, run, tmp_path):
    opened().close()
    (tmp_path / "out").write_text("mine")
    with read_store(run) as reader, pytest.raises(ConfigError, match="is there already"):
        export(reader, tmp_path / "out")


def test_an_export_that_is_not_whole_has_a_hidden_name(opened, run, tmp_path, monkeypatch):
    opened().close()
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "killed here")))
    with read_store(run) as reader, pytest.raises(ConfigError, match="killed here"):
        export(reader, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmp-out", "run"]


def test_a_damaged_line_of_an_export_is_named(opened, run, tmp_path):
    with opened() as store:
        for identity in "abc":
            store.write(identity, row_of(identity))
    out = tmp_path / "out.jsonl"
    with read_store(run) as reader:
        export(reader, out)
    lines = out.read_bytes().split(b"\n")
    out.write_bytes(b"\n".join([*lines[:2], lines[2].replace(b"called", b"CALLED"), *lines[3:]]))
    with read_store(out) as copy:
        assert len(copy.phases()) == 2
        assert copy.set_aside == ["line 3: the checksum does not fit"]


# ----------------------------------------------------------------------------------------------------- only files


def file_of(run, identity):
    sub_folder, name = place(identity)
    return run / "problems" / sub_folder / name


@pytest.fixture
def files(run):
    with open_store(run, SETTINGS) as store:
        store.write("a", row_of("a", turns=[{"text": "50 % × 2\nline", "token_ids": [1, 2, 3]}]))
    return run


def test_a_state_is_readable_with_cat(files):
    text = file_of(files, "a").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert ' "phase": "called",' in lines
    assert '  {"text": "50 % × 2\\nline",' in lines
    assert '   "token_ids": [1, 2, 3]}' in lines
    assert lines[-1].startswith(' "checksum": "')


def test_a_state_is_plain_json(files):
    stored = json.loads(file_of(files, "a").read_bytes())
    del stored["checksum"]
    assert stored["problem"] == {"id": "a"}


def test_signs_that_steer_a_terminal_are_written_as_escapes(files):
    row = row_of("a", text="\x1b[31m\x9b31m\u202e")
    with open_store(files, SETTINGS) as store:
        store.write("a", row)
        assert store.read("a") == row
    text = file_of(files, "a").read_text(encoding="utf-8")
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_the_name_of_a_file_begins_with_the_id(files):
    assert file_of(files, "python/03").name.startswith("python-03-")


def test_a_state_in_another_problems_place_is_set_aside(files):
    file_of(files, "b").parent.mkdir(exist_ok=True)
    file_of(files, "b").write_bytes(file_of(files, "a").read_bytes())
    with open_store(files, SETTINGS) as store:
        assert store.read("b") is None
        assert store.phases() == {"a": "called"}
        assert "belongs elsewhere" in store.set_aside[0]


def test_a_state_of_another_run_is_set_aside(files, tmp_path):
    other = tmp_path / "other"
    with open_store(other, SETTINGS | {"seed": 7}) as store:
        store.write("a", row_of("a") | {"fingerprint": store.fingerprint})
    file_of(files, "a").write_bytes(file_of(other, "a").read_bytes())
    with open_store(files, SETTINGS) as store:
        assert store.read("a") is None
        assert "of another run" in store.set_aside[0]


@pytest.mark.parametrize("look", [lambda store: store.read("b"), lambda store: store.phases().get("b")])
def test_a_folder_in_the_place_of_a_state_is_set_aside(files, look):
    (file_of(files, "b") / "inside").mkdir(parents=True)
    with open_store(files, SETTINGS) as store:
        assert look(store) is None
        assert len(store.set_aside) == 1
    assert [*(files / "set_aside").glob("b-*/inside")]


def test_a_folder_in_the_place_of_a_state_gives_way_to_a_write(files):
    file_of(files, "b").mkdir(parents=True)
    with open_store(files, SETTINGS) as store:
        store.write("b", row_of("b"))
        assert store.read("b") == row_of("b")
        assert len(store.set_aside) == 1


def test_a_file_in_the_place_of_a_sub_folder_is_set_aside(files):
    file_of(files, "b").parent.write_text("mine")
    with open_store(files, SETTINGS) as store:
        store.write("b", row_of("b"))
        assert store.phases() == {"a": "called", "b": "called"}
    assert [path.read_text() for path in (files / "set_aside").iterdir()] == ["mine"]


def test_hidden_files_of_other_programs_are_left_alone(files):
    hidden = file_of(files, "a").with_name(".DS_Store")
    hidden.touch()
    with open_store(files, SETTINGS) as store:
        assert store.phases() == {"a": "called"}
        assert not store.set_aside
    assert hidden.exists()


def test_what_dead_writers_left_half_written_is_removed(files):
    left = [files / ".tmp-9-run.json", file_of(files, "a").with_name(".tmp-9-1")]
    for path in left:
        path.write_text("half")
    open_store(files, SETTINGS).close()
    assert not any(path.exists() for path in left)


def test_a_system_that_writes_less_than_it_was_given_is_asked_again(files, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:7]))
    with open_store(files, SETTINGS) as store:
        store.write("a", row_of("a", text="x" * 1000))
        assert store.read("a") == row_of("a", text="x" * 1000)


def test_a_disk_quota_is_named(files, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with open_store(files, SETTINGS) as store:
        monkeypatch.setattr(os, "replace", refuse)
        with pytest.raises(ConfigError, match="the disk quota is used up"):
            store.write("a", row_of("a", "complete"))
        assert store.read("a")["phase"] == "called"


@pytest.mark.parametrize("durability", ["power", "process"])
def test_only_the_durability_power_flushes(run, monkeypatch, durability):
    with open_store(run, SETTINGS, durability=durability) as store:
        flushed = []
        monkeypatch.setattr(os, "fsync", flushed.append)
        store.write("a", row_of("a"))
        first = len(flushed)
        store.write("a", row_of("a", "complete"))
    assert [first, len(flushed) - first] == ([3, 2] if durability == "power" else [0, 0])


# ---------------------------------------------------------------------------------------------------- only sqlite


@pytest.fixture
def database(run):
    with open_store(run, SETTINGS, kind="sqlite") as store:
        for number in range(200):
            store.write(f"p{number}", row_of(f"p{number}", text="x" * 500))
    return run / "problems.sqlite"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda content: b"no database at all" * 300, id="something else"),
        pytest.param(lambda content: content[:100] + b"\xff" * 4000 + content[4100:], id="the first page"),
        pytest.param(lambda content: content[: len(content) // 2], id="half of it is gone"),
    ],
)
def test_a_database_damaged_as_a_whole_is_refused_and_left_as_it_is(run, database, change):
    database.write_bytes(change(database.read_bytes()))
    before = database.read_bytes()
    for look in (lambda: open_store(run, SETTINGS, kind="sqlite"), lambda: read_store(run)):
        with pytest.raises(ConfigError, match="damaged") as error:
            look()
        assert "\n" not in str(error.value)
    assert database.read_bytes() == before


def test_a_database_of_something_else_is_refused(run, database):
    with contextlib.closing(sqlite3.connect(database)) as other, other:
        other.execute("ALTER TABLE problems RENAME TO recipes")
    with pytest.raises(ConfigError, match="no database of states"):
        open_store(run, SETTINGS, kind="sqlite")


def test_a_run_killed_before_its_first_table_begins_anew(run, database):
    database.unlink()
    with contextlib.closing(sqlite3.connect(database)) as begun:
        begun.execute("PRAGMA journal_mode=WAL")
    with open_store(run, SETTINGS, kind="sqlite") as store:
        assert store.phases() == {}


def test_a_phase_that_does_not_fit_its_row_sets_it_aside(run, database):
    with contextlib.closing(sqlite3.connect(database)) as other, other:
        other.execute("UPDATE problems SET phase = 'complete' WHERE id = 'p7'")
    with open_store(run, SETTINGS, kind="sqlite") as store:
        assert "p7" not in store.phases()
        assert "has the phase 'called'" in store.set_aside[0]


def test_a_database_that_another_program_locks_is_one_line(run, database, monkeypatch):
    with open_store(run, SETTINGS, kind="sqlite") as store:
        store._database.execute("PRAGMA busy_timeout=1")
        with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ConfigError, match="another program has it open"):
                store.write("a", row_of("a"))
            other.execute("ROLLBACK")
        store.write("a", row_of("a"))


@pytest.mark.parametrize(("durability", "level"), [("power", 2), ("process", 1)])
def test_each_durability_has_its_level(run, durability, level):
    with open_store(run, SETTINGS, kind="sqlite", durability=durability) as store:
        assert store._database.execute("PRAGMA synchronous").fetchone() == (level,)
        assert store._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_more_rows_than_are_fetched_at_a_time_are_all_there(run):
    with open_store(run, SETTINGS, kind="sqlite", durability="process") as store:
        for number in range(1203):
            store.write(f"p{number}", row_of(f"p{number}"))
        assert len([*store.rows()]) == len(store.phases()) == 1203


def test_importing_the_store_loads_nothing_heavy():
    code = "import sys, veriward.tool_agent.store; sys.exit(bool({'torch', 'numpy', 'transformers'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
