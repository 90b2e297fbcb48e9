"""Whatever happens, in whatever order: what was recorded is replayed and explained, also when texts were redacted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voicechart.statecharts import Conversation, InterruptionPolicy, Policies, TurnPolicy
from voicechart.statecharts.capabilities import Capabilities, SpeakerCapabilities
from voicechart.statecharts.explorer.alphabet import facts_for
from voicechart.statecharts.explorer.bounds import Bounds, Family
from voicechart.statecharts.facts import Fact, SegmentFinalized, TextSubmitted, TimerFired, TranscriptUpdated
from voicechart.statecharts.traces import Fate, Trace, TraceEncoder, explain, parse_trace, replay, sentence_of
from voicechart.statecharts.values import InterruptionSource, TurnAuthority

EVERYTHING = Bounds(families=frozenset(Family))
ABLE = Capabilities(speaker=SpeakerCapabilities(pause=True, measured_position=True), truncate_context=True)
SAID = st.lists(st.sampled_from(["go", "on", "Mhm", "okay", "停", "嗯", "3.14", "?!", " "]), max_size=6).map(" ".join)
POLICIES = st.builds(
    Policies,
    turn=st.builds(
        TurnPolicy,
        authority=st.sampled_from([TurnAuthority.VAD, TurnAuthority.RECOGNIZER, TurnAuthority.MANUAL]),
        max_turn_words=st.sampled_from([3, 400]),
        merge_pending=st.booleans(),
    ),
    interruption=st.builds(
        InterruptionPolicy,
        sources=st.just(frozenset(InterruptionSource)),
        full_duplex=st.booleans(),
        min_words=st.integers(1, 3),
        pause_first=st.booleans(),
    ),
)


@st.composite
def traces(draw: st.DrawFn, *, redacted: bool) -> Trace:
    """A trace of a conversation in which anything that the chart knows may happen next."""
    conversation = Conversation("any", policies=draw(POLICIES))
    encoder = TraceEncoder(conversation, draw(st.binary(min_size=16, max_size=16)) if redacted else None)
    lines = [encoder.header(1, conversation.snapshot())]
    conversation.observe(lambda step: lines.append(encoder.record(len(lines), step)))
    for _ in range(draw(st.integers(2, 40))):
        conversation.handle(draw(next_facts(conversation)))
    return parse_trace("".join(lines).encode())


@st.composite
def next_facts(draw: st.DrawFn, conversation: Conversation) -> Fact:
    context = conversation.context
    if conversation.leaves[0] != "ready" and context.sequence < 2:
        fact = list(facts_for(context, conversation.policies, ABLE, EVERYTHING))[context.sequence]
    else:
        timers: list[Fact] = [TimerFired(at=context.now, timer_id=timer.timer_id) for timer in context.timers]
        fact = draw(st.sampled_from([*facts_for(context, conversation.policies, ABLE, EVERYTHING), *timers]))
    if isinstance(fact, TranscriptUpdated | SegmentFinalized | TextSubmitted) and draw(st.booleans()):
        fact = replace(fact, text=draw(SAID))
    return replace(fact, at=context.now + draw(st.sampled_from([0, 1, 100_000_000, 2_000_000_000])))


@pytest.mark.slow
@given(traces(redacted=True))
def test_a_redacted_trace_is_replayed_without_divergence(trace: Trace) -> None:
    assert replay(trace).divergence is None


@given(traces(redacted=False))
@settings(max_examples=50)
def test_a_trace_with_its_texts_is_replayed_without_divergence(trace: Trace) -> None:
    assert replay(trace).divergence is None


@pytest.mark.slow
@given(traces(redacted=True), st.data())
@settings(max_examples=50)
def test_a_value_that_was_changed_is_found(trace: Trace, data: st.DataObject) -> None:
    record = data.draw(st.sampled_from([record for record in trace.records if record.actions]))
    place = data.draw(st.integers(0, len(record.actions) - 1))
    actions: list[dict[str, Any]] = json.loads(json.dumps(record.actions))
    actions[place]["stamp"]["output_epoch"] += 1
    broken = replace(record, actions=tuple(actions))
    records = tuple(broken if other is record else other for other in trace.records)
    found = replay(replace(trace, records=records)).divergence
    assert found is not None
    assert (found.recorded.number, found.where) == (record.number, f"[{place}].stamp.output_epoch")


@pytest.mark.slow
@given(traces(redacted=True))
@settings(max_examples=30)
def test_every_record_is_explained_as_the_chart_decided_it(trace: Trace) -> None:
    for record in trace.records:
        explanation = explain(trace, record.number)
        assert not explanation.decides_otherwise
        assert (explanation.fate is Fate.ACCEPTED) == bool(record.taken)
        assert sentence_of(trace, explanation).startswith(f"Record {record.number}, {record.event} at ")
