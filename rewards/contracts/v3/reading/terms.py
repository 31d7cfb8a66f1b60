"""Values that are calculated: sums, products, quotients, powers, with their signs and marks."""

from __future__ import annotations

from veriward.rewards.contracts.v3.reading.cursor import (
    CONSTANTS,
    ELLIPSIS,
    ENDERS,
    MINUS_ONE,
    OPERANDS,
    STRUCTURES,
    VALUES,
)
from veriward.rewards.contracts.v3.reading.digits import ORDINALS, superscript
from veriward.rewards.contracts.v3.reading.forms import Forms
from veriward.rewards.contracts.v3.reading.unit_words import (
    UNITS,
)
from veriward.rewards.contracts.v3.tree import (
    Apply,
    Bracketed,
    Call,
    NamedSet,
    Negation,
    Node,
    Number,
    PlusMinus,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
    walk,
)
from veriward.rewards.verdict import Reason

_MARKERS = frozenset(("%", "TEXT", "WORD", "HAN", "CURRENCY", "{", "/", "("))


class Terms(Forms):
    """Reads sums, terms, factors and exponents."""

    __slots__ = ()

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

    def sum(self) -> Node:
        """Terms joined by plus, minus and plus-minus."""
        kinds = self.kinds
        node = self.term()
        kind = kinds[self.i]
        if kind not in ("+", "-", "±"):
            return node
        if not isinstance(node, VALUES):
            if (
                isinstance(node, STRUCTURES)
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
                lower_first = self.texts[self.i] == "∓"
                self.i += 1
                if any(isinstance(term, PlusMinus) for term in terms):
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "two plus-minus signs in one sum")
                second = self.scalar(self.term())
                second = Negation(second) if lower_first else second
                terms = [PlusMinus(terms[0] if len(terms) == 1 else Sum(tuple(terms)), second)]
            else:
                break
        if len(terms) == 1:
            return terms[0]
        if ELLIPSIS in terms or Negation(ELLIPSIS) in terms:
            return Call("sum", tuple(terms))
        return Sum(tuple(terms))

    def term(self) -> Node:
        """Factors joined by signs of multiplication and division, or by standing side by side."""
        kinds = self.kinds
        start = self.i
        node = self.factor()
        kind = kinds[self.i]
        if kind in ENDERS:
            return node
        numerators = [node]
        denominators: list[Node] = []
        divided = False
        while True:
            kind = kinds[self.i]
            if kind in ENDERS:
                break
            if kind == "*":
                self.i += 1
                numerators.append(self.scalar(self.factor()))
                divided = False
            elif kind == "/":
                if not denominators and self.per_unit():
                    break
                self.i += 1
                denominators.append(self.scalar(self.factor()))
                divided = True
            elif kind == "|" or kind == "MID":
                if self.bars or self.set_bar or kind == "MID":
                    break
                numerators.append(self.scalar(self.factor()))
            elif kind in OPERANDS:
                if (kind == "NUM" and kinds[self.i - 1] != "!" and not _ends_in_names(numerators, divided)) or (
                    kind == "VULGAR"
                ):
                    raise self.refuse(Reason.ADJACENT_NUMBERS, f"{self.texts[self.i]} directly behind a value")
                if kind == "(" and (self.bracketed_unit() or self.is_condition()):
                    break
                if (
                    kind in ("(", "[")
                    and self.gaps[self.i]
                    and kinds[self.i - 1] != ")"
                    and self._bracketed_number()
                    and not any(isinstance(part, Symbol) for factor in numerators for part in walk(factor))
                ):
                    raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a product, or a remark behind a value")
                if (kinds[self.i - 1] == "NUM" or isinstance(numerators[-1], Number)) and (
                    (kind == "{" and kinds[self.i + 1] == "NUM")
                    or (kind == "VEC" and "NUM" in kinds[self.i + 1 : self.i + 3])
                ):
                    raise self.refuse(Reason.ADJACENT_NUMBERS, "a numeral directly behind a numeral")
                if kind == "DOTS" and kinds[self.i - 1] == "NUM":
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "digits that go on")
                if kind == "WORD" and self.ends_term(self.i):
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
        if ELLIPSIS in numerators:
            return Call("product", (*numerators, *(Power(part, MINUS_ONE) for part in denominators)))
        top = numerators[0] if len(numerators) == 1 else Product(tuple(numerators))
        if denominators:
            top = Quotient(top, denominators[0] if len(denominators) == 1 else Product(tuple(denominators)))
        return Negation(top) if negative else top

    def factor(self) -> Node:
        """A value with its signs in front and its exponent, factorial or degree sign behind."""
        kinds = self.kinds
        kind = kinds[self.i]
        if kind == "NUM":
            node = self.number()
            if kinds[self.i] in ENDERS:
                return node
            return self.postfixed(node)
        if kind in ("-", "+", "±"):
            return self.signed()
        if kind in ("NAME", "WORD"):
            node = self.name()
            if kinds[self.i] in ENDERS:
                return node
            return self.postfixed(node)
        form = self.FORMS.get(kind)
        if form is None:
            raise self.unexpected()
        node = form(self)
        if kinds[self.i] in ENDERS:
            return node
        return self.postfixed(node)

    def signed(self) -> Node:
        """A term behind its signs: `-x^2` is the negation of the square."""
        negative = False
        plus_minus = lower_first = False
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
                plus_minus, lower_first = True, self.texts[self.i] == "∓"
            self.i += 1
        self.deeper()
        node = self.factor() if not plus_minus else self.term()
        self.depth -= 1
        node = self.scalar(node) if negative or plus_minus or not isinstance(node, Bracketed) else node
        if plus_minus:
            return PlusMinus(None, Negation(node) if lower_first else node)
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
                exponent = superscript(text)
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
                if isinstance(node, Symbol) and kinds[self.i] in OPERANDS:
                    raise self.refuse(Reason.UNSUPPORTED_NOTATION, "functions one after the other")
                node = self.degrees(node)
            else:
                return node
            rounds += 1
            if rounds > 6:
                raise self.refuse(Reason.NESTED_TOO_DEEP, "exponents, factorials or degree signs in a row")

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
            primes = self.primes_after(self.i - 1)
            if primes is None or not isinstance(base, Symbol):
                raise self.unexpected()
            self.i = primes[1]
            return Symbol(base.name + "'" * primes[0])
        if isinstance(base, Number):
            at = self.i + (kind == "{")
            if kinds[at] in ("TEXT", "WORD") and texts[at] in ORDINALS:
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
        if isinstance(base, Symbol) and base.name in ("f", "g", "h") and exponent == MINUS_ONE and kinds[self.i] == "(":
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
                node = CONSTANTS.get(word) or Symbol(word)
            else:
                node = self.name()
        elif (form := self.FORMS.get(kind)) is not None:
            node = self.scalar(form(self))
        else:
            raise self.unexpected()
        if self.kinds[self.i] == "^":
            return self.power(node)
        if self.kinds[self.i] == "!":
            raise self.refuse(Reason.AMBIGUOUS_NOTATION, "a factorial behind an exponent")
        return node

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


def _ends_in_names(factors: list[Node], divided: bool) -> bool:
    """The last factor has an exponent with a name in it, behind which a numeral starts the next factor: `2^n3^n`."""
    last = factors[-1]
    if isinstance(last, Negation):
        last = last.operand
    return not divided and isinstance(last, Power) and any(isinstance(part, Symbol) for part in walk(last.exponent))
