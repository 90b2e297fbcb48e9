"""What has happened before an exploration begins: short ways into the middle of a conversation.

A happening makes its fact from the context it comes to, so that it names the right identities.
"""

from __future__ import annotations

from collections.abc import Callable

from ..capabilities import Capabilities, SpeakerCapabilities
from ..context import Context
from ..facts import (
    AudioEnded,
    AudioStarted,
    ConnectionReady,
    Fact,
    GenerationCompleted,
    OpenRequested,
    PlaybackDrained,
    PrebufferFilled,
    RecognitionClosed,
    SayRequested,
    SegmentFinalized,
    SpeechStarted,
    TextSubmitted,
    TurnEnded,
)
from ..values import TurnAuthority

Happening = Callable[[Context], Fact]

ABLE = Capabilities(speaker=SpeakerCapabilities(pause=True, measured_position=True), truncate_context=True)
"""A board that can pause and an engine that can cut what it said."""


NATIVE = Capabilities(
    speaker=SpeakerCapabilities(pause=True, measured_position=True), truncate_context=True, native_audio=True
)
"""The same, and a model that hears the audio itself."""


def opened(x: Context) -> Fact:
    """The embedder opens the session."""
    return OpenRequested(at=x.now)


def made_ready(x: Context) -> Fact:
    """Everything answered, and is able."""
    return ConnectionReady(at=x.now, capabilities=ABLE)


def announced(x: Context) -> Fact:
    """Something is to be said as it is."""
    return SayRequested(at=x.now, number=x.last_announcement + 1, text="the tea is ready")


def made_ready_for_sound(x: Context) -> Fact:
    """A model that hears the audio itself answered."""
    return ConnectionReady(at=x.now, capabilities=NATIVE)


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


def model_finished(x: Context) -> Fact:
    """The model ended by itself."""
    assert x.response is not None
    return GenerationCompleted(at=x.now, attempt_id=x.response.attempt_id)


def all_was_synthesized(x: Context) -> Fact:
    """All audio of the reply exists; without a stream there was nothing to say."""
    return AudioEnded(at=x.now, output_epoch=x.output_epoch, end_sample=200 if x.output is not None else 0)


def all_was_heard(x: Context) -> Fact:
    """The last sample was rendered."""
    return PlaybackDrained(at=x.now, output_epoch=x.output_epoch, stream_id=x.streams, played_samples=200)


def said_late(x: Context) -> Fact:
    """Another segment became final, after the turn was committed."""
    assert x.turn is not None
    return SegmentFinalized(at=x.now, recognition_id=x.turn.recognitions[-1], segment_id="s1", text="go on")


OPENED: tuple[Happening, ...] = (opened,)
READY: tuple[Happening, ...] = (*OPENED, made_ready)
READY_NATIVELY: tuple[Happening, ...] = (*OPENED, made_ready_for_sound)
ANNOUNCING: tuple[Happening, ...] = (*READY, announced, audio_began, was_heard)
"""An announcement is being heard."""
PLAYING: tuple[Happening, ...] = (*READY, typed, audio_began, was_heard)
"""The reply to a typed turn is being heard."""
HEARD: tuple[Happening, ...] = (*PLAYING, model_finished, all_was_synthesized, all_was_heard)
"""The reply to a typed turn was heard to its end."""
SPOKEN_OVER: tuple[Happening, ...] = (*READY, typed, began_to_speak, audio_began, was_heard)
"""The user was speaking already when the reply began to be heard."""
HEARD_AFTER_A_NOISE: tuple[Happening, ...] = (
    *(*READY, typed, began_to_speak, fell_silent, recognition_closed),
    *(audio_began, was_heard),
)
"""The user made a noise while the model was thinking; its reply is being heard."""
ASKED: tuple[Happening, ...] = (*READY, began_to_speak, said, fell_silent, recognition_closed)
"""A spoken turn was committed."""
CARRIED_ON: tuple[Happening, ...] = (*ASKED, began_to_speak, said)
"""A committed turn was carried on."""
SAID_LATE: tuple[Happening, ...] = (*ASKED, all_was_synthesized, model_finished, said_late)
"""A turn was answered in writing; then a part of it was recognised."""
