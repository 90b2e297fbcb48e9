"""How a conversation goes when everything goes well: the next fact of an uneventful one."""

from __future__ import annotations

from ..capabilities import Capabilities
from ..conversation import Conversation
from ..explorer.prelude import (
    all_was_heard,
    all_was_synthesized,
    audio_began,
    model_finished,
    recognition_closed,
    said,
    was_heard,
)
from ..facts import CancelAcknowledged, ConnectionReady, Fact, PlaybackStopped, SpeechStarted, TurnEnded
from ..values import TurnAuthority


def next_fact(conversation: Conversation, capabilities: Capabilities) -> Fact | None:
    """What an engine would report next if nobody interfered; None when everything is closed or in between."""
    x, authority = conversation.context, conversation.policies.turn.authority
    connection, input_turn, generation, playback = conversation.leaves[:4]
    if connection in ("opening", "reconnecting"):
        return ConnectionReady(at=x.now, capabilities=capabilities)
    if x.stopping:
        stopped = x.stopping[0]
        return PlaybackStopped(
            at=x.now,
            output_epoch=stopped.output_epoch,
            stream_id=stopped.stream_id,
            played_samples=stopped.played_samples or 0,
        )
    if connection == "closed":
        return None
    if generation == "cancelling" and x.response is not None:
        return CancelAcknowledged(at=x.now, attempt_id=x.response.attempt_id)
    if input_turn == "speech":
        return said(x)
    if input_turn == "hypothesis" and x.turn is not None:
        return TurnEnded(at=x.now, authority=authority) if x.turn.ended_by is None else recognition_closed(x)
    if x.reply_is_over:
        by = TurnAuthority.MANUAL if authority is TurnAuthority.MANUAL else TurnAuthority.VAD
        return SpeechStarted(at=x.now, authority=by)
    voiced = {"buffering": was_heard, "playing": all_was_synthesized, "draining": all_was_heard}
    if playback in voiced and (playback != "draining" or generation == "completed"):
        return voiced[playback](x)
    return model_finished(x) if playback in ("draining", "paused") or generation == "tools" else audio_began(x)
