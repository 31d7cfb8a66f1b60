"""Against a real HTTP server on this machine that speaks the API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("openai")

from veriward.eval.openai_server import OpenAIGenerator, request_seed
from veriward.tool_agent.errors import ConfigError, MissingExtraError
from veriward.tool_agent.generator import NO_ROOM

MODELS = {"object": "list", "data": [{"id": "tiny", "created": 1, "owned_by": "us", "max_model_len": 64}]}
CHAT = [{"role": "user", "content": "Hello?"}]
CALL = {"id": "1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression": "1+1"}'}}


def chat(content="Hello.", finish_reason="stop", **message):
    return {"choices": [{"message": {"content": content, **message}, "finish_reason": finish_reason}]}


class Server(ThreadingHTTPServer):
    """Answers GET /models and then each POST with the next of `answers`, the last one for good."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.models, self.answers, self.asked = (200, MODELS), [(200, chat())], []
        self.delay, self.at_once, self.most_at_once = 0.0, 0, 0
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_):
        """A client that did not wait is what some tests are about."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(*self.server.models)

    def do_POST(self):
        server, body = self.server, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.asked.append((self.path, self.headers, body))
            answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        time.sleep(server.delay)
        status, content = answer(body) if callable(answer) else answer
        with server.lock:
            server.at_once -= 1
        self.reply(status, content)

    def reply(self, status, content):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def connect(server):
    return lambda **options: OpenAIGenerator("tiny", **{"base_url": server.url, "tries": 3, **options})


def answer(generator, *prompts, **options):
    return generator.generate(list(prompts or (CHAT,)), **{"max_new_tokens": 8, "seed": 0, **options})


def test_messages_go_through_the_chat_api(server, connect):
    generation = answer(connect(), stop=["\n\n"])[0]
    path, _, body = server.asked[0]
    assert (generation.text, generation.finish_reason, generation.seed) == ("Hello.", "stop", None)
    assert (path, body) == (
        "/v1/chat/completions",
        {"model": "tiny", "messages": CHAT, "max_tokens": 8, "temperature": 0.0, "stop": ["\n\n"]},
    )


def test_plain_text_goes_through_the_completions_api(server, connect):
    server.answers = [(200, {"choices": [{"text": " 2", "finish_reason": "length"}]})]
    generation = answer(connect(), "1+1=", chat_template_kwargs={"enable_thinking": False})[0]
    assert (generation.text, generation.truncated) == (" 2", True)
    path, _, body = server.asked[0]
    assert (path, body) == (
        "/v1/completions",
        {"model": "tiny", "prompt": "1+1=", "max_tokens": 8, "temperature": 0.0},
    )


def test_every_sample_is_a_request_with_a_seed_of_its_own(server, connect):
    server.answers = [lambda body: (200, chat(f"drawn from {body['seed']}"))]
    samples = answer(connect(), *[CHAT] * 3, sample_numbers=range(3), temperature=0.7)
    seeds = [request_seed(0, CHAT, sample) for sample in range(3)]
    assert [(sample.seed, sample.text) for sample in samples] == [(seed, f"drawn from {seed}") for seed in seeds]
    assert len(set(seeds)) == 3
    assert max(seeds) < 2**31
    assert {body["top_p"] for _, _, body in server.asked} == {1.0}


def test_tools_are_a_field_of_their_own_and_other_template_settings_are_not(server, connect):
    tools = [{"type": "function", "function": {"name": "calculator"}}]
    answer(connect(extra_body={"top_k": 0}), chat_template_kwargs={"tools": tools, "enable_thinking": False})
    _, _, body = server.asked[0]
    assert (body["tools"], body["chat_template_kwargs"], body["top_k"]) == (tools, {"enable_thinking": False}, 0)


@pytest.mark.parametrize(
    ("content", "text", "finish_reason"),
    [
        pytest.param(chat("whole", "stop"), "whole", "stop", id="whole"),
        pytest.param(chat("cut", "length"), "cut", "length", id="cut by the limit"),
        pytest.param(chat("cut", "content_filter"), "cut", "length", id="cut by a filter"),
        pytest.param(chat(None, "stop"), "", "stop", id="nothing written"),
        pytest.param(chat(None, "tool_calls", tool_calls=[CALL]), "", "stop", id="a call alone"),
        pytest.param(chat(None, "stop", refusal="I cannot."), "I cannot.", "stop", id="a refusal"),
        pytest.param(chat("odd", None), "odd", "stop", id="no reason given"),
    ],
)
def test_a_response_is_kept_as_the_model_wrote_it(server, connect, content, text, finish_reason):
    server.answers = [(200, content)]
    generation = answer(connect())[0]
    assert (generation.text, generation.finish_reason) == (text, finish_reason)


def test_a_stop_string_that_a_server_leaves_in_the_text_ends_it(server, connect):
    server.answers = [(200, chat("It is 4.\n\nNext: 5\n\n", "length"))]
    generation = answer(connect(), stop=["Next", "\n\n"])[0]
    assert (generation.text, generation.finish_reason) == ("It is 4.", "stop")


def test_what_a_server_gives_for_a_reason_is_said(server, connect):
    server.answers = [(422, {"detail": "no such model: tiny"})]
    with pytest.raises(ConfigError, match="HTTP 422: no such model: tiny"):
        answer(connect())


def test_the_tokens_that_a_server_reports_are_counted(server, connect):
    server.answers = [(200, {**chat("4"), "usage": {"completion_tokens": 17}})]
    assert answer(connect())[0].tokens == 17


@pytest.mark.parametrize(
    "usage", [None, {}, {"completion_tokens": "17"}, {"completion_tokens": True}, {"completion_tokens": -1}]
)
def test_what_is_no_count_of_tokens_is_none(server, connect, usage):
    server.answers = [(200, {**chat("4"), "usage": usage})]
    assert answer(connect())[0].tokens == 0


def test_a_call_is_kept_as_the_server_sent_it(server, connect):
    server.answers = [(200, chat(None, "tool_calls", tool_calls=[{**CALL, "own": 1}]))]
    assert json.loads(answer(connect())[0].tool_calls) == [{**CALL, "own": 1}]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({}, ()),
        ({"token_ids": [5, 6]}, (5, 6)),
        ({"token_ids": None}, ()),
        ({"token_ids": 5}, ()),
        ({"token_ids": "56"}, ()),
        ({"token_ids": [{"a": 1}, None]}, ()),
        ({"token_ids": [5, 6.0]}, ()),
        ({"token_ids": [5, True]}, ()),
    ],
)
def test_token_ids_are_there_where_the_server_sends_them(server, connect, sent, kept):
    content = chat()
    content["choices"][0] |= sent
    server.answers = [(200, content)]
    assert answer(connect())[0].token_ids == kept


def test_responses_come_in_the_order_of_the_prompts(server, connect):
    prompts = [[{"role": "user", "content": str(number)}] for number in range(12)]
    server.answers = [lambda body: (200, chat(body["messages"][0]["content"]))]
    seen = []
    results = answer(connect(), *prompts, on_finished=seen.extend)
    assert [generation.text for generation in results] == [str(n) for n in range(12)]
    assert sorted(index for index, _ in seen) == list(range(12))
    assert all(results[index] == generation for index, generation in seen)


def test_requests_at_the_same_time_are_bounded(server, connect):
    server.delay = 0.02
    answer(connect(concurrency=3), *[CHAT] * 12)
    assert server.most_at_once == 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_fault_is_tried_again(server, connect, status):
    server.answers = [(status, {"error": {"message": "busy"}}), (200, chat("at last"))]
    assert answer(connect())[0].text == "at last"


@pytest.mark.parametrize(
    ("reply", "message", "requests"),
    [
        pytest.param((503, {"error": {"message": "no\nroom"}}), "HTTP 503: no room", 3, id="a fault that stays"),
        pytest.param((400, {"message": "prompt too long"}), "HTTP 400: prompt too long", 1, id="a bad request"),
        pytest.param((401, {"error": {"message": "who?"}}), "HTTP 401: who.; set OPENAI_API_KEY", 1, id="no key"),
        pytest.param((404, {"error": {"message": "what?"}}), "what.; the server has the models tiny", 1, id="no model"),
        pytest.param((200, b"<html>hello</html>"), "the server sent no response but <html>", 1, id="a page"),
        pytest.param((200, b"[" * 100_000), "the server sent no response but ", 1, id="hostile nesting"),
        pytest.param((200, {"choices": []}), "the server sent no response but ", 1, id="no choice"),
        pytest.param((200, {"choices": [{"message": None}]}), "the server sent no response but ", 1, id="no message"),
        pytest.param((200, chat(["part"])), "the server sent no response but ", 1, id="content that is no text"),
        pytest.param((200, chat("x", "abort")), r"the server broke off a response \(abort\)", 1, id="broken off"),
    ],
)
def test_an_error_is_never_an_answer(server, connect, reply, message, requests):
    generator = connect()
    server.answers = [reply]
    with pytest.raises(ConfigError, match=message) as error:
        answer(generator)
    assert len(server.asked) == requests
    assert "\n" not in str(error.value)


def test_the_first_error_ends_the_run(server, connect):
    server.answers = [(400, {"error": {"message": "no"}})]
    server.delay = 0.01
    with pytest.raises(ConfigError):
        answer(connect(concurrency=2), *[CHAT] * 200)
    assert len(server.asked) < 100


def test_what_is_finished_is_handed_over_before_an_error(server, connect):
    server.answers = [(200, chat("one")), (200, chat("two")), (400, {"error": {"message": "no"}})]
    seen = []
    with pytest.raises(ConfigError):
        answer(connect(concurrency=1), *[CHAT] * 3, on_finished=seen.extend)
    assert [index for index, _ in seen] == [0, 1]


def test_what_is_under_way_at_an_error_is_waited_for_and_handed_over(server, connect):
    prompts = [[{"role": "user", "content": text}] for text in ("0", "bad", "2", "3")]

    def reply(body):
        text = body["messages"][0]["content"]
        if text == "bad":
            while len(server.asked) < 4:  # all of them are under way
                time.sleep(0.01)
            return 400, {"error": {"message": "bad request"}}
        time.sleep(0.2)
        return 200, chat(text)

    server.answers = [reply]
    seen = []
    with pytest.raises(ConfigError, match="HTTP 400: bad request"):
        answer(connect(concurrency=4), *prompts, on_finished=seen.extend)
    assert {index: generation.text for index, generation in seen} == {0: "0", 2: "2", 3: "3"}


def test_an_error_of_the_caller_waits_for_no_request(server, connect):
    release = threading.Event()
    server.answers = [(200, chat("first")), lambda _: (release.wait(30), (200, chat("late")))[1]]

    def on_finished(_):
        raise OSError("no disk")

    started = time.monotonic()
    with pytest.raises(OSError, match="no disk"):
        answer(connect(concurrency=2), *[CHAT] * 8, on_finished=on_finished)
    assert time.monotonic() - started < 10
    release.set()


CLIENT = """
import sys
from veriward.eval.openai_server import OpenAIGenerator
generator = OpenAIGenerator("tiny", base_url=sys.argv[1])
try:
    generator.generate([[{"role": "user", "content": "Hello?"}]] * 3, max_new_tokens=8, seed=0)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_ends_a_process_whose_server_hangs(server):
    release = threading.Event()
    server.answers = [lambda _: (release.wait(60), (200, chat()))[1]]
    client = subprocess.Popen([sys.executable, "-c", CLIENT, server.url], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while len(server.asked) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        client.send_signal(signal.SIGINT)
        _, written = client.communicate(timeout=10)
    finally:
        release.set()
        client.kill()
    assert (client.returncode, written) == (130, "")


def test_a_slow_server_is_a_fault_in_one_line(server, connect):
    generator = connect(timeout_s=0.05, tries=1)
    server.delay = 0.5
    with pytest.raises(ConfigError, match=r"no answer within 0\.05 s \(tries: 1\); raise timeout_s \(--timeout\)"):
        answer(generator)


def test_a_server_that_is_not_there_is_found_at_once(server):
    server.server_close()
    with pytest.raises(ConfigError, match=r"no connection \(tries: 1\): .*; is the server running there"):
        OpenAIGenerator("tiny", base_url=server.url, tries=1)


def test_settings_name_the_model_that_the_server_reports(connect):
    settings = connect(extra_body={"top_k": 0}).settings
    assert settings["served"] == [{"id": "tiny", "owned_by": "us", "max_model_len": 64}]
    assert json.loads(json.dumps(settings))["extra_body"] == {"top_k": 0}


@pytest.mark.parametrize(
    ("models", "served"),
    [
        pytest.param((404, {"error": "none"}), [], id="no list"),
        pytest.param((200, {"data": [{"id": "a"}, {"id": "b"}]}), [{"id": "a"}, {"id": "b"}], id="other names"),
    ],
)
def test_a_server_may_answer_to_a_name_that_it_does_not_list(server, connect, models, served):
    server.models = models
    assert connect().settings["served"] == served


@pytest.mark.parametrize("models", [(200, b"<html>"), (200, {"data": None}), (200, {"data": [1]})])
def test_a_page_is_no_list_of_models(server, connect, models):
    server.models = models
    with pytest.raises(ConfigError, match=r"the server lists no models but .*; base_url is the address"):
        connect()


def test_the_key_comes_from_the_environment_and_stands_in_no_record(server, connect, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    generator = connect()
    answer(generator)
    assert server.asked[0][1]["Authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in repr(generator.settings) + repr(generator)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "localhost:8000"}, "wanted an address as http"),
        ({"base_url": "http://me:secret@localhost/v1"}, "a name, a password or a query stands in it"),
        ({"concurrency": 0}, "concurrency and tries must be at least 1"),
        ({"timeout_s": 0}, "timeout_s above 0"),
        ({"timeout_s": float("nan")}, "timeout_s above 0"),
        ({"timeout_s": float("inf")}, "timeout_s above 0 and at most 86,400, got 8, 3 and inf"),
    ],
)
def test_settings_that_cannot_work_are_refused(connect, options, message):
    with pytest.raises(ConfigError, match=message):
        connect(**options)


def test_the_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'veriward\[agent\]'"):
        OpenAIGenerator("tiny", base_url="http://127.0.0.1:1/v1")


def test_a_conversation_that_filled_the_context_is_cut_off_before_its_first_word(server):
    server.answers = [(400, {"error": {"message": "This model's maximum context length is 64 tokens."}})]
    generator = OpenAIGenerator("tiny", base_url=server.url)
    conversation = [*CHAT, {"role": "assistant", "content": "Hello."}, *CHAT]
    assert generator.generate([conversation], max_new_tokens=8, seed=0) == [NO_ROOM]
    with pytest.raises(ConfigError, match="maximum context length"):
        generator.generate([CHAT], max_new_tokens=8, seed=0)
