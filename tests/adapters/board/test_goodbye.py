"""Whoever stops a session, by closing or by cancelling it, leaves with a word."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus

from voicechart.adapters.board import BoardAudio, WavMicrophone, WavSpeaker, serve_audio
from voicechart.audio.formats import AudioFormat

pytestmark = pytest.mark.anyio
SERVICE_LOG = "voicechart.adapters.board.service"


async def hold_a_session(path: Path, *, task_status: TaskStatus[None]) -> None:
    async with BoardAudio.connect(path) as board:
        async for _ in board.microphone.reports():
            task_status.started()
            await anyio.sleep_forever()


class Listening(logging.Handler):
    """Tells when the service has logged something."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.heard = anyio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.heard.set()


async def test_a_session_whose_owner_is_cancelled_says_goodbye(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, SERVICE_LOG)
    log = Listening()
    logging.getLogger(SERVICE_LOG).addHandler(log)
    path = tmp_path / "audio.sock"
    async with anyio.create_task_group() as service:
        await service.start(serve_audio, path, WavMicrophone(), WavSpeaker(None, AudioFormat(8_000)))
        async with anyio.create_task_group() as owner:
            await owner.start(hold_a_session, path)
            owner.cancel_scope.cancel()
        with anyio.fail_after(5):
            await log.heard.wait()
        service.cancel_scope.cancel()
    logging.getLogger(SERVICE_LOG).removeHandler(log)
    assert [record.levelname for record in log.records] == ["INFO"]
