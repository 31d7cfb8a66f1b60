"""The batch that a GRPO step hands to its reward functions: prompts, long completions in groups, references.

    problems = packaged_problems()                      # or shared_problems(FOLDER)
    batch = draw_batch(problems, BOMBS, prompts=64, samples=16, bombs=10, draw=random.Random(1))

A group of samples shares one to six distinct final answers, as a policy's samples do. The reasoning before them is
made of sentences with mathematics in TeX; half the completions think in a block of their own first.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from veriward.tool_agent.errors import ConfigError

Item = TypeVar("Item")

CHARACTERS_A_TOKEN = 3.5
"""Of English with TeX, under the tokenizers of current models."""
SHORTEST, LONGEST = 512, 4096
"""Tokens of a completion; the longest are cut off there."""

CUT, NO_BOX, THINKING, BOX_IN_THINKING = 0.04, 0.04, 0.5, 0.2
"""Shares of the completions; the last is a share of those that think."""
RIGHT = 0.7
"""Share of the groups in which at least one answer is right."""

BOMBS = (
    "9^{9^{9^{9}}}",
    "(((9^{64})^{64})^{64})^{64}",
    "10^{10^{10^{10}}}",
    "7^{-1000000007}",
    "1.5^{100000000}",
    "1e999999999",
    "(10^{9})!",
    "((100!)!)!",
    r"\binom{10^{9}}{5\cdot 10^{8}}",
    "e^{e^{e^{e^{9}}}}",
    "2^{1/999983}",
    "(a+b+c+d+x+y)^{64}-1",
    "(((x^{2}+1)^{64}+x)^{64}+1)^{64}",
    r"((\sqrt{2}+\sqrt{3}+\sqrt{5}+\sqrt{7})^{16})^{8}",
    r"\sqrt{((10^{31}+33)^{63})^{9}+2}",
    "(" * 2000 + "x+1" + ")" * 2000,
    r"\sqrt{" * 300 + "2" + "}" * 300,
    r"\frac{1}{1+" * 400 + "x" + "}" * 400,
    "-" * 3000 + "x",
    "9" * 6000,
)
"""Short to write, and without a bound on the cost endless or deadly to compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    question: str
    reference: str
    right: tuple[str, ...]
    """The reference and other spellings of it."""
    predictions: tuple[str, ...]
    """What models answered, right or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What the trainer passes, one entry a completion, and what only the benchmark knows."""

    prompts: list[list[dict[str, str]]]
    completions: list[list[dict[str, str]]]
    completion_ids: list[list[int]]
    solutions: list[str]
    """The reference in a box, which every rater reads."""
    bombs: tuple[int, ...]
    """Places of the completions that end in a cost bomb."""
    answers: tuple[str, ...]
    """The final answer of each completion, also where the text was cut off before it."""

    @property
    def tokens(self) -> int:
        return sum(map(len, self.completion_ids))

    def only(self, place: int) -> Batch:
        """The batch of one completion."""
        return Batch(
            prompts=[self.prompts[place]],
            completions=[self.completions[place]],
            completion_ids=[self.completion_ids[place]],
            solutions=[self.solutions[place]],
            bombs=(0,) if place in self.bombs else (),
            answers=(self.answers[place],),
        )


def packaged_problems() -> list[Problem]:
    """From the case table of contract v3: each right or wrong answer a problem."""
    return [
        _problem(f"Find the value that case {case['id']} asks for ({case['why']}).", *_reference_and_answer(case))
        for case in _packaged_cases()
        if _goes_in_a_box(*_reference_and_answer(case))
    ]


def packaged_pairs() -> list[tuple[str, str]]:
    """(answer, reference) of the same cases."""
    return [(case["prediction"], case["reference"]) for case in _packaged_cases()]


def _packaged_cases() -> list[Mapping[str, Any]]:
    """The bare answers that are right or wrong by the contract's own conventions."""
    text = (files("veriward.rewards.contracts") / "v3_cases.jsonl").read_text(encoding="utf-8")
    return [
        case
        for case in map(json.loads, text.splitlines())
        if "prediction" in case
        and case["outcome"] in ("correct", "wrong")
        and not case.keys() & {"options", "answer_type"}
        and case["kind"] not in ("cost", "undefined")
    ]


