"""The render core: the gate, the positions and the receipts, without time and without a device."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from voicechart.adapters.board.devices import RenderedSpan
from voicechart.adapters.board.render_queue import RenderQueue, WriteOutcome
from voicechart.adapters.board.render_stream import QueueLimits, RenderRefused
from voicechart.audio.errors import AudioSettingsError
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.engines.ports import OutputOpening
from voicechart.engines.reports import (
    RenderingDrained,
    RenderingProgressed,
    RenderingStarted,
    RenderingStarved,
    RenderingStopped,
    SpeakerLost,
    SpeakerReport,
)

FORMAT = AudioFormat(8_000)
CAP_SAMPLES = 80


def sample(epoch: int, position: int) -> bytes:
    """A value that tells its epoch and position."""
    return (epoch * 1_000 + position % 1_000 + 1).to_bytes(2, "little")


def frame(epoch: int, start: int, samples: int) -> AudioFrame:
    return AudioFrame(b"".join(sample(epoch, start + i) for i in range(samples)), FORMAT, start)


def opening(stream_id: int, epoch: int = 1, prebuffer_ms: int = 0, *, held: bool = False) -> OutputOpening:
    return OutputOpening(stream_id, epoch, FORMAT, prebuffer_ms, held)


def play(queue: RenderQueue, samples: int, position: int = 0) -> bytes:
    data = queue.render(samples).data
    queue.presented(position + samples, 0)
    return data


def test_silence_follows_what_there_is_and_is_told_apart() -> None:
    queue = RenderQueue(FORMAT)
    queue.open(opening(1))
    queue.write(1, 1, frame(1, 0, 5))
    block = queue.render(8)
    assert block.data == frame(1, 0, 5).data + bytes(6)
    assert block.sounding_samples == 5


def test_after_the_gate_closed_nothing_older_is_handed_out_and_what_comes_late_is_counted() -> None:
    queue = RenderQueue(FORMAT)
    queue.open(opening(1))
    queue.write(1, 1, frame(1, 0, 50))
    assert play(queue, 10) != bytes(20)
    assert not queue.invalidate_before(2)
    assert queue.render(10).sounding_samples == 0
    assert queue.write(1, 1, frame(1, 50, 5)) is WriteOutcome.STALE
    assert queue.room_samples(1, 1) is None
    assert queue.statistics.stale_frames == 1


def test_a_gate_never_opens_again() -> None:
    queue = RenderQueue(FORMAT)
    queue.invalidate_before(5)
    queue.invalidate_before(3)
    queue.open(opening(1, epoch=4))
    assert isinstance(queue.take_reports()[0], RenderingStopped)


def test_the_cap_holds_at_its_edge() -> None:
    queue = RenderQueue(FORMAT, limits=QueueLimits(max_ms=10))
    queue.open(opening(1, held=True))
    queue.write(1, 1, frame(1, 0, CAP_SAMPLES))
    with pytest.raises(RenderRefused, match="room for 0"):
        queue.write(1, 1, frame(1, CAP_SAMPLES, 1))


def test_the_byte_bound_rules_where_it_is_the_smaller_one() -> None:
    queue = RenderQueue(FORMAT, limits=QueueLimits(max_ms=1_000, max_bytes=20))
    queue.open(opening(1, held=True))
    assert queue.room_samples(1, 1) == 10


@pytest.mark.parametrize(("max_ms", "max_bytes", "max_streams"), [(0, 16, 1), (10_001, 16, 1), (1, 15, 1), (1, 16, 0)])
def test_limits_that_make_no_sense_are_refused_at_their_edges(max_ms: int, max_bytes: int, max_streams: int) -> None:
    with pytest.raises(AudioSettingsError, match="the usual limits"):
        QueueLimits(max_ms, max_bytes, max_streams)
    assert QueueLimits(1, 16, 1)
    assert QueueLimits(10_000, 16, 1)


def test_only_so_many_streams_may_be_open() -> None:
    queue = RenderQueue(FORMAT, limits=QueueLimits(max_streams=2))
    queue.open(opening(1))
    queue.open(opening(2))
    with pytest.raises(RenderRefused, match="2 streams are open"):
        queue.open(opening(3))


def test_a_prebuffer_as_long_as_the_queue_fills_even_through_a_converter() -> None:
    queue = RenderQueue(AudioFormat(48_000), limits=QueueLimits(max_ms=100))
    queue.open(opening(1, prebuffer_ms=100))
    queue.write(1, 1, AudioFrame(bytes(2 * 800), FORMAT))
    assert queue.render(480).sounding_samples == 480


def test_a_stop_waits_for_the_device_to_tell_what_was_heard() -> None:
    queue = RenderQueue(FORMAT)
    queue.open(opening(1))
    queue.write(1, 1, frame(1, 0, 40))
    queue.render(30)
    queue.presented(10, 0)
    queue.take_reports()
    assert queue.invalidate_before(2)
    assert queue.take_reports() == []
    queue.flushed(12, 0)
    (stopped,) = queue.take_reports()
    assert isinstance(stopped, RenderingStopped)
    assert (stopped.position.accepted_samples, stopped.position.submitted_samples) == (40, 30)
    assert (stopped.position.played_samples, stopped.dropped_samples) == (12, 28)


def test_a_flush_returns_newer_audio_to_its_queue() -> None:
    queue = RenderQueue(FORMAT)
    for stream_id, epoch in ((1, 1), (2, 2)):
        queue.open(opening(stream_id, epoch))
        queue.write(stream_id, epoch, frame(epoch, 0, 10))
        queue.finish(stream_id, 10)
    queue.render(15)
    queue.presented(4, 0)
    assert queue.invalidate_before(2)
    queue.flushed(5, 0)
    assert play(queue, 10, 15) == frame(2, 0, 10).data
    drained = queue.take_reports()[-1]
    assert isinstance(drained, RenderingDrained)
    assert drained.stream_id == 2


def test_the_end_barrier_after_the_queue_ran_dry_drains_without_starving() -> None:
    queue = RenderQueue(FORMAT)
    queue.open(opening(1))
    queue.write(1, 1, frame(1, 0, 10))
    queue.render(20)
    queue.presented(10, 0)
    queue.finish(1, 10)
    queue.presented(20, 0)
    kinds = [type(report) for report in queue.take_reports()]
    assert kinds == [RenderingStarted, RenderingDrained]


def test_a_reset_is_a_fresh_start_for_streams_and_epochs() -> None:
    queue = RenderQueue(FORMAT)
    queue.open(opening(7, epoch=9))
    queue.write(7, 9, frame(9, 0, 10))
    queue.render(5)
    queue.invalidate_before(10)
    assert queue.reset()
    queue.flushed(0, 0)
    queue.open(opening(1, epoch=0))
    queue.write(1, 0, frame(0, 0, 3))
    assert play(queue, 3, 5) == frame(0, 0, 3).data


def test_a_device_whose_presentations_come_late_keeps_silence_in_one_piece() -> None:
    queue = RenderQueue(FORMAT)
    for _ in range(1_000):
        queue.render(10)
    queue.open(opening(1))
    queue.write(1, 1, frame(1, 0, 10))
    queue.finish(1, 10)
    queue.render(10)
    queue.presented(10_009, 0)
    assert not any(isinstance(report, RenderingDrained) for report in queue.take_reports())
    queue.presented(10_010, 0)
    assert isinstance(queue.take_reports()[-1], RenderingDrained)


def test_no_thread_gets_an_older_sample_once_the_gate_has_closed() -> None:
    queue = RenderQueue(FORMAT)
    closed_before = 0
    stop = threading.Event()
    stale: list[int] = []

    def device() -> None:
        while not stop.is_set():
            barrier = closed_before
            block = queue.render(4)
            values = memoryview(block.data).cast("h")[: block.sounding_samples]
            stale.extend(value for value in values if (value - 1) // 1_000 < barrier)

    thread = threading.Thread(target=device)
    thread.start()
    for epoch in range(1, 30):
        queue.open(opening(epoch, epoch))
        for start in range(0, 400, 40):
            queue.write(epoch, epoch, frame(epoch, start, 40))
        queue.invalidate_before(epoch + 1)
        closed_before = epoch + 1
        queue.flushed(0, 0)
    stop.set()
    thread.join()
    assert stale == []


class AnySpeaker(RuleBasedStateMachine):
    """Writers, a device with a hardware buffer, and interruptions, in any order.

    The model is a list of what each stream was given; every handed-out sample tells its epoch and position.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[RenderedSpan] = []
        self.queue = RenderQueue(FORMAT, limits=QueueLimits(max_ms=10, max_streams=4), log=self.spans.append)
        self.written: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.ended: Counter[int] = Counter()
        self.finished: set[int] = set()
        self.barrier = 0
        self.flush_due = False
        self.taken = 0
        self.heard = 0
        self.last_played: dict[int, int] = {}

    @precondition(lambda self: len(self.epochs) - len(self.ended) < 4)
    @rule(ahead=st.integers(-1, 2), prebuffer_ms=st.integers(0, 10), held=st.booleans())
    def open(self, ahead: int, prebuffer_ms: int, held: bool) -> None:
        stream_id = len(self.epochs) + 1
        self.epochs[stream_id] = max(0, self.barrier + ahead)
        self.written[stream_id] = 0
        self.queue.open(opening(stream_id, self.epochs[stream_id], prebuffer_ms, held=held))
        self.read_reports()

    @precondition(lambda self: self.epochs)
    @rule(data=st.data(), samples=st.integers(1, 40))
    def write(self, data: st.DataObject, samples: int) -> None:
        stream_id = data.draw(st.sampled_from(sorted(self.epochs)))
        epoch = self.epochs[stream_id]
        stale = epoch < self.barrier
        if not stale and (stream_id in self.finished or self.ended[stream_id]):
            with pytest.raises(RenderRefused):
                self.queue.write(stream_id, epoch, frame(epoch, self.written[stream_id], samples))
            return
        room = self.queue.room_samples(stream_id, epoch)
        assert (room is None) == stale
        samples = samples if room is None else min(samples, room)
        if samples:
            outcome = self.queue.write(stream_id, epoch, frame(epoch, self.written[stream_id], samples))
            assert (outcome is WriteOutcome.STALE) == stale
            self.written[stream_id] += 0 if stale else samples

    @precondition(lambda self: self.epochs)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        stream_id = data.draw(st.sampled_from(sorted(self.epochs)))
        if stream_id in self.finished and not self.ended[stream_id] and self.epochs[stream_id] >= self.barrier:
            return
        self.queue.finish(stream_id, self.written[stream_id])
        self.finished.add(stream_id)
        self.read_reports()

    @precondition(lambda self: self.epochs)
    @rule(data=st.data(), what=st.sampled_from(["pause", "resume", "release"]))
    def gate(self, data: st.DataObject, what: str) -> None:
        stream_id = data.draw(st.sampled_from(sorted(self.epochs)))
        match what:
            case "pause":
                self.flush_due |= self.queue.pause(stream_id)
            case "resume":
                self.queue.resume(stream_id)
            case _:
                self.queue.release(stream_id)

    @rule(ahead=st.integers(-1, 2))
    def interrupt(self, ahead: int) -> None:
        self.barrier = max(self.barrier, self.barrier + ahead)
        self.flush_due |= self.queue.invalidate_before(self.barrier)
        self.read_reports()

    @rule(samples=st.integers(1, 30))
    def render(self, samples: int) -> None:
        block = self.queue.render(samples)
        assert len(block.data) == 2 * samples
        values = [int.from_bytes(block.data[i : i + 2], "little") for i in range(0, 2 * samples, 2)]
        assert all(value and (value - 1) // 1_000 >= self.barrier for value in values[: block.sounding_samples])
        assert not any(values[block.sounding_samples :])
        self.taken += samples

    @rule(fraction=st.floats(0, 1))
    def hear(self, fraction: float) -> None:
        self.heard += round((self.taken - self.heard) * fraction)
        self.queue.presented(self.heard, 0)
        self.read_reports()

    @precondition(lambda self: self.flush_due)
    @rule(fraction=st.floats(0, 1))
    def flush(self, fraction: float) -> None:
        heard = self.heard + round((self.taken - self.heard) * fraction)
        self.queue.flushed(heard, 0)
        self.heard = self.taken
        self.flush_due = False
        self.read_reports()

    def read_reports(self) -> None:
        for report in self.queue.take_reports():
            assert not isinstance(report, SpeakerLost)
            self.check_report(report)

    def check_report(self, report: SpeakerReport) -> None:
        assert not isinstance(report, SpeakerLost)
        position, stream_id = report.position, report.stream_id
        assert not self.ended[stream_id], "a receipt after the terminal one"
        assert position.played_samples is not None
        assert position.played_samples <= position.submitted_samples <= position.accepted_samples
        assert position.accepted_samples == self.written[stream_id]
        assert position.played_samples >= self.last_played.get(stream_id, 0)
        self.last_played[stream_id] = position.played_samples
        match report:
            case RenderingStopped():
                assert self.epochs[stream_id] < self.barrier
                assert position.played_samples + report.dropped_samples == position.accepted_samples
                self.ended[stream_id] += 1
            case RenderingDrained():
                assert stream_id in self.finished
                assert position.played_samples == position.accepted_samples
                self.ended[stream_id] += 1
            case RenderingStarted() | RenderingProgressed():
                assert position.played_samples > 0
            case RenderingStarved():
                # The gap was heard even where more, and the end, came while the silence was on its way to the ear.
                assert stream_id not in self.finished or position.played_samples < position.accepted_samples

    @invariant()
    def what_was_heard_is_gapless_and_in_order(self) -> None:
        heard: Counter[int] = Counter()
        for span in self.spans:
            assert span.start_sample == heard[span.stream_id]
            heard[span.stream_id] = span.end_sample

    @invariant()
    def every_interrupted_stream_has_its_receipt_once_the_device_is_flushed(self) -> None:
        if not self.flush_due:
            for stream_id, epoch in self.epochs.items():
                assert self.ended[stream_id] or epoch >= self.barrier

    def teardown(self) -> None:
        """From anywhere a quiet world leads to rest: an interruption and a flush end every stream."""
        self.barrier += 10
        self.queue.invalidate_before(self.barrier)
        self.queue.flushed(self.heard, 0)
        self.read_reports()
        assert set(self.ended.elements()) == set(self.epochs)


TestAnySpeaker = pytest.mark.slow(AnySpeaker.TestCase)
TestAnySpeaker.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
