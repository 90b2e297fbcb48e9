"""Known traps of the recognition services, each with the outcome that is right. The numbers are those of the list in
`tests/conformance/test_trap_index.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.recognition import Dialect, Heard, RecognitionLimits, SocketRecognizer
from voicechart.adapters.providers.recognizers import assemblyai, dashscope, deepgram, qwen_realtime_transcription
from voicechart.adapters.testing import ScriptedSocketServer, SocketPeer
from voicechart.audio.formats import SPEECH_FORMAT, AudioFrame
from voicechart.engines.ports import RecognitionRequest
from voicechart.engines.reports import (
    PortError,
    RecognitionEnded,
    RecognitionErrored,
    RecognitionReport,
    SegmentFinal,
    SegmentHypothesis,
    UtteranceEnded,
)

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
REQUEST = RecognitionRequest("u1", SPEECH_FORMAT)
Json = dict[str, JsonValue]
BEGIN: Json = {"type": "Begin", "id": "s", "expires_at": 1_900_000_000}
TERMINATION: Json = {"type": "Termination", "audio_duration_seconds": 1, "session_duration_seconds": 1}
METADATA: Json = {"type": "Metadata"}


def all_heard(dialect: Dialect, *messages: Json) -> list[Heard]:
    return [heard for message in messages for heard in dialect.take(message)]


def texts(heard: list[Heard]) -> list[str]:
    """Finals, and "." for the end of an utterance."""
    return [
        one.text if isinstance(one, SegmentFinal) else "."
        for one in heard
        if isinstance(one, SegmentFinal | UtteranceEnded)
    ]


async def spoken(recognizer: SocketRecognizer, *, samples: int = 3_200, finish: bool = True) -> list[RecognitionReport]:
    """The reports of an utterance of silence."""
    with anyio.fail_after(10):
        stream = await recognizer.open(REQUEST)
        for start in range(0, samples, 320):
            await stream.write(AudioFrame(bytes(640), SPEECH_FORMAT, start))
        if finish:
            await stream.finish_input()
        reports = [report async for report in stream.reports()]
        await stream.aclose()
    await recognizer.aclose()
    return reports


async def says_nothing(peer: SocketPeer) -> None:
    await peer.hung_up()


def limited(make: Callable[[RecognitionRequest], Dialect], limits: RecognitionLimits) -> SocketRecognizer:
    return SocketRecognizer(make, deepgram.OFFERS, limits=limits)


# -- Deepgram ------------------------------------------------------------------------------------------------------


def deepgram_dialect(base_url: str = "ws://127.0.0.1:1") -> Callable[[RecognitionRequest], deepgram.DeepgramDialect]:
    settings = deepgram.DeepgramSettings(base_url=base_url)
    return lambda request: deepgram.DeepgramDialect(request, settings, KEY)


def results(text: str, start: float, duration: float, **flags: JsonValue) -> Json:
    words: list[JsonValue] = [
        {"word": text, "start": start, "end": start + duration, "confidence": 0.9},
    ]
    best: Json = {"transcript": text, "confidence": 0.9, "words": words if text else []}
    return {
        "type": "Results",
        "start": start,
        "duration": duration,
        "is_final": True,
        "speech_final": False,
        "channel": {"alternatives": [best]},
        **flags,
    }


def utterance_end(last_word_end: float) -> Json:
    return {"type": "UtteranceEnd", "channel": [0, 1], "last_word_end": last_word_end}


def test_utterance_end_closes_what_speech_final_never_does() -> None:
    """Trap 39."""
    heard = all_heard(deepgram_dialect()(REQUEST), results("stop", 0.0, 0.5), utterance_end(0.5))
    assert texts(heard) == ["stop", "."]


def test_silence_in_the_results_closes_what_neither_message_does() -> None:
    """Trap 39: with `utterance_end_ms` = 1,000 and half a second of grace."""
    dialect = deepgram_dialect()(REQUEST)
    assert texts(all_heard(dialect, results("stop", 0.0, 0.5), results("", 0.5, 1.4))) == ["stop"]
    assert texts(all_heard(dialect, results("", 1.9, 0.1), results("", 2.0, 5.0))) == ["."]


def test_an_empty_final_is_no_turn() -> None:
    """Trap 40."""
    assert all_heard(deepgram_dialect()(REQUEST), results("", 0.0, 1.0, speech_final=True)) == []


def test_an_empty_final_closes_a_pending_utterance() -> None:
    """Trap 40."""
    heard = all_heard(deepgram_dialect()(REQUEST), results("stop", 0.0, 0.5), results("", 0.5, 0.5, speech_final=True))
    assert texts(heard) == ["stop", "."]


def test_both_ends_of_an_utterance_are_one_end() -> None:
    """Trap 41."""
    heard = all_heard(deepgram_dialect()(REQUEST), results("stop", 0.0, 0.5, speech_final=True), utterance_end(0.5))
    assert texts(heard) == ["stop", "."]


def test_an_end_from_before_the_last_word_is_ignored() -> None:
    """Trap 41."""
    dialect = deepgram_dialect()(REQUEST)
    assert texts(all_heard(dialect, results("stop", 0.0, 0.5), results("now", 0.5, 0.5), utterance_end(0.5))) == [
        "stop",
        "now",
    ]
    assert texts(all_heard(dialect, utterance_end(1.0))) == ["."]


async def test_finalize_without_an_answer_ends_at_a_deadline() -> None:
    """Trap 42: `from_finalize` is not guaranteed, and here nothing else comes either."""
    async with ScriptedSocketServer(says_nothing).running() as base_url:
        limits = RecognitionLimits(finish_s=0.05)
        reports = await spoken(limited(deepgram_dialect(base_url), limits))
    assert [type(report) for report in reports] == [RecognitionErrored]
    (failed,) = reports
    assert isinstance(failed, RecognitionErrored)
    assert (failed.error.code, failed.error.retryable) == ("provider_silent", True)


async def test_finalize_without_an_answer_is_no_loss_when_the_rest_comes() -> None:
    """Trap 42: CloseStream, which follows at once, brings the finals and Metadata."""

    async def script(peer: SocketPeer) -> None:
        await peer.skip_to({"type": "CloseStream"})
        await peer.send_json(results("stop", 0.0, 0.2))
        await peer.send_json(METADATA)

    async with ScriptedSocketServer(script).running() as base_url:
        reports = await spoken(limited(deepgram_dialect(base_url), RecognitionLimits()))
    assert [getattr(report, "text", None) for report in reports] == ["stop", None]
    assert reports[-1] == RecognitionEnded()


def test_finalize_does_not_mean_that_the_utterance_is_over() -> None:
    """Trap 42: it was we who wanted the end."""
    dialect = deepgram_dialect()(REQUEST)
    dialect.finishing(True)
    assert texts(all_heard(dialect, results("stop", 0.0, 0.5, from_finalize=True))) == ["stop"]
    assert dialect.is_complete


async def test_keep_alive_is_a_text_message() -> None:
    """Trap 43."""

    async def script(peer: SocketPeer) -> None:
        for _ in range(2):
            message = await peer.expect({"type": "KeepAlive"})
            assert message.is_text
        await peer.close(1011)

    async with ScriptedSocketServer(script).running() as base_url:
        limits = RecognitionLimits(keep_alive_s=0.02)
        reports = await spoken(limited(deepgram_dialect(base_url), limits), samples=0, finish=False)
    assert isinstance(reports[-1], RecognitionErrored)


def test_a_kind_that_nobody_knows_is_ignored_and_noted(caplog: pytest.LogCaptureFixture) -> None:
    """Trap 44."""
    caplog.set_level("INFO")
    dialect = deepgram_dialect()(REQUEST)
    assert all_heard(dialect, {"type": "Mood", "mood": KEY}, {"type": "Mood"}, {"foo": 1}) == []
    assert [record.getMessage() for record in caplog.records] == [
        "DeepgramDialect: ignored a message of the unknown kind Mood",
        "DeepgramDialect: ignored a message of the unknown kind without a name",
    ]


# -- AssemblyAI ----------------------------------------------------------------------------------------------------


def assemblyai_dialect(
    base_url: str = "ws://127.0.0.1:1", *, format_turns: bool = True
) -> Callable[[RecognitionRequest], assemblyai.AssemblyAIDialect]:
    settings = assemblyai.AssemblyAISettings(base_url=base_url, format_turns=format_turns)
    return lambda request: assemblyai.AssemblyAIDialect(request, settings, KEY)


def turn(*words: str, final: int = 0, transcript: str = "", end: bool = False, formatted: bool = False) -> Json:
    told: list[JsonValue] = [
        {"text": word, "start": 100 * place, "end": 100 * place + 90, "confidence": 0.9, "word_is_final": place < final}
        for place, word in enumerate(words)
    ]
    return {
        "type": "Turn",
        "turn_order": 0,
        "turn_is_formatted": formatted,
        "end_of_turn": end,
        "transcript": transcript,
        "end_of_turn_confidence": 0.5,
        "words": told,
    }


def test_a_hypothesis_is_made_of_words_that_are_not_final_yet() -> None:
    """Trap 45: `transcript` is empty all the while."""
    dialect = assemblyai_dialect(format_turns=False)(REQUEST)
    first, second = all_heard(dialect, turn("turn"), turn("turn", "on", final=1, transcript="turn"))
    assert isinstance(first, SegmentHypothesis)
    assert isinstance(second, SegmentHypothesis)
    assert (first.text, first.stable_chars) == ("turn", 0)
    assert (second.text, second.stable_chars) == ("turn on", len("turn"))


def test_an_unformatted_and_a_formatted_end_are_one_final_in_its_second_revision() -> None:
    """Trap 46."""
    heard = all_heard(
        assemblyai_dialect()(REQUEST),
        turn("stop", final=1, transcript="stop", end=True),
        turn("Stop.", final=1, transcript="Stop.", end=True, formatted=True),
    )
    finals = [one for one in heard if isinstance(one, SegmentFinal)]
    assert [(one.text, one.revision) for one in finals] == [("Stop.", 2)]
    assert heard.count(UtteranceEnded()) == 1


async def test_audio_goes_out_in_pieces_of_50_to_1000_ms() -> None:
    """Trap 47: whatever the length of the frames that come in, the last piece included."""

    async def script(peer: SocketPeer) -> None:
        await peer.send_json(BEGIN)
        await peer.skip_to({"type": "Terminate"})
        await peer.send_json(TERMINATION)

    server = ScriptedSocketServer(script)
    lengths = [320, 16, 20_000, 1, 640, 7]
    async with server.running() as base_url:
        recognizer = limited(assemblyai_dialect(base_url), RecognitionLimits())
        stream = await recognizer.open(REQUEST)
        position = 0
        for samples in lengths:
            await stream.write(AudioFrame(bytes(2 * samples), SPEECH_FORMAT, position))
            position += samples
        await stream.finish_input()
        assert [report async for report in stream.reports()] == [RecognitionEnded()]
        await recognizer.aclose()
    pieces = [len(message.data) // 2 for message in server.peers[0].received if not message.is_text]
    assert all(800 <= samples <= 16_000 for samples in pieces), pieces
    assert sum(lengths) <= sum(pieces) < sum(lengths) + 800


async def test_turns_in_flight_are_heard_after_terminate() -> None:
    """Trap 48."""

    async def script(peer: SocketPeer) -> None:
        await peer.send_json(BEGIN)
        await peer.skip_to({"type": "Terminate"})
        await peer.send_json(turn("Stop.", final=1, transcript="Stop.", end=True, formatted=True))
        await peer.send_json(TERMINATION)

    async with ScriptedSocketServer(script).running() as base_url:
        reports = await spoken(limited(assemblyai_dialect(base_url), RecognitionLimits()))
    assert [report.text for report in reports if isinstance(report, SegmentFinal)] == ["Stop."]
    assert reports[-1] == RecognitionEnded()


def test_a_key_that_only_the_documentation_knows_changes_nothing() -> None:
    """Trap 49."""
    told = turn("Stop.", final=1, transcript="Stop.", end=True, formatted=True)
    assert texts(all_heard(assemblyai_dialect()(REQUEST), {**told, "utterance": ""})) == ["Stop.", "."]


# -- DashScope -----------------------------------------------------------------------------------------------------


def dashscope_dialect(
    base_url: str = "ws://127.0.0.1:1",
) -> Callable[[RecognitionRequest], dashscope.DashScopeDialect]:
    settings = dashscope.DashScopeSettings(base_url=base_url)
    return lambda request: dashscope.DashScopeDialect(request, settings, KEY, "task-1")


def event(name: str, payload: Json | None = None, task_id: str = "task-1", **header: JsonValue) -> Json:
    return {"header": {"task_id": task_id, "event": name, **header}, "payload": payload or {}}


def sentence(text: str, **fields: JsonValue) -> Json:
    told: Json = {"sentence_id": 1, "begin_time": 0, "end_time": None, "text": text, "words": [], **fields}
    return event("result-generated", {"output": {"sentence": told}})


async def test_no_audio_goes_out_before_the_task_has_started() -> None:
    """Trap 57: `open` returns no earlier."""
    opened = anyio.Event()

    async def script(peer: SocketPeer) -> None:
        await peer.expect()
        assert len(peer.received) == 1
        assert not opened.is_set()
        await peer.send_json(event("task-started"))
        await peer.expect(bytes)
        await peer.skip_to(None)
        await peer.send_json(event("task-finished"))

    async with ScriptedSocketServer(script).running() as base_url:
        recognizer = limited(dashscope_dialect(base_url), RecognitionLimits())
        stream = await recognizer.open(REQUEST)
        opened.set()
        await stream.write(AudioFrame(bytes(3_200), SPEECH_FORMAT))
        await stream.finish_input()
        assert [report async for report in stream.reports()] == [RecognitionEnded()]
        await recognizer.aclose()


async def test_a_task_that_never_starts_is_an_error_at_a_deadline() -> None:
    """Trap 57."""
    async with ScriptedSocketServer(says_nothing).running() as base_url:
        recognizer = limited(dashscope_dialect(base_url), RecognitionLimits(ready_s=0.05))
        with pytest.raises(PortError, match="provider_silent"):
            await recognizer.open(REQUEST)
        await recognizer.aclose()


async def test_a_socket_that_closes_before_the_task_has_finished_is_a_failure() -> None:
    """Trap 58: even with the code of a normal closing, and everything final."""

    async def script(peer: SocketPeer) -> None:
        await peer.expect()
        await peer.send_json(event("task-started"))
        await peer.expect(bytes)
        await peer.send_json(sentence("Stop.", end_time=900, sentence_end=True))
        await peer.close(1000)

    async with ScriptedSocketServer(script).running() as base_url:
        reports = await spoken(limited(dashscope_dialect(base_url), RecognitionLimits()))
    failed = reports[-1]
    assert isinstance(failed, RecognitionErrored)
    assert (failed.error.code, failed.error.retryable) == ("closed_by_provider", True)


def test_a_heartbeat_is_no_transcript() -> None:
    """Trap 59."""
    beat = sentence("", heartbeat=True, sentence_end=True, end_time=5)
    assert all_heard(dashscope_dialect()(REQUEST), beat) == []


def test_a_sentence_is_final_by_its_mark_or_where_there_is_none_by_its_end() -> None:
    """Trap 59."""
    unmarked = all_heard(dashscope_dialect()(REQUEST), sentence("Stop"), sentence("Stop.", end_time=900))
    assert texts(unmarked) == ["Stop.", "."]
    marked = all_heard(
        dashscope_dialect()(REQUEST),
        sentence("Stop", end_time=500, sentence_end=False),
        sentence("Stop.", end_time=900, sentence_end=True),
    )
    assert texts(marked) == ["Stop.", "."]


async def test_a_failed_task_leaves_its_socket_behind() -> None:
    """Trap 60: the next utterance has a connection of its own."""

    async def failing(peer: SocketPeer) -> None:
        await peer.expect()
        await peer.send_json(event("task-started"))
        await peer.expect(bytes)
        await peer.send_json(event("task-failed", error_code="CLIENT_ERROR", error_message=KEY))
        await peer.hung_up()

    async def working(peer: SocketPeer) -> None:
        await peer.expect()
        await peer.send_json(event("task-started"))
        await peer.skip_to({"payload": {"input": {}}})
        await peer.send_json(event("task-finished"))

    server = ScriptedSocketServer(failing, working)
    async with server.running() as base_url:
        recognizer = limited(dashscope_dialect(base_url), RecognitionLimits())
        last: list[RecognitionReport] = []
        for _ in range(2):
            stream = await recognizer.open(REQUEST)
            await stream.write(AudioFrame(bytes(3_200), SPEECH_FORMAT))
            await stream.finish_input()
            last.append([report async for report in stream.reports()][-1])
            await stream.aclose()
        await recognizer.aclose()
    assert isinstance(last[0], RecognitionErrored)
    assert KEY not in str(last[0])
    assert last[1] == RecognitionEnded()
    assert server.requests == 2


def test_messages_of_another_task_are_ignored() -> None:
    """Trap 61."""
    dialect = dashscope_dialect()(REQUEST)
    dialect.finishing(True)
    stale = event("task-finished", task_id="task-0"), event("task-failed", task_id="task-0", error_code="X")
    assert all_heard(dialect, *stale) == []
    assert not dialect.is_complete


def test_a_hypothesis_is_what_is_settled_and_the_guess_behind_it() -> None:
    """Trap 63: both are replaced, nothing is appended."""
    settings = qwen_realtime_transcription.QwenRealtimeTranscriptionSettings()
    dialect = qwen_realtime_transcription.QwenRealtimeTranscriptionDialect(REQUEST, settings, KEY)
    kind = "conversation.item.input_audio_transcription.text"
    heard = all_heard(
        dialect,
        {"type": kind, "item_id": "i", "text": "", "stash": "turn"},
        {"type": kind, "item_id": "i", "text": "Turn", "stash": " of"},
        {"type": kind, "item_id": "i", "text": "Turn on", "stash": ""},
    )
    assert [one.text for one in heard if isinstance(one, SegmentHypothesis)] == ["turn", "Turn of", "Turn on"]


def test_a_time_that_can_be_no_position_is_a_typed_error() -> None:
    """No number of the list, and the same for all: a float beyond bounds would end in an `OverflowError`."""
    with pytest.raises(PortError, match="provider_malformed"):
        all_heard(deepgram_dialect()(REQUEST), results("stop", 1e308, 1e308))
