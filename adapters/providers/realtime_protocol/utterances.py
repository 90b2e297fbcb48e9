"""What was said to the model: which of the provider's items is which utterance, and its words as they come. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ....engines.realtime.reports import SpeechCommitted, SpeechDetected, Transcribed, TranscriptionEnded
from ....statecharts.errors import ScopedError
from .dialect import RealtimeDialect
from .told import Sending, Told

MAX_ITEMS = 64
"""Whose words may still come."""


@dataclass(slots=True)
class _Heard:
    utterance_id: str | None = None
    """None: the words came before the item was named."""
    text: str = ""
    revision: int = 0
    is_told: bool = True
    """Nothing of it waits for a name."""
    is_over: bool = False
    error: ScopedError | None = None


class Utterances:
    """Of one session."""

    def __init__(self, dialect: RealtimeDialect, *, provider_turns: bool) -> None:
        self._dialect = dialect
        self._provider_turns = provider_turns
        self._commits: deque[tuple[str, str]] = deque()
        """The event and the utterance of each commit that is not acknowledged."""
        self._items: dict[str, _Heard] = {}
        self._detected: deque[str] = deque(maxlen=MAX_ITEMS)
        self._committed: deque[str] = deque(maxlen=MAX_ITEMS)
        self._unwanted: set[str] = set()
        self._numbered = 0

    # -- from this side --------------------------------------------------------------------------------------------

    def commit(self, utterance_id: str) -> Sending:
        """Its audio is complete."""
        event_id = self._next("commit")
        self._commits.append((event_id, utterance_id))
        return Sending(self._dialect.commit(event_id))

    def clear(self) -> Sending:
        """What is in the provider's buffer shall not count."""
        return Sending(self._dialect.clear(self._next("clear")))

    def discard(self, utterance_id: str) -> Iterator[Told]:
        """One that the provider has already, or will have: its item is taken out."""
        item_id = self._item_of(utterance_id)
        if item_id is not None:
            yield from self._delete(item_id)
        elif any(utterance_id == committed for _, committed in self._commits):
            self._unwanted.add(utterance_id)

    def has_committed(self, speech_id: str) -> bool:
        """With provider turns: the model has it."""
        return speech_id in self._committed

    def _item_of(self, utterance_id: str) -> str | None:
        found = (item_id for item_id, heard in self._items.items() if heard.utterance_id == utterance_id)
        item_id = next(found, None)
        return item_id if item_id in self._committed else None

    def _delete(self, item_id: str) -> Iterator[Told]:
        if self._dialect.deletes_items:
            yield Sending(self._dialect.delete_item(self._next("delete"), item_id))

    def _next(self, what: str) -> str:
        self._numbered += 1
        return f"{what}_{self._numbered}"

    # -- from the provider -----------------------------------------------------------------------------------------

    def speech_started(self, item_id: str) -> Iterator[Told]:
        """Its own detection."""
        if self._provider_turns and item_id not in self._detected:
            self._detected.append(item_id)
            yield SpeechDetected(item_id)

    def committed(self, item_id: str) -> Iterator[Told]:
        """The model has an utterance, by this name."""
        if item_id in self._committed:
            return
        self._committed.append(item_id)
        if self._provider_turns:
            yield from self.speech_started(item_id)
            yield SpeechCommitted(item_id)
            utterance_id = item_id
        elif self._commits:
            _, utterance_id = self._commits.popleft()
        else:
            return
        if utterance_id in self._unwanted:
            self._unwanted.discard(utterance_id)
            yield from self._delete(item_id)
        heard = self._heard(item_id)
        heard.utterance_id = utterance_id
        if not self._dialect.tells_transcripts:
            heard.is_over, heard.is_told = True, False
        yield from self._tell(item_id, heard)

    def commit_refused(self, event_id: str | None, error: ScopedError) -> Iterator[Told]:
        """There was too little to commit, or it was refused; without a name it is the oldest one."""
        refused = next((one for one in self._commits if event_id in (None, one[0])), None)
        if refused is not None:
            self._commits.remove(refused)
            self._unwanted.discard(refused[1])
            yield TranscriptionEnded(refused[1], error)

    def is_commit(self, event_id: str | None) -> bool:
        """An error about `event_id` is about a commit that was not acknowledged."""
        return any(event_id == known for known, _ in self._commits)

    def append(self, item_id: str, delta: str) -> Iterator[Told]:
        """More of its words."""
        yield from self.replace(item_id, self._heard(item_id).text + delta)

    def replace(self, item_id: str, text: str, *, is_final: bool = False) -> Iterator[Told]:
        """All of its words. What comes after the end is no news."""
        heard = self._heard(item_id)
        if heard.is_over or (text == heard.text and not is_final):
            return
        heard.text, heard.is_over, heard.is_told = text, is_final, False
        yield from self._tell(item_id, heard)

    def failed(self, item_id: str, error: ScopedError) -> Iterator[Told]:
        """Its words will not come."""
        heard = self._heard(item_id)
        if not heard.is_over:
            heard.is_over, heard.is_told, heard.error = True, False, error
            yield from self._tell(item_id, heard)

    def _heard(self, item_id: str) -> _Heard:
        heard = self._items.get(item_id)
        if heard is None:
            heard = self._items[item_id] = _Heard(item_id if self._provider_turns else None)
            if len(self._items) > MAX_ITEMS:
                del self._items[next(iter(self._items))]
        return heard

    def _tell(self, item_id: str, heard: _Heard) -> Iterator[Told]:
        utterance_id = heard.utterance_id
        if utterance_id is None or heard.is_told:
            return
        heard.is_told = True
        has_words = heard.error is None and self._dialect.tells_transcripts
        if has_words and (heard.text or heard.is_over):
            heard.revision += 1
            yield Transcribed(utterance_id, heard.revision, heard.text.strip(), is_final=heard.is_over)
        if heard.is_over:
            yield TranscriptionEnded(utterance_id, heard.error)
