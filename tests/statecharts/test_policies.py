"""Policies: bounds that name themselves, and the judgement of the interruption policy as a table."""

from __future__ import annotations

from typing import Any

import pytest

from voicechart.statecharts import (
    ConnectionPolicy,
    Evidence,
    GenerationPolicy,
    InterruptionPolicy,
    Judgement,
    Moment,
    PlaybackPolicy,
    PolicyError,
    TurnPolicy,
    Verdict,
)
from voicechart.statecharts.policies import words_of
from voicechart.statecharts.values import InterruptionSource, TurnAuthority

BOUNDS: list[tuple[type[Any], str, int, int]] = [
    (InterruptionPolicy, "min_words", 1, 50),
    (InterruptionPolicy, "min_duration_ms", 0, 10_000),
    (InterruptionPolicy, "backoff_ms", 0, 60_000),
    (InterruptionPolicy, "false_alarm_ms", 100, 30_000),
    (InterruptionPolicy, "word_window_ms", 100, 60_000),
    (TurnPolicy, "continuation_window_ms", 0, 10_000),
    (TurnPolicy, "max_restarts", 0, 10),
    (TurnPolicy, "finalization_ms", 100, 60_000),
    (TurnPolicy, "input_timeout_ms", 1_000, 600_000),
    (TurnPolicy, "max_turn_ms", 1_000, 3_600_000),
    (TurnPolicy, "max_turn_words", 1, 100_000),
    (TurnPolicy, "max_gap_ms", 0, 5_000),
    (TurnPolicy, "max_fallback_ms", 0, 30_000),
    (TurnPolicy, "max_hold_ms", 0, 30_000),
    (GenerationPolicy, "max_attempts", 1, 10),
    (GenerationPolicy, "retry_ms", 0, 60_000),
    (GenerationPolicy, "max_retry_ms", 0, 120_000),
    (GenerationPolicy, "stall_ms", 100, 600_000),
    (GenerationPolicy, "cancel_ack_ms", 10, 60_000),
    (GenerationPolicy, "tool_ms", 10, 3_600_000),
    (GenerationPolicy, "first_audio_ms", 100, 600_000),
    (GenerationPolicy, "max_tool_steps", 1, 100),
    (PlaybackPolicy, "prebuffer_ms", 0, 1_000),
    (PlaybackPolicy, "stall_ms", 100, 60_000),
    (PlaybackPolicy, "stop_receipt_ms", 10, 60_000),
    (PlaybackPolicy, "max_announcements", 0, 100),
    (ConnectionPolicy, "connect_ms", 100, 600_000),
    (ConnectionPolicy, "max_attempts", 1, 100),
    (ConnectionPolicy, "backoff_ms", 0, 60_000),
    (ConnectionPolicy, "max_backoff_ms", 0, 300_000),
    (ConnectionPolicy, "stable_ms", 0, 600_000),
    (ConnectionPolicy, "renewal_margin_ms", 0, 60_000),
    (ConnectionPolicy, "shutdown_ms", 50, 60_000),
]
SPEECH, BUTTON = InterruptionSource.SPEECH, InterruptionSource.BUTTON
ACCEPTED, SUSPECTED, UNDECIDED = Verdict.ACCEPTED, Verdict.SUSPECTED, Verdict.UNDECIDED
DISMISSED, DEFERRED = Verdict.DISMISSED, Verdict.DEFERRED
STARTED, GOING_ON, ENDED = Moment.STARTED, Moment.GOING_ON, Moment.ENDED


@pytest.mark.parametrize(("policy", "field", "low", "high"), BOUNDS)
def test_each_bound_holds_at_its_edges_and_names_itself_beyond_them(
    policy: type[Any], field: str, low: int, high: int
) -> None:
    for inside in (low, high):
        assert getattr(policy(**{field: inside}), field) == inside
    for outside in (low - 1, high + 1):
        with pytest.raises(PolicyError) as refused:
            policy(**{field: outside})
        assert str(refused.value) == f"{field} = {outside} is outside {low}–{high}"


def test_every_number_of_a_policy_is_bounded() -> None:
    bounded = {(policy, field) for policy, field, _, _ in BOUNDS}
    for policy in (InterruptionPolicy, TurnPolicy, GenerationPolicy, PlaybackPolicy, ConnectionPolicy):
        numbers = {name for name in policy.__slots__ if type(getattr(policy(), name)) is int}
        assert {(policy, name) for name in numbers} <= bounded


def test_typed_text_is_no_authority_to_configure() -> None:
    with pytest.raises(PolicyError, match="authority = client cannot be configured"):
        TurnPolicy(authority=TurnAuthority.CLIENT)


def judged(policy: InterruptionPolicy, text: str = "", moment: Moment = GOING_ON, **evidence: Any) -> Judgement:  # noqa: ANN401 - fields of `Evidence`
    evidence = {"source": SPEECH, "words": len(words_of(text)), **evidence}
    return policy.judge(Evidence(text=text, moment=moment, **evidence))


