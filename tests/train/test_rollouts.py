"""What a run leaves on disk: whole lines, numbers as numbers, every completion with its verdict."""

from __future__ import annotations

import json

import pytest

from veriward.rewards import verify
from veriward.train.curves import completions_per_point, draw_curves, smooth
from veriward.train.rollouts import JsonLines, metrics_row, read_lines, rollout_rows


def rows_of(*texts: str, **components: list[float]) -> list[dict]:
    return rollout_rows(
        step=3,
        mode="train",
        problem_ids=["p"] * len(texts),
        texts=texts,
        token_counts=[7] * len(texts),
        verdicts=[verify(text, "4", truncated=index == 1) for index, text in enumerate(texts)],
        components=components,
    )


def test_a_row_holds_the_verdict_and_every_component():
    row = rows_of(r"\boxed{5}", accuracy_reward=[0.0], format_reward=[1.0])[0]
    assert row == {
        "step": 3,
        "mode": "train",
        "problem_id": "p",
        "text": r"\boxed{5}",
        "completion_tokens": 7,
        "truncated": False,
        "candidate": "5",
        "reference": "4",
        "outcome": "wrong",
        "reason": "not_equal",
        "method": row["method"],
        "format_valid": True,
        "supported": True,
        "flags": [],
        "accuracy_reward": 0.0,
        "format_reward": 1.0,
        "contract": "v3",
    }


def test_truncation_is_that_of_the_verdict():
    assert [row["truncated"] for row in rows_of("4", "4", "4")] == [False, True, False]


def test_a_component_that_was_not_paid_is_null():
    assert rows_of("4", accuracy_reward=[float("nan")])[0]["accuracy_reward"] is None


def test_a_metrics_row_has_numbers_and_no_nan():
    row = metrics_row(5, 0.5, {"loss": -0.25, "entropy": float("nan"), "epoch": 9, "count": 3})
    assert row == {"step": 5, "epoch": 0.5, "loss": -0.25, "entropy": None, "count": 3}


def test_lines_are_on_disk_when_write_returns(tmp_path):
    file = JsonLines(tmp_path / "rows.jsonl")
    file.write([{"text": "答案是四"}])
    assert json.loads((tmp_path / "rows.jsonl").read_text(encoding="utf-8")) == {"text": "答案是四"}
    file.close()


@pytest.mark.parametrize("text", ["a\nb", "\u2028", "\x00", "\ud800", '"'], ids=repr)
def test_whatever_a_model_writes_is_one_line_that_reads_back(tmp_path, text):
    file = JsonLines(tmp_path / "rows.jsonl")
    file.write([{"text": text}, {"text": "next"}])
    file.close()
    assert [row["text"] for row in read_lines(tmp_path / "rows.jsonl")] == [text, "next"]


def test_a_last_line_cut_off_in_writing_is_left_out(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"step": 1}\n{"st', encoding="utf-8")
    assert list(read_lines(path)) == [{"step": 1}]


# Curves -------------------------------------------------------------------------------------------


def test_a_point_that_averages_ten_steps_stands_for_ten_times_the_completions():
    assert completions_per_point([10, 20, 30], 128) == 1280
    assert completions_per_point([1, 2, 3], 128) == 128


def test_the_line_begins_at_the_first_value_and_ends_on_a_mean():
    line = smooth([0.0] * 10 + [1.0] * 10)
    assert (line[0], line[-1]) == (0.0, 1.0)
    assert smooth([0.0] * 9 + [1.0])[-1] == pytest.approx(1 / 6)


@pytest.mark.parametrize("steps", [1, 2, 40])
def test_a_run_of_any_length_is_drawn(tmp_path, steps):
    pytest.importorskip("matplotlib")
    metrics = JsonLines(tmp_path / "metrics.jsonl")
    logs = {"reward": 1.0, "outcome/correct": 0.5, "format_valid": 1.0, "completions/mean_length": 20.0}
    metrics.write([metrics_row(step, None, logs) for step in range(1, steps + 1)])
    metrics.close()
    record = {
        "batch": {"completions_per_step": 128},
        "contract": {"name": "v3"},
        "data": {"name": "p.jsonl"},
        "settings": {"model": {"model_name_or_path": "m"}},
    }
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    picture = draw_curves(tmp_path)
    assert picture is not None
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_run_without_a_step_has_no_picture(tmp_path):
    (tmp_path / "metrics.jsonl").touch()
    assert draw_curves(tmp_path) is None
