"""The boxes of a passage, and whether those at its end are one answer, several, or a choice left open."""

from __future__ import annotations

import re
from typing import NamedTuple

from veriward.rewards.contracts.v3.extraction.clauses import stripped, trimmed
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span
from veriward.rewards.contracts.v3.limits import LIMITS


class Box(NamedTuple):
    marker: int
    start: int
    stop: int
    braced: bool
    closed: bool


def may_go_on(text: Passage, box: Box) -> bool:
    """A box without braces at the very end."""
    return not box.braced and text.shown[box.stop - 1] not in ")]" and not text.shown[box.stop : text.stop].strip()


_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_BRACES = re.compile(r"\\[\\{}]|[{}]")
_DOUBLED_BRACES = re.compile(r"\\\\\\\\|\\\\[{}]|[{}]")
"""In text whose backslashes were doubled, as JSON does, `\\\\{` is an escaped brace."""
_MOST_BOXES = 100
"""Box commands looked at, from the end: `\\boxed{5}` half a million times."""
_GROUP = r"\{[^{}]{0,100}(?:\{[^{}]{0,100}\}[^{}]{0,100}){0,6}\}"
_BARE = re.compile(
    r"[-−]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?(?:/[0-9]+)?(?:\\?%)?"
    rf"|\\[dtc]?frac\s?(?:{_GROUP}|[0-9a-z])\s?(?:{_GROUP}|[0-9a-z])"
    rf"|\\sqrt\s?(?:\[[0-9]{{1,3}}\])?\s?(?:{_GROUP}|[0-9a-z])"
    rf"|\\(?:text|textbf|mathrm|mathbf|mbox)\s?{_GROUP}"
    r"|\\(?:pi|infty|emptyset|varnothing)(?![a-zA-Z])"
    r"|\([^()\n]{1,200}\)|\[[^\[\]\n]{1,200}\]"
    r"|[A-Za-z](?![A-Za-z])(?![ \t]{1,3}[A-Za-z])"  # `\boxed C`, not `the \boxed a box`
)
_BOX_BREAK = re.compile(r"\n|\$|\\[)\]]|[。；]|[.;]\s|,\s{1,3}[A-Za-z]{2,}")
_EMPTY = re.compile(
    r"(?:[\s~?_…$‐-―]|\\[ ,;:!_]|\.{2,}|\\(?:quad|qquad|[lcd]?dots|cdots|square|Box|displaystyle)(?![a-zA-Z])"
    r"|(?:\\(?:text|textbf|textit|mathrm|mathbf|mbox|underline))?\{\s{0,50}\}"
    r"|\\[hv]?phantom\{[^{}]{0,100}\}|\\hspace\*?\{[^{}]{0,20}\})*+"
)
_WRAP = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox)\s?\{([^{}]*)\}")
_PLACEHOLDERS = frozenset(
    {
        *(
            "answer",
            "your answer",
            "final answer",
            "your final answer",
            "the answer",
            "the final answer",
            "answer here",
        ),
        *("your answer here", "insert answer", "final result", "your result", "result", "value", "solution"),
        *("答案", "最终答案", "最終答案", "你的答案", "结果", "結果"),
    }
)
"""What instructions write into the box that they ask for."""


