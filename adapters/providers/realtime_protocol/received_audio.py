"""The audio of the model's items: where each piece lies, and how much of each item came. No I/O."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ....audio.formats import AudioFormat, AudioFrame
from .dialect import STAGE

FRAME_MS = 20
MAX_ITEMS = 64
"""Whose length is remembered: those that can still be cut are a few."""


@dataclass(slots=True)
class _Track:
    content_index: int
    response_id: str
    samples: int = 0
    rest: bytes = b""
    """Half a sample that was cut between two messages."""


class ReceivedAudio:
    """Items by name, the oldest forgotten beyond `MAX_ITEMS`."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._tracks: dict[str, _Track] = {}

    def add(self, response_id: str, item_id: str, content_index: int, encoded: str) -> Iterator[AudioFrame]:
        """Frames of at most 20 ms, gapless in their item. Raises `PortError` for what is no base 64."""
        try:
            pcm = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            message = "the provider sent audio that cannot be read; its adapter needs a correction"
            raise STAGE.failure("provider_malformed", message, retryable=True) from None
        track = self._tracks.get(item_id)
        if track is None:
            track = self._tracks[item_id] = _Track(content_index, response_id)
            if len(self._tracks) > MAX_ITEMS:
                del self._tracks[next(iter(self._tracks))]
        pcm = track.rest + pcm
        samples = len(pcm) // self._format.bytes_per_sample
        whole_bytes = self._format.bytes_for(samples)
        track.rest = pcm[whole_bytes:]
        start, track.samples = track.samples, track.samples + samples
        return self._frames(pcm[:whole_bytes], samples, start)

    def _frames(self, pcm: bytes, samples: int, start: int) -> Iterator[AudioFrame]:
        # Of nearly equal length, so that no scrap is left.
        count = -(-samples // self._format.samples_for_ms(FRAME_MS))
        for first, end in pairwise(samples * place // count for place in range(count + 1)) if count else ():
            piece = pcm[self._format.bytes_for(first) : self._format.bytes_for(end)]
            yield AudioFrame(piece, self._format, start + first)

    def length_ms(self, item_id: str) -> int:
        """How much of it came, in whole milliseconds, rounded down; 0 for an item that is unknown."""
        track = self._tracks.get(item_id)
        return 0 if track is None else track.samples * 1_000 // self._format.sample_rate_hz

    def place_of(self, item_id: str) -> tuple[str, int] | None:
        """The response of an item, and which part of the item its audio is; None for one that is unknown."""
        track = self._tracks.get(item_id)
        return None if track is None else (track.response_id, track.content_index)
