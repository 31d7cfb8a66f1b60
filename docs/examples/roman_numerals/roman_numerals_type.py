"""Roman numerals as an answer type: `XIV` for 14 and for `xiv`. A task row asks for it with `answer_type: roman`."""

import re

from veriward.rewards import AnswerType

NUMERAL = re.compile(r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
VALUES = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}


def parse(text: str) -> int | None:
    """The value of a Roman or plain numeral below 4000; None for anything else. Never raises: it sees any text."""
    written = text.strip().strip("$").upper()
    if written.isascii() and written.isdigit() and len(written) <= 4:
        return int(written)
    if not written or NUMERAL.fullmatch(written) is None:
        return None
    values = [VALUES[letter] for letter in written]
    after = [*values[1:], 0]
    return sum(-one if one < following else one for one, following in zip(values, after, strict=True))


ROMAN = AnswerType(
    name="roman",
    meaning="a Roman numeral, or its value",
    parse=parse,
    equal=lambda candidate, reference: candidate == reference,
)
