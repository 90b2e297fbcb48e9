"""Both ends over a real Unix socket; a raw peer stands in for an end that is old, broken, hostile or gone."""

from __future__ import annotations

import functools
import random
import select
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream, TaskStatus

from voicechart.adapters.board import (
    BoardAudio,
    BoardSpeaker,
    CaptureDevice,
    ClientLimits,
    ClientRole,
    DeviceLost,
    LinkLimits,
    RenderedSpan,
    ServiceLimits,
    SocketRefused,
    WavMicrophone,
    WavSpeaker,
    serve_audio,
)
from voicechart.adapters.board.messages import (
    Accepted,
    CaptureOffer,
    ClientHello,
    Closing,
    DeviceFailed,
    Discarded,
    Drained,
    FinishStream,
    InvalidateBefore,
    OpenStream,
    PauseStream,
    Ping,
    PlaybackOffer,
    ServiceHello,
    StartCapture,
    Started,
    Stopped,
    WireFormat,
    WirePosition,
)
from voicechart.adapters.board.protocol import (
    HEADER,
    MAGIC,
    FrameDecoder,
    FrameEncoder,
    FrameType,
    Inbound,
    Outbound,
    PlaybackAudio,
    Side,
)
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.engines.ports import OutputOpening
from voicechart.engines.reports import (
    Captured,
    CaptureEnded,
    CaptureGap,
    MicrophoneReport,
    PortError,
    RenderingDrained,
    SpeakerLost,
    SpeakerReport,
)

pytestmark = pytest.mark.anyio
FORMAT = AudioFormat(8_000)
WIRE_FORMAT = WireFormat.of(FORMAT)
T = TypeVar("T")


@dataclass
class Service:
    """A running audio service."""

    path: Path
    speaker: WavSpeaker
    rendered: list[RenderedSpan] = field(default_factory=list[RenderedSpan])
    failure: Exception | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@asynccontextmanager
async def serving(
    path: Path, microphone: CaptureDevice | None = None, limits: ServiceLimits | None = None
) -> AsyncGenerator[Service, None]:
    service = Service(path, WavSpeaker(None, FORMAT))

    async def run(*, task_status: TaskStatus[None]) -> None:
        try:
            with service.scope:
                await serve_audio(
                    path,
                    microphone,
                    service.speaker,
                    limits=limits,
                    log_rendered=service.rendered.append,
                    task_status=task_status,
                )
        except DeviceLost as error:
            service.failure = error
        service.ended.set()

    async with anyio.create_task_group() as group:
        await group.start(run)
        yield service
        group.cancel_scope.cancel()


class RawPeer:
    """Speaks the protocol by hand."""

    def __init__(self, stream: SocketStream, peer: Side) -> None:
        self.stream = stream
        self._encoder = FrameEncoder()
        self._decoder = FrameDecoder(peer)
        self._received: list[Inbound] = []

    async def send(self, *items: Outbound) -> None:
        await self.stream.send(b"".join(self._encoder.encode(item) for item in items))

    async def next(self) -> Inbound:
        with anyio.fail_after(10):
            while not self._received:
                self._received.extend(self._decoder.feed(await self.stream.receive()))
        return self._received.pop(0)

    async def until(self, kind: type[T]) -> T:
        while not isinstance(item := await self.next(), kind):
            pass
        return item

    async def until_closed(self) -> Closing:
        closing = await self.until(Closing)
        with anyio.fail_after(10), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await self.stream.receive()
        return closing


@asynccontextmanager
async def raw_client(path: Path, *items: Outbound) -> AsyncGenerator[RawPeer, None]:
    async with await anyio.connect_unix(path) as stream:
        peer = RawPeer(stream, Side.SERVICE)
        await peer.send(*items)
        yield peer


@asynccontextmanager
async def raw_service(path: Path, greeting: ServiceHello) -> AsyncGenerator[list[RawPeer], None]:
    """A service that greets whoever comes, and then does what the test makes it do."""
    peers: list[RawPeer] = []

    async def greet(stream: SocketStream) -> None:
        async with stream:
            peer = RawPeer(stream, Side.CLIENT)
            await peer.until(ClientHello)
            await peer.send(greeting)
            peers.append(peer)
            await anyio.sleep_forever()

    async with await anyio.create_unix_listener(path) as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, greet)
        yield peers
        group.cancel_scope.cancel()


