"""Serving over HTTP, from the configuration: the table `web`, and who answers conversations in writing."""

from __future__ import annotations

from collections.abc import Mapping

from ...engines.ports import Responder
from ...statecharts.capabilities import StreamingPolicy
from ..configuration import Configuration, ConfigurationRefused, Problem, WebSettings, chosen, problems_of_web
from ..providers.registry import Role
from ..web.conversations import ConversationLimits
from ..web.hub import HubLimits
from ..web.observing import ObserverLimits
from ..web.options import WebOptions
from ..web.window import WindowLimits
from .collecting import CollectingResponder
from .packages import require
from .parts import Part, make_responder


def web_options(settings: WebSettings, environment: Mapping[str, str]) -> WebOptions:
    """What the server is told. Raises `ConfigurationRefused` when something is not installed or a token is missing."""
    require("web", "web", "starlette", "uvicorn")
    if problems := problems_of_web(settings):
        raise ConfigurationRefused(*problems)
    token = None
    if settings.token_env is not None:
        token = environment.get(settings.token_env)
        if not token:
            # Not by its name: somebody may have written the token itself there.
            message = "the environment variable that it names is not set, or is empty"
            raise ConfigurationRefused(Problem("web.token_env", message))
    return WebOptions(
        host=settings.host,
        port=settings.port,
        token=token,
        origins=settings.origins,
        observers_see=settings.observers_see,
        on_owner_disconnect=settings.on_owner_disconnect,
        show_chart=settings.show_chart,
        chart_text_shown=settings.chart_text_shown,
        max_observers=settings.max_observers,
        requests_per_minute=settings.requests_per_minute,
        burst=settings.burst,
        max_body_bytes=settings.max_body_bytes,
        max_text_chars=settings.max_text_chars,
        keep_alive_s=settings.keep_alive_s,
        conversations=ConversationLimits(settings.max_conversations, settings.idle_s),
        hub=HubLimits(
            WindowLimits(settings.replay_events, settings.replay_bytes),
            ObserverLimits(settings.waiting_events, settings.waiting_bytes),
        ),
    )


def make_writer(configuration: Configuration, environment: Mapping[str, str]) -> Part[Responder]:
    """Who answers in writing, neither loaded nor connected. Raises `ConfigurationRefused`."""
    if configuration.realtime is not None:
        message = "a native realtime model speaks and does not write: choose a responder for conversations in writing"
        raise ConfigurationRefused(Problem("realtime", message))
    responder = make_responder(chosen(configuration, Role.RESPONDER), environment)
    streaming = configuration.connection.streaming
    if streaming is StreamingPolicy.REQUIRED and not responder.port.capabilities.text_deltas:
        message = '"required" cannot be had: this responder gives whole replies only; choose another, or write "prefer"'
        raise ConfigurationRefused(Problem("connection.streaming", message))
    return responder.over(CollectingResponder) if streaming is StreamingPolicy.DISABLED else responder
