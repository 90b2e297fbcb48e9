"""The output gate: the last place on this side where audio of a dead reply is told apart from audio of a living one."""

from __future__ import annotations

from collections.abc import Callable

from ..audio.formats import AudioFrame
from .ports import Speaker


class OutputGate:
    """Everything that is to be heard passes here, stamped with the output epoch it was made for.

    Moving the epoch is synchronous: when `invalidate_before` returns, the speaker has been told, and no frame of an
    older epoch passes any more, whoever still holds one. What is dropped is counted.
    """

    def __init__(self, note_stale: Callable[[int], None] | None = None) -> None:
        self._note_stale = note_stale
        """Told the epoch of every frame that is stopped here."""
        self._speaker: Speaker | None = None
        self._epoch = 0
        self.stale_frames = 0
        """Frames of a dead epoch that were stopped here."""

    @property
    def epoch(self) -> int:
        """The oldest epoch that may still be heard."""
        return self._epoch

    def attach(self, speaker: Speaker, output_epoch: int) -> None:
        """Use `speaker` from now on; whatever it still holds of older epochs falls silent."""
        self._speaker = speaker
        self.invalidate_before(output_epoch, "attached")

    def detach(self) -> None:
        """The speaker is gone; frames are dropped until the next one comes."""
        self._speaker = None

    def invalidate_before(self, output_epoch: int, reason: str) -> None:
        """Nothing of an epoch before `output_epoch` is heard from now on. Never waits. Epochs only grow."""
        self._epoch = max(self._epoch, output_epoch)
        if self._speaker is not None:
            self._speaker.invalidate_before(self._epoch, reason)

    async def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> bool:
        """Hand one frame to the speaker, waiting for room. False: it was stale and dropped.

        Raises `PortError` when the speaker refuses or has no room within its deadline.
        """
        speaker = self._speaker
        if speaker is None or output_epoch < self._epoch:
            self.stale_frames += 1
            if self._note_stale is not None:
                self._note_stale(output_epoch)
            return False
        await speaker.write(stream_id, output_epoch, frame)
        return output_epoch >= self._epoch
