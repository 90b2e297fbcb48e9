"""The stop, measured in sound: what a listener at the loudspeaker hears, not what the program believes.

What runs: a private PulseAudio with a null sink as the loudspeaker and one as the microphone (its monitor is the
source), the audio service with PortAudio devices in a process of its own, this process as the daemon's end of the
socket, and `parec` on the loudspeaker's monitor as the ear. Nothing touches the machine's own sound.

By hand, to look into a failure (FOLDER is a private folder, mode 700):

    export XDG_RUNTIME_DIR=FOLDER HOME=FOLDER PULSE_SERVER=unix:FOLDER/native
    pulseaudio -n --daemonize=no --exit-idle-time=-1 --disallow-exit --use-pid-file=no -F FOLDER/server.pa
    parec -d speaker.monitor --raw --format=s16le --rate=48000 --channels=1 > heard.raw

Needs (Debian): pulseaudio pulseaudio-utils libportaudio2 libasound2-plugins, and the Python package sounddevice.
Without them the tests are skipped and say what is missing. Seen on two cores: silent within 10 ms of the call, by the
recorder's clock; the bound here is loose on purpose.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGINT, SIGTERM

import anyio
import numpy as np
import pytest
from anyio.abc import ByteReceiveStream, Process

from voicechart.adapters.board import BoardAudio
from voicechart.audio.formats import AudioFormat, AudioFrame
from voicechart.engines.ports import OutputOpening
from voicechart.engines.reports import Captured, RenderingDrained, RenderingStopped

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

RATE_HZ = 48_000
SPEECH = AudioFormat(24_000)
STORY_HZ, ANSWER_HZ, QUESTION_HZ = 440, 1_100, 700
STOP_BOUND_MS = 400

SERVER = """
load-module module-native-protocol-unix socket={folder}/native auth-anonymous=1
load-module module-null-sink sink_name=speaker rate=48000 channels=1
load-module module-null-sink sink_name=spoken rate=48000 channels=1
load-module module-remap-source source_name=microphone master=spoken.monitor
set-default-sink speaker
set-default-source microphone
"""

SERVICE = """
import sys, anyio
from pathlib import Path
from voicechart.adapters.board import PortAudioMicrophone, PortAudioSpeaker, serve_audio

class Ready:
    def started(self, value=None):
        print("ready", flush=True)

async def serve():
    microphone, speaker = PortAudioMicrophone("pulse"), PortAudioSpeaker("pulse")
    await serve_audio(Path(sys.argv[1]), microphone, speaker, task_status=Ready())

