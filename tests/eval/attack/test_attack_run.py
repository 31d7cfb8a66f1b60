"""The attack's run: what each kind of target does with a few cases, and how it is counted."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from veriward.eval.attack.cases import AttackCase
from veriward.eval.attack.report import markdown, never_answered, never_paid, replace_tables, summary, to_row
from veriward.eval.attack.run import AttackSettings, Finding, attack
from veriward.eval.attack.targets import Target
from veriward.tool_agent.errors import ConfigError, MissingExtraError

REWARDS = '''
"""A user's reward functions, good and bad."""
import asyncio, os, sys, threading, time

def pays_everything(completions, **columns):
    return [1.0] * len(completions)

def pays_nothing(completions, **columns):
    return [0] * len(completions)

def raises(completions, **columns):
    raise KeyError("no such column")

def leaves(completions, **columns):
    sys.exit(3)

def hangs_on_a_half(completions, **columns):
    while "1/2" in completions[0][0]["content"]:
        pass
    return [1.0]

def dies_on_a_half(completions, **columns):
    if "1/2" in completions[0][0]["content"]:
        os._exit(7)
    return [1.0]

def skips(completions, **columns):
    return [None]

def not_a_number(completions, **columns):
    return [float("nan")]

def one_number(completions, **columns):
    return 1.0

def too_many(completions, **columns):
    return [1.0, 1.0]

def infinite(completions, **columns):
    return [float("inf")]

def endless_text(completions, **columns):
    print("x" * 10_000)
    print("x" * 10_000, file=sys.stderr)
    return [1.0]

async def later(completions, **columns):
    await asyncio.sleep(0)
    return [1.0]

class Reward:
    def __call__(self, completions, solution, **columns):
        return [float(solution[0] in completions[0][0]["content"])]

def make_reward():
    return Reward()

reward = Reward()

def wants_text(prompts, completions, ground_truth, **columns):
    return [float(ground_truth[0] in completions[0] and isinstance(prompts[0], str))]

def wants_one_column(completions, answer, **columns):
    assert "solution" not in columns
    return [float(answer[0] in completions[0][0]["content"])]

def where_am_i(prompts, completions, completion_ids, trainer_state, log_extra, log_metric, **columns):
    here = threading.current_thread() is threading.main_thread()
    try:
        asyncio.get_running_loop()
        inside = True
    except RuntimeError:
        inside = False
    log_extra("outcome", [f"{'main' if here else 'other'}, {'loop' if inside else 'no loop'}"])
    log_metric("seen", 1.0)
    return [1.0 if prompts[0][0]["content"] and completion_ids[0] else 0.0]

