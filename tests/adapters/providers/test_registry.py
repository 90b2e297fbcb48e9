"""Every provider is found by its role and kind, and declares what the rest of the program relies on."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from voicechart.adapters.providers import Provider, ProviderSettings
from voicechart.adapters.providers.registry import (
    MODEL_ROLES,
    VOICE_ROLES,
    AnyProvider,
    Role,
    UnknownKind,
    all_providers,
    find,
    find_in,
    kinds,
    kinds_accepted,
)

PROVIDERS = list(all_providers())


def name(value: object) -> str | None:
    return str(value) if isinstance(value, str) else None


@pytest.mark.parametrize(("role", "kind", "provider"), PROVIDERS, ids=name)
def test_every_file_in_a_role_s_folder_is_a_provider_of_its_name(role: Role, kind: str, provider: AnyProvider) -> None:
    assert isinstance(provider, Provider)
    assert issubclass(provider.settings, ProviderSettings)
    assert kinds_accepted(provider) == (kind,)
    assert provider.title
    assert provider.offers is not None
    assert find(role, kind) is provider


@pytest.mark.parametrize("roles", [MODEL_ROLES, VOICE_ROLES], ids=["models", "voices"])
def test_a_kind_is_unique_among_the_roles_of_one_table(roles: tuple[Role, ...]) -> None:
    for one, other in combinations(roles, 2):
        assert not set(kinds(one)) & set(kinds(other))


@pytest.mark.parametrize(("role", "kind", "provider"), PROVIDERS, ids=name)
def test_settings_hold_names_of_secrets_and_refuse_secrets(role: Role, kind: str, provider: AnyProvider) -> None:
    settings = provider.settings
    for key in settings.model_fields:
        looks_secret = key.split("_")[-1] in ("secret", "password", "token", "key")
        assert not looks_secret, f"{key}: name its variable in {key}_env"
    assert settings.model_config.get("extra") == "forbid"
    assert settings.model_config.get("frozen") is True
    assert settings.model_config.get("hide_input_in_errors") is True


def test_the_local_ones_are_providers_like_any_other() -> None:
    assert {"companion", "local", "openai-chat"} <= set(kinds(Role.RESPONDER))
    assert "whisper" in kinds(Role.RECOGNIZER)
    assert {"auto", "espeak", "pico", "piper"} <= set(kinds(Role.SYNTHESIZER))
    assert find_in(VOICE_ROLES, "espeak")[0] is Role.SYNTHESIZER
    assert find_in(MODEL_ROLES, "companion")[0] is Role.RESPONDER


@pytest.mark.parametrize("kind", ["none", "", "_private", "openai_chat", "../x", "local.WEIGHTS", "Whisper", "a" * 300])
def test_a_kind_that_nobody_has_is_refused_with_those_there_are(kind: str) -> None:
    with pytest.raises(UnknownKind, match="'companion'"):
        find(Role.RESPONDER, kind)
    with pytest.raises(UnknownKind, match=r"'whisper'.*'espeak'"):
        find_in(VOICE_ROLES, kind)


def test_the_list_of_kinds_imports_no_provider_and_no_provider_imports_what_an_extra_brings() -> None:
    program = (
        "import sys\n"
        "from voicechart.adapters.providers.registry import Role, all_providers, kinds\n"
        "[kinds(role) for role in Role]\n"
        "assert 'voicechart.adapters.providers.recognizers.whisper' not in sys.modules\n"
        "modules = {m for _, _, provider in all_providers() for m in provider.modules}\n"
        "print(sorted(modules & sys.modules.keys()))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout.strip() == "[]", ran.stderr
