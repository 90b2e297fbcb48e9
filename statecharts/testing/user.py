"""What a script can say about the user: speech, recognition, typing, buttons."""

from __future__ import annotations

from ..actions import Action
from ..facts import (
    ButtonPressed,
    ClientCancelled,
    InputDiscontinuity,
    ProviderInterrupted,
    RecognitionClosed,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    SpeechStarted,
    TextSubmitted,
    TranscriptUpdated,
    TurnCancelled,
    TurnEnded,
)
from ..values import TurnAuthority
from .clockwork import Clockwork, scripted_error


class UserScript(Clockwork):
    """Facts of the user's side. Without a `recognition_id` they are of the latest recognition."""

    _revision = 0

    def user_starts_speaking(
        self, sample: int | None = None, authority: TurnAuthority | None = None
    ) -> tuple[Action, ...]:
        """Voice activity, or the talk button where the configured authority is manual."""
        if authority is None:
            manual = self.conversation.policies.turn.authority is TurnAuthority.MANUAL
            authority = TurnAuthority.MANUAL if manual else TurnAuthority.VAD
        return self.tell(SpeechStarted(at=self.now_ns, authority=authority, sample=sample))

    def user_keeps_speaking(self, speech_ms: int) -> tuple[Action, ...]:
        return self.tell(SpeechProgressed(at=self.now_ns, speech_ms=speech_ms))

    def hears(
        self, text: str, segment: str = "1", *, revision: int | None = None, recognition_id: str | None = None
    ) -> tuple[Action, ...]:
        """A hypothesis; newer than all before unless a `revision` is given."""
        if revision is None:
            self._revision += 1
            revision = self._revision
        return self.tell(
            TranscriptUpdated(
                at=self.now_ns,
                recognition_id=recognition_id or self.recognition_id,
                segment_id=segment,
                revision=revision,
                text=text,
            )
        )

    def understands(
        self,
        text: str,
        segment: str | None = "1",
        *,
        recognition_id: str | None = None,
        samples: tuple[int, int] | None = None,
    ) -> tuple[Action, ...]:
        """A segment is final."""
        self._revision += 1
        start, end = samples or (None, None)
        return self.tell(
            SegmentFinalized(
                at=self.now_ns,
                recognition_id=recognition_id or self.recognition_id,
                segment_id=segment,
                revision=self._revision,
                text=text,
                start_sample=start,
                end_sample=end,
            )
        )

    def recognition_ends(self, recognition_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(RecognitionClosed(at=self.now_ns, recognition_id=recognition_id or self.recognition_id))

    def recognition_fails(self, recorded_ms: int = 0, recognition_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(
            RecognitionFailed(
                at=self.now_ns,
                recognition_id=recognition_id or self.recognition_id,
                error=scripted_error("recognizer_lost"),
                recorded_ms=recorded_ms,
            )
        )

    def user_stops_speaking(self, authority: TurnAuthority | None = None) -> tuple[Action, ...]:
        """The configured authority, or the given one, says that the turn is over."""
        authority = authority or self.conversation.policies.turn.authority
        return self.tell(TurnEnded(at=self.now_ns, authority=authority))

    def user_says(self, text: str, segment: str = "1") -> None:
        """A whole utterance, recognised to its end."""
        self.user_starts_speaking()
        self.finishes_saying(text, segment)

    def finishes_saying(self, text: str, segment: str = "1") -> None:
        """The rest of an utterance that has begun."""
        self.understands(text, segment)
        self.user_stops_speaking()
        self.recognition_ends()

    def makes_a_noise(self) -> None:
        """Voice activity in which nothing is recognised: a cough."""
        self.user_starts_speaking()
        self.user_stops_speaking()
        self.recognition_ends()

    def user_clears(self) -> tuple[Action, ...]:
        return self.tell(TurnCancelled(at=self.now_ns))

    def audio_is_lost(self, lost_ms: int) -> tuple[Action, ...]:
        return self.tell(InputDiscontinuity(at=self.now_ns, lost_ms=lost_ms))

    def user_types(self, text: str) -> tuple[Action, ...]:
        return self.tell(TextSubmitted(at=self.now_ns, text=text))

    def user_presses_stop(self) -> tuple[Action, ...]:
        return self.tell(ButtonPressed(at=self.now_ns))

    def client_cancels(self, run_id: str | None = None) -> tuple[Action, ...]:
        return self.tell(ClientCancelled(at=self.now_ns, run_id=run_id))

    def provider_interrupts(self) -> tuple[Action, ...]:
        return self.tell(ProviderInterrupted(at=self.now_ns))
