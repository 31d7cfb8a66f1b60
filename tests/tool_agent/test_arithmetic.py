"""Expressions under the default profile: values, refusals, bounds and laws."""

import math
import time
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.tool_agent.arithmetic import MAX_BITS, evaluate, show
from veriward.tool_agent.expression import FUNCTIONS
from veriward.tool_agent.result import Category, Refused
from veriward.tool_agent.tools.strict import evaluate_strictly


def value(text):
    return evaluate(text, FUNCTIONS)


def category(text, functions=FUNCTIONS):
    found = evaluate(text, functions)
    return found.category if isinstance(found, Refused) else found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("(25 - 7) * 6 / 9", "12", id="a whole quotient is an integer"),
        pytest.param("7! / (5! * 2!)", "21", id="factorials"),
        pytest.param("0.1+0.2", "0.3", id="decimals are exact"),
        pytest.param("1e16+1-1e16", "1", id="nothing is lost in a large sum"),
        pytest.param("1/3", "0.3333333333333333", id="the shortest that gives the double back"),
        pytest.param("-0.0", "0", id="zero has no sign"),
        pytest.param("2**64", "18446744073709551616", id="all digits"),
        pytest.param("1e22", "10000000000000000000000", id="all digits of a literal"),
        pytest.param("10**21/7", "1.4285714285714286e+20", id="a large double"),
        pytest.param("sqrt(10**18+1)", "1000000000", id="a double that is whole"),
        pytest.param("sqrt(10**401)", "3.1622776601683794e+200", id="digits that are not known are not shown"),
        pytest.param("round(sqrt(2), 6)", "1.414214", id="rounded"),
        pytest.param("1,234.5 * 2", "2469", id="thousands"),
        pytest.param("80 * 15%", "12", id="percent"),
    ],
)
def test_what_the_model_is_shown(text, shown):
    assert show(value(text)) == shown


def test_the_longest_integer_is_shown_in_full():
    assert len(show(value("2**4095"))) == 1_233


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("sqrt(2)", "python_expr", id="where the function lives"),
        pytest.param("2 (3+4)", "at character 3 ('(3+4)')", id="the place"),
        pytest.param("200 + 10%", "200 * (1 + 10/100)", id="both readings of a percent"),
        pytest.param("1,23", "1,234.5", id="where commas stand"),
        pytest.param("007", "write 7", id="without the zeros"),
        pytest.param("1" * 600, "at most 512", id="the limit"),
        pytest.param("1 +", "(the end)", id="the end of the text"),
    ],
)
def test_a_hint_says_what_to_do(text, words):
    assert words in evaluate(text).hint


def test_a_hint_can_be_stored_whatever_the_text():
    assert evaluate("1 + \ud800").hint.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2**4095", 2**4095, id="4,096 bits"),
        pytest.param("2**4096", "resource_limit", id="4,097 bits"),
        pytest.param("2**4095 - 1 + 2**4095", 2**4096 - 1, id="4,096 bits in a sum"),
        pytest.param("2**4095 + 2**4095", "resource_limit", id="4,097 bits in a sum"),
        pytest.param("1/2**4096", "resource_limit", id="4,097 bits in a denominator"),
        pytest.param("3**2585", "resource_limit", id="just over, by a power"),
        pytest.param("3**2584 // 3**2581", 27, id="just under"),
        pytest.param("+".join(["1"] * 128), 128, id="255 nodes"),
        pytest.param("-" * 255 + "1", -1, id="256 nodes"),
        pytest.param("-" * 256 + "1", "resource_limit", id="257 nodes"),
        pytest.param("(" * 32 + "1" + ")" * 32, 1, id="32 brackets"),
        pytest.param("(" * 33 + "1" + ")" * 33, "too_deep", id="33 brackets"),
        pytest.param("sqrt(" * 32 + "1" + ")" * 32, 1, id="32 calls"),
        pytest.param("sqrt(" * 33 + "1" + ")" * 33, "too_deep", id="33 calls"),
        pytest.param("1" * 512, int("1" * 512), id="512 characters"),
        pytest.param("1" * 513, "too_long", id="513 characters"),
        pytest.param("1e308", 10**308, id="exponent 308"),
        pytest.param("1e309", "out_of_range", id="exponent 309"),
        pytest.param("1e-309", "out_of_range", id="exponent -309"),
        pytest.param("1e" + "9" * 500, "out_of_range", id="an exponent of 500 digits"),
        pytest.param("round(1.5, 100)", 1.5, id="100 digits"),
        pytest.param("round(1.5, -101)", "resource_limit", id="101 digits"),
        pytest.param("536! // 535!", 536, id="the largest factorial"),
        pytest.param("537!", "resource_limit", id="one more"),
        pytest.param("comb(4000, 2000) // comb(4000, 1999)", 1, id="a large binomial"),
        pytest.param("comb(10000, 5000)", "resource_limit", id="a larger one"),
        pytest.param("2**" * 120 + "1", "resource_limit", id="a tower of powers needs no recursion"),
    ],
)
def test_limits_hold_to_the_unit(text, expected):
    assert category(text) == expected


