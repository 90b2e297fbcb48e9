"""Invariants: what holds after every macrostep of a conversation, whatever happens.

Each is a named check with a statement (`INVARIANTS`). `Checker` runs them on a live conversation, the property tests
and the explorer run them on every step they take.
"""

from .checker import INVARIANTS, Checker, check_step
from .endings import unrest
from .ledger import Ledger
from .observation import Invariant, Observation, invariant
from .violations import InvariantViolation, Violation

__all__ = [
    "INVARIANTS",
    "Checker",
    "Invariant",
    "InvariantViolation",
    "Ledger",
    "Observation",
    "Violation",
    "check_step",
    "invariant",
    "unrest",
]
