"""A model behind an HTTP service that answers with server-sent events: everything but its wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol
from weakref import WeakSet

import anyio
from pydantic import JsonValue

from ...engines.ports import GenerationRequest
from ...statecharts.capabilities import ResponderCapabilities
from .generation import GENERATION
from .http_service import HttpService
from .http_stream import EventAssembly, EventStream


class RequestBody(Protocol):
    """The JSON body of a request. Raises `ValueError` for what cannot be said on this wire (a tool's bad schema)."""

    def __call__(self, request: GenerationRequest) -> Mapping[str, JsonValue]: ...


class HttpResponder:
    """Implements the `Responder` port. The key is sent, and never shown: not in errors, not in logs."""

    def __init__(
        self,
        service: HttpService,
        path: str,
        *,
        body: RequestBody,
        assembly: Callable[[], EventAssembly],
        capabilities: ResponderCapabilities,
    ) -> None:
        """`path` follows the service's address. `body` and `assembly` are the two directions of the wire."""
        self._service = service
        self._path = path
        self._body = body
        self._assembly = assembly
        self._capabilities = capabilities
        self._streams: WeakSet[EventStream] = WeakSet()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._service.url)!r})"

    @property
    def capabilities(self) -> ResponderCapabilities:
        return self._capabilities

    async def prepare(self) -> None:
        """Ask for the list of models, so that a wrong key or address shows before anybody speaks.

        Raises `PortError`. A server without such a list is fine.
        """
        await self._service.check("/models")

    async def open(self, request: GenerationRequest) -> EventStream:
        """Send the request; the answer has begun when this returns. Raises `PortError`."""
        started_at_s = anyio.current_time()
        try:
            body = self._body(request)
        except ValueError as bad_schema:
            raise GENERATION.failure("bad_tool_schema", str(bad_schema)) from bad_schema
        response = await self._service.post_json(self._path, body)
        stream = EventStream(response, self._assembly(), self._service.limits, started_at_s)
        self._streams.add(stream)
        return stream

    async def aclose(self) -> None:
        """Close every connection."""
        for stream in list(self._streams):
            await stream.aclose()
        await self._service.aclose()


def checked_options(model: str, extra: Mapping[str, JsonValue], reserved: frozenset[str]) -> dict[str, JsonValue]:
    """The options that go into every request as they are. Raises `PortError` for those that voicechart sets itself."""
    if not model:
        raise GENERATION.bad_setting("give the name of a model")
    if taken := reserved & extra.keys():
        raise GENERATION.bad_setting(f"extra may not hold {', '.join(sorted(taken))}: voicechart sets it")
    return dict(extra)
