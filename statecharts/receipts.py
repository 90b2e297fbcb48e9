"""Receipts: what was really heard of a reply, however its stream ended.

Positions only grow, and the first rendered sample begins the playback of a reply. Every reply gets one delivery record.
A stream that was told to stop leaves Playback at once and waits in `Context.stopping`, beside the present one, until
its receipt comes or its timer fires; without a receipt the played position is unknown: not zero, and not everything.
"""

from __future__ import annotations

from dataclasses import replace

from .actions import CancelSynthesis
from .context import Output, TimerKind
from .facts import (
    AudioEnded,
    PlaybackDrained,
    PrebufferFilled,
    SpeakerFailed,
    StreamFact,
    SynthesisFailed,
)
from .generation import GenerationRules
from .published import (
    PlaybackBegan,
    PlaybackCut,
    PlaybackFinished,
    StreamError,
)
from .rules import confirmed_units
from .values import DeliveryStatus, Outcome, PositionSource


class ReceiptRules(GenerationRules):
    """Positions, ends and receipts, for the lines of `playback.py`."""

    def is_awaited_receipt(self) -> bool:
        return any(output.stream_id == self.stream_in_question for output in self.context.stopping)

    def receipts_are_awaited(self) -> bool:
        return bool(self.context.stopping)

    @property
    def stream_in_question(self) -> int:
        if self.fired is not None:
            return int(self.fired.key)
        fact = self.fact
        assert isinstance(fact, StreamFact)
        return fact.stream_id

    def settle_receipt(self) -> None:
        """Of the stop, or of a drain that the stop did not overtake."""
        fact = self.fact
        assert isinstance(fact, StreamFact)
        output, reply = self._awaited(fact.stream_id), self.context.response
        is_of_a_failed_reply = (
            reply is not None and reply.response_id == output.response_id and reply.outcome is Outcome.FAILED
        )
        if isinstance(fact, PlaybackDrained) and not output.failed and not is_of_a_failed_reply:
            told = fact.played_samples is not None
            played, source = (
                (fact.played_samples, fact.source) if told else (output.end_sample, PositionSource.ESTIMATED)
            )
            self._settle(output, DeliveryStatus.DELIVERED, played, source, fact.confidence)
        elif fact.played_samples is None:
            self._settle_unknown(output)
        else:
            self._settle(output, DeliveryStatus.INTERRUPTED, fact.played_samples, fact.source, fact.confidence)

    def settle_without_receipt(self) -> None:
        self._settle_unknown(self._awaited(self.stream_in_question))

    def settle_all_without_receipt(self) -> None:
        for output in self.context.stopping:
            self._settle_unknown(output)

    def _awaited(self, stream_id: int) -> Output:
        return next(known for known in self.context.stopping if known.stream_id == stream_id)

    def _settle_unknown(self, output: Output) -> None:
        """Nobody can tell where it stopped; what earlier receipts confirmed stays confirmed."""
        self._settle(output, DeliveryStatus.UNKNOWN, None, PositionSource.UNKNOWN, 0.0)

    def _settle(
        self, output: Output, status: DeliveryStatus, played: int | None, source: PositionSource, confidence: float
    ) -> None:
        self.context.stopping = tuple(known for known in self.context.stopping if known is not output)
        self.cancel_timer(TimerKind.STOP_RECEIPT, str(output.stream_id))
        units = confirmed_units(output.units, output.played_samples if played is None else played)
        self.record_delivery(
            output.response_id, output.position, status, units, played, source, confidence, output.announcement
        )
        self.settle()

    def take_position(self) -> None:
        """Positions only grow; the first rendered sample begins the playback of the reply."""
        fact, output = self.fact, self.output
        assert isinstance(fact, StreamFact)
        told, source = fact.played_samples, fact.source
        if told is None and isinstance(fact, PlaybackDrained):
            told, source = output.end_sample, PositionSource.ESTIMATED
        known = output.played_samples
        played = known if told is None else max(told, known or 0)
        self.change_output(
            accepted_samples=max(output.accepted_samples, fact.accepted_samples),
            submitted_samples=max(output.submitted_samples, fact.submitted_samples),
            played_samples=played,
            source=output.source if told is None else source,
            confidence=output.confidence if told is None else fact.confidence,
        )
        begins = bool(played) or (told is None and isinstance(fact, PrebufferFilled))
        if begins and not output.started:
            position = self.next_position()
            self.cancel_timer(TimerKind.HOLD)
            self.change_output(started=True, held=False, position=position)
            self.change_reply(heard=True, position=position)
            self.publish(PlaybackBegan(), reply=self.reply, stream_id=output.stream_id)

    def end_unheard(self) -> None:
        """There was nothing to say, or nothing could be said."""
        fact = self.fact
        self.cancel_timer(TimerKind.SPEECH)
        if isinstance(fact, AudioEnded) and self.reply.outcome is not Outcome.FAILED:
            self.record_unheard(DeliveryStatus.TEXT_ONLY)
        else:
            if isinstance(fact, SynthesisFailed):
                self.publish(StreamError(fact.error), reply=self.reply)
            else:
                self.emit(CancelSynthesis(self.stamp, self.reply.response_id, self.reply.output_epoch + 1))
            self.record_unheard(DeliveryStatus.FAILED)
        self.settle()

    def deliver(self) -> None:
        """Rendered to its end."""
        self.take_position()
        output = self.output
        complete = not output.failed and self.reply.outcome is not Outcome.FAILED
        status = DeliveryStatus.DELIVERED if complete else DeliveryStatus.FAILED
        self.end_output(output, status, output.played_samples)
        self.publish(PlaybackFinished(output.played_samples), stream_id=output.stream_id)

    def stop_output(self) -> None:
        """Told to stop; the receipt will tell what was heard."""
        output = replace(self.output, units=self.reply.units)
        self.context.stopping = (*self.context.stopping, output)
        self.context.output = None
        self.cancel_timers(TimerKind.PLAYBACK, TimerKind.HOLD, TimerKind.FALSE_ALARM)
        self.start_timer(TimerKind.STOP_RECEIPT, self.policies.playback.stop_receipt_ms, str(output.stream_id))
        self.publish(PlaybackCut(self.invalidation or "stopped"), stream_id=output.stream_id)

    def break_output(self) -> None:
        """The speaker ended the stream, not we: what it confirmed so far is all that is known."""
        fact, output = self.fact, self.output
        if isinstance(fact, StreamFact):
            self.take_position()
            output = self.output
        if isinstance(fact, SpeakerFailed):
            self.publish(StreamError(fact.error), reply=self.reply, stream_id=output.stream_id)
        self.end_output(output, DeliveryStatus.FAILED, output.played_samples)
        self.publish(PlaybackCut("speaker_failed"), stream_id=output.stream_id)

    def end_output(self, output: Output, status: DeliveryStatus, played_samples: int | None) -> None:
        self.context.output = None
        self.cancel_timers(TimerKind.PLAYBACK, TimerKind.HOLD, TimerKind.FALSE_ALARM)
        units = output.units or self.reply.units
        self.record_delivery(
            output.response_id,
            output.position,
            status,
            confirmed_units(units, played_samples),
            played_samples,
            output.source,
            output.confidence,
            output.announcement,
        )
        self.settle()
