"""Playback: what the speaker is doing.

Theory of operation. Accepted by the service, submitted to the hardware and rendered are three numbers. `playing` is
claimed only after a sample was rendered. A stop does not wait for anything: the stream goes to `stopped` at once and
its receipt, which tells what was really heard, may come while the next stream is already playing - so streams that
wait for their receipt are kept beside the present one, each bounded by a timer. Without a receipt the played position is
`unknown`: not zero, and not everything.

Every reply gets exactly one delivery record, and only whole units of speech that a receipt confirms count as heard. The
first audio of a reply that arrives while the user has the floor is held, for a bounded time. A gap in synthesis re-buffers
and goes on by itself.
"""

# ruff: noqa: E501 - transition lines are the rows of a table

from __future__ import annotations

from dataclasses import replace

from .actions import CancelSynthesis, FinishOutput, OpenOutput, PausePlayback, ReleaseOutput, ResumePlayback
from .context import Output, TimerKind, UnitRange
from .declaration import Compound, State
from .facts import (
    AudioEnded,
    AudioStarted,
    OutputFact,
    PlaybackDrained,
    PlaybackStopped,
    PrebufferFilled,
    SpeakerFailed,
    SpeechUnitSynthesized,
    StreamFact,
    SynthesisFailed,
)
from .generation import GenerationRules
from .published import (
    AudioBegan,
    AudioFinished,
    PlaybackBegan,
    PlaybackCut,
    PlaybackFinished,
    PlaybackMoved,
    PlaybackPaused,
    PlaybackResumed,
    PlaybackStarved,
    StreamError,
)
from .rules import confirmed_units
from .values import DeliveryStatus, Outcome, PositionSource

STOPS = "interrupted generation_cancelled connection_lost session_expiring close_requested"
BREAKS = "speaker_failed playback_stalled"


class Playback(Compound, name="Playback"):
    playback_idle = State("idle", initial=True)
    buffering = State("buffering")
    playing = State("playing")
    paused = State("paused")
    draining = State("draining")
    drained = State("drained")
    stopped = State("stopped")

    # fmt: off
    buffering.from_(playback_idle, drained, stopped, event="audio_started", cond="belongs_to_the_reply", on="open_output")
    playback_idle.to(None, event="audio_ended synthesis_failed speech_stalled", cond="nothing_will_be_heard", on="end_unheard")
    drained.to(None, event="audio_ended synthesis_failed speech_stalled", cond="nothing_will_be_heard", on="end_unheard")
    stopped.to(None, event="audio_ended synthesis_failed speech_stalled", cond="nothing_will_be_heard", on="end_unheard")
    playing.from_(buffering, event="prebuffer_filled", cond=["is_this_stream", "something_was_rendered"], on="note_rendering")
    buffering.to(None, event="floor_released hold_elapsed", cond="is_held", on="release_output")
    draining.to(None, event="floor_released hold_elapsed", cond="is_held", on="release_output")
    buffering.from_(playing, event="underrun", cond=["is_this_stream", "more_will_come"], on="note_underrun")
    draining.from_(buffering, playing, event="audio_ended", cond="is_this_output", on="finish_output")
    paused.to(None, event="audio_ended", cond="is_this_output", on="finish_output")
    draining.from_(buffering, playing, event="synthesis_failed", cond="is_this_output", on="finish_short")
    paused.to(None, event="synthesis_failed", cond="is_this_output", on="finish_short")
    drained.from_(draining, event="playback_drained", cond="is_this_stream", on="deliver")
    stopped.from_(buffering, playing, draining, paused, event=STOPS, on="stop_output")
    stopped.from_(buffering, playing, draining, event=BREAKS, cond="output_is_broken", on="break_output")
    stopped.from_(paused, event="speaker_failed", cond="output_is_broken", on="break_output")
    stopped.from_(buffering, playing, draining, paused, event="playback_stopped", cond="stopped_by_itself", on="break_output")
    buffering.to(None, event="playback_stalled", unless="output_is_broken", on="watch_output")
    draining.to(None, event="playback_stalled", unless="output_is_broken", on="watch_output")
    paused.from_(buffering, playing, event="interruption_suspected", on="pause_output")
    draining.from_(paused, event="interruption_rejected", cond="end_is_known", on="resume_output")
    playing.from_(paused, event="interruption_rejected", cond="was_rendering", on="resume_output")
    buffering.from_(paused, event="interruption_rejected", on="resume_output")
    buffering.to(None, event="playback_progressed", cond="is_this_stream", on="note_progress_of_output")
    playing.to(None, event="playback_progressed prebuffer_filled", cond="is_this_stream", on="note_progress_of_output")
    paused.to(None, event="playback_progressed underrun", cond="is_this_stream", on="note_progress_of_output")
    draining.to(None, event="playback_progressed prebuffer_filled underrun", cond="is_this_stream", on="note_progress_of_output")
    # fmt: on


