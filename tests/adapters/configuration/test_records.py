"""Named records: each validated whole by its own provider, chosen by name, and never a place for secrets."""

from __future__ import annotations

import logging
import pickle

import pytest

from voicechart.adapters.configuration import (
    CompanionSettings,
    Configuration,
    ConfigurationRefused,
    EspeakVoice,
    WhisperSettings,
    changed_keys,
    chosen,
    parse_configuration,
    selecting,
)
from voicechart.adapters.providers.registry import Role
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatSettings

AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
RECORDS = """
[model_settings.fast]
kind = "openai-chat"
model = "m"
api_key_env = "SOME_KEY"
[model_settings.quiet]
kind = "companion"
[voice_settings.ear]
kind = "whisper"
threads = 1
[voice_settings.loud]
kind = "espeak"
[voice_settings.small]
kind = "pico"
"""


def parsed(choices: str = "", tables: str = "") -> Configuration:
    return parse_configuration(f"{choices}\n{AUDIO}{RECORDS}{tables}")


def problems_of(choices: str, tables: str = "") -> dict[str, str]:
    with pytest.raises(ConfigurationRefused) as refused:
        parsed(choices, tables)
    return {problem.path: problem.message for problem in refused.value.problems}


def test_records_are_chosen_by_name_and_the_rest_is_allowed_and_unused() -> None:
    configuration = parsed('responder = "fast"\nrecognizer = "ear"\nvoice = "loud"')
    responder = chosen(configuration, Role.RESPONDER)
    assert responder.path == "model_settings.fast"
    assert responder.settings == OpenAIChatSettings(kind="openai-chat", model="m", api_key_env="SOME_KEY")
    assert chosen(configuration, Role.RECOGNIZER).settings == WhisperSettings(kind="whisper", threads=1)
    assert chosen(configuration, Role.SYNTHESIZER).settings == EspeakVoice(kind="espeak")


def test_a_table_of_its_own_is_chosen_as_it_stands() -> None:
    configuration = parsed(tables='[responder]\nkind = "companion"\n')
    assert chosen(configuration, Role.RESPONDER).path == "responder"
    assert chosen(configuration, Role.RESPONDER).settings == CompanionSettings(kind="companion")


def test_the_older_name_of_a_kind_still_works() -> None:
    responder = parsed(tables='[responder]\nkind = "openai"\nmodel = "m"\n').responder
    assert responder == OpenAIChatSettings(kind="openai-chat", model="m")


def test_every_problem_of_every_record_is_told_with_its_path() -> None:
    text = '[voice_settings.x]\nkind = "espeak"\npitch = 100\nspeed = 2\n[model_settings.y]\nkind = "openai-chat"\n'
    assert set(problems_of("", text)) == {"voice_settings.x.pitch", "voice_settings.x.speed", "model_settings.y.model"}


@pytest.mark.parametrize(
    ("choice", "path", "part"),
    [
        ('responder = "slow"', "responder", "defined: 'fast', 'quiet'"),
        ('responder = "ear"', "responder", "[model_settings] does not define"),
        ('voice = "ear"', "voice", "cannot be a synthesizer"),
        ('recognizer = "loud"', "recognizer", "cannot be a recognizer"),
        ('realtime = "fast"', "realtime", "cannot be a realtime"),
        ('fallback_recognizer = "loud"', "fallback_recognizer", "cannot be a recognizer"),
        ('fallback_recognizer = "fast"', "fallback_recognizer", "[voice_settings] does not define"),
        ('voice = "a b"', "voice", "pattern"),
    ],
)
def test_a_name_that_is_not_defined_or_plays_another_role_is_refused(choice: str, path: str, part: str) -> None:
    assert part in problems_of(choice)[path]


def test_a_native_realtime_model_contradicts_the_parts_of_a_cascade() -> None:
    found = problems_of('realtime = "fast"\nresponder = "quiet"\nvoice = "loud"')
    assert "responder" in found
    assert "voice" not in found
    assert "by itself" in found["responder"]


def test_records_replace_the_choices_of_one_run() -> None:
    configuration = selecting(parsed('responder = "fast"'), ["quiet", "small"])
    assert chosen(configuration, Role.RESPONDER).path == "model_settings.quiet"
    assert chosen(configuration, Role.SYNTHESIZER).path == "voice_settings.small"
    assert chosen(configuration, Role.RECOGNIZER).path == "recognizer"
    assert selecting(configuration, []) is configuration


@pytest.mark.parametrize(
    ("names", "part"),
    [(["none"], "there is no record 'none'; defined: 'fast'"), (["loud", "small"], "would both be the synthesizer")],
)
def test_records_that_cannot_play_together_are_refused(names: list[str], part: str) -> None:
    with pytest.raises(ConfigurationRefused, match=part):
        selecting(parsed(), names)


def test_what_changed_is_told_by_name_and_never_by_value() -> None:
    before = parsed('responder = "fast"')
    after = parse_configuration(
        f'responder = "quiet"\n{AUDIO}{RECORDS}[turn]\nmax_turn_words = 12\n'
        '[model_settings.new]\nkind = "openai-chat"\nmodel = "other"\n'
    )
    assert changed_keys(before, after) == ("model_settings.new", "responder", "turn.max_turn_words")
    assert changed_keys(before, before) == ()


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "sk-planted-1"',
        'api_key_env = "sk-planted-1"',
        'base_url = "https://user:sk-planted-1@x.example"',
        'base_url = "https://x.example/?key=sk-planted-1"',
        'model = ["sk-planted-1"]',
        'extra = "sk-planted-1"',
        'kind = "sk-planted-1"',
    ],
)
def test_a_secret_that_was_written_into_a_record_is_in_no_message(line: str, caplog: pytest.LogCaptureFixture) -> None:
    head = "" if line.startswith("kind") else 'kind = "openai-chat"\n'
    with pytest.raises(ConfigurationRefused) as refused:
        parsed(tables=f"[model_settings.x]\n{head}{line}\n")
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").error("refused", exc_info=refused.value)
    said = "\n".join([str(refused.value), repr(refused.value), caplog.text])
    assert "planted" not in said.replace("test_a_secret", "")


def test_a_configuration_holds_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-planted-2")
    configuration = parsed('responder = "fast"')
    dumps = [repr(configuration), str(configuration.model_dump()), configuration.model_dump_json()]
    assert "SOME_KEY" in dumps[0]
    assert all("planted" not in dump for dump in [*dumps, str(pickle.dumps(configuration.model_dump()))])
