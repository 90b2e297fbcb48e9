"""One utterance that is recognised as a whole, when it is over: one request over HTTP, and its answer."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import TypeVar

import anyio
import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError
from pydantic import JsonValue, ValidationError

from ....audio.formats import AudioFrame
from ....engines.ports import RecognitionRequest
from ....engines.reports import PortError, RecognitionEnded, RecognitionErrored, RecognitionReport, Word
from ..bounded_transport import PayloadTooLargeError
from ..http_service import HttpLimits
from ..refusals import provider_code
from .dialect import STAGE, Incoming, Seconds
from .recording import Recording
from .segment_ledger import SegmentLedger

SEGMENT = "1"

Ask = Callable[[bytes], Awaitable[httpx.Response]]
"""Sends a WAV file to be transcribed; the response's body is unread. Raises `PortError`."""


class _Word(Incoming):
    word: str
    start: Seconds
    end: Seconds


class _Transcription(Incoming):
    text: str
    language: str | None = None
    words: tuple[_Word, ...] | None = None


class _Event(Incoming):
    type: str | None = None
    error: JsonValue = None

    @property
    def kind(self) -> str | None:
        """An error comes with or without a type."""
        return "error" if self.error is not None else self.type


class _Delta(Incoming):
    delta: str


class _Done(Incoming):
    text: str


class _Transcript:
    """What the server has said about the utterance so far."""

    def __init__(self, request: RecognitionRequest, samples: int) -> None:
        self._request = request
        self._samples = samples
        self._ledger = SegmentLedger(request.recognition_id)
        self._text = ""
        self.is_whole = False

    def take_body(self, body: bytes) -> Iterator[RecognitionReport]:
        """The whole answer. Raises `PortError`."""
        transcription = _parsed(_Transcription, body)
        yield from self._finish(transcription.text, transcription.words or (), transcription.language)

    def take_event(self, event: ServerSentEvent) -> Iterator[RecognitionReport]:
        """A piece of it. Raises `PortError`."""
        if event.data == "[DONE]":
            return
        kind = _parsed(_Event, event.data).kind
        if kind == "transcript.text.delta" and not self.is_whole:
            self._text += _parsed(_Delta, event.data).delta
            yield from self._ledger.revise(SEGMENT, self._text.strip())
        elif kind == "transcript.text.done":
            yield from self._finish(_parsed(_Done, event.data).text, (), None)
        elif kind == "error":
            code = provider_code(event.data.encode())
            raise STAGE.failure("provider_failed", f"the provider failed ({code}); it is tried again", retryable=True)

    def _finish(self, text: str, words: Iterable[_Word], language: str | None) -> Iterator[RecognitionReport]:
        self.is_whole = True
        rate = self._request.format.sample_rate_hz
        placed = tuple(
            Word(
                word.word.strip(),
                min(self._samples, max(0, round(word.start * rate))),
                min(self._samples, max(0, round(word.end * rate))),
            )
            for word in words
        )
        yield from self._ledger.finish(
            SEGMENT,
            text.strip(),
            start_sample=placed[0].start_sample if placed else 0,
            end_sample=placed[-1].end_sample if placed else self._samples,
            words=placed,
            language=language or self._request.language,
        )


