"""An item that hangs or kills its process costs itself; whatever started the pool, nothing is left behind."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from veriward.rewards import Outcome, WorkerError
from veriward.rewards.worker_pool import Done, Lost, WorkerPool

HERE = Path(__file__).parent
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc, which only Linux has")


def values(results):
    return [result.value if isinstance(result, Done) else result.outcome for result in results]


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def gone_within(seconds, pids):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(map(exists, pids)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    "bad",
    ["loop", "loop_in_c", "hold_the_interpreter", "sleep"],
)
def test_an_item_without_end_is_a_timeout_and_the_others_are_answered(made, bad):
    assert values(made(deadline_s=0.5).run([1, 2, bad, 4, 5])) == [1, 2, Outcome.TIMEOUT, 4, 5]


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        ("die 9", "signal 9"),
        ("die 11", "signal 11"),
        ("die 6", "signal 6"),
        ("leave 3", "code 3"),
        ("take_memory 4096", "out of memory (512 MiB)"),
        ("fork_and_leave", "code 3"),
        ("close_everything", "closed the pipe"),
    ],
)
def test_an_item_that_ends_its_process_is_crashed_with_the_cause(made, bad, cause):
    results = made(memory_mb=512).run(["a", bad, "c"])
    assert values(results) == ["a", Outcome.CRASHED, "c"]
    assert cause in results[1].detail


def test_a_process_that_dies_once_costs_nothing(made, tmp_path):
    pool = made()
    assert values(pool.run([1, f"die_once {tmp_path / 'marker'}", 3])) == [1, "survived", 3]
    assert pool.restarts == 1


def test_many_bad_items_in_one_batch_cost_themselves(made):
    batch = [place if place % 7 else ("loop", "die 11", "leave 1")[place % 3] for place in range(1, 40)]
    results = values(made(workers=2, deadline_s=0.3).run(batch))
    expected = [item if isinstance(item, int) else None for item in batch]
    assert [value if isinstance(value, int) else None for value in results] == expected


def test_an_exception_is_raised_in_the_caller_with_its_item_and_traceback(made):
    pool = made()
    with pytest.raises(WorkerError, match=r"'fail 7'[\s\S]*KeyError: 'no such thing: 7'"):
        pool.run([1, "fail 7", 3])
    assert values(pool.run([4])) == [4]


def test_an_exit_of_the_function_is_an_exception_of_it(made):
    with pytest.raises(WorkerError, match="SystemExit"):
        made().run(["leave_politely 3"])


def test_a_value_that_is_no_json_is_an_exception_of_the_function(made):
    with pytest.raises(WorkerError, match="not JSON serializable"):
        made("no_json").run([1])


def test_an_item_that_is_no_json_is_refused(made):
    pool = made()
    with pytest.raises(TypeError, match="not JSON serializable"):
        pool.run([{1, 2}])
    assert values(pool.run([4])) == [4]


@pytest.mark.parametrize("function", ["nothing_there", "act.x"])
def test_a_function_that_is_not_there_is_said_with_its_name(made, function):
    with pytest.raises(WorkerError, match=f"misbehaving_functions:{function} cannot be loaded"):
        made(function).run([1])


def test_a_setup_makes_the_function(made):
    assert values(made("multiply", setup={"by": 3}).run([1, 2])) == [3, 6]


def test_what_a_function_prints_is_no_answer(made):
    assert values(made().run(["shout", 2])) == ["shouted", 2]


def test_a_function_cannot_read_what_its_caller_reads(made):
    assert values(made().run(["read_terminal"])) == [""]


@pytest.mark.parametrize("text", ["\ud800", "\ud83d\ude00", "\x00", "½ 北京 \U0001f600", "a" * 3_000_000, ""])
def test_every_text_arrives_as_it_was(made, text):
    assert values(made().run([text, text])) == [text, text]


def test_no_items_need_no_process(made):
    pool = made()
    assert pool.run([]) == []
    assert pool.pids() == []


def test_an_item_that_waits_for_a_processor_has_its_own_time(made):
    with ThreadPoolExecutor(4) as crowd:
        pools = [made(deadline_s=1.0) for _ in range(4)]
        results = [crowd.submit(pool.run, ["waste_time 0.7"]) for pool in pools]
        assert [values(found.result()) for found in results] == [["done"]] * 4


@linux
def test_a_worker_limits_itself(made):
    (memory, core, cpu), (_, _, later) = values(made(memory_mb=700).run(["limits", "limits"]))
    assert (memory, core) == (700 << 20, 0)
    assert 2 <= cpu <= later <= 4


@linux
def test_a_worker_sees_little_of_its_caller(made, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    ((found),) = values(made().run(["inside"]))
    assert "AWS_SECRET_ACCESS_KEY" not in found["environment"]
    assert found["environment"]["CUDA_VISIBLE_DEVICES"] == ""
    assert found["environment"]["LD_LIBRARY_PATH"] == "/opt/lib"
    assert found["session"]
    assert found["oom"] == "1000"
    assert not {"torch", "numpy", "transformers", "trl", "sympy"} & set(found["modules"])


def test_a_file_in_the_working_folder_is_not_taken_for_a_library(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('imported the wrong json')\n")
    script = tmp_path / "script.py"
    script.write_text(
        "from veriward.rewards.pool import VerdictPool\n"
        "print(VerdictPool().verify_many([{'prediction': '2', 'reference': '2.0'}])[0].outcome)\n"
    )
    monkeypatch.chdir(tmp_path)
    code = f"import sys; sys.path.append({str(tmp_path)!r}); exec(open({str(script)!r}).read())"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "correct\n"


def run_script(tmp_path, text, **options):
    script = tmp_path / "script.py"
    script.write_text(f"import sys; sys.path.append({str(HERE)!r})\n{text}")
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, **options)


def test_a_script_without_a_main_guard_runs_once(tmp_path):
    done = run_script(
        tmp_path,
        "print('started')\n"
        "from veriward.rewards.worker_pool import WorkerPool\n"
        "print(WorkerPool('misbehaving_functions:act').run([7])[0].value)\n",
    )
    assert (done.stdout, done.stderr) == ("started\n7\n", "")


@pytest.mark.parametrize("how", ["daemonic process", "thread", "event loop", "forked child", "spawned child"])
def test_it_works_wherever_it_is_called_from(tmp_path, how):
    done = run_script(
        tmp_path,
        f"""
