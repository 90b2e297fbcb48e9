"""Facts that once broke an invariant, found by the explorer and by property tests, each with its right end."""

from __future__ import annotations

from voicechart.statecharts import Conversation, GenerationPolicy, Policies, TurnPolicy
from voicechart.statecharts.actions import Action, ExecuteTool, RecordDelivery, RecordToolOutcome, ReleaseOutput
from voicechart.statecharts.context import Response, TimerKind
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.explorer.prelude import (
    CARRIED_ON,
    PLAYING,
    READY,
    Happening,
    audio_began,
    began_to_speak,
    fell_silent,
    recognition_closed,
    typed,
    was_heard,
)
from voicechart.statecharts.facts import (
    AudioEnded,
    ButtonPressed,
    CancelAcknowledged,
    ConnectionFailed,
    ConnectionLost,
    Fact,
    GenerationFailed,
    OpenRequested,
    OutputStarted,
    PlaybackStopped,
    SpeechStarted,
    SpeechUnitSynthesized,
    StepCompleted,
    TextSubmitted,
    TimerFired,
    ToolCallReady,
    ToolFinished,
)
from voicechart.statecharts.invariants import Checker
from voicechart.statecharts.values import DeliveryStatus, ToolStatus

ERROR = ScopedError("failed", "anywhere", ErrorScope.SESSION, "try again", retryable=True)


class Case:
    """A conversation on which every broken invariant raises, and everything it decided."""

    def __init__(self, *happenings: Happening, policies: Policies | None = None) -> None:
        self.conversation = Conversation("found", policies=policies)
        Checker(self.conversation)
        self.decided: list[Action] = []
        for happening in happenings:
            self.tell(happening(self.conversation.context))

    def tell(self, fact: Fact) -> None:
        self.decided.extend(self.conversation.handle(fact))

    def fire(self, kind: TimerKind) -> None:
        timer = next(timer for timer in self.conversation.context.timers if timer.kind is kind)
        self.tell(TimerFired(at=self.conversation.context.now, timer_id=timer.timer_id))

    @property
    def reply(self) -> Response:
        assert self.conversation.context.response is not None
        return self.conversation.context.response

    def deliveries(self) -> list[RecordDelivery]:
        return [action for action in self.decided if isinstance(action, RecordDelivery)]

    def outcomes(self) -> list[tuple[str, ToolStatus]]:
        return [(action.call_id, action.status) for action in self.decided if isinstance(action, RecordToolOutcome)]

    def call(self, call_id: str, *, background: bool = False) -> None:
        self.tell(
            ToolCallReady(
                at=0, attempt_id=self.reply.attempt_id, call_id=call_id, name="look_up", background=background
            )
        )


def test_a_reply_whose_session_is_lost_while_it_awaits_its_receipt_is_recorded_once() -> None:
    case = Case(*PLAYING)
    case.tell(ButtonPressed(at=0))
    case.tell(ConnectionLost(at=0, error=ERROR))
    case.tell(PlaybackStopped(at=0, output_epoch=1, stream_id=1, played_samples=40))
    assert [(record.status, record.played_samples) for record in case.deliveries()] == [
        (DeliveryStatus.INTERRUPTED, 40)
    ]


def test_a_unit_of_speech_that_is_told_twice_is_heard_once() -> None:
    case = Case(*PLAYING)
    for _ in range(2):
        case.tell(SpeechUnitSynthesized(at=0, output_epoch=1, unit_index=0, start_sample=0, end_sample=100))
    case.tell(ButtonPressed(at=0))
    case.tell(PlaybackStopped(at=0, output_epoch=1, stream_id=1, played_samples=150))
    assert [record.units for record in case.deliveries()] == [1]


