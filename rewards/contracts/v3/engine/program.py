"""Two trees as one straight list of instructions, shared parts once: what every tier of the engine runs over.

Each instruction names earlier ones by their place, so that a tier is a loop and never a recursion. Derived functions
are written out (`tan u` as `sin u / cos u`, `log_b x` as `ln x / ln b`, `sinh u` by exponentials). Rationals are folded
while their size, known before each step, stays within the limits; what would be larger stays an instruction. Parts that
a fold makes superfluous (`0 * (1/x)`) stay in the list, because a side has a value only where all its parts have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import fmpq, fmpz

from veriward.rewards.contracts.v3.limits import Limits
from veriward.rewards.contracts.v3.tree import (
    Apply,
    Call,
    Constant,
    Degrees,
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
)

RATIONAL, SYMBOL, PI, EULER, IMAGINARY, INFINITY, ADD, MULTIPLY, POWER, ROOT, EXPONENTIAL, RAISE, FUNCTION, OPAQUE = (
    range(14)
)
"""Kinds of instruction. POWER has an integer exponent, ROOT a degree, RAISE any other exponent, FUNCTION a name of
ANALYTIC, and OPAQUE is equal only to itself."""

ANALYTIC = frozenset(
    "sin cos asin acos atan ln abs floor factorial binomial sgn re im conjugate arg".split()  # noqa: SIM905
)

Instruction = Any
"""A tuple: its kind, then places of earlier instructions, numbers or names."""

MAX_EXPONENT_BITS = 4_096
"""Bits of an integer exponent that a tier will look at: `2^(9^9999)`."""
MAX_NUMERIC_DEGREE = 1 << 30
"""Degree of a root that ball arithmetic takes as such; a machine word holds it."""
SMALL_CHOICE = 8
"""`binomial(n, 3)` is written out as a polynomial up to this lower number."""


class UndefinedError(ArithmeticError):
    """A part that has no value whatever the letters stand for."""


@dataclass(slots=True)
class Program:
    """Instructions of both sides; `left` and `right` are the places of the two results."""

    code: list[Instruction] = field(default_factory=list)
    left: int | None = None
    """None: the side is provably undefined."""
    right: int | None = None
    left_parts: set[int] = field(default_factory=set)
    """Every instruction that the left side wrote or met, used or not."""
    right_parts: set[int] = field(default_factory=set)
    symbols: list[str] = field(default_factory=list)
    complex: bool = False
    """Values may be complex: `i` occurs, a constant is not real, or there are no letters at all."""
    exponent_letters: frozenset[str] = frozenset()
    """Letters in exponents: over a base that is not positive they stand for whole numbers, as n in `(-1)^n`."""
    opaque: bool = False
    """Some part has no numbers to give."""
    bare_log: bool = False
    """A logarithm without a base was met, and read with the base that was given."""
    folded_bits: int = 0
    """Bits of the largest rational folded."""
    folding_work: int = 0
    """Word operations spent on folding."""


def lower(left: Node, right: Node, limits: Limits, *, log_base: int | None = 10) -> Program:
    """Both trees as one program. `log_base` is what a logarithm without a base means, None for e."""
    builder = _Builder(limits, log_base)
    program = builder.program
    builder.parts = program.left_parts
    program.left = builder.side(left)
    builder.parts = program.right_parts
    program.right = builder.side(right)
    if not program.symbols:
        program.complex = True
    program.exponent_letters = _letters_in_exponents(program)
    return program


def _letters_in_exponents(program: Program) -> frozenset[str]:
    """The letters that occur in an exponent that is not a number."""
    pending = [step[2] for step in program.code if step[0] == RAISE]
    seen: set[int] = set()
    while pending:
        place = pending.pop()
        if place not in seen:
            seen.add(place)
            pending.extend(operands(program.code[place]))
    return frozenset(program.code[place][1] for place in seen if program.code[place][0] == SYMBOL)


def operands(step: Instruction) -> tuple[int, ...]:
    """The places an instruction is made of."""
    kind = step[0]
    if kind in (ADD, MULTIPLY):
        return tuple(step[1])
    if kind in (POWER, ROOT, EXPONENTIAL):
        return (step[1],)
    if kind == RAISE:
        return (step[1], step[2])
    return tuple(step[2]) if kind in (FUNCTION, OPAQUE) else ()


_ZERO, _ONE, _MINUS = fmpq(0), fmpq(1), fmpq(-1)


class _Builder:
    def __init__(self, limits: Limits, log_base: int | None) -> None:
        self.program = Program()
        self.limits = limits
        self.log_base = log_base
        self.places: dict[Instruction, int] = {}
        self.parts: set[int] = set()

    # ------------------------------------------------------------------------------------- instructions

    def emit(self, *instruction: object) -> int:
        place = self.places.get(instruction)
        if place is None:
            place = len(self.program.code)
            self.places[instruction] = place
            self.program.code.append(instruction)
        self.parts.add(place)
        return place

    def rational(self, value: fmpq) -> int:
        key = (RATIONAL, int(value.p), int(value.q))
        place = self.places.get(key)
        if place is None:
            place = len(self.program.code)
            self.places[key] = place
            self.program.code.append((RATIONAL, value))
            self.program.folded_bits = max(self.program.folded_bits, value.height_bits())
        self.parts.add(place)
        return place

    def constant(self, place: int) -> fmpq | None:
        instruction = self.program.code[place]
        return instruction[1] if instruction[0] == RATIONAL else None

    def affordable(self, bits: int) -> bool:
        """Whether a rational of that size may be computed: its size and the work so far are bounded beforehand."""
        if bits > self.limits.max_bits:
            return False
        words = 1 + bits // 64
        self.program.folding_work += words if words < 8 else words * (words.bit_length() ** 2) // 2
        return self.program.folding_work <= self.limits.max_work // 4

    # --------------------------------------------------------------------------------------------- nodes

    def side(self, root: Node) -> int | None:
        """The place of a tree's value, which may be an infinity; parts first, without recursion."""
        places: dict[int, int] = {}
        pending = [root]
        try:
            while pending:
                node = pending[-1]
                if id(node) in places:
                    pending.pop()
                    continue
                parts = _parts(node)
                waiting = [part for part in parts if id(part) not in places]
                if waiting:
                    pending.extend(reversed(waiting))
                    continue
                pending.pop()
                places[id(node)] = self.built(node, [places[id(part)] for part in parts])
        except UndefinedError:
            return None
        return places[id(root)]

    def built(self, node: Node, parts: list[int]) -> int:
        """The place of a node's value, given those of its parts."""
        if len(parts) > 1 or not isinstance(node, Negation | Sum | Product):
            for part in parts:
                if self.infinite(part):
                    raise UndefinedError
        match node:
            case Number(value):
                return self.rational(fmpq(value.numerator, value.denominator))
            case Symbol(name):
                if name not in self.program.symbols:
                    self.program.symbols.append(name)
                return self.emit(SYMBOL, name)
            case Constant(name):
                return self.named(name)
            case Negation():
                return self.negated(parts[0])
            case Sum():
                return parts[0] if len(parts) == 1 else self.sum(parts)
            case Product():
                return parts[0] if len(parts) == 1 else self.product(parts)
            case Quotient():
                return self.over(*parts)
            case Power(Constant("e")):
                return self.exponential(parts[1])
            case Power():
                return self.raised(*parts)
            case Root(_, degree):
                return self.root(parts[0], degree)
            case Apply(name):
                return self.applied(name, parts)
            case Degrees():
                return self.product([parts[0], self.rational(fmpq(1, 180)), self.emit(PI)])
            case Call(name):
                return self.opaque(f"call {name}", parts)
        return self.opaque(spell(node), [])

    def infinite(self, place: int) -> bool:
        return bool(self.program.code[place][0] == INFINITY)

    def named(self, name: str) -> int:
        if name == "pi":
            return self.emit(PI)
        if name == "e":
            return self.emit(EULER)
        if name == "i":
            return self.imaginary()
        return self.emit(INFINITY, 1)

    def imaginary(self) -> int:
        self.program.complex = True
        return self.emit(IMAGINARY)

    def opaque(self, key: str, arguments: list[int]) -> int:
        self.program.opaque = True
        return self.emit(OPAQUE, key, tuple(arguments))

    # ---------------------------------------------------------------------------------------- arithmetic

    def negated(self, place: int) -> int:
        if self.infinite(place):
            return self.emit(INFINITY, -self.program.code[place][1])
        return self.product([self.rational(_MINUS), place])

    def sum(self, places: Sequence[int]) -> int:
        total, rest = _ZERO, []
        pending = list(places)
        while pending:
            place = pending.pop()
            instruction = self.program.code[place]
            if instruction[0] == RATIONAL:
                if total == 0:
                    total = instruction[1]
                elif self.affordable(total.height_bits() + instruction[1].height_bits() + 1):
                    total += instruction[1]
                else:
                    rest.append(place)
            elif instruction[0] == ADD and len(pending) < self.limits.max_tokens:
                pending.extend(instruction[1])
            else:
                rest.append(place)
        if not rest:
            return self.rational(total)
        if total != 0:
            rest.append(self.rational(total))
        return rest[0] if len(rest) == 1 else self.emit(ADD, tuple(sorted(rest)))

    def product(self, places: Sequence[int]) -> int:
        total, rest = _ONE, []
        pending = list(places)
        while pending:
            place = pending.pop()
            instruction = self.program.code[place]
            if instruction[0] == RATIONAL:
                if total == _ONE:
                    total = instruction[1]
                elif self.affordable(total.height_bits() + instruction[1].height_bits()):
                    total *= instruction[1]
                else:
                    rest.append(place)
            elif instruction[0] == MULTIPLY and len(pending) < self.limits.max_tokens:
                pending.extend(instruction[1])
            else:
                rest.append(place)
        if not rest or total == 0:
            return self.rational(total)
        if total != _ONE:
            rest.append(self.rational(total))
        return rest[0] if len(rest) == 1 else self.emit(MULTIPLY, tuple(sorted(rest)))

    def power(self, base: int, exponent: int) -> int:
        """A base to an integer exponent of any size."""
        instruction = self.program.code[base]
        value = self.constant(base)
        if value is not None:
            if value == 0:
                if exponent <= 0:
                    raise UndefinedError
                return base
            if value == _ONE or (value == _MINUS and exponent % 2 == 0):
                return self.rational(_ONE)
            if value == _MINUS:
                return base
            if self.affordable(value.height_bits() * abs(exponent)):
                return self.rational(value**exponent)
        elif exponent == 1:
            return base
        elif instruction[0] == POWER and instruction[2] * exponent != 0:
            inner, product = instruction[1], instruction[2] * exponent
            if product.bit_length() <= self.limits.max_bits:
                return self.power(inner, product)
        return self.emit(POWER, base, exponent)

    def raised(self, base: int, exponent: int) -> int:
        value = self.constant(exponent)
        if value is None:
            if self.program.code[base][0] == EULER:
                return self.exponential(exponent)
            return self.emit(RAISE, base, exponent)
        numerator, denominator = int(value.p), int(value.q)
        if denominator == 1:
            return self.power(base, numerator)
        if denominator > MAX_NUMERIC_DEGREE:
            return self.emit(RAISE, base, exponent)
        return self.power(self.root(base, denominator), numerator)

    def root(self, radicand: int, degree: int) -> int:
        if degree == 1:
            return radicand
        if degree < 1 or degree > MAX_NUMERIC_DEGREE:
            return self.opaque(f"root of degree {degree}", [radicand])
        value = self.constant(radicand)
        if value is None:
            return self.emit(ROOT, radicand, degree)
        if value < 0:
            if degree % 2:
                return self.negated(self.root(self.rational(-value), degree))
            self.program.complex = True
            if degree == 2:
                return self.product([self.imaginary(), self.root(self.rational(-value), 2)])
            return self.emit(ROOT, radicand, degree)
        exact = _exact_root(value, degree) if self.affordable(value.height_bits()) else None
        return self.emit(ROOT, radicand, degree) if exact is None else self.rational(exact)

    def exponential(self, exponent: int) -> int:
        value = self.constant(exponent)
        if value is not None and value.q == 1:
            return self.power(self.emit(EULER), int(value.p))
        return self.emit(EXPONENTIAL, exponent)

    # ------------------------------------------------------------------------------------------ functions

    def applied(self, name: str, arguments: list[int]) -> int:
        rule = _RULES.get((name, len(arguments)))
        if rule is not None:
            return rule(self, *arguments)
        if name in ("max", "min", "gcd", "lcm"):
            return self.chosen(name, arguments)
        return self.opaque(f"function {name}", arguments)

    def function(self, name: str, *arguments: int) -> int:
        return self.emit(FUNCTION, name, arguments)

    def scaled(self, place: int, numerator: int, denominator: int = 1) -> int:
        return self.product([place, self.rational(fmpq(numerator, denominator))])

    def shifted(self, place: int, by: int) -> int:
        return self.sum([place, self.rational(fmpq(by))])

    def inverse(self, place: int) -> int:
        return self.power(place, -1)

    def over(self, top: int, bottom: int) -> int:
        return self.product([top, self.inverse(bottom)])

    def sin(self, angle: int) -> int:
        return angle if self.constant(angle) == _ZERO else self.function("sin", angle)

    def cos(self, angle: int) -> int:
        return self.rational(_ONE) if self.constant(angle) == _ZERO else self.function("cos", angle)

    def ln(self, argument: int) -> int:
        value = self.constant(argument)
        if value is not None:
            if value == 0:
                raise UndefinedError
            if value == _ONE:
                return self.rational(_ZERO)
            if value < 0:
                self.program.complex = True
        elif self.program.code[argument][0] == EULER:
            return self.rational(_ONE)
        return self.function("ln", argument)

    def log(self, base: int, argument: int) -> int:
        value = self.constant(base)
        if value is not None and (value <= 0 or value == _ONE):
            raise UndefinedError
        top = self.ln(argument)
        return self.over(top, self.ln(base))

    def log_without_base(self, argument: int) -> int:
        self.program.bare_log = True
        if self.log_base is None:
            return self.ln(argument)
        return self.log(self.rational(fmpq(self.log_base)), argument)

    def absolute(self, argument: int) -> int:
        value = self.constant(argument)
        return self.function("abs", argument) if value is None else self.rational(abs(value))

    def floor(self, argument: int) -> int:
        value = self.constant(argument)
        return self.function("floor", argument) if value is None else self.rational(fmpq(value.floor()))

    def ceil(self, argument: int) -> int:
        return self.negated(self.floor(self.negated(argument)))

    def sign(self, argument: int) -> int:
        value = self.constant(argument)
        return self.function("sgn", argument) if value is None else self.rational(fmpq((value > 0) - (value < 0)))

    def factorial(self, argument: int) -> int:
        value = self.constant(argument)
        if value is None:
            return self.function("factorial", argument)
        if value.q != 1:
            return self.opaque("factorial", [argument])
        if value < 0:
            raise UndefinedError
        if value.p.bit_length() <= 20 and self.affordable(int(value.p) * int(value.p).bit_length()):
            return self.rational(fmpq(factorial(int(value.p))))
        return self.function("factorial", argument)

    def double_factorial(self, argument: int) -> int:
        value = self.constant(argument)
        if value is not None and value.q == 1 and value >= -1 and value.p.bit_length() <= 16:
            number = int(value.p)
            if self.affordable(number * number.bit_length()):
                result = fmpz(1)
                for factor in range(number, 1, -2):
                    result *= factor
                return self.rational(fmpq(result))
        return self.opaque("double factorial", [argument])

    def binomial(self, upper: int, lower: int) -> int:
        n, k = self.constant(upper), self.constant(lower)
        if k is not None and k.q == 1 and k >= 0:
            if n is not None and n.q == 1 and n >= 0 and n.p.bit_length() <= 60:
                if k > n:
                    return self.rational(_ZERO)
                small = int(min(k, n - k).p)
                if self.affordable(small * int(n.p).bit_length()):
                    return self.rational(fmpq(fmpz.bin_uiui(int(n.p), small)))
            elif k <= SMALL_CHOICE:
                factors = [self.shifted(upper, -step) for step in range(int(k.p))]
                return self.scaled(self.product(factors), 1, int(factorial(int(k.p))))
        return self.function("binomial", upper, lower)

    def permutations(self, upper: int, lower: int) -> int:
        n, k = self.constant(upper), self.constant(lower)
        if n is not None and k is not None and n.q == k.q == 1 and 0 <= n < k:
            return self.rational(_ZERO)
        top = self.factorial(upper)
        return self.over(top, self.factorial(self.sum([upper, self.negated(lower)])))

    def modulo(self, value: int, modulus: int) -> int:
        whole = self.floor(self.over(value, modulus))
        return self.sum([value, self.negated(self.product([modulus, whole]))])

    def chosen(self, name: str, arguments: list[int]) -> int:
        values = [self.constant(argument) for argument in arguments]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            if name in ("max", "min"):
                return self.rational(max(known) if name == "max" else min(known))
            if all(value.q == 1 for value in known):
                return self.whole_divisor(name, [value.p for value in known])
        if name in ("max", "min"):
            return self.extreme(1 if name == "max" else -1, arguments)
        return self.opaque(f"function {name}", sorted(set(arguments)))

    def whole_divisor(self, name: str, values: list[fmpz]) -> int:
        result = abs(values[0])
        for value in values[1:]:
            if not self.affordable(result.bit_length() + value.bit_length()):
                return self.opaque(f"function {name}", sorted({self.rational(fmpq(value)) for value in values}))
            result = result.gcd(value) if name == "gcd" else result.lcm(value)
        return self.rational(fmpq(result))

    def extreme(self, sign: int, arguments: list[int]) -> int:
        """The larger of two is half of their sum and their distance; the smaller half of sum less distance."""
        result = arguments[0]
        for argument in arguments[1:]:
            distance = self.absolute(self.sum([result, self.negated(argument)]))
            result = self.scaled(self.sum([result, argument, self.scaled(distance, sign)]), 1, 2)
        return result

    def inverse_cotangent(self, argument: int) -> int:
        """`arctan(1/u)` of a positive u; of others conventions differ, and it is compared as it is written."""
        if self.surely_positive(argument):
            return self.function("atan", self.inverse(argument))
        return self.opaque("function arccot", [argument])

    def surely_positive(self, place: int) -> bool:
        pending = [place]
        while pending:
            step = self.program.code[pending.pop()]
            if step[0] in (MULTIPLY, POWER, ROOT):
                pending.extend(operands(step))
            elif not (step[0] in (PI, EULER) or (step[0] == RATIONAL and step[1] > 0)):
                return False
        return True

    def hyperbolic(self, argument: int, sign: int) -> int:
        """`e^u + e^-u`, or their difference."""
        other = self.exponential(self.negated(argument))
        return self.sum([self.exponential(argument), self.scaled(other, sign)])

    def real_part(self, name: str, argument: int) -> int:
        self.program.complex = True
        return self.function(name, argument)


