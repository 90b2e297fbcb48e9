"""Whatever a provider sends, and however it is broken: one end, no half call, nothing raised."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from httpx_sse import ServerSentEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from voicechart.adapters.providers.http_stream import EventAssembly
from voicechart.adapters.providers.responders.anthropic.assembly import MessageAssembly
from voicechart.adapters.providers.responders.openai_chat.assembly import ChatAssembly
from voicechart.adapters.providers.responders.openai_responses.assembly import ResponsesAssembly
from voicechart.adapters.testing import WireEvent, load_fixtures
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    ProviderState,
    TextDelta,
    ToolCallProposed,
)

ASSEMBLIES: dict[str, Callable[[], EventAssembly]] = {
    "anthropic": MessageAssembly,
    "openai-chat": ChatAssembly,
    "openai-responses": ResponsesAssembly,
}
FIXTURES = Path(__file__).parents[3] / "conformance" / "fixtures"
EVENTS = {
    protocol: [fixture.events for fixture in load_fixtures(FIXTURES, protocol).values() if fixture.events]
    for protocol in ASSEMBLIES
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=6,
)


@dataclass(frozen=True)
class Fault:
    """Something happens to the event at `place` (counted round)."""

    what: str
    place: int
    other: int


faults = st.lists(
    st.builds(
        Fault,
        st.sampled_from(["drop", "double", "swap", "cut", "garble", "forget a key", "shorten"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=4,
)


def broken(events: Sequence[WireEvent], faults: Sequence[Fault]) -> list[tuple[str, str]]:
    """Name and text of the events, after the faults."""
    wire = [(event.event or "message", event.text) for event in events]
    for fault in faults:
        if not wire:
            break
        place, other = fault.place % len(wire), fault.other % len(wire)
        name, text = wire[place]
        match fault.what:
            case "drop":
                del wire[place]
            case "double":
                wire.insert(other, wire[place])
            case "swap":
                wire[place], wire[other] = wire[other], wire[place]
            case "cut":
                del wire[place:]
            case "garble":
                wire[place] = (name, text[: fault.other] + "}{" + text[fault.other :])
            case "forget a key":
                wire[place] = (name, without_a_key(text, fault.other))
            case _:
                wire[place] = (name, text[: fault.other])
    return wire


def without_a_key(text: str, which: int) -> str:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) and value:
        del value[sorted(value)[which % len(value)]]
    return json.dumps(value)


def played(assembly: EventAssembly, wire: Sequence[tuple[str, str]]) -> list[GenerationReport]:
    reports: list[GenerationReport] = []
    for name, text in wire:
        if assembly.over or assembly.failed:
            break
        reports += assembly.feed(ServerSentEvent(name, text, "", None))
    return [*reports, *assembly.end()]


def assert_sound(reports: list[GenerationReport]) -> None:
    *before, last = reports
    assert isinstance(last, GenerationEnded | GenerationErrored)
    assert not any(isinstance(report, GenerationEnded | GenerationErrored) for report in before)
    calls = [report for report in before if isinstance(report, ToolCallProposed)]
    assert all(call.name and call.call_id and isinstance(json.loads(call.arguments_json), dict) for call in calls)
    spoke = any(isinstance(report, TextDelta) for report in before)
    if isinstance(last, GenerationErrored):
        assert not calls
        assert not any(isinstance(report, ProviderState) for report in before)
        assert last.error.partial_output == spoke
        assert not (spoke and last.error.retryable)
    else:
        assert last.awaits_tools == bool(calls)


@pytest.mark.parametrize("protocol", ASSEMBLIES)
@given(st.data())
def test_a_broken_stream_has_one_end_and_no_half_call(protocol: str, data: st.DataObject) -> None:
    events = data.draw(st.sampled_from(EVENTS[protocol]))
    assert_sound(played(ASSEMBLIES[protocol](), broken(events, data.draw(faults))))


@pytest.mark.parametrize("protocol", ASSEMBLIES)
@given(st.data())
def test_events_of_any_shape_have_one_end(protocol: str, data: st.DataObject) -> None:
    types = sorted({event.event for events in EVENTS[protocol] for event in events if event.event})
    named = st.tuples(st.sampled_from(types or ["x"]), st.dictionaries(st.sampled_from(KEYS), json_values, max_size=5))
    wire = [(name, json.dumps({**content, "type": name})) for name, content in data.draw(st.lists(named, max_size=6))]
    assert_sound(played(ASSEMBLIES[protocol](), wire))


KEYS = (
    *("arguments", "choices", "code", "content_block", "content_index", "delta", "error", "index", "item", "item_id"),
    *("message", "output_index", "response", "sequence_number", "text", "usage"),
)


@pytest.mark.parametrize("protocol", ASSEMBLIES)
@given(st.lists(st.text(max_size=20), max_size=5))
def test_text_of_any_kind_has_one_end(protocol: str, texts: list[str]) -> None:
    assert_sound(played(ASSEMBLIES[protocol](), [("message", text) for text in texts]))
