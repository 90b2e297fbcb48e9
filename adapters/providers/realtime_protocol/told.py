"""What a message, or a call from this side, leads to."""

from __future__ import annotations

from dataclasses import dataclass

from ....engines.realtime.reports import RealtimeReport
from ..websocket import JsonObject


@dataclass(frozen=True, slots=True)
class Sending:
    """Something that has to be sent."""

    message: JsonObject


Told = RealtimeReport | Sending
