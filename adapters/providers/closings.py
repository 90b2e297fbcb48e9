"""What the end of a WebSocket means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .refusals import Stage, sanitised


class ClosedBy(StrEnum):
    """Who ended the connection."""

    PROVIDER = "provider"
    US = "us"
    NETWORK = "network"
    """It broke: no closing handshake."""


@dataclass(frozen=True, slots=True)
class Closing:
    """How a WebSocket ended."""

    by: ClosedBy
    code: int
    """RFC 6455, section 7.4, and the provider's own from 3000 on; 1005: a close without a code, 1006: it broke."""
    reason: str
    """The provider's words, safe to show; often empty."""

    @property
    def is_normal(self) -> bool:
        """Ended on purpose: the provider said 1000, or this side asked."""
        return self.code == CloseCode.NORMAL_CLOSURE


Explanation = Callable[[Closing], ScopedError | None]
"""What a provider means by a closing; None where the general meaning holds."""


class SocketClosed(PortError):
    """The WebSocket has ended: nothing more is received, and nothing can be sent."""

    def __init__(self, closing: Closing, error: ScopedError) -> None:
        super().__init__(error)
        self.closing = closing


def closing_of(closed: ConnectionClosed, secrets: tuple[str, ...]) -> Closing:
    """From the library's exception. `secrets` are blanked out in the reason."""
    if closed.rcvd is not None and closed.rcvd_then_sent is not False:
        return Closing(ClosedBy.PROVIDER, closed.rcvd.code, sanitised(closed.rcvd.reason, secrets))
    if closed.sent is not None:
        return Closing(ClosedBy.US, closed.sent.code, sanitised(closed.sent.reason, secrets))
    return Closing(ClosedBy.NETWORK, CloseCode.ABNORMAL_CLOSURE, "")


def explained(stage: Stage, closing: Closing, explain: Explanation | None) -> SocketClosed:
    """The exception for a closing: the provider's own meaning, or the general one."""
    own = explain(closing) if explain is not None else None
    return SocketClosed(closing, own or _general(stage, closing))


def _general(stage: Stage, closing: Closing) -> ScopedError:
    if closing.by is ClosedBy.NETWORK:
        return stage.error("connection_lost", "the connection to the provider broke; check the network", retryable=True)
    return _our_own(stage, closing) if closing.by is ClosedBy.US else _the_providers(stage, closing)


def _our_own(stage: Stage, closing: Closing) -> ScopedError:
    if closing.code == CloseCode.INTERNAL_ERROR:
        message = "the provider does not answer pings any more; check the network"
        return stage.error("provider_silent", message, retryable=True)
    if closing.code == CloseCode.MESSAGE_TOO_BIG:
        return stage.error("message_too_large", "the provider sent a message that is longer than allowed")
    if closing.code in (CloseCode.PROTOCOL_ERROR, CloseCode.INVALID_DATA):
        return stage.error("provider_malformed", "the provider broke the WebSocket protocol; check its address")
    return stage.error("port_closed", "the connection was closed here")


def _the_providers(stage: Stage, closing: Closing) -> ScopedError:
    detail = f"close code {closing.code}" + (f", {closing.reason}" if closing.reason else "")
    session = ErrorScope.SESSION
    # 3000 and 3003 are registered with IANA as "Unauthorized" and "Forbidden".
    if closing.code in (3000, 3003):
        message = f"the provider refuses the key or the model ({detail}); check the API key and what it may use"
        return stage.error("auth_refused", message, scope=session)
    if closing.code in (
        CloseCode.GOING_AWAY,
        CloseCode.INTERNAL_ERROR,
        CloseCode.SERVICE_RESTART,
        CloseCode.TRY_AGAIN_LATER,
        CloseCode.BAD_GATEWAY,
    ):
        return stage.error("provider_unavailable", f"the provider cannot go on ({detail})", retryable=True)
    if closing.code in (CloseCode.NORMAL_CLOSURE, CloseCode.NO_STATUS_RCVD):
        return stage.error("closed_by_provider", f"the provider ended the connection ({detail})", retryable=True)
    message = f"the provider refuses to go on ({detail}); check the options of this provider"
    return stage.error("request_refused", message)
