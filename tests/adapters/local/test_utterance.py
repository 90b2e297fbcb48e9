"""Which part of an utterance is worth decoding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.local.utterance import Span, Utterance
from voicechart.audio.voice_activity import HOP_SAMPLES

SILENT = bytes(2 * HOP_SAMPLES)
VOICED = b"\x01\x00" * HOP_SAMPLES
MARGIN_MS = 64.0
MARGIN = 2 * HOP_SAMPLES


class Loudness:
    """Speech is whatever is not digital silence."""

    def __call__(self, pcm: bytes, /) -> float:
        return 1.0 if any(pcm) else 0.0

    def reset(self) -> None:
        return


def heard(*hops: bytes) -> Utterance:
    utterance = Utterance(Loudness(), margin_ms=MARGIN_MS)
    for hop in hops:
        utterance.append(hop)
    utterance.listen()
    return utterance


def test_two_voiced_hops_are_a_click_and_three_are_speech() -> None:
    assert heard(*[VOICED] * 2).speech() is None
    assert heard(*[VOICED] * 3).speech() == Span(0, 3 * HOP_SAMPLES, closed=False)


def test_silence_around_the_speech_is_cut_down_to_the_margin() -> None:
    utterance = heard(*[SILENT] * 5, *[VOICED] * 4, *[SILENT] * 5)
    assert utterance.speech() == Span(5 * HOP_SAMPLES - MARGIN, 9 * HOP_SAMPLES + MARGIN, closed=True)


def test_a_span_is_closed_exactly_when_the_margin_after_it_is_complete() -> None:
    spans = [heard(*[VOICED] * 4, *[SILENT] * hops).speech() for hops in (1, 2)]
    assert [span.closed for span in spans if span] == [False, True]


def test_more_silence_does_not_change_a_closed_span() -> None:
    utterance = heard(*[VOICED] * 4, *[SILENT] * 2)
    before = utterance.speech()
    utterance.append(SILENT * 20)
    utterance.listen()
    assert utterance.speech() == before


def test_an_incomplete_hop_is_judged_only_at_the_end() -> None:
    utterance = heard(*[VOICED] * 2, VOICED[:100])
    assert utterance.speech() is None
    utterance.listen_to_the_end()
    assert utterance.speech() == Span(0, 2 * HOP_SAMPLES + 50, closed=False)


def test_the_cut_is_scaled_to_one() -> None:
    utterance = heard(b"\x00\x80" * HOP_SAMPLES * 3)
    span = utterance.speech()
    assert span is not None
    assert set(utterance.cut(span).tolist()) == {-1.0}


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 700))
def test_the_span_holds_every_voiced_hop_however_the_audio_is_cut(pattern: list[bool], step: int) -> None:
    pcm = b"".join(VOICED if voiced else SILENT for voiced in pattern)
    utterance = Utterance(Loudness(), margin_ms=MARGIN_MS)
    for offset in range(0, len(pcm), 2 * step):
        utterance.append(pcm[offset : offset + 2 * step])
        utterance.listen()
    span = utterance.speech()
    assert (span is not None) == (sum(pattern) >= 3)
    if span is not None:
        voiced = [index for index, is_voiced in enumerate(pattern) if is_voiced]
        assert 0 <= span.start <= voiced[0] * HOP_SAMPLES
        assert (voiced[-1] + 1) * HOP_SAMPLES <= span.end <= len(pcm) // 2
        assert len(utterance.cut(span)) == span.end - span.start
