"""A test kit for embedders: scripted servers that a provider's adapter can be pointed at, on the loopback address."""

from .chat_server import ChatExchange, Pause, ScriptedChatServer, chat_chunks, sse

__all__ = ["ChatExchange", "Pause", "ScriptedChatServer", "chat_chunks", "sse"]
