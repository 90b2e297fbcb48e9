"""What the server's messages say of the turns that are under way. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from .....audio.formats import AudioFormat
from .....engines.realtime.reports import (
    AnswerAudio,
    AnswerProgressed,
    AnswerText,
    AnswerUsage,
    ProviderInterruption,
    ToolCallsWithdrawn,
)
from .....statecharts.values import Usage as TokenUsage
from ...generation import CONTENT_FILTERED, MALFORMED_CALL, UNKNOWN_FINISH
from ...realtime_protocol import STAGE, Told
from ...realtime_protocol.received_audio import ReceivedAudio
from .calls import read_calls, refuse
from .open_turns import OpenTurns
from .turn import UNNAMED, Turn
from .wire import Blob, FunctionCall, ServerContent, Transcription, Usage

WRITTEN_WITHIN_S = 0.5
"""How long text may come behind the end of the audio: its order is free."""
BELIEVED_AFTER_S = 0.5
"""How long something may still come of a turn that is said to be complete without anything."""


_RATE = re.compile(r"rate=(\d{1,6})")
_NORMAL_REASONS = (None, "TURN_COMPLETE_REASON_UNSPECIFIED", "NEED_MORE_INPUT")
_REFUSING = re.compile("PROHIBITED|BLOCKLIST|SAFETY|UNSAFE|REJECTED|CELEBRITY|PROMINENT|CHILD|MINORS|IDENTIFIABLE|NCII")


class Turns(OpenTurns):
    """Of one session."""

    def __init__(self, format: AudioFormat, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._format = format
        self._received = ReceivedAudio(format)
        self._items = 0
        self.ended = 0
        """Turns that have come to their end."""

    # -- what the model says ---------------------------------------------------------------------------------------

    def _speaking(self) -> Iterator[Told]:
        """What cannot speak any more and has another one behind it has ended without saying so."""
        self._lose()
        while len(self._open) > 1 and self._open[0].is_mute:
            yield from self._finish()

    def _finish(self, reason: str | None = None) -> Iterator[Told]:
        turn = self._open.popleft()
        self.ended += 1
        if reason in _NORMAL_REASONS:
            yield from turn.end()
        elif reason == "MALFORMED_FUNCTION_CALL":
            yield from turn.fail(*MALFORMED_CALL)
        else:
            yield from turn.fail(*(CONTENT_FILTERED if _REFUSING.search(reason or "") else UNKNOWN_FINISH))

    def content(self, content: ServerContent) -> Iterator[Told]:
        """The speech and the text in a message. Raises `PortError`."""
        parts = content.model_turn.parts if content.model_turn is not None else None
        if parts:
            yield from self._speaking()
            front = self._open[0] if self._open else None
            if front is not None:
                front.comes()
                if not front.was_interrupted:
                    # It goes on: the interaction was in progress.
                    front.is_generated, front.ends_at = False, None
                for part in parts:
                    if part.inline_data is not None:
                        yield from self._audio(front, part.inline_data)
                    elif part.thought or not part.text:
                        yield from front.tell(AnswerProgressed(UNNAMED))
                    else:
                        yield from front.tell(AnswerText(UNNAMED, part.text))
        if content.output_transcription is not None:
            yield from self._transcript(content.output_transcription)

    def _audio(self, turn: Turn, blob: Blob) -> Iterator[Told]:
        kind, _, options = blob.mime_type.partition(";")
        rate = _RATE.search(options)
        if not kind.startswith("audio/") or not turn.is_wanted:
            return
        if kind != "audio/pcm" or (rate is not None and int(rate[1]) != self._format.sample_rate_hz):
            raise STAGE.failure(
                "provider_malformed", f"the provider speaks {blob.mime_type[:40]!r}, not {self._format}"
            )
        if turn.item_id is None:
            self._items += 1
            turn.item_id = f"item_{self._items}"
        # The letters of base 64 for addresses are as good.
        encoded = blob.data.replace("-", "+").replace("_", "/")
        for frame in self._received.add("", turn.item_id, 0, encoded):
            yield from turn.tell(AnswerAudio(UNNAMED, turn.item_id, frame))

    def _transcript(self, transcription: Transcription) -> Iterator[Told]:
        """Of what is said; before its audio or behind it."""
        while len(self._open) > 1 and (self._open[0].is_lost or self._open[0].awaits_tools):
            yield from self._finish()
        if not self._open:
            return
        front = self._open[0]
        if transcription.text:
            front.comes()
            yield from front.tell(AnswerText(UNNAMED, transcription.text))
        if transcription.finished:
            front.is_written = True
            if front.is_generated:
                yield from front.end()

    def usage(self, usage: Usage) -> Iterator[Told]:
        """Rides on any message; also behind the end of an answer."""
        front = self._open[0] if self._open else None
        if front is not None and front.answer_id is not None:
            yield AnswerUsage(front.answer_id, TokenUsage(usage.prompt_token_count, usage.output_token_count))

    # -- its calls -------------------------------------------------------------------------------------------------

    def calls(self, calls: list[FunctionCall]) -> Iterator[Told]:
        """Complete ones. Calls that nobody wants are answered at once: the model waits for them."""
        yield from self._speaking()
        front = self._open[0] if self._open else None
        if front is not None:
            front.comes()
        if front is None or not (front.is_listened_to or (front.is_wanted and front.awaits_tools)):
            if front is None or front.interrupted_at is None:
                yield from self._refuse(front, calls)
            return
        complaint, told = read_calls(calls)
        if complaint is not None:
            yield from front.fail(*complaint)
            front.drop()
            yield from self._refuse(front, calls)
            return
        front.open_calls.update((call.call_id, call.name) for call in told)
        for call in told:
            yield from front.tell(call)
        front.awaits_tools = front.awaits_tools or bool(told)
        yield from front.end(awaits_tools=True) if told else ()

    def _refuse(self, turn: Turn | None, calls: list[FunctionCall]) -> Iterator[Told]:
        """The model goes on then, and nothing has come of that yet."""
        if turn is not None:
            turn.began, turn.asked_at = False, self._clock()
        yield from refuse(calls)

    def withdraw(self, ids: Iterable[str]) -> Iterator[Told]:
        """The user interrupted: the outcomes of these are not wanted."""
        withdrawn = [call_id for call_id in ids if any(turn.take_back(call_id) for turn in self._open)]
        if withdrawn:
            yield ToolCallsWithdrawn(tuple(withdrawn))

    # -- its end ---------------------------------------------------------------------------------------------------

    def interrupted(self) -> Iterator[Told]:
        """`interrupted`: no end of the generation will be told of this turn, only the end of the turn."""
        front = self._open[0] if self._open else None
        if front is None or front.was_interrupted:
            return
        front.comes()
        front.was_interrupted = True
        if front.interrupted_at is None and front.is_wanted:
            yield ProviderInterruption()
        message = "the provider interrupted the answer, which nobody here asked for"
        yield from front.fail("answer_cut_off", message, retryable=True)
        front.drop()

    def generated(self) -> Iterator[Told]:
        """`generationComplete`: everything of the answer came, but perhaps some of its text."""
        yield from self._speaking()
        front = self._open[0] if self._open else None
        if front is None or front.awaits_tools:
            return
        front.comes()
        front.is_generated = True
        if front.is_written:
            yield from front.end()
        elif front.is_listened_to:
            front.ends_at = self._clock() + WRITTEN_WITHIN_S

    def complete(self, content: ServerContent) -> Iterator[Told]:
        """`turnComplete`, or the status of the interaction beside it."""
        front = self._open[0] if self._open else None
        if front is None:
            return
        if not content.is_complete:
            if content.turn_complete and not front.was_interrupted:
                # It is in progress: more comes of the same turn.
                front.is_generated, front.ends_at = False, None
            return
        if front.interrupted_at is None and (front.awaits_tools or (front.owes_end and not front.began)):
            # The end of the part with the calls, not of the answer to them.
            front.calls_ended, front.owes_end = front.awaits_tools, False
            return
        if front.is_listened_to and not front.began and content.turn_complete_reason in _NORMAL_REASONS:
            front.is_doubted, front.ends_at = True, self._clock() + BELIEVED_AFTER_S
            return
        yield from self._finish(content.turn_complete_reason)

    def next_due(self) -> float | None:
        """When an answer is over although its last text did not come."""
        return min((turn.ends_at for turn in self._open if turn.ends_at is not None), default=None)

    def do_what_is_due(self) -> Iterator[Told]:
        for turn in [*self._open]:
            if turn.ends_at is not None and self._clock() >= turn.ends_at:
                yield from turn.end()
                if turn.is_doubted:
                    self._open.remove(turn)
                    self.ended += 1
