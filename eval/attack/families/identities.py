"""The family of identities: equal by a theorem, and near misses and false rules that look like one."""

from __future__ import annotations

from collections.abc import Sequence

from veriward.eval.attack.families.kit import Builder, Family, pair
from veriward.eval.attack.families.values import Drawn

RADICALS: Sequence[Drawn] = (
    (r"\sqrt[3]{2+\sqrt{5}}+\sqrt[3]{2-\sqrt{5}}", "1"),
    (r"\sqrt[3]{7+5\sqrt{2}}", r"1+\sqrt{2}"),
    (r"\sqrt{2+\sqrt{3}}", r"\frac{\sqrt{6}+\sqrt{2}}{2}"),
    (r"\sqrt{5+2\sqrt{6}}-\sqrt{5-2\sqrt{6}}", r"2\sqrt{2}"),
    (r"\frac{1}{\sqrt{2}+\sqrt{3}}", r"\sqrt{3}-\sqrt{2}"),
    (r"\frac{1}{1+\sqrt{2}+\sqrt{3}}", r"\frac{2+\sqrt{2}-\sqrt{6}}{4}"),
    (r"\left(\frac{1+\sqrt{5}}{2}\right)^2", r"\frac{3+\sqrt{5}}{2}"),
    (r"8^{2/3}", "4"),
)
ANGLES: Sequence[Drawn] = (
    (r"\cos\frac{2\pi}{7}+\cos\frac{4\pi}{7}+\cos\frac{6\pi}{7}", r"-\frac{1}{2}"),
    (r"\tan 15^\circ", r"2-\sqrt{3}"),
    (r"\sin 18^\circ", r"\frac{\sqrt{5}-1}{4}"),
    (r"\cos 20^\circ \cos 40^\circ \cos 80^\circ", r"\frac{1}{8}"),
    (r"\arctan\frac{1}{2}+\arctan\frac{1}{3}", r"\frac{\pi}{4}"),
    (r"4\arctan\frac{1}{5}-\arctan\frac{1}{239}", r"\frac{\pi}{4}"),
    (r"\arcsin\frac{1}{2}", r"\frac{\pi}{6}"),
    (r"\cos 3x", r"4\cos^3 x-3\cos x"),
    (r"\sin^4 x+\cos^4 x", r"1-\frac{1}{2}\sin^2 2x"),
    (r"\frac{\sin 2x}{1+\cos 2x}", r"\tan x"),
)
EXPONENTIALS: Sequence[Drawn] = (
    (r"\log_4 8", r"\frac{3}{2}"),
    (r"\log_2 3 \cdot \log_3 2", "1"),
    (r"\frac{\ln 8}{\ln 2}", "3"),
    (r"e^{2\ln 3}", "9"),
    (r"\cosh^2 x-\sinh^2 x", "1"),
    (r"\ln 6-\ln 2", r"\ln 3"),
    (r"2e^{i\pi/3}", r"1+i\sqrt{3}"),
    (r"i^{2023}", "-i"),
    (r"\frac{1+i}{1-i}", "i"),
    (r"(1+i)^8", "16"),
)
ALGEBRA: Sequence[Drawn] = (
    (r"(a-b)(a^2+ab+b^2)", "a^3-b^3"),
    (r"|x-1|", "|1-x|"),
    (r"x^{-2}", r"\frac{1}{x^2}"),
    (r"(x^2)^3", "x^6"),
    (r"x^{1/2}", r"\sqrt{x}"),
    (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
    (r"\frac{2}{3}x", r"\frac{2x}{3}"),
    (r"0.1\overline{6}", r"\frac{1}{6}"),
    (r"0.\dot{3}", r"\frac{1}{3}"),
    (r"\lceil 2.1 \rceil", "3"),
)
CURVES: Sequence[Drawn] = (
    ("x^2+y^2-4x-6y-12=0", "(x-2)^2+(y-3)^2=25"),
    (r"\frac{x^2}{4}+\frac{y^2}{9}=1", "9x^2+4y^2=36"),
    ("y=2x+3", "2x-y+3=0"),
    (r"y-1=\frac{2}{3}(x+3)", "2x-3y+9=0"),
    (r"\frac{x}{3}+\frac{y}{4}=1", "4x+3y-12=0"),
)
SOLUTION_SETS: Sequence[Drawn] = (
    (r"(-\sqrt{2}, \sqrt{2})", r"-\sqrt{2}<x<\sqrt{2}"),
    (r"x \ge 0.5", r"[\frac{1}{2}, \infty)"),
    (r"\mathbb{R}", r"(-\infty, \infty)"),
    (r"\text{all real numbers}", r"(-\infty, \infty)"),
    (r"\text{no solution}", r"\emptyset"),
    (r"\varnothing", r"\emptyset"),
    ("(3, 4), (1, 2)", "(1, 2), (3, 4)"),
    (r"(3, 4) \text{ and } (1, 2)", "(1, 2), (3, 4)"),
    (r"6 \text{ or } -6", r"\pm 6"),
    (r"2 \text{ and } 3", "2, 3"),
    (r"\frac{\pi}{6}+2n\pi, n \in \mathbb{Z}", r"\frac{\pi}{6}+2k\pi, k \in \mathbb{Z}"),
    (r"\frac{1}{2}, -\frac{3}{4}", "-0.75, 0.5"),
)
SUMS: Sequence[Drawn] = (
    (r"\frac{n(n+1)}{2}", r"\sum_{k=1}^{n} k"),
    (r"2^{n+1}-1", r"\sum_{k=0}^{n} 2^k"),
    ("55", r"\sum_{k=1}^{10} k"),
    (r"\frac{1}{3}", r"\int_0^1 x^2 \, dx"),
    ("1", r"\lim_{x \to 0} \frac{\sin x}{x}"),
)
"""The reference is left as the task states it, and the answer is worked out."""
FALSE_RULES: Sequence[Drawn] = (
    ("a^2+b^2", "(a+b)^2"),
    ("a+b", r"\sqrt{a^2+b^2}"),
    (r"\frac{1}{a}+\frac{1}{b}", r"\frac{1}{a+b}"),
    (r"\ln a+\ln b", r"\ln(a+b)"),
    ("x^3+y^3", "(x+y)^3"),
    ("b", r"\frac{a+b}{a}"),
    ("2^x+8", "2^{x+3}"),
    ("-x^2", "(-x)^2"),
    ("4", "-2^2"),
    (r"2\sin x", r"\sin 2x"),
    (r"|a|+|b|", r"|a+b|"),
    (r"3\cos^3 x-4\cos x", r"\cos 3x"),
    (r"x^5", "(x^2)^3"),
    (r"(x+2)^2+(y+3)^2=25", "(x-2)^2+(y-3)^2=25"),
    (r"\frac{x^2}{9}-\frac{y^2}{4}=1", r"\frac{x^2}{9}+\frac{y^2}{4}=1"),
    (r"\frac{n(n-1)}{2}", r"\frac{n(n+1)}{2}"),
    (r"\frac{\pi}{6}+n\pi, n \in \mathbb{Z}", r"\frac{\pi}{6}+2n\pi, n \in \mathbb{Z}"),
)
CLOSE_VALUES: Sequence[Drawn] = (
    (r"\sqrt{5}+\sqrt{6}+\sqrt{18}", r"\sqrt{4}+\sqrt{12}+\sqrt{12}"),
    (r"\frac{9801}{2206\sqrt{2}}", r"\pi"),
    (r"\sqrt{2}+\sqrt{3}", r"\pi"),
    (r"\sqrt[3]{31}", r"\pi"),
    (r"e^{\pi}-\pi", "20"),
    (r"\arctan\frac{1}{2}+\arctan\frac{1}{4}", r"\frac{\pi}{4}"),
    (r"4\arctan\frac{1}{5}-\arctan\frac{1}{240}", r"\frac{\pi}{4}"),
    (r"\cos\frac{2\pi}{7}+\cos\frac{4\pi}{7}+\cos\frac{6\pi}{7}", r"\frac{1}{2}"),
    (r"\frac{\sqrt{6}-\sqrt{2}}{2}", r"\sqrt{2+\sqrt{3}}"),
    (r"\frac{1393}{985}", r"\sqrt{2}"),
    (r"\left(1+\frac{1}{10^{9}}\right)^{10^{9}}", "e"),
    (r"\sum_{k=1}^{100} \frac{1}{k^2}", r"\frac{\pi^2}{6}"),
)


def from_table(mechanism: str, accept: bool, table: Sequence[Drawn], *, asks: str = "number") -> Builder:
    return pair(mechanism, accept, lambda draw: draw.choice(table), asks=asks)


IDENTITIES = Family(
    name="identities",
    tries="equal by a theorem; near misses and false rules that look like one",
    builders=(
        from_table("radicals within radicals", True, RADICALS),
        from_table("false rule", False, FALSE_RULES, asks="expression"),
        from_table("exact angles", True, ANGLES),
        from_table("values that are close", False, CLOSE_VALUES),
        from_table("exponentials and complex numbers", True, EXPONENTIALS),
        from_table("laws of algebra", True, ALGEBRA, asks="expression"),
        from_table("curve in another form", True, CURVES, asks="equation"),
        from_table("set of solutions in another form", True, SOLUTION_SETS, asks="list"),
        from_table("sum, integral or limit worked out", True, SUMS),
    ),
)