number = 5
'''


def case(name, answer, reference, accept, call="plain"):
    completion = rf"We work it out. The answer is $\boxed{{{answer}}}$."
    family, _, _ = name.partition("/")
    return AttackCase(
        id=name,
        family=family,
        mechanism=f"{family} tried",
        prompt="What is it?",
        completion=completion,
        reference=reference,
        accept=accept,
        call=call,
    )


CASES = (
    case("equal/000", "1/2", "1/2", True),
    case("equal/001", "7", "7", True),
    case("unequal/000", "8", "7", False),
    case("unequal/001", "-7", "7", False),
    case("noise/000", "7 7 7", "7", None),
)
FAST = AttackSettings(deadline_s=0.5)


@pytest.fixture
def rewards(tmp_path, monkeypatch):
    """A folder with a user's module, as the working folder."""
    (tmp_path / "attacked_rewards.py").write_text(REWARDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_on(*targets, cases=CASES, settings=FAST):
    return attack(targets, cases, settings).reports


def function(name, **options):
    return Target(kind="function", name=f"attacked_rewards:{name}", **options)


def findings(report):
    return [result.finding.value for result in report.results]


FINE, ACCEPT, REJECT, OPEN, RAISED = "fine", "wrong accept", "wrong reject", "not decided", "exception"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("pays_everything", [FINE, FINE, ACCEPT, ACCEPT, FINE], id="every unequal case is a wrong accept"),
        pytest.param("pays_nothing", [REJECT, REJECT, FINE, FINE, FINE], id="every equal case is a wrong reject"),
        pytest.param("skips", [OPEN, OPEN, OPEN, OPEN, FINE], id="None is not decided"),
        pytest.param("not_a_number", [OPEN, OPEN, OPEN, OPEN, FINE], id="NaN is how TRL writes None"),
        pytest.param("raises", [RAISED] * 5, id="an exception counts whatever the case asks"),
        pytest.param("leaves", [RAISED] * 5, id="so does leaving the program"),
        pytest.param("one_number", [RAISED] * 5, id="a bare number is no list"),
        pytest.param("too_many", [RAISED] * 5, id="two values for one completion"),
        pytest.param("infinite", [RAISED] * 5, id="no trainer can average infinity"),
        pytest.param("endless_text", [FINE, FINE, ACCEPT, ACCEPT, FINE], id="what it prints stops nothing"),
        pytest.param("later", [FINE, FINE, ACCEPT, ACCEPT, FINE], id="an async function is awaited"),
        pytest.param("Reward", [FINE, FINE, FINE, ACCEPT, FINE], id="a class is made into an object"),
        pytest.param("make_reward", [FINE, FINE, FINE, ACCEPT, FINE], id="a factory is called"),
        pytest.param("reward", [FINE, FINE, FINE, ACCEPT, FINE], id="an object is used as it is"),
        pytest.param("hangs_on_a_half", ["hang", FINE, ACCEPT, ACCEPT, FINE], id="a hang costs itself alone"),
        pytest.param("dies_on_a_half", ["crash", FINE, ACCEPT, ACCEPT, FINE], id="a dead process costs itself alone"),
    ],
)
def test_what_a_function_does_is_counted(rewards, capfd, name, found):
    (report,) = run_on(function(name))
    assert findings(report) == found
    assert capfd.readouterr() == ("", "")


def test_a_function_gets_texts_if_it_wants_them(rewards):
    (report,) = run_on(function("wants_text", plain=True))
    assert findings(report) == [FINE, FINE, FINE, ACCEPT, FINE]


def test_a_function_gets_one_reference_column_if_it_wants_one(rewards):
    (report,) = run_on(function("wants_one_column", column="answer"))
    assert findings(report) == [FINE, FINE, FINE, ACCEPT, FINE]


@pytest.mark.parametrize(
    ("call", "place"), [("plain", "main, no loop"), ("thread", "other, no loop"), ("async", "main, loop")]
)
def test_a_case_says_from_where_the_function_is_called(rewards, call, place):
    (report,) = run_on(function("where_am_i"), cases=[case("equal/000", "7", "7", True, call)])
    assert [(result.finding, result.outcome) for result in report.results] == [(Finding.FINE, place)]


@pytest.mark.parametrize("call", ["plain", "thread", "async"])
def test_a_hang_is_ended_wherever_it_hangs(rewards, call):
    (report,) = run_on(function("hangs_on_a_half"), cases=[case("equal/000", "1/2", "1/2", True, call)])
    assert findings(report) == ["hang"]


def test_the_exception_is_kept(rewards):
    (report,) = run_on(function("raises"))
    assert report.results[0].detail == "KeyError: 'no such column'"
    assert never_answered(report) == (
        "attacked_rewards:raises: every call raised, the first KeyError: 'no such column'; "
        "is it called as it wants to be? see --plain and --column"
    )


def test_a_threshold_says_what_pays(rewards):
    (report,) = run_on(function("pays_everything"), settings=replace(FAST, threshold=1.0))
    assert findings(report) == [REJECT, REJECT, FINE, FINE, FINE]


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        (Target(kind="function", name="attacked_rewards"), "wanted package.module:function"),
        (Target(kind="function", name="../x.py:f"), "wanted package.module:function"),
        (function("nothing"), "attacked_rewards has no 'nothing'"),
        (function("number"), "wanted a function in TRL's call, got int"),
        (
            Target(kind="function", name="no_such_module:f"),
            "no module no_such_module is installed or in the working folder",
        ),
        (Target(kind="function", name="broken:f"), "SyntaxError"),
        (Target(kind="function", name="leaving:f"), "SystemExit: 3"),
        (Target(kind="function", name="dying:f"), "the process ended with code 9"),
        (Target(kind="contract", name="v0"), "unknown contract 'v0'; wanted one of v1, v2, v3"),
        (Target(kind="peer", name="gpt"), "unknown peer 'gpt'; wanted one of math-verify, trl"),
        (Target(kind="server", name="127.0.0.1:8000"), "wanted an address with its scheme"),
        (Target(kind="server", name="file:///etc/passwd"), "wanted an address with its scheme"),
        (Target(kind="server", name="http://127.0.0.1:1/x"), "no answer to the first request"),
        (Target(kind="server", name="http://h/", server_format="xml"), "wanted one of veriward, openrlhf, openai"),
        (Target(kind="server", name="http://h/", server_format="openai"), "name it with --judge-model"),
    ],
)
def test_what_cannot_be_attacked_is_one_line(rewards, target, complaint):
    (rewards / "broken.py").write_text("def f(:\n")
    (rewards / "leaving.py").write_text("import sys\nsys.exit(3)\n")
    (rewards / "dying.py").write_text("import os\nos._exit(9)\n")
    with pytest.raises(ConfigError) as raised:
        run_on(target)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_peer_names_the_install_command(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "math_verify", None)  # None makes the import fail
    with pytest.raises(MissingExtraError, match=r"pip install 'veriward\[peers\]'"):
        run_on(Target(kind="peer", name="math-verify"))


def test_our_contract_says_what_it_did_not_decide():
    cases = [
        case("equal/000", r"\frac{\sqrt{12}}{2}", r"\sqrt{3}", True),
        case("unequal/000", "1.7320508", r"\sqrt{3}", False),
        case("open/000", r"\log 100", "2", True),
        case("program/000", "__import__('os')", "7", False),
    ]
    (report,) = run_on(Target(kind="contract", name="v3"), cases=cases)
    assert findings(report) == [FINE, FINE, OPEN, OPEN]
    assert [result.outcome for result in report.results] == ["correct", "wrong", "undecided", "unsupported"]
    assert len(report.target.fingerprint) == 16


PEER_CASES = (
    case("equal/000", r"\frac{2}{4}", r"\frac{1}{2}", True),
    case("unequal/000", "8", "7", False),
    case("unequal/001", "58=57", "57", False),
    case("threads/000", "7", "7", True, "thread"),
)


def test_math_verify_is_called_as_its_readme_says():
    pytest.importorskip("math_verify", reason="math-verify is not installed")
    (report,) = run_on(Target(kind="peer", name="math-verify"), cases=PEER_CASES, settings=AttackSettings())
    assert findings(report) == [FINE, FINE, ACCEPT, RAISED]
    assert report.results[3].detail.startswith("ValueError")


def test_trl_is_called_as_its_trainer_calls_it():
    pytest.importorskip("trl", reason="trl is not installed")
    pytest.importorskip("math_verify", reason="math-verify is not installed")
    (report,) = run_on(Target(kind="peer", name="trl"), cases=PEER_CASES, settings=AttackSettings())
    assert findings(report) == [FINE, FINE, ACCEPT, FINE]


# ---------------------------------------------------------------------------------------------------- HTTP judges


@contextmanager
def judge(answer):
    """A judge on the loopback; `answer` gets the body and the headers of a request, returns a status and a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, text = answer({"path": self.path, **body}, self.headers)
            self.send_response(status)
            self.end_headers()
            self.wfile.write((text if isinstance(text, str) else json.dumps(text)).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/judge"
    finally:
        server.shutdown()
        server.server_close()


def contains(reference, text):
    return float(f"{{{reference}}}" in text)


def server_findings(answer, **options):
    with judge(answer) as url:
        (report,) = run_on(Target(kind="server", name=url, **options))
    return findings(report)


def test_a_server_gets_prompts_completions_and_references():
    def answer(body, _headers):
        assert len(body["prompts"]) == len(body["completions"]) == 1
        return 200, {"rewards": [contains(body["references"][0], body["completions"][0])]}

    assert server_findings(answer) == [FINE] * 5


def test_a_server_of_openrlhf_gets_the_whole_query():
    def answer(body, _headers):
        assert body["query"][0].startswith(body["prompts"][0])
        return 200, {"rewards": [contains(body["labels"][0], body["query"][0])]}

    assert server_findings(answer, server_format="openrlhf") == [FINE] * 5


def test_a_chat_server_says_yes_or_no():
    def answer(body, _headers):
        assert (body["path"], body["model"], body["temperature"]) == ("/judge/chat/completions", "judge-1", 0)
        text = body["messages"][0]["content"]
        word = "Yes." if "boxed{8}" in text else "YES or NO" if "boxed{-7}" in text else "<think>YES?</think> no"
        return 200, {"choices": [{"message": {"content": word}}]}

    found = server_findings(answer, server_format="openai", judge_model="judge-1")
    assert found == [REJECT, REJECT, ACCEPT, OPEN, FINE]


def test_a_server_gets_the_token(monkeypatch):
    monkeypatch.setenv("VERIWARD_SERVER_TOKEN", "sesame")

    def answer(_body, headers):
        return (200, {"rewards": [1]}) if headers["Authorization"] == "Bearer sesame" else (401, "")

    assert server_findings(answer) == [FINE, FINE, ACCEPT, ACCEPT, FINE]


@pytest.mark.parametrize(
    ("status", "text", "detail"),
    [
        (503, "", "JudgeAnswerError: HTTP status 503"),
        (200, "rewards: 1", "JudgeAnswerError: the answer is no JSON"),
        (200, {"scores": [1]}, "JudgeAnswerError: the answer has no list 'rewards'"),
        (200, {"rewards": []}, "TypeError: returned []; wanted a list with one number"),
        (200, {"rewards": ["good"]}, "ValueError: could not convert string to float"),
    ],
)
def test_an_answer_without_a_reward_is_recorded(status, text, detail):
    with judge(lambda _body, _headers: (status, text)) as url:
        (report,) = run_on(Target(kind="server", name=url))
    assert findings(report) == [RAISED] * 5
    assert report.results[0].detail.startswith(detail)


def test_a_server_that_lets_nobody_in_is_one_line():
    with judge(lambda _body, _headers: (401, "")) as url, pytest.raises(ConfigError, match="HTTP status 401"):
        run_on(Target(kind="server", name=url))


def test_a_server_that_is_silent_hangs():
    silence = threading.Event()

    def answer(body, _headers):
        if "1/2" in body["completions"][0]:
            silence.wait()
        return 200, {"rewards": [1.0]}

    assert server_findings(answer) == ["hang", FINE, ACCEPT, ACCEPT, FINE]


# ---------------------------------------------------------------------------------------------------- the report


def without_seconds(value):
    if isinstance(value, dict):
        return {name: without_seconds(item) for name, item in value.items() if name != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def test_two_runs_differ_in_seconds_alone(rewards):
    targets = [function("hangs_on_a_half"), function("raises")]
    first, second = (to_row(attack(targets, CASES, FAST)) for _ in range(2))
    assert without_seconds(json.loads(json.dumps(first))) == without_seconds(json.loads(json.dumps(second)))


def test_a_finding_holds_what_is_needed_to_see_it_again(rewards):
    row = to_row(attack([function("pays_everything")], CASES, FAST))
    assert row["targets"][0]["total"]["wrong_accepts"] == 2
    assert row["targets"][0]["families"]["unequal"]["cases"] == 2
    found = row["targets"][0]["findings"][0]
    assert (found["id"], found["completion"], found["reference"]) == ("unequal/000", CASES[2].completion, "7")


def test_ctrl_c_keeps_what_was_found(rewards):
    def stop(report):
        if len(report.results) == 3:
            raise KeyboardInterrupt

    run = attack([function("pays_everything"), function("raises")], CASES, FAST, stop)
    assert run.stopped
    assert [len(report.results) for report in run.reports] == [3]


def test_the_tables_of_a_page_are_replaced_between_their_markers(rewards):
    page = rewards / "PAGE.md"
    page.write_text(
        "# Top\n<!-- attack summary -->\n<!-- /attack summary -->\nmiddle\n"
        "<!-- attack table -->\nold | row\n<!-- /attack table -->\nbottom\n"
    )
    run = attack([function("pays_everything"), function("skips")], CASES, FAST)
    for _ in range(2):
        replace_tables(page, run)
    text = page.read_text()
    assert text == (
        f"# Top\n<!-- attack summary -->\n{summary(run)}\n<!-- /attack summary -->\nmiddle\n"
        f"<!-- attack table -->\n{markdown(run)}\n<!-- /attack table -->\nbottom\n"
    )
    assert "| 2 | 0 | 2 / 0 / 0 / 0 | 0 / 0 / 0 / 0 |" in text
    assert "| **all** |  | 2 | 2 | **2 / 0 / 0 / 0** | **0 / 0 / 2 / 0** |" in text
    assert "| attacked_rewards:skips | 0 | 0 | 2 | 0 | 0 | 0 |" in text
    assert "veriward attack --function attacked_rewards:pays_everything" in text


def test_a_target_that_pays_no_right_answer_is_told_of(rewards):
    nothing, everything = attack([function("pays_nothing"), function("pays_everything")], CASES, FAST).reports
    assert never_paid(nothing).endswith("paid none of 2 right answers; does it want plain texts (--plain)?")
    assert never_paid(everything) is None
