"""From a response to the answer in it, under contract v3.

One policy, in this order: what is not addressed to the reader is cut (the thinking, the channels, whatever follows the
end of the turn); a new problem or role after an answer ends the search; then the last complete box; else the last
explicit statement (`The final answer is …`, `**Answer:** …`, `#### …`, `<answer>…`, `答案：…`, `故选 C`); else the last
number of the visible text with the mathematics it stands in. A box beats every sentence, and a span always points into
the response as it was given.

Decided on purpose:
- A box is empty, and counts as not written, if it holds blanks, dots, a question mark, `\\square` or the words of the
  instruction (`\\boxed{answer}`). The outer one of nested boxes is the box; the grammar reads the inner one.
- Without braces `\\boxed` takes a run of digits, one command with its arguments, a letter or a bracket; that is an
  answer, but no valid format. So is a last box that never closes, unless the response was cut off.
- Code fenced as a programming language, or as the output of a tool, holds no answer. Other fences do.
- Where one value is asked, boxes with nothing but a comma or `and` between them are a hedge, as are alternatives
  (`\\boxed{5}. It might also be \\boxed{6}.`, `if that is wrong, take \\boxed{6}`, `Unless \\boxed{5} is right, …`).
  Roots, `x = \\boxed{1}` or `x = \\boxed{2}`, are one answer where a list is asked. A later box in a text of its own
  corrects the earlier ones.
- A last box that the text denies, `not \\boxed{6}`, `\\boxed{6} is not the answer`, `\\boxed{6}? No.`, is not right
  whatever it holds, and no earlier box stands in for it. Nor is an answer that the words in front call wrong, forbid
  or doubt: `The wrong answer is \\boxed{6}`, `Do not answer 6`. `\\boxed{6}, not 7`, `The wrong sign gives -6, the
  right one \\boxed{6}` and `\\boxed{C} is false` deny nothing: an option or a word can be asked for as the wrong one.
- What is struck out, commented, printed invisibly or only defined holds no box: HTML that is not displayed, white
  print, `\\phantom`, a TeX comment, the body of `\\newcommand`, used or not. A per cent sign opens a comment at the
  start of a line, behind a word, or with only a box behind it.
- Thinking that was opened in front of a channel mark stays open, and a channel is closed by a channel mark alone.
- A statement that gives no answer (`I do not know`, an empty tag, a question) is final: no number stands in for it.
- A last sentence that names its result, `So the area is 12 (step 7).`, or an option counts as a statement.
- A number glued or joined to mathematics brings it along: the last number of `5√3` is not 3, of `6 * 7` not 7, of
  `x > 5` not 5. One that is denied, that only bounds, or that words make a part of something is no answer.

Not covered: a conversation inside one response whose later turns think again (its last turn is read, unless a token
ends the first one), answers that only stand in a table or in judgements on every option, numerals written as words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from veriward.rewards.contracts.v3.extraction.around_number import ALTERNATIVE_BEFORE, OR_BEFORE, whole_of
from veriward.rewards.contracts.v3.extraction.boxes import boxes_of, may_go_on
from veriward.rewards.contracts.v3.extraction.closing import GIVEN_UP, closing_statement
from veriward.rewards.contracts.v3.extraction.denials import denied_behind, denied_in_words
from veriward.rewards.contracts.v3.extraction.hedges import linked
from veriward.rewards.contracts.v3.extraction.last_number import last_number
from veriward.rewards.contracts.v3.extraction.run_on import has_answer, new_problems, run_on_after_number, run_on_at
from veriward.rewards.contracts.v3.extraction.statements import last_statement, other_offered
from veriward.rewards.contracts.v3.extraction.visible import (
    Passage,
    Span,
    after_thinking,
    end_of_turn,
    lowered,
    passage,
    passage_of,
)
from veriward.rewards.contracts.v3.limits import LIMITS

THINKING: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""Opening and closing marks of thinking. Channels (`<|channel|>final<|message|>`) are read without an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What extraction made of one response."""

    candidate: str | None
    """The text to be judged, as written; joined boxes are joined by a comma and a blank. None if nothing was found."""
    how: str
    """boxed, statement, last_number or none."""
    span: tuple[int, int] | None
    """Where the candidate stands in the response; of joined boxes from the first content to the last."""
    format_valid: bool
    """A complete box that is not empty is the answer."""
    flags: tuple[str, ...] = ()
    """answer_in_reasoning, run_on, joined_boxes, hedged, unclosed_box, braceless_box, response_too_long."""


