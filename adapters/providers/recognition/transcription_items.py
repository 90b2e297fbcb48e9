"""The items of a realtime session that are being transcribed, in the order of speaking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .dialect import Heard
from .segment_ledger import SegmentLedger


@dataclass(slots=True)
class _Item:
    text: str = ""
    is_done: bool = False


class TranscriptionItems:
    """The items of a session in the order of speaking. An item is told when those before it are done."""

    def __init__(self, ledger: SegmentLedger) -> None:
        self._ledger = ledger
        self._items: dict[str, _Item] = {}

    @property
    def is_empty(self) -> bool:
        """Every item that is known is done."""
        return not self._items

    def expect(self, item_id: str) -> None:
        """It comes after those that are known."""
        if not self._ledger.is_final(item_id):
            self._items.setdefault(item_id, _Item())

    def append(self, item_id: str, delta: str) -> Iterator[Heard]:
        """More of its text."""
        yield from self.replace(item_id, self._items.get(item_id, _Item()).text + delta)

    def replace(self, item_id: str, text: str, *, is_done: bool = False) -> Iterator[Heard]:
        """Its text as a whole. What comes after its end is no news."""
        self.expect(item_id)
        item = self._items.get(item_id)
        if item is not None and not item.is_done:
            item.text, item.is_done = text, is_done
            yield from self._tell()

    def _tell(self) -> Iterator[Heard]:
        for item_id, item in tuple(self._items.items()):
            if not item.is_done:
                if item.text.strip():
                    yield from self._ledger.revise(item_id, item.text.strip())
                return
            del self._items[item_id]
            yield from self._ledger.finish(item_id, item.text.strip())
