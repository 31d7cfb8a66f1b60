"""Numbers written in digits, or in Chinese numerals: thousands, decimals, fractions, powers of ten, bases."""

from __future__ import annotations

import re
from fractions import Fraction

from veriward.rewards.contracts.v3.reading.cursor import (
    ENDERS,
    Cursor,
)
from veriward.rewards.contracts.v3.reading.numerals import (
    HAN_FRACTION,
    HAN_NUMERAL,
    HAN_UNIT,
    MYRIADS,
    TENS,
    han_number,
)
from veriward.rewards.contracts.v3.reading.tokens import (
    BLANK,
    NEGATIVE,
    NO_GAP,
    THIN,
)
from veriward.rewards.contracts.v3.tree import (
    Based,
    Degrees,
    Negation,
    Node,
    Number,
    Percent,
    Power,
    Product,
    Quantity,
    Symbol,
)
from veriward.rewards.verdict import Reason

_BASE_WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
ORDINALS = frozenset(("st", "nd", "rd", "th"))


class Digits(Cursor):
    """Reads numerals."""

    __slots__ = ()

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
        if following in ENDERS and following != ",":
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
        if following in ("WORD", "TEXT"):
            word = texts[self.i]
            if word in ORDINALS and "." not in text:
                self.i += 1
                return self.numeral(text)
            if (
                following == "WORD"
                and word.isupper()
                and "." not in text
                and (digits := self._letter_digits(text)) is not None
            ):
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
        """The last of two or more groups of three digits with blanks between, outside brackets; 0 if there are none."""
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


def superscript(text: str) -> Node | None:
    """The exponent that raised digits spell: `²`, `⁻³`, `ⁿ`."""
    if text == "n":
        return Symbol("n")
    digits = text.lstrip("+-")
    if not digits.isdigit() or len(text) - len(digits) > 1 or len(digits) > 9:
        return None
    return Number(Fraction(int(text)), text)
