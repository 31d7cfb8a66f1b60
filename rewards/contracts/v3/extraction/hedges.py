"""Whether the boxes at the end of a passage are one answer, several, or a choice left open."""

from __future__ import annotations

import re
from typing import NamedTuple

from veriward.rewards.contracts.v3.extraction.boxes import Box
from veriward.rewards.contracts.v3.extraction.denials import denied_behind, denied_in_front
from veriward.rewards.contracts.v3.extraction.visible import Passage

_LINK_LENGTH = 80
_BEHIND_LENGTH = 200
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]|\n[ \t]*\n")
_OR = (
    r"(?:\b(?:n?or|oder|ou|alternatively|otherwise|versus|vs)\b(?!\s+(?:rather|better|equivalently|simply))"
    r"|\\l?or(?![a-z])|\\vee(?![a-z])|或|还是|還是|要么|要麼)"
)
_PERHAPS = r"(?:\b(?:else|maybe|perhaps|possibly|if\s+not)\b|(?:也|又|还|還)(?:可能|许|許)|可能)"
_HEDGE = re.compile(_OR)
_HEDGE_AFTER_BOX = re.compile(
    rf"[\s$*,，.。;；:?？!—–)\]\\}}-]{{0,12}}{_OR}|[ \t$*,，;；—–)\]\\}}-]{{0,12}}{_PERHAPS}|[\s$*]*[/|][\s$*\\]*\Z"
)
_HEDGE_BEFORE_BOX = re.compile(rf"(?:{_OR}|{_PERHAPS})[\s$*:：,，是为(\[\\]{{0,12}}\Z")
_BOTH_AFTER = re.compile(r"[\s$*})]{0,6},?\s{0,2}or\s+(?:both|either|neither|all|none)\b")
_HEDGE_BEFORE_RUN = re.compile(
    r"(?:\b(?:not|neither|either(?!\s+way)|nor|or|one\s+of|any\s+of|some\s+of|perhaps|maybe|possibly|(?:could|might|may)\s+be)\b"
    r"|不是|不为|或|要么|之一(?:是|为)?)(?:\s+(?:the|a|an|of|all|both|be|these|following|values?|numbers?|answers?|options?))*"
    r"[\s$*:：,(\[\\{]{0,8}(?:[a-z]\s?=\s?)?[\s$\\]{0,3}\Z"
)
_JOINT = re.compile(r"[,，、]|\band\b|[和与與及]")
_PLAIN_LINK = re.compile(
    r"(?:[\s$,，、*{}]|\\[()\[\],;: ]|\\q?quad(?![a-z])|\\text(?:rm)?\{\s{0,3}(?:and|,)?\s{0,3}\}|[和与與及]|and\b)*+"
)
"""Nothing but a comma or `and`: one value is asked, and these are several."""
_SIDE_BY_SIDE = re.compile(r"(?:[\s$}*;；|/&+]|\\[()\[\],; ]|\\q?quad(?![a-z])|\b(?:also|plus|xor)\b)*+")
"""Boxes with no sentence between them: none of them corrects the other."""
_CONDITION_AFTER = re.compile(r"[\s$})]{0,6},?\s{0,2}(?:if|when)\b")
_NAME_BEFORE = re.compile(r"([a-z](?:_\{?[a-z0-9]{1,3}\}?)?)\s?=\s?[\s$]*\\?\Z")
_LINK = re.compile(
    r"(?:[\s$,，、*]|\\[()\[\],;: ]|\\q?quad(?![a-z])|\\text(?:rm)?\{\s{0,3}(?:and|or|,)?\s{0,3}\}|[和与與及以或]"
    r"|(?:and|or|the|other|second|third|fourth|last|one|root|solution|value|is|are)\b"
    r"|[a-z](?:_\{?[a-z0-9]{1,3}\}?)?\s?(?:=|≈|为|是|\bis\b)|[{}])*+"
)
"""All that may stand between two boxes that are parts of one answer."""


