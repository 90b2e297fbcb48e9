"""What turns cost, as OpenTelemetry spans and metrics: the extra `telemetry`, off by default.

Importing this folder needs nothing of the extra; opening says what is missing. Nothing here can make a conversation
wait: turns are read from the public events, and the SDK's own threads export them. No words of anybody leave, unless
`content` says so.
"""

from .opening import Telemetry, open_telemetry
from .turns import TurnTelemetry

__all__ = ["Telemetry", "TurnTelemetry", "open_telemetry"]
