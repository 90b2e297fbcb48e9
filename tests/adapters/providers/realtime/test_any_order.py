"""Whatever a service says, in whatever order: what is told keeps to the promises of the port."""

from __future__ import annotations

import base64
from collections import Counter
from itertools import count
from typing import cast

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from voicechart.adapters.providers.realtime.openai_realtime import OpenAIRealtimeDialect, OpenAIRealtimeSettings
from voicechart.adapters.providers.realtime.qwen_omni import QwenOmniDialect, QwenOmniSettings
from voicechart.adapters.providers.realtime_protocol import RealtimeDialect, RealtimeProtocol, Sending, Told
from voicechart.engines.realtime import RealtimeRequest
from voicechart.engines.realtime.reports import (
    AnswerAudio,
    AnswerCallsTool,
    AnswerEnded,
    AnswerFailed,
    AnswerProgressed,
    AnswerStopped,
    AnswerText,
    AnswerUsage,
    RealtimeReport,
    SessionEnded,
    Transcribed,
    TranscriptionEnded,
)

OF_ANSWERS = (AnswerText, AnswerAudio, AnswerProgressed, AnswerCallsTool, AnswerUsage)
ENDS = (AnswerEnded, AnswerStopped, AnswerFailed)
DIALECTS: tuple[RealtimeDialect, ...] = (
    OpenAIRealtimeDialect(OpenAIRealtimeSettings(), "key"),
    QwenOmniDialect(QwenOmniSettings(), "key"),
)
NAMES = {
    "response.output_audio.delta": "response.audio.delta",
    "response.output_audio_transcript.delta": "response.audio_transcript.delta",
}
Json = dict[str, JsonValue]
RESPONSES = st.sampled_from(("r1", "r2", "r3"))
ITEMS = st.sampled_from(("i1", "i2"))
STATUSES = st.sampled_from(("completed", "cancelled", "incomplete", "failed", "odd", None))
CODES = st.sampled_from(
    (
        "response_cancel_not_active",
        "conversation_already_has_active_response",
        "input_audio_buffer_commit_empty",
        "invalid_value",
        None,
    )
)
EVENTS = st.sampled_from(("cancel_1", "cancel_2", "create_1", "create_2", "commit_1", "cut_1", "input_1", "x", None))


def as_json(made: dict[str, object]) -> Json:
    return cast("Json", made)


def message(kind: str, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields}).map(as_json)


