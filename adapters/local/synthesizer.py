"""What the local synthesisers share: an engine that is loaded once, and a worker that it speaks in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from weakref import WeakSet

import anyio

from ...audio.formats import AudioFormat
from ...engines.ports import SynthesisRequest
from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .synthesis_stream import SpeechEngine, SynthesisBounds, ThreadedSynthesisStream, synthesis_error
from .worker import Worker, WorkerClosedError


class ThreadedSynthesizer(ABC):
    """Implements the `Synthesizer` port over a `SpeechEngine`.

    Any number of streams may be open; their units take turns in one thread.
    """

    name: str
    load_deadline_s = 60.0

    def __init__(self, default_voice: str, bounds: SynthesisBounds) -> None:
        self._default_voice = default_voice
        self._bounds = bounds
        self._worker = Worker(self.name)
        self._engine: SpeechEngine | None = None
        self._loading = anyio.Lock()
        self._checked_voices: set[str] = set()
        self._streams: WeakSet[ThreadedSynthesisStream] = WeakSet()

    @property
    def format(self) -> AudioFormat:
        """What every frame is in. Raises `PortError` before `prepare`."""
        if self._engine is None:
            raise synthesis_error("not_prepared", f"{self.name}: await prepare() first", ErrorScope.SESSION)
        return self._engine.format

    async def prepare(self) -> None:
        """Load the library and the default voice. Raises `PortError`. Safe to call twice."""
        await self._ready(self._default_voice)

    async def open(self, request: SynthesisRequest) -> ThreadedSynthesisStream:
        """Raises `PortError` for an unknown voice and after `aclose`."""
        voice = request.voice or self._default_voice
        engine = await self._ready(voice)
        stream = ThreadedSynthesisStream(engine, voice, self._worker, self._bounds)
        self._streams.add(stream)
        return stream

    async def aclose(self) -> None:
        """Cancel what is being spoken and end the thread."""
        for stream in list(self._streams):
            stream.cancel("closed")
        if not await self._worker.aclose(self._bounds.close_deadline_s):
            message = (
                f"{self.name} did not stop within {self._bounds.close_deadline_s} s; its thread ends with the unit"
            )
            raise PortError(ScopedError("close_timed_out", "synthesis", ErrorScope.SESSION, message))

    @abstractmethod
    def _load(self) -> SpeechEngine:
        """In the worker's thread. Raises `PortError`."""

    async def _ready(self, voice: str) -> SpeechEngine:
        try:
            async with self._loading:
                if self._worker.closed:
                    raise self._closed()
                if self._engine is None:
                    self._engine = await self._worker.run(self._load, self.load_deadline_s)
                engine = self._engine
                if voice not in self._checked_voices:
                    await self._worker.run(lambda: engine.check_voice(voice), self.load_deadline_s)
                    self._checked_voices.add(voice)
        except WorkerClosedError as closed:
            raise self._closed() from closed
        except TimeoutError as late:
            message = f"{self.name} was not ready within {self.load_deadline_s} s"
            raise synthesis_error("load_timed_out", message, ErrorScope.SESSION) from late
        return engine

    def _closed(self) -> PortError:
        return synthesis_error("port_closed", f"{self.name} was closed", ErrorScope.SESSION)
