"""The board-audio wire: length-prefixed frames, sans-IO.

A frame is a fixed little-endian header of 40 bytes and a payload of at most 64 KiB:

| offset | field | |
|---|---|---|
| 0 | magic | `VCAU` |
| 4 | version | u8, 1 |
| 5 | type | u8, `FrameType` |
| 6 | flags | u16; bit 0 on capture: the frame has a timestamp; unknown bits are ignored |
| 8 | stream id | u32; playback: the output stream, else 0 |
| 12 | output epoch | u64; playback: its invalidation generation, else 0 |
| 20 | sequence | u64; 0, 1, 2 … per direction, in the order of the wire |
| 28 | sample position | u64; of the payload's first sample in its track |
| 36 | payload length | u32, in bytes |

Control payloads are JSON (`messages.py`). A playback payload is PCM16. A capture payload is a record of 20 bytes
(captured at, monotonic ns u64; queued µs u32; samples dropped so far u64) followed by PCM16.

What the decoder promises: whatever the bytes, it yields valid messages in order or raises `ProtocolViolation` with a
reason fit for the peer; it never buffers more than one frame and the bytes of one `feed`. It checks what one frame
can tell, the sequence, and that a greeting comes first and once. The order of a stream's messages is the render
queue's to check.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum

from pydantic import TypeAdapter, ValidationError

from .messages import (
    CLIENT_MESSAGES,
    SERVICE_MESSAGES,
    ClientHello,
    ClientMessage,
    Closing,
    ServiceHello,
    ServiceMessage,
)

MAGIC = b"VCAU"
VERSION = 1
HEADER = struct.Struct("<4sBBHIQQQI")
MAX_PAYLOAD_BYTES = 64 * 1024
CAPTURE_RECORD = struct.Struct("<QIQ")
HAS_TIMESTAMP = 1


class ProtocolViolation(Exception):
    """The peer broke the protocol; the connection must be closed. `reason` is safe to send to the peer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FrameType(IntEnum):
    """What a payload is."""

    CONTROL = 1
    CAPTURE = 2
    PLAYBACK = 3


class Side(Enum):
    """Which end speaks."""

    CLIENT = "client"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class CaptureAudio:
    """PCM from the microphone."""

    sample_position: int
    data: bytes
    captured_at_ns: int | None = None
    """Monotonic time of the first sample on this machine, where the device tells it."""
    queued_us: int = 0
    """How much captured audio was waiting behind this frame, in microseconds."""
    dropped_samples: int = 0
    """Samples of the track lost so far."""


@dataclass(frozen=True, slots=True)
class PlaybackAudio:
    """PCM for the speaker."""

    stream_id: int
    output_epoch: int
    sample_position: int
    data: bytes


Outbound = ClientMessage | ServiceMessage | CaptureAudio | PlaybackAudio
Inbound = Outbound


class FrameEncoder:
    """Turns what one end says into bytes, numbered in the order of the calls, which must be the order of the wire."""

    def __init__(self) -> None:
        self._sequence = 0

    def encode(self, item: Outbound) -> bytes:
        """One whole frame. Raises `ValueError` when its payload is over 64 KiB."""
        match item:
            case PlaybackAudio(stream_id, output_epoch, position, data):
                return self._frame(FrameType.PLAYBACK, data, stream_id=stream_id, epoch=output_epoch, position=position)
            case CaptureAudio():
                record = CAPTURE_RECORD.pack(item.captured_at_ns or 0, item.queued_us, item.dropped_samples)
                flags = 0 if item.captured_at_ns is None else HAS_TIMESTAMP
                return self._frame(FrameType.CAPTURE, record + item.data, flags=flags, position=item.sample_position)
            case _:
                return self._frame(FrameType.CONTROL, item.model_dump_json().encode())

    def _frame(
        self, kind: FrameType, payload: bytes, *, flags: int = 0, stream_id: int = 0, epoch: int = 0, position: int = 0
    ) -> bytes:
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise ValueError(f"a payload of {len(payload)} bytes is over the limit of {MAX_PAYLOAD_BYTES}")
        sequence = self._sequence
        self._sequence += 1
        header = HEADER.pack(MAGIC, VERSION, kind, flags, stream_id, epoch, sequence, position, len(payload))
        return header + payload


