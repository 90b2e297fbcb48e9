"""Whatever a recognition service says, and in whatever order: revisions grow, a final is the last word on its segment,
and what cannot be read is a typed error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from voicechart.adapters.providers.recognition import Dialect, Heard
from voicechart.adapters.providers.recognizers.assemblyai import AssemblyAIDialect, AssemblyAISettings
from voicechart.adapters.providers.recognizers.dashscope import DashScopeDialect, DashScopeSettings
from voicechart.adapters.providers.recognizers.deepgram import DeepgramDialect, DeepgramSettings
from voicechart.adapters.providers.recognizers.openai_realtime_transcription import (
    OpenAIRealtimeTranscriptionDialect,
    OpenAIRealtimeTranscriptionSettings,
)
from voicechart.adapters.providers.recognizers.qwen_realtime_transcription import (
    QwenRealtimeTranscriptionDialect,
    QwenRealtimeTranscriptionSettings,
)
from voicechart.adapters.testing import load_fixtures
from voicechart.audio.formats import SPEECH_FORMAT
from voicechart.engines.ports import RecognitionRequest
from voicechart.engines.reports import PortError, RecognitionErrored, SegmentFinal, SegmentHypothesis

KEY = "sk-very-secret"
REQUEST = RecognitionRequest("u1", SPEECH_FORMAT)
DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    "deepgram": lambda: DeepgramDialect(REQUEST, DeepgramSettings(), KEY),
    "assemblyai": lambda: AssemblyAIDialect(REQUEST, AssemblyAISettings(), KEY),
    "dashscope": lambda: DashScopeDialect(REQUEST, DashScopeSettings(), KEY, "task-1"),
    "openai-realtime-transcription": lambda: OpenAIRealtimeTranscriptionDialect(
        REQUEST, OpenAIRealtimeTranscriptionSettings(), KEY
    ),
    "qwen-realtime-transcription": lambda: QwenRealtimeTranscriptionDialect(
        REQUEST, QwenRealtimeTranscriptionSettings(), KEY
    ),
}
FIXTURES = load_fixtures(Path(__file__).parents[1] / "conformance" / "fixtures")
SAID: Mapping[str, list[dict[str, JsonValue]]] = {
    kind: [
        cast("dict[str, JsonValue]", event.data)
        for fixture in FIXTURES.values()
        if fixture.protocol == kind
        for event in fixture.events
        if isinstance(event.data, dict)
    ]
    for kind in DIALECTS
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10, 10)
    | st.sampled_from([10**400, -(10**400), 1e308, -1e308])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def spoilt(draw: st.DrawFn, messages: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """A message of the service with something of it, at any depth, replaced or left out."""
    message = draw(st.sampled_from(messages))
    return cast("dict[str, JsonValue]", _spoil(draw, message))


def _spoil(draw: st.DrawFn, value: JsonValue) -> JsonValue:
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.booleans()):
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: _spoil(draw, value[key])}
    if isinstance(value, list) and value and draw(st.booleans()):
        return [_spoil(draw, value[0]), *value[1:]]
    return value if isinstance(value, dict) else draw(JSON)


def heard_of(dialect: Dialect, message: dict[str, JsonValue]) -> list[Heard]:
    """As the stream hears it: what cannot be read is the end."""
    try:
        return list(dialect.take(message))
    except PortError as refused:
        return [RecognitionErrored(refused.error)]


@pytest.mark.parametrize("kind", DIALECTS)
@given(data=st.data())
def test_segments_keep_their_order_whatever_the_service_says(kind: str, data: st.DataObject) -> None:
    messages = data.draw(st.lists(st.sampled_from(SAID[kind]) | spoilt(SAID[kind]), max_size=20))
    finish_at = data.draw(st.integers(0, 20))
    dialect = DIALECTS[kind]()
    told: list[Heard] = []
    for place, message in enumerate(messages):
        if place == finish_at:
            list(dialect.finishing(True))
        heard = heard_of(dialect, message)
        told.extend(heard)
        if dialect.is_complete or any(isinstance(one, RecognitionErrored) for one in heard):
            break
    revisions: dict[str | None, int] = {}
    final: set[str | None] = set()
    for one in told:
        if isinstance(one, SegmentHypothesis | SegmentFinal):
            assert one.segment_id not in final
            assert one.revision == revisions.get(one.segment_id, 0) + 1
            revisions[one.segment_id] = one.revision
            if isinstance(one, SegmentFinal):
                assert one.text.strip()
                final.add(one.segment_id)
            else:
                assert 0 <= one.stable_chars <= len(one.text)
    assert KEY not in str(told)
