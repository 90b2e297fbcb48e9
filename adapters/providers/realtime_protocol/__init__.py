"""OpenAI's realtime protocol, and what speaks it in other words: one live session over a WebSocket, written once.

`RealtimeProtocol` is the conversation's side of it, messages in and reports out, and no socket; a provider's file gives
it a `RealtimeDialect`. `SocketRealtimeModel` opens sessions and drives it.
"""

from .dialect import STAGE, RealtimeDialect
from .limits import RealtimeLimits
from .model import SocketRealtimeModel
from .protocol import RealtimeProtocol
from .session import SocketRealtimeSession
from .told import Sending, Told

__all__ = [
    "STAGE",
    "RealtimeDialect",
    "RealtimeLimits",
    "RealtimeProtocol",
    "Sending",
    "SocketRealtimeModel",
    "SocketRealtimeSession",
    "Told",
]
