"""Gemini Live, judged by google-genai."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google import genai
from google.genai import types
from material import each_fixture, each_golden, json_of, judge
from strict import Json, check

from voicechart.adapters.testing import ScriptedSocketServer, WireEvent, WireFixture
from voicechart.adapters.testing.gemini_server import GeminiVoice
from voicechart.adapters.testing.realtime_servers import Says

pytestmark = pytest.mark.anyio

ELSEWHERE = {"realtimeInputConfig": types.RealtimeInputConfig}
"""Keys of `setup` that the service documents and the vendor's own client sends, and the types of what stands in them:
`LiveClientSetup` itself lacks them.
"""


def message_of(event: WireEvent) -> Json:
    """Also of a binary message: this service writes JSON in both."""
    if event.binary is None:
        return json_of(event)
    return json_of(WireEvent(raw=event.content.decode()))


@each_fixture("gemini-live")
def test_what_the_scripted_server_says_is_what_the_vendor_declares(fixture: WireFixture) -> None:
    judge(fixture, lambda event: check(message_of(event), types.LiveServerMessage))


@each_golden("gemini-live")
def test_what_we_send_is_what_the_vendor_declares(golden: dict[str, Json]) -> None:
    for frame in golden["frames"]:
        assert len(frame) == 1
        setup = frame.get("setup", {})
        for key, wanted in ELSEWHERE.items():
            if key in setup:
                check(setup.pop(key), wanted, exact_types=True)
        audio = frame.get("realtimeInput", {}).get("audio")
        if audio is not None:
            # Its length stands in the golden file. Strict, the vendor's type would not even take base 64.
            audio["data"] = base64.b64encode(audio["data"].encode()).decode()
        check(frame, types.LiveClientMessage, exact_types=audio is None)


@asynccontextmanager
async def over_tls(base_url: str, folder: Path) -> AsyncGenerator[tuple[str, ssl.SSLContext], None]:
    """The same server at an https address, which the vendor's client insists on, and who trusts it."""
    certificate, key = make_certificate(folder)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate, key)
    host, port = base_url.removeprefix("ws://").split(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(host, int(port))
        async with anyio.create_task_group() as group:
            group.start_soon(copy, reader, behind_writer)
            group.start_soon(copy, behind_reader, writer)

    relay = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=served)
    async with relay:
        relay_port = relay.sockets[0].getsockname()[1]
        yield f"https://127.0.0.1:{relay_port}", ssl.create_default_context(cafile=certificate)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Of 127.0.0.1, for a day, signed by itself."""
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, secret.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, key


CONFIG = types.LiveConnectConfig(
    response_modalities=["AUDIO"],
    input_audio_transcription={},
    output_audio_transcription={},
    realtime_input_config={"automatic_activity_detection": {"disabled": True}},
    session_resumption={},
    context_window_compression={"sliding_window": {}},
    history_config={"initial_history_in_client_content": True},
)


async def test_the_vendors_client_talks_to_the_scripted_server(tmp_path: Path) -> None:
    """What was said before, a spoken turn with a call, its outcome, and an answer that speech interrupts."""
    voice = GeminiVoice(
        Says("Let me see.", 100, calls=(("call_1", "weather", '{"city":"Oslo"}'),)),
        Says("It is sunny.", 400),
        Says("A long story.", 1_000, goes_on=True),
        hears=("how is the weather", "stop"),
    )
    server = ScriptedSocketServer(voice)
    seen: list[types.LiveServerMessage] = []
    async with server.running() as base_url, over_tls(base_url, tmp_path) as (url, trusted):
        options = types.HttpOptions(base_url=url, api_version="v1beta", async_client_args={"ssl": trusted})
        client = genai.Client(api_key="k", vertexai=False, http_options=options)
        async with client.aio.live.connect(model="gemini-3.8-live", config=CONFIG) as session:
            before = types.Content(role="model", parts=[types.Part(text="Hello.")])
            await session.send_client_content(turns=before, turn_complete=True)
            await session.send_realtime_input(activity_start=types.ActivityStart())
            await session.send_realtime_input(audio=types.Blob(data=bytes(3_200), mime_type="audio/pcm;rate=16000"))
            await session.send_realtime_input(activity_end=types.ActivityEnd())
            async for message in session.receive():
                seen.append(message)
                if message.tool_call is not None:
                    (call,) = message.tool_call.function_calls
                    answer = types.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"})
                    await session.send_tool_response(function_responses=[answer])
            assert seen[-1].server_content.turn_complete
            assert seen[-1].usage_metadata.response_token_count == 10
            await session.send_client_content(turns={"role": "user", "parts": [{"text": "Tell me a story."}]})
            is_interrupted = False
            async for message in session.receive():
                seen.append(message)
                if message.data is not None and not is_interrupted:
                    is_interrupted = True
                    await session.send_realtime_input(activity_start=types.ActivityStart())
            assert seen[-2].server_content.interrupted
            assert seen[-1].server_content.turn_complete
    said = "".join(one.server_content.output_transcription.text or "" for one in seen if is_said(one))
    assert said.startswith("Let me see.It is sunny.A long story.")
    assert voice.outcomes == [("call_1", {"output": "sunny"})]
    assert voice.history == [{"parts": [{"text": "Hello."}], "role": "model"}]
    assert voice.refused == []
    (peer,) = server.peers
    assert peer.headers["x-goog-api-key"] == "k"
    assert peer.path.endswith("/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent")
    setup = peer.received[0].json()["setup"]
    # The key that the vendor's type of this message lacks, and its client sends.
    assert set(setup) >= {"realtimeInputConfig", "historyConfig", "sessionResumption", "generationConfig", "model"}


def is_said(message: types.LiveServerMessage) -> bool:
    return message.server_content is not None and message.server_content.output_transcription is not None
