"""Known traps of Gemini Live, each with the outcome that is right. The numbers are those of the list that this project
was built from.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import cast

import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.realtime.gemini_live.hearing import PATIENCE_MS
from voicechart.adapters.providers.realtime.gemini_live.open_turns import SETTLES_WITHIN_S, SILENT_AFTER_S
from voicechart.adapters.providers.realtime.gemini_live.protocol import GeminiProtocol
from voicechart.adapters.providers.realtime.gemini_live.turns import BELIEVED_AFTER_S, WRITTEN_WITHIN_S
from voicechart.adapters.providers.realtime_protocol import Sending, Told
from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.engines.ports import Message
from voicechart.engines.realtime import RealtimeRequest, ToolOutput
from voicechart.engines.realtime.reports import (
    AnswerAudio,
    AnswerCallsTool,
    AnswerEnded,
    AnswerFailed,
    AnswerProgressed,
    AnswerStopped,
    AnswerText,
    AnswerUsage,
    ProviderInterruption,
    RealtimeReport,
    SessionExpires,
    SessionResumable,
    ToolCallsWithdrawn,
    Transcribed,
    TranscriptionEnded,
)
from voicechart.engines.reports import PortError
from voicechart.statecharts.values import Usage

Json = dict[str, JsonValue]
OUTPUT = AudioFormat(24_000)
START: Json = {"realtimeInput": {"activityStart": {}}}
END: Json = {"realtimeInput": {"activityEnd": {}}}


class Talk:
    """A session without a socket, on a clock that the test moves."""

    def __init__(self, request: RealtimeRequest | None = None) -> None:
        self.now = 100.0
        self.protocol = GeminiProtocol(request or RealtimeRequest(), SPEECH_FORMAT, OUTPUT, lambda: self.now)
        self.told: list[RealtimeReport] = []
        self.sent: list[Json] = []
        self._written = 0

    def does(self, what: Iterable[Told]) -> None:
        """What follows from a call or a message."""
        for one in what:
            if isinstance(one, Sending):
                self.sent.append(one.message)
            else:
                self.told.append(one)

    def waits(self, seconds: float) -> None:
        self.now += seconds
        self.does(self.protocol.do_what_is_due())

    # -- from this side --------------------------------------------------------------------------------------------

    def begins(self, utterance_id: str) -> None:
        self.protocol.hearing.begin(utterance_id)

    def writes(self, milliseconds: int = 200) -> None:
        step = SPEECH_FORMAT.samples_for_ms(20)
        for _ in range(milliseconds // 20):
            frame = AudioFrame(bytes(SPEECH_FORMAT.bytes_for(step)), SPEECH_FORMAT, self._written)
            self._written = frame.end_sample
            self.does(self.protocol.write(frame))

    def commits(self, utterance_id: str) -> None:
        self.does(self.protocol.commit(utterance_id))

    def speaks(self, utterance_id: str, milliseconds: int = 200) -> None:
        self.begins(utterance_id)
        self.writes(milliseconds)
        self.commits(utterance_id)

    def discards(self, utterance_id: str) -> None:
        self.does(self.protocol.discard(utterance_id))

    def asks(self, answer_id: str) -> bool:
        """Whether the answer has begun."""
        self.protocol.is_asked = False
        self.does(self.protocol.ask(answer_id))
        return self.protocol.is_asked

    def cancels(self, answer_id: str) -> None:
        self.does(self.protocol.cancel(answer_id))

    def gives(self, *outputs: ToolOutput) -> None:
        self.protocol.submit_outputs(outputs)

    # -- what the server says --------------------------------------------------------------------------------------

    def hears(self, **message: JsonValue) -> None:
        self.does(self.protocol.take(message))

    def says(self, **content: JsonValue) -> None:
        self.hears(serverContent=content)

    def audio(self, milliseconds: int = 100, **beside: JsonValue) -> None:
        self.says(modelTurn={"role": "model", "parts": [sound(milliseconds)]}, **beside)

    def words(self, text: str) -> None:
        self.says(outputTranscription={"text": text})

    def calls(self, *call_ids: str) -> None:
        calls: list[JsonValue] = [{"id": call_id, "name": "weather", "args": {"city": "Oslo"}} for call_id in call_ids]
        self.hears(toolCall={"functionCalls": calls})

    # -- what came of it -------------------------------------------------------------------------------------------

    def of(self, *kinds: type[RealtimeReport]) -> list[RealtimeReport]:
        return [report for report in self.told if isinstance(report, kinds)]

    def heard_ms(self, answer_id: str) -> float:
        frames = [one.frame for one in self.told if isinstance(one, AnswerAudio) and one.answer_id == answer_id]
        return sum(frame.duration_ms for frame in frames)

    @property
    def kinds(self) -> list[str]:
        """What was sent, by name; audio is left out."""
        found: list[str] = []
        for message in self.sent:
            ((kind, body),) = message.items()
            name = next(iter(cast("Json", body))) if kind == "realtimeInput" else kind
            found += [name] if name != "audio" else []
        return found


def sound(milliseconds: int, mime: str = "audio/pcm;rate=24000") -> JsonValue:
    return {"inlineData": {"mimeType": mime, "data": base64.b64encode(bytes(48 * milliseconds)).decode()}}


def answering(answer_id: str = "a1") -> Talk:
    """An answer to what was said is under way."""
    talk = Talk()
    talk.speaks("u1")
    assert talk.asks(answer_id)
    talk.audio()
    return talk


def interrupted() -> Talk:
    """The user has begun to speak, and the chart took that for an interruption."""
    talk = answering()
    talk.begins("u2")
    talk.writes()
    talk.cancels("a1")
    return talk


# -- the numbered ones ---------------------------------------------------------------------------------------------


def test_an_interrupted_turn_ends_without_the_end_of_its_generation() -> None:
    """Trap 29."""
    talk = interrupted()
    assert talk.of(AnswerStopped) == [AnswerStopped("a1")]
    talk.audio()
    talk.says(interrupted=True)
    talk.says(turnComplete=True)
    talk.commits("u2")
    assert talk.asks("a2")
    talk.audio(60)
    talk.says(generationComplete=True)
    talk.says(turnComplete=True)
    assert talk.of(AnswerEnded, AnswerStopped, AnswerFailed) == [AnswerStopped("a1"), AnswerEnded("a2")]
    assert (talk.heard_ms("a1"), talk.heard_ms("a2")) == (100, 60)


def test_an_answer_ends_when_it_is_generated_and_not_when_it_would_have_been_played() -> None:
    """Trap 30: the end of the turn comes only then."""
    talk = answering()
    talk.words("It is noon.")
    talk.says(generationComplete=True)
    talk.waits(WRITTEN_WITHIN_S / 2)
    assert talk.of(AnswerEnded) == []
    talk.words(" Twelve.")
    talk.waits(WRITTEN_WITHIN_S / 2)
    assert talk.of(AnswerEnded, AnswerText)[-2:] == [AnswerText("a1", " Twelve."), AnswerEnded("a1")]
    talk.waits(20)
    talk.says(turnComplete=True)
    assert talk.of(AnswerEnded) == [AnswerEnded("a1")]


def test_text_that_is_told_to_be_finished_is_not_waited_for() -> None:
    talk = answering()
    talk.says(outputTranscription={"text": "Noon.", "finished": True}, generationComplete=True)
    assert talk.of(AnswerEnded) == [AnswerEnded("a1")]


@pytest.mark.parametrize("status", ["IN_PROGRESS", "REQUIRES_ACTION"])
def test_the_end_of_a_turn_in_progress_is_no_end(status: str) -> None:
    """Trap 31."""
    talk = answering()
    talk.says(generationComplete=True)
    talk.says(turnComplete=True, interactionStatus=status)
    talk.waits(10)
    assert talk.of(AnswerEnded) == []
    talk.audio()
    talk.says(turnComplete=True, interactionStatus="IDLE")
    assert talk.of(AnswerEnded) == [AnswerEnded("a1")]
    assert talk.heard_ms("a1") == 200


def test_a_status_that_nobody_specified_decides_nothing() -> None:
    """Trap 31."""
    talk = answering()
    talk.says(turnComplete=True, interactionStatus="INTERACTION_STATUS_UNSPECIFIED")
    assert talk.of(AnswerEnded) == [AnswerEnded("a1")]


@pytest.mark.parametrize(
    ("time_left", "within_ms"),
    [("10s", 10_000), ("9.25s", 9_250), ("0s", 0), (None, 0), ("soon", 0), ({"seconds": 3}, 0)],
)
def test_a_connection_that_is_about_to_end_is_told_with_its_time_and_the_answer_goes_on(
    time_left: JsonValue, within_ms: int
) -> None:
    """Trap 32: the chart renews the session when nothing is being said any more, or just before."""
    talk = answering()
    talk.hears(goAway={"timeLeft": time_left})
    assert talk.of(SessionExpires) == [SessionExpires(within_ms)]
    talk.audio()
    talk.says(turnComplete=True)
    assert talk.of(AnswerEnded) == [AnswerEnded("a1")]
    assert talk.heard_ms("a1") == 200


def test_only_a_handle_of_a_state_that_can_be_resumed_counts() -> None:
    """Trap 34."""
    talk = Talk()
    for handle, resumable in (("h1", True), ("", False), ("h0", False), ("", True), (None, None), ("h2", True)):
        update: Json = {"newHandle": handle, "resumable": resumable}
        talk.hears(sessionResumptionUpdate={key: value for key, value in update.items() if value is not None})
    assert talk.told == [SessionResumable("h1"), SessionResumable("h2")]


def test_everything_in_one_message_counts_and_the_end_of_the_turn_is_last() -> None:
    """Trap 36."""
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    talk.hears(
        usageMetadata={"promptTokenCount": 7, "responseTokenCount": 3, "thoughtsTokenCount": 2},
        sessionResumptionUpdate={"newHandle": "h1", "resumable": True},
        serverContent={
            "turnComplete": True,
            "generationComplete": True,
            "outputTranscription": {"text": "Noon."},
            "inputTranscription": {"text": "what time is it"},
            "modelTurn": {"parts": [sound(20), {"text": "12:00"}, {"text": "hm", "thought": True}]},
        },
    )
    frame = AudioFrame(bytes(960), OUTPUT, 0)
    assert talk.told == [
        SessionResumable("h1"),
        Transcribed("u1", 1, "what time is it"),
        AnswerAudio("a1", "item_1", frame),
        AnswerText("a1", "12:00"),
        AnswerProgressed("a1"),
        AnswerText("a1", "Noon."),
        AnswerUsage("a1", Usage(7, 5)),
        AnswerEnded("a1"),
        Transcribed("u1", 2, "what time is it", is_final=True),
        TranscriptionEnded("u1"),
    ]


def test_transcripts_come_before_and_behind_what_they_are_of() -> None:
    """Trap 36: their order is free."""
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    talk.words("It is")
    talk.audio()
    talk.says(inputTranscription={"text": "what"})
    talk.says(interimInputTranscription={"text": " tim"})
    talk.says(interimInputTranscription={"text": " time"})
    talk.words(" noon.")
    talk.says(inputTranscription={"text": " time is it", "finished": True})
    talk.says(inputTranscription={"text": " late"})
    texts = [(one.text, one.is_final) for one in talk.told if isinstance(one, Transcribed)]
    assert texts == [
        ("what", False),
        ("what tim", False),
        ("what time", False),
        ("what time is it", False),
        ("what time is it", True),
    ]
    assert "".join(one.text for one in talk.told if isinstance(one, AnswerText)) == "It is noon."


def test_keys_are_camel_or_snake() -> None:
    """Trap 37; that messages are text or binary, the session's own tests show."""
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    part: Json = {"inline_data": {"mime_type": "audio/pcm;rate=24000", "data": base64.b64encode(bytes(960)).decode()}}
    talk.hears(server_content={"model_turn": {"parts": [part]}, "output_transcription": {"text": "Noon."}})
    args: Json = {"newHandle": 1, "new_handle": 2}
    talk.hears(tool_call={"function_calls": [{"id": "c1", "name": "f", "args": args}]})
    talk.hears(tool_call_cancellation={"ids": ["c1"]})
    talk.hears(session_resumption_update={"new_handle": "h1", "resumable": True})
    talk.hears(go_away={"time_left": "5s"})
    assert talk.told[1:] == [
        AnswerText("a1", "Noon."),
        AnswerCallsTool("a1", "c1", "f", '{"newHandle":1,"new_handle":2}'),
        AnswerEnded("a1", awaits_tools=True),
        ToolCallsWithdrawn(("c1",)),
        SessionResumable("h1"),
        SessionExpires(5_000),
    ]


