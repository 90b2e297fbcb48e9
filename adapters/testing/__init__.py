"""A test kit for embedders: scripted servers that a provider's adapter can be pointed at, on the loopback address."""

from .chat_server import ChatExchange, ScriptedChatServer, chat_chunks
from .http_server import HttpExchange, Pause, ReceivedRequest, ScriptedHttpServer, sse, typed_sse
from .socket_peer import ClientGone, ReceivedMessage, SocketPeer
from .socket_server import Refusal, ScriptedSocketServer
from .wire_fixture import WireEvent, WireFixture, load_fixture, load_fixtures

__all__ = [
    "ChatExchange",
    "ClientGone",
    "HttpExchange",
    "Pause",
    "ReceivedMessage",
    "ReceivedRequest",
    "Refusal",
    "ScriptedChatServer",
    "ScriptedHttpServer",
    "ScriptedSocketServer",
    "SocketPeer",
    "WireEvent",
    "WireFixture",
    "chat_chunks",
    "load_fixture",
    "load_fixtures",
    "sse",
    "typed_sse",
]
