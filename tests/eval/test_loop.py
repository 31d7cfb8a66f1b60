from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from veriward.eval.loop import evaluate
from veriward.eval.problems import load_problems
from veriward.eval.prompting import PromptTemplate
from veriward.eval.runs import read_run
from veriward.rewards import verify
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.generator import Generation
from veriward.tool_agent.state import Phase
from veriward.tool_agent.store import open_store

pytest.importorskip("scipy")

PLAIN = PromptTemplate(template="plain", instruction="")


class Answers:
    """A generator that knows its lines: question to responses. Written here because no model writes hostile text."""

    name = "answers"

    def __init__(self, answers: dict[str, Sequence[str]], *, settings=None, stop_after=None, batch=1):
        self.answers, self.settings = answers, settings or {"engine": "answers"}
        self.stop_after, self.batch, self.asked = stop_after, batch, []

    def generate(self, prompts, *, sample_numbers, on_finished, **_):
        results = []
        for start in range(0, len(prompts), self.batch):
            if self.stop_after is not None and len(self.asked) >= self.stop_after:
                raise KeyboardInterrupt
            batch = prompts[start : start + self.batch]
            self.asked += batch
            written = [self.write(prompt, sample_numbers[start + at]) for at, prompt in enumerate(batch)]
            on_finished([(start + offset, generation) for offset, generation in enumerate(written)])
            results += written
        return results

    def write(self, prompt, sample):
        text = self.answers[prompt][sample]
        return Generation(text=text, token_ids=tuple(range(len(text) % 7)), finish_reason="stop", seed=sample)


@pytest.fixture
def sums(write_jsonl):
    return load_problems(
        write_jsonl(*({"id": f"sum-{n}", "question": f"{n}+1", "answer": str(n + 1)} for n in range(12)))
    )


def right(problems, samples=1):
    return {problem.question: [rf"\boxed{{{problem.reference}}}"] * samples for problem in problems.problems}


def stored_rows(folder):
    return read_run(folder).rows


def states_of(folder):
    return sorted(folder.glob("problems/*/*.json"))


def test_every_response_has_one_row_with_its_verdict(sums, tmp_path):
    result = evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)
    assert result.rows == stored_rows(tmp_path / "run")
    for row, problem in zip(result.rows, sums.problems, strict=True):
        assert row["id"] == problem.id
        verdict = verify(row["text"], problem.reference).to_row()
        for name in ("microseconds", "reference", "reference_normal"):
            del verdict[name]
        assert row.items() >= verdict.items()


def test_the_summary_on_disk_is_the_one_returned(sums, tmp_path):
    result = evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)
    stored = json.loads((tmp_path / "run/summary.json").read_text())
    assert stored.items() >= json.loads(json.dumps(result.summary.to_row())).items()
    assert stored["accuracy"]["successes"] == stored["accuracy"]["total"] == 12


def test_a_stopped_run_has_no_summary_and_goes_on_where_it_was(sums, tmp_path):
    first, second = Answers(right(sums), stop_after=5), Answers(right(sums))
    with pytest.raises(KeyboardInterrupt):
        evaluate(first, sums, tmp_path / "run", template=PLAIN)
    assert not (tmp_path / "run/summary.json").exists()
    result = evaluate(second, sums, tmp_path / "run", template=PLAIN)
    assert (result.reused, len(second.asked)) == (5, 7)
    assert not set(first.asked) & set(second.asked)


def test_a_finished_run_is_read_back_without_a_question(sums, tmp_path):
    evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)
    again = Answers({})
    assert evaluate(again, sums, tmp_path / "run", template=PLAIN).summary.accuracy.successes == 12
    assert again.asked == []


def test_a_torn_state_is_set_aside_named_and_asked_again(sums, tmp_path):
    whole = evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)
    file = states_of(tmp_path / "run")[0]
    file.write_bytes(file.read_bytes()[:-20])
    again, said = Answers(right(sums)), []
    mended = evaluate(again, sums, tmp_path / "run", template=PLAIN, notice=said.append)
    assert len(again.asked) == 1
    assert "torn" in said[0]
    assert untimed(mended.rows) == untimed(whole.rows)


def test_of_several_samples_only_the_missing_one_is_asked_again(sums, tmp_path):
    options = {"template": PLAIN, "samples": 3, "temperature": 1.0}
    whole = evaluate(Answers(right(sums, 3)), sums, tmp_path / "run", **options)
    states_of(tmp_path / "run")[7].unlink()
    again = Answers(right(sums, 3))
    assert untimed(evaluate(again, sums, tmp_path / "run", **options).rows) == untimed(whole.rows)
    assert len(again.asked) == 1


