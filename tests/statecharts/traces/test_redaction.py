from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.statecharts.context import Segment, Turn, join_texts
from voicechart.statecharts.policies import (
    BACKCHANNELS,
    Evidence,
    InterruptionPolicy,
    Moment,
    Policies,
    words_of,
)
from voicechart.statecharts.traces import Redactor
from voicechart.statecharts.traces.redaction import for_redacted
from voicechart.statecharts.values import InterruptionSource, TurnAuthority

KEY = bytes(range(32))
REDACTOR = Redactor.for_policies(KEY, Policies())
WORDS = st.sampled_from(
    [*sorted(BACKCHANNELS), "stop", "Wait", "MHM", "don't", "3.14", "停下来", "嗯", "?!", "👍", " ", "…"]
)
TEXTS = st.lists(WORDS).map(" ".join) | st.text(max_size=30)


def test_no_word_of_a_text_is_left_in_it() -> None:
    redacted = REDACTOR.redact("my name is John, mhm")
    mark, *words = redacted.split(" ")
    assert words == ["x", "x", "x", "x", "b"]
    assert len(mark) == 4
    assert not words_of(mark)


@given(TEXTS)
def test_a_redacted_text_has_as_many_words_and_is_blank_when_the_text_was(text: str) -> None:
    redacted = REDACTOR.redact(text)
    assert len(words_of(redacted)) == len(words_of(text))
    assert bool(redacted.strip()) == bool(text.strip())


@given(TEXTS, TEXTS)
def test_texts_are_equal_after_redaction_exactly_when_they_were_before(left: str, right: str) -> None:
    assert (REDACTOR.redact(left) == REDACTOR.redact(right)) == (left == right)


@given(
    TEXTS,
    st.sampled_from(Moment),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 3_000),
)
def test_the_policy_judges_a_redacted_text_as_it_judged_the_text(
    text: str, moment: Moment, min_words: int, pause_first: bool, speech_ms: int
) -> None:
    policy = InterruptionPolicy(
        sources=frozenset(InterruptionSource), min_words=min_words, pause_first=pause_first, min_duration_ms=500
    )
    said = Evidence(InterruptionSource.SPEECH, moment, text, len(words_of(text)), speech_ms, can_pause=True)
    redacted = REDACTOR.redact(text)
    told = replace(said, text=redacted, words=len(words_of(redacted)))
    assert for_redacted(policy).judge(told) == policy.judge(said)


@given(st.lists(TEXTS, max_size=4))
def test_a_joined_text_is_redacted_as_its_redacted_pieces_join(pieces: list[str]) -> None:
    segments = tuple(Segment("r", str(place), 1, piece, True, 0) for place, piece in enumerate(pieces))
    turn = Turn("turn-1", TurnAuthority.VAD, 0, segments=segments)
    redact = REDACTOR.of_step(None, (turn,))
    assert redact(turn.final_text) == join_texts(REDACTOR.redact(piece) for piece in pieces)


def test_another_key_gives_another_mark() -> None:
    other = Redactor(bytes(32), BACKCHANNELS)
    assert other.redact("stop") != REDACTOR.redact("stop")


def test_a_key_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16 bytes, not 15"):
        Redactor(bytes(15))
    Redactor(bytes(16))
