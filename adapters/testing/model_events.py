"""Whole answers as OpenAI's Responses and Anthropic's Messages stream them: the bodies for a `ScriptedHttpServer`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from ...engines.ports import ToolRequest
from .http_server import typed_sse, words_of

JsonObject = dict[str, JsonValue]


def response_events(text: str, *, calls: Sequence[ToolRequest] = ()) -> tuple[bytes, ...]:
    """In the shape of `openai.types.responses.ResponseStreamEvent`: a word an event, then the calls."""
    events: list[JsonObject] = [{"type": "response.created", "response": _response("in_progress", [])}]
    output: list[JsonValue] = []
    if text:
        message = _message(text)
        output.append(message)
        events.append(_item("added", {**message, "status": "in_progress", "content": []}, 0))
        place: JsonObject = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
        events += [{"type": "response.output_text.delta", "delta": word, **place} for word in words_of(text)]
        events.append({"type": "response.output_text.done", "text": text, **place})
        events.append(_item("done", message, 0))
    for call in calls:
        index, item = len(output), _function_call(call, "completed")
        output.append(item)
        events.append(_item("added", {**item, "arguments": "", "status": "in_progress"}, index))
        delta: JsonObject = {"item_id": item["id"], "output_index": index, "delta": call.arguments_json}
        events.append({"type": "response.function_call_arguments.delta", **delta})
        events.append(_item("done", item, index))
    events.append({"type": "response.completed", "response": _response("completed", output)})
    return typed_sse(*({**event, "sequence_number": number} for number, event in enumerate(events)))


def message_events(text: str, *, calls: Sequence[ToolRequest] = ()) -> tuple[bytes, ...]:
    """In the shape of `anthropic.types.RawMessageStreamEvent`: a word an event, then the calls."""
    head: JsonObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    head |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 1}}
    start: JsonObject = {"type": "message_start", "message": head}
    events: list[JsonObject] = [start, {"type": "ping"}]
    if text:
        deltas: list[JsonValue] = [{"type": "text_delta", "text": word} for word in words_of(text)]
        events += _block(0, {"type": "text", "text": ""}, deltas)
    for index, call in enumerate(calls, start=1 if text else 0):
        tool: JsonObject = {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}
        events += _block(index, tool, [{"type": "input_json_delta", "partial_json": call.arguments_json}])
    delta: JsonObject = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    usage: JsonObject = {"output_tokens": len(words_of(text))}
    end: JsonObject = {"type": "message_delta", "delta": delta, "usage": usage}
    return typed_sse(*events, end, {"type": "message_stop"})


def _response(status: str, output: list[JsonValue]) -> JsonObject:
    response: JsonObject = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status}
    response |= {"output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    if status == "completed":
        words = sum(len(words_of(json.dumps(item))) for item in output)
        response["usage"] = {
            "input_tokens": 7,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": words,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 7 + words,
        }
    return response


def _message(text: str) -> JsonObject:
    content: JsonValue = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _function_call(call: ToolRequest, status: str) -> JsonObject:
    item: JsonObject = {"id": f"fc_{call.call_id}", "type": "function_call", "status": status}
    return item | {"call_id": call.call_id, "name": call.name, "arguments": call.arguments_json}


def _item(what: str, item: JsonObject, index: int) -> JsonObject:
    return {"type": f"response.output_item.{what}", "output_index": index, "item": item}


def _block(index: int, start: JsonObject, deltas: list[JsonValue]) -> list[JsonObject]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
