"""Scripts: a conversation told in short sentences, on a virtual clock.

    script = ScriptedConversation().opened()
    script.user_says("tell me a story")
    script.reply_is_playing(unit_ends=(16_000, 32_000), played_samples=20_000)
    script.user_starts_speaking()
    script.hears("stop it")
    script.record.assert_silenced_before(CancelGeneration)

The script plays the engines and adapters: it knows identities only from the actions it was handed, keeps the timers,
and reports each as it falls due. Time moves only in `wait`. Every identity can be given, to tell a late fact.
"""

from __future__ import annotations

from typing import Self, TypedDict, Unpack

from ..actions import Action, StartAnnouncement, StartGeneration
from ..errors import ScopedError
from ..facts import (
    AudioEnded,
    AudioStarted,
    CancelAcknowledged,
    GenerationCompleted,
    GenerationFailed,
    GenerationProgressed,
    OutputStarted,
    PlaybackDrained,
    PlaybackProgressed,
    PlaybackStopped,
    PrebufferFilled,
    SayRequested,
    SayWithdrawn,
    SpeakerFailed,
    SpeechUnitSynthesized,
    StepCompleted,
    SynthesisFailed,
    ToolCallReady,
    ToolFinished,
    Underrun,
    UsageReported,
)
from ..values import PositionSource, ToolStatus, Usage
from .clockwork import scripted_error
from .user import UserScript


class CallDetails(TypedDict, total=False):
    """What may be wrong with a tool call, or special about it."""

    complete: bool
    valid: bool
    approved: bool
    background: bool


