"""What a conversation left behind: trace, render log, recording, and what was synthesised and remembered."""

from __future__ import annotations

from dataclasses import dataclass

from ...audio.formats import AudioFrame
from ...engines.history import Record
from ...statecharts.traces import Trace
from ..board import RenderedSpan
from .witness import VoicedReply


@dataclass(frozen=True)
class Evidence:
    """Everything that a summary is computed from."""

    trace: Trace
    spans: tuple[RenderedSpan, ...]
    """The audio service's own log of what it rendered, in order."""
    heard: AudioFrame
    """The whole recording of the virtual speaker, in the format of the synthesiser."""
    voiced: tuple[VoicedReply, ...]
    records: tuple[Record, ...]
    """The history at the end."""
