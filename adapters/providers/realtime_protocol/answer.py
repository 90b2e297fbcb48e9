"""One answer, and how it ends. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ....engines.realtime.reports import (
    AnswerCallsTool,
    AnswerEnded,
    AnswerFailed,
    AnswerUsage,
    ProviderInterruption,
)
from ....statecharts.values import Usage
from ..generation import (
    CALL_TOO_LONG,
    CONTENT_FILTERED,
    MALFORMED_CALL,
    MAX_ARGUMENTS_CHARS,
    MAX_TOOL_CALLS,
    OUTPUT_LIMIT,
    TOO_MANY_CALLS,
    UNKNOWN_FINISH,
    whole_call,
)
from .dialect import ANSWERS
from .faults import meaning
from .items import Item, output_item
from .told import Told
from .wire import Fault, ResponseBody

INCOMPLETE = {"max_output_tokens": OUTPUT_LIMIT, "content_filter": CONTENT_FILTERED}


@dataclass(slots=True)
class Call:
    """One call, as far as it is known."""

    call_id: str = ""
    name: str = ""
    arguments: str | None = None
    """None: not told to its end."""


@dataclass(slots=True)
class Answer:
    """One answer that was asked for."""

    answer_id: str
    event_id: str
    """Of the `response.create`."""
    response_id: str | None = None
    is_cancelled: bool = False
    is_refused: bool = False
    """Another response was active: it is asked for again when that one is over."""
    is_told: bool = False
    """Its terminal was told already."""
    spoke: bool = False
    texts: dict[str, str] = field(default_factory=dict[str, str])
    calls: dict[str, Call] = field(default_factory=dict[str, Call])

    @property
    def is_listened_to(self) -> bool:
        """What comes of it is told."""
        return not (self.is_cancelled or self.is_told)


def outcome(vendor: str, answer: Answer, body: ResponseBody) -> Iterator[Told]:
    """What `response.done` says of an answer that somebody listens to. The terminal is last.

    Cancelled, incomplete and failed are different ends, and one that nobody knows is never a completed one.
    """
    details = body.status_details
    reason = None if details is None else details.reason
    if body.usage is not None:
        yield AnswerUsage(answer.answer_id, Usage(body.usage.input_tokens, body.usage.output_tokens))
    match body.status:
        case "completed":
            yield from _completed(answer, body)
        case "cancelled":
            if reason == "turn_detected":
                yield ProviderInterruption()
            message = "the provider ended the answer, which nobody here asked for"
            yield _failed(answer, "answer_cut_off", message, retryable=True)
        case "incomplete":
            yield _failed(answer, *INCOMPLETE.get(reason or "", UNKNOWN_FINISH))
        case "failed":
            fault = Fault() if details is None or details.error is None else details.error
            error = meaning(vendor, fault, ANSWERS).error
            yield _failed(answer, error.code, error.message, retryable=error.retryable)
        case _:
            yield _failed(answer, *UNKNOWN_FINISH)


def _completed(answer: Answer, body: ResponseBody) -> Iterator[Told]:
    calls = _calls(answer, body)
    if len(calls) > MAX_TOOL_CALLS:
        yield _failed(answer, *TOO_MANY_CALLS)
        return
    told: list[AnswerCallsTool] = []
    for call in calls:
        if len(call.arguments or "") > MAX_ARGUMENTS_CHARS:
            yield _failed(answer, *CALL_TOO_LONG)
            return
        whole = None if call.arguments is None else whole_call(call.call_id, call.name, call.arguments)
        if whole is None:
            yield _failed(answer, *MALFORMED_CALL)
            return
        told.append(AnswerCallsTool(answer.answer_id, whole.call_id, whole.name, whole.arguments_json))
    yield from told
    yield AnswerEnded(answer.answer_id, awaits_tools=bool(told))


def _calls(answer: Answer, body: ResponseBody) -> list[Call]:
    """Also those whose own events are missing: the last message names every item."""
    for item in body.output or ():
        if item.type == "function_call" and item.id is not None:
            call = answer.calls.setdefault(item.id, Call())
            call.call_id, call.name = call.call_id or item.call_id or "", call.name or item.name or ""
            call.arguments = item.arguments if call.arguments is None else call.arguments
    return list({call.call_id or place: call for place, call in answer.calls.items()}.values())


def outputs_of_unheard(answer: Answer, body: ResponseBody) -> Iterator[Item]:
    """Of a cancel that came too late: every call gets an outcome, and these are not made."""
    if body.status == "completed":
        for call in _calls(answer, body):
            if call.call_id:
                yield output_item(call.call_id, "(not made: the user interrupted)")


def _failed(answer: Answer, code: str, message: str, *, retryable: bool = False) -> AnswerFailed:
    """It can be tried again only while nothing of it was told."""
    retryable = retryable and not answer.spoke
    error = ANSWERS.error(code, message, retryable=retryable, partial_output=answer.spoke)
    return AnswerFailed(answer.answer_id, error)