class ScriptedConversation(UserScript):
    """A whole conversation. Model facts are of the latest attempt, audio of its epoch, receipts of the last stream."""

    def opened(self) -> Self:
        """Open and connect, and go on from there."""
        self.opens()
        self.connects()
        return self

    # -- model -----------------------------------------------------------------------------------------------------

    def model_starts_writing(self, attempt_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(OutputStarted(at=self.now_ns, attempt_id=attempt_id or self.generation.attempt_id))

    def model_goes_on(self, attempt_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(GenerationProgressed(at=self.now_ns, attempt_id=attempt_id or self.generation.attempt_id))

    def model_calls_tool(
        self, call_id: str, attempt_id: str | None = None, **details: Unpack[CallDetails]
    ) -> tuple[Action, ...]:
        attempt_id = attempt_id or self.generation.attempt_id
        return self.tell(ToolCallReady(at=self.now_ns, attempt_id=attempt_id, call_id=call_id, name="tool", **details))

    def model_waits_for_tools(self, attempt_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(StepCompleted(at=self.now_ns, attempt_id=attempt_id or self.generation.attempt_id))

    def tool_ends(self, call_id: str, status: ToolStatus = ToolStatus.COMPLETED) -> tuple[Action, ...]:
        return self.tell(ToolFinished(at=self.now_ns, call_id=call_id, status=status))

    def model_finishes(self, attempt_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(GenerationCompleted(at=self.now_ns, attempt_id=attempt_id or self.generation.attempt_id))

    def model_fails(self, error: ScopedError | None = None, attempt_id: str | None = None) -> tuple[Action, ...]:
        attempt_id = attempt_id or self.generation.attempt_id
        error = error or scripted_error("model_lost")
        return self.tell(GenerationFailed(at=self.now_ns, attempt_id=attempt_id, error=error))

    def model_acknowledges_cancel(self, attempt_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(CancelAcknowledged(at=self.now_ns, attempt_id=attempt_id or self.generation.attempt_id))

    def usage_is_reported(self, usage: Usage, attempt_id: str | None = None) -> tuple[Action, ...]:
        attempt_id = attempt_id or self.generation.attempt_id
        return self.tell(UsageReported(at=self.now_ns, attempt_id=attempt_id, usage=usage))

    # -- announcements ---------------------------------------------------------------------------------------------

    def is_asked_to_say(
        self, text: str, *, interrupts: bool = False, interruptible: bool = True, recorded: bool = True
    ) -> int:
        """Something is to be said as it is; returns its number."""
        number = self.conversation.context.last_announcement + 1
        self.tell(
            SayRequested(
                at=self.now_ns,
                number=number,
                text=text,
                interrupts=interrupts,
                interruptible=interruptible,
                recorded=recorded,
            )
        )
        return number

    def announcement_is_withdrawn(self, number: int) -> tuple[Action, ...]:
        return self.tell(SayWithdrawn(at=self.now_ns, number=number))

    # -- synthesis -------------------------------------------------------------------------------------------------

    def audio_starts(self, output_epoch: int | None = None) -> tuple[Action, ...]:
        epoch = self._epoch(output_epoch)
        return self.tell(AudioStarted(at=self.now_ns, output_epoch=epoch, sample_rate_hz=16_000))

    def unit_is_synthesized(
        self, unit_index: int, start_sample: int, end_sample: int, output_epoch: int | None = None
    ) -> tuple[Action, ...]:
        return self.tell(
            SpeechUnitSynthesized(
                at=self.now_ns,
                output_epoch=self._epoch(output_epoch),
                unit_index=unit_index,
                start_sample=start_sample,
                end_sample=end_sample,
            )
        )

    def audio_ends(self, end_sample: int, output_epoch: int | None = None) -> tuple[Action, ...]:
        return self.tell(AudioEnded(at=self.now_ns, output_epoch=self._epoch(output_epoch), end_sample=end_sample))

    def synthesis_fails(self, end_sample: int, output_epoch: int | None = None) -> tuple[Action, ...]:
        epoch = self._epoch(output_epoch)
        error = scripted_error("voice_lost")
        return self.tell(SynthesisFailed(at=self.now_ns, output_epoch=epoch, end_sample=end_sample, error=error))

    def frame(self, label: str, output_epoch: int | None = None) -> None:
        """Audio of that epoch reaches the speaker, past the chart."""
        self.ear.receive(label, self._epoch(output_epoch))

    # -- speaker ---------------------------------------------------------------------------------------------------

    def sound_begins(self, played_samples: int | None = 1, stream_id: int | None = None) -> tuple[Action, ...]:
        """The prebuffer is full and the first sample was rendered."""
        return self.tell(PrebufferFilled(**self._receipt(played_samples, stream_id)))

    def speaker_has_played(
        self,
        played_samples: int | None,
        *,
        accepted_samples: int = 0,
        submitted_samples: int = 0,
        stream_id: int | None = None,
    ) -> tuple[Action, ...]:
        receipt = self._receipt(played_samples, stream_id)
        return self.tell(
            PlaybackProgressed(**receipt, accepted_samples=accepted_samples, submitted_samples=submitted_samples)
        )

    def speaker_runs_dry(self, played_samples: int | None, stream_id: int | None = None) -> tuple[Action, ...]:
        return self.tell(Underrun(**self._receipt(played_samples, stream_id)))

    def speaker_drains(self, played_samples: int | None, stream_id: int | None = None) -> tuple[Action, ...]:
        return self.tell(PlaybackDrained(**self._receipt(played_samples, stream_id)))

    def speaker_has_stopped(
        self,
        played_samples: int | None,
        stream_id: int | None = None,
        *,
        source: PositionSource = PositionSource.MEASURED,
        confidence: float = 1.0,
    ) -> tuple[Action, ...]:
        """The receipt of a stop."""
        receipt = self._receipt(played_samples, stream_id)
        return self.tell(PlaybackStopped(**receipt, source=source, confidence=confidence))

    def speaker_breaks(self, output_epoch: int | None = None) -> tuple[Action, ...]:
        epoch = self._epoch(output_epoch)
        return self.tell(SpeakerFailed(at=self.now_ns, output_epoch=epoch, error=scripted_error("speaker_lost")))

    # -- whole stretches -------------------------------------------------------------------------------------------

    def reply_is_playing(self, unit_ends: tuple[int, ...] = (), played_samples: int = 1) -> None:
        """What was asked for is being written, synthesised up to the last unit's end, and played so far."""
        if isinstance(self._reply, StartGeneration):
            self.model_starts_writing()
        self.audio_starts()
        for index, end_sample in enumerate(unit_ends):
            self.unit_is_synthesized(index, unit_ends[index - 1] if index else 0, end_sample)
        self.sound_begins()
        if played_samples > 1:
            self.speaker_has_played(played_samples)

    def reply_is_drained(self, end_sample: int) -> None:
        """Written, spoken and heard to its end."""
        if isinstance(self._reply, StartGeneration):
            self.model_finishes()
        self.audio_ends(end_sample)
        self.speaker_drains(end_sample)

    def _epoch(self, output_epoch: int | None) -> int:
        return self._reply.output_epoch if output_epoch is None else output_epoch

    @property
    def _reply(self) -> StartGeneration | StartAnnouncement:
        """The latest one that was asked for."""
        return [a for a in self.record.actions if isinstance(a, StartGeneration | StartAnnouncement)][-1]

    def _receipt(self, played_samples: int | None, stream_id: int | None) -> _Receipt:
        streams = {stream.stream_id: stream.output_epoch for stream in self.streams}
        stream_id = self.stream.stream_id if stream_id is None else stream_id
        return {
            "at": self.now_ns,
            "output_epoch": streams.get(stream_id, 0),
            "stream_id": stream_id,
            "played_samples": played_samples,
        }


class _Receipt(TypedDict):
    at: int
    output_epoch: int
    stream_id: int
    played_samples: int | None
