"""From the events of a response to reports: pure, no I/O.

- The end is exactly one of `response.completed`, `.failed`, `.incomplete` and `error`. A stream that just stops was
  cut.
- `sequence_number` counts every event: one that was seen already is a duplicate, a hole means that something was lost.
- Argument deltas name an item; which call that is was said by `response.output_item.added`, or is by `.done`.
- A finished item, and a finished text, replace their deltas.
- Calls are proposed at the end of a completed response only: those of a failed one must not run.
"""

from __future__ import annotations

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
from .wire import KIND, ErrorBody, Event, Item, ResponseBody, replayed

INCOMPLETE = {"max_output_tokens": OUTPUT_LIMIT, "content_filter": CONTENT_FILTERED}
WORTH_ANOTHER_TRY = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout"})
"""Codes of a failure that passes; of any other the request is the cause, and it would fail again."""
MAX_ITEMS = 256


@dataclass(slots=True)
class _Output:
    """One item of the output, as far as it is known."""

    item: Item
    arguments: str = ""
    is_done: bool = False


class ResponsesAssembly(Response):
    """One response being received. `feed` every event, then `end` once."""

    def __init__(self) -> None:
        super().__init__()
        self._outputs: dict[str, _Output] = {}
        self._texts: dict[tuple[str, int], str] = {}
        self._replaced = False
        self._last_sequence: int | None = None
        self._completed = False

    @property
    def over(self) -> bool:
        """It said how it ended."""
        return self._completed

    @property
    def finished(self) -> bool:
        """The same: nothing about a response comes after its end."""
        return self._completed

    def feed(self, event: ServerSentEvent) -> Iterator[GenerationReport]:
        """What this event adds. Tool calls wait for the end."""
        if not event.data or event.data.strip() == "[DONE]":
            return
        try:
            known = Event.model_validate_json(event.data)
        except ValidationError:
            self.fail("malformed_chunk", "the provider sent an event that Responses does not have; check base_url")
            return
        if self._is_next(known.sequence_number):
            yield from self._take(known)

    def completion(self) -> list[GenerationReport]:
        """The calls, what must go back with them, and the end."""
        if not self._completed:
            self.fail(*TRUNCATED, retryable=True)
        calls = [self._proposal(output) for output in self._outputs.values() if output.item.type == "function_call"]
        state = replayed([_finished(output) for output in self._outputs.values()]) if calls else None
        return [
            *([ProviderState(KIND, state)] if state is not None else []),
            *(call for call in calls if call is not None),
            GenerationEnded("".join(self._texts.values()) if self._replaced else None, awaits_tools=bool(calls)),
        ]

    def _is_next(self, sequence: int | None) -> bool:
        """Whether this event is a new one. Servers that do not count are believed."""
        if sequence is None:
            return True
        last, self._last_sequence = self._last_sequence, max(sequence, self._last_sequence or 0)
        if last is not None and sequence > last + 1:
            self.fail("events_lost", "the provider's stream has a hole; check what lies between", retryable=True)
        return not self.failed and (last is None or sequence > last)

    def _take(self, event: Event) -> Iterator[GenerationReport]:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield from self._add_text(event, event.delta or "")
            case "response.output_text.done":
                yield from self._finish_text(_place(event), event.text)
            case "response.refusal.done":
                yield from self._finish_text(_place(event), event.refusal)
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                if event.delta:
                    yield ReasoningDelta(event.delta)
            case "response.output_item.added" | "response.output_item.done":
                yield from self._take_item(event.item, is_done=event.type.endswith("done"))
            case "response.function_call_arguments.delta":
                self._add_arguments(event.item_id, event.delta or "")
            case "response.function_call_arguments.done":
                self._replace_arguments(event.item_id, event.arguments)
            case "response.completed" | "response.failed" | "response.incomplete" | "error":
                yield from self._conclude(event)
            case _:
                # Created, queued, in progress, parts, annotations, and what is not known yet.
                pass

    # -- text ------------------------------------------------------------------------------------------------------

    def _add_text(self, event: Event, delta: str) -> Iterator[GenerationReport]:
        place = _place(event)
        self._texts[place] = self._texts.get(place, "") + delta
        yield from self.say(delta)

    def _finish_text(self, place: tuple[str, int], final: str | None) -> Iterator[GenerationReport]:
        """The last word on a text: its rest is said, and where it differs from what was said it replaces that."""
        seen = self._texts.get(place, "")
        if final is None or final == seen:
            return
        self._texts[place] = final
        if final.startswith(seen) and place == next(reversed(self._texts)):
            yield from self.say(final[len(seen) :])
        else:
            self._replaced = True

    # -- items -----------------------------------------------------------------------------------------------------

    def _take_item(self, item: Item | None, *, is_done: bool) -> Iterator[GenerationReport]:
        if item is None:
            self.fail("malformed_chunk", "the provider sent an output item without the item")
            return
        key = item.id or item.call_id or f"item {len(self._outputs)}"
        known = self._outputs.get(key)
        if known is None:
            if len(self._outputs) >= MAX_ITEMS:
                self.fail("too_many_items", f"more than {MAX_ITEMS} items in one response")
                return
            calls = sum(output.item.type == "function_call" for output in self._outputs.values())
            if item.type == "function_call" and calls >= MAX_TOOL_CALLS:
                self.fail(*TOO_MANY_CALLS)
                return
            known = self._outputs[key] = _Output(item)
        elif known.is_done or not is_done:
            return
        known.item, known.is_done = item, is_done
        if item.type == "function_call" and (is_done or not known.arguments):
            self._replace_arguments(key, item.arguments)
        if item.type == "message" and is_done:
            for index, part in enumerate(item.content or ()):
                yield from self._finish_text((key, index), part.text if part.type == "output_text" else part.refusal)

    def _add_arguments(self, item_id: str | None, delta: str) -> None:
        output = self._outputs.get(item_id or "")
        if output is None:
            self.fail("malformed_chunk", "the provider sent the arguments of a call that it never began")
            return
        self._replace_arguments(item_id, output.arguments + delta)

    def _replace_arguments(self, item_id: str | None, arguments: str | None) -> None:
        output = self._outputs.get(item_id or "")
        if output is None or arguments is None:
            return
        output.arguments = arguments
        if len(arguments) > MAX_ARGUMENTS_CHARS:
            self.fail(*CALL_TOO_LONG)

    def _proposal(self, output: _Output) -> ToolCallProposed | None:
        proposal = whole_call(output.item.call_id or "", output.item.name or "", output.arguments)
        if proposal is None:
            self.fail(*MALFORMED_CALL)
        return proposal

    # -- the end ---------------------------------------------------------------------------------------------------

    def _conclude(self, event: Event) -> Iterator[GenerationReport]:
        response = event.response or ResponseBody()
        if response.usage is not None:
            yield UsageUpdated(Usage(response.usage.input_tokens, response.usage.output_tokens))
        match event.type:
            case "response.completed":
                for item in response.output:
                    yield from self._take_item(item, is_done=True)
                self._completed = True
            case "response.incomplete":
                reason = response.incomplete_details.reason if response.incomplete_details else None
                self.fail(*INCOMPLETE.get(reason or "", UNKNOWN_FINISH))
            case "response.failed":
                self._fail_with(response.error or ErrorBody())
            case _:
                self._fail_with(event.error or ErrorBody(code=event.code))

    def _fail_with(self, error: ErrorBody) -> None:
        codes = [code for code in (shown_code(error.code), shown_code(error.type)) if code is not None]
        code = codes[0] if codes else NO_CODE
        message = f"the provider failed while answering ({code})"
        self.fail("provider_error", message, retryable=code == NO_CODE or not WORTH_ANOTHER_TRY.isdisjoint(codes))


def _place(event: Event) -> tuple[str, int]:
    return event.item_id or "", event.content_index or 0


def _finished(output: _Output) -> Item:
    return output.item.model_copy(update={"arguments": output.arguments}) if output.arguments else output.item
