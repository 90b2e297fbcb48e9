"""ElevenLabs' multi-stream-input, judged by elevenlabs. Its client speaks only the endpoint for one context."""

from __future__ import annotations

import pytest
from elevenlabs.types import CloseContext, FlushContext, InitialiseContext
from elevenlabs.v_1_text_to_speech_voice_id_multi_stream_input.types import ReceiveMessageMulti
from material import each_fixture, each_golden, json_of, judge
from strict import Json, Refused, check

from voicechart.adapters.testing import WireEvent, WireFixture

# Beside audio the live service sends `isFinal: null`, and beside `isFinal` nulls in place of the audio and its times
# (elevenlabs/elevenlabs-docs, issue 405); the types have neither.
NULLS = frozenset({"isFinal", "audio", "alignment", "normalizedAlignment"})


def is_a_message(event: WireEvent) -> None:
    message = json_of(event)
    for key in NULLS:
        if message.get(key, "") is None:
            message = {name: value for name, value in message.items() if name != key}
    check(message, ReceiveMessageMulti)
    if not {"audio", "isFinal"} & message.keys():
        raise Refused("neither audio nor an end")  # the library's own type has a default for isFinal


@each_fixture("elevenlabs")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, is_a_message)


@each_golden("elevenlabs")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    assert golden["path"] == "/v1/text-to-speech/vid/multi-stream-input"
    for frame in golden["frames"]:
        wanted = CloseContext if "close_context" in frame else FlushContext if "flush" in frame else InitialiseContext
        check(frame, wanted, exact_types=True)


def test_only_nulls_are_allowed_beyond_the_types() -> None:
    with pytest.raises(Refused):
        is_a_message(WireEvent(data={"audio": "AA==", "isFinal": False}))
