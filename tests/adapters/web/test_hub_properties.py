"""For any interleaving of events, disconnects, cursors and restarts, a client folds what the server has folded."""

from __future__ import annotations

from contextlib import ExitStack

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from voicechart.adapters.web.cursors import Cursor
from voicechart.adapters.web.folding import Json, empty_state, fold
from voicechart.adapters.web.hub import EventHub, HubLimits
from voicechart.adapters.web.observing import Observer, ObserverLimits, Owner
from voicechart.adapters.web.window import Batch, WindowLimits
from voicechart.adapters.web.wire import WireEvent
from voicechart.engines.public_events import (
    PublicStream,
    SpeechTextCommitted,
    SpeechUnitVoiced,
    TaskUpdated,
    TextAppended,
    TextFinished,
    Visibility,
)
from voicechart.statecharts import published as told
from voicechart.statecharts.actions import Publish, Stamp
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.published import Payload
from voicechart.statecharts.values import (
    DeliveryStatus,
    InterruptionSource,
    Outcome,
    PositionSource,
    ToolStatus,
    TurnAuthority,
    Usage,
)

SMALL = HubLimits(WindowLimits(max_events=12, max_bytes=6_000), ObserverLimits(max_events=8, max_bytes=3_000))
BROKEN = ScopedError("model_died", "generation", ErrorScope.RESPONSE, "it died")
IDS = st.sampled_from(("1", "2", "3"))
TEXTS = st.sampled_from(("a", "bc", "ü🙂", "d e", "a long piece of text"))
SAMPLES = st.integers(0, 1_000)

JOINED: st.SearchStrategy[Payload] = st.one_of(
    st.builds(TextAppended, TEXTS),
    st.builds(told.TranscriptChanged, IDS, st.integers(1, 5), TEXTS),
    st.builds(told.PlaybackMoved, SAMPLES, SAMPLES, SAMPLES, st.just(PositionSource.MEASURED)),
)
CHANGING: st.SearchStrategy[Payload] = st.one_of(
    st.builds(TextFinished, TEXTS),
    st.builds(told.SegmentFrozen, IDS, TEXTS),
    st.builds(told.TurnCommitted, TEXTS, st.just(TurnAuthority.VAD), st.integers(1, 2)),
    st.builds(told.ResponseTerminal, st.sampled_from(Outcome), st.just(""), st.booleans()),
    st.builds(told.PlaybackFinished, SAMPLES),
    st.builds(told.AudioBegan, st.just(16_000), st.just(1), st.booleans()),
    st.builds(SpeechTextCommitted, st.integers(0, 4), TEXTS),
    st.builds(told.UsageChanged, st.builds(Usage, st.integers(0, 9), st.integers(0, 9))),
)
RARE: st.SearchStrategy[Payload] = st.one_of(
    st.builds(told.SessionReady, st.just(("no captions",))),
    st.builds(told.SessionReconnecting, st.integers(1, 3), st.just("lost")),
    st.builds(told.SpeechBegan, st.booleans()),
    st.builds(told.TurnDiscarded, st.just("cleared")),
    st.builds(told.TurnDropped, st.just("closed")),
    st.builds(told.ResponseStarted, st.integers(1, 2)),
    st.builds(told.RunTerminal, st.sampled_from(Outcome), st.just("")),
    st.builds(told.ToolStarted, st.just("weather"), st.booleans()),
    st.builds(told.ToolEnded, st.sampled_from(ToolStatus)),
    st.builds(told.CancelRequested, st.just("asked_for")),
    st.builds(told.AnnouncementBegan, st.integers(1, 3), st.booleans()),
    st.builds(TaskUpdated, IDS, st.just("parcel"), st.sampled_from(("running", "completed"))),
    st.builds(SpeechUnitVoiced, st.integers(0, 4), SAMPLES, SAMPLES),
    st.builds(told.PlaybackBegan),
    st.builds(told.PlaybackStarved, st.integers(1, 3)),
    st.builds(told.PlaybackCut, st.just("stopped")),
    st.builds(
        told.DeliveryRecorded, st.sampled_from(DeliveryStatus), SAMPLES, SAMPLES, st.just(PositionSource.MEASURED)
    ),
    st.builds(told.InterruptionAccepted, st.sampled_from(InterruptionSource), st.just("asked_for")),
    st.builds(told.StreamError, st.just(BROKEN)),
)
PAYLOADS = st.one_of(JOINED, JOINED, CHANGING, RARE)


class Server:
    """One life of the server: a conversation's stream and its hub."""

    def __init__(self, epoch: int, sees: frozenset[Visibility]) -> None:
        self.epoch = epoch
        self.public = PublicStream("kitchen", lambda: 1)
        self.hub = EventHub("kitchen", self.public, session_epoch=epoch, sees=sees, limits=SMALL)
        for identity in "123":
            self.publish(told.ResponseStarted(1), identity)
        self.publish(told.AudioBegan(16_000, 1, held=False), "1")

    def publish(self, payload: Payload, identity: str) -> None:
        self.public.publish(
            Publish(
                Stamp(self.epoch, 1),
                payload,
                turn_id=f"turn-{identity}",
                run_id=f"run-{identity}",
                response_id=f"response-{identity}",
                stream_id=int(identity),
                call_id=f"call-{identity}",
            )
        )


