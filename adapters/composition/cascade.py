"""A recogniser, a model and a synthesiser, from a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from ...audio.voice_activity import SpeechProbability
from ...engines.ports import Recognizer, Responder, Synthesizer
from ...engines.turn_authorities import lacking_authority
from ...statecharts.capabilities import Capabilities, StreamingPolicy
from ..configuration import CompanionSettings, Configuration, ConfigurationRefused, Problem, chosen, chosen_fallback
from ..local.end_of_turn import RuleBasedEndOfTurn
from ..local.spoken_forms import SpokenForms
from ..providers.declaration import Prepared
from ..providers.registry import Role
from ..responders import PatternCompanion
from .collecting import CollectingRecognizer, CollectingResponder, CollectingSynthesizer
from .numbers_in_words import NumbersInWords
from .packages import require
from .parts import Part, make_recognizer, make_responder, make_synthesizer, make_voice_activity, system_prompt_of
from .timers import SpokenTimers


@dataclass(frozen=True, slots=True)
class CascadeParts:
    """What hears, answers and speaks, neither loaded nor connected; as their streaming policy lets them."""

    recognizer: Part[Recognizer]
    fallback_recognizer: Part[Recognizer] | None
    """Who hears the recording of what the recogniser failed at."""
    responder: Part[Responder]
    synthesizer: Part[Synthesizer]
    voice_activity: SpeechProbability
    system_prompt: str | None
    timers: SpokenTimers
    """Those of the companion, which nobody else has: attach them to the session."""

    @property
    def names(self) -> dict[str, str]:
        """For people, by the key of the configuration."""
        return {part.key: part.name for part in self.all}

    @property
    def all(self) -> tuple[Part[Prepared], ...]:
        """In the order in which speech passes them."""
        hearing = (
            (self.recognizer,) if self.fallback_recognizer is None else (self.recognizer, self.fallback_recognizer)
        )
        return cast("tuple[Part[Prepared], ...]", (*hearing, self.responder, self.synthesizer))


def make_cascade(configuration: Configuration, environment: Mapping[str, str]) -> CascadeParts:
    """Everything but the device and the history. Raises `ConfigurationRefused`."""
    if configuration.realtime is not None:
        message = "this conversation is held by recogniser, responder and voice: leave it out"
        raise ConfigurationRefused(Problem("realtime", message))
    recognizer = make_recognizer(chosen(configuration, Role.RECOGNIZER), environment)
    second = chosen_fallback(configuration)
    fallback = None if second is None else make_recognizer(second, environment)
    answers = chosen(configuration, Role.RESPONDER)
    responder = make_responder(answers, environment)
    synthesizer = make_synthesizer(chosen(configuration, Role.SYNTHESIZER), environment)
    timers = SpokenTimers()
    if isinstance(answers.settings, CompanionSettings):
        ringing = PatternCompanion(token_ms=answers.settings.token_ms, start_timer=timers.start)
        responder = replace(responder, port=ringing)
    if configuration.numbers_in_words:
        require("numbers_in_words", "local", "num2words", "cn2an")
        spoken_forms = SpokenForms()
        synthesizer = synthesizer.over(lambda inner: NumbersInWords(inner, spoken_forms))
    end_of_turn = RuleBasedEndOfTurn(configuration.end_of_turn)
    if lacking := lacking_authority(configuration.turn.authority, recognizer.port.capabilities, end_of_turn):
        raise ConfigurationRefused(Problem("turn.authority", lacking))
    streaming = configuration.connection.streaming
    offered = Capabilities(recognizer.port.capabilities, responder.port.capabilities, synthesizer.port.capabilities)
    if missing := offered.missing_for(streaming):
        message = f'"required" cannot be had: these parts lack {", ".join(missing)}; choose others, or write "prefer"'
        raise ConfigurationRefused(Problem("connection.streaming", message))
    if streaming is StreamingPolicy.DISABLED:
        recognizer = recognizer.over(CollectingRecognizer)
        fallback = None if fallback is None else fallback.over(CollectingRecognizer)
        responder = responder.over(CollectingResponder)
        synthesizer = synthesizer.over(CollectingSynthesizer)
    prompt = system_prompt_of(answers.settings)
    return CascadeParts(recognizer, fallback, responder, synthesizer, make_voice_activity(), prompt, timers)
