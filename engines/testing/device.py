"""A device whose sessions are scripted: one microphone and one speaker each, and connections that may fail."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from ...audio.formats import SPEECH_FORMAT, AudioFormat
from ...statecharts.errors import ScopedError
from ..reports import PortError
from .microphone import ScriptedMicrophone
from .speaker import ScriptedSpeaker, SpeakerScript


@dataclass(frozen=True, slots=True)
class LinkScript:
    """How one device session goes."""

    connect_after_ms: float = 0.0
    connect_error: ScopedError | None = None
    speaker: SpeakerScript = field(default_factory=SpeakerScript)
    microphone_format: AudioFormat = SPEECH_FORMAT


@dataclass
class ScriptedLink:
    """One live session."""

    microphone: ScriptedMicrophone
    speaker: ScriptedSpeaker
    left: bool = False


class ScriptedDevice:
    """The nth connection follows the nth script, later ones the last."""

    def __init__(self, *scripts: LinkScript) -> None:
        self._scripts = scripts or (LinkScript(),)
        self.connections = 0
        self.links: list[ScriptedLink] = []
        """Every session that came about."""

    @property
    def link(self) -> ScriptedLink:
        """The latest session."""
        return self.links[-1]

    @property
    def microphone(self) -> ScriptedMicrophone:
        return self.link.microphone

    @property
    def speaker(self) -> ScriptedSpeaker:
        return self.link.speaker

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[ScriptedLink, None]:
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        await anyio.sleep(script.connect_after_ms / 1_000)
        if script.connect_error is not None:
            raise PortError(script.connect_error)
        link = ScriptedLink(ScriptedMicrophone(script.microphone_format), ScriptedSpeaker(script.speaker))
        self.links.append(link)
        try:
            yield link
        finally:
            await link.speaker.aclose()
            await link.microphone.aclose()
            link.left = True
