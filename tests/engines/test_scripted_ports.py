"""The scripted ports keep virtual time, and misbehave only where the script says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

import anyio
import pytest
import trio.testing

from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.ports import GenerationRequest, Message, RecognitionRequest, SpeechUnit, SynthesisRequest
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationStopped,
    PortError,
    RecognitionEnded,
    SegmentFinal,
    SegmentHypothesis,
    SynthesisEnded,
    SynthesisErrored,
    Synthesized,
    TextDelta,
    UnitSynthesized,
)
from voicechart.engines.testing import (
    OnCancel,
    Script,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesizer,
    SpeechScript,
    Step,
    hears,
    marker,
    says,
    scripted_error,
)

T = TypeVar("T")
ON_VIRTUAL_TIME = pytest.mark.parametrize(
    "anyio_backend", [("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)})], ids=["virtual-time"]
)
REQUEST = GenerationRequest("r1", "a1", (Message("user", "tell me a story"),))


async def collect(reports: AsyncIterator[T]) -> list[T]:
    return [report async for report in reports]


def test_says_keeps_every_character_of_the_text() -> None:
    text = " It is  noon.\nTime for lunch. "
    deltas = [step.report.text for step in says(text) if isinstance(step.report, TextDelta)]
    assert "".join(deltas) == text


@pytest.mark.anyio
@ON_VIRTUAL_TIME
async def test_a_reply_takes_exactly_its_scripted_time() -> None:
    responder = ScriptedResponder(Script(says("one two three", token_ms=30_000, first_token_ms=5_000)))
    stream = await responder.open(REQUEST)
    began = anyio.current_time()
    reports = await collect(stream.reports())
    assert anyio.current_time() - began == pytest.approx(65.0)
    assert isinstance(reports[-1], GenerationEnded)
    assert responder.requests == [REQUEST]


@pytest.mark.anyio
@ON_VIRTUAL_TIME
async def test_a_cancel_is_acknowledged_as_late_as_the_script_says() -> None:
    responder = ScriptedResponder(Script(says("a long story", token_ms=60_000), acknowledge_after_ms=2_000))
    stream = await responder.open(REQUEST)
    stream.cancel("barge-in")
    began = anyio.current_time()
    assert await collect(stream.reports()) == [GenerationStopped()]
    assert anyio.current_time() - began == pytest.approx(2.0)
    assert stream.cancel_reason == "barge-in"


@pytest.mark.anyio
async def test_a_provider_that_ignores_the_cancel_goes_on() -> None:
    responder = ScriptedResponder(Script(says("still here"), on_cancel=OnCancel.IGNORE))
    stream = await responder.open(REQUEST)
    stream.cancel("barge-in")
    assert await collect(stream.reports()) == [TextDelta("still"), TextDelta(" here"), GenerationEnded()]


@pytest.mark.anyio
@ON_VIRTUAL_TIME
async def test_a_provider_that_hangs_after_a_cancel_ends_only_when_closed() -> None:
    responder = ScriptedResponder(Script(says("still here", token_ms=10), on_cancel=OnCancel.HANG))
    stream = await responder.open(REQUEST)
    stream.cancel("barge-in")
    received: list[object] = []

    async def read() -> None:
        received.extend(await collect(stream.reports()))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await anyio.sleep(3_600)
        assert received == []
        await stream.aclose()
    assert received == [GenerationStopped()]


@pytest.mark.anyio
async def test_a_gate_holds_a_step_until_the_test_opens_it() -> None:
    gate = anyio.Event()
    script = Script(steps=(Step(TextDelta("now"), gate=gate), Step(GenerationEnded())))
    stream = await ScriptedResponder(script).open(REQUEST)
    reports = stream.reports()
    async with anyio.create_task_group() as group:

        async def open_gate() -> None:
            gate.set()

        group.start_soon(open_gate)
        assert await anext(reports) == TextDelta("now")
    assert await collect(reports) == [GenerationEnded()]


@pytest.mark.anyio
async def test_a_script_without_a_terminal_report_ends_like_a_lost_connection() -> None:
    stream = await ScriptedResponder(Script(says("cut", ends=False))).open(REQUEST)
    assert await collect(stream.reports()) == [TextDelta("cut")]


@pytest.mark.anyio
async def test_a_responder_without_a_script_left_refuses() -> None:
    with pytest.raises(PortError, match="script_exhausted"):
        await ScriptedResponder().open(REQUEST)


@pytest.mark.anyio
async def test_a_responder_can_answer_from_the_request() -> None:
    responder = ScriptedResponder(answers=lambda request: Script(says(request.messages[-1].text.upper())))
    stream = await responder.open(REQUEST)
    texts = [report.text for report in await collect(stream.reports()) if isinstance(report, TextDelta)]
    assert "".join(texts) == "TELL ME A STORY"


@pytest.mark.anyio
async def test_hypotheses_come_as_the_audio_does() -> None:
    recognizer = ScriptedRecognizer(Script(hears("what time is it", after_samples=1_600)))
    stream = await recognizer.open(RecognitionRequest("u1", SPEECH_FORMAT))
    reports = stream.reports()
    await stream.write(AudioFrame(bytes(2 * 3_200), SPEECH_FORMAT))
    assert await anext(reports) == SegmentHypothesis("s1", 1, "what")
    assert await anext(reports) == SegmentHypothesis("s1", 2, "what time")
    await stream.write(AudioFrame(bytes(2 * 3_200), SPEECH_FORMAT, 3_200))
    await stream.finish_input()
    rest = await collect(reports)
    assert rest[-2:] == [SegmentFinal("s1", 5, "what time is it"), RecognitionEnded()]


@pytest.mark.anyio
async def test_every_sample_of_scripted_speech_tells_its_epoch_and_unit() -> None:
    synthesizer = ScriptedSynthesizer(SpeechScript(ms_per_char=10, frame_ms=30, word_times=True))
    stream = await synthesizer.open(SynthesisRequest("r1", output_epoch=7))
    await stream.write(SpeechUnit(0, "ab cd"))
    await stream.finish_input()
    reports = await collect(stream.reports())
    frames = [report.frame for report in reports if isinstance(report, Synthesized)]
    assert b"".join(frame.data for frame in frames) == marker(7, 0).to_bytes(2, "little") * 800
    unit = next(report for report in reports if isinstance(report, UnitSynthesized))
    assert [(word.text, word.start_sample, word.end_sample) for word in unit.words] == [
        ("ab", 0, 320),
        ("cd", 480, 800),
    ]
    assert reports[-1] == SynthesisEnded(800)


@pytest.mark.anyio
async def test_synthesis_fails_at_the_scripted_unit() -> None:
    failure = scripted_error("lost", "synthesis")
    synthesizer = ScriptedSynthesizer(SpeechScript(fails_at_unit=1, failure=failure))
    stream = await synthesizer.open(SynthesisRequest("r1", 1))
    await stream.write(SpeechUnit(0, "a"))
    await stream.write(SpeechUnit(1, "b"))
    reports = await collect(stream.reports())
    assert isinstance(reports[-2], UnitSynthesized)
    assert reports[-1] == SynthesisErrored(failure)


@pytest.mark.anyio
@ON_VIRTUAL_TIME
async def test_writing_units_that_nobody_reads_fails_after_the_deadline() -> None:
    stream = await ScriptedSynthesizer().open(SynthesisRequest("r1", 1))
    for index in range(16):
        await stream.write(SpeechUnit(index, "a"))
    with pytest.raises(PortError, match="backpressure"):
        await stream.write(SpeechUnit(16, "a"))