import asyncio, multiprocessing, os, threading
from veriward.rewards.worker_pool import WorkerPool
from concurrent.futures import ThreadPoolExecutor

def ask(pool=None):
    pool = pool or WorkerPool("misbehaving_functions:act", deadline_s=0.5)
    return [getattr(result, "value", "lost") for result in pool.run([1, "loop", 3])]

def show():
    print(ask(), flush=True)

async def on_loop():
    return ask(), await asyncio.to_thread(ask)

how = {how!r}
if __name__ == "__main__":
    if how == "daemonic process":
        process = multiprocessing.get_context("fork").Process(target=show, daemon=True)
        process.start(), process.join()
    elif how == "spawned child":
        process = multiprocessing.get_context("spawn").Process(target=show, daemon=True)
        process.start(), process.join()
    elif how == "thread":
        thread = threading.Thread(target=show)
        thread.start(), thread.join()
    elif how == "event loop":
        first, second = asyncio.run(on_loop())
        assert first == second
        print(first)
    else:
        pool = WorkerPool("misbehaving_functions:act", deadline_s=0.5)
        pool.run([1])
        if os.fork() == 0:
            print(ask(pool), flush=True)
            os._exit(0)
        os.wait()
        assert ask(pool) == [1, "lost", 3]
""",
    )
    assert (done.stdout, done.stderr) == ("[1, 'lost', 3]\n", "")


@linux
def test_a_forked_child_does_not_keep_the_workers_of_its_parent_alive(made):
    pool = made()
    pool.run([1])
    (pid,) = pool.pids()
    forked = os.fork()
    if forked == 0:
        time.sleep(20)
        os._exit(0)
    try:
        pool.close()
        assert gone_within(5, [pid])
    finally:
        os.kill(forked, 9)
        os.waitpid(forked, 0)


PARENT = """
import os, sys, threading, time
from veriward.rewards.worker_pool import WorkerPool
pool = WorkerPool("misbehaving_functions:act", workers=2, deadline_s=600)
pool.run([1])
threading.Thread(target=lambda: pool.run({items!r}), daemon=True).start()
time.sleep(1.0)
print(*pool.pids(), flush=True)
{then}
"""


@linux
@pytest.mark.parametrize(
    "items",
    [[1], ["sleep"] * 2, ["loop"] * 2, ["loop_in_c"] * 2, ["hold_the_interpreter"] * 2],
    ids=["idle", "asleep", "busy", "busy in C", "asleep in C"],
)
def test_no_worker_survives_a_parent_that_was_killed(tmp_path, items):
    done = run_script(tmp_path, PARENT.format(items=items, then="os.kill(os.getpid(), 9)"))
    pids = [int(pid) for pid in done.stdout.split()]
    assert pids
    assert gone_within(5, pids)


@linux
@pytest.mark.parametrize("then", ["", "sys.exit(3)", "raise KeyboardInterrupt"], ids=["end", "exit", "Ctrl-C"])
def test_an_interpreter_that_ends_takes_its_workers_along_at_once(tmp_path, then):
    started = time.monotonic()
    done = run_script(tmp_path, PARENT.format(items=["loop", "sleep"], then=then))
    assert time.monotonic() - started < 15
    pids = [int(pid) for pid in done.stdout.split()]
    assert pids
    assert gone_within(1, pids)


@linux
def test_a_forgotten_pool_ends_its_workers(made):
    pool = WorkerPool("misbehaving_functions:act")
    pool.run([1])
    pids = pool.pids()
    del pool
    gc.collect()
    assert gone_within(5, pids)


def test_a_closed_pool_says_so(made):
    pool = made()
    pool.run([1])
    pool.close()
    pool.close()
    with pytest.raises(WorkerError, match="closed"):
        pool.run([2])


def test_who_waits_when_a_pool_is_closed_is_told(made):
    pool = made(deadline_s=60)
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(pool.run, ["sleep", 2])
        time.sleep(1.0)
        pool.close()
        with pytest.raises(WorkerError, match="closed"):
            waiting.result(timeout=10)


@linux
def test_nothing_is_left_open_after_many_deaths(made):
    pool = made(deadline_s=0.3)
    pool.run(["die 11"])
    pool.run([1])
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        pool.run(["die 11", "leave 2"])
    gc.collect()
    pool.run([1])
    assert len(os.listdir("/proc/self/fd")) <= before
    assert len(pool.pids()) == 1


def test_callers_take_turns(made):
    pool = made(workers=1)
    pool.run([0])
    with ThreadPoolExecutor(1) as other:
        long = other.submit(pool.run, ["waste_time 0.002"] * 2_000)
        time.sleep(0.2)
        started = time.monotonic()
        pool.run([1])
        waited = time.monotonic() - started
        assert not long.done()
        long.result()
    assert waited < 2.0


def test_sixteen_callers_share_the_workers_and_all_are_served(made):
    pool = made(workers=2)
    with ThreadPoolExecutor(16) as callers:
        found = list(callers.map(lambda start: pool.run(list(range(start, start + 50))), range(0, 1_600, 50)))
    assert [values(results) for results in found] == [list(range(start, start + 50)) for start in range(0, 1_600, 50)]
    assert len(pool.pids()) <= 2


def test_an_interrupted_caller_leaves_the_pool_whole(made):
    pool = made(deadline_s=30)
    pool.run([1])
    batch = pool.submit(["sleep 1", *range(200)])
    batch.abandon()
    assert values(pool.run([5])) == [5]


@pytest.mark.parametrize(
    ("setting", "value"), [("workers", 0), ("deadline_s", 0), ("deadline_s", float("nan")), ("memory_mb", 10)]
)
def test_an_impossible_number_is_refused(setting, value):
    with pytest.raises(ValueError, match=setting):
        WorkerPool("json:dumps", **{setting: value})


def test_rules_that_changed_on_disk_stop_the_run(made, monkeypatch):
    monkeypatch.setattr("veriward.rewards.worker_process.stamp_here", lambda: "other rules")
    with pytest.raises(WorkerError, match="changed on disk"):
        made().run([1])


def test_a_worker_that_cannot_start_is_said_with_its_last_words(made, monkeypatch):
    monkeypatch.setattr("veriward.rewards.worker_process.BOOT", "raise ImportError('no flint here')")
    with pytest.raises(WorkerError, match=r"no worker process starts: .*no flint here"):
        made().run([1])


@linux
@pytest.mark.slow
def test_workers_killed_at_random_moments_lose_nothing(made):
    pool = made(workers=2)
    pool.run([0])
    batches, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            batches.append(values(pool.run(["waste_time 0.0005", *range(300)])))

    with ThreadPoolExecutor(2) as callers:
        asking = [callers.submit(ask) for _ in range(2)]
        killed = 0
        while killed < 60:
            for pid in pool.pids():
                os.kill(pid, 9)
                killed += 1
            time.sleep(0.45 + 0.01 * (killed % 13))
            if killed % 8 == 0:  # on a busy machine a start takes longer than that
                seen, patience = len(batches), time.monotonic() + 30
                while len(batches) == seen and time.monotonic() < patience:
                    time.sleep(0.01)
        stop.set()
        for done in asking:
            done.result()
    assert batches == [["done", *range(300)]] * len(batches)
    assert len(batches) > 7


def test_an_event_loop_is_free_while_a_thread_waits(made):
    pool = made()

    async def both():
        waiting = asyncio.create_task(asyncio.to_thread(pool.run, ["sleep 0.5"]))
        ticks = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return ticks, values(await waiting)

    ticks, found = asyncio.run(both())
    assert found == ["slept"]
    assert ticks > 10


def test_protocol_frames_are_json(made):
    assert json.dumps(values(made().run([[1, {"a": None}], "x"]))) == '[[1, {"a": null}], "x"]'


def test_a_lost_item_says_how_long_it_took(made):
    (lost,) = made(deadline_s=0.4).run(["sleep"])
    assert isinstance(lost, Lost)
    assert 400_000 <= lost.microseconds < 3_000_000


def test_a_worn_worker_makes_room_for_a_fresh_one_and_nothing_is_lost(made, monkeypatch):
    monkeypatch.setattr("veriward.rewards.worker_process.RECYCLE_AFTER", 500)
    pool = made()
    pool.run([0])
    first = pool.pids()
    found = []
    end = time.monotonic() + 20
    while pool.pids() == first and time.monotonic() < end:
        found += values(pool.run(list(range(200))))
    assert pool.pids() != first
    assert found == list(range(200)) * (len(found) // 200)
    assert pool.restarts == 0
    assert gone_within(5, first)


def test_a_worker_that_died_between_two_batches_is_replaced(made):
    pool = made()
    pool.run([0])
    os.kill(pool.pids()[0], 9)
    time.sleep(0.1)
    assert values(pool.run([1, 2])) == [1, 2]
    assert pool.restarts == 1


@pytest.mark.parametrize("how", ["leave 1", "take_memory 4096", "die 11"])
def test_a_batch_that_a_worker_cannot_bear_is_sent_in_parts(made, how):
    pool = made("Unprepared", setup={"how": how, "longest": 2}, memory_mb=512)
    assert values(pool.run(list(range(8)))) == list(range(8))


def test_an_item_that_no_worker_can_prepare_for_is_crashed(made):
    pool = made("Unprepared", setup={"how": "leave 1", "longest": 0})
    assert values(pool.run([1, 2])) == [Outcome.CRASHED, Outcome.CRASHED]


def test_an_exception_in_the_preparation_is_raised_in_the_caller(made):
    with pytest.raises(WorkerError, match="no such thing: 9"):
        made("Unprepared", setup={"how": "fail 9", "longest": 0}).run([1])


def test_many_long_texts_fit_into_a_worker_one_after_the_other(made):
    texts = ["€" * 3_000_000] * 12
    assert values(made(memory_mb=512).run(texts)) == texts


@pytest.mark.parametrize("wrong", ["/nothing/there", "", None])
def test_a_start_that_fails_is_told_and_the_next_one_works(made, monkeypatch, wrong):
    pool = made()
    with monkeypatch.context() as changed:
        changed.setattr(sys, "executable", wrong)
        for _ in range(2):
            with pytest.raises(WorkerError, match="workers=0"):
                pool.run([1])
    assert values(pool.run([1])) == [1]


def test_entries_of_the_import_path_that_are_no_texts_are_left_out(made, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, 7, None, Path("."), b"x"])
    assert values(made().run([1])) == [1]


def test_a_thread_that_cannot_start_is_told_and_the_next_one_works(made, monkeypatch):
    pool = made()
    with monkeypatch.context() as changed:
        changed.setattr(threading.Thread, "start", lambda thread: (_ for _ in ()).throw(RuntimeError("no threads")))
        with pytest.raises(WorkerError, match=r"no thread for a worker.*no threads"):
            pool.run([1])
    assert values(pool.run([1])) == [1]


def test_a_pool_whose_rules_are_as_they_were_goes_on(made, monkeypatch):
    pool = made()
    with monkeypatch.context() as changed:
        changed.setattr("veriward.rewards.worker_process.stamp_here", lambda: "other rules")
        for _ in range(2):
            with pytest.raises(WorkerError, match="changed on disk"):
                pool.run([1])
    assert values(pool.run([1])) == [1]


@linux
def test_a_caller_that_leaves_sigpipe_alone_is_not_ended_by_it(tmp_path):
    done = run_script(
        tmp_path,
        """
