"""One verdict path: a response gets the same verdict row wherever it is looked at."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy")

from veriward.eval.agent_run import run_agent
from veriward.eval.loop import evaluate
from veriward.eval.pair_file import grade_file
from veriward.eval.problems import Problem, ProblemSet, hash_problems
from veriward.eval.prompting import PromptTemplate
from veriward.eval.reverify import reverify
from veriward.eval.runs import read_run
from veriward.eval.scripted import ScriptedGenerator
from veriward.rewards import verify
from veriward.rewards.components import ComponentSettings, judge
from veriward.tool_agent import toolbox
from veriward.tool_agent.agent import AgentSettings, Gate

CLOCK_AND_KEY = ("microseconds", "reference", "reference_normal")
PLAIN = PromptTemplate(template="plain", instruction="")
ALONE = AgentSettings(tools=False, gate=Gate.NEVER)

REFERENCES = ("7", r"\frac{1}{2}", "(1, 2)", r"\sqrt{3}", "x = 3", "12.50", r"\text{even}", "1, 2, 3", "50\\%")
answers = st.sampled_from(
    ["7", "0.5", r"\frac12", "(1,2)", r"\sqrt{12}/2", "3", "12.5", "even", "3, 2, 1", r"50\%", r"\log 100", "x^x", "?"]
)
responses = st.one_of(
    answers.map(lambda answer: rf"So it is \boxed{{{answer}}}."),
    answers.map(lambda answer: f"The answer is {answer}."),
    st.tuples(answers, answers).map(lambda two: rf"<think>\boxed{{{two[0]}}}?</think> \boxed{{{two[1]}}}"),
    answers.map(lambda answer: rf"It is \boxed{{{answer}"),
    st.text(max_size=40),
)
batches = st.lists(st.tuples(responses, st.sampled_from(REFERENCES)), min_size=1, max_size=6)


def problems_of(batch):
    problems = [
        Problem(id=f"p{n}", question=f"<question {n}>", reference=reference, columns={})
        for n, (_, reference) in enumerate(batch)
    ]
    return ProblemSet(
        problems=tuple(problems),
        sha256=hash_problems(problems),
        name="batch",
        question_column="question",
        reference_column="reference",
    )


def scripted(batch, problems):
    script = {problem.id: [text] for problem, (text, _) in zip(problems.problems, batch, strict=True)}
    return ScriptedGenerator(script, {problem.id: problem.question for problem in problems.problems})


def without_clock(row):
    return {name: value for name, value in row.items() if name not in CLOCK_AND_KEY}


def verdict_rows(run):
    names = without_clock(verify("", "7").to_row()).keys()
    return [{name: row[name] for name in names} for row in run.rows]


@given(batch=batches)
@settings(max_examples=20, deadline=None)
def test_a_response_has_one_verdict_row_in_reward_loop_agent_reverify_and_grade(batch):
    batch = [(r"\boxed{7}", "7"), *((text.encode("utf-8", "replace").decode(), key) for text, key in batch)]
    problems = problems_of(batch)
    texts, references = [text for text, _ in batch], [reference for _, reference in batch]
    wanted = [without_clock(verify(text, reference).to_row()) for text, reference in batch]

    paid = judge(texts, None, {"reference": references}, ComponentSettings())
    assert [without_clock(verdict.to_row()) for verdict in paid] == wanted

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        looped = evaluate(scripted(batch, problems), problems, folder / "loop", template=PLAIN, durability="process")
        assert verdict_rows(looped.run) == wanted

        run_agent(
            scripted(batch, problems), problems, toolbox(), folder / "agent", settings=ALONE, durability="process"
        )
        assert verdict_rows(read_run(folder / "agent")) == wanted

        reverify(folder / "loop", folder / "v1", contract="v1")
        assert verdict_rows(reverify(folder / "v1", folder / "v3", contract="v3").run) == [
            row for row, problem in zip(wanted, problems.problems, strict=True) if problem.id in read_ids(folder / "v3")
        ]

        pairs = folder / "pairs.jsonl"
        lines = [json.dumps({"response": text, "reference": reference}) for text, reference in batch]
        pairs.write_text("".join(f"{line}\n" for line in lines))
        grade_file(pairs, folder / "verdicts.jsonl", contract="v3", complain=pytest.fail)
        graded = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
        assert [{name: row[name] for name in wanted[0]} for row in graded] == wanted


def read_ids(folder):
    return {row["id"] for row in read_run(folder).rows}
