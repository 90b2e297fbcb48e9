"""A turn as spans: from when to when, and its phases where both ends are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from ...engines.turn_metrics import Milestones


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a turn, in monotonic nanoseconds."""

    name: str
    start: int
    end: int


def moments_of(milestones: Milestones) -> dict[str, int]:
    """Those that happened, by name, in the order in which they happened."""
    known = {field.name: getattr(milestones, field.name) for field in fields(milestones)}
    happened = {name: at for name, at in known.items() if at is not None}
    return dict(sorted(happened.items(), key=lambda moment: moment[1]))


def turn_of(milestones: Milestones) -> Phase | None:
    """From the first moment to the last one; None when there is none."""
    moments = tuple(moments_of(milestones).values())
    return Phase("turn", moments[0], moments[-1]) if moments else None


def phases_of(milestones: Milestones) -> tuple[Phase, ...]:
    """Recognition, generation, synthesis and playback. One whose end nobody saw is left out, never made up."""
    return tuple(_phases_of(milestones))


def _phases_of(milestones: Milestones) -> Iterator[Phase]:
    synthesis_began = milestones.first_unit if milestones.first_unit is not None else milestones.first_pcm
    # An interruption cancels synthesis in its own macrostep.
    synthesis_ended = milestones.last_pcm if milestones.last_pcm is not None else milestones.interruption_accepted
    for name, start, end in (
        ("recognition", milestones.speech_started, milestones.final_transcript),
        ("generation", milestones.model_request, milestones.generation_ended),
        ("synthesis", synthesis_began, synthesis_ended),
        ("playback", milestones.first_rendered, milestones.last_rendered),
    ):
        if start is not None and end is not None and end >= start:
            yield Phase(name, start, end)
