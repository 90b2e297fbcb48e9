"""How one provider speaks about one utterance: messages in, reports out, and no socket."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from ....audio.formats import AudioFormat
from ....engines.ports import RecognitionRequest
from ....engines.reports import RecognitionErrored, SegmentFinal, SegmentHypothesis, UtteranceEnded
from ....statecharts.errors import ErrorScope
from ..closings import Closing
from ..refusals import Stage, shown_code
from ..websocket import JsonObject

logger = logging.getLogger(__name__)

STAGE = Stage("recognition", ErrorScope.TURN)
"""Where the errors of every recogniser arise."""

Outgoing = Mapping[str, JsonValue] | bytes
"""A JSON object for a text message, or the bytes of a binary one."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Audio may be sent from now on."""


@dataclass(frozen=True, slots=True)
class Sending:
    """Something that has to be sent in answer."""

    message: Outgoing


Heard = SegmentHypothesis | SegmentFinal | UtteranceEnded | RecognitionErrored | Ready | Sending
"""What a message means. `RecognitionErrored` ends the stream; that all is well is `Dialect.is_complete`."""


Seconds = Annotated[float, Field(ge=-1, le=1_000_000)]
"""A time of a provider's; -1 is none. What is out of all bounds would be no position."""
Milliseconds = Annotated[int, Field(ge=-1, le=1_000_000_000)]
"""The same in milliseconds."""


class Incoming(BaseModel):
    """A provider's message, as far as it is used: other keys are its own affair."""

    model_config = ConfigDict(extra="ignore", frozen=True)


M = TypeVar("M", bound=Incoming)


class Dialect(ABC):
    """One utterance in one provider's words. Made for a request, and used up with it."""

    ready_at_once: ClassVar[bool] = False
    """The opening handshake is all the readiness there is."""
    keep_alive: ClassVar[Mapping[str, JsonValue] | None] = None
    """A text message that holds the connection while there is no audio."""
    answers_audio: ClassVar[bool] = False
    """It says something about all audio, silence too: one that does not is gone."""
    min_chunk_ms: ClassVar[int] = 20
    """Audio is gathered to messages of at least this length."""
    max_chunk_ms: ClassVar[int] = 1_000
    pads_last_chunk: ClassVar[bool] = False
    """A last message below `min_chunk_ms` is filled up with silence: the provider refuses shorter ones."""

    url: str
    headers: Mapping[str, str]
    format: AudioFormat
    """What the provider is given."""

    def __init__(self, request: RecognitionRequest) -> None:
        self.request = request
        self.is_complete = False
        """Everything that was written has been recognised, and nothing more will come."""
        self._unknown: set[str] = set()

    def opening(self) -> Iterable[Outgoing]:
        """What is sent as soon as the connection is open."""
        return ()

    def audio(self, pcm: bytes) -> Outgoing:
        """A message of audio in `format`."""
        return pcm

    @abstractmethod
    def finishing(self, has_audio: bool) -> Iterable[Outgoing]:
        """What says that the utterance is over. `has_audio`: anything was written."""

    def abandoning(self) -> Iterable[Outgoing]:
        """What is said before the connection is closed on an utterance that nobody wants."""
        return ()

    @abstractmethod
    def take(self, message: JsonObject) -> Iterable[Heard]:
        """What a message means. Raises `PortError` `provider_malformed`."""

    def take_closing(self, closing: Closing) -> Iterable[Heard]:
        """The provider closed the connection before all was said. What is no end (`is_complete`) is a failure."""
        return ()

    def sample_at(self, seconds: float) -> int:
        """A provider's time as a position in the recognition's audio."""
        return max(0, round(seconds * self.request.format.sample_rate_hz))

    def parsed(self, wanted: type[M], message: JsonValue) -> M:
        """Raises `PortError`: a message that cannot be read may have held words."""
        try:
            return wanted.model_validate(message)
        except ValidationError as error:
            # Not the error's text: it quotes the message.
            place = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "message"
            text = f"the provider sent a message that cannot be read (at {place}); its adapter needs a correction"
            raise STAGE.failure("provider_malformed", text) from None

    def ignore(self, kind: JsonValue) -> tuple[Heard, ...]:
        """A message of a kind that nobody knows means nothing, and is noted once."""
        shown = shown_code(kind) or "without a name"
        if shown not in self._unknown and len(self._unknown) < 50:
            self._unknown.add(shown)
            logger.info("%s: ignored a message of the unknown kind %s", type(self).__name__, shown)
        return ()


def failed(code: str, message: str, *, session: bool = False, retryable: bool = False) -> RecognitionErrored:
    """The end of a stream that a provider's error message means."""
    scope = ErrorScope.SESSION if session else None
    return RecognitionErrored(STAGE.error(code, message, scope=scope, retryable=retryable))
