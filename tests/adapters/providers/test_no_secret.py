"""Whatever a provider echoes of the key - in a body, a header, a code, a reason - no error, trace or log repeats it.

Every provider that reads a key is asked, with everything logged that anybody logs.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from voicechart.adapters.providers import Secrets
from voicechart.adapters.providers.registry import AnyProvider, Role, all_providers
from voicechart.adapters.testing import HttpExchange, Refusal, ScriptedHttpServer, ScriptedSocketServer, SocketPeer
from voicechart.adapters.testing.http_server import EVENT_STREAM
from voicechart.engines.ports import GenerationRequest, Message, Responder
from voicechart.engines.reports import GenerationErrored, PortError

pytestmark = pytest.mark.anyio

KEY = "sk-planted-0123456789abcdef"
FIELDS = {"model": "m", "voice": "v", "voice_id": "v", "api_key_env": "PLANTED"}
Found = tuple[Role, str, AnyProvider]
ASKS_WITH_A_KEY: list[Found] = [found for found in all_providers() if "api_key_env" in found[2].settings.model_fields]


def has_a_socket(provider: AnyProvider) -> bool:
    default = provider.settings.model_fields["base_url"].default
    return isinstance(default, str) and default.startswith("wss:")


def named(found: Sequence[Found]) -> list[Any]:
    return [pytest.param(*one, id=one[1]) for one in found]


ON_SOCKETS = [found for found in ASKS_WITH_A_KEY if has_a_socket(found[2])]
RESPONDERS = [found for found in ASKS_WITH_A_KEY if found[0] is Role.RESPONDER]
ECHO: dict[str, str] = {"X-Echo": f"Bearer {KEY}", "WWW-Authenticate": KEY, "Retry-After": KEY, "Location": f"/?{KEY}"}
Json = dict[str, Any]
TELLS: list[Json] = [
    {"code": KEY, "type": KEY, "err_code": KEY, "message": f"Incorrect API key provided: {KEY}", "param": KEY},
    {"code": "invalid_api_key", "type": "error", "message": f"Bearer {KEY}", "headers": {"Authorization": KEY}},
]


def bodies() -> list[bytes]:
    shapes: list[Json] = [shape for tell in TELLS for shape in ({"error": tell}, {"detail": tell}, tell)]
    return [*(json.dumps(shape).encode() for shape in shapes), f"no, {KEY}".encode(), KEY.encode()]


def in_band() -> list[Json]:
    """Errors as each vendor tells them, and messages of kinds that nobody knows."""
    events: list[Json] = []
    for tell in TELLS:
        events += [
            {"type": "error", "error": tell},
            {"type": "error", **{name: value for name, value in tell.items() if name != "type"}},
            {"type": "Error", "description": KEY, "variant": KEY, "err_code": KEY, "error": KEY},
            {
                "header": {"event": "task-failed", "task_id": "t", "error_code": KEY, "error_message": KEY},
                "payload": {},
            },
            {"error": KEY, "message": KEY, "code": 1008},
            {"error": {"code": 401, "status": KEY, "message": KEY}},
        ]
    return [*events, {"type": KEY}, {"type": f"{KEY}.done"}, {KEY: {KEY: KEY}}, {"event": KEY, "type": None}]


@asynccontextmanager
async def asked(role: Role, provider: AnyProvider, kind: str, base_url: str) -> AsyncGenerator[list[str]]:
    """Prepares it; everything that it says of itself and of its failure."""
    fields = {name: value for name, value in FIELDS.items() if name in provider.settings.model_fields}
    settings = provider.settings.model_validate({"kind": kind, "base_url": base_url, **fields})
    port = provider.make(settings, Secrets({"PLANTED": KEY}))
    said = [repr(port), str(port), repr(settings), settings.model_dump_json(), provider.describe(settings)]
    try:
        with anyio.fail_after(10):
            await port.prepare()
    except PortError as refused:
        said += [repr(refused), str(refused), repr(refused.error), "".join(traceback.format_exception(refused))]
    finally:
        await port.aclose()
    yield said


@pytest.mark.parametrize(("role", "kind", "provider"), named(ASKS_WITH_A_KEY))
@pytest.mark.parametrize("status", [200, 302, 401, 403, 429, 500])
async def test_a_refusal_that_echoes_the_key_is_told_without_it(
    role: Role, kind: str, provider: AnyProvider, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for body in bodies()[: 3 if status != 401 else None]:
        if has_a_socket(provider):
            server = ScriptedSocketServer(*[Refusal(status if status != 200 else 404, ECHO, body)] * 4)
        else:
            exchange = HttpExchange((body,), status, {**ECHO, "Content-Type": "application/json"})
            server = ScriptedHttpServer({"": [exchange] * 4})
        async with server.running() as base_url, asked(role, provider, kind, base_url) as said:
            assert KEY not in "\n".join(said)
    assert KEY not in caplog.text


@pytest.mark.parametrize(("role", "kind", "provider"), named(ON_SOCKETS))
@pytest.mark.parametrize("message", in_band(), ids=lambda message: str(next(iter(message))))
async def test_an_error_on_a_socket_that_echoes_the_key_is_told_without_it(
    role: Role,
    kind: str,
    provider: AnyProvider,
    message: Json,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    async def tells(peer: SocketPeer) -> None:
        await peer.send_json(message)
        await peer.close(4001, f"Bearer {KEY}")

    async with ScriptedSocketServer(*[tells] * 4).running() as base_url, asked(role, provider, kind, base_url) as said:
        assert KEY not in "\n".join(said)
    assert KEY not in caplog.text


@pytest.mark.parametrize(("role", "kind", "provider"), named(RESPONDERS))
@pytest.mark.parametrize("message", in_band(), ids=lambda message: str(next(iter(message))))
async def test_an_error_in_an_answer_that_echoes_the_key_is_told_without_it(
    role: Role,
    kind: str,
    provider: AnyProvider,
    message: Json,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = HttpExchange(
        (f"event: error\ndata: {json.dumps(message)}\n\n".encode(),), headers={**ECHO, **EVENT_STREAM}
    )
    async with ScriptedHttpServer({"/models": [], "": [answer] * 2}).running() as base_url:
        settings = provider.settings.model_validate(
            {"kind": kind, "base_url": base_url, "model": "m", "api_key_env": "P"}
        )
        responder = cast("Responder", provider.make(settings, Secrets({"P": KEY})))
        stream = await responder.open(GenerationRequest("r", "a", (Message("user", "hello"),)))
        reports = [report async for report in stream.reports()]
        await responder.aclose()
    assert isinstance(reports[-1], GenerationErrored)
    assert KEY not in repr(reports)
    assert KEY not in caplog.text
