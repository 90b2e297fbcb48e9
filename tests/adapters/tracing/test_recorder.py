from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from voicechart.adapters.tracing import TraceLimits, TraceRecorder, TraceWriteError, read_trace
from voicechart.statecharts import Conversation
from voicechart.statecharts.facts import ButtonPressed, Fact, TextSubmitted
from voicechart.statecharts.traces import TraceError, replay

Drive = Callable[[Conversation], None]
Make = Callable[[], Conversation]


def press(conversation: Conversation, times: int) -> None:
    for at in range(times):
        conversation.handle(ButtonPressed(at=at))


def test_a_recorded_conversation_is_read_and_replayed(
    tmp_path: Path, make_conversation: Make, drive_to_an_interruption: Drive
) -> None:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "out" / "trace.jsonl")
    recorder.start()
    drive_to_an_interruption(conversation)
    recorder.stop()
    trace = read_trace(tmp_path / "out" / "trace.jsonl")
    assert len(trace.records) == 22
    assert trace.header.redacted
    assert replay(trace).divergence is None


def test_texts_are_shown_only_when_asked_for(
    tmp_path: Path, make_conversation: Make, drive_to_an_interruption: Drive
) -> None:
    for text_shown in (False, True):
        conversation = make_conversation()
        path = tmp_path / f"{text_shown}.jsonl"
        recorder = TraceRecorder(conversation, path, text_shown=text_shown)
        recorder.start()
        drive_to_an_interruption(conversation)
        recorder.stop()
        assert ("a secret" in path.read_text(encoding="utf-8")) is text_shown


def test_a_recorder_is_switched_on_in_the_middle_and_off_again(
    tmp_path: Path, make_conversation: Make, drive_to_an_interruption: Drive
) -> None:
    conversation = make_conversation()
    conversation.handle(ButtonPressed(at=0))
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl")
    assert not recorder.is_on
    recorder.start()
    recorder.start()
    assert recorder.is_on
    drive_to_an_interruption(conversation)
    recorder.stop()
    recorder.stop()
    press(conversation, 3)
    trace = read_trace(tmp_path / "trace.jsonl")
    assert trace.header.start.context["sequence"] == 1
    assert len(trace.records) == 22
    assert replay(trace).divergence is None


def test_a_recording_that_is_there_already_is_put_aside(tmp_path: Path, make_conversation: Make) -> None:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl")
    for presses in (1, 2):
        recorder.start()
        press(conversation, presses)
        recorder.stop()
    assert len(read_trace(tmp_path / "trace.jsonl.1").records) == 1
    assert len(read_trace(tmp_path / "trace.jsonl").records) == 2


def test_nobody_else_may_read_a_recording(tmp_path: Path, make_conversation: Make) -> None:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl")
    recorder.start()
    press(conversation, 1)
    recorder.stop()
    assert stat.S_IMODE((tmp_path / "trace.jsonl").stat().st_mode) == 0o600


def test_steps_beyond_the_queue_are_counted_and_the_recording_goes_on_behind_them(
    tmp_path: Path, make_conversation: Make
) -> None:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl", limits=TraceLimits(max_queued_steps=2))
    recorder.start()
    press(conversation, 2)
    assert recorder.missing_steps == 0
    press(conversation, 3)
    assert recorder.missing_steps == 3
    recorder.flush()
    press(conversation, 1)
    recorder.stop()
    trace = read_trace(tmp_path / "trace.jsonl")
    assert [record.number for record in trace.records] == [1, 2, 6]
    assert [(gap.gap, gap.start.number) for gap in trace.gaps] == [(3, 6)]
    assert replay(trace).divergence is None


def test_steps_that_are_missing_at_the_end_are_said_to_be(tmp_path: Path, make_conversation: Make) -> None:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl", limits=TraceLimits(max_queued_steps=1))
    recorder.start()
    press(conversation, 5)
    recorder.stop()
    assert [gap.gap for gap in read_trace(tmp_path / "trace.jsonl").gaps] == [4]


def test_a_file_never_grows_beyond_its_bound_and_only_the_newest_stay(tmp_path: Path, make_conversation: Make) -> None:
    limits = TraceLimits(max_file_bytes=64 * 1024, kept_files=2)
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl", limits=limits)
    recorder.start()
    for _ in range(20):
        press(conversation, 100)
        recorder.flush()
    recorder.stop()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["trace.jsonl", "trace.jsonl.1", "trace.jsonl.2"]
    traces = [read_trace(tmp_path / name) for name in ("trace.jsonl.2", "trace.jsonl.1", "trace.jsonl")]
    assert all((tmp_path / name).stat().st_size <= limits.max_file_bytes for name in files)
    numbers = [record.number for trace in traces for record in trace.records]
    assert numbers == list(range(numbers[0], 2_001))
    assert all(replay(trace).divergence is None for trace in traces)


def test_a_disk_that_is_full_switches_the_recorder_off_and_leaves_the_conversation_alone(
    tmp_path: Path, make_conversation: Make
) -> None:
    full = tmp_path / "trace.jsonl"
    full.symlink_to("/dev/full")
    told: list[TraceWriteError] = []
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, full, on_failure=told.append)
    recorder.start()
    press(conversation, 1)
    recorder.flush()
    assert not recorder.is_on
    assert told == [recorder.failure]
    assert "No space left on device. Make room" in str(recorder.failure)
    press(conversation, 1)
    recorder.stop()
    assert len(told) == 1