def boxes_of(text: Passage) -> list[Box]:
    """The outermost boxes that hold something, in order. Only the last can be one that never closes."""
    shown, stop = text.shown, text.stop
    first = _first_of_last(shown, text.start, stop)
    if first < 0:
        return []
    boxes: list[Box] = []
    closing: dict[bool, dict[int, int]] = {}
    unclosed: re.Match[str] | None = None
    covered = first
    for marker in _BOX.finditer(shown, first, stop):
        if marker.start() < covered:
            continue
        at = marker.end()
        if not shown.startswith("{", at) or at >= stop:
            bare = _BARE.match(shown, at, stop)
            if bare is not None and not is_empty(shown[at : bare.end()]):
                boxes.append(Box(marker.start(), at, bare.end(), braced=False, closed=True))
                unclosed, covered = None, bare.end()
            continue
        doubled = _backslashes(shown, marker.start()) % 2 == 1
        if doubled not in closing:
            wanted = frozenset(marker.end() for marker in _BOX.finditer(shown, first, stop))
            closing[doubled] = _closing_braces(shown, first, stop, wanted, doubled=doubled)
        close = closing[doubled].get(at)
        if close is None:
            unclosed = marker
            continue
        covered = close
        inner = trimmed(shown, at + 1, close)
        if not is_empty(shown[slice(*inner)]):
            boxes.append(Box(marker.start(), *inner, braced=True, closed=True))
            unclosed = None
    if unclosed is not None:
        span = _unclosed_content(text, unclosed.end() + 1)
        if not is_empty(shown[slice(*span)]):
            boxes.append(Box(unclosed.start(), *span, braced=True, closed=False))
    return boxes


def _first_of_last(text: str, start: int, stop: int) -> int:
    """Where the first of the last `_MOST_BOXES` box commands stands, or -1."""
    first = -1
    box, frame = text.rfind("\\boxed", start, stop), text.rfind("\\fbox", start, stop)
    for _ in range(_MOST_BOXES):
        if box < 0 and frame < 0:
            break
        first = max(box, frame)
        if box > frame:
            box = text.rfind("\\boxed", start, box)
        else:
            frame = text.rfind("\\fbox", start, frame)
    return first


def _backslashes(text: str, at: int) -> int:
    """How many backslashes, up to three, stand before this place."""
    count = 0
    while count < 3 and at - count - 1 >= 0 and text[at - count - 1] == "\\":
        count += 1
    return count


def _closing_braces(text: str, start: int, stop: int, wanted: frozenset[int], *, doubled: bool) -> dict[int, int]:
    """For each wanted opening brace that is closed, where."""
    closing: dict[int, int] = {}
    opened: list[tuple[int, int]] = []
    depth = 0
    for brace in (_DOUBLED_BRACES if doubled else _BRACES).finditer(text, start, stop):
        if brace[0] == "{":
            if brace.start() in wanted:
                opened.append((depth, brace.start()))
            depth += 1
        elif brace[0] == "}" and depth:
            depth -= 1
            if opened and opened[-1][0] == depth:
                closing[opened.pop()[1]] = brace.start()
                if len(closing) == len(wanted):
                    break
    return closing


def _unclosed_content(text: Passage, start: int) -> Span:
    """To the end of its sentence, line or formula."""
    limit = min(text.stop, start + LIMITS.max_answer_characters + 1)
    end = _BOX_BREAK.search(text.shown, start, limit)
    return stripped(text, start, limit if end is None else end.start())