def _reference_and_answer(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["reference"], row["prediction"]


def shared_problems(shared: Path) -> list[Problem]:
    """MATH-500, GSM8K's test set, and real problems with what a published model answered to each."""
    pairs = read_lines(shared / "data" / "real_pairs_given.jsonl")
    real = [
        _problem(row.get("problem") or "", *_reference_and_answer(row))
        for row in pairs
        if _goes_in_a_box(*_reference_and_answer(row))
    ]
    math = [_problem(row["problem"], row["answer"]) for row in read_lines(shared / "data" / "math500.jsonl")]
    gsm = [_problem(row["question"], row["answer"]) for row in read_lines(shared / "data" / "gsm8k_test.jsonl")]
    return real + math + gsm[: len(math)]


def shared_pairs(shared: Path) -> list[tuple[str, str]]:
    """(answer, reference) of the real problems, without repeats."""
    rows = read_lines(shared / "data" / "real_pairs_given.jsonl")
    return list(dict.fromkeys((row["prediction"], row["reference"]) for row in rows))


def shared_bombs(shared: Path) -> list[str]:
    """The expressions of the case file that cost too much and that a completion has room for."""
    rows = read_lines(shared / "cases" / "preflight_cases.jsonl")
    texts = [
        "".join(part * count for part, count in row["parts"]) if row.get("parts") else row["expression"]
        for row in rows
        if row["kind"].startswith("cost_") or row["kind"] in ("huge_function_value", "oversize")
    ]
    return [text for text in texts if len(text) < LONGEST * CHARACTERS_A_TOKEN]


def read_lines(path: Path) -> list[Mapping[str, Any]]:
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; --shared wants a folder that holds cases/ and data/")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def draw_batch(
    problems: Sequence[Problem],
    bombs: Sequence[str],
    *,
    prompts: int,
    samples: int,
    bomb_count: int,
    draw: random.Random,
) -> Batch:
    """A step's batch; `bomb_count` of its completions end in one of the bombs, each in another place."""
    total = prompts * samples
    bombed = dict(zip(draw.sample(range(total), bomb_count), _drawn(draw, bombs, bomb_count), strict=True))
    asked: list[list[dict[str, str]]] = []
    completions: list[list[dict[str, str]]] = []
    ids, solutions, answers = [], [], []
    for problem in _drawn(draw, problems, prompts):
        given = final_answers(draw, problem)
        likely = [1 / (place + 1) for place in range(len(given))]
        for _ in range(samples):
            bomb = bombed.get(len(completions))
            answer = draw.choices(given, likely)[0] if bomb is None else bomb
            text, tokens = write_completion(draw, problem.question, answer, boxed=bomb is not None)
            asked.append([{"role": "user", "content": problem.question}])
            completions.append([{"role": "assistant", "content": text}])
            ids.append([11] * tokens)
            solutions.append(rf"\boxed{{{problem.reference}}}")
            answers.append(answer)
    return Batch(
        prompts=asked,
        completions=completions,
        completion_ids=ids,
        solutions=solutions,
        bombs=tuple(sorted(bombed)),
        answers=tuple(answers),
    )


def final_answers(draw: random.Random, problem: Problem) -> list[str]:
    """One to six distinct answers of a group, the likeliest first."""
    wanted = draw.randint(1, 6)
    found = [draw.choice(problem.right)] if draw.random() < RIGHT else []
    others = [*problem.right, *problem.predictions, *(slip(draw, problem.reference) for _ in range(6))]
    draw.shuffle(others)
    return list(dict.fromkeys([*found, *others]))[:wanted]


def slip(draw: random.Random, answer: str) -> str:
    """The answer with a slip: another digit, or the other sign."""
    digits = [found.start() for found in re.finditer(r"\d", answer)]
    if not digits or draw.random() < 0.2:
        return answer[1:] if answer.startswith("-") else f"-{answer}"
    place = draw.choice(digits)
    other = draw.choice([digit for digit in "123456789" if digit != answer[place]])
    return answer[:place] + other + answer[place + 1 :]


