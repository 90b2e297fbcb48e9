"""Chunks of a chat completion, as OpenAI sends them and as compatible servers do."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from voicechart.adapters.providers.generation import MAX_ARGUMENTS_CHARS, MAX_TOOL_CALLS
from voicechart.adapters.providers.responders.openai_chat.assembly import ChatAssembly
from voicechart.adapters.providers.responders.openai_chat.wire import ChatChunk
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


def delta(finish_reason: str | None = None, **content: JsonValue) -> JsonValue:
    return {"choices": [{"index": 0, "delta": content, "finish_reason": finish_reason}]}


def call(arguments: str | None = None, **keys: JsonValue) -> JsonValue:
    """A tool call delta; `name` goes where it belongs."""
    function: dict[str, JsonValue] = {} if arguments is None else {"arguments": arguments}
    if "name" in keys:
        function["name"] = keys.pop("name")
    return delta(tool_calls=[{**keys, "function": function}])


def assembled(*chunks: JsonValue, done: bool = True) -> list[GenerationReport]:
    assembly = ChatAssembly()
    reports: list[GenerationReport] = []
    for chunk in chunks:
        reports += assembly.take(ChatChunk.model_validate(chunk))
    if done:
        assembly.note_done()
    return [*reports, *assembly.end()]


def failure(*chunks: JsonValue, done: bool = True) -> tuple[str, bool, bool]:
    """Code, retryable and partial output of the error that the chunks end with."""
    last = assembled(*chunks, done=done)[-1]
    assert isinstance(last, GenerationErrored)
    return last.error.code, last.error.retryable, last.error.partial_output


def proposals(*chunks: JsonValue) -> list[ToolCallProposed]:
    reports = assembled(*chunks, delta("tool_calls"))
    assert reports[-1] == GenerationEnded(awaits_tools=True)
    return [report for report in reports if isinstance(report, ToolCallProposed)]


def test_text_is_passed_on_and_ends() -> None:
    reports = assembled(
        delta(role="assistant", content=""), delta(content="It is"), delta(content=" noon."), delta("stop")
    )
    assert reports == [TextDelta("It is"), TextDelta(" noon."), GenerationEnded()]


def test_the_usage_chunk_has_no_choices() -> None:
    reports = assembled(
        delta(content="Hi."), delta("stop"), {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    )
    assert reports == [TextDelta("Hi."), UsageUpdated(Usage(3, 1)), GenerationEnded()]


def test_a_refusal_is_said_and_reasoning_is_not() -> None:
    reports = assembled(delta(reasoning_content="Hm."), delta(refusal="I cannot."), delta("stop"))
    assert reports == [ReasoningDelta("Hm."), TextDelta("I cannot."), GenerationEnded()]


def test_other_choices_than_the_first_are_ignored() -> None:
    other: JsonValue = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]}
    assert assembled(other, delta("stop")) == [GenerationEnded()]


def test_a_call_is_put_together_by_its_index() -> None:
    assert proposals(
        call("", index=0, id="a", name="get_time"), call('{"zone":', index=0), call('"UTC"}', index=0)
    ) == [ToolCallProposed("a", "get_time", '{"zone":"UTC"}')]


def test_parallel_calls_may_be_interleaved() -> None:
    assert proposals(
        call("{", index=0, id="a", name="f"),
        call("{", index=1, id="b", name="g"),
        call("}", index=0),
        call("}", index=1),
    ) == [ToolCallProposed("a", "f", "{}"), ToolCallProposed("b", "g", "{}")]


def test_a_new_id_at_a_used_index_is_a_new_call() -> None:
    assert proposals(
        call('{"x":1}', index=0, id="a", name="f"), call('{"x":', index=0, id="b", name="g"), call("2}", index=0)
    ) == [ToolCallProposed("a", "f", '{"x":1}'), ToolCallProposed("b", "g", '{"x":2}')]


def test_a_known_id_counts_more_than_its_index() -> None:
    assert proposals(
        call('{"x":', index=0, id="a", name="f"), call("{}", index=1, id="b", name="g"), call("1}", index=1, id="a")
    ) == [ToolCallProposed("a", "f", '{"x":1}'), ToolCallProposed("b", "g", "{}")]


def test_without_an_index_ids_tell_the_calls_apart() -> None:
    assert proposals(call("{", id="a", name="f"), call("}"), call("{}", id="b", name="g")) == [
        ToolCallProposed("a", "f", "{}"),
        ToolCallProposed("b", "g", "{}"),
    ]


def test_a_call_that_never_gets_an_id_is_named_by_its_index() -> None:
    assert proposals(call("{", index=0, name="f"), call("}", index=0), call("{}", index=1, name="g")) == [
        ToolCallProposed("call_0", "f", "{}"),
        ToolCallProposed("call_1", "g", "{}"),
    ]


def test_an_id_that_comes_late_belongs_to_the_call_at_its_index() -> None:
    assert proposals(call("{", index=0, name="f"), call("}", index=0, id="a")) == [ToolCallProposed("a", "f", "{}")]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert proposals(call(index=0, id="a", name="f"), call("", index=0)) == [ToolCallProposed("a", "f", "{}")]


def test_a_server_that_ends_calls_with_stop_is_understood() -> None:
    reports = assembled(call("{}", index=0, id="a", name="f"), delta("stop"))
    assert reports == [ToolCallProposed("a", "f", "{}"), GenerationEnded(awaits_tools=True)]


@pytest.mark.parametrize("arguments", ['{"x": ', "[1]", "1", "{} {}", "nonsense"])
def test_arguments_that_are_no_whole_object_are_never_proposed(arguments: str) -> None:
    reports = assembled(
        call("{}", index=0, id="a", name="f"), call(arguments, index=1, id="b", name="g"), delta("tool_calls")
    )
    assert [type(report) for report in reports] == [GenerationErrored]
    assert failure(call(arguments, index=0, id="a", name="f"), delta("tool_calls"))[0] == "tool_call_invalid"


def test_a_call_without_a_name_is_never_proposed() -> None:
    assert failure(call("{}", index=0, id="a"), delta("tool_calls"))[0] == "tool_call_invalid"


def test_a_call_cut_by_the_output_limit_is_never_proposed() -> None:
    assert failure(call("{}", index=0, id="a", name="f"), delta("length"))[0] == "output_limit"


def test_a_stream_that_just_stops_was_cut() -> None:
    assert failure(done=False) == ("stream_truncated", True, False)
    assert failure(delta(content="It is"), done=False) == ("stream_truncated", False, True)


def test_a_finish_reason_without_done_is_complete() -> None:
    assert assembled(delta(content="Hi."), delta("stop"), done=False)[-1] == GenerationEnded()


def test_done_without_a_finish_reason_is_complete() -> None:
    assert assembled(delta(content="Hi."), done=True)[-1] == GenerationEnded()


@pytest.mark.parametrize(
    ("finish_reason", "code"),
    [
        ("length", "output_limit"),
        ("content_filter", "content_filtered"),
        ("function_call", "unknown_finish"),
        ("new", "unknown_finish"),
    ],
)
def test_other_finishes_are_no_completion(finish_reason: str, code: str) -> None:
    assert failure(delta(content="It"), delta(finish_reason)) == (code, False, True)


@pytest.mark.parametrize("error", [{"code": "server_error", "message": "secret detail"}, "secret detail", {}])
def test_an_error_in_the_stream_fails_it_without_the_providers_words(error: JsonValue) -> None:
    last = assembled({"error": error}, delta("stop"))[-1]
    assert isinstance(last, GenerationErrored)
    assert last.error.code == "provider_error"
    assert "secret" not in str(last.error)


def test_the_old_function_call_is_refused() -> None:
    assert failure(delta(function_call={"name": "f", "arguments": ""}), delta("function_call"))[0] == (
        "unsupported_function_call"
    )


def test_so_many_calls_and_no_more() -> None:
    calls = [call("{}", index=index, id=f"c{index}", name="f") for index in range(MAX_TOOL_CALLS + 1)]
    assert len(proposals(*calls[:-1])) == MAX_TOOL_CALLS
    assert failure(*calls, delta("tool_calls"))[0] == "too_many_tool_calls"


def test_arguments_may_have_exactly_the_longest_length() -> None:
    longest = json.dumps({"x": "y" * (MAX_ARGUMENTS_CHARS - len('{"x": ""}'))})
    assert proposals(call(longest, index=0, id="a", name="f"))[0].arguments_json == longest
    assert failure(call(longest + " ", index=0, id="a", name="f"), delta("tool_calls"))[0] == "tool_call_too_long"


@given(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4), st.lists(st.integers(0, 80))
)
def test_a_call_is_the_same_however_its_arguments_are_cut(arguments: dict[str, int | str], cuts: list[int]) -> None:
    text = json.dumps(arguments)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    chunks = [call("", index=0, id="a", name="f"), *(call(piece, index=0) for piece in pieces)]
    assert proposals(*chunks) == [ToolCallProposed("a", "f", text)]


@given(st.lists(st.text(max_size=8), max_size=20))
def test_no_character_of_the_text_is_lost(texts: list[str]) -> None:
    reports = assembled(*(delta(content=text) for text in texts), delta("stop"))
    assert "".join(report.text for report in reports if isinstance(report, TextDelta)) == "".join(texts)
