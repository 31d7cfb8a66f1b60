"""How one kind of answer meets one kind of reference: rules in order, the first that applies decides.

A rule is a function of candidate and reference; its docstring is the case that made it necessary. What no rule covers
stays undecided, never wrong. Scalars go to the engine (`algebra`).
"""

from __future__ import annotations

from veriward.rewards.contracts.v3.comparison import Comparison, Finding
from veriward.rewards.contracts.v3.engine import algebra
from veriward.rewards.contracts.v3.limits import LIMITS, Limits
from veriward.rewards.contracts.v3.rules import marks, realsets, relations
from veriward.rewards.contracts.v3.rules.comparer import (
    EQUAL,
    UNEQUAL,
    Comparer,
    Rule,
    equal,
    flagged,
    merged,
    undecided,
    unequal,
)
from veriward.rewards.contracts.v3.rules.rewrite import has_plus_minus, quotient, with_sign
from veriward.rewards.contracts.v3.tree import (
    Alternatives,
    Apply,
    Bracketed,
    Constant,
    Dots,
    Listing,
    Matrix,
    NamedSet,
    Negation,
    Node,
    Power,
    Product,
    Quantity,
    Quotient,
    Ratio,
    Relation,
    SetBuilder,
    SetOf,
    SetOperation,
    System,
    children,
    is_scalar,
    spell,
    walk,
)
from veriward.rewards.task import PLAIN_OPTIONS, Options
from veriward.rewards.verdict import Certainty, Method, Reason

HEDGED = marks.HEDGED
VECTOR_FORM = "vector_form"


def compare(
    candidate: Node,
    reference: Node,
    *,
    answer_type: str = "auto",
    options: Options = PLAIN_OPTIONS,
    limits: Limits = LIMITS,
) -> Comparison:
    """What contract v3 finds about a candidate and a reference, both read."""
    return marks.in_one_reading(candidate, reference, Comparer(RULES, limits, answer_type, options, limits.max_work))