_FILLING = (
    r"(?:\s+(?:that|it|it['’]s|is|be|are|the|a|final|correct|right|answer|value|result|equal|to|just|simply|then|say|take))*"
    r"[\s$*:：,，就是为為取选選(\[\\{]{0,12}(?:[a-z]\s?[=≈]\s?)?[\s$\\]{0,3}\Z"
)
_FIRST = r"(?:that|this|it|the\s+(?:first|former|above)|前者|它|这|那|这个|这个答案)"
_TURNED_DOWN = (
    r"(?:wrong|incorrect|false|fails?|rejected|mistaken"
    r"|(?:not|n['’]t)\s+(?:right|correct|valid|accepted|it|the|so|what|work|ok))\b"
)
_IF_WRONG = (
    r"\b(?:if|in\s+case|should|unless)\s+(?:you|the\s+(?:grader|checker|marker|key|judge|examiner|teacher|system))\s+"
    r"(?:disagree|complain|object|dislike|reject|refuse|frown|say\s+no|says\s+no)s?\b"
    rf"|\b(?:if|in\s+case|should|unless)\s+(?:{_FIRST}\b[^.!?\n]{{0,30}}?{_TURNED_DOWN}|i\b[^.!?\n]{{0,12}}?\b(?:wrong|mistaken))"
    r"|(?:如果|若|要是|倘若|万一|假如)[^。！？\n]{0,8}?(?:不对|不對|错|錯|不是(?=[，,的])|不行|不正确|不成立|不成)"
)
_AS_GOOD = r"(?:possib\w+|plausible|likely|good|reasonable|correct|right|valid|fine|conceivable|probable|thinkable)\b"
_GUESS = r"(?:guess|possibility|candidate|alternative|conjecture|bet)"
_OPEN_FRONT = re.compile(
    r"(?:\b(?:could|might|may|can\s+also)\s+(?:(?:also|well|just|even|equally|instead|still|perhaps|possibly)\s+)*be"
    r"|\b(?:could|might|may|can|would)\s+(?:also|equally\s+well|just\s+as\s+well)\s+(?:answer|say|choose|pick|guess)"
    r"|\bso\s+(?:is|are|could|might|may|would)(?:\s+be)?|\b(?:is|be)\s+also|\bas\s+well\s+as|\balso\s+(?:think|guess|suspect|consider|choose|pick|answer|say)"
    r"|\b(?:failing\s+that|just\s+in\s+case|to\s+be\s+safe|if\s+not\s?[,:]|unless|plan\s+b|backup|fallback)(?:\s+(?:answer|guess|is))*"
    rf"|(?:{_IF_WRONG})[^.!?。！？；;\n]{{0,40}}?|也许|或许|否则|要不(?:然|就)?(?!是)|(?:实在|再)不行|不然(?:的话)?|(?:也|又|还|還)(?:可以|能|会|會)){_FILLING}"
)
"""In front of a last box that leaves it open."""
_OTHER_FRONT = re.compile(
    rf"(?:\b(?:(?:my|a|the)\s+(?:second|third)(?:\s+best)?|another|an?\s+alternative|the\s+other)(?:\s+(?:possible|good|plausible))?\s+"
    rf"(?:{_GUESS}|option|choice|reading|interpretation)(?:\s+(?:is|would\s+be|could\s+be|gives))?"
    r"|\b(?:another|my\s+other)\s+(?:possible\s+)?(?:answer|value|result)(?:\s+(?:is|would\s+be))?"
    rf"|\b{_GUESS}\s*(?:#|no\.?\s)?(?:[2-9]|two|three|b)\b[:.)\s-]{{0,3}}"
    r"|(?:第[二三]个?|另一?个?|另外一个|其他|备选)(?:的)?(?:猜测|猜測|可能性?|候选|选择|备选答案|可能的?答案|答案))"
    rf"{_FILLING}"
)
"""In front of a last box that is offered beside the earlier one, unless the text turned that down."""
_OPEN_BEHIND = re.compile(
    r"[\s$*_)}\]\\,，]{0,12}(?:(?:could|might|may|can)\s+(?:also|well|equally|just\s+as\s+well)\b"
    r"|(?:could|might|may)\s+be\s+(?:right|correct|it|true|the|another|too)\b"
    rf"|(?:is|are|seems?|looks?)\s+(?:(?:also|equally|just\s+as|as|another|quite|a|an|second|not\s+im)\s*){{1,3}}(?:{_AS_GOOD}|{_GUESS}\b|option\b)"
    rf"|as\s+(?:a|an|my|the)\s+(?:backup|fallback|second|{_GUESS}|plan)\b|otherwise\b|(?:(?:would|will|could)\s+(?:do|work|fit)\s+)?(?:too|as\s+well)\s{{0,2}}[.,;!]|{_IF_WRONG}|if\s+not\b"
    r"|(?:也|都|同样|同樣)(?:有?可能|行|可以|对|對|说得通))"
)
"""Behind a last box that leaves it open."""
_POSSIBLE_FRONT = re.compile(
    rf"(?:\b(?:i\s+(?:would\s+)?(?:guess|say|bet|suspect)|{_GUESS}|can\s+be|probably|presumably|likely|answer\s*[1-9]\b[:.)\s-]{{0,3}}"
    r"|(?:option|choice)\s*(?:[0-9a-e]|one|two|three)\b[:.)\s-]{0,3}|possible\s+(?:answer|value|result|solution)s?)"
    r"|(?:方案|猜测|猜測|答案|可能)[一二三1-9]|猜测?|猜測|大概|估计)"
    rf"(?:\s*(?:is|[0-9]{{1,2}}|it['’]s|it\s+is))?{_FILLING}"
)
_POSSIBLE_BEHIND = re.compile(
    rf"[\s$*_)}}\]\\]{{0,12}}(?:(?:is|are|seems?|looks?)\s+(?:one\s+|a\s+|an\s+)?(?:{_AS_GOOD}|{_GUESS}\b|option\b)|(?:could|might|may)\s+be\b|是?有?可能"
    rf"|[\[(—–-]?\s?(?:(?:my|a|the)\s+)?(?:first|second|third|other)\s+{_GUESS}\b)"
)
"""Around a box that is one of several possible ones; two such boxes are a choice left open."""
_BOTH_OPEN = re.compile(
    r"(?:\b(?:either|one|any)\s+of\s+(?:these|them|the\s+following)[^.:\n]{0,20}(?=:)|\b(?:unsure|undecided|not\s+(?:sure|certain)|(?:decide|choose|torn|hesitate|toss-?up)\s+between|depending\s+on)"
    r"|不确定|不確定|拿不准)[\s:：,，—–-]{1,4}(?:(?:whether|if|是)\s*)?(?:(?:it\s+is|the\s+answer\s+is)\s*)?[\s$*(\[\\]{0,6}\Z"
)
"""In front of the first of two boxes."""
_IF_DENIED_FRONT = re.compile(
    r"\b(?:if|in\s+case|should|when(?:ever)?)\b[^.!?\n]{0,50}?(?:\b(?:dislikes?|rejects?|refuses?|hates?|denies|not|never)|n['’]t)\b"
    r"(?:\s+(?:like|accept|want|take|expect|believe|with|by|as|for|the|an?|answer|value|right|correct|is|be|equal|to))*[\s$*:(\[\\]{0,8}(?:[a-z]\s?=\s?)?\Z"
    r"|(?:如果|若|要是|倘若|万一|假如)[^。！？\n]{0,12}?(?:不喜欢|不接受|不认可|不是|不想要|拒绝|否定)[\s：:$*(（\\]{0,6}\Z"
)
_OR_ELSE = re.compile(r"[\s$}，,]{0,6}(?:就|便|即)是")
_IF_FRONT = re.compile(
    r"(?:\b(?:if|in\s+case|should|unless)\s+[^.!?,;:\n]{0,30}|(?:如果|若|要是|倘若|万一|假如|除非)[^。！？，\n]{0,10})\Z"
)
_DENIED_AFTER = re.compile(
    rf"[\s$*_)}}\]\\]{{0,8}}(?:(?:(?:is|was|be|were|gets?|turns\s+out|proves)\s+)?(?:to\s+be\s+)?(?:judged\s+|marked\s+|found\s+|graded\s+)?(?:as\s+)?{_TURNED_DOWN}"
    r"|(?:is|was|gets?)\s+(?:disliked|refused|unacceptable|unwanted)|(?:does|is|was|did)(?:\s+not|n['’]t)\b"
    r"|(?:答案)?(?:不对|不對|错|錯|不行|不正确|不成立|有误|被(?:拒绝|否定|判错)|不被))"
)
_GRANTED_AFTER = re.compile(
    r"[\s$*_)}\]\\]{0,8}(?:(?:is|was|be)\s+)?(?:judged\s+|marked\s+)?(?:as\s+)?(?:right|correct|accepted|ok|fine|what|the\s+answer|正确|对)"
)
"""Around an earlier box that a condition turns down: `If \\boxed{5} is rejected, \\boxed{6}`."""
_TURNED = re.compile(
    r"\b(?:wrong|incorrect|false|impossible|reject\w*|fail\w*|discard\w*|extraneous|invalid|not|cannot|mistake\w*|error|forgot"
    r"|negative|contradict\w*|excluded|ruled\s+out|instead|wait|too\s+(?:large|small|big|low|high))\b|n['’]t\b|不|错|錯|舍去|矛盾"
)


