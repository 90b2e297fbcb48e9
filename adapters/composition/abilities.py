"""What each part can do, dimension by dimension, and what a missing ability means for the conversation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ...statecharts.capabilities import SpeakerCapabilities
from ..providers.declaration import Offered
from ..providers.registry import Role

COLLECTED = 'collected, because connection.streaming is "disabled"'
ASK_THE_DEVICE = "the audio service tells it when it is connected"

_WITHOUT: dict[str, dict[str, str]] = {
    "responder": {
        "text_deltas": "whole replies only: speech begins when the model has ended",
        "tool_calls": "it is offered no tools",
        "tool_argument_deltas": "a call arrives as a whole",
        "usage": "what a reply costs is not counted",
        "usage_during": "what a reply costs is known at its end, if at all",
        "cancel": "a reply that is interrupted is paid for to its end",
        "resume": "a reply that was cut is asked for anew",
    },
    "recognizer": {
        "live_input": "the whole utterance is sent at its end: the transcript is late",
        "interim": "final transcripts only: no live captions, and words do not interrupt before they are final",
        "segment_finals": "the transcript is final at its end only",
        "endpointing": "the end of a turn is told by voice activity here",
        "word_times": "nothing says when a word was said",
    },
    "synthesizer": {
        "incremental_text": "text is handed over in units, not in tokens",
        "sentence_input": "text is not handed over sentence by sentence",
        "incremental_pcm": "one unit at a time: the first audio waits for the whole unit",
        "alignment": "what was heard of an interrupted unit is unknown: only whole units are remembered",
        "flush": "what was written is spoken at its own pace",
        "cancel": "a unit that is interrupted is made to its end, and dropped",
    },
    "realtime": {
        "ends_turns": "the end of a turn is told by voice activity here",
        "takes_turns": "only the model ends turns",
        "interrupts": "interruptions are decided here",
        "cancel": "a reply ends only by what the user says",
        "truncate": "the model believes that all of an interrupted reply was heard",
        "tool_calls": "it is offered no tools",
        "tool_continuation": "it is asked to go on after a tool's result",
        "input_transcripts": "what the user said is known to the model only",
        "usage": "what a reply costs is not counted",
        "replay": "after a reconnect it does not know what was said before",
        "resume": "after a reconnect its session begins anew",
    },
}


@dataclass(frozen=True, slots=True)
class Ability:
    """One dimension of what a part can do."""

    name: str
    """The field of its capabilities, "text_deltas"."""
    value: bool | int | str | None
    """Whether it can, how much, or how; None: not known before the device is connected."""
    reason: str | None = None
    """What follows where it cannot."""


def abilities_of(role: Role, offered: Offered, inner: Offered | None = None) -> tuple[Ability, ...]:
    """Every dimension of the role. `inner`: what the provider could before its streams were collected."""
    without = _WITHOUT[role]
    has: dict[str, bool] = asdict(offered)
    had: dict[str, bool] = asdict(inner) if inner is not None else has
    return tuple(_ability(name, has[name], had[name], reason) for name, reason in without.items())


def _ability(name: str, has: bool, had: bool, reason: str) -> Ability:
    if has:
        return Ability(name, True)
    return Ability(name, False, COLLECTED if had else reason)


def playback_abilities(speaker: SpeakerCapabilities | None) -> Iterator[Ability]:
    """The same of the loudspeaker; None: it is not connected."""
    yield Ability("live_writes", True)
    yield Ability("drain", True)
    if speaker is None:
        for name in ("pause", "stop_receipt", "max_queue_ms", "played_position", "echo_cancellation"):
            yield Ability(name, None, ASK_THE_DEVICE)
        return
    yield Ability("pause", speaker.pause, None if speaker.pause else "a false alarm stops a reply for good")
    yield Ability(
        "stop_receipt", speaker.stop_receipt, None if speaker.stop_receipt else "silence is assumed, not told"
    )
    yield Ability("max_queue_ms", speaker.max_queue_ms)
    estimated = "what was heard is estimated from what was handed over"
    yield Ability(
        "played_position",
        "measured" if speaker.measured_position else "estimated",
        None if speaker.measured_position else estimated,
    )
    closed = "not validated on this board: the microphone is closed while the speaker plays"
    yield Ability("echo_cancellation", speaker.echo_cancellation, None if speaker.echo_cancellation else closed)
