"""Moved to `adapters/providers/responders/openai_chat`; the old name, for the composition."""

from ..providers.responders.openai_chat import OpenAIChatResponder

__all__ = ["OpenAIChatResponder"]