def _left_open(text: Passage, boxes: list[Box]) -> bool:
    """The last box is one of several guesses: `It might be \\boxed{5}. It might also be \\boxed{6}.`"""
    last = boxes[-1]
    content = text.shown[last.start : last.stop]
    others = [box for box in boxes if text.shown[box.start : box.stop] != content]
    if not others:
        return False
    other, again = others[-1], [box for box in boxes if box.marker > others[-1].marker]
    between = text.lower[other.stop : min(last.marker, other.stop + 200)]
    if _BOTH_OPEN.search(text.lower, max(text.start, other.marker - 60), other.marker) and not _TURNED.search(between):
        return True
    return _if_denied(text, other, between) or all(_is_open(text, box, other, between) for box in again)


def _if_denied(text: Passage, box: Box, between: str) -> bool:
    """`If the grader dislikes \\boxed{5}, use \\boxed{6}`: the last one stands in for the earlier one."""
    if _SENTENCE_END.search(between):
        return False
    low = max(text.start, box.marker - 80)
    if _OR_ELSE.match(between) and text.lower.endswith("不是", low, box.marker):
        return True
    if _IF_DENIED_FRONT.search(text.lower, low, box.marker):
        return True
    condition = _IF_FRONT.search(text.lower, low, box.marker)
    if condition is None:
        return False
    turned = _GRANTED_AFTER if condition[0].startswith(("unless", "除非")) else _DENIED_AFTER
    return turned.match(text.lower, box.stop, text.stop) is not None


