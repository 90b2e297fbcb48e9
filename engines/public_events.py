"""The public event stream: what happened, with identities and a sequence, for whoever watches.

Audio never rides here. A slow observer is cut off and told so; it does not slow the conversation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

import anyio
from pydantic import TypeAdapter

from ..statecharts.actions import Publish
from ..statecharts.published import AnnouncementBegan, AnnouncementEnded, Payload

SCHEMA_VERSION = 2


class Visibility(StrEnum):
    """For whom an event is meant."""

    USER = "user"
    """What anybody in the conversation may see."""
    SPEECH = "speech"
    """How it sounds: captions, playback, what was heard."""
    INTERNAL = "internal"
    """The inside of a reply: arguments of tools, and whatever nobody has classed yet."""
    DIAGNOSTIC = "diagnostic"
    """For whoever looks after the machine: usage and durations."""


_OF_FAMILY: dict[str, tuple[str, Visibility]] = {
    "session": ("session", Visibility.USER),
    "stream": ("session", Visibility.USER),
    "turn": ("user", Visibility.USER),
    "input": ("user", Visibility.SPEECH),
    "transcript": ("user", Visibility.SPEECH),
    "interruption": ("user", Visibility.USER),
    "cancel": ("session", Visibility.USER),
    "response": ("assistant", Visibility.USER),
    "run": ("assistant", Visibility.USER),
    "text": ("assistant", Visibility.USER),
    "tool": ("assistant", Visibility.USER),
    "task": ("assistant", Visibility.USER),
    "announcement": ("assistant", Visibility.USER),
    "delivery": ("speaker", Visibility.USER),
    "speech": ("speaker", Visibility.SPEECH),
    "audio": ("speaker", Visibility.SPEECH),
    "playback": ("speaker", Visibility.SPEECH),
    "usage": ("assistant", Visibility.DIAGNOSTIC),
    "context": ("assistant", Visibility.DIAGNOSTIC),
    "metrics": ("session", Visibility.DIAGNOSTIC),
}
"""Who says it, and for whom, by the first part of the type."""
_INTERNAL_TYPES = frozenset({"tool.arguments_delta", "tool.call_ready"})


def visibility_of(event_type: str) -> Visibility:
    """For whom events of this type are. One that is not classed here is internal: nobody sees it by an oversight."""
    if event_type in _INTERNAL_TYPES:
        return Visibility.INTERNAL
    return _classed(event_type)[1]


def origin_of_type(event_type: str) -> str:
    """Who says events of this type: "user", "assistant", "speaker" or "session"."""
    return _classed(event_type)[0]


def _classed(event_type: str) -> tuple[str, Visibility]:
    return _OF_FAMILY.get(event_type.partition(".")[0], ("session", Visibility.INTERNAL))


@dataclass(frozen=True, slots=True)
class TextAppended(Payload):
    """Visible text, as the model produced it."""

    type: ClassVar[str] = "text.delta"
    text: str


@dataclass(frozen=True, slots=True)
class TextFinished(Payload):
    """The whole visible text; replaces the deltas."""

    type: ClassVar[str] = "text.final"
    text: str


@dataclass(frozen=True, slots=True)
class ContextTruncated(Payload):
    """What a native realtime model believes it said was cut to what was heard; or, not `applied`, it still believes it
    said everything.
    """

    type: ClassVar[str] = "context.truncated"
    played_ms: int | None
    applied: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SpeechTextCommitted(Payload):
    """A unit of speech was handed to the synthesiser."""

    type: ClassVar[str] = "speech.text_committed"
    unit_index: int
    text: str
    source_end: int | None = None
    """Where it ends in the visible text, in characters."""


@dataclass(frozen=True, slots=True)
class SpeechUnitVoiced(Payload):
    """A unit of speech exists as sound: samples [start_sample, end_sample) of the reply's output stream."""

    type: ClassVar[str] = "speech.unit_synthesized"
    unit_index: int
    start_sample: int
    end_sample: int


