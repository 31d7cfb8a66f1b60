"""Another package adds an answer type through an entry point, without touching ours."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from veriward.rewards import AnswerType, answer_types, check_reference, compile_reference, verify_answer

EXAMPLE = Path(__file__).parents[2] / "docs/examples/roman_numerals"
PARITY = AnswerType(
    name="parity",
    meaning="odd or even",
    parse=lambda text: text if text in ("odd", "even") else None,
    equal=lambda candidate, reference: candidate == reference,
)


class Entry:
    """What importlib.metadata gives for one entry point."""

    value = "package:THING"

    def __init__(self, thing):
        self.thing = thing

    def load(self):
        return self.thing


@pytest.fixture
def register(monkeypatch):
    def registering(*things):
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Entry(thing) for thing in things])
        answer_types.registered.cache_clear()

    yield registering
    answer_types.registered.cache_clear()


@pytest.mark.parametrize(
    ("candidate", "reference", "outcome", "reason"),
    [
        ("odd", "odd", "correct", None),
        ("even", "odd", "wrong", "not_equal"),
        ("3", "odd", "unsupported", "not_of_declared_type"),
        ("odd", "3", "bad_reference", "reference_not_of_declared_type"),
        ("odd", r"It is \boxed{odd}.", "correct", None),
    ],
)
def test_a_registered_type_decides(register, candidate, reference, outcome, reason):
    register(PARITY)
    verdict = verify_answer(candidate, reference, contract="v3", answer_type="parity")
    assert (verdict.outcome, verdict.reason, verdict.answer_type) == (outcome, reason, "parity")


def test_its_references_are_checked_and_compiled_like_any(register):
    register(PARITY)
    assert check_reference("3", contract="v3", answer_type="parity") == "reference_not_of_declared_type"
    assert compile_reference("odd", answer_type="parity").answer_type == "parity"


def test_without_it_the_name_is_unknown():
    with pytest.raises(ValueError, match="unknown answer_type 'parity'"):
        verify_answer("odd", "odd", contract="v3", answer_type="parity")


@pytest.mark.parametrize(
    ("things", "complaint"),
    [
        ((PARITY, PARITY), "answer type 'parity' of package:THING is taken"),
        (
            (AnswerType(name="list", meaning="", parse=str, equal=lambda a, b: True),),
            "'list' of package:THING is taken",
        ),
        (("no type",), "is no AnswerType but a str"),
    ],
)
def test_a_registration_that_cannot_stand_is_an_error(register, things, complaint):
    register(*things)
    with pytest.raises(ValueError, match=complaint):
        verify_answer("odd", "odd", contract="v3", answer_type="parity")


@pytest.mark.slow
def test_the_example_package_works_once_it_is_installed(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(EXAMPLE, source)  # setuptools would leave its build folder in the checkout
    options = ["-q", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True, capture_output=True)
    program = r"""
import json, sys
sys.path.insert(0, sys.argv[1])
from veriward.rewards import verify
answers = [r"\boxed{%s}" % text for text in ("XIV", "14", "XV", "x")]
print(json.dumps([verify(answer, "14", answer_type="roman").outcome for answer in answers]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(target)], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert json.loads(done.stdout) == ["correct", "correct", "wrong", "wrong"]
