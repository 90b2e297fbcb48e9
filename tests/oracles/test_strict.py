"""The judge itself: what it must not let through."""

from __future__ import annotations

import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent
from strict import Json, Refused, Wanted, check

IDS = {"event_id": "e", "response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
TRUNCATE = {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0}
BODY = {"model": "m", "stream": True}


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ({"type": "response.audio.delta", "delta": "AA==", **IDS}, RealtimeServerEvent),
        ({"type": "response.output_audio.delta", "delta": "AA==", "event_id": "e"}, RealtimeServerEvent),
        ({"type": "session.update", "session": {"type": "realtime", "modalities": ["audio"]}}, RealtimeClientEvent),
        ({**CHUNK, "choices": [{"index": 0, "delta": {"contents": "hi"}, "finish_reason": None}]}, ChatCompletionChunk),
        ({**BODY, "messages": [{"role": "user", "content": "hi", "voice": "x"}]}, CompletionCreateParamsStreaming),
        ({**BODY, "messages": [{"role": "user", "content": 5}]}, CompletionCreateParamsStreaming),
        ({**BODY, "messages": [], "stream_option": {}}, CompletionCreateParamsStreaming),
    ],
    ids=[
        "a beta name",
        "a missing key",
        "a beta key",
        "an unknown key below",
        "an unknown key in a list",
        "a wrong type in a list",
        "a typo",
    ],
)
def test_a_message_that_is_wrong_somewhere_is_refused(message: Json, wanted: Wanted) -> None:
    with pytest.raises(Refused):
        check(message, wanted)


@pytest.mark.parametrize("position_ms", ["1200", 1200.0, 1200.5, True])
def test_a_position_that_is_no_integer_is_refused_where_types_are_exact(position_ms: object) -> None:
    check({**TRUNCATE, "audio_end_ms": 1200}, RealtimeClientEvent, exact_types=True)
    with pytest.raises(Refused):
        check({**TRUNCATE, "audio_end_ms": position_ms}, RealtimeClientEvent, exact_types=True)


def test_a_right_message_passes() -> None:
    check({"type": "response.output_audio.delta", "delta": "AA==", **IDS}, RealtimeServerEvent)
    check({**BODY, "messages": [{"role": "user", "content": "hi"}]}, CompletionCreateParamsStreaming, exact_types=True)


def test_a_key_that_only_the_live_service_knows_can_be_allowed() -> None:
    chunk = {**CHUNK, "choices": [], "mood": "glad"}
    with pytest.raises(Refused):
        check(chunk, ChatCompletionChunk)
    check(chunk, ChatCompletionChunk, besides=frozenset({"mood"}))
