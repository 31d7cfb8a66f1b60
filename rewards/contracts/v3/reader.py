"""Tokens to a tree: the precedence reader of one answer's mathematics. `grammar` says which texts come here."""

from __future__ import annotations

import re
from fractions import Fraction

from veriward.rewards.contracts.v3.limits import Limits
from veriward.rewards.contracts.v3.numerals import (
    HAN_FRACTION,
    HAN_NO_UNIT,
    HAN_NUMERAL,
    HAN_UNIT,
    MYRIADS,
    TENS,
    han_number,
)
from veriward.rewards.contracts.v3.tokens import (
    BLANK,
    NEGATIVE,
    NO_GAP,
    PLAIN_FUNCTIONS,
    PLAIN_NAMES,
    THIN,
    Refused,
    Token,
)
from veriward.rewards.contracts.v3.tree import (
    FUNCTIONS,
    SCALARS,
    Alternatives,
    Apply,
    Based,
    BigOperator,
    Bracketed,
    Call,
    Constant,
    Degrees,
    Dots,
    Listing,
    Matrix,
    NamedSet,
    Negation,
    Node,
    Number,
    Percent,
    PlusMinus,
    Power,
    Product,
    Quantity,
    Quotient,
    Ratio,
    Relation,
    Root,
    SetBuilder,
    SetOf,
    SetOperation,
    Sum,
    Symbol,
    System,
    walk,
)
from veriward.rewards.contracts.v3.unit_words import (
    GLUED_PRODUCT,
    LONG_UNITS,
    MAGNITUDES,
    NO_UNIT,
    SENTENCE,
    SHORT_THINGS,
    SHORT_UNITS,
    STOP_WORDS,
    UNITS,
    is_no_name,
    is_unit,
    words_of,
)
from veriward.rewards.verdict import Reason

_SCALAR = (*SCALARS, PlusMinus, Degrees)
_STRUCTURES = (Bracketed, SetOf, NamedSet, SetBuilder, SetOperation)
_CONSTANTS = {"pi": Constant("pi"), "e": Constant("e"), "i": Constant("i"), "infinity": Constant("infinity")}


_BASE_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_CALLABLE = frozenset("fgh")
_MEASURES = words_of("P E Pr Var Cov")
"""Names with a bracket that holds an event or a random variable: `P(X=2)`, `E[X]`."""

