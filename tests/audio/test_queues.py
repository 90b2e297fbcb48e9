"""The bounded buffer: no bound is ever passed, nothing is lost, reordered or moved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from voicechart.audio import (
    SPEECH_FORMAT,
    AudioFormat,
    AudioFormatError,
    AudioFrame,
    AudioSettingsError,
    FrameTooLarge,
    PcmBuffer,
)

STEREO = AudioFormat(48_000, 2)


def frame_of(samples: int, start_sample: int = 0, format: AudioFormat = SPEECH_FORMAT) -> AudioFrame:
    """Samples that differ from each other, so that a lost or moved one is seen."""
    values = (position % 65_536 for position in range(start_sample, start_sample + samples))
    data = b"".join(value.to_bytes(2, "little") * format.channels for value in values)
    return AudioFrame(data, format, start_sample)


def test_the_duration_bound_holds_to_the_sample() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=1_000_000, max_ms=20)
    assert buffer.offer(frame_of(319))
    assert not buffer.offer(frame_of(2, 319))
    assert buffer.offer(frame_of(1, 319))
    assert (buffer.queued_samples, buffer.queued_ms) == (320, 20.0)
    assert not buffer.offer(frame_of(1, 320))


def test_the_byte_bound_holds_to_the_sample() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(STEREO, max_bytes=43, max_ms=1_000)
    assert buffer.offer(frame_of(9, format=STEREO))
    assert buffer.offer(frame_of(1, 9, STEREO))
    assert buffer.queued_bytes == 40
    assert not buffer.offer(frame_of(1, 10, STEREO))


def test_a_duration_that_is_no_whole_number_of_samples_is_rounded_down() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(AudioFormat(22_050), max_bytes=1_000_000, max_ms=1)
    assert buffer.max_samples == 22
    assert buffer.offer(frame_of(22, format=AudioFormat(22_050)))


def test_the_number_of_frames_is_bounded_too() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=1_000, max_ms=1_000, max_frames=2)
    assert buffer.offer(frame_of(1))
    assert buffer.offer(frame_of(1, 1))
    assert not buffer.offer(frame_of(1, 2))


def test_a_refused_frame_changes_nothing() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=20, max_ms=1_000)
    buffer.offer(frame_of(8))
    assert not buffer.offer(frame_of(3, 8))
    assert (len(buffer), buffer.queued_samples, buffer.peak_bytes) == (1, 8, 16)


def test_a_frame_that_fills_the_queue_alone_is_taken_and_one_sample_more_is_an_error() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=640, max_ms=40)
    with pytest.raises(FrameTooLarge, match="640 bytes and 40 ms; split it"):
        buffer.offer(frame_of(321))
    assert buffer.offer(frame_of(320))


def test_a_frame_of_another_format_is_an_error() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=640, max_ms=40)
    with pytest.raises(AudioFormatError, match="convert"):
        buffer.offer(frame_of(1, format=STEREO))


def test_an_empty_frame_is_taken_and_forgotten() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=2, max_ms=1_000)
    assert buffer.offer(frame_of(1))
    assert buffer.offer(frame_of(0, 1))
    assert len(buffer) == 1


@pytest.mark.parametrize(
    ("max_bytes", "max_ms", "max_frames"), [(3, 1_000, 10), (1_000, 0, 10), (-1, 1_000, 10), (1_000, 1_000, 0)]
)
def test_bounds_that_hold_nothing_are_refused(max_bytes: int, max_ms: int, max_frames: int) -> None:
    with pytest.raises(AudioSettingsError):
        PcmBuffer[None](STEREO, max_bytes=max_bytes, max_ms=max_ms, max_frames=max_frames)


def test_an_empty_queue_gives_none_and_no_sample_cannot_be_asked_for() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=640, max_ms=40)
    assert buffer.take() is None
    with pytest.raises(AudioSettingsError, match="at least 1"):
        buffer.take(0)


def test_frames_of_an_old_epoch_are_discarded_and_the_rest_keeps_its_order() -> None:
    buffer: PcmBuffer[int] = PcmBuffer(SPEECH_FORMAT, max_bytes=640, max_ms=40)
    for start, epoch in ((0, 1), (5, 2), (10, 1), (15, 3)):
        buffer.offer(frame_of(5, start), epoch)
    assert buffer.discard(lambda epoch: epoch < 2) == 10
    assert buffer.queued_samples == 10
    taken = [buffer.take(), buffer.take(), buffer.take()]
    assert [(queued.tag, queued.frame.start_sample) for queued in taken if queued] == [(2, 5), (3, 15)]


def test_the_peak_outlives_the_frames() -> None:
    buffer: PcmBuffer[None] = PcmBuffer(SPEECH_FORMAT, max_bytes=640, max_ms=40)
    buffer.offer(frame_of(160))
    assert buffer.clear() == 160
    buffer.offer(frame_of(16, 160))
    assert (buffer.peak_ms, buffer.peak_bytes, buffer.queued_ms) == (10.0, 320, 1.0)


@given(st.lists(st.integers(1, 60), max_size=12), st.integers(1, 70))
def test_taking_in_pieces_gives_the_same_samples_at_the_same_positions(sizes: list[int], piece: int) -> None:
    buffer: PcmBuffer[int] = PcmBuffer(SPEECH_FORMAT, max_bytes=100_000, max_ms=10_000)
    position = 0
    for tag, size in enumerate(sizes):
        buffer.offer(frame_of(size, position), tag)
        position += size
    taken = b""
    while queued := buffer.take(piece):
        assert queued.frame.samples <= piece
        assert queued.frame.start_sample == len(taken) // 2
        assert sum(sizes[: queued.tag]) <= queued.frame.start_sample < sum(sizes[: queued.tag + 1])
        taken += queued.frame.data
    assert taken == frame_of(position).data


class AnyOperations(RuleBasedStateMachine):
    """The buffer against a plain list of tagged sample positions."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer: PcmBuffer[int] = PcmBuffer(STEREO, max_bytes=240, max_ms=1, max_frames=6)
        self.limit_samples = 48
        self.model: list[tuple[int, int]] = []
        self.frames = 0
        self.next_sample = 0
        self.peak = 0

    @rule(samples=st.integers(0, 48), tag=st.integers(0, 3))
    def offer(self, samples: int, tag: int) -> None:
        fits = not samples or (len(self.model) + samples <= self.limit_samples and len(self.buffer) < 6)
        assert self.buffer.offer(frame_of(samples, self.next_sample, STEREO), tag) == fits
        if fits:
            self.model += [(position, tag) for position in range(self.next_sample, self.next_sample + samples)]
            self.next_sample += samples
            self.peak = max(self.peak, len(self.model))

    @precondition(lambda self: bool(self.model))
    @rule(most=st.one_of(st.none(), st.integers(1, 48)))
    def take(self, most: int | None) -> None:
        queued = self.buffer.take(most)
        assert queued is not None
        taken, self.model = self.model[: queued.frame.samples], self.model[queued.frame.samples :]
        assert most is None or queued.frame.samples <= most
        assert queued.frame.data == frame_of(queued.frame.samples, taken[0][0], STEREO).data
        assert taken == [(p, queued.tag) for p in range(queued.frame.start_sample, queued.frame.end_sample)]

    @rule(below=st.integers(0, 4))
    def discard(self, below: int) -> None:
        kept = [(position, tag) for position, tag in self.model if tag >= below]
        assert self.buffer.discard(lambda tag: tag < below) == len(self.model) - len(kept)
        self.model = kept

    @rule()
    def clear(self) -> None:
        assert self.buffer.clear() == len(self.model)
        self.model = []

    @invariant()
    def every_bound_holds_and_every_count_is_right(self) -> None:
        assert self.buffer.queued_samples == len(self.model)
        assert self.buffer.queued_bytes == 4 * len(self.model) <= 240
        assert self.buffer.queued_ms == len(self.model) / 48 <= 1
        assert len(self.buffer) <= 6
        assert self.buffer.peak_bytes == 4 * self.peak


TestAnyOperations = AnyOperations.TestCase
