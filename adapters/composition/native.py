"""A model that hears and speaks by itself, from a configuration that names one with `realtime`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ...audio.voice_activity import SpeechProbability
from ...engines.end_of_turn import EndOfTurn
from ...engines.ports import Synthesizer
from ...engines.realtime import RealtimeModel
from ...engines.realtime.engine import lacking_ability
from ...statecharts.capabilities import StreamingPolicy
from ..configuration import Configuration, ConfigurationRefused, Problem, chosen
from ..local import RuleBasedEndOfTurn
from ..providers.declaration import Prepared
from ..providers.registry import Role
from .parts import Part, make_part, make_synthesizer, make_voice_activity, system_prompt_of
from .timers import SpokenTimers


@dataclass(frozen=True, slots=True)
class NativeParts:
    """What hears, answers and speaks in one, neither loaded nor connected."""

    model: Part[RealtimeModel]
    announcer: Part[Synthesizer] | None
    """The voice of what must be said word by word, where the configuration gives one."""
    voice_activity: SpeechProbability
    end_of_turn: EndOfTurn
    system_prompt: str | None
    timers: SpokenTimers

    @property
    def names(self) -> dict[str, str]:
        """For people, by the key of the configuration."""
        return {part.key: part.name for part in self.all}

    @property
    def all(self) -> tuple[Part[Prepared], ...]:
        """The model first."""
        parts = (self.model,) if self.announcer is None else (self.model, self.announcer)
        return cast("tuple[Part[Prepared], ...]", parts)


def make_native(configuration: Configuration, environment: Mapping[str, str]) -> NativeParts:
    """Everything but the device and the history. Raises `ConfigurationRefused`."""
    choice = chosen(configuration, Role.REALTIME)
    model = cast("Part[RealtimeModel]", make_part(choice, environment))
    end_of_turn = RuleBasedEndOfTurn(configuration.end_of_turn)
    if lacking := lacking_ability(model.port.capabilities, configuration.turn.authority, end_of_turn):
        raise ConfigurationRefused(Problem("turn.authority", lacking.removeprefix("turn.authority = ")))
    if configuration.connection.streaming is StreamingPolicy.DISABLED:
        message = '"disabled" cannot be had: a native realtime model only streams; leave it out'
        raise ConfigurationRefused(Problem("connection.streaming", message))
    announcer = None
    if "voice" in configuration.model_fields_set:
        announcer = make_synthesizer(chosen(configuration, Role.SYNTHESIZER), environment)
    prompt = system_prompt_of(choice.settings)
    return NativeParts(model, announcer, make_voice_activity(), end_of_turn, prompt, SpokenTimers())
