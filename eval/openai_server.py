"""The generator behind HTTP: any server that speaks the OpenAI API, such as vLLM, SGLang, llama.cpp and ollama.

Covered: messages through the chat API, plain text through the completions API; several requests at a time, each
sample a request with a seed of its own; tools, template settings and the server's own fields; faults of the
connection, full servers (429) and server errors (5xx) are tried again with growing pauses by the `openai` package.
Not covered: which weights stand behind the model's name, beyond what the server reports; the server's own sampling
defaults (llama.cpp cuts to the 40 likeliest tokens, vLLM follows the model's folder: send `extra_body`, or start the
server without them); thinking that a server takes out of the text; models that want `max_completion_tokens`.
An error never passes for an answer: after the last try the run stops with ConfigError, and what the server was
writing at that time is still handed over.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from veriward.eval.generators import check_request, derive_seed, numbers_of
from veriward.tool_agent.errors import ConfigError, need
from veriward.tool_agent.generator import NO_ROOM, Finished, FinishReason, Generation, Prompt, goes_on

if TYPE_CHECKING:
    import openai

SEEDS = 1 << 31
"""How many there are: llama.cpp keeps 32 bits of a seed, and others read it as signed."""

REPORTED = ("id", "owned_by", "root", "parent", "max_model_len", "meta")
"""What of a server's list of models says which model it is. The time of creation is often that of the question."""

CUT_OFF = ("length", "content_filter")
"""A response that a filter cut is not whole, just like one that the limit cut."""

LONGEST_TIMEOUT_S = 86_400
"""A day. Sockets take no endless one."""

ADDRESS_ADVICE = "base_url is the address that ends in /v1"


OVER_CONTEXT = re.compile("context[ _](length|size|window)|maximum context", re.IGNORECASE)
"""In what servers say of a prompt that is too long."""
FULL = object()


