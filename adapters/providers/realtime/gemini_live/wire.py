"""The server's messages, as far as they are used: what is used has exactly its type, other keys are its own affair.

Keys come in camelCase or in snake_case, as the service pleases. Source: google.genai.types of google-genai 3.6.1
(`LiveServerMessage`).
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

from ...refusals import Stage
from ...websocket import JsonObject

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


class Incoming(BaseModel):
    """A message, or a part of one."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
    )


class Blob(Incoming):
    mime_type: str = ""
    data: str = ""
    """Base 64."""


class Part(Incoming):
    text: str | None = None
    thought: bool | None = None
    """Reasoning: neither said nor shown."""
    inline_data: Blob | None = None


class Content(Incoming):
    parts: list[Part] | None = None


class Transcription(Incoming):
    text: str | None = None
    finished: bool | None = None


class ServerContent(Incoming):
    """What the model says, and where its turn stands. Several of these may come in one message."""

    model_turn: Content | None = None
    input_transcription: Transcription | None = None
    interim_input_transcription: Transcription | None = None
    output_transcription: Transcription | None = None
    generation_complete: bool | None = None
    interrupted: bool | None = None
    turn_complete: bool | None = None
    turn_complete_reason: str | None = None
    interaction_status: str | None = None

    @property
    def is_complete(self) -> bool:
        """The turn is over: where the status of the interaction is told, that decides."""
        if self.interaction_status not in (None, "INTERACTION_STATUS_UNSPECIFIED"):
            return self.interaction_status == "IDLE"
        return bool(self.turn_complete)


class FunctionCall(Incoming):
    id: str | None = None
    name: str | None = None
    args: dict[str, JsonValue] | None = None
    partial_args: list[JsonValue] | None = None
    will_continue: bool | None = None


class ToolCall(Incoming):
    function_calls: list[FunctionCall] | None = None


class Cancellation(Incoming):
    ids: list[str] | None = None


class Usage(Incoming):
    """Tokens of the model's latest response. Thoughts are paid for as output."""

    prompt_token_count: int | None = None
    response_token_count: int | None = None
    thoughts_token_count: int | None = None

    @property
    def output_token_count(self) -> int | None:
        """None where nothing is told of it."""
        told = [count for count in (self.response_token_count, self.thoughts_token_count) if count is not None]
        return sum(told) if told else None


class GoAway(Incoming):
    time_left: JsonValue = None

    @property
    def within_ms(self) -> int:
        """How long the connection lives; 0 where the service does not say."""
        found = _DURATION.fullmatch(self.time_left) if isinstance(self.time_left, str) else None
        return 0 if found is None else int(float(found[1]) * 1_000)


class ResumptionUpdate(Incoming):
    new_handle: str | None = None
    resumable: bool | None = None


class Fault(Incoming):
    """An error in JSON, as Google's services write it."""

    code: int | None = None
    status: str | None = None


class ServerMessage(Incoming):
    """Any message of the server's. Several of these may come in one."""

    setup_complete: dict[str, JsonValue] | None = None
    server_content: ServerContent | None = None
    tool_call: ToolCall | None = None
    tool_call_cancellation: Cancellation | None = None
    usage_metadata: Usage | None = None
    go_away: GoAway | None = None
    session_resumption_update: ResumptionUpdate | None = None
    error: Fault | None = None
    voice_activity: JsonValue = None
    voice_activity_detection_signal: JsonValue = None


def parsed(message: JsonObject, stage: Stage) -> ServerMessage:
    """Raises `PortError` `provider_malformed`: a message that cannot be read may have held anything."""
    try:
        return ServerMessage.model_validate(message)
    except ValidationError as error:
        # Not the error's text: it quotes the message.
        first: Any = error.errors(include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "message"
        text = f"the provider sent a message that cannot be read (at {place}); its adapter needs a correction"
        raise stage.failure("provider_malformed", text, retryable=True) from None