BOMBS = [
    "9**9**9",
    "((9**64)**64)**64",
    "2**10000000 % 7",
    "0.5**100000",
    "1e308" + "*1e308" * 80,
    "+".join(["(2**4000/3**2500)"] * 28),
    "+".join(["(3**2583)**(1/7)"] * 30),
    "+".join(["comb(4098,2040)"] * 30),
    "1.1**" * 80 + "1",
    "factorial(10**6)",
    "factorial(factorial(10))",
    "comb(10**9, 5*10**8)",
    "comb(2**4000, 2**3999)",
    "round(5, -1000000000)",
    "gcd(9**9**9, 3)",
    "(1+1/10**1000)**(10**1000+0.5)",
    "sqrt(" * 102 + "4",
    "(" * 512,
    "-" * 512,
    "3" + "!" * 511,
    "1" * 512,
    "7" * 10_000_000,
    "1,000" + ",000" * 126,
    "2²" * 170,
    "\xa0" * 511 + "1",
]


def test_bombs_cost_neither_time_nor_memory():
    value("sqrt(2)")
    tracemalloc.start()
    try:
        for text in BOMBS:
            started = time.process_time()
            value(text)
            assert time.process_time() - started < 0.2, text[:60]
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


READ_BETWEEN_6_AND_3 = dict(zip("+-*/%^._eE", (9, 3, 18, 2, 0, 216, 6.3, 63, 6000, 6000), strict=True))


@pytest.mark.parametrize("code", [code for code in range(0x80) if chr(code) not in "0123456789"])
def test_every_ascii_sign_between_two_numbers_is_read_or_refused(code):
    found = category(f"6{chr(code)}3")
    if chr(code) in READ_BETWEEN_6_AND_3:
        assert found == READ_BETWEEN_6_AND_3[chr(code)]
    else:
        assert found == "ambiguous_notation" or found == "syntax" or found.startswith("disallowed_")


@pytest.mark.parametrize("character", "½¼Ⅻ₂٣۳𝟑〇三∕∗•‐—ｘ，．：＝［｛‚\u2009\u200b\u202e\u3000\ufeff\u0301\x85")
def test_signs_that_look_alike_are_not_read(character):
    assert category(f"1+{character}") == "non_ascii"


# ---- laws ------------------------------------------------------------------------------------------------------------


def numbers():
    whole = st.integers(0, 10**6).map(lambda n: ([str(n)], Fraction(n)))
    decimal = st.decimals(0, 1000, places=3, allow_nan=False).map(lambda d: ([format(d, "f")], Fraction(d)))
    grouped = st.integers(1_000, 10**9).map(lambda n: ([f"{n:,}"], Fraction(n)))
    return whole | decimal | grouped


def in_brackets(tokens):
    return ["(", *tokens, ")"]


