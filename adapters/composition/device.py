"""The engine's audio device: the board's audio service at its socket."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ..board import BoardAudio, ClientLimits


@dataclass(frozen=True, slots=True)
class BoardDevice:
    """Implements `engines.AudioDevice`: every session is a connection of its own, and there is no other device."""

    path: Path
    limits: ClientLimits = field(default_factory=ClientLimits)
    needs_talk_button: bool = False
    """Without one nobody could ever begin a turn."""

    def connect(self) -> AbstractAsyncContextManager[BoardAudio]:
        """Raises `PortError` on entering; see `BoardAudio.connect`."""
        return BoardAudio.connect(self.path, limits=self.limits, needs_talk_button=self.needs_talk_button)
