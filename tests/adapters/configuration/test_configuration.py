"""A configuration is valid as a whole, or refused with every key that is wrong."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from voicechart.adapters.board import AudioEndpoint
from voicechart.adapters.configuration import (
    CompanionSettings,
    Configuration,
    ConfigurationRefused,
    PiperVoice,
    load_configuration,
    parse_configuration,
)
from voicechart.adapters.configuration.loading import MAX_FILE_BYTES
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatSettings
from voicechart.engines import ContextLimits
from voicechart.statecharts import Policies
from voicechart.statecharts.values import InterruptionSource

AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'


def problems_of(text: str) -> dict[str, str]:
    """The messages by path."""
    with pytest.raises(ConfigurationRefused) as refused:
        parse_configuration(text)
    return {problem.path: problem.message for problem in refused.value.problems}


def test_the_endpoint_is_all_that_must_be_said() -> None:
    configuration = parse_configuration(AUDIO)
    assert configuration.audio.endpoint.path == Path("/run/voicechart/audio.sock")
    assert isinstance(configuration.responder, CompanionSettings)
    assert configuration.policies == Policies()


def test_the_default_is_half_duplex_with_a_button() -> None:
    policy = parse_configuration(AUDIO).interruption
    assert not policy.full_duplex
    assert InterruptionSource.BUTTON in policy.sources
    assert InterruptionSource.SPEECH not in policy.sources


@pytest.mark.parametrize(
    ("endpoint", "whose"),
    [
        ("browser", "a browser"),
        ("webrtc:room", "a browser"),
        ("https://example.org/mic", "a browser"),
        ("phone", "a phone"),
        ("sip:me@example.org", "a phone"),
        ("bluetooth:headset", "a phone"),
        ("default", "a desktop"),
        ("alsa:hw:0", "a desktop"),
        ("pulse", "a desktop"),
    ],
)
def test_another_microphone_is_refused_with_the_reason(endpoint: str, whose: str) -> None:
    message = problems_of(f'[audio]\nendpoint = "{endpoint}"\n')["audio.endpoint"]
    assert whose in message
    assert "only voice input" in message
    assert "unix:" in message


@pytest.mark.parametrize(
    "key", ['[microphone]\nsource = "browser"', '[audio.microphone]\nkind = "phone"', "[browser]\naudio = true"]
)
def test_a_key_that_would_name_another_microphone_is_refused_with_the_reason(key: str) -> None:
    (message,) = problems_of(f"{AUDIO}{key}\n").values()
    assert "only voice input" in message


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[interruption]\nmin_word = 2", "interruption.min_word"),
        ("[turn]\ncontinuation_ms = 2", "turn.continuation_ms"),
        ("[colour]\nred = 1", "colour"),
        ('[responder]\nkind = "companion"\nmodel = "m"', "responder.model"),
        ("[voice_activity]\nthreshold = 0.5", "voice_activity.threshold"),
        ('[trace]\npath = "t"\n[trace.limits]\nmax_bytes = 1', "trace.limits.max_bytes"),
    ],
)
def test_an_unknown_key_is_refused_with_its_path(text: str, path: str) -> None:
    assert problems_of(f"{AUDIO}{text}\n") == {path: "there is no such key"}


@pytest.mark.parametrize(
    ("text", "path", "part"),
    [
        ("[interruption]\nmin_words = 51", "interruption", "min_words = 51 is outside 1–50"),
        ('[interruption]\nmin_words = "2"', "interruption.min_words", "integer"),
        ("[turn]\nmax_hold_ms = true", "turn.max_hold_ms", "integer"),
        ("[connection]\nshutdown_ms = 2026-01-01", "connection.shutdown_ms", "integer"),
        ('[interruption]\nsources = ["shout"]', "interruption.sources.0", "button"),
        ('[connection]\nstreaming = "always"', "connection.streaming", "prefer"),
        ("[voice_activity]\nstart_threshold = 1.5", "voice_activity", "start"),
        ('[voice]\nkind = "espeak"\npitch = 100', "voice.pitch", "99"),
        ('[voice]\nkind = "robot"', "voice.kind", "'piper'"),
        ("[responder]\ntoken_ms = 3", "responder", "needs kind"),
        ('[responder]\nkind = "openai"', "responder.model", "is missing"),
        ('responder = "fast"', "responder", "[model_settings] does not define; defined: none"),
        ('[model_settings.fast]\nmodel = "m"', "model_settings.fast", "needs kind"),
        ('[model_settings.fast]\nkind = "whisper"', "model_settings.fast.kind", "'openai-chat'"),
        ('[model_settings.fast]\nkind = "../x"', "model_settings.fast.kind", "must be one of"),
        ('[model_settings."a b"]\nkind = "companion"', "model_settings.a b", "pattern"),
        ('[voice_settings.ear]\nkind = "whisper"\nthreads = 17', "voice_settings.ear.threads", "16"),
        ("model_settings = 3", "model_settings", "object"),
        ("[model_settings]\nfast = 3", "model_settings.fast", "table"),
        ("conversation_id = 3", "conversation_id", "string"),
    ],
)
def test_a_value_outside_its_type_or_bounds_is_refused_with_its_path(text: str, path: str, part: str) -> None:
    text = f"{text}\n{AUDIO}" if "=" in text.splitlines()[0] else f"{AUDIO}{text}\n"
    assert part in problems_of(text)[path]


def test_every_problem_is_told_at_once() -> None:
    text = '[audio]\nendpoint = "phone"\n[turn]\nx = 1\n[playback]\nprebuffer_ms = 1001\n'
    assert problems_of(text).keys() == {"audio.endpoint", "turn.x", "playback"}


def test_an_open_microphone_needs_validated_echo_cancellation() -> None:
    message = problems_of(f"{AUDIO}[interruption]\nfull_duplex = true\n")["interruption.full_duplex"]
    assert "interrupt itself" in message
    assert 'audio.echo_cancellation = "validated"' in message


def test_interruption_by_speech_needs_validated_echo_cancellation() -> None:
    text = f'{AUDIO}[interruption]\nsources = ["button", "speech"]\n'
    assert "echo" in problems_of(text)["interruption.sources"]


def test_interruption_by_speech_is_allowed_where_echo_cancellation_was_validated() -> None:
    text = (
        f'{AUDIO}echo_cancellation = "validated"\n'
        '[interruption]\nfull_duplex = true\nsources = ["button", "speech"]\nmin_duration_ms = 400\n'
    )
    policy = parse_configuration(text).interruption
    assert policy.full_duplex
    assert policy.sources == {InterruptionSource.BUTTON, InterruptionSource.SPEECH}


def test_interruption_by_speech_with_a_closed_microphone_is_a_contradiction() -> None:
    text = f'{AUDIO}echo_cancellation = "validated"\n[interruption]\nsources = ["speech"]\n'
    assert "full_duplex = true" in problems_of(text)["interruption.sources"]


NATIVE = (
    f'realtime = "native"\n{AUDIO}echo_cancellation = "validated"\n[model_settings.native]\nkind = "openai-realtime"\n'
)


def test_words_alone_interrupt_no_native_model_in_time() -> None:
    text = f'{NATIVE}[interruption]\nfull_duplex = true\nsources = ["speech"]\n'
    assert "min_duration_ms = 350" in problems_of(text)["interruption.min_duration_ms"]


@pytest.mark.parametrize(
    "policy",
    [
        'sources = ["speech"]\nmin_duration_ms = 1',
        'sources = ["speech", "button"]',
        'sources = ["speech", "provider"]',
        'sources = ["button"]',
    ],
)
def test_what_interrupts_a_native_model_in_time_is_enough(policy: str) -> None:
    parse_configuration(f"{NATIVE}[interruption]\nfull_duplex = true\n{policy}\n")


def test_an_authority_that_nobody_here_is_would_leave_turns_open_and_is_refused() -> None:
    assert "vad" in problems_of(f'{AUDIO}[turn]\nauthority = "engine"\n')["turn.authority"]


@pytest.mark.parametrize("authority", ["vad", "recognizer", "semantic", "manual"])
def test_who_ends_turns_is_chosen_by_name(authority: str) -> None:
    assert parse_configuration(f'{AUDIO}[turn]\nauthority = "{authority}"\n').turn.authority == authority


def test_full_duplex_is_refused_with_the_command_that_validates_it() -> None:
    found = problems_of(f"{AUDIO}[interruption]\nfull_duplex = true\n")
    assert "voicechart audio-check" in found["interruption.full_duplex"]


def test_a_secret_in_the_file_is_refused_and_never_repeated() -> None:
    text = f'{AUDIO}[responder]\nkind = "openai"\nbase_url = "https://x.example/v1"\nmodel = "m"\n'
    for line in ('api_key = "sk-do-not-show"', 'api_key_env = "sk-do-not-show"'):
        found = problems_of(f"{text}{line}\n")
        assert found
        assert "do-not-show" not in str(found)
    assert "api_key_env" in problems_of(f'{text}api_key = "sk-do-not-show"\n')["responder.api_key"]


def test_relative_paths_are_meant_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "voicechart.toml"
    file.write_text(
        f'{AUDIO}[trace]\npath = "t/trace.jsonl"\n[history]\npath = "/var/h.db"\n[voice]\nkind = "piper"\n'
        'model_path = "joe.onnx"\n'
    )
    configuration = load_configuration(file)
    assert configuration.trace is not None
    assert configuration.trace.path == tmp_path / "t" / "trace.jsonl"
    assert configuration.history is not None
    assert configuration.history.path == Path("/var/h.db")
    assert configuration.voice == PiperVoice(kind="piper", model_path=tmp_path / "joe.onnx")


def test_what_goes_into_every_request_stays_as_it_is() -> None:
    text = (
        f'{AUDIO}[responder]\nkind = "openai"\nbase_url = "https://x.example/v1"\nmodel = "m"\n'
        'extra = { temperature = 0.3, stop = ["a"] }\n'
    )
    settings = parse_configuration(text).responder
    assert isinstance(settings, OpenAIChatSettings)
    assert settings.extra == {"temperature": 0.3, "stop": ["a"]}


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationRefused, match="cannot be read"):
        load_configuration(tmp_path / "none.toml")


@pytest.mark.parametrize(("data", "part"), [(b"[audio", "not TOML"), (b"\xff\xfe", "UTF-8")])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, data: bytes, part: str) -> None:
    file = tmp_path / "voicechart.toml"
    file.write_bytes(data)
    with pytest.raises(ConfigurationRefused, match=part):
        load_configuration(file)


def test_a_file_at_the_size_limit_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "voicechart.toml"
    file.write_text(AUDIO + "#" * (MAX_FILE_BYTES - len(AUDIO)))
    assert isinstance(load_configuration(file), Configuration)
    file.write_text(AUDIO + "#" * (MAX_FILE_BYTES - len(AUDIO) + 1))
    with pytest.raises(ConfigurationRefused, match="larger than"):
        load_configuration(file)


def test_a_history_needs_a_path_and_may_name_its_conversation() -> None:
    assert parse_configuration(AUDIO).history is None
    settings = parse_configuration(AUDIO + '[history]\npath = "history.db"\nconversation = "kitchen"\n').history
    assert settings is not None
    assert (settings.path, settings.conversation, settings.enabled) == (Path("history.db"), "kitchen", True)
    assert problems_of(AUDIO + '[history]\nconversation = "kitchen"\n') == {"history.path": "is missing"}
    wrong = problems_of(AUDIO + '[history]\npath = "history.db"\nconversation = "the kitchen"\nenabled = "no"\n')
    assert set(wrong) == {"history.conversation", "history.enabled"}


def test_how_much_the_model_is_shown_is_bounded() -> None:
    assert parse_configuration(AUDIO).context == ContextLimits()
    narrow = parse_configuration(AUDIO + '[history]\npath = "h"\ncontext_records = 1\ncontext_chars = 1\n')
    assert narrow.context == ContextLimits(1, 1)
    for key, beyond in (("context_records", 10_001), ("context_chars", 10_000_001)):
        for number in (0, beyond):
            assert set(problems_of(AUDIO + f'[history]\npath = "h"\n{key} = {number}\n')) == {f"history.{key}"}


EXAMPLE = Path(__file__).parents[3] / "examples" / "voicechart.toml"


def keys_of(kind: object) -> set[str]:
    """Every key of a table and of the tables in it, alternatives included."""
    if get_origin(kind) in (Union, UnionType, Annotated):
        return {key for arm in get_args(kind) for key in keys_of(arm)}
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, BaseModel)):
        hints = get_type_hints(kind)
        names = kind.model_fields if issubclass(kind, BaseModel) else [field.name for field in fields(kind)]
        return {key for name in names for key in (name, *keys_of(hints[name]))}
    return set()


def test_the_example_shows_every_key_there_is() -> None:
    text = EXAMPLE.read_text()
    keys = keys_of(Configuration) - keys_of(AudioEndpoint)
    assert {key for key in keys if not re.search(rf"\b{key}\b", text)} == set()


def test_the_example_is_what_a_configuration_is_without_it() -> None:
    example, bare = load_configuration(EXAMPLE), parse_configuration(AUDIO)
    same = set(Configuration.model_fields) - {"conversation_id", "history", "trace", "audio"}
    assert {name: getattr(example, name) for name in same} == {name: getattr(bare, name) for name in same}
    assert example.audio == bare.audio
    assert example.context == bare.context


def test_telemetry_is_off_and_without_content_unless_somebody_wants_it() -> None:
    settings = parse_configuration(AUDIO).telemetry
    assert (settings.enabled, settings.endpoint, settings.content) == (False, None, False)
    wanted = '[telemetry]\nenabled = true\nendpoint = "https://collector.example:4318"\ncontent = true\n'
    assert parse_configuration(AUDIO + wanted).telemetry.content


@pytest.mark.parametrize(
    "endpoint",
    ["collector:4318", "grpc://collector:4317", "http://", "https://me:pw@c.example", "https://c.example/?a=b"],
)
def test_a_collector_is_a_plain_address(endpoint: str) -> None:
    problems = problems_of(f'{AUDIO}[telemetry]\nendpoint = "{endpoint}"\n')
    assert set(problems) == {"telemetry.endpoint"}
    assert "pw" not in problems["telemetry.endpoint"]


@pytest.mark.parametrize(
    ("endpoint", "is_refused"),
    [
        ("http://collector.example:4318", True),
        ("http://10.0.0.7:4318", True),
        ("http://127.0.0.1:4318", False),
        ("http://[::1]:4318", False),
        ("http://localhost:4318", False),
        ("https://collector.example", False),
    ],
)
def test_what_people_say_never_travels_unencrypted(endpoint: str, is_refused: bool) -> None:
    text = f'{AUDIO}[telemetry]\nendpoint = "{endpoint}"\ncontent = true\n'
    if is_refused:
        assert set(problems_of(text)) == {"telemetry.content"}
    else:
        assert parse_configuration(text).telemetry.endpoint == endpoint
