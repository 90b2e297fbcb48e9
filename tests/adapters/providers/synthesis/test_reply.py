from __future__ import annotations

import anyio
import pytest

from voicechart.adapters.providers.synthesis import SpeechLimits, SpokenReply
from voicechart.adapters.providers.synthesis.track import SYNTHESIS
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.ports import SpeechUnit
from voicechart.engines.reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
)

pytestmark = pytest.mark.anyio


def audio(start: int, samples: int = 160) -> Synthesized:
    return Synthesized(AudioFrame(bytes(2 * samples), SPEECH_FORMAT, start), 0)


async def nothing(reply: SpokenReply) -> None:
    await anyio.sleep_forever()


async def rest(reply: SpokenReply) -> list[SynthesisReport]:
    with anyio.fail_after(5):
        return [report async for report in reply.reports()]


async def test_a_unit_of_any_length_may_wait_and_a_further_one_only_within_the_bound() -> None:
    reply = SpokenReply(nothing, SpeechLimits(max_unit_chars=20, max_waiting_chars=10, write_s=0.01))
    await reply.write(SpeechUnit(0, "x" * 20))
    with pytest.raises(PortError, match="backpressure"):
        await reply.write(SpeechUnit(1, "y"))
    with pytest.raises(PortError, match="unit_too_long"):
        await reply.write(SpeechUnit(1, "y" * 21))
    await reply.aclose()


async def test_what_waits_may_fill_the_bound_exactly() -> None:
    reply = SpokenReply(nothing, SpeechLimits(max_waiting_chars=10, write_s=0.01))
    await reply.write(SpeechUnit(0, "x" * 6))
    await reply.write(SpeechUnit(1, "y" * 4))
    with pytest.raises(PortError, match="backpressure"):
        await reply.write(SpeechUnit(2, "z"))
    await reply.aclose()


async def test_the_network_is_not_read_while_too_much_is_unread() -> None:
    delivered = 0

    async def speak(reply: SpokenReply) -> None:
        nonlocal delivered
        for place in range(5):
            await reply.deliver([audio(160 * place)])
            delivered += 1

    reply = SpokenReply(speak, SpeechLimits(max_unread_bytes=640))
    reports = reply.reports()
    with anyio.fail_after(5):
        assert isinstance(await anext(reports), Synthesized)
        await anyio.wait_all_tasks_blocked()
        assert delivered == 3, "two of 320 bytes fit; the third waits"
        assert [type(report) async for report in reports] == [Synthesized] * 4 + [SynthesisEnded]
    await reply.aclose()


async def test_a_reader_that_takes_nothing_fails_the_reply() -> None:
    async def speak(reply: SpokenReply) -> None:
        await reply.deliver([audio(0)])

    reply = SpokenReply(speak, SpeechLimits(max_unread_bytes=100, read_s=0.01))
    await anyio.sleep(0.05)
    _, ended = await rest(reply)
    assert isinstance(ended, SynthesisErrored)
    assert ended.error.code == "reader_stalled"
    await reply.aclose()


async def test_what_is_delivered_after_a_cancel_is_dropped() -> None:
    async def speak(reply: SpokenReply) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await reply.deliver([audio(0)])

    reply = SpokenReply(speak, SpeechLimits())
    await anyio.wait_all_tasks_blocked()
    reply.cancel("barge-in")
    await anyio.wait_all_tasks_blocked()
    assert await rest(reply) == [SynthesisStopped()]
    await reply.aclose()


async def test_a_cancel_drops_what_was_made_and_not_read_even_when_all_was_made() -> None:
    async def speak(reply: SpokenReply) -> None:
        await reply.deliver([audio(0), audio(160)])

    reply = SpokenReply(speak, SpeechLimits())
    await anyio.wait_all_tasks_blocked()
    reply.cancel("barge-in")
    assert await rest(reply) == [SynthesisStopped()]
    await reply.aclose()


async def test_after_something_was_heard_no_failure_is_retryable() -> None:
    async def speak(reply: SpokenReply) -> None:
        if await reply.next_unit() is not None:
            await reply.deliver([audio(0)])
        raise SYNTHESIS.failure("connection_lost", "it broke", retryable=True)

    mute, heard = SpokenReply(speak, SpeechLimits()), SpokenReply(speak, SpeechLimits())
    await heard.write(SpeechUnit(0, "Hi."))
    await mute.finish_input()
    for reply, partial in ((mute, False), (heard, True)):
        ended = (await rest(reply))[-1]
        assert isinstance(ended, SynthesisErrored)
        assert (ended.error.partial_output, ended.error.retryable) == (partial, not partial)
        await reply.aclose()


async def test_whatever_the_speaking_raises_nobody_waits_for_ever() -> None:
    async def speak(reply: SpokenReply) -> None:
        raise ZeroDivisionError

    reply = SpokenReply(speak, SpeechLimits())
    (ended,) = await rest(reply)
    assert isinstance(ended, SynthesisErrored)
    assert ended.error.code == "port_broken"
    await reply.aclose()


async def test_closing_does_not_wait_for_a_goodbye_that_nobody_takes() -> None:
    async def speak(reply: SpokenReply) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep_forever()

    reply = SpokenReply(speak, SpeechLimits(close_s=0.01))
    await anyio.wait_all_tasks_blocked()
    with anyio.fail_after(5):
        await reply.aclose()
    assert await rest(reply) == [SynthesisStopped()]
