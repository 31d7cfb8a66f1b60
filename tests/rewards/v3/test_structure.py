"""How kinds of answers meet kinds of references: lists, sets, intervals, points, matrices, relations, marks."""

import pytest

from veriward.rewards import Certainty, Outcome, Reason, check_reference, verify_answer
from veriward.rewards.contracts.v3.reading.grammar import parse
from veriward.rewards.contracts.v3.rules import realsets, relations
from veriward.rewards.contracts.v3.tree import spell

EQUAL = [
    ("7, 3, 5", "3, 5, 7"),
    (r"\{3, 5, 7\}", "3,5,7"),
    ("[3, 5, 7]", r"7, 5, 3"),
    ("3 and 5", "3, 5"),
    ("343 和 512", r"343 \text{ and } 512"),
    (r"\{1, 1, 2\}", r"\{2, 1\}"),
    (r"\{3\}", "3"),
    ("[73]", "73"),
    (r"\{11\}", "[11]"),
    (r"2 \pm \sqrt{7}", r"2+\sqrt{7}, 2-\sqrt{7}"),
    (r"\pm 3, 5", "5, -3, 3"),
    ("x=2 or x=3", "2, 3"),
    ("a=-2 或 a=1", r"a=1 \text{ or } a=-2"),
    ("k = 4, 6, 7", "k=7, 6, 4"),
    ("(18, 20, 22), (27, 20, 13)", "(27,20,13), (18,20,22)"),
    (r"\begin{cases} x=1\\ y=2\end{cases}", "x=1, y=2"),
    ("(x,y)=(-3,4)", "y=4, x=-3"),
    ("x = 1000, y = 10", "10^3, 10"),
    ("x = -1, y = 4", "[-1, 4]"),
    (r"\left[ \frac12, 8 \right]", r"0.5 \leq x \leq 8"),
    ("x>2", r"(2, \infty)"),
    (r"\{x \mid -2<x<3\}", "(-2, 3)"),
    ("2 < x", "x > 2"),
    (r"x \neq 1", r"(-\infty,1) \cup (1,\infty)"),
    (r"(-\infty, -2] \cup \{1\}", r"a \leqslant -2 \text{ or } a = 1"),
    (r"\mathbb{R}", r"(-\infty, \infty)"),
    (r"(1, 3) \cup (2, 5]", "(1, 5]"),
    (r"(0, 4) \cap [2, 9)", "[2, 4)"),
    (r"(a, b) \cup \{c\}", r"\{c\} \cup (a, b)"),
    (r"x \in [-2,7]", "[-2, 7]"),
    ("x+y<3", "3 > y+x"),
    ("2x+2y<6", "x+y<3"),
    ("10x-4y+14=0", "5x-2y+7=0"),
    (r"5x^2+9y^2=45", r"\frac{x^2}{9}+\frac{y^2}{5}=1"),
    ("y = 3x+1", "x = (y-1)/3"),
    ("f(m) = 2m + 1007", "f(n) = 2n+1007"),
    (r"f(x) = \frac{1}{x}", r"\frac1x"),
    (r"\frac{n(n+1)}{2}", r"S_n=\frac{n^2+n}{2}"),
    ("i = 1", "1"),
    ("(-7,16,5)", r"\begin{pmatrix} -7 \\ 16 \\ 5 \end{pmatrix}"),
    ("1:4:9", "2:8:18"),
    (r"\frac58", "5:8"),
    ("3", "3:1"),
    ("1, 3, ..., 2n-1", r"1, 3, \ldots, 2n-1"),
    ("x = 2 或 3", "3, 2"),
    ("x_1=2, x_2=5", "5, 2"),
    ("5, 2", "x_1=2, x_2=5"),
    ("x_1=2, x_2=5", "x=5 或 x=2"),
    ("5米", "5m"),
    ("12m^3", "12立方米"),
    (r"m\pi, m \in \mathbb{Z}", r"k\pi, k \in \mathbb{Z}"),
    (r"n\pi", r"k\pi, k \in \mathbb{Z}"),
    (r"k\pi", r"x = k\pi, k \in \mathbb{Z}"),
    (r"36/5 = 7.2", "7.2"),
    (r"\dfrac{31031}{7776}", r"\frac{6^6 - 5^6}{6^5} \approx 3.99"),
    ("G + J = 6", "6"),
    (r"r \approx -3.77", "-3.77"),
]

