"""The board's buttons: from a line in a FIFO to their place between the captured frames."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus

from voicechart.adapters.board import (
    BoardAudio,
    ButtonFifo,
    ButtonsRefused,
    InProcessMicrophone,
    WavMicrophone,
    WavSpeaker,
    serve_audio,
)
from voicechart.adapters.board.captured_track import MAX_BUTTONS, CapturedTrack, TrackReader
from voicechart.adapters.board.messages import ClientHello, ServiceHello, StartCapture
from voicechart.adapters.board.protocol import FrameDecoder, FrameEncoder, Inbound, Side
from voicechart.audio.formats import AudioFormat
from voicechart.engines.reports import ButtonUsed, Captured, DeviceButton, MicrophoneReport, PortError

pytestmark = pytest.mark.anyio
FORMAT = AudioFormat(8_000)
PATIENCE_S = 5


class Buttons:
    """Buttons that the test presses."""

    def __init__(self) -> None:
        self._used: Callable[[DeviceButton], None] | None = None

    async def run(self, used: Callable[[DeviceButton], None], *, task_status: TaskStatus[None]) -> None:
        self._used = used
        task_status.started()
        await anyio.sleep_forever()

    def press(self, button: DeviceButton) -> None:
        assert self._used is not None
        self._used(button)


@asynccontextmanager
async def serving(path: Path, buttons: Buttons | None) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        serve = partial(serve_audio, buttons=buttons)
        await group.start(serve, path, WavMicrophone(FORMAT), WavSpeaker(None, FORMAT))
        yield
        group.cancel_scope.cancel()


# -- on the track --------------------------------------------------------------------------------------------------


def one(value: int) -> bytes:
    return bytes([value, 0]) * 80


def kinds(track: CapturedTrack) -> list[object]:
    """What is taken, a frame as its first byte."""
    taken: list[object] = []
    while (piece := track.take()) is not None:
        taken.append(piece if isinstance(piece, DeviceButton) else piece.frame.data[0])
    return taken


def test_a_button_comes_behind_what_was_captured_before_it() -> None:
    track = CapturedTrack(FORMAT)
    track.append(one(1), None)
    track.press(DeviceButton.TALK)
    track.append(one(2), None)
    track.press(DeviceButton.RELEASE)
    assert kinds(track) == [1, DeviceButton.TALK, 2, DeviceButton.RELEASE]


def test_the_stop_button_waits_for_no_frame() -> None:
    track = CapturedTrack(FORMAT)
    track.append(one(1), None)
    track.press(DeviceButton.TALK)
    track.press(DeviceButton.STOP)
    assert kinds(track) == [DeviceButton.STOP, 1, DeviceButton.TALK]


def test_a_button_keeps_its_place_when_the_frames_before_it_are_lost() -> None:
    track = CapturedTrack(FORMAT, max_ms=10)
    track.append(one(1), None)
    track.press(DeviceButton.TALK)
    track.append(one(2), None)
    assert kinds(track) == [DeviceButton.TALK, 2]


def test_so_many_buttons_wait_and_one_more_is_lost() -> None:
    track = CapturedTrack(FORMAT)
    assert all(track.press(DeviceButton.TALK) for _ in range(MAX_BUTTONS))
    assert not track.press(DeviceButton.RELEASE)
    assert kinds(track) == [DeviceButton.TALK] * MAX_BUTTONS


async def test_a_reader_is_told_of_a_button_without_any_audio() -> None:
    track = CapturedTrack(FORMAT)
    reader = TrackReader(track)
    track.press(DeviceButton.CLEAR)
    assert await anext(reader) == ButtonUsed(DeviceButton.CLEAR)


async def test_a_microphone_in_the_same_process_has_buttons_too() -> None:
    async with InProcessMicrophone.running(WavMicrophone(FORMAT)) as microphone:
        microphone.press(DeviceButton.STOP)  # nobody listens yet
        reports = aiter(microphone.reports())
        microphone.press(DeviceButton.TALK)
        with anyio.fail_after(PATIENCE_S):
            assert await anext(reports) == ButtonUsed(DeviceButton.TALK)


# -- over the socket -----------------------------------------------------------------------------------------------


async def test_a_button_of_the_board_reaches_the_conversation_at_its_place(tmp_path: Path) -> None:
    buttons, path = Buttons(), tmp_path / "audio.sock"
    async with serving(path, buttons), BoardAudio.connect(path, needs_talk_button=True) as board:
        assert board.greeting.buttons == ("stop", "talk")
        heard: list[MicrophoneReport] = []
        with anyio.fail_after(PATIENCE_S):
            async for report in board.microphone.reports():
                heard.append(report)
                if len(heard) == 3:
                    buttons.press(DeviceButton.TALK)
                    buttons.press(DeviceButton.RELEASE)
                if report == ButtonUsed(DeviceButton.RELEASE):
                    break
    used = [report for report in heard if isinstance(report, ButtonUsed)]
    assert used == [ButtonUsed(DeviceButton.TALK), ButtonUsed(DeviceButton.RELEASE)]
    assert any(isinstance(report, Captured) for report in heard)


async def test_without_a_talk_button_push_to_talk_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "audio.sock"
    async with serving(path, None):
        with pytest.raises(PortError, match="--button-fifo") as refused:
            async with BoardAudio.connect(path, needs_talk_button=True):
                pass
        assert refused.value.error.code == "talk_button_missing"
        assert not refused.value.error.retryable
        async with BoardAudio.connect(path) as board:
            assert board.greeting.buttons == ()


async def test_a_client_of_before_there_were_buttons_is_not_told_of_them(tmp_path: Path) -> None:
    buttons, path = Buttons(), tmp_path / "audio.sock"
    encoder, decoder = FrameEncoder(), FrameDecoder(Side.SERVICE)
    said: list[Inbound] = []
    async with serving(path, buttons), await anyio.connect_unix(path) as stream:
        with anyio.fail_after(PATIENCE_S):
            await stream.send(encoder.encode(ClientHello()) + encoder.encode(StartCapture()))
            while len(said) < 4:
                said += decoder.feed(await stream.receive())
            for _ in range(MAX_BUTTONS + 1):
                buttons.press(DeviceButton.TALK)
            while len(said) < 8:
                said += decoder.feed(await stream.receive())
    assert isinstance(said[0], ServiceHello)
    assert {type(item).__name__ for item in said[1:]} == {"CaptureAudio"}


# -- the FIFO ------------------------------------------------------------------------------------------------------


async def words_to_buttons(path: Path, *lines: bytes, expected: int) -> list[DeviceButton]:
    used: list[DeviceButton] = []
    changed = anyio.Event()

    def note(button: DeviceButton) -> None:
        used.append(button)
        if len(used) == expected:
            changed.set()

    async with anyio.create_task_group() as group:
        await group.start(ButtonFifo(path).run, note)
        for line in lines:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(descriptor, line)
            os.close(descriptor)
        with anyio.fail_after(PATIENCE_S):
            await changed.wait()
        group.cancel_scope.cancel()
    return used


async def test_each_line_of_the_fifo_is_a_use_of_a_button(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "buttons"
    used = await words_to_buttons(path, b"talk\n", b"nonsense\n\nRELEASE\ncl", b"ear\nstop\n", expected=4)
    assert used == [DeviceButton.TALK, DeviceButton.RELEASE, DeviceButton.CLEAR, DeviceButton.STOP]
    assert "no button is called 'nonsense'" in caplog.text
    assert not path.exists()


async def test_a_line_that_never_ends_is_not_kept(tmp_path: Path) -> None:
    used = await words_to_buttons(tmp_path / "buttons", b"x" * 4_000, b"\nstop\n", expected=1)
    assert used == [DeviceButton.STOP]


async def test_a_fifo_that_was_there_is_used_and_left_there(tmp_path: Path) -> None:
    path = tmp_path / "buttons"
    os.mkfifo(path, 0o600)
    assert await words_to_buttons(path, b"talk\n", expected=1) == [DeviceButton.TALK]
    assert path.exists()


@pytest.mark.parametrize("where", ["file", "missing/buttons"])
async def test_a_path_that_cannot_be_a_fifo_ends_the_service_with_what_to_do(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("kept")
    fifo = ButtonFifo(tmp_path / where)
    with pytest.raises(ButtonsRefused, match="choose another path"):
        await serve_audio(tmp_path / "s", WavMicrophone(FORMAT), WavSpeaker(None, FORMAT), buttons=fifo)
    assert (tmp_path / "file").read_text() == "kept"
