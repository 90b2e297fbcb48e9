"""The daemon's end of the board-audio socket: one connection, one microphone, one speaker.

When the connection ends for any reason but `aclose`, the microphone reports `CaptureEnded` with the error, the speaker
reports `SpeakerLost`, and whoever waits in a call gets `PortError`. Nothing ever falls back to another device.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import SocketStream

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .background import background
from .board_microphone import BoardMicrophone
from .board_speaker import BoardSpeaker
from .captured_track import DEFAULT_CAPTURE_QUEUE_MS
from .link import EndCause, Link, LinkEnd, LinkLimits
from .messages import (
    Accepted,
    ButtonPressed,
    CaptureFinished,
    ClientHello,
    ClientMessage,
    ClientRole,
    DeviceFailed,
    Discarded,
    Drained,
    Progressed,
    ServiceHello,
    Started,
    Starved,
    Stopped,
)
from .protocol import CaptureAudio, Inbound, PlaybackAudio, ProtocolViolation, Side
from .speaker_writing import DEFAULT_WRITE_DEADLINE_MS

CLOSE_DEADLINE_MS = 1_000


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Deadlines and bounds of the daemon's end."""

    connect_deadline_ms: int = 2_000
    write_deadline_ms: int = DEFAULT_WRITE_DEADLINE_MS
    """How long a write waits without any room being made."""
    capture_queue_ms: int = DEFAULT_CAPTURE_QUEUE_MS
    """What a slow reader of the microphone may leave waiting."""
    link: LinkLimits = field(default_factory=LinkLimits)


