from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from voicechart.statecharts import Conversation, ConversationChart, IdSource, InterruptionPolicy, Policies, SeededIds
from voicechart.statecharts.actions import Stamp
from voicechart.statecharts.chart import Chart, Step
from voicechart.statecharts.charts import CHARTS, conversation_chart
from voicechart.statecharts.facts import OpenRequested
from voicechart.statecharts.synthesis import FirstAudioProduced, Synthesis, SynthesizerEnded
from voicechart.statecharts.traces import Trace, TraceEncoder, TraceError, parse_trace, replay
from voicechart.statecharts.values import InterruptionSource

KEY = bytes(range(32))
Drive = Callable[[Conversation], None]


def traced(chart: Chart[Any], drive: Callable[[Any], None], *, key: bytes | None = KEY) -> list[dict[str, Any]]:
    """The lines of a trace of `chart` while `drive` drives it, as JSON."""
    encoder = TraceEncoder(chart, key)
    lines = [encoder.header(1, chart.snapshot())]
    chart.observe(lambda step: lines.append(encoder.record(len(lines), step)))
    drive(chart)
    return [json.loads(line) for line in lines]


def read(lines: list[dict[str, Any]]) -> Trace:
    return parse_trace("\n".join(json.dumps(line) for line in lines).encode(), "a.jsonl")


@pytest.fixture
def lines(make_conversation: Callable[[], Conversation], drive_to_an_interruption: Drive) -> list[dict[str, Any]]:
    return traced(make_conversation(), drive_to_an_interruption)


@pytest.mark.parametrize("key", [KEY, None], ids=["redacted", "shown"])
def test_the_same_facts_give_the_same_macrosteps(
    make_conversation: Callable[[], Conversation], drive_to_an_interruption: Drive, key: bytes | None
) -> None:
    trace = read(traced(make_conversation(), drive_to_an_interruption, key=key))
    found = replay(trace)
    assert found.divergence is None
    assert (found.facts, found.gaps) == (22, 0)
    assert found.actions == sum(len(record.actions) for record in trace.records) > 22


def test_an_action_that_was_changed_is_found_and_named(lines: list[dict[str, Any]]) -> None:
    assert lines[17]["actions"][0]["type"] == "StopPlayback"
    lines[17]["actions"][0]["before_epoch"] = 3
    found = replay(read(lines))
    assert found.divergence is not None
    assert found.divergence.recorded.number == 17
    assert (found.divergence.differs, found.divergence.where) == ("actions", "[0].before_epoch")
    assert (found.divergence.recorded_value, found.divergence.replayed_value) == (3, 2)


def test_an_action_that_was_left_out_is_found(lines: list[dict[str, Any]]) -> None:
    del lines[9]["actions"][-1]
    found = replay(read(lines)).divergence
    assert found is not None
    assert (found.recorded.number, found.differs) == (9, "actions")
    assert found.recorded_value is None


def test_a_configuration_that_was_changed_is_found_with_both(lines: list[dict[str, Any]]) -> None:
    lines[3]["after"][1] = "hypothesis"
    found = replay(read(lines)).divergence
    assert found is not None
    assert found.replayed is not None
    assert found.recorded.after[1] == "hypothesis"
    assert found.replayed.after[1] == "speech"


class StumblingChart(ConversationChart):
    """An embedder's extension that has become broken."""

    def nothing_was_tried(self) -> bool:
        raise LookupError("no such board")


def test_a_fact_that_breaks_the_chart_is_a_divergence(lines: list[dict[str, Any]]) -> None:
    found = replay(read(lines), chart=conversation_chart("conversation", StumblingChart)).divergence
    assert found is not None
    assert (found.recorded.number, found.replayed, found.differs) == (1, None, "refused")
    assert "no such board" in str(found.replayed_value)


