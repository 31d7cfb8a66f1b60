from __future__ import annotations

import pytest
from typer.testing import CliRunner

from veriward.scripts.cli import app

for module in ("jinja2", "matplotlib", "latex2mathml", "statsmodels"):
    pytest.importorskip(module)


@pytest.fixture
def run(run_folders, tmp_path):
    run_folders.write_run(tmp_path / "run", {f"p{n}": rf"\boxed{{{n}}}" for n in range(12)})
    return tmp_path / "run"


def report(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)], terminal_width=100)


def test_the_file_is_written_and_named_with_its_size(run, tmp_path):
    done = report(run, "--out", tmp_path / "page.html")
    assert (done.exit_code, f"{tmp_path / 'page.html'}: 0." in done.stdout) == (0, True)
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("missing", ["--training", "--out"])
def test_a_folder_that_is_not_there_is_one_line(run, tmp_path, missing):
    out = () if missing == "--out" else ("--out", tmp_path / "page.html")
    done = report(run, *out, missing, tmp_path / "nowhere" / "page.html")
    assert (done.exit_code, done.stderr.strip().count("\n")) == (2, 0)
    assert "nowhere" in done.stderr


def test_a_folder_that_holds_no_run_is_one_line(tmp_path):
    done = report(tmp_path, "--out", tmp_path / "page.html")
    assert done.exit_code == 2
    assert not (tmp_path / "page.html").exists()
