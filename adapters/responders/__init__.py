"""What answers: the offline pattern companion, a packaged language model, and OpenAI-compatible services."""

from .companion import PatternCompanion

__all__ = ["PatternCompanion"]
