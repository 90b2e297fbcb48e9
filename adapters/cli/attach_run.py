"""What `attach` does once its options are read."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import httpx
import typer

from ..stopping import Stop, stop_on_signals
from ..web.cursors import Cursor
from ..web.following import SILENCE_S, Back, Event, Follower, FollowRefused, Lost
from .attach_lines import Lines
from .output import FAILED, REFUSED, STOPPED, PatientConsole, fail


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be followed, as it was asked for."""

    url: str
    conversation: str | None
    after: str | None
    token_env: str | None
    as_json: bool


def run_and_report(wish: Wish) -> None:
    """Follow to the end; ends the command with the exit code."""
    url = urlsplit(wish.url)
    if url.scheme not in ("http", "https") or not url.hostname:
        fail(f"{wish.url} is no address of a server: write http://127.0.0.1:8420, say", REFUSED)
    if wish.after is not None and Cursor.parse(wish.after) is None:
        fail(f"--after {wish.after} is no cursor: it looks like 1796036847765:13", REFUSED)
    headers: dict[str, str] = {}
    if wish.token_env is not None:
        token = os.environ.get(wish.token_env)
        if not token:
            fail("the environment variable that --token-env names is not set, or is empty", REFUSED)
        headers["authorization"] = f"Bearer {token}"
    try:
        stop = anyio.run(_follow, wish, headers)
    except FollowRefused as refused:
        fail(str(refused), FAILED)
    if stop.signal is signal.SIGINT:
        raise typer.Exit(STOPPED)


async def _follow(wish: Wish, headers: dict[str, str]) -> Stop:
    timeout = httpx.Timeout(10.0, read=SILENCE_S)
    console = PatientConsole(highlight=False)
    lines = Lines()
    async with httpx.AsyncClient(base_url=wish.url, headers=headers, timeout=timeout) as client:
        follower = Follower(client, after=wish.after, conversation_id=wish.conversation)
        following = anyio.CancelScope()
        async with stop_on_signals(following.cancel) as stop:
            with following:
                async for followed in follower.events():
                    match followed:
                        case Event(value) if wish.as_json:
                            typer.echo(json.dumps(value, ensure_ascii=False))
                        case Event(value):
                            for line in lines.take(value):
                                console.print(line, soft_wrap=True)
                        case Lost(reason, wait_s):
                            typer.echo(f"voicechart: lost: {reason}; again in {wait_s:g} s", err=True)
                        case Back(cursor):
                            where = "with a snapshot" if cursor is None else f"behind {cursor}"
                            typer.echo(f"voicechart: back {where}", err=True)
    return stop
