from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.statecharts import facts
from voicechart.statecharts.actions import Action, Publish, Stamp
from voicechart.statecharts.capabilities import Capabilities
from voicechart.statecharts.context import Context, Segment
from voicechart.statecharts.errors import ErrorScope, ScopedError
from voicechart.statecharts.facts import Fact
from voicechart.statecharts.published import Payload, SessionClosed
from voicechart.statecharts.traces.codec import CodecError, Json, decode, encode, encode_fields


def members_of(family: type[Any]) -> Iterator[type[Any]]:
    """Every class of a family that the product has; not what other tests declared."""
    for child in family.__subclasses__():
        if child.__module__.startswith("voicechart.statecharts.") and "__slots__" in vars(child):
            yield child
        yield from members_of(child)


def values_of(family: type[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(sorted(members_of(family), key=lambda kind: kind.__name__)).flatmap(st.from_type)


# A payload is published by its own class, never as the base.
st.register_type_strategy(Payload, values_of(Payload))
# JSON has no word for these, and no fact needs them.
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(str, st.text(st.characters(exclude_categories=["Cs"])))


@given(values_of(Fact))
def test_every_fact_comes_back_as_it_was(fact: Fact) -> None:
    assert decode(Fact, json.loads(json.dumps(encode(fact)))) == fact


@given(values_of(Action))
def test_every_action_comes_back_as_it_was(action: Action) -> None:
    assert decode(Action, json.loads(json.dumps(encode(action)))) == action


@given(st.builds(Context))
def test_every_context_comes_back_as_it_was(context: Context) -> None:
    assert decode(Context, json.loads(json.dumps(encode(context)))) == context


def test_no_member_of_a_family_has_a_field_that_hides_its_type() -> None:
    for family in (Fact, Action, Payload):
        for kind in members_of(family):
            assert "type" not in vars(kind).get("__slots__", ()), kind


def test_a_published_event_keeps_its_kind_inside_the_action() -> None:
    error = ScopedError("speaker_lost", "playback", ErrorScope.SESSION, "plug it in")
    published = Publish(Stamp(1, 1), SessionClosed("requested", error))
    assert decode(Action, encode(published)) == published


def test_a_field_that_an_older_version_did_not_write_takes_its_default() -> None:
    assert decode(Fact, {"type": "TurnCancelled", "at": 5}) == facts.TurnCancelled(at=5)


def test_only_fields_named_text_go_through_the_filter() -> None:
    segment = Segment("recognition-1", "a", 1, "hello", True, 5)
    encoded = encode_fields(segment, lambda text: f"<{len(text)}>")
    assert encoded["text"] == "<5>"
    assert encoded["segment_id"] == "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class LampSwitched(Fact):
    on: bool


def test_a_fact_of_an_embedder_is_known_by_its_module_too() -> None:
    encoded = encode_fields(LampSwitched(at=1, on=True))
    assert encoded["type"] == f"{LampSwitched.__module__}:LampSwitched"
    assert decode(Fact, encoded) == LampSwitched(at=1, on=True)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ({"type": "Nonsense", "at": 1}, "Fact: 'Nonsense' is no Fact that this version knows"),
        ({"type": "TimerFired", "at": 1}, "Fact: TimerFired needs 'timer_id'"),
        ({"type": "TimerFired", "at": 1, "timer_id": "t", "tone": 2}, "Fact: TimerFired has no 'tone'"),
        ({"type": "TimerFired", "at": "soon", "timer_id": "t"}, "Fact.at: 'soon' is no int"),
        ({"type": "TimerFired", "at": True, "timer_id": "t"}, "Fact.at: True is no int"),
        ({"type": "TurnEnded", "at": 1, "authority": "cat"}, "Fact.authority: 'cat' is no TurnAuthority"),
        ([], "Fact: [] is no Fact"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(raw: Json, complaint: str) -> None:
    with pytest.raises(CodecError) as refused:
        decode(Fact, raw)
    assert str(refused.value) == complaint


def test_a_wrong_value_inside_a_list_is_named_with_its_index() -> None:
    raw: Json = {**encode_fields(Capabilities()), "degradations": ["fine", 7]}
    with pytest.raises(CodecError, match=r"^Capabilities.degradations\[1\]: 7 is no str$"):
        decode(Capabilities, raw)


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(CodecError, match="is no value that a trace can hold"):
        encode(object())
