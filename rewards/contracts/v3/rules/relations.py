"""Equations, inequalities and named values: when two of them say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, product

from veriward.rewards.contracts.v3.comparison import Comparison
from veriward.rewards.contracts.v3.engine import algebra, preflight
from veriward.rewards.contracts.v3.rules import realsets
from veriward.rewards.contracts.v3.rules.comparer import (
    EQUAL,
    UNEQUAL,
    Comparer,
    flagged,
    merged,
    undecided,
    unequal,
)
from veriward.rewards.contracts.v3.rules.rewrite import difference, number, quotient, substituted, symbols
from veriward.rewards.contracts.v3.tree import (
    Alternatives,
    Apply,
    Bracketed,
    Call,
    Constant,
    Listing,
    NamedSet,
    Node,
    Product,
    Relation,
    Sum,
    Symbol,
    System,
    is_scalar,
    spell,
    walk,
)
from veriward.rewards.verdict import Certainty, Method, Reason

NAME_DROPPED = "name_dropped"
VARIABLE_RENAMED = "variable_renamed"
_MOST_NODES = 1_000
"""Nodes of both equations times points that are tried: near 30 ms."""
NUMBERED = re.compile(r"_?\{?[0-9]{1,2}\}?$")

Assignments = tuple[tuple[str, Node], ...]
"""(name, value) in the order written; a name may stand there several times."""


def assignments(node: Node) -> Assignments | None:
    """`x = 5`; `x = -3, y = 4`; `(x, y) = (-3, 4)`; `a = 1 or a = -2`; `k = 4, 6, 7`. None for anything else."""
    match node:
        case Relation((Symbol(name) | Constant("i" | "e" as name), value), ("=",)):
            return None if value == node.operands[0] else ((name, value),)
        case Relation((value, Symbol(name)), ("=",)) if is_scalar(value) and not symbols(value):
            return ((name, value),)
        case Relation((Bracketed(_, names, _), Bracketed(_, values, _)), ("=",)) if len(names) == len(values):
            if all(isinstance(name, Symbol) for name in names):
                return tuple((spell(name), value) for name, value in zip(names, values, strict=True))
        case Relation((Symbol(name), Listing(values) | Alternatives(values)), ("=",)):
            return tuple((name, value) for value in values)
        case Listing((Relation((Symbol(name), first), ("=",)), *rest)) | Alternatives(
            (Relation((Symbol(name), first), ("=",)), *rest)
        ) if rest and all(map(is_scalar, rest)):
            return tuple((name, value) for value in (first, *rest))
        case Listing(items) | System(items) | Alternatives(items):
            found = [assignments(item) for item in items]
            if all(one is not None for one in found):
                return tuple(pair for one in found if one is not None for pair in one)
    return None


def named_values(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Both sides give values to names: `y=4, x=-3` and `(x,y)=(-3,4)`. The same names, each with equal values."""
    left, right = assignments(candidate), assignments(reference)
    if left is None or right is None or (len(left) == len(right) == 1 and _is_curve(candidate, reference)):
        return None
    names = {name for name, _ in left}
    if len(names) > 1 and (len(names) < len(left) or len(names) < len(right)):
        return _solutions(left, right, comparer)
    if names != {name for name, _ in right}:
        if _numbered(left) is not None and _numbered(left) == _numbered(right):
            return comparer.in_any_order([value for _, value in left], [value for _, value in right], repeats=False)
        return unequal(Method.KIND, Certainty.PROBABLE)
    found = merged(
        comparer.in_any_order(_of(name, left), _of(name, right), repeats=False)
        if len(_of(name, left)) > 1 or len(_of(name, right)) > 1
        else comparer.compare(_of(name, left)[0], _of(name, right)[0])
        for name in sorted(names)
    )
    if found.finding is UNEQUAL and len(names) > 1 and _numbered(left) is not None:
        roots = comparer.in_any_order([value for _, value in left], [value for _, value in right], repeats=False)
        return found if roots.finding is UNEQUAL else undecided(Reason.NOT_SETTLED)  # which root is the first?
    return found


