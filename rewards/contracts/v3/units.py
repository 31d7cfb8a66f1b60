"""Units behind a number: one name per unit, its dimension, and its size in the base unit of that dimension."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

Dimension = tuple[tuple[str, int], ...]
"""Base dimensions with their exponents, sorted: an area is (("length", 2),)."""

_F = Fraction

_NAMES: dict[str, tuple[str, Fraction]] = {}


def _unit(dimension: str, size: Fraction | int, *names: str) -> None:
    for name in names:
        _NAMES[name] = (dimension, Fraction(size))


_unit("length", _F(1, 10**9), "nm", "nanometer", "nanometre", "nanometers", "nanometres", "纳米")
_unit("length", _F(1, 10**6), "um", "μm", "µm", "micrometer", "micrometers", "微米")
_unit("length", _F(1, 1000), "mm", "millimeter", "millimetre", "millimeters", "millimetres", "毫米")
_unit("length", _F(1, 100), "cm", "centimeter", "centimetre", "centimeters", "centimetres", "厘米", "公分", "釐米")
_unit("length", _F(1, 10), "dm", "decimeter", "decimetre", "decimeters", "decimetres", "分米")
_unit("length", 1, "m", "meter", "metre", "meters", "metres", "米", "公尺")
_unit("length", 1000, "km", "kilometer", "kilometre", "kilometers", "kilometres", "千米", "公里")
_unit("length", _F(254, 10000), "in", "inch", "inches", "英寸")
_unit("length", _F(3048, 10000), "ft", "foot", "feet", "英尺")
_unit("length", _F(9144, 10000), "yd", "yard", "yards")
_unit("length", _F(1609344, 1000), "mi", "mile", "miles", "英里")
_unit("time", 1, "s", "sec", "secs", "second", "seconds", "秒", "秒钟")
_unit("time", 60, "min", "mins", "minute", "minutes", "分钟", "分鐘")
_unit("time", 3600, "h", "hr", "hrs", "hour", "hours", "小时", "小時", "时")
_unit("time", 86400, "day", "days", "天", "日")
_unit("time", 604800, "week", "weeks", "周", "星期")
_unit("year", 1, "year", "years", "yr", "yrs", "年", "岁", "歲")
_unit("year", _F(1, 12), "month", "months", "月", "个月")
_unit("mass", _F(1, 1000), "mg", "milligram", "milligrams", "毫克")
_unit("mass", 1, "g", "gram", "grams", "克")
_unit("mass", 1000, "kg", "kilogram", "kilograms", "千克", "公斤")
_unit("mass", 10**6, "tonne", "tonnes", "吨", "噸")
_unit("mass", _F(45359237, 100000), "lb", "lbs", "pound", "pounds", "磅")
_unit("mass", _F(45359237, 1600000), "oz", "ounce", "ounces")
_unit("volume", _F(1, 1000), "L", "l", "liter", "litre", "liters", "litres", "升")
_unit("volume", _F(1, 10**6), "mL", "ml", "milliliter", "millilitre", "milliliters", "millilitres", "毫升")
_unit("money", 1, "$", "dollar", "dollars", "usd", "美元")
_unit("money", _F(1, 100), "cent", "cents", "¢", "美分")
_unit("money euro", 1, "€", "euro", "euros", "eur", "欧元")
_unit("money pound", 1, "£", "gbp")
_unit("money rupee", 1, "₹", "rupee", "rupees", "rs")
_unit("money yuan", 1, "¥", "元", "yuan", "rmb", "人民币", "块", "圆", "元钱")
_unit("money yuan", _F(1, 10), "角", "毛")
_unit("frequency", 1, "Hz", "hz", "hertz", "赫兹")
_unit("frequency", 1000, "khz")
_unit("frequency", 10**6, "mhz")
_unit("force", 1, "N", "n", "newton", "newtons", "牛", "牛顿")
_unit("energy", 1, "J", "j", "joule", "joules", "焦", "焦耳")
_unit("energy", 1000, "kJ", "kj")
_unit("power", 1, "W", "w", "watt", "watts", "瓦", "瓦特")
_unit("power", 1000, "kW", "kw")
_unit("voltage", 1, "V", "v", "volt", "volts", "伏", "伏特")
_unit("current", 1, "A", "a", "amp", "amps", "ampere", "amperes", "安", "安培")
_unit("pressure", 1, "Pa", "pa", "pascal", "pascals", "帕")
_unit("pressure", 1000, "kpa")
_unit("angle", 1, "degree", "degrees", "deg", "°", "度")
_unit("temperature c", 1, "°C", "°c", "celsius")
_unit("temperature f", 1, "°F", "°f", "fahrenheit")
_unit("temperature k", 1, "K", "k", "kelvin", "kelvins")

_POWERS = {"平方": 2, "立方": 3}
"""In front of a Chinese unit of length."""

INCOMPARABLE = (("time", "year"), ("temperature c", "temperature f", "temperature k"))
"""Dimensions between which there is no factor, though both measure one thing: no contradiction can be seen."""

ANY = 0
"""The power of plain 'units': a length, an area or anything else."""

GENERIC = {
    **dict.fromkeys(("unit", "units"), ANY),
    **dict.fromkeys(("square unit", "square units", "sq unit", "sq units", "unit^2", "units^2"), 2),
    **dict.fromkeys(("cubic unit", "cubic units", "cu unit", "cu units", "unit^3", "units^3"), 3),
}
"""Say that there is a unit of length to some power, and not which."""

_WORDS = re.compile(r"\b(square|sq|cubic|cu)\b\.?\s*([^\W\d_]+)")
_PER = re.compile(r"\s*(?:/|\bper\b|每)\s*")
_FACTOR = re.compile(r"([^\W\d_]+|[$€£¥¢₹°]+[^\W\d_]*)(?:\s*\^?\s*(-?[1-4])|([²³]))?")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that is known: what it measures, and how large it is."""

    dimension: Dimension
    size: Fraction


