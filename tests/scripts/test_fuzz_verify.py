"""`python -m veriward.scripts.fuzz_verify`: a small run, and what it does with a string that raises or is slow."""

import subprocess
import sys
from collections import Counter

import pytest

from veriward.rewards import CONTRACTS
from veriward.scripts import fuzz_verify
from veriward.scripts.fuzzed_strings import KINDS, LONGEST, Case, drawn, read_texts
from veriward.tool_agent.errors import ConfigError


@pytest.fixture(scope="module")
def texts():
    return read_texts(None)


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "veriward.scripts.fuzz_verify", *map(str, arguments)],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )


@pytest.mark.parametrize("contract", CONTRACTS)
def test_no_contract_raises(contract, texts):
    result = fuzz_verify.run(range(300), 1, texts, contract, seconds=120)
    assert (result.done, result.raised) == (300, None)


def test_a_thousand_strings_are_not_slow(texts):
    result = fuzz_verify.run(range(1_000), 2, texts, "v3", seconds=120)
    assert (result.done, result.raised, result.too_slow) == (1_000, None, [])


def test_the_command_prints_outcomes_and_counts():
    done = command("--count", 300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "300 strings, 0 raised, 0 over 100 ms"


def test_a_folder_without_texts_is_refused_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"no \.jsonl file in its cases/ and data/"):
        read_texts(tmp_path)


def test_a_string_follows_from_its_seed_and_number(texts):
    assert [drawn(4, number, texts, "v3") for number in range(50)] == [
        drawn(4, number, texts, "v3") for number in range(50)
    ]


def test_seeds_and_numbers_give_different_strings(texts):
    cases = {drawn(seed, number, texts, "v3") for seed in range(3) for number in range(100)}
    assert len(cases) > 290


def test_kinds_come_in_their_shares(texts):
    kinds = Counter(drawn(0, number, texts, "v3").kind for number in range(2_000))
    assert all(abs(kinds[kind] - 20 * share) < 100 for kind, (share, _) in KINDS.items()), kinds


def test_no_string_is_longer_than_the_limit(texts):
    assert all(len(drawn(2, number, texts, "v3").response) <= LONGEST for number in range(2_000))


def test_no_answer_type_is_asked_of_a_contract_that_knows_none(texts):
    assert {drawn(0, number, texts, "v2").answer_type for number in range(300)} == {None}


def test_a_string_that_raises_ends_the_run_and_is_kept(texts, monkeypatch):
    def decided(case, _contract):
        if case == drawn(0, 23, texts, "v3"):
            raise ZeroDivisionError
        return "wrong", 0.0

    monkeypatch.setattr(fuzz_verify, "decided_in", decided)
    result = fuzz_verify.run(range(20, 40), 0, texts, "v3", seconds=60)
    number, case, error = result.raised
    assert (result.done, number, case) == (3, 23, drawn(0, 23, texts, "v3"))
    assert isinstance(error, ZeroDivisionError)


def test_a_slow_string_counts_only_if_it_is_slow_alone_too(texts, monkeypatch):
    alone = iter([0.01, 0.3])
    monkeypatch.setattr(fuzz_verify, "decided_in", lambda *_: ("wrong", 0.2))
    monkeypatch.setattr(fuzz_verify, "seconds_alone", lambda *_: next(alone))
    result = fuzz_verify.run(range(2), 0, texts, "v3", seconds=60)
    assert [number for *_, number, _ in result.too_slow] == [1]


def test_a_string_is_timed_in_a_process_of_its_own_half_surrogates_and_all():
    assert 0 < fuzz_verify.seconds_alone(Case("noise", "\\boxed{\ud800 x+1}", "1+x", "expression", True), "v3") < 1


def test_the_run_ends_with_its_time(texts):
    assert fuzz_verify.run(range(10**9), 0, texts, "v3", seconds=0.2).done < 100_000


def test_an_interrupted_run_gives_what_was_done(texts, monkeypatch):
    def decided(case, _contract):
        if case == drawn(0, 5, texts, "v3"):
            raise KeyboardInterrupt
        return "wrong", 0.0

    monkeypatch.setattr(fuzz_verify, "decided_in", decided)
    result = fuzz_verify.run(range(100), 0, texts, "v3", seconds=60)
    assert (result.done, result.interrupted) == (5, True)
