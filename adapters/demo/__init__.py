"""Conversations with recordings, held over the real audio path and judged by what they leave behind.

`rehearse` holds one, `summarize` computes the figures and runs the checks, `dialogue` is the one that the demo holds.
"""

from .checks import CHECKS, Check
from .evidence import Evidence
from .rehearsal import Cast, Outcome, Plan, RehearsalFailed, rehearse, room_policies
from .summary import ReplySummary, Summary, TurnSummary, summarize
from .witness import VoicedReply, WitnessedSynthesizer

__all__ = [
    "CHECKS",
    "Cast",
    "Check",
    "Evidence",
    "Outcome",
    "Plan",
    "RehearsalFailed",
    "ReplySummary",
    "Summary",
    "TurnSummary",
    "VoicedReply",
    "WitnessedSynthesizer",
    "rehearse",
    "room_policies",
    "summarize",
]