def read(text: str) -> Unit | None:
    """The unit of these words; None if any part of them is unknown, as in `7 apples`."""
    words = text.strip().rstrip(".")
    if words[:2] in _POWERS:
        known = _powered(words[2:], _POWERS[words[:2]])
        return known if known is not None and known.dimension[0][0] == "length" else None
    words = _WORDS.sub(lambda found: f"{found[2]}^{2 if found[1] in ('square', 'sq') else 3}", words)
    dimension: dict[str, int] = {}
    size = Fraction(1)
    for place, group in enumerate(_PER.split(words)):
        sign = 1 if place == 0 else -1
        if place and not group.strip("() "):
            return None
        factors = _factors(group.strip("() "))
        if factors is None:
            return None
        for name, exponent in factors:
            known = _powered(name, exponent * sign)
            if known is None:
                return None
            size *= known.size
            for base, power in known.dimension:
                dimension[base] = dimension.get(base, 0) + power
    found = tuple(sorted((base, power) for base, power in dimension.items() if power))
    return Unit(found, size) if found else None


def _factors(group: str) -> list[tuple[str, int]] | None:
    """`cm^2`, `N m`, `m s^-2` as names with exponents."""
    factors: list[tuple[str, int]] = []
    at = 0
    for found in _FACTOR.finditer(group):
        if group[at : found.start()].strip(" ·*⋅~"):
            return None
        exponent = found[2] or {"²": "2", "³": "3"}.get(found[3] or "", "1")
        factors.append((found[1], int(exponent)))
        at = found.end()
    return None if group[at:].strip() or not factors or len(factors) > 4 else factors


def _powered(name: str, exponent: int) -> Unit | None:
    known = _NAMES.get(name) or (_NAMES.get(name.lower()) if len(name) > 2 else None)
    if known is None:
        return None
    dimension, size = known
    if dimension == "volume":
        return Unit((("length", 3 * exponent),), size**exponent)
    return Unit(((dimension, exponent),), size**exponent)


def generic_power(text: str) -> int | None:
    """2 for `square units`, ANY for `units`, None for anything that is not generic."""
    return GENERIC.get(text.strip().rstrip(".").lower())


def power_of_length(*texts: str) -> int | None:
    """The power of the first text that is a known unit of length; None if none is."""
    for text in texts:
        known = read(text)
        if known is not None and len(known.dimension) == 1 and known.dimension[0][0] == "length":
            return known.dimension[0][1]
    return None


def contradict(one: Unit, other: Unit) -> bool:
    """They measure different things, and not the same thing on scales without a factor."""
    left, right = {name for name, _ in one.dimension}, {name for name, _ in other.dimension}
    return not any(left & set(family) and right & set(family) for family in INCOMPARABLE)
