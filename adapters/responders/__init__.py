"""What answers: the offline pattern companion, a packaged language model, and OpenAI-compatible services."""

from .companion import PatternCompanion
from .local_llm import LlmLimits, LocalLlmResponder
from .openai_chat import OpenAIChatResponder
from .openai_stream import ChatLimits

__all__ = ["ChatLimits", "LlmLimits", "LocalLlmResponder", "OpenAIChatResponder", "PatternCompanion"]
