"""SIGHUP: the configuration is read anew, judged, and kept for the next session.

A session runs with the configuration that it began with, from its first word to its last: half a conversation under
other rules would be neither. A daemon holds one session in its life, so what is read anew acts when it is started
again. The point of the signal is to be told now what is wrong, and what would change.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable

import anyio
from anyio import to_thread

from ..configuration import Configuration, ConfigurationRefused, changed_keys

logger = logging.getLogger(__name__)

RELOAD = signal.SIGHUP


async def read_anew_on_signal(running: Configuration, read: Callable[[], Configuration]) -> None:
    """Call `read` at every SIGHUP, and log what differs from what is running: names of keys, never values.

    `read` raises `ConfigurationRefused` for what the daemon would refuse.
    """
    with anyio.open_signal_receiver(RELOAD) as signals:
        async for _ in signals:
            try:
                anew = await to_thread.run_sync(read)
            except ConfigurationRefused as refused:
                for problem in refused.problems:
                    logger.error("the configuration that was read anew is refused: %s", problem)
                logger.error("this session goes on as it began")
                continue
            if changed := changed_keys(running, anew):
                logger.info("the next session begins with other settings: %s", ", ".join(changed))
            else:
                logger.info("the configuration was read anew, and is what this session runs with")
