"""Numbers, money, times, dates, units and ordinals as they are said, in English and Chinese.

For synthesisers that read "3.5 km" as it is written. The words come from num2words and cn2an; here is only the reading
of what stands in the text. A piece of text is Chinese when it holds a Chinese character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Protocol, cast

from .extras import required


class _Num2Words(Protocol):
    def num2words(self, number: float | str, *, to: str = "cardinal", lang: str = "en") -> str: ...


class _Cn2An(Protocol):
    def an2cn(self, number: str, mode: str) -> str: ...


MAX_DIGITS = 15
"""A longer number is an identifier; it is said digit by digit."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_MONEY = re.compile(rf"([$€£¥￥])\s?({_NUMBER})(?:\s?(thousand|million|billion|trillion)\b)?")
_DATE = re.compile(r"(?<![\w.-])(\d{4})-(\d{2})-(\d{2})(?![\w-])", re.ASCII)
_TIME = re.compile(
    r"(?<![\w:.])([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s?([ap])\.?m\.?(?!\w))?",
    re.IGNORECASE | re.ASCII,
)
_ORDINAL = re.compile(r"\b(\d{1,6})(st|nd|rd|th)\b", re.IGNORECASE)
_PERCENT = re.compile(rf"({_NUMBER})\s?[%％]")  # noqa: RUF001
_YEAR = re.compile(r"\b(in|since|until|of|year|from|by|before|after) (1[1-9]\d\d|20\d\d)\b(?![.,:]\d)", re.IGNORECASE)
_PLAIN = re.compile(rf"(?<![\w.-])(-?)({_NUMBER})(?![\w-]|\.\d)")

_UNITS = {
    "km/h": ("kilometer per hour", "kilometers per hour", "公里每小时"),
    "mph": ("mile per hour", "miles per hour", "英里每小时"),
    "km": ("kilometer", "kilometers", "公里"),
    "cm": ("centimeter", "centimeters", "厘米"),
    "mm": ("millimeter", "millimeters", "毫米"),
    "m": ("meter", "meters", "米"),
    "kg": ("kilogram", "kilograms", "公斤"),
    "mg": ("milligram", "milligrams", "毫克"),
    "g": ("gram", "grams", "克"),
    "ml": ("milliliter", "milliliters", "毫升"),
    "l": ("liter", "liters", "升"),
    "°C": ("degree Celsius", "degrees Celsius", "摄氏度"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit", "华氏度"),
    "kHz": ("kilohertz", "kilohertz", "千赫"),
    "Hz": ("hertz", "hertz", "赫兹"),
    "GB": ("gigabyte", "gigabytes", "吉字节"),
    "MB": ("megabyte", "megabytes", "兆字节"),
    "ms": ("millisecond", "milliseconds", "毫秒"),
    "kWh": ("kilowatt hour", "kilowatt hours", "千瓦时"),
}
_UNIT = re.compile(rf"(-?)({_NUMBER})\s?({'|'.join(re.escape(unit) for unit in _UNITS)})(?![\w/])")
_CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents", "美元"),
    "€": ("euro", "euros", "cent", "cents", "欧元"),
    "£": ("pound", "pounds", "penny", "pence", "英镑"),
    "¥": ("yuan", "yuan", "fen", "fen", "元"),
    "￥": ("yuan", "yuan", "fen", "fen", "元"),
}
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


