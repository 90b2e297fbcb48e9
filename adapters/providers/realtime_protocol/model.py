"""A model that is reached by a WebSocket for each session."""

from __future__ import annotations

from weakref import WeakSet

import anyio

from ....audio.formats import AudioFormat
from ....engines.realtime import RealtimeRequest
from ....statecharts.capabilities import RealtimeCapabilities
from ..websocket import open_socket
from .dialect import STAGE, RealtimeDialect
from .limits import RealtimeLimits
from .protocol import RealtimeProtocol
from .session import SocketRealtimeSession


class SocketRealtimeModel:
    """Implements `RealtimeModel`."""

    def __init__(
        self,
        dialect: RealtimeDialect,
        capabilities: RealtimeCapabilities,
        *,
        limits: RealtimeLimits | None = None,
        allow_plain: bool = False,
    ) -> None:
        self._dialect = dialect
        self._capabilities = capabilities
        self._limits = limits or RealtimeLimits()
        self._allow_plain = allow_plain
        self._sessions: WeakSet[SocketRealtimeSession] = WeakSet()
        self._is_closed = False

    @property
    def capabilities(self) -> RealtimeCapabilities:
        return self._capabilities

    @property
    def input_format(self) -> AudioFormat:
        return self._dialect.input_format

    @property
    def output_format(self) -> AudioFormat:
        return self._dialect.output_format

    async def prepare(self) -> None:
        """Nothing is known of a provider before a session is opened."""

    async def open(self, request: RealtimeRequest) -> SocketRealtimeSession:
        """Raises `PortError` when the provider refuses, is not ready in time, or cannot do what is asked."""
        if self._is_closed:
            raise STAGE.failure("port_closed", "the model was closed")
        if request.provider_turns and not self._capabilities.ends_turns:
            raise STAGE.bad_setting('this model cannot end turns without answering them; use turn.authority = "vad"')
        try:
            with anyio.fail_after(self._limits.ready_s):
                return await self._open(request)
        except TimeoutError as late:
            message = f"the provider was not ready within {self._limits.ready_s:g} s; check the network"
            raise STAGE.failure("provider_silent", message, retryable=True) from late

    async def aclose(self) -> None:
        """Close every session."""
        self._is_closed = True
        async with anyio.create_task_group() as closing:
            for session in list(self._sessions):
                closing.start_soon(session.aclose)

    async def _open(self, request: RealtimeRequest) -> SocketRealtimeSession:
        dialect = self._dialect
        socket = await open_socket(
            dialect.url,
            stage=STAGE,
            headers=dialect.headers,
            limits=self._limits.socket,
            allow_plain=self._allow_plain,
        )
        try:
            session = SocketRealtimeSession(socket, RealtimeProtocol(dialect, request), self._limits)
            await session.become_ready()
        except BaseException:
            await socket.aclose()
            raise
        if self._is_closed:
            await session.aclose()
            raise STAGE.failure("port_closed", "the model was closed")
        self._sessions.add(session)
        return session