NOT_EQUAL = [
    ("3, 5", "3, 5, 7", Outcome.WRONG),
    ("3, 5, 8", "3, 5, 7", Outcome.WRONG),
    ("2", r"\{2, 3\}", Outcome.WRONG),
    ("1", "0, 1", Outcome.WRONG),
    ("-2", "-2, -2", Outcome.UNDECIDED),
    ("57, 58", "57", Outcome.WRONG),
    (r"57 \text{ or } 58", "57", Outcome.WRONG),
    ("[0, 100]", "57", Outcome.WRONG),
    ("(5, 7)", "5", Outcome.WRONG),
    ("(2, 1)", "(1, 2)", Outcome.WRONG),
    ("(2,1)", r"\{1,2\}", Outcome.UNDECIDED),
    ("(1, 2, 3)", "(1, 2)", Outcome.WRONG),
    ("[3, 8]", "(3, 8)", Outcome.WRONG),
    ("(0, 5]", "(0, 5)", Outcome.WRONG),
    ("x > 2", "x < 2", Outcome.WRONG),
    ("x >= 2", "x > 2", Outcome.WRONG),
    (r"2 \le x < 5", "2<x<5", Outcome.WRONG),
    ("x > 2", "y > 2", Outcome.WRONG),
    (r"(-\infty,\infty)", r"(-\infty,4)\cup(4,\infty)", Outcome.WRONG),
    ("{0}", r"\emptyset", Outcome.WRONG),
    ("x=2, y=1", "x=1, y=2", Outcome.WRONG),
    ("y=5", "x=5", Outcome.WRONG),
    ("n", "n=57", Outcome.UNDECIDED),
    ("3=4=5", "5", Outcome.UNDECIDED),
    (r"57 \ne 58", "57", Outcome.UNDECIDED),
    ("x+y-3=0", "2x-5y+8=0", Outcome.WRONG),
    ("x^2+4=0", "x^2+1=0", Outcome.UNDECIDED),
    ("x = 1, y = 2", "1", Outcome.UNDECIDED),
    ("1, 3, ..., 2n-1", r"2, 4, \ldots, 2n", Outcome.WRONG),
    ("2:3", "3:2", Outcome.WRONG),
    ("1:2", "1:2:3", Outcome.WRONG),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}", Outcome.WRONG),
    ("f(x)=x^3", "f(x)=x^2", Outcome.WRONG),
    ("f(m)=mn", "f(n)=n^2", Outcome.UNDECIDED),
    (r"m\pi, m \in \mathbb{N}", r"k\pi, k \in \mathbb{Z}", Outcome.UNDECIDED),
    ("x_1=2, x_2=5", "x_1=5, x_2=2", Outcome.UNDECIDED),
    ("1 year", "365 days", Outcome.UNDECIDED),
    (r"2n\pi", r"k\pi, k \in \mathbb{Z}", Outcome.WRONG),
    ("57=58", "57", Outcome.UNDECIDED),
    ("2x = 6", "6", Outcome.UNDECIDED),
    ("x + y", "z", Outcome.WRONG),
]

MARKS_EQUAL = [
    ("0.5", r"50\%", ()),
    (r"50\%", r"\frac12", ()),
    ("50%", "50", ("percent_written",)),
    ("50", r"50\%", ("percent_written",)),
    (r"\frac{1}{15}", r"6.67\%", ("rounded",)),
    ("30", r"30^\circ", ("unit_missing",)),
    (r"30 \text{ degrees}", r"30^\circ", ()),
    ("5 cm", "5厘米", ()),
    ("5 cm", r"50 \text{ mm}", ("unit_converted",)),
    ("8公斤", "8000克", ("unit_converted",)),
    ("7.2", r"7.2 \text{ cents}", ("unit_missing",)),
    (r"400 \; \text{cm}^2", "400", ("unit_added",)),
    (r"144 \text{ m}^3", r"144\mbox{m}^3", ()),
    (r"\$15,000", "15000", ("unit_added",)),
    (r"12^{\mathrm{th}}", "12", ()),
    ("7.03125", "7.03", ("rounded",)),
    (r"\frac{225}{32}", "7.03", ("rounded",)),
    ("-7.035", "-7.04", ("rounded",)),
    (r"\frac{100}{3}", "33.3", ("rounded",)),
    ("1432", "1432_5", ("base_missing",)),
    (r"\text{(D) }47", "47", ("label_dropped",)),
    (r"\textbf{(D) }47", "(D)", ()),
    ("选C", "C", ()),
    ("对", "yes", ()),
    ("the West", "west", ()),
]

