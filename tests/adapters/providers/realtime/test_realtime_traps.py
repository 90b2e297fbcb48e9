"""Known traps of realtime services, each with the outcome that is right. The numbers are those of the list that this
project was built from.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from itertools import count
from typing import cast

import pytest
from pydantic import JsonValue

from voicechart.adapters.providers.realtime.openai_realtime import OpenAIRealtimeDialect, OpenAIRealtimeSettings
from voicechart.adapters.providers.realtime.qwen_omni import QwenOmniDialect, QwenOmniSettings
from voicechart.adapters.providers.realtime_protocol import RealtimeDialect, RealtimeProtocol, Sending, Told
from voicechart.engines.realtime import RealtimeRequest, ToolOutput
from voicechart.engines.realtime.reports import (
    AnswerAudio,
    AnswerEnded,
    AnswerFailed,
    AnswerProgressed,
    AnswerStopped,
    AnswerText,
    ProviderInterruption,
    RealtimeReport,
    SessionEnded,
    Truncated,
    TruncationRefused,
)
from voicechart.engines.reports import PortError

KEY = "sk-very-secret"
Json = dict[str, JsonValue]
OPENAI = OpenAIRealtimeDialect(OpenAIRealtimeSettings(), KEY)
QWEN = QwenOmniDialect(QwenOmniSettings(), KEY)


class Talk:
    """A session without a socket: what is told and what is sent, in order."""

    def __init__(self, dialect: RealtimeDialect = OPENAI, *, provider_turns: bool = False) -> None:
        self.protocol = RealtimeProtocol(dialect, RealtimeRequest(provider_turns=provider_turns))
        self.told: list[RealtimeReport] = []
        self.sent: list[Json] = []
        self._numbers = count(1)
        self.hears("session.created", session={"type": "realtime"})
        self.hears("session.updated", session={"type": "realtime"})
        self.configuration, *rest = self.sent
        assert rest == []
        self.sent.clear()

    def hears(self, kind: str, **fields: JsonValue) -> None:
        """A message of the provider's."""
        self.does(self.protocol.take({"type": kind, "event_id": f"event_{next(self._numbers)}", **fields}))

    def does(self, what: Iterable[Told]) -> None:
        """What follows from a call or a message."""
        for one in what:
            if isinstance(one, Sending):
                self.sent.append(one.message)
            else:
                self.told.append(one)

    def asks(self, answer_id: str) -> None:
        assert self.protocol.answers.is_free
        self.does((self.protocol.answers.ask(answer_id),))

    def cancels(self, answer_id: str) -> None:
        self.does(self.protocol.answers.cancel(answer_id))

    def cuts(self, item_id: str, played_ms: int) -> None:
        self.does(self.protocol.cuts.cut(item_id, played_ms))

    # -- what a provider says --------------------------------------------------------------------------------------

    def created(self, response_id: str = "r1") -> None:
        self.hears("response.created", response={"id": response_id, "status": "in_progress"})

    def audio(self, response_id: str = "r1", item_id: str = "i1", milliseconds: int = 100) -> None:
        place: Json = {"response_id": response_id, "item_id": item_id, "output_index": 0, "content_index": 0}
        pcm = base64.b64encode(bytes(48 * milliseconds)).decode()
        self.hears("response.output_audio.delta", **place, delta=pcm)

    def words(self, delta: str, response_id: str = "r1") -> None:
        place: Json = {"response_id": response_id, "item_id": "i1", "output_index": 0, "content_index": 0}
        self.hears("response.output_audio_transcript.delta", **place, delta=delta)

    def done(self, status: str = "completed", response_id: str = "r1", reason: str | None = None) -> None:
        details: JsonValue = None if reason is None else {"type": status, "reason": reason}
        self.hears("response.done", response={"id": response_id, "status": status, "status_details": details})

    def error(self, code: str | None, event_id: JsonValue = None, param: str | None = None) -> None:
        error: Json = {"type": "invalid_request_error", "message": "x", "code": code, "param": param}
        self.hears("error", error={**error, "event_id": event_id})

    # -- what came of it -------------------------------------------------------------------------------------------

    def sent_kinds(self) -> list[JsonValue]:
        return [message["type"] for message in self.sent]

    def of(self, *kinds: type[RealtimeReport]) -> list[RealtimeReport]:
        return [report for report in self.told if isinstance(report, kinds)]


