"""Verdicts from worker processes: those of this process, whatever else is in the batch."""

import asyncio
import gc
import os
import pickle
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from veriward.rewards import (
    Outcome,
    Reason,
    VerdictPool,
    WorkerError,
    accuracy_reward,
    get_contract,
    make_components,
    pool,
    shared_pool,
    verify,
    verify_answer,
    verify_batch,
    verify_many,
)
from veriward.rewards.chain import fields_for
from veriward.rewards.worker_pool import WorkerPool

CASES = [
    {
        name: case[name]
        for name in ("response", "prediction", "reference", "truncated", "answer_type", "options")
        if name in case
    }
    for case in get_contract("v3").read_cases()
]
BOMBS = ["9^9^9^9^9", "10000000!", r"\frac{1}{" * 40 + "2" + "}" * 40, "(1+x)^999999", "2^(2^(2^100))", "1e999999999"]


def rows_of(pairs):
    return [{"prediction": candidate, "reference": reference} for candidate, reference in pairs]


@pytest.mark.parametrize("contract", ["v1", "v2", "v3"])
def test_a_pool_decides_as_this_process_does(contract):
    rows = [
        {key: value for key, value in row.items() if key in ("response", "prediction", "reference")} for row in CASES
    ]
    with VerdictPool(workers=2) as here, VerdictPool(workers=0) as there:
        assert here.verify_many(rows, contract=contract) == there.verify_many(rows, contract=contract)


def test_types_and_options_cross_the_pipe():
    rows = [{**row, **fields_for("v3", row)} for row in CASES]
    one_by_one = [
        verify(
            row["response"],
            row["reference"],
            truncated=row.get("truncated", False),
            answer_type=row.get("answer_type"),
            options=row.get("options"),
        )
        if "response" in row
        else verify_answer(
            row["prediction"], row["reference"], answer_type=row.get("answer_type"), options=row.get("options")
        )
        for row in rows
    ]
    assert verify_many(rows) == one_by_one


@pytest.mark.parametrize("workers", [0, 1])
def test_a_verdict_is_the_same_record_with_and_without_workers(workers):
    with VerdictPool(workers=workers) as made:
        (row,) = [verdict.to_row() for verdict in made.verify_many([{"response": r"\boxed{2/4}", "reference": "1/2"}])]
    assert {**row, "microseconds": 0} == {**verify(r"\boxed{2/4}", "1/2").to_row(), "microseconds": 0}


def test_bombs_and_murderers_cost_themselves_alone(verdicts):
    draw = random.Random(5)
    pairs = [(f"{draw.randint(1, 99)}/{draw.randint(1, 9)}", str(draw.randint(1, 50))) for _ in range(1_009)]
    clean = VerdictPool(workers=0).verify_many(rows_of(pairs))
    bad = ["loop", "sleep", "die 11", "leave 1", "take_memory 4096"]
    places = sorted(draw.sample(range(1_024), 15))
    batch, taken = list(pairs), [*bad, *(BOMBS + BOMBS)[:10]]
    draw.shuffle(taken)
    for place, text in zip(places, taken, strict=True):
        batch.insert(place, (text, "7"))
    found = verdicts(workers=2).verify_many(rows_of(batch))
    assert [verdict for place, verdict in enumerate(found) if place not in places] == clean
    at = dict(zip(taken, (found[place] for place in places), strict=True))
    assert {text: at[text].outcome for text in bad} == {
        "loop": Outcome.TIMEOUT,
        "sleep": Outcome.TIMEOUT,
        "die 11": Outcome.CRASHED,
        "leave 1": Outcome.CRASHED,
        "take_memory 4096": Outcome.CRASHED,
    }
    assert not any(at[text].correct for text in BOMBS)


@pytest.mark.parametrize(
    ("candidate", "outcome", "reason"),
    [("loop", Outcome.TIMEOUT, Reason.TIME_LIMIT), ("leave 1", Outcome.CRASHED, Reason.WORKER_DIED)],
)
def test_a_lost_item_has_an_outcome_and_a_reason_and_no_method(verdicts, candidate, outcome, reason):
    (verdict,) = verdicts(deadline_s=0.3).verify_many(rows_of([(candidate, "7")]))
    assert (verdict.outcome, verdict.reason, verdict.method, verdict.supported) == (outcome, reason, None, False)
    assert verdict.candidate == candidate


def test_a_lost_item_is_the_same_for_every_component_and_asked_again_in_the_next_batch(verdicts, tmp_path):
    made = verdicts(deadline_s=0.3)
    rows = rows_of([("loop", "7")])
    assert made.verify_many(rows) == made.verify_many(rows)
    assert made.restarts == 1
    made.verify_many([*rows, *rows])
    assert made.restarts == 2


def test_a_bug_stops_the_run_with_the_input(verdicts):
    with pytest.raises(WorkerError, match=r"fail now[\s\S]*KeyError"):
        verdicts().verify_many(rows_of([("1", "1"), ("fail now", "7")]))


