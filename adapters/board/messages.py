"""The control messages of the board-audio socket: small JSON bodies, one pydantic model each, told apart by `type`.

Every field that came later than version 1 has a default, and a field that is not known is ignored, so that peers of
different age understand each other. Media never travels here (`protocol.py`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ...audio.formats import AudioFormat
from ...statecharts.values import PositionSource

StreamId = Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]
Epoch = Annotated[int, Field(ge=0, le=2**63 - 1)]
Samples = Annotated[int, Field(ge=0, le=2**63 - 1)]
ButtonName = Annotated[str, Field(max_length=32)]
Reason = Annotated[str, Field(max_length=1_000)]


class WireMessage(BaseModel):
    """Immutable; unknown fields are ignored; no silent conversion of types."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class WireFormat(WireMessage):
    """A PCM16 format that an end offers."""

    sample_rate_hz: int = Field(ge=4_000, le=192_000)
    channels: int = Field(default=1, ge=1, le=8)

    @classmethod
    def of(cls, audio_format: AudioFormat) -> WireFormat:
        """The offer of `audio_format`."""
        return cls(sample_rate_hz=audio_format.sample_rate_hz, channels=audio_format.channels)

    def to_format(self) -> AudioFormat:
        """The format offered."""
        return AudioFormat(self.sample_rate_hz, self.channels)


# -- both directions -----------------------------------------------------------------------------------------------


class Ping(WireMessage):
    """Answered with a `Pong` of the same number. Sent only to a peer whose greeting says `keep_alive`."""

    type: Literal["ping"] = "ping"
    number: int = Field(ge=0)


class Pong(WireMessage):
    type: Literal["pong"] = "pong"
    number: int = Field(ge=0)


class Closing(WireMessage):
    """The last message of this end. `code` is stable: "bye", "busy", "protocol_violation" and so on."""

    type: Literal["closing"] = "closing"
    code: str = Field(max_length=64)
    reason: Reason = ""


# -- the client says -----------------------------------------------------------------------------------------------


class ClientRole(StrEnum):
    """What a connection is for."""

    CONVERSATION = "conversation"
    """Holds the microphone and the speaker; one at a time."""
    OBSERVER = "observer"
    """Reads the greeting (and may stay connected); holds nothing."""


class ClientHello(WireMessage):
    """The first message of a client."""

    type: Literal["hello"] = "hello"
    role: ClientRole = ClientRole.CONVERSATION
    keep_alive: bool = False
    """This end answers pings."""
    buttons: bool = False
    """This end takes `ButtonPressed`."""


class StartCapture(WireMessage):
    """From now on capture frames may come; the track's sample 0 is the first one sent."""

    type: Literal["capture_start"] = "capture_start"


class StopCapture(WireMessage):
    type: Literal["capture_stop"] = "capture_stop"


class OpenStream(WireMessage):
    """A new output stream. Stream ids grow and are never reused on a connection."""

    type: Literal["open"] = "open"
    stream_id: StreamId
    output_epoch: Epoch
    format: WireFormat
    prebuffer_ms: int = Field(default=80, ge=0, le=10_000)
    held: bool = False


class FinishStream(WireMessage):
    """The end barrier, sent in the media lane behind the last audio."""

    type: Literal["finish"] = "finish"
    stream_id: StreamId
    end_sample: Samples


class InvalidateBefore(WireMessage):
    """Drop everything of epochs below `output_epoch`, now and whenever it arrives."""

    type: Literal["invalidate"] = "invalidate"
    output_epoch: Epoch
    reason: Reason = ""


class PauseStream(WireMessage):
    type: Literal["pause"] = "pause"
    stream_id: StreamId


class ResumeStream(WireMessage):
    type: Literal["resume"] = "resume"
    stream_id: StreamId


class ReleaseStream(WireMessage):
    """Let a held stream render."""

    type: Literal["release"] = "release"
    stream_id: StreamId


# -- the service says ----------------------------------------------------------------------------------------------