class SpokenForms:
    """Call it with a unit of speech; returns the same with numbers in words. Raises `PortError` when the extra is
    missing.
    """

    def __init__(self) -> None:
        self._english = cast("_Num2Words", required("num2words", "local", "synthesis"))
        self._chinese = cast("_Cn2An", required("cn2an", "local", "synthesis"))

    def __call__(self, text: str) -> str:
        if not any(character.isdigit() for character in text):
            return text
        rules = self._chinese_rules() if _CHINESE.search(text) else self._english_rules()
        for pattern, replacement in rules:
            text = pattern.sub(replacement, text)
        return text

    # -- English ---------------------------------------------------------------------------------------------------

    def _english_rules(self) -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
        return (
            (_MONEY, self._money),
            (_DATE, self._date),
            (_TIME, self._time),
            (_ORDINAL, lambda found: self._say(found[1], "ordinal")),
            (_PERCENT, lambda found: f"{self._cardinal(found[1])} percent"),
            (_UNIT, self._unit),
            (_YEAR, lambda found: f"{found[1]} {self._say(found[2], 'year')}"),
            (_PLAIN, lambda found: f"{'minus ' if found[1] else ''}{self._cardinal(found[2])}"),
        )

    def _say(self, number: str, to: str) -> str:
        return self._english.num2words(int(number), to=to)

    def _cardinal(self, written: str) -> str:
        digits = written.replace(",", "")
        if len(digits) > MAX_DIGITS or (digits.startswith("0") and digits[1:2].isdigit()):
            return " ".join(self._say(digit, "cardinal") for digit in digits if digit.isdigit())
        whole, _, fraction = digits.partition(".")
        said = self._say(whole, "cardinal")
        if fraction:
            said += " point " + " ".join(self._say(digit, "cardinal") for digit in fraction)
        return said

    def _money(self, found: re.Match[str]) -> str:
        one, many, small, smalls, _ = _CURRENCIES[found[1]]
        whole, _, fraction = found[2].replace(",", "").partition(".")
        if found[3]:
            return f"{self._cardinal(found[2])} {found[3]} {many}"
        said = f"{self._cardinal(whole)} {one if whole == '1' else many}"
        if len(fraction) == 2 and fraction != "00":
            said += f" and {self._say(fraction, 'cardinal')} {small if fraction == '01' else smalls}"
        elif fraction.strip("0"):
            return f"{self._cardinal(found[2])} {many}"
        return said

    def _date(self, found: re.Match[str]) -> str:
        day = _valid_date(found)
        if day is None:
            return found[0]
        ordinal = self._say(str(day.day), "ordinal")
        return f"{_MONTHS[day.month - 1]} {ordinal}, {self._say(str(day.year), 'year')}"

    def _time(self, found: re.Match[str]) -> str:
        hour, minute, half = int(found[1]), int(found[2]), found[4]
        said = self._say(str(hour), "cardinal")
        if minute:
            said += f" {'oh ' if minute < 10 else ''}{self._say(str(minute), 'cardinal')}"
        elif not half:
            said += " o'clock" if 1 <= hour <= 12 else " hundred"
        if found[3] and int(found[3]):
            said += f" and {self._say(found[3], 'cardinal')} seconds"
        return f"{said} {half.upper()} M" if half else said

    def _unit(self, found: re.Match[str]) -> str:
        one, many, _ = _UNITS[found[3]]
        sign = "minus " if found[1] else ""
        return f"{sign}{self._cardinal(found[2])} {one if found[2] == '1' else many}"

    # -- Chinese ---------------------------------------------------------------------------------------------------

    def _chinese_rules(self) -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
        return (
            (_MONEY, lambda found: f"{self._number(found[2])}{_CURRENCIES[found[1]][4]}"),
            (_DATE, self._chinese_date),
            (_TIME, self._chinese_time),
            (_PERCENT, lambda found: f"百分之{self._number(found[1])}"),
            (_UNIT, lambda found: f"{'负' if found[1] else ''}{self._number(found[2])}{_UNITS[found[3]][2]}"),
            (re.compile(r"(\d{4})年"), lambda found: f"{self._digits(found[1])}年"),
            (re.compile(rf"(-?)({_NUMBER})"), lambda found: f"{'负' if found[1] else ''}{self._number(found[2])}"),
        )

    def _number(self, written: str) -> str:
        digits = written.replace(",", "")
        if len(digits) > MAX_DIGITS or (digits.startswith("0") and digits[1:2].isdigit()):
            return self._digits(digits)
        return self._chinese.an2cn(digits, "low")

    def _digits(self, digits: str) -> str:
        return "".join(self._chinese.an2cn(digit, "low") for digit in digits if digit.isdigit())

    def _chinese_date(self, found: re.Match[str]) -> str:
        day = _valid_date(found)
        if day is None:
            return found[0]
        return f"{self._digits(found[1])}年{self._number(str(day.month))}月{self._number(str(day.day))}日"

    def _chinese_time(self, found: re.Match[str]) -> str:
        hour, minute = str(int(found[1])), int(found[2])
        half = {"a": "上午", "p": "下午"}.get((found[4] or "").lower(), "")
        said = f"{half}{self._number(hour)}点"
        if minute:
            said += f"{'零' if minute < 10 else ''}{self._number(str(minute))}分"
        return said


def _valid_date(found: re.Match[str]) -> date | None:
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None