import signal
from veriward.rewards.worker_pool import WorkerPool
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
pool = WorkerPool("misbehaving_functions:act")
for _ in range(5):
    pool.run(["leave 1", *["x" * 3_000_000] * 3])
print("alive")
""",
    )
    assert (done.stdout, done.stderr) == ("alive\n", "")


@linux
def test_a_worker_does_not_read_what_an_isolated_caller_does_not(tmp_path, monkeypatch):
    (tmp_path / "hashlib.py").write_text("raise ImportError('evil hashlib')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = (
        "from veriward.rewards.pool import VerdictPool\n"
        "print(VerdictPool().verify_many([{'prediction': '2', 'reference': '2.0'}])[0].outcome)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "correct\n"


def test_a_module_that_makes_a_pool_of_itself_ends_in_words(made):
    with pytest.raises(WorkerError, match="a worker of a worker starts no workers"):
        WorkerPool("endless_pools:function").run([1])


@linux
def test_a_caller_that_is_forked_while_workers_start_still_sees_them_end(tmp_path):
    done = run_script(
        tmp_path,
        """
import os, threading, time
from veriward.rewards.worker_pool import WorkerPool
pool = WorkerPool("misbehaving_functions:act", deadline_s=0.5)
pool.run([0])
forked, stop = [], threading.Event()

