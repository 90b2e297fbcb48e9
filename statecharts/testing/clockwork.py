"""The clock of a script: a conversation, the time, its timers, and everything that was decided."""

from __future__ import annotations

from dataclasses import dataclass

from ..actions import (
    Action,
    CancelTimer,
    OpenOutput,
    StartGeneration,
    StartRecognition,
    StartTimer,
    TranscribeRecording,
)
from ..capabilities import Capabilities, SpeakerCapabilities
from ..chart import Selection
from ..context import TimerKind
from ..conversation import Conversation
from ..errors import ErrorScope, ScopedError
from ..facts import (
    CloseRequested,
    ConnectionFailed,
    ConnectionLost,
    ConnectionReady,
    Fact,
    OpenRequested,
    SessionExpiring,
    TimerFired,
)
from ..policies import InterruptionPolicy, Policies
from ..values import InterruptionSource
from .ear import Ear
from .record import Entry, Record

HANDS_FREE = InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True)
"""A board with validated echo cancellation: whoever may interrupt at all may do so."""

ABLE = Capabilities(speaker=SpeakerCapabilities(pause=True, measured_position=True))
"""What the scripted ports can do."""


def scripted_error(code: str = "scripted", *, retryable: bool = True, retry_after_ms: int | None = None) -> ScopedError:
    """An error to put into a fact."""
    return ScopedError(code, "script", ErrorScope.SESSION, "scripted", retryable, retry_after_ms)


@dataclass(frozen=True, slots=True)
class RunningTimer:
    """A timer the chart has started. `due_ns`: on the script's clock."""

    timer_id: str
    kind: TimerKind
    due_ns: int


class Clockwork:
    """A conversation, the time, its timers, and everything that was decided."""

    def __init__(
        self,
        policies: Policies | None = None,
        *,
        capabilities: Capabilities = ABLE,
        conversation: Conversation | None = None,
        selection: Selection = "indexed",
    ) -> None:
        policies = policies or Policies(interruption=HANDS_FREE)
        self.conversation = conversation or Conversation("script", policies=policies, selection=selection)
        self.capabilities = capabilities
        self.record = Record()
        self.ear = Ear()
        self.now_ns = 0
        self.timers: dict[str, RunningTimer] = {}

    @property
    def leaves(self) -> str:
        """Where the conversation is, region by region: `ready | idle | idle | idle`."""
        return str(self.conversation.configuration)

    def tell(self, fact: Fact) -> tuple[Action, ...]:
        """Hand in any fact; carry out what concerns the clock and the speaker."""
        actions = self.conversation.handle(fact)
        self.record.entries.append(Entry(fact, actions))
        for action in actions:
            self._obey(action)
        return actions

    def _obey(self, action: Action) -> None:
        if isinstance(action, StartTimer):
            due_ns = self.now_ns + action.delay_ms * 1_000_000
            self.timers[action.timer_id] = RunningTimer(action.timer_id, action.kind, due_ns)
        elif isinstance(action, CancelTimer):
            assert action.timer_id in self.timers, f"{action.timer_id} is cancelled but does not run"
            del self.timers[action.timer_id]
        self.ear.obey(action)

    def wait(self, duration_ms: float) -> None:
        """Let time pass; every timer that falls due on the way is reported at its own moment, in order."""
        until_ns = self.now_ns + round(duration_ms * 1_000_000)
        while due := [timer for timer in self.timers.values() if timer.due_ns <= until_ns]:
            timer = min(due, key=lambda running: running.due_ns)
            del self.timers[timer.timer_id]
            self.now_ns = timer.due_ns
            self.tell(TimerFired(at=self.now_ns, timer_id=timer.timer_id))
        self.now_ns = until_ns

    def running(self, kind: TimerKind) -> list[RunningTimer]:
        """The running timers of that kind."""
        return [timer for timer in self.timers.values() if timer.kind is kind]

    # -- what the ports know: the identities they were handed ---------------------------------------------------------

    @property
    def recognition_id(self) -> str:
        """Of the latest recognition that was asked for."""
        asked = [a for a in self.record.actions if isinstance(a, StartRecognition | TranscribeRecording)]
        return asked[-1].recognition_id

    @property
    def generation(self) -> StartGeneration:
        """The latest attempt that was asked for."""
        return self.record.of(StartGeneration)[-1]

    @property
    def stream(self) -> OpenOutput:
        """The latest output stream that was asked for."""
        return self.streams[-1]

    @property
    def streams(self) -> list[OpenOutput]:
        """Every output stream that was asked for."""
        return self.record.of(OpenOutput)

    # -- connection ------------------------------------------------------------------------------------------------

    def opens(self) -> tuple[Action, ...]:
        return self.tell(OpenRequested(at=self.now_ns))

    def connects(self, capabilities: Capabilities | None = None) -> tuple[Action, ...]:
        return self.tell(ConnectionReady(at=self.now_ns, capabilities=capabilities or self.capabilities))

    def connecting_fails(self, *, retryable: bool = True, retry_after_ms: int | None = None) -> tuple[Action, ...]:
        error = scripted_error("refused", retryable=retryable, retry_after_ms=retry_after_ms)
        return self.tell(ConnectionFailed(at=self.now_ns, error=error))

    def connection_breaks(self) -> tuple[Action, ...]:
        return self.tell(ConnectionLost(at=self.now_ns, error=scripted_error("device_lost")))

    def session_expires(self, within_ms: int = 0) -> tuple[Action, ...]:
        return self.tell(SessionExpiring(at=self.now_ns, within_ms=within_ms))

    def closes(self, reason: str = "requested", error: ScopedError | None = None) -> tuple[Action, ...]:
        return self.tell(CloseRequested(at=self.now_ns, reason=reason, error=error))
