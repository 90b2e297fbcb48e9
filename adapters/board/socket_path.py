"""Taking a Unix socket path for a service, without taking it away from a live one."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import SocketListener

PRIVATE_MODE = 0o600
PROBE_DEADLINE_MS = 1_000
BACKLOG = 16


class SocketRefused(Exception):
    """The path cannot be used for a service. The text says what to do."""


@asynccontextmanager
async def private_listener(path: Path) -> AsyncGenerator[SocketListener, None]:
    """Listen at `path` during the block, for this user only. Removes a socket nobody answers on, and later its own.

    Raises `SocketRefused` when another service answers there, when the path is taken by something that is not a
    socket, and when it cannot be created.
    """
    await _remove_stale(path)
    try:
        listener = await anyio.create_unix_listener(path, mode=PRIVATE_MODE, backlog=BACKLOG)
    except OSError as error:
        raise SocketRefused(f"cannot listen at {path}: {error.strerror or error}; choose another path") from error
    inode = os.lstat(path).st_ino
    try:
        async with listener:
            yield listener
    finally:
        _remove(path, inode)


def _remove(path: Path, inode: int) -> None:
    """Remove the socket at `path` if it is still the one of `inode`."""
    try:
        if path.lstat().st_ino == inode:
            path.unlink()
    except FileNotFoundError:
        return


async def _remove_stale(path: Path) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketRefused(f"cannot look at {path}: {error.strerror}; choose another path") from error
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketRefused(f"{path} exists and is not a socket; move it away or choose another path")
    try:
        with anyio.fail_after(PROBE_DEADLINE_MS / 1_000):
            stream = await anyio.connect_unix(path)
    except ConnectionRefusedError:
        _remove(path, found.st_ino)
        return
    except (OSError, TimeoutError) as error:
        # Somebody holds it who may be busy, or another user's: not ours to replace.
        raise SocketRefused(f"{path} is held by another process ({type(error).__name__}); stop that first") from error
    await stream.aclose()
    raise SocketRefused(f"another audio service answers at {path}; stop it, or use that one")