def _solutions(left: Assignments, right: Assignments, comparer: Comparer) -> Comparison:
    """`x=1, y=2 or x=2, y=1`: each solution is a point, in the order of the names, and the points have none."""
    points, others = _points_of(left), _points_of(right)
    if points is None or others is None:
        return undecided(Reason.KINDS_NOT_COMPARED)
    if points[0] != others[0]:
        return unequal(Method.KIND, Certainty.PROBABLE)
    return comparer.in_any_order(points[1], others[1], repeats=False)


def _points_of(pairs: Assignments) -> tuple[tuple[str, ...], list[Node]] | None:
    """The names and the points, where each solution gives each name once; else None."""
    names = sorted({name for name, _ in pairs})
    size = len(names)
    if len(pairs) % size:
        return None
    points: list[Node] = []
    for start in range(0, len(pairs), size):
        solution = dict(pairs[start : start + size])
        if sorted(solution) != names:
            return None
        points.append(Bracketed("(", tuple(solution[name] for name in names), ")"))
    return tuple(names), points


def _numbered(pairs: Assignments) -> str | None:
    """The letter of `x_1 = 2, x_2 = 5`, or of `x = 2, x = 5`: one unknown with several values. None for several."""
    letters = {NUMBERED.sub("", name) for name, _ in pairs}
    return letters.pop() if len(letters) == 1 else None


def _of(name: str, pairs: Assignments) -> list[Node]:
    return [value for key, value in pairs if key == name]


def _is_curve(candidate: Node, reference: Node) -> bool:
    """`y = 2x + 1`: an equation between letters, which may be solved for another of them."""
    return len(symbols(candidate)) > 1 or len(symbols(reference)) > 1


