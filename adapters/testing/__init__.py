"""A test kit for embedders: scripted servers that a provider's adapter can be pointed at, on the loopback address."""

from .chat_server import ChatExchange, ScriptedChatServer, chat_chunks
from .http_server import HttpExchange, Pause, ReceivedRequest, ScriptedHttpServer, sse, typed_sse
from .model_events import message_events, response_events
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
    "message_events",
    "response_events",
    "sse",
    "typed_sse",
]
