"""The interface over real sockets: talking, watching, cancelling, and coming back."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import anyio
import pytest

from voicechart.adapters.testing.web_site import Json, Site, eventually, site, slowly, until
from voicechart.adapters.web.conversations import ConversationLimits
from voicechart.adapters.web.folding import fold
from voicechart.adapters.web.hub import HubLimits
from voicechart.adapters.web.observing import ObserverLimits
from voicechart.adapters.web.options import WebOptions
from voicechart.adapters.web.window import WindowLimits
from voicechart.engines.ports import GenerationRequest
from voicechart.engines.public_events import Visibility
from voicechart.engines.reports import GenerationEnded, GenerationReport, TextDelta
from voicechart.engines.testing import Script, Step
from voicechart.statecharts.traces import parse_trace, replay

pytestmark = pytest.mark.anyio


def types_of(events: list[Json]) -> list[str]:
    return [event["type"] for event in events]


async def state_of(here: Site, name: str | None = None) -> Json:
    answer = await here.client.get("/api/state", params={} if name is None else {"conversation_id": name})
    assert answer.status_code == 200
    return answer.json()


# -- talking -------------------------------------------------------------------------------------------------------


async def test_a_message_is_answered_as_a_stream_of_events_of_its_run() -> None:
    async with site() as here:
        events = await here.whole_chat("hello there")
    kinds = types_of(events)
    assert kinds[0] == "turn.committed"
    assert kinds.index("response.started") < kinds.index("text.delta") < kinds.index("text.final")
    assert {"run.terminal", "delivery.recorded"} <= set(kinds[-3:])
    assert "".join(event["payload"]["text"] for event in events if event["type"] == "text.delta") == (
        "You said: hello there"
    )
    assert {event["schema_version"] for event in events} == {2}
    assert len({event["run_id"] for event in events if "run_id" in event}) == 1


async def test_a_name_begins_a_conversation_of_its_own() -> None:
    async with site() as here:
        await here.whole_chat("one", conversation_id="a")
        await here.whole_chat("two", conversation_id="b")
        await here.whole_chat("three", conversation_id="a")
        listed = (await here.client.get("/api/conversations")).json()["conversations"]
        said = [entry["text"] for entry in (await state_of(here, "a"))["state"]["entries"]]
    assert [(line["conversation_id"], line["is_foreground"]) for line in listed] == [
        ("front", True),
        ("a", False),
        ("b", False),
    ]
    assert said == ["one", "You said: one", "three", "You said: three"]


async def test_two_messages_at_once_each_get_the_events_that_concern_them() -> None:
    answers: dict[str, list[Json]] = {}
    async with site() as here, anyio.create_task_group() as tasks:

        async def ask(text: str, name: str) -> None:
            answers[text] = await here.whole_chat(text, conversation_id=name)

        for number in range(4):
            tasks.start_soon(ask, f"question {number}", f"room{number}")
    for text, events in answers.items():
        final = next(event for event in events if event["type"] == "text.final")
        assert final["payload"]["text"] == f"You said: {text}"


async def test_a_second_message_interrupts_the_reply_to_the_first() -> None:
    async with site(slowly) as here, here.chat("tell me a story") as first:
        await until(first, "text.delta")
        async with here.chat("stop, something else") as second:
            await until(second, "text.delta")
            rest = [event async for event in first]
        terminal = next(event for event in rest if event["type"] == "run.terminal")
    assert terminal["payload"]["outcome"] == "cancelled"


async def test_an_owner_that_goes_cancels_its_run() -> None:
    async with site(slowly) as here, here.watch() as watched:
        async with here.chat("tell me a story") as events:
            await until(events, "text.delta")
        seen = await until(watched, "run.terminal")
    assert seen[-1]["payload"]["outcome"] == "cancelled"


async def test_an_owner_that_goes_before_its_run_began_cancels_it_when_it_begins() -> None:
    async with site(slowly) as here, here.watch() as watched:
        async with here.chat("tell me a story"):
            pass
        seen = await until(watched, "run.terminal")
    assert seen[-1]["payload"]["outcome"] == "cancelled"


async def test_an_owner_may_go_where_the_policy_lets_its_run_go_on() -> None:
    options = WebOptions(port=0, on_owner_disconnect="continue")
    async with site(options=options) as here, here.watch() as watched:
        async with here.chat("hello"):
            pass
        seen = await until(watched, "run.terminal")
    assert seen[-1]["payload"]["outcome"] == "completed"


async def test_an_observer_that_goes_cancels_nothing() -> None:
    async with site() as here, here.chat("hello") as events:
        async with here.watch() as watched:
            await until(watched, "snapshot")
        rest = await until(events, "run.terminal")
    assert rest[-1]["payload"]["outcome"] == "completed"


# -- watching ------------------------------------------------------------------------------------------------------


async def test_an_observer_gets_a_snapshot_and_then_every_event() -> None:
    async with site() as here:
        await here.whole_chat("before")
        async with here.watch() as watched:
            snapshot = (await until(watched, "snapshot"))[-1]
            await here.whole_chat("after")
            seen = await until(watched, "run.terminal")
        state = await state_of(here)
    folded = snapshot["payload"]["state"]
    assert [entry["text"] for entry in folded["entries"]] == ["before", "You said: before"]
    for event in seen:
        folded = fold(folded, event)
    final = [entry["text"] for entry in folded["entries"]]
    assert final == [entry["text"] for entry in state["state"]["entries"]]
    assert seen[-1]["id"] == f"{seen[-1]['session_epoch']}:{seen[-1]['sequence']}"


async def test_whoever_comes_back_gets_what_it_missed_and_nothing_twice() -> None:
    async with site() as here:
        async with here.watch() as watched:
            snapshot = (await until(watched, "snapshot"))[-1]
            await here.whole_chat("one")
            first = await until(watched, "text.delta")
        await here.whole_chat("two")
        missed = await here.peek(**{"Last-Event-ID": first[-1]["id"]})
        state = await state_of(here)
    assert "snapshot" not in types_of(missed)
    ids = [event["event_id"] for event in (*first, *missed)]
    assert len(ids) == len(set(ids))
    folded = snapshot["payload"]["state"]
    for event in (*first, *missed):
        folded = fold(folded, event)
    assert folded == state["state"]


async def test_a_cursor_in_the_address_does_the_same() -> None:
    async with site() as here:
        state = await state_of(here)
        await here.whole_chat("one")
        events = await here.peek(f"/api/events?follow=false&after={state['watermark']}")
    assert types_of(events)[0] == "turn.committed"


@pytest.mark.parametrize("cursor", ["1:1", "99999999999999:1", "resync", "-1:0", "soon", "1:2:3"])
async def test_a_cursor_that_is_not_of_this_life_gets_a_snapshot(cursor: str) -> None:
    async with site() as here:
        await here.whole_chat("one")
        events = await here.peek(**{"Last-Event-ID": cursor})
    assert types_of(events) == ["snapshot"]


async def test_a_cursor_from_before_the_window_gets_a_snapshot() -> None:
    options = WebOptions(port=0, hub=HubLimits(window=WindowLimits(max_events=3)))
    async with site(options=options) as here:
        before = (await state_of(here))["watermark"]
        await here.whole_chat("a long enough message")
        events = await here.peek(**{"Last-Event-ID": before})
        state = await state_of(here)
    assert types_of(events) == ["snapshot"]
    assert events[0]["payload"] == {"watermark": state["watermark"], "state": state["state"]}


async def test_diagnostics_are_seen_only_where_that_is_permitted() -> None:
    permitted = WebOptions(port=0, observers_see=frozenset(Visibility))
    for options, sees in ((None, False), (permitted, True)):
        async with site(options=options) as here:
            before = (await state_of(here))["watermark"]
            await here.whole_chat("one")
            after = (await state_of(here))["watermark"]
            missed = await here.peek(**{"Last-Event-ID": before})
            nothing = await here.peek(**{"Last-Event-ID": after})
        assert ("metrics.turn" in types_of(missed)) is sees
        assert nothing == []


async def test_a_connection_that_has_nothing_to_say_says_that_it_lives_and_where_it_is() -> None:
    async with site(options=WebOptions(port=0, keep_alive_s=0.05)) as here:
        watermark = (await state_of(here))["watermark"]
        async with here.client.stream("GET", "/api/events") as response:
            lines: list[str] = []
            async for line in response.aiter_lines():
                lines.append(line)
                if line == ": keep-alive":
                    break
    assert lines[0] == "retry: 2000"
    assert lines[-2:] == [f"id: {watermark}", ": keep-alive"]


async def test_an_observer_is_told_of_the_end() -> None:
    async with site() as here:
        await here.whole_chat("hello", conversation_id="side")
        async with here.watch("/api/events?conversation_id=side") as watched:
            await until(watched, "snapshot")
            hosted = here.conversations.find("side")
            assert hosted is not None
            hosted.session.close("idle")
            rest = [event async for event in watched]
    assert types_of(rest) == ["session.closing", "session.closed"]


async def test_only_so_many_may_watch() -> None:
    async with site(options=WebOptions(port=0, max_observers=1)) as here:
        async with here.watch() as watched:
            await until(watched, "snapshot")
            refused = await here.client.get("/api/events")
        front = here.conversations.foreground
        assert front is not None
        await eventually(lambda: not front.hub.watchers)
        assert (await here.client.get("/api/events?follow=false")).status_code == 200
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "too_many_observers"


async def test_an_observer_that_has_too_much_to_catch_up_with_is_told_and_comes_back_to_a_snapshot() -> None:
    options = WebOptions(port=0, hub=HubLimits(observer=ObserverLimits(max_bytes=1_024)))
    async with site(options=options) as here:
        async with here.watch() as watched:
            await until(watched, "snapshot")
            await here.whole_chat("a message with some words in it")
            rest = [event async for event in watched]
        again = await here.peek(**{"Last-Event-ID": rest[-1]["id"]})
    assert {"run.terminal", "delivery.recorded"} <= set(types_of(rest))
    assert types_of(rest)[-1] == "resync_required"
    assert {event["id"] for event in rest[:-1]} == {None}
    assert types_of(again) == ["snapshot"]


async def test_an_observer_that_reads_nothing_is_given_up_and_nobody_waits_for_it() -> None:
    def at_length(request: GenerationRequest) -> Script[GenerationReport]:
        return Script([Step(TextDelta("word " * 12_000)), Step(GenerationEnded())])

    async with site(at_length, options=WebOptions(port=0, write_timeout_s=0.2)) as here:
        front = here.conversations.foreground
        assert front is not None
        url = urlsplit(here.address)
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            stalled.connect((url.hostname, url.port))
            stalled.sendall(b"GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            await eventually(lambda: len(front.hub.watchers) == 1)
            for _ in range(4):
                assert (await here.whole_chat("go on"))[-1]["type"] in ("run.terminal", "delivery.recorded")
            await eventually(lambda: not front.hub.watchers)


# -- cancelling ----------------------------------------------------------------------------------------------------


async def test_a_run_is_cancelled_by_its_identity_or_by_its_response() -> None:
    async with site(slowly) as here:
        for name in ("run_id", "response_id"):
            async with here.chat("tell me a story") as events:
                started = (await until(events, "response.started"))[-1]
                await until(events, "text.delta")
                answer = await here.client.post("/api/cancel", json={name: started[name]})
                terminal = (await until(events, "run.terminal"))[-1]
            assert answer.status_code == 202
            assert answer.json()["run_id"] == started["run_id"]
            assert terminal["payload"]["outcome"] == "cancelled"


async def test_cancelling_what_never_was_or_is_over_says_so() -> None:
    async with site() as here:
        events = await here.whole_chat("hello")
        run_id = next(event["run_id"] for event in events if "run_id" in event)
        never = await here.client.post("/api/cancel", json={"run_id": "nothing"})
        over = await here.client.post("/api/cancel", json={"run_id": run_id})
        elsewhere = await here.client.post("/api/cancel", json={"run_id": run_id, "conversation_id": "other"})
    assert (never.status_code, never.json()["error"]["code"]) == (404, "no_such_run")
    assert (over.status_code, over.json()["error"]["code"]) == (409, "already_over")
    assert elsewhere.status_code == 404


# -- conversations -------------------------------------------------------------------------------------------------


async def test_a_new_conversation_takes_the_place_of_one_that_is_idle_and_of_none_in_use() -> None:
    options = WebOptions(port=0, conversations=ConversationLimits(max_conversations=1))
    async with site(slowly, options=options) as here:
        async with here.chat("tell me a story", conversation_id="busy") as events:
            await until(events, "text.delta")
            refused = await here.client.post("/api/chat", json={"text": "hello", "conversation_id": "other"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too_many_conversations")
        busy = here.conversations.find("busy")
        assert busy is not None
        await eventually(lambda: busy.is_idle)
        async with here.chat("hello", conversation_id="other") as events:
            await until(events, "text.delta")


async def test_a_conversation_that_nobody_uses_expires() -> None:
    options = WebOptions(port=0, conversations=ConversationLimits(idle_s=0.05))
    async with site(options=options) as here:
        await here.whole_chat("hello", conversation_id="side")
        await eventually(lambda: here.conversations.find("side") is None)
        assert (await here.client.get("/api/state?conversation_id=side")).status_code == 404
        assert (await here.client.get("/api/state")).status_code == 200


async def test_a_conversation_of_a_former_name_is_known_as_another_life() -> None:
    async with site() as here:
        await here.whole_chat("hello", conversation_id="side")
        cursor = (await state_of(here, "side"))["watermark"]
        hosted = here.conversations.find("side")
        assert hosted is not None
        hosted.session.close("idle")
        await eventually(lambda: here.conversations.find("side") is None)
        await here.whole_chat("again", conversation_id="side")
        events = await here.peek("/api/events?follow=false&conversation_id=side", **{"Last-Event-ID": cursor})
    assert types_of(events) == ["snapshot"]
    assert [entry["text"] for entry in events[0]["payload"]["state"]["entries"]] == ["again", "You said: again"]


# -- the chart -----------------------------------------------------------------------------------------------------


async def test_the_chart_is_watched_macrostep_by_macrostep() -> None:
    async with site() as here:
        async with here.watch("/api/trace/stream") as watched:
            start = (await until(watched, "trace.start"))[-1]
            await here.whole_chat("a secret message")
            steps: list[Json] = []
            while not any("GenerationCompleted" in json.dumps(step) for step in steps):
                steps += await until(watched, "trace.record")
        chart = (await here.client.get("/api/chart")).json()
        exported = (await here.client.get("/api/trace")).text
        again = await here.peek("/api/trace/stream?follow=false", **{"Last-Event-ID": steps[0]["id"]})
    assert start["payload"]["format"] == "voicechart-trace"
    numbers = [step["payload"]["number"] for step in steps]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert again[0]["payload"]["number"] == numbers[1]
    assert "secret" not in exported + json.dumps(steps)
    taken = next(row for step in steps for row in step["payload"]["taken"])
    line = next(line for line in chart["transitions"] if line["row"] == taken["row"])
    assert line["source"] == taken["source"]
    assert set(start["payload"]["start"]["leaves"]) <= {state["id"] for state in chart["states"]}
    first, *records = map(json.loads, exported.splitlines())
    assert first["format"] == "voicechart-trace"
    assert [record["number"] for record in records][:2] == [1, 2]
    replayed = replay(parse_trace(exported.encode(), "exported"))
    assert replayed.divergence is None


async def test_no_trace_is_served_where_the_chart_is_not_shown() -> None:
    async with site(options=WebOptions(port=0, show_chart=False)) as here:
        for path in ("/api/trace", "/api/trace/stream"):
            assert (await here.client.get(path)).status_code == 403
        assert (await here.client.get("/api/chart")).status_code == 200


# -- the end -------------------------------------------------------------------------------------------------------


async def test_everybody_is_told_when_the_server_stops() -> None:
    async with site(slowly) as here, here.watch() as watched, here.chat("tell me a story") as events:
        await until(events, "text.delta")
        await until(watched, "text.delta")
        front = here.conversations.foreground
        assert front is not None
        front.session.close("stopped")
        owned = [event async for event in events]
        seen = [event async for event in watched]
    assert types_of(owned)[-1] == types_of(seen)[-1] == "session.closed"
    assert "run.terminal" in types_of(owned)
