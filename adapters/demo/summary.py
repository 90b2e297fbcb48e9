"""The summary of a conversation: figures and verdicts, computed from what it left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .checks import CHECKS, Check
from .evidence import Evidence
from .findings import Findings, ReplyFound


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """A committed turn of the user."""

    turn_id: str
    transcript: str
    authority: str
    revision: int
    position: int
    """Where it stands in the history, replies included."""


@dataclass(frozen=True, slots=True)
class ReplySummary:
    """A reply: what was generated, and what of it was heard."""

    response_id: str
    generated: str
    delivered: str
    """Whole units of speech that were rendered to their last sample."""
    delivery: str | None
    outcome: str | None
    heard_ms: float
    first_audio_before_generation_end: bool
    position: int
    """Where it stands in the history: where its playback began."""


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """One claim, and everything that speaks against it."""

    claim: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that `--json` prints about the conversation itself."""

    turns: tuple[TurnSummary, ...]
    replies: tuple[ReplySummary, ...]
    committed_turns: int
    interruptions: int
    first_audio_before_generation_end: bool
    """Of at least one reply."""
    interruption_to_last_pcm_ms: float | None
    """The longest time from an accepted interruption to the last rendered sample of its reply; None without one."""
    stale_frames: int
    """Rendered pieces of a reply that had been stopped."""
    duplicate_units: int
    peak_queue_ms: float
    heard_ms: float
    closed: str | None
    error: dict[str, Any] | None
    checks: tuple[CheckSummary, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, in sentences."""
        return tuple(problem for check in self.checks for problem in check.problems)

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`."""
        figures = asdict(self)
        figures["checks"] = [{"claim": check.claim, "ok": check.ok} for check in self.checks]
        return {"ok": self.ok, "problems": list(self.problems), **figures}


def summarize(evidence: Evidence, expected: Sequence[Check] = ()) -> Summary:
    """Compute the figures and run the checks: those of every conversation, and `expected` ones of this one.

    Raises `TraceError` for a trace that this version does not know.
    """
    findings = Findings(evidence)
    account = findings.account
    replies = tuple(_reply(reply) for reply in findings.replies)
    error = account.closed.error if account.closed is not None else None
    return Summary(
        turns=tuple(
            TurnSummary(turn.turn_id, turn.text, turn.authority.value, turn.revision, turn.position)
            for turn in account.turns.values()
        ),
        replies=replies,
        committed_turns=len(account.turns),
        interruptions=len(account.interruptions),
        first_audio_before_generation_end=any(reply.first_audio_before_generation_end for reply in replies),
        interruption_to_last_pcm_ms=max((round(late, 3) for late in findings.last_pcm_ms), default=None),
        stale_frames=len(findings.stale_spans),
        duplicate_units=findings.duplicate_units,
        peak_queue_ms=round(findings.peak_queue_ms, 1),
        heard_ms=round(evidence.heard.duration_ms, 1),
        closed=account.closed.reason if account.closed is not None else None,
        error=asdict(error) if error is not None else None,
        checks=tuple(CheckSummary(check.claim, tuple(check.find(findings))) for check in (*CHECKS, *expected)),
    )


def _reply(found: ReplyFound) -> ReplySummary:
    return ReplySummary(
        response_id=found.told.response_id,
        generated=found.generated,
        delivered=found.delivered,
        delivery=found.delivery.value if found.delivery is not None else None,
        outcome=found.outcome.value if found.outcome is not None else None,
        heard_ms=round(found.rendered_ms, 1),
        first_audio_before_generation_end=found.heard_before_generated,
        position=found.told.deliveries[-1].position if found.told.deliveries else 0,
    )
