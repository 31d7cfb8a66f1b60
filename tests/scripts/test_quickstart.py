"""The main job behind `bash scripts/quickstart`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl")

from rich.console import Console

from veriward.eval.rates import Rate
from veriward.scripts.quickstart import (
    chosen_pairs,
    command_line,
    marked,
    refuse_small_disk,
    set_earlier_aside,
    with_interval,
)
from veriward.tool_agent.errors import ConfigError

MODULE = [sys.executable, "-P", "-m", "veriward.scripts.quickstart"]


def quiet() -> Console:
    return Console(quiet=True)


def test_seed_0_goes_to_the_plain_folder_and_others_to_their_own():
    assert command_line([]).out == Path("runs/quickstart")
    assert command_line(["--seed", "2"]).out == Path("runs/quickstart-seed2")


def test_a_step_count_below_1_is_refused_with_exit_code_2():
    with pytest.raises(SystemExit) as refused:
        command_line(["--max_steps", "0"])
    assert refused.value.code == 2


def test_a_share_is_shown_with_counts_and_interval():
    assert with_interval(Rate(successes=45, total=200)) == "45/200 22.5% [17.3, 28.8]"


def test_an_earlier_run_is_set_aside_and_its_base_model_stays(tmp_path):
    for name in ("tiny", "grpo", "before"):
        (tmp_path / name).mkdir()
    (tmp_path / "grpo" / "metrics.jsonl").write_text("kept", encoding="utf-8")
    set_earlier_aside(tmp_path, quiet())
    assert {path.name for path in tmp_path.iterdir()} == {"tiny", "earlier-1"}
    assert (tmp_path / "earlier-1" / "grpo" / "metrics.jsonl").read_text() == "kept"


def test_nothing_is_moved_where_only_the_base_model_is(tmp_path):
    (tmp_path / "tiny").mkdir()
    set_earlier_aside(tmp_path, quiet())
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


class Rows:
    """An evaluation's rows."""

    def __init__(self, text: str) -> None:
        self.rows = [{"id": str(n), "text": text, "outcome": "wrong", "correct": False} for n in range(50)]


def test_the_responses_side_by_side_are_of_the_same_problems_and_follow_the_seed():
    pairs = chosen_pairs(Rows("a"), Rows("b"), seed=3)
    assert all(before["id"] == after["id"] for before, after in pairs)
    assert pairs == chosen_pairs(Rows("a"), Rows("b"), seed=3)
    assert pairs != chosen_pairs(Rows("a"), Rows("b"), seed=4)


def test_a_response_is_shown_as_it_is_written():
    assert marked({"text": "[bold]\\boxed{3}", "outcome": "wrong", "correct": False}).plain == "[bold]\\boxed{3}\nwrong"


@pytest.mark.slow
def test_the_whole_job_runs_and_a_second_start_keeps_the_first(tmp_path):
    words = [*MODULE, "--max_steps", "3", "--out", str(tmp_path / "job")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    for attempt in (1, 2):
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        assert "200 held-out problems, contract v3, seed 0" in done.stdout
        interval = r"\d+/200 [\d.]+% \[[\d.]+, [\d.]+\]"
        for name in ("correct, greedy", "boxed, greedy", "pass@4"):
            assert re.search(rf"{name} +{interval} +{interval}", done.stdout)
        assert ("used again" in done.stdout) is (attempt == 2)
    for name in ("curves.png", "report.md", "grpo/final/model.safetensors", "grpo/rollouts-0.jsonl"):
        assert (tmp_path / "job" / name).is_file()
        assert (tmp_path / "job" / "earlier-1" / name).is_file()


def test_a_seed_that_numpy_would_refuse_is_refused_with_exit_code_2():
    with pytest.raises(SystemExit) as ended:
        command_line(["--seed", "-1"])
    assert ended.value.code == 2


@pytest.mark.parametrize("inner", ["", "x"])
def test_a_file_in_the_way_is_noticed_before_anything_is_made(tmp_path, inner):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file; wanted a folder"):
        refuse_small_disk(tmp_path / "file" / inner)
