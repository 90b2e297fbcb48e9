"""One attempt of the model: its stream read, its text and calls passed on, its end reported."""

from __future__ import annotations

from typing import Protocol

import anyio

from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import (
    CancelAcknowledged,
    Fact,
    GenerationCompleted,
    GenerationFailed,
    GenerationProgressed,
    OutputStarted,
    StepCompleted,
    ToolCallReady,
    UsageReported,
)
from .engine import Desk
from .port_calls import error_of, let_go, reading
from .ports import GenerationRequest, GenerationStream, Responder, ToolRequest
from .reply_text import ReplyTooLong
from .reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    ModelSpoke,
    ProviderState,
    ReasoningDelta,
    TextDelta,
    ToolCallProposed,
    UsageUpdated,
)
from .tools import Judged

OPEN_TIMEOUT_S = 30.0
PROGRESS_NS = 1_000_000_000
"""How often the chart hears that the model is alive."""


class AttemptUser(Protocol):
    """The reply that an attempt works for."""

    async def request(self, attempt_id: str) -> GenerationRequest:
        """What the model is asked. May wait, bounded, until the context is known."""
        ...

    def append(self, text: str) -> None:
        """More visible text. Raises `ReplyTooLong`."""
        ...

    def close_text(self, final_text: str | None) -> None:
        """No more text. `final_text`, where given, replaces what this attempt appended."""
        ...

    def keep_state(self, state: ProviderState) -> None:
        """What the provider wants back with the text and the calls of this attempt."""
        ...

    async def propose(self, request: ToolRequest) -> Judged:
        """A complete call: remember it, and judge it. May wait, bounded, for somebody's approval."""
        ...


class Attempt:
    """Reads one generation stream. Cancelled, it lets nothing more through, and reports the acknowledgement."""

    def __init__(self, desk: Desk, responder: Responder, attempt_id: str, user: AttemptUser) -> None:
        self._desk = desk
        self._responder = responder
        self._user = user
        self.attempt_id = attempt_id
        self._stream: GenerationStream | None = None
        self._scope = anyio.CancelScope()
        self._judging: anyio.CancelScope | None = None
        self._cancelled = False
        self._abandoned = False
        self._finished = False
        self._pieces: list[str] = []
        self._has_output = False
        self._progressed_at = 0

    @property
    def is_finished(self) -> bool:
        """It has reported its end."""
        return self._finished

    def cancel(self, reason: str) -> None:
        """From now on nothing of it counts but its end. A stream that is not open yet is never opened."""
        self._cancelled = True
        if self._judging is not None:
            self._judging.cancel()
        if self._stream is not None:
            self._stream.cancel(reason)
        else:
            self._scope.cancel()

    def abandon(self, reason: str) -> None:
        """Its outcome was decided without it: let the stream go, whatever it still does."""
        self.cancel(reason)
        self._abandoned = True
        self._scope.cancel()

    async def run(self) -> None:
        """Until the stream's terminal report, or until it is abandoned."""
        with self._scope:
            try:
                if not self._cancelled:
                    await self._open_and_read()
            except Exception as failure:
                self._fail(error_of(failure, "the model", "generation"))
        if not self._abandoned:
            # Only a cancelled one comes here without an end: it was cancelled before there was a stream.
            self._end_with(CancelAcknowledged(at=self._now, attempt_id=self.attempt_id))
        await let_go(self._stream, "the model's stream")

    async def _open_and_read(self) -> None:
        request = await self._user.request(self.attempt_id)
        with anyio.move_on_after(OPEN_TIMEOUT_S):
            self._stream = await self._responder.open(request)
        if self._stream is None:
            self._fail(_error("model_not_opened", f"it did not answer within {OPEN_TIMEOUT_S:.0f} s"))
            return
        async with reading(self._stream.reports()) as reports:
            async for report in reports:
                await self._take(report)
                if self._finished:
                    return
        self._fail(_error("model_cut_off", "it ended without saying that it had ended"))

    async def _take(self, report: GenerationReport) -> None:
        match report:
            case TextDelta(text):
                self._take_text(text)
            case ModelSpoke():
                self._note_output()
            case ReasoningDelta():
                self._note_progress()
            case ProviderState():
                self._user.keep_state(report)
            case ToolCallProposed(call_id, name, arguments_json):
                await self._take_call(ToolRequest(call_id, name, arguments_json))
            case UsageUpdated(usage):
                self._desk.report(UsageReported(at=self._now, attempt_id=self.attempt_id, usage=usage))
            case GenerationEnded(final_text, awaits_tools):
                self._complete(final_text, awaits_tools=awaits_tools)
            case GenerationStopped() if self._cancelled:
                self._end_with(CancelAcknowledged(at=self._now, attempt_id=self.attempt_id))
            case GenerationStopped():
                self._fail(_error("model_stopped", "it stopped although nobody had cancelled it"))
            case GenerationErrored(error):
                self._fail(error)

    def _take_text(self, text: str) -> None:
        if self._cancelled or not text:
            return
        self._note_output()
        self._pieces.append(text)
        self._note_progress()
        try:
            self._user.append(text)
        except ReplyTooLong as failure:
            self._fail(_error("reply_too_long", str(failure), retryable=False))
            if self._stream is not None:
                self._stream.cancel("the reply is too long")

    async def _take_call(self, request: ToolRequest) -> None:
        if self._cancelled:
            return
        judged = None
        with anyio.CancelScope() as self._judging:
            judged = await self._user.propose(request)
        if judged is None or self._cancelled:
            return
        self._desk.report(
            ToolCallReady(
                at=self._now,
                attempt_id=self.attempt_id,
                call_id=request.call_id,
                name=request.name,
                valid=judged.valid,
                approved=judged.approved,
                background=judged.background,
            )
        )

    def _complete(self, final_text: str | None, *, awaits_tools: bool) -> None:
        written = "".join(self._pieces)
        if final_text is not None and final_text.startswith(written):
            # A model that does not stream gives everything here; one that does may give a rest.
            self._take_text(final_text[len(written) :])
            final_text = None
        if self._finished:
            return
        if awaits_tools and not self._cancelled:
            self._end_with(StepCompleted(at=self._now, attempt_id=self.attempt_id))
            return
        if not self._cancelled:
            self._user.close_text(final_text)
        self._end_with(GenerationCompleted(at=self._now, attempt_id=self.attempt_id))

    def _fail(self, error: ScopedError) -> None:
        if not self._cancelled and self._has_output:
            self._user.close_text(None)
        self._end_with(GenerationFailed(at=self._now, attempt_id=self.attempt_id, error=error))

    def _end_with(self, fact: Fact) -> None:
        """Report the end, once."""
        if not self._finished:
            self._finished = True
            self._desk.report(fact)

    def _note_output(self) -> None:
        """Something of it can be seen or heard, or is on its way to be."""
        if not self._cancelled and not self._has_output:
            self._has_output = True
            self._progressed_at = self._now
            self._desk.report(OutputStarted(at=self._now, attempt_id=self.attempt_id))

    def _note_progress(self) -> None:
        if self._now - self._progressed_at >= PROGRESS_NS:
            self._progressed_at = self._now
            self._desk.report(GenerationProgressed(at=self._now, attempt_id=self.attempt_id))

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()


def _error(code: str, message: str, *, retryable: bool = True) -> ScopedError:
    return ScopedError(code, "generation", ErrorScope.RESPONSE, f"the model failed: {message}", retryable=retryable)
