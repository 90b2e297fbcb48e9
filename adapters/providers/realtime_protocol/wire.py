"""The server's messages, as far as they are used: what is used has exactly its type, other keys are its own affair.

Sources: openai.types.realtime of openai 3.57.0; alibabacloud.com/help/en/model-studio (server-events) for the rest.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from ..refusals import Stage


class Incoming(BaseModel):
    """A message, or a part of one."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class Fault(Incoming):
    """The `error` of a message."""

    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    event_id: str | None = None
    """Of the client's message that is at fault; often missing."""


class FaultMessage(Incoming):
    """`error`."""

    error: Fault


class SessionMessage(Incoming):
    """`session.created`, `session.updated`."""

    session: dict[str, JsonValue]


class OfItem(Incoming):
    """Whatever is about one item and says no more."""

    item_id: str


class TranscriptDelta(OfItem):
    delta: str | None = None


class TranscriptGuess(OfItem):
    """Qwen's: what will stay, and a guess behind it that is replaced each time."""

    text: str = ""
    stash: str = ""


class TranscriptDone(OfItem):
    transcript: str


class TranscriptFailed(OfItem):
    error: Fault


class ItemTruncated(OfItem):
    audio_end_ms: int


class Item(Incoming):
    id: str | None = None
    type: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class OfResponse(Incoming):
    """Whatever is about one response and says no more."""

    response_id: str


class OutputItem(OfResponse):
    item: Item


class OutputDelta(OfResponse):
    """Audio in base 64, or text."""

    item_id: str
    content_index: int = 0
    delta: str


class TextDone(OfResponse):
    item_id: str
    transcript: str | None = None
    text: str | None = None


class CallDone(OfResponse):
    item_id: str
    call_id: str | None = None
    name: str | None = None
    arguments: str


class StatusDetails(Incoming):
    reason: str | None = None
    error: Fault | None = None


class TokenUsage(Incoming):
    input_tokens: int | None = None
    output_tokens: int | None = None


class ResponseBody(Incoming):
    id: str
    status: str | None = None
    status_details: StatusDetails | None = None
    metadata: dict[str, JsonValue] | None = None
    usage: TokenUsage | None = None
    output: list[Item] | None = None


class ResponseMessage(Incoming):
    """`response.created`, `response.done`."""

    response: ResponseBody


M = TypeVar("M", bound=Incoming)


def parsed(wanted: type[M], message: JsonValue, stage: Stage) -> M:
    """Raises `PortError` `provider_malformed`: a message that cannot be read may have held anything."""
    try:
        return wanted.model_validate(message)
    except ValidationError as error:
        # Not the error's text: it quotes the message.
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "message"
        text = f"the provider sent a message that cannot be read (at {place}); its adapter needs a correction"
        raise stage.failure("provider_malformed", text, retryable=True) from None
