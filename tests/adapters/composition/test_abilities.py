"""Every ability has a dimension of its own, and what is missing says what follows."""

from __future__ import annotations

from dataclasses import fields

import pytest

from voicechart.adapters.composition import abilities_of, playback_abilities
from voicechart.adapters.providers.declaration import Offered
from voicechart.adapters.providers.registry import Role
from voicechart.statecharts.capabilities import (
    RealtimeCapabilities,
    RecognizerCapabilities,
    ResponderCapabilities,
    SpeakerCapabilities,
    SynthesizerCapabilities,
)

NOTHING: dict[Role, Offered] = {
    Role.RESPONDER: ResponderCapabilities(cancel=False),
    Role.RECOGNIZER: RecognizerCapabilities(segment_finals=False),
    Role.SYNTHESIZER: SynthesizerCapabilities(sentence_input=False, cancel=False),
    Role.REALTIME: RealtimeCapabilities(),
}


@pytest.mark.parametrize("role", Role)
def test_every_field_of_the_capabilities_is_shown_with_a_reason_where_it_is_missing(role: Role) -> None:
    offered = NOTHING[role]
    shown = abilities_of(role, offered)
    assert {able.name for able in shown} == {field.name for field in fields(offered)}
    assert all(able.value is False and able.reason for able in shown)


def test_an_ability_that_is_there_needs_no_reason() -> None:
    (interim,) = [
        able for able in abilities_of(Role.RECOGNIZER, RecognizerCapabilities(interim=True)) if able.name == "interim"
    ]
    assert (interim.value, interim.reason) == (True, None)


def test_what_the_loudspeaker_can_do_is_known_when_it_is_connected() -> None:
    before = {able.name: able for able in playback_abilities(None)}
    assert before["played_position"].value is None
    connected = SpeakerCapabilities(pause=True, measured_position=True, max_queue_ms=500)
    after = {able.name: able for able in playback_abilities(connected)}
    assert set(after) == set(before)
    assert (after["played_position"].value, after["max_queue_ms"].value) == ("measured", 500)
    assert after["pause"].reason is None
    assert after["echo_cancellation"].reason
    estimated = {able.name: able for able in playback_abilities(SpeakerCapabilities())}
    assert estimated["played_position"].value == "estimated"
    assert estimated["played_position"].reason
