"""A recogniser that opens a WebSocket for each utterance."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

import anyio

from ....audio.formats import SPEECH_FORMAT
from ....engines.ports import RecognitionRequest
from ....statecharts.capabilities import RecognizerCapabilities
from ..closings import Explanation
from ..websocket import open_socket
from .dialect import STAGE, Dialect
from .input_track import written_format
from .socket_stream import RecognitionLimits, SocketRecognitionStream


class SocketRecognizer:
    """Implements the `Recognizer` port. A connection is never used for a second utterance: what is late of the first
    cannot reach it.
    """

    def __init__(
        self,
        make_dialect: Callable[[RecognitionRequest], Dialect],
        capabilities: RecognizerCapabilities,
        *,
        limits: RecognitionLimits | None = None,
        allow_plain: bool = False,
        explain: Explanation | None = None,
    ) -> None:
        """`make_dialect` may raise `PortError` for a request that the provider cannot do."""
        self._make_dialect = make_dialect
        self._capabilities = capabilities
        self._limits = limits or RecognitionLimits()
        self._allow_plain = allow_plain
        self._explain = explain
        self._streams: WeakSet[SocketRecognitionStream] = WeakSet()
        self._preparing = anyio.Lock()
        self._is_prepared = False
        self._is_closed = False

    @property
    def capabilities(self) -> RecognizerCapabilities:
        return self._capabilities

    async def prepare(self) -> None:
        """Open one session until it is ready, so that a wrong key or address shows before anybody speaks.

        Raises `PortError`. Once it worked, it is not done again.
        """
        async with self._preparing:
            if not self._is_prepared:
                stream = await self.open(RecognitionRequest("prepare", SPEECH_FORMAT))
                await stream.aclose()
                self._is_prepared = True

    async def open(self, request: RecognitionRequest) -> SocketRecognitionStream:
        """Raises `PortError` when the provider refuses, is not ready in time, or cannot do what is asked."""
        if self._is_closed:
            raise STAGE.failure("port_closed", "the recogniser was closed")
        written_format(request.format)
        dialect = self._make_dialect(request)
        try:
            with anyio.fail_after(self._limits.ready_s):
                return await self._open(dialect)
        except TimeoutError as late:
            message = f"the provider was not ready within {self._limits.ready_s} s; check the network and the provider"
            raise STAGE.failure("provider_silent", message, retryable=True) from late

    async def aclose(self) -> None:
        """Cancel every stream and close its connection."""
        self._is_closed = True
        async with anyio.create_task_group() as closing:
            for stream in list(self._streams):
                stream.cancel("closed")
                closing.start_soon(stream.aclose)

    async def _open(self, dialect: Dialect) -> SocketRecognitionStream:
        socket = await open_socket(
            dialect.url,
            stage=STAGE,
            headers=dialect.headers,
            limits=self._limits.socket,
            allow_plain=self._allow_plain,
            explain=self._explain,
        )
        try:
            stream = SocketRecognitionStream(socket, dialect, self._limits)
            await stream.become_ready()
        except BaseException:
            await socket.aclose()
            raise
        if self._is_closed:
            await stream.aclose()
            raise STAGE.failure("port_closed", "the recogniser was closed")
        self._streams.add(stream)
        return stream
