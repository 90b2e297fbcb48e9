"""From the chunks of a chat completion to reports: pure, no I/O.

Rules that the field taught (compatible servers differ):

- A tool call is keyed by its id; a new id is a new call, whatever its index says. A delta without an id belongs to the
  call of its index, and without an index to the current call. A call that never gets an id is named `call_<index>`.
- A call is proposed only at the end, when its arguments are one whole JSON object; a prefix is never proposed.
- The end is a `finish_reason`, or `[DONE]`. A stream that just stops was cut.
- "length" and "content_filter" are not completions: the text so far stands, and the response failed with a reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from ...engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    ReasoningDelta,
    TextDelta,
    ToolCallProposed,
    UsageUpdated,
)
from ...statecharts.errors import ErrorScope, ScopedError
from ...statecharts.values import Usage
from .openai_wire import ChatChunk, Delta, ErrorBody, ToolCallDelta

MAX_TOOL_CALLS = 32
MAX_ARGUMENTS_CHARS = 64 * 1_024

COMPLETE = frozenset({"stop", "tool_calls"})
INCOMPLETE = {
    "length": ("output_limit", "the model stopped at its output limit; raise the limit or ask for a shorter answer"),
    "content_filter": ("content_filtered", "the provider's content filter cut the answer; rephrase the request"),
}


def generation_error(
    code: str,
    message: str,
    *,
    scope: ErrorScope = ErrorScope.RESPONSE,
    retryable: bool = False,
    retry_after_ms: int | None = None,
    partial_output: bool = False,
) -> ScopedError:
    """An error of the generation stage."""
    return ScopedError(code, "generation", scope, message, retryable, retry_after_ms, partial_output)


@dataclass(slots=True)
class _Call:
    index: int
    id: str | None = None
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class ChatAssembly:
    """One response being received. `feed` every chunk, then `end` once."""

    complete: frozenset[str] = COMPLETE
    """The finish reasons that are a completion."""
    _calls: list[_Call] = field(default_factory=list[_Call])
    _current_of_index: dict[int, _Call] = field(default_factory=dict[int, _Call])
    _finish_reason: str | None = None
    _failure: ScopedError | None = None
    _spoke: bool = False

    @property
    def failed(self) -> bool:
        """Nothing more needs to be read: `end` reports the failure."""
        return self._failure is not None

    @property
    def finished(self) -> bool:
        """A finish reason came; at most the usage follows."""
        return self._finish_reason is not None

    @property
    def spoke(self) -> bool:
        """Visible text came."""
        return self._spoke

    def feed(self, chunk: ChatChunk) -> Iterator[GenerationReport]:
        """What this chunk adds. Tool calls wait for the end."""
        if chunk.error is not None:
            self._fail(
                "provider_error", f"the provider failed while answering ({error_code(chunk.error)})", retryable=True
            )
            return
        for choice in chunk.choices:
            if choice.index != 0:
                continue
            yield from self._feed_delta(choice.delta)
            self._finish_reason = choice.finish_reason or self._finish_reason
        if chunk.usage is not None:
            yield UsageUpdated(Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens))

    def fail(self, error: ScopedError) -> None:
        """The connection failed, or a chunk was not understood. The first failure counts."""
        self._failure = self._failure or error

    def end(self, *, done: bool) -> Iterator[GenerationReport]:
        """The stream is over; `done`: it said `[DONE]`. The terminal report is the last."""
        if self._failure is None and not self.finished and not done:
            self._fail(
                "stream_truncated", "the provider's stream ended in the middle; check the connection", retryable=True
            )
        if self._failure is None and self.finished and self._finish_reason not in self.complete:
            unknown = (
                "unknown_finish",
                "the provider ended the answer for a reason this version does not know; update it",
            )
            self._fail(*INCOMPLETE.get(self._finish_reason or "", unknown))
        proposals = [self._proposal(call) for call in self._calls]
        if self._failure is not None:
            yield GenerationErrored(self._failure)
            return
        yield from (proposal for proposal in proposals if proposal is not None)
        yield GenerationEnded(awaits_tools=bool(proposals))

    def _feed_delta(self, delta: Delta) -> Iterator[GenerationReport]:
        if delta.reasoning_content:
            yield ReasoningDelta(delta.reasoning_content)
        for text in (delta.content, delta.refusal):
            if text:
                self._spoke = True
                yield TextDelta(text)
        if delta.function_call is not None:
            self._fail(
                "unsupported_function_call", "the server answers with the old function_call; use one with tool_calls"
            )
        for part in delta.tool_calls or ():
            self._feed_call(part)

    def _feed_call(self, part: ToolCallDelta) -> None:
        call = self._call_of(part)
        if call is None:
            self._fail("too_many_tool_calls", f"more than {MAX_TOOL_CALLS} tool calls in one response")
            return
        if part.function is not None:
            call.name = call.name or part.function.name or ""
            call.arguments += part.function.arguments or ""
        if len(call.arguments) > MAX_ARGUMENTS_CHARS:
            self._fail("tool_call_too_long", f"the arguments of a tool call exceed {MAX_ARGUMENTS_CHARS} characters")

    def _call_of(self, part: ToolCallDelta) -> _Call | None:
        at_index = self._current_of_index.get(part.index) if part.index is not None else None
        if part.id:
            known = next((call for call in self._calls if call.id == part.id), None)
            if known is None and at_index is not None and at_index.id is None:
                known = at_index
            if known is not None:
                known.id = part.id
                return known
        elif at_index is not None:
            return at_index
        elif part.index is None and self._calls:
            return self._calls[-1]
        if len(self._calls) >= MAX_TOOL_CALLS:
            return None
        call = _Call(part.index if part.index is not None else len(self._calls), part.id or None)
        self._calls.append(call)
        self._current_of_index[call.index] = call
        return call

    def _proposal(self, call: _Call) -> ToolCallProposed | None:
        arguments = call.arguments.strip() or "{}"
        try:
            whole = isinstance(json.loads(arguments), dict)
        except ValueError:
            whole = False
        if not whole or not call.name:
            self._fail("tool_call_invalid", "the model's tool call has no name or no whole JSON object as arguments")
            return None
        return ToolCallProposed(call.id or f"call_{call.index}", call.name, arguments)

    def _fail(self, code: str, message: str, *, retryable: bool = False) -> None:
        self.fail(generation_error(code, message, retryable=retryable and not self._spoke, partial_output=self._spoke))


def error_code(error: ErrorBody | str | None) -> str:
    """The provider's own code, as far as it is safe to show: a short identifier, never its free text."""
    candidates: tuple[JsonValue, ...] = (error.code, error.type) if isinstance(error, ErrorBody) else ()
    for candidate in candidates:
        text = str(candidate) if isinstance(candidate, str | int) else ""
        if 0 < len(text) <= 64 and all(character.isalnum() or character in "_.-" for character in text):
            return text
    return "no code given"