class OpenAIGenerator:
    """Answers prompts through a server.

    Token ids stand in a response only where the server sends them (vLLM with extra_body={'return_token_ids': True});
    else they are empty, and a run counts the tokens that the server reports.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        concurrency: int = 8,
        tries: int = 6,
        timeout_s: float = 600.0,
        extra_body: Mapping[str, object] | None = None,
    ) -> None:
        """Ask the server for its models, so that one that is not there is found before the run.

        base_url      as 'http://localhost:8000/v1'
        api_key       from OPENAI_API_KEY if None; a local server mostly needs none
        concurrency   requests at the same time
        tries         of one request, the first included
        timeout_s     of one try
        extra_body    further fields of every request, as {'top_k': 0}; JSON-safe, and part of the settings
        raises        ConfigError if the server cannot be reached or refuses the key
        """
        need("openai", extra="agent", purpose="asking a server")
        import openai

        check_address(base_url)
        if concurrency < 1 or tries < 1 or not 0 < timeout_s <= LONGEST_TIMEOUT_S:
            raise ConfigError(
                f"concurrency and tries must be at least 1 and timeout_s above 0 and at most {LONGEST_TIMEOUT_S:,}, "
                f"got {concurrency}, {tries} and {timeout_s:g}"
            )
        self.name, self.base_url, self.extra_body = model, base_url, dict(extra_body or {})
        self.concurrency, self.tries, self.timeout_s = concurrency, tries, timeout_s
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=api_key or os.environ.get("OPENAI_API_KEY") or "none",
            max_retries=tries - 1,
            timeout=timeout_s,
        )
        self._served = self._ask_models()

    @property
    def settings(self) -> Mapping[str, object]:
        named = [model for model in self._served if model["id"] == self.name]
        return {
            "engine": "openai",
            "model": self.name,
            "base_url": self.base_url,
            "served": named or self._served,
            "extra_body": self.extra_body,
        }

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        sample_numbers: Sequence[int] | None = None,
        temperature: float = 0.0,
        max_new_tokens: int,
        seed: int,
        stop: Sequence[str] = (),
        chat_template_kwargs: Mapping[str, object] | None = None,
        on_finished: Callable[[Finished], None] | None = None,
    ) -> list[Generation]:
        """See `Generator`. `tools` among the template's settings become the request's `tools`."""
        check_request(temperature, max_new_tokens)
        common = {"model": self.name, "max_tokens": max_new_tokens, "temperature": temperature}
        common |= {"top_p": 1.0} if temperature > 0 else {}
        common |= {"stop": list(stop)} if stop else {}
        asks = []
        for prompt, sample in zip(prompts, numbers_of(prompts, sample_numbers), strict=True):
            own = request_seed(seed, prompt, sample) if temperature > 0 else None
            request = common if own is None else {**common, "seed": own}
            asks.append(partial(self._ask, prompt, request, chat_template_kwargs or {}, own, tuple(stop)))
        results: dict[int, Generation] = {}
        first_error: ConfigError | None = None
        with closing(in_threads(asks, self.concurrency)) as ended:
            for index, answer in ended:
                try:
                    results[index] = answer.result()
                except ConfigError as error:
                    first_error = first_error or error
                    continue
                if on_finished is not None:
                    on_finished([(index, results[index])])
        if first_error is not None:
            raise first_error
        return [results[index] for index in range(len(prompts))]

    def _ask(
        self,
        prompt: Prompt,
        request: Mapping[str, Any],
        template: Mapping[str, object],
        seed: int | None,
        stop: Sequence[str],
    ) -> Generation:
        """Bodies are read as JSON: the package's records would pass anything that a server sends."""
        extra = dict(self.extra_body)
        if isinstance(prompt, str):
            body = self._fetch(
                lambda: self._client.completions.with_raw_response.create(prompt=prompt, extra_body=extra, **request)
            )
            return self._read(body, seed, stop)
        rest = {name: value for name, value in template.items() if name != "tools"}
        if rest:
            own: Any = extra.get("chat_template_kwargs") or {}
            extra["chat_template_kwargs"] = {**own, **rest}
        if template.get("tools"):
            request = {**request, "tools": template["tools"]}
        messages: Any = prompt
        chat = self._client.chat.completions.with_raw_response
        body = self._fetch(
            lambda: chat.create(messages=messages, extra_body=extra, **request), may_be_full=goes_on(prompt)
        )
        return NO_ROOM if body is FULL else self._read(body, seed, stop)

    def _read(self, body: Any, seed: int | None, stop: Sequence[str]) -> Generation:
        match body:
            case {"choices": [{"finish_reason": "abort" | "error" as reason}, *_]}:
                raise ConfigError(f"{self.base_url}: the server broke off a response ({reason}); see its log")
            case {"choices": [{"message": {} as written} as choice, *_]}:
                text = written.get("content") or written.get("refusal") or ""
                calls = written.get("tool_calls") or None
            case {"choices": [{"text": text} as choice, *_]}:
                calls = None
            case _:
                text = None
        if not isinstance(text, str):
            raise ConfigError(f"{self.base_url}: the server sent no response but {shorten(body)}; {ADDRESS_ADVICE}")
        ends = [text.index(mark) for mark in stop if mark in text]  # left in the text by `transformers serve`
        cut_off = choice.get("finish_reason") in CUT_OFF and not ends
        text = text[: min(ends, default=len(text))]
        finish_reason: FinishReason = "length" if cut_off else "stop"
        return Generation(
            text=text,
            token_ids=read_token_ids(choice.get("token_ids")),
            finish_reason=finish_reason,
            seed=seed,
            tool_calls=None if calls is None else json.dumps(calls),
            reported_tokens=reported_tokens(body),
        )

    def _ask_models(self) -> list[dict[str, object]]:
        """What the server says that it serves; empty where it has no such list."""
        match self._fetch(self._client.models.with_raw_response.list, missing={"data": []}):
            case {"data": [*listed]} if all(isinstance(report, dict) and "id" in report for report in listed):
                return [{key: report[key] for key in REPORTED if report.get(key) is not None} for report in listed]
            case body:
                raise ConfigError(f"{self.base_url}: the server lists no models but {shorten(body)}; {ADDRESS_ADVICE}")

    def _fetch(self, send: Callable[[], Any], *, missing: object = None, may_be_full: bool = False) -> object:
        """The body of an answer, or `missing` for a 404 if it is given; every fault is one line for a person.

        may_be_full   FULL in place of the refusal of a conversation that outgrew the model's context
        """
        import openai

        try:
            body: str = send().text
        except openai.APITimeoutError as error:
            raise ConfigError(
                f"{self.base_url}: no answer within {self.timeout_s:g} s (tries: {self.tries}); raise timeout_s "
                "(--timeout), or lower concurrency (--batch-size)"
            ) from error
        except openai.APIConnectionError as error:
            raise ConfigError(
                f"{self.base_url}: no connection (tries: {self.tries}): {shorten(error.__cause__ or error)}; "
                "is the server running there?"
            ) from error
        except openai.APIStatusError as error:
            if missing is not None and error.status_code == 404:
                return missing
            if may_be_full and error.status_code in (400, 413, 422) and OVER_CONTEXT.search(server_message(error)):
                return FULL
            raise ConfigError(
                f"{self.base_url}: HTTP {error.status_code}: {server_message(error)}{self._advice(error.status_code)}"
            ) from error
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            return body

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            return "; set OPENAI_API_KEY to a key of this server"
        if status == 404:
            names = ", ".join(str(model["id"]) for model in self._served)
            return f"; the server has the models {names}" if names else f"; {ADDRESS_ADVICE}"
        return ""


