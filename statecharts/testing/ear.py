"""What would be heard: a speaker that obeys the chart's actions and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..actions import Action, OpenOutput, PausePlayback, ReleaseOutput, ResumePlayback, StopPlayback


@dataclass(slots=True)
class Ear:
    """Labelled frames go in with the epoch they were made for; each is heard, waits, or is dropped for good."""

    heard: list[str] = field(default_factory=list[str])
    dropped: list[str] = field(default_factory=list[str])
    """Frames of an invalidated epoch, whenever they arrived."""
    waiting: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Epoch and label of frames that arrived before their stream was opened, released or resumed."""
    _oldest_epoch: int = 0
    _epoch: int | None = None
    _stream_id: int | None = None
    _is_held: bool = False
    _is_paused: bool = False

    def obey(self, action: Action) -> None:
        """Carry out what concerns the speaker."""
        match action:
            case StopPlayback():
                self._oldest_epoch = action.before_epoch
                self._epoch, self._stream_id, self._is_held, self._is_paused = None, None, False, False
            case OpenOutput():
                self._epoch, self._stream_id = action.output_epoch, action.stream_id
                self._is_held, self._is_paused = action.held, False
            case ReleaseOutput() if action.stream_id == self._stream_id:
                self._is_held = False
            case PausePlayback() if action.stream_id == self._stream_id:
                self._is_paused = True
            case ResumePlayback() if action.stream_id == self._stream_id:
                self._is_paused = False
            case _:
                return
        self._play_what_waits()

    def receive(self, label: str, output_epoch: int) -> None:
        """A frame arrives."""
        self.waiting.append((output_epoch, label))
        self._play_what_waits()

    def _play_what_waits(self) -> None:
        still_waiting: list[tuple[int, str]] = []
        for epoch, label in self.waiting:
            if epoch < self._oldest_epoch:
                self.dropped.append(label)
            elif epoch == self._epoch and not self._is_held and not self._is_paused:
                self.heard.append(label)
            else:
                still_waiting.append((epoch, label))
        self.waiting = still_waiting