class Client:
    """Folds what it gets, as the page does."""

    def __init__(self) -> None:
        self.state: Json = empty_state()
        self.cursor: str | None = None
        self.seen: list[str] = []
        self.connection: ExitStack | None = None
        self.observer: Observer | None = None

    def connect(self, server: Server) -> None:
        self.disconnect()
        self.connection = ExitStack()
        after = Cursor.parse(self.cursor) if self.cursor is not None else None
        self.observer = self.connection.enter_context(server.hub.subscribe(after))

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = self.observer = None

    def read(self, at_most: int | None = None) -> None:
        """Take what waits; of it only the first `at_most` events arrive before the connection breaks."""
        assert self.observer is not None
        batch = anyio.run(self._take)
        whole = sum(event.size_bytes for event in batch.events if event.type != "snapshot" and event.cursor is not None)
        assert whole <= SMALL.observer.max_bytes
        assert len([event for event in batch.events if event.cursor is not None]) <= SMALL.observer.max_events + 1
        for event in batch.events[:at_most]:
            if event.id_text is not None:
                self.cursor = event.id_text
            self.seen.append(event.value["type"])
            assert event.value.get("visibility", "user") in ("user", "speech")
            if event.cursor is not None:
                # Ends that are told after a hole are for those who wait for them, not for the fold.
                self.state = fold(self.state, event.value)
        if at_most is not None or batch.is_last:
            self.disconnect()

    async def _take(self) -> Batch:
        assert self.observer is not None
        return await self.observer.take(0)


class Watching(RuleBasedStateMachine):
    """Events happen, clients come and go, read or do not, the session reconnects and the server restarts."""

    @initialize(sees=st.sampled_from([frozenset({Visibility.USER, Visibility.SPEECH}), frozenset({Visibility.USER})]))
    def begin(self, sees: frozenset[Visibility]) -> None:
        self.sees = sees
        self.server = Server(1, sees)
        self.clients = [Client(), Client(), Client()]

    @rule(payloads=st.lists(st.tuples(PAYLOADS, IDS), min_size=1, max_size=8))
    def happen(self, payloads: list[tuple[Payload, str]]) -> None:
        for payload, identity in payloads:
            self.server.publish(payload, identity)

    @rule()
    def renew_session(self) -> None:
        self.server.epoch += 1
        self.server.publish(told.SessionReady(()), "1")

    @rule()
    def restart(self) -> None:
        self.server.hub.end()
        for client in self.clients:
            if client.observer is not None:
                client.read()
        self.server = Server(self.server.epoch + 10, self.sees)

    @rule(number=st.integers(0, 2))
    def connect(self, number: int) -> None:
        self.clients[number].connect(self.server)

    @rule(number=st.integers(0, 2))
    def disconnect(self, number: int) -> None:
        self.clients[number].disconnect()

    @rule(number=st.integers(0, 2))
    @precondition(lambda self: any(client.observer is not None for client in self.clients))
    def read(self, number: int) -> None:
        if self.clients[number].observer is not None:
            self.clients[number].read()

    @rule(number=st.integers(0, 2), at_most=st.integers(0, 3))
    def break_while_reading(self, number: int, at_most: int) -> None:
        if self.clients[number].observer is not None:
            self.clients[number].read(at_most)

    def teardown(self) -> None:
        for client in getattr(self, "clients", []):
            for _ in range(2):
                if client.observer is None:
                    client.connect(self.server)
                client.read()
            assert client.state == self.server.hub.state
            client.disconnect()


Watching.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestWatching = pytest.mark.slow(Watching.TestCase)


@pytest.mark.slow
@given(st.lists(st.tuples(PAYLOADS, IDS), max_size=40), st.data())
@settings(max_examples=150)
def test_whoever_is_slow_sees_the_same_in_fewer_events(events: list[tuple[Payload, str]], data: st.DataObject) -> None:
    server = Server(1, frozenset({Visibility.USER, Visibility.SPEECH}))
    limits = ObserverLimits()
    slow = Owner("kitchen", limits)
    quick = Owner("kitchen", limits)
    joined = folded = server.hub.state

    def offer_both(event: WireEvent) -> bool:
        slow.offer(event)
        quick.offer(event)
        return False

    with server.hub.own(offer_both):
        for payload, identity in events:
            server.publish(payload, identity)
            for event in anyio.run(quick.take, 0).events:
                folded = fold(folded, event.value)
    batch = anyio.run(slow.take, 0)
    for event in batch.events:
        joined = fold(joined, event.value)
    assert joined == folded == server.hub.state
    cursors = [event.cursor for event in batch.events if event.cursor is not None]
    assert cursors == sorted(cursors)
