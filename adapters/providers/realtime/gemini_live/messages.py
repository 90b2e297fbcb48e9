"""What is said to the service. Every message has one key; the first one is `setup`.

Source: google.genai of google-genai 3.6.1; what its own client sends is in the oracles.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

from pydantic import JsonValue

from .....engines.ports import Message, ToolDefinition
from .....engines.realtime import ToolOutput
from ...generation import parameters_of
from ...websocket import JsonObject

INPUT_MIME = "audio/pcm;rate=16000"
NOT_MADE: JsonObject = {"error": "not made: the user interrupted"}


def activity_start() -> JsonObject:
    """The user speaks: whatever the model is saying is interrupted."""
    return {"realtimeInput": {"activityStart": {}}}


def audio(pcm: bytes) -> JsonObject:
    """A piece of it, inside an activity."""
    return {"realtimeInput": {"audio": {"data": base64.b64encode(pcm).decode(), "mimeType": INPUT_MIME}}}


def activity_end() -> JsonObject:
    """The user has finished: the model answers."""
    return {"realtimeInput": {"activityEnd": {}}}


def content(turns: Iterable[JsonObject], *, complete: bool) -> JsonObject:
    """What was written. `complete`: the model answers."""
    given: list[JsonValue] = [*turns]
    said: JsonObject = {"turns": given} if given else {}
    return {"clientContent": {**said, "turnComplete": complete}}


def user_turn(text: str) -> JsonObject:
    """Something that the user wrote."""
    return {"role": "user", "parts": [{"text": text}]}


def tool_response(outputs: Iterable[tuple[str, str, JsonObject]]) -> JsonObject:
    """What came of calls: the call, the tool and its outcome. The model goes on by itself."""
    responses: list[JsonValue] = [
        {"id": call_id, "name": name, "response": response} for call_id, name, response in outputs
    ]
    return {"toolResponse": {"functionResponses": responses}}


def outcome(output: ToolOutput) -> JsonObject:
    """An object stays one; anything else stands under "output"."""
    try:
        value: JsonValue = json.loads(output.output)
    except (ValueError, RecursionError):
        value = output.output
    return value if isinstance(value, dict) else {"output": value}


def declaration(tool: ToolDefinition) -> JsonObject:
    """`parametersJsonSchema` takes JSON Schema as it is; a tool without arguments declares none."""
    schema = parameters_of(tool)
    declared: JsonObject = {"name": tool.name, "description": tool.description}
    if schema.get("properties"):
        declared["parametersJsonSchema"] = schema
    return declared


def history(messages: Iterable[Message]) -> list[JsonObject]:
    """What was said before, as turns of the user and of the model.

    A call of former days and its outcome stand there as text: the service wants its own signatures back with a call.
    """
    names: dict[str, str] = {}
    turns: list[tuple[str, list[JsonValue]]] = []
    for message in messages:
        names.update((call.call_id, call.name) for call in message.tool_calls)
        text = message.text
        if message.role == "tool":
            text = f"({names.get(message.call_id or '', 'a tool')} returned: {message.text})"
        if not text:
            continue
        role = "model" if message.role == "assistant" else "user"
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].append({"text": text})
    return [{"role": role, "parts": parts} for role, parts in turns]
