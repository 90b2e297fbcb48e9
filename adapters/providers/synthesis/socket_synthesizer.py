"""A synthesiser that is spoken to over a WebSocket. What a vendor's messages mean is its `SpeechDialect`."""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import anyio

from ....audio.formats import AudioFormat
from ....engines.ports import SpeechUnit, SynthesisRequest
from ....engines.reports import PortError, SynthesisReport, Word
from ....statecharts.capabilities import SynthesizerCapabilities
from ..closings import SocketClosed
from ..provider_socket import JsonObject, ProviderSocket
from .reply import SpeechLimits, SpokenReply
from .track import SYNTHESIS, SpokenTrack
from .warm_sockets import WarmSockets

GOODBYE_S = 1.0
"""For what is said to a provider whose reply was cancelled."""


@dataclass(frozen=True, slots=True)
class UnitAudio:
    """PCM of a unit, cut anywhere."""

    unit_index: int
    pcm: bytes


@dataclass(frozen=True, slots=True)
class UnitWords:
    """Words of a unit with their times in samples of the unit."""

    unit_index: int
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class UnitSpoken:
    """A unit has all of its audio."""

    unit_index: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The provider waits for these messages."""

    messages: tuple[JsonObject, ...]


Heard = UnitAudio | UnitWords | UnitSpoken | Answer


class SpeechDialect(Protocol):
    """One reply in the messages of one vendor. No I/O; what belongs to another reply is passed over."""

    def say(self, unit: SpeechUnit) -> Sequence[JsonObject]:
        """Messages that ask for a unit."""
        ...

    def hear(self, message: JsonObject | bytes) -> Sequence[Heard]:
        """What a message means. Raises `PortError` for one that makes no sense, and for the provider's errors."""
        ...

    def finish(self) -> Sequence[JsonObject]:
        """Every unit was spoken: what remains to be said before the socket serves another reply."""
        ...

    def cancel(self) -> Sequence[JsonObject]:
        """The rest is not wanted."""
        ...


class SpeechVendor(Protocol):
    """A vendor, as configured."""

    @property
    def format(self) -> AudioFormat: ...
    @property
    def capabilities(self) -> SynthesizerCapabilities: ...
    @property
    def default_voice(self) -> str: ...
    @property
    def max_units_ahead(self) -> int:
        """Units that may be asked for and unspoken at the same time."""
        ...

    @property
    def max_idle_s(self) -> float:
        """How long a socket may idle and still be used."""
        ...

    @property
    def survives_cancel(self) -> bool:
        """A cancelled reply can be told apart from the next one on the same socket; else the socket is closed."""
        ...

    async def connect(self, voice: str) -> ProviderSocket:
        """A socket that is ready for text. Raises `PortError`."""
        ...

    def dialect(self, voice: str) -> SpeechDialect: ...


class SocketSynthesizer:
    """Implements `Synthesizer`. Every reply has a socket for itself while it lasts."""

    def __init__(self, vendor: SpeechVendor, limits: SpeechLimits | None = None) -> None:
        self._vendor = vendor
        self._limits = limits or SpeechLimits()
        self._sockets = WarmSockets(vendor.connect, max_idle_s=vendor.max_idle_s)
        self._replies: set[SpokenReply] = set()

    @property
    def capabilities(self) -> SynthesizerCapabilities:
        return self._vendor.capabilities

    @property
    def format(self) -> AudioFormat:
        return self._vendor.format

    async def prepare(self) -> None:
        """Connect. Raises `PortError`: so a wrong key or address shows before anybody speaks."""
        await self._sockets.prepare(self._vendor.default_voice)

    async def open(self, request: SynthesisRequest) -> SpokenReply:
        voice = request.voice or self._vendor.default_voice
        socket = await self._sockets.take(voice)
        speech = _Speech(self._vendor, self._sockets, voice, socket)
        reply = SpokenReply(speech.speak, self._limits)
        self._replies.add(reply)
        reply.when_done(lambda: self._replies.discard(reply))
        return reply

    async def aclose(self) -> None:
        self._sockets.stop()
        for reply in tuple(self._replies):
            await reply.aclose()
        await self._sockets.aclose()