def _is_open(text: Passage, box: Box, other: Box, between: str) -> bool:
    low = max(text.start, other.stop, box.marker - 100)
    limit = min(text.stop, box.stop + _BEHIND_LENGTH)
    if _OPEN_FRONT.search(text.lower, low, box.marker) or _OPEN_BEHIND.match(text.lower, box.stop, limit):
        return True
    if _TURNED.search(between):
        return False
    return _OTHER_FRONT.search(text.lower, low, box.marker) is not None or (
        _is_possible(text, box) and _is_possible(text, other)
    )


def _is_possible(text: Passage, box: Box) -> bool:
    low = max(text.start, box.marker - 60)
    front = _POSSIBLE_FRONT.search(text.lower, low, box.marker) or _OPEN_FRONT.search(text.lower, low, box.marker)
    limit = min(text.stop, box.stop + _BEHIND_LENGTH)
    return (front or _POSSIBLE_BEHIND.match(text.lower, box.stop, limit)) is not None


class Run(NamedTuple):
    boxes: list[Box]
    """Those at the end that one sentence lists."""
    hedged: bool
    """They are offered as alternatives, or denied."""
    bare: bool
    """Two of them have nothing but a comma or `and` between them."""


def linked(text: Passage, boxes: list[Box]) -> Run:
    """The boxes at the end that belong together, and how."""
    run = [boxes[-1]]
    bare = False
    if _BOTH_AFTER.match(text.lower, boxes[-1].stop, text.stop):
        return Run(run, len(boxes) > 1, False)
    if denied_behind(text, boxes[-1].marker, (boxes[-1].start, boxes[-1].stop)) or _left_open(text, boxes):
        return Run(run, True, False)
    for box in reversed(boxes[:-1]):
        after = run[0]
        begin = box.stop + 1 if box.braced else box.stop
        same = text.shown[box.start : box.stop] == text.shown[after.start : after.stop]
        name = _NAME_BEFORE.search(text.lower, max(text.start, after.marker - 30), after.marker)
        roots = name is not None and _name_of(text, box) == name[1]  # `x = 1 or x = 2`
        between = text.lower[begin : min(after.marker, begin + _LINK_LENGTH + 1)]
        whole = len(between) <= _LINK_LENGTH
        if not same and not (roots and whole and _LINK.fullmatch(between.rstrip("\\"))):
            tail = max(begin, after.marker - 40)
            if _CONDITION_AFTER.match(between) and _CONDITION_AFTER.match(text.lower, boxes[-1].stop, text.stop):
                return Run(run, True, False)
            if _HEDGE_AFTER_BOX.match(between) or _HEDGE_BEFORE_BOX.search(text.lower, tail, after.marker):
                return Run(run, True, False)
        if not same and _SIDE_BY_SIDE.fullmatch(between.rstrip("\\")):
            return Run(run, True, False)
        if not whole or _SENTENCE_END.search(between):
            break
        if not roots and not same and _HEDGE.search(between):
            return Run(run, True, False)
        joint = roots or _JOINT.search(between)
        if not (joint and _LINK.fullmatch(between.rstrip("\\"))):
            break
        bare = bare or (not same and (roots or _PLAIN_LINK.fullmatch(between.rstrip("\\")) is not None))
        run = run if same else [box, *run]
    first = run[0].marker
    if denied_in_front(text, run[0]):
        return Run(run, True, bare)
    offered = len(run) > 1 and _HEDGE_BEFORE_RUN.search(text.lower, max(text.start, first - 60), first) is not None
    return Run(run, offered, bare)


def _name_of(text: Passage, box: Box) -> str:
    name = _NAME_BEFORE.search(text.lower, max(text.start, box.marker - 30), box.marker)
    return "" if name is None else name[1]
