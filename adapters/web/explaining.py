"""Why a macrostep went as it did, for whoever clicks on it: the lines that were tried, and what their guards saw."""

from __future__ import annotations

import re
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...statecharts.charts import conversation_chart, name_of
from ...statecharts.conversation import ConversationChart
from ...statecharts.traces import Explanation, Trace, TraceError, explain, parse_trace, sentence_of, shown_value
from .bodies import Body
from .conversations import Conversations, Hosted
from .errors import ApiError
from .wire import compact

NUMBER = re.compile(r"[0-9]{1,16}")


class ExplainedGuard(Body):
    """One guard and its answer. `looked_at`: names and values that it read, as people read them."""

    name: str
    wanted: bool
    answer: bool
    held: bool
    meaning: str
    looked_at: list[tuple[str, str]]


class ExplainedLine(Body):
    """A line that the fact could have taken; its guards up to the first that did not hold."""

    region: str
    leaf: str
    target: str | None
    row: int
    enabled: bool
    guards: list[ExplainedGuard]
    actions: list[str]


class Explained(Body):
    """Everything there is to say about one macrostep, redacted as the trace is."""

    number: int
    sentence: str
    fate: Literal["accepted", "refused", "ignored"]
    tried: list[ExplainedLine]
    judgement: str | None
    """What the interruption policy answered, where it was asked."""


def explanation_route(conversations: Conversations, *, is_shown: bool) -> Route:
    """`GET /api/trace/explanation?number=`."""

    async def answer(request: Request) -> Response:
        if not is_shown:
            raise ApiError(403, "chart_not_shown", "the trace is not served here: web.show_chart is false")
        number = request.query_params.get("number", "")
        if NUMBER.fullmatch(number) is None:
            raise ApiError(422, "invalid_query", "number: is the number of a macrostep")
        hosted = conversations.find(request.query_params.get("conversation_id"))
        if hosted is None:
            raise ApiError(
                404, "no_such_conversation", "there is no conversation of that name; /api/conversations lists them"
            )
        explained = _explained(hosted, int(number))
        return Response(compact(explained.model_dump(mode="json")) + b"\n", media_type="application/json")

    return Route("/api/trace/explanation", answer, methods=["GET"])


def _explained(hosted: Hosted, number: int) -> Explained:
    """Raises `ApiError`."""
    lines = hosted.trace.about(number)
    if not lines:
        raise ApiError(404, "no_such_record", "that macrostep is not kept, or has not happened")
    conversation = hosted.session.conversation
    definition = conversation.definition
    assert issubclass(definition, ConversationChart)
    chart = conversation_chart(name_of(definition), definition)
    try:
        trace = parse_trace(lines.encode("utf-8", "surrogatepass"), "the trace")
        explanation = explain(trace, number, chart, conversation.policies, conversation.ids)
    except TraceError as error:
        raise ApiError(409, "not_explained", str(error)) from error
    judgement = explanation.judgement
    return Explained(
        number=number,
        sentence=sentence_of(trace, explanation),
        fate=explanation.fate.value,
        tried=_tried(trace, explanation),
        judgement=None if judgement is None else f"{judgement.verdict} ({judgement.reason})",
    )


def _tried(trace: Trace, explanation: Explanation) -> list[ExplainedLine]:
    return [
        ExplainedLine(
            region=line.region,
            leaf=line.leaf,
            target=line.target,
            row=line.row,
            enabled=line.enabled,
            guards=[
                ExplainedGuard(
                    name=guard.name,
                    wanted=guard.wanted,
                    answer=guard.answer,
                    held=guard.held,
                    meaning=guard.meaning,
                    looked_at=[(name, shown_value(trace, name, value)) for name, value in guard.looked_at],
                )
                for guard in line.guards
            ],
            actions=list(line.actions),
        )
        for line in explanation.tried
    ]
