"""What is said to the model: when an activity begins and ends on the wire, and the words of it as they come. No I/O.

An activity interrupts the model when it begins, and makes it answer when it ends. So it begins late while an answer is
heard - a cough shall not cut it - and ends only when an answer is asked for; utterances that are finished before that
are one activity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .....audio.formats import AudioFormat, AudioFrame
from .....engines.realtime.reports import Transcribed, TranscriptionEnded
from ...realtime_protocol import Sending, Told
from ...realtime_protocol.dialect import HEARING
from ...realtime_protocol.outgoing_audio import OutgoingAudio
from .messages import activity_end, activity_start, audio
from .wire import Transcription

MAX_HELD_MS = 60_000
"""While an answer comes in: longer speech interrupts it whatever anybody decides."""
PATIENCE_MS = 1_200
"""While it is only heard, nobody tells that it was interrupted: speech that lasts longer is no cough."""


class Hearing:
    """Of one session. `interrupt` is called when something that interrupts the model is about to be sent."""

    def __init__(self, format: AudioFormat, interrupt: Callable[[], None]) -> None:
        self._format = format
        self._interrupt = interrupt
        self._audio = OutgoingAudio(format)
        self._words = Words()
        self._held: deque[tuple[str, bytes]] = deque()
        self._held_bytes = 0
        self._sent: list[str] = []
        """Utterances of which something stands in the present activity."""
        self.utterance_id: str | None = None
        """The open one."""
        self.is_active = False
        """The service was told that the user speaks."""
        self.finished: list[str] = []
        """Utterances with audio that no answer was asked for."""

    @property
    def is_waiting(self) -> bool:
        """An answer is one to speech: to what was finished, or to what is being said while nobody waits any longer."""
        return bool(self.finished) or self.is_active

    def begin(self, utterance_id: str) -> None:
        self.utterance_id = utterance_id
        self._audio.begin()

    def write(self, frame: AudioFrame, patience_ms: float) -> Iterator[Told]:
        """Sent once so much is held. Raises `PortError` for another format."""
        for pcm in self._audio.take(frame):
            yield from self._put(pcm, patience_ms)

    def commit(self, utterance_id: str, patience_ms: float) -> Iterator[Told]:
        """One without any audio is over at once."""
        is_empty = self._audio.is_empty
        for pcm in self._audio.rest(0):
            yield from self._put(pcm, patience_ms)
        self.utterance_id = None
        if is_empty:
            yield TranscriptionEnded(
                utterance_id, HEARING.error("nothing_heard", "nothing was written of this utterance")
            )
        elif utterance_id in self._sent or any(held == utterance_id for held, _ in self._held):
            self.finished.append(utterance_id)

    def discard(self, utterance_id: str) -> Iterator[Told]:
        """What the service was not told is forgotten. The rest is ended, and makes the model speak; but not where a
        finished utterance stands in the same activity, whose answer that would be.
        """
        if utterance_id == self.utterance_id:
            self.utterance_id = None
            self._audio.begin()
        elif utterance_id in self.finished:
            self.finished.remove(utterance_id)
        self._held = deque(one for one in self._held if one[0] != utterance_id)
        self._held_bytes = sum(len(pcm) for _, pcm in self._held)
        self._words.forget(utterance_id)
        if utterance_id in self._sent and not self.finished and self.utterance_id is None:
            yield from self.end()

    def _put(self, pcm: bytes, patience_ms: float) -> Iterator[Told]:
        assert self.utterance_id is not None
        self._held.append((self.utterance_id, pcm))
        self._held_bytes += len(pcm)
        held_ms = self._format.duration_ms(self._held_bytes // self._format.bytes_per_sample)
        if self.is_active or held_ms > patience_ms:
            yield from self.release()

    def release(self) -> Iterator[Told]:
        """Whatever is held is sent now, and interrupts the model."""
        while self._held:
            utterance_id, pcm = self._held.popleft()
            if not self.is_active:
                self._interrupt()
                self.is_active = True
                yield Sending(activity_start())
            if utterance_id not in self._sent:
                self._sent.append(utterance_id)
                yield from self._words.follow(utterance_id)
            yield Sending(audio(pcm))
        self._held_bytes = 0

    def end(self) -> Iterator[Told]:
        """The model answers everything that was sent."""
        self.finished.clear()
        self._sent.clear()
        self.is_active = False
        yield Sending(activity_end())

    def heard(self, words: Transcription | None, guess: Transcription | None) -> Iterator[Told]:
        """What the service understood."""
        yield from self._words.take(words, guess)

    def settle(self) -> Iterator[Told]:
        """The model has answered: nothing more is understood of what it answered."""
        if not self.is_active:
            yield from self._words.end()


@dataclass(slots=True)
class _Utterance:
    utterance_id: str
    text: str = ""
    shown: str = ""
    revision: int = 0


class Words:
    """The words belong to what was sent last: the service does not say whose they are."""

    def __init__(self) -> None:
        self._current: _Utterance | None = None
        self._ended: str | None = None
        """The one before: the rest of it may stand in another activity."""

    def follow(self, utterance_id: str) -> Iterator[Told]:
        """Its audio is about to be sent."""
        if self._current is None or self._current.utterance_id != utterance_id:
            yield from self.end()
            self._current = None if utterance_id == self._ended else _Utterance(utterance_id)

    def forget(self, utterance_id: str) -> None:
        """Its words are not wanted."""
        if self._current is not None and self._current.utterance_id == utterance_id:
            self._current = None

    def take(self, words: Transcription | None, guess: Transcription | None) -> Iterator[Told]:
        """More words to append, or a guess behind them that the next one replaces."""
        current = self._current
        if current is None or (words is None and guess is None):
            return
        current.text += (words.text or "") if words is not None else ""
        guessed = (guess.text or "") if guess is not None else ""
        # A guess is of what is not certain yet, or of everything: both are in use.
        shown = (guessed if guessed.startswith(current.text) else current.text + guessed).strip()
        if shown and shown != current.shown:
            current.shown = shown
            current.revision += 1
            yield Transcribed(current.utterance_id, current.revision, shown)
        if words is not None and words.finished:
            yield from self.end()

    def end(self) -> Iterator[Told]:
        """No more words will come."""
        current, self._current = self._current, None
        if current is None:
            return
        self._ended = current.utterance_id
        if text := current.text.strip() or current.shown:
            yield Transcribed(current.utterance_id, current.revision + 1, text, is_final=True)
        yield TranscriptionEnded(current.utterance_id)
