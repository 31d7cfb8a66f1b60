"""Words behind a number: which are units or counted things, and which make another statement of the number."""

from __future__ import annotations

import re

from veriward.rewards.contracts.v3 import units
from veriward.rewards.contracts.v3.reading.numerals import HAN_NO_UNIT


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNITS = words_of(
    "km cm mm nm dm kg mg ml mL dL ft yd mi mph kph km/h hr hrs min mins sec secs ms ns ps sq cu lb lbs oz gal pt qt "
    "Hz kHz MHz GHz kW MW GW kWh Wh kVA kVAR kJ MJ eV keV MeV GeV Pa kPa MPa atm mol kmol rad deg rpm ha psi cal kcal "
    "kN kV mV mA GB MB KB TB kB dB USD EUR RMB CNY in"
)
"""Units of two or three letters that are read behind a number without `\\text`."""
GLUED_PRODUCT = words_of("ms ns ps nm pt mi in ft ha min")
"""Units that are as likely two letters when they touch a short number: `2ms`."""

STOP_WORDS = words_of(
    "th to is it be of if on no so we he the for not are all any was has its per with from than that then this there "
    "when where which each either both but can may let only"
)
SENTENCE = words_of(
    "is are was were be the if for when where which that there this then since because so not no than with given such "
    "only all any some each every to from means has have does do can must will"
)
"""Words that make a sentence of what they stand in."""
NO_UNIT = SENTENCE | words_of(
    "squared cubed factorial plus minus times dozen dozens half halves third thirds fourth fourths fifths sixths "
    "sevenths eighths ninths tenths hundredths thousandths millionths pairs score gross mod modulo base binary octal "
    "hexadecimal divided multiplied over root power equals hundreds thousands millions billions trillions lakh lakhs "
    "crore crores tens negative positive more less most least quarters"
)
"""Words behind a number that make it a sentence or another number: `5 dozen`, `4 squared`."""
MAGNITUDES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
LONG_UNITS = words_of(
    "meters meter metres metre centimeters centimeter inches inch feet foot yards yard miles mile kilometers kilometer "
    "square cubic units unit degrees degree hours hour minutes minute seconds second days day years year weeks dollars "
    "cents grams gram kilograms pounds liters litres milliliters percent radians sq"
)
SHORT_UNITS = words_of("m s h g L t K N J V W A")
"""Read as units only inside `\\text` or `\\mathrm`, or in a quotient of units: `12d` and `3t` are products."""
SHORT_THINGS = words_of(
    "day men man pen cup egg car cat dog box bag bus pie hat toy ant bee cow pig hen key map bed cap row fox kid die"
)

DENIALS = words_of(
    "or nor not no maybe perhaps possibly probably presumably wrong wrongly incorrect incorrectly mistaken mistakenly "
    "invalid erroneous inaccurate unlikely doubtful unsure uncertain guess guessing guessed nope oops fake bogus"
)
"""Words that take back what they stand beside, or leave it open."""
_JUDGED = DENIALS | words_of("false falsely never neither either think believe suppose assume rejected hopefully")
"""Words in front of an equals sign that judge the value."""
_HEDGES = _JUDGED | words_of(
    "supposedly apparently likely error mistake typo excluded impossible unknown disputed unverified tentative draft "
    "estimate estimated discarded cancelled canceled void ignore wait hmm lie trap undefined none nothing nil null dne "
    "else otherwise alternatively alternative instead rather versus vs except without unless almost but yet though "
    "although however actually really true yes correct right resp respectively "
    "ou oder oppure eller veya lub atau ni nicht kein nein falsch faux falso pas non nao sinon sonst vielleicht sauf "
    "quizas quiza"
)
"""Words that no unit holds because they take a number back or offer another one, in some languages."""
_NUMBER_WORDS = words_of(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion "
    "first fifth sixth seventh eighth ninth tenth hundredth thousandth millionth billionth mil mill bn kilo mega giga "
    "quadrillion quintillion googol lac grand couple once twice thrice"
)
_NO_UNIT_WORDS = (
    NO_UNIT
    | _HEDGES
    | _NUMBER_WORDS
    | words_of(
        "and about around approximately approx roughly exactly nearly circa maximum minimum max min total totally "
        "double doubled doubles triple tripled triples quadruple halved fewer bigger smaller greater larger after "
        "before until below above up down both few several many much he she we you they who whose what how why its it "
        "as on so too also again extra additional remainder remaining rest left modulus inverse sum product "
        "difference quotient ratio reciprocal opposite negated inverted conjugate transposed logarithm "
        "off pi sqrt cbrt sin cos tan cot sec csc log ln lg exp infinity infty inf oo alpha beta "
        "gamma delta epsilon theta lambda mu sigma phi omega answer answers result solution step question option "
        "mille permille"
    )
)
"""Words that no unit holds: they hedge, count, compare, or are mathematics."""
_POWER = r"(?:\^?-?[1-4]|\^\{-?[1-4]\}|[²³])"
_PIECE = re.compile(rf"([^\W\d_]+)(?:'[a-z])?\.?({_POWER})?")
_ADJECTIVES = words_of("right correct true total additional extra")
"""Words that are a part of what is counted where another word follows: `right angles`."""
_SHORT_WORDS = words_of("of a an per by pts ppm ppb bps dpi fps BTU US")
_WORD = re.compile(r"(?![A-Z]{1,3}\Z|[ivxl]+\Z)(?=.*[aeiouyAEIOUY])[A-Za-z]{3,}|[A-Z]{2}s")
"""A plain word, and no product of letters."""
CURRENCIES = frozenset("$€£¥₹¢")
_MOST_WORDS = 4
_POWERED = frozenset(("length", "time", "volume"))
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_BETWEEN = re.compile(r"\s*[/*·⋅]\s*|(?<=[^\W\d_])-(?=[^\W\d_])|\s+")
_BELOW = re.compile(r"/\s*\(([^()]*)\)")
_PRODUCTS = frozenset(("N m", "N s", "J s", "W h", "W s", "A h", "A s", "V A", "V s"))
"""Letters side by side that are a unit and no product of names."""
_SYMBOLS = frozenset("ÅΩ°℃℉")
_BRACKETED = re.compile(r"\(([^()]*)\)")


