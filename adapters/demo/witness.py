"""A synthesiser that remembers what it made, so that what was heard can be compared with it, sample by sample."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ...audio.formats import AudioFormat
from ...engines.ports import SpeechUnit, SynthesisRequest, SynthesisStream, Synthesizer
from ...engines.reports import SynthesisReport, Synthesized, UnitSynthesized
from ...engines.spoken import WordTimes
from ...statecharts.capabilities import SynthesizerCapabilities


@dataclass(slots=True)
class VoicedReply:
    """What was synthesised for one response, whatever became of it."""

    response_id: str
    output_epoch: int
    format: AudioFormat
    units: dict[int, SpeechUnit] = field(default_factory=dict[int, SpeechUnit])
    """By index."""
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """The samples [start, end) of each unit that was completed, by index."""
    pcm: bytearray = field(default_factory=bytearray)
    words: WordTimes = field(default_factory=WordTimes)
    """Where the synthesiser aligns."""
    repeated_units: int = 0
    """Units that were handed in more than once."""


class WitnessedSynthesizer:
    """Implements `Synthesizer` over another one; changes nothing of what passes."""

    def __init__(self, inner: Synthesizer) -> None:
        self._inner = inner
        self.voiced: list[VoicedReply] = []
        """In the order in which the streams were opened."""

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return self._inner.capabilities

    @property
    def format(self) -> AudioFormat:
        return self._inner.format

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def open(self, request: SynthesisRequest) -> SynthesisStream:
        stream = await self._inner.open(request)
        reply = VoicedReply(request.response_id, request.output_epoch, self.format)
        self.voiced.append(reply)
        return _WitnessedStream(stream, reply)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WitnessedStream:
    def __init__(self, inner: SynthesisStream, reply: VoicedReply) -> None:
        self._inner = inner
        self._reply = reply

    async def write(self, unit: SpeechUnit) -> None:
        self._reply.repeated_units += unit.index in self._reply.units
        self._reply.units[unit.index] = unit
        await self._inner.write(unit)

    async def finish_input(self) -> None:
        await self._inner.finish_input()

    async def reports(self) -> AsyncIterator[SynthesisReport]:
        async for report in self._inner.reports():
            match report:
                case Synthesized(frame, unit_index, words):
                    self._reply.pcm += frame.data
                    self._reply.words.add(unit_index, words)
                case UnitSynthesized(unit_index, start_sample, end_sample, words):
                    self._reply.words.complete(unit_index, words)
                    self._reply.ranges[unit_index] = (start_sample, end_sample)
                case _:
                    pass
            yield report

    def cancel(self, reason: str) -> None:
        self._inner.cancel(reason)

    async def aclose(self) -> None:
        await self._inner.aclose()