def factorial(number: int) -> fmpz:
    """The factorial of a number whose size was looked at."""
    return fmpz.fac_ui(number)  # type: ignore[arg-type]


def _parts(node: Node) -> tuple[Node, ...]:
    """What a node's value is made of; nothing for a node that is only compared as it is written."""
    match node:
        case Negation(operand) | Degrees(operand):
            return (operand,)
        case Sum(parts) | Product(parts) | Apply(_, parts) | Call(_, parts):
            return parts
        case Quotient(first, second) | Power(first, second):
            return first, second
        case Root(radicand):
            return (radicand,)
    return ()


def _exact_root(value: fmpq, degree: int) -> fmpq | None:
    """The rational root of a positive rational, if there is one."""
    if value == 0 or value == _ONE:
        return value
    if degree > value.height_bits():
        return None
    top, bottom = value.p.root(degree), value.q.root(degree)
    return fmpq(top, bottom) if top**degree == value.p and bottom**degree == value.q else None


_RULES: dict[tuple[str, int], Callable[..., int]] = {
    ("sin", 1): _Builder.sin,
    ("cos", 1): _Builder.cos,
    ("tan", 1): lambda b, u: b.over(b.sin(u), b.cos(u)),
    ("cot", 1): lambda b, u: b.over(b.cos(u), b.sin(u)),
    ("sec", 1): lambda b, u: b.inverse(b.cos(u)),
    ("csc", 1): lambda b, u: b.inverse(b.sin(u)),
    ("arcsin", 1): lambda b, u: b.function("asin", u),
    ("arccos", 1): lambda b, u: b.function("acos", u),
    ("arctan", 1): lambda b, u: b.function("atan", u),
    ("arccot", 1): _Builder.inverse_cotangent,
    ("arcsec", 1): lambda b, u: b.function("acos", b.inverse(u)),
    ("arccsc", 1): lambda b, u: b.function("asin", b.inverse(u)),
    ("sinh", 1): lambda b, u: b.scaled(b.hyperbolic(u, -1), 1, 2),
    ("cosh", 1): lambda b, u: b.scaled(b.hyperbolic(u, 1), 1, 2),
    ("tanh", 1): lambda b, u: b.over(b.hyperbolic(u, -1), b.hyperbolic(u, 1)),
    ("coth", 1): lambda b, u: b.over(b.hyperbolic(u, 1), b.hyperbolic(u, -1)),
    ("sech", 1): lambda b, u: b.scaled(b.inverse(b.hyperbolic(u, 1)), 2),
    ("csch", 1): lambda b, u: b.scaled(b.inverse(b.hyperbolic(u, -1)), 2),
    ("arcsinh", 1): lambda b, u: b.ln(b.sum([u, b.root(b.shifted(b.power(u, 2), 1), 2)])),
    ("arccosh", 1): lambda b, u: b.ln(b.sum([u, b.product([b.root(b.shifted(u, 1), 2), b.root(b.shifted(u, -1), 2)])])),
    ("arctanh", 1): lambda b, u: b.scaled(
        b.sum([b.ln(b.shifted(u, 1)), b.negated(b.ln(b.shifted(b.negated(u), 1)))]), 1, 2
    ),
    ("ln", 1): _Builder.ln,
    ("exp", 1): _Builder.exponential,
    ("log", 1): _Builder.log_without_base,
    ("log", 2): _Builder.log,
    ("abs", 1): _Builder.absolute,
    ("floor", 1): _Builder.floor,
    ("ceil", 1): _Builder.ceil,
    ("sgn", 1): _Builder.sign,
    ("factorial", 1): _Builder.factorial,
    ("double_factorial", 1): _Builder.double_factorial,
    ("binomial", 2): _Builder.binomial,
    ("permutations", 2): _Builder.permutations,
    ("mod", 2): _Builder.modulo,
    ("re", 1): lambda b, u: b.real_part("re", u),
    ("im", 1): lambda b, u: b.real_part("im", u),
    ("conjugate", 1): lambda b, u: b.real_part("conjugate", u),
    ("arg", 1): lambda b, u: b.real_part("arg", u),
}
"""Known functions in terms of the instructions."""
