"""What people are told while a conversation runs: one short sentence a moment, from the chart's published events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...statecharts import published as told
from ...statecharts.published import Payload

MAX_TEXT_CHARS = 90


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline. `who`: session, user, model, voice, speaker."""

    at_ns: int
    leaves: tuple[str, ...]
    who: str
    text: str
    is_marked: bool = False
    """An interruption or a failure: what the eye should find first."""


def shortened(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """`text` on one line, its end left out where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def quoted(text: str) -> str:
    """A text somebody said, shortened."""
    return f"“{shortened(text)}”"


def moment_of(payload: Payload, at_ns: int, leaves: tuple[str, ...], *, is_writing: bool) -> Moment | None:
    """The moment of a published event; None for one that people need not see. `is_writing`: the model is at work."""
    tell = _TELL.get(type(payload))
    if tell is None:
        return None
    who, text = tell(payload)
    if isinstance(payload, told.PlaybackBegan) and is_writing:
        text += ", while the model is still writing"
    return Moment(at_ns, leaves, who, text, isinstance(payload, _MARKED))


def _delivery(payload: told.DeliveryRecorded) -> str:
    units = "1 unit" if payload.units == 1 else f"{payload.units} units"
    return f"delivery: {payload.status}, {units} of speech heard whole"


def _closed(payload: told.SessionClosed) -> str:
    return f"closed: {payload.error}" if payload.error is not None else f"closed ({payload.reason})"


def _ready(payload: told.SessionReady) -> str:
    return "; ".join(("ready", *payload.degradations))


_MARKED = (told.InterruptionAccepted, told.StreamError, told.SessionReconnecting)
_TELL: dict[type[Payload], Callable[[Any], tuple[str, str]]] = {
    told.SessionReady: lambda said: ("session", _ready(said)),
    told.SessionReconnecting: lambda said: ("session", f"reconnecting ({said.reason}), attempt {said.attempt}"),
    told.SessionClosed: lambda said: ("session", _closed(said)),
    told.SpeechBegan: lambda said: ("user", "goes on speaking" if said.continues_turn else "begins to speak"),
    told.TranscriptChanged: lambda said: ("user", f"… {quoted(said.text)} (hypothesis {said.revision})"),
    told.TurnCommitted: lambda said: ("user", f"said {quoted(said.text)}"),
    told.TurnDiscarded: lambda said: ("user", f"said nothing to answer ({said.reason})"),
    told.TurnDropped: lambda said: ("user", f"is not answered ({said.reason})"),
    told.FallbackStarted: lambda said: ("user", f"is transcribed from the recording: {said.error}"),
    told.StreamDiscontinuity: lambda said: ("user", f"{said.lost_ms} ms of the microphone were lost"),
    told.ResponseStarted: lambda said: ("model", f"begins to answer (attempt {said.attempt})"),
    told.ResponseTerminal: lambda said: (
        "model",
        f"{said.outcome} {f'({said.reason})' if said.reason else ''}".strip(),
    ),
    told.PlaybackBegan: lambda _: ("speaker", "the first sample is heard"),
    told.PlaybackStarved: lambda _: ("speaker", "ran dry and buffers again"),
    told.PlaybackPaused: lambda _: ("speaker", "paused: was that the user?"),
    told.PlaybackResumed: lambda _: ("speaker", "goes on"),
    told.PlaybackCut: lambda said: ("speaker", f"stopped ({said.reason})"),
    told.PlaybackFinished: lambda _: ("speaker", "the last sample was heard"),
    told.DeliveryRecorded: lambda said: ("speaker", _delivery(said)),
    told.InterruptionAccepted: lambda said: ("user", f"INTERRUPTS by {said.source} ({said.reason})"),
    told.InterruptionRejected: lambda said: ("user", f"does not interrupt ({said.reason})"),
    told.StreamError: lambda said: ("session", f"ERROR {said.error}"),
}
