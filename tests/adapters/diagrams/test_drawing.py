"""What is drawn is what is declared, in both kinds of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest

from voicechart.adapters.diagrams import (
    Marks,
    Picture,
    barge_in_rows,
    dot_text,
    leaves_named,
    mermaid_text,
    picture_of,
)
from voicechart.statecharts import ConversationChart
from voicechart.statecharts.chart import states_of, transitions_of
from voicechart.statecharts.charts import CHARTS, KnownChart
from voicechart.statecharts.errors import ChartError

Writer = Callable[[Picture], str]
WRITERS = pytest.mark.parametrize("write", [dot_text, mermaid_text])
EVERY_CHART = pytest.mark.parametrize("chart", CHARTS.values(), ids=lambda chart: chart.name)


def conversation(**changes: object) -> Picture:
    rows = barge_in_rows(ConversationChart)
    return picture_of("conversation", ConversationChart, rows, **changes)  # pyright: ignore[reportArgumentType]


def words_in(text: str) -> set[str]:
    return set(re.findall(r"[a-z_]+", unescape(text)))


@EVERY_CHART
@WRITERS
def test_every_state_event_guard_and_action_of_a_chart_is_in_its_picture(chart: KnownChart, write: Writer) -> None:
    text = write(picture_of(chart.name, chart.definition))
    words = words_in(text)
    for state in states_of(chart.definition):
        assert state.name in text
    for line in transitions_of(chart.definition):
        assert words.issuperset((*line.events, *line.actions))
        assert words.issuperset(guard.removeprefix("not ") for guard in line.guards)


@EVERY_CHART
@WRITERS
def test_the_same_chart_is_always_drawn_with_the_same_text(chart: KnownChart, write: Writer) -> None:
    assert write(picture_of(chart.name, chart.definition)) == write(picture_of(chart.name, chart.definition))


def test_lines_that_differ_in_their_source_alone_are_drawn_once() -> None:
    picture = conversation(region="input_turn")
    (arrow,) = (arrow for arrow in picture.regions[0].arrows if arrow.target == "discarded")
    assert arrow.sources == ("speech", "hypothesis")
    assert dot_text(picture).count("turn_is_over]") == 1


def test_every_declared_transition_belongs_to_exactly_one_line() -> None:
    rows = [row for region in conversation().regions for line in region.lines() for row in line.rows]
    assert sorted(rows) == list(range(len(transitions_of(ConversationChart))))


def test_the_barge_in_transaction_is_found_in_the_chart_itself() -> None:
    lines = transitions_of(ConversationChart)
    found = {(lines[row].region, lines[row].source, lines[row].target) for row in barge_in_rows(ConversationChart)}
    assert found == {
        ("connection", "ready", None),
        ("generation", "running", "cancelling"),
        ("generation", "terminal", None),
        ("playback", "buffering", "stopped"),
        ("playback", "playing", "stopped"),
        ("playback", "paused", "stopped"),
        ("playback", "draining", "stopped"),
    }


@WRITERS
def test_the_transaction_is_marked_as_one_thing_over_its_regions(write: Writer) -> None:
    text = write(conversation())
    for part in ("barge-in 1 of 3", "barge-in 2 of 3", "barge-in 3 of 3"):
        assert part in text
    assert "barge-in" not in write(picture_of("conversation", ConversationChart))


def test_the_part_of_a_region_keeps_its_number_when_the_region_is_drawn_alone() -> None:
    assert "barge-in 3 of 3" in dot_text(conversation(region="playback"))
    assert "barge-in" not in dot_text(conversation(region="input_turn"))


def test_a_chart_without_interruptions_has_no_transaction() -> None:
    assert barge_in_rows(CHARTS["synthesis"].definition) == frozenset()


def test_an_overview_has_every_state_and_no_guard() -> None:
    text = dot_text(conversation(), overview=True)
    assert words_in(text).issuperset(state.state_id for state in states_of(ConversationChart) if not state.children)
    assert "capabilities_suffice" not in text
    assert "and 10 more" in text


def test_a_region_is_drawn_alone() -> None:
    picture = conversation(region="playback")
    assert [region.region_id for region in picture.regions] == ["playback"]
    assert picture.title == "Playback"
    assert "cluster_connection" not in dot_text(picture)


def test_an_unknown_region_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ChartError, match="no region 'kitchen': choose one of connection, input_turn"):
        conversation(region="kitchen")


@WRITERS
def test_an_active_configuration_is_coloured(write: Writer) -> None:
    marks = Marks(active=leaves_named(ConversationChart, ["ready", "hypothesis", "streaming", "playback=idle"]))
    assert "#c3f0ca" in write(conversation(marks=marks))
    assert "#c3f0ca" not in write(conversation())


def test_a_state_is_named_by_its_id_its_name_or_its_region_and_name() -> None:
    assert leaves_named(ConversationChart, ["generation_idle"]) == {"generation_idle"}
    assert leaves_named(ConversationChart, ["generation=idle", "ready"]) == {"generation_idle", "ready"}


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["idle"], "more than one region has a state 'idle'"),
        (["nowhere"], "no region has a state 'nowhere': choose from connection=opening"),
        (["playback=ready"], "no region has a state 'playback=ready'"),
        (["playing", "paused"], "'playing' and 'paused' are both of playback"),
        (["running"], "no region has a state 'running'"),
    ],
)
def test_states_that_cannot_be_active_are_refused(names: list[str], complaint: str) -> None:
    with pytest.raises(ChartError, match=complaint):
        leaves_named(ConversationChart, names)


@WRITERS
def test_the_path_of_a_trace_says_how_often_and_only_where_it_went(write: Writer) -> None:
    lines = transitions_of(ConversationChart)
    row = next(row for row, line in enumerate(lines) if line.source == "playing" and line.target == "stopped")
    text = write(picture_of("conversation", ConversationChart, marks=Marks(path={row: 7})))
    assert "taken 7 ×" in text
    assert text.count("taken") == (2 if write is dot_text else 1)  # dot has a legend too
    assert "#e3f0ff" in text


def test_only_the_arrow_from_the_state_that_was_left_is_coloured() -> None:
    lines = transitions_of(ConversationChart)
    row = next(row for row, line in enumerate(lines) if line.source == "playing" and line.target == "stopped")
    text = dot_text(picture_of("conversation", ConversationChart, marks=Marks(path={row: 1}), region="playback"))
    coloured = [line for line in text.splitlines() if "->" in line and "#1c6fd1" in line]
    assert [line.split("->")[0].strip() for line in coloured if 'dir="none"' in line] == ["playing"]
