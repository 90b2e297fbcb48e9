"""What the companion understands, says and admits."""

from __future__ import annotations

from datetime import datetime, timedelta

import anyio
import pytest
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.responders import PatternCompanion
from voicechart.adapters.responders.companion_skills import Situation, answer_to
from voicechart.adapters.responders.numbers import number_words, parse_number
from voicechart.engines.ports import GenerationRequest, Message
from voicechart.engines.reports import GenerationEnded, PortError, TextDelta

NOW = datetime(2026, 11, 30, 15, 4)
WORDS_A_MINUTE = 200
"""A hurried speaker."""


def answer(heard: str, *, timers: bool = True, last_reply: str | None = None) -> str:
    return answer_to(heard, Situation(NOW, timers, last_reply)).text


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ("What time is it?", "It is 3:04 in the afternoon."),
        ("what's the time", "It is 3:04 in the afternoon."),
        ("Do you know what time it is?", "It is 3:04 in the afternoon."),
        ("What day is it today?", "Today is Monday, November 30, 2026."),
        ("What’s the date?", "Today is Monday, November 30, 2026."),
        ("Please count to five.", "One, two, three, four, five."),
        ("please count to 5", "One, two, three, four, five."),
        ("Count from eight to 11!", "Eight, nine, ten, eleven."),
        ("Count down from 3 to 1", "Three, two, one."),
        ("Count to 101.", "I only count as far as one hundred."),
        ("What is seven times eight?", "7 times 8 is 56."),
        ("What's 7 x 8?", "7 times 8 is 56."),
        ("twenty-five plus thirty six", "25 plus 36 is 61."),
        ("100 - 250", "100 minus 250 is minus 150."),
        ("1,000 divided by 7", "1000 divided by 7 is 142, and 6 is left over."),
        ("6 / 3", "6 divided by 3 is 2."),
        ("4 divided by zero", "Nothing can be divided by zero."),
        ("Stop.", "Okay."),
        ("My name is John Doe.", "Nice to meet you, John Doe."),
        ("Thank you!", "You are welcome."),
        ("", "I did not hear any words."),
    ],
)
def test_what_is_asked_is_answered(heard: str, said: str) -> None:
    assert answer(heard) == said


@pytest.mark.parametrize("heard", ["Tell me a long story.", "Tell me the long story", "another story please"])
def test_a_story_takes_more_than_a_minute_to_tell(heard: str) -> None:
    assert len(answer(heard).split()) / WORDS_A_MINUTE * 60 > 60


@pytest.mark.parametrize("heard", ["Who are you?", "what's your name", "Who're you?"])
def test_it_says_that_it_is_a_program(heard: str) -> None:
    assert "program" in answer(heard)
    assert "not a language model" in answer(heard)


def test_it_names_what_it_can_do() -> None:
    for skill in ("time", "count", "timer", "story"):
        assert skill in answer("What can you do?")


def test_it_says_what_it_heard_when_it_does_not_understand() -> None:
    assert answer("Sing the blues.").startswith("I heard: Sing the blues. I do not understand that.")


def test_a_long_unknown_sentence_is_not_read_back_whole() -> None:
    assert len(answer("blah " * 500)) < 300


@pytest.mark.parametrize(
    ("heard", "begins"),
    [
        ("Stop. What time is it?", "It is 3:04"),
        ("Tell me a story. No, stop.", "Okay."),
        ("What time is it? Tell me a long story.", "Once upon a time"),
    ],
)
def test_of_several_wishes_the_last_counts(heard: str, begins: str) -> None:
    assert answer(heard).startswith(begins)


def test_it_repeats_what_it_said_before() -> None:
    assert answer("Say that again.", last_reply="It is noon.") == "It is noon."
    assert answer("Say that again.") == "I have not said anything yet."


@pytest.mark.parametrize(
    ("hour", "said"),
    [
        (0, "12:04 in the morning"),
        (11, "11:04 in the morning"),
        (12, "12:04 in the afternoon"),
        (18, "6:04 in the evening"),
    ],
)
def test_the_time_is_told_in_twelve_hours(hour: int, said: str) -> None:
    situation = Situation(NOW.replace(hour=hour), timers=False, last_reply=None)
    assert answer_to("what time is it", situation).text == f"It is {said}."


