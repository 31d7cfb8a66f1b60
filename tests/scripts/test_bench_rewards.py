"""The benchmark of rewards: its batches are what it says, and a small run gives every figure."""

import json
import multiprocessing
import random
import subprocess
import sys
from collections import Counter

import pytest

from veriward.rewards import verify_many
from veriward.scripts.grpo_batch import BOMBS, LONGEST, draw_batch, packaged_problems, slip
from veriward.scripts.raters import child, run_rater, serve


@pytest.fixture(scope="module")
def batch():
    return draw_batch(packaged_problems(), BOMBS, prompts=40, samples=16, bomb_count=6, draw=random.Random(3))


def run_bench(*arguments):
    command = [sys.executable, "-m", "veriward.scripts.bench_rewards", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_a_batch_is_the_same_for_the_same_seed(batch):
    again = draw_batch(packaged_problems(), BOMBS, prompts=40, samples=16, bomb_count=6, draw=random.Random(3))
    assert again == batch


def test_a_group_shares_one_to_six_answers(batch):
    honest = [None if place in batch.bombs else answer for place, answer in enumerate(batch.answers)]
    groups = [set(honest[start : start + 16]) - {None} for start in range(0, len(honest), 16)]
    sizes = {len(group) for group in groups}
    assert {1, 2, 3, 4} <= sizes <= {1, 2, 3, 4, 5, 6}


def test_no_two_completions_are_alike(batch):
    assert len({completion[0]["content"] for completion in batch.completions}) == len(batch.completions)


def test_lengths_are_those_of_the_tokens(batch):
    for completion, ids in zip(batch.completions, batch.completion_ids, strict=True):
        assert len(completion[0]["content"]) / 3.5 == pytest.approx(len(ids), abs=1)


def test_only_what_was_cut_off_or_ends_in_a_sentence_has_no_box_at_its_end(batch):
    ends = Counter()
    for completion, ids in zip(batch.completions, batch.completion_ids, strict=True):
        last = completion[0]["content"].rstrip().rpartition("\n")[2]
        kind = "box" if "\\boxed{" in last else "sentence" if last.startswith("So the answer is") else "cut"
        assert kind != "cut" or len(ids) == LONGEST
        ends[kind] += 1
    assert set(ends) == {"box", "sentence", "cut"}
    assert ends["box"] > 0.85 * sum(ends.values())


def test_half_the_completions_think_first(batch):
    thinking = sum(completion[0]["content"].startswith("<think>") for completion in batch.completions)
    assert 0.4 < thinking / len(batch.completions) < 0.6


def test_every_verdict_but_the_bombs_is_decided_and_some_are_right(batch):
    rows = [
        {"response": completion, "reference": solution}
        for completion, solution in zip(batch.completions, batch.solutions, strict=True)
    ]
    verdicts = verify_many(rows)
    assert not any(verdicts[place].correct for place in batch.bombs)
    assert 0.2 < sum(verdict.correct for verdict in verdicts) / len(verdicts) < 0.8


@pytest.mark.parametrize("answer", ["4", "-4", r"\frac{14}{3}", "x+1", "yes"])
def test_a_slip_is_another_answer(answer):
    assert all(slip(random.Random(seed), answer) != answer for seed in range(50))


def test_a_child_is_gone_when_its_block_ends():
    with child(serve, "ours, in process") as pipe:
        pipe.recv()
    assert pipe.closed
    assert not multiprocessing.active_children()


def test_a_step_over_the_limit_ends_the_run_and_says_so():
    batch = draw_batch(packaged_problems(), (), prompts=2, samples=2, bomb_count=0, draw=random.Random(1))
    run = run_rater("ours, in process", batch, [batch], limit_s=1e-6)
    assert (run.steps, run.stopped) == ([], "> 1e-06 s")


def test_a_small_run_gives_every_figure_of_a_step(tmp_path):
    out = tmp_path / "figures.json"
    ran = run_bench(
        *("--only", "steps", "--only", "bombs", "--prompts", 3, "--samples", 4, "--steps", 2, "--json", out),
        *("--rater", "ours, 1 worker", "--rater", "ours, in process"),
    )
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(out.read_text())
    for part in ("steps", "bombs"):
        pooled, in_process = figures[part]
        assert [len(run["steps"]) for run in (pooled, in_process)] == [2, 2]
        assert [step["paid"] for step in pooled["steps"]] == [step["paid"] for step in in_process["steps"]]
        assert all(step["bombs_paid"] == 0 for step in pooled["steps"])
        assert all(step["seconds"] > 0 and step["caller_cpu_s"] > 0 for step in pooled["steps"])
    if sys.platform == "linux":
        assert figures["steps"][0]["steps"][0]["workers_mib"] > 0 == figures["steps"][1]["steps"][0]["workers_mib"]


def test_a_folder_without_the_data_is_one_line(tmp_path):
    ran = run_bench("--only", "steps", "--shared", tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: ")
    assert "no such file; --shared wants a folder" in ran.stderr
    assert ran.stderr.count("\n") == 1
