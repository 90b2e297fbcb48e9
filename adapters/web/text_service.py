"""A service for people who type: no device, one conversation in the foreground, and others beside it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import anyio

from ...engines import Session, TextEngine, TextPorts
from ...engines.port_calls import let_go
from ...engines.ports import Responder
from ...engines.reports import PortError
from ...statecharts import SeededIds
from ...statecharts.capabilities import StreamingPolicy
from ..composition import OfferedTools, Part, system_prompt_of
from ..configuration import Configuration, chosen
from ..history import HistoryStore, SqliteHistory, conversation_after
from ..providers.registry import Role
from ..stopping import Stop, stop_on_signals
from .hosting import hosting, text_session
from .options import WebOptions

logger = logging.getLogger(__name__)


async def serve_text(
    configuration: Configuration,
    writer: Part[Responder],
    tools: OfferedTools,
    options: WebOptions,
    announce: Callable[[str], None],
) -> Stop:
    """Serve until a signal asks for the end. `announce` is told the address.

    Raises `PortError` when the address cannot be bound or the foreground conversation fails, and `HistoryError`.
    """
    ports = TextPorts(
        writer.port,
        tools=tools.tools,
        system_prompt=system_prompt_of(chosen(configuration, Role.RESPONDER).settings),
        context=configuration.context,
        is_shared=True,
    )
    try:
        with _foreground(configuration, ports) as session:
            open_text = partial(text_session, ports=ports, policies=configuration.policies)
            async with (
                stop_on_signals(lambda: session.close("stopped")) as stop,
                tools.serving(),
                hosting(session, "text", options, open_text) as server,
            ):
                logger.info("serving conversations in writing at %s: %s", server.address, writer.name)
                announce(server.address)
                closed = await session.run()
            if closed.error is not None:
                raise PortError(closed.error)
        return stop
    finally:
        with anyio.CancelScope(shield=True):
            await let_go(writer.port, "the model")


@contextmanager
def _foreground(configuration: Configuration, ports: TextPorts) -> Generator[Session]:
    """The foreground conversation; with a history it goes on where it was."""
    settings, name, policies = configuration.history, configuration.conversation_id, configuration.policies
    if settings is None or not settings.enabled:
        yield text_session(name, ports, policies)
        return
    with HistoryStore(settings.path) as store:
        history = SqliteHistory(store, settings.conversation or name)
        ids = SeededIds(f"{name}/{secrets.token_hex(8)}")
        policies = replace(policies, connection=replace(policies.connection, streaming=StreamingPolicy.PREFER))
        conversation = conversation_after(history.start, name, policies=policies, ids=ids)
        yield Session(conversation, TextEngine(replace(ports, history=history)))
