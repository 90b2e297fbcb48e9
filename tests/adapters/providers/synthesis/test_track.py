from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voicechart.adapters.providers.synthesis import SpokenTrack
from voicechart.audio.formats import AudioFormat
from voicechart.engines.ports import SpeechUnit
from voicechart.engines.reports import PortError, SynthesisReport, Synthesized, UnitSynthesized, Word

RATE = AudioFormat(8_000)


def pcm(number: int, samples: int) -> bytes:
    return (number + 1).to_bytes(2, "little") * samples


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, bytes | None]]]:
    """Lengths of units in samples, and their audio as it arrives: cut anywhere, interleaved; None ends a unit."""
    lengths = draw(st.lists(st.integers(1, 900), min_size=1, max_size=4))
    queues: list[list[tuple[int, bytes | None]]] = []
    for index, length in enumerate(lengths):
        data = pcm(index, length)
        cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=5)))
        edges = [0, *cuts, len(data)]
        pieces: list[bytes | None] = [data[a:b] for a, b in pairwise(edges)]
        queues.append([(index, piece) for piece in (*pieces, None)])
    order: list[tuple[int, bytes | None]] = []
    while any(queues):
        order.append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    return lengths, order


@settings(max_examples=60)
@given(arrivals())
def test_however_audio_arrives_ranges_are_exact_gapless_and_sum_to_the_whole(
    arrival: tuple[list[int], list[tuple[int, bytes | None]]],
) -> None:
    lengths, order = arrival
    track = SpokenTrack(RATE)
    for index in range(len(lengths)):
        track.expect(SpeechUnit(index, "text"))
    reports: list[SynthesisReport] = []
    for index, piece in order:
        reports += track.complete(index) if piece is None else track.add(index, piece)
    position = start = 0
    ended: list[int] = []
    for report in reports:
        if isinstance(report, Synthesized):
            assert report.unit_index == len(ended)
            assert report.frame.start_sample == position
            assert 0 < report.frame.duration_ms <= 20
            assert report.frame.data == pcm(report.unit_index, report.frame.samples)
            position = report.frame.end_sample
        else:
            assert isinstance(report, UnitSynthesized)
            assert (report.start_sample, report.end_sample) == (start, position)
            ended.append(report.end_sample - report.start_sample)
            start = position
    assert ended == lengths
    assert track.end_sample == position == sum(lengths)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=6),
    st.lists(st.integers(1, 200), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_words_are_told_once_with_the_frame_they_end_in_and_lie_inside_their_unit(
    times: list[tuple[int, int]], pieces: list[int], told_after: int
) -> None:
    words = [Word(str(place), start, start + length) for place, (start, length) in enumerate(times)]
    track = SpokenTrack(RATE)
    track.expect(SpeechUnit(0, "before"))
    track.add(0, pcm(0, 100))
    track.complete(0)
    track.expect(SpeechUnit(1, "text"))
    told: list[Word] = []
    for place, samples in enumerate(pieces):
        if place == min(told_after, len(pieces) - 1):
            track.add_words(1, words)
        for report in track.add(1, pcm(1, samples)):
            assert isinstance(report, Synthesized)
            assert all(word.end_sample <= report.frame.end_sample for word in report.words)
            told += report.words
    (unit,) = track.complete(1)
    assert isinstance(unit, UnitSynthesized)
    assert [word.text for word in unit.words] == [word.text for word in words]
    assert list(unit.words[: len(told)]) == told
    assert all(unit.start_sample <= word.start_sample <= word.end_sample <= unit.end_sample for word in unit.words)


def test_a_unit_without_letters_may_be_silent() -> None:
    track = SpokenTrack(RATE)
    track.expect(SpeechUnit(0, "…"))
    assert track.complete(0) == [UnitSynthesized(0, 0, 0)]


def test_a_unit_with_letters_may_not() -> None:
    track = SpokenTrack(RATE)
    track.expect(SpeechUnit(0, "Hi."))
    with pytest.raises(PortError, match="no_audio"):
        track.complete(0)


def test_audio_ahead_of_its_turn_is_bounded() -> None:
    track = SpokenTrack(RATE, max_held_bytes=100)
    for index in range(2):
        track.expect(SpeechUnit(index, "text"))
    assert track.add(1, bytes(100)) == []
    assert len(track.add(0, bytes(1_000))) == 4, "the one whose turn it is has no bound here"
    with pytest.raises(PortError, match="audio_overflow"):
        track.add(1, b"\0")


def test_a_unit_that_ends_inside_a_sample_is_malformed() -> None:
    track = SpokenTrack(RATE)
    track.expect(SpeechUnit(0, "Hi."))
    assert len(track.add(0, b"\1\0\1")) == 1
    with pytest.raises(PortError, match="provider_malformed"):
        track.complete(0)
