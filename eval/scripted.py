"""A generator that replays given texts: for tests and drills, without a model.

Covered: any number of problems and turns; a start in the middle, in another process; responses that the limit cut
off; calls in the chat API's form.
Not covered: the script is replayed as it stands, so `max_new_tokens` and stop strings cut nothing, every sample of a
prompt is the same text, and a conversation is never answered by what stands in it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from veriward.eval.generators import check_request, derive_seed, numbers_of
from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.generator import Finished, FinishReason, Generation, Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One response of a script; a plain text in its place is one that ended by itself."""

    text: str
    finish_reason: FinishReason = "stop"
    tool_calls: str | None = None
    """JSON of the chat API's `tool_calls`."""


Lines: TypeAlias = Sequence[str | Line]


class ScriptedGenerator:
    """Answers a conversation with the line that is due at its place in the script.

    The place is read off the messages alone: the problem is the one whose question stands in the first user message
    (the longest, where one question holds another), the line is counted by the assistant's turns so far. So it does
    not matter what was asked before, in which order, or in which process.
    """

    def __init__(
        self,
        script: Mapping[str, Lines],
        questions: Mapping[str, str],
        *,
        name: str = "script",
        log: Path | None = None,
    ) -> None:
        """
        script      the lines of each problem, by its id
        questions   the question of each problem, by its id; one without lines is refused when it is asked
        log         a file that gains one line of JSON a call, before the call is answered: problem and turn. It
                    outlives a killed process, where `calls` does not
        """
        self.name, self.log = name, log
        self.calls: list[Prompt] = []
        """Every prompt that was asked, in order, as it stood when it was asked."""
        self._script = {problem: [as_line(line) for line in lines] for problem, lines in script.items()}
        self._problems = {question: problem for problem, question in questions.items()}
        """By their questions."""
        if len(self._problems) != len(questions):
            raise ConfigError(f"{name}: two problems have the same question; lines are found by it: take one out")
        if foreign := sorted(script.keys() - questions.keys()):
            raise ConfigError(f"{name}: lines for {foreign[0]!r}, which is no problem of this set; take them out")

    @property
    def settings(self) -> Mapping[str, object]:
        lines = {problem: [asdict(line) for line in lines] for problem, lines in self._script.items()}
        content = json.dumps([lines, self._problems], sort_keys=True)
        return {"engine": "scripted", "model": self.name, "script_sha256": hashlib.sha256(content.encode()).hexdigest()}

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
        """See `Generator`. The token ids are the bytes of the text in UTF-8."""
        check_request(temperature, max_new_tokens)
        results = []
        for index, (prompt, sample) in enumerate(zip(prompts, numbers_of(prompts, sample_numbers), strict=True)):
            problem, turn = self.place(prompt)
            self._record(prompt, problem, turn)
            own = derive_seed(seed, f"{problem}\n{turn}", sample) if temperature > 0 else None
            results.append(as_generation(self._line(problem, turn), own))
            if on_finished is not None:
                on_finished([(index, results[index])])
        return results

    def place(self, prompt: Prompt) -> tuple[str, int]:
        """The problem's id, and how often the assistant has spoken."""
        if isinstance(prompt, str):
            asked, turn = prompt, 0
        else:
            asked = next((str(message["content"]) for message in prompt if message["role"] == "user"), "")
            turn = sum(message["role"] == "assistant" for message in prompt)
        questions = [question for question in self._problems if question in asked]
        if not questions:
            raise ConfigError(f"{self.name}: no question of its problems stands in the prompt {asked[:60]!r}; add it")
        return self._problems[max(questions, key=len)], turn

    def _line(self, problem: str, turn: int) -> Line:
        lines = self._script.get(problem, [])
        if turn >= len(lines):
            raise ConfigError(
                f"{self.name}: {len(lines)} lines for problem {problem}, and line {turn + 1} was asked for; add it"
            )
        return lines[turn]

    def _record(self, prompt: Prompt, problem: str, turn: int) -> None:
        self.calls.append(copy.deepcopy(prompt))
        if self.log is not None:
            entry = json.dumps({"problem": problem, "turn": turn}) + "\n"
            file = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(file, entry.encode())
            finally:
                os.close(file)


def as_line(line: str | Line) -> Line:
    return Line(text=line) if isinstance(line, str) else line


def as_generation(line: Line, seed: int | None) -> Generation:
    return Generation(
        text=line.text,
        token_ids=tuple(line.text.encode("utf-8", "surrogatepass")),
        finish_reason=line.finish_reason,
        seed=seed,
        tool_calls=line.tool_calls,
    )
