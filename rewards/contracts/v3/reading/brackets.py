"""Forms that hold values between two ends: brackets, groups, sets, bars, fractions, roots."""

from __future__ import annotations

import re
from fractions import Fraction

from veriward.rewards.contracts.v3.reading.cursor import (
    CONSTANTS,
    OPERANDS,
)
from veriward.rewards.contracts.v3.reading.quantities import Quantities
from veriward.rewards.contracts.v3.reading.signs import PLAIN_NAMES
from veriward.rewards.contracts.v3.reading.tokens import (
    NO_GAP,
)
from veriward.rewards.contracts.v3.tree import (
    Apply,
    Bracketed,
    Listing,
    Matrix,
    Node,
    Number,
    Power,
    Quotient,
    Relation,
    Root,
    SetBuilder,
    SetOf,
    Symbol,
)
from veriward.rewards.verdict import Reason


class Brackets(Quantities):
    """Reads what is enclosed."""

    __slots__ = ()

    def group(self) -> Node:
        """A LaTeX group with one value inside."""
        self.i += 1
        self.deeper()
        separating, bars, set_bar, self.separating, self.bars, self.set_bar = (
            self.separating, self.bars, self.set_bar, False, 0, False,
        )  # fmt: skip
        if self.kinds[self.i] == "}":
            raise self.refuse(Reason.MISSING_OPERAND, "an empty group")
        node = self.operand()
        if self.kinds[self.i] == "CHOOSE":
            self.i += 1
            node = Apply("binomial", (self.scalar(node), self.scalar(self.sum())))
        elif self.kinds[self.i] == "OVER":
            self.i += 1
            node = Quotient(self.scalar(node), self.scalar(self.sum()))
        self.expect("}")
        self.separating, self.bars, self.set_bar = separating, bars, set_bar
        self.depth -= 1
        return self.scalar(node)

    def braced(self) -> Node:
        """A group of one value, or a set without backslashes: `{x}^2`, `x \\in {1, 2}`."""
        close = self.closes(self.i)
        inside = self.kinds[self.i : close]
        if close > 0 and ("," in inside or "MID" in inside or ":" in inside or inside.count("|") % 2):
            self.kinds[self.i], self.kinds[close] = "\\{", "\\}"
            return self.set_braces()
        return self.group()

    def argument(self) -> Node:
        """What a LaTeX command takes: a group, or one token."""
        kinds, texts = self.kinds, self.texts
        kind = kinds[self.i]
        if kind == "{":
            return self.group()
        if kind == "NUM":
            digits = texts[self.i]
            if len(digits) == 1:
                return self.plain_number()
            if not digits.isdigit():
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"{digits} as an argument without braces")
            texts[self.i] = digits[1:]
            self.gaps[self.i] = NO_GAP
            return Number(Fraction(int(digits[0])), digits[0])
        if kind in ("NAME", "WORD"):
            word = texts[self.i]
            if kind == "WORD" and len(word) > 1 and word not in PLAIN_NAMES:
                if len(word) > 3:
                    raise self.unexpected()
                texts[self.i] = word[1:]
                return CONSTANTS.get(word[0]) or Symbol(word[0])
            self.i += 1
            word = PLAIN_NAMES.get(word, word)
            return CONSTANTS.get(word) or Symbol(word)
        if kind in ("FRAC", "SQRT", "BINOM", "VEC", "BB", "VULGAR"):
            self.deeper()
            node = self.scalar(self.FORMS[kind](self))
            self.depth -= 1
            return node
        raise self.unexpected()

    def fraction(self) -> Node:
        self.i += 1
        if self.kinds[self.i] == "{" and self.texts[self.i + 1][:1] == "d":
            derivative = self._derivative()
            if derivative is not None:
                return derivative
        top = self.argument()
        return Quotient(top, self.argument())

    def _derivative(self) -> Node | None:
        """`\\frac{dy}{dx}` as one name; None where the fraction is none of differentials."""
        at = self.i
        middle = self.closes(at)
        if middle < 0 or self.kinds[middle + 1] != "{":
            return None
        end = self.closes(middle + 1)
        above, below = "".join(self.texts[at + 1 : middle]), "".join(self.texts[middle + 2 : end])
        if end < 0 or not re.match(r"d[^\W\d_]", below) or not re.match(r"d(?:[^\W\d_]|\^|\Z)", above):
            return None
        if len(above) != 2 or len(below) != 2:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a derivative")
        self.i = end + 1
        return Symbol(f"{above}/{below}")

    def binomial(self) -> Node:
        self.i += 1
        top = self.argument()
        return Apply("binomial", (top, self.argument()))

    def root(self) -> Node:
        """`\\sqrt[3]{x}`, `\\sqrt2`, `sqrt(x)`."""
        self.i += 1
        degree = 2
        if self.kinds[self.i] == "[":
            index = self.i + 1
            close = index + 1
            if self.kinds[index] == "{" and self.kinds[index + 2] == "}":
                index, close = index + 1, index + 3
            if self.kinds[close] != "]":
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "the degree of a root")
            if self.kinds[index] != "NUM":
                if self.kinds[index] in ("WORD", "NAME") and len(self.texts[index]) == 1:
                    name = self.texts[index]
                    self.i = close + 1
                    if name in CONSTANTS:
                        raise self.refuse(Reason.UNSUPPORTED_NOTATION, "the degree of a root")
                    return Power(self.argument(), Quotient(Number(Fraction(1), "1"), Symbol(name)))
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "the degree of a root")
            digits = self.texts[index]
            if not digits.isdigit() or len(digits) > 9 or int(digits) < 1:
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "the degree of a root")
            degree = int(digits)
            self.i = close + 1
        radicand = self.in_brackets() if self.kinds[self.i] == "(" else self.argument()
        return Root(radicand, degree) if degree > 1 else radicand

    def radical(self) -> Node:
        """`√3`, `√(x+1)`: the one value behind the sign."""
        degree = int(self.texts[self.i])
        self.i += 1
        kind = self.kinds[self.i]
        self.deeper()
        if kind == "NUM":
            radicand: Node = self.plain_number()
        elif kind == "(":
            radicand = self.in_brackets()
        elif kind == "{":
            radicand = self.group()
        elif kind in ("WORD", "NAME") and (
            len(self.texts[self.i]) == 1 or kind == "NAME" or self.texts[self.i] == "pi"
        ):
            radicand = CONSTANTS.get(self.texts[self.i]) or Symbol(self.texts[self.i])
            self.i += 1
        elif kind in ("RADICAL", "FRAC", "SQRT"):
            radicand = self.FORMS[kind](self)
        else:
            raise self.unexpected()
        self.depth -= 1
        return Root(radicand, degree)

    def in_brackets(self) -> Node:
        """One value in round brackets, as a function takes it."""
        node = self.bracket()
        if isinstance(node, Bracketed) and node.left == "(":
            raise self.refuse(Reason.UNSUPPORTED_CALL, "more than one argument")
        return self.scalar(node)

    def bracket(self) -> Node:
        """Round or square brackets: grouping around one value, else a tuple, list or interval."""
        left = self.kinds[self.i]
        self.i += 1
        self.deeper()
        separating, bars, set_bar, self.separating, self.bars, self.set_bar = (
            self.separating, self.bars, self.set_bar, True, 0, False,
        )  # fmt: skip
        kinds = self.kinds
        if kinds[self.i] in (")", "]"):
            if left == "[" and kinds[self.i] == "]":
                self.i += 1
                self.separating, self.bars, self.set_bar = separating, bars, set_bar
                self.depth -= 1
                return Bracketed("[", (), "]")
            raise self.refuse(Reason.MISSING_OPERAND, "empty brackets")
        items = self.items(")")
        right = kinds[self.i]
        if right not in (")", "]"):
            if right == "END_OF_TEXT":
                raise self.refuse(Reason.UNBALANCED_BRACKETS, "a bracket is not closed")
            raise self.unexpected()
        self.i += 1
        self.separating, self.bars, self.set_bar = separating, bars, set_bar
        self.depth -= 1
        if len(items) == 1:
            if left == "(" and right == ")":
                return items[0]
            if left == "[" and right == "]":
                return items[0] if isinstance(items[0], Matrix) else Bracketed("[", items, "]")
            raise self.refuse(Reason.UNBALANCED_BRACKETS, "brackets of two kinds around one value")
        return Bracketed(left, items, right)  # type: ignore[arg-type]

    def angle_bracket(self) -> Node:
        self.i += 1
        self.deeper()
        separating, self.separating = self.separating, True
        items = self.items("⟩")
        self.expect("⟩")
        self.separating = separating
        self.depth -= 1
        if not items:
            raise self.refuse(Reason.MISSING_OPERAND, "empty brackets")
        return Bracketed("(", items, ")")

    def set_braces(self) -> Node:
        """`\\{1,2\\}`, `\\{x \\mid x>2\\}`, and the brace in front of a system."""
        self.i += 1
        kinds = self.kinds
        if kinds[self.i] == "BEGIN" and self.texts[self.i] in ("array", "aligned", "cases", "matrix", "gathered"):
            node = self.environment(system=True)
            if kinds[self.i] == "\\}":
                self.i += 1
            return node
        self.deeper()
        separating, bars, set_bar, self.separating, self.bars, self.set_bar = (
            self.separating, self.bars, self.set_bar, True, 0, True,
        )  # fmt: skip
        items = self.items("\\}")
        condition: Node | None = None
        if kinds[self.i] in ("|", "MID", ":") and len(items) == 1:
            self.i += 1
            self.set_bar = False
            conditions = self.items("\\}")
            if not conditions:
                raise self.refuse(Reason.MISSING_OPERAND, "no condition")
            condition = conditions[0] if len(conditions) == 1 else Listing(conditions)
        if kinds[self.i] != "\\}":
            if kinds[self.i] == "END_OF_TEXT":
                raise self.refuse(Reason.UNBALANCED_BRACKETS, "a brace is not closed")
            raise self.unexpected()
        self.i += 1
        self.separating, self.bars, self.set_bar = separating, bars, set_bar
        self.depth -= 1
        if condition is not None:
            return SetBuilder(items[0], condition)
        return items[0] if len(items) == 1 and isinstance(items[0], Relation) else SetOf(items)

    def absolute(self) -> Node:
        """`|x|` and its LaTeX spellings."""
        opener = self.kinds[self.i]
        closer = "|)" if opener == "|(" else opener
        self.i += 1
        self.deeper()
        separating, bars, set_bar = self.separating, self.bars, self.set_bar
        self.separating, self.bars, self.set_bar = False, 1 if opener == "|" else 0, False
        node = self.sum()
        self.expect(closer)
        self.separating, self.bars, self.set_bar = separating, bars, set_bar
        self.depth -= 1
        if closer == "|" and self.kinds[self.i] in OPERANDS and "|" in self.kinds[self.i :]:
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "which bars belong together is not clear")
        return Apply("abs", (self.scalar(node),))

    def rounded(self) -> Node:
        """`\\lfloor x \\rfloor` and `\\lceil x \\rceil`."""
        kind = self.kinds[self.i]
        self.i += 1
        self.deeper()
        separating, bars, set_bar = self.separating, self.bars, self.set_bar
        self.separating, self.bars, self.set_bar = False, 0, False
        node = self.sum()
        self.expect("⌋" if kind == "⌊" else "⌉")
        self.separating, self.bars, self.set_bar = separating, bars, set_bar
        self.depth -= 1
        return Apply("floor" if kind == "⌊" else "ceil", (self.scalar(node),))
