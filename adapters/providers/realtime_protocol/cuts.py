"""What the model believes it said, cut to what was heard. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from ....engines.realtime.reports import Truncated, TruncationRefused
from ....statecharts.errors import ScopedError
from .answers import Answers
from .dialect import ANSWERS, RealtimeDialect
from .received_audio import MAX_ITEMS, ReceivedAudio
from .told import Sending, Told


class Cuts:
    """Each is held until the response of its item is over: before, the provider may still be writing the item."""

    def __init__(self, dialect: RealtimeDialect, received: ReceivedAudio, answers: Answers) -> None:
        self._dialect = dialect
        self._received = received
        self._answers = answers
        self._held: dict[str, int] = {}
        self._sent: dict[str, str] = {}
        """The item and the event of each cut that is not acknowledged."""
        self._numbered = 0

    def cut(self, item_id: str, played_ms: int) -> Iterator[Told]:
        """Never beyond what came of the item: the provider refuses that."""
        place = self._received.place_of(item_id)
        if place is None:
            message = "nothing is known of this part of what the model said: it cannot be cut"
            yield TruncationRefused(item_id, ANSWERS.error("item_unknown", message))
            return
        self._held[item_id] = max(0, min(played_ms, self._received.length_ms(item_id)))
        yield from self.release()

    def release(self) -> Iterator[Told]:
        """Those whose response is over."""
        for item_id, played_ms in tuple(self._held.items()):
            place = self._received.place_of(item_id)
            if place is None or not self._answers.is_active(place[0]):
                del self._held[item_id]
                yield self._sending(item_id, 0 if place is None else place[1], played_ms)

    def _sending(self, item_id: str, content_index: int, played_ms: int) -> Sending:
        self._numbered += 1
        event_id = self._sent[item_id] = f"cut_{self._numbered}"
        if len(self._sent) > MAX_ITEMS:
            del self._sent[next(iter(self._sent))]
        if played_ms == 0:
            return Sending(self._dialect.delete_item(event_id, item_id))
        return Sending(self._dialect.truncate(event_id, item_id, content_index, played_ms))

    def acknowledged(self, item_id: str, audio_end_ms: int) -> Iterator[Told]:
        """`conversation.item.truncated`, or `.deleted`."""
        if self._sent.pop(item_id, None) is not None:
            yield Truncated(item_id, audio_end_ms)

    def refused(self, event_id: str | None, error: ScopedError) -> Iterator[Told]:
        """Without a name it is the oldest one."""
        found = (item_id for item_id, known in self._sent.items() if event_id in (None, known))
        item_id = next(found, None)
        if item_id is not None:
            del self._sent[item_id]
            yield TruncationRefused(item_id, error)

    def is_cut(self, event_id: str | None) -> bool:
        """An error about `event_id` (None: about nothing that is named) can be about a cut."""
        return bool(self._sent) if event_id is None else event_id in self._sent.values()