def test_a_call_that_is_taken_back_is_withdrawn_and_its_late_outcome_is_not_sent() -> None:
    """Trap 38."""
    talk = answering()
    talk.calls("c1", "c2")
    talk.hears(toolCallCancellation={"ids": ["c1", "unknown"]})
    assert talk.of(ToolCallsWithdrawn) == [ToolCallsWithdrawn(("c1",))]
    talk.gives(ToolOutput("c1", "weather", "rain"), ToolOutput("c2", "weather", "sun"))
    talk.asks("a2")
    assert talk.sent[-1] == {
        "toolResponse": {"functionResponses": [{"id": "c2", "name": "weather", "response": {"output": "sun"}}]}
    }
    talk.hears(toolCallCancellation={"ids": ["c1", "c2"]})
    assert len(talk.of(ToolCallsWithdrawn)) == 1


# -- utterances ----------------------------------------------------------------------------------------------------


def test_the_end_of_an_activity_is_told_only_when_an_answer_is_asked_for() -> None:
    talk = Talk()
    talk.speaks("u1")
    assert talk.kinds == ["activityStart"]
    talk.asks("a1")
    assert talk.kinds == ["activityStart", "activityEnd"]


def test_utterances_that_wait_for_one_answer_are_one_activity() -> None:
    talk = Talk()
    talk.speaks("u1")
    talk.speaks("u2")
    talk.asks("a1")
    assert talk.kinds == ["activityStart", "activityEnd"]
    assert talk.of(TranscriptionEnded) == [TranscriptionEnded("u1")]


