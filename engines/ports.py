"""The ports: how engines reach the world, and what every adapter promises.

A session-like port has the same five verbs with the same meaning everywhere:

`write(...)`
    hand in one unit; waits for room, bounded by a deadline; raises `PortError` when refused.
`finish_input()`
    half-close: nothing more comes in, output still may go out.
`reports()`
    what came back, in order, exactly one terminal report last. The end of the iterator without one is a failure.
`cancel(reason)`
    ask for a prompt end; never blocks, proves neither remote acknowledgement nor silence.
`aclose()`
    idempotent release within a bounded time; while work is active it cancels first.

Adapters never decide anything about the conversation: they report (`reports.py`) and carry out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..audio.formats import AudioFormat, AudioFrame
from ..statecharts.capabilities import (
    RecognizerCapabilities,
    ResponderCapabilities,
    SpeakerCapabilities,
    SynthesizerCapabilities,
)
from .reports import (
    GenerationReport,
    MicrophoneReport,
    ProviderState,
    RecognitionReport,
    SpeakerReport,
    SynthesisReport,
)


class Clock(Protocol):
    """The session's only source of time."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""
        ...

    async def sleep_until(self, deadline_ns: int) -> None:
        """Return at `deadline_ns` or soon after; at once when it has passed."""
        ...


# -- microphone ----------------------------------------------------------------------------------------------------


class Microphone(Protocol):
    """The one capture track of the device."""

    @property
    def format(self) -> AudioFormat: ...

    def reports(self) -> AsyncIterator[MicrophoneReport]:
        """`Captured`, `CaptureGap` and `ButtonUsed` in track order, one `CaptureEnded` last. Iterated once."""
        ...

    async def aclose(self) -> None: ...


# -- recognition ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecognitionRequest:
    """One utterance to recognise."""

    recognition_id: str
    format: AudioFormat
    language: str | None = None
    """BCP 47, or None for the adapter's default."""


class RecognitionStream(Protocol):
    """One utterance being recognised. Audio is written from the first sample of the pre-roll on, without a hole."""

    async def write(self, frame: AudioFrame) -> None: ...
    async def finish_input(self) -> None: ...
    def reports(self) -> AsyncIterator[RecognitionReport]:
        """Hypotheses and segment finals; `RecognitionEnded` or `RecognitionErrored` last."""
        ...

    def cancel(self, reason: str) -> None: ...
    async def aclose(self) -> None: ...


class Recognizer(Protocol):
    @property
    def capabilities(self) -> RecognizerCapabilities: ...
    async def prepare(self) -> None:
        """Load or connect so that `open` is quick. Raises `PortError`. Safe to call twice."""
        ...

    async def open(self, request: RecognitionRequest) -> RecognitionStream:
        """A stream that is ready for audio. Raises `PortError`."""
        ...

    async def aclose(self) -> None: ...


