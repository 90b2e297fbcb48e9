"""Strategies: facts that make sense in a configuration, and facts that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from ..conversation import Conversation
from ..explorer.alphabet import facts_of
from ..explorer.bounds import Bounds, Family
from ..facts import (
    AudioEnded,
    Fact,
    InputDiscontinuity,
    RecognitionFailed,
    SegmentFinalized,
    SpeechProgressed,
    StreamFact,
    TextSubmitted,
    TranscriptUpdated,
)

MILLISECOND = 1_000_000
TEXTS = ("", "okay", "stop", "go on please", "嗯", "请继续说")
ROOMY = Bounds(waiting_turns=3, segments=3, recognitions=3, carried_segments=2, calls=3, units=3, stopping_streams=3)
"""Bounds of property tests: enough of everything to get in each other's way."""


def delays() -> st.SearchStrategy[int]:
    """Nanoseconds until something happens: mostly at the same instant, sometimes beyond a window."""
    return st.sampled_from((0, 0, 0, 1, 40, 600, 1_600, 3_100, 20_000)).map(lambda ms: ms * MILLISECOND)


def texts() -> st.SearchStrategy[str]:
    """What is recognised: nothing, a backchannel, a word, a sentence."""
    return st.sampled_from(TEXTS)


def samples() -> st.SearchStrategy[int | None]:
    """A position that a receipt tells; None: unknown."""
    return st.one_of(st.none(), st.integers(0, 400))


def sensible_facts(
    conversation: Conversation, families: Sequence[Family], bounds: Bounds = ROOMY
) -> st.SearchStrategy[Fact | None]:
    """Facts of these families about what there is now, with varied contents and times; None when there are none."""
    present = [
        fact for family in families for fact in facts_of(family, conversation.context, conversation.policies, bounds)
    ]
    if not present:
        return st.none()
    return st.sampled_from(present).flatmap(_varied)


def late_facts(conversation: Conversation, bounds: Bounds = ROOMY) -> st.SearchStrategy[Fact]:
    """Facts of dead attempts, epochs, streams, recognitions and timers, and of foreign authorities."""
    stale = list(facts_of(Family.STALE, conversation.context, conversation.policies, bounds))
    return st.sampled_from(stale).flatmap(_later)


def _later(fact: Fact) -> st.SearchStrategy[Fact]:
    return delays().map(lambda after_ns: replace(fact, at=fact.at + after_ns))


def _varied(fact: Fact) -> st.SearchStrategy[Fact]:
    """The same fact with other contents, after a while."""
    match fact:
        case TranscriptUpdated() | SegmentFinalized():
            varied = st.one_of(st.just(fact), texts().map(lambda text: replace(fact, text=text)))
        case TextSubmitted():
            varied = texts().map(lambda text: replace(fact, text=text))
        case SpeechProgressed():
            varied = st.sampled_from((100, 700, 3_000)).map(lambda ms: replace(fact, speech_ms=ms))
        case InputDiscontinuity():
            varied = st.sampled_from((1, 200, 201, 5_000)).map(lambda ms: replace(fact, lost_ms=ms))
        case RecognitionFailed():
            varied = st.sampled_from((0, 1, 30_000, 30_001)).map(lambda ms: replace(fact, recorded_ms=ms))
        case StreamFact():
            varied = st.one_of(st.just(fact), samples().map(lambda played: replace(fact, played_samples=played)))
        case AudioEnded():
            varied = st.sampled_from((fact.end_sample, 0, 400)).map(lambda end: replace(fact, end_sample=end))
        case _:
            varied = st.just(fact)
    return varied.flatmap(_later)