def test_what_is_written_is_sent_when_an_answer_is_asked_for() -> None:
    talk = Talk()
    talk.protocol.submit_text("One.")
    talk.protocol.submit_text("Two.")
    assert talk.sent == []
    talk.asks("a1")
    turns: list[JsonValue] = [{"role": "user", "parts": [{"text": text}]} for text in ("One.", "Two.")]
    assert talk.sent == [{"clientContent": {"turns": turns, "turnComplete": True}}]


def test_what_is_written_beside_speech_is_told_first_and_answered_with_it() -> None:
    talk = Talk()
    talk.speaks("u1")
    talk.protocol.submit_text("One.")
    talk.asks("a1")
    written: Json = {"turns": [{"role": "user", "parts": [{"text": "One."}]}], "turnComplete": False}
    assert talk.sent[-2:] == [{"clientContent": written}, END]


def test_an_answer_that_is_asked_for_anew_has_nothing_new_to_tell() -> None:
    talk = answering()
    talk.says(turnComplete=True, turnCompleteReason="RESPONSE_REJECTED")
    assert talk.asks("a2")
    assert talk.sent[-1] == {"clientContent": {"turnComplete": True}}


def test_a_sound_during_an_answer_does_not_cut_it_and_is_never_sent() -> None:
    talk = answering()
    talk.begins("u2")
    talk.writes(2_000)
    talk.discards("u2")
    talk.audio()
    talk.says(turnComplete=True)
    assert talk.kinds == ["activityStart", "activityEnd"]
    assert talk.of(AnswerEnded) == [AnswerEnded("a1")]
    assert talk.heard_ms("a1") == 200


