"""What a system card says: the agent around the model, stage by stage, with its controls and its faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.eval.agent_run import report_of
from veriward.eval.comparison import Comparison, compare_runs
from veriward.eval.drill import PLANNED, path_of
from veriward.eval.metrics import Summary, summarise_run
from veriward.eval.runs import Run
from veriward.eval.stage_report import StageReport
from veriward.tool_agent import arithmetic, call, executor
from veriward.tool_agent.agent import Gate
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.state import ANSWERS, CALLS, read_state
from veriward.tool_agent.store import read_store

CONTROLS = (Gate.ALWAYS_ONCE, Gate.REFERENCE_FREE)
SAME_COMPUTE = 0.1
"""Share by which the tokens a problem may differ at 'equal compute'."""

STAGES = {
    "valid_call_first": "valid call, first",
    "valid_call": "valid call, after a correction",
    "right_tool": "right tool",
    "executor_ok": "executor gave a result",
    "executor_empty": "search found nothing",
    "result_used": "tool's number used",
    "right_first": "right, first answer",
    "right_final": "right, last answer",
    "cut_off_first": "cut off, first answer",
    "cut_off_final": "cut off, last answer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One run on a system card, before and after its correction."""

    run: Run
    report: StageReport
    first: Summary
    final: Summary
    compute: str
    """Beside the first run with tools."""

    @property
    def gate(self) -> str:
        return self.report.gate if self.run.tools else "no tools"


def system_context(runs: Sequence[Run], drill: Sequence[Mapping[str, str]] | None) -> dict[str, Any]:
    """ConfigError where no run has tools, and for runs under different contracts or of other problems."""
    for run in runs:
        if not run.agent:
            raise ConfigError(f"{run.path}: is no run of the tool agent; wanted the folders of `veriward agent`")
    with_tools = [run for run in runs if run.tools]
    if not with_tools:
        raise ConfigError(f"{runs[0].path}: has no tools, and a system card is about them; use `veriward card model`")
    main = next((run for run in with_tools if gate_of(run) is Gate.ORACLE), with_tools[0])
    ordered = [main, *(run for run in runs if run is not main)]
    baselines = {run.name: difference_of(compare_runs(run, main)) for run in ordered if not run.tools}
    arms = [arm_of(run, main) for run in ordered]
    for run in ordered[1:]:
        compare_runs(main, run)  # refuses other contracts and problem sets
    gates = {gate_of(run) for run in with_tools}
    return {
        "main": arms[0],
        "arms": arms,
        "tools": main.settings["toolbox"]["tools"],
        "toolbox": main.settings["toolbox"],
        "limits": limits(),
        "agent": main.settings["agent"],
        "oracle": Gate.ORACLE in gates,
        "absent": [gate.value for gate in CONTROLS if gate not in gates],
        "baselines": baselines,
        "stages": STAGES,
        "drill": drill,
    }


def gate_of(run: Run) -> Gate:
    return Gate(run.settings["agent"]["gate"])


def arm_of(run: Run, main: Run) -> Arm:
    final = summarise_run(run)
    return Arm(
        run=run,
        report=report_of(run),
        first=summarise_run(run, first=True),
        final=final,
        compute=compute_beside(final, summarise_run(main)) if run is not main else "",
    )


def compute_beside(one: Summary, main: Summary) -> str:
    mine, other = one.cost.per_problem() or {}, main.cost.per_problem() or {}
    share = mine["tokens"] / other["tokens"] if other.get("tokens") else 0.0
    equal = abs(share - 1) <= SAME_COMPUTE and abs(mine["model_calls"] / other["model_calls"] - 1) <= SAME_COMPUTE
    return "equal" if equal else f"{share:.0%} of the tokens, {mine['model_calls']:.2f} calls a problem"


def difference_of(comparison: Comparison) -> str:
    chance = "undefined" if comparison.p_value is None else f"{comparison.p_value:.2g}"
    return f"{100 * comparison.difference:+.1f} points, {comparison.test}, p = {chance}"


def drill_rows(folder: Path) -> list[Mapping[str, str]]:
    """Of a drill: problem, planned way, the way it took, its outcome."""
    rows = []
    with read_store(folder) as store:
        for row in store.rows():
            state = read_state(row)
            if isinstance(state, str) or state.problem not in PLANNED:
                raise ConfigError(f"{folder}: is no drill; wanted the folder of `veriward drill --out`")
            path, planned = path_of(state), PLANNED[state.problem]
            rows.append({"problem": state.problem, "path": path, "planned": "yes" if path == planned else planned})
    if not rows:
        raise ConfigError(f"{folder}: holds no state; wanted the folder of `veriward drill --out`")
    return sorted(rows, key=lambda row: list(PLANNED).index(row["problem"]))


def limits() -> list[str]:
    """What the executor and the agent never go beyond, from their own constants."""
    return [
        f"numbers of at most {arithmetic.MAX_BITS:,} bits, bounded before each operation; no names, attributes or code",
        f"calls of at most {call.MAX_CHARACTERS:,} characters, results shown to the model of at most "
        f"{executor.LONGEST_SHOWN:,}",
        f"a tool that times out or dies is run {executor.EXECUTOR_ATTEMPTS} times at most, without asking the model",
        f"at most {CALLS} texts for a call and {ANSWERS} answers a problem: one correction each",
    ]