MARKS_NOT_EQUAL = [
    ("0.5", "50", Outcome.WRONG),
    (r"1200\%", "12", Outcome.WRONG),
    ("5 cm", "5 m", Outcome.WRONG),
    ("3 minutes", "3 hours", Outcome.WRONG),
    (r"12 \text{ inches}^2", r"12 \text{ inches}", Outcome.WRONG),
    ("7 apples", "7 pears", Outcome.UNDECIDED),
    (r"\frac{\pi}{6}", r"30^\circ", Outcome.UNDECIDED),
    ("33.3", r"\frac{100}{3}", Outcome.WRONG),
    ("7.03", "7.03125", Outcome.WRONG),
    ("7.0351", "7.03", Outcome.WRONG),
    ("0.46", "0.5", Outcome.WRONG),
    ("7.2", "7", Outcome.WRONG),
    ("7.0", "7.03", Outcome.WRONG),
    ("1432_6", "1432_5", Outcome.WRONG),
    ("242", "1432_5", Outcome.UNDECIDED),
    ("(C)", "(D)", Outcome.WRONG),
    (r"\text{(D) }47", "(D) 48", Outcome.WRONG),
    (r"36^\circ", r"\$36", Outcome.WRONG),
    (r"50\%", r"50 \text{ cm}", Outcome.WRONG),
    ("no", "yes", Outcome.WRONG),
    ("Thursday", "Thu", Outcome.UNDECIDED),
    ("see above", "57", Outcome.UNSUPPORTED),
]


@pytest.mark.parametrize(("candidate", "reference"), EQUAL)
def test_equal_structures_are_correct(candidate, reference):
    verdict = verify_answer(candidate, reference, contract="v3")
    assert verdict.outcome is Outcome.CORRECT, verdict


@pytest.mark.parametrize(("candidate", "reference", "outcome"), NOT_EQUAL)
def test_different_structures_have_their_outcome(candidate, reference, outcome):
    assert verify_answer(candidate, reference, contract="v3").outcome is outcome


@pytest.mark.parametrize(("candidate", "reference", "flags"), MARKS_EQUAL)
def test_a_convention_that_makes_answers_equal_is_flagged(candidate, reference, flags):
    verdict = verify_answer(candidate, reference, contract="v3")
    assert (verdict.outcome, verdict.flags) == (Outcome.CORRECT, flags)


@pytest.mark.parametrize(("candidate", "reference", "outcome"), MARKS_NOT_EQUAL)
def test_marks_that_contradict_have_their_outcome(candidate, reference, outcome):
    assert verify_answer(candidate, reference, contract="v3").outcome is outcome


@pytest.mark.parametrize("text", ["1/0", "(1, 1/0)", "x = 1/0", r"\{0^0, 2\}", "[1/0, 2)", r"5 \text{ cm}, 1/0"])
def test_what_has_no_value_equals_nothing_not_even_itself(text):
    assert verify_answer(text, text, contract="v3").outcome is Outcome.BAD_REFERENCE
    assert check_reference(text, contract="v3") is Reason.REFERENCE_UNDEFINED_VALUE


@pytest.mark.parametrize("text", [r"\sum_{k", "__import__('os')", "((((", "2//3", "\ud800", "x" * 9_000])
def test_the_same_text_is_the_same_answer_even_where_it_cannot_be_read(text):
    verdict = verify_answer(text, text, contract="v3")
    assert (verdict.outcome, verdict.method) == (Outcome.CORRECT, "identity")
    assert verify_answer("7", text, contract="v3").outcome is Outcome.BAD_REFERENCE


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_is_not_the_same_as_nothing(text):
    assert verify_answer(text, text, contract="v3").outcome is Outcome.BAD_REFERENCE


@pytest.mark.parametrize(
    ("candidate", "reference", "correct"),
    [("(1, 2)", "2, 1", True), ("[2, 1]", "(1, 2)", True), (r"\{1, 2\}", "(2, 1)", True), ("1, 3", "1, 2", False)],
)
@pytest.mark.parametrize("answer_type", ["list", "set"])
def test_a_declared_list_makes_brackets_mere_brackets(candidate, reference, correct, answer_type):
    assert verify_answer(candidate, reference, contract="v3", answer_type=answer_type).correct is correct


@pytest.mark.parametrize(
    "pattern", ["{}, {}", "({}, {})", r"\{{{}, {}\}}", "[{}, {}]", "x={}, y={}", r"{} \le x \le {}"]
)
@pytest.mark.parametrize(
    ("first", "second", "correct"),
    [("20", "30", True), ("0.2", "0.3", True), ("20", "0.3", False), ("0.2", "30", False)],
)
@pytest.mark.parametrize("swap", [False, True], ids=["signs in the answer", "signs in the reference"])
def test_percent_signs_are_read_one_way_in_a_whole_answer(pattern, first, second, correct, swap):
    signs, bare = pattern.format(r"20\%", r"30\%"), pattern.format(first, second)
    candidate, reference = (bare, signs) if swap else (signs, bare)
    assert verify_answer(candidate, reference, contract="v3").correct is correct