GREETING = ServiceHello(
    playback=PlaybackOffer(formats=(WIRE_FORMAT,), pause=True), capture=CaptureOffer(format=WIRE_FORMAT)
)


def pcm(ms: int, start_ms: int = 0) -> AudioFrame:
    return AudioFrame(b"\1\0" * FORMAT.samples_for_ms(ms), FORMAT, FORMAT.samples_for_ms(start_ms))


async def play(speaker: BoardSpeaker, ms: int, stream_id: int = 1, epoch: int = 1) -> RenderingDrained:
    """Play to the end."""
    await speaker.open(OutputOpening(stream_id, epoch, FORMAT, prebuffer_ms=20))
    await speaker.write(stream_id, epoch, pcm(ms))
    await speaker.finish(stream_id, FORMAT.samples_for_ms(ms))
    async for report in speaker.reports():
        if isinstance(report, RenderingDrained):
            return report
    raise AssertionError("the reports ended before the stream drained")


async def play_when_free(path: Path) -> RenderingDrained:
    """Play on a new connection, once the former holder is gone."""
    while True:
        refusal: PortError | None = None
        try:
            async with BoardAudio.connect(path) as board:
                return await play(board.speaker, 40, epoch=0)
        except PortError as error:
            refusal = error
        assert refusal.error.code == "busy"
        assert refusal.error.retryable
        await anyio.sleep(0.05)


# -- one connection's faults are its own -------------------------------------------------------------------------------


def header(length: int, *, version: int = 1, kind: int = FrameType.CONTROL, sequence: int = 1) -> bytes:
    return HEADER.pack(MAGIC, version, kind, 0, 0, 0, sequence, 0, length)


BAD_BYTES = {
    "not-the-protocol": (b"GET / HTTP/1.1\r\n\r\n", "magic"),
    "oversized": (header(65_537), "over the limit"),
    "another-version": (header(2, version=9) + b"{}", "version 9"),
    "bad-json": (header(2) + b"{]", "not valid"),
    "out-of-order": (header(2, sequence=5) + b"{}", "frame 5"),
    "truncated": (header(100) + b"{", "ended inside a frame"),
}