def test_a_replay_goes_on_behind_a_gap(
    make_conversation: Callable[[], Conversation], drive_to_an_interruption: Drive
) -> None:
    conversation = make_conversation()
    encoder = TraceEncoder(conversation, KEY)
    text = [encoder.header(1, conversation.snapshot())]
    number = 0

    def note(step: Step[Any]) -> None:
        nonlocal number
        number += 1
        if number == 12:
            text.append(encoder.gap(4, 12, step.before))
        if number < 8 or number > 11:
            text.append(encoder.record(number, step))

    conversation.observe(note)
    drive_to_an_interruption(conversation)
    found = replay(parse_trace("".join(text).encode()))
    assert found.divergence is None
    assert (found.facts, found.gaps) == (18, 1)


def test_a_smaller_chart_is_replayed_too() -> None:
    def drive(synthesis: Synthesis) -> None:
        synthesis.handle(FirstAudioProduced(at=1, sample_rate_hz=16_000, channels=1))
        synthesis.handle(SynthesizerEnded(at=2, end_sample=100))

    trace = read(traced(Synthesis("response-1", Stamp(1, 1)), drive))
    assert trace.header.chart == "synthesis"
    assert replay(trace).divergence is None
    assert replay(trace).actions == 2


def test_another_version_of_the_chart_is_refused_with_both_versions(lines: list[dict[str, Any]]) -> None:
    lines[0]["fingerprint"] = "000000000000"
    with pytest.raises(
        TraceError, match=r"made by version 000000000000 .* and this is [0-9a-f]{12}: that needs the program"
    ):
        replay(read(lines))


def test_an_unknown_chart_is_refused_with_the_known_ones(lines: list[dict[str, Any]]) -> None:
    lines[0]["chart"] = "toaster"
    with pytest.raises(TraceError, match=r"'toaster', not one of conversation, recognition"):
        replay(read(lines))


def test_a_fact_that_this_version_does_not_know_is_refused_with_its_record(lines: list[dict[str, Any]]) -> None:
    lines[4]["fact"]["type"] = "LampSwitched"
    with pytest.raises(TraceError, match=r"record 4, fact: 'LampSwitched' is no Fact that this version knows"):
        replay(read(lines))


def test_a_context_that_fits_no_leaf_is_refused(lines: list[dict[str, Any]]) -> None:
    lines[0]["start"]["leaves"] = ["opening", "nowhere", "generation_idle", "playback_idle"]
    with pytest.raises(TraceError, match="before record 1"):
        replay(read(lines))


class ShyPolicy(InterruptionPolicy):
    """An embedder's own."""


def test_an_embedders_policy_is_handed_over(drive_to_an_interruption: Drive) -> None:
    policies = Policies(interruption=ShyPolicy(sources=frozenset(InterruptionSource), full_duplex=True, min_words=2))
    trace = read(traced(Conversation("kitchen", policies=policies), drive_to_an_interruption))
    with pytest.raises(TraceError, match="ShyPolicy: hand it over"):
        replay(trace)
    assert replay(trace, policies=policies).divergence is None


@dataclass(frozen=True)
class CountedIds:
    def mint(self, kind: str, ordinal: int) -> str:
        return f"{kind}{ordinal}"


def test_an_embedders_identities_are_handed_over(drive_to_an_interruption: Drive) -> None:
    ids: IdSource = CountedIds()
    trace = read(traced(Conversation("kitchen", ids=ids), drive_to_an_interruption))
    with pytest.raises(TraceError, match="does not say where its identities came from"):
        replay(trace)
    assert replay(trace, ids=ids).divergence is None
    assert replay(trace, ids=SeededIds("other")).divergence is not None


class PatientChart(ConversationChart):
    """An embedder's extension."""

    def may_try_again(self) -> bool:
        return True


def test_an_embedders_chart_is_handed_over() -> None:
    conversation = Conversation("kitchen", definition=PatientChart)
    trace = read(traced(conversation, lambda chart: chart.handle(OpenRequested(at=1))))
    with pytest.raises(TraceError, match="'PatientChart', not one of"):
        replay(trace)
    assert replay(trace, chart=conversation_chart("patient", PatientChart)).divergence is None


def test_the_header_of_every_known_chart_says_its_name() -> None:
    assert {chart.name for chart in CHARTS.values()} == set(CHARTS)
