"""The responder: Messages over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import httpx
from pydantic import JsonValue

from .....statecharts.capabilities import ResponderCapabilities
from ...generation import GENERATION
from ...http_responder import HttpResponder, checked_options
from ...http_service import HttpLimits, HttpService
from .assembly import MessageAssembly
from .wire import RESERVED, request_body

OFFERS = ResponderCapabilities(
    text_deltas=True, tool_calls=True, usage=True, tool_argument_deltas=True, usage_during=True
)


class AnthropicResponder(HttpResponder):
    """A service that speaks Anthropic's Messages."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        key_header: str = "Authorization",
        api_version: str = "2026-10-21",
        max_tokens: int = 1_024,
        extra: Mapping[str, JsonValue] | None = None,
        allow_plain_http: bool = False,
        limits: HttpLimits | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` ends before "/messages", e.g. "https://api.anthropic.com/v1".

        The key goes as "Bearer …" in `Authorization`, or bare in the other `key_header`. `max_tokens` bounds one
        answer, reasoning included. `extra` goes into the request as it is, e.g. {"temperature": 0.3}. A key goes over
        plain HTTP only to this machine, unless `allow_plain_http`. Raises `PortError` for a bad setting.
        """
        options = checked_options(model, extra or {}, RESERVED)
        service = HttpService(
            GENERATION,
            base_url=base_url,
            headers={"Accept": "text/event-stream", "anthropic-version": api_version},
            api_key=api_key,
            key_header=key_header,
            allow_plain_http=allow_plain_http,
            limits=limits,
            transport=transport,
        )
        super().__init__(
            service,
            "/messages",
            body=partial(request_body, model=model, max_tokens=max_tokens, extra=options),
            assembly=MessageAssembly,
            capabilities=OFFERS,
        )
