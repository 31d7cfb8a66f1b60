"""References read once, before training: what cannot be read is said loudly, with the place.

reference = compile_reference(r"\\frac{1}{3}")          # or a whole solution that ends in \\boxed{…} or #### 42
verify(response, reference, contract="v3")
"""

from __future__ import annotations

from typing import Self

from veriward.rewards.contracts import get_contract
from veriward.rewards.contracts.v3.contract import is_of_declared_type, key_of, read
from veriward.rewards.contracts.v3.reading.grammar import Refused
from veriward.rewards.contracts.v3.rules.declared import derived_type
from veriward.rewards.contracts.v3.tree import spell
from veriward.rewards.task import ANSWER_TYPES, Options, Task, make_task
from veriward.rewards.verdict import Reason

CONTRACT = "v3"


class UnreadableReferenceError(ValueError):
    """A reference that the contract cannot read, or that has no value."""

    def __init__(self, text: str, reason: Reason, position: int, detail: str) -> None:
        super().__init__(f"the reference {_shortened(text)} cannot be read ({reason}), character {position}: {detail}")
        self.text, self.reason, self.position, self.detail = text, reason, position, detail


class Reference(str):
    """A reference that was read: its text, with the task it belongs to. Accepted wherever a reference text is."""

    __slots__ = ("answer_type", "normal", "task")
    task: Task
    answer_type: str
    """The declared type, or the one that was read off the text."""
    normal: str
    """How it was read, in one spelling."""

    def __new__(cls, task: Task, answer_type: str, normal: str) -> Self:
        made = super().__new__(cls, task.reference)
        made.task, made.answer_type, made.normal = task, answer_type, normal
        return made

    def __reduce__(self) -> tuple[type[Reference], tuple[Task, str, str]]:
        return type(self), (self.task, self.answer_type, self.normal)


def compile_reference(
    text: str, *, answer_type: str | None = None, options: dict[str, object] | Options | None = None
) -> Reference:
    """Read a reference once, under contract v3.

    text          the key, bare; or a whole solution, of which the text behind the last `####`, or else the last box, is
                  the key
    answer_type   what the task asks for; None reads it off the text
    options       conventions of the task (`task.Options`)
    returns       a text that carries its task; give it to `verify` and the reward functions in place of the string
    raises        UnreadableReferenceError, a ValueError, with reason, place and a few words; ValueError for a type or
                  option that is none
    """
    task = make_task(text, answer_type, options)
    reason = get_contract(CONTRACT).check(task)
    if task.answer_type not in ANSWER_TYPES:
        if reason is not None:
            raise UnreadableReferenceError(text, reason, 0, f"no {task.answer_type}")
        return Reference(task, task.answer_type, key_of(text))
    found = read(text, task)
    if isinstance(found, Refused):
        raise UnreadableReferenceError(text, found.reason.of_reference, found.position, found.detail)
    if reason is not None:
        raise UnreadableReferenceError(text, reason, 0, "it has no value")
    if not is_of_declared_type(task):
        reason = Reason.REFERENCE_NOT_OF_DECLARED_TYPE
        raise UnreadableReferenceError(text, reason, 0, f"read as {derived_type(found)}, declared {task.answer_type}")
    kind = derived_type(found) if task.answer_type == "auto" else task.answer_type
    return Reference(task, kind, spell(found))


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:60]}…{text[-20:]}")