_ENDERS = frozenset(
    ("+", "-", "±", ")", "]", "}", "\\}", ",", ";", "END_OF_TEXT", "REL", "AND", "OR", ":", "SETOP", "&", "ROW")
)
_OPERANDS = frozenset(
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
_MARKERS = frozenset(("%", "TEXT", "WORD", "HAN", "CURRENCY", "{", "/", "("))


class Refusal(Exception):  # noqa: N818  never leaves this module
    def __init__(self, reason: Reason, position: int, detail: str) -> None:
        super().__init__(detail)
        self.refused = Refused(reason, position, detail)


class Reader:
    """One pass over the tokens. Six Python frames a nested level: items, relation, operand, sum, term, factor."""

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

    def __init__(self, tokens: list[Token], end: int, limits: Limits, decimal_comma: bool) -> None:
        self.kinds = [token[0] for token in tokens]
        self.texts = [token[1] for token in tokens]
        self.starts = [token[2] for token in tokens]
        self.gaps = [token[4] for token in tokens]
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

    # -------------------------------------------------------------------------------------- small things

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
        if isinstance(node, _SCALAR):
            return node
        if isinstance(node, Bracketed) and len(node.items) == 1 and isinstance(node.items[0], _SCALAR):
            return node.items[0]
        if isinstance(node, Percent | Quantity | Based):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "arithmetic on a percentage, a unit or a numeral in a base")
        raise self.refuse(Reason.CONTAINER_OPERATION, "arithmetic on what is no single value")

    # -------------------------------------------------------------------------------------- the levels

    def answer(self) -> Node:
        """The whole token list."""
        kinds = self.kinds
        last = self.count - 1
        if kinds[0] == "{" and not self.gaps[0] and self._closes(0) == last and not {"CHOOSE", "OVER"} & set(kinds):
            kinds[0], kinds[last] = "\\{", "\\}"
        if kinds[0] == "WORD" and self.texts[0] in ("either", "both"):
            self.i = 1
        node = self.listing()
        if kinds[self.i] == "OVER":
            self.i += 1
            node = Quotient(self.scalar(node), self.scalar(self.sum()))
        if kinds[self.i] != "END_OF_TEXT":
            raise self.unexpected()
        return node

    def _closes(self, opening: int) -> int:
        depth = 0
        for at in range(opening, len(self.kinds)):
            if self.kinds[at] == "{":
                depth += 1
            elif self.kinds[at] == "}":
                depth -= 1
                if not depth:
                    return at
        return -1

    def listing(self) -> Node:
        """Parts without brackets, split first at 'or', then at semicolons, then at commas and 'and'."""
        first = self.relation()
        kind = self.kinds[self.i]
        if kind not in (",", ";", "AND", "OR", "("):
            return first
        groups: list[list[list[Node]]] = [[[first]]]
        flat = False
        count = 1
        while True:
            kind = self.kinds[self.i]
            if kind == "(" and self._is_condition():
                self.i += 1
                groups[-1][-1] += self.items(")")
                self.expect(")")
                continue
            if kind not in (",", ";", "AND", "OR"):
                break
            self.i += 1
            following = self.kinds[self.i]
            if following in ("END_OF_TEXT", "ROW", "END") and kind in (",", ";"):
                break
            if kind in (",", ";") and following in ("AND", "OR"):
                flat = flat or following == "OR"
                kind = following if following == "OR" else kind
                self.i += 1
            count += 1
            if count > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} parts")
            item = self.relation()
            if kind == "OR":
                groups.append([[item]])
            elif kind == ";":
                groups[-1].append([item])
            else:
                groups[-1][-1].append(item)
        if len(groups) == 1:
            return self._joined(groups[0])
        if flat:
            return Alternatives(tuple(item for group in groups for part in group for item in part))
        return Alternatives(tuple(self._joined(group) for group in groups))

    def _is_condition(self) -> bool:
        """The bracket that opens here holds a relation: `k\\pi (k \\in Z)`."""
        depth = 0
        for kind in self.kinds[self.i :]:
            if kind in ("(", "["):
                depth += 1
            elif kind in (")", "]"):
                depth -= 1
                if not depth:
                    return False
            elif kind == "REL" and depth == 1:
                return True
        return False

    @staticmethod
    def _joined(parts: list[list[Node]]) -> Node:
        if len(parts) > 1 and any(len(part) > 1 for part in parts):
            return Listing(tuple(part[0] if len(part) == 1 else Listing(tuple(part)) for part in parts))
        items = tuple(item for part in parts for item in part)
        return items[0] if len(items) == 1 else Listing(items)

    def items(self, closer: str) -> tuple[Node, ...]:
        """Comma-separated parts up to a closing bracket, which stays."""
        kinds = self.kinds
        if kinds[self.i] == closer:
            return ()
        found = [self.relation()]
        separator = None
        while kinds[self.i] in (",", ";", "AND"):
            kind = kinds[self.i]
            if kind != "AND":
                if separator not in (None, kind):
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "commas and semicolons in one bracket")
                separator = kind
            self.i += 1
            if kind != "AND" and kinds[self.i] == "AND":
                self.i += 1
            if len(found) >= self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} parts")
            found.append(self.relation())
        return tuple(found)

    def relation(self) -> Node:
        """One part: values, sets or ratios, joined by relation signs."""
        kinds = self.kinds
        if kinds[self.i] == "DOTS" and kinds[self.i + 1] in (
            ",",
            ";",
            "AND",
            "OR",
            ")",
            "]",
            "\\}",
            "}",
            "END_OF_TEXT",
        ):
            self.i += 1
            return Dots()
        left = (self._call_head() if self.depth < 2 else None) or self.operand()
        kind = kinds[self.i]
        if kind != "REL":
            if kind == "SETOP" or (kind == "-" and isinstance(left, _STRUCTURES)):
                left = self.set_operation(left)
                kind = kinds[self.i]
            elif kind == ":" and not self.set_bar:
                left = self.ratio(left)
                kind = kinds[self.i]
            if kind == "MOD" and isinstance(left, _SCALAR):
                if self.texts[self.i] == "pmod":
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a remainder class without its left side")
                return self._modulo(left)
            if kind != "REL":
                return left
        return self.chained(left)

    def chained(self, left: Node) -> Node:
        """The relation that goes on from a value, or from a relation, with the sign at the current place."""
        kinds = self.kinds
        operands, operators = [left], list[str]()
        if isinstance(left, Relation):
            operands, operators = list(left.operands), list(left.operators)
        elif isinstance(left, Listing):
            raise self.unexpected()
        while kinds[self.i] == "REL":
            operators.append(self.texts[self.i])
            self.i += 1
            if len(operators) > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} signs of relation")
            right = self.operand()
            if kinds[self.i] == "SETOP" or (kinds[self.i] == "-" and isinstance(right, _STRUCTURES)):
                right = self.set_operation(right)
            elif kinds[self.i] == ":" and not self.set_bar:
                right = self.ratio(right)
            elif kinds[self.i] == "MOD" and isinstance(right, _SCALAR):
                if self.texts[self.i] == "pmod" and "equiv" not in operators:
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "an equation or a congruence")
                right = self._modulo(right)
            if operators[-1] in ("in", "notin", "subset"):
                right = self._as_set(right)
            operands.append(right)
        return Relation(tuple(operands), tuple(operators))

    def _as_set(self, node: Node) -> Node:
        """What a value is a member of; `k \\in Z` means the integers."""
        if isinstance(node, Symbol):
            name = node.name.removeprefix("vec ")
            return NamedSet(name) if name in ("N", "Z", "Q", "R", "C") else node
        if isinstance(node, _SCALAR):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "member of what is no set")
        return node

    def _modulo(self, left: Node) -> Node:
        bracketed = self.texts[self.i] == "pmod"
        self.i += 1
        right = self.argument() if bracketed or self.kinds[self.i] == "{" else self.sum()
        return Apply("mod", (left, self.scalar(right)))

    def _call_head(self) -> Node | None:
        """`f(x)` in front of an equals sign; None where the next tokens are anything else."""
        kinds, texts, i = self.kinds, self.texts, self.i
        if kinds[i] not in ("WORD", "NAME", "TEXT") or (
            kinds[i] != "NAME" and len(texts[i]) != 1 and texts[i] not in _MEASURES
        ):
            return None
        at = i + 1
        name = texts[i]
        if kinds[at] == "^" and kinds[at + 1 : at + 5] == ["{", "-", "NUM", "}"] and texts[at + 3] == "1":
            name, at = name + "^{-1}", at + 5
        while kinds[at] == "'":
            name, at = name + "'", at + 1
        if name in _MEASURES and kinds[at] in ("(", "["):
            close = self._end_of_bracket(at)
            inside = kinds[at + 1 : close]
            if (kinds[close + 1], texts[close + 1]) == ("REL", "=") and (
                kinds[at] == "[" or {"REL", "SETOP", "|", "MID", ","} & set(inside)
            ):
                if not inside or "END_OF_TEXT" in inside or len(inside) > 40:
                    raise self.unexpected()
                self.i = close + 1
                return Symbol("".join(texts[i : close + 1]))
        if kinds[at] != "(" or len(kinds) <= at + 4 or kinds[i] == "TEXT":
            return None
        if kinds[at + 1] not in ("WORD", "NUM", "NAME") or kinds[at + 2] != ")" or kinds[at + 3] != "REL":
            return None
        if self.texts[at + 3] != "=" or (kinds[at + 1] == "WORD" and len(texts[at + 1]) != 1):
            return None
        self.i = at + 1
        argument = self.number() if kinds[at + 1] == "NUM" else self.name()
        self.expect(")")
        return Call(name, (argument,))

    def _end_of_bracket(self, at: int) -> int:
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

    def set_operation(self, left: Node) -> Node:
        """Unions, intersections and differences, from left to right."""
        rounds = 0
        while self.kinds[self.i] in ("SETOP", "-"):
            operator = "difference" if self.kinds[self.i] == "-" else self.texts[self.i]
            at = self.i
            self.i += 1
            right = self.operand()
            if not isinstance(left, (*_STRUCTURES, Symbol)) or not isinstance(right, (*_STRUCTURES, Symbol)):
                raise self.refuse(Reason.CONTAINER_OPERATION, "a set operation on what is no set", at)
            if self.kinds[at] == "-" and not isinstance(right, SetOf | SetOperation | SetBuilder | NamedSet):
                raise self.refuse(Reason.CONTAINER_OPERATION, "arithmetic on what is no single value", at)
            if isinstance(left, SetOperation) and left.operator == operator:
                left = SetOperation(left.operator, (*left.items, right))
            else:
                rounds += 1
                if rounds > 8:
                    raise self.refuse(Reason.NESTED_TOO_DEEP, "mixed set operations")
                left = SetOperation(operator, (left, right))  # type: ignore[arg-type]
            if len(left.items) > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} sets")
        return left

    def ratio(self, first: Node) -> Node:
        parts = [self.scalar(first)]
        if self.depth:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a colon inside brackets")
        while self.kinds[self.i] == ":":
            self.i += 1
            parts.append(self.scalar(self.operand()))
            if len(parts) > self.limits.max_parts:
                raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} parts")
        return Ratio(tuple(parts))

    def operand(self) -> Node:
        """A sum with the mark behind it: a percent sign, a unit, degrees in words, a currency in front."""
        kinds = self.kinds
        kind = kinds[self.i]
        if kind == "CURRENCY" or (kind in ("-", "+") and kinds[self.i + 1] == "CURRENCY"):
            return self.currency()
        node = self.sum()
        kind = kinds[self.i]
        if kind in _MARKERS:
            return self.marked(node)
        return node

    def currency(self) -> Node:
        negative = self.kinds[self.i] == "-"
        if self.kinds[self.i] in ("-", "+"):
            self.i += 1
        sign = self.texts[self.i]
        self.i += 1
        node = self.scalar(self.sum())
        if negative:
            node = Number(-node.value, "-" + node.text) if isinstance(node, Number) else Negation(node)
        marked = self.marked(node) if self.kinds[self.i] in ("TEXT", "WORD", "HAN", "/") else node
        if isinstance(marked, Quantity):
            unit = marked.unit
            if unit in ("dollars", "dollar", "usd"):
                return Quantity(marked.operand, sign)
            return Quantity(marked.operand, f"{sign}{unit}" if unit.startswith("/") else f"{sign} {unit}")
        return Quantity(self.scalar(marked), sign)

    def marked(self, node: Node) -> Node:
        """The node with the unit, percent sign or words that follow it."""
        kind = self.kinds[self.i]
        if not isinstance(node, _SCALAR):
            return node
        if kind == "%":
            self.i += 1
            if self.kinds[self.i] in _OPERANDS and self.kinds[self.i] not in ("WORD",):
                raise self.refuse(Reason.AMBIGUOUS_PERCENT_NOTATION, "a remainder or a percentage")
            if isinstance(node, Degrees):
                raise self.unexpected()
            return Percent(node)
        if kind == "CURRENCY":
            self.i += 1
            return Quantity(node, self.texts[self.i - 1])
        if kind == "{" and not (self.kinds[self.i + 1] == "WORD" and self.kinds[self.i + 2] == "}"):
            return node
        bracketed = kind == "("
        if bracketed and not self._bracketed_unit():
            return node
        self.i += bracketed
        unit = self.unit(node)
        if bracketed:
            self.expect(")")
            if unit is not None and HAN_NUMERAL.fullmatch(unit):
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a number said twice")
        if unit is None:
            return node
        scale = 1
        while unit.partition(" ")[0] in MAGNITUDES:
            first, _, unit = unit.partition(" ")
            scale *= MAGNITUDES[first]
        if scale > 1:
            node = Number(node.value * scale) if isinstance(node, Number) else Product((node, Number(Fraction(scale))))
            if not unit:
                return node
        if unit in ("degrees", "degree", "度"):
            return Degrees(node)
        if unit in ("percent", "per cent", "个百分点"):
            return Percent(node)
        return Quantity(node, unit)

    def unit(self, node: Node) -> str | None:
        """The unit or words at the current place, as one text; None (nothing consumed) where there is none."""
        kinds, texts = self.kinds, self.texts
        start = self.i
        plain = not any(isinstance(part, Symbol) for part in walk(node))
        text = ""
        if kinds[self.i] == "/":
            text = "/"
            self.i += 1
        while True:
            kind, word = kinds[self.i], texts[self.i]
            braced = False
            if kind == "{" and kinds[self.i + 1] == "WORD" and kinds[self.i + 2] == "}":
                braced, kind, word = True, "WORD", texts[self.i + 1]
            if kind == "WORD":
                if word.lower() in NO_UNIT:
                    self.i = start
                    return None
                divided = text[-1:] in ("/", "*") and (len(word) == 1 or word in UNITS)
                joined = braced or divided or (text and word in ("per", "of"))
                if not joined and not self._is_unit_word(self.i):
                    if text:
                        break
                    self.i = start
                    return None
            elif kind == "TEXT":
                if {part.lower() for part in word.replace("(", " ").split()} & NO_UNIT:
                    self.i = start
                    return None
                if len(word) == 1 and not word.isalpha():
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, word)
            elif kind != "HAN" or HAN_NO_UNIT.search(word):
                break
            if (
                not plain
                and not text
                and not (word in UNITS or word in SHORT_UNITS or word.split()[0] in LONG_UNITS or kind == "HAN")
            ):
                self.i = start
                return None
            shown = word if word in UNITS or len(word) < 4 else word.lower()
            text += (" " if text and text[-1] not in "/*" else "") + shown
            self.i += 3 if braced else 1
            text += self._unit_tail()
            if len(text) > 80:
                self.i = start
                return None
        if not text or not is_unit(text):
            self.i = start
            return None
        return text

    def _unit_tail(self) -> str:
        """Exponent and the sign to the next unit, `^2/`."""
        kinds, texts = self.kinds, self.texts
        text = ""
        if kinds[self.i] == "SUP":
            text = f"^{texts[self.i]}"
            self.i += 1
        elif kinds[self.i] == "^":
            at = self.i + 1
            braced = kinds[at] == "{"
            at += braced
            sign = ""
            if kinds[at] == "-":
                sign, at = "-", at + 1
            if kinds[at] == "NUM":
                text = f"^{sign}{texts[at]}"
                self.i = at + 1
                if braced:
                    self.expect("}")
        if kinds[self.i] == "." and kinds[self.i + 1] in ("TEXT", "WORD"):
            self.i += 1
        if kinds[self.i] in ("/", "*") and kinds[self.i + 1] in ("TEXT", "WORD", "HAN", "("):
            sign = texts[self.i]
            if kinds[self.i + 1] == "(":
                if kinds[self.i + 2] != "WORD":
                    return text
                close = self.i + 3
                inner = texts[self.i + 2]
                if kinds[close] == "^" and kinds[close + 1] == "NUM":
                    inner += f"^{texts[close + 1]}"
                    close += 2
                if kinds[close] != ")":
                    return text
                self.i = close + 1
                return f"{text}{sign}{inner}"
            self.i += 1
            text += sign
        return text

    def _is_unit_word(self, at: int) -> bool:
        """The plain word at a place behind a value is a unit or a counted thing, and no product of letters."""
        word = self.texts[at]
        if word in UNITS:
            if word in GLUED_PRODUCT and not self.gaps[at]:
                before = self.texts[at - 1]
                return self.kinds[at - 1] == "NUM" and (len(before) >= 3 or "." in before) and word != "in"
            return True
        if word.lower() in LONG_UNITS:
            return True
        if len(word) < 4 and not (len(word) == 3 and self.gaps[at] and word in SHORT_THINGS):
            return (
                len(word) == 1
                and self.gaps[at] > 0
                and word in SHORT_UNITS
                and self.kinds[at + 1] == "/"
                and self.kinds[at + 2] in ("WORD", "(")
                and (self.kinds[at + 2] == "(" or self.texts[at + 2] in UNITS or self.texts[at + 2] in ("s", "h", "m"))
            )
        return word not in PLAIN_FUNCTIONS and word not in PLAIN_NAMES and prefixed(word) is None

    def sum(self) -> Node:
        """Terms joined by plus, minus and plus-minus."""
        kinds = self.kinds
        node = self.term()
        kind = kinds[self.i]
        if kind not in ("+", "-", "±"):
            return node
        if not isinstance(node, _SCALAR):
            if (
                isinstance(node, _STRUCTURES)
                and kind == "-"
                and not (isinstance(node, Bracketed) and len(node.items) < 2)
            ):
                return node  # a difference of sets, perhaps
            node = self.scalar(node)
        terms = [node]
        while True:
            kind = kinds[self.i]
            if kind == "+":
                self.i += 1
                terms.append(self.scalar(self.term()))
            elif kind == "-":
                self.i += 1
                term = self.scalar(self.term())
                terms.append(
                    Number(-term.value, "-" + term.text)
                    if isinstance(term, Number) and term.value > 0
                    else Negation(term)
                )
            elif kind == "±":
                if self.texts[self.i] == "+-":
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "+- adds a negative number or means plus or minus")
                self.i += 1
                if any(isinstance(term, PlusMinus) for term in terms):
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "two plus-minus signs in one sum")
                second = self.scalar(self.term())
                terms = [PlusMinus(terms[0] if len(terms) == 1 else Sum(tuple(terms)), second)]
            else:
                break
        if len(terms) == 1:
            return terms[0]
        if _ELLIPSIS in terms or Negation(_ELLIPSIS) in terms:
            return Call("sum", tuple(terms))
        return Sum(tuple(terms))

    def term(self) -> Node:
        """Factors joined by signs of multiplication and division, or by standing side by side."""
        kinds = self.kinds
        start = self.i
        node = self.factor()
        kind = kinds[self.i]
        if kind in _ENDERS:
            return node
        numerators = [node]
        denominators: list[Node] = []
        divided = False
        while True:
            kind = kinds[self.i]
            if kind in _ENDERS:
                break
            if kind == "*":
                self.i += 1
                numerators.append(self.scalar(self.factor()))
                divided = False
            elif kind == "/":
                if not denominators and self._per_unit():
                    break
                self.i += 1
                denominators.append(self.scalar(self.factor()))
                divided = True
            elif kind == "|" or kind == "MID":
                if self.bars or self.set_bar or kind == "MID":
                    break
                numerators.append(self.scalar(self.factor()))
            elif kind in _OPERANDS:
                if (kind == "NUM" and kinds[self.i - 1] != "!" and not _ends_in_names(numerators, divided)) or (
                    kind == "VULGAR"
                ):
                    raise self.refuse(Reason.ADJACENT_NUMBERS, f"{self.texts[self.i]} directly behind a value")
                if kind == "(" and (self._bracketed_unit() or self._is_condition()):
                    break
                if (
                    kind in ("(", "[")
                    and self.gaps[self.i]
                    and kinds[self.i - 1] != ")"
                    and self._bracketed_number()
                    and not any(isinstance(part, Symbol) for factor in numerators for part in walk(factor))
                ):
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a product, or a remark behind a value")
                if kind == "DOTS" and kinds[self.i - 1] == "NUM":
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "digits that go on")
                if kind == "WORD" and self._ends_term(self.i):
                    break
                inner = self.texts[self.i + 1]
                if kind == "{" and kinds[self.i + 1] == "WORD" and (len(inner) > 2 or inner in UNITS):
                    break
                if divided and not (isinstance(denominators[-1], Number) and isinstance(numerators[-1], Number)):
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "what belongs to the denominator is not clear")
                numerators.append(self.scalar(self.factor()))
                divided = False
            else:
                break
        if len(numerators) == 1 and not denominators:
            return node
        first = self.scalar(node)
        negative = False
        if kinds[start] == "-":  # `-2x` and the `-2x` of `3-2x` are one tree
            if isinstance(first, Negation):
                negative, first = True, first.operand
            elif isinstance(first, Number) and first.value < 0:
                negative, first = True, Number(-first.value, first.text[1:])
        numerators[0] = first
        if _ELLIPSIS in numerators:
            return Call("product", (*numerators, *(Power(part, _MINUS_ONE) for part in denominators)))
        top = numerators[0] if len(numerators) == 1 else Product(tuple(numerators))
        if denominators:
            top = Quotient(top, denominators[0] if len(denominators) == 1 else Product(tuple(denominators)))
        return Negation(top) if negative else top

    def _bracketed_unit(self) -> bool:
        """The bracket that opens here holds one unit: `12 (cm)`."""
        at = self.i + 1
        if self.kinds[at + 1] != ")":
            return False
        if self.kinds[at] == "WORD":
            return len(self.texts[at]) > 1 and self.texts[at] not in GLUED_PRODUCT and self._is_unit_word(at)
        return self.kinds[at] in ("TEXT", "HAN")

    def _bracketed_number(self) -> bool:
        """The bracket that opens here holds one number, with a sign or as a fraction perhaps."""
        kinds = self.kinds
        at = self.i + 1
        while kinds[at] in ("-", "+", "±"):
            at += 1
        if kinds[at] != "NUM":
            return kinds[at] == "FRAC" and not set(kinds[at : self._closing_bracket()]) - {"FRAC", "{", "}", "NUM"}
        at += 2 if kinds[at + 1] in ("/", ":") and kinds[at + 2] == "NUM" else 0
        return kinds[at + 1] in (")", "]")

    def _closing_bracket(self) -> int:
        """The next place where a bracket closes."""
        at = self.i
        while self.kinds[at] not in (")", "]", "END_OF_TEXT"):
            at += 1
        return at

    def _per_unit(self) -> bool:
        """The slash at the current place opens a unit: `40/hour`."""
        at = self.i + 1
        if self.kinds[at - 2] not in ("NUM", "}", ")"):
            return False
        if self.kinds[at] == "TEXT":
            return self.kinds[at - 2] == "NUM"
        return self.kinds[at] == "WORD" and len(self.texts[at]) > 1 and self._is_unit_word(at)

    def _ends_term(self, at: int) -> bool:
        """The word behind a value is no factor."""
        word = self.texts[at]
        if len(word) == 1:
            if self.integrals and word == "d":
                return True
            return word in SHORT_UNITS and self._is_unit_word(at)
        if word in PLAIN_FUNCTIONS or word in PLAIN_NAMES:
            return False
        if self.integrals and len(word) == 2 and word[0] == "d":
            return True
        if word in STOP_WORDS or self._is_unit_word(at):
            return True
        return len(word) > 3 and prefixed(word) is None

    # -------------------------------------------------------------------------------------- one factor

    def factor(self) -> Node:
        """A value with its signs in front and its exponent, factorial or degree sign behind."""
        kinds = self.kinds
        kind = kinds[self.i]
        if kind == "NUM":
            node = self.number()
            if kinds[self.i] in _ENDERS:
                return node
            return self.postfixed(node)
        if kind in ("-", "+", "±"):
            return self.signed()
        if kind in ("NAME", "WORD"):
            node = self.name()
            if kinds[self.i] in _ENDERS:
                return node
            return self.postfixed(node)
        form = _FORMS.get(kind)
        if form is None:
            raise self.unexpected()
        node = form(self)
        if kinds[self.i] in _ENDERS:
            return node
        return self.postfixed(node)

    def signed(self) -> Node:
        """A term behind its signs: `-x^2` is the negation of the square."""
        negative = False
        plus_minus = False
        signs = 0
        while (kind := self.kinds[self.i]) in ("-", "+", "±"):
            signs += 1
            if signs > self.limits.max_signs:
                raise self.refuse(Reason.NESTED_TOO_DEEP, f"more than {self.limits.max_signs} signs")
            if kind == "-":
                negative = not negative
            elif kind == "±":
                if plus_minus:
                    raise self.unexpected()
                plus_minus = True
            self.i += 1
        self.deeper()
        node = self.factor() if not plus_minus else self.term()
        self.depth -= 1
        node = self.scalar(node) if negative or plus_minus or not isinstance(node, Bracketed) else node
        if plus_minus:
            return PlusMinus(None, node)
        if negative:
            if isinstance(node, Number) and node.value >= 0:
                return Number(-node.value, "-" + node.text if node.text else "")
            return Negation(node)
        return node

    def postfixed(self, node: Node) -> Node:
        kinds = self.kinds
        rounds = 0
        while True:
            kind = kinds[self.i]
            if kind == "^":
                node = self.power(node)
            elif kind == "SUP":
                text = self.texts[self.i]
                exponent = _superscript(text)
                if exponent is None:
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"exponent {text}")
                self.i += 1
                node = Power(self.scalar(node), exponent)
            elif kind == "!":
                if isinstance(node, Power) and kinds[self.i - 1] not in (")", "]"):
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a factorial behind an exponent")
                self.i += 1
                name = "factorial"
                if kinds[self.i] == "!":
                    self.i += 1
                    name = "double_factorial"
                node = Apply(name, (self.scalar(node),))
            elif kind == "DEGREE":
                self.i += 1
                if isinstance(node, Symbol) and kinds[self.i] in _OPERANDS:
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "functions one after the other")
                node = self.degrees(node)
            else:
                return node
            rounds += 1
            if rounds > 6:
                raise self.refuse(Reason.NESTED_TOO_DEEP, "exponents, factorials or degree signs in a row")

    def degrees(self, node: Node) -> Node:
        """A value with its degree sign; Celsius and Fahrenheit are units, minutes and seconds belong to the angle."""
        node = self.scalar(node)
        kinds, texts = self.kinds, self.texts
        if (
            kinds[self.i] in ("TEXT", "WORD")
            and texts[self.i] in ("C", "F", "K")
            and (kinds[self.i] == "TEXT" or kinds[self.i + 1] == "END_OF_TEXT")
        ):
            self.i += 1
            return Quantity(node, f"°{texts[self.i - 1]}")
        if isinstance(node, Number) and kinds[self.i] == "NUM" and texts[self.i].isdigit() and len(texts[self.i]) < 3:
            value = node.value
            for part in (60, 3600):
                if kinds[self.i] != "NUM" or not texts[self.i].isdigit():
                    break
                amount = int(texts[self.i])
                primes = self._primes_after(self.i + 1)
                if primes is None or amount > 59 or primes[0] != (1 if part == 60 else 2):
                    raise self.unexpected()
                value += Fraction(amount, part)
                self.i = primes[1]
            return Degrees(Number(value))
        return Degrees(node)

    def _primes_after(self, at: int) -> tuple[int, int] | None:
        """How many primes stand at a place, written `'` or `^{\\prime}`, and where they end."""
        kinds = self.kinds
        if kinds[at] == "^":
            braced = kinds[at + 1] == "{"
            at += 1 + braced
            first = at
            while kinds[at] == "'":
                at += 1
            count = at - first
            if not count or (braced and kinds[at] != "}"):
                return None
            return count, at + braced
        first = at
        while kinds[at] == "'":
            at += 1
        return (at - first, at) if at > first else None

    def power(self, base: Node) -> Node:
        """The base with the exponent that follows its caret."""
        kinds, texts = self.kinds, self.texts
        self.i += 1
        kind = kinds[self.i]
        if kind == "DEGREE":
            self.i += 1
            return self.degrees(base)
        if kind == "{" and kinds[self.i + 1] == "DEGREE" and kinds[self.i + 2] == "}":
            self.i += 3
            return self.degrees(base)
        if kind == "'" or (kind == "{" and kinds[self.i + 1] == "'"):
            primes = self._primes_after(self.i - 1)
            if primes is None or not isinstance(base, Symbol):
                raise self.unexpected()
            self.i = primes[1]
            return Symbol(base.name + "'" * primes[0])
        if isinstance(base, Number):
            at = self.i + (kind == "{")
            if kinds[at] in ("TEXT", "WORD") and texts[at] in _ORDINALS:
                self.i = at + 1
                if kind == "{":
                    self.expect("}")
                return base
        if isinstance(base, NamedSet):
            at = self.i + (kind == "{")
            if kinds[at] in ("+", "-", "*", "NUM"):
                self.i = at + 1
                if kind == "{":
                    self.expect("}")
                return NamedSet(base.name + (f"^{texts[at]}" if kinds[at] == "NUM" else texts[at]))
        base = self.scalar(base)
        self.deeper()
        exponent = self.exponent()
        self.depth -= 1
        if (
            isinstance(base, Symbol)
            and base.name in ("f", "g", "h")
            and exponent == _MINUS_ONE
            and kinds[self.i] == "("
        ):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "an inverse function applied")
        return Power(base, exponent)

    def exponent(self) -> Node:
        """What stands behind a caret: a group, or one value with its signs."""
        kind = self.kinds[self.i]
        if kind == "{":
            return self.group()
        if kind in ("-", "+"):
            self.i += 1
            self.deeper()
            node = self.exponent()
            self.depth -= 1
            if kind == "+":
                return node
            if isinstance(node, Number) and node.value > 0:
                return Number(-node.value, "-" + node.text if node.text else "")
            return Negation(node)
        if kind == "NUM":
            node = self.plain_number()
        elif kind in ("NAME", "WORD"):
            word = self.texts[self.i]
            if self.kinds[self.i + 1] == "NUM" and (kind == "NAME" or len(word) == 1):
                self.i += 1  # `2^n3^n`: the numeral behind an exponent of one letter is the next factor
                node = _CONSTANTS.get(word) or Symbol(word)
            else:
                node = self.name()
        elif (form := _FORMS.get(kind)) is not None:
            node = self.scalar(form(self))
        else:
            raise self.unexpected()
        if self.kinds[self.i] == "^":
            return self.power(node)
        if self.kinds[self.i] == "!":
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a factorial behind an exponent")
        return node

    # -------------------------------------------------------------------------------------- numerals

    def plain_number(self) -> Number:
        """The numeral token itself."""
        text = self.texts[self.i]
        self.i += 1
        return self.numeral(text)

    def numeral(self, text: str) -> Number:
        if len(text) > self.limits.max_digits:
            raise self.refuse(Reason.NUMERIC_LITERAL_TOO_LONG, f"{len(text)} digits", self.i - 1)
        whole, point, decimals = text.partition(".")
        if "e" in text or "E" in text:
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, f"{text} as a part of something", self.i - 1)
        if not point:
            return Number(Fraction(int(whole)), text)
        return Number(Fraction(int((whole or "0") + decimals), 10 ** len(decimals)), text)

    def number(self) -> Node:
        """A numeral with what may belong to it: thousands, exponent, base, repeating digits, a fraction."""
        kinds, texts, gaps = self.kinds, self.texts, self.gaps
        text = texts[self.i]
        following = kinds[self.i + 1]
        if self.comma and "." in text and following not in (",", "{,}"):
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a point where the comma marks decimals")
        if following in _ENDERS and following != ",":
            if "e" in text or "E" in text:
                return self.scientific()
            return self.plain_number()
        if "e" in text or "E" in text:
            return self.scientific()
        if following == "NUM" and gaps[self.i + 1] == BLANK and (last := self._blank_groups()):
            text += "".join(texts[self.i + 1 : last + 1])
            self.i = last
            following = kinds[self.i + 1]
        if following in (",", "{,}") or (following == "NUM" and gaps[self.i + 1] == THIN):
            joined = self.grouped()
            if joined is not None:
                text = joined
                following = kinds[self.i + 1]
        at = self.i
        self.i += 1
        if following == "_" or following == "SUB":
            return self.based(text)
        if "." in text:
            if following == "VEC" and texts[self.i] in ("bar", "dot") and "NUM" in kinds[self.i + 1 : self.i + 3]:
                return self.repeating(text)
            if (
                following == "("
                and kinds[self.i + 1] == "NUM"
                and kinds[self.i + 2] == ")"
                and texts[self.i + 1].isdigit()
            ):
                if text.endswith("."):
                    self.i += 3
                    return self.repeated(text, texts[self.i - 2])
                raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a repeating decimal or a product")
        if following == "WORD":
            word = texts[self.i]
            if word in _ORDINALS and "." not in text:
                self.i += 1
                return self.numeral(text)
            if word.isupper() and "." not in text and (digits := self._letter_digits(text)) is not None:
                return self.based(digits)
            if word in ("x", "o", "b") and text == "0" and kinds[self.i + 1] == "NUM" and not gaps[self.i + 1]:
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a number in a programming language")
        value = self.numeral(text)
        if following == "HAN":
            return self.han_after(value)
        if "." in text:
            return value
        if following == "FRAC" and at >= 0:
            return self.mixed(value)
        if following == "VULGAR":
            top, _, bottom = texts[self.i].partition("/")
            self.i += 1
            return Number(value.value + Fraction(int(top), int(bottom)))
        if (
            following == "NUM"
            and gaps[self.i]
            and kinds[self.i + 1] == "/"
            and kinds[self.i + 2] == "NUM"
            and texts[self.i].isdigit()
            and texts[self.i + 2].isdigit()
        ):
            above, below = self.plain_number(), self._divisor()
            if not 0 <= above.value < below.value:
                raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a mixed number with an improper fraction")
            return Number(value.value + above.value / below.value)
        return value

    def _divisor(self) -> Number:
        self.i += 1
        return self.plain_number()

    def mixed(self, whole: Number) -> Node:
        """`2\\frac12` where all three are plain integers; else the whole number alone, and a product follows."""
        kinds, texts = self.kinds, self.texts
        at = self.i + 1
        parts: list[int] = []
        if kinds[at] == "NUM" and texts[at].isdigit() and len(texts[at]) == 2:
            parts, at = [int(texts[at][0]), int(texts[at][1])], at + 1
        else:
            while len(parts) < 2:
                if kinds[at] == "{" and kinds[at + 1] == "NUM" and kinds[at + 2] == "}" and texts[at + 1].isdigit():
                    parts.append(int(texts[at + 1]))
                    at += 3
                elif kinds[at] == "NUM" and texts[at].isdigit() and (not parts or len(texts[at]) == 1):
                    digits = texts[at]
                    if len(digits) > 1:
                        return whole
                    parts.append(int(digits))
                    at += 1
                else:
                    return whole
        if not 0 <= parts[0] < parts[1]:
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a mixed number with an improper fraction")
        self.i = at
        return Number(whole.value + Fraction(parts[0], parts[1]))

    def grouped(self) -> str | None:
        """The digits of a numeral with thousands separators from the current token on; None where there are none.

        Leaves the place at the last token of the numeral. With a decimal comma, the point separates thousands.
        """
        kinds, texts, gaps = self.kinds, self.texts, self.gaps
        at, first = self.i, texts[self.i]
        if self.comma:
            if (
                kinds[at + 1] in (",", "{,}")
                and kinds[at + 2] == "NUM"
                and texts[at + 2].isdigit()
                and gaps[at + 1] == gaps[at + 2] == 0
            ):
                whole = first.replace(".", "")
                if "." in first and not re.fullmatch(r"[1-9][0-9]{0,2}\.[0-9]{3}", first):
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a point where the comma marks decimals")
                self.i = at + 2
                return f"{whole}.{texts[at + 2]}"
            return None
        if not first.isdigit() or len(first) > 3 or first[0] == "0":
            return None
        digits = first
        while True:
            kind, gap = kinds[at + 1], gaps[at + 1]
            open_comma = gaps[at + 2] == NEGATIVE or not (self.separating or gaps[at + 2])
            if not gap and (kind == "{,}" or (kind == "," and open_comma)):
                step = 2
            elif kind == "NUM" and gap == THIN:
                step = 1
            else:
                break
            group = texts[at + step]
            if kinds[at + step] != "NUM" or len(group.partition(".")[0]) != 3 or not group.partition(".")[0].isdigit():
                if (
                    kind == ","
                    and digits is not first
                    and kinds[at + step] == "NUM"
                    and step == 2
                    and gaps[at + 2] == NO_GAP
                ):
                    return None  # `1,234,5` is a list
                break
            digits += group
            at += step
            if "." in group:
                break
        if at == self.i:
            return None
        self.i = at
        return digits

    def _blank_groups(self) -> int:
        """The last of at least two groups of three digits with blanks between, outside brackets; 0 if there are none."""
        kinds, texts, at = self.kinds, self.texts, self.i
        if self.separating or self.comma or not re.fullmatch(r"[1-9][0-9]{0,2}", texts[at]):
            return 0
        while kinds[at + 1] == "NUM" and self.gaps[at + 1] == BLANK and len(texts[at + 1].partition(".")[0]) == 3:
            at += 1
            if not texts[at].isdigit():
                break
        return at if at > self.i + 1 and kinds[at + 1] != "NUM" else 0

    def scientific(self) -> Node:
        """`1.5e-3`, exact; an exponent beyond the limit stays a power of ten that nobody has to build."""
        text = self.texts[self.i]
        self.i += 1
        mantissa, _, exponent = text.lower().partition("e")
        if len(exponent) > 20:
            raise self.refuse(Reason.SCIENTIFIC_EXPONENT_TOO_LARGE, "digits of the exponent", self.i - 1)
        shift = int(exponent)
        number = self.numeral(mantissa)
        if abs(shift) + len(mantissa) <= self.limits.max_digits:
            scale = Fraction(10) ** shift
            return Number(number.value * scale, text)
        return Product((number, Power(Number(Fraction(10)), Number(Fraction(shift)))))

    def repeating(self, text: str) -> Node:
        """`0.1\\overline{6}` and `0.\\dot{3}`; one dot or the first and last of the repeating digits."""
        kinds, texts = self.kinds, self.texts
        dotted = texts[self.i] == "dot"
        digits = ""
        while kinds[self.i] == "VEC" and texts[self.i] == ("dot" if dotted else "bar"):
            at = self.i + 1
            braced = kinds[at] == "{"
            at += braced
            if kinds[at] != "NUM" or not texts[at].isdigit():
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a repeating decimal without digits")
            if braced:
                digits += texts[at]
                self.i = at + 1
                self.expect("}")
            else:
                digits += texts[at]
                self.i = at + 1
            if not dotted:
                break
            if kinds[self.i] == "NUM" and kinds[self.i + 1] == "VEC" and texts[self.i].isdigit():
                digits += texts[self.i]
                self.i += 1
        if kinds[self.i] == "NUM":
            raise self.unexpected()
        return self.repeated(text, digits)

    def repeated(self, text: str, digits: str) -> Node:
        fixed = self.numeral(text)
        places = len(text.partition(".")[2])
        if len(digits) + places > self.limits.max_digits:
            raise self.refuse(Reason.NUMERIC_LITERAL_TOO_LONG, "repeating digits")
        return Number(fixed.value + Fraction(int(digits), (10 ** len(digits) - 1) * 10**places))

    def based(self, digits: str) -> Node:
        """`1432_5`: a numeral in the base of its subscript, whose digits must all be below it."""
        kinds, texts = self.kinds, self.texts
        if kinds[self.i] == "SUB":
            base_text = texts[self.i]
            self.i += 1
        else:
            at = self.i + 1
            braced = kinds[at] == "{"
            at += braced
            base_text = texts[at]
            if kinds[at] == "NUM" or (kinds[at] in ("TEXT", "WORD") and base_text in _BASE_WORDS):
                base_text = str(_BASE_WORDS.get(base_text, base_text))
                self.i = at + 1
                if braced:
                    self.expect("}")
            else:
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a numeral with a subscript")
        if not base_text.isdigit() or len(base_text) > 2 or not 2 <= int(base_text) <= 36 or "." in digits:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a numeral with a subscript")
        base = int(base_text)
        if any(int(digit, 36) >= base for digit in digits) or len(digits) > self.limits.max_digits:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"a digit that base {base} does not have")
        return Based(digits.lstrip("0") or "0", base)

    def _letter_digits(self, digits: str) -> str | None:
        """The numeral with letters for digits that a base follows, `1A3_{16}`; None (nothing consumed) if none does."""
        at = self.i
        while self.kinds[at] in ("WORD", "NUM") and not self.gaps[at] and self.texts[at].isalnum():
            digits += self.texts[at]
            at += 1
        if self.kinds[at] not in ("_", "SUB") or not digits.isupper():
            return None
        self.i = at
        return digits

    def vulgar(self) -> Node:
        top, _, bottom = self.texts[self.i].partition("/")
        self.i += 1
        return Number(Fraction(int(top), int(bottom)))

    def han(self) -> Node:
        """A Chinese numeral: whole, decimal, fraction, percentage, with its unit behind it."""
        text, at = self.texts[self.i], self.i
        if text.startswith("百分之"):
            rest = text[3:]
            self.i += 1
            if not rest and self.kinds[self.i] == "NUM":
                return Percent(self.plain_number())
            value = han_number(rest)
            if value is not None:
                return Percent(Number(value))
            raise self.refuse(Reason.UNSUPPORTED_NAME, f"the word {text}", at)
        if text == "负" and self.kinds[at + 1] in ("NUM", "FRAC"):
            self.i += 1
            operand = self.scalar(self.factor())
            return Number(-operand.value) if isinstance(operand, Number) else Negation(operand)
        negative = text.startswith("负") and len(text) > 1
        text = text[1:] if negative else text
        fraction = HAN_FRACTION.match(text)
        numeral = HAN_NUMERAL.match(text) if fraction is None else None
        value = None
        rest = text
        if fraction is not None:
            whole = Fraction(0) if fraction[1] is None else han_number(fraction[1])
            bottom, top = han_number(fraction[2]), han_number(fraction[3])
            if whole is not None and bottom and top is not None:
                value, rest = whole + top / bottom, text[fraction.end() :]
        elif numeral is not None:
            value, rest = han_number(numeral.group()), text[numeral.end() :]
        if value is None or (rest and not HAN_UNIT.match(rest)):
            raise self.refuse(Reason.UNSUPPORTED_NAME, f"the word {text}")
        self.i += 1
        number = Number(-value if negative else value)
        if rest == "度":
            return Degrees(number)
        return Quantity(number, rest) if rest else number

    def han_after(self, value: Number) -> Node:
        """Arabic digits with Chinese behind them: 3万, 4分之1, 3又4分之1; units are left to the caller."""
        kinds, texts = self.kinds, self.texts
        text = texts[self.i]
        if text == "分之" and kinds[self.i + 1] == "NUM" and value.value:
            self.i += 2
            return Number(self.numeral(texts[self.i - 1]).value / value.value)
        if text == "又" and kinds[self.i + 1 : self.i + 4] == ["NUM", "HAN", "NUM"] and texts[self.i + 2] == "分之":
            bottom, top = self.numeral(texts[self.i + 1]), self.numeral(texts[self.i + 3])
            if bottom.value:
                self.i += 4
                return Number(value.value + top.value / bottom.value)
        if text == "又" and kinds[self.i + 1 : self.i + 4] == ["NUM", "/", "NUM"]:
            top, bottom = self.numeral(texts[self.i + 1]), self.numeral(texts[self.i + 3])
            if bottom.value:
                self.i += 4
                return Number(value.value + top.value / bottom.value)
        if text[0] == "又" and (fraction := HAN_FRACTION.fullmatch(text[1:])) is not None and fraction[1] is None:
            bottom_value, top_value = han_number(fraction[2]), han_number(fraction[3])
            if bottom_value and top_value is not None:
                self.i += 1
                return Number(value.value + top_value / bottom_value)
        scale = 1
        used = 0
        for character in text[:2]:
            if character not in "百千万亿":
                break
            if used and character not in "万亿":
                break
            if text[used : used + 2] in ("千米", "千克", "千瓦", "百分"):
                break
            scale *= {**TENS, **MYRIADS}[character]
            used += 1
        if not used:
            return value
        if used < len(text):
            self.texts[self.i] = text[used:]
        else:
            self.i += 1
            if kinds[self.i] == "NUM":
                raise self.unexpected()
        return Number(value.value * scale)

    # -------------------------------------------------------------------------------------- names

    def name(self) -> Node:
        """A constant, a symbol with index and primes, a function in plain letters, or the first of several letters."""
        kinds, texts = self.kinds, self.texts
        word = texts[self.i]
        at = self.i
        if kinds[at] == "WORD" and len(word) > 1:
            known = PLAIN_NAMES.get(word)
            if known is not None:
                word = known
            elif word in PLAIN_FUNCTIONS:
                return self.function()
            else:
                first = self.split(word)
                if first is None:
                    return self.function()
                word = first
        self.i += 1
        if kinds[self.i] in ("NUM",) and not self.gaps[self.i]:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"{texts[self.i]} directly behind a letter")
        constant = _CONSTANTS.get(word)
        if constant is not None and kinds[self.i] != "_" and word not in self.bound:
            if word in ("e", "i") and texts[self.i] == "=" and (at == 0 or kinds[at - 1] in (",", ";", "AND", "OR")):
                return Symbol(word)  # the unknown of `e = 2`
            return constant
        kind = kinds[self.i]
        if kind in _ENDERS:
            return Symbol(word)
        if kind in ("_", "SUB", "'"):
            word = self.indexed(word)
            kind = kinds[self.i]
            if kind == "^" and word[0] in "CPA" and (word[0] == "C" or word[2:].isdigit()):
                raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a number of combinations or a power")
        if kind == "(":
            return self.called(word)
        return Symbol(word)

    def split(self, word: str) -> str | None:
        """The first symbol of a run of letters; the others become tokens. None: a function stands first."""
        at = self.i
        if word.isupper() and 2 <= len(word) <= 3:
            return word
        prefix = prefixed(word)
        following = self.kinds[at + 1]
        if prefix is not None:
            parts = [prefix, word[len(prefix) :]]
        elif len(word) > 3 and word[1:] in PLAIN_FUNCTIONS and following == "(":
            parts = [word[0], word[1:]]
        elif (
            len(word) > 3 and at == 0 and following == "REL" and self.texts[at + 1] == "=" and not is_no_name(word)
        ):
            return word
        elif len(word) > 3 or word in STOP_WORDS or following == "'" or (len(word) > 2 and word in UNITS):
            raise self.refuse(Reason.UNSUPPORTED_NAME, f"the word {word}")
        else:
            parts = list(word)
        count = len(parts)
        self.kinds[at : at + 1] = ["WORD"] * count
        self.texts[at : at + 1] = parts
        self.starts[at : at + 1] = [self.starts[at]] * count
        self.gaps[at : at + 1] = [self.gaps[at], *[NO_GAP] * (count - 1)]
        return None if prefix is not None else parts[0]

    def indexed(self, word: str) -> str:
        """The name with its index and primes, spelled one way."""
        kinds, texts = self.kinds, self.texts
        subscripted = False
        while True:
            kind = kinds[self.i]
            if kind == "'":
                word += "'"
                self.i += 1
            elif kind == "SUB" and not subscripted:
                word += f"_{texts[self.i]}"
                self.i += 1
                subscripted = True
            elif kind == "_" and not subscripted:
                self.i += 1
                word += f"_{self.subscript()}"
                subscripted = True
            else:
                return word

    def subscript(self) -> str:
        """The text of an index: `1`, `{n+1}`."""
        kinds, texts = self.kinds, self.texts
        kind = kinds[self.i]
        if kind in ("NUM", "NAME", "TEXT", "SUB"):
            self.i += 1
            return texts[self.i - 1] if len(texts[self.i - 1]) == 1 or kind == "NUM" else f"{{{texts[self.i - 1]}}}"
        if kind == "WORD":
            self.i += 1
            word = texts[self.i - 1]
            return word if len(word) == 1 else f"{{{word}}}"
        if kind != "{":
            raise self.unexpected()
        close = self._closes(self.i)
        if close < 0:
            raise self.refuse(Reason.UNBALANCED_BRACKETS, "} is missing")
        inner = "".join(texts[self.i + 1 : close])
        if not inner or len(inner) > 40:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "an index")
        self.i = close + 1
        return inner if inner.isdigit() or len(inner) == 1 else f"{{{inner}}}"

    def called(self, word: str) -> Node:
        """A symbol with a bracket right behind it: a call for f, g, h and for several arguments, else a product."""
        at = self.i
        inside, several = self._inside_bracket()
        plain = len(word) > 1 and word.isascii() and word.isalpha() and word not in PLAIN_NAMES.values()
        if several:
            if plain and not word.isupper():
                raise self.refuse(Reason.UNSUPPORTED_CALL, word, at)
            arguments = self.bracket()
            if isinstance(arguments, Bracketed) and arguments.left == "(" and arguments.right == ")":
                return Call(word, arguments.items)
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "an interval behind a letter", at)
        if (word[0] in _CALLABLE or word in ("O", "Theta", "Omega")) and word[0] not in inside:
            argument = self.bracket()
            if isinstance(argument, _SCALAR):
                return Call(word, (argument,))
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a function of what is no single value", at)
        if plain and not word.isupper():
            raise self.refuse(Reason.UNSUPPORTED_CALL, word, at)
        return Symbol(word)

    def _inside_bracket(self) -> tuple[list[str], bool]:
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

    def letter(self) -> Node:
        raise self.unexpected()

    # -------------------------------------------------------------------------------------- forms

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
        close = self._closes(self.i)
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
                return _CONSTANTS.get(word[0]) or Symbol(word[0])
            self.i += 1
            word = PLAIN_NAMES.get(word, word)
            return _CONSTANTS.get(word) or Symbol(word)
        if kind in ("FRAC", "SQRT", "BINOM", "VEC", "BB", "VULGAR"):
            self.deeper()
            node = self.scalar(_FORMS[kind](self))
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
        middle = self._closes(at)
        if middle < 0 or self.kinds[middle + 1] != "{":
            return None
        end = self._closes(middle + 1)
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
                    if name in _CONSTANTS:
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
            radicand = _CONSTANTS.get(self.texts[self.i]) or Symbol(self.texts[self.i])
            self.i += 1
        elif kind in ("RADICAL", "FRAC", "SQRT"):
            radicand = _FORMS[kind](self)
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
        if closer == "|" and self.kinds[self.i] in _OPERANDS and "|" in self.kinds[self.i :]:
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

    def function(self) -> Node:
        """A known function with its exponent, base and arguments: `\\sin^2 x`, `\\log_2 8`, `gcd(4, 6)`."""
        kinds, texts = self.kinds, self.texts
        at = self.i
        plain = kinds[at] == "WORD"
        name = PLAIN_FUNCTIONS[texts[at]] if plain else texts[at]
        self.i += 1
        if name in ("sqrt", "cbrt"):
            degree = 2 if name == "sqrt" else 3
            if kinds[self.i] in ("(", "["):
                node = self.bracket()
                return Root(self.scalar(node), degree)
            if kinds[self.i] == "{":
                return Root(self.group(), degree)
            if kinds[self.i] == "NUM":
                return Root(self.plain_number(), degree)
            raise self.refuse(Reason.MISSING_OPERAND, "a root of nothing")
        exponent: Node | None = None
        base: Node | None = None
        for _ in range(2):
            if kinds[self.i] == "^" and exponent is None:
                self.i += 1
                self.deeper()
                exponent = self._function_exponent(plain)
                self.depth -= 1
            elif kinds[self.i] == "SUP" and exponent is None:
                exponent = _superscript(texts[self.i])
                self.i += 1
            elif kinds[self.i] in ("_", "SUB") and name == "log" and base is None:
                base = self._logarithm_base()
        if plain and name == "log" and kinds[self.i] == "NUM" and not self.gaps[self.i] and kinds[self.i + 1] == "(":
            base = self.plain_number()
        self.deeper()
        arguments = self._arguments(name, at)
        self.depth -= 1
        return self._applied(name, base, exponent, arguments, at)

    def _function_exponent(self, plain: bool) -> Node:
        if self.kinds[self.i] == "NUM" and len(self.texts[self.i]) > 1 and not plain:
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "the exponent of a function")
        return self.exponent()

    def _logarithm_base(self) -> Node:
        if self.kinds[self.i] == "SUB":
            self.i += 1
            return self.numeral(self.texts[self.i - 1])
        self.i += 1
        if self.kinds[self.i] == "NUM" and self.gaps[self.i + 1] and len(self.texts[self.i]) <= 2:
            return self.plain_number()
        return self.argument()

    def _arguments(self, name: str, at: int) -> tuple[Node, ...]:
        """The arguments in brackets, or the product that stands behind a function without any."""
        kinds = self.kinds
        kind = kinds[self.i]
        if kind in ("(", "["):
            node = self.bracket()
            if isinstance(node, Bracketed) and len(node.items) > 1:
                if node.left != "(" or node.right != ")" or 2 not in FUNCTIONS.get(name, (1,)):
                    raise self.refuse(Reason.UNSUPPORTED_CALL, f"{name} of several arguments", at)
                return tuple(self.scalar(item) for item in node.items)
            node = self.scalar(node)
            if kinds[self.i] in ("^", "SUP") and name in ("ln", "log", "lg") and kinds[at] == "FUNC":
                # \sin(x)^2 is the square of the sine; \ln(x)^2 is written for both
                raise self.refuse(Reason.AMBIGUOUS_NOTATION, "an exponent behind the brackets of a function")
            return (node,)
        if kind == "{" and name in ("max", "min", "gcd", "lcm"):
            raise self.unexpected()
        if kind == "\\{" and name in ("max", "min"):
            node = self.set_braces()
            if isinstance(node, SetOf) and node.items:
                return tuple(self.scalar(item) for item in node.items)
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"{name} of a set", at)
        factors: list[Node] = []
        start = self.i
        while True:
            kind = kinds[self.i]
            if factors and (kind not in _OPERANDS or kind in ("FUNC", "BIG")):
                break
            if kind == "WORD" and factors:
                word = self.texts[self.i]
                if word in PLAIN_FUNCTIONS or prefixed(word) is not None or self._ends_term(self.i):
                    break
            if kind == "(" and factors:
                break
            if kind == "NUM" and factors:
                raise self.unexpected()
            factors.append(self.scalar(self.factor()))
            if len(factors) > 1 and (kinds[start] == "{" or _is_no_argument(factors[-1])):
                raise self.refuse(Reason.AMBIGUOUS_NOTATION, "what the function is taken of is not clear", start)
            if len(factors) == 1 and isinstance(factors[0], Apply) and kind in ("FUNC", "WORD"):
                break
        if kinds[self.i] == "/" and not (kinds[self.i + 1] == "FUNC" or self.texts[self.i + 1] in PLAIN_FUNCTIONS):
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "what the function is taken of is not clear")
        if kinds[self.i] == "(" and len(factors) > 0:
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "what the function is taken of is not clear")
        return (factors[0] if len(factors) == 1 else Product(tuple(factors)),)

    def _applied(
        self, name: str, base: Node | None, exponent: Node | None, arguments: tuple[Node, ...], at: int
    ) -> Node:
        if name == "log" and base is not None:
            arguments = (base, *arguments)
        elif name == "log" and len(arguments) == 2:
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "which argument of log is the base", at)
        if name == "lg":
            name, arguments = "log", (Number(Fraction(10), "10"), *arguments)
        if len(arguments) not in FUNCTIONS[name]:
            raise self.refuse(Reason.UNSUPPORTED_CALL, f"{name} of {len(arguments)} arguments", at)
        if exponent == _MINUS_ONE:
            if f"arc{name}" not in FUNCTIONS:
                raise self.refuse(Reason.AMBIGUOUS_NOTATION, f"the inverse of {name}", at)
            return Apply(f"arc{name}", arguments)
        node = Apply(name, arguments)
        return node if exponent is None else Power(node, exponent)

    def named(self) -> Node:
        """A letter with a mark over it, or in another alphabet: `\\vec{v}`, `\\overrightarrow{AB}`."""
        mark = self.texts[self.i]
        look = mark in ("bold", "under", "mathit")
        mark = "vec" if mark == "bold" else mark
        self.i += 1
        if self.kinds[self.i] == "{":
            close = self._closes(self.i)
            inner = "".join(self.texts[self.i + 1 : close]) if close > 0 else ""
            kinds = set(self.kinds[self.i + 1 : close]) if close > 0 else set()
            if not inner or len(inner) > 12 or not kinds <= {"WORD", "NAME", "_", "NUM", "'", "{", "}"}:
                if look:
                    return self.group()
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"{mark} over an expression")
            self.i = close + 1
        elif self.kinds[self.i] in ("WORD", "NAME") and (len(self.texts[self.i]) == 1 or self.kinds[self.i] == "NAME"):
            inner = self.texts[self.i]
            self.i += 1
        else:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, mark)
        if mark == "mathit" and not inner[0].isdigit():
            return _CONSTANTS.get(inner) or Symbol(inner)
        if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", inner):
            if not look:
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"{mark} over digits")
            return self.numeral(inner)
        name = f"{mark} {inner}"
        return Symbol(self.indexed(name) if self.kinds[self.i] in ("_", "SUB", "'") else name)

    def shape(self) -> Node:
        """`\\triangle ABC`, `\\angle CDA`: one name."""
        shape = self.texts[self.i]
        self.i += 1
        kind = self.kinds[self.i]
        if kind not in ("WORD", "NAME") and (kind != "NUM" or shape != "angle"):
            raise self.unexpected()
        self.i += 1
        return Symbol(f"{shape} {self.texts[self.i - 1]}")

    def blackboard(self) -> Node:
        """`\\mathbb{R}`, `\\mathbb{R}^+`."""
        name = self.texts[self.i]
        self.i += 1
        if name == "mathbb":
            braced = self.kinds[self.i] == "{"
            self.i += braced
            name = self.texts[self.i]
            if self.kinds[self.i] != "WORD" or name not in ("N", "Z", "Q", "R", "C"):
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a letter of the blackboard alphabet")
            self.i += 1
            if braced:
                self.expect("}")
        if self.kinds[self.i] == "_":
            self.i += 1
            name += f"_{self.subscript()}"
        return NamedSet(name)

    def empty_set(self) -> Node:
        self.i += 1
        return SetOf(())

    def dots(self) -> Node:
        self.i += 1
        return _ELLIPSIS

    def text(self) -> Node:
        """A name in words beside a sign of calculation or relation: `\\text{base} \\times \\text{height}`."""
        at = self.i
        content = self.texts[at]
        beside = ("REL", "*", "/", "+", "-")
        before = self.kinds[at - 1] if at else ""
        if (
            not re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+){0,2}", content)
            or {part.lower() for part in content.split()} & SENTENCE
            or is_no_name(content)
        ):
            raise self.unexpected()
        if self.kinds[at + 1] not in beside and before not in beside:
            if len(content) == 1:
                self.i += 1
                return Symbol(content)
            raise self.unexpected()
        self.i += 1
        name = content if len(content) == 1 else content.lower()
        return Symbol(self.indexed(name) if self.kinds[self.i] in ("_", "'") else name)

    def big(self) -> Node:
        """A sum, product, integral or limit, kept as written."""
        operator = self.texts[self.i]
        at = self.i
        self.i += 1
        self.deeper()
        variable = ""
        lower: Node | None = None
        upper: Node | None = None
        kinds = self.kinds
        for _ in range(2):
            if kinds[self.i] == "_" and lower is None:
                self.i += 1
                if operator == "int":
                    lower = self.argument()
                else:
                    variable, lower = self._bound(operator)
            elif kinds[self.i] == "^" and upper is None and operator != "lim":
                self.i += 1
                upper = self.argument() if kinds[self.i] == "{" or kinds[self.i] != "-" else self.exponent()
        self.integrals += operator == "int"
        bound, self.bound = self.bound, (*self.bound, variable)
        body = self.scalar(self.term() if operator != "int" else self.sum())
        if operator == "int":
            self.integrals -= 1
            word = self.texts[self.i]
            if kinds[self.i] == "WORD" and len(word) == 2 and word[0] == "d":
                variable = word[1]
                self.i += 1
            elif kinds[self.i] == "WORD" and word == "d" and kinds[self.i + 1] in ("WORD", "NAME"):
                variable = self.texts[self.i + 1]
                self.i += 2
            else:
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "an integral without its variable", at)
        self.bound = bound
        self.depth -= 1
        if not variable:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"{operator} without its variable", at)
        return BigOperator(operator, variable, lower, upper, body)  # type: ignore[arg-type]

    def _bound(self, operator: str) -> tuple[str, Node]:
        """The variable and its start, `{k=1}` or `{x \\to 0}`."""
        kinds, texts = self.kinds, self.texts
        self.expect("{")
        if kinds[self.i] not in ("WORD", "NAME") or kinds[self.i + 1] not in ("REL", "TO"):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"what {operator} runs over")
        if (kinds[self.i + 1] == "TO") != (operator == "lim") or (operator != "lim" and texts[self.i + 1] != "="):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"what {operator} runs over")
        variable = texts[self.i]
        self.i += 2
        lower = self.scalar(self.sum())
        if kinds[self.i] == "^" and kinds[self.i + 1] in ("+", "-"):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a limit from one side")
        self.expect("}")
        return variable, lower

    def _without_ampersands(self) -> None:
        """Takes out the marks that line up relation signs, `x &= 1`."""
        kinds = self.kinds
        at = self.i
        while kinds[at] not in ("END", "END_OF_TEXT"):
            if kinds[at] == "&" and (kinds[at + 1] == "REL" or kinds[at - 1] == "REL"):
                for tokens in (kinds, self.texts, self.starts, self.gaps):
                    del tokens[at]
            else:
                at += 1

    def environment(self, system: bool = False) -> Node:
        """A matrix, or a system of relations."""
        name = self.texts[self.i]
        at = self.i
        self.i += 1
        if name not in _ENVIRONMENTS:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, f"the environment {name}", at)
        self.deeper()
        separating, bars, set_bar = self.separating, self.bars, self.set_bar
        self.separating, self.bars, self.set_bar = True, 0, False
        rows: list[list[Node]] = []
        kinds = self.kinds
        cells = 0
        lines = system or name in _LINES
        if lines and name != "cases":
            self._without_ampersands()
        while kinds[self.i] != "END":
            row: list[Node] = []
            while True:
                if kinds[self.i] == "&" and lines:
                    self.i += 1
                    continue
                if kinds[self.i] == "REL" and rows and name in _CHAINED:
                    rows[-1][-1] = self.chained(rows[-1][-1])
                    if kinds[self.i] in (",", ";") and kinds[self.i + 1] in ("ROW", "END"):
                        self.i += 1
                    break
                row.append(self.listing() if lines else self.relation())
                cells += 1
                if cells > self.limits.max_parts:
                    raise self.refuse(Reason.TOO_MANY_PARTS, f"more than {self.limits.max_parts} parts")
                if kinds[self.i] == "&" and not lines:
                    self.i += 1
                    continue
                break
            if row:
                rows.append(row)
            if kinds[self.i] in ("ROW", "\\"):  # a lone backslash: escaped once too few
                self.i += 1
            elif kinds[self.i] != "END":
                raise (
                    self.unexpected()
                    if kinds[self.i] != "END_OF_TEXT"
                    else self.refuse(Reason.UNBALANCED_BRACKETS, "an environment is not closed")
                )
        if self.texts[self.i] != name:
            raise self.refuse(Reason.UNBALANCED_BRACKETS, "environments that cross")
        self.i += 1
        self.separating, self.bars, self.set_bar = separating, bars, set_bar
        self.depth -= 1
        if not rows:
            raise self.refuse(Reason.MISSING_OPERAND, "an empty environment", at)
        if name in ("vmatrix", "Vmatrix"):
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a determinant", at)
        if lines or (name == "array" and len(rows[0]) == 1 and all(isinstance(row[0], Relation) for row in rows)):
            parts = [
                part for row in rows for item in row for part in (item.items if isinstance(item, Listing) else (item,))
            ]
            if len(parts) == 1:
                return parts[0]
            if not all(isinstance(part, Relation) for part in parts):
                raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a system of what are no relations", at)
            return System(tuple(parts))
        if len({len(row) for row in rows}) != 1:
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a matrix with rows of different lengths", at)
        return Matrix(tuple(tuple(row) for row in rows))


