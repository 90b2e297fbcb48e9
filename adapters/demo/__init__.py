"""Conversations with recordings, held over the real audio path and judged by what they leave behind.

`rehearse` holds one, `summarize` computes the figures and runs the checks, `dialogue` is the one that the demo holds.
"""

from .cast import Cast, NativeCast, Players, room_policies
from .checks import CHECKS, Check
from .evidence import Evidence
from .rehearsal import Outcome, Plan, RehearsalFailed, rehearse
from .summary import ReplySummary, Summary, TurnSummary, summarize
from .witness import VoicedReply, WitnessedSynthesizer

__all__ = [
    "CHECKS",
    "Cast",
    "Check",
    "Evidence",
    "NativeCast",
    "Outcome",
    "Plan",
    "Players",
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
