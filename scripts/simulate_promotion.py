"""How often the promotion rule is wrong, and how often it finds a gain that is there.

    python -m veriward.scripts.simulate_promotion

Draws paired outcomes of a base and its candidates and hands them to the function that `veriward promote` decides by.
Beside it, 'the higher number wins' on the same draws.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from typing import NamedTuple

import numpy
from rich.console import Console
from rich.progress import track
from rich.table import Table

from veriward.eval.promotion import Candidate, Measures, decide, paired
from veriward.eval.promotion_rule import Guards, Rule
from veriward.eval.rates import mcnemar

EQUAL = Measures(format_valid=1.0, unsupported=0.0, truncated=0.0, mean_tokens=100.0)


class Setting(NamedTuple):
    title: str
    problems: int
    candidates: int
    discordance: float
    """Share of problems on which a candidate and the base differ."""
    gain: float
    """True gain of every candidate."""


SETTINGS = (
    Setting("5 equal candidates", 128, 5, 0.20, 0.0),
    Setting("10 equal candidates", 256, 10, 0.20, 0.0),
    Setting("1 of +15 points, announced as one of 5", 256, 1, 0.25, 0.15),
    Setting("1 of +5 points, announced as one of 5", 256, 1, 0.20, 0.05),
    Setting("1 of +5 points, announced as one of 5", 1000, 1, 0.20, 0.05),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {
        setting: promoted(setting, options.runs, options.seed)
        for setting in track(SETTINGS, console=Console(stderr=True))
    }
    if options.json:
        print(json.dumps([{**setting._asdict(), **shares._asdict()} for setting, shares in found.items()]))
        return
    table = Table(title=f"share of {options.runs:,} simulated runs in which a candidate is promoted")
    for column in ("", "problems", "differ", "this rule", "the higher number wins"):
        table.add_column(column, justify="left" if not column else "right")
    for setting, shares in found.items():
        counts = (f"{setting.problems:,}", f"{setting.discordance:.0%}")
        table.add_row(setting.title, *counts, f"{shares.rule:.1%}", f"{shares.higher:.1%}")
    Console().print(table)


class Shares(NamedTuple):
    rule: float
    higher: float


def promoted(setting: Setting, runs: int, seed: int) -> Shares:
    draw = numpy.random.default_rng(seed)
    better, worse = (setting.discordance + setting.gain) / 2, (setting.discordance - setting.gain) / 2
    rule = rule_for(setting)
    counts = draw.multinomial(
        setting.problems, [better, worse, 1 - better - worse], size=(runs, setting.candidates)
    ).tolist()
    by_rule = by_number = 0
    for run in counts:
        candidates = [
            candidate(f"step-{number}", gained, lost, setting.problems) for number, (gained, lost, _) in enumerate(run)
        ]
        by_rule += decide(rule, EQUAL, candidates).decision == "promote"
        by_number += any(one.gain > 0 for one in candidates)
    return Shares(by_rule / runs, by_number / runs)


def candidate(name: str, gained: int, lost: int, problems: int) -> Candidate:
    return paired(name, lost, gained, problems, EQUAL, chance=known_chance(lost, gained))


known_chance = cache(mcnemar)


def rule_for(setting: Setting) -> Rule:
    return Rule(
        path="simulated",
        sha256="",
        name="simulated",
        contract="v3",
        set_sha256="",
        n=setting.problems,
        alpha=0.05,
        candidates=max(5, setting.candidates),
        minimum_gain=0.0,
        guards=Guards(),
    )


if __name__ == "__main__":
    main()
