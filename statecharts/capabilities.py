"""What a provider can do, as negotiated. Final when the session is ready; nothing pretends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class StreamingPolicy(StrEnum):
    """What to do with a provider that cannot stream."""

    PREFER = "prefer"
    REQUIRED = "required"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class RecognizerCapabilities:
    """`interim`: revisable hypotheses; without it the recogniser is final-only."""

    live_input: bool = False
    interim: bool = False
    segment_finals: bool = True
    endpointing: bool = False
    word_times: bool = False


@dataclass(frozen=True, slots=True)
class ResponderCapabilities:
    """`usage`: tokens are counted; `usage_during`: while the reply is written, not only at its end."""

    text_deltas: bool = False
    tool_calls: bool = False
    usage: bool = False
    cancel: bool = True
    tool_argument_deltas: bool = False
    """A call's arguments arrive in pieces. It is still proposed only when it is whole."""
    usage_during: bool = False
    resume: bool = False
    """A reply that was cut can go on where it stopped."""


@dataclass(frozen=True, slots=True)
class SynthesizerCapabilities:
    """`incremental_pcm`: audio arrives while a unit is still being produced, not once per sentence."""

    incremental_text: bool = False
    sentence_input: bool = True
    incremental_pcm: bool = False
    alignment: bool = False
    cancel: bool = True
    flush: bool = False
    """What was written can be asked for at once, without ending the input."""


@dataclass(frozen=True, slots=True)
class RealtimeCapabilities:
    """A native realtime model: it hears, answers and speaks by itself."""

    ends_turns: bool = False
    """It can be the authority on the end of a turn."""
    takes_turns: bool = False
    """The end of a turn can be told to it instead."""
    interrupts: bool = False
    """It stops its reply by itself when it hears the user speak."""
    cancel: bool = False
    """A reply can be cancelled from here."""
    truncate: bool = False
    """What it believes it said can be cut to what was heard."""
    tool_calls: bool = False
    tool_continuation: bool = False
    """It goes on by itself once it has a tool's result."""
    input_transcripts: bool = False
    """It tells what it heard."""
    usage: bool = False
    replay: bool = False
    """After a reconnect it can be given what was said before."""
    resume: bool = False
    """After a reconnect it goes on with its own memory of the session."""


@dataclass(frozen=True, slots=True)
class SpeakerCapabilities:
    pause: bool = False
    stop_receipt: bool = True
    measured_position: bool = False
    max_queue_ms: int = 1_000
    echo_cancellation: bool = False
    """Validated on this board: only then may the microphone stay open while the speaker plays."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Everything the session negotiated, with the reason of every degradation."""

    recognizer: RecognizerCapabilities = field(default_factory=RecognizerCapabilities)
    responder: ResponderCapabilities = field(default_factory=ResponderCapabilities)
    synthesizer: SynthesizerCapabilities = field(default_factory=SynthesizerCapabilities)
    speaker: SpeakerCapabilities = field(default_factory=SpeakerCapabilities)
    truncate_context: bool = False
    """The engine can cut what the provider believes it said (native realtime)."""
    native_audio: bool = False
    """The model hears the audio itself: a turn is whole when it ends, and its transcript only tells what was heard."""
    text_only: bool = False
    """There is no device: what is written is shown, and nothing is spoken."""
    degradations: tuple[str, ...] = ()

    def missing_for(self, policy: StreamingPolicy) -> tuple[str, ...]:
        """The streaming abilities that `policy` requires and this set lacks; empty when it is satisfied."""
        if policy is not StreamingPolicy.REQUIRED:
            return ()
        required = {"responder.text_deltas": self.responder.text_deltas}
        if not self.text_only:
            required["synthesizer.incremental_pcm"] = self.synthesizer.incremental_pcm
        if not self.text_only and not self.native_audio:
            required["recognizer.live_input"] = self.recognizer.live_input
        return tuple(name for name, able in required.items() if not able)
