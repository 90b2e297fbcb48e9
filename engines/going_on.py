"""Speech that goes on behind the end of its turn.

Theory of operation. Voice activity tells the onset of speech once. When somebody else ends the turn - the recogniser, a
judge of meaning, a limit, not voice activity itself - the user may be speaking still, and no onset would ever tell of
what follows. So the end is noted as a cut in the track, and as soon as somebody is heard behind it an onset is told at
that very sample: the chart withdraws the end, continues the committed turn, or opens the next one. Behind a turn that a
limit ended it is told only when that turn has its transcript, because what follows is another turn.
"""

from __future__ import annotations

from ..audio.voice_activity import VoiceActivityDetector
from ..statecharts.facts import SpeechStarted, TurnEnded
from ..statecharts.values import TurnAuthority
from .engine import Desk


class GoingOn:
    """For one session. Positions are samples of the capture track."""

    def __init__(self, desk: Desk, detector: VoiceActivityDetector) -> None:
        self._desk = desk
        self._detector = detector
        self._is_manual = desk.conversation.policies.turn.authority is TurnAuthority.MANUAL
        self._cut_at: int | None = None
        self._is_heard = False
        """Somebody spoke behind the cut."""
        self.talk_is_down = False
        """The talk button; under `manual` it says whether the user goes on."""

    def begin(self, sample: int) -> None:
        """Voice activity tells an onset. It is told on, from the cut where that comes before."""
        if not self._is_manual:
            if self._cut_at is not None and self._is_heard:
                sample = self._cut_at
            self.forget()
            if self._limit_is_settling:
                self._cut_at, self._is_heard = sample, True
                return
        self._desk.report(SpeechStarted(at=self._desk.clock.now_ns(), sample=sample))

    def note_end(self, sample: int) -> None:
        """The input of a recognition ends at `sample`."""
        # Whoever holds the button has ended the turn by letting go, in whatever way that was told; but not a limit.
        by_the_user = self._is_manual and not self._turn_exceeded
        if self._user_goes_on and not by_the_user and self._cut_at is None:
            self._cut_at = sample

    def follow(self) -> None:
        """The track grew: tell the onset that nothing else would tell."""
        if self._cut_at is None:
            return
        min_speech_ms = max(1, self._detector.settings.min_speech_ms)
        self._is_heard |= self._is_manual or self._detector.voiced_ms_after(self._cut_at) >= min_speech_ms
        if not (self._is_heard or self._user_goes_on):
            self.forget()
        elif self._is_heard and not self._limit_is_settling:
            now, authority = self._desk.clock.now_ns(), TurnAuthority.MANUAL if self._is_manual else TurnAuthority.VAD
            self._desk.report(SpeechStarted(at=now, authority=authority, sample=self._cut_at))
            if not self._user_goes_on:
                self._desk.report(TurnEnded(at=now, authority=authority))
            self.forget()

    def forget(self) -> None:
        """There is no cut any more."""
        self._cut_at, self._is_heard = None, False

    @property
    def _user_goes_on(self) -> bool:
        return self.talk_is_down if self._is_manual else self._detector.speaking

    @property
    def _turn_exceeded(self) -> bool:
        turn = self._desk.conversation.context.turn
        return turn is not None and turn.exceeded

    @property
    def _limit_is_settling(self) -> bool:
        return self._turn_exceeded and self._desk.conversation.leaves[1] in ("speech", "hypothesis")
