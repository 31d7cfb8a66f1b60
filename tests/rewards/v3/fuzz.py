"""Random pairs of expressions for the scalar engine, as trees: equal by construction, perturbed, and hostile ones.

Everything is drawn from the seed. Run as a script to see times and findings: `python fuzz.py SEED COUNT`.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random

from veriward.rewards.contracts.v3.engine import algebra
from veriward.rewards.contracts.v3.tree import (
    Apply,
    Constant,
    Negation,
    Node,
    Number,
    Power,
    Product,
    Quotient,
    Root,
    Sum,
    Symbol,
    spell,
    walk,
)

Pair = tuple[Node, Node]

NAMES = ("x", "y", "n", "a")
FUNCTIONS = ("sin", "cos", "tan", "ln", "exp", "abs", "sqrt", "arctan", "arcsin", "floor", "sinh", "log2", "factorial")


def number(value: int | Fraction) -> Number:
    return Number(Fraction(value))


def minus(left: Node, right: Node) -> Node:
    return Sum((left, Negation(right)))


class Trees:
    """Random expressions; `hostile` ones have numbers, exponents and roots beyond every budget."""

    def __init__(self, rng: Random, *, hostile: bool, letters: bool, imaginary: bool = False) -> None:
        self.rng = rng
        self.hostile = hostile
        self.letters = letters
        self.imaginary = imaginary

    def leaf(self) -> Node:
        draw = self.rng.random()
        if self.letters and draw < 0.5:
            return Symbol(self.rng.choice(NAMES))
        if draw < 0.6:
            return Constant(self.rng.choice(("pi", "e") if not self.imaginary else ("pi", "e", "i", "i")))
        if self.hostile and draw < 0.66:
            return number(self.rng.randrange(10 ** self.rng.choice((30, 300, 900))))
        if draw < 0.75:
            return number(Fraction(self.rng.randint(-9, 9), self.rng.randint(1, 12)))
        return number(self.rng.randint(0, 12))

    def exponent(self) -> Node:
        draw = self.rng.random()
        if self.hostile and draw < 0.4:
            return number(self.rng.choice((-1, 1, 1)) * self.rng.choice((50, 64, 1000, 99_999, 10**6, 10**12, 10**40)))
        if draw < 0.6:
            return number(self.rng.randint(-3, 4))
        if draw < 0.75:
            return number(Fraction(self.rng.randint(-5, 5), self.rng.randint(2, 4)))
        return self.tree(1) if draw < 0.9 else number(2)

    def tree(self, depth: int) -> Node:
        if depth <= 0 or self.rng.random() < 0.08:
            return self.leaf()
        draw = self.rng.random()
        if draw < 0.3:
            return Sum(tuple(self.tree(depth - 1) for _ in range(self.rng.randint(2, 3))))
        if draw < 0.5:
            return Product(tuple(self.tree(depth - 1) for _ in range(self.rng.randint(2, 3))))
        if draw < 0.6:
            return Quotient(self.tree(depth - 1), self.tree(depth - 1))
        if draw < 0.68:
            return Negation(self.tree(depth - 1))
        if draw < 0.8:
            return Power(self.tree(depth - 1), self.exponent())
        if draw < 0.88:
            degrees = (2, 2, 3, 4, 5, 6) if not self.hostile else (2, 3, 7, 31, 59, 101, 10**6)
            return Root(self.tree(depth - 1), self.rng.choice(degrees))
        name, inner = self.rng.choice(FUNCTIONS), self.tree(depth - 1)
        if name == "sqrt":
            return Root(inner, 2)
        return Apply("log", (number(2), inner)) if name == "log2" else Apply(name, (inner,))


def rewritten(rng: Random, tree: Node, depth: int = 2) -> Node:
    """The same value wherever both are defined, written otherwise."""
    other = Symbol("x")
    choice = rng.randrange(13)
    if choice == 0:
        result: Node = Quotient(Product((tree, number(2))), number(2))
    elif choice == 1:
        result = minus(Sum((tree, other)), other)
    elif choice == 2:
        result = Quotient(number(1), Quotient(number(1), tree))
    elif choice == 3:
        result = Sum((Quotient(minus(Power(tree, number(2)), number(1)), Sum((tree, number(1)))), number(1)))
    elif choice == 4:
        result = Root(Power(tree, number(3)), 3) if _surely_real(tree) else tree
    elif choice == 5:
        result = Product(
            (tree, Sum((Power(Apply("sin", (other,)), number(2)), Power(Apply("cos", (other,)), number(2)))))
        )
    elif choice == 6:
        result = Apply("ln", (Apply("exp", (tree,)),)) if _surely_real(tree) else tree
    elif choice == 7:
        result = Quotient(Power(tree, number(7)), Power(tree, number(6)))
    elif choice == 8:
        result = minus(Product((tree, number(3))), Sum((tree, tree)))
    elif choice == 9:
        result = Product((Root(number(2), 2), tree, Quotient(Root(number(2), 2), number(2))))
    elif choice == 10:
        result = minus(Power(Sum((tree, number(1))), number(2)), Sum((Power(tree, number(2)), tree, number(1))))
    elif choice == 11:
        result = Apply("exp", (Sum((Apply("ln", (tree,)), number(0))),))
    else:
        result = Negation(Product((number(-1), tree)))
    return rewritten(rng, result, depth - 1) if depth > 1 and rng.random() < 0.4 else result


def _surely_real(tree: Node) -> bool:
    """Whether no part can leave the reals: a cube root undoes a cube, and a logarithm an exponential, only there."""
    for node in walk(tree):
        match node:
            case Constant("i") | Root() | Apply("ln" | "log" | "arcsin"):
                return False
            case Power(_, exponent) if not (isinstance(exponent, Number) and exponent.value.denominator == 1):
                return False
    return True


def equal_pairs(seed: int, count: int) -> Iterator[Pair]:
    """Pairs that agree wherever both sides are defined."""
    rng = Random(seed)
    for _ in range(count):
        trees = Trees(rng, hostile=rng.random() < 0.4, letters=rng.random() < 0.6)
        tree = trees.tree(rng.randint(1, 4))
        yield tree, rewritten(rng, tree)


def perturbed_pairs(seed: int, count: int) -> Iterator[Pair]:
    """Pairs that differ by a constant that is not zero, from 1/7 down to 10^-900, wherever they are defined."""
    rng = Random(seed)
    for _ in range(count):
        trees = Trees(rng, hostile=rng.random() < 0.2, letters=rng.random() < 0.6)
        tree = trees.tree(rng.randint(1, 4))
        epsilon = Fraction(1, rng.choice((7, 10**3, 10**9, 10**17, 10**30, 10**60, 10**200, 10**900)))
        yield tree, Sum((rewritten(rng, tree) if rng.random() < 0.5 else tree, number(epsilon)))


def hostile_pairs(seed: int, count: int) -> Iterator[Pair]:
    """Pairs made to cost much: two of three are equal, so that a refutation does not hide the exact tier."""
    rng = Random(seed)
    for _ in range(count):
        letters = rng.random() < 0.6
        trees = Trees(rng, hostile=True, letters=letters, imaginary=rng.random() < 0.15)
        tree = trees.tree(rng.randint(1, 5))
        yield tree, rewritten(rng, tree, 3) if rng.random() < 0.67 else trees.tree(rng.randint(1, 5))


def sloppy(rng: Random, node: Node) -> Node:
    """The tree with school rules applied here and there, whether or not they hold: `sqrt(x^2)` to `x`."""
    node = _rebuilt(node, lambda part: sloppy(rng, part))
    if rng.random() < 0.3:
        return node
    match node:
        case Root(Product(factors), degree):
            return Product(tuple(Root(factor, degree) for factor in factors))
        case Root(Quotient(top, bottom), degree):
            if rng.random() < 0.5:
                return Quotient(Root(Product((top, bottom)), degree), bottom)
            return Quotient(Root(top, degree), Root(bottom, degree))
        case Root(Power(base, Number(value)), degree):
            return Power(base, number(value / degree))
        case Root(Root(radicand, inner), outer):
            return Root(radicand, inner * outer)
        case Power(Power(base, inner), outer):
            return Power(base, Product((inner, outer)))
        case Power(Product(factors), exponent):
            return Product(tuple(Power(factor, exponent) for factor in factors))
        case Power(Root(radicand, degree), Number(value)):
            return Power(radicand, number(value / degree))
        case Apply("ln", (Product(factors),)):
            return Sum(tuple(Apply("ln", (factor,)) for factor in factors))
        case Apply("ln", (Quotient(top, bottom),)):
            return minus(Apply("ln", (top,)), Apply("ln", (bottom,)))
        case Apply("ln", (Power(base, exponent),)):
            return Product((exponent, Apply("ln", (base,))))
        case Apply("abs", (Product(factors),)):
            return Product(tuple(Apply("abs", (factor,)) for factor in factors))
        case Apply("abs", (inner,)):
            return inner if rng.random() < 0.5 else Root(Power(inner, number(2)), 2)
        case Product((Root(a, m), Root(b, n))) if m == n:
            return Root(Product((a, b)), m)
        case Apply("exp", (Apply("ln", (inner,)),)) | Apply("ln", (Apply("exp", (inner,)),)):
            return inner
        case Apply("sin" | "cos" as name, (Apply(inverse, (inner,)),)) if inverse == f"arc{name}":
            return inner
        case Apply("arcsin" | "arctan" as inverse, (Apply(name, (inner,)),)) if inverse == f"arc{name}":
            return inner
        case Apply("floor", (Sum((first, *rest)),)):
            return Sum((Apply("floor", (first,)), Apply("floor", (Sum(tuple(rest)),))))
        case Apply("exp", (Product((first, *rest)),)):
            return Power(Apply("exp", (first,)), Product(tuple(rest)))
    return node


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    match node:
        case Sum(parts):
            return Sum(tuple(map(change, parts)))
        case Product(parts):
            return Product(tuple(map(change, parts)))
        case Quotient(top, bottom):
            return Quotient(change(top), change(bottom))
        case Negation(operand):
            return Negation(change(operand))
        case Power(base, exponent):
            return Power(change(base), change(exponent))
        case Root(radicand, degree):
            return Root(change(radicand), degree)
        case Apply(name, arguments):
            return Apply(name, tuple(map(change, arguments)))
    return node


class Branches(Trees):
    """Expressions full of roots, moduli, logarithms and powers: where branches differ."""

    def tree(self, depth: int) -> Node:
        rng = self.rng
        if depth <= 0:
            return self.leaf()
        draw = rng.random()
        if draw < 0.3:
            inner = self.tree(depth - 1)
            choice = rng.randrange(4)
            if choice == 0:
                inner = Product((inner, self.tree(depth - 1)))
            elif choice == 1:
                inner = Quotient(inner, self.tree(depth - 1))
            elif choice == 2:
                inner = Power(inner, number(rng.randint(2, 4)))
            return Root(inner, rng.choice((2, 2, 2, 3, 4, 6)))
        if draw < 0.4:
            return Apply("abs", (self.tree(depth - 1),))
        if draw < 0.5:
            return Apply("ln", (self.tree(depth - 1),))
        if draw < 0.6:
            exponent = rng.choice((number(2), number(3), number(-1), number(Fraction(1, 2)), number(Fraction(2, 3))))
            return Power(self.tree(depth - 1), exponent if rng.random() < 0.7 else self.leaf())
        if draw < 0.66:
            name, inverse = rng.choice((("sin", "arcsin"), ("tan", "arctan"), ("exp", "ln"), ("floor", "floor")))
            first, second = (name, inverse) if rng.random() < 0.5 else (inverse, name)
            return Apply(first, (Apply(second, (self.tree(depth - 1),)),))
        if draw < 0.8:
            return Product((self.tree(depth - 1), self.tree(depth - 1)))
        if draw < 0.86:
            return Quotient(self.tree(depth - 1), self.tree(depth - 1))
        return Sum((self.tree(depth - 1), self.tree(depth - 1)))


def sloppy_pairs(seed: int, count: int) -> Iterator[Pair]:
    """Pairs that a school rule makes of one another, true in one region, or everywhere, or nowhere."""
    rng = Random(seed)
    while count:
        trees = Branches(rng, hostile=False, letters=rng.random() < 0.75, imaginary=rng.random() < 0.2)
        tree = trees.tree(rng.randint(1, 3))
        other = sloppy(rng, tree)
        if other != tree:
            count -= 1
            yield tree, other


class Regions(Trees):
    """Expressions of moduli, steps, extremes, roots and logarithms, with numbers far apart."""

    def leaf(self) -> Node:
        rng = self.rng
        if rng.random() < 0.55:
            return Symbol("x")
        if rng.random() < 0.2:
            return number(rng.choice((-1, 1)) * Fraction(10) ** rng.randint(-9, 12))
        return number(Fraction(rng.randint(-9, 9), rng.choice((1, 1, 1, 2, 7))))

    def tree(self, depth: int) -> Node:
        rng = self.rng
        if depth <= 0:
            return self.leaf()
        draw = rng.random()
        if draw < 0.4:
            name = rng.choice(("abs", "abs", "floor", "ceil", "max", "min", "sgn"))
            return Apply(name, tuple(self.tree(depth - 1) for _ in range(2 if name in ("max", "min") else 1)))
        if draw < 0.5:
            return Root(self.tree(depth - 1), rng.choice((2, 2, 3, 4)))
        if draw < 0.6:
            exponent = rng.choice((number(2), number(-1), number(Fraction(2, 3)), number(Fraction(1, 2)), number(3)))
            return Power(self.tree(depth - 1), exponent)
        if draw < 0.66:
            return Apply(rng.choice(("ln", "arcsin", "arctan", "sin", "exp")), (self.tree(depth - 1),))
        kind = Sum if draw < 0.86 else Product
        return kind((self.tree(depth - 1), self.tree(depth - 1)))


def regional(rng: Random, node: Node) -> Node:
    """The tree with a modulus, a step or an extreme replaced by what it is in one of its regions."""
    node = _rebuilt(node, lambda part: regional(rng, part))
    if rng.random() < 0.4:
        return node
    match node:
        case Apply("abs", (inner,)):
            return inner if rng.random() < 0.5 else Negation(inner)
        case Apply("max" | "min", arguments):
            return rng.choice(arguments)
        case Apply("floor" | "ceil" | "sgn", (_,)):
            return number(rng.randint(-1, 1))
        case Root(Power(base, Number(value)), degree):
            return Power(base, number(value / degree))
        case Power(Power(base, Number(inner)), Number(outer)):
            return Power(base, number(inner * outer))
        case Power(base, Number(value)) if value.denominator == 1 and value > 1 and rng.random() < 0.5:
            return Root(Power(base, number(2 * value)), 2)
    return node


def regional_pairs(seed: int, count: int) -> Iterator[Pair]:
    """Pairs that agree in one region of the line, which may be all of it."""
    rng = Random(seed)
    while count:
        tree = Regions(rng, hostile=False, letters=True).tree(rng.randint(1, 3))
        other = regional(rng, tree)
        if other != tree and Symbol("x") in (*walk(tree), *walk(other)):
            count -= 1
            yield tree, other


def mixed_pairs(seed: int, count: int) -> Iterator[tuple[str, Pair]]:
    """All three kinds in turn, each with its name."""
    sources = {"equal": equal_pairs(seed, count), "perturbed": perturbed_pairs(seed, count)}
    sources["hostile"] = hostile_pairs(seed, count)
    for index in range(count):
        name = ("hostile", "equal", "hostile", "perturbed")[index % 4]
        yield name, next(sources[name])


def main(seed: int, count: int) -> None:
    """Times, memory and findings of a run, and every pair that breaks a law."""
    times, found, start = [], Counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, (left, right) in mixed_pairs(seed, count):
        begun = time.process_time()
        comparison = algebra.compare(left, right)
        times.append((time.process_time() - begun, spell(left)[:200], spell(right)[:200]))
        found[name, comparison.finding.value, str(comparison.method), str(comparison.certainty)] += 1
        if (name, comparison.finding.value) in (("equal", "unequal"), ("perturbed", "equal")):
            print("LAW BROKEN", name, comparison, left, right)
    times.sort()
    for key, number_of in sorted(found.items()):
        print(number_of, *key)
    print(
        "ms", [round(1e3 * times[min(len(times) - 1, int(len(times) * q))][0], 2) for q in (0.5, 0.9, 0.99, 0.999, 1)]
    )
    for entry in times[-5:]:
        print(entry)
    print("MiB above the start:", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1024)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
