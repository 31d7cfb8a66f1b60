"""Families about answers with parts: lists, sets, points and matrices, intervals, equations."""

from __future__ import annotations

import random

from veriward.eval.attack.families.kit import Family, pair, two
from veriward.eval.attack.families.values import SQUAREFREE, Drawn, linear, terms_text, times

# Lists, sets, points, matrices


def integers(draw: random.Random, count: int) -> list[int]:
    """Different integers in no order."""
    return draw.sample(range(-20, 60), count)


def joined(parts: list[int]) -> str:
    return ", ".join(map(str, parts))


def in_set(parts: list[int]) -> str:
    return rf"\{{{joined(parts)}\}}"


def reordered_list(draw: random.Random) -> Drawn:
    parts = integers(draw, 4)
    other = parts[1:] + parts[:1]
    return draw.choice(((joined(other), joined(parts)), (in_set(other), in_set(parts)), (in_set(other), joined(parts))))


def roots_by_name(draw: random.Random) -> Drawn:
    first, second = integers(draw, 2)
    joiner = draw.choice((r" \text{ or } ", r" \text{ and } ", ", "))
    return f"x={second}{joiner}x={first}", f"{first}, {second}"


def plus_minus(draw: random.Random) -> Drawn:
    whole, radicand = draw.randint(1, 20), draw.choice(SQUAREFREE)
    root = rf"\sqrt{{{radicand}}}"
    return draw.choice(
        (
            (rf"{whole}\pm{root}", f"{whole}+{root}, {whole}-{root}"),
            (f"{whole}-{root}, {whole}+{root}", rf"{whole} \pm {root}"),
        )
    )


def set_for_pair(draw: random.Random) -> Drawn:
    first, second = integers(draw, 2)
    return draw.choice(
        (
            (f"({second}, {first})", in_set([first, second])),
            (in_set([first, second]), f"({second}, {first})"),
        )
    )


def point_turned(draw: random.Random) -> Drawn:
    parts = integers(draw, draw.randint(2, 3))
    return f"({joined(parts[1:] + parts[:1])})", f"({joined(parts)})"


def part_missing(draw: random.Random) -> Drawn:
    parts = integers(draw, 4)
    return draw.choice(((joined(parts[:-1]), joined(parts)), (joined(parts[:1]), joined(parts[:2]))))


def part_added(draw: random.Random) -> Drawn:
    parts = integers(draw, 5)
    return draw.choice(((joined(parts), joined(parts[:-1])), (in_set(parts), in_set(parts[1:]))))


def part_changed(draw: random.Random) -> Drawn:
    parts = integers(draw, 4)
    write = draw.choice((joined, in_set, lambda values: f"({joined(values)})"))
    return write(parts[:3]), write([*parts[:2], parts[3]])


def root_missing(draw: random.Random) -> Drawn:
    value = draw.randint(2, 40)
    return draw.choice(((str(value), rf"\pm {value}"), (str(value), f"{value}, -{value}")))


def dots(draw: random.Random) -> Drawn:
    first, step = draw.randint(1, 4), draw.randint(2, 5)

    def series(start: int) -> str:
        return rf"{start}, {start + step}, \ldots, {step}n+{start - step + 10}"

    return series(first), series(first + draw.randint(1, 3))


def repeated_in_set(draw: random.Random) -> Drawn:
    first, second = integers(draw, 2)
    return in_set([first, first, second]), in_set([second, first])


def matrix(rows: list[list[int]]) -> str:
    lines = r" \\ ".join(" & ".join(map(str, row)) for row in rows)
    return rf"\begin{{pmatrix}} {lines} \end{{pmatrix}}"


def matrix_rewritten(draw: random.Random) -> Drawn:
    a, b, c, d = integers(draw, 4)
    spelled = matrix([[a, b], [c, d]])
    return spelled.replace("pmatrix", "bmatrix"), spelled


def matrix_changed(draw: random.Random) -> Drawn:
    a, b, c, d = integers(draw, 4)
    changed = draw.choice(([[a, c], [b, d]], [[a, b], [c, d + 1]], [[b, a], [c, d]]))
    return matrix(changed), matrix([[a, b], [c, d]])


def ratio(draw: random.Random) -> Drawn:
    first, second, factor = *draw.choice(((2, 3), (3, 5), (5, 8), (4, 7))), draw.randint(2, 9)
    return f"{first * factor}:{second * factor}", f"{first}:{second}"


