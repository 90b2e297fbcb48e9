"""A timer of the companion rings by voice, once, in the session in which it was set."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as some
from trio.testing import MockClock

from voicechart.adapters.composition import CollectingResponder, make_cascade
from voicechart.adapters.composition.timers import MAX_TIMERS, SpokenTimers, in_words
from voicechart.adapters.configuration import parse_configuration
from voicechart.adapters.responders import PatternCompanion
from voicechart.engines.reports import PortError
from voicechart.engines.testing import Rehearsal

AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


def spoken(rehearsal: Rehearsal) -> list[str]:
    return [reply.generated for reply in rehearsal.replies]


@pytest.mark.anyio
async def test_the_companion_of_a_configuration_sets_a_timer_that_rings_by_voice() -> None:
    parts = make_cascade(parse_configuration(AUDIO), {})
    rehearsal = Rehearsal(responder=parts.responder.port)
    parts.timers.attach(rehearsal.session)
    async with rehearsal.running():
        rehearsal.say("set a timer for two minutes")
        await rehearsal.until("delivery.recorded")
        began_at_ns = rehearsal.now_ns
        await rehearsal.until("delivery.recorded", count=2)
        assert rehearsal.now_ns - began_at_ns > 100_000_000_000
    assert spoken(rehearsal) == ["I have set a timer for 2 minutes.", "Your timer for 2 minutes is over."]
    assert rehearsal.left_behind == ()


@pytest.mark.anyio
async def test_a_timer_that_has_not_rung_ends_with_its_session() -> None:
    timers = SpokenTimers()
    rehearsal = Rehearsal(responder=PatternCompanion(token_ms=0, start_timer=timers.start))
    timers.attach(rehearsal.session)
    async with rehearsal.running():
        timers.start(timedelta(hours=1))
    assert rehearsal.left_behind == ()
    assert spoken(rehearsal) == []


@pytest.mark.anyio
async def test_a_reply_that_is_begun_anew_sets_no_second_timer_and_a_later_one_does() -> None:
    timers = SpokenTimers()
    rehearsal = Rehearsal()
    timers.attach(rehearsal.session)
    async with rehearsal.running():
        timers.start(timedelta(minutes=1))
        timers.start(timedelta(minutes=1))
        await anyio.sleep(11)
        timers.start(timedelta(minutes=1))
        await rehearsal.until("delivery.recorded", count=2)
        await anyio.sleep(120)
    assert spoken(rehearsal) == ["Your timer for 1 minute is over."] * 2


@pytest.mark.anyio
async def test_so_many_timers_run_and_one_more_is_refused() -> None:
    timers = SpokenTimers()
    rehearsal = Rehearsal()
    timers.attach(rehearsal.session)
    async with rehearsal.running():
        for minutes in range(1, MAX_TIMERS + 1):
            timers.start(timedelta(minutes=minutes))
        with pytest.raises(PortError, match="too_many_timers"):
            timers.start(timedelta(hours=5))
        await rehearsal.until("delivery.recorded")
        timers.start(timedelta(hours=5))


def test_without_a_session_there_is_no_timer() -> None:
    with pytest.raises(PortError, match="no_session"):
        SpokenTimers().start(timedelta(seconds=1))


def test_a_collecting_companion_keeps_its_timers() -> None:
    parts = make_cascade(parse_configuration(f'{AUDIO}[connection]\nstreaming = "disabled"\n'), {})
    assert isinstance(parts.responder.port, CollectingResponder)


@given(some.integers(1, 86_400))
def test_a_duration_in_words_adds_up(seconds: int) -> None:
    seconds_of = {"hour": 3_600, "minute": 60, "second": 1}
    parts = in_words(timedelta(seconds=seconds)).split(" and ")
    assert sum(int(part.split()[0]) * seconds_of[part.split()[1].rstrip("s")] for part in parts) == seconds
    assert all(part.endswith("s") is not part.startswith("1 ") for part in parts)
