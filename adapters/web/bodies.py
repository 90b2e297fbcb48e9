"""What clients send and get, besides events: the shapes that the interface checks and documents."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from .errors import ApiError

ConversationId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
RunId = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ChatRequest(Body):
    """A typed message."""

    text: str = Field(min_length=1, pattern=r"\S")
    """Not blank. The server bounds its length; its description says how."""
    conversation_id: ConversationId | None = None
    """The foreground conversation without one; a new name begins a conversation in writing."""


class CancelRequest(Body):
    """What is to be cancelled: a run or a response, by its identity."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"type": "string"}}} for name in ("run_id", "response_id")
            ]
        }
    )

    run_id: RunId | None = None
    response_id: RunId | None = None
    conversation_id: ConversationId | None = None

    @model_validator(mode="after")
    def _names_something(self) -> CancelRequest:
        if self.run_id is None and self.response_id is None:
            raise ValueError("run_id or response_id says what is to be cancelled")
        return self


class SessionRequest(Body):
    """The token, to be traded for a cookie."""

    token: str = Field(min_length=1, max_length=4_096)


class Cancelled(Body):
    """What is being cancelled. Neither an acknowledgement nor silence: events tell of those."""

    conversation_id: str
    run_id: str
    response_id: str


class ConversationLine(Body):
    """One conversation that is served."""

    conversation_id: str
    kind: Literal["voice", "text"]
    is_foreground: bool
    session: str
    """The state of its session, as in the folded state."""
    watermark: str
    observers: int


class ConversationList(Body):
    conversations: list[ConversationLine]


class StateAnswer(Body):
    """The folded state, everything up to `watermark`; go on with `/api/events?after=` that."""

    schema_version: int
    conversation_id: str
    kind: Literal["voice", "text"]
    watermark: str
    state: dict[str, Any]
    configuration: list[str]
    """The active states of the chart, one a region."""


class Health(Body):
    status: Literal["ok"]
    version: str


class ErrorDetail(BaseModel):
    model_config = ConfigDict(extra="allow")

    code: str
    message: str


class ErrorAnswer(BaseModel):
    """Every answer from 400 on."""

    error: ErrorDetail


BodyT = TypeVar("BodyT", bound=Body)


def parse_body(kind: type[BodyT], data: bytes) -> BodyT:
    """Raises `ApiError`, which names what is wrong and repeats no value."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    if found and found[0]["type"] == "json_invalid":
        raise ApiError(400, "malformed_json", "the body is no JSON in UTF-8")
    problems = [
        {"path": ".".join(map(str, fault["loc"])), "message": fault["msg"].removeprefix("Value error, ")}
        for fault in found
    ]
    said = "; ".join(
        f"{fault['path']}: {fault['message']}" if fault["path"] else fault["message"] for fault in problems
    )
    raise ApiError(422, "invalid_body", said, problems=problems)
