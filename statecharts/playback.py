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

from .actions import FinishOutput, OpenOutput, PausePlayback, ReleaseOutput, ResumePlayback
from .context import Output, TimerKind, UnitRange
from .declaration import Compound, State
from .facts import (
    AudioEnded,
    AudioStarted,
    OutputFact,
    PlaybackStopped,
    SpeakerFailed,
    SpeechUnitSynthesized,
    StreamFact,
    SynthesisFailed,
)
from .published import (
    AudioBegan,
    AudioFinished,
    PlaybackMoved,
    PlaybackPaused,
    PlaybackResumed,
    PlaybackStarved,
    StreamError,
)
from .receipts import ReceiptRules

STOPS = "interrupted generation_cancelled connection_lost session_renewed close_requested"
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


class PlaybackRules(ReceiptRules):
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

    # -- beginning -------------------------------------------------------------------------------------------------

    def open_output(self) -> None:
        fact, reply = self.fact, self.reply
        assert isinstance(fact, AudioStarted)
        self.context.streams += 1
        held = self.is_in("speech", "hypothesis") and self.policies.turn.max_hold_ms > 0
        output = Output(
            self.context.streams,
            reply.output_epoch,
            reply.response_id,
            reply.position,
            reply.announcement,
            held=held,
        )
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
        self.take_position()
        self.change_output(rendering=True)
        self.watch_output()

    def note_progress_of_output(self) -> None:
        fact, before = self.fact, self.output.played_samples
        assert isinstance(fact, StreamFact)
        self.take_position()
        output = self.output
        if fact.played_samples is None or output.played_samples != before or self.is_in("paused"):
            self.watch_output()
        self.publish(
            PlaybackMoved(output.accepted_samples, output.submitted_samples, output.played_samples, output.source),
            stream_id=output.stream_id,
        )

    def note_unit(self) -> None:
        fact = self.fact
        assert isinstance(fact, SpeechUnitSynthesized)
        if any(unit.unit_index == fact.unit_index for unit in self.reply.units):
            return
        unit = UnitRange(fact.unit_index, fact.start_sample, fact.end_sample)
        self.change_reply(units=(*self.reply.units, unit))

    def note_underrun(self) -> None:
        self.take_position()
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
