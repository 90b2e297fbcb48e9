"""One MCP server: its connection, owned by one task, and the calls that go over it.

The connection is entered and left in `run` and nowhere else, because the client's cancel scopes belong to the task that
entered them. Callers wait, bounded, until it stands. A server that dies is started again for the next call, with a
growing pause; a call that was under way is never made again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import httpx2
from mcp import ClientSession, MCPError
from mcp.client import Client
from mcp.client._transport import TransportStreams
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, PaginatedRequestParams
from mcp_types import Tool as ListedTool
from pydantic import ValidationError

from ...engines.port_calls import leaves_of
from .mcp_http import HttpServer, http_transport
from .mcp_pins import MAX_DEFINITION_BYTES, MAX_TOOLS, Definition
from .mcp_stdio import StdioServer, stdio_transport

logger = logging.getLogger(__name__)

MAX_PAGES = 16
"""Of a listing of tools."""
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 30.0
CALLS_AT_ONCE = 8
LOST_CODES = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT})

Endpoint = StdioServer | HttpServer


class ServerUnavailable(Exception):
    """There is no connection, so nothing was asked of the server. The text is for a model."""


class ServerFailed(Exception):
    """A call was under way and has no answer that can be read: whether it ran is not known."""


class ServerRefusedCall(Exception):
    """The server answered with an error instead of a result: it did not run the tool."""


class McpServer:
    """One server. `run` must be running for calls to be answered."""

    def __init__(self, name: str, endpoint: Endpoint, *, connect_ms: int = 10_000) -> None:
        self.name = name
        self._endpoint = endpoint
        self._connect_s = connect_ms / 1_000
        self._session: ClientSession | None = None
        self._wanted = anyio.Event()
        self._changed = anyio.Event()
        self._lost = anyio.Event()
        self._limiter = anyio.Semaphore(CALLS_AT_ONCE)
        self._stood = False
        self._failed_attempts = 0
        self._pauses = 0
        self._resting_until = 0.0
        self.definitions: tuple[Definition, ...] = ()
        """What it offered when it was connected last; unreadable and oversized definitions are left out."""

    # -- for callers -----------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Wait until the connection stands. Raises `ServerUnavailable`."""
        await self._connected()

    async def call(self, tool: str, arguments: dict[str, Any], digest: str) -> CallToolResult:
        """Call a tool whose definition has this digest, once.

        Raises `ServerUnavailable`, `ServerRefusedCall` and `ServerFailed`.
        """
        async with self._limiter:
            session = await self._connected()
            if all(known.name != tool or known.digest != digest for known in self.definitions):
                raise ServerUnavailable("its definition has changed since it was approved, so it is refused")
            try:
                return await session.call_tool(tool, arguments)
            except MCPError as error:
                if error.code in LOST_CODES:
                    self._lose()
                    raise ServerFailed("the connection to it was lost") from error
                raise ServerRefusedCall(error.message) from error
            except (ValidationError, RuntimeError, ValueError) as error:
                raise ServerFailed("its answer cannot be read") from error
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, httpx2.HTTPError, OSError) as error:
                self._lose()
                raise ServerFailed("the connection to it was lost") from error

    async def _connected(self) -> ClientSession:
        if self._session is None:
            failed_before = self._failed_attempts
            self._wanted.set()
            with anyio.move_on_after(self._connect_s):
                while self._session is None and self._failed_attempts == failed_before and not self._rests_long:
                    await self._changed.wait()
        if self._session is None:
            raise ServerUnavailable(f"the server {self.name} cannot be reached")
        return self._session

    @property
    def _rests_long(self) -> bool:
        """It failed so often that waiting for the next attempt is no use."""
        return self._resting_until - anyio.current_time() > self._connect_s

    def _lose(self) -> None:
        self._session = None
        self._lost.set()

    # -- the owner of the connection -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Hold the connection whenever somebody wants it. Runs until it is cancelled; leaves no process behind."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            self._stood = False
            try:
                await self._hold()
            except Exception as failure:
                # Not what it said: a server writes what it likes into its errors.
                kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves_of(failure)}))
                logger.warning("the connection to the tool server %s broke: %s", self.name, kinds)
            self._session = None
            self._pauses = 0 if self._stood else self._pauses + 1
            self._failed_attempts += not self._stood
            pause_s = min(FIRST_PAUSE_S * 2 ** min(self._pauses, 10), MAX_PAUSE_S)
            self._resting_until = anyio.current_time() + pause_s
            self._note_change()
            await anyio.sleep(pause_s)

    async def _hold(self) -> None:
        """One connection, from opening to its loss."""
        self._lost = lost = anyio.Event()
        with anyio.CancelScope(deadline=anyio.current_time() + self._connect_s) as bound:
            async with Client(_open(self._endpoint, lost.set), cache=None) as client:
                self.definitions = await _listed(client.session)
                bound.deadline = float("inf")
                self._session = client.session
                self._stood = True
                self._note_change()
                await lost.wait()
                self._session = None
        if bound.cancelled_caught:
            logger.warning("the tool server %s did not answer within %g s", self.name, self._connect_s)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _open(endpoint: Endpoint, on_end: Callable[[], None]) -> AbstractAsyncContextManager[TransportStreams]:
    if isinstance(endpoint, StdioServer):
        return stdio_transport(endpoint, on_end)
    return http_transport(endpoint)


async def _listed(session: ClientSession) -> tuple[Definition, ...]:
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        found += [_definition(tool) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None or len(found) > MAX_TOOLS:
            break
    return tuple(tool for tool in found[:MAX_TOOLS] if tool.size_bytes <= MAX_DEFINITION_BYTES)


def _definition(tool: ListedTool) -> Definition:
    return Definition(
        name=tool.name,
        title=tool.title,
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=None if tool.annotations is None else tool.annotations.model_dump(mode="json", exclude_none=True),
    )
