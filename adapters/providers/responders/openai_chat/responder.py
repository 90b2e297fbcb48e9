"""The responder: Chat Completions over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import httpx
from pydantic import JsonValue

from .....statecharts.capabilities import ResponderCapabilities
from ...generation import GENERATION
from ...http_responder import HttpResponder, checked_options
from ...http_service import HttpLimits, HttpService
from .assembly import ChatAssembly
from .wire import request_body

OFFERS = ResponderCapabilities(text_deltas=True, tool_calls=True, usage=True, tool_argument_deltas=True)
RESERVED = frozenset({"model", "messages", "stream", "stream_options", "tools", "n"})


class OpenAIChatResponder(HttpResponder):
    """Any service that speaks Chat Completions: a cloud provider, or llama.cpp, vLLM or Ollama at home."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        extra: Mapping[str, JsonValue] | None = None,
        include_usage: bool = True,
        allow_plain_http: bool = False,
        limits: HttpLimits | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`base_url` ends before "/chat/completions", e.g. "https://api.openai.com/v1".

        `extra` goes into the request as it is, e.g. {"temperature": 0.3, "max_completion_tokens": 300}. `include_usage`
        asks for token counts; turn it off for a server that refuses `stream_options`. A key goes over plain HTTP only
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
            "/chat/completions",
            body=partial(request_body, model=model, include_usage=include_usage, extra=options),
            assembly=ChatAssembly,
            capabilities=replace(OFFERS, usage=include_usage),
        )