@dataclass(frozen=True, slots=True)
class TaskUpdated(Payload):
    """A background task has another state; `state` is one of the `BackgroundTask` chart."""

    type: ClassVar[str] = "task.updated"
    task_id: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class PublicEvent:
    """One semantic event: an envelope and exactly one payload."""

    event_id: str
    sequence: int
    session_epoch: int
    output_epoch: int
    conversation_id: str
    occurred_at_ns: int
    payload: Payload
    turn_id: str | None = None
    run_id: str | None = None
    response_id: str | None = None
    attempt_id: str | None = None
    stream_id: int | None = None
    call_id: str | None = None

    @property
    def type(self) -> str:
        """The public name of the kind."""
        return self.payload.type

    @property
    def visibility(self) -> Visibility:
        """For whom it is meant; a private announcement is nobody's business."""
        is_private = isinstance(self.payload, AnnouncementBegan | AnnouncementEnded) and self.payload.private
        return Visibility.INTERNAL if is_private else visibility_of(self.type)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; identities that do not apply are left out."""
        envelope = {
            "schema_version": SCHEMA_VERSION,
            "type": self.type,
            "event_id": self.event_id,
            "sequence": self.sequence,
            "session_epoch": self.session_epoch,
            "output_epoch": self.output_epoch,
            "conversation_id": self.conversation_id,
            "occurred_at_ns": self.occurred_at_ns,
            "origin": origin_of_type(self.type),
            "visibility": self.visibility.value,
            "turn_id": self.turn_id,
            "run_id": self.run_id,
            "response_id": self.response_id,
            "attempt_id": self.attempt_id,
            "stream_id": self.stream_id,
            "call_id": self.call_id,
        }
        payload = _adapter_of(type(self.payload)).dump_python(self.payload, mode="json")
        return {**{name: value for name, value in envelope.items() if value is not None}, "payload": payload}


@cache
def _adapter_of(kind: type[Payload]) -> TypeAdapter[Any]:
    """Building one takes far longer than using it."""
    return TypeAdapter(kind)


class ObserverLagged(Exception):
    """The observer did not keep up and lost events: take a fresh snapshot and subscribe again."""


class Subscription:
    """One observer's bounded view of the stream."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[PublicEvent] = deque()
        self._changed = anyio.Event()
        self._lagged = False
        self._ended = False

    def offer(self, event: PublicEvent) -> None:
        """Called by the stream; never waits."""
        if self._lagged or len(self._waiting) >= self._capacity:
            # Nothing more is kept: what came behind a hole would look as if nothing were missing.
            self._lagged = True
        else:
            self._waiting.append(event)
        self._changed.set()

    def end(self) -> None:
        """No more events will come."""
        self._ended = True
        self._changed.set()

    async def events(self) -> AsyncIterator[PublicEvent]:
        """Events in order until the stream ends. Raises `ObserverLagged` after the last one that was kept."""
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._lagged:
                raise ObserverLagged("events were lost; take a fresh snapshot")
            if self._ended:
                return
            self._changed = anyio.Event()
            await self._changed.wait()


class PublicStream:
    """Numbers events and hands them to every observer."""

    def __init__(self, conversation_id: str, now_ns: Callable[[], int]) -> None:
        self._conversation_id = conversation_id
        self._now_ns = now_ns
        self._sequence = 0
        self._epoch = 0
        self._subscriptions: list[Subscription] = []
        self._listeners: list[Callable[[PublicEvent], None]] = []
        self._ended = False

    @contextmanager
    def subscribe(self, capacity: int = 1_024) -> Generator[Subscription]:
        """Watch from now on."""
        subscription = Subscription(capacity)
        self._subscriptions.append(subscription)
        if self._ended:
            subscription.end()
        try:
            yield subscription
        finally:
            self._subscriptions.remove(subscription)

    def listen(self, listener: Callable[[PublicEvent], None]) -> Callable[[], None]:
        """Call `listener` with every event at once; it must return quickly. The returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, decided: Publish) -> None:
        """Number one event and offer it to everybody."""
        stamp = decided.stamp
        if stamp.session_epoch != self._epoch:
            self._epoch, self._sequence = stamp.session_epoch, 0
        self._sequence += 1
        event = PublicEvent(
            event_id=f"{self._conversation_id}:{stamp.session_epoch}:{self._sequence}",
            sequence=self._sequence,
            session_epoch=stamp.session_epoch,
            output_epoch=stamp.output_epoch,
            conversation_id=self._conversation_id,
            occurred_at_ns=self._now_ns(),
            payload=decided.payload,
            turn_id=decided.turn_id,
            run_id=decided.run_id,
            response_id=decided.response_id,
            attempt_id=decided.attempt_id,
            stream_id=decided.stream_id,
            call_id=decided.call_id,
        )
        for subscription in self._subscriptions:
            subscription.offer(event)
        for listener in tuple(self._listeners):
            listener(event)

    def end(self) -> None:
        """The conversation is closed."""
        self._ended = True
        for subscription in self._subscriptions:
            subscription.end()