def test_speech_that_interrupts_is_sent_at_once_from_its_beginning() -> None:
    talk = answering()
    talk.begins("u2")
    talk.writes(200)
    before = len(talk.sent)
    talk.cancels("a1")
    assert talk.sent[before] == START
    assert len(talk.sent) == before + 1 + 5
    talk.writes(40)
    assert len(talk.sent) == before + 1 + 6


def test_speech_while_an_answer_is_only_heard_is_sent_once_it_is_no_cough() -> None:
    talk = answering()
    talk.says(outputTranscription={"finished": True}, generationComplete=True)
    talk.begins("u2")
    talk.writes(PATIENCE_MS)
    assert talk.kinds == ["activityStart", "activityEnd"]
    talk.writes(40)
    assert talk.kinds == ["activityStart", "activityEnd", "activityStart"]


def test_what_was_held_back_is_sent_when_the_turn_is_over() -> None:
    talk = answering()
    talk.begins("u2")
    talk.writes(200)
    talk.says(turnComplete=True)
    assert talk.kinds == ["activityStart", "activityEnd", "activityStart"]


def test_an_utterance_that_is_discarded_ends_its_activity_and_the_turn_after_it_is_dropped() -> None:
    talk = Talk()
    talk.begins("u1")
    talk.writes()
    talk.discards("u1")
    assert talk.kinds == ["activityStart", "activityEnd"]
    talk.audio()
    talk.words("You said?")
    talk.calls("c1")
    assert talk.told == []
    refused: Json = {"id": "c1", "name": "weather", "response": {"error": "not made: the user interrupted"}}
    assert talk.sent[-1] == {"toolResponse": {"functionResponses": [refused]}}
    talk.audio()
    talk.speaks("u2")
    assert not talk.asks("a1")
    talk.says(interrupted=True)
    talk.says(turnComplete=True)
    assert talk.asks("a1")
    talk.audio(40)
    assert talk.heard_ms("a1") == 40