# -- generation ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the model's context. `role`: "system", "user", "assistant" (which may have made calls) or "tool"."""

    role: str
    text: str
    call_id: str | None = None
    """For "tool": the call this answers."""
    tool_calls: tuple[ToolRequest, ...] = ()
    provider_state: ProviderState | None = None
    """For "assistant": what its provider reported with this text and these calls, and wants back."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A complete call the model made. `arguments_json` is one JSON object."""

    call_id: str
    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One attempt at one model response."""

    response_id: str
    attempt_id: str
    messages: tuple[Message, ...]
    """Oldest first; the last one is the user's turn (or tool results)."""
    tools: tuple[ToolDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool offered to the model. `parameters_schema` is a JSON Schema object, serialised."""

    name: str
    description: str
    parameters_schema: str


class GenerationStream(Protocol):
    """One attempt in flight."""

    def reports(self) -> AsyncIterator[GenerationReport]:
        """Text deltas, tool calls, usage; `GenerationEnded`, `GenerationStopped` or `GenerationErrored` last."""
        ...

    def cancel(self, reason: str) -> None:
        """After it `reports()` ends promptly with `GenerationStopped`, unless another terminal came first."""
        ...

    async def aclose(self) -> None: ...


class Responder(Protocol):
    """A model: turns the context into a streamed reply."""

    @property
    def capabilities(self) -> ResponderCapabilities: ...
    async def prepare(self) -> None:
        """Load or check so that `open` is quick. Raises `PortError`. Safe to call twice."""
        ...

    async def open(self, request: GenerationRequest) -> GenerationStream:
        """Start generating. Raises `PortError`."""
        ...

    async def aclose(self) -> None: ...


# -- synthesis -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpeechUnit:
    """A piece of safe speech, cut by the spoken-text projection."""

    index: int
    """0, 1, 2 … within one response."""
    text: str
    """What is said; never empty."""
    source_start: int = 0
    source_end: int = 0
    """Range of the generated text (in characters) that this unit speaks."""


@dataclass(frozen=True, slots=True)
class SynthesisRequest:
    """One response to be spoken."""

    response_id: str
    output_epoch: int
    voice: str | None = None
    """An adapter's voice name, or None for its default."""


class SynthesisStream(Protocol):
    """One response being spoken."""

    async def write(self, unit: SpeechUnit) -> None: ...
    async def finish_input(self) -> None: ...
    def reports(self) -> AsyncIterator[SynthesisReport]:
        """`Synthesized` audio and `UnitSynthesized` ranges; `SynthesisEnded`, `SynthesisStopped` or
        `SynthesisErrored` last. Sample positions count from 0 at the start of this stream.
        """
        ...

    def cancel(self, reason: str) -> None:
        """Nothing that was produced later than this call is reported; ends with `SynthesisStopped`."""
        ...

    async def aclose(self) -> None: ...


class Synthesizer(Protocol):
    @property
    def capabilities(self) -> SynthesizerCapabilities: ...
    @property
    def format(self) -> AudioFormat:
        """What every `Synthesized` frame is in."""
        ...

    async def prepare(self) -> None: ...
    async def open(self, request: SynthesisRequest) -> SynthesisStream: ...
    async def aclose(self) -> None: ...


# -- playback ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutputOpening:
    """A new output stream. The speaker renders nothing until `prebuffer_ms` are queued (or the end is known)."""

    stream_id: int
    """Positive, greater than every earlier one of the session."""
    output_epoch: int
    format: AudioFormat
    prebuffer_ms: int = 80
    held: bool = False
    """True: buffer, but render nothing until `release`."""


@runtime_checkable
class Speaker(Protocol):
    """The one output of the device.

    `invalidate_before` is the barge-in path: synchronous, never blocks, takes effect for every sample not yet handed
    to the hardware. It is the last gate: a frame whose epoch is below the barrier is dropped and counted, whenever it
    arrives. "Accepted", "submitted to hardware" and "rendered" are three numbers, never one.
    """

    @property
    def capabilities(self) -> SpeakerCapabilities: ...

    async def open(self, opening: OutputOpening) -> None: ...

    async def write(self, stream_id: int, output_epoch: int, frame: AudioFrame) -> None:
        """Queue one frame; `frame.start_sample` continues the stream exactly. Waits while the queue holds its cap (by
        bytes *and* duration), at most the configured deadline (not counted while the stream is held or paused), then
        raises `PortError`. A frame of an invalidated epoch is dropped silently and counted, also when invalidation
        happens during the wait.
        """
        ...

    async def finish(self, stream_id: int, end_sample: int) -> None:
        """The end barrier: the stream ends at `end_sample` (samples written in total). Cannot overtake data."""
        ...

    def invalidate_before(self, output_epoch: int, reason: str) -> None:
        """Stop and drop everything of epochs < `output_epoch`, now. A `RenderingStopped` receipt follows for every
        open stream it ended.
        """
        ...

    def pause(self, stream_id: int) -> None: ...
    def resume(self, stream_id: int) -> None: ...
    def release(self, stream_id: int) -> None:
        """Let a held stream render."""
        ...

    def reports(self) -> AsyncIterator[SpeakerReport]:
        """Receipts in order; ends with `SpeakerLost` or when closed. Iterated once."""
        ...

    async def aclose(self) -> None: ...
