"""The part of `sounddevice` in use, typed; imported only when a sound device is.

sounddevice ships no annotations, and importing it fails where the system's PortAudio library is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Protocol, cast

from .devices import DeviceLost


class StreamTimes(Protocol):
    """`PaStreamCallbackTimeInfo`, in seconds of the stream's clock; 0 where the host tells none."""

    inputBufferAdcTime: float
    currentTime: float
    outputBufferDacTime: float


class CallbackFlags(Protocol):
    @property
    def input_overflow(self) -> bool: ...


class OutputBuffer(Protocol):
    def __setitem__(self, where: slice, data: bytes) -> None: ...


OutputCallback = Callable[[OutputBuffer, int, StreamTimes, CallbackFlags], None]
InputCallback = Callable[[bytes, int, StreamTimes, CallbackFlags], None]


class RawStream(Protocol):
    @property
    def active(self) -> bool: ...
    @property
    def time(self) -> float: ...
    @property
    def latency(self) -> float: ...
    def start(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class _MakesOutput(Protocol):
    def __call__(
        self,
        *,
        samplerate: int,
        blocksize: int,
        device: int | str | None,
        channels: int,
        dtype: str,
        latency: float | str,
        callback: OutputCallback,
    ) -> RawStream: ...


class _MakesInput(Protocol):
    def __call__(
        self,
        *,
        samplerate: int,
        blocksize: int,
        device: int | str | None,
        channels: int,
        dtype: str,
        latency: float | str,
        callback: InputCallback,
    ) -> RawStream: ...


class PortAudio(Protocol):
    """The module."""

    @property
    def RawOutputStream(self) -> _MakesOutput: ...
    @property
    def RawInputStream(self) -> _MakesInput: ...
    @property
    def PortAudioError(self) -> type[Exception]: ...


def load_portaudio() -> PortAudio:
    """Import it. Raises `DeviceLost` with what to install."""
    try:
        return cast("PortAudio", importlib.import_module("sounddevice"))
    except ModuleNotFoundError as error:
        raise DeviceLost(
            "library_missing", "sound devices need the package sounddevice: pip install 'voicechart[local]'"
        ) from error
    except OSError as error:
        raise DeviceLost(
            "library_missing",
            "sound devices need the PortAudio library of the system, for instance: apt-get install libportaudio2",
        ) from error