def test_an_utterance_that_is_discarded_after_a_finished_one_leaves_its_answer() -> None:
    talk = Talk()
    talk.speaks("u1")
    talk.begins("u2")
    talk.writes()
    talk.discards("u2")
    assert talk.kinds == ["activityStart"]
    assert talk.asks("a1")
    talk.audio()
    assert talk.heard_ms("a1") == 100


def test_an_utterance_without_audio_is_nothing() -> None:
    talk = Talk()
    talk.begins("u1")
    talk.commits("u1")
    (ended,) = talk.told
    assert isinstance(ended, TranscriptionEnded)
    assert ended.error is not None
    assert talk.sent == []


# -- telling turns apart -------------------------------------------------------------------------------------------


def test_an_answer_waits_for_the_end_of_one_that_had_begun() -> None:
    talk = interrupted()
    talk.commits("u2")
    talk.waits(SETTLES_WITHIN_S * 5)
    assert not talk.asks("a2")
    talk.audio()
    talk.says(interrupted=True)
    talk.says(turnComplete=True)
    assert talk.asks("a2")


def test_an_answer_of_which_nothing_came_before_the_interruption_is_given_up_when_nothing_comes_after_it() -> None:
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    talk.cancels("a1")
    talk.speaks("u2")
    assert not talk.asks("a2")
    assert talk.protocol.turns.settles_at(talk.now) == talk.now + SETTLES_WITHIN_S
    talk.waits(SETTLES_WITHIN_S)
    assert talk.asks("a2")
    talk.audio(40)
    talk.says(turnComplete=True)
    assert (talk.heard_ms("a1"), talk.heard_ms("a2")) == (0, 40)
    assert talk.of(AnswerEnded) == [AnswerEnded("a2")]


