"""The durable history: SQLite in WAL mode, for devices that are switched off without asking."""

from .errors import HistoryError
from .sqlite_history import ConversationStart, SqliteHistory
from .store import ConversationSummary, HistoryStore

__all__ = ["ConversationStart", "ConversationSummary", "HistoryError", "HistoryStore", "SqliteHistory"]