def check_address(base_url: str) -> None:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"base_url {base_url!r}: wanted an address as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query:
        raise ConfigError("base_url: a name, a password or a query stands in it; give a key by OPENAI_API_KEY instead")


def server_message(error: openai.APIStatusError) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    return shorten(body.get("message") or body.get("detail") or error.message)


def shorten(value: object) -> str:
    """One line of at most 300 characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= 300 else text[:299] + "…"


def request_seed(seed: int, prompt: Prompt, sample: int) -> int:
    text = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True)
    return derive_seed(seed, text, sample) % SEEDS


def reported_tokens(body: Any) -> int | None:
    match body:
        case {"usage": {"completion_tokens": int(count)}} if not isinstance(count, bool) and count >= 0:
            return int(count)
    return None


def read_token_ids(sent: object) -> tuple[int, ...]:
    """Empty where the server sent anything but a list of whole numbers."""
    if isinstance(sent, list) and all(type(token) is int for token in sent):
        return tuple(sent)
    return ()


def in_threads(
    asks: Sequence[Callable[[], Generation]], count: int
) -> Generator[tuple[int, Future[Generation]], None, None]:
    """The number of each request and its answer or error, as they end, `count` at the same time.

    After an error no further request begins; those under way are waited for, so that nothing written is lost.
    Closed early, as by Ctrl-C, it waits for none: daemon threads, unlike those of ThreadPoolExecutor, are not joined
    when the process ends, and a server that hangs cannot hold it.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    ended: SimpleQueue[tuple[int, Future[Generation]] | None] = SimpleQueue()
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            try:
                number = waiting.get_nowait()
            except Empty:
                break
            answer: Future[Generation] = Future()
            try:
                answer.set_result(asks[number]())
            except BaseException as error:  # noqa: BLE001  raised where the answer is read
                over.set()
                answer.set_exception(error)
            ended.put((number, answer))
        ended.put(None)

    for number in range(len(asks)):
        waiting.put(number)
    working = min(count, len(asks))
    try:
        for _ in range(working):
            threading.Thread(target=work, name="ask", daemon=True).start()
        while working:
            end = ended.get()
            if end is None:
                working -= 1
            else:
                yield end
    finally:
        over.set()
