"""The scalar engine: whether two expressions have one value, by tiers, each with a bounded cost and a named certainty.

Letters are real. Two expressions are equal if they agree wherever both are defined (for constants and where `i` occurs:
as complex numbers, principal branches); what has no value equals nothing. Decimals are exact and nothing is rounded.
The odd root of a negative real is the real one, also as a power: `(-8)^(1/3)` is -2. Letters in an exponent stand for
whole numbers wherever the base is not positive, as in `(-1)^n`.

Tiers: the spelling; exact rationals; balls at points of several scales and signs, which can only prove 'unequal';
exact normal forms; separation bounds for algebraic constants; residues modulo a large prime; agreement to hundreds of
digits at several points ('probable'), unless a modulus, a step or a branch may make regions that lie between them. What
none of them decides is undecided, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import blake2b
from itertools import islice
from threading import RLock

from flint import arb, fmpq

from veriward.rewards.contracts.v3.comparison import NO_COST, Comparison, Finding
from veriward.rewards.contracts.v3.engine import balls, domains, modular, normal, preflight, separation
from veriward.rewards.contracts.v3.engine.points import points as points_of
from veriward.rewards.contracts.v3.engine.program import (
    ADD,
    EULER,
    INFINITY,
    MULTIPLY,
    PI,
    POWER,
    RATIONAL,
    SYMBOL,
    Program,
    lower,
)
from veriward.rewards.contracts.v3.limits import LIMITS, Limits
from veriward.rewards.contracts.v3.tree import (
    Node,
    Number,
    Symbol,
    spell,
)
from veriward.rewards.verdict import Certainty, Cost, Method, Reason, Step

_LOCK = RLock()
"""FLINT's precision is one number for the whole process."""

_FIRST_POINTS, _ALL_POINTS = 3, 20
"""Points asked before and after the exact tier."""
_KINK_POINTS = 160
"""Points asked where a root, a modulus or a step may divide the line into regions."""
_FIRST_PRECISION, _MORE_PRECISION = 64, 256
_AGREEMENT_BITS, _AGREEMENT_GUARD, _USUAL_PRECISION = 1_536, 512, 2_304
"""How far below the smallest part of either side a difference must be to be called agreement, the bits for rounding
beyond, and the precision that most points need: `x + 10^-900` is not `x`."""
_CANDIDATE_POINTS, _AGREEMENT_POINTS = 18, 6
_ENOUGH_POINTS, _ENOUGH_KINK_POINTS = 3, 16
"""Points where both sides are defined that agreement needs, without and with regions."""
_AGREEMENT_WORK = 6
"""Times the limit of exact work that the last tier may take: near 20 ms at the limit of 2 million."""
_MAX_QUICK_STEPS = 12_000
"""Instructions run at the first precision in one search for points: near 15 ms."""


def compare(left: Node, right: Node, *, limits: Limits = LIMITS, budget: int | None = None) -> Comparison:
    """What is found of two scalars. `budget` is the work left to this part of a larger answer."""
    if type(left) is Number and type(right) is Number:
        return _EQUAL_RATIONALS if left.value == right.value else _UNEQUAL_RATIONALS
    with _LOCK:
        spelled = spell(left), spell(right)
        if spelled[0] <= spelled[1]:
            return _in_order(left, right, spelled, limits, budget)
        return _mirrored(_in_order(right, left, spelled[::-1], limits, budget))


def _in_order(left: Node, right: Node, spelled: tuple[str, str], limits: Limits, budget: int | None) -> Comparison:
    """The comparison of two trees whose spellings are in order: which side is which cannot matter."""
    first = _Trial(left, right, spelled, limits, budget, 10).run()
    if not first.bare_log or first.result.method is Method.SPELLING:
        return first.result
    second = _Trial(left, right, spelled, limits, budget, None).run()
    cost = replace(first.result.cost, work=first.result.cost.work + second.result.cost.work)
    if first.result.finding is second.result.finding:
        return replace(first.result, cost=cost)
    return Comparison(
        finding=Finding.UNDECIDED,
        method=None,
        certainty=None,
        reason=Reason.AMBIGUOUS_NOTATION,
        cost=cost,
        steps=(*first.result.steps, ("logarithm without base", "another finding for base e than for base 10")),
    )


def _mirrored(comparison: Comparison) -> Comparison:
    if comparison.finding is Finding.LEFT_UNDEFINED:
        return replace(comparison, finding=Finding.RIGHT_UNDEFINED)
    if comparison.finding is Finding.RIGHT_UNDEFINED:
        return replace(comparison, finding=Finding.LEFT_UNDEFINED)
    return comparison


