"""Do observers slow the one who asked? Its token latency alone and with a crowd watching, in turns, in one run.

    python benchmarks/web.py [--json] [--observers 200] [--stalled 50] [--rounds 6] [--tokens 200]

Three processes: the server, as `voicechart serve` has it, with a model that writes into each token when it made it; a
crowd of observers, some of which never read, at a lower priority, since it stands for other machines; and this one, the
owner, which reads tokens and looks at the same monotonic clock. The latency of a token is from the model's hand to the
owner's, through the session, the public stream, HTTP and two sockets. Everybody who is slow costs memory: the server's
resident memory is read after every round, and must come to rest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx

from voicechart.adapters.web.hosting import hosting, text_session
from voicechart.adapters.web.options import WebOptions
from voicechart.engines import TextPorts
from voicechart.engines.ports import GenerationRequest
from voicechart.engines.reports import GenerationEnded, GenerationReport, GenerationStopped, TextDelta
from voicechart.statecharts import Policies
from voicechart.statecharts.capabilities import ResponderCapabilities

TOKEN_MS = 10
MAX_RATIO = 1.2
WAITS_FOR_CROWD_S = 30


# -- the server ----------------------------------------------------------------------------------------------------


class StampingStream:
    """Tokens that say when they were made."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._cancelled = False

    async def reports(self) -> AsyncIterator[GenerationReport]:
        for _ in range(self._tokens):
            await anyio.sleep(TOKEN_MS / 1_000)
            if self._cancelled:
                yield GenerationStopped()
                return
            yield TextDelta(f"{time.monotonic_ns()} ")
        yield GenerationEnded()

    def cancel(self, reason: str) -> None:
        self._cancelled = True

    async def aclose(self) -> None:
        self._cancelled = True


class StampingModel:
    """Writes as many tokens as the last message asks for."""

    capabilities = ResponderCapabilities(text_deltas=True)

    async def prepare(self) -> None: ...

    async def open(self, request: GenerationRequest) -> StampingStream:
        return StampingStream(int(request.messages[-1].text))

    async def aclose(self) -> None: ...


async def serve() -> None:
    ports = TextPorts(StampingModel(), is_shared=True)
    session = text_session("front", ports, Policies())
    options = WebOptions(port=0, max_observers=1_000, requests_per_minute=100_000, burst=10_000)
    async with hosting(session, "text", options, lambda name: text_session(name, ports, Policies())) as server:
        print(server.address, flush=True)
        await session.run()


# -- the crowd -----------------------------------------------------------------------------------------------------


class Watcher(asyncio.Protocol):
    """Reads and forgets, or does not read at all."""

    def __init__(self, *, stalled: bool) -> None:
        self._stalled = stalled
        self.started = asyncio.get_running_loop().create_future()
        self.received_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        if self._stalled:
            transport.pause_reading()
            self.started.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.received_bytes += len(data)
        if not self.started.done():
            self.started.set_result(None)


async def crowd(address: str, observers: int, stalled: int) -> None:
    os.nice(10)
    url = urlsplit(address)
    assert url.hostname is not None
    loop = asyncio.get_running_loop()
    for number in range(observers):
        connection = socket.socket()
        if number < stalled:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.setblocking(False)
        await loop.sock_connect(connection, (url.hostname, url.port))
        is_stalled = number < stalled
        _, watcher = await loop.create_connection(lambda to=is_stalled: Watcher(stalled=to), sock=connection)
        await watcher.started
    print("watching", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)


# -- the owner -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Latency:
    """Of tokens, in milliseconds."""

    tokens: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


def latency_of(taken_ms: list[float]) -> Latency:
    ordered = sorted(taken_ms)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)

    return Latency(len(ordered), at(0.5), at(0.95), at(0.99), round(ordered[-1], 3))


def ask(client: httpx.Client, tokens: int) -> list[float]:
    """The latency of each token of one reply."""
    taken: list[float] = []
    with client.stream("POST", "/api/chat", json={"text": str(tokens)}) as response:
        for line in response.iter_lines():
            now = time.monotonic_ns()
            if '"text.delta"' not in line:
                continue
            for stamp in json.loads(line)["payload"]["text"].split():
                taken.append((now - int(stamp)) / 1e6)
    return taken


@contextmanager
def crowd_of(address: str, observers: int, stalled: int) -> Any:  # noqa: ANN401 - a context manager without a value
    command = [sys.executable, __file__, "--role", "crowd", address, str(observers), str(stalled)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "watching":
            raise RuntimeError("the crowd did not come")
        try:
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(WAITS_FOR_CROWD_S)


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1_024, 1)
    return 0.0


def measure(observers: int, stalled: int, rounds: int, tokens: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--role", "server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        alone: list[float] = []
        watched: list[float] = []
        resident: list[float] = []
        try:
            with httpx.Client(base_url=address, timeout=120) as client:
                ask(client, tokens)
                resident.append(resident_mib(server.pid))
                for _ in range(rounds):
                    alone += ask(client, tokens)
                    with crowd_of(address, observers, stalled):
                        watched += ask(client, tokens)
                        resident.append(resident_mib(server.pid))
        finally:
            server.terminate()
    before, after = latency_of(alone), latency_of(watched)
    return {
        "observers": observers,
        "stalled": stalled,
        "token_every_ms": TOKEN_MS,
        "alone": asdict(before),
        "watched": asdict(after),
        "ratio_p50": round(after.p50_ms / before.p50_ms, 3),
        "ratio_p95": round(after.p95_ms / before.p95_ms, 3),
        "ratio_mean": round(statistics.fmean(watched) / statistics.fmean(alone), 3),
        "resident_mib": {"before": resident[0], "rounds": resident[1:]},
        "target": {"ratio": MAX_RATIO, "met": after.p50_ms <= MAX_RATIO * before.p50_ms},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--observers", type=int, default=200)
    parser.add_argument("--stalled", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    wish = parser.parse_args()
    if wish.role:
        role, *rest = wish.role
        if role == "server":
            anyio.run(serve)
        else:
            asyncio.run(crowd(rest[0], int(rest[1]), int(rest[2])))
        return 0
    found = measure(wish.observers, wish.stalled, wish.rounds, wish.tokens)
    if wish.json:
        print(json.dumps(found, indent=2))
    else:
        for name in ("alone", "watched"):
            print(f"{name:8}" + "  ".join(f"{key} {value}" for key, value in found[name].items()))
        print(f"ratio of medians {found['ratio_p50']} (at most {MAX_RATIO}), of p95 {found['ratio_p95']}")
        print(f"resident memory of the server, MiB: {found['resident_mib']}")
    return 0 if found["target"]["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
