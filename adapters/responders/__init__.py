"""What answers on this machine: the offline pattern companion, and a packaged language model."""

from .companion import PatternCompanion
from .local_llm import LlmLimits, LocalLlmResponder

__all__ = ["LlmLimits", "LocalLlmResponder", "PatternCompanion"]
