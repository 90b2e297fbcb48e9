"""How an operator stops a running command: the first signal asks, the second insists."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """What the signals said so far."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        """The first one; None while nobody wants an end."""
        self.insisted = False
        """A second one came: the block was cancelled."""


@asynccontextmanager
async def stop_on_signals(ask: Callable[[], None]) -> AsyncGenerator[Stop, None]:
    """Call `ask` at the first SIGINT or SIGTERM during the block, and cancel the block at the second.

    Only on the main thread. An error of the block leaves as it is, not wrapped in a group.
    """
    stop = Stop()
    failure: Exception | None = None

    async def listen() -> None:
        with anyio.open_signal_receiver(*SIGNALS) as received:
            listening.set()
            async for number in received:
                if stop.signal is not None:
                    stop.insisted = True
                    block.cancel()
                else:
                    stop.signal = number
                    ask()

    listening = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await listening.wait()
        with anyio.CancelScope() as block:
            try:
                yield stop
            except Exception as error:
                failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
