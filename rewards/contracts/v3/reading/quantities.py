"""What stands beside a number and says of what it is: currencies, units, percent and degree signs."""

from __future__ import annotations

from fractions import Fraction

from veriward.rewards.contracts.v3.reading.cursor import (
    OPERANDS,
    VALUES,
)
from veriward.rewards.contracts.v3.reading.names import Names, prefixed
from veriward.rewards.contracts.v3.reading.numerals import (
    HAN_NO_UNIT,
    HAN_NUMERAL,
)
from veriward.rewards.contracts.v3.reading.signs import PLAIN_FUNCTIONS, PLAIN_NAMES
from veriward.rewards.contracts.v3.reading.unit_words import (
    CURRENCIES,
    GLUED_PRODUCT,
    LONG_UNITS,
    MAGNITUDES,
    NO_UNIT,
    SHORT_THINGS,
    SHORT_UNITS,
    STOP_WORDS,
    UNITS,
    is_unit,
)
from veriward.rewards.contracts.v3.tree import (
    Degrees,
    Negation,
    Node,
    Number,
    Percent,
    Product,
    Quantity,
    Symbol,
    walk,
)
from veriward.rewards.verdict import Reason


class Quantities(Names):
    """Reads the marks of quantities."""

    __slots__ = ()

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
        if not isinstance(node, VALUES):
            return node
        if kind == "%":
            self.i += 1
            if self.kinds[self.i] in OPERANDS and self.kinds[self.i] not in ("WORD",):
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
        if bracketed and not self.bracketed_unit():
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
        text = written = ""
        if kinds[self.i] == "/":
            text = written = "/"
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
                if len(word) == 1 and not word.isalpha() and word not in CURRENCIES:
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
            blank = " " if text and text[-1] not in "/*" else ""
            self.i += 3 if braced else 1
            tail = self._unit_tail()
            text += blank + shown + tail
            written += blank + word + tail
            if len(text) > 80:
                self.i = start
                return None
        if not text or not is_unit(written):
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

    def bracketed_unit(self) -> bool:
        """The bracket that opens here holds one unit: `12 (cm)`."""
        at = self.i + 1
        if self.kinds[at + 1] != ")":
            return False
        if self.kinds[at] == "WORD":
            return len(self.texts[at]) > 1 and self.texts[at] not in GLUED_PRODUCT and self._is_unit_word(at)
        return self.kinds[at] in ("TEXT", "HAN")

    def per_unit(self) -> bool:
        """The slash at the current place opens a unit: `40/hour`."""
        at = self.i + 1
        if self.kinds[at - 2] not in ("NUM", "}", ")"):
            return False
        if self.kinds[at] == "TEXT":
            return self.kinds[at - 2] == "NUM"
        return self.kinds[at] == "WORD" and len(self.texts[at]) > 1 and self._is_unit_word(at)

    def ends_term(self, at: int) -> bool:
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
                primes = self.primes_after(self.i + 1)
                if primes is None or amount > 59 or primes[0] != (1 if part == 60 else 2):
                    raise self.unexpected()
                value += Fraction(amount, part)
                self.i = primes[1]
            return Degrees(Number(value))
        return Degrees(node)

    def primes_after(self, at: int) -> tuple[int, int] | None:
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