anyio.run(serve)
"""


def missing() -> str | None:
    """What this machine lacks, None when it can run the tests."""
    for program in ("pulseaudio", "parec", "pacat"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: pulseaudio pulseaudio-utils)"
    if importlib.util.find_spec("sounddevice") is None:
        return "sounddevice is not installed (pip install 'voicechart[local]')"
    return None


@pytest.fixture
def sound_server() -> Generator[dict[str, str], None, None]:
    """The environment of a private sound server."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    # Not pytest's folder: its path is too long for a Unix socket.
    with tempfile.TemporaryDirectory(prefix="vc") as name:
        folder = Path(name)
        script = folder / "server.pa"
        script.write_text(SERVER.format(folder=folder))
        native = folder / "native"
        environment = os.environ | {"XDG_RUNTIME_DIR": name, "HOME": name, "PULSE_SERVER": f"unix:{native}"}
        arguments = "-n --daemonize=no --exit-idle-time=-1 --disallow-exit --use-pid-file=no"
        server = subprocess.Popen(
            ["pulseaudio", *arguments.split(), "--realtime=no", "--high-priority=no", "-F", str(script)],
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for_pulse(environment)
            check_portaudio_sees_it(environment)
            yield environment
        finally:
            server.send_signal(SIGTERM)
            server.wait(10)


def wait_for_pulse(environment: dict[str, str]) -> None:
    for _ in range(100):
        if subprocess.run(["pactl", "info"], env=environment, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    pytest.fail("the private sound server did not start within 10 s")


def check_portaudio_sees_it(environment: dict[str, str]) -> None:
    listing = subprocess.run(
        [sys.executable, "-m", "sounddevice"], env=environment, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("PortAudio is not installed (Debian: libportaudio2)")
    if "pulse" not in listing.stdout:
        pytest.skip("PortAudio does not reach PulseAudio (Debian: libasound2-plugins)")


@dataclass
class Ear:
    """What is heard at the loudspeaker, and when."""

    data: bytearray = field(default_factory=bytearray)
    starts_at_ns: float = float("inf")
    """When the first recorded sample sounded: the earliest that any chunk's arrival allows."""
    grew: anyio.Event = field(default_factory=anyio.Event)

    async def listen(self, sound: ByteReceiveStream) -> None:
        async for chunk in sound:
            self.data += chunk
            self.starts_at_ns = min(self.starts_at_ns, time.monotonic_ns() - len(self.data) / 2 / RATE_HZ * 1e9)
            self.grew.set()
            self.grew = anyio.Event()

    def samples(self, from_ns: float = 0) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
        heard = np.frombuffer(bytes(self.data[: len(self.data) // 2 * 2]), np.int16)
        return heard[max(0, round((from_ns - self.starts_at_ns) / 1e9 * RATE_HZ)) :]

    def heard_ms(self, tone_hz: int, from_ns: float = 0) -> list[float]:
        """The 10 ms windows in which a tone sounds, by their place in ms after `from_ns`."""
        samples = self.samples(from_ns).astype(np.float64)
        window = RATE_HZ // 100
        count = len(samples) // window
        frames = samples[: count * window].reshape(count, window)
        turn = np.exp(-2j * np.pi * tone_hz * np.arange(window) / RATE_HZ)
        level = np.abs(frames @ turn) * 2 / window
        return [10.0 * int(index) for index in np.flatnonzero(level > 1_000)]

    async def until_heard(self, tone_hz: int, total_ms: int) -> None:
        with anyio.fail_after(20):
            while len(self.heard_ms(tone_hz)) * 10 < total_ms:
                await self.grew.wait()


def tone(frequency_hz: int, duration_ms: int, audio_format: AudioFormat = SPEECH) -> AudioFrame:
    times = np.arange(audio_format.samples_for_ms(duration_ms)) / audio_format.sample_rate_hz
    return AudioFrame((8_000 * np.sin(2 * np.pi * frequency_hz * times)).astype("<i2").tobytes(), audio_format)


@asynccontextmanager
async def running(command: list[str], environment: dict[str, str]) -> AsyncGenerator[Process, None]:
    async with await anyio.open_process(command, env=environment, stderr=None) as process:
        try:
            yield process
        finally:
            with anyio.move_on_after(5, shield=True) as ending, suppress(ProcessLookupError):
                process.send_signal(SIGINT)
                await process.wait()
            if ending.cancelled_caught:
                process.kill()


@asynccontextmanager
async def board(environment: dict[str, str]) -> AsyncGenerator[BoardAudio, None]:
    path = Path(environment["HOME"]) / "audio.sock"
    async with running([sys.executable, "-c", SERVICE, str(path)], environment) as service:
        assert service.stdout is not None
        with anyio.fail_after(20):
            assert (await service.stdout.receive()).strip() == b"ready"
        async with BoardAudio.connect(path) as connection:
            yield connection


@asynccontextmanager
async def ear_at_the_speaker(environment: dict[str, str]) -> AsyncGenerator[Ear, None]:
    command = ["parec", "-d", "speaker.monitor", "--raw", "--format=s16le", f"--rate={RATE_HZ}", "--channels=1"]
    ear = Ear()
    async with running([*command, "--latency-msec=10"], environment) as recorder, anyio.create_task_group() as group:
        assert recorder.stdout is not None
        group.start_soon(ear.listen, recorder.stdout)
        with anyio.fail_after(10):
            await ear.grew.wait()
        yield ear
        group.cancel_scope.cancel()


async def test_an_interrupted_story_is_silent_in_sound_and_only_the_answer_is_heard_afterwards(
    sound_server: dict[str, str],
) -> None:
    async with ear_at_the_speaker(sound_server) as ear, board(sound_server) as connection:
        speaker = connection.speaker
        reports = speaker.reports()
        await speaker.open(OutputOpening(1, 1, SPEECH))
        stopped_at_ns = 0
        async with anyio.create_task_group() as group:
            group.start_soon(speaker.write, 1, 1, tone(STORY_HZ, 5_000))
            await ear.until_heard(STORY_HZ, 500)
            stopped_at_ns = time.monotonic_ns()
            speaker.invalidate_before(2, "barge-in")
        async for report in reports:
            if isinstance(report, RenderingStopped):
                break
        await speaker.open(OutputOpening(2, 2, SPEECH))
        await speaker.write(2, 2, tone(ANSWER_HZ, 400))
        await speaker.finish(2, SPEECH.samples_for_ms(400))
        async for report in reports:
            if isinstance(report, RenderingDrained):
                break
        await anyio.sleep(0.8)
        before, after = len(ear.heard_ms(STORY_HZ)), ear.heard_ms(STORY_HZ, stopped_at_ns)
        assert before * 10 >= 500
        assert not [at for at in after if at > STOP_BOUND_MS], f"the story was heard at {after} ms after the stop"
        assert 300 <= len(ear.heard_ms(ANSWER_HZ, stopped_at_ns)) * 10 <= 500


async def test_what_is_said_into_the_microphone_arrives_over_the_socket(sound_server: dict[str, str]) -> None:
    question = tone(QUESTION_HZ, 1_000, AudioFormat(RATE_HZ))
    async with board(sound_server) as connection:
        reports = connection.microphone.reports()
        # An idle source of a sound server may wake late: speak once frames come.
        with anyio.fail_after(20):
            await anext(reports)
        command = ["pacat", "-d", "spoken", "--raw", "--format=s16le", f"--rate={RATE_HZ}", "--channels=1"]
        heard = bytearray()
        expected: int | None = None
        async with running(command, sound_server) as mouth:
            assert mouth.stdin is not None
            await mouth.stdin.send(question.data)
            await mouth.stdin.aclose()
            with anyio.fail_after(20):
                async for report in reports:
                    assert isinstance(report, Captured)
                    assert expected is None or report.frame.start_sample == expected
                    expected = report.frame.end_sample
                    heard += report.frame.data
                    if len(heard) > 2 * 2 * connection.microphone.format.sample_rate_hz:
                        break
        rate_hz = connection.microphone.format.sample_rate_hz
        spectrum = np.abs(np.fft.rfft(np.frombuffer(bytes(heard), np.int16)))
        loudest_hz = int(np.argmax(spectrum)) * rate_hz / (len(heard) // 2)
        assert loudest_hz == pytest.approx(QUESTION_HZ, abs=5)