def speaking(dialect: RealtimeDialect = OPENAI) -> Talk:
    """An answer under way."""
    talk = Talk(dialect)
    talk.asks("a1")
    talk.created()
    return talk


# -- cancel --------------------------------------------------------------------------------------------------------


def test_a_response_cancelled_when_nothing_is_active_has_ended_and_nothing_else_has() -> None:
    """Trap 1."""
    talk = speaking()
    talk.audio()
    talk.cancels("a1")
    talk.error("response_cancel_not_active", talk.sent[-1]["event_id"])
    assert talk.of(AnswerStopped) == [AnswerStopped("a1")]
    assert talk.of(SessionEnded) == []
    assert talk.protocol.answers.is_free


def test_the_same_error_after_the_end_of_the_response_is_expected_and_changes_nothing() -> None:
    """Trap 2: not even an answer that is being cancelled by then."""
    talk = speaking()
    talk.cancels("a1")
    first_cancel = talk.sent[-1]["event_id"]
    talk.done("completed")
    talk.asks("a2")
    talk.created("r2")
    talk.cancels("a2")
    talk.error("response_cancel_not_active", first_cancel)
    assert talk.of(AnswerStopped) == [AnswerStopped("a1")]
    talk.done("cancelled", "r2", "client_cancelled")
    assert talk.of(AnswerStopped) == [AnswerStopped("a1"), AnswerStopped("a2")]


def test_the_same_error_without_a_name_is_about_the_response_that_was_over() -> None:
    """Traps 2 and 6."""
    talk = speaking()
    talk.cancels("a1")
    talk.done("completed")
    talk.asks("a2")
    talk.created("r2")
    talk.cancels("a2")
    talk.error("response_cancel_not_active")
    assert talk.of(AnswerStopped) == [AnswerStopped("a1")]


def test_a_cancel_before_the_response_has_a_name_is_sent_with_the_name_and_what_it_says_is_dropped() -> None:
    """Trap 3."""
    talk = Talk()
    talk.asks("a1")
    talk.cancels("a1")
    assert talk.sent_kinds() == ["response.create"]
    talk.created()
    assert talk.sent[-1]["type"] == "response.cancel"
    assert talk.sent[-1]["response_id"] == "r1"
    talk.audio()
    talk.words("hello")
    assert talk.told == []
    talk.done("cancelled", reason="client_cancelled")
    assert talk.told == [AnswerStopped("a1")]


def test_the_service_neither_answers_nor_interrupts_by_itself() -> None:
    """Trap 4."""
    talk = Talk(provider_turns=True)
    session = cast("Json", talk.configuration["session"])
    heard = cast("Json", cast("Json", session["audio"])["input"])
    detection = cast("Json", heard["turn_detection"])
    assert (detection["create_response"], detection["interrupt_response"]) == (False, False)


def test_an_answer_that_the_service_stopped_is_not_cancelled_once_more() -> None:
    """Trap 4."""
    talk = speaking()
    talk.audio()
    talk.done("cancelled", reason="turn_detected")
    talk.cancels("a1")
    assert "response.cancel" not in talk.sent_kinds()
    told = talk.of(ProviderInterruption, AnswerFailed, AnswerStopped)
    assert [type(report) for report in told] == [ProviderInterruption, AnswerFailed]


def test_a_cancel_is_sent_once() -> None:
    """Trap 4."""
    talk = speaking()
    talk.cancels("a1")
    talk.cancels("a1")
    assert talk.sent_kinds().count("response.cancel") == 1


def test_a_cancel_of_another_answer_is_no_cancel() -> None:
    talk = speaking()
    talk.cancels("a0")
    assert talk.sent_kinds() == ["response.create"]


# -- create --------------------------------------------------------------------------------------------------------


def test_a_create_while_a_response_is_active_is_made_again_when_that_is_over_and_the_session_stays() -> None:
    """Trap 5."""
    talk = Talk()
    talk.asks("a1")
    talk.error("conversation_already_has_active_response", talk.sent[0]["event_id"])
    assert talk.told == []
    talk.done("completed", "r0")
    assert talk.sent_kinds() == ["response.create", "response.create"]
    talk.created()
    talk.done()
    assert talk.told == [AnswerProgressed("a1"), AnswerEnded("a1")]


def test_no_second_answer_is_asked_for_before_the_first_is_over() -> None:
    """Trap 5."""
    talk = speaking()
    assert not talk.protocol.answers.is_free
    talk.cancels("a1")
    assert not talk.protocol.answers.is_free
    talk.done("cancelled")
    assert talk.protocol.answers.is_free


