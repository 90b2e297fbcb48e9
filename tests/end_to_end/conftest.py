"""The command line as people use it: in processes of its own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import anyio
import pytest

from voicechart.adapters.configuration import PicoVoice
from voicechart.adapters.demo.dialogue import spoken
from voicechart.adapters.testing.command import VoicechartCommand
from voicechart.audio.wav_writer import WavWriter


@pytest.fixture
def voicechart(tmp_path: Path) -> Generator[VoicechartCommand]:
    command = VoicechartCommand(tmp_path)
    yield command
    command.kill_all()


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a WAV file in which a synthesised voice says something."""
    folder = tmp_path_factory.mktemp("recordings")
    made: dict[str, Path] = {}

    def make(text: str) -> Path:
        if text not in made:
            (speech,) = anyio.run(spoken, PicoVoice(kind="pico"), (text,))
            made[text] = folder / f"{len(made)}.wav"
            with WavWriter(made[text], speech.format) as writer:
                writer.write(speech)
        return made[text]

    return make
