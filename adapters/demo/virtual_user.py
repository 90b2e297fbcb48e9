"""The user of a conversation with recordings: speaks each one at its moment, and ends it after the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from ...audio.formats import AudioFrame
from ...engines import Session
from ...statecharts.actions import Action, OpenOutput
from ..board import WavMicrophone

SILENCE_BEFORE_MS = 300
"""Said into a quiet room: the pre-roll of the first word is real."""
PAUSE_AFTER_MS = 1_000
"""What a user leaves after the last word; longer than any end of speech takes to be noticed."""


class VirtualUser:
    """Follows the conversation from outside and speaks when a user would.

    A recording is spoken when the former reply is over, or, with `barge_in_after_ms`, as soon as so much of that reply
    has been heard.
    """

    def __init__(
        self,
        session: Session,
        microphone: WavMicrophone,
        recordings: Sequence[AudioFrame],
        *,
        barge_in_after_ms: float | None = None,
    ) -> None:
        self._session = session
        self._microphone = microphone
        self._recordings = recordings
        self._barge_in_after_ms = barge_in_after_ms
        self._sample_rates_hz: dict[int, int] = {}
        self._changed = anyio.Event()
        session.watch(self._note)

    async def run(self) -> None:
        """Speak everything, wait for the last answer, close the session."""
        await self._until(lambda: self._session.conversation.configuration.connection == "ready")
        for place, recording in enumerate(self._recordings):
            if place:
                await self._until(self._may_go_on)
            await self._say(recording)
        await self._until(self._is_over)
        self._session.close("finished")

    async def _say(self, recording: AudioFrame) -> None:
        utterance = self._microphone.say(recording, after_silence_ms=SILENCE_BEFORE_MS)
        await utterance.wait_spoken()
        await anyio.sleep(PAUSE_AFTER_MS / 1_000)
        await self._until(lambda: not self._is_speaking())

    def _may_go_on(self) -> bool:
        """The reply was heard long enough to be interrupted, or there is none to wait for any more."""
        barge_in_after_ms = self._barge_in_after_ms
        return self._is_over() or (barge_in_after_ms is not None and self._heard_ms() >= barge_in_after_ms)

    def _is_over(self) -> bool:
        """Nobody speaks and nothing is owed."""
        context = self._session.conversation.context
        return not self._is_speaking() and context.pending is None and context.reply_is_over and not context.stopping

    def _is_speaking(self) -> bool:
        return self._session.conversation.configuration.input_turn in ("speech", "hypothesis")

    def _heard_ms(self) -> float:
        """How much of the present reply was rendered."""
        output = self._session.conversation.context.output
        if output is None or not output.played_samples:
            return 0.0
        return output.played_samples * 1_000 / self._sample_rates_hz[output.stream_id]

    def _note(self, action: Action) -> None:
        if isinstance(action, OpenOutput):
            self._sample_rates_hz[action.stream_id] = action.sample_rate_hz
        self._changed.set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed = anyio.Event()
            await self._changed.wait()
