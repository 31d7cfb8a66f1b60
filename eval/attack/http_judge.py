"""A judge behind HTTP, called like any reward function: one completion a request, JSON both ways.

    format      sent to the address                                    read from the answer
    veriward    {"prompts": […], "completions": […], "references": […]}   {"rewards": […]}
    openrlhf    {"query": […], "prompts": […], "labels": […]}             {"rewards": […]}
    openai      a chat request with `JUDGE_PROMPT`, temperature 0         the one word YES (1.0) or NO (0.0)

No timeout of its own: the process that calls is killed at the deadline of a case.
"""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

FORMATS = ("veriward", "openrlhf", "openai")

JUDGE_PROMPT = """\
Decide whether the final answer of a response to a mathematics problem equals the reference answer.

Problem: {prompt}
Reference answer: {reference}
Response: {completion}

Reply with one word: YES if the final answer of the response equals the reference answer, NO otherwise."""

JUDGE_TOKENS = 1024
"""Room for a judge that thinks before its word."""


class FirstRequestError(Exception):
    """The server is not there, or lets nobody in: nothing can be said about its judgements."""


class JudgeAnswerError(ValueError):
    """The server answered, and no reward can be read from it."""


class HttpJudge:
    """A reward function in TRL's call that asks a server.

    raises   JudgeAnswerError for a status that is no success and for an answer without a reward
    """

    def __init__(self, url: str, server_format: str, model: str | None, token: str | None) -> None:
        self.url = chat_address(url) if server_format == "openai" else url
        self.server_format = server_format
        self.model = model
        self.headers = {"Content-Type": "application/json", "User-Agent": "veriward-attack"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], reference: Sequence[str], **_columns: Any
    ) -> list[float | None]:
        prompt, completion = prompts[0][0]["content"], completions[0][0]["content"]
        answer = self._post(self._body(prompt, completion, reference[0]))
        return [chat_reward(answer)] if self.server_format == "openai" else listed_rewards(answer)

    def knock(self, case: Mapping[str, Any]) -> None:
        """Send a case before the others. An answer without sense is left to them, no answer is not."""
        try:
            self._post(self._body(case["prompt"], case["completion"], case["reference"]))
        except JudgeAnswerError as error:
            status = error.__cause__.code if isinstance(error.__cause__, urllib.error.HTTPError) else None
            if status is not None and 400 <= status < 500 and status not in (408, 422, 429):
                raise FirstRequestError(
                    f"{self.url}: {error}; wanted an address that takes the first request"
                ) from None
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise FirstRequestError(
                f"{self.url}: no answer to the first request: {reason}; is the server up?"
            ) from None

    def _body(self, prompt: str, completion: str, reference: str) -> dict[str, Any]:
        match self.server_format:
            case "openrlhf":
                return {"query": [prompt + completion], "prompts": [prompt], "labels": [reference]}
            case "openai":
                content = JUDGE_PROMPT.format(prompt=prompt, completion=completion, reference=reference)
                message = {"role": "user", "content": content}
                return {"model": self.model, "messages": [message], "temperature": 0, "max_tokens": JUDGE_TOKENS}
            case _:
                return {"prompts": [prompt], "completions": [completion], "references": [reference]}

    def _post(self, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(self.url, json.dumps(body).encode(), self.headers)  # noqa: S310 - checked: http(s)
        try:
            with urllib.request.urlopen(request) as response:  # noqa: S310
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            raise JudgeAnswerError(f"HTTP status {error.code}") from error
        except ValueError as error:
            raise JudgeAnswerError(f"the answer is no JSON: {error}") from error


def chat_address(url: str) -> str:
    """'http://host/v1' is how such servers are named; the request goes below it."""
    url = url.rstrip("/")
    return url if url.endswith("/chat/completions") else f"{url}/chat/completions"


def listed_rewards(answer: Any) -> list[float | None]:
    rewards = answer.get("rewards") if isinstance(answer, dict) else None
    if not isinstance(rewards, list):
        raise JudgeAnswerError(f"the answer has no list 'rewards': {str(answer)[:80]}")
    return rewards


def chat_reward(answer: Any) -> float | None:
    """1.0 for YES, 0.0 for NO, None where the judge says both or neither."""
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise JudgeAnswerError(f"the answer has no choices[0].message.content: {str(answer)[:80]}") from None
    words = set(re.findall(r"\b(?:YES|NO)\b", str(text).rpartition("</think>")[2].upper()))
    return float(words == {"YES"}) if len(words) == 1 else None
