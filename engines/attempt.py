"""One attempt of the model: its stream read, its text and calls passed on, its end reported."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from ..statecharts.errors import ErrorScope, ScopedError
from ..statecharts.facts import (
    CancelAcknowledged,
    GenerationCompleted,
    GenerationFailed,
    GenerationProgressed,
    OutputStarted,
    StepCompleted,
    ToolCallReady,
    UsageReported,
)
from .engine import Desk
from .ports import GenerationRequest, GenerationStream, Responder, ToolRequest
from .reply_text import ReplyTooLong
from .reports import (
    GenerationEnded,
    GenerationErrored,
    GenerationReport,
    GenerationStopped,
    PortError,
    ReasoningDelta,
    TextDelta,
    ToolCallProposed,
    UsageUpdated,
)
from .tools import ToolCalls

OPEN_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 2.0
PROGRESS_NS = 1_000_000_000
"""How often the chart hears that the model is alive."""


class Attempt:
    """Reads one generation stream. Cancelled, it lets nothing more through, and reports the acknowledgement."""

    def __init__(
        self,
        desk: Desk,
        responder: Responder,
        tools: ToolCalls,
        request: GenerationRequest,
        on_text: Callable[[str], None],
        on_end: Callable[[str | None], None],
    ) -> None:
        self._desk = desk
        self._responder = responder
        self._tools = tools
        self._request = request
        self._on_text = on_text
        self._on_end = on_end
        self._stream: GenerationStream | None = None
        self._cancelled = False
        self._has_output = False
        self._progressed_at = 0
        self._finished = False

    @property
    def attempt_id(self) -> str:
        return self._request.attempt_id

    @property
    def is_finished(self) -> bool:
        """Its stream has ended, whatever came of it."""
        return self._finished

    def cancel(self, reason: str) -> None:
        """From now on nothing of it counts but its end."""
        self._cancelled = True
        if self._stream is not None:
            self._stream.cancel(reason)

    async def run(self) -> None:
        """Until the stream's terminal report."""
        try:
            with anyio.fail_after(OPEN_TIMEOUT_S):
                self._stream = await self._responder.open(self._request)
            if self._cancelled:
                self._stream.cancel("cancelled while it was opened")
            await self._read(self._stream)
        except PortError as failure:
            self._fail(failure.error)
        except TimeoutError:
            self._fail(_error("model_not_opened", f"it did not answer within {OPEN_TIMEOUT_S:.0f} s"))
        finally:
            self._finished = True
            if self._stream is not None:
                with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                    await self._stream.aclose()

    async def _read(self, stream: GenerationStream) -> None:
        async for report in stream.reports():
            try:
                if self._take(report):
                    return
            except ReplyTooLong as failure:
                stream.cancel("the reply is too long")
                self._fail(_error("reply_too_long", str(failure), retryable=False))
                return
        self._fail(_error("model_cut_off", "it ended without saying that it had ended"))

    def _take(self, report: GenerationReport) -> bool:
        """One report; True when it was the last."""
        match report:
            case TextDelta(text):
                self._take_text(text)
            case ReasoningDelta():
                self._note_progress()
            case ToolCallProposed(call_id, name, arguments_json):
                self._take_call(ToolRequest(call_id, name, arguments_json))
            case UsageUpdated(usage):
                self._desk.report(UsageReported(at=self._now, attempt_id=self.attempt_id, usage=usage))
            case GenerationEnded(final_text, awaits_tools):
                self._end(final_text, awaits_tools=awaits_tools)
                return True
            case GenerationStopped():
                self._desk.report(CancelAcknowledged(at=self._now, attempt_id=self.attempt_id))
                return True
            case GenerationErrored(error):
                self._fail(error)
                return True
        return False

    def _take_text(self, text: str) -> None:
        if self._cancelled or not text:
            return
        if not self._has_output:
            self._has_output = True
            self._progressed_at = self._now
            self._desk.report(OutputStarted(at=self._now, attempt_id=self.attempt_id))
        self._note_progress()
        self._on_text(text)

    def _take_call(self, request: ToolRequest) -> None:
        if self._cancelled:
            return
        self._tools.remember(request)
        self._desk.report(
            ToolCallReady(
                at=self._now,
                attempt_id=self.attempt_id,
                call_id=request.call_id,
                name=request.name,
                valid=self._tools.is_valid(request),
                background=self._tools.is_background(request),
            )
        )

    def _end(self, final_text: str | None, *, awaits_tools: bool) -> None:
        if awaits_tools and not self._cancelled:
            self._desk.report(StepCompleted(at=self._now, attempt_id=self.attempt_id))
            return
        if not self._cancelled:
            self._on_end(final_text)
        self._desk.report(GenerationCompleted(at=self._now, attempt_id=self.attempt_id))

    def _fail(self, error: ScopedError) -> None:
        if not self._cancelled and self._has_output:
            self._on_end(None)
        self._desk.report(GenerationFailed(at=self._now, attempt_id=self.attempt_id, error=error))

    def _note_progress(self) -> None:
        if self._now - self._progressed_at >= PROGRESS_NS:
            self._progressed_at = self._now
            self._desk.report(GenerationProgressed(at=self._now, attempt_id=self.attempt_id))

    @property
    def _now(self) -> int:
        return self._desk.clock.now_ns()


def _error(code: str, message: str, *, retryable: bool = True) -> ScopedError:
    return ScopedError(code, "generation", ErrorScope.RESPONSE, f"the model failed: {message}", retryable=retryable)