class _Speech:
    """One reply over a socket; while nothing is owed to us, the socket may even be replaced."""

    def __init__(self, vendor: SpeechVendor, sockets: WarmSockets, voice: str, socket: ProviderSocket) -> None:
        self._vendor = vendor
        self._sockets = sockets
        self._voice = voice
        self._socket = socket
        self._dialect = vendor.dialect(voice)
        self._track = SpokenTrack(vendor.format)
        self._owed: set[int] = set()
        self._settled = anyio.Event()
        self._silence = anyio.CancelScope()
        self._failure: PortError | None = None
        self._is_listening = False
        self._is_finished = False

    async def speak(self, reply: SpokenReply) -> None:
        """Until all is said. However it ends, the socket is given back or closed."""
        try:
            while (unit := await reply.next_unit()) is not None:
                if not self._socket.is_open:
                    # It timed out while there was nothing to say. Nothing is lost: every unit so far is complete.
                    await self._socket.aclose()
                    self._dialect = self._vendor.dialect(self._voice)
                    self._socket = await self._sockets.take(self._voice)
                await self._exchange(reply, unit)
            await self._send(self._dialect.finish())
            self._is_finished = True
        finally:
            with anyio.CancelScope(shield=True):
                await self._leave()

    async def _exchange(self, reply: SpokenReply, unit: SpeechUnit) -> None:
        """From a unit that nobody is working on until nothing is owed any more."""
        self._silence = anyio.CancelScope()
        self._is_listening = True
        self._begin(unit, reply.limits.silence_s)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._say, reply, unit)
            try:
                with self._silence:
                    await self._listen(reply)
            except PortError as failure:
                self._failure = self._failure or failure
            self._is_listening = False
            tasks.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        if self._owed:
            message = f"the provider sent no audio for {reply.limits.silence_s} s; check the network and the provider"
            raise SYNTHESIS.failure("provider_silent", message, retryable=True)

    def _begin(self, unit: SpeechUnit, silence_s: float) -> None:
        if not self._owed:
            self._silence.deadline = anyio.current_time() + silence_s
        self._owed.add(unit.index)
        self._track.expect(unit)

    async def _say(self, reply: SpokenReply, unit: SpeechUnit | None) -> None:
        """The only one who asks for units: two senders could part a text from its end."""
        try:
            while unit is not None:
                await self._send(self._dialect.say(unit))
                while len(self._owed) >= self._vendor.max_units_ahead:
                    await self._settled.wait()
                unit = await reply.next_unit()
                if unit is not None and not self._is_listening:
                    # It came in the moment in which the last one had ended: the next exchange asks for it.
                    reply.put_back(unit)
                    return
                if unit is not None:
                    self._begin(unit, reply.limits.silence_s)
        except SocketClosed:
            return  # whoever listens reads what was said before the end, and why it ended
        except PortError as failure:
            self._failure = failure
            self._silence.cancel()

    async def _listen(self, reply: SpokenReply) -> None:
        while self._owed:
            for heard in self._dialect.hear(await self._socket.receive_json_or_bytes()):
                await self._take(heard, reply)

    async def _take(self, heard: Heard, reply: SpokenReply) -> None:
        reports: list[SynthesisReport] = []
        match heard:
            case Answer(messages):
                with suppress(SocketClosed):  # what was said before the end is still to be read
                    await self._send(messages)
                return
            case UnitWords(unit_index, words):
                self._track.add_words(unit_index, words)
                return
            case UnitAudio(unit_index, pcm):
                reports = self._track.add(unit_index, pcm)
            case UnitSpoken(unit_index):
                reports = self._track.complete(unit_index)
                self._owed.discard(unit_index)
                self._settled.set()
                self._settled = anyio.Event()
        # While the reader is slow, the provider is not the one who is silent.
        self._silence.deadline = math.inf
        await reply.deliver(reports)
        self._silence.deadline = anyio.current_time() + reply.limits.silence_s

    async def _send(self, messages: Sequence[JsonObject]) -> None:
        for message in messages:
            await self._socket.send_json(message)

    async def _leave(self) -> None:
        if self._is_finished:
            self._sockets.give_back(self._voice, self._socket)
            return
        is_usable = self._failure is None and self._socket.is_open and (not self._owed or self._vendor.survives_cancel)
        try:
            with anyio.move_on_after(GOODBYE_S) as bounded:
                if self._socket.is_open:
                    await self._send(self._dialect.cancel())
            is_usable = is_usable and not bounded.cancelled_caught
        except PortError:
            is_usable = False  # it is gone, or going: nothing of it can come any more
        if is_usable:
            self._sockets.give_back(self._voice, self._socket)
        else:
            self._sockets.discard(self._voice, self._socket)


def decoded(audio: str) -> bytes:
    """PCM from base 64. Raises `PortError` `provider_malformed`."""
    try:
        return b64decode(audio, validate=True)
    except (binascii.Error, ValueError) as broken:
        raise malformed("audio that is not base 64") from broken


def malformed(what: str) -> PortError:
    """The exception for a message that makes no sense."""
    message = f"the provider sent {what}; check base_url, and whether this version of its protocol is still spoken"
    return SYNTHESIS.failure("provider_malformed", message)