def name_in_front(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`x = 5`, `G + J = 5`, `r \\approx 5` for 5; 5 for `x = 5`; `f(x) = 2x` for `2x`; `x \\in [1, 2]` for `[1, 2]`."""
    for node, other, swap in ((candidate, reference, False), (reference, candidate, True)):
        if isinstance(other, Relation | System) or assignments(other) is not None:
            continue
        match node:
            case Relation((name, value), (("=" | "approx" | "in") as sign,)) if _is_name(name, value, sign):
                pass
            case Relation((value, Symbol() as name), ("=" as sign,)) if is_scalar(value) and not symbols(value):
                pass
            case _:
                continue
        if sign == "in" and (is_scalar(other) or isinstance(other, Listing | Alternatives)):
            continue
        if value == name or (isinstance(other, Symbol) and other in symbols(name)):
            continue
        return flagged(comparer.compare(other, value) if swap else comparer.compare(value, other), NAME_DROPPED)
    return None


def _is_name(node: Node, value: Node, sign: str) -> bool:
    """A letter, a function's name, or letters put together where a constant follows."""
    if isinstance(node, Symbol):
        return True
    if sign == "in":
        return False
    if isinstance(node, Call | Constant):
        return not isinstance(node, Constant) or node.name in ("i", "e")
    parts = node.terms if isinstance(node, Sum) else ()
    return bool(parts) and all(isinstance(part, Symbol) for part in parts) and not symbols(value)


def worked_out(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`36/5 = 7.2` is 7.2, and a reference `\\frac{4}{3} \\approx 1.33` is 4/3: a chain of one value is that value.

    Only where all its members are provably equal: `57 = 58` is neither.
    """
    for node, other, swap in ((candidate, reference, False), (reference, candidate, True)):
        match node:
            case Relation((first, *rest), signs) if all(map(is_scalar, (first, *rest))) and not symbols(first):
                pass
            case _:
                continue
        if isinstance(other, Relation) or isinstance(first, Call):
            continue
        if set(signs) == {"="}:
            if not all(comparer.scalars(first, one).finding is EQUAL for one in rest):
                return None
        elif signs != ("approx",) or not (swap or _rounds_to(first, rest[0], comparer)):
            return None
        return comparer.compare(other, first) if swap else comparer.compare(first, other)
    return None


def _rounds_to(exact: Node, shown: Node, comparer: Comparer) -> bool:
    """`\\frac13 \\approx 0.333`: the decimal is the rounded value, so that one answer is given and no hedge."""
    off = algebra.sign(difference(exact, shown))
    return off == 0 or (off is not None and comparer.compare(exact, shown).method is Method.ROUNDING)


def several_named_values(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`x = 1000, y = 10` for the list `10^3, 10`, and the other way round; one name with several values is a set."""
    for node, other, swap in ((candidate, reference, False), (reference, candidate, True)):
        pairs = assignments(node)
        if pairs is None or len(pairs) < 2 or isinstance(other, Relation) or assignments(other) is not None:
            continue
        values = tuple(value for _, value in pairs)
        names = {name for name, _ in pairs}
        if _numbered(pairs) is not None:
            one_name: Node = Listing(values)
            found = comparer.compare(other, one_name) if swap else comparer.compare(one_name, other)
            return flagged(found, NAME_DROPPED)
        if len(names) != len(pairs) or not isinstance(other, Listing | Bracketed):
            return undecided(Reason.KINDS_NOT_COMPARED)
        ordered = [name for name, _ in pairs]
        if isinstance(other, Bracketed) and ordered != sorted(ordered):
            return undecided(Reason.KINDS_NOT_COMPARED)  # `y = 5, x = 6`: which coordinate comes first?
        found = comparer.in_order(other.items, values) if swap else comparer.in_order(values, other.items)
        return flagged(found, NAME_DROPPED)
    return None


def function_definitions(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`f(m) = 2m + 1007` for `f(n) = 2n + 1007`: the letter of the argument does not matter."""
    match candidate, reference:
        case (
            Relation((Call(name, arguments), body), ("=",)),
            Relation((Call(other, parameters), meant), ("=",)),
        ) if len(arguments) == len(parameters):
            if not all(isinstance(one, Symbol) for one in (*arguments, *parameters)):
                return None
            if name != other:
                return undecided(Reason.KINDS_NOT_COMPARED)
            if arguments == parameters:
                return comparer.compare(body, meant)
            renamed = dict(zip(arguments, parameters, strict=True))
            if set(parameters) & (set(symbols(body)) - set(arguments)):
                return undecided(Reason.KINDS_NOT_COMPARED)
            return flagged(comparer.compare(substituted(body, renamed), meant), VARIABLE_RENAMED)  # type: ignore[arg-type]
    return None


def with_conditions(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`n\\pi` for `k\\pi, k \\in \\mathbb{Z}`: the letter that runs over a set is only a name.

    Conditions that both sides state must be the same up to that name; one that only one side states is dropped.
    """
    left, right = _conditions(candidate), _conditions(reference)
    if left is None and right is None:
        return None
    (value, bound), (asked, running) = left or (candidate, {}), right or (reference, {})
    if isinstance(asked, Relation) and asked.operators == ("=",) and not isinstance(value, Relation):
        asked = asked.operands[1]
    if bound and running and sorted(map(spell, bound.values())) != sorted(map(spell, running.values())):
        return undecided(Reason.NOT_SETTLED)
    ours = tuple(bound) or tuple(letter for letter in symbols(value) if letter not in symbols(asked))
    theirs = tuple(running) or tuple(letter for letter in symbols(asked) if letter not in symbols(value))
    if len(ours) == len(theirs) == 1 and ours != theirs:
        if theirs[0] in symbols(value) or (isinstance(value, Relation) and ours[0] == value.operands[0]):
            return undecided(Reason.NOT_SETTLED)
        return flagged(comparer.compare(substituted(value, {ours[0]: theirs[0]}), asked), VARIABLE_RENAMED)
    found = comparer.compare(value, asked)
    return found if found.finding is EQUAL or len(bound) + len(running) < 2 else undecided(Reason.NOT_SETTLED)


def _conditions(node: Node) -> tuple[Node, dict[Symbol, Node]] | None:
    """The value and the sets its letters run over: `k\\pi, k \\in \\mathbb{Z}`."""
    match node:
        case Listing((*values, Relation((Symbol() as letter, NamedSet() as where), ("in",)))) if values:
            if any(letter in symbols(value) for value in values):
                return (values[0] if len(values) == 1 else Listing(tuple(values))), {letter: where}
    return None


def equations(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`2x = 4 + 6y` and `x - 3y = 2`: the same up to a constant factor; or a point on one that is not on the other."""
    match candidate, reference:
        case Relation((left, right), ("=",)), Relation((first, second), ("=",)):
            if all(map(is_scalar, (left, right, first, second))):
                one, other = difference(left, right), difference(first, second)
                if not symbols(one) or not symbols(other):
                    return undecided(Reason.NOT_SETTLED)  # `1 = 2` and `3 = 4` say nothing about anything
                if not comparer.charge(_price(one, other, comparer)):
                    return undecided(Reason.OVER_BUDGET)
                return _same_zeros(one, other, comparer)
    return None


def _price(one: Node, other: Node, comparer: Comparer) -> int:
    """What comparing two equations costs, in comparisons of scalars: several points, and the expansion of both."""
    return 8 + preflight.plan(one, other, comparer.limits).work // 4_096


def _same_zeros(one: Node, other: Node, comparer: Comparer) -> Comparison:
    found = _up_to_a_factor(one, other, comparer, positive=False)
    if found is not None:
        says_nothing = found.finding is EQUAL and comparer.scalars(one, number(0)).finding is EQUAL
        return undecided(Reason.NOT_SETTLED) if says_nothing else found
    tries = _MOST_NODES // sum(1 for node in (one, other) for _ in walk(node))
    for first, second in ((one, other), (other, one)):
        if _is_off(first, second, tries):
            return unequal(Method.RATIONAL)
    return undecided(Reason.NOT_SETTLED)


def _up_to_a_factor(one: Node, other: Node, comparer: Comparer, *, positive: bool) -> Comparison | None:
    """Equal up to a constant that is not zero (`positive`: above zero); None where that was not shown."""
    found = comparer.scalars(one, other)
    if found.finding is EQUAL or not symbols(one, other):
        return found
    for point in _points(one, other):
        here, there = substituted(one, point), substituted(other, point)
        if algebra.sign(here) in (None, 0) or algebra.sign(there) in (None, 0):
            continue
        values = algebra.value(here), algebra.value(there)
        factor = number(values[0] / values[1]) if values[0] is not None and values[1] else quotient(here, there)
        if positive and algebra.sign(factor) != 1:
            return None
        scaled = comparer.scalars(one, Product((factor, other)))
        return scaled if scaled.finding is EQUAL else None
    return None


def _points(*nodes: Node) -> Iterator[dict[Symbol, Node]]:
    """A few points with small coordinates, all different."""
    letters = symbols(*nodes)
    for start in (2, 3, -5, 11):
        yield {letter: number(start + 2 * place * place + place) for place, letter in enumerate(letters)}


def _is_off(curve: Node, other: Node, tries: int) -> bool:
    """A rational point lies on the curve and provably not on the other: found where the curve is linear in a letter."""
    letters = symbols(curve)
    for point, letter in islice(product(_points(curve, other), letters), tries):
        values: list[Fraction] = []
        for place in (0, 1, 2):
            height = _at(curve, {**point, letter: number(place)})
            if height is None:
                break
            values.append(height)
        if len(values) < 3:
            continue
        slope = values[1] - values[0]
        if slope == 0 or values[2] - values[1] != slope:
            continue
        on_curve = {**point, letter: number(-values[0] / slope)}
        if _at(curve, on_curve) == 0 and _at(other, on_curve) not in (None, 0):
            return True
    return False


def _at(node: Node, point: dict[Symbol, Node]) -> Fraction | None:
    return algebra.value(substituted(node, point))


def solved_equation(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`-4x^2+4x-2` for `y + 1 = -(2x-1)^2`: what the equation says of its one other letter, if linear in it."""
    match reference:
        case Relation((left, right), ("=",)) if is_scalar(candidate) and is_scalar(left) and is_scalar(right):
            pass
        case _:
            return None
    others = [letter for letter in symbols(reference) if letter not in symbols(candidate)]
    if len(others) != 1 or not symbols(candidate):
        return None
    zero = difference(left, right)
    at = [substituted(zero, {others[0]: number(place)}) for place in (0, 1, 2)]
    bend = Sum((at[2], Product((number(-2), at[1])), at[0]))
    if comparer.scalars(bend, number(0)).finding is not EQUAL or comparer.scalars(at[0], at[1]).finding is not UNEQUAL:
        return undecided(Reason.NOT_SETTLED)
    found = comparer.scalars(substituted(zero, {others[0]: candidate}), number(0))
    return flagged(found, NAME_DROPPED)


def inequalities(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`x + y < 3` and `3 > y + x`: the same up to a positive factor, with the same ordering."""
    one, other = _one_sided(candidate), _one_sided(reference)
    if one is None or other is None:
        return None
    if one[0] != other[0] or not symbols(one[1]) or not symbols(other[1]):
        return undecided(Reason.NOT_SETTLED)
    if not comparer.charge(_price(one[1], other[1], comparer)):
        return undecided(Reason.OVER_BUDGET)
    return _up_to_a_factor(one[1], other[1], comparer, positive=True) or undecided(Reason.NOT_SETTLED)


def _one_sided(node: Node) -> tuple[str, Node] | None:
    """(`<` or `<=`, what is below zero)."""
    match node:
        case Relation((left, right), (("<" | "<=") as operator,)) if is_scalar(left) and is_scalar(right):
            return operator, difference(left, right)
        case Relation((left, right), ((">" | ">=") as operator,)) if is_scalar(left) and is_scalar(right):
            return realsets.MIRRORED[operator], difference(right, left)
    return None


def congruences(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`x \\equiv 12 \\pmod 7` and `x \\equiv 5 \\pmod 7`: one modulus, and residues that differ by a multiple of it."""
    if not (_is_congruence(candidate) or _is_congruence(reference)):
        return None
    match candidate, reference:
        case (
            Relation((left, Apply("mod", (residue, modulus))), ("equiv",)),
            Relation((other, Apply("mod", (asked, same))), ("equiv",)),
        ):
            found = comparer.in_order((left, modulus), (other, same))
            values = algebra.value(residue), algebra.value(asked), algebra.value(modulus)
            if found.finding is not EQUAL or values[0] is None or values[1] is None or not values[2]:
                return found if found.finding is UNEQUAL else undecided(Reason.NOT_SETTLED)
            steps = (values[0] - values[1]) / values[2]
            return found if steps.denominator == 1 else unequal(Method.RATIONAL)
    return undecided(Reason.KINDS_NOT_COMPARED)


def _is_congruence(node: Node) -> bool:
    return isinstance(node, Relation) and "equiv" in node.operators


def chains(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`a < b <= c` against a chain with the same signs, either way round: operand by operand."""
    match candidate, reference:
        case Relation(left, signs), Relation(right, others) if len(left) == len(right):
            if not symbols(candidate) or not symbols(reference):
                return undecided(Reason.NOT_SETTLED)
            if signs == others:
                found = comparer.in_order(left, right)
            elif tuple(realsets.MIRRORED.get(sign, sign) for sign in reversed(signs)) == others:
                found = comparer.in_order(tuple(reversed(left)), right)
            else:
                return undecided(Reason.NOT_SETTLED)
            return found if found.finding is not UNEQUAL else undecided(Reason.NOT_SETTLED)
    return None


def systems(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Relations that hold together, in any order."""
    match candidate, reference:
        case System(items) | Listing(items), System(others) | Listing(others):
            if all(isinstance(item, Relation) for item in (*items, *others)):
                found = comparer.in_any_order(items, others, repeats=False)
                return found if found.finding is not UNEQUAL else undecided(Reason.NOT_SETTLED)
    return None
