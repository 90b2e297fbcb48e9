"""Which records a configuration chooses for its conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..providers.declaration import ProviderSettings
from ..providers.registry import Role, UnknownKind, find_in
from .problems import Problem

if TYPE_CHECKING:
    from .settings import Configuration

KEYS = {
    Role.RECOGNIZER: ("recognizer", "voice_settings"),
    Role.RESPONDER: ("responder", "model_settings"),
    Role.SYNTHESIZER: ("voice", "voice_settings"),
    Role.REALTIME: ("realtime", "model_settings"),
}
"""Where a role is chosen, and where its records stand."""
FALLBACK = "fallback_recognizer"
"""The key of a second recogniser."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A part of the conversation: its role, its settings, and where in the file they stand."""

    role: Role
    settings: ProviderSettings
    path: str
    """The dotted key of the table, "responder" or "model_settings.fast"."""
    key: str
    """Where it is chosen: "responder"."""


def chosen(configuration: Configuration, role: Role) -> Choice:
    """Who plays the role. `problems_of_choices` has found nothing."""
    key, table = KEYS[role]
    value: ProviderSettings | str = getattr(configuration, key)
    if isinstance(value, str):
        records: dict[str, ProviderSettings] = getattr(configuration, table)
        return Choice(role, records[value], f"{table}.{value}", key)
    return Choice(role, value, key, key)


def chosen_fallback(configuration: Configuration) -> Choice | None:
    """Who hears what the recogniser failed at. `problems_of_choices` has found nothing."""
    name = configuration.fallback_recognizer
    if name is None:
        return None
    _, table = KEYS[Role.RECOGNIZER]
    return Choice(Role.RECOGNIZER, configuration.voice_settings[name], f"{table}.{name}", FALLBACK)


def problems_of_choices(configuration: Configuration) -> tuple[Problem, ...]:
    """Names that are not defined or name something else, and what contradicts a native realtime model."""
    found = [_problem(configuration, role, *KEYS[role]) for role in Role]
    found.append(_problem(configuration, Role.RECOGNIZER, FALLBACK, KEYS[Role.RECOGNIZER][1]))
    if configuration.realtime is not None:
        for key in (KEYS[Role.RECOGNIZER][0], FALLBACK, KEYS[Role.RESPONDER][0]):
            if key in configuration.model_fields_set:
                message = "a native realtime model hears and answers by itself: leave this out, or realtime"
                found.append(Problem(key, message))
    return tuple(problem for problem in found if problem is not None)


def _problem(configuration: Configuration, role: Role, key: str, table: str) -> Problem | None:
    name = getattr(configuration, key)
    if not isinstance(name, str):
        return None
    records: dict[str, ProviderSettings] = getattr(configuration, table)
    if name not in records:
        known = ", ".join(repr(known) for known in records) or "none"
        return Problem(key, f"names a record {name!r} that [{table}] does not define; defined: {known}")
    kind = records[name].kind
    try:
        find_in((role,), kind)
    except UnknownKind as unknown:
        return Problem(key, f"{table}.{name} is of the kind {kind!r}, which cannot be a {role}: its kind {unknown}")
    return None
