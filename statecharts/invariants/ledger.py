"""The ledger: what a conversation owes, told from its facts and actions alone.

The context is the chart's own view of itself; the ledger is the view from outside, so the two can be
compared. It holds open obligations only - whatever was settled leaves it, and settling what is not in it is a
violation - so it stays small however long the conversation runs. It is a frozen value: the explorer keeps one for each
branch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..actions import (
    CancelRecognition,
    CancelTimer,
    ExecuteTool,
    FinishOutput,
    FinishRecognition,
    OpenOutput,
    Publish,
    RecordDelivery,
    RecordResponse,
    RecordToolOutcome,
    Release,
    SettleAnnouncement,
    StartAnnouncement,
    StartGeneration,
    StartRecognition,
    StartTimer,
    StopPlayback,
    StoreUserTurn,
    TranscribeRecording,
)
from ..chart import Step
from ..context import Context, TimerKind
from ..facts import (
    PlaybackDrained,
    RecognitionClosed,
    RecognitionFailed,
    SayRequested,
    SegmentFinalized,
    SpeechUnitSynthesized,
    StreamFact,
    TimerFired,
)
from ..published import SpeechBegan, TurnDiscarded, TurnDropped

TAKEN_BACK = frozenset({"reply_unheard", "turn_continued"})
"""Reasons of an epoch step that withdraws a reply nobody has heard: its turns are owed an answer again."""


@dataclass(frozen=True, slots=True)
class RunningTimer:
    timer_id: str
    kind: TimerKind
    due_ns: int


@dataclass(frozen=True, slots=True)
class OpenStream:
    """An output stream whose delivery record has not been written. `rendered_samples`: the highest receipt."""

    stream_id: int
    output_epoch: int
    response_id: str
    rendered_samples: int | None = None
    end_sample: int | None = None

    def after_receipt(self, fact: StreamFact) -> OpenStream:
        """What the receipts confirm, `fact` included; a drain confirms everything up to the end."""
        told = fact.played_samples
        if told is None and isinstance(fact, PlaybackDrained):
            told = self.end_sample
        return self if told is None else replace(self, rendered_samples=max(self.rendered_samples or 0, told))


@dataclass(frozen=True, slots=True)
class SpokenUnit:
    """A unit of speech of a response that has no delivery record yet."""

    response_id: str
    unit_index: int
    end_sample: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """Open obligations, and the highest epochs ever seen."""

    session_epoch: int = 0
    output_epoch: int = 0
    sequence: int = 0
    uncommitted_turns: frozenset[str] = frozenset()
    """Opened, neither committed nor discarded."""
    owed_turns: frozenset[str] = frozenset()
    """Committed, and neither answered nor dropped."""
    revisions: tuple[tuple[str, int], ...] = ()
    """Commits so far of the turns that may still be committed again."""
    open_responses: frozenset[str] = frozenset()
    attempts: frozenset[str] = frozenset()
    """Attempt identities used for the open responses."""
    undelivered: frozenset[str] = frozenset()
    """Responses without a delivery record."""
    announcements: frozenset[int] = frozenset()
    """Asked for, and without an outcome."""
    calls: frozenset[tuple[str, str]] = frozenset()
    """Every call of the present response, dispatched or refused: (response, call)."""
    open_calls: frozenset[tuple[str, str]] = frozenset()
    timers: tuple[RunningTimer, ...] = ()
    streams: tuple[OpenStream, ...] = ()
    units: frozenset[SpokenUnit] = frozenset()
    recognitions: frozenset[str] = frozenset()
    """Started, neither told to finish or cancel nor closed by themselves."""
    places: int = 0
    """The last place in the history that was given."""
    released: bool = False

    def stream_of(self, response_id: str) -> OpenStream | None:
        """The stream of that response, if one was opened."""
        return next((stream for stream in self.streams if stream.response_id == response_id), None)

    def revision_of(self, turn_id: str) -> int:
        """How often that turn was committed; 0 when it never was, or cannot be any more."""
        return next((revision for known, revision in self.revisions if known == turn_id), 0)

    def after(self, step: Step[Context]) -> Ledger:
        """The ledger once `step` has been entered."""
        before, after = step.before.context, step.after.context
        entry = _Entry(self, step)
        entry.take_fact()
        entry.take_back_reply()
        for action in step.actions:
            entry.take_action(action)
        return replace(
            self,
            session_epoch=max(self.session_epoch, before.session_epoch, after.session_epoch),
            output_epoch=max(self.output_epoch, before.output_epoch, after.output_epoch),
            sequence=max(self.sequence, after.sequence),
            uncommitted_turns=frozenset(entry.uncommitted),
            owed_turns=frozenset(entry.owed),
            revisions=entry.revisions_in_play(),
            open_responses=frozenset(entry.open_responses),
            attempts=frozenset(entry.attempts),
            undelivered=frozenset(entry.undelivered),
            announcements=frozenset(entry.announcements),
            calls=frozenset(entry.calls),
            open_calls=frozenset(entry.open_calls),
            timers=tuple(entry.timers.values()),
            streams=tuple(entry.streams.values()),
            units=frozenset(unit for unit in entry.units if unit.response_id in entry.undelivered),
            recognitions=frozenset(entry.recognitions),
            places=entry.places,
            released=entry.released,
        )


class _Entry:
    """One macrostep being entered: the ledger, taken apart."""

    def __init__(self, ledger: Ledger, step: Step[Context]) -> None:
        self.step = step
        self.uncommitted = set(ledger.uncommitted_turns)
        self.owed = set(ledger.owed_turns)
        self.revisions = dict(ledger.revisions)
        self.open_responses = set(ledger.open_responses)
        self.attempts = set(ledger.attempts)
        self.undelivered = set(ledger.undelivered)
        self.announcements = set(ledger.announcements)
        self.calls = set(ledger.calls)
        self.open_calls = set(ledger.open_calls)
        self.timers = {timer.timer_id: timer for timer in ledger.timers}
        self.streams = {stream.stream_id: stream for stream in ledger.streams}
        self.units = set(ledger.units)
        self.recognitions = set(ledger.recognitions)
        self.places = ledger.places
        self.released = ledger.released
        reply = step.after.context.response
        if reply is not None:
            self.places = max(self.places, reply.position)

    def take_fact(self) -> None:
        fact = self.step.fact
        if isinstance(fact, TimerFired):
            self.timers.pop(fact.timer_id, None)
        elif isinstance(fact, SayRequested):
            before = self.step.before
            if fact.number > before.context.last_announcement and "closed" not in before.leaves:
                self.announcements.add(fact.number)
        elif isinstance(fact, RecognitionClosed | RecognitionFailed):
            self.recognitions.discard(fact.recognition_id)
        elif isinstance(fact, SpeechUnitSynthesized):
            reply = self.step.before.context.response
            if reply is not None and reply.output_epoch == fact.output_epoch:
                self.units.add(SpokenUnit(reply.response_id, fact.unit_index, fact.end_sample))
        elif isinstance(fact, StreamFact):
            stream = self.streams.get(fact.stream_id)
            if stream is not None:
                self.streams[fact.stream_id] = stream.after_receipt(fact)

    def take_back_reply(self) -> None:
        """A reply that was withdrawn unheard leaves its turns unanswered again."""
        before, after = self.step.before.context, self.step.after.context
        reply, waiting = before.response, after.pending
        if reply is None or before.reply_is_over or after.output_epoch == before.output_epoch:
            return
        reasons = {action.reason for action in self.step.actions if isinstance(action, StopPlayback)}
        requeued = waiting is not None and set(reply.turn_ids) <= set(waiting.turn_ids)
        if reasons & TAKEN_BACK or (requeued and not reply.heard):
            self.owed.update(reply.turn_ids)

    def take_action(self, action: object) -> None:
        match action:
            case Publish(payload=payload, turn_id=str(turn_id)):
                self._take_turn(payload, turn_id)
            case StartTimer(timer_id=timer_id, kind=kind, delay_ms=delay_ms):
                due_ns = self.step.after.context.now + delay_ms * 1_000_000
                self.timers[timer_id] = RunningTimer(timer_id, kind, due_ns)
            case CancelTimer(timer_id=timer_id):
                self.timers.pop(timer_id, None)
            case StartRecognition() | TranscribeRecording():
                self.recognitions.add(action.recognition_id)
            case CancelRecognition() | FinishRecognition():
                self.recognitions.discard(action.recognition_id)
            case StoreUserTurn(turn_id=turn_id, revision=revision, position=position):
                self.places = max(self.places, position)
                self.uncommitted.discard(turn_id)
                if not self._is_transcript_of_heard():
                    self.owed.add(turn_id)
                self.revisions[turn_id] = revision
            case StartGeneration():
                self._start(action)
            case StartAnnouncement(response_id=response_id):
                self._forget_calls()
                self.undelivered.add(response_id)
            case SettleAnnouncement(number=number):
                self.announcements.discard(number)
            case ExecuteTool(response_id=response_id, call_id=call_id):
                self.calls.add((response_id, call_id))
                self.open_calls.add((response_id, call_id))
            case RecordToolOutcome(response_id=response_id, call_id=call_id):
                self.calls.add((response_id, call_id))
                self.open_calls.discard((response_id, call_id))
            case OpenOutput():
                self.streams[action.stream_id] = OpenStream(action.stream_id, action.output_epoch, action.response_id)
            case FinishOutput(stream_id=stream_id, end_sample=end_sample) if stream_id in self.streams:
                self.streams[stream_id] = replace(self.streams[stream_id], end_sample=end_sample)
            case RecordResponse(response_id=response_id):
                self.open_responses.discard(response_id)
            case RecordDelivery(response_id=response_id):
                self.undelivered.discard(response_id)
                for stream_id in [s.stream_id for s in self.streams.values() if s.response_id == response_id]:
                    del self.streams[stream_id]
            case Release():
                self.released = True
            case _:
                pass

    def _take_turn(self, payload: object, turn_id: str) -> None:
        match payload:
            case SpeechBegan(continues_turn=False):
                self.uncommitted.add(turn_id)
            case TurnDiscarded():
                self.uncommitted.discard(turn_id)
            case TurnDropped():
                self.owed.discard(turn_id)
            case _:
                pass

    def _start(self, action: StartGeneration) -> None:
        if action.response_id not in self.open_responses:
            self._forget_calls()
            self.undelivered.add(action.response_id)
            self.owed.difference_update(action.turn_ids)
        self.open_responses.add(action.response_id)
        self.attempts.add(action.attempt_id)

    def _is_transcript_of_heard(self) -> bool:
        """Words of a turn that was committed before: the model heard them itself and asks for nothing."""
        return self.step.after.context.capabilities.native_audio and isinstance(self.step.fact, SegmentFinalized)

    def _forget_calls(self) -> None:
        """Another response: only what is still open of the former one counts."""
        self.attempts.clear()
        self.calls = {known for known in self.calls if known in self.open_calls}

    def revisions_in_play(self) -> tuple[tuple[str, int], ...]:
        after = self.step.after.context
        in_play = set(self.owed)
        if after.turn is not None:
            in_play.add(after.turn.turn_id)
        if after.response is not None:
            in_play.update(after.response.turn_ids)
        in_play.update(turn.turn_id for turn in after.untranscribed)
        return tuple((turn_id, revision) for turn_id, revision in self.revisions.items() if turn_id in in_play)
