"""A problem set through the agent: stopped, gone on with, refused, read again."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from veriward.eval.agent_run import SUMMARY, arm_name, expected_tools, read_agent_run, read_agent_runs, run_agent
from veriward.eval.problems import load_problems
from veriward.eval.scripted import ScriptedGenerator
from veriward.eval.smollm2 import smollm2_path
from veriward.eval.stage_report import compare_all
from veriward.eval.tool_problems import frozen_twelve
from veriward.tool_agent import toolbox
from veriward.tool_agent.agent import AgentSettings, Gate, solve_many
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.faults import Action, Fault, FaultPlan, Interrupted
from veriward.tool_agent.state import Phase
from veriward.tool_agent.store import export, open_store, read_store

pytest.importorskip("scipy")

SETTINGS = AgentSettings()
PLAIN = AgentSettings(tools=False, gate=Gate.NEVER)


class Model(ScriptedGenerator):
    """Searches for every question, and answers 48."""

    def __init__(self, problems, **settings):
        ids = [problem.id for problem in problems.problems]
        call = json.dumps({"tool": "local_search", "arguments": {"query": "Aurora trial batch size"}})
        super().__init__({name: [] for name in ids}, {one.id: one.question for one in problems.problems})
        self.call, self.more = call, settings

    @property
    def settings(self):
        return {**super().settings, **self.more}

    def _line(self, problem, turn):
        from veriward.eval.scripted import as_line

        called = "one tool" in str(self.calls[-1][0]["content"])
        return as_line(self.call if called and turn == 0 else r"\boxed{48}")


@pytest.fixture
def problems():
    return frozen_twelve()


def run(problems, folder, model=None, **options):
    options = {"settings": SETTINGS, "durability": "process", **options}
    return run_agent(model or Model(problems), problems, toolbox(), folder, **options)


def comparable(folder):
    """States by problem, without what time and restarts put in."""

    def timeless(value):
        if isinstance(value, dict):
            dropped = ("seconds", "tool_seconds", "microseconds", "replays", "sha256", "checksum")
            return {name: timeless(one) for name, one in value.items() if name not in dropped}
        return [timeless(one) for one in value] if isinstance(value, list) else value

    with read_store(folder) as store:
        return {row["problem"]["id"]: timeless(row) for row in store.rows()}


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_a_run_ends_with_a_summary_of_every_problem(problems, tmp_path, kind):
    done = run(problems, tmp_path / "tools", kind=kind)
    summary = json.loads((tmp_path / "tools" / SUMMARY).read_text())
    assert (summary["asked"], summary["complete"], summary["missing"]) == (12, 12, [])
    assert summary == json.loads(json.dumps(done.report.to_row()))
    assert summary["stages"]["local_search"]["right_first"]["successes"] == 1


def test_a_stopped_run_has_no_summary_and_goes_on_without_asking_twice(problems, tmp_path):
    whole = Model(problems)
    run(problems, tmp_path / "whole", whole)
    first, second = Model(problems), Model(problems)
    plan = FaultPlan([Fault(point="agent.stored.answered", action=Action.INTERRUPT, skip=7)])
    with pytest.raises(Interrupted):
        run(problems, tmp_path / "cut", first, faults=plan, width=3)
    assert not (tmp_path / "cut" / SUMMARY).exists()
    done = run(problems, tmp_path / "cut", second, width=3)
    assert 0 < done.reused < 12
    assert len(first.calls) + len(second.calls) == len(whole.calls)
    assert comparable(tmp_path / "cut") == comparable(tmp_path / "whole")


def test_a_finished_run_is_read_back_without_a_question(problems, tmp_path):
    before = run(problems, tmp_path / "run").report
    again = Model(problems)
    after = run(problems, tmp_path / "run", again)
    assert (after.reused, again.calls) == (12, [])
    assert after.report.to_row() == before.to_row()


def test_a_run_that_is_half_done_is_read_as_partial(problems, tmp_path):
    plan = FaultPlan([Fault(point="agent.stored.complete", action=Action.INTERRUPT, skip=4)])
    with pytest.raises(Interrupted):
        run(problems, tmp_path / "run", faults=plan, width=2)
    report = read_agent_run(tmp_path / "run")
    assert (len(report.rows), len(report.missing), report.asked) == (5, 7, 12)
    assert report.notes[0].startswith("PARTIAL: 7 of 12")


def test_a_summary_does_not_outlive_its_states(problems, tmp_path):
    run(problems, tmp_path / "run")
    state = next((tmp_path / "run" / "problems").rglob("calculator-01*"))
    state.write_text("torn")
    plan = FaultPlan([Fault(point="agent.asked", action=Action.INTERRUPT)])
    with pytest.raises(Interrupted):
        run(problems, tmp_path / "run", faults=plan)
    assert not (tmp_path / "run" / SUMMARY).exists()


def test_an_unreadable_state_is_named_and_its_problem_asked_anew(problems, tmp_path):
    run(problems, tmp_path / "run")
    state = next((tmp_path / "run" / "problems").rglob("calculator-01*"))
    state.write_text("torn")
    assert [note for note in read_agent_run(tmp_path / "run").notes if "calculator-01" in note]
    again = Model(problems)
    done = run(problems, tmp_path / "run", again)
    assert {again.place(prompt)[0] for prompt in again.calls} == {"calculator-01"}
    assert any("calculator-01" in line for line in done.report.set_aside)


def test_progress_counts_tokens_before_the_first_problem_is_complete(problems, tmp_path):
    seen = []
    run(problems, tmp_path / "run", on_progress=lambda now: seen.append((now.finished, now.tokens > 0)))
    assert seen[0] == (0, True)
    assert seen[-1] == (12, True)


def test_other_settings_are_refused_with_what_differs(problems, tmp_path):
    run(problems, tmp_path / "run")
    with pytest.raises(ConfigError, match=r"agent\.temperature 0\.0 there, 1\.0 now"):
        run(problems, tmp_path / "run", settings=AgentSettings(temperature=1.0))


def test_other_code_goes_on_where_asked_and_every_reader_is_told(problems, tmp_path, monkeypatch):
    from veriward.tool_agent import agent

    plan = FaultPlan([Fault(point="agent.stored.complete", action=Action.INTERRUPT, skip=5)])
    with pytest.raises(Interrupted):
        run(problems, tmp_path / "run", faults=plan, width=2)
    monkeypatch.setattr(agent, "sources_stamp", lambda *_: "mended")
    with pytest.raises(ConfigError, match="--continue-under"):
        run(problems, tmp_path / "run")
    done = run(problems, tmp_path / "run", continue_under=True)
    assert (done.reused, len(done.report.rows)) == (6, 12)
    assert len(done.report.continued_under) == 1
    assert [note for note in done.report.notes if "under other code" in note]
    assert json.loads((tmp_path / "run" / SUMMARY).read_text())["continued_under"]


def test_references_that_cannot_be_read_are_left_out_and_named(write_jsonl, tmp_path):
    problems = load_problems(
        write_jsonl(
            {"id": "good", "question": "6 * 8?", "reference": "48"},
            {"id": "bad", "question": "What?", "reference": r"\frac{1}{"},
        )
    )
    report = run(problems, tmp_path / "run").report
    assert [row.problem for row in report.rows] == ["good"]
    assert list(report.unreadable) == ["bad"]
    assert "left out, the reference cannot be read: bad" in report.notes


def test_a_set_without_readable_references_is_refused(write_jsonl, tmp_path):
    problems = load_problems(write_jsonl({"id": "bad", "question": "What?", "reference": r"\frac{1}{"}))
    with pytest.raises(ConfigError, match="none of its 1 references can be read under contract v3"):
        run(problems, tmp_path / "run")


@pytest.mark.parametrize("tool", ["abacus", 7])
def test_a_problem_for_a_tool_that_is_not_there_is_refused(write_jsonl, tool):
    problems = load_problems(write_jsonl({"id": "a", "question": "6?", "reference": "6", "expected_tool": tool}))
    with pytest.raises(ConfigError, match=r"problem a: expected_tool .* wanted one of calculator"):
        expected_tools(problems.name, problems.problems, toolbox().tools)


@pytest.mark.parametrize(
    ("reader", "settings", "complaint"),
    [
        ("hermes", {"chat_template": "{{ messages }}"}, "its chat template shows no tools"),
        ("openai", {"engine": "transformers"}, "reads what a server sends"),
        ("hermes", {"engine": "openai"}, "use openai or native"),
    ],
)
def test_a_model_that_is_not_shown_the_tools_is_refused(problems, tmp_path, reader, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        run(problems, tmp_path / "run", Model(problems, **settings), settings=AgentSettings(reader=reader))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (PLAIN, "plain"),
        (SETTINGS, "tools"),
        (AgentSettings(gate=Gate.ALWAYS_ONCE), "tools-always_once"),
        (AgentSettings(gate=Gate.NEVER), "tools-never"),
    ],
)
def test_every_gate_has_a_folder_of_its_own(settings, name):
    assert arm_name(settings) == name


def test_the_runs_of_a_folder_are_read_together_the_baseline_first(problems, tmp_path):
    for settings in (SETTINGS, AgentSettings(gate=Gate.NEVER), PLAIN):
        run(problems, tmp_path / arm_name(settings), settings=settings)
    reports, unread = read_agent_runs(tmp_path)
    assert [report.name for report in reports] == ["plain", "tools", "tools-never"]
    compared, refused = compare_all(reports)
    assert (len(compared), refused, unread) == (4, [], [])


def test_copies_of_a_run_have_names_of_their_own_and_half_copies_are_left_out(problems, tmp_path):
    run(problems, tmp_path / "tools")
    with read_store(tmp_path / "tools") as store:
        export(store, tmp_path / "tools.sqlite")
    for name in ("tools.old", "tools.part", ".tmp-tools"):
        shutil.copytree(tmp_path / "tools", tmp_path / name)
    assert [report.name for report in read_agent_runs(tmp_path)[0]] == ["tools", "tools.old", "tools.sqlite"]


@pytest.mark.parametrize("place", [".", "../tools"])
def test_a_run_has_the_name_of_its_folder_however_it_is_reached(problems, tmp_path, monkeypatch, place):
    run(problems, tmp_path / "tools")
    monkeypatch.chdir(tmp_path / "tools")
    assert read_agent_run(Path(place)).name == "tools"


def test_an_arm_that_was_asked_other_problems_does_not_hide_the_others(problems, tmp_path, write_jsonl):
    other = write_jsonl({"id": "a", "question": "6 * 8?", "reference": "48"})
    run(problems, tmp_path / "tools")
    run(load_problems(other), tmp_path / "tools-never", settings=AgentSettings(gate=Gate.NEVER))
    reports, unread = read_agent_runs(tmp_path, str(other))
    assert [report.name for report in reports] == ["tools-never"]
    assert len(unread) == 1
    assert "tools: was asked other problems" in unread[0]


def test_a_change_of_the_expected_tools_is_no_longer_the_same_run(tmp_path, write_jsonl):
    row = {"id": "a", "question": "6 * 8?", "reference": "48", "expected_tool": "local_search"}
    file = write_jsonl(row)
    run(load_problems(file), tmp_path / "run")
    write_jsonl({**row, "expected_tool": "calculator"})
    with pytest.raises(ConfigError, match="asked problems with other columns"):
        read_agent_run(tmp_path / "run", str(file))
    with pytest.raises(ConfigError, match=r"problems\.columns_sha256"):
        run(load_problems(file), tmp_path / "run")


@pytest.mark.parametrize("name", ["./problems.jsonl", "{here}/problems.jsonl", "moved.jsonl"])
def test_the_same_problems_under_another_path_are_the_same_run(tmp_path, write_jsonl, monkeypatch, name):
    file = write_jsonl({"id": "a", "question": "6 * 8?", "reference": "48"})
    shutil.copy(file, tmp_path / "moved.jsonl")
    monkeypatch.chdir(tmp_path)
    run(load_problems("problems.jsonl"), tmp_path / "runs" / "plain", settings=PLAIN)
    same = load_problems(name.format(here=tmp_path))
    assert run(same, tmp_path / "runs" / "plain", settings=PLAIN).reused == 1
    run(same, tmp_path / "runs" / "tools")
    assert compare_all(read_agent_runs(tmp_path / "runs")[0])[1] == []


def test_another_problem_set_is_refused_when_a_run_is_read(problems, tmp_path, write_jsonl):
    run(problems, tmp_path / "run")
    other = write_jsonl({"id": "a", "question": "6?", "reference": "6"})
    with pytest.raises(ConfigError, match="was asked other problems"):
        read_agent_run(tmp_path / "run", str(other))


def test_a_run_is_read_without_the_file_that_it_was_asked_from(tmp_path, write_jsonl):
    file = write_jsonl({"id": "a", "question": "6 * 8?", "reference": "48"})
    run(load_problems(file), tmp_path / "run")
    file.unlink()
    assert read_agent_run(tmp_path / "run").asked == 1


def test_a_problem_set_that_has_moved_is_asked_for_where_the_run_has_no_copy(tmp_path, write_jsonl):
    file = write_jsonl({"id": "a", "question": "6 * 8?", "reference": "48"})
    run(load_problems(file), tmp_path / "run")
    (tmp_path / "run" / "problems.jsonl").unlink()
    moved = file.rename(tmp_path / "moved.jsonl")
    with pytest.raises(ConfigError, match="name them with --problems"):
        read_agent_run(tmp_path / "run")
    assert read_agent_run(tmp_path / "run", str(moved)).asked == 1


def test_another_run_of_the_store_is_no_run_of_problems(tmp_path):
    with open_store(tmp_path / "run", {"code": "x"}):
        pass
    with pytest.raises(ConfigError, match="is no run of a problem set"):
        read_agent_run(tmp_path / "run")


def test_a_folder_without_a_run_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no run\.json"):
        read_agent_runs(tmp_path)


@pytest.mark.slow
def test_a_real_model_completes_both_arms_without_a_network(tmp_path):
    """The twelve, with few tokens: what it writes is another page's matter."""
    pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    try:
        path = smollm2_path()
    except ConfigError as error:
        pytest.skip(str(error))
    from veriward.eval.generators import TransformersGenerator

    generator = TransformersGenerator(path, device="cpu", batch_size=12)
    for settings in (PLAIN, SETTINGS):
        short = AgentSettings(tools=settings.tools, gate=settings.gate, call_tokens=24, answer_tokens=24)
        run(frozen_twelve(), tmp_path / "run" / arm_name(short), generator, settings=short)
    (plain, tools), _ = read_agent_runs(tmp_path / "run")
    assert Counter(row.expected for row in plain.rows) == {"calculator": 4, "python_expr": 4, "local_search": 4}
    assert [len(row.outcomes) for row in plain.rows] == [1] * 12
    assert all(1 <= len(row.read) <= 2 for row in tools.rows)
    with read_store(tmp_path / "run" / "tools") as store:
        assert set(store.phases().values()) == {Phase.COMPLETE}