def response(status: st.SearchStrategy[str | None]) -> st.SearchStrategy[object]:
    call: Json = {"id": "i9", "type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    return st.fixed_dictionaries({"id": RESPONSES, "status": status, "output": st.sampled_from(([], [call]))})


SAID = st.one_of(
    message("response.created", response=response(st.just("in_progress"))),
    message(
        "response.output_audio.delta",
        response_id=RESPONSES,
        item_id=ITEMS,
        delta=st.sampled_from([base64.b64encode(bytes(size)).decode() for size in (0, 1, 3, 960)]),
    ),
    message("response.output_audio_transcript.delta", response_id=RESPONSES, item_id=ITEMS, delta=st.just("word")),
    message(
        "response.function_call_arguments.done",
        response_id=RESPONSES,
        item_id=ITEMS,
        call_id=st.sampled_from(("c1", "c2")),
        name=st.just("weather"),
        arguments=st.sampled_from(("{}", '{"a":')),
    ),
    message("response.done", response=response(STATUSES)),
    message("input_audio_buffer.committed", item_id=ITEMS),
    message(
        "conversation.item.input_audio_transcription.completed", item_id=ITEMS, transcript=st.sampled_from(("", "hi"))
    ),
    message("conversation.item.truncated", item_id=ITEMS, audio_end_ms=st.just(1)),
    message("conversation.item.deleted", item_id=ITEMS),
    message(
        "error",
        error=st.fixed_dictionaries({"type": st.just("invalid_request_error"), "code": CODES, "event_id": EVENTS}),
    ),
    message("odd.kind"),
)
DONE = st.one_of(
    st.just("ask"),
    st.just("cancel"),
    st.just("commit"),
    st.tuples(st.just("cut"), ITEMS, st.integers(0, 200)),
)


class World:
    """A session, what is done in it and what came of that."""

    def __init__(self, dialect: RealtimeDialect) -> None:
        self.dialect = dialect
        self.protocol = RealtimeProtocol(dialect, RealtimeRequest())
        self.told: list[RealtimeReport] = []
        self.sent: list[Json] = []
        self.cancelled_at: dict[str, int] = {}
        self.asked: list[str] = []
        self.committed: list[str] = []
        self._events = count(1)
        for kind in ("session.created", "session.updated"):
            self.hear({"type": kind, "session": {}})

    def hear(self, said: Json) -> None:
        kind = str(said["type"])
        name = NAMES.get(kind, kind) if isinstance(self.dialect, QwenOmniDialect) else kind
        self._take(list(self.protocol.take({**said, "type": name, "event_id": f"event_{next(self._events)}"})))

    def do(self, what: object) -> None:
        match what:
            case "ask" if self.protocol.answers.is_free:
                self.asked.append(f"a{len(self.asked) + 1}")
                self._take([self.protocol.answers.ask(self.asked[-1])])
            case "cancel" if self.asked:
                self.cancelled_at.setdefault(self.asked[-1], len(self.told))
                self._take(list(self.protocol.answers.cancel(self.asked[-1])))
            case "commit":
                self.committed.append(f"u{len(self.committed) + 1}")
                self._take([self.protocol.utterances.commit(self.committed[-1])])
            case ("cut", str(item_id), int(played_ms)):
                self._take(list(self.protocol.cuts.cut(item_id, played_ms)))
            case _:
                pass

    def _take(self, what: list[Told]) -> None:
        for one in what:
            if isinstance(one, Sending):
                self.sent.append(one.message)
            else:
                self.told.append(one)

    # -- the promises ----------------------------------------------------------------------------------------------

    def keeps_its_promises(self) -> None:
        for answer_id in self.asked:
            self._answer_is_right(answer_id)
        self._audio_is_gapless()
        self._utterances_end_once()
        assert not any(isinstance(report, SessionEnded) for report in self.told)
        if self.dialect.names_answers:
            cancelled = Counter(one["response_id"] for one in self.sent if one["type"] == "response.cancel")
            assert all(number == 1 for number in cancelled.values())
        for one in self.sent:
            if one["type"] == "conversation.item.truncate":
                played_ms = one["audio_end_ms"]
                assert isinstance(played_ms, int)
                assert 0 < played_ms <= self.protocol.received.length_ms(str(one["item_id"]))

    def comes_to_rest(self) -> None:
        """Nothing is in the way of the next answer when the service has ended what it began."""
        for response_id in ("r1", "r2", "r3", "r4", "r5"):
            for kind in ("response.created", "response.done"):
                body: Json = {"id": response_id, "status": "completed"}
                self.hear({"type": kind, "response": body})
        assert self.protocol.answers.is_free
        ended = {report.answer_id for report in self.told if isinstance(report, ENDS)}
        assert ended == set(self.asked)

    def _answer_is_right(self, answer_id: str) -> None:
        told = [
            (place, report)
            for place, report in enumerate(self.told)
            if isinstance(report, (*OF_ANSWERS, *ENDS)) and report.answer_id == answer_id
        ]
        ends = [report for _, report in told if isinstance(report, ENDS)]
        assert len(ends) <= 1
        if ends:
            assert told[-1][1] is ends[0]
        calls = [report.call_id for _, report in told if isinstance(report, AnswerCallsTool)]
        assert len(calls) == len(set(calls))
        assert not calls or ends == [AnswerEnded(answer_id, awaits_tools=True)]
        since = self.cancelled_at.get(answer_id)
        if since is not None:
            late = [report for place, report in told if place >= since]
            assert late in ([], [AnswerStopped(answer_id)])

    def _audio_is_gapless(self) -> None:
        ends: dict[tuple[str, str], int] = {}
        for report in self.told:
            if isinstance(report, AnswerAudio):
                key = (report.answer_id, report.item_id)
                assert report.frame.start_sample == ends.get(key, report.frame.start_sample)
                ends[key] = report.frame.end_sample

    def _utterances_end_once(self) -> None:
        for utterance_id in self.committed:
            words = [
                report
                for report in self.told
                if isinstance(report, Transcribed | TranscriptionEnded) and report.utterance_id == utterance_id
            ]
            ends = [report for report in words if isinstance(report, TranscriptionEnded)]
            assert len(ends) <= 1
            assert not ends or words[-1] is ends[0]


@given(st.sampled_from(DIALECTS), st.lists(st.one_of(SAID, DONE), max_size=40))
def test_the_promises_hold_in_any_order(
    dialect: RealtimeDialect, steps: list[Json | str | tuple[str, str, int]]
) -> None:
    world = World(dialect)
    for step in steps:
        if isinstance(step, dict):
            world.hear(step)
        else:
            world.do(step)
    world.keeps_its_promises()
    world.comes_to_rest()
    world.keeps_its_promises()
