"""Traps that adapters of models are known to fall into; the number is that of the list in `test_trap_index.py`.

Each is a fixture of `tests/conformance/fixtures`, which the oracles hold against the vendors' types; here stands, in a
sentence, what must come of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from httpx_sse import ServerSentEvent

from voicechart.adapters.providers.generation import Response
from voicechart.adapters.providers.http_stream import EventAssembly
from voicechart.adapters.providers.responders.anthropic.assembly import MessageAssembly
from voicechart.adapters.providers.responders.openai_chat.assembly import ChatAssembly
from voicechart.adapters.providers.responders.openai_responses.assembly import ResponsesAssembly
from voicechart.adapters.testing import load_fixture
from voicechart.engines.reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    ReasoningDelta,
    TextDelta,
    ToolCallProposed,
    UsageUpdated,
)
from voicechart.statecharts.values import Usage

FIXTURES = Path(__file__).parents[3] / "conformance" / "fixtures"


def played(assembly: EventAssembly, name: str) -> Iterator[GenerationReport]:
    for event in load_fixture(FIXTURES / f"{name}.json").events:
        if assembly.over or assembly.failed:
            break
        yield from assembly.feed(ServerSentEvent(event.event or "message", event.text, "", None))
    yield from assembly.end()


def chat(name: str) -> list[GenerationReport]:
    return list(played(ChatAssembly(), f"openai/chat/{name}"))


def responses(name: str) -> list[GenerationReport]:
    return list(played(ResponsesAssembly(), f"openai/responses/{name}"))


def messages(name: str) -> list[GenerationReport]:
    return list(played(MessageAssembly(), f"anthropic/messages/{name}"))


def calls(reports: list[GenerationReport]) -> list[tuple[str, str]]:
    """Identity and arguments of the calls; the response must wait for them."""
    assert reports[-1] == GenerationEnded(awaits_tools=True)
    return [(report.call_id, report.arguments_json) for report in reports if isinstance(report, ToolCallProposed)]


def failure(reports: list[GenerationReport]) -> tuple[str, bool]:
    """The code of the error that it ends with, and whether it can be tried again; nothing was proposed."""
    last = reports[-1]
    assert isinstance(last, GenerationErrored)
    assert not any(isinstance(report, ToolCallProposed) for report in reports)
    return last.error.code, last.error.retryable


def usages(reports: list[GenerationReport]) -> list[Usage]:
    return [report.usage for report in reports if isinstance(report, UsageUpdated)]


# -- Chat Completions ----------------------------------------------------------------------------------------------


def test_16_a_usage_only_chunk_has_no_choices_and_counts() -> None:
    assert usages(chat("usage-only")) == [Usage(18, 0)]
    assert chat("usage-only")[-1] == GenerationEnded()


def test_17_a_tool_delta_without_id_belongs_to_the_call_of_its_index() -> None:
    assert calls(chat("tool-calls")) == [("call_a", '{"zone": "UTC"}'), ("call_b", '{"city": "Oslo"}')]


def test_18_tool_deltas_without_index_follow_their_ids() -> None:
    assert calls(chat("tool-deltas-without-index")) == [("call_a", "{}"), ("call_b", '{"a": 1}')]


def test_18_a_new_id_under_a_used_index_is_a_new_call() -> None:
    assert calls(chat("tool-index-reused")) == [("call_a", "{}"), ("call_b", '{"a": 1}')]


def test_18_tool_deltas_without_ids_are_named_by_their_index() -> None:
    assert calls(chat("tool-deltas-without-ids")) == [("call_0", '{"a": 1}'), ("call_1", "{}")]


def test_19_a_missing_done_after_a_finish_reason_is_complete() -> None:
    assert chat("no-done")[-1] == GenerationEnded()


def test_19_neither_done_nor_a_finish_reason_is_a_truncated_answer() -> None:
    assert failure(chat("neither-done-nor-finish-reason")) == ("stream_truncated", False)


def test_20_an_error_after_the_status_200_fails_the_response() -> None:
    assert failure(chat("error-in-band")) == ("provider_error", True)
    assert failure(chat("error-in-band-after-text")) == ("provider_error", False)


def test_23_a_prefix_of_a_calls_arguments_is_never_proposed() -> None:
    assert failure(chat("tool-call-cut")) == ("tool_call_invalid", False)
    assert failure(responses("tool-call-cut")) == ("tool_call_invalid", False)
    assert failure(messages("tool-use-cut")) == ("tool_call_invalid", False)


# -- Responses -----------------------------------------------------------------------------------------------------


def test_19_a_response_without_a_terminal_event_was_truncated() -> None:
    assert failure(responses("no-end")) == ("stream_truncated", False)
    assert failure(responses("empty")) == ("stream_truncated", True)


def test_21_a_flat_error_is_terminal() -> None:
    assert failure(responses("error-flat")) == ("provider_error", False)
    assert failure(responses("error-rate-limit")) == ("provider_error", True)


def test_22_argument_deltas_find_their_call_by_their_item() -> None:
    assert calls(responses("tool-calls")) == [("call_a", '{"zone": "UTC"}'), ("call_b", '{"city": "Oslo"}')]


def test_22_arguments_of_an_item_that_never_began_fail_the_response() -> None:
    assert failure(responses("arguments-of-an-unknown-item")) == ("malformed_chunk", False)


def test_a_call_of_an_incomplete_response_never_runs() -> None:
    assert failure(responses("tool-call-of-an-incomplete-response")) == ("output_limit", False)
    assert failure(messages("tool-use-at-the-limit")) == ("output_limit", False)


# -- Messages ------------------------------------------------------------------------------------------------------


def test_24_pings_and_unknown_events_are_ignored() -> None:
    reports = messages("pings-and-unknown-events")
    assert [report for report in reports if isinstance(report, TextDelta)] == [TextDelta("Noon.")]
    assert reports[-1] == GenerationEnded()


def test_25_an_error_after_the_status_200_is_no_short_success() -> None:
    assert failure(messages("error-overloaded")) == ("provider_error", True)
    assert failure(messages("error-after-text")) == ("provider_error", False)


def test_26_a_message_without_its_message_stop_was_truncated() -> None:
    assert failure(messages("no-message-stop")) == ("stream_truncated", False)
    assert failure(messages("empty")) == ("stream_truncated", True)


def test_27_a_tool_without_input_gets_an_empty_object() -> None:
    assert calls(messages("tool-use-without-arguments")) == [("toolu_a", "{}"), ("toolu_b", "{}")]


def test_28_output_tokens_are_cumulative_and_replace_each_other() -> None:
    assert usages(messages("usage-cumulative"))[-1] == Usage(19, 7)


def test_28_a_pause_a_refusal_and_a_limit_are_no_completion() -> None:
    assert failure(messages("stopped-pause-turn"))[0] == "turn_paused"
    assert failure(messages("stopped-refusal"))[0] == "model_refused"
    assert failure(messages("stopped-max-tokens"))[0] == "output_limit"
    assert failure(messages("stopped-model-context-window-exceeded"))[0] == "context_window_full"


# -- all of them ---------------------------------------------------------------------------------------------------


def test_reasoning_is_never_text() -> None:
    for reports in (chat("reasoning"), responses("reasoning-and-text"), messages("thinking-and-text")):
        said = "".join(report.text for report in reports if isinstance(report, TextDelta))
        assert said in ("Noon.", "It is noon.")
    assert any(isinstance(report, ReasoningDelta) for report in messages("thinking-and-text"))


def test_a_failure_counts_once_and_the_first_one() -> None:
    response = Response()
    response.fail("first", "the first")
    response.fail("second", "the second", retryable=True)
    (report,) = response.end()
    assert isinstance(report, GenerationErrored)
    assert (report.error.code, report.error.retryable) == ("first", False)
