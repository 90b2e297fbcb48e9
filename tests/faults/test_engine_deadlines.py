"""Every deadline and every bound of the engines: what is stuck is given up in time, told, and leaves nothing behind.

One row a fault. Whatever is stuck, the user can be answered afterwards; where nothing can go on, the session is closed
with a typed error. Time is virtual, so that an hour of hanging costs nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import pytest
from pydantic import BaseModel
from trio.testing import MockClock

from voicechart.audio.formats import AudioFrame
from voicechart.engines import Tool
from voicechart.engines.ports import GenerationRequest, RecognitionRequest, SpeechUnit, SynthesisRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, RecognitionReport, TextDelta, ToolCallProposed
from voicechart.engines.testing import (
    HANDS_FREE,
    LinkScript,
    OnCancel,
    Rehearsal,
    Script,
    ScriptedDevice,
    ScriptedGenerationStream,
    ScriptedLink,
    ScriptedRecognitionStream,
    ScriptedRecognizer,
    ScriptedResponder,
    ScriptedSynthesisStream,
    ScriptedSynthesizer,
    SpeakerScript,
    SpeechScript,
    Step,
    hears,
    says,
    scripted_error,
)
from voicechart.statecharts.facts import SpeechProgressed
from voicechart.statecharts.policies import ConnectionPolicy, GenerationPolicy, PlaybackPolicy, Policies, TurnPolicy
from voicechart.statecharts.published import StreamError

pytestmark = pytest.mark.anyio
FOR_EVER_MS = 3_600_000
STORY = "Once upon a time there was a clock. It told the time to nobody at all. And so it was glad for evermore."
POLICIES = Policies(
    interruption=HANDS_FREE.interruption,
    turn=TurnPolicy(finalization_ms=3_000, input_timeout_ms=5_000),
    generation=GenerationPolicy(
        stall_ms=4_000, cancel_ack_ms=1_000, tool_ms=2_000, first_audio_ms=3_000, max_attempts=1
    ),
    playback=PlaybackPolicy(stall_ms=2_000, stop_receipt_ms=1_000),
    connection=ConnectionPolicy(connect_ms=5_000, shutdown_ms=1_000),
)
Scripts = Script[GenerationReport]


@pytest.fixture
def anyio_backend() -> object:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


async def hang(*_: object) -> str:
    await anyio.sleep_forever()
    raise AssertionError


class Nothing(BaseModel):
    pass


CALLS_A_TOOL: Scripts = Script([Step(ToolCallProposed("c1", "hang", "{}")), Step(GenerationEnded(awaits_tools=True))])
NEVER_OPENS: Scripts = Script(open_after_ms=FOR_EVER_MS)
NEVER_SPEAKS: Scripts = Script([Step(TextDelta("Once"), wait_ms=FOR_EVER_MS)])
STOPS_SPEAKING: Scripts = Script([Step(TextDelta("Once upon a time. ")), Step(GenerationEnded(), wait_ms=FOR_EVER_MS)])
CUT_OFF: Scripts = Script(says(STORY, ends=False))
REFUSED: Scripts = Script(open_error=scripted_error("auth_refused"))


class _HangingOnWrite(ScriptedSynthesisStream):
    async def write(self, unit: SpeechUnit) -> None:
        await anyio.sleep_forever()


class _HangingOnClose(ScriptedSynthesisStream):
    async def aclose(self) -> None:
        await anyio.sleep_forever()


class _Synthesizer(ScriptedSynthesizer):
    """Its first stream is of another kind."""

    def __init__(self, kind: type[ScriptedSynthesisStream]) -> None:
        super().__init__()
        self._kind = kind

    async def open(self, request: SynthesisRequest) -> ScriptedSynthesisStream:
        if self.opened:
            return await super().open(request)
        self.opened += 1
        return self._kind(request, SpeechScript(), self.format)


@dataclass
class Fault:
    """What is broken, and by when the reply to the first turn has ended. Everything made anew for each test."""

    within_s: float
    error: str | None
    responder: Callable[[], Scripts] = field(default=lambda: Script(says(STORY)))
    synthesizer: Callable[[], ScriptedSynthesizer] = ScriptedSynthesizer
    speaker: SpeakerScript = field(default_factory=SpeakerScript)


FAULTS = {
    "the model never opens": Fault(4.1, "generation_stalled", responder=lambda: NEVER_OPENS),
    "the model never says a word": Fault(4.1, "generation_stalled", responder=lambda: NEVER_SPEAKS),
    "the model stops in the middle": Fault(4.1, "generation_stalled", responder=lambda: STOPS_SPEAKING),
    "the model's stream is cut off": Fault(8.0, "model_cut_off", responder=lambda: CUT_OFF),
    "the model refuses": Fault(0.1, "auth_refused", responder=lambda: REFUSED),
    "a tool hangs": Fault(8.0, None, responder=lambda: CALLS_A_TOOL),
    "the synthesiser never opens": Fault(
        3.1, None, synthesizer=lambda: ScriptedSynthesizer(SpeechScript(open_after_ms=FOR_EVER_MS), SpeechScript())
    ),
    "the synthesiser takes no text": Fault(3.1, None, synthesizer=lambda: _Synthesizer(_HangingOnWrite)),
    "the synthesiser makes no sound": Fault(
        3.1,
        None,
        synthesizer=lambda: ScriptedSynthesizer(SpeechScript(first_frame_after_ms=FOR_EVER_MS), SpeechScript()),
    ),
    "the synthesiser stops in the middle": Fault(
        5.0, "playback_stalled", synthesizer=lambda: ScriptedSynthesizer(SpeechScript(frame_every_ms=FOR_EVER_MS))
    ),
    "the synthesiser is never released": Fault(8.0, None, synthesizer=lambda: _Synthesizer(_HangingOnClose)),
    "the speaker stands still": Fault(
        3.0, "playback_stalled", speaker=SpeakerScript(stands_still=True, write_deadline_ms=60_000)
    ),
    "the speaker makes no room": Fault(
        1.5, "speaker_stalled", speaker=SpeakerScript(stands_still=True, write_deadline_ms=1_000)
    ),
    "the speaker tells nothing": Fault(3.0, "playback_stalled", speaker=SpeakerScript(receipts=False)),
    "the speaker refuses audio": Fault(
        0.1, "queue_refused", speaker=SpeakerScript(write_error=scripted_error("queue_refused", "playback"))
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_reply_that_cannot_go_on_ends_in_time_and_is_told(fault: Fault) -> None:
    rehearsal = Rehearsal(
        device=ScriptedDevice(LinkScript(speaker=fault.speaker)),
        responder=ScriptedResponder(fault.responder(), answers=lambda _: Script(says("Very well."))),
        synthesizer=fault.synthesizer(),
        tools=(Tool("hang", "Never ends.", Nothing, hang),),
        policies=POLICIES,
    )
    async with rehearsal.running():
        began_s = anyio.current_time()
        rehearsal.say("tell me a story")
        await rehearsal.until("delivery.recorded")
        await rehearsal.until("response.terminal")
        assert anyio.current_time() - began_s <= fault.within_s
        rehearsal.say("and now")
        await rehearsal.until("response.terminal", len(rehearsal.of("response.started")) + 1)
    errors = [e.payload.error.code for e in rehearsal.of("stream.error") if isinstance(e.payload, StreamError)]
    assert fault.error is None or fault.error in errors
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is None
    assert rehearsal.left_behind == ()


@pytest.mark.parametrize("on_cancel", [OnCancel.HANG, OnCancel.IGNORE])
async def test_a_cancel_that_nobody_acknowledges_is_given_up_in_time_and_the_next_turn_answered(
    on_cancel: OnCancel,
) -> None:
    responder = ScriptedResponder(
        Script(says(STORY, token_ms=1_000), on_cancel=on_cancel), answers=lambda _: Script(says("Very well."))
    )
    rehearsal = Rehearsal(responder=responder, policies=POLICIES)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("text.delta", 2)
        began_s = anyio.current_time()
        rehearsal.say("something else")
        await rehearsal.until("response.terminal")
        assert anyio.current_time() - began_s <= 1.1
        await rehearsal.until("playback.drained")
    assert responder.streams[0].closed
    assert rehearsal.replies[-1].generated == "Very well."
    assert rehearsal.left_behind == ()


async def test_a_stop_that_is_never_confirmed_is_recorded_as_unknown_in_time() -> None:
    rehearsal = Rehearsal(
        device=ScriptedDevice(LinkScript(speaker=SpeakerScript(stop_receipts=False))),
        responder=ScriptedResponder(Script(says(STORY))),
        policies=POLICIES,
    )
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress")
        began_s = anyio.current_time()
        rehearsal.press_button()
        recorded = await rehearsal.until("delivery.recorded")
        assert anyio.current_time() - began_s == pytest.approx(1.0, abs=0.01)
    assert recorded.as_json()["payload"]["status"] == "unknown"


# -- recognition ---------------------------------------------------------------------------------------------------


class _HangingOnAudio(ScriptedRecognitionStream):
    async def write(self, frame: AudioFrame) -> None:
        await anyio.sleep_forever()


class _HangingOnFinish(ScriptedRecognitionStream):
    async def finish_input(self) -> None:
        await anyio.sleep_forever()


class _Recognizer(ScriptedRecognizer):
    def __init__(self, kind: type[ScriptedRecognitionStream]) -> None:
        super().__init__()
        self._kind = kind

    async def open(self, request: RecognitionRequest) -> ScriptedRecognitionStream:
        stream = self._kind(request, Script(hears("what time is it")))
        self.streams.append(stream)
        return stream


NEVER_HEARS: Script[RecognitionReport] = Script(open_after_ms=FOR_EVER_MS)
RECOGNIZERS: dict[str, Callable[[], ScriptedRecognizer]] = {
    "never opens": lambda: ScriptedRecognizer(NEVER_HEARS, NEVER_HEARS),
    "takes no audio": lambda: _Recognizer(_HangingOnAudio),
    "never ends its input": lambda: _Recognizer(_HangingOnFinish),
    "says nothing": lambda: ScriptedRecognizer(*[Script([Step(hears("x")[0].report, wait_ms=FOR_EVER_MS)])] * 2),
}


@pytest.mark.parametrize("recognizer", RECOGNIZERS.values(), ids=RECOGNIZERS)
@pytest.mark.parametrize("speech_ms", [600, 4_000])
async def test_an_utterance_that_cannot_be_recognised_is_given_up_in_time_and_the_next_turn_answered(
    recognizer: Callable[[], ScriptedRecognizer], speech_ms: int
) -> None:
    rehearsal = Rehearsal(
        recognizer=recognizer(),
        responder=ScriptedResponder(answers=lambda _: Script(says("Very well."))),
        policies=POLICIES,
    )
    async with rehearsal.running():
        device = rehearsal.engine.ports.device
        assert isinstance(device, ScriptedDevice)
        await device.microphone.listen(speech_ms, 1_000)
        await device.microphone.listen(700)
        ended_s = anyio.current_time()
        await rehearsal.until_true(lambda: bool(rehearsal.of("turn.discarded") or rehearsal.of("turn.committed")))
        # At most the transcript's deadline, and once more for the batch attempt.
        assert anyio.current_time() - ended_s <= 6.1
        rehearsal.say("hello")
        await rehearsal.until("playback.drained")
    assert rehearsal.left_behind == ()


# -- the session ---------------------------------------------------------------------------------------------------


async def test_an_adapter_that_floods_the_inbox_closes_the_session_with_a_typed_error() -> None:
    rehearsal = Rehearsal(policies=POLICIES)
    async with rehearsal.running():
        for at in range(513):
            rehearsal.tell(SpeechProgressed(at=at, speech_ms=0))
        await rehearsal.until("session.closed")
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code == "inbox_full"
    assert rehearsal.left_behind == ()


class _NeverLeft(ScriptedDevice):
    """A device whose session takes for ever to be left, unless it is made to."""

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[ScriptedLink, None]:
        async with super().connect() as link:
            try:
                yield link
            finally:
                await anyio.sleep_forever()


class _NeverClosed(ScriptedResponder):
    async def aclose(self) -> None:
        await anyio.sleep_forever()


@pytest.mark.parametrize(
    "ports", [{"device": _NeverLeft()}, {"responder": _NeverClosed(answers=lambda _: Script(says(STORY)))}]
)
async def test_a_port_that_does_not_let_go_does_not_keep_the_session_open(ports: dict[str, object]) -> None:
    rehearsal = Rehearsal(
        **{"responder": ScriptedResponder(Script(says(STORY))), **ports},  # type: ignore[arg-type]
        policies=POLICIES,
    )
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.started")
        began_s = anyio.current_time()
        rehearsal.session.close()
        await rehearsal.until_true(lambda: rehearsal.closed is not None)
        assert anyio.current_time() - began_s <= 3.1
    assert rehearsal.left_behind == ()


class _HangingGeneration(ScriptedGenerationStream):
    async def aclose(self) -> None:
        await anyio.sleep_forever()


class _HangingResponder(ScriptedResponder):
    async def open(self, request: GenerationRequest) -> ScriptedGenerationStream:
        self.requests.append(request)
        return _HangingGeneration(request, Script(says(STORY)))


async def test_a_stream_that_is_never_released_neither_keeps_the_reply_nor_the_session_open() -> None:
    rehearsal = Rehearsal(responder=_HangingResponder(), policies=POLICIES)
    async with rehearsal.running():
        for count in (1, 2):
            rehearsal.say("tell me a story")
            await rehearsal.until("playback.drained", count)
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is None
    assert rehearsal.left_behind == ()


async def test_a_conversation_that_is_lost_again_and_again_closes_when_no_device_is_left() -> None:
    gone = replace(scripted_error("audio_service_missing", "connection"), retryable=True)
    device = ScriptedDevice(LinkScript(), LinkScript(connect_error=gone))
    rehearsal = Rehearsal(device=device, responder=ScriptedResponder(Script(says(STORY))), policies=POLICIES)
    async with rehearsal.running():
        rehearsal.say("tell me a story")
        await rehearsal.until("playback.progress")
        began_s = anyio.current_time()
        device.speaker.lose(gone)
        await rehearsal.until("session.closed")
        assert anyio.current_time() - began_s <= POLICIES.connection.connect_ms / 1_000 + 0.1
    assert rehearsal.closed is not None
    assert rehearsal.closed.error is not None
    assert rehearsal.closed.error.code in ("audio_service_missing", "connect_timed_out")
    assert rehearsal.left_behind == ()