def test_equal_comparisons_of_a_batch_are_made_once(monkeypatch):
    sent = []
    original = pool.question

    def counted(*asked):
        sent.append(asked[0])
        return original(*asked)

    monkeypatch.setattr(pool, "question", counted)
    group = [{"response": f"Way {way}: \\boxed{{{1 + way % 2}/3}}", "reference": "1/3"} for way in range(16)]
    with VerdictPool() as made:
        verdicts = made.verify_many(group)
        assert [verdict.correct for verdict in verdicts] == [True, False] * 8
        assert sorted(sent) == ["1/3", "2/3"]
        made.verify_many([{"response": r"Again \boxed{2/3}", "reference": "1/3"}])
    assert sorted(sent) == ["1/3", "2/3"]


@pytest.mark.parametrize(
    "other",
    [
        {"prediction": "50%", "reference": "50", "options": {"percent": "share"}},
        {"prediction": "50%", "reference": "50"},
        {"prediction": "50%", "reference": "0.5"},
        {"prediction": "50%", "reference": "50", "answer_type": "text"},
    ],
)
def test_what_is_remembered_belongs_to_one_task(other):
    with VerdictPool(workers=0) as made:
        made.verify_many([{"prediction": "50%", "reference": "50", "options": {"percent": "number"}}])
        assert made.verify_many([other]) == VerdictPool(workers=0).verify_many([other])


def test_what_is_remembered_is_bounded(monkeypatch):
    memory = pool._Memory(3)
    for number in range(5):
        memory.put(number, number)
        memory.get(2)
    assert [memory.get(number) for number in range(5)] == [None, None, 2, 3, 4]


@pytest.mark.parametrize(
    ("ranks", "asked", "given"), [("1", 99, 2), ("2", 99, 1), ("8", 4, 1), ("8", 0, 0), ("1", 1, 1), ("x", 2, 2)]
)
def test_workers_are_no_more_than_the_cores_of_each_rank(monkeypatch, ranks, asked, given):
    monkeypatch.setattr(pool, "cores", lambda: 2)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    assert VerdictPool(workers=asked).workers == given


@pytest.mark.parametrize(("text", "workers"), [("0", 0), ("1", 1), (None, 1)])
def test_the_environment_says_how_many_workers_there_are(monkeypatch, text, workers):
    monkeypatch.delenv(pool.WORKERS_VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(pool.WORKERS_VARIABLE, text)
    assert VerdictPool().workers == workers


def test_an_environment_that_says_no_number_is_refused(monkeypatch):
    monkeypatch.setenv(pool.WORKERS_VARIABLE, "many")
    with pytest.raises(ValueError, match="VERIWARD_WORKERS is a number of processes"):
        VerdictPool()


@pytest.mark.parametrize(
    ("setting", "value"), [("workers", -1), ("deadline_s", 0), ("memory_mb", 1), ("warn_not_decided", -1.0)]
)
def test_components_refuse_impossible_numbers(setting, value):
    with pytest.raises(ValueError, match=setting):
        make_components(**{setting: value})


def test_components_with_the_same_settings_share_one_pool():
    one, two = make_components(workers=1), make_components(workers=1, contract="v2")
    assert one[0].settings.pool is two[0].settings.pool is one[1].settings.pool
    assert accuracy_reward.settings.pool is shared_pool()


def test_a_component_travels_without_its_pool():
    accuracy_reward(completions=["4"], reference=["4"])
    assert pickle.loads(pickle.dumps(accuracy_reward))(completions=["4"], reference=["4"]) == [1.0]  # noqa: S301


def test_wiring_mistakes_are_told_by_row():
    with VerdictPool() as made, pytest.raises(ValueError, match="row 1: a row has either a 'response'"):
        made.verify_many([{"response": "4", "reference": "4"}, {"reference": "4"}])


def test_a_batch_with_unequal_lengths_is_refused():
    with pytest.raises(ValueError, match="got 1 completions, 2 references"):
        verify_batch(["4"], ["4", "5"])


def run_script(tmp_path, text, **environment):
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, **environment},
    )


ONE = (
    "from veriward.rewards import accuracy_reward\n"
    "for _ in range(2): print(accuracy_reward(completions=['4'], reference=['4']))\n"
)


def test_processes_and_megabytes_are_said_once_at_the_start(tmp_path):
    done = run_script(tmp_path, ONE)
    assert done.stdout == "[1.0]\n[1.0]\n"
    assert done.stderr == "veriward: verdicts run in 1 worker process, limited to 1024 MiB\n"


def test_with_several_ranks_one_speaks_for_all(tmp_path):
    done = run_script(tmp_path, ONE, LOCAL_RANK="0", LOCAL_WORLD_SIZE="4")
    assert "1 worker process for each of the 4 processes on this machine" in done.stderr
    assert run_script(tmp_path, ONE, LOCAL_RANK="1", LOCAL_WORLD_SIZE="4").stderr == ""


def test_without_workers_nothing_is_started_or_said(tmp_path):
    assert run_script(tmp_path, ONE, VERIWARD_WORKERS="0").stderr == ""


