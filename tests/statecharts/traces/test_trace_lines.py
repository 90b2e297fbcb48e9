from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from voicechart.statecharts import Conversation, InterruptionPolicy, Policies
from voicechart.statecharts.actions import StopPlayback
from voicechart.statecharts.chart import Snapshot, Step
from voicechart.statecharts.charts import CHARTS
from voicechart.statecharts.facts import OpenRequested, TranscriptUpdated
from voicechart.statecharts.policies import words_of
from voicechart.statecharts.traces import Trace, TraceEncoder, TraceError, decode_policies, parse_trace
from voicechart.statecharts.traces.writing import encode_policies

KEY = bytes(range(32))
Drive = Callable[[Conversation], None]
Make = Callable[[], Conversation]
Lines = Callable[..., list[str]]


@pytest.fixture
def lines_of(make_conversation: Callable[[], Conversation], drive_to_an_interruption: Drive) -> Lines:
    """The lines of a trace of the interrupted conversation: a header and 22 records."""

    def write(*, key: bytes | None = KEY) -> list[str]:
        conversation = make_conversation()
        encoder = TraceEncoder(conversation, key, "a test")
        lines = [encoder.header(1, conversation.snapshot())]
        numbers: Iterator[int] = iter(range(1, 1_000))
        conversation.observe(lambda step: lines.append(encoder.record(next(numbers), step)))
        drive_to_an_interruption(conversation)
        return lines

    return write


def parsed(lines: list[str]) -> Trace:
    return parse_trace("".join(lines).encode(), "a.jsonl")


def test_each_line_is_one_json_object(lines_of: Lines) -> None:
    lines = lines_of()
    assert len(lines) == 23
    for line in lines:
        assert line.endswith("\n")
        assert isinstance(json.loads(line), dict)


def test_a_record_tells_the_fact_the_transitions_the_leaves_and_the_actions(lines_of: Lines) -> None:
    trace = parsed(lines_of(key=None))
    record = trace.record(17)
    fact = record.typed_fact()
    assert isinstance(fact, TranscriptUpdated)
    assert fact.text == "mhm wait stop"
    assert record.at == fact.at
    assert [(taken.region, taken.event, taken.target) for taken in record.taken] == [
        ("connection", "transcript_updated", None),
        ("input_turn", "transcript_updated", "hypothesis"),
        ("generation", "interrupted", "cancelling"),
        ("playback", "interrupted", "stopped"),
    ]
    assert record.before == ("ready", "hypothesis", "streaming", "playing")
    assert record.after == ("ready", "hypothesis", "cancelling", "stopped")
    assert record.delta["output_epoch"] == 2
    assert isinstance(record.typed_actions()[0], StopPlayback)


def test_an_ignored_fact_is_recorded_without_a_transition(lines_of: Lines) -> None:
    record = parsed(lines_of()).record(21)
    assert record.event == "playback_drained"
    assert record.taken == ()
    assert record.before == record.after


def texts_in(lines: list[str]) -> set[str]:
    """Every text in a trace, however deep."""
    found: set[str] = set()

    def look(pairs: list[tuple[str, object]]) -> None:
        found.update(value for name, value in pairs if name == "text" and isinstance(value, str))

    for line in lines:
        json.loads(line, object_pairs_hook=look)
    return found


def test_no_word_that_was_said_is_in_a_trace_unless_it_was_asked_for(lines_of: Lines) -> None:
    assert "mhm wait stop" in texts_in(lines_of(key=None))
    for text in texts_in(lines_of()):
        assert set(words_of(text)) <= {"x", "b"}, text


def test_a_header_holds_all_that_a_fresh_chart_needs(lines_of: Lines) -> None:
    header = parsed(lines_of(key=None)).header
    assert header.chart == "conversation"
    assert header.writer == "a test"
    assert header.ids == {"kind": "SeededIds", "seed": "test"}
    assert header.start.leaves == ("opening", "input_idle", "generation_idle", "playback_idle")
    assert header.policies is not None
    policy = decode_policies(header.policies).interruption
    assert isinstance(policy, InterruptionPolicy)
    assert policy.min_words == 2


def test_the_context_before_a_record_is_what_the_chart_had(
    make_conversation: Callable[[], Conversation], drive_to_an_interruption: Drive
) -> None:
    conversation = make_conversation()
    encoder = TraceEncoder(conversation, None)
    lines = [encoder.header(1, conversation.snapshot())]
    befores: dict[int, Snapshot[Any]] = {}

    def note(step: Step[Any]) -> None:
        number = len(lines)
        befores[number] = step.before
        lines.append(encoder.record(number, step))

    conversation.observe(note)
    drive_to_an_interruption(conversation)
    trace = parsed(lines)
    for number, before in befores.items():
        assert trace.snapshot_before(number, CHARTS["conversation"]) == before


