"""The scoped errors of the board's audio, each saying what the operator can do."""

from __future__ import annotations

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .devices import DeviceLost
from .render_stream import RenderRefused


def refused(error: RenderRefused) -> PortError:
    """The speaker's contract was broken by the caller."""
    return PortError(ScopedError(error.code, "playback", ErrorScope.RESPONSE, str(error)))


def speaker_lost(error: DeviceLost) -> ScopedError:
    """The loudspeaker cannot go on."""
    return ScopedError(error.code, "playback", ErrorScope.SESSION, str(error))


def microphone_lost(error: DeviceLost) -> ScopedError:
    """The microphone cannot go on."""
    return ScopedError(error.code, "capture", ErrorScope.SESSION, str(error))


def receipts_unread() -> ScopedError:
    """The reader of a speaker's reports has stopped."""
    return ScopedError(
        "receipts_unread",
        "playback",
        ErrorScope.SESSION,
        "the speaker's reports were not read; read `reports()` for as long as the speaker is used",
    )


def closed(stage: str, what: str) -> PortError:
    """Use after `aclose`."""
    return PortError(ScopedError("closed", stage, ErrorScope.SESSION, f"{what} is closed; open a new one"))