def value(node: Node, *, limits: Limits = LIMITS) -> Fraction | None:
    """The exact value of a rational expression within the limits; None for any other."""
    if type(node) is Number:
        return node.value
    with _LOCK:
        program = lower(node, node, limits)
        if program.left is None or program.bare_log or program.code[program.left][0] != RATIONAL:
            return None
        if (
            len(program.left_parts) > 1
            and not domains.surely_defined(node)
            and has_value(node, limits=limits) is not True
        ):
            return None
        result = program.code[program.left][1]
        return Fraction(int(result.p), int(result.q))


def sign(node: Node, *, limits: Limits = LIMITS) -> int | None:
    """-1, 0 or 1, proved, of a real constant, an infinity included; None where that is not known."""
    if type(node) is Number:
        return (node.value > 0) - (node.value < 0)
    with _LOCK:
        program = lower(node, node, limits)
        if program.left is None or program.symbols or program.opaque or program.bare_log:
            return None
        instruction = program.code[program.left]
        if instruction[0] == INFINITY:
            return int(instruction[1])
        for precision in (_FIRST_PRECISION, _MORE_PRECISION, 4 * _MORE_PRECISION):
            values = balls.evaluate(program, {}, precision)
            if values is None:
                continue
            ball = values[program.left]
            if type(ball) is not arb:
                continue
            if balls.excludes_zero(ball):
                return 1 if ball > 0 else -1
        zero = compare(node, Number(Fraction(0)), limits=limits)
        return 0 if zero.finding is Finding.EQUAL and zero.certainty is Certainty.PROVED else None


def has_value(node: Node, *, limits: Limits = LIMITS) -> bool | None:
    """True: it has a value, for some letters at least. False: provably none. None: not known."""
    if domains.surely_defined(node):
        return True
    with _LOCK:
        spelled = spell(node)
        return _Trial(node, node, (spelled, spelled), limits, None, 10).has_value()