def test_the_late_end_of_an_answer_that_was_given_up_ends_no_other() -> None:
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    talk.cancels("a1")
    talk.speaks("u2")
    talk.asks("a2")
    talk.waits(SETTLES_WITHIN_S)
    talk.asks("a2")
    talk.says(interrupted=True)
    talk.says(turnComplete=True)
    assert talk.of(AnswerEnded, AnswerFailed) == []
    talk.audio(40)
    talk.says(turnComplete=True)
    assert talk.of(AnswerEnded) == [AnswerEnded("a2")]


def test_something_written_interrupts_an_answer_that_has_begun_and_waits_for_one_that_has_not() -> None:
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    talk.cancels("a1")
    talk.protocol.submit_text("Stop.")
    assert not talk.asks("a2")
    talk.audio()
    assert talk.asks("a2")
    talk.audio()
    talk.says(interrupted=True)
    talk.says(turnComplete=True)
    talk.audio(40)
    talk.says(turnComplete=True)
    assert (talk.heard_ms("a1"), talk.heard_ms("a2")) == (0, 40)
    assert talk.of(AnswerEnded, AnswerStopped) == [AnswerStopped("a1"), AnswerEnded("a2")]


def test_something_written_does_not_wait_for_ever_for_an_answer_that_does_not_begin() -> None:
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    talk.cancels("a1")
    talk.protocol.submit_text("Stop.")
    assert not talk.asks("a2")
    assert talk.protocol.turns.settles_at(talk.now) == talk.now + SILENT_AFTER_S
    talk.waits(SILENT_AFTER_S)
    assert not talk.asks("a2")
    talk.waits(SETTLES_WITHIN_S)
    assert talk.asks("a2")
    written: Json = {"turns": [{"role": "user", "parts": [{"text": "Stop."}]}], "turnComplete": False}
    assert talk.sent[-2:] == [{"clientContent": written}, {"clientContent": {"turnComplete": True}}]
    talk.audio(40)
    talk.says(turnComplete=True)
    assert (talk.heard_ms("a1"), talk.heard_ms("a2")) == (0, 40)


def test_an_answer_that_is_asked_for_while_the_user_speaks_ends_what_was_said_until_then() -> None:
    talk = Talk()
    talk.begins("u1")
    talk.writes(200)
    assert talk.asks("a1")
    talk.writes(200)
    assert talk.kinds == ["activityStart", "activityEnd"]
    talk.audio()
    talk.says(turnComplete=True)
    assert talk.kinds == ["activityStart", "activityEnd", "activityStart"]
    talk.commits("u1")
    assert talk.asks("a2")
    assert talk.of(TranscriptionEnded) == [TranscriptionEnded("u1")]


def test_an_interrupted_turn_whose_end_is_missing_ends_with_the_sound_of_the_next() -> None:
    talk = interrupted()
    talk.says(interrupted=True)
    talk.commits("u2")
    talk.waits(SETTLES_WITHIN_S)
    assert talk.asks("a2")
    talk.audio(40)
    talk.says(turnComplete=True)
    assert talk.heard_ms("a2") == 40
    assert talk.of(AnswerEnded) == [AnswerEnded("a2")]


def test_an_answer_that_is_only_heard_by_now_is_followed_without_its_end() -> None:
    """It comes when the service thinks that everything was played, or never after an interruption."""
    talk = answering()
    talk.says(generationComplete=True)
    talk.waits(WRITTEN_WITHIN_S)
    talk.speaks("u2", PATIENCE_MS + 40)
    talk.waits(SETTLES_WITHIN_S)
    assert talk.asks("a2")
    talk.audio(40)
    talk.says(turnComplete=True)
    assert talk.heard_ms("a2") == 40
    assert talk.of(AnswerEnded) == [AnswerEnded("a1"), AnswerEnded("a2")]


