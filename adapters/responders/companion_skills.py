"""What the pattern companion understands, and what it answers.

A skill is a pattern over what the recogniser wrote (lower case, "what's" spelled out, no punctuation) and the answer to
a match. Answers are pure: the only effect, starting a timer, is asked for in the answer and carried out elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from .numbers import NUMBER, number_words, parse_number
from .story import STORY

MOST_COUNTED = 100
LONGEST_TIMER = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Situation:
    """What an answer may depend on."""

    now: datetime
    timers: bool
    """Somebody carries timers out."""
    last_reply: str | None
    """What the companion said before, as far as the context knows."""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    timer: timedelta | None = None
    """A timer to start before the answer is spoken."""


class Skill(NamedTuple):
    pattern: re.Pattern[str]
    answer: Callable[[re.Match[str], Situation], Answer]


def understood(heard: str) -> str:
    """`heard` in the form that the patterns are written in."""
    text = heard.lower().replace("’", "'")
    text = re.sub(r"\b(what|who|that|it|where|how)'s\b", r"\1 is", text)
    text = re.sub(r"\bi'm\b", "i am", text)
    text = re.sub(r"\b(\w+)'re\b", r"\1 are", text)
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    text = text.replace("×", " times ").replace("÷", " divided by ").replace("+", " plus ")
    text = re.sub(r"(?<=\d)\s*[*x]\s*(?=\d)", " times ", text)
    text = re.sub(r"(?<=\d)\s*/\s*(?=\d)", " divided by ", text)
    text = re.sub(r"(?<=\d)\s*-\s*(?=\d)", " minus ", text)
    return " ".join(re.sub(r"[^a-z0-9' -]", " ", text).split())


def answer_to(heard: str, situation: Situation) -> Answer:
    """The answer to the last thing in `heard` that is understood: in "stop, what time is it" that is the time."""
    text = understood(heard)
    found = [
        (match.start(), -order, skill, match)
        for order, skill in enumerate(SKILLS)
        for match in skill.pattern.finditer(text)
    ]
    if found:
        _, _, skill, match = max(found, key=lambda candidate: candidate[:2])
        return skill.answer(match, situation)
    if not text:
        return Answer("I did not hear any words.")
    return Answer(
        f"I heard: {' '.join(heard.split())[:120].rstrip('.?! ')}. I do not understand that. I only know a few things; "
        "ask me what I can do."
    )


def _time(_: re.Match[str], situation: Situation) -> Answer:
    now = situation.now
    part = "in the morning" if now.hour < 12 else "in the afternoon" if now.hour < 18 else "in the evening"
    return Answer(f"It is {now.hour % 12 or 12}:{now.minute:02} {part}.")


def _date(_: re.Match[str], situation: Situation) -> Answer:
    now = situation.now
    return Answer(f"Today is {now:%A}, {now:%B} {now.day}, {now.year}.")


def _count(match: re.Match[str], _: Situation) -> Answer:
    first = parse_number(match["first"]) if match["first"] else 1
    last = parse_number(match["last"])
    if not 0 <= last <= MOST_COUNTED or not 0 <= first <= MOST_COUNTED:
        return Answer(f"I only count as far as {number_words(MOST_COUNTED)}.")
    numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
    said = ", ".join(number_words(number) for number in numbers)
    return Answer(f"{said[:1].upper()}{said[1:]}.")


def _arithmetic(match: re.Match[str], _: Situation) -> Answer:
    left, right = parse_number(match["left"]), parse_number(match["right"])
    sign = match["sign"].split()[0]
    if sign == "divided":
        return Answer(_quotient(left, right))
    result = {"plus": left + right, "and": left + right, "minus": left - right}.get(sign, left * right)
    spoken = {"multiplied": "times", "and": "plus"}.get(sign, sign)
    value = f"minus {-result}" if result < 0 else f"{result}"
    return Answer(f"{left} {spoken} {right} is {value}.")


def _quotient(left: int, right: int) -> str:
    if right == 0:
        return "Nothing can be divided by zero."
    whole, rest = divmod(left, right)
    if rest == 0:
        return f"{left} divided by {right} is {whole}."
    return f"{left} divided by {right} is {whole}, and {rest} is left over."


def _timer(match: re.Match[str], situation: Situation) -> Answer:
    amount = parse_number(match["amount"])
    unit = match["unit"]
    duration = timedelta(**{f"{unit}s": min(amount, 100_000)})
    if not timedelta(0) < duration <= LONGEST_TIMER:
        return Answer("I can set timers from one second to one day.")
    said = f"{amount} {unit}{'' if amount == 1 else 's'}"
    if not situation.timers:
        return Answer(f"I understood a timer for {said}, but nothing here can ring, so I have not set one.")
    return Answer(f"I have set a timer for {said}.", timer=duration)


def _name(match: re.Match[str], _: Situation) -> Answer:
    name = " ".join(part.capitalize() for part in match["name"].split())
    return Answer(f"Nice to meet you, {name}.")


def _again(_: re.Match[str], situation: Situation) -> Answer:
    return Answer(situation.last_reply or "I have not said anything yet.")


def _always(text: str) -> Callable[[re.Match[str], Situation], Answer]:
    return lambda _match, _situation: Answer(text)


def _skill(pattern: str, answer: Callable[[re.Match[str], Situation], Answer]) -> Skill:
    """`<name>` in `pattern` stands for a number that the answer reads as `match["name"]`."""
    numbered = re.sub(r"(?<!P)<(\w+)>", _number_group, pattern)
    return Skill(re.compile(rf"\b(?:{numbered})\b"), answer)


def _number_group(placeholder: re.Match[str]) -> str:
    article = "|an?" if placeholder[1] == "amount" else ""
    return f"(?P<{placeholder[1]}>{NUMBER}{article})"


SKILLS: tuple[Skill, ...] = (
    _skill(r"set (?:a |an |the |me a )?timer (?:for|to|of) <amount> (?P<unit>second|minute|hour)s?", _timer),
    _skill(r"<amount> (?P<unit>second|minute|hour)s? timer", _timer),
    _skill(r"count(?: up| down)?(?: from <first>)? (?:to|till|until|up to) <last>", _count),
    _skill(r"<left> (?P<sign>plus|and|minus|times|multiplied by|divided by) <right>", _arithmetic),
    _skill(r"what time is it|what is the time|what time it is|tell me the time|time is it", _time),
    _skill(r"what day|what date|which day|what is the (?:date|day)|today's date|what is today", _date),
    _skill(r"story|stories", _always(STORY)),
    _skill(
        r"who are you|what are you|what is your name|introduce yourself",
        _always(
            "I am the voicechart companion: a small program that answers from fixed patterns. I am not a language "
            "model, and I work without a network."
        ),
    ),
    _skill(
        r"what can (?:you|i|we) (?:do|ask|say)|what do you (?:know|do)|how can you help|help me|help",
        _always(
            "I can tell you the time and the date, count, add and multiply, set a timer, and tell a long story. "
            "You can interrupt me at any moment."
        ),
    ),
    _skill(r"say (?:that|it) again|repeat that|what did you say|repeat", _again),
    _skill(r"my name is (?P<name>[a-z'-]+(?: [a-z'-]+)?)", _name),
    _skill(r"how are you", _always("I am a program, so I have no moods, but everything works.")),
    _skill(r"hello|hi|hey|good (?:morning|afternoon|evening)", _always("Hello! What can I do for you?")),
    _skill(r"thank you|thanks", _always("You are welcome.")),
    _skill(r"good ?bye|bye|good night|see you", _always("Goodbye!")),
    _skill(r"stop|be quiet|shut up|never ?mind|cancel|enough|silence", _always("Okay.")),
)
"""In order: of two matches at one place the earlier skill counts."""
