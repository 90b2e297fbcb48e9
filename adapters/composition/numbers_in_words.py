"""A voice that is given words for numbers, times and units, because it would read them badly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from ...audio.formats import AudioFormat
from ...engines.port_calls import reading
from ...engines.ports import SpeechUnit, SynthesisRequest, SynthesisStream, Synthesizer
from ...engines.reports import SynthesisReport
from ...statecharts.capabilities import SynthesizerCapabilities


class NumbersInWords:
    """Implements `Synthesizer` over another one. `spoken_form`: the words for a text."""

    def __init__(self, inner: Synthesizer, spoken_form: Callable[[str], str]) -> None:
        self._inner = inner
        self._spoken_form = spoken_form

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return self._inner.capabilities

    @property
    def format(self) -> AudioFormat:
        return self._inner.format

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def open(self, request: SynthesisRequest) -> SynthesisStream:
        return _InWords(await self._inner.open(request), self._spoken_form)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _InWords:
    def __init__(self, inner: SynthesisStream, spoken_form: Callable[[str], str]) -> None:
        self._inner = inner
        self._spoken_form = spoken_form

    async def write(self, unit: SpeechUnit) -> None:
        await self._inner.write(replace(unit, text=self._spoken_form(unit.text)))

    async def finish_input(self) -> None:
        await self._inner.finish_input()

    async def reports(self) -> AsyncIterator[SynthesisReport]:
        async with reading(self._inner.reports()) as reports:
            async for report in reports:
                yield report

    def cancel(self, reason: str) -> None:
        self._inner.cancel(reason)

    async def aclose(self) -> None:
        await self._inner.aclose()
