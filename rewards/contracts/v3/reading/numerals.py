"""Chinese numerals, and the characters behind a number that are units or change its value."""

from __future__ import annotations

import re
from fractions import Fraction

_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
TENS = {"十": 10, "百": 100, "千": 1000}
MYRIADS = {"万": 10**4, "亿": 10**8, "兆": 10**12}
HAN_NUMERAL = re.compile(r"[零〇一二两三四五六七八九十百千万亿]+(?:点[零〇一二三四五六七八九]+)?")
HAN_FRACTION = re.compile(
    r"(?:([零〇一二两三四五六七八九十百千万亿点]+)又)?([一二两三四五六七八九十百千万亿]+)分之([零〇一二两三四五六七八九十百千万亿点]+)"
)
HAN_NO_UNIT = re.compile(
    r"^(?:点|又|成|折|半|打|多|对)|半$|分之|次方|进制|以[上下内外]|左右|[至到或不负加减乘除等]|阶乘|[错对否非没未无余几吗]|可能|也许|或许|大概|大约|约|^(?:平方|立方)$|[零一二两三四五六七八九]|^个半"
)
"""Chinese characters behind a number that change its value: 三点半, 八成, 5平方."""
HAN_UNIT = re.compile(
    r"(?:个(?!半).*|[平立]方?(?:毫|厘|分|千|公)?[米尺里]|(?:毫|厘|分|千|公)?[米尺里]|[千毫公]?[克斤升吨]|毫升|小时|分钟|秒钟?|天|年|月|周|元|角钱?|分|度|人|只|本|张|圈"
    r"|名|岁|次|种|条|件|块|支|页|辆|棵|倍|位|组|套|根|颗|头|瓶|盒|袋|箱|份|台|座|层|间|道|题|步|点|吨|公顷|公斤|平方|立方|组解|种方法|个解)\Z"
)


_LONGEST = 40
"""Characters of a numeral: 亿 a thousand times is a number of eight thousand digits."""


def han_integer(numeral: str) -> int | None:
    """The value of a whole Chinese numeral, `三万五千` or digit by digit `二零二四`; None if it is none."""
    if all(character in _DIGITS for character in numeral):
        return int("".join(str(_DIGITS[character]) for character in numeral))
    total = section = digit = 0
    seen_unit = 10**16
    previous = ""
    for character in numeral:
        if character in _DIGITS:
            if _DIGITS.get(previous):
                return None
            digit = _DIGITS[character]
        elif character in TENS:
            unit = TENS[character]
            if unit >= seen_unit:
                return None
            section += (digit or 1) * unit
            digit, seen_unit = 0, unit
        else:
            unit = MYRIADS[character]
            if not section + digit and not total:
                return None
            if unit == 10**8:
                total = (total + section + digit) * unit
            else:
                total += (section + digit) * unit
            section = digit = 0
            seen_unit = 10**16
        previous = character
    if digit and len(numeral) > 1 and numeral[-2] in "百千万亿" and numeral[-2] not in "十":
        return None  # 三万五 is 35,000 in speech and 30,005 on paper
    return total + section + digit


def han_number(numeral: str) -> Fraction | None:
    """The value of a Chinese numeral with an optional 点; None if it is none."""
    whole, point, decimals = numeral.partition("点")
    if len(numeral) > _LONGEST:
        return None
    if point and (not decimals or any(character not in _DIGITS for character in decimals)):
        return None
    if not whole or any(character not in "零〇一二两三四五六七八九十百千万亿" for character in whole):
        return None
    value = han_integer(whole)
    if value is None:
        return None
    if not point:
        return Fraction(value)
    digits = "".join(str(_DIGITS[character]) for character in decimals)
    return Fraction(int(str(value) + digits), 10 ** len(digits))
