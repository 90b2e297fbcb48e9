"""Without PortAudio, or without a device, the error tells what to install or to name. Sound: tests/end_to_end."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

import pytest

from voicechart.adapters.board import DeviceLost, PortAudioMicrophone, PortAudioSpeaker, RenderBlock

pytestmark = pytest.mark.anyio


class Silence:
    """A source and a sink that want nothing."""

    def render(self, samples: int) -> RenderBlock:
        return RenderBlock(bytes(2 * samples), 0)

    def presented(self, position_samples: int, now_ns: int) -> None: ...
    def flushed(self, position_samples: int, now_ns: int) -> None: ...
    def captured(self, data: bytes, captured_at_ns: int, lost_samples: int = 0) -> None: ...


class Unloadable(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes sounddevice fail as it does where the system's library is missing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name == "sounddevice" else None

    def exec_module(self, module: ModuleType) -> None:
        raise OSError("PortAudio library not found")


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Unloadable(), *sys.meta_path])


@pytest.mark.usefixtures("without_package")
async def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(DeviceLost, match=r"pip install 'voicechart\[local\]'") as lost:
        await PortAudioSpeaker().run(Silence())
    assert lost.value.code == "library_missing"


@pytest.mark.usefixtures("without_library")
async def test_a_missing_library_is_named_with_its_package() -> None:
    with pytest.raises(DeviceLost, match="apt-get install libportaudio2") as lost:
        await PortAudioMicrophone().run(Silence())
    assert lost.value.code == "library_missing"


@pytest.mark.parametrize("device", [PortAudioSpeaker("no such device"), PortAudioMicrophone("no such device")])
async def test_a_missing_device_says_how_to_list_them(device: PortAudioSpeaker | PortAudioMicrophone) -> None:
    try:
        importlib.import_module("sounddevice")
    except (ImportError, OSError) as error:
        pytest.skip(f"sounddevice with PortAudio is not installed: {error}")
    with pytest.raises(DeviceLost, match="python -m sounddevice") as lost:
        await device.run(Silence())
    assert lost.value.code == "device_missing"