def test_a_limit_that_a_system_does_not_have_is_said_once(capsys, monkeypatch):
    monkeypatch.setattr(WorkerPool, "unlimited", ("memory", "CPU time"))
    with VerdictPool() as made:
        for answer in ("1/7", "2/7"):
            made.verify_many(rows_of([(answer, "7")]))
    assert capsys.readouterr().err.splitlines()[1:] == [
        "veriward: this system cannot limit the memory and CPU time of a process; the deadline holds all the same"
    ]


def test_metrics_count_every_verdict_under_constant_keys():
    with VerdictPool(workers=0) as made:
        before = made.to_dict()
        made.verify_many(rows_of([("1/2", "0.5"), ("1/3", "0.5"), (r"\log 100", "2"), ("1 2", "2")]))
        after = made.to_dict()
    assert list(before) == list(after)
    assert (after["verdicts"], after["outcome/correct"], after["outcome/wrong"]) == (4, 1, 1)
    assert (after["method/spelling"], after["method/rational"], after["certainty/proved"]) == (1, 1, 2)
    assert (after["share/undecided"], after["share/unsupported"], after["share/not_decided"]) == (0.25, 0.25, 0.5)
    assert 0 < after["microseconds/p50"] <= after["microseconds/p99"]
    assert after["restarts"] == 0


def test_metrics_count_what_was_lost(verdicts):
    made = verdicts(deadline_s=0.3)
    made.verify_many(rows_of([("loop", "7"), ("leave 1", "7"), ("7", "7"), ("8", "7")]))
    found = made.to_dict()
    assert (found["share/timeout"], found["share/crashed"], found["share/not_decided"]) == (0.25, 0.25, 0.5)
    assert found["restarts"] == 3
    assert "4 verdicts: " in made.line()
    assert made.line().endswith("3 worker restarts")


def test_a_large_share_without_a_verdict_is_said_loudly_and_not_every_time(capsys):
    with VerdictPool(workers=0) as made:
        for start in range(0, 1_000, 50):
            made.verify_many([{"prediction": f"{number} 2", "reference": "7"} for number in range(start, start + 50)])
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" say")[0] for line in said] == [
        "veriward: WARNING: 100.0% of 300 verdicts",
        "veriward: WARNING: 100.0% of 600 verdicts",
    ]


def test_a_small_share_without_a_verdict_is_no_news(capsys):
    with VerdictPool(workers=0) as made:
        made.verify_many([{"prediction": str(number), "reference": "7"} for number in range(1_000)])
    assert capsys.readouterr().err == ""


def test_threads_and_an_event_loop_get_the_verdicts_of_this_process():
    rows = rows_of([(f"{number}/{1 + number % 7}", str(number % 5)) for number in range(400)])
    expected = VerdictPool(workers=0).verify_many(rows)
    with VerdictPool(workers=2) as made:

        def ask(start):
            return [made.verify_many(rows[place : place + 25]) for place in range(start, 400, 25)]

        async def on_loop():
            return [await asyncio.to_thread(made.verify_many, rows[place : place + 25]) for place in range(0, 400, 25)]

        with ThreadPoolExecutor(8) as threads:
            found = [threads.submit(ask, 0) for _ in range(8)]
            by_loop = asyncio.run(on_loop())
        for batches in [*(each.result() for each in found), by_loop]:
            assert [verdict for batch in batches for verdict in batch] == expected


def test_nothing_is_left_of_pools_that_were_closed():
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for number in range(5):
        with VerdictPool(workers=2) as made:
            made.verify_many(rows_of([(f"{number}/{place}", "7") for place in range(1, 99)]))
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("veriward"):
            thread.join(0.5)
    assert threading.active_count() <= threads + 3  # those of the shared pool
    if files:
        assert len(os.listdir("/proc/self/fd")) <= files + 4


def test_threads_that_ask_first_and_at_once_share_one_pool():
    settings = (1, 7.5, 1024, 0.5)
    with ThreadPoolExecutor(16) as threads:
        found = [threads.submit(shared_pool, *settings) for _ in range(32)]
        assert len({id(each.result()) for each in found}) == 1


def test_two_half_surrogates_are_no_character_in_a_worker_either():
    rows = rows_of([("\ud83d\ude00", "\U0001f600"), ("\ud835\udfd0", "2")])
    with VerdictPool() as made:
        assert made.verify_many(rows) == VerdictPool(workers=0).verify_many(rows)


@pytest.mark.parametrize(
    "how",
    ["sys.stderr = None", "sys.stderr.close()", "os.close(2)", "sys.stderr = open('/dev/full', 'w')"],
)
def test_a_caller_whose_errors_nobody_can_read_gets_its_verdicts(tmp_path, how):
    if "full" in how and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    done = subprocess.run(
        [sys.executable, "-c", f"import os, sys\n{how}\n{ONE}os._exit(0 if sys.stdout.flush() is None else 1)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[1.0]\n[1.0]\n"
