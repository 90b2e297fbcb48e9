"""Policies: the numbers and rules an embedder may set, validated at the edge.

A policy is a frozen value. The chart asks `InterruptionPolicy.judge` once per macrostep and obeys; to change when a
user may interrupt, subclass it or pass anything with the same method, and prove it with the public test kit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from .capabilities import StreamingPolicy
from .values import InterruptionSource, TurnAuthority


class PolicyError(ValueError):
    """A policy outside its bounds. The text names the field, the value and the bounds."""


def _bounded(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise PolicyError(f"{name} = {value} is outside {low}–{high}")


class Moment(StrEnum):
    """Where in the user's utterance the evidence was taken."""

    STARTED = "started"
    GOING_ON = "going_on"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a policy may look at when it is asked whether a fact interrupts the reply being heard."""

    source: InterruptionSource
    moment: Moment
    text: str = ""
    """What was recognised of this utterance and has not expired."""
    words: int = 0
    speech_ms: int = 0
    """Unbroken speech so far, as voice activity detection tells it."""
    interruptible: bool = True
    """False for a reply that must be heard to its end."""
    can_pause: bool = False
    """The speaker can pause and resume."""
    since_interruption_ms: int | None = None
    """Since the last accepted interruption; None when there was none."""


class Verdict(StrEnum):
    """What a policy answers."""

    ACCEPTED = "accepted"
    """Interrupt now."""
    SUSPECTED = "suspected"
    """Perhaps: pause until more is known."""
    UNDECIDED = "undecided"
    """Not enough yet; ask again with more."""
    DISMISSED = "dismissed"
    """These words do not count (a backchannel, too few): the reply goes on, the words are dropped."""
    DEFERRED = "deferred"
    """Not now (uninterruptible, wrong source, backing off): the reply goes on, a finished turn waits for its end."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its reason, a stable word that events and `explain` show."""

    verdict: Verdict
    reason: str


class JudgesInterruptions(Protocol):
    """What the chart needs of an interruption policy. Must be pure: same evidence, same judgement."""

    @property
    def word_window_ms(self) -> int: ...
    @property
    def false_alarm_ms(self) -> int: ...
    @property
    def full_duplex(self) -> bool: ...
    @property
    def interruptible(self) -> bool: ...
    def judge(self, evidence: Evidence) -> Judgement: ...