def is_empty(content: str) -> bool:
    if content[:1].isdigit():
        return False
    if len(content) <= 40 and _WRAP.sub(r"\1", content).strip(" .[]<>$").lower() in _PLACEHOLDERS:
        return True
    return _EMPTY.fullmatch(content) is not None


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
_DENIED_BEFORE_BOX = re.compile(
    r"(?:\b(?:not|never|neither|cannot\s+be)|n't(?:\s+be)?|\\neq?|≠|不是|不为|不等于)(?:\s+(?:equal\s+to|the|a|just|simply))?[\s$*:：\\(\[]{0,8}\Z"
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
    rf"\b(?:if|in\s+case|should|unless)\s+(?:{_FIRST}\b[^.!?\n]{{0,30}}?{_TURNED_DOWN}|i\b[^.!?\n]{{0,12}}?\b(?:wrong|mistaken))"
    r"|(?:如果|若|要是|倘若|万一|假如)[^。！？\n]{0,8}?(?:不对|不對|错|錯|不是(?=[，,的])|不行|不正确|不成立|不成)"
)
_AS_GOOD = r"(?:possib\w+|plausible|likely|good|reasonable|correct|right|valid|fine|conceivable|probable|thinkable)\b"
_GUESS = r"(?:guess|possibility|candidate|alternative|conjecture|bet)"
_OPEN_FRONT = re.compile(
    r"(?:\b(?:could|might|may|can\s+also)\s+(?:(?:also|well|just|even|equally|instead|still|perhaps|possibly)\s+)*be"
    r"|\b(?:could|might|may|can|would)\s+(?:also|equally\s+well|just\s+as\s+well)\s+(?:answer|say|choose|pick|guess)"
    r"|\bso\s+(?:is|are|could|might|may|would)(?:\s+be)?|\b(?:is|be)\s+also|\bas\s+well\s+as|\balso\s+(?:think|guess|suspect|consider|choose|pick|answer|say)"
    r"|\b(?:failing\s+that|just\s+in\s+case|to\s+be\s+safe|if\s+not\s?[,:]|unless|plan\s+b|backup|fallback)(?:\s+(?:answer|guess|is))*"
    rf"|(?:{_IF_WRONG})[^.!?。！？；;\n]{{0,40}}?|也许|或许|否则|不然(?:的话)?|(?:也|又|还|還)(?:可以|能|会|會)){_FILLING}"
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
_TURNED = re.compile(
    r"\b(?:wrong|incorrect|false|impossible|reject\w*|fail\w*|discard\w*|extraneous|invalid|not|cannot|mistake\w*|error|forgot"
    r"|negative|contradict\w*|excluded|ruled\s+out|instead|wait|too\s+(?:large|small|big|low|high))\b|n['’]t\b|不|错|錯|舍去|矛盾"
)
_DENIABLE = re.compile(
    r"[\s$({\[+−-]{0,6}(?:[0-9.]|\\(?!text|math|mbox|operatorname)[a-z])|(?!.{0,200}\\(?:text|math))[^\n]{0,200}[0-9+=^/]"
)
"""A value. Words, and letters of options, may be right because something is wrong: `\\boxed{C} is false.`"""
_NOT_ITSELF = re.compile(
    r"(?:\b(?:suppose|assume|than|except|different\s+from|besides|apart\s+from|instead\s+of|doubt|nothing|anything"
    r"|everything|statement|claim|option|choice|proposition|assertion|step|line|exceeds?|beats?|better|below|beyond|improve|above"
    r"|under|smaller|larger|greater|less|more|fewer|other|another|else|error|mistake|problem)\b|\b(?:not|never)\b|n['’]t\b"
    r"|命题|命題|说法|說法|结论|結論|选项|選項|判断|叙述|除了|如果|若)[^.!?。！？\n,，;；:：]{0,60}\Z"
    r"|\b(?:if|unless|whether)\s+(?:(?:the|our|my|answer|value|result|it|is|box|of)\s+){0,4}[\s$*(\[\\]{0,4}\Z"
)
"""In front of a box that is not denied behind: `Can we go below \\boxed{6}? No.`, `statement \\boxed{2} is false`."""
_AFTER_BOX = r"[\s$*_)}\]\\.,;:!?…—–\"”'’(\[，。；：！？（-]{0,16}"
_SET_OFF = r"[\s$*_)}\]\\\"”’]{0,8}(?:[.,;:!?…—–→(\[]{1,3}|-{1,3}>?|\n)[\s*_\"“(]{0,4}"
_LEAD = (
    r"(?:(?:but|and|yet|however|though|although|actually|in\s+fact|hmm+|wait|no|oh|oops|sorry|sadly|unfortunately|clearly|obviously"
    r"|of\s+course|now|alas|i\s+(?:now\s+)?(?:know|think|believe|see|reali[sz]e|fear|admit|notice)(?:\s+that)?|i\s+made\s+an?\s+(?:error|mistake)(?:,?\s+so)?"
    r"|(?:up)?on\s+(?:reflection|checking|closer\s+inspection|second\s+thoughts?)|after\s+(?:checking|all|some\s+thought))"
    r"[\s,:;.!…—–-]{1,4}){0,4}"
)
_ITSELF = (
    r"(?:which|that|this|it|(?:the|this|that|my|our)\s+(?:(?:final|last|boxed|above|given|proposed)\s+)?"
    r"(?:answer|value|result|solution|guess|number|candidate|box)(?:\s+(?:above|here|in\s+the\s+box))?)"
    r"(?:\s+(?:i|we)\s+(?:now\s+)?(?:know|think|believe|see))?"
)
_SURELY = (
    r"(?:\s+(?:clearly|obviously|definitely|certainly|actually|simply|just|quite|also|still|plainly|completely|totally"
    r"|surely|probably|likely|of\s+course|in\s+fact))*"
)
_IS = (
    r"(?:\s*(?:is|was|(?:would|will|must|has\s+to|to)\s+be|seems|looks|turns\s+out(?:\s+to\s+be)?|proves(?:\s+to\s+be)?)"
    r"|['’]s)"
)
_IS_NOT = (
    rf"(?:{_IS}{_SURELY}\s+(?:not|never)|\s*(?:is|was)n['’]t|\s*(?:can\s*not|can['’]t|could\s*n['’]t|could\s+not|may\s+not"
    rf"|would\s+not|wo['’]?n['’]t|will\s+not|does\s+not\s+seem\s+to){_SURELY}\s+be){_SURELY}"
)
_THE_ANSWER = (
    r"\s+(?:(?:the|a|an|my|our|your)\s+)?(?:(?:correct|right|final|actual|true|required|desired|real|valid|proper|sought)\s+){0,3}"
    r"(?:answer|solution|result|(?:(?<=the\s)|(?<=correct\s)|(?<=right\s))value|(?:(?<=correct\s)|(?<=right\s))(?:option|choice))"
)
_WRONG = (
    r"(?:wrong|incorrect|false|mistaken|erroneous|invalid|inadmissible|rejected|ruled\s+out|nonsense|absurd|off"
    r"|an?\s+(?:mistake|error|trap|distractor)|too\s+(?:large|small|big|low|high))"
)
_RIGHT = (
    r"(?:correct|right|true|valid|accurate|acceptable|it"
    r"|what\s+(?:is|was|we)\s+(?:asked|wanted|needed|want|need)(?:\s+for)?)"
)
_ENDS = (
    r"(?=[\s$*_)}\]\"”'’]{0,8}(?:[.,;:!?。，；！？…—–]|\Z|(?:because|since|as|so|and|but|though|here|either|too|again|anyway|now|at\s+all"
    r"|after\s+all|(?:to|for|of|in)\s+(?:this|the|our)\s+(?:problem|question|task|exercise))\b|-\s)|\s*\n)"
)
_NOT_THE_ANSWER = re.compile(
    rf"{_AFTER_BOX}{_LEAD}(?:(?:{_ITSELF})?(?:{_IS_NOT}|{_IS}{_SURELY}\s+(?:the|a|an)\s+(?:wrong|incorrect|false)(?=\s)){_THE_ANSWER}"
    rf"|not{_THE_ANSWER}|(?:{_ITSELF})?{_IS}\s+no{_THE_ANSWER}"
    r"|(?:an?|the)\s+(?:wrong|incorrect|false)\s+(?:answer|value|result|solution|guess)"
    rf"|(?:{_ITSELF})?\s*(?:does\s*n[o'’]t|does\s+not)\s+(?:solve|answer)\s+(?:the|this|our)\s+(?:problem|question)|(?:please\s+)?(?:ignore|disregard|scratch|strike|forget|discard|reject|do\s+not\s+(?:use|take|accept))\s+"
    rf"(?:this|that|it|the\s+(?:above|box))|(?:i|we)\s+(?:take\s+(?:that|it|this)\s+back|reject\s+(?:it|this|that))|never\s*mind){_ENDS}"
    r"|[\s$*)}\]\\，。,.；;（(]{0,10}(?:但是?|可是|不过|然而|其实|显然|可惜){0,2}(?:(?:这|這|那|该|該|此|它|上述)(?:个|個)?)?(?:答案|结果|結果|值|数|數)?"
    r"(?:显然|其实|也|却|并|並|肯定)?(?:不是|非)(?:正确|正確|最终|最終|真正|本题|所求)?的?(?:答案|结果|結果)(?=[\s$*)）]{0,4}(?:[。，,.；;！!？?]|\Z))"
)
_IS_WRONG = re.compile(
    rf"{_AFTER_BOX}{_LEAD}(?:(?:{_ITSELF})?(?:{_IS}{_SURELY}\s+{_WRONG}|{_IS_NOT}\s+{_RIGHT})"
    rf"|{_ITSELF}\s+(?:does|did|can|could)(?:\s+not|n['’]t|not)\s+(?:work|hold|fit|be\s+it)(?:\s+out)?){_ENDS}"
    r"|[\s$*_)}\]\\.,-]{0,8}[✗✘✖❌]"
    rf"|{_SET_OFF}{_LEAD}(?:(?:not\s+(?:quite\s+)?)(?:correct|right|valid)|wrong|incorrect|nope|not\s+quite|nonsense){_ENDS}"
    r"|[\s$*_)}\]\\\"”]{0,12}[?？]\s{0,3}(?:(?:well|hmm+|oh|wait|sadly|unfortunately|alas)[\s,.…]{1,4})*"
    r"(?:(?:no|never)\b(?!\s+(?:wonder|doubt|problem|matter|other|one|further|more|need|less|fewer))|不(?:是|对|對|行)?(?=[。，,！!.]|\Z))"
    r"|[\s$*_)}\]\\\"”]{0,12}[.!…;,—–-]{1,3}\s{0,3}(?:(?:wait|actually|oh|hmm+|sorry|but)[\s,.…]{1,4})*no[.!]"
    r"|[\s$*)}\]\\，。,.；;（(]{0,10}(?:但是?|可是|不过|然而|其实|显然|可惜){0,2}(?:(?:这|這|那|该|該|此|它|上述)(?:个|個)?)?(?:答案|结果|結果|值|数|數|解)?"
    r"(?:显然|其实|也|却|并|並|肯定|应该|應該|是|为|為){0,2}(?:(?:不对|不對|不正确|不正確)的?|(?:错误|錯誤|错|錯)[的了]?|有误|有誤|不成立|不合题意|不符合题意|应?舍去|應?捨去)"
    r"(?=[\s$*)）]{0,4}(?:[。，,.；;！!？?]|\Z|\n))"
)


def denied_behind(text: Passage, at: int, span: Span) -> bool:
    """What follows takes the value back: `\\boxed{6} is not the answer.`, `\\boxed{6}, which is wrong.`

    at    where its box begins, or the words that state it
    """
    start, stop = span
    if _NOT_ITSELF.search(text.lower, max(text.start, at - 90), at):
        return False
    limit = min(text.stop, stop + _BEHIND_LENGTH)
    if _NOT_THE_ANSWER.match(text.lower, stop, limit):
        return True
    value = _DENIABLE.match(text.shown, start, stop)
    return value is not None and _IS_WRONG.match(text.lower, stop, limit) is not None


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
    return all(_is_open(text, box, other, between) for box in again)


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
    before = text.lower[max(text.start, first - 60) : first]
    pattern = _HEDGE_BEFORE_RUN if len(run) > 1 else _DENIED_BEFORE_BOX
    return Run(run, pattern.search(before) is not None, bare)


def _name_of(text: Passage, box: Box) -> str:
    name = _NAME_BEFORE.search(text.lower, max(text.start, box.marker - 30), box.marker)
    return "" if name is None else name[1]
