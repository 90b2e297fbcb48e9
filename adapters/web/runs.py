"""Which runs a conversation had lately, and whether anything of them can still be cancelled."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from ...engines.public_events import PublicEvent
from ...statecharts.published import AnnouncementBegan, DeliveryRecorded, ResponseStarted, RunTerminal

KEPT_RUNS = 256


@dataclass(slots=True)
class Run:
    """One run. It is over when the model has ended and what reached the user is known."""

    run_id: str
    response_id: str
    is_executed: bool = False
    is_delivered: bool = False

    @property
    def is_over(self) -> bool:
        return self.is_executed and self.is_delivered


class Runs:
    """The newest runs; call `note` with every event."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def note(self, event: PublicEvent) -> None:
        match event.payload:
            case ResponseStarted() | AnnouncementBegan() if event.run_id is not None and event.response_id is not None:
                self._runs.setdefault(event.run_id, Run(event.run_id, event.response_id))
                while len(self._runs) > KEPT_RUNS:
                    self._runs.popitem(last=False)
            case RunTerminal() if (run := self.find(event.run_id, None)) is not None:
                run.is_executed = True
            case DeliveryRecorded() if (run := self.find(None, event.response_id)) is not None:
                run.is_delivered = True
            case _:
                pass

    def find(self, run_id: str | None, response_id: str | None) -> Run | None:
        """By either identity; by both where both are given."""
        if run_id is not None:
            run = self._runs.get(run_id)
            return run if run is None or response_id in (None, run.response_id) else None
        return next((run for run in reversed(self._runs.values()) if run.response_id == response_id), None)
