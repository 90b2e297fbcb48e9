"""Shared fixtures. Everything under test is imported as `voicechart…`, from where it is installed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from pydantic import JsonValue

from voicechart.statecharts import Conversation, InterruptionPolicy, Policies, SeededIds
from voicechart.statecharts.testing import ScriptedConversation
from voicechart.statecharts.values import InterruptionSource, TurnAuthority

GOLDEN = Path(__file__).parent / "conformance" / "golden"
collect_ignore = ["oracles"]
"""They have an environment and a configuration of their own: `make oracles`."""

# No deadline: a test does not time. In continuous integration hypothesis brings a profile of its own, without deadline
# and with the same examples every time. `quick` is for `make quick`.
settings.register_profile("house", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)
if settings.get_current_profile_name() == "default":
    settings.load_profile("house")


IN_REAL_TIME = ("end_to_end/", "faults/test_killed_process.py", "conformance/test_speaker_conformance.py")
"""Programs that run, speak and listen as fast as the clock goes: little may take the processor from them."""
_PATIENT = ("page", "cli_web", "web_", "soak_", "no_secret", "cli_audio_check")
PATIENT = ("faults/", *(f"end_to_end/test_{name}" for name in _PATIENT))
"""Those of them that may run beside the others: they wait for what happens, not for when."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` runs by itself, and what of it one at a time."""
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix() if item.path.is_relative_to(here) else ""
        if place.startswith(IN_REAL_TIME):
            item.add_marker(pytest.mark.real_time)
            if not place.startswith(PATIENT):
                item.add_marker(pytest.mark.xdist_group("one at a time"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run every `@pytest.mark.anyio` test on asyncio, which is what production runs on.

    A test that needs trio's virtual clock says so itself: `@pytest.mark.parametrize("anyio_backend", ["trio"])`.
    """
    return "asyncio"


@pytest.fixture
def golden() -> Callable[[str, JsonValue], None]:
    """`golden("openai-chat/tools", sent)`: it is what stands in `conformance/golden/openai-chat/tools.json`.

    With VOICECHART_WRITE_GOLDEN=1 in the environment it is recorded instead. The oracles hold these files against the
    vendor's types (`oracles/README.md`).
    """

    def compare(name: str, sent: JsonValue) -> None:
        path = GOLDEN / f"{name}.json"
        if os.environ.get("VOICECHART_WRITE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(sent, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        assert json.loads(path.read_text(encoding="utf-8")) == sent

    return compare


@pytest.fixture
def make_conversation() -> Callable[[], Conversation]:
    """Makes a conversation in which speech of two words may interrupt, the same one each time."""
    interruption = InterruptionPolicy(sources=frozenset(InterruptionSource), full_duplex=True, min_words=2)
    return lambda: Conversation("kitchen", policies=Policies(interruption=interruption), ids=SeededIds("test"))


@pytest.fixture
def drive_to_an_interruption() -> Callable[[Conversation], None]:
    """Drives a conversation to a reply that its 17th fact interrupts, and on to its 22nd; the 21st is unused."""

    def drive(conversation: Conversation) -> None:
        script = ScriptedConversation(conversation=conversation)
        said: list[Callable[[], object]] = [
            script.opens,
            script.connects,
            script.user_starts_speaking,
            lambda: script.hears("tell me", "a"),
            lambda: script.hears("tell me a secret", "a"),
            lambda: script.understands("tell me a secret", "a"),
            lambda: script.user_stops_speaking(TurnAuthority.RECOGNIZER),
            script.user_stops_speaking,
            script.recognition_ends,
            script.model_starts_writing,
            script.audio_starts,
            lambda: script.unit_is_synthesized(0, 0, 16_000),
            lambda: script.sound_begins(320),
            lambda: script.speaker_has_played(8_000),
            script.user_starts_speaking,
            lambda: script.hears("mhm", "b"),
            lambda: script.hears("mhm wait stop", "b"),
            lambda: script.speaker_has_stopped(15_000),
            script.model_acknowledges_cancel,
            lambda: script.understands("wait, stop", "b"),
            lambda: script.speaker_drains(99),
            script.user_stops_speaking,
        ]
        for say in said:
            script.wait(100)
            say()

    return drive
