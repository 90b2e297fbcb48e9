"""From the events of a message to reports: pure, no I/O.

- The end is `message_stop`. A stream that stops before it was cut, and an `error` may come at any time after the status
  200 (`overloaded_error`, say).
- `ping` comes at any time, and new kinds of events, blocks and deltas may be added: they are ignored.
- Blocks are told apart by index. A tool's input is its JSON fragments put together, the first of which may be empty;
  with no fragment at all it is {}.
- Counts are cumulative: the later one replaces the earlier.
- Only "end_turn" and "stop_sequence" are a whole answer, and "tool_use" a whole step. "pause_turn" concerns tools that
  the provider runs itself, which are never offered.
- Thinking is kept with its signature, to go back unchanged and in its place; it is neither shown nor spoken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from httpx_sse import ServerSentEvent
from pydantic import ValidationError

from .....engines.reports import (
    GenerationEnded,
    GenerationReport,
    ProviderState,
    ReasoningDelta,
    ToolCallProposed,
    UsageUpdated,
)
from .....statecharts.values import Usage
from ...generation import (
    CALL_TOO_LONG,
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
from .wire import KIND, ContentBlock, Delta, Event, JsonObject, TokenUsage, replayed

WHOLE = frozenset({"end_turn", "stop_sequence", "tool_use"})
INCOMPLETE = {
    "max_tokens": OUTPUT_LIMIT,
    "model_context_window_exceeded": (
        "context_window_full",
        "the conversation fills the model's context; show it less of the history, or choose another model",
    ),
    "refusal": ("model_refused", "the model declined to go on with this answer; rephrase the request"),
    "pause_turn": ("turn_paused", "the provider paused for a tool of its own, which was never offered; leave it out"),
}
WORTH_ANOTHER_TRY = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
"""Types of errors that pass; of any other the request is the cause."""
MAX_BLOCKS = 256
MALFORMED = ("malformed_chunk", "the provider sent events that make no message; check base_url and api_version")


@dataclass(slots=True)
class _Block:
    start: ContentBlock
    text: str = ""
    """Of text and thinking."""
    signature: str = ""
    partial_json: str = ""
    is_whole: bool = False

    def as_sent_back(self) -> JsonObject | None:
        """As a message of the assistant has it; None for what cannot go back."""
        match self.start.type:
            case "text":
                return {"type": "text", "text": self.text} if self.text.strip() else None
            case "thinking":
                return {"type": "thinking", "thinking": self.text, "signature": self.signature}
            case "redacted_thinking":
                return {"type": "redacted_thinking", "data": self.start.data}
            case "tool_use":
                tool_input = json.loads(self.input_json())
                return {"type": "tool_use", "id": self.start.id, "name": self.start.name, "input": tool_input}
            case _:
                return None

    def input_json(self) -> str:
        """Of a tool: the fragments, or what the block began with."""
        return self.partial_json.strip() or json.dumps(self.start.input or {})


class MessageAssembly(Response):
    """One message being received. `feed` every event, then `end` once."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, _Block] = {}
        self._begun = False
        self._stopped = False
        self._stop_reason: str | None = None
        self._usage = TokenUsage()

    @property
    def over(self) -> bool:
        """`message_stop` came."""
        return self._stopped

    @property
    def finished(self) -> bool:
        """The same: a message without its `message_stop` was cut."""
        return self._stopped

    def feed(self, event: ServerSentEvent) -> Iterator[GenerationReport]:
        """What this event adds. Tool calls wait for the end."""
        if not event.data:
            return
        try:
            known = Event.model_validate_json(event.data)
        except ValidationError:
            self.fail(*MALFORMED)
            return
        match known.type:
            case "error":
                self._fail_with(shown_code(known.error.type) if known.error else None)
            case "message_start":
                yield from self._begin(known)
            case "content_block_start":
                yield from self._start_block(known)
            case "content_block_delta":
                yield from self._add(known)
            case "content_block_stop":
                self._stop_block(known.index)
            case "message_delta":
                self._stop_reason = (known.delta.stop_reason if known.delta else None) or self._stop_reason
                yield from self._count(known.usage)
            case "message_stop":
                self._stopped = True
            case _:
                # Ping, and what is not known yet.
                pass

    def completion(self) -> list[GenerationReport]:
        """The calls, what must go back with them, and the end."""
        if not self._stopped:
            self.fail(*TRUNCATED, retryable=True)
        if self._stop_reason not in WHOLE:
            self.fail(*INCOMPLETE.get(self._stop_reason or "", UNKNOWN_FINISH))
        tools = [block for block in self._blocks.values() if block.start.type == "tool_use"]
        calls = [call for block in tools if (call := self._proposal(block)) is not None]
        if self._stop_reason == "tool_use" and not tools:
            self.fail(*MALFORMED_CALL)
        if self.failed or not calls:
            return [GenerationEnded()]
        state = replayed([sent for block in self._blocks.values() if (sent := block.as_sent_back()) is not None])
        kept = [ProviderState(KIND, state)] if state is not None else []
        return [*kept, *calls, GenerationEnded(awaits_tools=True)]

    # -- the message -----------------------------------------------------------------------------------------------

    def _begin(self, event: Event) -> Iterator[GenerationReport]:
        if self._begun:
            self.fail(*MALFORMED)
            return
        self._begun = True
        yield from self._count(event.message.usage if event.message else None)

    def _count(self, usage: TokenUsage | None) -> Iterator[GenerationReport]:
        if usage is None:
            return
        self._usage = self._usage.model_copy(update=usage.model_dump(exclude_none=True))
        parts = (
            self._usage.input_tokens,
            self._usage.cache_creation_input_tokens,
            self._usage.cache_read_input_tokens,
        )
        known = [tokens for tokens in parts if tokens is not None]
        yield UsageUpdated(Usage(sum(known) if known else None, self._usage.output_tokens))

    def _fail_with(self, code: str | None) -> None:
        message = f"the provider failed while answering ({code or NO_CODE})"
        self.fail("provider_error", message, retryable=code is None or code in WORTH_ANOTHER_TRY)

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _start_block(self, event: Event) -> Iterator[GenerationReport]:
        start = event.content_block
        if not self._begun or start is None or event.index is None or event.index in self._blocks:
            self.fail(*MALFORMED)
            return
        calls = sum(block.start.type == "tool_use" for block in self._blocks.values())
        if start.type == "tool_use" and calls >= MAX_TOOL_CALLS:
            self.fail(*TOO_MANY_CALLS)
            return
        if len(self._blocks) >= MAX_BLOCKS:
            self.fail("too_many_items", f"more than {MAX_BLOCKS} content blocks in one message")
            return
        block = self._blocks[event.index] = _Block(start, signature=start.signature or "")
        yield from self._write(block, start.text or "" if start.type == "text" else start.thinking or "")

    def _add(self, event: Event) -> Iterator[GenerationReport]:
        block = self._blocks.get(event.index if event.index is not None else -1)
        if block is None or block.is_whole or event.delta is None:
            self.fail(*MALFORMED)
            return
        delta: Delta = event.delta
        match delta.type, block.start.type:
            case "text_delta", "text":
                yield from self._write(block, delta.text or "")
            case "thinking_delta", "thinking":
                yield from self._write(block, delta.thinking or "")
            case "signature_delta", "thinking":
                block.signature = delta.signature or ""
            case "input_json_delta", "tool_use":
                block.partial_json += delta.partial_json or ""
                if len(block.partial_json) > MAX_ARGUMENTS_CHARS:
                    self.fail(*CALL_TOO_LONG)
            case _:
                # Citations, and what is not known yet.
                pass

    def _write(self, block: _Block, text: str) -> Iterator[GenerationReport]:
        block.text += text
        if block.start.type == "text":
            yield from self.say(text)
        elif block.start.type == "thinking" and text:
            yield ReasoningDelta(text)

    def _stop_block(self, index: int | None) -> None:
        block = self._blocks.get(index if index is not None else -1)
        if block is None:
            self.fail(*MALFORMED)
        else:
            block.is_whole = True

    def _proposal(self, block: _Block) -> ToolCallProposed | None:
        proposal = None
        if block.is_whole:
            proposal = whole_call(block.start.id or "", block.start.name or "", block.input_json())
        if proposal is None:
            self.fail(*MALFORMED_CALL)
        return proposal
