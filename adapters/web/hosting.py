"""Hosting: one foreground session served over HTTP, with conversations in writing beside it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from ...engines import MemoryHistory, Session, TextEngine, TextPorts
from ...statecharts import Conversation, Policies, SeededIds
from ...statecharts.capabilities import StreamingPolicy
from .conversations import Conversations, Kind, Watching, new_session_epoch
from .options import WebOptions
from .pacing import Pacer
from .serving import WebServer, serving


@asynccontextmanager
async def hosting(
    session: Session, kind: Kind, options: WebOptions, open_text: Callable[[str], Session]
) -> AsyncGenerator[WebServer]:
    """Serve a session, which the caller runs during the block and whose end it waits for there.

    `open_text` makes the session of a conversation in writing. Raises `PortError` when the address cannot be bound.
    """
    pacer = Pacer(options.pace)
    watching = Watching(options.observers_see, options.hub, pacer.mark, options.chart_text_shown)
    conversations = Conversations(open_text, watching=watching, limits=options.conversations)
    hosted = conversations.host(session, kind)
    async with serving(conversations, pacer, options) as server:
        try:
            yield server
        finally:
            # A session that breaks does not say so by itself.
            hosted.end()


def text_session(conversation_id: str, ports: TextPorts, policies: Policies) -> Session:
    """A conversation in writing with a memory of its own, which begins empty and is forgotten with it.

    Of `ports` it shares what others may use too: model and tools.
    """
    # Whether the model streams was judged when it was chosen; hearing and speaking are not asked of it.
    streaming = replace(policies.connection, streaming=StreamingPolicy.PREFER)
    conversation = Conversation(
        conversation_id,
        policies=replace(policies, connection=streaming),
        ids=SeededIds(f"{conversation_id}/{secrets.token_hex(8)}"),
        session_epoch=new_session_epoch(),
    )
    return Session(conversation, TextEngine(replace(ports, history=MemoryHistory(), is_shared=True)))
