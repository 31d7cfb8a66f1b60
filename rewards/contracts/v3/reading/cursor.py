"""A place in a list of tokens: looking ahead, refusing, counting levels. What every reader of a part builds on."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

from veriward.rewards.contracts.v3.limits import Limits
from veriward.rewards.contracts.v3.reading.tokens import (
    NO_GAP,
    Refused,
    Token,
)
from veriward.rewards.contracts.v3.tree import (
    SCALARS,
    Based,
    Bracketed,
    Constant,
    Degrees,
    NamedSet,
    Node,
    Number,
    Percent,
    PlusMinus,
    Quantity,
    SetBuilder,
    SetOf,
    SetOperation,
    Symbol,
)
from veriward.rewards.verdict import Reason

VALUES = (*SCALARS, PlusMinus, Degrees)
STRUCTURES = (Bracketed, SetOf, NamedSet, SetBuilder, SetOperation)
CONSTANTS = {"pi": Constant("pi"), "e": Constant("e"), "i": Constant("i"), "infinity": Constant("infinity")}
ENDERS = frozenset(
    ("+", "-", "±", ")", "]", "}", "\\}", ",", ";", "END_OF_TEXT", "REL", "AND", "OR", ":", "SETOP", "&", "ROW")
)
OPERANDS = frozenset(
    (
        "NUM",
        "WORD",
        "NAME",
        "FUNC",
        "(",
        "[",
        "{",
        "FRAC",
        "SQRT",
        "RADICAL",
        "BINOM",
        "VEC",
        "BB",
        "SHAPE",
        "|(",
        "⌊",
        "⌈",
        "⟨",
        "BIG",
        "VULGAR",
        "BEGIN",
        "LETTER",
        "DOTS",
        "\\{",
        "EMPTY",
    )
)
_SENTINELS = ["END_OF_TEXT"] * 8
_NO_TEXTS = [""] * 8
ELLIPSIS = Symbol("...")
MINUS_ONE = Number(Fraction(-1))


class Refusal(Exception):  # noqa: N818  never leaves the grammar
    def __init__(self, reason: Reason, position: int, detail: str) -> None:
        super().__init__(detail)
        self.refused = Refused(reason, position, detail)


class Cursor:
    """The tokens of one answer, and where the reading stands."""

    __slots__ = (
        "bars",
        "bound",
        "comma",
        "count",
        "depth",
        "end",
        "gaps",
        "i",
        "integrals",
        "kinds",
        "limits",
        "separating",
        "set_bar",
        "starts",
        "texts",
    )

    FORMS: ClassVar[dict[str, Callable[[Any], Node]]] = {}
    """What reads a form by the kind of its first token."""

    def __init__(self, tokens: list[Token], end: int, limits: Limits, decimal_comma: bool) -> None:
        self.kinds = [token[0] for token in tokens]
        self.texts = [token[1] for token in tokens]
        self.starts = [token[2] for token in tokens]
        self.gaps = [token[4] for token in tokens]
        if self.kinds.count("[") + self.kinds.count("]") == 2:
            self._turn_outward_brackets()
        self.kinds += _SENTINELS  # as many as any look-ahead is long
        self.texts += _NO_TEXTS
        self.starts += [end] * len(_SENTINELS)
        self.gaps += [NO_GAP] * len(_SENTINELS)
        self.count = len(tokens)
        self.i = 0
        self.end = end
        self.limits = limits
        self.comma = decimal_comma
        self.depth = 0
        self.bars = 0
        self.bound: tuple[str, ...] = ()
        self.integrals = 0
        self.separating = False
        self.set_bar = False

    def _turn_outward_brackets(self) -> None:
        """`]1, 2[` as `(1, 2)`, `[1, 2[` as `[1, 2)`: an interval that is the whole answer, or all behind `\\in`."""
        first, last = (at for at, kind in enumerate(self.kinds) if kind in ("[", "]"))
        if last != len(self.kinds) - 1 or (first and self.texts[first - 1] != "in"):
            return
        if not {",", ";"} & set(self.kinds[first + 1 : last]):
            return
        if self.kinds[first] == "]":
            self.kinds[first] = "("
        if self.kinds[last] == "[":
            self.kinds[last] = ")"

    def refuse(self, reason: Reason, detail: str, at: int | None = None) -> Refusal:
        return Refusal(reason, self.starts[self.i if at is None else min(at, len(self.starts) - 1)], detail)

    def unexpected(self) -> Refusal:
        kind = self.kinds[self.i]
        text = self.texts[self.i]
        if kind == "END_OF_TEXT":
            return self.refuse(Reason.MISSING_OPERAND, "the text ends where a value is wanted")
        if kind in (")", "]", "}", "\\}", "⟩", "⌋", "⌉", "|)", "END"):
            return self.refuse(Reason.UNBALANCED_BRACKETS, f"{text} closes nothing")
        if kind == "LETTER":
            return self.refuse(Reason.UNSUPPORTED_CHARACTER, f"U+{ord(text[0]):04X}")
        if kind in ("WORD", "TEXT", "HAN"):
            return self.refuse(Reason.UNSUPPORTED_NAME, f"the word {text}")
        if kind == "NUM":
            return self.refuse(Reason.ADJACENT_NUMBERS, f"{text} directly behind a value")
        if kind in ("+", "-", "*", "/", "^", "_", ",", ";", "REL", "±", "%", "!", ":", "AND", "OR", "SETOP"):
            return self.refuse(Reason.MISSING_OPERAND, f"no value beside {text}")
        return self.refuse(Reason.UNSUPPORTED_NOTATION, text)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > self.limits.max_depth:
            raise self.refuse(Reason.NESTED_TOO_DEEP, f"more than {self.limits.max_depth} levels")

    def expect(self, kind: str) -> None:
        if self.kinds[self.i] != kind:
            raise self.refuse(Reason.UNBALANCED_BRACKETS, f"{kind} is missing")
        self.i += 1

    def scalar(self, node: Node) -> Node:
        """The node as a value for arithmetic; square brackets around one value group it."""
        if isinstance(node, VALUES):
            return node
        if isinstance(node, Bracketed) and len(node.items) == 1 and isinstance(node.items[0], VALUES):
            return node.items[0]
        if isinstance(node, Percent | Quantity | Based):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "arithmetic on a percentage, a unit or a numeral in a base")
        raise self.refuse(Reason.CONTAINER_OPERATION, "arithmetic on what is no single value")

    def closes(self, opening: int) -> int:
        depth = 0
        for at in range(opening, len(self.kinds)):
            if self.kinds[at] == "{":
                depth += 1
            elif self.kinds[at] == "}":
                depth -= 1
                if not depth:
                    return at
        return -1

    def end_of_bracket(self, at: int) -> int:
        """Where the bracket closes that opens at a place; the end of the text if nowhere."""
        depth = 0
        for place in range(at, self.count):
            if self.kinds[place] in ("(", "["):
                depth += 1
            elif self.kinds[place] in (")", "]"):
                depth -= 1
                if not depth:
                    return place
        return self.count

    def inside_bracket(self) -> tuple[list[str], bool]:
        """The texts inside the bracket that opens here, and whether commas separate parts in it."""
        kinds = self.kinds
        depth, several = 0, False
        at = self.i
        while (kind := kinds[at]) != "END_OF_TEXT":
            if kind in ("(", "["):
                depth += 1
            elif kind in (")", "]"):
                depth -= 1
                if not depth:
                    break
            elif kind in (",", ";") and depth == 1:
                several = True
            at += 1
        return self.texts[self.i + 1 : at], several

    # ------------------------------------- readers of parts that read one another, each in its own module

    def is_condition(self) -> bool:
        raise NotImplementedError

    def bracket(self) -> Node:
        raise NotImplementedError

    def chained(self, left: Node) -> Node:
        raise NotImplementedError

    def environment(self, system: bool = False) -> Node:
        raise NotImplementedError

    def exponent(self) -> Node:
        raise NotImplementedError

    def factor(self) -> Node:
        raise NotImplementedError

    def function(self) -> Node:
        raise NotImplementedError

    def group(self) -> Node:
        raise NotImplementedError

    def items(self, closer: str) -> tuple[Node, ...]:
        raise NotImplementedError

    def listing(self) -> Node:
        raise NotImplementedError

    def operand(self) -> Node:
        raise NotImplementedError

    def relation(self) -> Node:
        raise NotImplementedError

    def sum(self) -> Node:
        raise NotImplementedError

    def term(self) -> Node:
        raise NotImplementedError
