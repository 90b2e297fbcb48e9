from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from voicechart.adapters.tracing import (
    Sort,
    Timeline,
    TraceRecorder,
    html_of,
    lanes,
    list_of,
    read_trace,
    svg_of,
    timeline_of,
)
from voicechart.statecharts import Conversation, InterruptionPolicy, Policies
from voicechart.statecharts.testing import ScriptedConversation
from voicechart.statecharts.traces import Trace, TraceError
from voicechart.statecharts.values import InterruptionSource


@pytest.fixture
def trace(
    tmp_path: Path,
    make_conversation: Callable[[], Conversation],
    drive_to_an_interruption: Callable[[Conversation], None],
) -> Trace:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl")
    recorder.start()
    drive_to_an_interruption(conversation)
    recorder.stop()
    return read_trace(tmp_path / "trace.jsonl")


def stays(timeline: Timeline, region: str) -> list[tuple[str, float, float]]:
    return [
        (span.state, round(span.start_s, 3), round(span.end_s, 3)) for span in timeline.spans if span.region == region
    ]


def test_each_region_has_a_span_for_every_stay_without_a_hole(trace: Trace) -> None:
    timeline = timeline_of(trace)
    assert stays(timeline, "Playback") == [
        ("idle", 0.0, 1.0),
        ("buffering", 1.0, 1.2),
        ("playing", 1.2, 1.6),
        ("stopped", 1.6, 2.1),
    ]
    for region in timeline.regions:
        spans = [span for span in timeline.spans if span.region == region]
        assert spans[0].start_s == timeline.start_s
        assert spans[-1].end_s == timeline.end_s
        assert all(one.end_s == other.start_s for one, other in pairwise(spans))


def test_facts_are_sorted_by_what_they_did(trace: Trace) -> None:
    sorts = {mark.number: mark.sort for mark in timeline_of(trace).marks}
    assert sorts[17] is Sort.INTERRUPTION
    assert sorts[2] is Sort.MOVE
    assert sorts[14] is Sort.NOTED
    assert sorts[21] is Sort.UNUSED


def test_a_refused_interruption_is_marked_as_such(tmp_path: Path) -> None:
    policies = Policies(interruption=InterruptionPolicy(sources=frozenset({InterruptionSource.SPEECH})))
    script = ScriptedConversation(policies).opened()
    script.user_types("hello")
    script.reply_is_playing()
    recorder = TraceRecorder(script.conversation, tmp_path / "trace.jsonl")
    recorder.start()
    script.user_presses_stop()
    recorder.stop()
    (mark,) = timeline_of(read_trace(tmp_path / "trace.jsonl")).marks
    assert mark.sort is Sort.REFUSED_INTERRUPTION


def test_a_part_of_a_trace_keeps_the_states_it_began_in(trace: Trace) -> None:
    timeline = timeline_of(trace, 1.55, 1.65)
    assert (timeline.start_s, timeline.end_s) == (1.55, 1.65)
    assert stays(timeline, "Playback") == [("playing", 1.55, 1.6), ("stopped", 1.6, 1.65)]
    assert [mark.number for mark in timeline.marks] == [17]


def test_a_part_without_records_is_refused(trace: Trace) -> None:
    with pytest.raises(TraceError, match="holds no record from 5 s to 6 s"):
        timeline_of(trace, 5, 6)


@pytest.mark.parametrize("width", [1, 40, 80, 200])
def test_lanes_keep_to_the_width_of_the_terminal(trace: Trace, width: int) -> None:
    drawn = [line.plain for line in lanes(timeline_of(trace), width)]
    assert {len(line) for line in drawn} == {max(width, 40)}
    assert drawn[-1].count("┃") == 1


def test_a_trace_of_one_record_can_be_drawn(trace: Trace) -> None:
    timeline = timeline_of(trace, 0, 0.05)
    assert len(list(lanes(timeline, 80))) == 6
    ET.fromstring(svg_of(timeline))


def test_the_list_tells_what_each_fact_did(trace: Trace) -> None:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(list_of(timeline_of(trace).marks))
    lines = captured.get().splitlines()
    assert len(lines) == 23
    assert "interrupted by speech: Generation streaming → cancelling, Playback playing → stopped" in lines[17]


def test_the_picture_is_well_formed_and_needs_nothing_from_anywhere_else(trace: Trace) -> None:
    timeline = timeline_of(trace)
    svg = svg_of(timeline)
    root = ET.fromstring(svg)
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "trace.jsonl: conversation over 2.10 s"
    assert any(title.startswith("Playback: playing, +1.200 s to +1.600 s") for title in titles)
    assert "href" not in svg
    assert svg in html_of(timeline)


def test_a_name_with_signs_of_markup_does_no_harm(
    tmp_path: Path, make_conversation: Callable[[], Conversation]
) -> None:
    conversation = make_conversation()
    path = tmp_path / "a<b&c.jsonl"
    recorder = TraceRecorder(conversation, path)
    recorder.start()
    ScriptedConversation(conversation=conversation).opens()
    recorder.stop()
    ET.fromstring(svg_of(timeline_of(read_trace(path))))


def test_a_long_list_is_cut_and_says_so(tmp_path: Path, make_conversation: Callable[[], Conversation]) -> None:
    conversation = make_conversation()
    script = ScriptedConversation(conversation=conversation)
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl")
    recorder.start()
    for _ in range(600):
        script.wait(1)
        script.user_presses_stop()
    recorder.stop()
    timeline = timeline_of(read_trace(tmp_path / "trace.jsonl"))
    assert "… and 100 more" in svg_of(timeline)
