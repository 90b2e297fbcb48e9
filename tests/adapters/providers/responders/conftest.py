"""The three models over HTTP, each with its route and a whole answer of its scripted server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from voicechart.adapters.providers.http_service import HttpLimits
from voicechart.adapters.providers.responders.anthropic import AnthropicResponder
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatResponder
from voicechart.adapters.providers.responders.openai_responses import OpenAIResponsesResponder
from voicechart.adapters.testing import chat_chunks, message_events, response_events
from voicechart.engines.ports import Responder


@dataclass(frozen=True)
class Model:
    """One kind of model. `answer` makes the pieces of a whole answer; `make` takes the base URL and limits."""

    kind: str
    route: str
    answer: Callable[..., tuple[bytes, ...]]
    make: Callable[[str, HttpLimits], Responder]


KEY = "sk-very-secret"
MODELS = (
    Model(
        "anthropic",
        "/messages",
        message_events,
        lambda base_url, limits: AnthropicResponder(base_url=base_url, model="m", api_key=KEY, limits=limits),
    ),
    Model(
        "openai-chat",
        "/chat/completions",
        chat_chunks,
        lambda base_url, limits: OpenAIChatResponder(base_url=base_url, model="m", api_key=KEY, limits=limits),
    ),
    Model(
        "openai-responses",
        "/responses",
        response_events,
        lambda base_url, limits: OpenAIResponsesResponder(base_url=base_url, model="m", api_key=KEY, limits=limits),
    ),
)


@pytest.fixture(params=[pytest.param(model, id=model.kind) for model in MODELS])
def model(request: pytest.FixtureRequest) -> Model:
    """Each model over HTTP in turn."""
    assert isinstance(request.param, Model)
    return request.param