class BoardAudio:
    """The connection and the two ports on it. Made by `connect`."""

    def __init__(self, stream: SocketStream, path: Path, role: ClientRole, limits: ClientLimits) -> None:
        self._path = path
        self._limits = limits
        self._link = Link(stream, Side.SERVICE, self, limits.link)
        self._greeting: ServiceHello | None = None
        self._settled = anyio.Event()
        self._done = anyio.Event()
        self._microphone: BoardMicrophone | None = None
        self._speaker: BoardSpeaker | None = None
        self._link.post(ClientHello(role=role, keep_alive=True, buttons=True))

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        path: Path,
        *,
        role: ClientRole = ClientRole.CONVERSATION,
        limits: ClientLimits | None = None,
        needs_talk_button: bool = False,
    ) -> AsyncGenerator[BoardAudio, None]:
        """The audio service at `path`, for the time of the block.

        Raises `PortError` when none answers ("audio_service_missing"), when another conversation holds it ("busy"),
        when it does not greet in time, and when `needs_talk_button` and it has none.
        """
        limits = limits or ClientLimits()
        board = cls(await _open_socket(path, limits.connect_deadline_ms), path, role, limits)
        async with background(board._run):
            await board._settled.wait()
            if board._greeting is None and board._link.end is not None:
                raise PortError(board._error_of(board._link.end))
            try:
                if needs_talk_button and "talk" not in board.greeting.buttons:
                    raise board._without_talk_button()
                yield board
            finally:
                await board.aclose()

    @property
    def greeting(self) -> ServiceHello:
        """What the service offers."""
        assert self._greeting is not None
        return self._greeting

    @property
    def microphone(self) -> BoardMicrophone:
        """Raises `PortError` where the service has none."""
        if self._microphone is None:
            raise self._missing("microphone", "capture")
        return self._microphone

    @property
    def speaker(self) -> BoardSpeaker:
        """Raises `PortError` where the service has none."""
        if self._speaker is None:
            raise self._missing("speaker", "playback")
        return self._speaker

    async def aclose(self) -> None:
        """Stop both ports and say goodbye, within a bounded time. Closing again changes nothing."""
        if self._speaker is not None:
            await self._speaker.aclose()
        if self._microphone is not None:
            await self._microphone.aclose()
        self._link.close("bye", "")
        with anyio.move_on_after(CLOSE_DEADLINE_MS / 1_000, shield=True):
            await self._done.wait()

    # -- what the link tells (`LinkUser`) --------------------------------------------------------------------------

    def handle(self, item: Inbound) -> None:
        """One message of the service."""
        match item:
            case ServiceHello():
                self._greet(item)
            case CaptureAudio() if self._microphone is not None:
                self._microphone.captured(item)
            case ButtonPressed(button=button) if self._microphone is not None:
                self._microphone.pressed(button)
            case CaptureFinished() if self._microphone is not None:
                self._microphone.end(None)
            case Accepted() if self._speaker is not None:
                self._speaker.accepted(item)
            case Discarded() if self._speaker is not None:
                self._speaker.discarded(item)
            case Started() | Progressed() | Starved() | Drained() | Stopped() if self._speaker is not None:
                self._speaker.receipt(item)
            case DeviceFailed():
                self._device_failed(item)
            case _:
                raise ProtocolViolation(f"{type(item).__name__} for a device that was not offered")

    def handled_batch(self) -> None:
        """Nothing to do: every message was acted on at once."""

    def next_media(self) -> CaptureAudio | PlaybackAudio | ClientMessage | None:
        """The speaker's next frame or end barrier."""
        return None if self._speaker is None else self._speaker.next_media()

    # -- inside ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        error = self._error_of(LinkEnd(EndCause.CLOSED_HERE, "stopped", "this end was stopped"))
        try:
            error = self._error_of(await self._link.run())
        finally:
            self._lose(error)
            self._settled.set()
            self._done.set()

    def _greet(self, greeting: ServiceHello) -> None:
        self._greeting = greeting
        if greeting.capture is not None:
            queue_ms = self._limits.capture_queue_ms
            self._microphone = BoardMicrophone(self._link, greeting.capture, queue_ms=queue_ms)
        if greeting.playback is not None:
            deadline_ms = self._limits.write_deadline_ms
            self._speaker = BoardSpeaker(self._link, greeting.playback, write_deadline_ms=deadline_ms)
        self._link.greeted(keep_alive=greeting.keep_alive)
        self._settled.set()

    def _lose(self, error: ScopedError) -> None:
        if self._speaker is not None:
            self._speaker.lose(error)
        if self._microphone is not None:
            self._microphone.end(error)

    def _device_failed(self, message: DeviceFailed) -> None:
        text = f"the audio service lost its {message.device}: {message.reason}"
        if message.device == "speaker" and self._speaker is not None:
            self._speaker.lose(ScopedError(message.code, "playback", ErrorScope.SESSION, text))
        if message.device == "microphone" and self._microphone is not None:
            self._microphone.end(ScopedError(message.code, "capture", ErrorScope.SESSION, text))

    def _error_of(self, end: LinkEnd) -> ScopedError:
        code, gone = end.code, end.cause in (EndCause.VANISHED, EndCause.UNRESPONSIVE)
        if gone:
            code = "audio_service_lost"
        hint = " Start it again with `voicechart audio-service`." if gone else ""
        return ScopedError(
            code=code,
            stage="connection",
            scope=ErrorScope.SESSION,
            message=f"the connection to the audio service at {self._path} ended: {end.reason}.{hint}",
            # "busy" too: the former daemon's connection may still be on its way out.
            retryable=gone or code == "busy",
        )

    def _missing(self, what: str, stage: str) -> PortError:
        message = f"the audio service at {self._path} offers no {what} to this connection; start it with one"
        return PortError(ScopedError(f"{what}_missing", stage, ErrorScope.SESSION, message))

    def _without_talk_button(self) -> PortError:
        message = (
            f"the audio service at {self._path} has no talk button, and turn.authority is manual; start it with "
            "`voicechart audio-service --button-fifo PATH`"
        )
        return PortError(ScopedError("talk_button_missing", "connection", ErrorScope.SESSION, message))


async def _open_socket(path: Path, deadline_ms: int) -> SocketStream:
    try:
        with anyio.fail_after(deadline_ms / 1_000):
            return await anyio.connect_unix(path)
    except (OSError, TimeoutError) as error:
        raise PortError(
            ScopedError(
                code="audio_service_missing",
                stage="connection",
                scope=ErrorScope.SESSION,
                message=(
                    f"no audio service answers at {path} ({type(error).__name__}); start `voicechart audio-service` "
                    "there, or correct the path. No other microphone or speaker is used instead."
                ),
                retryable=True,
            )
        ) from error