def test_the_number_of_a_sample_is_handed_to_the_generator(sums, tmp_path):
    answers = {problem.question: ["first", "second", r"\boxed{0}"] for problem in sums.problems}
    result = evaluate(Answers(answers), sums, tmp_path / "run", template=PLAIN, samples=3, temperature=1.0)
    assert [(row["id"], row["sample"], row["text"]) for row in result.rows[:3]] == [
        ("sum-0", 0, "first"),
        ("sum-0", 1, "second"),
        ("sum-0", 2, r"\boxed{0}"),
    ]


def test_other_settings_are_refused_with_every_difference(sums, tmp_path):
    evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)
    other = Answers(right(sums), settings={"engine": "other"})
    with pytest.raises(ConfigError) as caught:
        evaluate(other, sums, tmp_path / "run", template=PLAIN, seed=7, contract="v1")
    message = str(caught.value)
    for difference in (
        'generator.engine "answers" there, "other" now',
        "generation.seed 0 there, 7 now",
        'contract.name "v3" there, "v1" now',
    ):
        assert difference in message
    assert "\n" not in message
    assert len(stored_rows(tmp_path / "run")) == 12


def test_a_file_in_the_place_of_the_folder_is_refused(sums, tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(ConfigError, match="is a file; wanted a folder"):
        evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)


def test_a_refused_start_does_not_lock_the_folder(sums, tmp_path):
    evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)
    with pytest.raises(ConfigError) as kept:
        evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN, seed=7)
    assert evaluate(Answers({}), sums, tmp_path / "run", template=PLAIN).reused == 12
    assert "generation.seed" in str(kept.value)


def test_a_generator_that_leaves_responses_out_gets_no_summary(sums, tmp_path):
    class Forgetful(Answers):
        def generate(self, prompts, **options):
            options["sample_numbers"] = options["sample_numbers"][:-1]
            return super().generate(prompts[:-1], **options)

    with pytest.raises(RuntimeError, match="1 responses were never handed over; the first: sum-11"):
        evaluate(Forgetful(right(sums)), sums, tmp_path / "run", template=PLAIN)
    assert not (tmp_path / "run/summary.json").exists()


def test_a_folder_with_something_else_in_it_is_refused(sums, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match=r"holds 'notes\.txt'"):
        evaluate(Answers(right(sums)), sums, tmp_path, template=PLAIN)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="no lock there")
def test_a_second_writer_is_kept_out(sums, tmp_path):
    def intrude(_):
        with pytest.raises(ConfigError, match="another process is writing into it"):
            evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN)

    evaluate(Answers(right(sums)), sums, tmp_path / "run", template=PLAIN, on_progress=intrude)


def test_unreadable_references_are_found_first_left_out_and_listed(write_jsonl, tmp_path):
    problems = load_problems(
        write_jsonl(
            {"id": "good", "question": "1+1", "answer": "2"},
            {"id": "prose", "question": "Who?", "answer": "4 5"},
        )
    )
    generator = Answers(right(problems))
    summary = evaluate(generator, problems, tmp_path / "run", template=PLAIN).summary
    assert generator.asked == ["1+1"]
    assert list(summary.unreadable_references) == ["prose"]
    assert str(summary.accuracy) == "1/1 = 100.0%"


def test_a_set_without_a_readable_reference_is_refused_before_anything_is_written(write_jsonl, tmp_path):
    problems = load_problems(write_jsonl({"question": "Who?", "answer": "4 5"}))
    with pytest.raises(ConfigError, match="none of its 1 references can be read under contract v3"):
        evaluate(Answers({}), problems, tmp_path / "run", template=PLAIN)
    assert not (tmp_path / "run").exists()


def test_an_unknown_contract_names_the_known_ones(sums, tmp_path):
    with pytest.raises(ConfigError, match="wanted one of v1, v2"):
        evaluate(Answers({}), sums, tmp_path / "run", template=PLAIN, contract="v0")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ud800 half a pair \\boxed{2}", id="lone surrogate"),
        pytest.param("\x00\x1b[2J\\boxed{2}\x00", id="NUL and escape"),
        pytest.param("x" * 1_000_000 + "\\boxed{2}", id="a megabyte"),
        pytest.param("{" * 1_000_000, id="a megabyte of braces"),
        pytest.param("\\boxed{" * 150_000, id="a megabyte of boxes"),
        pytest.param("9" * 1_000_000, id="a megabyte of digits"),
        pytest.param("\n\r\u2028\u2029\x85\\boxed{2}", id="line separators"),
        pytest.param("", id="nothing"),
        pytest.param('"}\n{"id": "forged"', id="a forged row"),
    ],
)
def test_hostile_text_is_one_readable_row(write_jsonl, tmp_path, text):
    problems = load_problems(write_jsonl({"id": "a", "question": "1+1", "answer": "2"}))
    started = time.perf_counter()
    result = evaluate(Answers({"1+1": [text]}), problems, tmp_path / "run", template=PLAIN)
    assert time.perf_counter() - started < 5
    assert stored_rows(tmp_path / "run") == result.rows
    assert result.rows[0]["text"] == text.replace("\ud800", "\ufffd")
    assert evaluate(Answers({}), problems, tmp_path / "run", template=PLAIN).rows == result.rows


