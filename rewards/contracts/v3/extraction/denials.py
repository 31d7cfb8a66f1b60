"""Whether the words around a value say that it is not the answer."""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3.extraction.boxes import Box
from veriward.rewards.contracts.v3.extraction.visible import Passage, Span

_BEHIND_LENGTH = 200
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


_NOT_BEFORE_BOX = re.compile(
    r"(?:\b(?:(?:not|never)(?:\s+be)?|neither|hardly|cannot\s+be|by\s+no\s+means|in\s+no\s+way|nowhere\s+near"
    r"|answer\b[^.!?\n]{0,40}\s(?:instead\s+of|rather\s+than))"
    r"|n['’]t(?:\s+be)?|\\neq?|≠|不是|不为|不等于|不會是|不会是|不可能是|不可能为|不应是|不應是|并非|並非|绝非|決非|决非|而非)"
    r"(?:\s+(?:equals?(?:\s+to)?|the|a|just|simply|really|actually|necessarily|exactly|in\s+fact|at\s+all))?[\s$*:：\\(\[]{0,8}\Z"
)
_STARTS = r"(?:\A|[\n.!;>。！；])[\s*_#>\"“'(\[•·-]{0,8}"
_MARKS = r"[\s$*_:：\"“'(\[=≈\\—–-]{0,8}(?:[a-z]\s?[=≈]\s?[$\\(\s]{0,4})?\Z"
_THAT_IT_IS = (
    r"(?:\s+(?:that|it|it['’]s|is|be|are|as|the|an?|any|final|correct|right|true|real|answer|value|result|solution|equals?|to|just"
    rf"|simply|with|by|in|down|[a-z]\s?=))*{_MARKS}"
)
_FALSE = (
    r"(?:wrong|incorrect|false|erroneous|mistaken|fake|bogus|trap|decoy|inaccurate|rejected|discarded|refuted"
    r"|disproved)"
)
_DEGREE = (
    r"(?:(?:most|very|obviously|clearly|plainly|common|commonly|typical|frequent|popular|tempting|classic|usual|likely"
    r"|given)\s+)*"
)
_ONE = r"(?:the|an?|one|my|your|our|this|that|another)\s+"
_WOULD_BE = r"\s+(?:is|be|(?:would|could|might|may|will)\s+be)"
_NOUN = r"(?:final\s+)?(?:answer|guess|response|solution|result|conclusion)"
_SLIP = r"(?:mistake|error|trap|misconception|pitfall|fallacy|blunder|slip|distractor)s?"
_SAY = (
    r"(?:answer|say|said|think|thought|claim|believ|conclud|assum|writ|wrote|guess|g[ie]v|gave|put|report|obtain|get|got|found|box|choos"
    r"|pick|us|tak|accept|submit|select|enter|output|trust|mark|stat)(?:e|es|ed|s|n|ing|ting)?\b"
)
_CALLED_WRONG = re.compile(
    rf"{_STARTS}(?:(?:here\s+is|here['’]s|this\s+is|note|warning)[\s:,]{{1,3}})?(?:(?:{_ONE})?{_DEGREE}{_FALSE}(?:\s+but\s+[a-z]{{1,15}})?\s+{_NOUN}(?:{_WOULD_BE})?{_MARKS}"
    rf"|(?:the\s+following(?:\s+(?:answer|value|result|number))?\s+is\s+)?{_DEGREE}(?:{_FALSE}|untrue|(?:a\s+)?lie|ruled\s+out|crossed\s+out"
    rf"|not\s+(?:true|correct|right|the\s+(?:right\s+|correct\s+|final\s+)?answer))\s*[*_]{{0,3}}\s?(?:[:：→—–-]|=>){_MARKS}|[✗✘✖❌]{_MARKS})"
    rf"|(?:\A|\n)#{{1,6}}[ \t]{_FALSE}[*_ \t]{{0,3}}\n{_MARKS}"
    rf"|\banswer\s+(?:that|which)\s+is\s+{_FALSE}\s+is{_MARKS}"
    rf"|(?:,(?:\s+(?:and|while|but))?|\b(?:so|thus|hence|but|then|because|that))\s+{_ONE}{_DEGREE}{_FALSE}\s+{_NOUN}{_WOULD_BE}{_MARKS}"
    rf"|(?<!\bof\s)(?<!\bfor\s)\b{_ONE}{_DEGREE}{_FALSE}\s+{_NOUN}[\s$*_\"“(\[\\]{{0,8}}\Z"
    rf"|(?:{_STARTS}|\b(?:attempt|try|guess|answer|draft)\s?[0-9a-z]?\s)[(\[](?:{_FALSE}|not\s+(?:correct|right|true|the\s+answer))[)\]]\s?:?{_MARKS}"
    r"|\b(?:common|typical|frequent|usual|tempting|careless|popular|classic|easy|likely|obvious|beginner['’]?s|rookie|student['’]?s)\s+(?:(?:wrong|student|beginner['’]?s?|calculation)\s+)?"
    rf"{_SLIP}(?:\s+here)?(?:\s+(?:is|are|would\s+be|gives?|leads?\s+to|yields?|produces?|results?\s+in|of))?(?:\s+to\s+{_SAY})?{_THAT_IT_IS}"
    r"|\b(?:many|most|some|students|people|beginners|(?:one|you)\s+(?:might|may|could|would)|i|we)\b[^.,;:!?\n]{0,25}\b"
    rf"(?:mistakenly|erroneously|wrongly|incorrectly|falsely)\s+{_SAY}{_THAT_IT_IS}"
    r"|(?:这不是正确答案|(?:以下|下面)(?:的)?(?:答案|结果)?(?:不是(?:正确)?答案|是错误?的|不正确|不对|错误))[：:][\s$*(（\\]{0,6}\Z"
    r"|(?:错误|錯誤|不正确|不正確|常见的?错误|典型错误|易错)的?(?:答案|结果|結果|答|解)?\s?(?:应?[是为為]|会是)?[\s：:$*(（\\]{0,6}(?:[a-z]\s?=\s?)?\Z"
    r"|(?:容易|常常?|往往|很多人|有人)(?:会|會)?(?:误|誤|错|錯)[以认認答写寫算填选選]?[为為成作]?(?:答案)?[是为為]?[\s：:$*(（\\]{0,6}\Z"
)
"""The value is given as a wrong one. An option or a word can be asked for because it is."""
_SAID_NO = re.compile(
    r"(?:\bnot\s+(?:true|the\s+case|correct|right|so)|n['’]t\s+(?:true|the\s+case|correct|right)"
    r"|(?<!\bnot\s)(?<!n['’]t\s)\b(?:false|wrong|incorrect|untrue|impossible|unlikely|doubtful|mistaken|an?\s+(?:mistake|lie|fallacy|error)))"
    rf"\s+(?:that|to\s+{_SAY}){_THAT_IT_IS}"
    r"|\bi\s+(?:(?:really|seriously|highly|strongly|very\s+much)\s+)?(?:doubt|deny|reject|dispute)(?:\s+(?:whether|if|(?:the\s+)?(?:claim|idea)))?"
    rf"{_THAT_IT_IS}"
    rf"|\bnot\s+(?:saying|claiming|suggesting|convinced){_THAT_IT_IS}"
    rf"|\banswer\s+(?:(?:that|which)\s+)?(?:(?:you|we|one|i)\s+(?:should|must|would|do|can)\s*(?:not|n['’]t)|no(?:body|\s+one)\s+should)\s+{_SAY}"
    rf"(?:\s+(?:is|would\s+be))?{_MARKS}"
    r"|\b(?:no(?:body|\s+one)\s+(?:should|may|must)|under\s+no\s+circumstances(?:\s+(?:should|must|may)\s+(?:you|we|one))?"
    r"|(?:do|must|should|can|would|will)\s*(?:not|n['’]?t)|never|can['’]t|won['’]t|(?:refuse|ought\s+not|better\s+not|reason\s+not)\s+to|refrain\s+from|instead\s+of"
    rf"|rather\s+than)\s+(?:(?:ever|just|simply|really)\s+)?(?:{_SAY}|agree|suppose)"
    rf"(?:\s+(?:with|by|in|down|as|your|my|the|a|an|final|answer))*(?:\s+(?:that\s+)?(?:it|x|the\s+(?:final\s+|correct\s+)?(?:answer|value|result))\s*(?:is|be|as|equals|to\s+be))?{_MARKS}"
    rf"|(?:{_STARTS}(?:please\s+|just\s+)?|\b(?:should|must|always)\s+)(?:avoid|ignore|disregard|forget|discard|reject|scrap)"
    rf"(?:\s+the\s+{_SLIP}\s+of)?(?:\s+{_SAY})?(?:\s+(?:about|the|answer|value|box))*{_MARKS}"
    rf"|\b(?:i|we)\s+(?:(?:must|can|should|have\s+to)\s+)?(?:reject|discard|rule\s+out|dismiss|ignore|disregard)(?:\s+(?:the|answer|value))*{_MARKS}"
    r"|(?:不要|不能|不应该?|不應該?|不可以?|切勿|请勿|千万别|(?<![分特区個个])别)(?:再|把)?(?:回答|写|寫|填|选|選|用|答|说|說|认为|認為|以为|以為|相信)"
    r"[成上为為了]?(?:答案)?[是为為]?[\s：:$*(（\\]{0,6}(?:[a-z]\s?=\s?)?\Z"
    r"|(?:不(?:认为|認為|相信|觉得|覺得|同意))(?:答案|结果|它)?[是为為]?[\s：:$*(（\\]{0,6}\Z"
)
"""The value is forbidden or disbelieved."""
_ANYTHING_BUT = re.compile(
    rf"(?:{_STARTS}(?:(?:answer|say|choose|pick|try|write|the\s+answer)\s+)?|\banswer\s+(?:is|(?:could|can|may|might)\s+be)\s+|\bit\s+is\s+|\bit['’]s\s+)"
    r"(?:anything|any\s+(?:number|value|answer)|everything|all\s+answers)\s+(?:but|except(?:\s+for)?|other\s+than|besides|apart\s+from|save)"
    rf"{_THAT_IT_IS}"
)
_NEGATED = re.compile(r"(?:\b(?:not|cannot|nothing|never|no|none|hardly|how)\b|n['’]t\b)[^.!?\n]{0,100}\Z")
_ENDS_THERE = re.compile(r"[\s$*_)}\]\\]{0,8}(?:[.!?,;]|\Z)")
_ITS_DENIAL = re.compile(
    r"[\s$*_)}\]\\]{0,8}(?:(?:is|was|be|would\s+be)\s+(?:not|wrong|incorrect|false)\b|isn['’]t\b|不对|错|times?\b|points?\b|marks?\b"
    r"|of\s+(?:them|the)\b|percent|[个個道次题題]|(?<=\s)(?!this|unless|always|perhaps|does|plus)[a-z]{2,20}[a-rt-z]s\b)"
)
"""Behind a value that those words do not deny: `It is not true that \\boxed{6} is wrong`, `wrong \\boxed{6} times`."""
_TRUE_COUNTED = re.compile(r"(?<!\bnot\s)\btrue\s*[*_]{0,3}\s?[:=]")
_DENYING = re.compile(
    r"n['’]?t\b|no[tb]|no\s+one|never|wrong|incorrect|inaccurate|false|erro|mist|fake|bogus|trap|decoy|reject|discard|refut|disprov|crossed|rule"
    r"|untrue|lie\b|doubt|deny|disput|avoid|ignor|disregard|forget|scrap|dismiss|circumst|instead|rather|refrain|refuse|impossible|unlikely"
    r"|fallac|misconc|pitfall|blunder|slip|distract|any|everything|all\s+answers|[不别错錯误誤勿✗✘✖❌]"
)
"""One of these stands in every denial in front; most texts have none."""
_IN_FRONT = 160