def is_unit(text: str) -> bool:
    """Words behind a number that only say of what it is: a known unit, or up to four plain words of no other function.

    Digits are the exponents of units and nothing else; no operators but the signs between units.
    """
    while text.partition(" ")[0] in MAGNITUDES:
        text = text.partition(" ")[2]
    text = text.removeprefix("/").strip()
    if text.startswith("(") and text.endswith(")") and _BRACKETED.fullmatch(text):
        text = text[1:-1].strip()
    text = text.replace("\\%", "%").removeprefix("-")
    if text in ("", "%", "°C", "°F", "°K"):
        return True
    pieces = _BETWEEN.split(_BELOW.sub(r"/\1", text))
    if len(pieces) > 1 and all(len(piece) == 1 for piece in pieces) and " " in text and text not in _PRODUCTS:
        return False
    words = 0
    for place, piece in enumerate(pieces):
        if piece and CURRENCIES.issuperset(piece):
            continue
        found = _PIECE.fullmatch(piece.lstrip("$€£¥°"))
        if found is None:
            return False
        word, power = found[1], found[2]
        if word in _SYMBOLS:
            continue
        if not word.isascii():
            if _HAN.fullmatch(word):
                if HAN_NO_UNIT.search(word) or (word[0] in "十百千万亿兆" and units.read(word) is None):
                    return False
                words += 1
                continue
            if units.read(word) is None:
                return False
        lower = word.lower()
        known = word in UNITS or lower in LONG_UNITS or (len(word) > 1 and units.read(word) is not None)
        if len(word) == 1:
            known = word in SHORT_UNITS or word == "l"
            if not known and not (lower == "a" and 0 < place < len(pieces) - 1):
                return False
        if power is not None and not (known and _may_have(word, power)):
            return False
        if known:
            continue
        words += 1
        if lower in _ADJECTIVES and place < len(pieces) - 1:
            continue
        if words > _MOST_WORDS or lower in _NO_UNIT_WORDS or not (word in _SHORT_WORDS or _WORD.fullmatch(word)):
            return False
    return True


def _may_have(word: str, power: str) -> bool:
    """Lengths have areas and volumes; what is no length stands below a line at most squared."""
    if word.lower() in ("unit", "units"):
        return True
    unit = units.read(word)
    if unit is None:
        return power.strip("^{}") in ("-1", "-2")
    exponent = {"²": 2, "³": 3}.get(power) or int(power.strip("^{}"))
    return exponent in (1, -1) or any(name in _POWERED for name, _ in unit.dimension)


def is_no_name(text: str) -> bool:
    """Words in front of an equals sign that judge the value instead of naming it: `wrong answer = 5`."""
    return bool({word.lower() for word in re.findall(r"[A-Za-z]{3,}", text)} & _JUDGED)
