"""Which audio the configuration may name: the board's own service, and nothing else.

The board microphone is the only voice input of the product (contract, section 8).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MAX_SOCKET_PATH_BYTES = 107
"""`sun_path` of Linux holds 108 bytes with the zero at its end (unix(7))."""

_FOREIGN_MICROPHONES = {
    "browser": "a browser",
    "webrtc": "a browser",
    "web": "a browser",
    "http": "a browser",
    "https": "a browser",
    "ws": "a browser",
    "wss": "a browser",
    "phone": "a phone",
    "sip": "a phone",
    "tel": "a phone",
    "rtp": "a phone",
    "bluetooth": "a phone",
    "desktop": "a desktop",
    "default": "a desktop",
    "system": "a desktop",
    "alsa": "a desktop",
    "pulse": "a desktop",
    "pulseaudio": "a desktop",
    "pipewire": "a desktop",
    "jack": "a desktop",
    "coreaudio": "a desktop",
    "portaudio": "a desktop",
    "sounddevice": "a desktop",
}


class EndpointRefused(ValueError):
    """The configured audio endpoint cannot be used. The text says why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class AudioEndpoint:
    """Where the board's audio service listens."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


def parse_endpoint(text: str) -> AudioEndpoint:
    """`unix:/absolute/path` (or `unix:///absolute/path`) as an endpoint.

    Raises `EndpointRefused` for everything else, and in particular for a microphone of a browser, phone or desktop.
    """
    scheme, colon, rest = text.strip().partition(":")
    scheme = scheme.lower()
    if scheme in _FOREIGN_MICROPHONES:
        raise EndpointRefused(
            f"{text!r} names the microphone of {_FOREIGN_MICROPHONES[scheme]}. The board microphone is the only voice "
            "input: write unix:/path/of/the/socket of the board's audio service, and send text from elsewhere"
        )
    if not colon or scheme != "unix":
        raise EndpointRefused(f"{text!r} is not an audio endpoint; write unix:/path/of/the/socket")
    path = "/" + rest.lstrip("/") if rest.startswith("//") else rest
    if not path.startswith("/") or path == "/":
        raise EndpointRefused(f"{text!r} needs an absolute path: unix:/path/of/the/socket")
    if "\0" in path or len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise EndpointRefused(f"the path of {text!r} is longer than {MAX_SOCKET_PATH_BYTES} bytes or holds a zero byte")
    return AudioEndpoint(Path(path))