def ratio_turned(draw: random.Random) -> Drawn:
    first, second = two(draw, 1, 30)
    return f"{second}:{first}", f"{first}:{second}"


# Intervals


def ends(draw: random.Random) -> tuple[int, int]:
    low, high = sorted(two(draw, -20, 40))
    return low, high


def interval_rewritten(draw: random.Random) -> Drawn:
    low, high = ends(draw)
    return draw.choice(
        (
            (f"{low}<x<{high}", f"({low},{high})"),
            (rf"x > {low}", rf"({low},\infty)"),
            (rf"x \le {low}", rf"(-\infty,{low}]"),
            (rf"\left[{low}, {high}\right)", f"[{low},{high})"),
            (
                rf"({high},\infty)\cup(-\infty,{low})",
                rf"(-\infty,{low})\cup({high},\infty)",
            ),
            (rf"x \ne {low}", rf"(-\infty,{low})\cup({low},\infty)"),
        )
    )


def end_opened(draw: random.Random) -> Drawn:
    low, high = ends(draw)
    spellings = [f"({low},{high}]", f"[{low},{high})"]
    return draw.choice(
        (
            (spellings[0], spellings[1]),
            (spellings[1], spellings[0]),
            (rf"x \ge {low}", f"x>{low}"),
            (rf"(-\infty,{low})", rf"(-\infty,{low}]"),
        )
    )


def end_moved(draw: random.Random) -> Drawn:
    low, high = ends(draw)
    return draw.choice(
        (
            (rf"[{low},{high + 1})", rf"[{low},{high})"),
            (rf"(-{high + 40},\infty)", rf"({high + 40},\infty)"),
            (f"{low}<x<{high}", f"{low - 1}<x<{high}"),
        )
    )


def direction_turned(draw: random.Random) -> Drawn:
    low, _ = ends(draw)
    return draw.choice(
        ((f"x<{low}", f"x>{low}"), (rf"(-\infty,{low})", rf"({low},\infty)"), (rf"x \ge {low}", rf"x \le {low}"))
    )


def piece_missing(draw: random.Random) -> Drawn:
    low, high = ends(draw)
    union = rf"(-\infty,{low})\cup({high},\infty)"
    return draw.choice(
        (
            (rf"(-\infty,{low})", union),
            (rf"({high},\infty)", union),
            (r"(-\infty,\infty)", rf"(-\infty,{low})\cup({low},\infty)"),
        )
    )


def closed_for_open(draw: random.Random) -> Drawn:
    low, high = ends(draw)
    return f"[{low}, {high}]", f"{low}<x<{high}"


# Equations


def scaled_line(draw: random.Random) -> Drawn:
    a, b, c, factor = draw.randint(2, 9), draw.randint(2, 9), draw.randint(1, 20), draw.randint(2, 6)
    return f"{a * factor}x-{b * factor}y+{c * factor}=0", f"{a}x-{b}y+{c}=0"


def other_line(draw: random.Random) -> Drawn:
    a, b, (c, d) = draw.randint(2, 9), draw.randint(2, 9), two(draw, 1, 20)
    return draw.choice(((f"{a}x-{b}y+{c}=0", f"{a}x-{b}y+{d}=0"), (f"{a}x+{b}y-{c}=0", f"{a}x-{b}y-{c}=0")))


def no_real_solution(draw: random.Random) -> Drawn:
    first, second = two(draw, 1, 30)
    return draw.choice(
        (
            (f"x^2+{first}=0", f"x^2+{second}=0"),
            ("0=0", f"x^2+{first}=0"),
            ("x=x", f"x^2+y^2=-{first}"),
        )
    )


def chain_of_two_values(draw: random.Random) -> Drawn:
    first, second = two(draw, 2, 90)
    third = draw.choice([value for value in range(2, 90) if value not in (first, second)])
    return draw.choice(((f"{first}={second}", str(second)), (f"{first}={third}={second}", str(second))))


def chain_worked_out(draw: random.Random) -> Drawn:
    first, second = draw.randint(2, 30), draw.randint(2, 30)
    return rf"{first} \cdot {second} = {first * second}", str(first * second)


def other_name(draw: random.Random) -> Drawn:
    value = draw.randint(2, 90)
    return f"y={value}", f"x={value}"