def copy():
    while not stop.is_set():
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
        forked.append(pid)
        time.sleep(0.03)

thread = threading.Thread(target=copy)
thread.start()
started = time.monotonic()
for _ in range(6):
    pool.run([1, "leave 1", "loop"])
stop.set()
thread.join()
for pid in forked:
    os.kill(pid, 9)
print(time.monotonic() - started < 25)
""",
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_without_shared_memory_each_value_leaves_by_itself(made, monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    results = made().run([1, "leave 3", 2, "sleep", 3])
    assert [type(result) for result in results] == [Done, Lost, Done, Lost, Done]


def test_values_that_had_not_left_are_found_again(made):
    results = made().run([*range(50), "leave 3", *range(50)])
    assert [place for place, result in enumerate(results) if isinstance(result, Lost)] == [50]
    assert values(results) == [*range(50), Outcome.CRASHED, *range(50)]


@pytest.mark.parametrize("bad", ["leave 3", "loop", "fail"])
def test_an_item_that_was_sent_ahead_is_the_one_at_fault(made, bad):
    """A child is sent its next items before it is done: chunks of 64, of which these are the second and the third."""
    items = ["waste_time 0.0005"] * 64 + list(range(70)) + [bad] + list(range(70))
    pool = made(deadline_s=0.5)
    if bad == "fail":
        with pytest.raises(WorkerError, match="misbehaving_functions:act raised on 'fail'"):
            pool.run(items)
    else:
        results = pool.run(items)
        assert [place for place, result in enumerate(results) if isinstance(result, Lost)] == [134]
        assert values(results)[64:134] == list(range(70))
        assert values(results)[135:] == list(range(70))
    assert values(pool.run([1, 2])) == [1, 2]