def test_no_prompt_holds_its_reference(write_jsonl, tmp_path):
    rows = [{"question": f"Question {n}?", "answer": str(87_000 + n), "reference_note": "87"} for n in range(5)]
    problems = load_problems(write_jsonl(*rows))
    generator = Answers({problem.question: ["?"] for problem in problems.problems})
    evaluate(generator, problems, tmp_path / "run", template=PLAIN)
    assert not [prompt for prompt in generator.asked if "87" in prompt]


def test_progress_counts_outcomes_from_the_start_to_the_end(sums, tmp_path):
    seen = []
    evaluate(
        Answers(right(sums), batch=5),
        sums,
        tmp_path / "run",
        template=PLAIN,
        on_progress=lambda progress: seen.append((progress.finished, progress.total, progress.outcomes["correct"])),
    )
    assert (seen[0], seen[-1]) == ((0, 12, 0), (12, 12, 12))
    assert all(finished == correct for finished, _, correct in seen)
    assert seen == sorted(seen)


def test_the_loop_imports_neither_torch_nor_transformers():
    code = "import sys, veriward.eval.loop; sys.exit(bool({'torch', 'transformers', 'scipy'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("file", ["gsm8k_test.jsonl", "math500.jsonl"])
def test_ten_public_problems_go_the_whole_way_with_a_real_model(shared_data, generator, tmp_path, file):
    problems = load_problems(shared_data / file, limit=10)
    result = evaluate(generator, problems, tmp_path / "run", template=PromptTemplate(), max_new_tokens=16)
    assert len(result.rows) + len(result.summary.unreadable_references) == 10
    assert all(row["tokens"] > 0 and row["contract"] == "v3" for row in result.rows)


def untimed(rows):
    return [{key: value for key, value in row.items() if key not in ("seconds", "tool_seconds")} for row in rows]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_run_asks_nothing_twice_and_ends_with_the_same_rows(tiny_model, write_jsonl, tmp_path):
    path = write_jsonl(*({"question": f"{n}+{n}", "answer": str(2 * n)} for n in range(40)))
    command = [
        *(sys.executable, "-m", "veriward.scripts.cli", "eval", "--model", tiny_model, "--problems", path),
        *("--samples", "2", "--temperature", "1", "--max-new-tokens", "24", "--batch-size", "4", "--device", "cpu"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    killed, undisturbed = tmp_path / "killed", tmp_path / "undisturbed"
    kill_half_way([*command, "--out", killed], killed, environment, at_least=20)
    before = {file: file.read_bytes() for file in states_of(killed)}
    assert not (killed / "summary.json").exists()
    assert 20 <= len(before) < 80

    for folder in (killed, undisturbed):
        subprocess.run([*command, "--out", folder], check=True, env=environment, capture_output=True)
    rows = stored_rows(killed)
    assert all(written(file.read_bytes()) == written(content) for file, content in before.items())
    assert len({(row["id"], row["sample"]) for row in rows}) == len(rows) == 80
    assert untimed(rows) == untimed(stored_rows(undisturbed))
    assert untimed_summary(killed) == untimed_summary(undisturbed)


def written(state):
    """What the model wrote, in a stored state with its verdict or without."""
    (answer,) = json.loads(state)["answers"]
    return {name: answer[name] for name in ("text", "token_ids", "seed", "seconds")}


def untimed_summary(folder):
    """Without what depends on the clock."""
    summary = json.loads((folder / "summary.json").read_text())
    return {name: value for name, value in summary.items() if name not in ("cost", "run")}


def kill_half_way(command, folder, environment, *, at_least):
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if len(states_of(folder)) >= at_least:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()


def test_samples_that_are_all_alike_are_pointed_out(sums, tmp_path):
    said = []
    answers = {question: [texts[0]] * 2 for question, texts in right(sums).items()}
    options = {"template": PLAIN, "samples": 2, "temperature": 1.0, "notice": said.append}
    evaluate(Answers(answers), sums, tmp_path / "run", **options)
    assert "take no notice of the temperature?" in said[0]


def test_a_response_that_was_stored_without_its_verdict_is_verified_and_not_asked_again(sums, tmp_path):
    run = tmp_path / "run"
    evaluate(Answers(right(sums)), sums, run, template=PLAIN)
    whole = read_run(run)
    assert len(whole.rows) == 12
    with open_store(run, whole.settings) as store:
        for state in whole.states[:5]:  # as a kill between answer and verdict leaves them
            state.phase, state.answers[-1].verdict = Phase.ANSWERED, None
            store.write(state.problem, state.to_row())
    assert len(read_run(run).missing) == 5
    generator = Answers(right(sums))
    result = evaluate(generator, sums, run, template=PLAIN)
    assert generator.asked == []
    assert untimed(result.rows) == untimed(whole.rows)