def values_swapped(draw: random.Random) -> Drawn:
    first, second = two(draw, 2, 60)
    return f"x={second}, y={first}", f"x={first}, y={second}"


def named_point(draw: random.Random) -> Drawn:
    first, second = two(draw, 2, 60)
    return draw.choice(
        ((f"y={second}, x={first}", f"x={first}, y={second}"), (f"x={first}, y={second}", f"(x,y)=({first},{second})"))
    )


def function_value(draw: random.Random) -> Drawn:
    a, b = draw.randint(2, 9), draw.randint(1, 30)
    return draw.choice(((f"f(x)={a}x+{b}", f"{a}x+{b}"), (f"f(m)={a}m+{b}", f"f(n)={a}n+{b}")))


def other_function(draw: random.Random) -> Drawn:
    first, second = two(draw, 2, 9)
    return f"f(x)=x^{first}", f"f(x)=x^{second}"


def factored_equation(draw: random.Random) -> Drawn:
    left, right = linear(draw), linear(draw)
    product = terms_text(times(left, right), "x")
    return f"y=({terms_text(left, 'x')})({terms_text(right, 'x')})", f"y={product}"


def congruence(draw: random.Random) -> Drawn:
    modulus = draw.randint(5, 20)
    residue = draw.randint(1, modulus - 1)
    return rf"x \equiv {residue + modulus} \pmod {{{modulus}}}", rf"x \equiv {residue} \pmod {{{modulus}}}"


def other_congruence(draw: random.Random) -> Drawn:
    modulus = draw.randint(6, 20)
    first, second = two(draw, 1, modulus - 1)
    return draw.choice(
        (
            (rf"x \equiv {first} \pmod {{{modulus}}}", rf"x \equiv {second} \pmod {{{modulus}}}"),
            (rf"x \equiv {first} \pmod {{{modulus + 1}}}", rf"x \equiv {first} \pmod {{{modulus}}}"),
        )
    )


LISTS = Family(
    name="lists",
    tries="lists, sets, points, matrices and ratios: order, parts missing, added or changed",
    builders=(
        pair("set for ordered pair", False, set_for_pair, asks="list"),
        pair("dots dropped", False, dots, asks="list"),
        pair("list in another order", True, reordered_list, asks="list"),
        pair("roots by name", True, roots_by_name, asks="list"),
        pair("plus or minus", True, plus_minus, asks="list"),
        pair("order of a point", False, point_turned, asks="point"),
        pair("part missing", False, part_missing, asks="list"),
        pair("part added", False, part_added, asks="list"),
        pair("part changed", False, part_changed, asks="list"),
        pair("one of two roots", False, root_missing, asks="list"),
        pair("repetition in a set", True, repeated_in_set, asks="list"),
        pair("matrix in other brackets", True, matrix_rewritten, asks="matrix"),
        pair("matrix changed", False, matrix_changed, asks="matrix"),
        pair("ratio", True, ratio),
        pair("ratio turned round", False, ratio_turned),
    ),
)
INTERVALS = Family(
    name="intervals",
    tries="intervals, inequalities and unions: ends, pieces and directions",
    builders=(
        pair("interval rewritten", True, interval_rewritten, asks="interval"),
        pair("end opened or closed", False, end_opened, asks="interval"),
        pair("end moved", False, end_moved, asks="interval"),
        pair("direction turned", False, direction_turned, asks="interval"),
        pair("piece missing", False, piece_missing, asks="interval"),
        pair("closed for open", False, closed_for_open, asks="interval"),
    ),
)
EQUATIONS = Family(
    name="equations",
    tries="equations, chains, named values, functions and congruences",
    builders=(
        pair("equations without real solution", False, no_real_solution, asks="equation"),
        pair("last member of a chain", False, chain_of_two_values),
        pair("equation up to a factor", True, scaled_line, asks="equation"),
        pair("another line", False, other_line, asks="equation"),
        pair("chain worked out", True, chain_worked_out),
        pair("another name", False, other_name),
        pair("values swapped", False, values_swapped, asks="list"),
        pair("named values", True, named_point, asks="point"),
        pair("function by its value or another letter", True, function_value, asks="expression"),
        pair("another function", False, other_function, asks="expression"),
        pair("product in an equation", True, factored_equation, asks="equation"),
        pair("congruence", True, congruence),
        pair("another congruence", False, other_congruence),
    ),
)
