"""A model that is reached by a WebSocket for each session."""

from __future__ import annotations

import re
from dataclasses import replace
from weakref import WeakSet

import anyio

from .....audio.formats import SPEECH_FORMAT, AudioFormat
from .....engines.realtime import RealtimeRequest
from .....engines.reports import PortError
from .....statecharts.capabilities import RealtimeCapabilities
from .....statecharts.errors import ErrorScope, ScopedError
from ...realtime_protocol import STAGE, RealtimeLimits
from ...websocket import ClosedBy, Closing, JsonObject, SocketLimits, open_socket
from .protocol import GeminiProtocol
from .session import GeminiLiveSession
from .settings import GeminiLiveSettings, setup_of

OUTPUT_FORMAT = AudioFormat(24_000)
PING_TIMEOUT_S = 40.0
"""Answers to pings were measured to take 8 to 30 s while the service is busy."""

OFFERS = RealtimeCapabilities(
    takes_turns=True,
    tool_calls=True,
    tool_continuation=True,
    input_transcripts=True,
    usage=True,
    replay=True,
    resume=True,
)
"""It ends turns by itself only together with answering them, has no message to cancel an answer, and is interrupted by
what is said next. How much of an answer was heard it cannot be told.
"""

_KEY = re.compile(r"api.?key|unregistered callers|unauthenticated|permission|credential", re.IGNORECASE)
_MODEL = re.compile(r"is not found|not supported for|no such model", re.IGNORECASE)
_BUSY = re.compile(r"quota|resource.?exhausted|rate limit|too many", re.IGNORECASE)
_SESSION = re.compile(r"session|handle|resum|expired", re.IGNORECASE)


def limits_of_live() -> RealtimeLimits:
    """Patient with answers to pings; the rest as with others."""
    socket = SocketLimits(open_s=8.0, send_s=5.0, close_s=1.0, ping_interval_s=20.0, ping_timeout_s=PING_TIMEOUT_S)
    return RealtimeLimits(socket=socket)


class GeminiLiveModel:
    """Implements `RealtimeModel`."""

    def __init__(self, settings: GeminiLiveSettings, api_key: str, limits: RealtimeLimits | None = None) -> None:
        self._settings = settings
        self._api_key = api_key
        self._limits = limits or limits_of_live()
        self._sessions: WeakSet[GeminiLiveSession] = WeakSet()
        self._is_closed = False

    @property
    def capabilities(self) -> RealtimeCapabilities:
        return replace(OFFERS, resume=self._settings.resumption)

    @property
    def input_format(self) -> AudioFormat:
        return SPEECH_FORMAT

    @property
    def output_format(self) -> AudioFormat:
        return OUTPUT_FORMAT

    async def prepare(self) -> None:
        """Nothing is known of a provider before a session is opened."""

    async def open(self, request: RealtimeRequest) -> GeminiLiveSession:
        """Raises `PortError` when the provider refuses, is not ready in time, or cannot do what is asked."""
        if self._is_closed:
            raise STAGE.failure("port_closed", "the model was closed")
        if request.provider_turns:
            raise STAGE.bad_setting('this model cannot end turns without answering them; use turn.authority = "vad"')
        if request.resumption is not None:
            # The service refuses to go on with a session whose former connection is open.
            await self._close_sessions()
        try:
            with anyio.fail_after(self._limits.ready_s):
                return await self._open(request)
        except TimeoutError as late:
            message = f"the provider was not ready within {self._limits.ready_s:g} s; check the network"
            raise STAGE.failure("provider_silent", message, retryable=True) from late
        except PortError as failure:
            if request.resumption is None or failure.error.retryable or failure.error.code == "auth_refused":
                raise
            message = "the provider does not go on with the former session; another one is opened"
            raise STAGE.failure("resumption_refused", message, retryable=True) from failure

    async def aclose(self) -> None:
        """Close every session."""
        self._is_closed = True
        await self._close_sessions()

    async def _close_sessions(self) -> None:
        async with anyio.create_task_group() as closing:
            for session in list(self._sessions):
                closing.start_soon(session.aclose)

    async def _open(self, request: RealtimeRequest) -> GeminiLiveSession:
        setup: JsonObject = setup_of(self._settings, request)
        socket = await open_socket(
            self._settings.url,
            stage=STAGE,
            headers={"x-goog-api-key": self._api_key},
            limits=self._limits.socket,
            allow_plain=self._settings.allow_plain,
            explain=explain,
        )
        try:
            protocol = GeminiProtocol(request, SPEECH_FORMAT, OUTPUT_FORMAT, anyio.current_time)
            session = GeminiLiveSession(socket, protocol, self._limits)
            await session.become_ready(setup)
        except BaseException:
            await socket.aclose()
            raise
        if self._is_closed:
            await session.aclose()
            raise STAGE.failure("port_closed", "the model was closed")
        self._sessions.add(session)
        return session


def explain(closing: Closing) -> ScopedError | None:
    """The service tells its errors by closing, and what they are only in words."""
    if closing.by is not ClosedBy.PROVIDER or closing.code in (1000, 1001):
        return None
    detail = f"Gemini, close code {closing.code}" + (f", {closing.reason}" if closing.reason else "")
    session = ErrorScope.SESSION
    if _KEY.search(closing.reason):
        message = f"the provider refuses the key or the model ({detail}); check the API key and what it may use"
        return STAGE.error("auth_refused", message, scope=session)
    if _BUSY.search(closing.reason):
        message = f"the provider asks to slow down, or the account's quota is used up ({detail}); it is tried again"
        return STAGE.error("rate_limited", message, scope=session, retryable=True)
    if _MODEL.search(closing.reason):
        message = f"the provider knows no such model, or it speaks no Gemini Live ({detail}); check model"
        return STAGE.error("not_found", message, scope=session)
    if closing.code == 1008 and _SESSION.search(closing.reason):
        message = f"the provider ended the session ({detail}); another one is opened"
        return STAGE.error("session_expired", message, scope=session, retryable=True)
    return None
