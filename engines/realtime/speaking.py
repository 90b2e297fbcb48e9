"""What the model says, as the voice of a reply.

The audio of an answer comes with the answer: nothing is synthesised, and no text waits to be spoken. One reply has one
voice, and one output stream, over all the answers that its tools make necessary; each item of the model is one unit
of speech, because nobody tells which words lie where in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import anyio

from ...audio.formats import AudioFormat, AudioFrame
from ...statecharts.actions import StartAnnouncement, StartGeneration
from ...statecharts.capabilities import SynthesizerCapabilities
from ...statecharts.errors import ErrorScope, ScopedError
from ..engine import Desk
from ..history import Cut
from ..output_gate import OutputGate
from ..ports import SpeechUnit, SynthesisRequest, Synthesizer
from ..reply_text import Heard, ReplyText
from ..reports import (
    PortError,
    SynthesisEnded,
    SynthesisErrored,
    SynthesisReport,
    SynthesisStopped,
    Synthesized,
    UnitSynthesized,
)
from ..speaking import Speaking
from ..voicing import Voicing
from .reports import AnswerAudio

MAX_AHEAD_MS = 120_000
"""Audio of one reply that was received and not taken by the speaker's queue yet: about 6 MB at 24 kHz."""


@dataclass(frozen=True, slots=True)
class SpokenItem:
    """One item of the model's in the output stream of its reply: samples [start, end)."""

    item_id: str
    start_sample: int
    end_sample: int


class SpokenReply:
    """The audio of one reply, from all its answers. Implements `SynthesisStream`."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._frames: deque[tuple[AudioFrame, int]] = deque()
        self._queued_samples = 0
        self._answers: set[str] = set()
        self._ends: list[tuple[int, int]] = []
        """At the end of each answer: how many items and how many characters of text there were."""
        self._over = False
        self._stopped = False
        self._error: ScopedError | None = None
        self._end_sample = 0
        self._changed = anyio.Event()
        self.items: list[SpokenItem] = []
        """In the order in which they are heard."""

    # -- from the model --------------------------------------------------------------------------------------------

    def begin_answer(self, answer_id: str) -> None:
        """More may come."""
        self._answers.add(answer_id)

    def end_answer(self, answer_id: str, chars: int) -> None:
        """Everything of that answer was taken; it said `chars` characters. Ending it again changes nothing."""
        if answer_id in self._answers:
            self._answers.discard(answer_id)
            before = self._ends[-1][1] if self._ends else 0
            self._ends.append((len(self.items), before + chars))
            self._note_change()

    def chars_of(self, units: int) -> int:
        """How much of the text the first `units` items say for certain: that of the answers that end with them."""
        return max((chars for items, chars in self._ends if 0 < items <= units), default=0)

    def take(self, audio: AnswerAudio) -> None:
        """Never waits."""
        if self._stopped or self._error is not None:
            return
        if not self.items or self.items[-1].item_id != audio.item_id:
            self.items.append(SpokenItem(audio.item_id, self._end_sample, self._end_sample))
        frame = replace(audio.frame, start_sample=self._end_sample)
        self._end_sample = frame.end_sample
        self.items[-1] = replace(self.items[-1], end_sample=self._end_sample)
        self._frames.append((frame, len(self.items) - 1))
        self._queued_samples += frame.samples
        if self._format.duration_ms(self._queued_samples) > MAX_AHEAD_MS:
            self._error = _too_far_ahead()
        self._note_change()

    # -- for the voice ---------------------------------------------------------------------------------------------

    async def write(self, unit: SpeechUnit) -> None:
        """The model has said it, or is about to."""

    async def finish_input(self) -> None:
        """No further answer belongs to the reply."""
        self._over = True
        self._note_change()

    async def reports(self) -> AsyncIterator[SynthesisReport]:
        told = 0
        while True:
            while self._frames:
                frame, unit_index = self._frames.popleft()
                self._queued_samples -= frame.samples
                while told < unit_index:
                    yield self._told(told)
                    told += 1
                yield Synthesized(frame, unit_index)
            if self._stopped:
                yield SynthesisStopped()
                return
            if self._error is not None:
                yield SynthesisErrored(self._error)
                return
            if self._over and not self._answers:
                while told < len(self.items):
                    yield self._told(told)
                    told += 1
                yield SynthesisEnded(self._end_sample)
                return
            self._changed = anyio.Event()
            await self._changed.wait()

    def _told(self, index: int) -> UnitSynthesized:
        item = self.items[index]
        return UnitSynthesized(index, item.start_sample, item.end_sample)

    def cancel(self, reason: str) -> None:
        self._stopped = True
        self._frames.clear()
        self._note_change()

    async def aclose(self) -> None:
        self.cancel("closed")

    def _note_change(self) -> None:
        self._changed.set()


class SpokenReplies:
    """The audio of the replies that are being said. Implements `Synthesizer` and `SpokenAnswers`."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._replies: dict[str, SpokenReply] = {}

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return SynthesizerCapabilities(incremental_text=False, sentence_input=False, incremental_pcm=True)

    @property
    def format(self) -> AudioFormat:
        return self._format

    async def prepare(self) -> None:
        """There is nothing to load."""

    async def open(self, request: SynthesisRequest) -> SpokenReply:
        """The audio of that reply, wherever it has got to."""
        return self.of(request.response_id)

    async def aclose(self) -> None:
        """There is nothing to release."""

    def of(self, response_id: str) -> SpokenReply:
        return self._replies.setdefault(response_id, SpokenReply(self._format))

    def items_of(self, response_id: str) -> tuple[SpokenItem, ...]:
        """Where each item lies in the stream of that reply; nothing for one that is unknown."""
        reply = self._replies.get(response_id)
        return tuple(reply.items) if reply is not None else ()

    def forget(self, response_id: str) -> None:
        self._replies.pop(response_id, None)

    def begin_answer(self, response_id: str, answer_id: str) -> None:
        self.of(response_id).begin_answer(answer_id)

    def take(self, response_id: str, audio: AnswerAudio) -> None:
        self.of(response_id).take(audio)

    def end_answer(self, response_id: str, answer_id: str, chars: int) -> None:
        reply = self._replies.get(response_id)
        if reply is not None:
            reply.end_answer(answer_id, chars)


