"""The check of a board measures an echo that is known, and says yes only to what it has measured."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
import trio.testing

from voicechart.adapters.board import BoardAudio, EchoPath, WavMicrophone, WavSpeaker, serve_audio
from voicechart.adapters.board.audio_check import MAX_ECHO_RETURN_DB, AudioCheck, check_audio
from voicechart.audio.echo import EchoMeasurement
from voicechart.audio.errors import AudioSettingsError
from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.engines.clock import LoopClock
from voicechart.engines.reports import PortError
from voicechart.statecharts.values import PositionSource

PEAK_DBFS = -12.0


@pytest.fixture
def anyio_backend() -> object:
    """Virtual time: what is measured does not depend on this machine."""
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


@asynccontextmanager
async def board_with(
    path: Path, echo: EchoPath | None, *, noise_rms: float = 3.0, rate: int = 24_000
) -> AsyncGenerator[BoardAudio]:
    async with anyio.create_task_group() as service:
        microphone = WavMicrophone(noise_rms=noise_rms, echo=echo)
        await service.start(serve_audio, path, microphone, WavSpeaker(None, AudioFormat(rate), echo=echo))
        async with BoardAudio.connect(path) as board:
            yield board
        service.cancel_scope.cancel()


async def checked(board: BoardAudio) -> tuple[AudioCheck, list[str]]:
    said: list[str] = []
    return await check_audio(board, peak_dbfs=PEAK_DBFS, now_ns=LoopClock().now_ns, tell=said.append), said


@pytest.mark.anyio
@pytest.mark.parametrize(("gain_db", "delay_ms"), [(-20.0, 120.0), (-55.0, 60.0)])
@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
async def test_a_known_echo_is_measured_with_its_level_and_delay(
    tmp_path: Path, gain_db: float, delay_ms: float, rate: int
) -> None:
    echo = EchoPath(SPEECH_FORMAT, gain_db=gain_db, delay_ms=delay_ms)
    async with board_with(tmp_path / "s", echo, rate=rate) as board:
        check, said = await checked(board)
    assert check.echo.linear_return_db == pytest.approx(gain_db, abs=1.0)
    assert check.latency_ms == pytest.approx(delay_ms, abs=1.0)
    assert check.latency_is_measured
    assert (check.lost_samples, check.underruns, check.echo.clipped_samples) == (0, 0, 0)
    assert check.position_source is PositionSource.MEASURED
    assert check.is_good is (gain_db <= MAX_ECHO_RETURN_DB)
    assert len(said) == 3


@pytest.mark.anyio
async def test_without_any_echo_the_answer_is_yes_with_the_noise_floor_as_its_bound(tmp_path: Path) -> None:
    async with board_with(tmp_path / "s", None) as board:
        check, _ = await checked(board)
    assert check.is_good
    assert check.echo.is_bound
    assert check.latency_ms is None


@pytest.mark.anyio
async def test_a_muted_microphone_proves_nothing(tmp_path: Path) -> None:
    async with board_with(tmp_path / "s", None, noise_rms=0.0) as board:
        check, _ = await checked(board)
    assert [problem.split(":")[0] for problem in check.problems] == ["the microphone captures digital silence"]


@pytest.mark.anyio
async def test_a_board_without_a_loudspeaker_cannot_be_checked(tmp_path: Path) -> None:
    async with anyio.create_task_group() as service:
        await service.start(serve_audio, tmp_path / "s", WavMicrophone(), None)
        async with BoardAudio.connect(tmp_path / "s") as board:
            with pytest.raises(PortError, match="offers no speaker"):
                await checked(board)
        service.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_loudspeaker_that_stands_still_ends_the_check_with_an_error(tmp_path: Path) -> None:
    async with anyio.create_task_group() as service:
        speaker = WavSpeaker(None)
        await service.start(serve_audio, tmp_path / "s", WavMicrophone(noise_rms=3.0), speaker)
        async with BoardAudio.connect(tmp_path / "s") as board:
            speaker.stall()
            with pytest.raises(PortError):
                await checked(board)
        service.cancel_scope.cancel()


GOOD = AudioCheck(
    echo=EchoMeasurement(1_000, -50.0, None, -70.0, -15.0, 0),
    latency_ms=50.0,
    latency_is_measured=True,
    position_source=PositionSource.MEASURED,
    underruns=0,
    lost_samples=0,
    played=AudioFrame(b"", SPEECH_FORMAT),
    captured=AudioFrame(b"", SPEECH_FORMAT),
)


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (replace(GOOD, lost_samples=1), "lost"),
        (replace(GOOD, underruns=1), "ran dry"),
        (replace(GOOD, echo=replace(GOOD.echo, clipped_samples=1)), "clipped"),
        (replace(GOOD, echo=replace(GOOD.echo, noise_floor_dbfs=-44.9)), "too loud"),
        (replace(GOOD, echo=replace(GOOD.echo, linear_return_db=-39.9)), "hear itself"),
        (replace(GOOD, echo=replace(GOOD.echo, residual_return_db=-39.9)), "hear itself"),
        (replace(GOOD, echo=replace(GOOD.echo, linear_return_db=None, noise_floor_dbfs=-50.0)), "may be"),
    ],
)
def test_each_flaw_of_the_measurement_or_the_board_is_a_reason_to_say_no(check: AudioCheck, problem: str) -> None:
    assert len(check.problems) == 1
    assert problem in check.problems[0]


def test_at_the_threshold_the_answer_is_yes() -> None:
    assert GOOD.is_good
    assert replace(GOOD, echo=replace(GOOD.echo, linear_return_db=MAX_ECHO_RETURN_DB)).is_good


@pytest.mark.parametrize(("gain_db", "delay_ms"), [(0.1, 100), (-90.1, 100), (-20, 19.9), (-20, 2_000.1)])
def test_an_echo_path_outside_its_bounds_is_refused(gain_db: float, delay_ms: float) -> None:
    with pytest.raises(AudioSettingsError):
        EchoPath(SPEECH_FORMAT, gain_db=gain_db, delay_ms=delay_ms)
