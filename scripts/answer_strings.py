"""Random answers with references: contract v1's grammar, what was slow or raised once, and noise."""

from __future__ import annotations

import random
from collections.abc import Iterator

Pair = tuple[str, str]

LETTERS = "abcxyz"
NOISE = "".join(map(chr, range(32, 127))) + "\\{}()^_$ \n\t\0\ud800０ｘ√π∞−½"


def grammar_pairs(count: int, *, seed: int, contract: str) -> Iterator[Pair]:
    """Answers of v1's grammar (nested powers, roots and fractions in up to six letters) and a reference for each.

    Six in ten references are the answer itself rewritten (`(E)^2/(E)`, `E+x-x`), so that a cheap refutation cannot
    hide the cost of showing equality. Under v2, whose preflight refuses them by design, no implicit products and no
    computed exponents are drawn.
    """
    draw = random.Random(seed)
    for _ in range(count):
        letters = LETTERS[: draw.randint(1, 6)]
        answer = _expression(draw, draw.randint(1, 4), letters, narrow=contract == "v2")
        other = _expression(draw, draw.randint(1, 3), letters, narrow=contract == "v2")
        yield answer, _rewritten(draw, answer, other) if draw.random() < 0.6 else other


def hostile_pairs(count: int, *, seed: int) -> Iterator[Pair]:
    """Answers that were slow or raised once: infinity, division by zero, large roots, exponents in disguise."""
    draw = random.Random(seed)
    for _ in range(count):
        inner = _expression(draw, draw.randint(0, 2), LETTERS[: draw.randint(1, 6)], narrow=True)
        large = f"1e308^{draw.randint(2, 15)}"
        exponent = draw.choice(["x-x+10^10", "sqrt(4)*10^9", "2^2^12", "(x+60)^50", "1/999983", "y"])
        answer = draw.choice(
            [
                f"({inner})+oo",
                f"({inner})/0",
                f"({inner})/(x-x)",
                f"({inner})^({exponent})",
                f"sqrt({large}+{inner})",
                f"({large}+{draw.randint(1, 9)})^{draw.choice(['.2', '0.5', '(1/7)'])}",
                "+".join(f"sqrt({large}+{k})" for k in range(draw.randint(1, 9))),
                f"{inner}//{draw.choice(['0', '2', 'x'])}",
                f"1{'/2' * draw.randint(1, 900)}",
                f"(({inner})^(1/{draw.randint(2, 9)}))^0.25",
            ]
        )
        yield answer, draw.choice(["oo", "1/0", "1", f"(({answer})^2-1)/(({answer})+1)+1", f"{answer}+0"])


def noise_pairs(count: int, *, seed: int) -> Iterator[Pair]:
    """Responses of random characters, boxes and brackets among them, and a reference for each."""
    draw = random.Random(seed)
    for _ in range(count):
        text = "".join(draw.choices(NOISE, k=draw.randint(0, 80)))
        yield (
            draw.choice([text, rf"\boxed{{{text}}}", rf"so \boxed{{{text}", f"{text} {draw.random()}"]),
            draw.choice(["4", "x+1", text]),
        )


def _expression(draw: random.Random, depth: int, letters: str, *, narrow: bool) -> str:
    if depth == 0 or draw.random() < 0.15:
        factor = str(draw.randint(2, 9)) + ("*" if narrow else "") + draw.choice(letters)
        return draw.choice([str(draw.randint(1, 12)), draw.choice(letters), draw.choice(letters), factor, r"\pi"])
    one, two = (_expression(draw, depth - 1, letters, narrow=narrow) for _ in range(2))
    exponents = [str(draw.randint(2, 9)), "-1", "20", "64"] + ([] if narrow else ["1/2", letters[-1]])
    return draw.choice(
        [
            rf"\frac{{{one}}}{{{two}}}",
            rf"\sqrt{{{one}}}",
            rf"({one})^{{{draw.choice(exponents)}}}",
            f"{one}+{two}",
            f"({one}-{two})",
            f"({one})*({two})",
        ]
    )


def _rewritten(draw: random.Random, answer: str, other: str) -> str:
    return draw.choice(
        [
            f"({answer})*2/2",
            f"{answer}+({other})-({other})",
            f"1/(1/({answer}))",
            f"({answer})^2/({answer})",
            f"(({answer})^2-1)/(({answer})+1)+1",
            f"(({answer})*({other})+({other}))/({other})-1",
            rf"(\sqrt{{{answer}}})^2",
        ]
    )
