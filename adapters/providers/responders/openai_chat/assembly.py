"""From the chunks of a chat completion to reports: pure, no I/O.

Rules that the field taught (compatible servers differ):

- A tool call is keyed by its id; a new id is a new call, whatever its index says. A delta without an id belongs to the
  call of its index, and without an index to the current call. A call that never gets an id is named `call_<index>`.
- A call is proposed only at the end, when its arguments are one whole JSON object; a prefix is never proposed.
- The end is a `finish_reason`, or `[DONE]`. A stream that just stops was cut.
- "length" and "content_filter" are not completions: the text so far stands, and the response failed with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from httpx_sse import ServerSentEvent
from pydantic import ValidationError

from .....engines.reports import GenerationEnded, GenerationReport, ReasoningDelta, ToolCallProposed, UsageUpdated
from .....statecharts.values import Usage
from ...generation import (
    CALL_TOO_LONG,
    CONTENT_FILTERED,
    MALFORMED_CALL,
    MAX_ARGUMENTS_CHARS,
    MAX_TOOL_CALLS,
    OUTPUT_LIMIT,
    TOO_MANY_CALLS,
    TRUNCATED,
    UNKNOWN_FINISH,
    Response,
    whole_call,
)
from ...refusals import NO_CODE, shown_code
from .wire import ChatChunk, Delta, ErrorBody, ToolCallDelta

DONE = "[DONE]"

COMPLETE = frozenset({"stop", "tool_calls"})
INCOMPLETE = {"length": OUTPUT_LIMIT, "content_filter": CONTENT_FILTERED}


@dataclass(slots=True)
class _Call:
    index: int
    id: str | None = None
    name: str = ""
    arguments: str = ""


class ChatAssembly(Response):
    """One response being received. `take` every chunk (or `feed` every event), then `end` once."""

    def __init__(self, complete: frozenset[str] = COMPLETE) -> None:
        """`complete`: the finish reasons that are a completion."""
        super().__init__()
        self._complete = complete
        self._calls: list[_Call] = []
        self._current_of_index: dict[int, _Call] = {}
        self._finish_reason: str | None = None
        self._done = False

    @property
    def over(self) -> bool:
        """It said `[DONE]`."""
        return self._done

    @property
    def finished(self) -> bool:
        """A finish reason came; at most the usage follows."""
        return self._finish_reason is not None

    def feed(self, event: ServerSentEvent) -> Iterator[GenerationReport]:
        """What this event adds. Tool calls wait for the end."""
        if event.data.strip() == DONE:
            self._done = True
        elif event.data:
            try:
                chunk = ChatChunk.model_validate_json(event.data)
            except ValidationError:
                self.fail(
                    "malformed_chunk", "the provider sent a chunk that is no chat completion chunk; check base_url"
                )
            else:
                yield from self.take(chunk)

    def note_done(self) -> None:
        """For a source that ends without `[DONE]`, and tells otherwise when it was cut."""
        self._done = True

    def take(self, chunk: ChatChunk) -> Iterator[GenerationReport]:
        """What this chunk adds."""
        if chunk.error is not None:
            code = _error_code(chunk.error)
            self.fail("provider_error", f"the provider failed while answering ({code})", retryable=True)
            return
        for choice in chunk.choices:
            if choice.index != 0:
                continue
            yield from self._feed_delta(choice.delta)
            self._finish_reason = choice.finish_reason or self._finish_reason
        if chunk.usage is not None:
            yield UsageUpdated(Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens))

    def completion(self) -> list[GenerationReport]:
        """A stream that just stopped was cut; a `finish_reason` without `[DONE]`, or the other way round, is whole."""
        if not self.finished and not self._done:
            self.fail(*TRUNCATED, retryable=True)
        if self.finished and self._finish_reason not in self._complete:
            self.fail(*INCOMPLETE.get(self._finish_reason or "", UNKNOWN_FINISH))
        proposals = [self._proposal(call) for call in self._calls]
        return [*(call for call in proposals if call is not None), GenerationEnded(awaits_tools=bool(proposals))]

    def _feed_delta(self, delta: Delta) -> Iterator[GenerationReport]:
        if delta.reasoning_content:
            yield ReasoningDelta(delta.reasoning_content)
        yield from self.say(delta.content or "")
        yield from self.say(delta.refusal or "")
        if delta.function_call is not None:
            self.fail(
                "unsupported_function_call", "the server answers with the old function_call; use one with tool_calls"
            )
        for part in delta.tool_calls or ():
            self._feed_call(part)

    def _feed_call(self, part: ToolCallDelta) -> None:
        call = self._call_of(part)
        if call is None:
            self.fail(*TOO_MANY_CALLS)
            return
        if part.function is not None:
            call.name = call.name or part.function.name or ""
            call.arguments += part.function.arguments or ""
        if len(call.arguments) > MAX_ARGUMENTS_CHARS:
            self.fail(*CALL_TOO_LONG)

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
        proposal = whole_call(call.id or f"call_{call.index}", call.name, call.arguments)
        if proposal is None:
            self.fail(*MALFORMED_CALL)
        return proposal


def _error_code(error: ErrorBody | str) -> str:
    """The provider's own code, as far as it is safe to show: a short identifier, never its free text."""
    candidates = (error.code, error.type) if isinstance(error, ErrorBody) else ()
    return next((code for code in map(shown_code, candidates) if code is not None), NO_CODE)