def is_narrower(left: Node, right: Node, *, limits: Limits = LIMITS) -> bool:
    """Whether the left side provably has no real value where the right side has one: `x + 0 sqrt(-x)` beside `x`.

    Asked at points of several scales and signs. A divisor that is zero, or `ln 0`, narrows nothing; complex values
    are never narrower.
    """
    if type(left) is Number or type(left) is Symbol or not domains.may_narrow(left):
        return False
    with _LOCK:
        program = lower(left, right, limits)
        seed = blake2b(f"{spell(left)}\n{spell(right)}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return domains.is_narrower(program, seed)


# -------------------------------------------------------------------------------------------------- a trial

_EQUAL_RATIONALS = Comparison(
    finding=Finding.EQUAL, method=Method.RATIONAL, certainty=Certainty.PROVED, steps=(("rational", "equal"),)
)
_UNEQUAL_RATIONALS = Comparison(
    finding=Finding.UNEQUAL,
    method=Method.RATIONAL,
    certainty=Certainty.PROVED,
    reason=Reason.NOT_EQUAL,
    steps=(("rational", "different"),),
)


@dataclass(slots=True)
class _Trial:
    """One run through the tiers, under one reading of logarithms without a base."""

    left: Node
    right: Node
    spelled: tuple[str, str]
    limits: Limits
    budget: int | None
    log_base: int | None
    steps: list[Step] = field(default_factory=list)
    cost: Cost = NO_COST
    spent: int = 0
    """Word operations of ball arithmetic so far."""
    bare_log: bool = False
    result: Comparison = _EQUAL_RATIONALS
    program: Program = field(default_factory=Program)
    seed: bytes = b""
    met: list[tuple[balls.Point, balls.Values]] = field(default_factory=list)
    """Points asked where both sides are defined, each with the values there."""

    def run(self) -> _Trial:
        result = self.decided()
        work = result.cost.work + self.spent
        self.result = replace(result, cost=replace(self.cost, work=work)) if work else result
        return self

    # ------------------------------------------------------------------------------------------- the order

    def decided(self) -> Comparison:
        if self.spelled[0] == self.spelled[1]:
            return self.same_spelling()
        self.prepare()
        program = self.program
        if program.left is None or program.right is None:
            return self.undefined(left=program.left is None)
        kinds = program.code[program.left][0], program.code[program.right][0]
        if INFINITY in kinds:
            return self.infinities(kinds)
        if kinds == (RATIONAL, RATIONAL) and all(instruction[0] == RATIONAL for instruction in program.code):
            self.steps.append(("rational", "equal" if program.left == program.right else "different"))
            return self.found(program.left == program.right, Method.RATIONAL, Certainty.PROVED)
        return self.constants() if not program.symbols else self.functions()

    def prepare(self) -> None:
        self.program = lower(self.left, self.right, self.limits, log_base=self.log_base)
        self.bare_log = self.program.bare_log
        self.seed = blake2b("\n".join(sorted(self.spelled)).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def same_spelling(self) -> Comparison:
        if not domains.surely_defined(self.left) and self.has_value() is False:
            return self.undefined(left=True)
        self.steps.append(("spelling", "the same"))
        return self.found(True, Method.SPELLING, Certainty.PROVED)

    def infinities(self, kinds: tuple[int, int]) -> Comparison:
        program = self.program
        if kinds == (INFINITY, INFINITY):
            self.steps.append(("kind", "infinities"))
            return self.found(program.left == program.right, Method.KIND, Certainty.PROVED)
        if program.opaque:
            return self.undecided(Reason.NOT_SETTLED)
        form = self.normal_form()
        if form.finding in (Finding.LEFT_UNDEFINED, Finding.RIGHT_UNDEFINED):
            return self.undefined(left=form.finding is Finding.LEFT_UNDEFINED)
        self.steps.append(("kind", "one side is infinite, the other finite"))
        return self.found(False, Method.KIND, Certainty.PROVED)

    def constants(self) -> Comparison:
        """Both sides are constants: one value each, so what is defined is known, or nothing is."""
        defined = False
        for precision in (_FIRST_PRECISION, _MORE_PRECISION):
            values = self.values({}, precision)
            if values is not None:
                if self.apart(values):
                    return self.refuted(precision)
                if not defined:
                    self.met.append(({}, values))
                defined = True
        if not defined and balls.towers_apart(self.program, {}):
            self.steps.append(("balls", "logarithms apart"))
            return self.found(False, Method.BALLS, Certainty.PROVED)
        self.steps.append(("balls", "not apart" if defined else "not provably defined"))
        form = self.normal_form()
        if form.finding in (Finding.LEFT_UNDEFINED, Finding.RIGHT_UNDEFINED):
            return self.undefined(left=form.finding is Finding.LEFT_UNDEFINED)
        if form.finding is not Finding.UNDECIDED and (defined or self.defined_but_opaque({})):
            return self.found(form.finding is Finding.EQUAL, Method.NORMAL_FORM, Certainty.PROVED)
        if self.exhausted():
            return self.undecided(Reason.OVER_BUDGET)
        bound = separation.decide(self.program, self.limits)
        self.spent += bound.work
        self.steps.append(("separation", bound.note))
        if bound.finding in (Finding.LEFT_UNDEFINED, Finding.RIGHT_UNDEFINED):
            return self.undefined(left=bound.finding is Finding.LEFT_UNDEFINED)
        if bound.finding is not Finding.UNDECIDED:
            return self.found(bound.finding is Finding.EQUAL, Method.SEPARATION, Certainty.PROVED)
        residues = self.residues(form)
        if residues is not None:
            return residues
        return self.high_precision(form)

    def functions(self) -> Comparison:
        """At least one letter: refuted by a point, equal by a proof."""
        points = points_of(self.program, self.seed)
        if self.asked(islice(points, _FIRST_POINTS)):
            return self.refuted(_FIRST_PRECISION)
        if not self.met and balls.towers_apart(self.program, next(points_of(self.program, self.seed))):
            self.steps.append(("balls", "logarithms apart"))
            return self.found(False, Method.BALLS, Certainty.PROVED)
        form = self.normal_form()
        if form.finding in (Finding.LEFT_UNDEFINED, Finding.RIGHT_UNDEFINED):
            return self.undefined(left=form.finding is Finding.LEFT_UNDEFINED)
        if form.finding is not Finding.UNDECIDED and (self.met or self.rational_functions()):
            return self.found(form.finding is Finding.EQUAL, Method.NORMAL_FORM, Certainty.PROVED)
        if form.finding is Finding.EQUAL and self.program.opaque:
            points = points_of(self.program, self.seed)
            if any(self.defined_but_opaque(point) for point in islice(points, _ALL_POINTS)):
                return self.found(True, Method.NORMAL_FORM, Certainty.PROVED)
        if self.exhausted():
            return self.undecided(Reason.OVER_BUDGET)
        more = _KINK_POINTS if domains.is_kinked(self.program) else _ALL_POINTS
        more = max(_ALL_POINTS, min(more, _MAX_QUICK_STEPS // len(self.program.code)))
        if self.asked(islice(points, more)):
            return self.refuted(_FIRST_PRECISION)
        self.steps.append(("balls", f"not apart at {len(self.met)} points"))
        if form.finding is not Finding.UNDECIDED:
            if self.met:
                return self.found(form.finding is Finding.EQUAL, Method.NORMAL_FORM, Certainty.PROVED)
            return self.undecided(Reason.NOT_SETTLED)
        residues = self.residues(form)
        if residues is not None:
            return residues
        if len(self.met) < (_ENOUGH_KINK_POINTS if domains.is_kinked(self.program) else _ENOUGH_POINTS):
            return self.last(form)
        return self.high_precision(form)

    # ----------------------------------------------------------------------------------------- the tiers

    def asked(self, points: Iterator[dict[str, fmpq]]) -> bool:
        """Whether one of the points tells the sides apart; those where both are defined are kept."""
        for point in points:
            values = self.values(point, _FIRST_PRECISION)
            if values is None:
                continue
            if self.apart(values):
                return True
            self.met.append((point, values))
        return False

    def values(self, point: balls.Point, precision: int) -> balls.Values | None:
        """The values of all parts at a point; None where one is not defined."""
        self.spent += balls.cost(self.program, precision)
        return balls.evaluate(self.program, point, precision)

    def exhausted(self) -> bool:
        """Whether the parts of an answer have used what they share."""
        return self.budget is not None and self.spent + self.cost.work > self.budget

    def apart(self, values: balls.Values) -> bool:
        left, right = self.ends(values)
        return balls.apart(left, right)

    def ends(self, values: balls.Values) -> tuple[balls.Ball, balls.Ball]:
        program = self.program
        return values[program.left or 0], values[program.right or 0]

    def normal_form(self) -> normal.Form:
        plan = preflight.bound(self.program, self.limits)
        self.cost = Cost(bits=plan.bits, terms=plan.terms, work=plan.work)
        if self.budget is not None and plan.work > self.budget - self.spent:
            plan = replace(plan, reason="the other parts of the answer used the budget")
        if plan.reason is not None:
            self.steps.append(("normal form", f"skipped: {plan.reason}"))
            return normal.Form(finding=Finding.UNDECIDED, skipped=True)
        form = normal.decide(self.program, self.limits)
        self.cost = replace(self.cost, work=form.work)
        if form.finding in (Finding.LEFT_UNDEFINED, Finding.RIGHT_UNDEFINED) and not self.undefined_alone(form.finding):
            form = normal.Form(finding=Finding.UNDECIDED, note="the sides are nowhere defined together")
        self.steps.append(("normal form", form.note))
        return form

    def undefined_alone(self, finding: Finding) -> bool:
        """Whether the side has no value by itself, not only where the other side has one."""
        if not self.program.symbols:
            return True
        node = self.left if finding is Finding.LEFT_UNDEFINED else self.right
        alone = lower(node, node, self.limits, log_base=self.log_base)
        alone.complex = self.program.complex
        return normal.decide(alone, self.limits).finding is Finding.LEFT_UNDEFINED

    def rational_functions(self) -> bool:
        """Whether both sides are defined almost everywhere, by their parts."""
        return all(step[0] in (RATIONAL, SYMBOL, PI, EULER, ADD, MULTIPLY, POWER) for step in self.program.code)

    def defined_but_opaque(self, point: balls.Point) -> bool:
        """Whether only the parts that have no numbers, and what is made of them, have no value at a point."""
        return self.program.opaque and balls.defined_but_opaque(self.program, point, _FIRST_PRECISION)

    def residues(self, form: normal.Form) -> Comparison | None:
        if not form.skipped:
            return None
        equal = modular.agree(self.program, self.seed)
        if equal is None:
            self.steps.append(("modular", "not a rational function with whole exponents"))
            return None
        self.steps.append(("modular", "the same residues" if equal else "other residues"))
        return self.found(equal, Method.MODULAR, Certainty.PROBABLE if equal else Certainty.PROVED)

    def high_precision(self, form: normal.Form) -> Comparison:
        """Agreement far below the smallest part of either side, at points that differ in scale and sign."""
        chosen = self.chosen()
        enough = len(chosen) >= (_ENOUGH_POINTS if self.program.symbols else 1)
        for point, low, high in chosen if enough else ():
            precision = _AGREEMENT_BITS + low + high + _AGREEMENT_GUARD
            values = self.values(point, precision)
            if values is not None and self.apart(values):
                return self.refuted(precision)
            left, right = (None, None) if values is None else self.ends(values)
            if left is None or right is None or not _agree(left, right, _AGREEMENT_BITS + low):
                enough = False
                break
        if not enough:
            self.steps.append(("high precision", "no agreement at enough points"))
            return self.last(form)
        if self.program.symbols and self.has_hidden_regions(form):
            self.steps.append(("high precision", "agreement, but regions may lie between the points"))
            return self.last(form)
        self.steps.append(("high precision", f"agreement to {_AGREEMENT_BITS} bits at {len(chosen)} points"))
        return self.found(True, Method.HIGH_PRECISION, Certainty.PROBABLE)

    def has_hidden_regions(self, form: normal.Form) -> bool:
        """Whether agreement at points says nothing of what lies between them."""
        if form.regions and not form.skipped:
            return True
        return domains.has_hidden_regions(self.program, skipped=form.skipped)

    def chosen(self) -> list[tuple[balls.Point, int, int]]:
        """A few of the points where both sides are defined, as many as the precision and the work allow."""
        allowed = _AGREEMENT_WORK * self.limits.max_work
        fitting = []
        for point, values in self.met[:: 1 + len(self.met) // _CANDIDATE_POINTS]:
            low, high = balls.extent(values)
            precision = _AGREEMENT_BITS + low + high + _AGREEMENT_GUARD
            if precision <= self.limits.max_precision:
                fitting.append((precision > _USUAL_PRECISION, point, low, high))
        fitting.sort(key=lambda entry: entry[0])
        usual = [entry[1:] for entry in fitting if not entry[0]]
        count = _AGREEMENT_POINTS if len(usual) >= _ENOUGH_POINTS else _ENOUGH_POINTS
        usual = usual if len(usual) >= _ENOUGH_POINTS else [entry[1:] for entry in fitting]
        result = []
        for point, low, high in usual[:: max(1, len(usual) // count)][:count]:
            allowed -= balls.cost(self.program, _AGREEMENT_BITS + low + high + _AGREEMENT_GUARD)
            if allowed < 0:
                break
            result.append((point, low, high))
        return result

    # --------------------------------------------------------------------------------------- the findings

    def has_value(self) -> bool | None:
        if not self.program.code:
            self.prepare()
        program = self.program
        if program.left is None:
            return False
        if program.code[program.left][0] == INFINITY:
            return True
        if not program.symbols:
            for precision in (_FIRST_PRECISION, _MORE_PRECISION):
                if balls.evaluate(program, {}, precision) is not None:
                    return True
        else:
            points = points_of(program, self.seed)
            for point in islice(points, _ALL_POINTS):
                if balls.evaluate(program, point, _FIRST_PRECISION) is not None:
                    return True
        if self.normal_form().finding is Finding.LEFT_UNDEFINED:
            return False
        if not program.symbols and separation.decide(program, self.limits).finding is Finding.LEFT_UNDEFINED:
            return False
        return None

    def found(self, equal: bool, method: Method, certainty: Certainty) -> Comparison:
        return Comparison(
            finding=Finding.EQUAL if equal else Finding.UNEQUAL,
            method=method,
            certainty=certainty,
            reason=None if equal else Reason.NOT_EQUAL,
            cost=self.cost,
            steps=tuple(self.steps),
        )

    def refuted(self, precision: int) -> Comparison:
        self.steps.append(("balls", f"apart at {precision} bits"))
        return self.found(False, Method.BALLS, Certainty.PROVED)

    def undefined(self, *, left: bool) -> Comparison:
        self.steps.append(("defined", "the left side has no value" if left else "the right side has no value"))
        return Comparison(
            finding=Finding.LEFT_UNDEFINED if left else Finding.RIGHT_UNDEFINED,
            method=Method.NORMAL_FORM,
            certainty=Certainty.PROVED,
            reason=Reason.UNDEFINED_VALUE,
            cost=self.cost,
            steps=tuple(self.steps),
        )

    def last(self, form: normal.Form) -> Comparison:
        return self.undecided(Reason.OVER_BUDGET if form.skipped else Reason.NOT_SETTLED)

    def undecided(self, reason: Reason) -> Comparison:
        return Comparison(
            finding=Finding.UNDECIDED,
            method=None,
            certainty=None,
            reason=reason,
            cost=self.cost,
            steps=tuple(self.steps),
        )


# --------------------------------------------------------------------------------------------------- helpers


def _agree(left: balls.Ball, right: balls.Ball, bits: int) -> bool:
    """Whether two balls show that their values differ by less than 2^-bits: a wide ball shows nothing."""
    return bool(balls.size(left - right) < arb(2) ** -bits)