def open_to_all(**changes: Any) -> InterruptionPolicy:  # noqa: ANN401 - fields of the policy
    return InterruptionPolicy(sources=frozenset(InterruptionSource), **changes)


@pytest.mark.parametrize(
    ("text", "moment", "verdict", "reason"),
    [
        ("stop", GOING_ON, ACCEPTED, "enough_words"),
        ("stop", ENDED, ACCEPTED, "enough_words"),
        ("停", GOING_ON, ACCEPTED, "enough_words"),
        ("mhm", GOING_ON, UNDECIDED, "backchannel"),
        ("mhm", ENDED, DISMISSED, "backchannel"),
        ("Mhm, okay. YES!", ENDED, DISMISSED, "backchannel"),
        ("嗯", ENDED, DISMISSED, "backchannel"),
        ("嗯嗯啊", ENDED, DISMISSED, "backchannel"),
        ("嗯、停", ENDED, ACCEPTED, "enough_words"),
        ("yeah but", GOING_ON, ACCEPTED, "enough_words"),
        ("", STARTED, UNDECIDED, "too_few_words"),
        ("", ENDED, DISMISSED, "too_few_words"),
        ("...", ENDED, DISMISSED, "too_few_words"),
    ],
)
def test_words_decide_unless_they_are_backchannels(text: str, moment: Moment, verdict: Verdict, reason: str) -> None:
    assert judged(open_to_all(), text, moment) == Judgement(verdict, reason)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("stop", DISMISSED),
        ("stop it", ACCEPTED),
        ("停", DISMISSED),
        ("停下", ACCEPTED),
        ("ok", DISMISSED),
        ("ok ok", DISMISSED),
    ],
)
def test_a_minimum_of_words_counts_chinese_characters_as_words(text: str, verdict: Verdict) -> None:
    assert judged(open_to_all(min_words=2), text, ENDED).verdict is verdict


@pytest.mark.parametrize(
    ("speech_ms", "text", "verdict"),
    [
        (499, "", UNDECIDED),
        (500, "", ACCEPTED),
        (500, "mhm", UNDECIDED),
        (9_000, "mhm", UNDECIDED),
    ],
)
def test_a_duration_decides_only_while_no_words_are_known(speech_ms: int, text: str, verdict: Verdict) -> None:
    assert judged(open_to_all(min_duration_ms=500), text, speech_ms=speech_ms).verdict is verdict


def test_without_a_configured_duration_time_alone_never_interrupts() -> None:
    assert judged(open_to_all(), speech_ms=600_000).verdict is UNDECIDED


def test_a_finished_silence_is_dismissed_however_long_it_was() -> None:
    assert judged(open_to_all(min_duration_ms=500), "", ENDED, speech_ms=9_000).verdict is DISMISSED


@pytest.mark.parametrize(
    ("pause_first", "can_pause", "verdict"),
    [(True, True, SUSPECTED), (True, False, UNDECIDED), (False, True, UNDECIDED)],
)
def test_a_sound_is_suspected_where_the_speaker_can_pause_first(
    pause_first: bool, can_pause: bool, verdict: Verdict
) -> None:
    policy = open_to_all(pause_first=pause_first)
    assert judged(policy, moment=STARTED, can_pause=can_pause).verdict is verdict
    assert judged(policy, "mhm", can_pause=can_pause).verdict is verdict


@pytest.mark.parametrize(("since_ms", "verdict"), [(None, ACCEPTED), (999, DEFERRED), (1_000, ACCEPTED)])
def test_speech_backs_off_after_an_interruption_to_the_edge_of_the_time(since_ms: int | None, verdict: Verdict) -> None:
    policy = open_to_all(backoff_ms=1_000)
    assert judged(policy, "stop", since_interruption_ms=since_ms).verdict is verdict
    assert judged(policy, source=BUTTON, since_interruption_ms=since_ms).verdict is ACCEPTED


@pytest.mark.parametrize("source", list(InterruptionSource))
def test_an_uninterruptible_reply_is_heard_to_its_end_whoever_asks(source: InterruptionSource) -> None:
    assert judged(open_to_all(), "stop", source=source, interruptible=False) == Judgement(DEFERRED, "uninterruptible")


@pytest.mark.parametrize("source", list(InterruptionSource))
def test_a_source_that_is_not_allowed_is_deferred(source: InterruptionSource) -> None:
    policy = InterruptionPolicy(sources=frozenset(InterruptionSource) - {source})
    assert judged(policy, "stop", source=source) == Judgement(DEFERRED, "source_not_allowed")


@pytest.mark.parametrize("source", [s for s in InterruptionSource if s is not SPEECH])
def test_whoever_asks_without_speaking_is_not_asked_for_words(source: InterruptionSource) -> None:
    assert judged(open_to_all(min_words=50), source=source) == Judgement(ACCEPTED, "asked_for")