class TranscriptionStream:
    """Implements `RecognitionStream`. The request is made by whoever reads the reports, once the input is over."""

    def __init__(self, request: RecognitionRequest, ask: Ask, limits: HttpLimits) -> None:
        self._request = request
        self._ask = ask
        self._limits = limits
        self._recording = Recording(request.format)
        self._finished = anyio.Event()
        self._queue: deque[RecognitionReport] = deque()
        self._last: RecognitionEnded | RecognitionErrored | None = None
        self._told_last = False
        self._waiting: anyio.CancelScope | None = None
        self._response: httpx.Response | None = None

    async def write(self, frame: AudioFrame) -> None:
        """Raises `PortError`, and takes nothing of the frame, when the stream has ended, for another format, for a
        hole, and beyond 30 s.
        """
        if self._last is not None:
            raise STAGE.failure("stream_ended", "this stream has ended; open another one")
        if self._finished.is_set():
            raise STAGE.failure("write_after_finish", "finish_input() was called; open another stream")
        self._recording.append(frame)

    async def finish_input(self) -> None:
        self._finished.set()

    async def reports(self) -> AsyncIterator[RecognitionReport]:
        transcript: _Transcript | None = None
        events: AsyncGenerator[ServerSentEvent, None] | None = None
        try:
            while not self._told_last:
                if self._queue:
                    yield self._queue.popleft()
                elif self._last is not None:
                    self._told_last = True
                    yield self._last
                elif transcript is None:
                    transcript = await self._begin()
                elif events is None:
                    assert self._response is not None
                    events = EventSource(self._response).aiter_sse()
                else:
                    await self._advance(transcript, events)
        finally:
            if events is not None:
                async with aclosing(events):
                    pass
            await self._close()

    async def _begin(self) -> _Transcript | None:
        """Wait for the end of the input, ask, and take the answer in where it comes as a whole."""
        try:
            with anyio.CancelScope() as self._waiting:
                await self._finished.wait()
                transcript = _Transcript(self._request, self._recording.samples)
                if not self._recording.samples:
                    self._end(RecognitionEnded())
                    return transcript
                self._response = await self._ask(self._recording.as_wav())
                if not self._response.headers.get("Content-Type", "").startswith("text/event-stream"):
                    await self._take_whole(transcript, self._response)
                return transcript
        except PortError as failure:
            self._end(RecognitionErrored(failure.error))
        except (httpx.HTTPError, PayloadTooLargeError) as broken:
            self._end(RecognitionErrored(_broken(broken).error))
        finally:
            self._waiting = None
        return None

    async def _take_whole(self, transcript: _Transcript, response: httpx.Response) -> None:
        with anyio.move_on_after(self._limits.total_s) as bounded:
            body = await response.aread()
            self._queue.extend(transcript.take_body(body))
            self._end(RecognitionEnded())
        if bounded.cancelled_caught:
            raise _late(self._limits.total_s)

    async def _advance(self, transcript: _Transcript, events: AsyncGenerator[ServerSentEvent, None]) -> None:
        """One event of an answer in pieces."""
        event: ServerSentEvent | None = None
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self._limits.idle_s) as self._waiting:
                event = await anext(events, None)
            if self._last is not None:
                return
            if self._waiting.cancelled_caught:
                raise _late(self._limits.idle_s)
            if event is None:
                raise STAGE.failure("stream_truncated", "the provider's answer ended in the middle", retryable=True)
            self._queue.extend(transcript.take_event(event))
            if transcript.is_whole:
                self._end(RecognitionEnded())
        except PortError as failure:
            self._end(RecognitionErrored(failure.error))
        except (httpx.HTTPError, SSEError, UnicodeDecodeError) as broken:
            self._end(RecognitionErrored(_broken(broken).error))
        finally:
            self._waiting = None

    def _end(self, last: RecognitionEnded | RecognitionErrored) -> None:
        self._last = self._last or last

    def cancel(self, reason: str) -> None:
        """There is no cancel on the wire: the connection is closed."""
        if self._told_last:
            return
        self._queue.clear()
        self._last = RecognitionEnded(cancelled=True)
        if self._waiting is not None:
            self._waiting.cancel()

    async def aclose(self) -> None:
        self.cancel("closed")
        await self._close()

    async def _close(self) -> None:
        if self._response is not None:
            with anyio.move_on_after(self._limits.close_s, shield=True):
                await self._response.aclose()


M = TypeVar("M", bound=Incoming)


def _parsed(wanted: type[M], body: bytes | str) -> M:
    try:
        return wanted.model_validate_json(body)
    except ValidationError:
        raise _malformed() from None


def _malformed() -> PortError:
    message = "the provider's answer cannot be read; check that base_url speaks OpenAI's /audio/transcriptions"
    return STAGE.failure("provider_malformed", message)


def _late(seconds: float) -> PortError:
    return STAGE.failure("provider_silent", f"the provider did not answer within {seconds} s", retryable=True)


def _broken(error: Exception) -> PortError:
    match error:
        case PayloadTooLargeError():
            return STAGE.failure("response_too_large", "the provider's response exceeds the size limit")
        case SSEError() | UnicodeDecodeError():
            return _malformed()
        case httpx.TimeoutException():
            return STAGE.failure("provider_silent", "the provider stopped in its answer", retryable=True)
        case _:
            message = "the connection to the provider broke; check the network"
            return STAGE.failure("connection_lost", message, retryable=True)
