"""What a view shows: the conversation as it stands, put together from macrosteps and public events."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cache

from ...engines.public_events import PublicEvent, SpeechTextCommitted, TextAppended, TextFinished
from ...statecharts import published as told
from ...statecharts.actions import Publish
from ...statecharts.chart import Step, states_of
from ...statecharts.context import Context
from ...statecharts.conversation import ConversationChart
from .moments import Moment, moment_of, quoted

WRITING = frozenset({"waiting", "streaming", "tools"})
KEPT_MOMENTS = 6


@dataclass(frozen=True, slots=True)
class Region:
    """A region of the chart: its name, and its states as (identity, name) in the order of the table."""

    name: str
    states: tuple[tuple[str, str], ...]


@cache
def regions() -> tuple[Region, ...]:
    """The four regions."""
    states = states_of(ConversationChart)
    leaves = [state for state in states if not state.children]
    names = {state.state_id: state.name for state in states}
    order = dict.fromkeys(state.region for state in leaves)
    return tuple(
        Region(
            names.get(region, region),
            tuple((state.state_id, state.name) for state in leaves if state.region == region),
        )
        for region in order
    )


@cache
def state_names() -> dict[str, str]:
    """The plain name of every state: `generation_idle` is "idle"."""
    return {identity: name for region in regions() for identity, name in region.states}


@dataclass(slots=True)
class Unit:
    """A unit of speech, and where it ends in the stream once it is synthesised."""

    text: str
    end_sample: int | None = None


@dataclass(slots=True)
class Picture:
    """Everything on the screen."""

    leaves: tuple[str, ...] = ()
    caption: str = ""
    caption_state: str = ""
    generated: str = ""
    units: dict[int, Unit] = field(default_factory=dict[int, Unit])
    played_samples: int = 0
    interrupted: bool = False
    latest: deque[Moment] = field(default_factory=lambda: deque[Moment](maxlen=KEPT_MOMENTS))
    response_id: str | None = None

    def take_step(self, step: Step[Context]) -> list[Moment]:
        """Note a macrostep; returns what is worth a line."""
        context = step.after.context
        self.leaves = step.after.leaves
        response = context.response
        if response is not None and response.response_id != self.response_id:
            self._begin_reply(response.response_id)
        if response is not None:
            for place in response.units:
                unit = self.units.get(place.unit_index)
                if unit is not None:
                    unit.end_sample = place.end_sample
        if context.output is not None:
            self.played_samples = context.output.played_samples or 0
        moments: list[Moment] = []
        for action in step.actions:
            if isinstance(action, Publish):
                self._note(action)
                is_writing = not WRITING.isdisjoint(self.leaves)
                moment = moment_of(action.payload, step.fact.at, self.leaves, is_writing=is_writing)
                if moment is not None:
                    moments.append(moment)
        self.latest.extend(moments)
        return moments

    def take_event(self, event: PublicEvent) -> list[Moment]:
        """Note an event of the media path; the chart's own events came with their macrosteps."""
        if event.response_id is not None and event.response_id != self.response_id:
            return []
        match event.payload:
            case TextAppended(text):
                self.generated += text
            case TextFinished(text):
                self.generated = text
            case SpeechTextCommitted(unit_index, text):
                self.units[unit_index] = Unit(text)
                moment = Moment(event.occurred_at_ns, self.leaves, "voice", f"says {quoted(text)}")
                self.latest.append(moment)
                return [moment]
            case _:
                pass
        return []

    def speech(self) -> tuple[str, str, str]:
        """What is to be said, in three parts: heard whole, sounding now, not heard yet."""
        parts: tuple[list[str], list[str], list[str]] = ([], [], [])
        for _, unit in sorted(self.units.items()):
            if unit.end_sample is not None and unit.end_sample <= self.played_samples:
                parts[0].append(unit.text)
            elif self.played_samples and not parts[1] and not self.interrupted:
                parts[1].append(unit.text)
            else:
                parts[2].append(unit.text)
        return " ".join(parts[0]), " ".join(parts[1]), " ".join(parts[2])

    def _begin_reply(self, response_id: str) -> None:
        self.response_id = response_id
        self.generated = ""
        self.units = {}
        self.played_samples = 0
        self.interrupted = False

    def _note(self, action: Publish) -> None:
        match action.payload:
            case told.SpeechBegan():
                self.caption, self.caption_state = "", "listening"
            case told.TranscriptChanged(text=text, revision=revision):
                self.caption, self.caption_state = text, f"hypothesis {revision}"
            case told.SegmentFrozen(text=text):
                self.caption, self.caption_state = text, "final"
            case told.TurnCommitted(text=text):
                self.caption, self.caption_state = text, "committed"
            case told.TurnDiscarded(reason=reason):
                self.caption_state = f"discarded: {reason}"
            case told.InterruptionAccepted():
                self.interrupted = True
            case (
                told.PlaybackMoved(played_samples=played)
                | told.PlaybackFinished(played_samples=played)
                | told.DeliveryRecorded(played_samples=played)
            ) if played is not None:
                self.played_samples = played
            case _:
                pass
