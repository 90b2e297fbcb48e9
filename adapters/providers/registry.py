"""Which providers there are, found by their role and kind. A provider's file is imported when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import get_args

from . import realtime, recognizers, responders, synthesizers
from .declaration import Prepared, Provider, ProviderSettings


class Role(StrEnum):
    """What a provider does in a conversation."""

    RESPONDER = "responder"
    RECOGNIZER = "recognizer"
    SYNTHESIZER = "synthesizer"
    REALTIME = "realtime"


MODEL_ROLES = (Role.RESPONDER, Role.REALTIME)
"""Roles of the records in `[model_settings]`."""
VOICE_ROLES = (Role.RECOGNIZER, Role.SYNTHESIZER)
"""Roles of the records in `[voice_settings]`."""

AnyProvider = Provider[ProviderSettings, Prepared]

_FOLDERS = {
    Role.RESPONDER: responders,
    Role.RECOGNIZER: recognizers,
    Role.SYNTHESIZER: synthesizers,
    Role.REALTIME: realtime,
}
_KIND = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class UnknownKind(LookupError):
    """No provider of these roles has that name. The text tells which there are."""

    def __init__(self, roles: tuple[Role, ...]) -> None:
        known = ", ".join(repr(kind) for role in roles for kind in kinds(role))
        super().__init__(f"must be one of {known}")


def kinds(role: Role) -> tuple[str, ...]:
    """The names of a role's providers, in the order of the alphabet."""
    names = (module.name for module in iter_modules(_FOLDERS[role].__path__) if not module.name.startswith("_"))
    return tuple(sorted(name.replace("_", "-") for name in names))


def find(role: Role, kind: str) -> AnyProvider:
    """The provider of that name. Raises `UnknownKind`."""
    module = f"{_FOLDERS[role].__name__}.{kind.replace('-', '_')}"
    if not _KIND.fullmatch(kind) or find_spec(module) is None:
        raise UnknownKind((role,))
    return import_module(module).PROVIDER


def find_in(roles: tuple[Role, ...], kind: str) -> tuple[Role, AnyProvider]:
    """The provider of that name, and its role: a kind is unique among the roles of one table. Raises `UnknownKind`."""
    for role in roles:
        if kind in kinds(role):
            return role, find(role, kind)
    raise UnknownKind(roles)


def provider_of(role: Role, settings: ProviderSettings) -> AnyProvider:
    """The provider that these settings belong to."""
    return find(role, settings.kind)


def all_providers() -> Iterator[tuple[Role, str, AnyProvider]]:
    """Every provider with its role and name; all their files are imported."""
    for role in Role:
        for kind in kinds(role):
            yield role, kind, find(role, kind)


def kinds_accepted(provider: AnyProvider) -> tuple[str, ...]:
    """The names that its settings accept as `kind`."""
    return get_args(provider.settings.model_fields["kind"].annotation)
