"""Who is let in: hosts, origins, tokens, rates, sizes, and what every refusal looks like."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest

from voicechart.adapters.testing.web_site import Json, site, until
from voicechart.adapters.web.access import COOKIE, MAX_SESSIONS, Access, RateLimit
from voicechart.adapters.web.errors import ApiError
from voicechart.adapters.web.options import WebOptions

pytestmark = pytest.mark.anyio
TOKEN = "correct horse battery staple"
GUARDED = WebOptions(port=0, token=TOKEN)


def code_of(answer: Json) -> str:
    assert answer["error"]["message"]
    return answer["error"]["code"]


# -- the token -----------------------------------------------------------------------------------------------------


async def test_without_the_token_nothing_of_the_interface_answers() -> None:
    async with site(options=GUARDED) as here:
        for method, path in (
            ("GET", "/api/events"),
            ("GET", "/api/state"),
            ("GET", "/api/trace/stream"),
            ("POST", "/api/chat"),
            ("POST", "/api/cancel"),
            ("GET", "/api/nothing"),
        ):
            refused = await here.client.request(method, path)
            assert (refused.status_code, code_of(refused.json())) == (401, "token_required")
            assert refused.headers["www-authenticate"].startswith("Bearer")
        assert (await here.client.get("/healthz")).status_code == 200
        assert (await here.client.get("/openapi.json")).status_code == 200


@pytest.mark.parametrize("given", ["Bearer wrong", f"Basic {TOKEN}", "Bearer", "", f"Bearer {TOKEN}x"])
async def test_a_wrong_token_is_none(given: str) -> None:
    async with site(options=GUARDED, headers={"authorization": given}) as here:
        refused = await here.client.get("/api/state")
    assert refused.status_code == 401
    assert TOKEN not in refused.text


async def test_the_token_opens_everything() -> None:
    async with site(options=GUARDED, headers={"authorization": f"Bearer {TOKEN}"}) as here:
        events = await here.whole_chat("hello")
    assert events[-1]["type"] in ("run.terminal", "delivery.recorded")


async def test_a_browser_trades_the_token_for_a_cookie_that_scripts_cannot_read() -> None:
    async with site(options=GUARDED) as here:
        wrong = await here.client.post("/api/session", json={"token": "guess"})
        right = await here.client.post("/api/session", json={"token": TOKEN})
        async with here.watch() as watched:
            await until(watched, "snapshot")
    assert (wrong.status_code, code_of(wrong.json())) == (401, "wrong_token")
    assert right.status_code == 204
    flags = {part.strip().lower() for part in right.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", "path=/api"} <= flags
    assert TOKEN not in right.headers["set-cookie"]


def test_a_session_ends_by_itself_and_there_are_only_so_many() -> None:
    now = [0.0]
    access = Access(host="127.0.0.1", token=TOKEN, now_s=lambda: now[0])
    first = access.open_session()
    access.check_token(None, f"{COOKIE}={first}")
    now[0] = 12 * 3600
    with pytest.raises(ApiError):
        access.check_token(None, f"{COOKIE}={first}")
    newest = second = access.open_session()
    for _ in range(MAX_SESSIONS):
        newest = access.open_session()
    with pytest.raises(ApiError):
        access.check_token(None, f"{COOKIE}={second}")
    access.check_token(None, f"other=1; {COOKIE}={newest}")


# -- hosts and origins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "a b", "[::1", "0x7f.1"]
)
async def test_a_name_that_somebody_made_point_here_is_refused(host: str) -> None:
    async with site() as here:
        refused = await here.client.get("/api/state", headers={"host": host})
        page = await here.client.get("/", headers={"host": host})
    # An empty one does not get as far: it is no HTTP.
    assert {refused.status_code, page.status_code} <= {400, 403}


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8420", "LOCALHOST"])
async def test_this_machine_is_known_by_its_own_names(host: str) -> None:
    async with site() as here:
        assert (await here.client.get("/api/state", headers={"host": host})).status_code == 200


def test_a_server_for_everybody_answers_to_addresses_and_to_names_that_are_configured() -> None:
    access = Access(host="0.0.0.0", token=TOKEN, origins=("https://panel.example:8443",))
    for host in ("192.168.1.7:8420", "panel.example:8443", "panel.example", "localhost"):
        access.check_host(host)
    for host in ("other.example", None):
        with pytest.raises(ApiError, match=r"web\.origins"):
            access.check_host(host)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1"])
async def test_a_page_of_another_origin_is_a_stranger(origin: str) -> None:
    async with site() as here:
        for method, path in (("GET", "/api/events"), ("POST", "/api/chat"), ("POST", "/api/session")):
            refused = await here.client.request(method, path, headers={"origin": origin})
            assert (refused.status_code, code_of(refused.json())) == (403, "wrong_origin")
            assert "access-control-allow-origin" not in refused.headers


async def test_a_request_that_another_site_makes_without_saying_who_it_is_is_refused() -> None:
    async with site() as here:
        refused = await here.client.get("/api/state", headers={"sec-fetch-site": "cross-site"})
        own = await here.client.get("/api/state", headers={"sec-fetch-site": "same-origin"})
    assert (refused.status_code, own.status_code) == (403, 200)


async def test_its_own_page_and_configured_origins_may_ask() -> None:
    options = WebOptions(port=0, origins=("https://panel.example",))
    async with site(options=options) as here:
        own = await here.client.get("/api/state", headers={"origin": here.address})
        other = await here.client.get("/api/state", headers={"origin": "https://panel.example"})
        asked = await here.client.options(
            "/api/chat",
            headers={
                "origin": "https://panel.example",
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization, content-type",
            },
        )
    assert (own.status_code, other.status_code, asked.status_code) == (200, 200, 200)
    assert other.headers["access-control-allow-origin"] == "https://panel.example"
    assert "POST" in asked.headers["access-control-allow-methods"]


async def test_a_configured_origin_may_ask_before_it_shows_its_token() -> None:
    """A browser asks without the token whether it may send it."""
    options = WebOptions(port=0, origins=("https://panel.example",), token=TOKEN)
    async with site(options=options) as here:
        asked = await here.client.options(
            "/api/chat", headers={"origin": "https://panel.example", "access-control-request-method": "POST"}
        )
    assert asked.status_code == 200


# -- rates ---------------------------------------------------------------------------------------------------------


async def test_whoever_asks_too_often_is_told_how_long_to_wait() -> None:
    async with site(options=WebOptions(port=0, requests_per_minute=1, burst=3)) as here:
        answers = [await here.client.get("/api/state") for _ in range(4)]
        health = await here.client.get("/healthz")
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert health.status_code == 200


async def test_guessing_tokens_is_slowed_down_too() -> None:
    options = WebOptions(port=0, token=TOKEN, requests_per_minute=1, burst=2)
    async with site(options=options) as here:
        answers = [await here.client.post("/api/session", json={"token": "guess"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [401, 401, 429]


def test_a_bucket_refills_to_its_burst_and_no_further() -> None:
    now = [0.0]
    rate = RateLimit(per_minute=60, burst=2, now_s=lambda: now[0])
    rate.take("a")
    rate.take("a")
    rate.take("b")
    with pytest.raises(ApiError):
        rate.take("a")
    now[0] = 1.0
    rate.take("a")
    with pytest.raises(ApiError) as refused:
        rate.take("a")
    assert refused.value.headers["retry-after"] == "1"
    now[0] = 100.0
    rate.take("a")
    rate.take("a")
    with pytest.raises(ApiError):
        rate.take("a")


# -- sizes and shapes ----------------------------------------------------------------------------------------------


async def test_a_body_is_taken_up_to_its_limit_and_not_beyond() -> None:
    async with site(options=WebOptions(port=0, max_body_bytes=1_024)) as here:
        body = b'{"text": "hi"}'
        fits = await here.client.post(
            "/api/chat", content=body.ljust(1_024), headers={"content-type": "application/json"}
        )
        declared = await here.client.post(
            "/api/chat", content=body.ljust(1_025), headers={"content-type": "application/json"}
        )

        async def chunks() -> object:
            for _ in range(3):
                yield b" " * 512

        undeclared = await here.client.post(
            "/api/chat",
            content=chunks(),  # pyright: ignore[reportArgumentType]
            headers={"content-type": "application/json"},
        )
    assert fits.status_code == 200
    for refused in (declared, undeclared):
        assert (refused.status_code, code_of(refused.json())) == (413, "too_large")


async def test_a_text_is_taken_up_to_its_limit_and_not_beyond() -> None:
    async with site(options=WebOptions(port=0, max_text_chars=5)) as here:
        assert (await here.client.post("/api/chat", json={"text": "12345"})).status_code == 200
        refused = await here.client.post("/api/chat", json={"text": "123456"})
    assert (refused.status_code, code_of(refused.json())) == (422, "text_too_long")


MALFORMED = (
    (b"", 400, "malformed_json"),
    (b"{", 400, "malformed_json"),
    (b"\xff\xfe", 400, "malformed_json"),
    (b'{"text": "\\ud800"}', 400, "malformed_json"),
    (b"[]", 422, "invalid_body"),
    (b"null", 422, "invalid_body"),
    (b"{}", 422, "invalid_body"),
    (b'{"text": ""}', 422, "invalid_body"),
    (b'{"text": " \\n\\t"}', 422, "invalid_body"),
    (b'{"text": 7}', 422, "invalid_body"),
    (b'{"text": "hi", "tex": 1}', 422, "invalid_body"),
    (b'{"text": "hi", "conversation_id": "no/such"}', 422, "invalid_body"),
    (b'{"text": "hi", "conversation_id": ""}', 422, "invalid_body"),
    (b'{"text": "hi", "conversation_id": "new\\n"}', 422, "invalid_body"),
    (b"[" * 5_000, 400, "malformed_json"),
)


async def test_a_malformed_body_is_refused_with_the_reason() -> None:
    async with site() as here:
        for body, status, code in MALFORMED:
            refused = await here.client.post("/api/chat", content=body, headers={"content-type": "application/json"})
            assert (refused.status_code, code_of(refused.json())) == (status, code), body[:80]
        listed = (await here.client.get("/api/conversations")).json()["conversations"]
    assert len(listed) == 1


@pytest.mark.parametrize("body", ["{}", '{"conversation_id": "front"}', '{"run_id": null}', '{"run_id": ""}'])
async def test_a_cancel_that_names_nothing_is_refused(body: str) -> None:
    async with site() as here:
        refused = await here.client.post("/api/cancel", content=body, headers={"content-type": "application/json"})
    assert (refused.status_code, code_of(refused.json())) == (422, "invalid_body")


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"])
async def test_what_a_form_of_another_page_could_send_is_no_body(media_type: str) -> None:
    async with site() as here:
        refused = await here.client.post("/api/chat", content=b'{"text": "hi"}', headers={"content-type": media_type})
    assert (refused.status_code, code_of(refused.json())) == (415, "unsupported_media_type")


async def test_a_wrong_method_is_told_the_right_one_and_an_unknown_path_where_to_look() -> None:
    async with site() as here:
        wrong = await here.client.delete("/api/chat")
        unknown = await here.client.get("/api/nothing")
        folder = await here.client.get("/page/../hub.py")
        slash = await here.client.get("/api/state/")
    assert (wrong.status_code, wrong.headers["allow"], code_of(wrong.json())) == (405, "POST", "method_not_allowed")
    for answer in (unknown, folder, slash):
        assert answer.status_code == 404
        code_of(answer.json())


async def test_a_conversation_that_is_not_there_is_not_begun_by_looking() -> None:
    async with site() as here:
        for path in ("/api/events", "/api/state", "/api/chart", "/api/trace", "/api/trace/stream"):
            refused = await here.client.get(path, params={"conversation_id": "nobody"})
            assert (refused.status_code, code_of(refused.json())) == (404, "no_such_conversation")


async def test_every_answer_bears_the_headers_that_keep_a_page_from_harm() -> None:
    async with site() as here:
        answers = [await here.client.get(path) for path in ("/", "/api/state", "/api/nothing", "/healthz")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "microphone=()" in answer.headers["permissions-policy"]


# -- what is hardly HTTP -------------------------------------------------------------------------------------------


def talk_raw(address: str, data: bytes) -> bytes:
    url = urlsplit(address)
    assert url.hostname is not None
    assert url.port is not None
    with socket.create_connection((url.hostname, url.port), timeout=10) as connection:
        connection.sendall(data)
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
        return answer


@pytest.mark.parametrize(
    "data",
    [
        b"GET /api/state HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 20_000 + b"\r\nconnection: close\r\n\r\n",
        b"GET /api/state?after=" + b"1" * 9_000 + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /api/state HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /api/state HTTP/1.1\r\nhost: localhost\r\ncontent-length: nine\r\n\r\n",
    ],
)
async def test_what_is_hardly_http_is_refused_and_harms_nobody(data: bytes) -> None:
    async with site() as here:
        answer = await anyio.to_thread.run_sync(talk_raw, here.address, data)
        assert answer.split(b" ")[1][:1] == b"4"
        assert (await here.client.get("/api/state")).status_code == 200