def extract(
    response: str,
    *,
    reasoning: str = "",
    truncated: bool = False,
    joins: Callable[[], bool] | bool = False,
    delimiters: Sequence[tuple[str, str]] = THINKING,
) -> Found:
    """The candidate of a response, how it was found, and what is to be said about it.

    reasoning    what a chat message set apart as reasoning: never a source of the answer, only of a flag
    truncated    the response was cut off at its token limit
    joins        the expected answer has several parts; asked only where several boxes could be one answer
    delimiters   (opening, closing) marks of thinking, in any case; an empty mark is none
    """
    if len(response) > LIMITS.max_response_characters:
        return _nothing("response_too_long")
    lower = lowered(response)
    stop, ran_on = end_of_turn(response, lower)
    visible = after_thinking(response, lower, stop, delimiters)
    truncated = truncated and not ran_on  # the turn ended before the cut
    flags = ("run_on",) if ran_on else ()
    if not visible.unclosed:
        text = passage(response, lower, visible.start, visible.stop)
        markers = new_problems(text)
        cut = run_on_at(text, markers) if markers else None
        if cut is not None:
            text, truncated, flags = text.part(text.start, cut), False, ("run_on",)
            markers = []
        found = _in_boxes(text, truncated, joins, flags) or _in_words(text, truncated, markers, flags)
        if found is not None:
            return found
    thought = passage(response, lower, *visible.thought)
    if has_answer(thought) or (reasoning and has_answer(passage_of(reasoning[: LIMITS.max_response_characters]))):
        flags = (*flags, "answer_in_reasoning")
    return _nothing(*flags)


def _in_boxes(text: Passage, truncated: bool, joins: Callable[[], bool] | bool, flags: tuple[str, ...]) -> Found | None:
    boxes = boxes_of(text)
    if boxes and not boxes[-1].closed:
        if not truncated:
            return _found(text, (boxes[-1].start, boxes[-1].stop), "boxed", (*flags, "unclosed_box"))
        boxes.pop()
    elif truncated and boxes and may_go_on(text, boxes[-1]):
        boxes.pop()  # `\boxed 5` could have become 57
    if not boxes:
        return None
    last = boxes[-1]
    run = linked(text, boxes)
    if run.hedged:
        flags = (*flags, "hedged")
    elif len(run.boxes) > 1:
        if joins() if callable(joins) else joins:
            return Found(
                candidate=", ".join(text.response[box.start : box.stop] for box in run.boxes),
                how="boxed",
                span=(run.boxes[0].start, last.stop),
                format_valid=all(box.braced for box in run.boxes),
                flags=(*flags, "joined_boxes"),
            )
        if run.bare:
            flags = (*flags, "hedged")
    if not last.braced:
        flags = (*flags, "braceless_box")
    return _found(text, (last.start, last.stop), "boxed", flags, format_valid=last.braced)


def _in_words(text: Passage, truncated: bool, markers: list[int], flags: tuple[str, ...]) -> Found | None:
    stated = last_statement(text, truncated)
    if stated.span is not None:
        if (
            other_offered(text, stated.at, stated.span)
            or denied_behind(text, stated.at, stated.span)
            or denied_in_words(text, stated.span, stated.span[0])
        ):
            flags = (*flags, "hedged")
        return _found(text, stated.span, "statement", flags)
    if truncated:
        return None
    cut = run_on_after_number(text, markers)
    if cut is not None:
        text, flags = text.part(text.start, cut), (*flags, "run_on")
    if GIVEN_UP.search(text.lower, max(text.start, text.stop - 300), text.stop):
        return None
    span = last_number(text)
    closing = closing_statement(text, span)
    if closing is not None:
        flags = (*flags, "hedged") if denied_in_words(text, closing, closing[0]) else flags
        return _found(text, closing, "statement", flags)
    if span is None or span[0] < stated.silent_until:
        return None
    other = ALTERNATIVE_BEFORE.search(text.shown, max(text.start, span[0] - 60), span[0])
    if other is not None:  # `x = 3 or x = 2` is one answer where two values are asked, and a hedge elsewhere
        return _found(text, (other.start(), span[1]), "last_number", flags)
    if OR_BEFORE.search(text.lower, max(text.start, span[0] - 30), span[0]):
        flags = (*flags, "hedged")
    whole = whole_of(text, span)
    if whole is None:
        return None
    if "hedged" not in flags and denied_in_words(text, whole, whole[0]):
        flags = (*flags, "hedged")
    return _found(text, whole, "last_number", flags)


def _found(text: Passage, span: Span, how: str, flags: tuple[str, ...], *, format_valid: bool = False) -> Found:
    candidate = text.response[span[0] : span[1]]
    return Found(candidate=candidate, how=how, span=span, format_valid=format_valid, flags=flags)


def _nothing(*flags: str) -> Found:
    return Found(candidate=None, how="none", span=None, format_valid=False, flags=flags)
