from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

import anyio
import pytest

from voicechart.adapters.providers import Secrets
from voicechart.engines.ports import SpeechUnit, SynthesisRequest, SynthesisStream, Synthesizer
from voicechart.engines.reports import SynthesisReport

Speak = Callable[..., Awaitable[list[SynthesisReport]]]


@pytest.fixture
def secrets() -> Secrets:
    return Secrets({"VOICE_KEY": "sk-planted-0123456789"})


@pytest.fixture
def numbered() -> Callable[[], str]:
    """Names as they come: id-1, id-2, …"""
    numbers = count(1)
    return lambda: f"id-{next(numbers)}"


@pytest.fixture
def speak() -> Speak:
    """`await speak(synthesizer, "Hi.", "Bye.")`: all reports of one reply."""

    async def speak(synthesizer: Synthesizer, *texts: str, voice: str | None = None) -> list[SynthesisReport]:
        with anyio.fail_after(10):
            stream: SynthesisStream = await synthesizer.open(SynthesisRequest("r", 1, voice))
            try:
                for index, text in enumerate(texts):
                    await stream.write(SpeechUnit(index, text))
                await stream.finish_input()
                return [report async for report in stream.reports()]
            finally:
                await stream.aclose()

    return speak
