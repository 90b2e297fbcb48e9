"""The interface, described: an OpenAPI 3.1 document made from the shapes that are checked."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

from ... import __version__
from .bodies import (
    Body,
    Cancelled,
    CancelRequest,
    ChatRequest,
    ConversationList,
    ErrorAnswer,
    Health,
    SessionRequest,
    StateAnswer,
)
from .explaining import Explained

Json = dict[str, Any]
_SHAPES = (
    CancelRequest,
    Cancelled,
    ChatRequest,
    ConversationList,
    ErrorAnswer,
    Explained,
    Health,
    SessionRequest,
    StateAnswer,
)
_REF = "#/components/schemas/{model}"
_CONVERSATION: Json = {
    "name": "conversation_id",
    "in": "query",
    "description": "Which conversation; the foreground one without it.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"},
}
_AFTER: Json = {
    "name": "after",
    "in": "query",
    "description": "A cursor, `epoch:sequence`: what came behind it. An unknown one gets a snapshot.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,16}:[0-9]{1,16}$"},
}
_LAST_EVENT_ID: Json = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "As `after`, and before it, as browsers send it. What is no cursor gets a snapshot.",
    "schema": {"type": "string"},
}
_FOLLOW: Json = {
    "name": "follow",
    "in": "query",
    "description": "`false`: what is there, and then the end.",
    "schema": {"type": "string", "enum": ["true", "false"], "default": "true"},
}
_NUMBER: Json = {
    "name": "number",
    "in": "query",
    "required": True,
    "description": "Which macrostep, as records are numbered.",
    "schema": {"type": "integer", "minimum": 1, "maximum": 10**15},
}
_ERRORS: dict[int, str] = {
    400: "The body is no JSON.",
    401: "A token is needed.",
    403: "A wrong host or origin, or something that is not served.",
    404: "There is nothing of that name.",
    409: "It is over, or is refused at the moment.",
    413: "The body is too large.",
    415: "The body is of another media type.",
    422: "The body or the query is not as described.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    503: "No room at the moment; `Retry-After` says how long to wait.",
}
_EVERYWHERE = (401, 403, 429)


@cache
def openapi_document(max_text_chars: int) -> Json:
    """The document. Do not change it."""
    _, shapes = models_json_schema([(shape, "validation") for shape in _SHAPES], ref_template=_REF)
    shapes["$defs"]["ChatRequest"]["properties"]["text"]["maxLength"] = max_text_chars
    sse: Json = {"text/event-stream": {}}
    ndjson: Json = {"application/x-ndjson": {}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "voicechart",
            "version": __version__,
            "description": "Text, captions and events of conversations; events are of version 2.",
        },
        "paths": {
            "/api/chat": _post(
                "chat", "Say something", ChatRequest, 200, "The events of its run", ndjson, 404, 409, 503
            ),
            "/api/events": _get(
                "events", "Watch", sse, 404, 422, 503, of=(_CONVERSATION, _AFTER, _FOLLOW, _LAST_EVENT_ID)
            ),
            "/api/state": _get("state", "How it stands", _json(StateAnswer), 404, 422, of=(_CONVERSATION,)),
            "/api/cancel": _post(
                "cancel", "Cancel a run", CancelRequest, 202, "It is being cancelled", _json(Cancelled), 404, 409
            ),
            "/api/conversations": _get("conversations", "What is served", _json(ConversationList)),
            "/api/session": _post("session", "Trade the token for a cookie", SessionRequest, 204, "A cookie", {}),
            "/api/chart": _get(
                "chart", "States and lines of the chart", {"application/json": {}}, 404, 422, of=(_CONVERSATION,)
            ),
            "/api/chart.svg": _get("chartPicture", "The picture of the chart", {"image/svg+xml": {}}, 404),
            "/api/trace": _get("trace", "The newest macrosteps as a trace file", ndjson, 404, 422, of=(_CONVERSATION,)),
            "/api/trace/explanation": _get(
                "explainStep",
                "Why a macrostep went as it did",
                _json(Explained),
                404,
                409,
                422,
                of=(_CONVERSATION, _NUMBER),
            ),
            "/api/trace/stream": _get(
                "traceStream",
                "Watch the chart",
                sse,
                404,
                422,
                503,
                of=(_CONVERSATION, _AFTER, _FOLLOW, _LAST_EVENT_ID),
            ),
            "/healthz": _get("health", "Whether it runs", _json(Health)),
        },
        "components": {
            "schemas": shapes["$defs"],
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "voicechart_session"},
            },
        },
        "security": [{}, {"token": []}, {"session": []}],
    }


def _json(shape: type[Body]) -> Json:
    return {"application/json": {"schema": {"$ref": _REF.format(model=shape.__name__)}}}


def _get(name: str, summary: str, content: Json, *errors: int, of: tuple[Json, ...] = ()) -> Json:
    answers = {"200": {"description": summary, "content": content}, **_refusals(errors)}
    return {"get": {"operationId": name, "summary": summary, "parameters": list(of), "responses": answers}}


def _post(name: str, summary: str, body: type[Body], status: int, done: str, content: Json, *errors: int) -> Json:
    answer = {"description": done, "content": content} if content else {"description": done}
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "requestBody": {"required": True, "content": _json(body)},
            "responses": {str(status): answer, **_refusals((400, 413, 415, 422, *errors))},
        }
    }


def _refusals(errors: tuple[int, ...]) -> Json:
    error = {"application/json": {"schema": {"$ref": _REF.format(model="ErrorAnswer")}}}
    statuses = sorted({*errors, *_EVERYWHERE})
    return {str(status): {"description": _ERRORS[status], "content": error} for status in statuses}