def test_a_call_under_the_identity_of_open_background_work_is_refused_and_the_work_goes_on() -> None:
    case = Case(*READY, typed)
    case.call("call", background=True)
    first = case.reply.response_id
    case.tell(ButtonPressed(at=0))
    case.fire(TimerKind.CANCEL_ACK)
    case.tell(READY[1](case.conversation.context))
    case.tell(TextSubmitted(at=0, text="and now"))
    assert case.reply.response_id != first
    case.call("call")
    assert case.outcomes() == [("call", ToolStatus.FAILED)]
    case.tell(ToolFinished(at=0, call_id="call", status=ToolStatus.COMPLETED))
    assert case.outcomes() == [("call", ToolStatus.FAILED), ("call", ToolStatus.COMPLETED)]
    assert sum(isinstance(action, ExecuteTool) for action in case.decided) == 1


def test_a_connection_that_fails_before_it_was_tried_has_a_deadline() -> None:
    case = Case()
    case.tell(ConnectionFailed(at=0, error=ERROR))
    assert {timer.kind for timer in case.conversation.context.timers} == {TimerKind.CONNECT, TimerKind.BACKOFF}
    case.fire(TimerKind.CONNECT)
    assert case.conversation.is_closed


def test_an_attempt_that_waits_for_its_retry_has_said_nothing() -> None:
    case = Case(*READY, typed)
    case.tell(GenerationFailed(at=0, attempt_id=case.reply.attempt_id, error=ERROR))
    case.tell(OutputStarted(at=0, attempt_id=case.reply.attempt_id))
    assert not case.reply.output_started
    case.fire(TimerKind.RETRY)
    case.tell(OutputStarted(at=0, attempt_id=case.reply.attempt_id))
    assert case.reply.output_started


def test_a_held_reply_that_is_synthesized_to_its_end_is_still_released() -> None:
    case = Case(*READY, typed, began_to_speak, audio_began)
    case.tell(AudioEnded(at=0, output_epoch=1, end_sample=200))
    assert case.conversation.leaves[3] == "draining"
    case.fire(TimerKind.HOLD)
    assert [action.stream_id for action in case.decided if isinstance(action, ReleaseOutput)] == [1]


def test_a_held_reply_that_is_heard_all_the_same_is_not_held_any_more() -> None:
    case = Case(*READY, typed, began_to_speak, audio_began, was_heard)
    output = case.conversation.context.output
    assert output is not None
    assert output.started
    assert not output.held
    assert TimerKind.HOLD not in {timer.kind for timer in case.conversation.context.timers}


def test_the_call_that_runs_out_of_steps_by_its_deadline_gets_its_outcome() -> None:
    case = Case(*READY, typed, policies=Policies(generation=GenerationPolicy(max_tool_steps=1)))
    case.call("call")
    case.tell(StepCompleted(at=0, attempt_id=case.reply.attempt_id))
    case.fire(TimerKind.TOOL)
    assert case.outcomes() == [("call", ToolStatus.UNKNOWN)]
    assert case.conversation.leaves[2] == "failed"


def test_a_reply_that_was_called_off_is_not_asked_for_again_when_the_session_is_lost() -> None:
    case = Case(*READY, typed)
    case.tell(ButtonPressed(at=0))
    case.tell(ConnectionLost(at=0, error=ERROR))
    assert case.conversation.context.pending is None


def test_speech_before_anything_was_opened_is_kept_for_the_session() -> None:
    case = Case()
    case.tell(SpeechStarted(at=0))
    case.tell(OpenRequested(at=0))
    assert case.conversation.leaves[:2] == ("opening", "speech")


def test_a_retry_leaves_the_turn_waiting_that_was_carried_on_and_committed_meanwhile() -> None:
    case = Case(*CARRIED_ON, fell_silent, policies=Policies(turn=TurnPolicy(max_restarts=1)))
    case.tell(CancelAcknowledged(at=0, attempt_id=case.reply.attempt_id))
    case.tell(recognition_closed(case.conversation.context))
    case.tell(GenerationFailed(at=0, attempt_id=case.reply.attempt_id, error=ERROR))
    case.fire(TimerKind.RETRY)
    waiting = case.conversation.context.pending
    assert waiting is not None
    assert waiting.turn_ids == case.reply.turn_ids
