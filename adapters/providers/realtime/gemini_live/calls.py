"""The model's calls, as they come: whole, or not at all. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .....engines.realtime.reports import AnswerCallsTool
from ...generation import (
    CALL_TOO_LONG,
    MALFORMED_CALL,
    MAX_ARGUMENTS_CHARS,
    MAX_TOOL_CALLS,
    TOO_MANY_CALLS,
    whole_call,
)
from ...realtime_protocol import Sending, Told
from .messages import NOT_MADE, tool_response
from .turn import UNNAMED
from .wire import FunctionCall


def read_calls(calls: list[FunctionCall]) -> tuple[tuple[str, str] | None, list[AnswerCallsTool]]:
    """What is wrong with them and none, or nothing and all of them."""
    told: list[AnswerCallsTool] = []
    if len(calls) > MAX_TOOL_CALLS:
        return TOO_MANY_CALLS, []
    for call in calls:
        arguments = json.dumps(call.args or {}, ensure_ascii=False, separators=(",", ":"))
        if len(arguments) > MAX_ARGUMENTS_CHARS:
            return CALL_TOO_LONG, []
        is_partial = call.partial_args is not None or call.will_continue
        whole = None if is_partial else whole_call(call.id or "", call.name or "", arguments)
        if whole is None:
            return MALFORMED_CALL, []
        told.append(AnswerCallsTool(UNNAMED, whole.call_id, whole.name, whole.arguments_json))
    return None, told


def refuse(calls: list[FunctionCall]) -> Iterator[Told]:
    """Nobody makes them; the model waits for every one."""
    outputs = [(call.id, call.name or "", NOT_MADE) for call in calls if call.id]
    if outputs:
        yield Sending(tool_response(outputs))
