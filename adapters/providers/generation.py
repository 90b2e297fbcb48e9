"""What every adapter of a model shares: how its failures are told, and what makes a tool call whole."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from ...engines.ports import ToolDefinition
from ...engines.reports import GenerationErrored, GenerationReport, TextDelta, ToolCallProposed
from ...statecharts.errors import ScopedError
from .refusals import Stage

GENERATION = Stage("generation")

MAX_TOOL_CALLS = 32
MAX_ARGUMENTS_CHARS = 64 * 1_024

OUTPUT_LIMIT = ("output_limit", "the model stopped at its output limit; raise the limit or ask for a shorter answer")
CONTENT_FILTERED = ("content_filtered", "the provider's content filter cut the answer; rephrase the request")
UNKNOWN_FINISH = (
    "unknown_finish",
    "the provider ended the answer for a reason that this version does not know; update it",
)
TRUNCATED = ("stream_truncated", "the provider's stream ended in the middle; check the connection")
MALFORMED_CALL = ("tool_call_invalid", "the model's tool call has no name or no whole JSON object as arguments")
TOO_MANY_CALLS = ("too_many_tool_calls", f"more than {MAX_TOOL_CALLS} tool calls in one response")
CALL_TOO_LONG = (
    "tool_call_too_long",
    f"the arguments of a tool call exceed {MAX_ARGUMENTS_CHARS} characters",
)


def whole_call(call_id: str, name: str, arguments: str) -> ToolCallProposed | None:
    """The call, when it has a name and one whole JSON object as arguments ("" is none: `{}`); a prefix never is one."""
    arguments = arguments.strip() or "{}"
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return None
    return ToolCallProposed(call_id, name, arguments) if is_object and name and call_id else None


def parameters_of(tool: ToolDefinition) -> dict[str, JsonValue]:
    """A tool's JSON Schema. Raises `ValueError` for one that is no JSON object."""
    schema: JsonValue = json.loads(tool.parameters_schema)
    if not isinstance(schema, dict):
        raise ValueError(f"the parameters of tool {tool.name!r} must be a JSON Schema object")
    return schema


class Response:
    """One response being received: whether it spoke, and its first failure, which decides how it ends.

    A subclass feeds itself with events and says in `completion` what a response without failure ends with.
    """

    def __init__(self) -> None:
        self.spoke = False
        """Visible text came: no other attempt may be made."""
        self._failure: ScopedError | None = None

    @property
    def failed(self) -> bool:
        """Nothing more needs to be read: `end` reports the failure."""
        return self._failure is not None

    def fail(self, code: str, message: str, *, retryable: bool = False, retry_after_ms: int | None = None) -> None:
        """The first failure counts; it can be tried again only while nothing was visible."""
        if self._failure is None:
            self._failure = GENERATION.error(
                code,
                message,
                retryable=retryable and not self.spoke,
                retry_after_ms=retry_after_ms,
                partial_output=self.spoke,
            )

    def say(self, text: str) -> Iterator[GenerationReport]:
        """Visible text, if it is not empty."""
        if text:
            self.spoke = True
            yield TextDelta(text)

    def end(self) -> Iterator[GenerationReport]:
        """The stream is over. The terminal report is the last."""
        completion = [] if self.failed else self.completion()
        if self._failure is not None:
            yield GenerationErrored(self._failure)
        else:
            yield from completion

    def completion(self) -> list[GenerationReport]:
        """What the response ends with: tool calls, then its end. May fail instead."""
        raise NotImplementedError
