"""The attack suite's cases: prompts, responses and references whose truth is known before any verdict.

A case's truth comes from how it is built (exact arithmetic, or a table of the published conventions, `docs/policy.md`),
never from a verifier. Pairs on which those conventions are silent are left out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veriward.eval.attack.families.everyday import EVERYDAY
from veriward.eval.attack.families.guesses import BOX_FLOODS, HEDGES, PROBLEM_COPIES
from veriward.eval.attack.families.hostile import COST_BOMBS, HOSTILE_TEXT, JUDGE_ATTACKS, THREADS
from veriward.eval.attack.families.identities import IDENTITIES
from veriward.eval.attack.families.kit import Call, Family
from veriward.eval.attack.families.quantities import PERCENT, TINY_AND_HUGE, UNITS
from veriward.eval.attack.families.responses import EMPTY_BOXES, EXTRACTION, PROMPT_LEAKS
from veriward.eval.attack.families.structures import EQUATIONS, INTERVALS, LISTS
from veriward.eval.attack.families.trees import TREES
from veriward.eval.attack.families.values import EQUAL, UNEQUAL
from veriward.eval.attack.families.words import BASES, WORDS
from veriward.tool_agent.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackCase:
    """One call of a reward function, and what it must not do."""

    id: str
    """'family/017': the same for a seed and a count."""
    family: str
    mechanism: str
    """What is tried, as 'absolute zero test': findings are grouped by it."""
    prompt: str
    """The problem, as the user's message."""
    completion: str
    """The response that the reward function sees."""
    reference: str
    accept: bool | None
    """True: equal, must be paid. False: must not be paid. None: no claim about the value; only hangs, crashes and
    exceptions count."""
    call: Call = "plain"
    """From where the function is called."""
    answer_type: str | None = None
    """Set only where the truth needs it."""


MECHANISMS: Mapping[str, str] = {
    "absolute zero test": "two tiny values count as equal because their difference is small",
    "six-place rounding": "decimals are rounded to six places before they are compared",
    "box merging": "boxes that stand close together become one set of answers",
    "sentence beats box": "'The final answer is …' in the text outranks the box",
    "units stripped by letter": "letters are deleted as if they were units, and units that contradict with them",
    "last member of a chain": "of '58 = 57' the last number alone is compared",
    "equations without real solution": "two equations that no real number solves count as equal",
    "letters as factors": "words are products of their letters, in any order",
    "base dropped": "the base of a numeral is not compared",
    "set for ordered pair": "an ordered pair equals a set",
    "dots dropped": "the '...' of a list is deleted, and the rest compared",
    "both readings of percent": "a percentage is its number and its share at once, on both sides",
    "everyday forms": "what people usually write for a right answer is not read",
    "time": "a short answer keeps the caller busy for seconds or for ever",
    "threads and alarms": "the check fails, or loses its time limit, outside the main thread",
}
"""The 15 mechanisms by which public graders were found to be wrong; further ones are named where they are tried."""

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        EQUAL,
        UNEQUAL,
        TREES,
        IDENTITIES,
        EVERYDAY,
        TINY_AND_HUGE,
        PERCENT,
        UNITS,
        LISTS,
        INTERVALS,
        EQUATIONS,
        BASES,
        WORDS,
        HEDGES,
        BOX_FLOODS,
        PROBLEM_COPIES,
        EMPTY_BOXES,
        EXTRACTION,
        PROMPT_LEAKS,
        JUDGE_ATTACKS,
        COST_BOMBS,
        HOSTILE_TEXT,
        THREADS,
    )
}


def attack_cases(*, seed: int, per_family: int = 40, families: Sequence[str] | None = None) -> list[AttackCase]:
    """The suite's cases, the same for a seed on every machine and version of Python.

    per_family   cases drawn from each family; every family has tried all it knows from 32 on
    families     names of FAMILIES, in that order; None: all
    raises       ConfigError for an unknown family or no cases
    """
    if per_family < 1:
        raise ConfigError(f"per_family: got {per_family}, wanted at least 1; ask for one or more cases a family")
    chosen = tuple(FAMILIES) if families is None else tuple(families)
    for name in chosen:
        if name not in FAMILIES:
            raise ConfigError(f"families: unknown family {name!r}; choose from {', '.join(FAMILIES)}")
    return [
        AttackCase(
            id=f"{name}/{number:03d}",
            family=name,
            mechanism=draft.mechanism,
            prompt=draft.prompt,
            completion=draft.completion,
            reference=draft.reference,
            accept=draft.accept,
            call=draft.call,
            answer_type=draft.answer_type,
        )
        for name in chosen
        for number, draft in enumerate(FAMILIES[name].make(random.Random(f"{seed}/{name}"), per_family))
    ]
