"""Answers of a service that names none of them: whatever happens when, what is told of an answer is of that answer.

The service is a model of the documented one: it takes messages in order, thinks, speaks, waits for its calls, and is
interrupted by the beginning of an activity and by what is written. Both directions of the network are late by less than
a second. Each turn says by what it was begun, so that a word under another name is seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from voicechart.adapters.providers.realtime.gemini_live.protocol import GeminiProtocol
from voicechart.adapters.providers.realtime_protocol import Sending, Told
from voicechart.adapters.testing import load_fixtures
from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.engines.realtime import RealtimeRequest, ToolOutput
from voicechart.engines.realtime.reports import (
    AnswerAudio,
    AnswerCallsTool,
    AnswerEnded,
    AnswerFailed,
    AnswerProgressed,
    AnswerStopped,
    AnswerText,
    RealtimeReport,
)
from voicechart.engines.reports import PortError

Json = dict[str, JsonValue]
ENDS = (AnswerEnded, AnswerStopped, AnswerFailed)
OUTPUT = (AnswerText, AnswerAudio, AnswerProgressed, AnswerCallsTool)
UNWANTED = "nobody"
STEP = SPEECH_FORMAT.samples_for_ms(20)


@dataclass
class Turn:
    label: str
    """Of the answer that it is."""
    spoke: bool = False
    is_generated: bool = False
    call: str | None = None


class Service:
    """The far end. `is_mute`: what is interrupted before it spoke, or after it was generated, ends without a word."""

    def __init__(self, *, is_mute: bool) -> None:
        self._is_mute = is_mute
        self._calls = 0
        self.is_active = False
        self.turn: Turn | None = None
        self.says: deque[Json] = deque()
        self.completed: list[str] = []
        """Answers that nothing interrupted."""

    def take(self, message: Json, label: str) -> None:
        ((kind, body),) = message.items()
        body = cast("Json", body)
        if "activityStart" in body:
            assert not self.is_active
            self.is_active = True
            self._interrupt()
        elif "activityEnd" in body:
            assert self.is_active
            self.is_active = False
            self.turn = Turn(label)
        elif kind == "realtimeInput":
            assert self.is_active
        elif kind == "clientContent":
            self._interrupt()
            if body["turnComplete"]:
                self.turn = Turn(label)
        elif self.turn is not None and self.turn.call is not None:
            (response,) = cast("list[Json]", body["functionResponses"])
            if response["id"] == self.turn.call:
                self.turn = Turn(label)

    def _interrupt(self) -> None:
        turn, self.turn = self.turn, None
        if turn is None:
            return
        if turn.call is not None:
            self.says.append({"toolCallCancellation": {"ids": [turn.call]}})
        if self._is_mute and (turn.is_generated or not turn.spoke):
            return
        self.says.append({"serverContent": {"interrupted": True}})
        self.says.append({"serverContent": {"turnComplete": True}})

    def speak(self) -> None:
        turn = self.turn
        if turn is not None and turn.call is None and not turn.is_generated:
            turn.spoke = True
            self.says.append({"serverContent": {"modelTurn": {"parts": [{"text": turn.label}]}}})

    def write(self) -> None:
        turn = self.turn
        if turn is not None and turn.spoke and turn.call is None:
            self.says.append({"serverContent": {"outputTranscription": {"text": turn.label}}})

    def call(self) -> None:
        turn = self.turn
        if turn is not None and turn.call is None and not turn.is_generated:
            turn.spoke = True
            self._calls += 1
            turn.call = f"c{self._calls}"
            calls: list[JsonValue] = [{"id": turn.call, "name": turn.label}]
            self.says.append({"toolCall": {"functionCalls": calls}})

    def generate(self) -> None:
        turn = self.turn
        if turn is not None and turn.spoke and turn.call is None and not turn.is_generated:
            turn.is_generated = True
            self.says.append({"serverContent": {"generationComplete": True}})

    def complete(self) -> None:
        turn = self.turn
        if turn is not None and turn.spoke and turn.call is None:
            self.turn = None
            self.says.append({"serverContent": {"turnComplete": True}})
            if turn.label != UNWANTED:
                self.completed.append(turn.label)


@dataclass
class Conversation:
    """The two ends, and what is under way between them."""

    is_mute: bool
    is_labelled: bool = True
    """What the service says tells which answer it is of."""
    now: float = 0.0
    told: list[RealtimeReport] = field(default_factory=list[RealtimeReport])
    asking: str | None = None
    answers: int = 0
    given: set[str] = field(default_factory=set[str])
    utterances: int = 0
    utterance: str | None = None
    written: int = 0

    def __post_init__(self) -> None:
        self.protocol = GeminiProtocol(RealtimeRequest(), SPEECH_FORMAT, AudioFormat(24_000), lambda: self.now)
        self.service = Service(is_mute=self.is_mute)
        self.sent: deque[tuple[Json, str]] = deque()

    def does(self, what: Iterable[Told], label: str = UNWANTED) -> None:
        for one in what:
            if isinstance(one, Sending):
                self.sent.append((one.message, label))
            else:
                self.told.append(one)
        self.check()

    # -- this side -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self.utterance is None:
            self.utterances += 1
            self.utterance = f"u{self.utterances}"
            self.protocol.hearing.begin(self.utterance)

    def write(self) -> None:
        if self.utterance is not None:
            for _ in range(5):
                frame = AudioFrame(bytes(2 * STEP), SPEECH_FORMAT, self.written)
                self.written += STEP
                self.does(self.protocol.write(frame))

    def commit(self) -> None:
        if self.utterance is not None:
            utterance, self.utterance = self.utterance, None
            self.does(self.protocol.commit(utterance))

    def discard(self) -> None:
        if self.utterance is not None:
            utterance, self.utterance = self.utterance, None
            self.does(self.protocol.discard(utterance))

    def text(self) -> None:
        self.protocol.submit_text("?")

    def ask(self) -> None:
        """Only while no other is asked for, and when the one before is over: that is what the chart does."""
        if self.asking is None and self.answers == len(self.ends()):
            self.answers += 1
            self.asking = f"a{self.answers}"
        self.go_on_asking()

    def go_on_asking(self) -> None:
        if self.asking is not None:
            self.protocol.is_asked = False
            what = [*self.protocol.ask(self.asking)]
            # What is said before the answer can be asked for is answered too, and nobody wants that.
            self.does(what, self.asking if self.protocol.is_asked else UNWANTED)
            if self.protocol.is_asked:
                self.asking = None

    def outcome(self) -> None:
        calls = [report for report in self.told if isinstance(report, AnswerCallsTool)]
        if calls and calls[-1].call_id not in self.given:
            self.given.add(calls[-1].call_id)
            self.protocol.submit_outputs((ToolOutput(calls[-1].call_id, calls[-1].name, "done"),))

    def cancel(self) -> None:
        if self.answers:
            answer_id = f"a{self.answers}"
            if self.asking == answer_id:
                self.asking = None
                self.told.append(AnswerStopped(answer_id))
            self.does(self.protocol.cancel(answer_id))

    # -- the network -----------------------------------------------------------------------------------------------

    def arrives(self) -> None:
        if self.sent:
            self.service.take(*self.sent.popleft())

    def comes(self) -> None:
        if self.service.says:
            self.does(self.protocol.take(self.service.says.popleft()))
            self.go_on_asking()

    def second(self) -> None:
        """Nothing is on its way longer than that."""
        while self.sent or self.service.says:
            self.arrives()
            self.comes()
        self.now += 1.0
        self.does(self.protocol.do_what_is_due())
        self.go_on_asking()

    # -- what must hold --------------------------------------------------------------------------------------------

    def ends(self) -> list[str]:
        return [report.answer_id for report in self.told if isinstance(report, ENDS)]

    def has_heard_what_was_completed(self) -> None:
        """What the service said to its end was told, unless it was not wanted any more."""
        for answer_id in self.service.completed:
            assert AnswerStopped(answer_id) in self.told or AnswerText(answer_id, answer_id) in self.told

    def check(self) -> None:
        """Nothing comes behind the terminal of an answer, and nothing of another one before it."""
        over: set[str] = set()
        for report in self.told:
            if isinstance(report, (*OUTPUT, *ENDS)):
                assert report.answer_id not in over, report
            if isinstance(report, AnswerText) and self.is_labelled:
                assert report.text == report.answer_id
            if isinstance(report, AnswerCallsTool) and self.is_labelled:
                assert report.name == report.answer_id
            if isinstance(report, ENDS):
                over.add(report.answer_id)


ACTS: dict[str, Callable[[Conversation], None]] = {
    "begin": Conversation.begin,
    "write": Conversation.write,
    "commit": Conversation.commit,
    "discard": Conversation.discard,
    "text": Conversation.text,
    "ask": Conversation.ask,
    "outcome": Conversation.outcome,
    "cancel": Conversation.cancel,
    "arrives": Conversation.arrives,
    "comes": Conversation.comes,
    "second": Conversation.second,
    "speak": lambda talk: talk.service.speak(),
    "words": lambda talk: talk.service.write(),
    "call": lambda talk: talk.service.call(),
    "generate": lambda talk: talk.service.generate(),
    "complete": lambda talk: talk.service.complete(),
}


@given(acts=st.lists(st.sampled_from(sorted(ACTS)), max_size=80), is_mute=st.booleans())
@example(acts=["ask", "cancel", *["second"] * 5, "ask", "arrives", "speak", "complete"], is_mute=True)
@example(acts=["text", "ask", "arrives", "cancel", "begin", "write", "commit", "ask", "second", "second"], is_mute=True)
def test_what_is_told_of_an_answer_is_of_that_answer_and_the_last_one_ends(acts: list[str], is_mute: bool) -> None:
    talk = Conversation(is_mute)
    for act in acts:
        ACTS[act](talk)
    talk.second()
    talk.has_heard_what_was_completed()
    # In the end everybody is patient: what was asked for is answered.
    talk.cancel()
    talk.second()
    talk.commit()
    talk.text()
    talk.ask()
    asked = f"a{talk.answers}"
    for _ in range(8):
        talk.second()
        talk.service.speak()
        talk.service.complete()
    talk.second()
    assert talk.ends()[-1] == asked
    assert asked in talk.service.completed
    talk.has_heard_what_was_completed()
    assert talk.ends() == [f"a{number}" for number in range(1, talk.answers + 1)]


FIXTURES = load_fixtures(Path(__file__).parents[1] / "conformance" / "fixtures", "gemini-live")
MESSAGES = [event.data for fixture in FIXTURES.values() for event in fixture.events if isinstance(event.data, dict)]
ASKING = ("begin", "write", "commit", "discard", "text", "ask", "outcome", "cancel", "second")


@given(st.lists(st.sampled_from(ASKING) | st.sampled_from(MESSAGES), max_size=60))
def test_whatever_comes_in_whatever_order_an_answer_ends_once_and_what_cannot_be_read_is_a_typed_error(
    acts: list[str | Json],
) -> None:
    talk = Conversation(is_mute=False, is_labelled=False)
    for act in acts:
        talk.sent.clear()
        if isinstance(act, str):
            ACTS[act](talk)
            continue
        try:
            talk.does(talk.protocol.take(act))
        except PortError:
            return
        talk.go_on_asking()
    answers = [f"a{number}" for number in range(1, talk.answers + 1)]
    assert talk.ends() in (answers, answers[:-1])


@pytest.mark.parametrize("is_mute", [False, True])
def test_the_service_of_this_property_speaks_and_is_interrupted(is_mute: bool) -> None:
    """What the property would miss if nothing happened in it."""
    talk = Conversation(is_mute)
    for act in ("begin", "write", "commit", "ask", "second", "speak", "second", "begin", "write", "cancel", "commit"):
        ACTS[act](talk)
    for act in ("ask", "arrives", "speak", "second", "second", "speak", "complete", "second"):
        ACTS[act](talk)
    assert [report for report in talk.told if isinstance(report, (AnswerText, *ENDS))] == [
        AnswerText("a1", "a1"),
        AnswerStopped("a1"),
        AnswerText("a2", "a2"),
        AnswerEnded("a2"),
    ]
