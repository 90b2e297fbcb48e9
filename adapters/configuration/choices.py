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


@dataclass(frozen=True, slots=True)
class Choice:
    """A part of the conversation: its role, its settings, and where in the file they stand."""

    role: Role
    settings: ProviderSettings
    path: str
    """The dotted key of the table, "responder" or "model_settings.fast"."""


def chosen(configuration: Configuration, role: Role) -> Choice:
    """Who plays the role. `problems_of_choices` has found nothing."""
    key, table = KEYS[role]
    value: ProviderSettings | str = getattr(configuration, key)
    if isinstance(value, str):
        records: dict[str, ProviderSettings] = getattr(configuration, table)
        return Choice(role, records[value], f"{table}.{value}")
    return Choice(role, value, key)


def problems_of_choices(configuration: Configuration) -> tuple[Problem, ...]:
    """Names that are not defined or name something else, and what contradicts a native realtime model."""
    found = [_problem(configuration, role) for role in Role]
    if configuration.realtime is not None:
        for role in (Role.RECOGNIZER, Role.RESPONDER):
            key, _ = KEYS[role]
            if key in configuration.model_fields_set:
                message = "a native realtime model hears and answers by itself: leave this out, or realtime"
                found.append(Problem(key, message))
    return tuple(problem for problem in found if problem is not None)


def _problem(configuration: Configuration, role: Role) -> Problem | None:
    key, table = KEYS[role]
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
