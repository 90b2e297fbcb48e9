"""What was said in the turns that are still going on: kept only when the operator wants content in telemetry."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...engines.public_events import PublicEvent, SpeechTextCommitted, TextAppended, TextFinished
from ...engines.turn_metrics import TurnMetrics
from ...statecharts.published import TurnCommitted
from ...statecharts.values import DeliveryStatus

KEPT = 16
MAX_CHARS = 8_192
"""Of one text; the rest is cut off."""


@dataclass
class _Reply:
    written: str = ""
    final: str | None = None
    units: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def generated(self) -> str:
        return self.written if self.final is None else self.final


class TurnTexts:
    """The texts of the last turns and replies, bounded."""

    def __init__(self) -> None:
        self._turns: dict[str, str] = {}
        self._replies: dict[str, _Reply] = {}

    def take(self, event: PublicEvent) -> None:
        """One public event."""
        match event.payload:
            case TurnCommitted(text=text) if event.turn_id is not None:
                self._turns[event.turn_id] = text[:MAX_CHARS]
                _bound(self._turns)
            case TextAppended(text=text):
                reply = self._reply(event.response_id)
                reply.written = (reply.written + text)[:MAX_CHARS]
            case TextFinished(text=text):
                self._reply(event.response_id).final = text[:MAX_CHARS]
            case SpeechTextCommitted(unit_index=index, text=text):
                units = self._reply(event.response_id).units
                if sum(map(len, units.values())) < MAX_CHARS:
                    units[index] = text
            case _:
                pass

    def attributes_of(self, turn: TurnMetrics) -> dict[str, str]:
        """Span attributes: what the user said, what the model wrote, and what of it was heard in whole units."""
        reply = self._replies.pop(turn.response_id, None) or _Reply()
        whole = turn.delivery in (DeliveryStatus.DELIVERED, DeliveryStatus.TEXT_ONLY)
        heard = " ".join(text.strip() for index, text in sorted(reply.units.items()) if index < turn.units)
        return {
            "voicechart.user.text": self._turns.get(turn.turn_id, ""),
            "voicechart.reply.generated": reply.generated,
            "voicechart.reply.heard": (reply.generated if whole else heard)[:MAX_CHARS],
        }

    def _reply(self, response_id: str | None) -> _Reply:
        reply = self._replies.setdefault(response_id or "", _Reply())
        _bound(self._replies)
        return reply


def _bound(kept: dict[str, object] | dict[str, str] | dict[str, _Reply]) -> None:
    while len(kept) > KEPT:
        del kept[next(iter(kept))]
