"""The public stream: numbers, observers, and the end."""

from __future__ import annotations

import json

import anyio
import pytest

from voicechart.engines.public_events import (
    ObserverLagged,
    PublicEvent,
    PublicStream,
    Subscription,
    TextAppended,
    Visibility,
    visibility_of,
)
from voicechart.engines.testing import scripted_error
from voicechart.statecharts.actions import Publish, Stamp
from voicechart.statecharts.published import SessionClosed, SessionReady

pytestmark = pytest.mark.anyio


def stream() -> PublicStream:
    return PublicStream("kitchen", lambda: 1_000)


def publish(public: PublicStream, text: str, session_epoch: int = 1) -> None:
    public.publish(Publish(Stamp(session_epoch, 7), TextAppended(text), response_id="r1"))


async def collect(subscription: Subscription) -> list[PublicEvent]:
    return [event async for event in subscription.events()]


async def test_events_are_numbered_without_a_hole_and_anew_in_each_session_epoch() -> None:
    public = stream()
    with public.subscribe() as subscription:
        for epoch in (1, 1, 2, 2, 2):
            publish(public, "x", epoch)
        public.end()
        events = await collect(subscription)
    assert [(event.session_epoch, event.sequence) for event in events] == [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]
    assert len({event.event_id for event in events}) == 5


async def test_every_observer_sees_everything_from_when_it_came() -> None:
    public = stream()
    with public.subscribe() as early:
        publish(public, "one")
        with public.subscribe() as late:
            publish(public, "two")
            public.end()
            assert [event.sequence for event in await collect(late)] == [2]
        assert [event.sequence for event in await collect(early)] == [1, 2]


async def test_an_observer_that_comes_after_the_end_is_told_so() -> None:
    public = stream()
    public.end()
    with public.subscribe() as subscription, anyio.fail_after(5):
        assert await collect(subscription) == []


async def test_a_slow_observer_is_cut_off_at_its_capacity_and_nothing_behind_the_hole_is_shown_to_it() -> None:
    public = stream()
    seen: list[int] = []

    async def watch(subscription: Subscription) -> None:
        async for event in subscription.events():
            seen.append(event.sequence)
            publish(public, "later")

    with public.subscribe(capacity=2) as slow, public.subscribe() as quick:
        for _ in range(3):
            publish(public, "x")
        with pytest.raises(ObserverLagged, match="fresh snapshot"):
            await watch(slow)
        public.end()
        assert len(await collect(quick)) == 5
    assert seen == [1, 2]


async def test_an_observer_that_keeps_up_to_its_capacity_is_not_cut_off() -> None:
    public = stream()
    with public.subscribe(capacity=2) as subscription:
        publish(public, "one")
        publish(public, "two")
        public.end()
        assert [event.sequence for event in await collect(subscription)] == [1, 2]


async def test_an_event_as_json_has_its_identities_and_leaves_out_those_that_do_not_apply() -> None:
    public = stream()
    with public.subscribe() as subscription:
        publish(public, "héllo")
        public.publish(Publish(Stamp(1, 7), SessionClosed("lost", scripted_error("speaker_lost", "playback"))))
        public.publish(Publish(Stamp(1, 7), SessionReady(("no captions",))))
        public.end()
        text, closed, ready = [event.as_json() for event in await collect(subscription)]
    assert text == {
        "schema_version": 2,
        "type": "text.delta",
        "event_id": "kitchen:1:1",
        "sequence": 1,
        "session_epoch": 1,
        "output_epoch": 7,
        "conversation_id": "kitchen",
        "occurred_at_ns": 1_000,
        "origin": "assistant",
        "visibility": "user",
        "response_id": "r1",
        "payload": {"text": "héllo"},
    }
    assert closed["payload"]["error"]["code"] == "speaker_lost"
    assert json.loads(json.dumps(ready))["payload"] == {"degradations": ["no captions"]}


async def test_a_listener_hears_every_event_at_once_until_it_has_had_enough() -> None:
    public = stream()
    heard: list[int] = []
    stop_listening = public.listen(lambda event: heard.append(event.sequence))
    publish(public, "one")
    stop_listening()
    publish(public, "two")
    assert heard == [1]


def test_an_event_of_a_kind_that_nobody_has_classed_is_internal() -> None:
    assert visibility_of("thought.updated") is Visibility.INTERNAL
    assert visibility_of("tool.arguments_delta") is Visibility.INTERNAL
    assert visibility_of("tool.started") is Visibility.USER
    assert visibility_of("metrics.turn") is Visibility.DIAGNOSTIC