TOOL_TEMPLATE = (
    "{% for tool in tools %}[tool {{ tool.function.name }}]{% endfor %}"
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}[assistant]"
)


@pytest.mark.slow
def test_a_template_that_shows_tools_is_asked_through_transformers(tiny_model, monkeypatch):
    """A real, untrained model: what it writes is no call, and every phase is passed with the template's own roles."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from veriward.eval import generators
    from veriward.eval.generators import TransformersGenerator

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    tokenizer.chat_template = TOOL_TEMPLATE
    generator = TransformersGenerator.from_loaded(
        AutoModelForCausalLM.from_pretrained(tiny_model), tokenizer, name="tiny", batch_size=4
    )
    seen, tokenize = [], generators.tokenize
    monkeypatch.setattr(generators, "tokenize", lambda *given: seen.append(tokenize(*given)[0]) or tokenize(*given))
    settings = AgentSettings(reader="hermes", call_tokens=4, answer_tokens=4)
    (state,) = solve_many(frozen_twelve().problems[:1], generator, toolbox(), settings=settings)
    assert state.phase is Phase.COMPLETE
    assert all(text.startswith("[tool calculator][tool python_expr][tool local_search][user]") for text in seen)
    assert "[assistant]" in seen[1][:-11]
    assert "[tool]Your call was not accepted." in seen[1]