@pytest.mark.parametrize("comes", ["sound", "words", "nothing"])
def test_the_end_of_a_turn_of_which_nothing_came_is_believed_only_when_nothing_comes(comes: str) -> None:
    """It may be the end of the turn before, told twice."""
    talk = Talk()
    talk.speaks("u1")
    talk.asks("a1")
    talk.says(turnComplete=True)
    talk.waits(BELIEVED_AFTER_S / 2)
    assert talk.of(AnswerEnded) == []
    if comes == "sound":
        talk.audio()
    elif comes == "words":
        talk.words("Noon.")
    talk.waits(BELIEVED_AFTER_S)
    assert talk.of(AnswerEnded) == ([AnswerEnded("a1")] if comes == "nothing" else [])
    talk.says(turnComplete=True)
    assert talk.of(AnswerEnded, TranscriptionEnded) == [AnswerEnded("a1"), TranscriptionEnded("u1")]


def test_an_interruption_that_nobody_here_asked_for_fails_the_answer() -> None:
    talk = answering()
    talk.says(interrupted=True)
    talk.says(interrupted=True)
    talk.says(turnComplete=True)
    assert talk.of(ProviderInterruption) == [ProviderInterruption()]
    (failed,) = talk.of(AnswerFailed)
    assert isinstance(failed, AnswerFailed)
    assert (failed.error.code, failed.error.retryable) == ("answer_cut_off", False)


def test_what_nobody_asked_for_is_nothing() -> None:
    talk = Talk()
    talk.audio()
    talk.words("hello")
    talk.says(interrupted=True)
    talk.says(generationComplete=True)
    talk.says(turnComplete=True)
    talk.hears(usageMetadata={"promptTokenCount": 1})
    talk.hears(toolCallCancellation={"ids": ["c1"]})
    assert talk.told == []


# -- tools ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_complete", [False, True])
def test_the_outcomes_of_its_calls_make_the_model_go_on_and_that_is_the_next_answer(is_complete: bool) -> None:
    talk = answering()
    talk.calls("c1")
    assert talk.told[-1] == AnswerEnded("a1", awaits_tools=True)
    if is_complete:
        talk.says(turnComplete=True)
    talk.gives(ToolOutput("c1", "weather", '{"sky": "blue"}'))
    assert talk.kinds == ["activityStart", "activityEnd"]
    assert talk.asks("a2")
    response: Json = {"id": "c1", "name": "weather", "response": {"sky": "blue"}}
    assert talk.sent[-1] == {"toolResponse": {"functionResponses": [response]}}
    talk.audio(40)
    talk.says(turnComplete=True)
    assert talk.of(AnswerEnded)[1:] == [AnswerEnded("a2")]
    assert talk.heard_ms("a2") == 40
    items = {one.item_id for one in talk.told if isinstance(one, AnswerAudio)}
    assert items == {"item_1", "item_2"}


def test_the_end_of_the_part_with_the_calls_does_not_end_the_answer_to_them() -> None:
    talk = answering()
    talk.calls("c1")
    talk.gives(ToolOutput("c1", "weather", "sun"))
    talk.asks("a2")
    talk.says(turnComplete=True)
    assert AnswerEnded("a2") not in talk.told
    talk.audio(40)
    talk.says(turnComplete=True)
    assert AnswerEnded("a2") in talk.told


def test_what_comes_behind_a_call_belongs_to_the_answer_after_it() -> None:
    talk = answering()
    talk.calls("c1")
    talk.words("Let me see.")
    talk.calls("c2")
    assert talk.told[-1] == AnswerEnded("a1", awaits_tools=True)
    talk.gives(ToolOutput("c1", "weather", "sun"))
    assert talk.asks("a2")
    assert talk.told[-3:] == [
        AnswerText("a2", "Let me see."),
        AnswerCallsTool("a2", "c2", "weather", '{"city":"Oslo"}'),
        AnswerEnded("a2", awaits_tools=True),
    ]
    talk.gives(ToolOutput("c2", "weather", "rain"))
    assert talk.asks("a3")
    talk.audio(40)
    assert talk.heard_ms("a3") == 40