class PlaybackOffer(WireMessage):
    """What the speaker can do. The first format is its own; the others are converted by the service."""

    formats: tuple[WireFormat, ...] = Field(min_length=1)
    pause: bool = False
    position_source: PositionSource = PositionSource.ESTIMATED
    queue_limit_ms: int = Field(default=1_000, ge=1, le=10_000)
    queue_limit_bytes: int = Field(default=262_144, ge=16)


class CaptureOffer(WireMessage):
    """The one microphone track."""

    format: WireFormat


class ServiceHello(WireMessage):
    """The service's answer to `ClientHello`. An end that is absent (None) does not exist on this board."""

    type: Literal["welcome"] = "welcome"
    playback: PlaybackOffer | None = None
    capture: CaptureOffer | None = None
    keep_alive: bool = False
    buttons: tuple[ButtonName, ...] = ()
    """The buttons of this board: "talk" stands for "talk", "release" and "clear"."""


class ButtonPressed(WireMessage):
    """Somebody used a button of the board. Sent only to a client whose greeting says `buttons`.

    It comes in the media lane, behind what was captured before it; "stop" comes ahead. A client ignores names that it
    does not know.
    """

    type: Literal["button"] = "button"
    button: ButtonName


class WirePosition(WireMessage):
    """Three numbers, never one, in samples of the stream."""

    accepted_samples: Samples
    submitted_samples: Samples
    played_samples: Samples | None = None
    source: PositionSource = PositionSource.ESTIMATED
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    at_ns: Samples | None = None
    """When this was so, monotonic time of this machine."""


class Accepted(WireMessage):
    """Everything of the stream up to `accepted_samples` is queued: the client's credit to send more."""

    type: Literal["accepted"] = "accepted"
    stream_id: StreamId
    accepted_samples: Samples
    submitted_samples: Samples = 0


class Discarded(WireMessage):
    """Audio of an invalidated epoch came and was dropped before the device. Totals of this connection."""

    type: Literal["discarded"] = "discarded"
    stale_frames: int = Field(ge=0)


class Started(WireMessage):
    type: Literal["started"] = "started"
    stream_id: StreamId
    output_epoch: Epoch
    position: WirePosition


class Progressed(WireMessage):
    type: Literal["progress"] = "progress"
    stream_id: StreamId
    output_epoch: Epoch
    position: WirePosition


class Starved(WireMessage):
    type: Literal["starved"] = "starved"
    stream_id: StreamId
    output_epoch: Epoch
    position: WirePosition


class Drained(WireMessage):
    type: Literal["drained"] = "drained"
    stream_id: StreamId
    output_epoch: Epoch
    position: WirePosition


class Stopped(WireMessage):
    """The receipt of a stop: nothing of the stream is heard after `position.played_samples`."""

    type: Literal["stopped"] = "stopped"
    stream_id: StreamId
    output_epoch: Epoch
    position: WirePosition
    dropped_samples: Samples = 0


class CaptureFinished(WireMessage):
    """The microphone track ended by itself (a recording came to its end)."""

    type: Literal["capture_ended"] = "capture_ended"


class DeviceFailed(WireMessage):
    """A device is gone; the service ends."""

    type: Literal["device_lost"] = "device_lost"
    device: Literal["speaker", "microphone"]
    code: str = Field(max_length=64)
    reason: Reason = ""


ClientMessage = (
    ClientHello
    | StartCapture
    | StopCapture
    | OpenStream
    | FinishStream
    | InvalidateBefore
    | PauseStream
    | ResumeStream
    | ReleaseStream
    | Ping
    | Pong
    | Closing
)
Receipt = Started | Progressed | Starved | Drained | Stopped
ServiceMessage = (
    ServiceHello
    | Accepted
    | Discarded
    | Receipt
    | ButtonPressed
    | CaptureFinished
    | DeviceFailed
    | Ping
    | Pong
    | Closing
)

CLIENT_MESSAGES: TypeAdapter[ClientMessage] = TypeAdapter(Annotated[ClientMessage, Field(discriminator="type")])
SERVICE_MESSAGES: TypeAdapter[ServiceMessage] = TypeAdapter(Annotated[ServiceMessage, Field(discriminator="type")])
