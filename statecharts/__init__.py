"""The charts: what a conversation is allowed to do, decided without I/O.

`Conversation` is the chart of a voice conversation; `facts` go in, `actions` come out, `policies` are what an
embedder may set. Nothing here reads a clock, starts a task, opens a socket or logs.
"""

from .conversation import Configuration, Conversation, ConversationChart
from .identity import IdSource, SeededIds
from .policies import (
    ConnectionPolicy,
    Evidence,
    GenerationPolicy,
    InterruptionPolicy,
    Judgement,
    Moment,
    PlaybackPolicy,
    Policies,
    PolicyError,
    TurnPolicy,
    Verdict,
)

__all__ = [
    "Configuration",
    "ConnectionPolicy",
    "Conversation",
    "ConversationChart",
    "Evidence",
    "GenerationPolicy",
    "IdSource",
    "InterruptionPolicy",
    "Judgement",
    "Moment",
    "PlaybackPolicy",
    "Policies",
    "PolicyError",
    "SeededIds",
    "TurnPolicy",
    "Verdict",
]
