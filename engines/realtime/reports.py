"""What comes back from a live session with a model that hears and speaks by itself. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from ...audio.formats import AudioFrame
from ...statecharts.errors import ScopedError
from ...statecharts.values import Usage

# -- what was heard ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpeechDetected:
    """The provider's own detection: the user began to speak. Only where the provider ends turns."""

    speech_id: str
    """Names the utterance from here on."""


@dataclass(frozen=True, slots=True)
class SpeechCommitted:
    """The provider's own detection: the user has finished, and the model has the audio."""

    speech_id: str


@dataclass(frozen=True, slots=True)
class Transcribed:
    """What the provider understood of an utterance: all of it so far, replacing what was told before.

    A projection for people and records: the model has heard the audio itself, and is never asked with this text.
    """

    utterance_id: str
    """Of `begin_utterance`, or of `SpeechDetected`."""
    revision: int
    text: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptionEnded:
    """No more will come about this utterance. `error`: why it has no final transcript."""

    utterance_id: str
    error: ScopedError | None = None


# -- answers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerText:
    """Visible text to append: what is being said, or written."""

    answer_id: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerAudio:
    """Audio of one item of an answer, in the model's output format: gapless, counted from 0 in each item."""

    answer_id: str
    item_id: str
    frame: AudioFrame


@dataclass(frozen=True, slots=True)
class AnswerProgressed:
    """The model is at work, with nothing to show for it: reasoning, a call being written."""

    answer_id: str


@dataclass(frozen=True, slots=True)
class AnswerCallsTool:
    """One complete call; told only for an answer that was not cut off."""

    answer_id: str
    call_id: str
    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class ToolCallsWithdrawn:
    """The provider takes these calls back: their outcome is not wanted any more."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """Cumulative for this answer. The one report that may come behind its terminal."""

    answer_id: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """Terminal of the answer: the model ended by itself. Every audio frame and call of it was told before."""

    answer_id: str
    awaits_tools: bool = False


@dataclass(frozen=True, slots=True)
class AnswerStopped:
    """Terminal of the answer: the provider confirms `cancel`, or that there was nothing to cancel."""

    answer_id: str


@dataclass(frozen=True, slots=True)
class AnswerFailed:
    """Terminal of the answer. Also when the provider cut it off by itself."""

    answer_id: str
    error: ScopedError


# -- the session ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProviderInterruption:
    """The provider says that the user interrupted."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """The provider cut what it believes it said: `item_id` ends at `played_ms`; 0: it was removed."""

    item_id: str
    played_ms: int


@dataclass(frozen=True, slots=True)
class TruncationRefused:
    """The provider still believes that it said everything. Not fatal."""

    item_id: str
    error: ScopedError


@dataclass(frozen=True, slots=True)
class SessionExpires:
    """The provider will end the session."""

    within_ms: int


@dataclass(frozen=True, slots=True)
class SessionResumable:
    """A session that is opened with this handle goes on where this one is now. Only the latest one counts."""

    handle: str


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """Terminal. `error` None: it was closed from this side."""

    error: ScopedError | None = None


AnswerReport = AnswerText | AnswerAudio | AnswerProgressed | AnswerCallsTool | AnswerUsage
AnswerEnd = AnswerEnded | AnswerStopped | AnswerFailed
RealtimeReport = (
    SpeechDetected
    | SpeechCommitted
    | Transcribed
    | TranscriptionEnded
    | AnswerReport
    | AnswerEnd
    | ToolCallsWithdrawn
    | ProviderInterruption
    | Truncated
    | TruncationRefused
    | SessionExpires
    | SessionResumable
    | SessionEnded
)