class FrameDecoder:
    """Turns the bytes of the other end, cut anywhere, into messages."""

    def __init__(self, peer: Side) -> None:
        self._peer = peer
        self._buffer = bytearray()
        self._next_sequence = 0
        self._greeted = False
        self._violation: ProtocolViolation | None = None

    def feed(self, data: bytes) -> Iterator[Inbound]:
        """The messages that `data` completes, in order. Exhaust it before the next call.

        Raises `ProtocolViolation`, after the messages that came before the fault; every later call raises it again.
        """
        if self._violation is None:
            self._buffer += data
            try:
                while (item := self._next()) is not None:
                    yield item
            except ProtocolViolation as violation:
                self._violation = violation
                self._buffer.clear()
        if self._violation is not None:
            raise self._violation

    def end(self) -> None:
        """The peer sends nothing more. Raises `ProtocolViolation` when that cuts a frame."""
        if self._buffer:
            raise ProtocolViolation(f"the connection ended inside a frame, after {len(self._buffer)} bytes of it")

    def _next(self) -> Inbound | None:
        buffer = self._buffer
        if buffer and not MAGIC.startswith(buffer[: len(MAGIC)]):
            raise ProtocolViolation("not a voicechart audio frame (wrong magic)")
        if len(buffer) < HEADER.size:
            return None
        _, version, kind, flags, stream_id, epoch, sequence, position, length = HEADER.unpack_from(buffer)
        if version != VERSION:
            raise ProtocolViolation(f"version {version} is not spoken here, only version {VERSION}")
        if length > MAX_PAYLOAD_BYTES:
            raise ProtocolViolation(f"a payload of {length} bytes is over the limit of {MAX_PAYLOAD_BYTES}")
        if sequence != self._next_sequence:
            raise ProtocolViolation(f"frame {sequence} came where frame {self._next_sequence} was due")
        if kind not in tuple(FrameType):
            raise ProtocolViolation(f"frame type {kind} is not known")
        if len(buffer) < HEADER.size + length:
            return None
        payload = bytes(buffer[HEADER.size : HEADER.size + length])
        del buffer[: HEADER.size + length]
        self._next_sequence += 1
        item = self._parse(FrameType(kind), flags, stream_id, epoch, position, payload)
        self._check_greeting(item)
        return item

    def _parse(self, kind: FrameType, flags: int, stream_id: int, epoch: int, position: int, payload: bytes) -> Inbound:
        if kind is FrameType.CONTROL:
            return self._parse_control(payload)
        if position > 2**63 - 1 or epoch > 2**63 - 1:
            raise ProtocolViolation("a sample position or epoch is over 63 bits")
        if kind is FrameType.PLAYBACK and self._peer is Side.CLIENT:
            if not payload:
                raise ProtocolViolation("an audio frame without audio")
            return PlaybackAudio(stream_id, epoch, position, payload)
        if kind is FrameType.CAPTURE and self._peer is Side.SERVICE:
            if len(payload) <= CAPTURE_RECORD.size:
                raise ProtocolViolation("a capture frame without audio")
            captured_at_ns, queued_us, dropped = CAPTURE_RECORD.unpack_from(payload)
            at = captured_at_ns if flags & HAS_TIMESTAMP else None
            return CaptureAudio(position, payload[CAPTURE_RECORD.size :], at, queued_us, dropped)
        raise ProtocolViolation(f"a {self._peer.value} does not send {kind.name.lower()} audio")

    def _parse_control(self, payload: bytes) -> ClientMessage | ServiceMessage:
        adapter: TypeAdapter[ClientMessage] | TypeAdapter[ServiceMessage]
        adapter = CLIENT_MESSAGES if self._peer is Side.CLIENT else SERVICE_MESSAGES
        try:
            return adapter.validate_json(payload)
        except ValidationError as error:
            # Only where and what kind: the text of a peer is not repeated into logs.
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the body"
            raise ProtocolViolation(f"a control message is not valid: {first['type']} at {where}"[:300]) from None

    def _check_greeting(self, item: Inbound) -> None:
        is_greeting = isinstance(item, ClientHello | ServiceHello)
        if self._greeted and is_greeting:
            raise ProtocolViolation("a second greeting")
        # A service may refuse a client instead of greeting it.
        if not self._greeted and not is_greeting and not isinstance(item, Closing):
            raise ProtocolViolation("the first message must be the greeting")
        self._greeted = True
