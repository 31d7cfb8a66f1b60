"""From a question to the prompt that a model sees. Training and evaluation render with the same class.

Nothing in this module takes a reference, so that no prompt can hold one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from veriward.tool_agent.errors import ConfigError
from veriward.tool_agent.generator import Prompt

DEFAULT_INSTRUCTION = r"Please reason step by step, and put your final answer within \boxed{}."

PLACEHOLDER = re.compile(r"\{(question|instruction)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """How a question is put.

    A template file brings its own wording. `{question}` in it is replaced, `{instruction}` too if it is there;
    every other brace stays as it is, so that LaTeX needs no escaping.
    """

    template: str = "chat"
    """'chat': one user message for the model's chat template. 'plain': text. Else the path of a template file."""
    instruction: str = DEFAULT_INSTRUCTION
    """Follows the question; may be empty. A file without `{instruction}` has none."""
    enable_thinking: bool | None = None
    """Handed to the chat template; None leaves the model's own default."""
    file_text: str | None = field(init=False, default=None)
    """The content of the template file; None for 'chat' and 'plain'."""

    def __post_init__(self) -> None:
        if self.enable_thinking is not None and self.template != "chat":
            raise ConfigError(f"enable_thinking is for template 'chat' and has no effect under {self.template!r}")
        if self.template in ("chat", "plain"):
            return
        text = read_template(self.template)
        if "{instruction}" not in text:
            if self.instruction not in ("", DEFAULT_INSTRUCTION):
                raise ConfigError(f"{self.template}: an instruction was given, but there is no {{instruction}} in it")
            object.__setattr__(self, "instruction", "")
        object.__setattr__(self, "file_text", text)

    def render(self, question: str) -> Prompt:
        if self.file_text is not None:
            values = {"question": question, "instruction": self.instruction}
            # One pass, so that a question with '{instruction}' in it stays as it is.
            return PLACEHOLDER.sub(lambda match: values[match.group(1)], self.file_text)
        if self.template == "chat":
            content = f"{question}\n\n{self.instruction}" if self.instruction else question
            return [{"role": "user", "content": content}]
        return f"{question}\n\n{self.instruction}\n\n" if self.instruction else question

    @property
    def chat_template_kwargs(self) -> dict[str, object]:
        """What the chat template gets beside the messages; generators and trainers take it under this name."""
        return {} if self.enable_thinking is None else {"enable_thinking": self.enable_thinking}

    @property
    def settings(self) -> Mapping[str, object]:
        """JSON-safe, for the record of a run: with the wording of the file, not only its path."""
        return {
            "template": self.template,
            "file_text": self.file_text,
            "instruction": self.instruction,
            "enable_thinking": self.enable_thinking,
        }


def read_template(template: str) -> str:
    try:
        text = Path(template).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"template {template!r}: no such file; wanted 'chat', 'plain' or a template file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"template {template!r}: cannot be read as UTF-8 text: {error}") from error
    if "{question}" not in text:
        raise ConfigError(f"template {template!r}: no {{question}} in it; put it where the question belongs")
    return text