@pytest.mark.parametrize(
    ("heard", "duration"),
    [
        ("Set a timer for ten seconds.", timedelta(seconds=10)),
        ("set a timer for 10 minutes", timedelta(minutes=10)),
        ("Set a timer for an hour", timedelta(hours=1)),
        ("five minute timer", timedelta(minutes=5)),
        ("set a timer for 24 hours", timedelta(hours=24)),
    ],
)
def test_a_timer_is_asked_for_with_its_duration(heard: str, duration: timedelta) -> None:
    assert answer_to(heard, Situation(NOW, timers=True, last_reply=None)).timer == duration


@pytest.mark.parametrize("heard", ["set a timer for 0 seconds", "set a timer for 25 hours", "999999999 hour timer"])
def test_a_timer_outside_its_bounds_is_refused(heard: str) -> None:
    refused = answer_to(heard, Situation(NOW, timers=True, last_reply=None))
    assert refused.timer is None
    assert refused.text == "I can set timers from one second to one day."


def test_it_does_not_pretend_to_set_a_timer_that_nothing_can_ring() -> None:
    unable = answer_to("set a timer for 5 minutes", Situation(NOW, timers=False, last_reply=None))
    assert unable.timer is None
    assert "I have not set one" in unable.text


@given(st.text(max_size=200))
def test_any_text_gets_an_answer(heard: str) -> None:
    assert answer(heard)


@given(st.integers(0, 100))
def test_a_number_reads_back_as_it_is_said(number: int) -> None:
    assert parse_number(number_words(number)) == number
    assert answer(f"count from {number} to {number_words(number)}").lower() == f"{number_words(number)}."


def request(*turns: str) -> GenerationRequest:
    messages = tuple(Message("assistant" if index % 2 else "user", text) for index, text in enumerate(turns))
    return GenerationRequest("r1", "a1", messages)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "anyio_backend", [("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)})], ids=["virtual-time"]
)
async def test_a_reply_is_streamed_a_word_at_a_time() -> None:
    companion = PatternCompanion(token_ms=30, wall_clock=lambda: NOW)
    stream = await companion.open(request("What time is it?"))
    began = anyio.current_time()
    deltas = [report.text async for report in stream.reports() if isinstance(report, TextDelta)]
    assert deltas == ["It", " is", " 3:04", " in", " the", " afternoon."]
    assert anyio.current_time() - began == pytest.approx(6 * 0.03)


@pytest.mark.anyio
async def test_a_timer_is_started_once_when_the_reply_begins() -> None:
    started: list[timedelta] = []
    companion = PatternCompanion(token_ms=0, wall_clock=lambda: NOW, start_timer=started.append)
    stream = await companion.open(request("Set a timer for ten seconds."))
    assert started == [timedelta(seconds=10)]
    assert [report async for report in stream.reports()][-1] == GenerationEnded()
    assert started == [timedelta(seconds=10)]


@pytest.mark.anyio
async def test_the_same_request_gets_the_same_reply() -> None:
    companion = PatternCompanion(token_ms=0, wall_clock=lambda: NOW)
    replies = [
        [report async for report in (await companion.open(request("Tell me a story."))).reports()] for _ in range(2)
    ]
    assert replies[0] == replies[1]


@pytest.mark.anyio
async def test_it_answers_the_users_last_turn() -> None:
    companion = PatternCompanion(token_ms=0, wall_clock=lambda: NOW)
    stream = await companion.open(request("Tell me a story.", "Once upon", "Count to two."))
    deltas = [report.text async for report in stream.reports() if isinstance(report, TextDelta)]
    assert "".join(deltas) == "One, two."


@pytest.mark.anyio
async def test_a_request_without_a_turn_of_the_user_is_refused() -> None:
    with pytest.raises(PortError, match="no_user_turn"):
        await PatternCompanion().open(GenerationRequest("r1", "a1", (Message("system", "Be kind."),)))


@pytest.mark.parametrize("token_ms", [-1, 1_001])
def test_a_pace_outside_its_bounds_is_refused(token_ms: float) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        PatternCompanion(token_ms=token_ms)
