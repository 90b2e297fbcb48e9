from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from voicechart.statecharts import Conversation, SeededIds
from voicechart.statecharts.traces import Trace, TraceEncoder, first_divergence, parse_trace

Drive = Callable[[Conversation], None]
Record = Callable[..., Trace]


@pytest.fixture
def record(make_conversation: Callable[[], Conversation], drive_to_an_interruption: Drive) -> Record:
    """Records the scenario with another seed and another key each time."""

    def run(seed: str, key: bytes | None, name: str = "a.jsonl") -> Trace:
        conversation = Conversation("kitchen", policies=make_conversation().policies, ids=SeededIds(seed))
        encoder = TraceEncoder(conversation, key)
        lines = [encoder.header(1, conversation.snapshot())]
        conversation.observe(lambda step: lines.append(encoder.record(len(lines), step)))
        drive_to_an_interruption(conversation)
        return parse_trace("".join(lines).encode(), name)

    return run


def test_two_runs_of_one_scenario_are_the_same_but_for_identities_and_marks(record: Record) -> None:
    one, other = record("one", bytes(16)), record("other", bytes(range(16)))
    assert first_divergence(one, other) is None
    exact = first_divergence(one, other, exact=True)
    assert exact is not None
    assert exact.left is not None
    assert exact.left.number == 1


def test_a_trace_is_exactly_itself(record: Record) -> None:
    assert first_divergence(record("one", None), record("one", None), exact=True) is None


def test_another_word_is_a_difference_where_words_are_shown(record: Record) -> None:
    one = record("one", None)
    left, right = one.records[4], replace(one.records[4], fact={**one.records[4].fact, "text": "tell me a story"})
    other = replace(one, records=(*one.records[:4], right, *one.records[5:]))
    found = first_divergence(one, other)
    assert found is not None
    assert (found.left, found.right) == (left, right)
    assert (found.differs, found.where) == ("fact", "text")
    assert (found.left_value, found.right_value) == ("tell me a secret", "tell me a story")


def test_another_place_to_go_is_a_difference(record: Record) -> None:
    one = record("one", None)
    other = replace(one, records=(replace(one.records[0], after=("ready", *one.records[0].after[1:])),))
    found = first_divergence(one, other)
    assert found is not None
    assert (found.differs, found.where) == ("after", "[0]")
    assert (found.left_value, found.right_value) == ("opening", "ready")


def test_a_trace_that_goes_on_is_named(record: Record) -> None:
    one, other = record("one", None, "long.jsonl"), record("one", None, "short.jsonl")
    found = first_divergence(one, replace(other, records=other.records[:20]))
    assert found is not None
    assert (found.differs, found.right_value) == ("length", "only long.jsonl goes on")
    assert found.left is not None
    assert found.left.number == 21
    assert found.right is None