_SENTINELS = ["END_OF_TEXT"] * 8
_NO_TEXTS = [""] * 8
_ELLIPSIS = Symbol("...")
_MINUS_ONE = Number(Fraction(-1))
_ENVIRONMENTS = words_of(
    "pmatrix bmatrix matrix array smallmatrix Bmatrix vmatrix Vmatrix cases dcases rcases aligned align gathered gather "
    "split eqnarray equation"
)
_CHAINED = words_of("aligned align gathered gather split eqnarray")
"""Environments in which a line that starts with a relation sign goes on with the line above."""
_LINES = _CHAINED | words_of("cases dcases rcases equation")
_FORMS = {
    "(": Reader.bracket,
    "[": Reader.bracket,
    "{": Reader.braced,
    "\\{": Reader.set_braces,
    "⟨": Reader.angle_bracket,
    "|": Reader.absolute,
    "|(": Reader.absolute,
    "MID": Reader.absolute,
    "⌊": Reader.rounded,
    "⌈": Reader.rounded,
    "FRAC": Reader.fraction,
    "BINOM": Reader.binomial,
    "SQRT": Reader.root,
    "RADICAL": Reader.radical,
    "FUNC": Reader.function,
    "VEC": Reader.named,
    "SHAPE": Reader.shape,
    "BB": Reader.blackboard,
    "EMPTY": Reader.empty_set,
    "VULGAR": Reader.vulgar,
    "HAN": Reader.han,
    "DOTS": Reader.dots,
    "TEXT": Reader.text,
    "BIG": Reader.big,
    "BEGIN": Reader.environment,
    "LETTER": Reader.letter,
}


