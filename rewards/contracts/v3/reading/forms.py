"""Functions with their arguments, sums and integrals, matrices and systems."""

from __future__ import annotations

from fractions import Fraction

from veriward.rewards.contracts.v3.reading.brackets import Brackets
from veriward.rewards.contracts.v3.reading.cursor import (
    CONSTANTS,
    MINUS_ONE,
    OPERANDS,
)
from veriward.rewards.contracts.v3.reading.digits import superscript
from veriward.rewards.contracts.v3.reading.names import prefixed
from veriward.rewards.contracts.v3.reading.signs import PLAIN_FUNCTIONS
from veriward.rewards.contracts.v3.reading.unit_words import (
    words_of,
)
from veriward.rewards.contracts.v3.tree import (
    FUNCTIONS,
    Apply,
    BigOperator,
    Bracketed,
    Listing,
    Matrix,
    Node,
    Number,
    Power,
    Product,
    Relation,
    Root,
    SetOf,
    Symbol,
    System,
)
from veriward.rewards.verdict import Reason

_ENVIRONMENTS = words_of(
    "pmatrix bmatrix matrix array smallmatrix Bmatrix vmatrix Vmatrix cases dcases rcases aligned align gathered "
    "gather split eqnarray equation"
)
_CHAINED = words_of("aligned align gathered gather split eqnarray")
"""Environments in which a line that starts with a relation sign goes on with the line above."""
_LINES = _CHAINED | words_of("cases dcases rcases equation")


class Forms(Brackets):
    """Reads functions, big operators and environments."""

    __slots__ = ()

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
                exponent = superscript(texts[self.i])
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
            if factors and (kind not in OPERANDS or kind in ("FUNC", "BIG")):
                break
            if kind == "WORD" and factors:
                word = self.texts[self.i]
                if word in PLAIN_FUNCTIONS or prefixed(word) is not None or self.ends_term(self.i):
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
        if exponent == MINUS_ONE:
            if f"arc{name}" not in FUNCTIONS:
                raise self.refuse(Reason.AMBIGUOUS_NOTATION, f"the inverse of {name}", at)
            return Apply(f"arc{name}", arguments)
        node = Apply(name, arguments)
        return node if exponent is None else Power(node, exponent)

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


def _is_no_argument(factor: Node) -> bool:
    """A factor that a function without brackets seldom reaches to: `\\sin x e^x`, `\\cos t \\mathbf{i}`."""
    base = factor.base if isinstance(factor, Power) else factor
    return base in (CONSTANTS["e"], CONSTANTS["i"]) or (isinstance(base, Symbol) and " " in base.name)
