"""Speaking: the voices of replies that are heard, and the output streams that the chart opens for them."""

from __future__ import annotations

from collections.abc import Callable

from ..statecharts.actions import (
    FinishOutput,
    OpenOutput,
    PausePlayback,
    ReleaseOutput,
    ResumePlayback,
    StartAnnouncement,
    StartGeneration,
)
from .announcing import Discreet
from .engine import Desk
from .output_gate import OutputGate
from .ports import Speaker, Synthesizer
from .voicing import Voicing


class Speaking:
    """Carries out the actions of the Playback region. Implements `Voices`."""

    def __init__(self, desk: Desk, synthesizer: Synthesizer, gate: OutputGate) -> None:
        self._desk = desk
        self._synthesizer = synthesizer
        self._gate = gate
        self._voicings: dict[str, Voicing] = {}
        self._streams: dict[int, str] = {}
        self.speaker: Speaker | None = None
        """The present speaker; None while there is no device session."""

    def begin(self, action: StartGeneration | StartAnnouncement) -> Voicing:
        """A reply that is spoken as it is written, as far as there is a speaker."""
        response_id = action.response_id
        voicing = self._new_voicing(action)
        self._voicings[response_id] = voicing
        if self.speaker is not None:
            self._desk.start_task(voicing.run, self.speaker, name=f"voicing {response_id}")
        return voicing

    def _new_voicing(self, action: StartGeneration | StartAnnouncement) -> Voicing:
        is_private = isinstance(action, StartAnnouncement) and not action.recorded
        desk = Discreet(self._desk) if is_private else self._desk
        return Voicing(desk, self._synthesizer, self._gate, action.response_id, action.output_epoch, action.stamp)

    def forget(self, response_id: str) -> None:
        del self._voicings[response_id]
        self._streams = {stream: of for stream, of in self._streams.items() if of != response_id}

    def open_output(self, action: OpenOutput) -> None:
        self._streams[action.stream_id] = action.response_id
        self._voicings[action.response_id].open_output(action)

    def release_output(self, action: ReleaseOutput) -> None:
        self._with_output(action.stream_id, Voicing.release)

    def pause(self, action: PausePlayback) -> None:
        self._with_output(action.stream_id, Voicing.pause)

    def resume(self, action: ResumePlayback) -> None:
        self._with_output(action.stream_id, Voicing.resume)

    def finish_output(self, action: FinishOutput) -> None:
        """The end barrier, behind everything that was written to that stream."""
        voicing = self._voicing_of(action.stream_id)
        if voicing is not None:
            self._desk.start_task(voicing.finish, action.end_sample, name=f"end barrier {action.stream_id}")

    def _with_output(self, stream_id: int, ask: Callable[[Voicing], None]) -> None:
        voicing = self._voicing_of(stream_id)
        if voicing is not None:
            ask(voicing)

    def _voicing_of(self, stream_id: int) -> Voicing | None:
        return self._voicings.get(self._streams.get(stream_id, ""))
