"""English numbers as a recogniser spells them ("5", "five", "twenty-five"), and as they are said."""

from __future__ import annotations

import re

_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {word: value for value, word in enumerate(_UNITS)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_SMALL = {"a": 1, "an": 1}

NUMBER = (
    r"(?:\d{1,9}|(?:a |one )?hundred"
    rf"|(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_UNITS[1:10])}))?"
    rf"|{'|'.join(reversed(_UNITS))})"
)
"""A pattern for one number, up to nine digits or "ninety-nine" in words."""


def parse_number(text: str) -> int:
    """The value of what `NUMBER` (or "a", "an") matched. Raises `ValueError` for anything else."""
    text = text.strip().lower()
    if text.isascii() and text.isdigit():
        return int(text)
    if text.endswith("hundred"):
        return 100
    words = re.split(r"[ -]", text)
    values = [_VALUES.get(word, _SMALL.get(word)) for word in words]
    total = 0
    for value in values:
        if value is None:
            raise ValueError(f"{text!r} is no number")
        total += value
    return total


def number_words(number: int) -> str:
    """0 to 100 in words, other numbers in digits."""
    if 0 <= number < 20:
        return _UNITS[number]
    if 20 <= number < 100:
        tens, units = divmod(number, 10)
        return _TENS[tens - 2] + (f"-{_UNITS[units]}" if units else "")
    return "one hundred" if number == 100 else str(number)
