"""Serving: one server over given conversations, from its socket to the last event of everybody who watches."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import anyio
import uvicorn

from ...engines.reports import PortError
from ...statecharts.errors import ErrorScope, ScopedError
from .application import web_application
from .conversations import Conversations
from .guard import MAX_HEADER_BYTES
from .options import WebOptions
from .pacing import Pacer

BACKLOG = 256
SEND_BUFFER_BYTES = 65_536
EXTRA_CONNECTIONS = 64
"""Beside those of observers."""


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class WebServer:
    """A running server."""

    def __init__(self, address: str, conversations: Conversations) -> None:
        self.address = address
        """Where it is found, e.g. "http://127.0.0.1:8420"."""
        self.conversations = conversations


@asynccontextmanager
async def serving(conversations: Conversations, pacer: Pacer, options: WebOptions) -> AsyncGenerator[WebServer]:
    """Serve during the block. At its end nothing new is accepted; whoever reads gets `shutdown_s` for the rest.

    Close the conversations before leaving the block, so that observers are told. Raises `PortError` when the address
    cannot be bound.
    """
    listener = _bind(options.host, options.port)
    port: int = listener.getsockname()[1]
    config = uvicorn.Config(
        web_application(conversations, options),
        http="h11",
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        limit_concurrency=options.max_observers + EXTRA_CONNECTIONS,
        timeout_graceful_shutdown=max(1, round(options.shutdown_s)),
        timeout_keep_alive=5,
        backlog=BACKLOG,
    )
    # What it says is about single connections, with addresses; what matters is logged here.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = _Server(config)
    failure: Exception | None = None
    with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pacer.run, name="pacing observers")
            tasks.start_soon(conversations.run, name="conversations in writing")
            served = anyio.Event()

            async def serve() -> None:
                await server.serve([listener])
                served.set()

            tasks.start_soon(serve, name="web server")
            try:
                yield WebServer(_address(options.host, port), conversations)
            except Exception as error:
                failure = error
            with anyio.CancelScope(shield=True), anyio.move_on_after(options.shutdown_s + 2):
                conversations.close("stopped")
                server.should_exit = True
                await served.wait()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: what the system keeps for a reader that does not read.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.bind((host, port))
        # Whoever hears of the address finds somebody there, even before the first turn of the loop.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        message = f"{host}:{port} cannot be bound: {error.strerror}; choose another web.port, or stop what uses it"
        raise PortError(ScopedError("web_address_in_use", "connection", ErrorScope.SESSION, message)) from error
    listener.setblocking(False)
    return listener


def _address(host: str, port: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}"