def test_a_place_that_cannot_be_written_is_told_the_same_way(tmp_path: Path, make_conversation: Make) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "file" / "trace.jsonl")
    recorder.start()
    press(conversation, 1)
    recorder.stop()
    assert recorder.failure is not None
    assert not recorder.is_on


def test_a_disk_that_hangs_keeps_nobody_waiting_longer_than_the_bound(tmp_path: Path, make_conversation: Make) -> None:
    hanging = tmp_path / "trace.jsonl"
    os.mkfifo(hanging)  # opened for writing it waits for a reader, as a dead network disk waits for ever
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, hanging, limits=TraceLimits(disk_timeout_ms=20))
    recorder.start()
    press(conversation, 1)
    writer = threading.Thread(target=recorder.flush)
    writer.start()
    with ExitStack() as cleaning_up:
        cleaning_up.callback(writer.join)
        cleaning_up.callback(hanging.read_bytes)  # lets the writer go
        while recorder.failure is None:
            recorder.stop()
        assert not recorder.is_on
        assert "the disk has not answered for 20 ms" in str(recorder.failure)


@pytest.mark.anyio
async def test_a_running_recorder_finds_out_that_the_disk_hangs(tmp_path: Path, make_conversation: Make) -> None:
    hanging = tmp_path / "trace.jsonl"
    os.mkfifo(hanging)
    conversation = make_conversation()
    told: list[TraceWriteError] = []
    limits = TraceLimits(disk_timeout_ms=20)
    recorder = TraceRecorder(conversation, hanging, limits=limits, on_failure=told.append)
    recorder.start()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(recorder.run, 1)
            press(conversation, 1)
            while not told:
                await anyio.sleep(0.005)
                press(conversation, 1)
            await anyio.to_thread.run_sync(hanging.read_bytes)  # lets the writer go
            tasks.cancel_scope.cancel()
    assert not recorder.is_on
    assert "the disk has not answered for 20 ms" in str(told[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorOpened(Fact):
    """An embedder's own, with something in it that no trace can hold."""

    by: object


def test_a_fact_that_cannot_be_written_switches_the_recorder_off_and_is_named(
    tmp_path: Path, make_conversation: Make
) -> None:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl")
    recorder.start()
    conversation.handle(DoorOpened(at=1, by=object()))
    recorder.flush()
    assert not recorder.is_on
    assert "object is no value that a trace can hold" in str(recorder.failure)


def test_a_text_that_is_no_proper_unicode_is_kept(tmp_path: Path, make_conversation: Make) -> None:
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl", text_shown=True)
    recorder.start()
    conversation.handle(TextSubmitted(at=1, text="cut \ud800 off"))
    recorder.stop()
    trace = read_trace(tmp_path / "trace.jsonl")
    assert trace.record(1).fact["text"] == "cut \ud800 off"


def test_a_recorder_that_failed_can_be_switched_on_again(tmp_path: Path, make_conversation: Make) -> None:
    blocked = tmp_path / "folder"
    blocked.write_text("in the way", encoding="utf-8")
    conversation = make_conversation()
    recorder = TraceRecorder(conversation, blocked / "trace.jsonl")
    recorder.start()
    press(conversation, 1)
    recorder.flush()
    assert recorder.failure is not None
    blocked.unlink()
    recorder.start()
    assert recorder.failure is None
    press(conversation, 1)
    recorder.stop()
    assert len(read_trace(blocked / "trace.jsonl").records) == 1


@pytest.mark.anyio
async def test_a_running_recorder_writes_by_itself_and_at_its_end(tmp_path: Path, make_conversation: Make) -> None:
    conversation = make_conversation()
    path = tmp_path / "trace.jsonl"
    recorder = TraceRecorder(conversation, path)
    recorder.start()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(recorder.run, 1)
            press(conversation, 1)
            while not path.exists() or path.read_text(encoding="utf-8").count("\n") != 2:  # noqa: ASYNC110 - a file
                await anyio.sleep(0.001)
            press(conversation, 1)
            tasks.cancel_scope.cancel()
    assert len(read_trace(path).records) == 2
    recorder.stop()


@pytest.mark.parametrize(
    "limits",
    [
        {"max_file_bytes": 64 * 1024 - 1},
        {"max_file_bytes": 1024**3 + 1},
        {"kept_files": -1},
        {"kept_files": 101},
        {"max_queued_steps": 0},
        {"max_queued_steps": 65_537},
        {"disk_timeout_ms": 9},
        {"disk_timeout_ms": 60_001},
    ],
    ids=str,
)
def test_limits_outside_their_bounds_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(limits))} = .* is outside"):
        TraceLimits(**limits)


def test_limits_at_their_bounds_are_taken() -> None:
    TraceLimits(max_file_bytes=64 * 1024, kept_files=0, max_queued_steps=1, disk_timeout_ms=10)
    TraceLimits(max_file_bytes=1024**3, kept_files=100, max_queued_steps=65_536, disk_timeout_ms=60_000)


def test_without_kept_files_a_full_one_is_written_over(tmp_path: Path, make_conversation: Make) -> None:
    conversation = make_conversation()
    limits = TraceLimits(max_file_bytes=64 * 1024, kept_files=0)
    recorder = TraceRecorder(conversation, tmp_path / "trace.jsonl", limits=limits)
    recorder.start()
    press(conversation, 1_000)
    recorder.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]
    assert read_trace(tmp_path / "trace.jsonl").records[-1].number == 1_000


def test_a_trace_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file or directory"):
        read_trace(tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)
