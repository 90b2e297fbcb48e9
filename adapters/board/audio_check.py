"""Whether a board may listen while it speaks: plays a probe through its audio service, and measures what comes back.

The threshold. Synthesised speech plays at about -20 dBFS, and somebody who speaks at arm's length is heard at -30 dBFS
or more. With an echo of at most -40 dB the microphone hears the loudspeaker at -60 dBFS: 30 dB below that voice.
A board with echo cancellation in its hardware or driver reaches it; a bare loudspeaker beside a bare microphone does
not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from ...audio.echo import LEAD_MS, PROBE_MS, EchoMeasurement, measure_echo, probe, top_hz
from ...audio.formats import AudioFormat, AudioFrame
from ...engines.ports import OutputOpening
from ...engines.reports import (
    Captured,
    CaptureEnded,
    CaptureGap,
    PlaybackPosition,
    PortError,
    RenderingDrained,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SpeakerLost,
)
from ...statecharts.errors import ErrorScope, ScopedError
from ...statecharts.values import PositionSource
from .client import BoardAudio
from .notification import Notification

MAX_ECHO_RETURN_DB = -40.0
MAX_NOISE_DBFS = -45.0
"""Louder rooms are no place to measure an echo in."""

SILENCE_MS, TAIL_MS = 500, 1_000
FRAME_MS = 20
DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class AudioCheck:
    """What was measured, and what follows from it."""

    echo: EchoMeasurement
    latency_ms: float | None
    """From sounding to captured; None where no echo was found."""
    latency_is_measured: bool
    """By the clock of the device; otherwise by when this process was told, which adds the way through the socket."""
    position_source: PositionSource
    underruns: int
    lost_samples: int
    """Of the capture track."""
    played: AudioFrame
    captured: AudioFrame

    @property
    def problems(self) -> tuple[str, ...]:
        """Why full duplex may not be configured; empty when it may."""
        echo, found = self.echo, list[str]()
        if echo.noise_floor_dbfs == float("-inf"):
            found.append("the microphone captures digital silence: it is muted, or not connected")
        if self.lost_samples:
            found.append(f"{self.lost_samples} captured samples were lost: the measurement has a hole; try again")
        if self.underruns:
            found.append(f"the loudspeaker ran dry {self.underruns} times: the measurement has a hole; try again")
        if echo.clipped_samples:
            found.append(f"{echo.clipped_samples} samples are clipped: lower the microphone's gain or --level-db")
        if echo.noise_floor_dbfs > MAX_NOISE_DBFS:
            found.append(f"the room is too loud to measure in ({echo.noise_floor_dbfs:.0f} dBFS)")
        if echo.echo_return_db > MAX_ECHO_RETURN_DB:
            at_most = "may be" if echo.is_bound else "is"
            found.append(
                f"the echo {at_most} {echo.echo_return_db:.1f} dB of what is played, and at most "
                f"{MAX_ECHO_RETURN_DB:.0f} dB would do: the device would hear itself"
            )
        return tuple(found)

    @property
    def is_good(self) -> bool:
        return not self.problems


@dataclass
class _Track:
    """What is captured, without holes: a gap is silence."""

    format: AudioFormat
    data: bytearray = field(default_factory=bytearray)
    began_at_ns: int | None = None
    lost_samples: int = 0
    grown: Notification = field(default_factory=Notification)

    @property
    def samples(self) -> int:
        return self.format.samples_in(len(self.data))

    async def until(self, samples: int) -> None:
        """Return once so much was captured."""
        while self.samples < samples:
            await self.grown.wait()


async def check_audio(
    board: BoardAudio, *, peak_dbfs: float, now_ns: Callable[[], int], tell: Callable[[str], None]
) -> AudioCheck:
    """Measure on this connection; takes some five seconds. `tell` gets each step, for people.

    Raises `PortError` when the board lacks an end or loses one, `AudioSettingsError` for a level outside -60 to -6.
    """
    microphone, _ = board.microphone, board.speaker
    offer = board.greeting.playback
    assert offer is not None
    speaker_format = offer.formats[0].to_format()
    highest_hz = top_hz(speaker_format, microphone.format)
    played = probe(speaker_format, peak_dbfs=peak_dbfs, highest_hz=highest_hz)
    track = _Track(microphone.format)
    try:
        with anyio.fail_after(DEADLINE_S):
            silent_samples, started, underruns, is_measured = await _perform(board, played, track, now_ns, tell)
    except TimeoutError as error:
        raise PortError(_ended(f"a device stood still: the check took over {DEADLINE_S:.0f} s")) from error
    captured = AudioFrame(bytes(track.data), track.format)
    echo = measure_echo(captured, silent_samples, peak_dbfs=peak_dbfs, highest_hz=highest_hz)
    return AudioCheck(
        echo=echo,
        latency_ms=_latency_ms(echo, track, started, speaker_format),
        latency_is_measured=is_measured,
        position_source=offer.position_source,
        underruns=underruns,
        lost_samples=track.lost_samples,
        played=played,
        captured=captured,
    )


async def _perform(
    board: BoardAudio, played: AudioFrame, track: _Track, now_ns: Callable[[], int], tell: Callable[[str], None]
) -> tuple[int, tuple[PlaybackPosition, int], int, bool]:
    failure: PortError | None = None
    async with anyio.create_task_group() as tasks:

        async def guarded(run: Callable[[], Awaitable[None]]) -> None:
            nonlocal failure
            try:
                await run()
            except PortError as error:
                failure = failure or error
                tasks.cancel_scope.cancel()

        tasks.start_soon(guarded, lambda: _capture(board, track, now_ns))
        try:
            tell(f"listening to the room for {SILENCE_MS} ms")
            await track.until(track.format.samples_for_ms(SILENCE_MS))
            silent_samples = track.samples
            tell(f"playing the probe for {PROBE_MS} ms: you should hear a hiss and then a rising tone")
            tasks.start_soon(guarded, lambda: _play(board, played))
            started, underruns, is_measured = await _follow(board, now_ns)
            tell("listening to the rest")
            await track.until(track.samples + track.format.samples_for_ms(TAIL_MS))
            tasks.cancel_scope.cancel()
            return silent_samples, started, underruns, is_measured
        except PortError as error:
            failure = failure or error
            tasks.cancel_scope.cancel()
    raise failure or PortError(_ended("the check was cut off"))


async def _capture(board: BoardAudio, track: _Track, now_ns: Callable[[], int]) -> None:
    async for report in board.microphone.reports():
        match report:
            case Captured(frame, captured_at_ns):
                if track.began_at_ns is None:
                    at_ns = now_ns() - frame.format.duration_ns(frame.samples)
                    track.began_at_ns = captured_at_ns if captured_at_ns is not None else at_ns
                track.data += frame.data
                track.grown.notify()
            case CaptureGap(lost_samples, _):
                track.lost_samples += lost_samples
                track.data += bytes(track.format.bytes_for(lost_samples))
            case CaptureEnded(error):
                raise PortError(error or _ended("the microphone's recording ended"))
            case _:
                pass


async def _play(board: BoardAudio, played: AudioFrame) -> None:
    await board.speaker.open(OutputOpening(1, 1, played.format))
    size = played.format.bytes_for(played.format.samples_for_ms(FRAME_MS))
    position = 0
    for place in range(0, len(played.data), size):
        frame = AudioFrame(played.data[place : place + size], played.format, position)
        await board.speaker.write(1, 1, frame)
        position = frame.end_sample
    await board.speaker.finish(1, position)


async def _follow(board: BoardAudio, now_ns: Callable[[], int]) -> tuple[tuple[PlaybackPosition, int], int, bool]:
    """The first receipt with its time, how often the speaker ran dry, and whether the device told the time."""
    started: tuple[PlaybackPosition, int] | None = None
    is_measured, underruns = False, 0
    async for report in board.speaker.reports():
        match report:
            case RenderingStarted(position=position) if started is None:
                is_measured = position.at_ns is not None
                started = position, now_ns() if position.at_ns is None else position.at_ns
            case RenderingStarved():
                underruns += 1
            case RenderingDrained() if started is not None:
                return started, underruns, is_measured
            case RenderingStopped():
                break
            case SpeakerLost(error):
                raise PortError(error)
            case _:
                pass
    raise PortError(_ended("the loudspeaker stopped before the probe was over"))


def _latency_ms(
    echo: EchoMeasurement, track: _Track, started: tuple[PlaybackPosition, int], speaker: AudioFormat
) -> float | None:
    if echo.delay_samples is None or track.began_at_ns is None:
        return None
    position, at_ns = started
    sweep_begins = speaker.samples_for_ms(LEAD_MS) - (position.played_samples or 0)
    played_at_ns = at_ns + speaker.duration_ns(sweep_begins)
    heard_at_ns = track.began_at_ns + track.format.duration_ns(echo.delay_samples)
    return (heard_at_ns - played_at_ns) / 1_000_000


def _ended(what: str) -> ScopedError:
    message = f"{what}; restart the audio service and check again"
    return ScopedError("check_cut_off", "playback", ErrorScope.SESSION, message)