@pytest.mark.parametrize(("data", "reason"), BAD_BYTES.values(), ids=BAD_BYTES.keys())
async def test_bad_bytes_close_one_connection_with_a_reason_while_another_plays_on(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    async with serving(tmp_path / "s") as service, BoardAudio.connect(service.path) as board:
        async with anyio.create_task_group() as group:
            group.start_soon(play, board.speaker, 150)
            async with raw_client(service.path, ClientHello(role=ClientRole.OBSERVER)) as bad:
                await bad.until(ServiceHello)
                await bad.stream.send(data)
                if reason == "ended inside a frame":
                    await bad.stream.send_eof()
                closing = await bad.until_closed()
                assert closing.code == "protocol_violation"
                assert reason in closing.reason
        assert service.rendered[-1].end_sample == FORMAT.samples_for_ms(150)


async def bombard(path: Path, strings: int) -> None:
    """Open a connection for each random byte string; each must be closed with a reason."""
    chance = random.Random(5)
    for _ in range(strings):
        async with await anyio.connect_unix(path) as stream:
            await stream.send(chance.randbytes(chance.randrange(1, 200)))
            assert (await RawPeer(stream, Side.SERVICE).until_closed()).code == "protocol_violation"


async def test_random_byte_strings_close_their_connections_and_nothing_else(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service, BoardAudio.connect(service.path) as board:
        async with anyio.create_task_group() as group:
            group.start_soon(play, board.speaker, 300)
            await bombard(service.path, 200)
        assert service.rendered[-1].end_sample == FORMAT.samples_for_ms(300)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_ten_thousand_random_byte_strings_harm_nobody_else(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service, BoardAudio.connect(service.path) as board:
        await play(board.speaker, 100, stream_id=1)
        await bombard(service.path, 10_000)
        await play(board.speaker, 100, stream_id=2)
        assert service.rendered[-1].end_sample == FORMAT.samples_for_ms(100)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([PlaybackAudio(1, 1, 0, b"xx")], "stream 1, which is not open"),
        ([FinishStream(stream_id=1, end_sample=0)], "never opened"),
        ([OpenStream(stream_id=1, output_epoch=1, format=WIRE_FORMAT)] * 2, "stream ids grow"),
        (
            [OpenStream(stream_id=1, output_epoch=1, format=WIRE_FORMAT), PlaybackAudio(1, 1, 7, b"xx")],
            "goes on at sample 0, not 7",
        ),
        (
            [OpenStream(stream_id=1, output_epoch=1, format=WIRE_FORMAT), PlaybackAudio(1, 1, 0, b"xxx")],
            "cut a sample",
        ),
        (
            [OpenStream(stream_id=1, output_epoch=1, format=WIRE_FORMAT), FinishStream(stream_id=1, end_sample=9)],
            "its end cannot be 9",
        ),
        (
            [
                OpenStream(stream_id=1, output_epoch=1, format=WIRE_FORMAT, held=True),
                PlaybackAudio(1, 1, 0, bytes(16_000)),
                PlaybackAudio(1, 1, 8_000, bytes(2)),
            ],
            "room for 0 samples",
        ),
        ([StartCapture()], "not offered"),
        ([ClientHello()], "second greeting"),
    ],
)
async def test_messages_in_the_wrong_order_or_beyond_the_credit_close_the_connection(
    tmp_path: Path, items: list[Outbound], reason: str
) -> None:
    async with serving(tmp_path / "s") as service:
        async with raw_client(service.path, ClientHello(), *items) as bad:
            closing = await bad.until_closed()
            assert (closing.code, reason in closing.reason) == ("protocol_violation", True), closing
        async with BoardAudio.connect(service.path) as board:
            await play(board.speaker, 30)


async def test_a_connection_that_never_greets_is_closed_after_the_deadline(tmp_path: Path) -> None:
    limits = ServiceLimits(link=LinkLimits(greeting_deadline_ms=100))
    async with serving(tmp_path / "s", limits=limits) as service, raw_client(service.path) as silent:
        closing = await silent.until_closed()
    assert (closing.code, "did not greet within 100 ms" in closing.reason) == ("unresponsive", True)


async def test_connections_beyond_the_limit_are_turned_away(tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "s", limits=ServiceLimits(max_connections=1)) as service,
        BoardAudio.connect(service.path) as board,
    ):
        async with await anyio.connect_unix(service.path) as stream:
            with anyio.fail_after(10), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
        await play(board.speaker, 30)


# -- one holder --------------------------------------------------------------------------------------------------------


async def test_a_second_conversation_is_refused_with_the_reason_and_the_first_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service, BoardAudio.connect(service.path) as first:
        with pytest.raises(PortError, match="another conversation holds") as refused:
            async with BoardAudio.connect(service.path):
                raise AssertionError("connected")
        assert refused.value.error.code == "busy"
        await play(first.speaker, 30)


async def test_an_observer_reads_the_greeting_beside_a_conversation_and_holds_nothing(tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "s", WavMicrophone(FORMAT)) as service,
        BoardAudio.connect(service.path) as holder,
        BoardAudio.connect(service.path, role=ClientRole.OBSERVER) as observer,
    ):
        assert observer.greeting == holder.greeting
        assert observer.greeting.playback is not None
        assert observer.greeting.playback.formats[0] == WIRE_FORMAT
        await play(holder.speaker, 30)
        async with raw_client(service.path, ClientHello(role=ClientRole.OBSERVER), StartCapture()) as bad:
            assert "observer holds no device" in (await bad.until_closed()).reason


