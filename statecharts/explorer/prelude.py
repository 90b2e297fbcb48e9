"""What has happened before an exploration begins: short ways into the middle of a conversation.

A happening makes its fact from the context it comes to, so that it names the right identities.
"""

from __future__ import annotations

from collections.abc import Callable

from ..capabilities import Capabilities, SpeakerCapabilities
from ..context import Context
from ..facts import (
    AudioStarted,
    ConnectionReady,
    Fact,
    OpenRequested,
    PrebufferFilled,
    RecognitionClosed,
    SegmentFinalized,
    SpeechStarted,
    TextSubmitted,
    TurnEnded,
)
from ..values import TurnAuthority

Happening = Callable[[Context], Fact]

ABLE = Capabilities(speaker=SpeakerCapabilities(pause=True, measured_position=True), truncate_context=True)
"""A board that can pause and an engine that can cut what it said."""


def opened(x: Context) -> Fact:
    """The embedder opens the session."""
    return OpenRequested(at=x.now)


def made_ready(x: Context) -> Fact:
    """Everything answered, and is able."""
    return ConnectionReady(at=x.now, capabilities=ABLE)


def typed(x: Context) -> Fact:
    """The user typed something."""
    return TextSubmitted(at=x.now, text="hello")


def began_to_speak(x: Context) -> Fact:
    """The user began to speak."""
    return SpeechStarted(at=x.now)


def said(x: Context) -> Fact:
    """Words became final."""
    assert x.turn is not None
    return SegmentFinalized(at=x.now, recognition_id=x.turn.recognitions[-1], segment_id="s0", text="go on")


def fell_silent(x: Context) -> Fact:
    """The user finished."""
    return TurnEnded(at=x.now, authority=TurnAuthority.VAD)


def recognition_closed(x: Context) -> Fact:
    """Everything was recognised."""
    assert x.turn is not None
    return RecognitionClosed(at=x.now, recognition_id=x.turn.recognitions[-1])


def audio_began(x: Context) -> Fact:
    """The reply has a voice."""
    return AudioStarted(at=x.now, output_epoch=x.output_epoch, sample_rate_hz=16_000)


def was_heard(x: Context) -> Fact:
    """The first samples were rendered."""
    return PrebufferFilled(at=x.now, output_epoch=x.output_epoch, stream_id=x.streams, played_samples=10)


OPENED: tuple[Happening, ...] = (opened,)
READY: tuple[Happening, ...] = (*OPENED, made_ready)
PLAYING: tuple[Happening, ...] = (*READY, typed, audio_began, was_heard)
"""The reply to a typed turn is being heard."""
SPOKEN_OVER: tuple[Happening, ...] = (*READY, typed, began_to_speak, audio_began, was_heard)
"""The user was speaking already when the reply began to be heard."""
CARRIED_ON: tuple[Happening, ...] = (
    *READY,
    began_to_speak,
    said,
    fell_silent,
    recognition_closed,
    began_to_speak,
    said,
)
"""A committed turn was carried on."""
