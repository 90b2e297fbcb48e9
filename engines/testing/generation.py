"""A responder that says what its script says."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...statecharts.capabilities import ResponderCapabilities
from ..ports import GenerationRequest
from ..reports import GenerationEnded, GenerationReport, GenerationStopped, TextDelta
from .script import Script, Step, SteppedStream, opening, refusal


def says(
    text: str, token_ms: float = 0.0, first_token_ms: float | None = None, ends: bool = True
) -> tuple[Step[GenerationReport], ...]:
    """Steps of a reply streamed word by word, one each `token_ms` (the first after `first_token_ms`)."""
    tokens: list[str] = re.findall(r"\s*\S+\s*?(?=\s|$)|\s+", text)
    first_ms = token_ms if first_token_ms is None else first_token_ms
    steps: list[Step[GenerationReport]] = [
        Step(TextDelta(token), wait_ms=token_ms if index else first_ms) for index, token in enumerate(tokens)
    ]
    if ends:
        steps.append(Step(GenerationEnded()))
    return tuple(steps)


class ScriptedGenerationStream(SteppedStream[GenerationRequest, GenerationReport]):
    """Plays its script; `request` holds the context it was given."""

    stage = "generation"

    def _stopped(self) -> GenerationReport:
        return GenerationStopped()


class ScriptedResponder:
    """The nth `open` plays the nth script, or what `answers` makes of the request when the scripts are used up; raises
    `PortError` when there is neither.
    """

    def __init__(
        self,
        *scripts: Script[GenerationReport],
        answers: Callable[[GenerationRequest], Script[GenerationReport]] | None = None,
        capabilities: ResponderCapabilities | None = None,
    ) -> None:
        self._scripts = scripts
        self._answers = answers
        self._capabilities = capabilities or ResponderCapabilities(text_deltas=True, tool_calls=True, usage=True)
        self.streams: list[ScriptedGenerationStream] = []
        self.requests: list[GenerationRequest] = []
        """Every request, also of an `open` that failed or is still waiting."""
        self.prepared = False
        self.closed = False

    @property
    def capabilities(self) -> ResponderCapabilities:
        return self._capabilities

    async def prepare(self) -> None:
        self.prepared = True

    async def open(self, request: GenerationRequest) -> ScriptedGenerationStream:
        if self.closed:
            raise refusal("port_closed", "generation", "the responder was closed")
        index = len(self.requests)
        self.requests.append(request)
        if index < len(self._scripts):
            script = self._scripts[index]
        elif self._answers is not None:
            script = self._answers(request)
        else:
            raise refusal("script_exhausted", "generation", f"no script for stream {index + 1}; add one")
        await opening(script.open_after_ms, script.open_error)
        stream = ScriptedGenerationStream(request, script)
        self.streams.append(stream)
        return stream

    async def aclose(self) -> None:
        self.closed = True
        for stream in self.streams:
            await stream.aclose()
