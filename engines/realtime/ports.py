"""The port of a model that hears and speaks by itself, over one live session.

The adapter translates; it decides nothing. Names of utterances and answers are given by this side, so that whatever the
provider calls them, and in whatever order it tells, every report says what it is about. A report about an answer
that was cancelled is dropped by the adapter, until its terminal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from ...audio.formats import AudioFormat, AudioFrame
from ...statecharts.capabilities import RealtimeCapabilities
from ..ports import Message, ToolDefinition
from .reports import RealtimeReport


@dataclass(frozen=True, slots=True)
class RealtimeRequest:
    """One live session."""

    instructions: str | None = None
    messages: tuple[Message, ...] = ()
    """What was committed before, oldest first, as it was delivered; nothing of it is answered again."""
    tools: tuple[ToolDefinition, ...] = ()
    provider_turns: bool = False
    """The provider detects speech and ends turns, and neither answers nor interrupts by itself; otherwise this side
    does, by `begin_utterance` and `commit_utterance`.
    """
    resumption: str | None = None
    """The handle of an earlier session that goes on; `messages` are not sent then."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What came of a call."""

    call_id: str
    name: str
    output: str


class RealtimeSession(Protocol):
    """One live session. Every call is bounded in time and raises `PortError` when the session cannot take it."""

    async def begin_utterance(self, utterance_id: str) -> None:
        """The user began to speak. Not with provider turns."""
        ...

    async def write(self, frame: AudioFrame) -> None:
        """Captured audio in the model's input format: of the open utterance; with provider turns, the whole track."""
        ...

    async def commit_utterance(self, utterance_id: str) -> None:
        """The user has finished: the audio becomes part of what the model knows. It does not answer yet."""
        ...

    async def discard_utterance(self, utterance_id: str) -> None:
        """What was said of this utterance shall not count; with provider turns, what is in the provider's buffer."""
        ...

    async def submit_text(self, text: str) -> None:
        """A typed message of the user. It is not answered yet."""
        ...

    async def submit_outputs(self, outputs: tuple[ToolOutput, ...]) -> None:
        """Outcomes of calls; every call gets one, a cancelled one too. The model does not go on yet."""
        ...

    async def respond(self, answer_id: str) -> None:
        """Answer what was committed since the last answer. Waits, bounded, while the provider ends another answer."""
        ...

    def cancel(self, answer_id: str, reason: str) -> None:
        """Ask for the end of an answer. Never blocks; `AnswerStopped` follows, unless another terminal came first."""
        ...

    async def truncate(self, item_id: str, played_ms: int) -> None:
        """Cut what the model believes it said. `played_ms` is at most what was received of the item; 0 removes it.

        `Truncated` or `TruncationRefused` follows. A provider that cannot do this is never asked.
        """
        ...

    def reports(self) -> AsyncIterator[RealtimeReport]:
        """In order; `SessionEnded` last. Iterated once."""
        ...

    async def aclose(self) -> None:
        """Idempotent, bounded. Whatever is under way ends with it."""
        ...


class RealtimeModel(Protocol):
    """A model that hears and speaks by itself."""

    @property
    def capabilities(self) -> RealtimeCapabilities: ...
    @property
    def input_format(self) -> AudioFormat: ...
    @property
    def output_format(self) -> AudioFormat: ...

    async def prepare(self) -> None:
        """Check what can be checked without a session. Raises `PortError`. Safe to call twice."""
        ...

    async def open(self, request: RealtimeRequest) -> RealtimeSession:
        """A session that is configured and ready for audio: negotiated, not merely connected. Raises `PortError`."""
        ...

    async def aclose(self) -> None: ...