def prefixed(word: str) -> str | None:
    """The function a run of letters starts with where one letter follows it: `sin` of `sinx`."""
    head = word[:-1]
    return head if head in ("sin", "cos", "tan", "cot", "sec", "csc", "ln", "log") and len(word) > len(head) else None


def _ends_in_names(factors: list[Node], divided: bool) -> bool:
    """The last factor has an exponent with a name in it, behind which a numeral starts the next factor: `2^n3^n`."""
    last = factors[-1]
    if isinstance(last, Negation):
        last = last.operand
    return (
        not divided
        and isinstance(last, Power)
        and any(isinstance(part, Symbol) for part in walk(last.exponent))
    )


def _is_no_argument(factor: Node) -> bool:
    """A factor that a function without brackets seldom reaches to: `\\sin x e^x`, `\\cos t \\mathbf{i}`."""
    base = factor.base if isinstance(factor, Power) else factor
    return base in (_CONSTANTS["e"], _CONSTANTS["i"]) or (isinstance(base, Symbol) and " " in base.name)


def _superscript(text: str) -> Node | None:
    """The exponent that raised digits spell: `²`, `⁻³`, `ⁿ`."""
    if text == "n":
        return Symbol("n")
    digits = text.lstrip("+-")
    if not digits.isdigit() or len(text) - len(digits) > 1 or len(digits) > 9:
        return None
    return Number(Fraction(int(text)), text)
