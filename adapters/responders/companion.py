"""A small companion that works offline and never guesses: the default responder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from ...engines.ports import GenerationRequest
from ...engines.reports import PortError
from ...statecharts.capabilities import ResponderCapabilities
from ...statecharts.errors import ErrorScope, ScopedError
from .companion_skills import Answer, Situation, answer_to
from .paced_text import PacedTextStream


def local_time() -> datetime:
    """The wall clock of this machine, in its time zone."""
    return datetime.now().astimezone()


class PatternCompanion:
    """Implements the `Responder` port with fixed patterns (English): the time and the date, counting, arithmetic,
    timers, a long story, who it is and what it can do. What it does not understand, it says.

    The same request at the same time gets the same answer, streamed a word every `token_ms`, so that a long reply is
    still being generated while it is heard.
    """

    def __init__(
        self,
        *,
        token_ms: float = 30.0,
        wall_clock: Callable[[], datetime] = local_time,
        start_timer: Callable[[timedelta], None] | None = None,
    ) -> None:
        """`token_ms`: 0 to 1,000. `start_timer` carries a timer out, and must not block; without it the companion says
        that it cannot. Raises `PortError` for a bad setting.
        """
        if not 0 <= token_ms <= 1_000:
            raise _error("bad_setting", f"token_ms = {token_ms} must be 0–1,000", ErrorScope.SESSION)
        self._token_ms = token_ms
        self._wall_clock = wall_clock
        self._start_timer = start_timer
        self._streams: list[PacedTextStream] = []
        self._closed = False

    @property
    def capabilities(self) -> ResponderCapabilities:
        return ResponderCapabilities(text_deltas=True)

    async def prepare(self) -> None:
        """Nothing to load."""

    async def open(self, request: GenerationRequest) -> PacedTextStream:
        """Raises `PortError` after `aclose`, without a user's turn in the request, and when the timer cannot start."""
        if self._closed:
            raise _error("port_closed", "the companion was closed", ErrorScope.SESSION)
        stream = PacedTextStream(self._answer(request).text, self._token_ms)
        self._streams = [open_stream for open_stream in self._streams if not open_stream.ended]
        self._streams.append(stream)
        return stream

    async def aclose(self) -> None:
        self._closed = True
        for stream in self._streams:
            stream.cancel("closed")

    def _answer(self, request: GenerationRequest) -> Answer:
        heard = next((message.text for message in reversed(request.messages) if message.role == "user"), None)
        if heard is None:
            raise _error("no_user_turn", "the request holds no message of the user; send one with role 'user'")
        said = next((message.text for message in reversed(request.messages) if message.role == "assistant"), None)
        situation = Situation(self._wall_clock(), self._start_timer is not None, said)
        answer = answer_to(heard, situation)
        if answer.timer is not None and self._start_timer is not None:
            self._start_timer(answer.timer)
        return answer


def _error(code: str, message: str, scope: ErrorScope = ErrorScope.RESPONSE) -> PortError:
    return PortError(ScopedError(code, "generation", scope, message))
