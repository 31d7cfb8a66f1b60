"""The bound of what an exact comparison would cost: what it lets pass, what it leaves out, and that it is cheap."""

import time

import pytest

from veriward.rewards import Certainty
from veriward.rewards.contracts.v3.comparison import Finding
from veriward.rewards.contracts.v3.engine import algebra, preflight
from veriward.rewards.contracts.v3.limits import LIMITS
from veriward.rewards.contracts.v3.reading.grammar import Refused, parse
from veriward.rewards.contracts.v3.tree import is_scalar


def planned(left: str, right: str = "7") -> preflight.Plan:
    return preflight.plan(parse(left), parse(right))


@pytest.mark.parametrize(
    "text",
    [
        "3",
        "2^{1009}",
        "(a+b+c+d)^{8}",
        r"\frac{(2-\sqrt3)\pi a^2}{18}",
        r"\sqrt{55-10\sqrt{29}}",
        "x^{9999999}-x^{9999998}",
        r"\sin 8x",
        "(x^2+y^2)^{3/2}",
        "1000!",
    ],
)
def test_answers_of_the_usual_size_pass(text):
    assert planned(text).reason is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("(((9^{64})^{64})^{64})^{64}", "bits"),
        ("(((x^2+1)^{64}+1)^{64}+1)^{64}", "terms"),
        ("(a+b+c+d+f+g)^{64}", "terms"),
        ("(a+r)(b+s)(c+t)(d+u)(f+v)(g+w)(h+z)", "atoms"),
        (r"(1+\sqrt2+\sqrt3+\sqrt5)^{2000}", "work"),
        ("x^{5000}/(x+1)", "degree"),
        (r"\sqrt[1000]{2}", "root degree"),
        (r"(\sqrt{x^{4000}})^{4000}", "degree"),
        ("+".join(rf"\sqrt{{{n}}}" for n in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)), "atoms"),
    ],
)
def test_each_kind_of_growth_is_seen_before_anything_is_built(text, what):
    assert planned(text).reason.startswith(what)


def test_an_even_power_of_a_root_has_the_size_of_its_radicand():
    bare, rooted = planned("(x+y)^{1000}"), planned(r"(\sqrt{(x+y)^{500}})^4")
    assert rooted.degree >= bare.degree


def test_a_plan_takes_no_longer_than_reading():
    left = parse("+".join(f"(x+{n})^{{{n}}}" for n in range(2, 40)))
    begun = time.process_time()
    preflight.plan(left, left)
    assert time.process_time() - begun < 0.05


def test_the_plan_is_recorded_as_cost():
    comparison = algebra.compare(parse("(x+1)^{20}"), parse("(1+x)^{19}(x+1)"))
    assert comparison.certainty is Certainty.PROVED
    assert comparison.cost.terms >= 20
    assert 0 < comparison.cost.work < LIMITS.max_work


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(a+b+c+d+f+g)^{64}", "(a+b+c+d+f+g)^{63}(a+b+c+d+f+h)"),
        ("9^{9^9}+x", "9^{9^9}+x+1"),
        ("(((x^2+1)^{64}+1)^{64}+1)^{64}", "(((x^2+1)^{64}+1)^{64}+2)^{64}"),
        ("2^{2^{2^{2^{2^2}}}}", "7"),
    ],
)
def test_over_budget_is_not_over_and_out(left, right):
    assert preflight.plan(parse(left), parse(right)).reason is not None
    assert algebra.compare(parse(left), parse(right)).finding is Finding.UNEQUAL


def test_every_dangerous_case_is_bounded_and_never_equal_to_its_trap(shared_folder, read_rows):
    """The labelled inputs that broke earlier verifiers, those that the grammar reads as one value."""
    for row in read_rows(shared_folder / "cases" / "preflight_cases.jsonl"):
        text = row.get("expression") or "".join(part * count for part, count in row.get("parts", []))
        node, trap = parse(text), parse(row.get("reference", "7"))
        if isinstance(node, Refused) or isinstance(trap, Refused) or not is_scalar(node) or not is_scalar(trap):
            continue
        begun = time.process_time()
        comparison = algebra.compare(node, trap)
        assert time.process_time() - begun < 0.1, row["id"]
        if "reference" in row:
            assert comparison.finding is not Finding.EQUAL, row["id"]