def denied_in_words(text: Passage, span: Span, at: int) -> bool:
    """What stands in front calls the value wrong or refuses it: `Wrong: \\boxed{6}`, `Do not answer \\boxed{6}.`

    at    where the box of the span begins, or the span itself
    """
    front = text.lower[max(text.start, at - _IN_FRONT) : at]
    if _DENYING.search(front) is None:
        return False
    start, stop = span
    if _ITS_DENIAL.match(text.lower, stop, text.stop):
        return False
    if _SAID_NO.search(front):
        return True
    if _DENIABLE.match(text.shown, start, stop) is None:
        return False
    if _CALLED_WRONG.search(front):
        return _TRUE_COUNTED.search(front) is None
    but = _ANYTHING_BUT.search(front)
    return (
        but is not None
        and not _NEGATED.search(front, 0, but.start())
        and _ENDS_THERE.match(text.lower, stop, text.stop) is not None
    )


def denied_in_front(text: Passage, box: Box) -> bool:
    """What stands in front of a box denies it: `not \\boxed{6}`, `It is false that the answer is \\boxed{6}.`"""
    front = text.lower[max(text.start, box.marker - 60) : box.marker]
    return _NOT_BEFORE_BOX.search(front) is not None or denied_in_words(text, (box.start, box.stop), box.marker)