def test_outcomes_are_not_sent_after_an_interruption_that_has_discarded_their_calls() -> None:
    talk = answering()
    talk.calls("c1")
    talk.speaks("u2", PATIENCE_MS + 40)
    talk.gives(ToolOutput("c1", "weather", "sun"))
    talk.waits(SETTLES_WITHIN_S)
    assert talk.asks("a2")
    assert talk.kinds == ["activityStart", "activityEnd", "activityStart", "activityEnd"]
    talk.audio(40)
    assert talk.heard_ms("a2") == 40


def test_outcomes_that_come_with_something_new_are_told_before_it_and_the_answer_to_them_is_dropped() -> None:
    talk = answering()
    talk.calls("c1")
    talk.gives(ToolOutput("c1", "weather", "sun"))
    talk.speaks("u2", 400)
    assert not talk.asks("a2")
    assert talk.kinds == ["activityStart", "activityEnd", "toolResponse", "activityStart"]
    talk.audio()
    talk.says(interrupted=True)
    talk.says(turnComplete=True)
    assert talk.asks("a2")
    talk.audio(40)
    assert talk.heard_ms("a2") == 40


@pytest.mark.parametrize(
    "call",
    [
        {"name": "weather", "args": {}},
        {"id": "c1", "args": {}},
        {"id": "c1", "name": "weather", "args": {"a": 1}, "willContinue": True},
        {"id": "c1", "name": "weather", "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]},
        {"id": "c1", "name": "weather", "args": {"text": "x" * 70_000}},
    ],
)
def test_a_call_that_is_not_whole_is_never_told(call: Json) -> None:
    talk = answering()
    talk.hears(toolCall={"functionCalls": [{"id": "c0", "name": "weather"}, call]})
    assert talk.of(AnswerCallsTool, AnswerEnded) == []
    assert len(talk.of(AnswerFailed)) == 1
    assert talk.kinds[-1] == "toolResponse"


# -- the rest ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (None, None),
        ("NEED_MORE_INPUT", None),
        ("TURN_COMPLETE_REASON_UNSPECIFIED", None),
        ("MALFORMED_FUNCTION_CALL", "tool_call_invalid"),
        ("PROHIBITED_INPUT_CONTENT", "content_filtered"),
        ("GENERATED_AUDIO_SAFETY", "content_filtered"),
        ("MAX_REGENERATION_REACHED", "unknown_finish"),
        ("SOMETHING_NEW", "unknown_finish"),
    ],
)
def test_a_turn_is_completed_only_where_its_reason_says_so(reason: str | None, code: str | None) -> None:
    talk = answering()
    talk.says(turnComplete=True, **({} if reason is None else {"turnCompleteReason": reason}))
    (end,) = talk.of(AnswerEnded, AnswerFailed)
    assert (end.error.code if isinstance(end, AnswerFailed) else None) == code


def test_usage_is_told_also_behind_the_end_of_the_answer() -> None:
    talk = answering()
    talk.says(outputTranscription={"finished": True}, generationComplete=True)
    talk.hears(serverContent={"turnComplete": True}, usageMetadata={"promptTokenCount": 5})
    assert talk.of(AnswerEnded, AnswerUsage) == [AnswerEnded("a1"), AnswerUsage("a1", Usage(5, None))]


@pytest.mark.parametrize("mime", ["audio/pcm;rate=48000", "audio/opus"])
def test_audio_of_another_kind_is_not_taken_for_speech(mime: str) -> None:
    talk = answering()
    with pytest.raises(PortError, match="provider_malformed"):
        talk.says(modelTurn={"parts": [sound(20, mime)]})


def test_a_picture_is_no_speech() -> None:
    talk = answering()
    talk.says(modelTurn={"parts": [sound(20, "image/png")]})
    assert talk.heard_ms("a1") == 100


def test_what_was_said_before_is_told_once_and_calls_of_former_days_as_text() -> None:
    before = (Message("user", "Hi."), Message("assistant", "Hello."))
    talk = Talk(RealtimeRequest(messages=before))
    talk.does(talk.protocol.restored())
    assert len(talk.sent) == 1
    resumed = Talk(RealtimeRequest(messages=before, resumption="h1"))
    resumed.does(resumed.protocol.restored())
    assert resumed.sent == []
