"""Names of values: letters with index and primes, constants, words, marks over letters, and names that are called."""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3.reading.cursor import (
    CONSTANTS,
    ELLIPSIS,
    ENDERS,
    VALUES,
)
from veriward.rewards.contracts.v3.reading.digits import Digits
from veriward.rewards.contracts.v3.reading.signs import PLAIN_FUNCTIONS, PLAIN_NAMES
from veriward.rewards.contracts.v3.reading.tokens import (
    NO_GAP,
)
from veriward.rewards.contracts.v3.reading.unit_words import (
    SENTENCE,
    STOP_WORDS,
    UNITS,
    is_no_name,
    words_of,
)
from veriward.rewards.contracts.v3.tree import (
    Bracketed,
    Call,
    NamedSet,
    Node,
    SetOf,
    Symbol,
)
from veriward.rewards.verdict import Reason

_CALLABLE = frozenset("fgh")
_MEASURES = words_of("P E Pr Var Cov")
"""Names with a bracket that holds an event or a random variable: `P(X=2)`, `E[X]`."""


class Names(Digits):
    """Reads names."""

    __slots__ = ()

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
        constant = CONSTANTS.get(word)
        if constant is not None and kinds[self.i] != "_" and word not in self.bound:
            if word in ("e", "i") and texts[self.i] == "=" and (at == 0 or kinds[at - 1] in (",", ";", "AND", "OR")):
                return Symbol(word)  # the unknown of `e = 2`
            return constant
        kind = kinds[self.i]
        if kind in ENDERS:
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
        elif len(word) > 3 and at == 0 and following == "REL" and self.texts[at + 1] == "=" and not is_no_name(word):
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
        close = self.closes(self.i)
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
        inside, several = self.inside_bracket()
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
            if isinstance(argument, VALUES):
                return Call(word, (argument,))
            raise self.refuse(Reason.UNSUPPORTED_NOTATION, "a function of what is no single value", at)
        if plain and not word.isupper():
            raise self.refuse(Reason.UNSUPPORTED_CALL, word, at)
        return Symbol(word)

    def call_head(self) -> Node | None:
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
            close = self.end_of_bracket(at)
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

    def letter(self) -> Node:
        raise self.unexpected()

    def named(self) -> Node:
        """A letter with a mark over it, or in another alphabet: `\\vec{v}`, `\\overrightarrow{AB}`."""
        mark = self.texts[self.i]
        look = mark in ("bold", "under", "mathit")
        mark = "vec" if mark == "bold" else mark
        self.i += 1
        if self.kinds[self.i] == "{":
            close = self.closes(self.i)
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
            return CONSTANTS.get(inner) or Symbol(inner)
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
        return ELLIPSIS

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


def prefixed(word: str) -> str | None:
    """The function a run of letters starts with where one letter follows it: `sin` of `sinx`."""
    head = word[:-1]
    return head if head in ("sin", "cos", "tan", "cot", "sec", "csc", "ln", "log") and len(word) > len(head) else None
