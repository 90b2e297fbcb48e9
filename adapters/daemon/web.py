"""The daemon's conversation on the web, with conversations in writing beside it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from ...engines import Session, TextPorts
from ..composition import CascadeParts, Composition
from ..composition.web import web_options
from ..configuration import Configuration
from ..web.conversations import ConversationRefused

logger = logging.getLogger(__name__)


@asynccontextmanager
async def served(
    configuration: Configuration, environment: Mapping[str, str], session: Session, composition: Composition
) -> AsyncGenerator[None]:
    """Serve the session during the block, where that is configured; it is run there.

    Conversations in writing are answered by the same model. Raises `ConfigurationRefused`, and `PortError` when the
    address cannot be bound.
    """
    if not configuration.web.enabled:
        yield
        return
    options = web_options(configuration.web, environment)
    from ..web.hosting import hosting

    async with hosting(session, "voice", options, _open_text(configuration, composition)) as server:
        logger.info("the conversation is at %s", server.address)
        yield


def _open_text(configuration: Configuration, composition: Composition) -> Callable[[str], Session]:
    parts = composition.parts
    if not isinstance(parts, CascadeParts):
        return _refuse
    from ..web.hosting import text_session

    ports = TextPorts(
        parts.responder.port,
        tools=composition.tools.tools,
        system_prompt=parts.system_prompt,
        context=configuration.context,
        is_shared=True,
    )
    return partial(text_session, ports=ports, policies=configuration.policies)


def _refuse(conversation_id: str) -> Session:
    message = "a native realtime model speaks here and writes nothing beside it: leave conversation_id out"
    raise ConversationRefused("voice_only", message)
