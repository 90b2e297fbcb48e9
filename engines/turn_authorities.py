"""Who can end a turn here, and who cannot."""

from __future__ import annotations

from ..statecharts.capabilities import RecognizerCapabilities
from ..statecharts.values import TurnAuthority
from .end_of_turn import EndOfTurn


def lacking_authority(
    authority: TurnAuthority, recognizer: RecognizerCapabilities, end_of_turn: EndOfTurn | None
) -> str | None:
    """Why nobody would ever end a turn of a cascade under this authority, and what to do; None when somebody does."""
    match authority:
        case TurnAuthority.RECOGNIZER if not recognizer.endpointing:
            return '"recognizer": this recogniser does not tell the end of a turn; choose one that does, or write "vad"'
        case TurnAuthority.SEMANTIC if end_of_turn is None:
            return '"semantic": nothing judges the end of a turn; give an end-of-turn judge, or write "vad"'
        case TurnAuthority.ENGINE:
            return '"engine": only a native realtime engine ends turns by itself; here write "vad"'
        case _:
            return None