@st.composite
def sums(draw, inner):
    """Two expressions and a sign between them; None for the value where there is none."""
    (left, a), (right, b) = draw(inner), draw(inner)
    sign = draw(st.sampled_from(["+", "-", "−", "*", "×", "/", "÷", "//", "%"]))
    tokens = [*in_brackets(left), sign, *in_brackets(right)]
    if a is None or b is None or (not b and sign in ("/", "÷", "//", "%")):
        return tokens, None
    values = {"+": lambda: a + b, "*": lambda: a * b, "/": lambda: a / b, "//": lambda: Fraction(a // b)}
    return tokens, values.get(
        {"×": "*", "÷": "/"}.get(sign, sign), (lambda: a % b) if sign == "%" else (lambda: a - b)
    )()


@st.composite
def powers(draw, inner):
    tokens, base = draw(inner)
    exponent = draw(st.integers(-3, 3))
    value = None if base is None or (not base and exponent < 0) else base**exponent
    return [*in_brackets(tokens), draw(st.sampled_from(["**", "^"])), *str(exponent)], value


def negatives(inner):
    return inner.map(lambda found: (["-", *in_brackets(found[0])], None if found[1] is None else -found[1]))


EXPRESSIONS = st.recursive(numbers(), lambda inner: sums(inner) | powers(inner) | negatives(inner), max_leaves=12)


@given(EXPRESSIONS)
def test_an_expression_has_the_value_that_fractions_give(expression):
    tokens, expected = expression
    found = evaluate("".join(tokens))
    if expected is None:
        assert found.category == Category.DIVISION_BY_ZERO
    elif isinstance(found, Refused):
        assert found.category in (Category.RESOURCE_LIMIT, Category.TOO_LONG)
        assert len("".join(tokens)) > 512 or len(tokens) > 20
    elif expected.denominator == 1:
        assert (type(found), found) == (int, expected)
    else:
        assert found == float(expected)


@given(EXPRESSIONS, st.lists(st.sampled_from(["", " ", "\t", "\xa0  "]), min_size=1, max_size=5))
def test_blanks_between_tokens_change_nothing(expression, blanks):
    tokens, _ = expression
    spaced = "".join(blanks[place % len(blanks)] + token for place, token in enumerate(tokens)) + blanks[0]
    close, wide = evaluate("".join(tokens)), evaluate(spaced)
    if isinstance(close, Refused) or isinstance(wide, Refused):
        assert len(spaced) > 512 or wide.category == close.category
    else:
        assert wide == close


@st.composite
def chains(draw):
    """Whole numbers, operators and signs, no brackets; towers of three powers at most, and no sign right behind %."""
    text = draw(st.sampled_from(["", "-", "+", "--"])) + str(draw(st.integers(1, 9)))
    links = st.sampled_from(["+", "-", "*", "//", "%", "*-", "--", "+-", "//-", "**2*", "**2**2-", "**0+"])
    for link in draw(st.lists(links, max_size=9)):
        text += link + str(draw(st.integers(0, 9)))
    return text


@given(chains())
def test_operators_bind_as_in_python(text):
    found, pythons = evaluate(text), evaluate_strictly(text)
    assert getattr(found, "category", found) == getattr(pythons, "category", pythons)


TEXTS = st.text(max_size=60) | st.text("0123456789.,eE+-*/%!^()²×−combsqrtgdf_ \t=", max_size=60)


@given(TEXTS, st.sampled_from([FUNCTIONS, frozenset()]))
def test_every_text_gives_a_plain_number_or_a_refusal_always_the_same(text, functions):
    found = evaluate(text, functions)
    assert found == evaluate(text, functions)
    if isinstance(found, Refused):
        assert found.hint.encode()
    else:
        assert type(found) in (int, float)
        assert math.isfinite(found) if isinstance(found, float) else found.bit_length() <= MAX_BITS
        assert show(found) not in ("-0", "-0.0")


@given(st.integers(0, 10**30), st.integers(2, 9))
def test_a_whole_root_is_whole(number, degree):
    assert evaluate(f"({number}**{degree})**(1/{degree})") == number


@given(st.fractions(min_value=0, max_value=10**6), st.fractions(min_value=-5, max_value=5, max_denominator=50))
def test_fractional_powers_agree_with_the_library_of_c(base, exponent):
    found = evaluate(f"({base})**({exponent})")
    if base == 0 and exponent < 0:
        assert found.category == Category.DIVISION_BY_ZERO
    else:
        assert math.isclose(found, float(base) ** float(exponent), rel_tol=1e-12)