async def test_when_the_holder_goes_its_audio_is_silent_at_once_and_the_next_one_starts_afresh(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service:
        async with raw_client(
            service.path,
            ClientHello(),
            OpenStream(stream_id=9, output_epoch=9, format=WIRE_FORMAT, prebuffer_ms=20),
            PlaybackAudio(9, 9, 0, b"\1\0" * 4_000),
        ) as first:
            await first.until(Started)
        drained = await play_when_free(service.path)
        assert drained.position.played_samples == 320
        streams = [span.stream_id for span in service.rendered]
        assert streams == sorted(streams, reverse=True), "the first one was heard after the second"
        assert sum(span.end_sample - span.start_sample for span in service.rendered if span.stream_id == 9) < 4_000


# -- the gates ---------------------------------------------------------------------------------------------------------


async def test_audio_of_an_invalidated_epoch_is_dropped_and_counted_at_the_service(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service:
        async with raw_client(
            service.path,
            ClientHello(),
            OpenStream(stream_id=1, output_epoch=1, format=WIRE_FORMAT, prebuffer_ms=200),
            PlaybackAudio(1, 1, 0, b"\1\0" * 800),
            InvalidateBefore(output_epoch=2),
            PlaybackAudio(1, 1, 800, b"\1\0" * 800),
            OpenStream(stream_id=2, output_epoch=2, format=WIRE_FORMAT, prebuffer_ms=0),
            PlaybackAudio(2, 2, 0, b"\2\0" * 160),
            PlaybackAudio(1, 1, 1_600, b"\1\0" * 800),
            FinishStream(stream_id=2, end_sample=160),
        ) as peer:
            stopped = await peer.until(Stopped)
            assert stopped.dropped_samples == 800
            assert (await peer.until(Discarded)).stale_frames == 2
            await peer.until(Drained)
        assert {span.output_epoch for span in service.rendered} == {2}


async def test_a_stop_reaches_the_socket_ahead_of_the_audio_that_waits(tmp_path: Path) -> None:
    async with raw_service(tmp_path / "s", GREETING) as peers, BoardAudio.connect(tmp_path / "s") as board:
        (peer,) = peers
        await board.speaker.open(OutputOpening(1, 1, FORMAT))
        async with anyio.create_task_group() as group:
            group.start_soon(board.speaker.write, 1, 1, pcm(2_000))
            opened, in_flight = await peer.next(), 0
            assert isinstance(opened, OpenStream)
            while in_flight < FORMAT.samples_for_ms(80):
                audio = await peer.next()
                assert isinstance(audio, PlaybackAudio)
                in_flight += len(audio.data) // 2
            board.speaker.invalidate_before(2, "barge-in")
            assert await peer.next() == InvalidateBefore(output_epoch=2, reason="barge-in")
            assert in_flight == FORMAT.samples_for_ms(80)
        # The stream had not been acknowledged, so nothing more of it was sent before or after the stop.
        await peer.send(
            Stopped(stream_id=1, output_epoch=1, position=WirePosition(accepted_samples=640, submitted_samples=0))
        )
        await board.speaker.open(OutputOpening(2, 2, FORMAT))
        assert isinstance(await peer.next(), OpenStream)
        assert board.speaker.statistics.stale_frames == 1


async def test_a_stop_is_on_the_wire_before_the_call_returns_and_ahead_of_other_messages(tmp_path: Path) -> None:
    async with raw_service(tmp_path / "s", GREETING) as peers, BoardAudio.connect(tmp_path / "s") as board:
        (peer,) = peers
        await board.speaker.open(OutputOpening(1, 1, FORMAT))
        assert isinstance(await peer.next(), OpenStream)
        board.speaker.pause(1)
        board.speaker.invalidate_before(2, "barge-in")
        arrived, _, _ = select.select([peer.stream.extra(SocketAttribute.raw_socket)], [], [], 0)
        assert arrived
        assert await peer.next() == InvalidateBefore(output_epoch=2, reason="barge-in")
        assert await peer.next() == PauseStream(stream_id=1)


# -- peers of another age ----------------------------------------------------------------------------------------------


async def test_a_client_without_any_optional_field_plays(tmp_path: Path) -> None:
    def old(sequence: int, body: bytes) -> bytes:
        return header(len(body), sequence=sequence) + body

    async with serving(tmp_path / "s") as service, await anyio.connect_unix(service.path) as stream:
        peer = RawPeer(stream, Side.SERVICE)
        await stream.send(old(0, b'{"type":"hello"}'))
        body = b'{"type":"open","stream_id":1,"output_epoch":0,"format":{"sample_rate_hz":8000}}'
        await stream.send(old(1, body))
        audio = b"\1\0" * 800
        await stream.send(HEADER.pack(MAGIC, 1, FrameType.PLAYBACK, 0, 1, 0, 2, 0, len(audio)) + audio)
        await stream.send(old(3, b'{"type":"finish","stream_id":1,"end_sample":800}'))
        assert (await peer.until(Drained)).position.played_samples == 800


async def test_a_service_without_any_optional_field_is_used_within_what_it_can(tmp_path: Path) -> None:
    greeting = ServiceHello(playback=PlaybackOffer(formats=(WIRE_FORMAT,)))
    async with raw_service(tmp_path / "s", greeting) as peers, BoardAudio.connect(tmp_path / "s") as board:
        assert not board.speaker.capabilities.pause
        assert not board.speaker.capabilities.measured_position
        await board.speaker.open(OutputOpening(1, 1, FORMAT))
        with pytest.raises(PortError, match="cannot pause"):
            board.speaker.pause(1)
        with pytest.raises(PortError, match="does not take"):
            await board.speaker.open(OutputOpening(2, 1, AudioFormat(48_000)))
        with pytest.raises(PortError, match="no microphone"):
            assert board.microphone
        await board.speaker.write(1, 1, pcm(10))
        await board.speaker.finish(1, 80)
        (peer,) = peers
        await peer.until(FinishStream)
        position = WirePosition(accepted_samples=80, submitted_samples=80, played_samples=80)
        await peer.send(Drained(stream_id=1, output_epoch=1, position=position))
        reports = [report async for report in one(board.speaker)]
        assert isinstance(reports[0], RenderingDrained)


async def one(speaker: BoardSpeaker) -> AsyncGenerator[SpeakerReport, None]:
    async for report in speaker.reports():
        yield report
        return


# -- a peer that is gone -----------------------------------------------------------------------------------------------


async def lost_ports(board: BoardAudio) -> tuple[CaptureEnded, SpeakerLost]:
    """Both terminal reports."""
    microphone: list[MicrophoneReport] = []
    speaker: list[SpeakerReport] = []
    with anyio.fail_after(10):
        async for report in board.microphone.reports():
            microphone.append(report)
        async for report in board.speaker.reports():
            speaker.append(report)
    ended, lost = microphone[-1], speaker[-1]
    assert isinstance(ended, CaptureEnded)
    assert isinstance(lost, SpeakerLost)
    return ended, lost


async def test_no_service_is_an_explicit_failure_that_says_what_to_start(tmp_path: Path) -> None:
    with pytest.raises(PortError, match="No other microphone or speaker is used") as missing:
        async with BoardAudio.connect(tmp_path / "nobody"):
            raise AssertionError("connected")
    assert missing.value.error.code == "audio_service_missing"
    assert missing.value.error.retryable


async def test_a_vanished_service_ends_both_ports_and_every_waiting_call(tmp_path: Path) -> None:
    failures: list[str] = []

    async def write(board: BoardAudio) -> None:
        try:
            await board.speaker.write(1, 1, pcm(2_000))
        except PortError as error:
            failures.append(error.error.code)

    async with raw_service(tmp_path / "s", GREETING) as peers, BoardAudio.connect(tmp_path / "s") as board:
        await board.speaker.open(OutputOpening(1, 1, FORMAT))
        async with anyio.create_task_group() as group:
            group.start_soon(write, board)
            await peers[0].until(PlaybackAudio)
            await peers[0].stream.aclose()
        ended, lost = await lost_ports(board)
        with pytest.raises(PortError, match="audio_service_lost"):
            await board.speaker.open(OutputOpening(2, 1, FORMAT))
    assert failures == ["audio_service_lost"]
    assert ended.error == lost.error
    assert lost.error.retryable


async def test_a_service_that_stands_still_is_noticed_by_its_silence(tmp_path: Path) -> None:
    limits = ClientLimits(link=LinkLimits(keep_alive_interval_ms=50, keep_alive_deadline_ms=100))
    greeting = GREETING.model_copy(update={"keep_alive": True})
    async with raw_service(tmp_path / "s", greeting), BoardAudio.connect(tmp_path / "s", limits=limits) as board:
        _, lost = await lost_ports(board)
    assert "did not answer within 100 ms" in lost.error.message


async def test_a_client_that_stands_still_loses_the_devices(tmp_path: Path) -> None:
    limits = ServiceLimits(link=LinkLimits(keep_alive_interval_ms=50, keep_alive_deadline_ms=100))
    async with (
        serving(tmp_path / "s", limits=limits) as service,
        raw_client(service.path, ClientHello(keep_alive=True)) as stuck,
    ):
        await stuck.until(Ping)
        assert (await stuck.until_closed()).code == "unresponsive"
        await play_when_free(service.path)


async def test_a_client_that_does_not_read_its_audio_loses_the_devices(tmp_path: Path) -> None:
    limits = ServiceLimits(link=LinkLimits(send_deadline_ms=200))
    loud = WavMicrophone(AudioFormat(192_000, 8))
    async with (
        serving(tmp_path / "s", loud, limits) as service,
        raw_client(service.path, ClientHello(), StartCapture()) as deaf,
    ):
        await deaf.until(ServiceHello)
        await play_when_free(service.path)


async def test_a_service_that_is_stopped_says_so_and_leaves_no_socket(tmp_path: Path) -> None:
    async with serving(tmp_path / "s", WavMicrophone(FORMAT)) as service, BoardAudio.connect(service.path) as board:
        service.scope.cancel()
        _, lost = await lost_ports(board)
        await service.ended.wait()
        assert not service.path.exists()
    assert lost.error.code == "stopped"


async def test_after_a_restart_of_the_service_a_new_connection_plays(tmp_path: Path) -> None:
    for _ in range(2):
        async with serving(tmp_path / "s") as service, BoardAudio.connect(service.path) as board:
            assert (await play(board.speaker, 30)).position.played_samples == 240


async def test_a_service_that_tells_of_more_audio_than_it_got_is_not_believed(tmp_path: Path) -> None:
    async with raw_service(tmp_path / "s", GREETING) as peers, BoardAudio.connect(tmp_path / "s") as board:
        await board.speaker.open(OutputOpening(1, 1, FORMAT))
        await peers[0].until(OpenStream)
        await peers[0].send(Accepted(stream_id=1, accepted_samples=5))
        _, lost = await lost_ports(board)
    assert lost.error.code == "protocol_violation"
    assert not lost.error.retryable


async def test_a_service_that_loses_its_speaker_says_so_and_ends(tmp_path: Path) -> None:
    async with serving(tmp_path / "s", WavMicrophone(FORMAT)) as service, BoardAudio.connect(service.path) as board:
        service.speaker.vanish()
        ended, lost = await lost_ports(board)
        await service.ended.wait()
    assert lost.error.code == "device_vanished"
    assert ended.error is not None
    assert isinstance(service.failure, DeviceLost)


# -- the socket's path -------------------------------------------------------------------------------------------------


async def test_the_socket_is_private(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service:
        assert stat.S_IMODE(service.path.stat().st_mode) == 0o600


async def test_a_live_service_is_not_replaced(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service:
        with pytest.raises(SocketRefused, match="another audio service answers"):
            await serve_audio(service.path, None, WavSpeaker(None, FORMAT))
        async with BoardAudio.connect(service.path) as board:
            await play(board.speaker, 30)


async def test_a_socket_that_nobody_answers_on_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))
    async with serving(tmp_path / "s") as service, BoardAudio.connect(service.path) as board:
        await play(board.speaker, 30)


async def test_a_file_that_is_not_a_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(SocketRefused, match="not a socket"):
        await serve_audio(path, None, WavSpeaker(None, FORMAT))
    assert path.read_text() == "mine"


async def test_a_missing_folder_is_refused_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(SocketRefused, match="choose another path"):
        await serve_audio(tmp_path / "nowhere" / "s", None, WavSpeaker(None, FORMAT))


# -- the microphone ----------------------------------------------------------------------------------------------------


async def test_microphone_frames_are_contiguous_and_carry_their_time(tmp_path: Path) -> None:
    microphone = WavMicrophone(FORMAT)
    async with serving(tmp_path / "s", microphone) as service, BoardAudio.connect(service.path) as board:
        assert board.microphone.format == FORMAT
        reports = board.microphone.reports()
        spoken = AudioFrame(b"\5\0" * 800, FORMAT)
        frames: list[Captured] = []
        async for report in reports:
            assert isinstance(report, Captured)
            frames.append(report)
            if len(frames) == 1:
                microphone.say(spoken)
            if len(frames) == 10:
                break
        await board.microphone.aclose()
    assert frames[0].frame.start_sample == 0
    for before, after in pairwise(frames):
        assert after.frame.start_sample == before.frame.end_sample
        assert before.captured_at_ns is not None
        assert after.captured_at_ns is not None
        assert abs(after.captured_at_ns - before.captured_at_ns - 20_000_000) < 1_000
    heard = b"".join(report.frame.data for report in frames)
    assert heard.strip(b"\0") + b"\0" == spoken.data


async def test_a_recording_that_ends_ends_the_track_without_an_error(tmp_path: Path) -> None:
    microphone = WavMicrophone(FORMAT)
    async with serving(tmp_path / "s", microphone) as service, BoardAudio.connect(service.path) as board:
        microphone.say(AudioFrame(b"\5\0" * 800, FORMAT))
        microphone.end_when_silent()
        with anyio.fail_after(10):
            reports = [report async for report in board.microphone.reports()]
        await play(board.speaker, 30)
    assert reports[-1] == CaptureEnded(None)


async def test_a_reader_that_is_too_slow_gets_a_gap_of_the_exact_size(tmp_path: Path) -> None:
    microphone = WavMicrophone(FORMAT)
    limits = ClientLimits(capture_queue_ms=100)
    async with (
        serving(tmp_path / "s", microphone) as service,
        BoardAudio.connect(service.path, limits=limits) as board,
    ):
        reports = board.microphone.reports()
        first = await anext(reports)
        await anyio.sleep(0.4)
        gap, after = await anext(reports), await anext(reports)
        await board.microphone.aclose()
    assert isinstance(first, Captured)
    assert isinstance(gap, CaptureGap)
    assert isinstance(after, Captured)
    assert gap.lost_samples > 0
    assert after.frame.start_sample == first.frame.end_sample + gap.lost_samples


async def test_a_microphone_that_vanishes_is_reported_and_not_replaced(tmp_path: Path) -> None:
    microphone = WavMicrophone(FORMAT)
    async with serving(tmp_path / "s", microphone) as service, BoardAudio.connect(service.path) as board:
        microphone.vanish()
        ended, _ = await lost_ports(board)
        await service.ended.wait()
    assert ended.error is not None
    assert (ended.error.code, ended.error.stage) == ("device_vanished", "capture")


async def test_a_device_that_cannot_start_refuses_the_whole_service(tmp_path: Path) -> None:
    speaker = WavSpeaker(tmp_path / "no" / "such" / "folder.wav", FORMAT)
    with pytest.raises(DeviceLost, match="choose another place"):
        await functools.partial(serve_audio, tmp_path / "s", None, speaker)()
    assert not (tmp_path / "s").exists()


async def test_a_device_failure_message_reaches_an_old_client_before_the_end(tmp_path: Path) -> None:
    async with serving(tmp_path / "s") as service, raw_client(service.path, ClientHello()) as peer:
        await peer.until(ServiceHello)
        service.speaker.vanish()
        assert (await peer.until(DeviceFailed)).device == "speaker"
        assert (await peer.until_closed()).code == "device_lost"