class ModelVoice(Voicing):
    """A reply that the model says by itself: its audio does not wait for any text."""

    def __init__(self, desk: Desk, spoken: SpokenReplies, gate: OutputGate, action: StartGeneration) -> None:
        super().__init__(desk, spoken, gate, action.response_id, action.output_epoch, action.stamp)
        self._reply = spoken.of(action.response_id)

    def speak(self, unit: SpeechUnit) -> None:
        """The model says it, or has said it."""

    def heard(self, text: ReplyText, units: int, measured_samples: int | None) -> Heard:
        """Whole answers only: nobody tells which words lie where in one."""
        return Heard(text.written[: self._reply.chars_of(units)].strip(), Cut.UNIT)

    async def _speak_units(self) -> None:
        self._stream = self._reply
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._close_when_text_ends)
            await self._play(self._reply)
            tasks.cancel_scope.cancel()

    async def _close_when_text_ends(self) -> None:
        while not self._text_is_over:
            await self._changed.wait()
        await self._reply.finish_input()


class ModelSpeaking(Speaking):
    """The voices of replies that the model says, and of announcements that a synthesiser says where there is one."""

    def __init__(
        self, desk: Desk, spoken: SpokenReplies, gate: OutputGate, announcer: Synthesizer | None = None
    ) -> None:
        super().__init__(desk, announcer or NoAnnouncer(), gate)
        self._spoken = spoken

    def forget(self, response_id: str) -> None:
        super().forget(response_id)
        self._spoken.forget(response_id)

    def _new_voicing(self, action: StartGeneration | StartAnnouncement) -> Voicing:
        if isinstance(action, StartAnnouncement):
            return super()._new_voicing(action)
        return ModelVoice(self._desk, self._spoken, self._gate, action)


class NoAnnouncer:
    """Where no synthesiser is configured a text cannot be said as it is. Implements `Synthesizer`."""

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return SynthesizerCapabilities()

    @property
    def format(self) -> AudioFormat:
        return AudioFormat(16_000)

    async def prepare(self) -> None:
        """There is nothing to load."""

    async def open(self, request: SynthesisRequest) -> SpokenReply:
        """Raises `PortError`, always."""
        message = "a text cannot be said as it is: configure a voice beside the native realtime model"
        raise PortError(ScopedError("no_announcer", "synthesis", ErrorScope.RESPONSE, message))

    async def aclose(self) -> None:
        """There is nothing to release."""


def _too_far_ahead() -> ScopedError:
    message = f"the model produced more than {MAX_AHEAD_MS} ms of speech ahead of what was played"
    return ScopedError("answer_too_long", "synthesis", ErrorScope.RESPONSE, message)
