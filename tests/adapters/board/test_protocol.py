"""The codec: whatever comes in, valid messages come out or one violation with its reason."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.board.messages import (
    Accepted,
    ClientHello,
    ClientRole,
    Closing,
    FinishStream,
    InvalidateBefore,
    OpenStream,
    PauseStream,
    Ping,
    PlaybackOffer,
    ServiceHello,
    StartCapture,
    WireFormat,
)
from voicechart.adapters.board.protocol import (
    HEADER,
    MAGIC,
    MAX_PAYLOAD_BYTES,
    CaptureAudio,
    FrameDecoder,
    FrameEncoder,
    FrameType,
    Inbound,
    Outbound,
    PlaybackAudio,
    ProtocolViolation,
    Side,
)
from voicechart.statecharts.values import PositionSource

HELLO = ClientHello()
U63 = st.integers(0, 2**63 - 1)
STREAM_IDS = st.integers(1, 2**32 - 1)

CLIENT_ITEMS = st.one_of(
    st.builds(PlaybackAudio, STREAM_IDS, U63, U63, st.binary(min_size=1, max_size=300)),
    st.builds(FinishStream, stream_id=STREAM_IDS, end_sample=U63),
    st.builds(InvalidateBefore, output_epoch=U63, reason=st.text(max_size=50)),
    st.builds(PauseStream, stream_id=STREAM_IDS),
    st.builds(Ping, number=U63),
    st.just(StartCapture()),
    st.builds(
        OpenStream,
        stream_id=STREAM_IDS,
        output_epoch=U63,
        format=st.builds(WireFormat, sample_rate_hz=st.integers(4_000, 192_000), channels=st.integers(1, 8)),
        prebuffer_ms=st.integers(0, 10_000),
        held=st.booleans(),
    ),
)
SERVICE_ITEMS = st.one_of(
    st.builds(
        CaptureAudio,
        U63,
        st.binary(min_size=1, max_size=300),
        st.none() | st.integers(0, 2**64 - 1),
        st.integers(0, 2**32 - 1),
        U63,
    ),
    st.builds(Accepted, stream_id=STREAM_IDS, accepted_samples=U63, submitted_samples=U63),
)


def wire(*items: Outbound) -> bytes:
    encoder = FrameEncoder()
    return b"".join(encoder.encode(item) for item in items)


def decode(data: bytes, peer: Side = Side.CLIENT) -> list[Inbound]:
    return list(FrameDecoder(peer).feed(data))


def frame(
    payload: bytes = b"{}",
    *,
    magic: bytes = MAGIC,
    version: int = 1,
    kind: int = FrameType.CONTROL,
    flags: int = 0,
    stream_id: int = 0,
    epoch: int = 0,
    sequence: int = 1,
    position: int = 0,
    length: int | None = None,
) -> bytes:
    size = len(payload) if length is None else length
    return HEADER.pack(magic, version, kind, flags, stream_id, epoch, sequence, position, size) + payload


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({place % (len(data) + 1) for place in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@given(st.lists(CLIENT_ITEMS, max_size=8), st.lists(st.integers(0, 10_000), max_size=12))
def test_a_client_is_understood_however_its_bytes_are_cut(items: list[Outbound], cuts: list[int]) -> None:
    decoder = FrameDecoder(Side.CLIENT)
    received: list[Inbound] = []
    for piece in cut(wire(HELLO, *items), cuts):
        received.extend(decoder.feed(piece))
    decoder.end()
    assert received == [HELLO, *items]


@given(st.lists(SERVICE_ITEMS, max_size=8), st.lists(st.integers(0, 10_000), max_size=12))
def test_a_service_is_understood_however_its_bytes_are_cut(items: list[Outbound], cuts: list[int]) -> None:
    decoder = FrameDecoder(Side.SERVICE)
    greeting = ServiceHello(playback=PlaybackOffer(formats=(WireFormat(sample_rate_hz=24_000),)))
    received: list[Inbound] = []
    for piece in cut(wire(greeting, *items), cuts):
        received.extend(decoder.feed(piece))
    decoder.end()
    assert received == [greeting, *items]


def violation_of(data: bytes, peer: Side) -> ProtocolViolation | None:
    """The violation that ends these bytes, None when they are whole and valid."""
    decoder = FrameDecoder(peer)
    try:
        list(decoder.feed(data))
        decoder.end()
    except ProtocolViolation as violation:
        return violation
    return None


def test_ten_thousand_random_byte_strings_are_all_refused_with_a_reason() -> None:
    chance = random.Random(2)
    for _ in range(10_000):
        data = chance.randbytes(chance.randrange(1, 400))
        # Some begin well, so that more than the magic is reached.
        for prefix in (b"", MAGIC, wire(HELLO), wire(HELLO) + MAGIC + b"\x01"):
            violation = violation_of(prefix + data, chance.choice(list(Side)))
            assert violation is not None
            assert violation.reason


@given(st.binary(max_size=200), st.integers(0, 10_000), st.integers(0, 255))
def test_one_wrong_byte_is_refused_with_a_reason_or_still_a_valid_message(data: bytes, place: int, byte: int) -> None:
    sent = bytearray(wire(HELLO, PlaybackAudio(1, 1, 0, data + b"x"), Ping(number=3)))
    sent[place % len(sent)] = byte
    violation = violation_of(bytes(sent), Side.CLIENT)
    assert violation is None or violation.reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "magic"),
        (b"X", "magic"),
        (frame(magic=b"VCAV"), "magic"),
        (frame(version=2), "version 2"),
        (frame(kind=9), "type 9"),
        (frame(sequence=2), "frame 2 came where frame 1"),
        (frame(sequence=0), "frame 0 came where frame 1"),
        (frame(length=MAX_PAYLOAD_BYTES + 1), "over the limit"),
        (frame(length=2**32 - 1), "over the limit"),
        (frame(b""), "not valid"),
        (frame(b"not json"), "not valid"),
        (frame(b"\xff\xfe"), "not valid"),
        (frame(b"[1]"), "not valid"),
        (frame(b'{"type":"fire"}'), "not valid"),
        (frame(b'{"type":"welcome"}'), "not valid"),
        (frame(b'{"type":"ping","number":-1}'), "not valid"),
        (frame(b'{"type":"ping","number":"1"}'), "not valid"),
        (frame(b'{"type":"open","stream_id":0,"output_epoch":1,"format":{"sample_rate_hz":8000}}'), "not valid"),
        (frame(b'{"type":"open","stream_id":1,"output_epoch":1,"format":{"sample_rate_hz":1}}'), "not valid"),
        (frame(b'{"type":"hello"}'), "second greeting"),
        (frame(b"", kind=FrameType.PLAYBACK), "without audio"),
        (frame(b"xx", kind=FrameType.PLAYBACK, position=2**63), "63 bits"),
        (frame(b"xx", kind=FrameType.PLAYBACK, epoch=2**63), "63 bits"),
        (frame(b"x" * 40, kind=FrameType.CAPTURE), "does not send capture"),
    ],
)
def test_a_frame_that_breaks_the_protocol_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    decoder = FrameDecoder(Side.CLIENT)
    assert list(decoder.feed(wire(HELLO))) == [HELLO]
    with pytest.raises(ProtocolViolation, match=reason):
        list(decoder.feed(data))
    with pytest.raises(ProtocolViolation, match=reason):
        list(decoder.feed(wire(HELLO)))


@pytest.mark.parametrize("item", [Ping(number=1), PlaybackAudio(1, 1, 0, b"xx"), StartCapture()])
def test_the_first_message_must_be_the_greeting(item: Outbound) -> None:
    with pytest.raises(ProtocolViolation, match="greeting"):
        decode(wire(item))


def test_a_service_may_refuse_before_it_greets() -> None:
    refusal = Closing(code="busy", reason="another conversation holds the microphone")
    assert decode(wire(refusal), Side.SERVICE) == [refusal]


def test_a_service_sends_no_playback_audio_and_no_empty_capture() -> None:
    with pytest.raises(ProtocolViolation, match="does not send playback"):
        decode(wire(ServiceHello(), PlaybackAudio(1, 1, 0, b"xx")), Side.SERVICE)
    with pytest.raises(ProtocolViolation, match="without audio"):
        decode(wire(ServiceHello(), CaptureAudio(0, b"")), Side.SERVICE)


@pytest.mark.parametrize("length", [1, HEADER.size - 1, HEADER.size, HEADER.size + 1])
def test_a_connection_that_ends_inside_a_frame_is_a_violation(length: int) -> None:
    decoder = FrameDecoder(Side.CLIENT)
    assert list(decoder.feed(wire(HELLO)[:length])) == []
    with pytest.raises(ProtocolViolation, match=f"after {length} bytes"):
        decoder.end()


def test_messages_before_the_fault_are_delivered() -> None:
    messages = FrameDecoder(Side.CLIENT).feed(wire(HELLO, Ping(number=1)) + b"rubbish")
    assert [next(messages), next(messages)] == [HELLO, Ping(number=1)]
    with pytest.raises(ProtocolViolation):
        next(messages)


def test_the_largest_payload_passes_and_one_byte_more_is_not_even_sent() -> None:
    largest = PlaybackAudio(1, 1, 0, bytes(MAX_PAYLOAD_BYTES))
    assert decode(wire(HELLO, largest))[1] == largest
    with pytest.raises(ValueError, match="over the limit"):
        wire(HELLO, PlaybackAudio(1, 1, 0, bytes(MAX_PAYLOAD_BYTES + 1)))


def test_an_old_client_that_knows_no_optional_field_is_understood() -> None:
    old = frame(b'{"type":"hello"}', sequence=0) + frame(
        b'{"type":"open","stream_id":1,"output_epoch":2,"format":{"sample_rate_hz":16000}}', sequence=1
    )
    hello, opened = decode(old)
    assert hello == ClientHello(role=ClientRole.CONVERSATION, keep_alive=False)
    assert isinstance(opened, OpenStream)
    assert (opened.prebuffer_ms, opened.held, opened.format.channels) == (80, False, 1)


def test_an_old_service_that_knows_no_optional_field_is_understood() -> None:
    body = b'{"type":"welcome","playback":{"formats":[{"sample_rate_hz":16000}]}}'
    (greeting,) = decode(frame(body, sequence=0), Side.SERVICE)
    assert isinstance(greeting, ServiceHello)
    assert greeting.playback is not None
    assert (greeting.playback.pause, greeting.playback.position_source) == (False, PositionSource.ESTIMATED)
    assert greeting.playback.queue_limit_ms == 1_000
    assert greeting.capture is None
    assert not greeting.keep_alive


def test_fields_and_flags_of_a_newer_peer_are_ignored() -> None:
    newer = frame(b'{"type":"hello","mood":"cheerful","role":"observer"}', sequence=0, flags=0x8000)
    assert decode(newer) == [ClientHello(role=ClientRole.OBSERVER)]


def test_a_refused_body_is_not_repeated_in_the_reason() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(wire(HELLO) + frame(b'{"type":"ping","number":"my secret"}'))
    assert "secret" not in caught.value.reason
