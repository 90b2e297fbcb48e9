"""Only the board's own audio service may be named."""

from __future__ import annotations

from pathlib import Path

import pytest

from voicechart.adapters.board import AudioEndpoint, EndpointRefused, parse_endpoint


@pytest.mark.parametrize(
    "text",
    ["unix:/run/voicechart/audio.sock", "unix:///run/voicechart/audio.sock", " UNIX:/run/voicechart/audio.sock "],
)
def test_a_unix_socket_is_an_endpoint(text: str) -> None:
    endpoint = parse_endpoint(text)
    assert endpoint == AudioEndpoint(Path("/run/voicechart/audio.sock"))
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        ("browser", "a browser"),
        ("browser:default", "a browser"),
        ("webrtc://room/1", "a browser"),
        ("wss://example.org/audio", "a browser"),
        ("http://localhost:8000/mic", "a browser"),
        ("phone", "a phone"),
        ("sip:kitchen@example.org", "a phone"),
        ("tel:+441632960000", "a phone"),
        ("bluetooth:00-11", "a phone"),
        ("desktop", "a desktop"),
        ("default", "a desktop"),
        ("alsa:hw:0,0", "a desktop"),
        ("pulse:alsa_input", "a desktop"),
        ("PortAudio:3", "a desktop"),
    ],
)
def test_another_microphone_is_refused_with_the_reason(text: str, whose: str) -> None:
    with pytest.raises(EndpointRefused, match=f"microphone of {whose}. The board microphone is the only voice input"):
        parse_endpoint(text)


@pytest.mark.parametrize(
    "text", ["", "/run/audio.sock", "tcp:localhost:9", "unix:", "unix:audio.sock", "unix:/", "unix:///"]
)
def test_what_is_no_absolute_unix_path_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(EndpointRefused, match="unix:/path/of/the/socket"):
        parse_endpoint(text)


def test_a_path_is_bounded_as_the_system_bounds_it() -> None:
    assert parse_endpoint("unix:/" + "a" * 106).path.name == "a" * 106
    with pytest.raises(EndpointRefused, match="longer than 107 bytes"):
        parse_endpoint("unix:/" + "a" * 107)
    with pytest.raises(EndpointRefused, match="zero byte"):
        parse_endpoint("unix:/a\0b")
