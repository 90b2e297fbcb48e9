"""A server as a child process: messages line by line over its standard input and output.

The SDK's own transport reads a line of any length and any number of lines that are no messages. This one bounds both;
apart from that it follows the same rules: its own process group, an environment of a few harmless variables besides
those that were named, and at the end closed input, a pause, then signals, each wait bounded.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

MAX_LINE_BYTES = 1_048_576
MAX_GARBAGE_LINES = 64
"""Lines that are no messages, before the connection counts as broken."""
EXIT_TIMEOUT_S = 1.0
"""After its input was closed, and again after each signal."""
_POLL_S = 0.01

Incoming = ObjectReceiveStream[SessionMessage | Exception]
Outgoing = ObjectSendStream[SessionMessage]


@dataclass(frozen=True, slots=True)
class StdioServer:
    """How to start it. `environment` may hold secrets: it is never shown."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    folder: Path | None = None
    shows_errors: bool = False
    """What it writes to its standard error is shown as it is; otherwise it is dropped, because it may hold anything."""


@asynccontextmanager
async def stdio_transport(server: StdioServer, on_end: Callable[[], None]) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """The two streams of a session. `on_end` is called when nothing more will come. Raises `OSError`."""
    errors: int | IO[str] | None = None if server.shows_errors else subprocess.DEVNULL
    process = await anyio.open_process(
        [server.command, *server.arguments],
        env=get_default_environment() | dict(server.environment),
        stderr=errors,
        cwd=server.folder,
        start_new_session=True,
    )
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, to_session, on_end)
            tasks.start_soon(_write, process, from_session)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            for stream in (to_session, incoming, outgoing, from_session):
                stream.close()
            await _stop(process)


async def _read(
    process: Process, to_session: ObjectSendStream[SessionMessage | Exception], on_end: Callable[[], None]
) -> None:
    assert process.stdout is not None
    lines = BufferedByteReceiveStream(process.stdout)
    garbage = 0
    try:
        while garbage < MAX_GARBAGE_LINES:
            line = await lines.receive_until(b"\n", MAX_LINE_BYTES)
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                garbage += bool(line.strip())
            else:
                await to_session.send(message)
    except (
        anyio.EndOfStream,
        anyio.IncompleteRead,
        anyio.DelimiterNotFound,
        anyio.BrokenResourceError,
        anyio.ClosedResourceError,
        OSError,
    ):
        pass  # Whatever it was, nothing more comes: that is what is told below.
    finally:
        await to_session.aclose()
        on_end()


async def _write(process: Process, from_session: ObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    # The reader tells of the end; a server that closed its input has ended, too.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for message in from_session:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.stdin.send(f"{text}\n".encode())


async def _stop(process: Process) -> None:
    gone = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
    if process.stdin is not None:
        with suppress(*gone):
            await process.stdin.aclose()
    if not await _exited(process):
        await terminate_posix_process_tree(process, EXIT_TIMEOUT_S)
        await _exited(process)
    if process.stdout is not None:
        # asyncio closes a pipe only once everything in it was read.
        with suppress(*gone, anyio.EndOfStream), anyio.move_on_after(EXIT_TIMEOUT_S):
            while True:
                await process.stdout.receive()
        with suppress(*gone):
            await process.stdout.aclose()


async def _exited(process: Process) -> bool:
    # Not `wait()`: on asyncio that also waits until whoever inherited the pipes lets them go.
    with anyio.move_on_after(EXIT_TIMEOUT_S):
        while process.returncode is None:  # noqa: ASYNC110 - nothing else tells
            await anyio.sleep(_POLL_S)
    return process.returncode is not None