def test_policies_come_back_as_they_were() -> None:
    policies = Policies(interruption=InterruptionPolicy(min_words=3))
    assert decode_policies(encode_policies(policies, redacted=False)) == policies


class PoliteOnly(InterruptionPolicy):
    """An embedder's own."""


def test_an_interruption_policy_of_an_embedder_is_named_and_has_to_be_handed_over() -> None:
    encoded = encode_policies(Policies(interruption=PoliteOnly()), redacted=False)
    with pytest.raises(TraceError, match=r":PoliteOnly: hand it over to replay it"):
        decode_policies(encoded)


def test_a_last_line_that_was_cut_off_is_left_out_and_noted(lines_of: Lines) -> None:
    lines = lines_of()
    trace = parsed([*lines[:-1], lines[-1][:40]])
    assert trace.is_truncated
    assert [record.number for record in trace.records] == list(range(1, 22))


def test_a_last_line_that_only_lacks_its_end_of_line_is_read(lines_of: Lines) -> None:
    lines = lines_of()
    trace = parsed([*lines[:-1], lines[-1].rstrip()])
    assert not trace.is_truncated
    assert len(trace.records) == 22


def test_a_line_that_was_damaged_inside_is_named(lines_of: Lines) -> None:
    lines = lines_of()
    lines[4] = lines[4][:40] + "\n"
    with pytest.raises(TraceError, match=r"^a\.jsonl, line 5 is not JSON"):
        parsed(lines)


def test_a_gap_tells_where_the_chart_stood_behind_it(
    lines_of: Lines, make_conversation: Callable[[], Conversation]
) -> None:
    lines = lines_of()
    conversation = make_conversation()
    conversation.handle(OpenRequested(at=7))
    gap = TraceEncoder(conversation, KEY).gap(3, 5, conversation.snapshot())
    trace = parsed([*lines[:2], gap, *lines[5:6]])
    assert [(gap.gap, gap.start.number) for gap in trace.gaps] == [(3, 5)]
    assert trace.starts()[5].context["now"] == 7


def test_files_of_one_recording_can_be_read_as_one(
    lines_of: Lines, make_conversation: Callable[[], Conversation]
) -> None:
    lines = lines_of()
    snapshot = parsed(lines).snapshot_before(11, CHARTS["conversation"])
    second = TraceEncoder(make_conversation(), KEY).header(11, snapshot)
    trace = parsed([*lines[:11], second, *lines[11:]])
    assert len(trace.records) == 22
    assert [start.number for start in trace.restarts] == [11]


def with_header(lines: list[str], **changes: object) -> list[str]:
    return [json.dumps({**json.loads(lines[0]), **changes}) + "\n", *lines[1:]]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"format": "vcd"}, "a trace begins with a header of the format 'voicechart-trace'"),
        ({"version": 2, "writer": "voicechart 9"}, r"trace version 2 \(by voicechart 9\) is not one that this program"),
        ({"colour": 1}, "Header has no 'colour'"),
        ({"start": None}, "None is no Start"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused_with_the_reason(
    lines_of: Lines, changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(TraceError, match=complaint):
        parsed(with_header(lines_of(), **changes))


def test_two_traces_in_one_file_are_refused(lines_of: Lines) -> None:
    lines = lines_of()
    with pytest.raises(TraceError, match="record 1 after 22: these are two traces"):
        parsed([*lines, *lines])
    with pytest.raises(TraceError, match="a header of another chart"):
        parsed([*lines, *with_header(lines, chart="recognition")])


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_an_empty_file_is_no_trace(data: bytes) -> None:
    with pytest.raises(TraceError, match=r"^a\.jsonl is empty$"):
        parse_trace(data, "a.jsonl")


@pytest.mark.parametrize("data", [b"\x00\xff\x80", b"RIFF", b"[1, 2]\n", b'"text"\n'])
def test_what_is_no_trace_at_all_is_refused(data: bytes) -> None:
    with pytest.raises(TraceError, match="this is no trace"):
        parse_trace(data, "a.jsonl")


def test_a_record_that_is_not_there_is_refused_with_those_that_are(lines_of: Lines) -> None:
    with pytest.raises(TraceError, match=r"has no record 23: it holds 1 to 22"):
        parsed(lines_of()).record(23)