ANYWHERE = (
    ("speech_unit_synthesized", "is_of_the_reply", "note_unit"),
    ("playback_stopped", "is_awaited_receipt", "settle_receipt"),
    ("playback_drained", "is_awaited_receipt", "settle_receipt"),
    ("stop_receipt_timed_out", "is_awaited_receipt", "settle_without_receipt"),
    ("session_closed", "receipts_are_awaited", "settle_all_without_receipt"),
)
"""What Playback does in whatever state it is: event, guard, action."""

for _event, _guard, _action in ANYWHERE:
    Playback.to(None, event=_event, cond=_guard, on=_action)


class PlaybackRules(GenerationRules):
    """Guards and actions of the Playback region."""

    # -- guards ----------------------------------------------------------------------------------------------------

    def is_of_the_reply(self) -> bool:
        """Of the reply that may still be heard."""
        fact, reply = self.fact, self.context.response
        return (
            isinstance(fact, OutputFact)
            and reply is not None
            and fact.output_epoch == self.context.output_epoch == reply.output_epoch
            and reply.delivery is None
        )

    def belongs_to_the_reply(self) -> bool:
        return self.is_of_the_reply() and self.is_in("ready") and not self.is_in("cancelling")

    def nothing_will_be_heard(self) -> bool:
        """The reply ends without ever having had an output."""
        reply = self.context.response
        if self.fired is not None:
            return reply is not None and reply.delivery is None and reply.output_epoch == self.context.output_epoch
        return self.is_of_the_reply()

    def is_this_output(self) -> bool:
        fact = self.fact
        return isinstance(fact, OutputFact) and fact.output_epoch == self.output.output_epoch

    def is_this_stream(self) -> bool:
        fact, output = self.fact, self.context.output
        return isinstance(fact, StreamFact) and output is not None and fact.stream_id == output.stream_id

    def something_was_rendered(self) -> bool:
        """More than before, or nobody can tell how much: `playing` is never claimed for audio that nobody hears."""
        fact = self.fact
        assert isinstance(fact, StreamFact)
        return fact.played_samples is None or fact.played_samples > (self.output.played_samples or 0)

    def is_held(self) -> bool:
        return self.output.held

    def more_will_come(self) -> bool:
        return self.output.end_sample is None

    def end_is_known(self) -> bool:
        return self.output.end_sample is not None

    def was_rendering(self) -> bool:
        """It was playing, not waiting for more audio, when it was paused."""
        return self.output.rendering

    def output_is_broken(self) -> bool:
        """The speaker failed, or made no progress although it had something to play."""
        if not self.reply_is_in_output:
            return False
        if isinstance(self.fact, SpeakerFailed):
            return self.is_this_output()
        waits_for_the_model = self.is_in("buffering") and self.is_in("waiting", "streaming", "tools")
        return not waits_for_the_model and not self.is_in("paused") and not self.output.held

    def stopped_by_itself(self) -> bool:
        """A receipt of a stop that nobody asked for."""
        return isinstance(self.fact, PlaybackStopped) and self.reply_is_in_output and self.is_this_stream()

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

    # -- beginning -------------------------------------------------------------------------------------------------

    def open_output(self) -> None:
        fact, reply = self.fact, self.reply
        assert isinstance(fact, AudioStarted)
        self.context.streams += 1
        held = self.is_in("speech", "hypothesis") and self.policies.turn.max_hold_ms > 0
        output = Output(self.context.streams, reply.output_epoch, reply.response_id, reply.position, held=held)
        self.context.output = output
        self.cancel_timer(TimerKind.SPEECH)
        if held:
            self.start_timer(TimerKind.HOLD, self.policies.turn.max_hold_ms)
        self.watch_output()
        self.emit(
            OpenOutput(
                self.stamp,
                output.stream_id,
                output.output_epoch,
                output.response_id,
                fact.sample_rate_hz,
                fact.channels,
                self.policies.playback.prebuffer_ms,
                held,
            )
        )
        self.publish(AudioBegan(fact.sample_rate_hz, fact.channels, held), reply=reply, stream_id=output.stream_id)

    def release_output(self) -> None:
        self.change_output(held=False)
        self.cancel_timer(TimerKind.HOLD)
        self.watch_output()
        self.emit(ReleaseOutput(self.stamp, self.output.stream_id))

    def watch_output(self) -> None:
        """An active stream that shows no progress for this long is broken."""
        self.start_timer(TimerKind.PLAYBACK, self.policies.playback.stall_ms)

    # -- going on --------------------------------------------------------------------------------------------------

    def note_rendering(self) -> None:
        self._take_position()
        self.change_output(rendering=True)
        self.watch_output()

    def note_progress_of_output(self) -> None:
        fact, before = self.fact, self.output.played_samples
        assert isinstance(fact, StreamFact)
        self._take_position()
        output = self.output
        if fact.played_samples is None or output.played_samples != before or self.is_in("paused"):
            self.watch_output()
        self.publish(
            PlaybackMoved(output.accepted_samples, output.submitted_samples, output.played_samples, output.source),
            stream_id=output.stream_id,
        )

    def _take_position(self) -> None:
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

    def note_unit(self) -> None:
        fact = self.fact
        assert isinstance(fact, SpeechUnitSynthesized)
        if any(unit.unit_index == fact.unit_index for unit in self.reply.units):
            return
        unit = UnitRange(fact.unit_index, fact.start_sample, fact.end_sample)
        self.change_reply(units=(*self.reply.units, unit))

    def note_underrun(self) -> None:
        self._take_position()
        self.change_output(underruns=self.output.underruns + 1, rendering=False)
        self.watch_output()
        self.publish(PlaybackStarved(self.output.underruns), stream_id=self.output.stream_id)

    def pause_output(self) -> None:
        self.emit(PausePlayback(self.stamp, self.output.stream_id))
        self.publish(PlaybackPaused(), stream_id=self.output.stream_id)

    def resume_output(self) -> None:
        """Where it stopped, once; never from the beginning."""
        self.watch_output()
        self.emit(ResumePlayback(self.stamp, self.output.stream_id))
        self.publish(PlaybackResumed(), stream_id=self.output.stream_id)

    # -- ending ----------------------------------------------------------------------------------------------------

    def finish_output(self) -> None:
        fact = self.fact
        assert isinstance(fact, AudioEnded)
        self._finish_at(fact.end_sample)

    def finish_short(self) -> None:
        """Synthesis broke off: what exists is played, what does not is never claimed."""
        fact = self.fact
        assert isinstance(fact, SynthesisFailed)
        self.change_output(failed=True)
        self.publish(StreamError(fact.error), reply=self.reply, stream_id=self.output.stream_id)
        self._finish_at(fact.end_sample)

    def _finish_at(self, end_sample: int) -> None:
        self.change_output(end_sample=end_sample)
        self.watch_output()
        self.emit(FinishOutput(self.stamp, self.output.stream_id, end_sample))
        self.publish(AudioFinished(end_sample), reply=self.reply, stream_id=self.output.stream_id)

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
        self._take_position()
        output = self.output
        complete = not output.failed and self.reply.outcome is not Outcome.FAILED
        status = DeliveryStatus.DELIVERED if complete else DeliveryStatus.FAILED
        self._end_output(output, status, output.played_samples)
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
            self._take_position()
            output = self.output
        if isinstance(fact, SpeakerFailed):
            self.publish(StreamError(fact.error), reply=self.reply, stream_id=output.stream_id)
        self._end_output(output, DeliveryStatus.FAILED, output.played_samples)
        self.publish(PlaybackCut("speaker_failed"), stream_id=output.stream_id)

    def _end_output(self, output: Output, status: DeliveryStatus, played_samples: int | None) -> None:
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
        )
        self.settle()

    # -- receipts --------------------------------------------------------------------------------------------------

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
        self.record_delivery(output.response_id, output.position, status, units, played, source, confidence)
        self.settle()
