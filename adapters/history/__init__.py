"""The durable history: SQLite in WAL mode, for devices that are switched off without asking."""

from .errors import HistoryError
from .lines import ConversationLine, HistoryLine, ReplyLine, TurnLine, history_lines
from .pruning import Pruned, prune
from .sqlite_history import ConversationStart, SqliteHistory, conversation_after
from .store import ConversationSummary, HistoryStore, StoredRecord

__all__ = [
    "ConversationLine",
    "ConversationStart",
    "ConversationSummary",
    "HistoryError",
    "HistoryLine",
    "HistoryStore",
    "Pruned",
    "ReplyLine",
    "SqliteHistory",
    "StoredRecord",
    "TurnLine",
    "conversation_after",
    "history_lines",
    "prune",
]
