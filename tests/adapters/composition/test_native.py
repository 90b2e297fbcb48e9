"""A native realtime model, found in a file of its own, holds the conversation that names it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from voicechart.adapters.composition import NativeParts, abilities_of, compose, make_cascade, make_parts
from voicechart.adapters.configuration import Configuration, ConfigurationRefused, parse_configuration, selecting
from voicechart.adapters.providers import realtime
from voicechart.adapters.providers.registry import Role, kinds
from voicechart.engines.realtime import RealtimeEngine
from voicechart.engines.testing import ScriptedRealtimeModel

PROVIDER = """
from typing import Literal
from voicechart.adapters.providers import Provider, ProviderSettings
from voicechart.engines.testing import ScriptedRealtimeModel

class Settings(ProviderSettings):
    kind: Literal["made-up"]
    system_prompt: str | None = None

PROVIDER = Provider(
    title="Made up", settings=Settings, make=lambda settings, secrets: ScriptedRealtimeModel(),
    describe=lambda settings: "a made-up model",
)
"""
TOOLS = '''
from pydantic import BaseModel
from voicechart.engines import tool

class Lamp(BaseModel):
    number: int

async def switch(lamp: Lamp) -> str:
    """Switch a lamp."""
    return "on"

TOOLS = [tool(switch)]
'''
AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
RECORDS = (
    '[model_settings.native]\nkind = "made-up"\nsystem_prompt = "Be brief."\n[voice_settings.loud]\nkind = "espeak"\n'
)


@pytest.fixture(autouse=True)
def a_provider_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file, and the registry finds it."""
    (tmp_path / "made_up.py").write_text(PROVIDER)
    monkeypatch.setattr(realtime, "__path__", [*realtime.__path__, str(tmp_path)])


def parsed(choices: str = 'realtime = "native"', tables: str = "") -> Configuration:
    return parse_configuration(f"{choices}\n{AUDIO}{RECORDS}{tables}")


def refusal(configuration: Configuration) -> tuple[str, str]:
    with pytest.raises(ConfigurationRefused) as refused:
        compose(configuration, {})
    (problem,) = refused.value.problems
    return problem.path, problem.message


def test_one_file_is_a_provider() -> None:
    assert "made-up" in kinds(Role.REALTIME)


def test_the_named_model_holds_the_conversation() -> None:
    composition = compose(parsed(), {})
    assert isinstance(composition.engine, RealtimeEngine)
    ports = composition.engine.ports
    assert isinstance(ports.model, ScriptedRealtimeModel)
    assert ports.system_prompt == "Be brief."
    assert ports.announcer is None
    assert composition.parts.names == {"realtime": "a made-up model"}
    with pytest.raises(TypeError):
        _ = composition.ports


def test_it_is_offered_the_tools_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lamps_for_a_native.py").write_text(TOOLS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    composition = compose(parsed(tables='[tools]\nmodules = ["lamps_for_a_native:TOOLS"]\n'), {})
    assert isinstance(composition.engine, RealtimeEngine)
    assert [tool.name for tool in composition.engine.ports.tools] == ["switch"]
    assert composition.tools.names == "switch"


def test_a_voice_beside_it_says_what_must_be_said_word_by_word() -> None:
    composition = compose(parsed('realtime = "native"\nvoice = "loud"'), {})
    assert isinstance(composition.parts, NativeParts)
    assert composition.parts.names == {"realtime": "a made-up model", "voice": "eSpeak NG en-us"}
    assert isinstance(composition.engine, RealtimeEngine)
    assert composition.engine.ports.announcer is not None


def test_it_is_listed_and_tried_like_any_other_part() -> None:
    (part,) = make_parts(parsed(), {})
    assert (part.key, part.path, part.kind) == ("realtime", "model_settings.native", "made-up")
    assert {able.name for able in abilities_of(part.role, part.offered)} >= {"truncate", "resume", "ends_turns"}


def test_nobody_hears_a_recording_beside_a_native_model() -> None:
    text = 'realtime = "native"\nfallback_recognizer = "ear"'
    with pytest.raises(ConfigurationRefused, match="hears and answers by itself"):
        parsed(text, '[voice_settings.ear]\nkind = "whisper"\n')


@pytest.mark.parametrize(
    ("tables", "path", "part"),
    [
        ('[turn]\nauthority = "recognizer"\n', "turn.authority", "no recogniser beside it"),
        ('[connection]\nstreaming = "disabled"\n', "connection.streaming", "only streams"),
    ],
)
def test_what_a_native_model_cannot_do_is_refused_at_its_key(tables: str, path: str, part: str) -> None:
    found, message = refusal(parsed(tables=tables))
    assert found == path
    assert part in message


def test_the_model_may_end_turns_where_it_can() -> None:
    compose(parsed(tables='[turn]\nauthority = "engine"\n'), {})


def test_a_record_replaces_the_cascade_for_one_run_and_takes_a_voice_only() -> None:
    tables = '[model_settings.other]\nkind = "companion"\n[voice_settings.ear]\nkind = "whisper"\n'
    cascade = parsed('responder = "other"\nfallback_recognizer = "ear"', tables)
    native = selecting(cascade, ["native", "loud"])
    assert native.fallback_recognizer is None
    assert (native.realtime, native.voice) == ("native", "loud")
    assert isinstance(compose(native, {}).engine, RealtimeEngine)
    assert selecting(native, ["other"]).realtime is None
    with pytest.raises(ConfigurationRefused, match="at most a voice"):
        selecting(cascade, ["native", "other"])
    with pytest.raises(ConfigurationRefused, match="leave it out"):
        make_cascade(native, {})