def scalars(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Two plain values: the engine decides."""
    if is_scalar(candidate) and is_scalar(reference):
        return comparer.scalars(candidate, reference)
    return None


def same_spelling(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """The same tree up to order: equal, unless a part of it has no value, as in `(1/0, 2)`."""
    if type(candidate) is not type(reference) or spell(candidate) != spell(reference):
        return None
    if has_no_value(reference):
        return Comparison(
            finding=Finding.RIGHT_UNDEFINED,
            method=Method.RATIONAL,
            certainty=Certainty.PROVED,
            reason=Reason.UNDEFINED_VALUE,
        )
    return equal(Method.SPELLING)


def has_no_value(node: Node) -> bool:
    """Some scalar part of it is provably undefined."""
    pending: list[Node] = [node]
    while pending:
        part = pending.pop()
        if is_scalar(part):
            if _may_be_undefined(part) and algebra.has_value(part) is False:
                return True
        else:
            pending.extend(children(part))
    return False


def _may_be_undefined(node: Node) -> bool:
    risky = (Quotient, Power, Apply)
    return any(isinstance(part, risky) or part == Constant("infinity") for part in walk(node)) and node not in (
        Constant("infinity"),
        Negation(Constant("infinity")),
    )


def single_part(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`\\{3\\}` and `[3]` for 3: one thing in brackets is that thing."""
    if comparer.inside:
        return None  # a set in a set is not its element
    for node, other, swap in ((candidate, reference, False), (reference, candidate, True)):
        if isinstance(node, SetOf | Bracketed) and len(node.items) == 1 and not isinstance(other, type(node)):
            if isinstance(other, SetOf | Bracketed) and len(other.items) == 1:
                return comparer.compare(candidate.items[0], reference.items[0])  # type: ignore[union-attr]
            if isinstance(other, SetOperation | SetBuilder | NamedSet):
                return None
            return comparer.compare(other, node.items[0]) if swap else comparer.compare(node.items[0], other)
    return None


def plus_minus(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`2 \\pm \\sqrt 7` is the two values; upper signs belong together, and lower ones."""
    if not (has_plus_minus(candidate) or has_plus_minus(reference)):
        return None
    return comparer.compare(_spread(candidate), _spread(reference))


def _spread(node: Node) -> Node:
    if not has_plus_minus(node):
        return node
    if isinstance(node, Listing | SetOf | Alternatives):
        return type(node)(tuple(part for item in node.items for part in _both_signs(item)))
    return SetOf(_both_signs(node))


def _both_signs(node: Node) -> tuple[Node, ...]:
    return (with_sign(node, plus=True), with_sign(node, plus=False)) if has_plus_minus(node) else (node,)


def sets_of_reals(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`x > 5`, `(5, \\infty)` and `\\{x \\mid x > 5\\}`: the same set of reals, by its sorted pieces."""
    if not (_is_set_of_reals(candidate) or _is_set_of_reals(reference)):
        return None
    left, right = realsets.read(candidate), realsets.read(reference)
    if left is None or right is None:
        return None
    (pieces, unknown), (others, other_unknown) = left, right
    if (isinstance(candidate, Bracketed) and not pieces) or (isinstance(reference, Bracketed) and not others):
        return None  # `(3, 3)` is a point
    if unknown is not None and other_unknown is not None and unknown != other_unknown:
        return unequal(Method.KIND)
    if len(pieces) != len(others):
        return unequal(Method.KIND)
    found = merged(
        comparer.compare(*pair)
        for piece, other in zip(pieces, others, strict=True)
        for pair in ((piece.low, other.low), (piece.high, other.high))
    )
    ends = [(piece.low_closed, piece.high_closed) for piece in pieces]
    if found.finding is EQUAL and ends != [(other.low_closed, other.high_closed) for other in others]:
        return unequal(Method.KIND)
    return flagged(found, relations.NAME_DROPPED) if (unknown is None) != (other_unknown is None) else found


def _is_set_of_reals(node: Node) -> bool:
    """Cannot be read as anything but a set of reals: a plain pair in brackets could be a point."""
    match node:
        case SetOperation() | SetBuilder() | NamedSet():
            return True
        case Bracketed(left, items, right):
            infinite = (realsets.UPWARD, realsets.DOWNWARD)
            return (left == "(") != (right == ")") or (len(items) == 2 and any(item in infinite for item in items))
        case Relation(_, operators):
            return any(operator not in ("=", "approx", "equiv") for operator in operators)
        case Alternatives(items) | Listing(items) | System(items):
            return any(_is_set_of_reals(item) for item in items if isinstance(item, Relation))
    return False


def set_operations(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Ends that cannot be put in order, `(a, b) \\cup \\{c\\}`: part by part, in any order."""
    match candidate, reference:
        case SetOperation(operator, items), SetOperation(other, parts) if operator == other:
            if operator == "difference":
                found = comparer.in_order(items, parts)
            else:
                found = comparer.in_any_order(items, parts, repeats=False)
            return found if found.finding is not UNEQUAL else undecided(Reason.NOT_SETTLED)
        case SetBuilder(element, condition), SetBuilder(other, same):
            found = comparer.in_order((element, condition), (other, same))
            return found if found.finding is not UNEQUAL else undecided(Reason.NOT_SETTLED)
        case NamedSet(name), NamedSet(other):
            return unequal(Method.KIND) if name != other else equal(Method.KIND)
    return None


def brackets(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Points, pairs, lists and intervals part by part in order; `[3, 8]` is not `(3, 8)`, and `(0, 5]` not `(0, 5)`."""
    match candidate, reference:
        case Bracketed(left, items, right), Bracketed(first, others, last):
            if comparer.options.order == "free" and (left, right) == (first, last) in (("(", ")"), ("[", "]")):
                return comparer.in_any_order(items, others, repeats=True)
            found = comparer.in_order(items, others)
            if (left, right) == (first, last) or found.finding is UNEQUAL or comparer.answer_type == "tuple":
                return found
            return unequal(Method.KIND, Certainty.PROBABLE) if found.finding is EQUAL else found
    return None


def matrices(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """Entry by entry; `(1, 2)` for a column or row vector of two."""
    match candidate, reference:
        case Matrix(rows), Matrix(others):
            if len(rows) != len(others) or len(rows[0]) != len(others[0]):
                return unequal(Method.PART_COUNT, reason=Reason.DIFFERENT_PART_COUNT)
            return comparer.in_order([part for row in rows for part in row], [part for row in others for part in row])
        case Bracketed("(", items, ")"), Matrix(rows) if len(rows) == 1 or len(rows[0]) == 1:
            return flagged(comparer.in_order(items, [part for row in rows for part in row]), VECTOR_FORM)
    return None


def ratios(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`2:3` and `4:6`; `5:8` and 5/8."""
    match candidate, reference:
        case Ratio(parts), Ratio(others):
            if len(parts) != len(others):
                return unequal(Method.PART_COUNT, reason=Reason.DIFFERENT_PART_COUNT)
            if not all(map(is_scalar, (*parts, *others))):
                return None
            return _proportional(parts, others, comparer)
        case Ratio((first, second)), other if is_scalar(other):
            return comparer.compare(quotient(first, second), other)
        case other, Ratio((first, second)) if is_scalar(other):
            return comparer.compare(other, quotient(first, second))
    return None


def _proportional(parts: tuple[Node, ...], others: tuple[Node, ...], comparer: Comparer) -> Comparison:
    """Cross products with a part that is not zero: `0:1:2` is not `0:2:1`."""
    for place, (part, other) in enumerate(zip(parts, others, strict=True)):
        signs = algebra.sign(part), algebra.sign(other)
        if 0 in signs and signs != (0, 0):
            return unequal(Method.RATIONAL) if None not in signs else undecided(Reason.NOT_SETTLED)
        if signs != (0, 0):
            return comparer.in_order(
                [Product((one, other)) for at, one in enumerate(parts) if at != place],
                [Product((one, part)) for at, one in enumerate(others) if at != place],
            )
    return undecided(Reason.NOT_SETTLED)


def lists(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`7, 3, 5`, `\\{3, 5, 7\\}` and `[3, 5, 7]` for `3, 5, 7`: a bare list and a set have no order.

    'or' between the parts is fine where several are asked. A list with dots keeps its order.
    """
    if not isinstance(reference, Listing | SetOf | Alternatives) and not isinstance(
        candidate, Listing | SetOf | Alternatives
    ):
        return None
    parts, asked = _parts(candidate), _parts(reference)
    if parts is None or asked is None or (comparer.inside and type(candidate) is not type(reference)):
        return None
    if any(isinstance(part, Dots) for part in (*parts, *asked)):
        found = comparer.in_order(parts, asked)
        return found if found.finding is not EQUAL or len(parts) == len(asked) else undecided(Reason.NOT_SETTLED)
    if comparer.options.order == "ordered":
        return comparer.in_order(parts, asked)
    repeats = SetOf not in (type(candidate), type(reference))
    return comparer.in_any_order(parts, asked, repeats=repeats)


def _parts(node: Node) -> tuple[Node, ...] | None:
    match node:
        case Listing(items) | SetOf(items) | Alternatives(items):
            return items
        case Bracketed("[", items, "]"):
            return items
    return None


def several_for_one(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`57, 58`, `57 or 58` and `\\{56, 57, 58\\}` for 57: several values where one is asked, or one for several."""
    for node, other, swap in ((candidate, reference, False), (reference, candidate, True)):
        if not isinstance(node, Listing | SetOf | Alternatives) or len(node.items) < 2:
            continue
        if not (is_scalar(other) or isinstance(other, marks.MARKED)):
            continue
        units = {item.unit for item in node.items if isinstance(item, Quantity)}
        if len(units) > 1 or any(isinstance(item, Relation) for item in node.items):
            return undecided(Reason.KINDS_NOT_COMPARED)  # `3 adults, 4 children` for 3: which one is asked?
        found = [comparer.compare(other, item) if swap else comparer.compare(item, other) for item in node.items]
        if not any(one.finding is UNEQUAL for one in found):
            return undecided(Reason.KINDS_NOT_COMPARED)
        guesses = not swap and any(one.finding is EQUAL for one in found)
        reason = Reason.HEDGED if guesses else Reason.DIFFERENT_PART_COUNT
        return unequal(Method.PART_COUNT, Certainty.PROBABLE, reason=reason, flags=(HEDGED,) if guesses else ())
    return None


def brackets_for_one(candidate: Node, reference: Node, comparer: Comparer) -> Comparison | None:
    """`[0, 100]` or `(5, 7)` for 57, and the other way round: an interval or point is no number."""
    for node, other in ((candidate, reference), (reference, candidate)):
        if is_scalar(other) and (
            (isinstance(node, Bracketed) and len(node.items) > 1)
            or isinstance(node, SetOperation | NamedSet)
            or (isinstance(node, Matrix) and len(node.rows) * len(node.rows[0]) > 1)
        ):
            return unequal(Method.KIND, Certainty.PROBABLE)
    return None


RULES: tuple[Rule, ...] = (
    marks.within_tolerance,
    marks.rounded,
    marks.option_or_value,
    scalars,
    same_spelling,
    marks.texts,
    marks.truths,
    marks.times,
    marks.choices,
    marks.bases,
    plus_minus,
    single_part,
    marks.different_marks,
    marks.percents,
    marks.degrees,
    relations.with_conditions,
    relations.function_definitions,
    relations.named_values,
    relations.equations,
    sets_of_reals,
    relations.congruences,
    relations.inequalities,
    relations.chains,
    relations.systems,
    relations.several_named_values,
    relations.worked_out,
    relations.name_in_front,
    relations.solved_equation,
    marks.quantities,
    set_operations,
    matrices,
    ratios,
    brackets,
    lists,
    several_for_one,
    brackets_for_one,
)
"""In this order: whole kinds first, then what carries a mark or a name, then containers."""
