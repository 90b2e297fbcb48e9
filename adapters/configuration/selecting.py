"""Other records than the file chooses, for one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..providers.registry import MODEL_ROLES, VOICE_ROLES, Role, find_in
from .choices import FALLBACK, KEYS
from .loading import contradictions
from .problems import ConfigurationRefused, Problem
from .settings import Configuration


def selecting(configuration: Configuration, names: Sequence[str]) -> Configuration:
    """The same with these records playing their roles; a native realtime model replaces a whole cascade.

    Raises `ConfigurationRefused` for a name that is not defined, and for two of the same role.
    """
    selected: dict[Role, str] = {}
    for name in names:
        role = _role_of(configuration, name)
        if role in selected:
            message = f"{selected[role]!r} and {name!r} would both be the {role}; name one of them"
            raise ConfigurationRefused(Problem(KEYS[role][0], message))
        selected[role] = name
    if not selected:
        return configuration
    if Role.REALTIME in selected and selected.keys() - {Role.REALTIME, Role.SYNTHESIZER}:
        message = "a native realtime model hears and answers by itself; name at most a voice with it"
        raise ConfigurationRefused(Problem("realtime", message))
    replaced = {"realtime"} if Role.REALTIME not in selected else {FALLBACK, *(KEYS[role][0] for role in Role)}
    values: dict[str, Any] = {name: getattr(configuration, name) for name in configuration.model_fields_set - replaced}
    values |= {KEYS[role][0]: name for role, name in selected.items()}
    chosen = Configuration.model_construct(None, **values)
    if found := contradictions(chosen):
        raise ConfigurationRefused(*found)
    return chosen


def _role_of(configuration: Configuration, name: str) -> Role:
    in_models, in_voices = name in configuration.model_settings, name in configuration.voice_settings
    if in_models and in_voices:
        message = f"{name!r} is the name of a model and of a voice; give one of them another name"
        raise ConfigurationRefused(Problem("", message))
    if in_models:
        return find_in(MODEL_ROLES, configuration.model_settings[name].kind)[0]
    if in_voices:
        return find_in(VOICE_ROLES, configuration.voice_settings[name].kind)[0]
    known = ", ".join(map(repr, (*configuration.model_settings, *configuration.voice_settings))) or "none"
    raise ConfigurationRefused(Problem("", f"there is no record {name!r}; defined: {known}"))
