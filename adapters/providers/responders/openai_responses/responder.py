"""The responder: Responses over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import httpx
from pydantic import JsonValue

from .....statecharts.capabilities import ResponderCapabilities
from ...generation import GENERATION
from ...http_responder import HttpResponder, checked_options
from ...http_service import HttpLimits, HttpService
from .assembly import ResponsesAssembly
from .wire import RESERVED, request_body

OFFERS = ResponderCapabilities(text_deltas=True, tool_calls=True, usage=True, tool_argument_deltas=True)


class OpenAIResponsesResponder(HttpResponder):
    """A service that speaks OpenAI's Responses."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        extra: Mapping[str, JsonValue] | None = None,
        allow_plain_http: bool = False,
        limits: HttpLimits | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` ends before "/responses", e.g. "https://api.openai.com/v1".

        `extra` goes into the request as it is, e.g. {"reasoning": {"effort": "low"}}. A key goes over plain HTTP only
        to this machine, unless `allow_plain_http`. Raises `PortError` for a bad setting.
        """
        options = checked_options(model, extra or {}, RESERVED)
        service = HttpService(
            GENERATION,
            base_url=base_url,
            headers={"Accept": "text/event-stream"},
            api_key=api_key,
            allow_plain_http=allow_plain_http,
            limits=limits,
            transport=transport,
        )
        super().__init__(
            service,
            "/responses",
            body=partial(request_body, model=model, extra=options),
            assembly=ResponsesAssembly,
            capabilities=OFFERS,
        )
