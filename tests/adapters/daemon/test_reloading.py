"""SIGHUP reads the configuration anew for the next session, and says what would change."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable

import anyio
import pytest

from voicechart.adapters.configuration import parse_configuration
from voicechart.adapters.daemon.reloading import RELOAD, read_anew_on_signal

pytestmark = pytest.mark.anyio
Reading = Callable[[str], Awaitable[list[str]]]
AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'


@pytest.fixture
def told_after_reading(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Reading:
    """What is logged after the signal when the file holds this now."""

    async def read_anew(text: str) -> list[str]:
        told = anyio.Event()

        class Told(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                told.set()

        caplog.set_level(logging.INFO)
        monkeypatch.setattr(logging.getLogger(read_anew_on_signal.__module__), "handlers", [Told()])
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read_anew_on_signal, parse_configuration(AUDIO), lambda: parse_configuration(text))
                await anyio.wait_all_tasks_blocked()
                os.kill(os.getpid(), RELOAD)
                await told.wait()
                tasks.cancel_scope.cancel()
        return caplog.messages

    return read_anew


async def test_the_names_of_what_changed_are_told_and_no_values(told_after_reading: Reading) -> None:
    text = f'{AUDIO}[responder]\nkind = "openai-chat"\nmodel = "whispered"\n[turn]\nmax_turn_words = 12\n'
    (message,) = await told_after_reading(text)
    assert "next session" in message
    assert "responder.kind, responder.model" in message
    assert "turn.max_turn_words" in message
    assert "whispered" not in message


async def test_what_is_refused_is_told_with_its_path_and_changes_nothing(told_after_reading: Reading) -> None:
    first, second, last = await told_after_reading(f"{AUDIO}colour = 1\n[turn]\nx = 1\n")
    assert "audio.colour: there is no such key" in first
    assert "turn.x: there is no such key" in second
    assert "goes on as it began" in last


async def test_a_file_that_says_the_same_is_told_so(told_after_reading: Reading) -> None:
    (message,) = await told_after_reading(AUDIO)
    assert "is what this session runs with" in message