def test_an_answer_that_was_refused_and_is_cancelled_is_over_at_once() -> None:
    """Trap 5."""
    talk = Talk()
    talk.asks("a1")
    talk.error("conversation_already_has_active_response")
    talk.cancels("a1")
    talk.done("completed", "r0")
    assert talk.told == [AnswerStopped("a1")]
    assert talk.sent_kinds() == ["response.create"]


def test_an_answer_that_was_cancelled_and_is_refused_is_over_at_once() -> None:
    """Trap 5."""
    talk = Talk()
    talk.asks("a1")
    talk.cancels("a1")
    talk.error("conversation_already_has_active_response")
    assert talk.told == [AnswerStopped("a1")]
    assert talk.protocol.answers.is_free


def test_an_error_without_code_and_name_is_about_nothing() -> None:
    """Trap 6: the text of a message decides nothing."""
    talk = speaking()
    talk.audio()
    talk.cancels("a1")
    talk.error(None)
    talk.done("cancelled", reason="client_cancelled")
    assert talk.of(AnswerStopped, SessionEnded, AnswerFailed) == [AnswerStopped("a1")]


def test_responses_that_bear_our_names_are_told_from_others() -> None:
    talk = Talk()
    talk.asks("a1")
    metadata: JsonValue = {"voicechart_answer": "a1"}
    talk.hears("response.created", response={"id": "r1", "status": "in_progress", "metadata": metadata})
    talk.done()
    talk.asks("a2")
    talk.created("r9")
    assert talk.sent[-1]["type"] == "response.cancel"
    assert talk.sent[-1]["response_id"] == "r9"
    metadata = {"voicechart_answer": "a2"}
    talk.hears("response.created", response={"id": "r2", "status": "in_progress", "metadata": metadata})
    talk.done("completed", "r2")
    assert talk.of(AnswerEnded) == [AnswerEnded("a1"), AnswerEnded("a2")]
    assert not talk.protocol.answers.is_free
    talk.done("cancelled", "r9")
    assert talk.protocol.answers.is_free


# -- ends ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        ("cancelled", "client_cancelled", "answer_cut_off"),
        ("incomplete", "max_output_tokens", "output_limit"),
        ("incomplete", "content_filter", "content_filtered"),
        ("incomplete", "something_new", "unknown_finish"),
        ("incomplete", None, "unknown_finish"),
        ("failed", None, "provider_failed"),
        ("something_new", None, "unknown_finish"),
        ("in_progress", None, "unknown_finish"),
    ],
)
def test_cancelled_incomplete_failed_and_unknown_are_different_and_none_is_completed(
    status: str, reason: str | None, code: str
) -> None:
    """Trap 7."""
    talk = speaking()
    talk.done(status, reason=reason)
    (failed,) = talk.of(AnswerEnded, AnswerStopped, AnswerFailed)
    assert isinstance(failed, AnswerFailed)
    assert failed.error.code == code


def test_deltas_after_cancel_are_dropped_until_the_response_is_over() -> None:
    """Trap 8."""
    talk = speaking()
    talk.audio()
    heard = len(talk.of(AnswerAudio))
    talk.cancels("a1")
    talk.audio()
    talk.words("late")
    talk.done("cancelled", reason="client_cancelled")
    talk.audio()
    talk.words("later")
    assert len(talk.of(AnswerAudio)) == heard
    assert talk.of(AnswerText) == []
    assert talk.told[-1] == AnswerStopped("a1")


# -- truncate ------------------------------------------------------------------------------------------------------


def test_truncation_beyond_the_end_is_cut_at_the_end() -> None:
    """Trap 9: what came after the cancel came too."""
    talk = speaking()
    talk.audio(milliseconds=100)
    talk.done()
    talk.cuts("i1", 250)
    assert (talk.sent[-1]["type"], talk.sent[-1]["audio_end_ms"]) == ("conversation.item.truncate", 100)


def test_an_item_of_which_nothing_was_heard_is_taken_out() -> None:
    """Trap 10: at 0 ms nothing can be cut."""
    talk = speaking()
    talk.audio()
    talk.done()
    talk.cuts("i1", 0)
    assert talk.sent[-1]["type"] == "conversation.item.delete"
    talk.hears("conversation.item.deleted", item_id="i1")
    assert talk.told[-1] == Truncated("i1", 0)