_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORDS = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+(?:['’][^\W{_CJK}]+)*")


def words_of(text: str) -> tuple[str, ...]:
    """The words of `text`, lower-case, without punctuation. Each Chinese, Japanese or Korean character is one."""
    return tuple(word.lower() for word in _WORDS.findall(text))


BACKCHANNELS = frozenset(
    {"mhm", "mm", "hmm", "hm", "uh", "huh", "um", "ah", "oh", "yeah", "yes", "yep", "ok", "okay", "right", "sure"}
    | set("嗯哦啊噢唔呃诶好的对是行")
)
"""Each Chinese character is a word here: 好的 and 对对对 are made of these."""


@dataclass(frozen=True, slots=True)
class InterruptionPolicy:
    """When the user may interrupt a reply that can be heard. Raises `PolicyError` outside the bounds."""

    sources: frozenset[InterruptionSource] = frozenset({InterruptionSource.BUTTON, InterruptionSource.CLIENT})
    """Without validated echo cancellation a board must not listen to itself: the button is the default."""
    min_words: int = 1
    min_duration_ms: int = 0
    """With 0, duration alone never interrupts: words are needed."""
    backchannels: frozenset[str] = BACKCHANNELS
    """Utterances made of these words alone never interrupt."""
    backoff_ms: int = 0
    """After an accepted interruption, speech does not interrupt again for this long."""
    pause_first: bool = False
    """Pause at the first sound where the speaker can, and resume when the alarm was false."""
    false_alarm_ms: int = 2_000
    """How long a pause waits for words before it resumes."""
    word_window_ms: int = 3_000
    """Words that did not interrupt expire after this long."""
    full_duplex: bool = False
    """The microphone stays open while the speaker plays: needs validated echo cancellation."""
    interruptible: bool = True
    """False switches interruption off: every reply is heard to its end, and what the user says meanwhile waits."""

    def __post_init__(self) -> None:
        _bounded("min_words", self.min_words, 1, 50)
        _bounded("min_duration_ms", self.min_duration_ms, 0, 10_000)
        _bounded("backoff_ms", self.backoff_ms, 0, 60_000)
        _bounded("false_alarm_ms", self.false_alarm_ms, 100, 30_000)
        _bounded("word_window_ms", self.word_window_ms, 100, 60_000)

    def judge(self, evidence: Evidence) -> Judgement:
        """Pure. Asked once per macrostep, and only while a reply can be interrupted."""
        if evidence.source not in self.sources:
            return Judgement(Verdict.DEFERRED, "source_not_allowed")
        if not evidence.interruptible:
            return Judgement(Verdict.DEFERRED, "uninterruptible")
        if evidence.source is not InterruptionSource.SPEECH:
            return Judgement(Verdict.ACCEPTED, "asked_for")
        since = evidence.since_interruption_ms
        if since is not None and since < self.backoff_ms:
            return Judgement(Verdict.DEFERRED, "backing_off")
        return self._judge_speech(evidence)

    def _judge_speech(self, evidence: Evidence) -> Judgement:
        spoken = words_of(evidence.text)
        only_backchannels = bool(spoken) and all(word in self.backchannels for word in spoken)
        if evidence.words >= self.min_words and not only_backchannels:
            return Judgement(Verdict.ACCEPTED, "enough_words")
        if evidence.moment is Moment.ENDED:
            return Judgement(Verdict.DISMISSED, "backchannel" if only_backchannels else "too_few_words")
        if self.min_duration_ms and evidence.speech_ms >= self.min_duration_ms and not spoken:
            return Judgement(Verdict.ACCEPTED, "long_enough")
        if self.pause_first and evidence.can_pause:
            return Judgement(Verdict.SUSPECTED, "speech_heard")
        return Judgement(Verdict.UNDECIDED, "backchannel" if only_backchannels else "too_few_words")


@dataclass(frozen=True, slots=True)
class TurnPolicy:
    """Who ends a user turn, and how far it may go."""

    authority: TurnAuthority = TurnAuthority.VAD
    continuation_window_ms: int = 1_500
    """Speech this soon after a committed turn continues it, as long as the reply has not been heard."""
    max_restarts: int = 3
    """How often more speech may restart a reply that nobody has heard; after that the user is answered."""
    finalization_ms: int = 5_000
    """How long an ended turn waits for its transcript."""
    input_timeout_ms: int = 15_000
    """A turn in which nothing happens for this long is given up."""
    max_turn_ms: int = 120_000
    max_turn_words: int = 400
    """Beyond either limit the turn is ended for the user."""
    max_gap_ms: int = 200
    """More lost audio than this within an utterance invalidates it."""
    max_fallback_ms: int = 30_000
    """The longest recording that a failed recognition may hand to batch transcription."""
    merge_pending: bool = True
    """A turn committed while one waits for admission joins it; otherwise it replaces it, and says so."""
    max_hold_ms: int = 3_000
    """How long the first audio of a reply waits for a user who is speaking."""

    def __post_init__(self) -> None:
        if self.authority is TurnAuthority.CLIENT:
            raise PolicyError("authority = client cannot be configured: submitted text is committed by itself")
        _bounded("continuation_window_ms", self.continuation_window_ms, 0, 10_000)
        _bounded("max_restarts", self.max_restarts, 0, 10)
        _bounded("finalization_ms", self.finalization_ms, 100, 60_000)
        _bounded("input_timeout_ms", self.input_timeout_ms, 1_000, 600_000)
        _bounded("max_turn_ms", self.max_turn_ms, 1_000, 3_600_000)
        _bounded("max_turn_words", self.max_turn_words, 1, 100_000)
        _bounded("max_gap_ms", self.max_gap_ms, 0, 5_000)
        _bounded("max_fallback_ms", self.max_fallback_ms, 0, 30_000)
        _bounded("max_hold_ms", self.max_hold_ms, 0, 30_000)


@dataclass(frozen=True, slots=True)
class GenerationPolicy:
    """Retries and deadlines of the model's side."""

    max_attempts: int = 3
    retry_ms: int = 500
    """Doubled at every retry, `Retry-After` honoured, never beyond `max_retry_ms`."""
    max_retry_ms: int = 10_000
    stall_ms: int = 30_000
    """No progress for this long ends the attempt."""
    cancel_ack_ms: int = 2_000
    """How long a cancelled attempt may take to acknowledge."""
    tool_ms: int = 60_000
    first_audio_ms: int = 10_000
    """How long a completed reply may take to its first audio."""
    max_tool_steps: int = 8

    def __post_init__(self) -> None:
        _bounded("max_attempts", self.max_attempts, 1, 10)
        _bounded("retry_ms", self.retry_ms, 0, 60_000)
        _bounded("max_retry_ms", self.max_retry_ms, 0, 120_000)
        _bounded("stall_ms", self.stall_ms, 100, 600_000)
        _bounded("cancel_ack_ms", self.cancel_ack_ms, 10, 60_000)
        _bounded("tool_ms", self.tool_ms, 10, 3_600_000)
        _bounded("first_audio_ms", self.first_audio_ms, 100, 600_000)
        _bounded("max_tool_steps", self.max_tool_steps, 1, 100)


@dataclass(frozen=True, slots=True)
class PlaybackPolicy:
    """Deadlines of the speaker's side."""

    prebuffer_ms: int = 80
    stall_ms: int = 5_000
    """An active stream without a receipt for this long is stopped."""
    stop_receipt_ms: int = 1_000
    """How long a stop may take to be confirmed before the played position counts as unknown."""
    max_announcements: int = 8
    """So many texts may wait to be said as they are; a further one is dropped."""

    def __post_init__(self) -> None:
        _bounded("prebuffer_ms", self.prebuffer_ms, 0, 1_000)
        _bounded("stall_ms", self.stall_ms, 100, 60_000)
        _bounded("stop_receipt_ms", self.stop_receipt_ms, 10, 60_000)
        _bounded("max_announcements", self.max_announcements, 0, 100)


@dataclass(frozen=True, slots=True)
class ConnectionPolicy:
    """Deadlines of the live session."""

    streaming: StreamingPolicy = StreamingPolicy.PREFER
    connect_ms: int = 30_000
    """One shared deadline for all attempts of one opening or reconnecting."""
    max_attempts: int = 5
    backoff_ms: int = 250
    """Doubled at every attempt, with jitter derived from the attempt's identity, never beyond `max_backoff_ms`."""
    max_backoff_ms: int = 5_000
    stable_ms: int = 5_000
    """A session that is lost sooner than this after it was ready is not made anew at once: the same back-off."""
    renewal_margin_ms: int = 2_000
    """A session that expires is made anew this long before it does, or sooner, when nothing is being said."""
    shutdown_ms: int = 3_000

    def __post_init__(self) -> None:
        _bounded("connect_ms", self.connect_ms, 100, 600_000)
        _bounded("max_attempts", self.max_attempts, 1, 100)
        _bounded("backoff_ms", self.backoff_ms, 0, 60_000)
        _bounded("max_backoff_ms", self.max_backoff_ms, 0, 300_000)
        _bounded("stable_ms", self.stable_ms, 0, 600_000)
        _bounded("renewal_margin_ms", self.renewal_margin_ms, 0, 60_000)
        _bounded("shutdown_ms", self.shutdown_ms, 50, 60_000)


@dataclass(frozen=True, slots=True)
class Policies:
    """All policies of a conversation."""

    turn: TurnPolicy = field(default_factory=TurnPolicy)
    interruption: JudgesInterruptions = field(default_factory=InterruptionPolicy)
    generation: GenerationPolicy = field(default_factory=GenerationPolicy)
    playback: PlaybackPolicy = field(default_factory=PlaybackPolicy)
    connection: ConnectionPolicy = field(default_factory=ConnectionPolicy)