def write_completion(draw: random.Random, question: str, answer: str, *, boxed: bool) -> tuple[str, int]:
    """A completion that ends in the answer, and its length in tokens; `boxed` forbids the endings without a box."""
    kind = draw.random()
    cut = not boxed and kind < CUT
    tokens = LONGEST if cut else int(SHORTEST * (LONGEST / SHORTEST) ** draw.random())
    length = int(tokens * CHARACTERS_A_TOKEN)
    ending = rf"Therefore the final answer is $\boxed{{{answer}}}$."
    if not boxed and CUT <= kind < CUT + NO_BOX:
        ending = f"So the answer is {answer}."
    shown = 0.25 if draw.random() < THINKING else 1.0
    thought = ""
    if shown < 1:
        guess = rf" Maybe $\boxed{{{answer}}}$, let me check." if draw.random() < BOX_IN_THINKING else ""
        thought = f"<think>\n{_reasoning(draw, question, int(length * (1 - shown)))}{guess}\n</think>\n\n"
    text = thought + _reasoning(draw, question, max(int(length * shown) - len(ending), 0)) + "\n\n" + ending
    return (text[:length] if cut else text), max(1, round((length if cut else len(text)) / CHARACTERS_A_TOKEN))


SENTENCES = (
    "We are asked about the following: {question}\n\n",
    "First write $x = \\frac{{{a}}}{{{b}}}$, so that ${b}x = {a}$. ",
    "Expanding, $(x + {a})^2 = x^2 + {d}x + {s}$, and the middle term is what matters here. ",
    "Hmm, wait. If $n = {a}$ then $n^2 - {b}n + {c} = {e}$, which is not what we wanted. ",
    "By the quadratic formula, \\[x = \\frac{{-{a} \\pm \\sqrt{{{s} - 4 \\cdot {c}}}}}{{2 \\cdot {b}}}.\\]\n",
    "Let me check this with numbers: {a} times {b} is {p}, and {p} minus {c} is {e}. ",
    "The remainder of {p} on division by {b} is 0, as it should be. ",
    "Since $\\sin^2\\theta + \\cos^2\\theta = 1$, we get $\\cos\\theta = \\sqrt{{1 - \\frac{{{a}}}{{{s}}}}}$. ",
    "The triangle has sides ${a}$, ${b}$ and ${c}$, so its perimeter is ${a}+{b}+{c}$. ",
    "Substitute back: ${a} \\cdot {b} = {p}$. Then divide both sides by {c}.\n\n",
    "Alternatively, count the cases: there are $\\binom{{{a}}}{{2}}$ pairs, and {b} of them are excluded. ",
    "So far we have the set $\\{{{a}, {b}, {c}\\}}$, but the order does not matter.\n",
    "That gives \\begin{{align*}} y &= {a}x + {b} \\\\ &= {e} \\end{{align*}} after simplifying. ",
    "I should double-check the sign of the term ${c}x$ in the last line. ",
    "\n**Step {c}:** combine the two equations and eliminate $y$.\n",
    "The probability is then $\\frac{{{b}}}{{{p}}}$, a little under {a} percent. ",
    "Together they cost ${a}.50 + {b} = {d}.50$ dollars before the discount. ",
    "Notice that $\\log_{{2}} {s}$ is not needed, because both sides have the same base. ",
    "This can be written as $f({a}) = {b}f({c}) + {e}$, where $f$ is the function above. ",
    "- the area is ${a} \\times {b} = {p}$ square units;\n",
)


def _reasoning(draw: random.Random, question: str, length: int) -> str:
    return "".join(_sentences(draw, question, length))[:length]


def _sentences(draw: random.Random, question: str, length: int) -> Iterator[str]:
    written = 0
    while written < length:
        a, b, c = draw.randint(2, 97), draw.randint(2, 60), draw.randint(1, 30)
        sentence = draw.choice(SENTENCES).format(
            a=a, b=b, c=c, d=2 * a, e=a * b - c, p=a * b, s=a * a, question=question
        )
        written += len(sentence)
        yield sentence


def _problem(question: str, reference: str, *predictions: str) -> Problem:
    from veriward.scripts.respell import respelled  # loads the verdict, which a peer's process is spared

    spelled = [text for way, text in respelled(reference) if way != "dollar"]  # it stands between dollars already
    return Problem(question=question, reference=reference, right=(reference, *spelled), predictions=predictions)


def _goes_in_a_box(*answers: str) -> bool:
    return not any(sign in answer for answer in answers for sign in ("$", "boxed", "####", "\n"))


def _drawn(draw: random.Random, values: Sequence[Item], count: int) -> list[Item]:
    """Without repeats while there are enough."""
    return draw.sample(values, count) if count <= len(values) else draw.choices(values, k=count)
