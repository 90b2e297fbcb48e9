"""What an operator may set about the web interface, as far as serving is concerned."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...engines.public_events import Visibility
from .chatting import OnDisconnect
from .conversations import ConversationLimits
from .hub import DEFAULT_SEES, HubLimits
from .pacing import Pace


@dataclass(frozen=True, slots=True)
class WebOptions:
    """Defaults are those of the configuration; see docs/guide/web.md."""

    host: str = "127.0.0.1"
    port: int = 8420
    """0: any free one."""
    token: str | None = field(default=None, repr=False)
    origins: tuple[str, ...] = ()
    observers_see: frozenset[Visibility] = DEFAULT_SEES
    on_owner_disconnect: OnDisconnect = "cancel"
    show_chart: bool = True
    """Serve the chart's trace, redacted."""
    chart_text_shown: bool = False
    """In the trace: what was said as it is."""
    max_observers: int = 256
    requests_per_minute: int = 240
    burst: int = 60
    max_body_bytes: int = 65_536
    max_text_chars: int = 8_000
    keep_alive_s: float = 15.0
    write_timeout_s: float = 10.0
    shutdown_s: float = 5.0
    """Until connections are cut that do not take the last events."""
    conversations: ConversationLimits = field(default_factory=ConversationLimits)
    hub: HubLimits = field(default_factory=HubLimits)
    pace: Pace = field(default_factory=Pace)
