"""The protocol that every text generator follows: prompts in, records of what was written out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Message: TypeAlias = dict[str, Any]
"""One turn of a conversation, as chat templates take it: 'role', 'content', and 'tool_calls' where a model called."""

Prompt: TypeAlias = str | list[Message]
"""Plain text, continued as it stands, or messages, which the model's chat template turns into text."""

SURROGATE = re.compile("[\ud800-\udfff]")

FinishReason: TypeAlias = Literal["stop", "length"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One response as the model wrote it."""

    text: str
    """Without special tokens, and without the stop string that ended it."""
    token_ids: tuple[int, ...]
    """Everything the model wrote, an end token or stop string included."""
    finish_reason: FinishReason
    """'stop': the model ended it, or a stop string did. 'length': the limit cut it off."""
    seed: int | None
    """What the random numbers of this response were drawn from; None where nothing was drawn."""
    tool_calls: str | None = None
    """JSON of the chat API's `tool_calls`, as the server sent it; None where there are none, and for local models,
    whose calls stand in the text."""

    reported_tokens: int | None = None
    """How many the model wrote, where a server says so and sends no ids."""

    @property
    def tokens(self) -> int:
        """How many the model wrote; 0 where nobody says."""
        return len(self.token_ids) or self.reported_tokens or 0

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"


NO_ROOM = Generation(text="", token_ids=(), finish_reason="length", seed=None)
"""In place of a response where what the model wrote before has filled its context: cut off before its first word."""


def goes_on(prompt: Prompt) -> bool:
    """The model has spoken in it before, so that its length is the model's doing too."""
    return not isinstance(prompt, str) and any(message["role"] == "assistant" for message in prompt)


Finished: TypeAlias = Sequence[tuple[int, Generation]]
"""Responses that are complete, each with the index of its prompt."""


class Generator(Protocol):
    """Anything that answers prompts. It is never handed a reference, so it cannot leak one."""

    @property
    def name(self) -> str:
        """For people: the model's path or hub name."""

    @property
    def settings(self) -> Mapping[str, object]:
        """JSON-safe, everything that decides the output beside the arguments below: weights, tokenizer, precision…"""

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
        """One response per prompt, in the order of the prompts.

        A prompt that is to be answered several times stands there several times, and `sample_numbers`, one per prompt,
        tells the repetitions apart: what is drawn for a prompt depends on `seed`, its text and that number alone, so
        that any part of a run can be asked again by itself. None: every number is 0.

        A conversation that goes on and has no room left in the context is answered with NO_ROOM; a first prompt that
        has none is a person's mistake, and raises ConfigError.

        temperature 0 is greedy. `on_finished` is called as soon as some responses are complete, in any order,
        each once, so that a caller can store them; an exception raised there ends the generation.
        """


def storable(text: str) -> str:
    """Half surrogate pairs, which no text file can hold, are U+FFFD: the stored text is the text that is judged."""
    return SURROGATE.sub("\ufffd", text)
