"""Parts that stream, made to answer as a whole: `connection.streaming = "disabled"`.

What a port reports in pieces is collected and reported at once: a transcript at the end of its segment, a reply when
the model has ended, speech one unit at a time (the speaker's queue holds a second, so that a whole reply could not be
handed over at once). Cancelling, failing and tool calls stay as they are. What is collected is bounded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from ...audio.formats import AudioFormat, AudioFrame
from ...engines.port_calls import reading
from ...engines.ports import (
    GenerationRequest,
    GenerationStream,
    RecognitionRequest,
    RecognitionStream,
    Recognizer,
    Responder,
    SpeechUnit,
    SynthesisRequest,
    SynthesisStream,
    Synthesizer,
)
from ...engines.reports import (
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    ReasoningDelta,
    RecognitionReport,
    SegmentHypothesis,
    SynthesisErrored,
    SynthesisReport,
    Synthesized,
    TextDelta,
    UnitSynthesized,
    UsageUpdated,
)
from ...statecharts.capabilities import RecognizerCapabilities, ResponderCapabilities, SynthesizerCapabilities
from ...statecharts.errors import ErrorScope, ScopedError

MAX_REPLY_CHARS = 64 * 1_024
MAX_UNIT_MS = 60_000.0


class CollectingRecognizer:
    """Implements `Recognizer`: final transcripts only."""

    def __init__(self, inner: Recognizer) -> None:
        self._inner = inner

    @property
    def capabilities(self) -> RecognizerCapabilities:
        return replace(self._inner.capabilities, interim=False)

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def open(self, request: RecognitionRequest) -> RecognitionStream:
        return _FinalsOnly(await self._inner.open(request))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _FinalsOnly:
    def __init__(self, inner: RecognitionStream) -> None:
        self._inner = inner

    async def write(self, frame: AudioFrame) -> None:
        await self._inner.write(frame)

    async def finish_input(self) -> None:
        await self._inner.finish_input()

    async def reports(self) -> AsyncIterator[RecognitionReport]:
        async with reading(self._inner.reports()) as reports:
            async for report in reports:
                if not isinstance(report, SegmentHypothesis):
                    yield report

    def cancel(self, reason: str) -> None:
        self._inner.cancel(reason)

    async def aclose(self) -> None:
        await self._inner.aclose()


class CollectingResponder:
    """Implements `Responder`: the whole text at once. A failure that is tried again leaves none of it."""

    def __init__(self, inner: Responder, max_reply_chars: int = MAX_REPLY_CHARS) -> None:
        self._inner = inner
        self._max_reply_chars = max_reply_chars

    @property
    def capabilities(self) -> ResponderCapabilities:
        return replace(self._inner.capabilities, text_deltas=False)

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def open(self, request: GenerationRequest) -> GenerationStream:
        return _WholeText(await self._inner.open(request), self._max_reply_chars)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WholeText:
    def __init__(self, inner: GenerationStream, max_chars: int) -> None:
        self._inner = inner
        self._max_chars = max_chars

    async def reports(self) -> AsyncIterator[GenerationReport]:
        text = ""
        async with reading(self._inner.reports()) as reports:
            async for report in reports:
                match report:
                    case TextDelta():
                        text += report.text
                        if len(text) > self._max_chars:
                            self._inner.cancel("too long")
                            message = f"the reply is longer than {self._max_chars} characters; ask for a shorter one"
                            yield GenerationErrored(
                                ScopedError("reply_too_long", "generation", ErrorScope.RESPONSE, message)
                            )
                            return
                        continue
                    case ReasoningDelta() | UsageUpdated():
                        pass
                    case GenerationStopped():
                        text = ""
                    case GenerationErrored(error) if error.retryable:
                        text, report = "", GenerationErrored(replace(error, partial_output=False))
                    case _:
                        if text:
                            yield TextDelta(text)
                        text = ""
                yield report

    def cancel(self, reason: str) -> None:
        self._inner.cancel(reason)

    async def aclose(self) -> None:
        await self._inner.aclose()


class CollectingSynthesizer:
    """Implements `Synthesizer`: the whole audio of a unit at once."""

    def __init__(self, inner: Synthesizer, max_unit_ms: float = MAX_UNIT_MS) -> None:
        self._inner = inner
        self._max_unit_ms = max_unit_ms

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return replace(self._inner.capabilities, incremental_pcm=False)

    @property
    def format(self) -> AudioFormat:
        return self._inner.format

    async def prepare(self) -> None:
        await self._inner.prepare()

    async def open(self, request: SynthesisRequest) -> SynthesisStream:
        return _WholeUnits(await self._inner.open(request), self._max_unit_ms)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WholeUnits:
    def __init__(self, inner: SynthesisStream, max_unit_ms: float) -> None:
        self._inner = inner
        self._max_unit_ms = max_unit_ms

    async def write(self, unit: SpeechUnit) -> None:
        await self._inner.write(unit)

    async def finish_input(self) -> None:
        await self._inner.finish_input()

    async def reports(self) -> AsyncIterator[SynthesisReport]:
        pieces: list[Synthesized] = []
        async with reading(self._inner.reports()) as reports:
            async for report in reports:
                if isinstance(report, Synthesized):
                    pieces.append(report)
                    if sum(piece.frame.duration_ms for piece in pieces) > self._max_unit_ms:
                        self._inner.cancel("too long")
                        message = f"a unit of speech is longer than {self._max_unit_ms / 1_000:.0f} s"
                        yield SynthesisErrored(ScopedError("unit_too_long", "synthesis", ErrorScope.RESPONSE, message))
                        return
                    continue
                if isinstance(report, UnitSynthesized) and pieces:
                    yield _joined(pieces)
                pieces = []
                yield report

    def cancel(self, reason: str) -> None:
        self._inner.cancel(reason)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _joined(pieces: list[Synthesized]) -> Synthesized:
    first = pieces[0]
    data = b"".join(piece.frame.data for piece in pieces)
    words = tuple(word for piece in pieces for word in piece.words)
    return Synthesized(replace(first.frame, data=data), first.unit_index, words)
