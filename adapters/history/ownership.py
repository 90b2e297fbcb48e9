"""One process a conversation: who holds a conversation open keeps others from beginning it too.

Beginning a conversation settles what a dead process left open; doing that to one that lives would call its reply lost.
A record lock on a file beside the store tells the two apart, because the system lets go of it however a process ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .errors import HistoryError


class Ownership:
    """The conversations of one file that this process holds. POSIX locks: a process never stands in its own way."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.name}-owners")
        self._file: int | None = None

    def take(self, number: int, conversation_id: str) -> None:
        """Hold the conversation in row `number` until `close`, or until this process ends. Raises `HistoryError`."""
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError) as error:
            # POSIX lets a system say either for a lock that is held; opening says the second for a missing right.
            if self._file is None:
                raise self._unusable(error) from error
            raise HistoryError(
                "history_in_use",
                f"the conversation {conversation_id!r} in {self._path.name.removesuffix('-owners')} is held by another "
                "process: end that one, or choose another conversation",
            ) from error
        except OSError as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Let go of all. Closing again changes nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _unusable(self, error: OSError) -> HistoryError:
        return HistoryError("history_unreachable", f"{self._path} cannot be locked: {error.strerror}")
