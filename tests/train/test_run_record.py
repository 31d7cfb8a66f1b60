"""The run folder: an earlier run is never mixed with a new one, and what is no run is left alone."""

import pytest

from veriward.tool_agent.errors import ConfigError
from veriward.train.run_record import RECORD, is_free, make_way, refuse_occupied


@pytest.fixture
def run(tmp_path):
    """A folder with a run in it."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / RECORD).write_text("{}")
    (folder / "metrics.jsonl").write_text('{"step": 1}\n')
    return folder


def test_an_earlier_run_is_refused_with_what_to_do(run):
    with pytest.raises(ConfigError, match="holds an earlier run; choose another with --output_dir"):
        make_way(run, "refuse", print)


def test_earlier_runs_are_set_aside_whole(run):
    said = []
    for text in ("second", "third"):
        with make_way(run, "set_aside", said.append):
            (run / RECORD).write_text("{}")
            (run / "metrics.jsonl").write_text(text)
    make_way(run, "set_aside", said.append).close()
    aside = [(run.with_name(f"run.old-{n}") / "metrics.jsonl").read_text() for n in (1, 2, 3)]
    assert aside == ['{"step": 1}\n', "second", "third"]
    assert len(said) == 3


def test_a_folder_of_something_else_is_never_moved(tmp_path):
    (tmp_path / "thesis.txt").write_text("chapter one")
    for existing in ("refuse", "set_aside"):
        with pytest.raises(ConfigError, match="holds files that are no run of ours"):
            refuse_occupied(tmp_path, existing)


@pytest.mark.parametrize("folder", ["", ".", "/"])
def test_a_run_needs_a_folder_of_its_own(folder, tmp_path, monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="is no folder of its own"):
        refuse_occupied(Path(folder), "set_aside")


def test_two_runs_cannot_share_a_folder(run):
    said = []
    with make_way(run, "set_aside", said.append):
        (run / RECORD).write_text("{}")
        (run / "metrics.jsonl").write_text('{"step": 1}\n')
        with pytest.raises(ConfigError, match="another process is writing into it"):
            make_way(run, "set_aside", said.append)
    make_way(run, "set_aside", said.append).close()
    assert (run.with_name("run.old-1") / "metrics.jsonl").read_text() == '{"step": 1}\n'
    assert run.with_name("run.old-2").is_dir()


def test_a_start_that_was_refused_before_its_first_step_is_no_run(tmp_path):
    with make_way(tmp_path / "run", "refuse", print):
        for name in (RECORD, "settings.yaml", "warnings.log"):
            (tmp_path / "run" / name).write_text("{}")
        for name in ("metrics.jsonl", "rollouts-0.jsonl"):
            (tmp_path / "run" / name).touch()
    assert is_free(tmp_path / "run")
    make_way(tmp_path / "run", "refuse", print).close()
    assert not (tmp_path / "run" / RECORD).exists()


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_a_name_that_the_system_refuses_is_one_line(tmp_path, name):
    with pytest.raises(ConfigError, match="output_dir") as refused:
        make_way(tmp_path / name, "refuse", print)
    assert "\n" not in str(refused.value)
