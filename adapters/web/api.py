"""The routes: what each request means, in facts for a conversation and reads of what it published."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ... import __version__
from ...engines.public_events import SCHEMA_VERSION
from ...statecharts.actions import Publish, StopPlayback
from ...statecharts.chart import Step
from ...statecharts.context import Context
from ...statecharts.facts import ClientCancelled
from ...statecharts.published import InterruptionRejected
from .access import COOKIE, SESSION_S, Access
from .bodies import (
    BodyT,
    Cancelled,
    CancelRequest,
    ChatRequest,
    ConversationLine,
    ConversationList,
    Health,
    SessionRequest,
    StateAnswer,
    parse_body,
)
from .chart_view import chart_json, chart_picture
from .conversations import ConversationRefused, Conversations, Hosted
from .cursors import Cursor
from .errors import ApiError
from .guard import too_large
from .observing import Observer
from .openapi import openapi_document
from .options import WebOptions
from .runs import Run
from .streams import ChatStream, EventStream
from .wire import Json, compact

JUDGE_TIMEOUT_S = 2.0
SECURE_SCHEME = "https"


class Api:
    """Holds what the routes need; `routes` is given to the application."""

    def __init__(self, conversations: Conversations, access: Access, options: WebOptions) -> None:
        self._conversations = conversations
        self._access = access
        self._options = options
        self._observers = 0

    @property
    def routes(self) -> list[Route]:
        """Every path of the interface."""
        return [
            Route("/api/chat", self.chat, methods=["POST"]),
            Route("/api/events", self.events, methods=["GET"]),
            Route("/api/state", self.state, methods=["GET"]),
            Route("/api/cancel", self.cancel, methods=["POST"]),
            Route("/api/conversations", self.list_conversations, methods=["GET"]),
            Route("/api/session", self.open_session, methods=["POST"]),
            Route("/api/chart", self.chart, methods=["GET"]),
            Route("/api/chart.svg", self.chart_picture, methods=["GET"]),
            Route("/api/trace", self.trace, methods=["GET"]),
            Route("/api/trace/stream", self.trace_stream, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/healthz", self.health, methods=["GET"]),
        ]

    # -- talking ---------------------------------------------------------------------------------------------------

    async def chat(self, request: Request) -> ASGIApp:
        body = await self._body(request, ChatRequest)
        if len(body.text) > self._options.max_text_chars:
            raise ApiError(422, "text_too_long", f"text: has at most {self._options.max_text_chars} characters")
        if body.conversation_id is None:
            hosted = self._found(None)
        else:
            try:
                hosted = self._conversations.begin(body.conversation_id)
            except ConversationRefused as refused:
                raise ApiError(503, refused.code, str(refused), headers={"retry-after": "30"}) from refused
        return ChatStream(
            hosted,
            body.text,
            on_disconnect=self._options.on_owner_disconnect,
            keep_alive_s=self._options.keep_alive_s,
            write_timeout_s=self._options.write_timeout_s,
        )

    async def cancel(self, request: Request) -> Response:
        body = await self._body(request, CancelRequest)
        hosted, run = self._run_of(body)
        if run.is_over:
            raise ApiError(409, "already_over", "that run is over, and what there was of it has been delivered")
        session = hosted.session
        fact = ClientCancelled(at=session.clock.now_ns(), run_id=run.run_id)
        judged = anyio.Event()
        verdict: list[Step[Context]] = []

        def note(step: Step[Context]) -> None:
            if step.fact is fact:
                verdict.append(step)
                judged.set()

        ignore = session.conversation.observe(note)
        try:
            session.report(fact)
            with anyio.move_on_after(JUDGE_TIMEOUT_S):
                await judged.wait()
        finally:
            ignore()
        actions = verdict[0].actions if verdict else ()
        for action in actions:
            if isinstance(action, Publish) and isinstance(action.payload, InterruptionRejected):
                raise ApiError(409, "refused", f"the interruption policy refuses: {action.payload.reason}")
        if not any(isinstance(action, StopPlayback) for action in actions):
            raise ApiError(409, "already_over", "that run is ending already, or has just ended")
        answer = Cancelled(conversation_id=hosted.conversation_id, run_id=run.run_id, response_id=run.response_id)
        return _json(answer.model_dump(mode="json"), 202)

    def _run_of(self, body: CancelRequest) -> tuple[Hosted, Run]:
        among = self._conversations.all()
        if body.conversation_id is not None:
            among = tuple(hosted for hosted in among if hosted.conversation_id == body.conversation_id)
        for hosted in among:
            run = hosted.runs.find(body.run_id, body.response_id)
            if run is not None:
                return hosted, run
        raise ApiError(404, "no_such_run", "no conversation has, or remembers, a run of that identity")

    # -- watching --------------------------------------------------------------------------------------------------

    async def events(self, request: Request) -> ASGIApp:
        hosted = self._wanted(request, "after", "follow")
        subscribe = partial(hosted.hub.subscribe, self._cursor(request))
        return self._stream(request, hosted, subscribe, lambda: hosted.hub.watermark)

    async def trace_stream(self, request: Request) -> ASGIApp:
        self._require_chart()
        hosted = self._wanted(request, "after", "follow")
        subscribe = partial(hosted.trace.subscribe, self._cursor(request))
        return self._stream(request, hosted, subscribe, lambda: hosted.trace.watermark)

    async def state(self, request: Request) -> Response:
        hosted = self._wanted(request)
        answer = StateAnswer(
            schema_version=SCHEMA_VERSION,
            conversation_id=hosted.conversation_id,
            kind=hosted.kind,
            watermark=str(hosted.hub.watermark),
            state=hosted.hub.state,
            configuration=list(hosted.session.conversation.leaves),
        )
        return _json(answer.model_dump(mode="json"))

    async def list_conversations(self, request: Request) -> Response:
        lines = [
            ConversationLine(
                conversation_id=hosted.conversation_id,
                kind=hosted.kind,
                is_foreground=hosted is self._conversations.foreground,
                session=hosted.hub.state["session"]["state"],
                watermark=str(hosted.hub.watermark),
                observers=len(hosted.hub.watchers),
            )
            for hosted in self._conversations.all()
        ]
        return _json(ConversationList(conversations=lines).model_dump(mode="json"))

    def _stream(
        self,
        request: Request,
        hosted: Hosted,
        subscribe: Callable[[], AbstractContextManager[Observer]],
        watermark: Callable[[], Cursor],
    ) -> ASGIApp:
        if self._observers >= self._options.max_observers:
            raise ApiError(
                503, "too_many_observers", "nobody more can watch at the moment", headers={"retry-after": "10"}
            )
        follow = request.query_params.get("follow", "true")
        if follow not in ("true", "false"):
            raise ApiError(422, "invalid_query", 'follow: is "true" or "false"')
        self._observers += 1
        hosted.touch()

        def release() -> None:
            self._observers -= 1
            hosted.touch()

        return EventStream(
            subscribe,
            watermark,
            follow=follow == "true",
            keep_alive_s=self._options.keep_alive_s,
            write_timeout_s=self._options.write_timeout_s,
            release=release,
        )

    def _cursor(self, request: Request) -> Cursor | None:
        """Where a browser that comes back was, or what the address says."""
        after = request.query_params.get("after")
        asked = None if after is None else Cursor.parse(after)
        if after is not None and asked is None:
            raise ApiError(422, "invalid_query", "after: is no cursor, epoch:sequence")
        last = request.headers.get("last-event-id")
        # A server may have told a browser that it is to begin anew: its id is no cursor.
        return asked if last is None else Cursor.parse(last)

    # -- the chart -------------------------------------------------------------------------------------------------

    async def chart(self, request: Request) -> Response:
        hosted = self._wanted(request)
        return _json(chart_json(hosted.session.conversation.definition))

    async def chart_picture(self, request: Request) -> Response:
        picture = chart_picture()
        if picture is None:
            raise ApiError(404, "no_picture", "this installation holds no picture of the chart")
        return Response(picture, media_type="image/svg+xml", headers={"cache-control": "no-cache"})

    async def trace(self, request: Request) -> Response:
        self._require_chart()
        hosted = self._wanted(request)
        name = f"{hosted.conversation_id}-trace.jsonl"
        return Response(
            hosted.trace.lines().encode("utf-8", "surrogatepass"),
            media_type="application/x-ndjson",
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )

    def _require_chart(self) -> None:
        if not self._options.show_chart:
            raise ApiError(403, "chart_not_shown", "the trace is not served here: web.show_chart is false")

    # -- the rest --------------------------------------------------------------------------------------------------

    async def open_session(self, request: Request) -> Response:
        """Trade the token for a cookie, because `EventSource` sends no headers."""
        body = await self._body(request, SessionRequest)
        if self._access.needs_token and not self._access.is_token(body.token):
            raise ApiError(401, "wrong_token", "that is not the token")
        response = Response(status_code=204)
        response.set_cookie(
            COOKIE,
            self._access.open_session(),
            max_age=SESSION_S,
            path="/api",
            secure=request.url.scheme == SECURE_SCHEME,
            httponly=True,
            samesite="strict",
        )
        return response

    async def openapi(self, request: Request) -> Response:
        return _json(openapi_document(self._options.max_text_chars))

    async def health(self, request: Request) -> Response:
        return _json(Health(status="ok", version=__version__).model_dump(mode="json"))

    def _wanted(self, request: Request, *others: str) -> Hosted:
        """The conversation that the address names. Raises `ApiError`, for what an address says besides, too."""
        known = {"conversation_id", *others}
        for name, _ in request.query_params.multi_items():
            if name not in known or len(request.query_params.getlist(name)) > 1:
                raise ApiError(422, "invalid_query", "the address says what is not known here, or says it twice")
        return self._found(request.query_params.get("conversation_id"))

    def _found(self, conversation_id: str | None) -> Hosted:
        hosted = self._conversations.find(conversation_id)
        if hosted is None:
            raise ApiError(
                404, "no_such_conversation", "there is no conversation of that name; /api/conversations lists them"
            )
        return hosted

    async def _body(self, request: Request, kind: type[BodyT]) -> BodyT:
        """Read and check a body. Raises `ApiError`."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ApiError(415, "unsupported_media_type", "send JSON, with content-type: application/json")
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > self._options.max_body_bytes:
                raise too_large(self._options.max_body_bytes)
        return parse_body(kind, bytes(data))


def _json(value: Json, status: int = 200) -> Response:
    return Response(compact(value) + b"\n", status, media_type="application/json")
