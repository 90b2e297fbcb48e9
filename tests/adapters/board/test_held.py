"""A virtual microphone is told when somebody listens."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.board import BoardAudio, ClientRole, WavMicrophone, WavSpeaker, serve_audio
from voicechart.audio.formats import AudioFormat

pytestmark = pytest.mark.anyio


async def test_the_service_tells_whenever_a_conversation_takes_the_devices_and_not_for_an_observer(
    tmp_path: Path,
) -> None:
    path, held = tmp_path / "audio.sock", [0]

    def count() -> None:
        held[0] += 1

    async with anyio.create_task_group() as service:
        serve = partial(serve_audio, on_held=count)
        await service.start(serve, path, WavMicrophone(), WavSpeaker(None, AudioFormat(8_000)))
        async with BoardAudio.connect(path, role=ClientRole.OBSERVER):
            assert held == [0]
        for conversations in (1, 2):
            async with BoardAudio.connect(path):
                assert held == [conversations]
        service.cancel_scope.cancel()