def test_an_item_without_audio_is_neither_cut_nor_taken_out() -> None:
    """Trap 10: the service may not have it either."""
    talk = speaking()
    talk.cuts("i1", 100)
    assert talk.sent_kinds() == ["response.create"]
    assert isinstance(talk.told[-1], TruncationRefused)


def test_each_item_is_counted_by_itself() -> None:
    """Trap 11."""
    talk = speaking()
    talk.audio(item_id="i1", milliseconds=300)
    talk.audio(item_id="i2", milliseconds=200)
    talk.audio(item_id="i1", milliseconds=40)
    talk.done()
    talk.cuts("i1", 9_000)
    talk.cuts("i2", 9_000)
    assert [message["audio_end_ms"] for message in talk.sent[1:]] == [340, 200]
    positions = [report.frame.start_sample for report in talk.of(AnswerAudio) if isinstance(report, AnswerAudio)]
    assert positions.count(0) == 2


def test_a_rejected_cut_is_told_and_not_taken_for_one() -> None:
    """Trap 12."""
    talk = speaking()
    talk.audio()
    talk.done()
    talk.cuts("i1", 50)
    assert talk.of(Truncated, TruncationRefused) == []
    talk.error("invalid_value", talk.sent[-1]["event_id"], "audio_end_ms")
    (refused,) = talk.of(Truncated, TruncationRefused)
    assert isinstance(refused, TruncationRefused)
    assert refused.item_id == "i1"
    assert talk.of(SessionEnded) == []


def test_a_cut_waits_for_the_end_of_its_response_and_goes_before_the_next_one() -> None:
    """Trap 12: it counts when the provider says so."""
    talk = speaking()
    talk.audio()
    talk.cancels("a1")
    talk.cuts("i1", 50)
    assert talk.sent_kinds() == ["response.create", "response.cancel"]
    talk.done("cancelled", reason="client_cancelled")
    assert talk.sent_kinds()[2:] == ["conversation.item.truncate"]
    talk.hears("conversation.item.truncated", item_id="i1", content_index=0, audio_end_ms=50)
    assert talk.told[-1] == Truncated("i1", 50)


def test_a_cut_is_at_a_whole_number_of_milliseconds() -> None:
    """Trap 13: also where half a millisecond came."""
    talk = speaking()
    talk.hears(
        "response.output_audio.delta",
        response_id="r1",
        item_id="i1",
        output_index=0,
        content_index=0,
        delta=base64.b64encode(bytes(2 * 36)).decode(),
    )
    talk.done()
    talk.cuts("i1", 500)
    assert type(talk.sent[-1]["audio_end_ms"]) is int
    assert talk.sent[-1]["audio_end_ms"] == 1


def test_a_number_in_quotes_is_no_acknowledgement_of_a_cut() -> None:
    """Trap 13."""
    talk = speaking()
    talk.audio()
    talk.done()
    talk.cuts("i1", 50)
    with pytest.raises(PortError, match="provider_malformed"):
        talk.hears("conversation.item.truncated", item_id="i1", content_index=0, audio_end_ms="50")


@pytest.mark.parametrize("kind", ["response.audio.delta", "response.audio_transcript.delta", "response.text.delta"])
def test_names_of_the_beta_protocol_mean_nothing_in_the_ga_protocol(kind: str) -> None:
    """Trap 14."""
    talk = speaking()
    talk.hears(kind, response_id="r1", item_id="i1", output_index=0, content_index=0, delta="AQABAA==")
    talk.done()
    assert talk.told == [AnswerProgressed("a1"), AnswerEnded("a1")]


def test_a_cut_takes_no_text_back_that_was_told() -> None:
    """Trap 15: the service forgets its transcript; what was heard is this side's to remember."""
    talk = speaking()
    talk.words("Once upon a time")
    talk.audio()
    talk.done()
    before = talk.of(AnswerText)
    talk.cuts("i1", 50)
    talk.hears("conversation.item.truncated", item_id="i1", content_index=0, audio_end_ms=50)
    assert talk.of(AnswerText) == before == [AnswerText("a1", "Once upon a time")]


# -- Qwen ----------------------------------------------------------------------------------------------------------


