"""Every wait of a session."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..websocket import SocketLimits


def _socket_limits() -> SocketLimits:
    return SocketLimits(open_s=8.0, send_s=5.0, close_s=1.0, ping_interval_s=10.0, ping_timeout_s=15.0)


@dataclass(frozen=True, slots=True)
class RealtimeLimits:
    """Every wait of a session."""

    ready_s: float = 10.0
    """From `open` to the provider's readiness."""
    respond_s: float = 10.0
    """For the end of another answer, before the next one can be asked for."""
    utterance_s: float = 2.0
    """For the end of the utterance before, where its last audio is still on its way."""
    socket: SocketLimits = field(default_factory=_socket_limits)
