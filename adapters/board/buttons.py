"""The buttons of a board, as words in a FIFO: whoever drives the real ones writes a line for each use.

echo talk > /run/voicechart/buttons       the talk button went down
echo release > /run/voicechart/buttons    it went up: the turn is over
echo clear > /run/voicechart/buttons      what is being said is not meant
echo stop > /run/voicechart/buttons       the stop button
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from ...engines.reports import DeviceButton

log = logging.getLogger(__name__)

PRIVATE_MODE = 0o600
READ_BYTES = 4_096
MAX_LINE_BYTES = 64


class ButtonsRefused(Exception):
    """The buttons cannot be read. The text says what to do."""


class ButtonSource(Protocol):
    """Where uses of the board's buttons come from."""

    async def run(self, used: Callable[[DeviceButton], None], *, task_status: TaskStatus[None]) -> None:
        """Tell every use until cancelled. Raises `ButtonsRefused`, also before `task_status.started()`."""
        ...


class ButtonFifo:
    """Reads button words from a FIFO at `path`; makes it, for this user only, where there is none, and removes it then.

    A word that is none of `DeviceButton`'s is logged and means nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unread = b""

    async def run(
        self, used: Callable[[DeviceButton], None], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        with self._fifo():
            # Open for writing too: otherwise every writer that leaves would be the end of the file.
            descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                task_status.started()
                while True:
                    await anyio.wait_readable(descriptor)
                    for word in self._words(os.read(descriptor, READ_BYTES)):
                        self._tell(word, used)
            finally:
                os.close(descriptor)

    @contextmanager
    def _fifo(self) -> Generator[None]:
        try:
            made = not self._path.exists()
            if made:
                os.mkfifo(self._path, PRIVATE_MODE)
            if not stat.S_ISFIFO(self._path.stat().st_mode):
                raise ButtonsRefused(f"{self._path} exists and is not a FIFO; move it away or choose another path")
        except OSError as error:
            raise ButtonsRefused(f"no FIFO at {self._path}: {error.strerror or error}; choose another path") from error
        try:
            yield
        finally:
            if made:
                self._path.unlink(missing_ok=True)

    def _words(self, data: bytes) -> list[bytes]:
        *lines, rest = (self._unread + data).split(b"\n")
        self._unread = rest[:MAX_LINE_BYTES]
        return [line.strip() for line in lines if line.strip()]

    def _tell(self, word: bytes, used: Callable[[DeviceButton], None]) -> None:
        name = word.decode(errors="replace").lower()
        if name in tuple(DeviceButton):
            used(DeviceButton(name))
        else:
            log.warning("no button is called %r; there are %s", name[:MAX_LINE_BYTES], ", ".join(DeviceButton))