def test_one_percentage_is_not_both_of_its_readings():
    assert verify_answer(r"\{20\%\}", r"\{20, 0.2\}", contract="v3").outcome is Outcome.WRONG


@pytest.mark.parametrize(
    ("candidate", "reference", "outcome"),
    [
        ("]1, 2[", "1 < x < 2", Outcome.CORRECT),
        (r"x \in \left]1, 2\right]", "(1, 2]", Outcome.CORRECT),
        ("[1; 2[", "[1, 2)", Outcome.CORRECT),
        ("]1, 2[", "(1, 2]", Outcome.WRONG),
        ("]1[", "1", Outcome.UNSUPPORTED),
        (r"]0, 1[ \cup ]2, 3[", r"(0, 1) \cup (2, 3)", Outcome.UNSUPPORTED),
    ],
)
def test_outward_brackets_are_read_where_they_are_one_interval(candidate, reference, outcome):
    assert verify_answer(candidate, reference, contract="v3").outcome is outcome


def test_the_decimal_comma_is_an_option():
    assert verify_answer("3,5", r"\frac72", contract="v3", options={"decimal_comma": True}).correct
    assert not verify_answer("3,5", r"\frac72", contract="v3").correct


@pytest.mark.parametrize(("candidate", "reference"), [("[3, 8]", "(3, 8)"), ("57 or 58", "57"), ("(5, 7)", "5")])
def test_a_convention_of_notation_is_never_called_proved(candidate, reference):
    assert verify_answer(candidate, reference, contract="v3").certainty is Certainty.PROBABLE


def test_a_hedge_is_flagged_and_has_its_reason():
    verdict = verify_answer("57 or 58", "57", contract="v3")
    assert (verdict.reason, verdict.flags) == (Reason.HEDGED, ("hedged",))


def test_two_large_sets_end_within_the_budget():
    roots = [rf"\sqrt{{{n}}}+\sqrt{{{n + 1}}}" for n in range(2, 60)]
    verdict = verify_answer(", ".join(roots), ", ".join(reversed(roots)), contract="v3")
    assert verdict.outcome in (Outcome.CORRECT, Outcome.UNDECIDED)
    assert verify_answer(", ".join(roots), ", ".join([*roots[1:], "0"]), contract="v3").outcome is not Outcome.CORRECT


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("(1, 2]", "1( 2]"),
        (r"(3, 4) \cup (1, 2)", "1( 2) 3( 4)"),
        (r"(1, 2) \cup [2, 3)", "1( 3)"),
        (r"(1, 2) \cup (2, 3)", "1( 2) 2( 3)"),
        (r"(1, 2) \cup \{2\} \cup (2, 3)", "1( 3)"),
        (r"[1, 5] \setminus \{3\}", "1[ 3) 3( 5]"),
        (r"\mathbb{R} \setminus [0, 1]", "-infinity( 0) 1( infinity)"),
        (r"(0, \sqrt{2}) \cap (1, \pi)", "1( sqrt(2))"),
        ("x > 1, x < 3", "1( 3)"),
        (r"[2, 2]", "2[ 2]"),
        (r"(2, 2)", ""),
    ],
)
def test_a_set_of_reals_is_its_sorted_pieces(text, pieces):
    read = realsets.read(parse(text))
    assert read is not None
    shown = [
        f"{spell(one.low)}{'[' if one.low_closed else '('} {spell(one.high)}{']' if one.high_closed else ')'}"
        for one in read[0]
    ]
    assert " ".join(shown) == pieces


@pytest.mark.parametrize("text", ["(5, 1)", "(a, b)", "x > y", "1 < x < 2 < y < 3", "(1, 2, 3)", r"\{x \mid y > 2\}"])
def test_what_is_no_set_of_reals_in_solved_form_is_not_read_as_one(text):
    assert realsets.read(parse(text)) is None


def test_long_equations_are_tried_at_fewer_points(monkeypatch):
    """Thirty terms of many letters once took 200 ms: each letter of each side was tried at every point."""
    evaluated = []
    whole = relations._at
    monkeypatch.setattr(relations, "_at", lambda node, point: evaluated.append(spell(node)) or whole(node, point))
    squares = "+".join(f"{letter}^2" for letter in "abcdfghjklmnpqrstuvwxyz")
    verdict = verify_answer(f"{squares}=1", f"{squares}=2")
    assert verdict.outcome is Outcome.UNDECIDED
    assert evaluated
    assert len(evaluated) <= 80
