"""Expression text to a postfix program of at most 256 steps, or the refusal why not. Nothing is computed here.

A tokenizer and a shunting-yard reader with its own stacks: no recursion, so no text can exhaust the interpreter's.

Covered: `+ - * / // % **`, signs, round brackets, `!`, percent, decimals, `1e3`, `1_000`, `1,234.5`, five functions,
and what people write for these: ^ × ÷ − – ⋅ · superscript digits, full-width digits, brackets and operators, the
no-break space.
Refused with a hint because people mean different things by it: `2(3+4)`, `5!!`, `200 + 10%`, `1,23`, `50%-3`.
Not covered: names, attributes, strings, comparisons, bit operators, statements, look-alikes of letters or digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from veriward.tool_agent.result import Category, Refused

MAX_CHARACTERS = 512
MAX_STEPS = 256
MAX_DEPTH = 32
"""Of brackets."""
MAX_EXPONENT = 308
"""Of a literal, as in 1e308: what a double holds."""

ARGUMENTS = {"comb": (2, 2), "factorial": (1, 1), "gcd": (2, MAX_STEPS), "round": (1, 2), "sqrt": (1, 1)}
"""Fewest and most arguments of each function."""
FUNCTIONS = frozenset(ARGUMENTS)


class Step(NamedTuple):
    """One instruction for a stack machine."""

    name: str
    """'number', 'positive', 'negative', '!', 'percent', a binary operator, or a function."""
    position: int
    number: Fraction | None = None
    """Of 'number' only."""
    arguments: int = 0
    """Of a function: how many it takes off the stack."""


class RefusedExpression(Exception):  # noqa: N818  no error: how a refusal leaves the loops, caught in the same folder
    def __init__(self, category: Category, hint: str, position: int | None = None) -> None:
        super().__init__(category)
        self.category = category
        self.hint = hint
        self.position = position

    def as_record(self, text: str) -> Refused:
        """The refusal, with its place in the text in the hint."""
        hint = self.hint
        if self.position is not None:
            found = repr(text[self.position : self.position + 12]) if self.position < len(text) else "the end"
            hint = f"at character {self.position + 1} ({found}): {hint}"
        return Refused(category=self.category, hint=hint, position=self.position)


def read_expression(text: str, functions: frozenset[str]) -> list[Step]:
    """The program of an expression that may call these functions; raises RefusedExpression."""
    if len(text) > MAX_CHARACTERS:
        raise RefusedExpression(
            Category.TOO_LONG, f"{len(text):,} characters; at most {MAX_CHARACTERS}: send a shorter expression"
        )
    if not text.strip():
        raise RefusedExpression(Category.EMPTY, "nothing to compute; write an expression such as 2 * (3 + 4)")
    _refuse_foreign_signs(text)
    return _Reader(functions, list(_tokens(text.translate(FULL_WIDTH))), len(text)).read()


# ---- tokens ----------------------------------------------------------------------------------------------------------

FULL_WIDTH = str.maketrans("０１２３４５６７８９＋－＊／％＾！（）", "0123456789+-*/%^!()")
"""One to one, so that positions stay. Letters, commas and points are not among them."""

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")

SIGNS = {"^": "**", "×": "*", "⋅": "*", "·": "*", "÷": "/", "−": "-", "–": "-"}

FOREIGN = re.compile(f"[^\x00-\x7f{''.join(map(chr, (*FULL_WIDTH, *SUPERSCRIPTS)))}×÷−–⋅·\xa0]")

_DIGITS = "[0-9]+(?:_[0-9]+)*"
_EXPONENT = f"(?:[eE][-+−–]?{_DIGITS})?"

_NUMBER = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS}){_EXPONENT}"

_GROUPED = rf"[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?:\.[0-9]*)?{_EXPONENT}(?![0-9_,.])"

_REST = (
    r"(?P<blank>[ \t\xa0]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<super>[⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
    r"|(?P<sign>\*\*|//|[-+*/%^!(),×÷−–⋅·])|(?P<unread>.)"
)

_BROKEN_EXPONENT = re.compile("[eE][0-9_]*")

TOKEN = re.compile(f"(?P<number>{_GROUPED}|{_NUMBER})|{_REST}", re.DOTALL)
TOKEN_IN_CALL = re.compile(f"(?P<number>{_NUMBER})|{_REST}", re.DOTALL)


class Token(NamedTuple):
    kind: str
    """'number', 'name', 'super', 'unread', or the operator, bracket or comma itself."""
    text: str
    start: int


def _refuse_foreign_signs(text: str) -> None:
    foreign = FOREIGN.search(text)
    if foreign:
        raise RefusedExpression(Category.NON_ASCII, "this sign is not read; write it in ASCII", foreign.start())


def _tokens(text: str) -> Iterator[Token]:
    calls: list[bool] = []  # of the open brackets: does it belong to a call
    before = ""
    at = 0
    while found := (TOKEN_IN_CALL if any(calls) else TOKEN).match(text, at):
        kind = str(found.lastgroup)
        if kind == "sign":
            kind = SIGNS.get(found[0], found[0])
        if kind == "(":
            calls.append(before == "name")
        elif kind == ")" and calls:
            calls.pop()
        if kind != "blank":
            yield Token(kind, found[0], at)
            before = kind
        at = found.end()


def _unread(token: Token, rest: list[Token], operand_next: bool) -> RefusedExpression:
    """What a sign that the grammar lacks would be in Python, if anything."""
    sign = token.text
    category, hint = Category.SYNTAX, "this sign is not read"
    if sign in "'\"" and any(other.text == sign for other in rest):
        category, hint = Category.DISALLOWED_LITERAL, "text is not read; write numbers"
    elif sign in "[{":
        category, hint = Category.DISALLOWED_NODE, "only round brackets are read"
    elif sign == "." and rest and rest[0].kind == "name":
        category, hint = Category.DISALLOWED_NODE, "attributes are not read; write sqrt(2), not math.sqrt(2)"
    elif sign == "~" if operand_next else sign in "<>&|":
        category, hint = Category.DISALLOWED_OPERATOR, "this operator is not read; there are + - * / // % **"
    elif sign == "=":
        hint = "nothing is compared or assigned; write one expression without ="
    return RefusedExpression(category, hint, token.start)


def _number(token: Token) -> Fraction:
    """The exact value of a literal."""
    text = token.text.replace(",", "").replace("_", "").replace("−", "-").replace("–", "-").lower()
    mantissa, _, exponent = text.partition("e")
    whole, point, decimals = mantissa.partition(".")
    if len(whole) > 1 and whole[0] == "0" and not point and not exponent:
        hint = f"a whole number has no leading zeros; write {whole.lstrip('0') or '0'}"
        raise RefusedExpression(Category.SYNTAX, hint, token.start)
    power = int(exponent or 0)
    if abs(power) > MAX_EXPONENT:
        raise RefusedExpression(
            Category.OUT_OF_RANGE, f"an exponent in a number is at most {MAX_EXPONENT}", token.start
        )
    power -= len(decimals)
    digits = int(whole + decimals)
    return Fraction(digits * 10**power) if power >= 0 else Fraction(digits, 10**-power)


# ---- the program -----------------------------------------------------------------------------------------------------

BINARY = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 4}
"""Binding strength; a sign has 3, so that -2**2 is -4."""

PERCENT_BEFORE = frozenset({None, ")", "*", "/", ","})


class _Open(NamedTuple):
    """An operator, sign or bracket whose right side is still to come."""

    name: str
    strength: int
    """0 for a bracket."""
    position: int
    call: str | None = None


class _Reader:
    """Shunting-yard: operands go straight to the program, operators wait until their right side is complete."""

    def __init__(self, functions: frozenset[str], tokens: list[Token], end: int) -> None:
        self.functions = functions
        self.tokens = tokens
        self.end = end
        self.at = 0
        self.program: list[Step] = []
        self.percents: list[bool] = []
        """Of each value on the machine's stack: is it a percent and nothing else."""
        self.open: list[_Open] = []
        self.commas: list[int] = []
        """Of each open bracket."""

    def read(self) -> list[Step]:
        operand_next = True
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.kind == "unread":
                raise _unread(token, self.tokens[self.at :], operand_next)
            operand_next = self._operand(token) if operand_next else self._operator(token)
        if operand_next:
            raise RefusedExpression(Category.SYNTAX, "a number is missing", self.end)
        self._close(0)
        if self.open:
            raise RefusedExpression(Category.SYNTAX, "this bracket is never closed", self.open[-1].position)
        return self.program

    # Both take a token and say whether an operand comes next.

    def _operand(self, token: Token) -> bool:
        if token.kind == "number":
            self._emit(Step("number", token.start, _number(token)))
            return False
        if token.kind == "name":
            self._name(token)
            return self._empty_call(token)
        if token.kind == "(":
            self._bracket(token, None)
            return True
        if token.kind in ("+", "-"):
            self.open.append(_Open("negative" if token.kind == "-" else "positive", 3, token.start))
            return True
        if token.kind == "," and not self._in_call():
            raise _ambiguous_comma(token)
        if token.kind in ("*", "**") and self._in_call() and self.open[-1].strength == 0:
            raise RefusedExpression(Category.DISALLOWED_CALL, "arguments have no star", token.start)
        raise RefusedExpression(Category.SYNTAX, f"a number is missing before {token.text}", token.start)

    def _operator(self, token: Token) -> bool:
        kind = token.kind
        if kind in ("number", "name", "("):
            raise self._side_by_side(token)
        if kind == "!":
            return self._factorial(token)
        if kind == "super":
            return self._superscript(token)
        if kind == "%" and self._is_percent(token):
            self._emit(Step("percent", token.start))
            return False
        if kind == ")":
            return self._end_of_bracket(token)
        if kind == ",":
            self._close(0)
            if not self._in_call():
                raise _ambiguous_comma(token)
            self.commas[-1] += 1
            return True
        self._close(BINARY[kind] + (kind == "**"))  # powers group to the right
        self.open.append(_Open(kind, BINARY[kind], token.start))
        return True

    def _side_by_side(self, token: Token) -> RefusedExpression:
        before = self.tokens[self.at - 2]
        if before.kind == "number" and before.start + len(before.text) == token.start and token.kind != "(":
            if token.kind == "number":
                return RefusedExpression(Category.SYNTAX, "a number has one point", token.start)
            if token.text[0] == "_":
                return RefusedExpression(Category.SYNTAX, "an underscore stands between two digits", token.start)
            if _BROKEN_EXPONENT.fullmatch(token.text):
                return RefusedExpression(Category.SYNTAX, "an exponent is one whole number, as in 1e3", token.start)
            if before.text == "0" or token.text in ("j", "J"):
                return RefusedExpression(Category.DISALLOWED_LITERAL, "only decimal numbers are read", before.start)
        hint = "two values side by side; write * for a product"
        return RefusedExpression(Category.AMBIGUOUS_NOTATION, hint, token.start)

    def _name(self, token: Token) -> None:
        following = self._next()
        called = following is not None and following.kind == "("
        if called and token.text in self.functions:
            self.at += 1
            self._bracket(token, token.text)
            return
        if token.text in FUNCTIONS and token.text not in self.functions:
            raise RefusedExpression(
                Category.DISALLOWED_CALL if called else Category.DISALLOWED_NAME,
                f"{token.text} is in the tool python_expr; send the expression there",
                token.start,
            )
        if following is not None and following.text == "=" and self._in_call():
            hint = "arguments have no names; write the value only"
            raise RefusedExpression(Category.DISALLOWED_CALL, hint, token.start)
        offered = ", ".join(sorted(self.functions)) or "none (python_expr has some)"
        if called:
            hint = f"there is no such function; offered: {offered}"
            raise RefusedExpression(Category.DISALLOWED_CALL, hint, token.start)
        known = token.text in self.functions
        hint = f"write {token.text}(…) with its arguments" if known else "write the number itself"
        raise RefusedExpression(Category.DISALLOWED_NAME, f"names have no value; {hint}", token.start)

    def _empty_call(self, name: Token) -> bool:
        following = self._next()
        if following is not None and following.kind == ")":
            raise RefusedExpression(Category.DISALLOWED_CALL, _wanted_arguments(name.text, 0), name.start)
        return True

    def _bracket(self, token: Token, call: str | None) -> None:
        self.open.append(_Open("(", 0, token.start, call))
        self.commas.append(0)
        if len(self.commas) > MAX_DEPTH:
            raise RefusedExpression(Category.TOO_DEEP, f"at most {MAX_DEPTH} brackets in one another", token.start)

    def _end_of_bracket(self, token: Token) -> bool:
        self._close(0)
        if not self.open:
            raise RefusedExpression(Category.SYNTAX, "this bracket was never opened", token.start)
        bracket = self.open.pop()
        arguments = self.commas.pop() + 1
        if bracket.call is not None:
            fewest, most = ARGUMENTS[bracket.call]
            if not fewest <= arguments <= most:
                hint = _wanted_arguments(bracket.call, arguments)
                raise RefusedExpression(Category.DISALLOWED_CALL, hint, bracket.position)
            self._emit(Step(bracket.call, bracket.position, arguments=arguments))
        return False

    def _factorial(self, token: Token) -> bool:
        following = self._next()
        if following is not None and following.kind == "!":
            hint = "!! is read in two ways; write (5!)! or the product itself"
            raise RefusedExpression(Category.AMBIGUOUS_NOTATION, hint, token.start)
        self._emit(Step("!", token.start))
        return False

    def _superscript(self, token: Token) -> bool:
        following = self._next()
        if following is not None and following.kind in ("!", "**", "super"):
            hint = "a superscript and then another power or !; write ** and brackets"
            raise RefusedExpression(Category.AMBIGUOUS_NOTATION, hint, token.start)
        literal = Token("number", token.text.translate(SUPERSCRIPTS), token.start)
        self._emit(Step("number", token.start, _number(literal)))
        self._emit(Step("**", token.start))
        return False

    def _is_percent(self, token: Token) -> bool:
        """Percent or modulo, by what follows."""
        following = self._next()
        if (following.kind if following else None) in PERCENT_BEFORE:
            return True
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        is_call = following is not None and following.kind == "name" and after is not None and after.kind == "("
        if following is not None and (following.kind in ("number", "(") or is_call):
            return False
        raise RefusedExpression(
            Category.AMBIGUOUS_NOTATION, "percent or remainder? write (50/100), or brackets behind %", token.start
        )

    def _close(self, strength: int) -> None:
        """Complete the open operators that bind at least so strongly, down to the last bracket."""
        while self.open and self.open[-1].strength >= max(1, strength):
            done = self.open.pop()
            if done.name in ("+", "-") and self.percents[-1]:
                hint = "percent of what? write 200 * (1 + 10/100) or 200 + 10/100"
                raise RefusedExpression(Category.AMBIGUOUS_NOTATION, hint, done.position)
            self._emit(Step(done.name, done.position))

    def _emit(self, step: Step) -> None:
        self.program.append(step)
        if len(self.program) > MAX_STEPS:
            hint = f"at most {MAX_STEPS} numbers and operators; compute a part of it first"
            raise RefusedExpression(Category.RESOURCE_LIMIT, hint, step.position)
        if step.name in ("positive", "negative"):
            return
        taken = step.arguments or (2 if step.name in BINARY else 0 if step.name == "number" else 1)
        del self.percents[len(self.percents) - taken :]
        self.percents.append(step.name == "percent")

    def _next(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _in_call(self) -> bool:
        """Is the innermost bracket that of a call?"""
        brackets = [waiting for waiting in self.open if waiting.strength == 0]
        return bool(brackets) and brackets[-1].call is not None


def _ambiguous_comma(token: Token) -> RefusedExpression:
    hint = "a comma stands only between thousands, as in 1,234.5, or between arguments; write the number without it"
    return RefusedExpression(Category.AMBIGUOUS_NOTATION, hint, token.start)


def _wanted_arguments(function: str, got: int) -> str:
    fewest, most = ARGUMENTS[function]
    wanted = str(fewest) if fewest == most else f"{fewest} or more" if most == MAX_STEPS else f"{fewest} or {most}"
    plural = "s" * (wanted != "1")
    return f"{function} takes {wanted} argument{plural}, got {got}; a comma inside a call separates arguments"
