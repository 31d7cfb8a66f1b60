"""The drill: the frozen twelve through the whole agent, with three things going wrong on purpose.

    calculator-01   the tool times out the first time it is run
    search-01       the process is interrupted right after the tool's result was stored
    python-03       `7! / (5! * 2!)` is sent to a calculator that reads no `!`, and sent again after the refusal

Every text is scripted: it stands below, and no model writes one. So the drill shows which way the system takes, and its
counts measure nothing but that. The gate is the verifier with the reference.

Covered: a time-out, an interruption between two phases, refusals, an empty search, responses that are cut off. Not
covered: real models and real time; killed processes, for which there is `veriward.scripts.crash_agent`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from veriward.eval.problems import Problem, ProblemSet
from veriward.eval.scripted import Line, Lines, ScriptedGenerator
from veriward.eval.tool_problems import frozen_twelve
from veriward.rewards.pool import VerdictPool
from veriward.rewards.verdict import Outcome
from veriward.tool_agent.agent import AgentSettings, describe_agent, solve_many
from veriward.tool_agent.faults import Action, Fault, FaultPlan, Interrupted
from veriward.tool_agent.state import CallAttempt, Phase, ProblemState, Step
from veriward.tool_agent.store import open_store
from veriward.tool_agent.toolbox import Toolbox, toolbox


def _call(tool: str, text: str) -> str:
    argument = "query" if tool == "local_search" else "expression"
    return json.dumps({"tool": tool, "arguments": {argument: text}})


def _cut(text: str) -> Line:
    return Line(text=text, finish_reason="length")


SCRIPT: Mapping[str, Lines] = {
    "calculator-01": [_call("calculator", "18 * 43 - 96 // 6 + 3"), r"The result is \boxed{761}."],
    "calculator-02": [_call("calculator", "17 * 24 + 9"), r"The shop sells \boxed{417} bottles."],
    "calculator-03": [_call("calculator", "(4.5 + 3.75) / 1.5"), r"The value is \boxed{5.5}."],
    "calculator-04": [
        _call("calculator", "(25 - 7) * 6 / 9"),
        _cut("12.0\n\nTo explain this again, we begin with the inner bracket:\n25 - 7 = 18"),
        r"The tool gave 12.0, so the value is \boxed{12}.",
    ],
    "python-01": [
        _call("local_search", "committee members combinations"),
        _cut("220\n\nThis is the number of combinations, 12 * 11 * 10 divided by 3 * 2 * 1"),
        "The search found no document, so there is no data to answer from.",
    ],
    "python-02": [
        _call("calculator", "462 / 1071"),
        r"The greatest common divisor is \boxed{0.43137254901960786}.",
        r"The tool gave \boxed{0.43137254901960786}.",
    ],
    "python-03": [*[_call("calculator", "7! / (5! * 2!)")] * 2, r"It is \boxed{42}.", r"It is \boxed{2520}."],
    "python-04": [
        *[_call("calculator", "sqrt(2)")] * 2,
        r"The square root is \boxed{1.41421}.",
        r"To six decimal places it is \boxed{1.414214}.",
    ],
    "search-01": [_call("local_search", "Aurora trial batch size"), r"The batch size was \boxed{48}."],
    "search-02": [_call("local_search", "solvent laboratory alarm"), r"It was \boxed{acetonitrile}."],
    "search-03": [_call("local_search", "Orion checkpoint frozen date"), r"\boxed{14 March 2025}"],
    "search-04": [_call("local_search", "local telemetry service port"), r"The port is \boxed{4317}."],
}
"""What is written in each conversation, in order."""

WITH_A_FAULT = ("calculator-01", "search-01", "python-03")

PLANNED: Mapping[str, str] = {
    "calculator-01": "timeout -> executor again -> 761 -> complete/correct",
    "calculator-02": "417 -> complete/correct",
    "calculator-03": "5.5 -> complete/correct",
    "calculator-04": "12.0 -> no_answer, cut off -> correction -> complete/correct",
    "python-01": "no document -> no_answer, cut off -> correction -> complete/no_answer",
    "python-02": "0.43137254901960786 -> wrong -> correction -> complete/wrong",
    "python-03": (
        "refused: syntax -> same call again -> refused: syntax -> safe error -> wrong -> correction -> complete/wrong"
    ),
    "python-04": (
        "refused: disallowed_call -> same call again -> refused: disallowed_call -> safe error -> wrong -> correction "
        "-> complete/correct"
    ),
    "search-01": "note-aurora -> interrupted -> stored result used, not run again -> complete/correct",
    "search-02": "note-solvent -> complete/correct",
    "search-03": "note-orion -> complete/correct",
    "search-04": "note-telemetry -> complete/correct",
}
"""The way that each problem is to take, as `path_of` reads it off the stored state."""

ENTERED_AGAIN = {
    Step.ASK_CALL: "call asked for again",
    Step.EXECUTE: "call run again",
    Step.ASK_ANSWER: "stored result used, not run again",
    Step.VERIFY: "stored response verified",
}


def planned_faults() -> list[Fault]:
    """What goes wrong; the third of the three is in the script."""
    return [
        Fault(point="executor.run", action=Action.TIMEOUT, problem="calculator-01"),
        Fault(point="agent.stored.tool_ready", action=Action.INTERRUPT, problem="search-01"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run of the twelve is made of."""

    problem_set: ProblemSet
    generator: ScriptedGenerator
    toolbox: Toolbox
    settings: AgentSettings

    @property
    def problems(self) -> Sequence[Problem]:
        return self.problem_set.problems

    @property
    def run_settings(self) -> dict[str, object]:
        """For the store: everything that decides the run."""
        return {
            **describe_agent(self.generator, self.toolbox, self.settings),
            "problems": {"name": self.problem_set.name, "sha256": self.problem_set.sha256},
        }