def test_qwen_speaks_in_the_names_of_the_beta_and_is_asked_for_text_with_audio() -> None:
    """Trap 62."""
    talk = speaking(QWEN)
    assert cast("Json", talk.configuration["session"])["modalities"] == ["text", "audio"]
    place: Json = {"response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
    talk.hears("response.audio_transcript.delta", **place, delta="Noon.")
    talk.hears("response.audio.delta", **place, delta="AQABAA==")
    talk.done()
    kinds = [type(report) for report in talk.told]
    assert kinds == [AnswerProgressed, AnswerText, AnswerAudio, AnswerEnded]


def test_qwen_is_configured_once() -> None:
    """Trap 64: a session that has begun refuses it."""
    talk = Talk(QWEN)
    talk.hears("session.created", session={})
    talk.hears("session.updated", session={})
    assert talk.sent == []


@pytest.mark.parametrize("status", ["completed", "cancelled", "failed", "incomplete", "something_new"])
def test_a_cancel_is_acknowledged_by_the_end_of_the_response_whatever_its_status(status: str) -> None:
    for dialect in (OPENAI, QWEN):
        talk = speaking(dialect)
        talk.cancels("a1")
        talk.done(status)
        assert talk.of(AnswerEnded, AnswerStopped, AnswerFailed) == [AnswerStopped("a1")]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("qwen3-omni-flash-realtime", ["session.finish"]),
        ("qwen3.8-omni-flash-realtime", ["session.finish"]),
        ("qwen-audio-3.0-realtime-plus", []),
    ],
)
def test_the_end_of_a_session_is_told_where_the_model_knows_that(model: str, said: list[str]) -> None:
    """Trap 65."""
    dialect = QwenOmniDialect(QwenOmniSettings(model=model), KEY)
    assert [message["type"] for message in dialect.closing()] == said


def test_a_session_that_qwen_finishes_by_itself_is_over() -> None:
    """Trap 65."""
    talk = Talk(QWEN)
    talk.hears("session.finished")
    (ended,) = talk.told
    assert isinstance(ended, SessionEnded)
    assert ended.error is not None
    assert ended.error.retryable


# -- what it was told ----------------------------------------------------------------------------------------------


def test_a_call_of_an_answer_that_was_cancelled_too_late_is_not_made_and_has_an_outcome() -> None:
    talk = speaking()
    talk.cancels("a1")
    item: Json = {"id": "i2", "type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    talk.hears("response.done", response={"id": "r1", "status": "completed", "output": [item]})
    assert talk.told == [AnswerProgressed("a1"), AnswerStopped("a1")]
    assert talk.sent[-1]["type"] == "conversation.item.create"
    assert cast("Json", talk.sent[-1]["item"])["call_id"] == "c1"


def test_an_answer_to_what_the_service_did_not_take_is_not_asked_for() -> None:
    talk = Talk()
    talk.does((talk.protocol.submit_text("hello"),))
    talk.error("string_above_max_length", talk.sent[-1]["event_id"])
    refused = talk.protocol.refused_input
    assert refused is not None
    assert (refused.code, refused.retryable) == ("request_refused", False)


def test_outcomes_of_calls_are_told_by_their_names() -> None:
    talk = Talk()
    talk.does((talk.protocol.submit_output(ToolOutput("c1", "weather", "rain")),))
    assert talk.sent[-1]["item"] == {"type": "function_call_output", "call_id": "c1", "output": "rain"}


def test_a_server_whose_events_all_have_one_name_is_understood() -> None:
    protocol = RealtimeProtocol(OPENAI, RealtimeRequest())
    told: list[Told] = []
    session: JsonValue = {"type": "realtime"}
    for kind in ("session.created", "session.updated"):
        told += protocol.take({"type": kind, "event_id": "e", "session": session})
    assert protocol.is_ready
    told = [protocol.answers.ask("a1")]
    place: Json = {"response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
    for _ in range(2):
        delta: Json = {"type": "response.output_audio_transcript.delta", "event_id": "e", **place, "delta": "ha"}
        told += protocol.take(delta)
    assert [report.text for report in told if isinstance(report, AnswerText)] == ["ha", "ha"]


def test_no_more_is_remembered_than_is_needed() -> None:
    """A session of an hour holds as much as one of a minute."""
    talk = Talk()
    for number in range(300):
        talk.asks(f"a{number}")
        talk.created(f"r{number}")
        talk.audio(f"r{number}", f"i{number}", milliseconds=20)
        talk.cancels(f"a{number}")
        talk.done("completed", f"r{number}")
    talk.cuts("i0", 10)
    assert isinstance(talk.told[-1], TruncationRefused)
    talk.cuts("i299", 10)
    assert talk.sent[-1]["audio_end_ms"] == 10
