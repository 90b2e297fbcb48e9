"""Whisper as a recogniser: one model, one worker, any number of utterances one after another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet

import anyio

from ...audio.formats import SPEECH_FORMAT
from ...audio.voice_activity import SpeechProbability
from ...engines.ports import RecognitionRequest
from ...statecharts.capabilities import RecognizerCapabilities
from ...statecharts.errors import ErrorScope
from .silero import SileroProbability
from .whisper_model import WhisperModel, recognition_error
from .whisper_stream import WhisperBounds, WhisperStream, recognizer_closed
from .worker import Worker, WorkerClosedError


class WhisperRecognizer:
    """Implements the `Recognizer` port with Whisper tiny.en (English), or your own weights.

    One worker thread, hence one decode at a time however many streams are open. Silence and noise end without a final.
    Positions count from the first sample of each utterance.
    """

    def __init__(
        self,
        *,
        model_path: Path | None = None,
        threads: int = 2,
        hearing: Callable[[], SpeechProbability] = SileroProbability,
        bounds: WhisperBounds | None = None,
    ) -> None:
        """`model_path`: a folder of CTranslate2 Whisper weights. `threads`: 1 to 16, for one decode.

        `hearing` makes the voice activity model of an utterance. Raises `PortError` for a bad setting.
        """
        if not 1 <= threads <= 16:
            raise recognition_error("bad_setting", f"threads = {threads} must be 1–16", ErrorScope.SESSION)
        self._model_path = model_path
        self._threads = threads
        self._hearing = hearing
        self._bounds = bounds or WhisperBounds()
        self._worker = Worker("whisper")
        self._loading = anyio.Lock()
        self._model: WhisperModel | None = None
        self._streams: WeakSet[WhisperStream] = WeakSet()

    @property
    def capabilities(self) -> RecognizerCapabilities:
        return RecognizerCapabilities(live_input=True, interim=True, segment_finals=True, word_times=True)

    async def prepare(self) -> None:
        """Load the weights (half a second) and decode once. Raises `PortError`. Safe to call twice."""
        await self._ready()

    async def open(self, request: RecognitionRequest) -> WhisperStream:
        """Raises `PortError` for another format than 16 kHz mono, for a language the weights lack, and after
        `aclose`.
        """
        if request.format != SPEECH_FORMAT:
            raise recognition_error("wrong_format", f"Whisper hears 16 kHz mono, not {request.format}; resample first")
        model = await self._ready()
        if model.english_only and request.language and not request.language.lower().startswith("en"):
            message = f"these weights hear English only, not {request.language!r}; give multilingual ones (model_path)"
            raise recognition_error("language_unsupported", message, ErrorScope.SESSION)
        stream = WhisperStream(request, model, self._worker, self._hearing(), self._bounds)
        self._streams.add(stream)
        return stream

    async def aclose(self) -> None:
        """Cancel every stream and end the thread. Raises `PortError` when a decode outlives the deadline."""
        for stream in list(self._streams):
            stream.cancel("closed")
        if not await self._worker.aclose(self._bounds.close_deadline_s):
            message = f"a decode ran on for {self._bounds.close_deadline_s} s; the thread ends with it"
            raise recognition_error("close_timed_out", message, ErrorScope.SESSION)

    async def _ready(self) -> WhisperModel:
        try:
            async with self._loading:
                if self._worker.closed:
                    raise recognizer_closed()
                if self._model is None:
                    self._model = await self._worker.run(
                        lambda: WhisperModel(self._model_path, self._threads), self._bounds.load_deadline_s
                    )
                return self._model
        except WorkerClosedError as closed:
            raise recognizer_closed() from closed
        except TimeoutError as late:
            message = f"the model was not ready within {self._bounds.load_deadline_s} s"
            raise recognition_error("load_timed_out", message, ErrorScope.SESSION) from late