def drill_parts(log: Path | None = None) -> Parts:
    """The twelve, their script and the tools of the strict profile; `log` gains a line for each call of the model."""
    twelve = frozen_twelve()
    questions = {problem.id: problem.question for problem in twelve.problems}
    return Parts(
        problem_set=twelve,
        generator=ScriptedGenerator(SCRIPT, questions, name="drill", log=log),
        toolbox=toolbox("strict"),
        settings=AgentSettings(answer_tokens=192),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """The final states, and what is read off them."""

    states: Sequence[ProblemState]
    """In the order of the problems."""
    contract: str
    """That the answers were verified under."""

    @property
    def paths(self) -> dict[str, str]:
        return {state.problem: path_of(state) for state in self.states}

    @property
    def differing(self) -> list[str]:
        """Problems that took another way than the planned one, in words."""
        return [
            f"{problem}: took {path}; planned was {PLANNED[problem]}"
            for problem, path in self.paths.items()
            if path != PLANNED[problem]
        ]

    @property
    def counts(self) -> dict[str, int]:
        """Of the states, by what they say."""
        first = [state.first_outcome == Outcome.CORRECT for state in self.states]
        after = [state.outcome == Outcome.CORRECT for state in self.states]
        corrected = [place for place, state in enumerate(self.states) if state.answer_retries]
        return {
            "problems": len(self.states),
            "complete": sum(state.phase is Phase.COMPLETE for state in self.states),
            "right_at_first": sum(first),
            "corrections": len(corrected),
            "rescued": sum(after[place] and not first[place] for place in corrected),
            "still_not_right": sum(not after[place] for place in corrected),
            "right_after": sum(after),
        }

    def to_row(self) -> dict[str, object]:
        """JSON-safe."""
        return {
            "measures_a_model": False,
            "gate": "oracle",
            "contract": self.contract,
            "as_planned": not self.differing,
            "counts": self.counts,
            "problems": [
                {
                    "id": state.problem,
                    "first": state.first_outcome,
                    "after": state.outcome,
                    "path": path_of(state),
                    "planned": PLANNED[state.problem],
                }
                for state in self.states
            ],
        }


def run_drill(folder: Path, *, pool: VerdictPool | None = None, faults: FaultPlan | None = None) -> Drill:
    """Run the twelve one after the other, and enter again after each planned interruption.

    folder   where the states are kept, new or empty
    pool     where answers are verified; None: the shared pool of this process
    faults   what goes wrong; None: what is planned above
    raises   ConfigError for a folder that cannot be written
    """
    parts = drill_parts()
    faults = FaultPlan(planned_faults()) if faults is None else faults
    while True:
        try:
            with open_store(folder, parts.run_settings, faults=faults) as store:
                states = solve_many(
                    parts.problems,
                    parts.generator,
                    parts.toolbox,
                    settings=parts.settings,
                    store=store,
                    pool=pool,
                    faults=faults,
                    width=1,
                )
                return Drill(states=list(states), contract=parts.settings.contract)
        except Interrupted:  # as after the end of a process: what goes on has nothing but the folder
            continue


# ---- the way a problem took -----------------------------------------------------------------------------------------


def path_of(state: ProblemState) -> str:
    """The way that a problem took, in a few words a step, read off its state alone."""
    steps = [step for place in range(len(state.calls)) for step in _call_steps(state.calls[: place + 1])]
    if state.calls and state.result is None:
        steps.append("safe error" if state.calls[-1].refused else "no tool result")
    for step, words in ENTERED_AGAIN.items():
        steps += ["interrupted", words] * (step.value in state.replays)
    for answer in state.answers[:-1]:
        steps += [f"{answer.outcome}, cut off" if answer.generation.truncated else str(answer.outcome), "correction"]
    return " -> ".join([*steps, f"{state.phase.value}/{state.outcome}"])


def _call_steps(calls: Sequence[CallAttempt]) -> list[str]:
    """What became of the last of these calls."""
    last = calls[-1]
    steps = []
    if len(calls) > 1:
        steps.append("same call again" if last.generation.text == calls[-2].generation.text else "corrected call")
    for number, fault in enumerate(last.transient, start=1):
        steps += [fault.value, "executor again"] if number < last.executor_attempts else [fault.value]
    if last.refused and last.result is not None:
        steps.append(f"refused: {last.result.category}")
    elif last.result is not None and last.result.ok:
        steps.append(_short(last.result.value, last.result.text))
    return steps


def _short(value: object, text: str) -> str:
    """A number as the model was shown it; of documents the ids."""
    if not isinstance(value, list):
        return text
    return ", ".join(str(record["id"]) for record in value) or "no document"
